"""General instructions on the page Revise, without a browser."""

from dataclasses import replace

import pytest

from loop.prompts.catalog import read_version
from loop.prompts.instructions import LONGEST, instructions_text, read_rules
from loop.prompts.version import CallPlan
from loop.review.submit import VerdictContext, save_verdicts
from loop.review.verdict import Edits
from loop.ui.pages.revise import events
from loop.ui.pages.revise.state import (
    INSTRUCTIONS,
    SETTINGS,
    guide_of,
    keep_draft_open,
)
from tests.review.revise.stepping import FLUID, WHEN, overtake
from tests.ui.revise.conftest import PLACE, Visitor

RULE = "What {{ a drain }} has <b>emptied</b> is {% absent %}."
ASKED = replace(FLUID, edits=Edits(general_rules=(RULE,)))
SYSTEM = (
    "Read the report.\n\nRules of reading:\n- A denied finding is absent.\n\n"
    "{# frozen: answer #}\nAnswer in JSON.\n{# end frozen #}\n"
)


@pytest.fixture
def ruled(setting):
    """Commit a version with rules of reading and a frozen block."""
    return overtake(setting, system=SYSTEM)


@pytest.fixture
def asked(store):
    """Keep an open verdict that asks for a general rule, and one on a wording."""
    circumstances = VerdictContext(cohort="dev", prompt="tiny@v1", source="")
    save_verdicts(store, (ASKED, FLUID), circumstances, WHEN)


def begin(visitor, *verdicts):
    """Let them begin a draft, and open its instructions."""
    ids = [one.id for one in verdicts]
    visitor.does(events.act_on_verdicts, do="build" if ids else "hand", ticked=ids)
    return choose(visitor, INSTRUCTIONS)


def choose(visitor, what):
    """Let them choose what to edit."""
    visitor.does(events.choose_label, what, here=True)
    return visitor


def save(visitor, old, new):
    """Let them change a part of the text and save it."""
    assert old in visitor["guide"]
    text = visitor["guide"].replace(old, new)
    return visitor.does(events.save_guide, text, here=True)


def read(visitor):
    """Return the draft that they have open."""
    return read_version(visitor.context.workspace, visitor.opened.draft)


def test_a_wish_for_the_instructions_stands_by_itself(editor, asked, ruled):
    """It says who would read it, and is text whatever it looks like."""
    shown = editor.does(events.refresh)["verdicts"]
    assert "1 on the wording of 1 label, 1 on the general instructions" in shown
    group = shown.split("<b>General instructions</b>")[1].split("</table>")[0]
    assert "What {{ a drain }} has &lt;b&gt;emptied&lt;/b&gt; is {% absent %}." in group
    assert '<span class="read-by">language models</span>' in group
    assert "<b>Pleural Effusion</b>" in shown


def test_without_rules_of_reading_a_wish_brings_them(editor, asked):
    """The draft shows the new list, and nothing had to be prepared."""
    editor.does(events.act_on_verdicts, do="build", ticked=[ASKED.id])
    assert "+Rules of reading:" in editor["draft"]
    assert read_rules(read(editor)) == (RULE,)


def test_a_wish_is_taken_into_the_draft(editor, asked, ruled):
    """The draft opens on the instructions, which are all that it changes."""
    editor.does(events.act_on_verdicts, do="build", ticked=[ASKED.id])
    assert editor.opened.label == INSTRUCTIONS
    assert f"{{# verdict {ASKED.id} #}}" in editor["guide"]
    assert read_rules(read(editor)) == ("A denied finding is absent.", RULE)
    assert "+1 general rule</span>" in editor["draft"]
    assert "`rules` reads nothing of what is changed" in editor["draft"]


def test_a_frozen_block_is_shown_and_kept(editor, ruled):
    """Its words are not in the box, and come back into the draft as they were."""
    begin(editor)
    assert "Answer in JSON." not in editor["guide"]
    assert "Frozen, read only: answer" in editor["parts"]
    assert "Answer in JSON." in editor["parts"]
    save(editor, "Read the report.", "Read it all.")
    assert read(editor).system == SYSTEM.replace("Read the report.", "Read it all.")
    assert "saved the instructions" in editor["draft"]
    for mark in ("{# frozen: answer #}\n{# end frozen #}", "frozen: answer"):
        save(editor, mark, "other")
        assert "Not saved" in editor["note"]
    assert (
        "frozen block &#39;answer&#39; of tiny@v2 was changed or removed"
        in (
            save(editor, "{# frozen: answer #}\n", "{# frozen: answer #}\nmine")["note"]
        )
    )
    assert "Answer in JSON." in read(editor).system


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{% endfor %}", "", "the instructions, line "),
        ("{{ text }}", "{{ text }", "the instructions, line "),
        ("[user.jinja]", "", "the instructions hold both templates"),
        ("Read", "x" * LONGEST, "at most 50,000 can be edited"),
    ],
)
def test_what_cannot_be_saved_is_said_and_kept(editor, ruled, context, old, new, said):
    """The text stays in the editor, and a reload finds it."""
    begin(editor)
    save(editor, old, new)
    assert "Not saved" in editor["note"]
    assert said in editor["note"]
    typed = editor["guide"].replace(old, new)
    again = choose(Visitor(context).does(events.refresh), INSTRUCTIONS)
    assert again["guide"] == typed
    assert "not saved into the draft yet" in again["note"]
    assert read(editor).digest == ruled.digest
    again.does(events.undo_guide, here=True)
    assert again["guide"] == editor["guide"]


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ("{{ wish }}", "variable &#39;wish&#39; is undefined"),
        ("word " * 4000, "20,"),
        ("{{ guides[9].label }}", "UndefinedError"),
    ],
)
def test_what_lint_objects_to_is_said_beside_the_editor(editor, ruled, new, said):
    """Saved, so that nothing is lost; what is wrong stands where it is put right."""
    begin(editor)
    save(editor, "Read the report.", f"Read the report.\n{new}")
    assert "Not saved" not in editor["note"]
    assert said in editor["note"]


def test_what_is_kept_after_it_was_saved_is_not_called_unsaved(editor, ruled):
    """A browser tells of the last letters while it saves: either may come first."""
    begin(editor)
    text = editor["guide"].replace("Read the report.", "{{ wish }}")
    editor.does(events.save_guide, text, here=True)
    events.type_guide(editor.visit(), editor.opened, text)
    choose(choose(editor, SETTINGS), INSTRUCTIONS)
    assert editor["guide"] == text
    assert "not saved" not in editor["note"]
    assert "is undefined" in editor["note"]


def test_a_saved_text_does_not_come_back_when_another_wording_is_taken_back(
    editor, ruled
):
    """Of the instructions, of the settings and of guides that are not in the editor."""
    begin(editor)
    first, text = editor.opened.digest, editor["guide"]
    visit = editor.visit(act="one", case="f1")
    events.turn_try(visit, *PLACE, editor.opened)
    save(editor, "Read the report.", "Read it all.")
    events.type_guide(editor.visit(), editor.opened, editor["guide"])
    choose(editor, SETTINGS)
    editor.does(events.save_guide, "", "per_label", "findings", here=True)
    events.choose_setting(editor.visit(), editor.opened, "per_label", "findings")
    editor.does(events.take_back, here=True, do="back", wording=first)
    assert "not saved" not in editor["note"]
    assert editor["plan"].value == "joint"
    choose(editor, INSTRUCTIONS)
    assert editor["guide"] == text
    assert "not saved" not in editor["note"]


def test_a_text_too_long_to_be_kept_is_told_so(editor, ruled):
    """Both that it cannot be saved and that a reload will not have it."""
    begin(editor)
    save(editor, "Read", "x" * 3 * LONGEST)
    assert "at most 50,000 can be edited" in editor["note"]
    assert "at most 65,536 are kept" in editor["note"]
    assert read(editor).digest == ruled.digest


def test_two_editors_of_the_instructions_are_told_of_each_other(
    editor, colleague, ruled
):
    """The second sees the first one's text, and decides."""
    begin(editor)
    keep_draft_open(colleague.visit(), "tiny", "dev", editor.opened.draft)
    choose(colleague.does(events.refresh), INSTRUCTIONS)
    save(editor, "Read the report.", "Read it first.")
    mine = colleague["guide"].replace("Read the report.", "Read it second.")
    colleague.does(events.save_guide, mine, here=True)
    assert "Dr A. Example edited the instructions" in colleague["note"]
    assert "Read it first." in colleague["note"]
    assert read(editor).system.startswith("Read it first.")
    colleague.does(events.save_guide, mine, here=True)
    assert read(editor).system.startswith("Read it second.")


def test_a_contract_and_the_instructions_may_be_edited_at_once(
    editor, colleague, ruled
):
    """What the contract writes is frozen: nobody else's text is touched by it."""
    begin(editor)
    keep_draft_open(colleague.visit(), "tiny", "dev", editor.opened.draft)
    choose(colleague.does(events.refresh), SETTINGS)
    colleague.does(events.save_guide, "", "joint", "binary", here=True)
    save(editor, "Read the report.", "Read it all.")
    assert "Not saved" not in editor["note"]
    draft = read(editor)
    assert draft.contract == "binary"
    assert draft.system.startswith("Read it all.")
    assert "there is no third value" in draft.system


def test_plan_and_contract_are_saved_kept_and_guarded(editor, colleague, ruled):
    """As a text is: a choice is kept, and a second editor is told of the first."""
    choose(begin(editor), SETTINGS)
    assert (editor["writing"].visible, editor["setting"].visible) == (False, True)
    assert [value for _, value in editor["plan"].choices] == list(CallPlan)
    events.choose_setting(editor.visit(), editor.opened, "per_label", "findings")
    choose(choose(editor, INSTRUCTIONS), SETTINGS)
    assert editor["plan"].value == "per_label"
    assert editor["contract"].value == "findings"
    keep_draft_open(colleague.visit(), "tiny", "dev", editor.opened.draft)
    choose(colleague.does(events.refresh), SETTINGS)
    assert colleague["plan"].value == "joint"
    editor.does(events.save_guide, "", "per_label", "findings", here=True)
    assert "saved call plan and contract" in editor["draft"]
    draft = read(editor)
    assert (draft.plan, draft.contract) == (CallPlan.PER_LABEL, "findings")
    colleague.does(events.save_guide, "", "joint", "binary", here=True)
    assert "edited the call plan or the contract" in colleague["note"]
    assert read(editor).digest == draft.digest


def test_a_contract_that_nobody_has_is_not_saved(editor, ruled):
    """Whatever a browser sends."""
    choose(begin(editor), SETTINGS)
    editor.does(events.save_guide, "", "<b>", "../x", here=True)
    assert read(editor).digest == ruled.digest


def test_the_page_says_who_reads_each_part(editor, given, ruled):
    """Beside each part in the editor and beside each change."""
    begin(editor, FLUID)
    assert "language models" in editor["parts"]
    choose(editor, "pleural_effusion")
    parts = " ".join(editor["parts"].split())
    for part, who in (("lexicon", "engine rules"), ("term", "people, engine rules")):
        assert f'<dt>{part}</dt><dd class="read-by">{who}</dd>' in parts
    # The templates of this prompt insert no terms.
    assert '<span class="read-by">people, engine rules</span>' in editor["draft"]
    assert "language models read nothing of what is changed" in editor["draft"]


def test_instructions_with_a_broken_frozen_block_are_shown_whole(ruled):
    """Whoever has to put the block right sees it."""
    broken = replace(ruled, system=SYSTEM.replace("{# end frozen #}\n", ""))
    assert guide_of(broken, INSTRUCTIONS) == instructions_text(broken)
    assert "Answer in JSON." in guide_of(broken, INSTRUCTIONS)
    assert "Answer in JSON." not in guide_of(ruled, INSTRUCTIONS)
