"""A guide edited by hand: strict as text, and nobody's work is overwritten."""

import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.errors import ConflictError, DataError, OverlapError
from loop.core.ledger import read_ledger
from loop.core.records import Clarification, Exemplar, Guide, Value
from loop.prompts.catalog import read_version
from loop.prompts.instructions import instructions_text
from loop.prompts.version import CallPlan
from loop.review.revise import edit as edit_module
from loop.review.revise.draft_files import beside, read_line
from loop.review.revise.edit import (
    GuideEdit,
    SettingsEdit,
    edit_draft,
    find_guide_text,
    guide_text,
    parse_guide_text,
    settings_text,
)
from tests.review.revise.stepping import FLUID, OTHER, begin, check, now, overtake

WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp", "Co"]),
    min_size=1,
    max_size=30,
).map(str.strip).filter(bool)  # fmt: skip


@given(
    st.builds(
        Guide,
        label=st.just("edema"),
        name=WORDS,
        definition=WORDS,
        terms=st.lists(WORDS, max_size=3).map(tuple),
        clarifications=st.lists(
            st.builds(Clarification, phrase=WORDS, value=st.sampled_from(Value)),
            max_size=2,
        ).map(tuple),
        exemplars=st.lists(
            st.builds(
                Exemplar, text=WORDS, value=st.sampled_from(Value), evidence=WORDS
            ),
            max_size=2,
        ).map(tuple),
    )
)
def test_a_guide_reads_back_as_it_was_written(guide):
    """What an editor sees is all there is, whatever the words are."""
    assert parse_guide_text(guide_text(guide), "edema") == guide


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("edema:\n  name: E\n  definition: [\n", "line 4: not valid YAML"),
        ("edema:\n  name: E\n  definition: d\n  name: F\n", "line 4: key 'name'"),
        (
            "edema:\n  name: E\n  definition: d\n  temrs: [x]\n",
            "line 4, temrs: there is no such field",
        ),
        (
            "edema:\n  name: E\n  definition: d\n  terms:\n  - x\n  - ''\n",
            "line 6, terms.1: ",
        ),
        (
            "edema:\n  name: E\n  definition: d\n  clarifications:\n"
            "  - phrase: p\n    value: perhaps\n",
            "line 6, clarifications.0.value: ",
        ),
        ("edema:\n  name: E\n", "line 1, definition: "),
        ("cardiomegaly:\n  name: E\n  definition: d\n", "holds 'cardiomegaly', and"),
        ("{}", "holds nothing"),
        ("- a\n", "line 1, guide: "),
        ("", "line 1, guide: "),
        ("edema: 3\n", "line 1, "),
    ],
)
def test_a_text_that_is_no_guide_is_refused_with_its_line(text, said):
    """An editor finds the place without counting."""
    with pytest.raises(DataError) as caught:
        parse_guide_text(text, "edema")
    assert said in str(caught.value)


@pytest.fixture
def draft(setting, store):
    """Begin a draft."""
    return begin(setting, store, FLUID).draft


def edited(draft, label, definition, seen=True):
    """Return an edit of one definition, made on the draft as given."""
    guide = draft.guide(label)
    return GuideEdit(
        label=label,
        text=guide_text(replace(guide, definition=definition)),
        seen=guide_text(guide) if seen else "",
    )


def test_an_edit_keeps_the_draft_and_its_verdicts(setting, draft):
    """Same id, other wording, the editor's name."""
    one = edited(draft, "cardiomegaly", "A large heart.")
    made = edit_draft(setting.workspace, draft.ref, (one,), OTHER, now=now)
    found = read_version(setting.workspace, draft.ref)
    assert found == made.draft
    assert found.guide("cardiomegaly").definition == "A large heart."
    assert (found.author, found.verdicts) == (OTHER.name, draft.verdicts)
    assert "+definition" in made.diff.counts()


def test_two_editors_of_two_labels_both_keep_their_work(setting, draft):
    """The guide is what they must agree on, not the draft."""
    ours = edited(draft, "pleural_effusion", "Fluid.")
    theirs = edited(draft, "cardiomegaly", "A large heart.")
    start = threading.Barrier(2)

    def save(edit, actor):
        start.wait()
        edit_draft(setting.workspace, draft.ref, (edit,), actor)

    threads = [
        threading.Thread(target=save, args=pair)
        for pair in ((ours, setting.editor), (theirs, OTHER))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = read_version(setting.workspace, draft.ref)
    assert [guide.definition for guide in found.guides] == ["Fluid.", "A large heart."]


def test_the_second_editor_of_one_label_is_told_of_the_first(setting, draft):
    """Nothing is overwritten unseen."""
    first = edited(draft, "cardiomegaly", "A large heart.")
    second = edited(draft, "cardiomegaly", "A big heart.")
    edit_draft(setting.workspace, draft.ref, (first,), OTHER, now=now)
    with pytest.raises(ConflictError, match=r"Dr C. Example edited .* cardiomegaly"):
        edit_draft(setting.workspace, draft.ref, (second,), setting.editor)
    found = read_version(setting.workspace, draft.ref)
    assert found.guide("cardiomegaly").definition == "A large heart."


def test_an_edit_of_checked_wording_leaves_what_was_measured_in_the_ledger(
    setting, store, draft
):
    """What was tried on a cohort counts for what is claimed on it."""
    check(setting, store, draft)
    one = edited(draft, "cardiomegaly", "A large heart.")
    edit_draft(setting.workspace, draft.ref, (one,), OTHER, now=now)
    entry = read_ledger(setting.workspace.ledger)[-1]
    assert (entry.action, entry.payload["digest"]) == ("draft_rejected", draft.digest)
    assert entry.actor == OTHER.name


def test_a_kill_between_the_two_files_leaves_an_edited_draft(setting, draft):
    """The guides decide; the header's digest of a draft does not."""
    folder = setting.workspace.private / "drafts" / "tiny" / draft.draft
    header = (folder / "prompt.yaml").read_bytes()
    one = edited(draft, "cardiomegaly", "A large heart.")
    made = edit_draft(setting.workspace, draft.ref, (one,), OTHER, now=now)
    (folder / "prompt.yaml").write_bytes(header)
    assert read_version(setting.workspace, draft.ref).digest == made.draft.digest
    unseen = replace(one, seen="")
    again = edit_draft(setting.workspace, draft.ref, (unseen,), OTHER, now=now)
    assert again.draft.digest == made.draft.digest


def test_text_of_a_holdout_is_refused_and_the_draft_stays(setting, draft):
    """An editor is no way round the check for copies."""
    text = "There is a meniscus of fluid along the left wall today."
    setting.add_cohort("held", "holdout", [("h1", text, 1, 0)])
    with pytest.raises(OverlapError, match="h1 of cohort held"):
        edit_draft(
            setting.workspace,
            draft.ref,
            (edited(draft, "cardiomegaly", text),),
            setting.editor,
        )
    assert read_version(setting.workspace, draft.ref) == draft
    assert beside(setting.workspace, draft).about.is_file()


def test_a_committed_version_is_not_edited(setting, draft):
    """The message says how to begin."""
    one = edited(draft, "cardiomegaly", "A large heart.", seen=False)
    with pytest.raises(DataError, match=r"stays as it is.*draft begin tiny"):
        edit_draft(setting.workspace, "tiny@v1", (one,), setting.editor)


def instructions(version, old, new):
    """Return an edit of the instructions."""
    text = instructions_text(version)
    assert old in text
    return SettingsEdit(instructions=text.replace(old, new), seen=text)


def test_instructions_are_edited_diffed_and_checked_like_a_guide(setting, store, draft):
    """The words of the frame decide as much as those of a label."""
    edit = instructions(draft, "{{ text }}", "Read slowly.\n{{ text }}")
    made = edit_draft(setting.workspace, draft.ref, (), OTHER, settings=edit, now=now)
    found = read_version(setting.workspace, draft.ref)
    assert found == made.draft
    assert found.user == draft.user.replace("{{ text }}", "Read slowly.\n{{ text }}")
    assert (found.system, found.guides) == (draft.system, draft.guides)
    (template,) = made.diff.templates
    assert (template.file, "+Read slowly." in template.lines) == ("user.jinja", True)
    assert check(setting, store, made.draft).check is not None


def test_a_plan_and_a_contract_are_edited(setting, draft):
    """How many calls a case takes, and how it is answered."""
    with_block = draft.user + "{# frozen: answer #}\nold\n{# end frozen #}\n"
    text = instructions_text(replace(draft, user=with_block))
    edit = SettingsEdit(instructions=text, plan=CallPlan.PER_LABEL, contract="findings")
    made = edit_draft(setting.workspace, draft.ref, (), OTHER, settings=edit, now=now)
    assert (made.draft.plan, made.draft.contract) == (CallPlan.PER_LABEL, "findings")
    assert "\nold\n" not in made.draft.user
    assert read_version(setting.workspace, draft.ref) == made.draft


def test_a_frozen_block_is_not_edited_by_hand(setting, draft, monkeypatch):
    """Where the case stands, and how answers are written, no editor changes."""
    block = "{# frozen: case #}\nReport:\n{# end frozen #}\n"
    parent = replace(setting.tiny, user=block + setting.tiny.user)
    line = read_line(setting.workspace, draft.ref)
    frozen = line._replace(parent=parent, draft=replace(draft, user=parent.user))
    monkeypatch.setattr(edit_module, "read_line", lambda *_: frozen)
    for old, new in (("Report:", "Case:"), ("frozen: case", "frozen: kase")):
        edit = instructions(frozen.draft, old, new)
        with pytest.raises(DataError, match="frozen block 'case' of tiny@v1"):
            edit_draft(setting.workspace, draft.ref, (), OTHER, settings=edit)
    assert read_version(setting.workspace, draft.ref) == draft


def test_the_second_editor_of_the_instructions_is_told_of_the_first(setting, draft):
    """Nothing is overwritten unseen."""
    first = instructions(draft, "{{ text }}", "One.\n{{ text }}")
    second = instructions(draft, "{{ text }}", "Two.\n{{ text }}")
    edit_draft(setting.workspace, draft.ref, (), OTHER, settings=first, now=now)
    with pytest.raises(ConflictError, match=r"Dr C. Example edited the instructions"):
        edit_draft(setting.workspace, draft.ref, (), setting.editor, settings=second)
    assert "One." in read_version(setting.workspace, draft.ref).user


def test_plan_and_contract_are_edited_by_one_after_the_other(setting, draft):
    """Without instructions what was seen is the settings, as they are written."""
    seen = settings_text(draft)
    assert seen == f"plan: {draft.plan.value}\ncontract: {draft.contract}\n"
    edit = SettingsEdit(plan=CallPlan.PER_LABEL, seen=seen)
    made = edit_draft(setting.workspace, draft.ref, (), OTHER, settings=edit, now=now)
    assert made.draft.plan is CallPlan.PER_LABEL
    said = r"Dr C. Example edited the call plan or the contract in .* at 2026-01-07"
    with pytest.raises(ConflictError, match=said):
        edit_draft(setting.workspace, draft.ref, (), setting.editor, settings=edit)
    over = SettingsEdit(plan=draft.plan)
    back = edit_draft(setting.workspace, draft.ref, (), setting.editor, settings=over)
    assert back.draft.digest == draft.digest


def test_a_label_without_a_guide_has_a_template(setting):
    """With what the taxonomy says; a label nobody asks for has none."""
    first = setting.tiny.guides[0]
    found = find_guide_text(setting.workspace, setting.tiny, first.label)
    assert found == guide_text(first)
    text = find_guide_text(setting.workspace, setting.tiny, "edema")
    assert text.startswith("edema:\n  name: Edema\n")
    assert "\n  # terms: [" in text
    assert parse_guide_text(text, "edema").label == "edema"
    for label in ("no_finding", "z" * 90):
        with pytest.raises(DataError) as caught:
            find_guide_text(setting.workspace, setting.tiny, label)
        said = f"tiny@v1 has no guide for {label[:80]}, and labels/taxonomy.yaml no"
        assert str(caught.value).startswith(said)


def test_all_that_does_not_fit_is_told_with_its_line():
    """Up to ten; a guide of several labels is none of the one."""
    rows = "".join(f"  x{n}: 1\n" for n in range(12))
    with pytest.raises(DataError) as caught:
        parse_guide_text(f"edema:\n  name: E\n  definition: d\n{rows}", "edema")
    told = [f"line {4 + n}, x{n}: there is no such field" for n in range(10)]
    assert str(caught.value) == f"the guide, {'; '.join(told)}. Correct it."
    guides = "".join(
        f"{name}:\n  name: E\n  definition: d\n" for name in ("edema", "mass")
    )
    with pytest.raises(
        DataError, match="holds 'edema', 'mass', and the guide of edema"
    ):
        parse_guide_text(guides, "edema")


def test_an_edit_that_changes_nothing_writes_nothing(setting, store, draft):
    """Nor does it make a check stale or leave a trace."""
    check(setting, store, draft)
    same = edited(draft, "cardiomegaly", draft.guide("cardiomegaly").definition)
    before = setting.state()
    made = edit_draft(setting.workspace, draft.ref, (same,), OTHER, now=now)
    assert made.draft.digest == draft.digest
    assert setting.state() == before


def test_a_guide_that_was_not_there_is_added_once(setting, draft):
    """What was seen of it was nothing, or the template; the second editor is told."""
    text = "edema:\n  name: Edema\n  definition: Wet lungs.\n"
    one = GuideEdit(label="edema", text=text)
    made = edit_draft(setting.workspace, draft.ref, (one,), OTHER, now=now)
    assert made.draft.labels == (*draft.labels, "edema")
    late = GuideEdit(label="edema", text=text, seen="edema:\n  name: Oedema\n")
    with pytest.raises(ConflictError, match="edited the guide of edema"):
        edit_draft(setting.workspace, draft.ref, (late,), setting.editor)


def test_five_labels_are_named_of_a_text_that_holds_more():
    """A whole file that was pasted in is not read back."""
    text = "".join(f"a{n}:\n  name: E\n  definition: d\n" for n in range(7))
    with pytest.raises(DataError) as caught:
        parse_guide_text(text, "edema")
    assert str(caught.value) == (
        "the guide, line 1: holds 'a0', 'a1', 'a2', 'a3', 'a4', and the guide of edema "
        "is wanted. Begin it with `edema:` and indent everything else."
    )


def test_an_edited_draft_is_still_behind_what_was_committed_meanwhile(setting, draft):
    """Editing it is no rebase."""
    one = edited(draft, "cardiomegaly", "A large heart.")
    assert not edit_draft(setting.workspace, draft.ref, (one,), OTHER, now=now).behind
    overtake(setting)
    two = edited(draft, "pleural_effusion", "Fluid.")
    assert edit_draft(setting.workspace, draft.ref, (two,), OTHER, now=now).behind


def test_instructions_may_have_been_seen_without_their_frozen_blocks(
    setting, draft, monkeypatch
):
    """As a page shows them; what was seen otherwise is somebody else's."""
    block = "{# frozen: case #}\nReport:\n{# end frozen #}\n"
    parent = replace(setting.tiny, user=block + setting.tiny.user)
    line = read_line(setting.workspace, draft.ref)
    frozen = line._replace(parent=parent, draft=replace(draft, user=parent.user))
    monkeypatch.setattr(edit_module, "read_line", lambda *_: frozen)
    folded = instructions_text(frozen.draft, folded=True)
    assert "Report:" not in folded
    changed = folded.replace("{{ text }}", "Read slowly.\n{{ text }}")
    edit = SettingsEdit(instructions=changed, seen=folded)
    made = edit_draft(setting.workspace, draft.ref, (), OTHER, settings=edit, now=now)
    assert made.draft.user == parent.user.replace(
        "{{ text }}", "Read slowly.\n{{ text }}"
    )
    other = replace(edit, seen=folded + "more")
    with pytest.raises(ConflictError, match="edited the instructions"):
        edit_draft(setting.workspace, draft.ref, (), OTHER, settings=other)
