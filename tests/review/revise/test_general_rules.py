"""A verdict that asks for a general rule: from the form to the version's history."""

import json
from dataclasses import replace

import pytest

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Clarification, Exemplar, Guide, Item, Lexicon, Value
from loop.engines.rules.cues import read_cues
from loop.engines.rules.engine import RulesEngine
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import read_version
from loop.prompts.history import read_history
from loop.prompts.instructions import add_rules, read_rules
from loop.prompts.outputs.base import get_contract
from loop.prompts.outputs.label_values import LabelValues
from loop.prompts.render import plan_prompts
from loop.prompts.version import CallPlan
from loop.release.audit.audit import audit_workspace
from loop.release.audit.prompt_changes import read_changes
from loop.review.guideline import build_guideline
from loop.review.revise.begin import DraftRequest, begin_draft
from loop.review.revise.commit import CommitDecision, commit_checked
from loop.review.revise.draft import (
    READ_BY,
    answered_in,
    read_by,
    render_shown,
    show_draft,
)
from loop.review.status import VerdictState, read_kept
from loop.review.submit import VerdictContext, decode, payload, submit_verdict
from loop.review.verdict import LONGEST_RULE, Edits, build_from_form
from loop.review.verdict_files import read_verdicts, verdicts_file, verdicts_table
from tests.review.revise.conftest import TINY
from tests.review.revise.stepping import FLUID, WRONG, check, now, overtake

RULE = "What a drain has emptied is absent."
SYSTEM = (
    "Read the report.\n\nRules of reading:\n- A finding that is denied is absent.\n"
)
ASKED = replace(FLUID, edits=Edits(general_rules=(RULE,)))
MADE_ON = VerdictContext(cohort="dev", prompt="tiny@v2", source="")


@pytest.fixture
def ruled(setting):
    """Commit a version with rules of reading in its system message."""
    return overtake(setting, system=SYSTEM)


def begin(setting, store, *verdicts):
    """Begin a draft of the newest version."""
    request = DraftRequest(prompt="tiny", cohort="dev", verdicts=verdicts)
    return begin_draft(setting.workspace, store, request, setting.editor, now=now)


def told(version):
    """Return the system message that a model receives."""
    plan = plan_prompts(version, LabelValues().schema)
    return plan.calls[0].frame.messages[0].content


def test_what_was_said_before_there_were_general_rules_keeps_its_id():
    """Prompts and ledgers name verdicts by it; it was noted before."""
    assert (FLUID.id, WRONG.id) == ("45d0c284cc9c", "dbaa4580f9a4")
    assert ASKED.id != replace(FLUID, edits=Edits()).id


def test_the_store_keeps_verdicts_as_it_did_and_reads_what_it_had(store):
    """Neither a new column nor a new key where nobody asks for a rule."""
    kept = payload(FLUID, MADE_ON)
    assert "general_rules" not in kept["verdict"]["edits"]
    assert decode("dev:a", json.dumps(kept))[0] == FLUID
    assert decode("dev:b", json.dumps(payload(ASKED, MADE_ON)))[0] == ASKED


@pytest.mark.parametrize("rule", ["a" * (LONGEST_RULE + 1), "a" * 2_000_000])
def test_a_general_rule_is_a_sentence_or_two(setting, rule):
    """Every case is read with it."""
    fields = {"cases": ["f0"], "label": "pleural_effusion", "general_rules": [rule]}
    with pytest.raises(DataError, match=f"general rule 1 has {len(rule):,} characters"):
        given = fields | {"judgement": "model_wrong"}
        build_from_form(given, reviewer="-", asked=taxonomy(), case_ids=["f0"])


def test_the_longest_general_rule_is_taken():
    """One character more is refused."""
    fields = {"cases": ["f0"], "label": "pleural_effusion", "judgement": "model_wrong"}
    rule = "a" * LONGEST_RULE
    made = build_from_form(
        fields | {"general_rules": [rule]},
        reviewer="-",
        asked=taxonomy(),
        case_ids=["f0"],
    )
    assert made.edits.general_rules == (rule,)


def taxonomy():
    """Return the shipped taxonomy."""
    return read_taxonomy(bundled() / "labels")


@pytest.mark.parametrize("form", ["yaml", "csv"])
def test_a_general_rule_is_in_verdict_files(store, tmp_path, form):
    """Handed in and given out, commas, bars and template code included."""
    rule = "Of {{ text }}, 'a | b' and <b>c</b>: the last counts."
    asked = replace(ASKED, edits=Edits(general_rules=(rule, RULE)))
    submit_verdict(store, asked, MADE_ON)
    kept = read_kept(store, None, "dev")
    write = verdicts_file if form == "yaml" else verdicts_table
    path = tmp_path / f"verdicts.{form}"
    path.write_text(write(kept, notes=True), encoding="utf-8")
    assert read_verdicts(path).verdicts == (asked,)


def test_an_action_asks_for_it_by_name(tmp_path):
    """As for the other changes."""
    path = tmp_path / "verdicts.csv"
    path.write_text(
        "case_id,label,judgement,action,general_rule\n"
        f"f0,edema,model_wrong,add_general_rule,{RULE}\n"
    )
    (asked,) = read_verdicts(path).verdicts
    assert asked.edits == Edits(general_rules=(RULE,))
    assert not asked.edits.in_guide


def test_a_rule_goes_into_the_instructions_and_into_no_guide(setting, store, ruled):
    """With its verdict as its reason, in the draft and above the rule."""
    made = begin(setting, store, ASKED)
    assert read_rules(made.draft)[-1] == RULE
    assert f"{{# verdict {ASKED.id} #}}\n- {RULE}\n" in made.draft.system
    assert told(made.draft) == told(ruled) + f"- {RULE}\n"
    assert made.draft.guides == ruled.guides
    assert made.draft.verdicts == (ASKED.id,)
    assert made.draft.why == f"general rule asked for by verdict {ASKED.id}"
    assert made.sound


def test_a_verdict_may_ask_for_both(setting, store, ruled):
    """A wording of its label and a rule for all."""
    both = replace(FLUID, edits=Edits(terms=("fluid ... base",), general_rules=(RULE,)))
    made = begin(setting, store, both)
    assert made.diff.counts()["+term"] == 1
    assert made.diff.counts()["+general rule"] == 1
    assert made.draft.why == (
        f"1 verdict on pleural_effusion; general rule asked for by verdict {both.id}"
    )


def test_a_rule_for_a_label_without_a_guide_is_one_all_the_same(setting, store, ruled):
    """It holds for every label, and the label only shows it."""
    edema = replace(ASKED, label="edema", case_ids=("f0",))
    assert RULE in begin(setting, store, edema).draft.system


def test_without_rules_of_reading_the_draft_gets_them(setting, store):
    """The diff shows where they stand, and an editor may move them."""
    draft = begin(setting, store, ASKED).draft
    assert read_rules(draft) == (RULE,)
    assert draft.system.count("Rules of reading:") == 1


def test_history_and_audit_name_the_rule_and_its_verdict(setting, store, ruled):
    """Committed, it is in the version, its history, the audit, and answered."""
    submit_verdict(store, ASKED, MADE_ON, now)
    draft = begin(setting, store, ASKED.id).draft
    check(setting, store, draft)
    decision = CommitDecision(override="agreed")
    version, _ = commit_checked(
        setting.workspace, store, draft.ref, setting.editor, decision, now=now
    )
    assert RULE in told(read_version(setting.workspace, version.ref))
    (kept,) = read_kept(store, setting.workspace, "dev")
    assert (kept.state, kept.addressed_by) == (VerdictState.ADDRESSED, version.ref)
    last = read_history(setting.workspace, "tiny")[-1]
    assert last.changes == {"+general rule": 1, "+instruction line": 2}
    changes = read_changes(
        setting.workspace, audit_workspace(setting.workspace), "tiny"
    ).changes
    committed = next(one for one in changes if one.entry.subject == version.ref)
    assert "+1 general rule, +2 instruction lines" in committed.facts
    assert ASKED.id in committed.entry.reason


def test_it_is_said_that_rules_reads_no_instructions(setting, store, ruled):
    """A check with it would find nothing better and nothing worse."""
    draft = begin(setting, store, ASKED).draft
    (unread,) = show_draft(setting.workspace, draft.ref).notes
    assert unread.startswith("`rules` reads nothing of what is changed")
    both = replace(FLUID, edits=Edits(terms=("fluid ... base",), general_rules=(RULE,)))
    assert (
        show_draft(setting.workspace, begin(setting, store, both).draft.ref).notes == ()
    )
    # The templates of this prompt show no terms to a model.
    (unread,) = begin(setting, store, FLUID).notes
    assert unread.startswith("language models read nothing of what is changed")


def test_a_language_model_reads_what_the_templates_insert():
    """Looked up in the version: what its templates leave out, no model reads."""
    reading = read_by(TINY)
    assert reading["definition"] == ("language models", "people")
    assert reading["term"] == ("people", "engine rules")
    assert read_by(replace(TINY, user="{% if %}")) == READ_BY


GUIDE = Guide(label="a", name="Alpha", definition="A.", terms=("effusion",))
OTHER = Guide(label="b", name="Beta", definition="B.", terms=("nodule",))
SAME = Clarification(phrase="xyzzy", value=Value.PRESENT)
SEEN = Exemplar(text="xyzzy", value=Value.PRESENT, evidence="xyzzy")
PARTS = {
    "name": {"name": "xyzzy"},
    "definition": {"definition": "xyzzy"},
    "counts": {"counts": ("xyzzy",)},
    "does not count": {"does_not_count": ("xyzzy effusion",)},
    "uncertain when": {"uncertain_when": ("xyzzy effusion",)},
    "term": {"terms": ("effusion", "xyzzy")},
    "exclusion": {"exclusions": ("xyzzy effusion",)},
    "clarification": {"clarifications": (SAME,)},
    "exemplar": {"exemplars": (SEEN,)},
    "implies": {"implies": ("b",)},
    "lexicon": {"lexicon": (Lexicon(language="en", terms=("xyzzy",)),)},
}


def answers(version):
    """Return what the engine `rules` answers with a version."""
    engine = RulesEngine(read_cues(bundled() / "labels"))
    plan = plan_prompts(version, get_contract(version.contract).schema)
    texts = ("Xyzzy.", "Xyzzy effusion.", "Possible effusion.")
    items = [Item(id=text, variables={"text": text}) for text in texts]
    prompts = [prompt for item in items for prompt in plan(item)]
    return [completion.text for _, completion in engine.complete(prompts)]


def guideline(version):
    """Return what people read of a version, without the digest."""
    entries = build_guideline(taxonomy(), version).entries
    return next(one for one in entries if one.name == "Edema")


@pytest.mark.parametrize("part", PARTS)
def test_who_reads_a_part_is_what_changes_with_it(part):
    """Held against a model's prompt, the answers of `rules`, and the guideline."""
    frame = read_version(WorkspacePaths(bundled()), "extractor@v9")
    before = replace(frame, guides=(GUIDE, OTHER))
    after = replace(frame, guides=(replace(GUIDE, **PARTS[part]), OTHER))
    of_people = [
        guideline(replace(one, guides=(replace(one.guides[0], label="edema"),)))
        for one in (before, after)
    ]
    changed = {
        "language models": render_shown(before) != render_shown(after),
        "people": of_people[0] != of_people[1],
        "engine rules": answers(before) != answers(after),
    }
    found = tuple(who for who, differs in changed.items() if differs)
    named = read_by(frame)[part]
    if part == "name":  # people read the taxonomy's
        named = tuple(who for who in named if who != "people")
    assert found == named


def test_who_reads_plan_contract_and_instructions():
    """`rules` reads how it is asked, and no word of the instructions."""
    frame = read_version(WorkspacePaths(bundled()), "extractor@v9")
    base = replace(frame, guides=(replace(GUIDE, implies=("b",)), OTHER))
    asked = answers(base)
    assert answers(replace(base, plan=CallPlan.PER_LABEL)) != asked
    assert answers(answered_in(base, "label_values")) != asked
    ruled, _ = add_rules(base, {"Everything is present.": "a"})
    assert answers(ruled) == asked
    reading = read_by(frame)
    assert reading["plan"] == reading["contract"] == ("language models", "engine rules")
    assert reading["instructions"] == ("language models",)
