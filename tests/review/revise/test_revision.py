"""A round of revision on a real store, with the rules engine."""

from dataclasses import replace

import pytest

from loop.core.errors import (
    ConflictError,
    DataError,
    EngineError,
    LedgerError,
    OverlapError,
)
from loop.core.ledger import read_ledger
from loop.core.records import Mark
from loop.labels.cohort import texts_path
from loop.labels.reference import read_reference
from loop.prompts.catalog import list_drafts, list_versions, read_version, write_version
from loop.review.revise.begin import DraftRequest, begin_draft
from loop.review.revise.check import TargetOutcome
from loop.review.revise.commit import Commitment, commit_draft
from loop.review.revise.revision import RevisionRequest, revise
from loop.review.submit import read_anchors
from loop.review.verdict_files import read_verdicts
from loop.run.store import open_store

FLUID = """
reviewer: Dr B. Example
judgement: guideline_ambiguous
verdicts:
- cases: [f0, f1]
  label: Pleural Effusion
  context: synonym_or_abbreviation
  terms: [fluid ... base, layering fluid]
  exclusions: [fluid level in the stomach]
  comment: these say fluid without the word effusion
"""


def ask(setting, text=FLUID, **options):
    """Run one round and return it."""
    request = RevisionRequest(
        prompt="tiny", cohort="dev", verdicts=setting.verdicts(text), **options
    )
    return revise(setting.workspace, request, setting.editor)


def test_a_verdict_that_fixes_its_cases_becomes_the_next_version(setting):
    """The whole loop: verdict, draft, check, commit, ledger."""
    revision = ask(setting)
    assert revision.version is not None
    assert revision.version.ref == "tiny@v2"
    assert revision.check.count(TargetOutcome.FIXED) == 2
    assert (revision.check.gained, revision.check.lost) == (4, 0)
    entry = read_ledger(setting.workspace.ledger)[-1]
    assert (entry.action, entry.subject) == ("draft_committed", "tiny@v2")
    assert entry.payload["digest"] == revision.version.digest
    assert entry.payload["parent"] == setting.tiny.digest
    assert list_drafts(setting.workspace, "tiny") == ()


def test_no_private_comment_reaches_prompt_or_ledger(setting):
    """Comments may quote a case; prompts and ledger are public."""
    ask(setting)
    public = setting.workspace.ledger.read_text()
    for path in (setting.workspace.prompts / "tiny" / "v2").iterdir():
        public += path.read_text()
    assert "without the word" not in public


def test_a_change_that_helps_no_case_stays_a_draft(setting):
    """Nothing is committed on hope."""
    revision = ask(setting, FLUID.replace("fluid ... base, layering fluid", "ascites"))
    assert revision.version is None
    assert not revision.done
    assert "no targeted case was fixed or improved" in revision.objections
    assert list_versions(setting.workspace, "tiny") == (1,)
    assert read_version(setting.workspace, "tiny@draft").digest == revision.draft.digest


def test_a_change_that_breaks_another_label_stays_a_draft(setting):
    """Every label is checked, not only the one that was judged."""
    text = FLUID + (
        "- label: cardiomegaly\n  terms: [clear lungs, small]\n"
        "  comment: too wide on purpose\n"
    )
    revision = ask(setting, text)
    assert revision.version is None
    assert any("cardiomegaly (lost" in reason for reason in revision.objections)


def test_an_override_commits_and_stands_in_the_ledger(setting):
    """A person may decide otherwise, with a name and a reason."""
    text = FLUID.replace("fluid ... base, layering fluid", "ascites")
    revision = ask(setting, text, why="needed for the next site", override="I know")
    assert revision.version is not None
    assert revision.objections
    committed, override = read_ledger(setting.workspace.ledger)[-2:]
    assert (committed.action, override.action) == ("draft_committed", "override")
    assert override.reason == "I know"
    assert override.payload["overridden"] == list(revision.objections)
    assert committed.payload["override"] == {
        "reason": "I know",
        "overridden": list(revision.objections),
    }


def test_a_broken_anchor_blocks_the_commit(setting):
    """A pinned case has zero tolerance, in every later round."""
    ask(
        setting,
        "verdicts:\n- cases: [e0]\n  label: pleural_effusion\n  anchor: true\n"
        "  judgement: model_wrong\n  terms: [small pleural effusion]\n",
    )
    with open_store(setting.workspace) as store:
        assert [anchor.case_id for anchor in read_anchors(store, "dev")] == ["e0"]
    revision = ask(
        setting, FLUID.replace("fluid level in the stomach", "small pleural effusion")
    )
    assert revision.version is None
    assert any("anchored cases broke: e0" in one for one in revision.objections)


def test_a_wrong_reference_changes_the_reference_and_never_the_prompt(setting):
    """The reference gets a new version; the prompt does not."""
    revision = ask(
        setting,
        "verdicts:\n- case_id: n1\n  label: pleural_effusion\n"
        "  judgement: reference_wrong\n  correct_value: present\n",
    )
    assert revision.done
    assert (revision.draft, revision.reference, revision.corrections) == (None, 2, 1)
    reference = read_reference(setting.workspace, "dev")
    assert reference.number == 2
    assert reference.mark("n1", "pleural_effusion") is Mark.PRESENT
    assert list_versions(setting.workspace, "tiny") == (1,)


def test_applying_the_same_reference_verdict_twice_is_harmless(setting):
    """Running a command again must not pile up versions."""
    text = (
        "verdicts:\n- case_id: n1\n  label: pleural_effusion\n"
        "  judgement: reference_wrong\n  correct_value: present\n"
    )
    ask(setting, text)
    assert ask(setting, text).reference is None
    assert read_reference(setting.workspace, "dev").number == 2
    revised = [
        entry
        for entry in read_ledger(setting.workspace.ledger)
        if entry.action == "reference_revised"
    ][-1]
    assert setting.kept_ids()[0] in revised.reason


def test_lint_errors_stop_before_anything_is_run(setting):
    """A contradictory guide is not measured, and cannot be overridden."""
    text = FLUID.replace("fluid level in the stomach", "pleural effusion")
    revision = ask(setting, text, override="anyway")
    assert revision.check is None
    assert revision.version is None
    assert revision.objections == ("lint found errors",)


def test_text_of_a_holdout_case_is_refused(setting):
    """It would leak the answer of a case the prompt is measured on."""
    rows = [("h1", "There is a meniscus of fluid along the left wall today.", 1, 0)]
    setting.add_cohort("held", "holdout", rows)
    text = (
        "verdicts:\n- case_id: f1\n  label: pleural_effusion\n"
        "  judgement: model_wrong\n  exemplar:\n"
        "    text: A meniscus of fluid along the left wall.\n"
        "    value: present\n    evidence: meniscus of fluid\n"
    )
    with pytest.raises(OverlapError, match=r"h1 of cohort held.*your own words"):
        ask(setting, text)
    assert list_drafts(setting.workspace, "tiny") == ()


def test_only_dev_cohorts_can_be_revised_on(setting):
    """Revising on an external cohort would spend it."""
    rows = [("x1", "Large pleural effusion abroad.", 1, 0)]
    setting.add_cohort("abroad", "external", rows)
    request = RevisionRequest(
        prompt="tiny", cohort="abroad", verdicts=setting.verdicts(FLUID)
    )
    with pytest.raises(DataError, match="dev cohort only"):
        revise(setting.workspace, request, setting.editor)


def test_an_old_version_cannot_be_revised(setting):
    """The history is a line, not a tree."""
    ask(setting)
    request = RevisionRequest(
        prompt="tiny@v1", cohort="dev", verdicts=setting.verdicts(FLUID)
    )
    with pytest.raises(ConflictError, match=r"tiny@v2 .* is. Revise that one"):
        revise(setting.workspace, request, setting.editor)


def test_the_file_may_name_the_cohort_and_the_version_it_judges(setting):
    """A file that says what it is about needs no options; a stale one is noted."""
    text = "cohort: dev\nprompt: tiny@v7\n" + FLUID
    request = RevisionRequest(prompt="tiny", verdicts=setting.verdicts(text))
    revision = revise(setting.workspace, request, setting.editor)
    assert (revision.cohort, revision.version.ref) == ("dev", "tiny@v2")
    assert "made on tiny@v7 and applied to tiny@v1" in revision.notes[0]


def test_a_round_without_a_cohort_says_how_to_name_one(setting):
    """Case ids mean nothing without their cohort."""
    request = RevisionRequest(prompt="tiny", verdicts=setting.verdicts(FLUID))
    with pytest.raises(DataError, match=r"--cohort, or write `cohort: NAME`"):
        revise(setting.workspace, request, setting.editor)


def test_an_unknown_case_is_named(setting):
    """The message gives the verdict number and a way out."""
    with pytest.raises(DataError, match="verdict 1: the cohort has no case 'f99'"):
        ask(setting, FLUID.replace("f1]", "f99]"))


def test_a_broken_ledger_stops_the_round_before_it_begins(setting):
    """Nothing is added to a history that cannot be trusted."""
    ledger = setting.workspace.ledger
    ledger.write_text(ledger.read_text().replace("a start", "a fake"))
    with pytest.raises(LedgerError, match="edited after it was written"):
        ask(setting)
    assert list_versions(setting.workspace, "tiny") == (1,)


def test_one_unchanged_target_keeps_the_draft_a_draft(setting):
    """Each case that a clinician named must be met, or overridden by name."""
    text = FLUID.replace("[f0, f1]", "[f0, f1, n0]").replace(
        "  label: Pleural Effusion\n",
        "  label: Pleural Effusion\n  correct_value: present\n",
    )
    revision = ask(setting, text)
    assert revision.version is None
    assert revision.objections == (
        "targeted cases did not change: n0 pleural_effusion",
    )
    again = ask(setting, text, override="the report is too short")
    assert again.version is not None


def test_a_draft_that_stays_a_draft_is_in_the_ledger(setting):
    """What was tried and why it did not hold is part of the history."""
    revision = ask(setting, FLUID.replace("fluid ... base, layering fluid", "ascites"))
    entry = read_ledger(setting.workspace.ledger)[-1]
    assert (entry.action, entry.subject) == ("draft_rejected", revision.draft.ref)
    assert entry.payload["digest"] == revision.draft.digest
    assert entry.payload["parent"] == setting.tiny.digest
    assert entry.payload["verdicts"] == [verdict.id for verdict in revision.verdicts]
    assert entry.payload["objections"] == list(revision.objections)
    assert entry.payload["check"]["targets"] == {"unchanged": 2}
    assert "without the word" not in setting.workspace.ledger.read_text()


def test_a_draft_kept_on_request_or_by_lint_is_in_the_ledger_too(setting):
    """Whatever was the reason."""
    ask(setting, keep_draft=True)
    kept = read_ledger(setting.workspace.ledger)[-1]
    assert (kept.action, kept.payload["objections"]) == ("draft_rejected", [])
    ask(setting, FLUID.replace("fluid level in the stomach", "pleural effusion"))
    linted = read_ledger(setting.workspace.ledger)[-1]
    assert linted.payload["objections"] == ["lint found errors"]


def test_a_holdout_that_cannot_be_searched_stands_against_a_commit(setting):
    """Not looked at is not the same as not found."""
    setting.add_cohort("held", "holdout", [("h1", "Nothing of note.", 0, 0)])
    texts_path(setting.workspace, "held").unlink()
    text = FLUID.replace(
        "fluid level in the stomach", "fluid seen only below the left half diaphragm"
    )
    revision = ask(setting, text)
    assert revision.version is None
    assert any("holdout held" in one for one in revision.objections)
    assert any("cohort held (holdout) was not looked at" in n for n in revision.notes)
    entry = read_ledger(setting.workspace.ledger)[-1]
    assert entry.payload["check"]["not_searched_for_copies"] == ["held"]


DISAGREEING = (
    "judgement: reference_wrong\nverdicts:\n"
    "- {case: n1, label: pleural_effusion, correct_value: present}\n"
    "- {case: n1, label: pleural_effusion, correct_value: absent}\n"
)


@pytest.mark.parametrize(
    ("text", "options", "error"),
    [
        (FLUID, {"engine": "typo"}, EngineError),
        (DISAGREEING, {}, DataError),
    ],
)
def test_a_refused_round_changes_nothing(setting, text, options, error):
    """What the messages promise: no verdict, reference, draft or ledger entry."""
    before = setting.state()
    with pytest.raises(error):
        ask(setting, text, **options)
    assert setting.state() == before


def test_two_verdicts_on_one_correct_value_are_named(setting):
    """Whoever judged last does not win."""
    with pytest.raises(DataError, match="verdicts 1 and 2 disagree"):
        ask(setting, DISAGREEING)
    assert read_reference(setting.workspace, "dev").number == 1


def test_a_draft_that_came_second_is_in_the_ledger(setting):
    """Of two who revise at once the slower one's draft is not forgotten."""
    other = replace(
        setting.tiny,
        number=0,
        draft="other",
        parent=setting.tiny.digest,
        system="Read quickly.\n",
    )
    write_version(setting.workspace, other)
    commitment = Commitment(actor=setting.editor, reason="faster", evidence={})

    def overtake(items):
        if list_versions(setting.workspace, "tiny") == (1,):
            commit_draft(setting.workspace, other, commitment)
        yield from items

    request = RevisionRequest(
        prompt="tiny", cohort="dev", verdicts=setting.verdicts(FLUID)
    )
    with pytest.raises(ConflictError, match="The draft is kept"):
        revise(setting.workspace, request, setting.editor, watch=overtake)
    entry = read_ledger(setting.workspace.ledger)[-1]
    assert entry.action == "draft_rejected"
    (objection,) = entry.payload["objections"]
    assert objection.startswith("tiny@v2 was committed by")


def test_a_verdict_on_a_right_answer_asks_a_draft_for_nothing(setting):
    """That nothing is wrong is recorded; a wording for a right answer is no matter."""
    right = """- case: e0
  label: Pleural Effusion
  judgement: answer_right
- case: e1
  label: Pleural Effusion
  judgement: model_wrong
  terms: effusion
"""
    revision = ask(setting, FLUID + right)
    assert revision.version is not None
    assert len(revision.check.targets) == 3
    assert revision.check.count(TargetOutcome.FIXED) == 2
    assert revision.check.count(TargetOutcome.ALREADY_RIGHT) == 1


def test_of_right_answers_alone_a_draft_says_what_its_parent_says(setting):
    """Nothing is run and nothing breaks where no verdict asks for anything."""
    right = "verdicts:\n- {case: e0, label: edema, judgement: answer_right}\n"
    request = DraftRequest(
        prompt="tiny",
        cohort="dev",
        verdicts=read_verdicts(
            setting.verdicts(right.replace("edema", "cardiomegaly")), reviewer="Dr B"
        ).verdicts,
    )
    with open_store(setting.workspace) as store:
        made = begin_draft(setting.workspace, store, request, setting.editor)
    assert made.draft.guides == setting.tiny.guides


def test_a_round_tells_all_that_it_did(setting):
    """Its runs are those of the parent, the draft and the version, in this order."""
    revision = ask(setting, f"prompt: tiny@v1\n{FLUID}", why="bases")
    (said,) = revision.verdicts
    assert (revision.parent, revision.cohort) == (setting.tiny, "dev")
    assert (revision.draft.verdicts, revision.version.verdicts) == ((said.id,),) * 2
    assert (revision.draft.why, revision.version.why) == ("bases", "bases")
    assert (revision.reference, revision.corrections, revision.earlier) == (None, 0, ())
    assert (revision.objections, revision.copies, revision.skipped) == ((), (), ())
    assert revision.diff.counts() == {"+term": 2, "+exclusion": 1}
    assert not any("made on" in note for note in revision.notes)
    assert revision.done
    with open_store(setting.workspace) as store:
        asked = [
            one.spec.prompt
            for run in revision.runs
            for one in store.find_runs(ids=[run])
        ]
        (row,) = store.list_verdicts()
    assert asked == ["tiny@v1", revision.draft.ref, "tiny@v2"]
    assert {name: row.payload[name] for name in ("cohort", "prompt", "source")} == {
        "cohort": "dev",
        "prompt": "tiny@v1",
        "source": "verdicts.yaml",
    }


def test_a_round_goes_on_with_kept_verdicts_and_with_a_draft(setting):
    """Those of the first round are told as earlier ones; without any it is refused."""
    first = ask(setting, keep_draft=True)
    assert (first.version, first.done) == (None, False)
    (kept,) = first.verdicts
    draft = RevisionRequest(prompt=first.draft.ref, cohort="dev")
    second = revise(setting.workspace, draft, setting.editor)
    assert (second.verdicts, second.earlier) == ((), (kept,))
    assert second.version.ref == "tiny@v2"
    assert second.version.verdicts == (kept.id,)
    with pytest.raises(DataError, match=r"nothing says what to change in tiny@v2"):
        revise(
            setting.workspace,
            RevisionRequest(prompt="tiny", cohort="dev"),
            setting.editor,
        )
    again = RevisionRequest(prompt="tiny", cohort="dev", kept=(kept.id,))
    third = revise(setting.workspace, again, setting.editor)
    assert (third.verdicts, third.draft, third.done) == ((kept,), None, True)
    assert any("is there already" in note for note in third.notes)
