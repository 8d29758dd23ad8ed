"""Revise without a browser: every step, and whoever comes in between."""

import re
import socket
from dataclasses import replace
from threading import Event

import pytest

from loop.core.errors import ConflictError, DataError
from loop.core.files import locked
from loop.core.ledger import read_ledger
from loop.core.people.users import Right, UserRole
from loop.core.records import Completion, PromptTask
from loop.engines import base
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import (
    latest_version,
    list_drafts,
    read_version,
    write_version,
)
from loop.prompts.outputs.base import get_contract, list_contracts, list_exchangeable
from loop.prompts.outputs.label_values import LabelValues
from loop.review.revise.begin import DraftRequest, begin_draft
from loop.review.revise.check_record import recall_check
from loop.review.revise.pasted import find_synthetic
from loop.review.submit import VerdictContext, save_verdicts, withdraw_verdict
from loop.review.verdict import Edits
from loop.run.aside import Heard
from loop.run.task import run_prompt
from loop.ui.pages.base import SAME
from loop.ui.pages.revise import events
from loop.ui.pages.revise.events import KeepInputs, TryInputs
from loop.ui.pages.revise.state import (
    OpenedDraft,
    keep_draft_open,
    known_engines,
    read_state,
)
from loop.ui.pages.revise.view import ReviseOutputs, _offered, asked, show_checked
from loop.ui.trying import try_key
from loop.ui.tryout_panel import DRAWS
from tests.review.revise.stepping import FLUID, USELESS, WHEN, WRONG, overtake
from tests.review.scenes import verdict
from tests.ui.revise.conftest import AGAINST, PLACE, Visitor, finish_jobs
from tests.ui.visits import until


def begin(visitor, *verdicts):
    """Let them build a draft from verdicts."""
    ids = [one.id for one in verdicts]
    return visitor.does(events.act_on_verdicts, do="build", ticked=ids)


def check(visitor, engine="rules"):
    """Let them check their draft, and look when it is done."""
    visitor.does(events.run_check, engine, here=True)
    finish_jobs(visitor.context)
    return visitor.does(events.poll, here=True, right=Right.SEE)


def commit(visitor, why="needed", override=False):
    """Let them commit their draft, and look when it is done."""
    visitor.does(events.commit, why, override, here=True)
    finish_jobs(visitor.context)
    return visitor.does(events.poll, here=True, right=Right.SEE)


def other_term(text, term="pleural liquid"):
    """Return the guide with one more term."""
    return text.replace("terms:", f"terms:\n  - {term}")


def test_verdicts_are_listed_by_label_with_what_they_ask_for(editor, given):
    """Who reads it knows what would change before anything is made."""
    shown = editor.does(events.refresh)["verdicts"]
    assert "2 on the wording of 1 label, 1 on the reference" in shown
    assert "2 verdicts by Dr B. Example" in shown
    assert "fluid ... base" in shown
    assert "guideline ambiguous" in shown
    assert "Correct the reference from" in shown
    assert "reference version 2" in shown


def test_reviewers_who_disagree_are_named(editor, given, store):
    """An editor does not have to find a contradiction by accident."""
    said = replace(AGAINST, reviewer="Dr D. Example")
    present = replace(FLUID, correct_value="present", case_ids=("f0",))
    circumstances = VerdictContext(cohort="dev", prompt="tiny@v1", source="")
    save_verdicts(store, (said, present), circumstances, WHEN)
    shown = editor.does(events.refresh)["verdicts"]
    assert "<b>Disagrees</b> with Dr D. Example" in shown
    assert "<b>Disagrees</b> with Dr B. Example" in shown


def test_a_draft_is_built_from_what_is_ticked(editor, given):
    """It opens with its difference, and its verdicts say that they are in it."""
    begin(editor, FLUID)
    ref = editor.opened.draft
    assert ref.startswith("tiny@draft:")
    assert "fluid ... base" in editor["draft"]
    assert "ascites" not in editor["draft"]
    assert f"in {ref}" in editor["verdicts"]
    assert " checked " not in editor["verdicts"]


def tried(visitor, **data):
    """Return the panel of tries after a press on one of its buttons."""
    return turned(visitor, **data)[0]


def turned(visitor, how=events.BY_DEFAULT, **data):
    """Return the panel, what is being written, and the clock."""
    visit = visitor.visit(**data)
    return events.turn_try(visit, "tiny", "dev", visitor.opened, how)


def test_a_draft_is_tried_before_it_is_checked(editor, given, store):
    """On the pairs of its verdicts, and one of them beside the parent; it is no run."""
    editor.does(events.refresh)
    assert editor["tried"] == ""
    begin(editor, USELESS)
    assert 'id="revise-try-turn" data-act="open"' in editor["tried"]
    assert "Right in 0 of 2 pairs of its verdicts" in tried(editor, act="open")
    begin(editor, FLUID)
    shown = tried(editor, act="open")
    assert "Right in 2 of 2 pairs of its verdicts" in shown
    assert "Tried so far: 1 wording of this draft, on 2 cases" in shown
    assert f", {editor.user.name}, wording <code>" in shown
    assert "rules: 2 cases; as it is now</li>" in shown
    one = tried(editor, act="case", case="f1", label="pleural_effusion")
    assert "Fluid layers at the left base, study 1." in one
    assert "<q>Fluid layers at the left base</q>" in one
    assert "no wording of the guide is in the text" in one
    assert tried(editor, act="close") == editor["tried"]
    assert store.find_runs() == []


def polled(visitor):
    """Return what the clock shows once the engine has answered."""
    visit = visitor.visit(Right.REVISE)
    key = try_key(visit, visitor.opened.draft)
    until(lambda: visitor.context.jobs.progress_of(key).finished)
    return events.poll_try(visit, visitor.opened)


def test_pasted_words_are_tried_and_kept_only_on_request(editor, given, setting):
    """As an exemplar they are in the draft; as a case in a table of their own."""
    begin(editor, FLUID)
    words = "Fluid at the right base."
    html, *_ = turned(editor, TryInputs(words=words), act="text")
    assert "on pasted words</h3>" in html and "nothing of the words is kept" in html
    assert "<b>present</b> <q>Fluid at the right base</q>" in html
    files = [one for one in setting.workspace.root.rglob("*") if one.is_file()]
    assert [one for one in files if words.encode() in one.read_bytes()] == []
    assert not find_synthetic(setting.workspace, "tiny").exists()
    before = editor.opened.digest
    kept = KeepInputs(words, "pleural_effusion", "present", "Fluid")
    # A browser tells once more what it holds, after that was saved.
    events.type_guide(editor.visit(), editor.opened, editor["guide"])
    editor.does(events.keep_words, kept, here=True)
    assert "not saved into the draft yet" not in editor["note"]
    assert editor.opened.digest != before
    assert "the words are an exemplar now" in editor["draft"]
    assert editor.opened.label == "pleural_effusion"
    assert "evidence: Fluid" in editor["guide"]
    as_case = kept._replace(as_case=True, label="cardiomegaly", value="absent")
    editor.does(events.keep_words, as_case, here=True)
    assert "Kept as a synthetic case" in editor["said"]
    assert str(setting.workspace.root) not in editor["said"]
    table = find_synthetic(setting.workspace, "tiny").read_text("utf-8")
    assert f"synthetic-1,en,{words},absent" in table
    with pytest.raises(DataError, match="say first what is right"):
        editor.does(events.keep_words, kept._replace(value=""), here=True)
    with pytest.raises(DataError, match="the text is empty"):
        turned(editor, act="text")
    with pytest.raises(DataError, match="no draft is open"):
        events.keep_words(editor.visit(), "tiny", "dev", OpenedDraft(), kept)


def test_a_case_by_its_id_is_tried_without_the_pairs(editor, given):
    """Any dev case; asked again it is the same case."""
    begin(editor, FLUID)
    html = tried(editor, act="one", case="n1")
    assert "on case n1</h3>" in html and "<table" not in html
    assert 'data-act="one" data-case="n1"' in html
    with pytest.raises(DataError, match="name the case by its id"):
        tried(editor, act="one", case="")


def test_a_wording_that_was_tried_is_taken_back(editor, given, setting):
    """The draft says it again, and the page shows it; others' tries stay listed."""
    begin(editor, FLUID)
    tried(editor, act="open")
    first, text = editor.opened.digest, editor["guide"]
    editor.does(events.save_guide, other_term(text), here=True)
    assert editor.opened.digest != first
    html = tried(editor, act="open")
    assert f'data-do="back" data-wording="{first}"' in html
    assert html.count('data-do="back"') == 1 and "; as it is now</li>" in html
    events.type_guide(editor.visit(), editor.opened, editor["guide"])
    editor.does(events.take_back, here=True, do="back", wording=first)
    assert "not saved into the draft yet" not in editor["note"]
    assert editor.opened.digest == first
    assert editor["guide"] == text
    assert f"the draft says again what was tried as {first[:8]}" in editor["draft"]
    assert (
        events.take_back(editor.visit(do="other"), "tiny", "dev", editor.opened)
        == ReviseOutputs()
    )
    with pytest.raises(DataError, match="no try of tiny@draft"):
        editor.does(events.take_back, here=True, do="back", wording="0" * 64)


def test_saving_leaves_what_was_tried_beside_the_editor(editor, given):
    """So that it can be asked again after a change."""
    begin(editor, FLUID)
    text = editor["guide"]
    state = read_state(editor.visit(), "tiny", "dev", editor.opened.draft)
    saved = events.save_guide(
        editor.visit(), "tiny", "dev", state.opened, other_term(text)
    )
    assert saved.tried == saved.heard == saved.keep_label == SAME
    assert set(saved.try_engine.constructor_args) == {"choices"}
    assert saved.draft != SAME


@pytest.fixture
def server(editor, given, setting, wavering):
    """Make a run with an engine that has chance in it, so that the page offers it."""
    run_prompt(setting.workspace, "tiny", "dev", engine="wavering")
    return TryInputs(engine="wavering")


def test_another_engine_is_asked_in_the_background_over_draws(editor, server):
    """With draws the spread of both; a press asks for more of them."""
    begin(editor, FLUID)
    html, heard, clock = turned(editor, server, act="open")
    assert "Asking wavering" in html and 'data-act="stop"' in html
    assert heard == "" and clock.active
    html, _, clock = polled(editor)
    assert not clock.active
    assert "wavering, asked once: it may answer otherwise another time" in html
    assert f'data-draws="{DRAWS}" data-act="open">Ask each 5 times' in html
    turned(editor, server, act="open", draws="5")
    html, *_ = polled(editor)
    assert ", 5 draws of each" in html and "right in draws" in html
    assert re.search(r"<td>\d to \d of 5</td>", html)
    assert "Ask each" not in html
    turned(editor, server._replace(draws=3), act="case", case="f1")
    html, *_ = polled(editor)
    assert ", 3 draws of each" in html and "<h4>Case f1</h4>" in html


def test_draws_that_a_browser_makes_up_are_held_in_bounds(editor, server, wavering):
    """Nobody asks a server a million times by a hand-made request."""
    begin(editor, FLUID)
    for draws, times in (
        (10**9, 20),
        (-3, 1),
        (None, 1),
        ("x", 1),
        (2, 2),
        (float("inf"), 1),
    ):
        turned(editor, server._replace(draws=draws), act="one", case="f1")
        html, *_ = polled(editor)
        many = f", {times} draws of each"
        assert (many in html) == (times > 1)
    wrong = server._replace(engine="openai:x@http://127.0.0.1:1/v1")
    with pytest.raises(DataError, match="no run here was made with that engine"):
        turned(editor, wrong, act="open")


class Slow:
    """A model that waits for leave, and is heard meanwhile."""

    leave = None

    def __init__(self, *_):
        """Take what a factory is given."""

    def identity(self):
        """Return a name."""
        return {"engine": "slow"}

    def complete(self, prompts):
        """Yield no answer before there is leave."""
        for index, _ in enumerate(prompts):
            assert Slow.leave.wait(60)
            yield index, Completion("{}", "stop")


def test_what_a_server_writes_is_shown_and_then_its_answer(
    editor, given, setting, monkeypatch
):
    """The button to stop stays where it is meanwhile; then the answer is there."""
    monkeypatch.setitem(base._FACTORIES, "slow", Slow)
    monkeypatch.setattr(Slow, "leave", Event())
    Slow.leave.set()
    run_prompt(setting.workspace, "tiny", "dev", engine="slow")
    Slow.leave.clear()
    begin(editor, FLUID)
    turned(editor, TryInputs(engine="slow"), act="one", case="f1")
    visit = editor.visit(Right.REVISE)
    key = try_key(visit, editor.opened.draft)
    job = editor.context.jobs._jobs[key]
    assert events.poll_try(visit, editor.opened) == [SAME, "", SAME]
    words = '{"a": "<script>\u202e'
    job.hear(Heard("tiny@v1", 0, 1, 1, "{}"))
    job.hear(Heard(editor.opened.draft, 2, 3, 4, words))
    html, heard, clock = events.poll_try(visit, editor.opened)
    assert (html, clock) == (SAME, SAME)
    assert heard.count("<pre") == 2 and heard.index("tiny@v1") < heard.index("draw 2")
    assert '<span class="soft">draw 2, call 3 of 4</span>' in heard
    assert "<script" not in heard and "\u202e" not in heard and "&lt;script" in heard
    assert "script" not in repr(job.progress)
    Slow.leave.set()
    html, heard, clock = polled(editor)
    assert heard == "" and not clock.active and "on case f1" in html
    assert events.poll_try(visit, editor.opened)[:2] == [SAME, ""]
    Slow.leave.clear()
    turned(editor, TryInputs(engine="slow"), act="one", case="f2")
    html, heard, clock = turned(editor, act="stop")
    assert "Stopped." in html and heard == "" and not clock.active
    Slow.leave.set()
    until(lambda: editor.context.jobs.progress_of(key).finished)


def test_a_new_try_takes_the_place_of_one_that_nobody_answers(
    editor, given, monkeypatch
):
    """Whoever presses twice does not have to stop first."""
    begin(editor, FLUID)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        engine = f"openai:x@http://127.0.0.1:{listening.getsockname()[1]}/v1"
        known = ("rules", engine)
        monkeypatch.setattr(events, "known_engines", lambda *_: known)
        for case in ("f1", "f2"):
            html, _, clock = turned(
                editor, TryInputs(engine=engine), act="one", case=case
            )
            assert "Asking openai:x" in html and clock.active
        html, *_ = turned(editor, act="one", case="f3")
        assert "on case f3</h3>" in html
    key = try_key(editor.visit(), editor.opened.draft)
    jobs = editor.context.jobs
    until(lambda: (now := jobs.progress_of(key)) is None or now.finished)


def test_a_try_by_a_hand_made_request_gets_no_other_case(editor, given, setting):
    """Neither without a draft nor of a holdout."""
    with pytest.raises(DataError, match="no draft is open"):
        tried(editor, act="open")
    setting.add_cohort("hold", "holdout", [("h0", "Nobody knows this.", 1, 0)])
    begin(editor, FLUID)
    with pytest.raises(DataError, match="has no case 'h0'"):
        tried(editor, act="case", case="h0")


def test_a_try_of_hostile_text_is_inert(editor, store, setting):
    """HTML is text, and characters that act are spelled out."""
    words = "Fluid <script>x</script> {{ 1/0 }} \x1b[2J\u202e at the base."
    setting.add_cohort("bad", "dev", [("b0", words, 1, 0)])
    said = replace(FLUID, case_ids=("b0",))
    request = DraftRequest(prompt="tiny", cohort="bad", verdicts=(said,))
    made = begin_draft(setting.workspace, store, request, setting.editor)
    editor.opened = OpenedDraft(draft=made.draft.ref)
    shown = tried(editor, act="case", case="b0", label="pleural_effusion")
    assert "&lt;script&gt;" in shown and "<script" not in shown
    assert "\x1b" not in shown and "\u202e" not in shown and "{{ 1/0 }}" in shown


def test_a_reload_opens_the_same_draft_and_keeps_the_ticks(editor, context, given):
    """Nothing of it lives in the browser."""
    begin(editor, FLUID)
    events.tick(editor.visit(ticked=[USELESS.id]), "tiny", "dev")
    again = Visitor(context).does(events.refresh)
    assert again.opened.draft == editor.opened.draft
    box = again["verdicts"].split(f'data-id="{USELESS.id}"')[1].split(">")[0]
    assert " checked " in box


def test_nothing_is_built_from_a_verdict_that_was_withdrawn(editor, given, context):
    """It is said, and the list is fresh."""
    editor.does(events.refresh)
    author = Visitor(context, "Dr B. Example").visit().actor
    withdraw_verdict(context.store, f"dev:{FLUID.id}", author, "a slip")
    begin(editor, FLUID)
    assert "not open any more" in editor["said"]
    assert list_drafts(context.workspace, "tiny") == ()


def test_what_cannot_be_applied_is_named_and_the_rest_goes_in(editor, given, store):
    """One verdict that a later version made impossible holds no other up."""
    gone = replace(USELESS, label="cardiomegaly", edits=Edits(remove_terms=("big",)))
    circumstances = VerdictContext(cohort="dev", prompt="tiny@v1", source="")
    save_verdicts(store, (gone,), circumstances, WHEN)
    begin(editor, FLUID, gone)
    told = re.sub(r"<[^>]*>", "", editor["said"])
    assert "1 verdict cannot be applied" in told
    (row,) = [one for one in editor["verdicts"].split("<tr>") if gone.id in one]
    assert "Cannot be applied:</b> cardiomegaly has no such entry in terms" in row
    assert editor["verdicts"].count("Cannot be applied") == 1
    assert "Only the other 1 is ticked now" in told
    assert editor.opened.draft == ""
    boxes = {
        one: editor["verdicts"].split(f'data-id="{one}"')[1].split(">")[0]
        for one in (FLUID.id, gone.id)
    }
    assert " checked " in boxes[FLUID.id]
    assert " checked " not in boxes[gone.id]
    assert " data-off " in boxes[gone.id]
    begin(editor, FLUID)
    assert editor.opened.draft.startswith("tiny@draft:")
    begin(editor, gone)
    assert "No other was ticked." in editor["said"]


def test_nothing_ticked_is_said(editor, given):
    """An empty draft is made by another button."""
    with pytest.raises(DataError, match="no verdict is ticked"):
        begin(editor)


def test_the_reference_is_corrected_apart_from_the_wording(editor, given, context):
    """It makes a reference version, and never a draft."""
    editor.does(events.act_on_verdicts, do="correct", ticked=[WRONG.id, FLUID.id])
    assert "dev:ref2 says what 1 judged label should be" in editor["said"]
    assert list_drafts(context.workspace, "tiny") == ()
    assert "on the reference" not in editor["verdicts"]


def test_a_cohort_that_is_not_for_development_shows_no_verdicts(editor, setting):
    """Prompts are not revised on what they are measured by."""
    setting.add_cohort("ext", "external", [("x1", "Lungs are clear today.", 0, 0)])
    visit = editor.visit()
    outputs = events.refresh(visit, "tiny", "ext")
    assert "ext is not a dev cohort" in outputs.verdicts


def test_a_guide_is_edited_by_hand(editor, given):
    """An unchanged draft is the start of it."""
    editor.does(events.act_on_verdicts, do="hand", ticked=[])
    assert "are the same prompt" in editor["draft"]
    assert editor["run"].interactive is False
    editor.does(events.save_guide, other_term(editor["guide"]), here=True)
    assert "pleural liquid" in editor["draft"]
    assert editor["run"].interactive is True


def test_a_guide_that_does_not_fit_is_told_by_line_and_kept(editor, given, context):
    """The text stays in the editor, and a reload finds it."""
    begin(editor, FLUID)
    wrong = editor["guide"] + "  colour: red\n"
    editor.does(events.save_guide, wrong, here=True)
    assert "Not saved" in editor["note"]
    assert "line 7, colour: there is no such field" in editor["note"]
    again = Visitor(context).does(events.refresh)
    assert again["guide"] == wrong
    assert "not saved into the draft yet" in again["note"]
    again.does(events.undo_guide, here=True)
    assert "colour" not in again["guide"]


def test_two_editors_of_one_guide_are_told_of_each_other(editor, colleague, given):
    """The second sees the first one's guide, and decides."""
    begin(editor, FLUID)
    keep_draft_open(colleague.visit(), "tiny", "dev", editor.opened.draft)
    colleague.does(events.refresh)
    old = colleague["guide"]
    editor.does(events.save_guide, other_term(old, "hydrothorax"), here=True)
    mine = other_term(old, "pleural liquid")
    colleague.does(events.save_guide, mine, here=True)
    assert "Dr A. Example edited the guide" in colleague["note"]
    assert "hydrothorax" in colleague["note"]
    colleague.does(events.save_guide, mine, here=True)
    assert "pleural liquid" in colleague["draft"]
    assert "hydrothorax" not in colleague["draft"]


def test_a_check_shows_labels_cases_and_the_way_on(editor, given):
    """What it found is there for whoever looks next."""
    begin(editor, FLUID)
    assert editor["commit"].interactive is False
    check(editor)
    assert "May be committed" in editor["check"]
    assert "not worse" in editor["check"]
    assert 'data-case="f0" data-label="pleural_effusion"' in editor["check"]
    assert editor["commit"].interactive is True
    assert editor["commit"].value == "Commit as tiny@v2"


def test_an_engine_nobody_ran_here_is_refused(editor, given):
    """A name typed into a browser would send case texts to any address."""
    begin(editor, FLUID)
    with pytest.raises(DataError, match="no run here was made with the engine"):
        check(editor, "openai:m@http://127.0.0.1:9")


def test_a_check_over_draws_says_what_chance_does(editor, given, context, wavering):
    """Churn, surplus and harm in words, and a table of what the cases can tell."""
    run_prompt(context.workspace, "tiny", "dev", engine="wavering")
    begin(editor, FLUID)
    shown = check(editor, "wavering")["check"]
    assert "The engine was asked 3 times with the parent and as often" in shown
    assert re.search(r"answers <b>\d+\.\d %</b> differ from one time", shown)
    assert re.search(r"right in <b>\d</b> of 6 readings of them", shown)
    assert "There is no evidence that anything got worse." in shown
    assert "Pleural Effusion</th>" in shown
    assert "Not judged, no case that the reference can judge: " in shown
    assert "All 6 runs are kept." in shown
    assert "Non-inferiority" not in shown


@pytest.mark.parametrize("constrained", [False, True, None])
def test_the_page_asks_as_the_engines_last_run_was_asked(
    editor, given, context, wavering, monkeypatch, constrained
):
    """Free answers are accepted on the command line; the page cannot ask again."""
    told = {"engine": "wavering", "revision": None}
    told |= {} if constrained is None else {"constrained": constrained}
    monkeypatch.setattr(wavering, "identity", lambda self: told)
    run_prompt(context.workspace, "tiny", "dev", engine="wavering")
    begin(editor, FLUID)
    check(editor, "wavering")
    kept = recall_check(context.workspace, context.store, editor.opened.draft).checked
    assert kept.asking["allow_unconstrained"] is (constrained is False)


def test_harm_over_draws_is_named_with_its_size(
    editor, given, context, store, wavering
):
    """In the reader's names on the page, by id among the objections."""
    run_prompt(context.workspace, "tiny", "dev", engine="wavering")
    wide = replace(FLUID, edits=Edits(terms=("study",)))
    circumstances = VerdictContext(cohort="dev", prompt="tiny@v1", source="")
    save_verdicts(store, (wide,), circumstances, WHEN)
    begin(editor, wide)
    shown = check(editor, "wavering")["check"]
    harm = r"Pleural Effusion \(specificity -\d+\.\d % of 15, p &lt; 0.001\)"
    assert re.search(rf"There is evidence of harm:</b> {harm}", shown)
    assert "<li>evidence of harm: pleural_effusion (specificity" in shown


def test_a_failed_check_says_why(editor, given, context):
    """The reason stays on the page until the next try."""
    begin(editor, FLUID)
    cases = context.workspace.private / "cases"
    cases.rename(cases.with_name("elsewhere"))
    check(editor)
    assert "The check was not finished (Dr A. Example)" in editor["check"]


def test_a_commit_takes_a_reason(editor, given):
    """It is what the ledger says for ever."""
    check(begin(editor, FLUID))
    with pytest.raises(DataError, match="give a reason first"):
        commit(editor, "  ")


def test_a_commit_makes_the_next_version(editor, given, context):
    """Where the draft went is said, here and in every other tab."""
    check(begin(editor, FLUID))
    elsewhere = Visitor(context, "Dr C. Example")
    elsewhere.opened = editor.opened
    commit(editor, "says fluid")
    assert "is tiny@v2 now" in editor["said"]
    assert latest_version(context.workspace, "tiny").why == "says fluid"
    assert editor.opened.draft == ""
    elsewhere.does(events.keep, "later", here=True)
    assert "Committed by Dr A. Example" in elsewhere["said"]


def test_objections_are_overridden_by_name_or_not_at_all(editor, given, context):
    """It is said what is overridden, before and in the ledger."""
    check(begin(editor, USELESS))
    assert "no targeted case was fixed" in editor["decision"]
    assert "Dr A. Example (editor)" in editor["decision"]
    assert editor["override"].visible is True
    commit(editor)
    assert "Not committed" in editor["decision"]
    assert latest_version(context.workspace, "tiny").number == 1
    commit(editor, "agreed on the phone", override=True)
    assert "is tiny@v2 now" in editor["said"]
    actions = [entry.action for entry in read_ledger(context.workspace.ledger)]
    assert actions[-1] == "override"


def test_wording_that_was_not_seen_is_not_committed(editor, colleague, given):
    """Somebody edited and checked the draft while it was open here."""
    check(begin(editor, FLUID))
    keep_draft_open(colleague.visit(), "tiny", "dev", editor.opened.draft)
    colleague.does(events.refresh)
    colleague.does(events.save_guide, other_term(colleague["guide"]), here=True)
    check(colleague)
    with pytest.raises(ConflictError, match="edited or checked again since"):
        commit(editor)


@pytest.mark.parametrize("handler", [events.keep, events.discard])
def test_wording_that_was_not_seen_is_neither_kept_nor_discarded(
    editor, colleague, given, context, handler
):
    """What somebody else wrote since would be lost, and without a trace."""
    begin(editor, FLUID)
    keep_draft_open(colleague.visit(), "tiny", "dev", editor.opened.draft)
    colleague.does(events.refresh)
    colleague.does(events.save_guide, other_term(colleague["guide"]), here=True)
    with pytest.raises(ConflictError, match="edited or checked again since"):
        editor.does(handler, "not worth it", here=True)
    assert len(list_drafts(context.workspace, "tiny")) == 1
    editor.does(events.refresh)
    editor.does(handler, "not worth it", here=True)
    assert re.search("stays a draft|is discarded", editor["said"])


def test_names_of_labels_are_those_of_whoever_looks_at_a_check(editor, given):
    """A visitor on a cohort of pairs, where they are not known, fixes them for none."""
    check(begin(editor, FLUID))
    state = read_state(editor.visit(), *PLACE, editor.opened.draft)
    assert "Pleural Effusion" not in show_checked(replace(state, names={}))
    assert "Pleural Effusion" in show_checked(state)


def test_the_engine_of_the_prompts_own_run_is_offered_first(context, setting, wavering):
    """A prompt whose name ends alike, and that ran later, changes nothing."""
    write_version(setting.workspace, replace(setting.tiny, name="my_tiny"))
    run_prompt(setting.workspace, "tiny", "dev")
    run_prompt(setting.workspace, "my_tiny", "dev", engine="wavering")
    assert known_engines(context, *PLACE) == ("rules", "wavering")


def test_a_draft_may_be_kept_or_given_up(editor, given, context):
    """Both leave their reason; what was measured stands in the ledger."""
    check(begin(editor, FLUID))
    ref = editor.opened.draft
    editor.does(events.keep, "ask the readers", here=True)
    assert "stays a draft" in editor["said"]
    assert editor.opened.draft == ref
    editor.does(events.discard, "not worth it", here=True)
    assert f"{ref} is discarded" in editor["said"]
    assert list_drafts(context.workspace, "tiny") == ()
    reasons = [entry.reason for entry in read_ledger(context.workspace.ledger)]
    assert "ask the readers" in reasons


def test_a_draft_given_up_by_another_is_said(editor, colleague, given):
    """Its verdicts are open, and nothing else changed."""
    begin(editor, FLUID)
    colleague.opened = editor.opened
    colleague.does(events.discard, "mine is better", here=True)
    editor.does(events.keep, "mine", here=True)
    assert "is not there any more" in editor["said"]
    assert editor.opened.draft == ""


def test_a_parent_that_moved_is_shown_row_by_row(editor, given, setting, context):
    """Who committed what, and which side is taken, is decided by a person."""
    begin(editor, FLUID)
    text = editor["guide"].replace("Fluid in the pleural space.", "Ours.")
    editor.does(events.save_guide, text, here=True)
    guides = (replace(setting.tiny.guides[0], definition="Theirs."),)
    overtake(setting, guides=(*guides, *setting.tiny.guides[1:]))
    editor.does(events.refresh)
    assert "tiny@v2 was committed by Dr C. Example" in editor["draft"]
    assert "Ours." in editor["draft"]
    assert "Theirs." in editor["draft"]
    assert editor["run"].interactive is False
    with pytest.raises(ConflictError, match="1 conflict is undecided"):
        editor.does(events.rebase, here=True, do="rebase", chosen={})
    name = editor["draft"].split('type="radio" name="')[1].split('"')[0]
    old = editor.opened.draft
    editor.does(events.rebase, here=True, do="rebase", chosen={name: "ours"})
    assert editor.opened.draft != old
    assert "brought to tiny@v2" in editor["draft"]
    assert "Ours." in editor["guide"]


def test_a_damaged_draft_can_be_discarded(editor, given, context):
    """It hides no other, and names its problem."""
    begin(editor, FLUID)
    folder = context.workspace.private / "drafts" / "tiny"
    (folder / editor.opened.draft.partition(":")[2] / "prompt.yaml").write_text("{")
    editor.does(events.refresh)
    assert "cannot be used" in editor["draft"]
    editor.does(events.discard, "damaged", here=True)
    assert list_drafts(context.workspace, "tiny") == ()


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "{{ 7*7 }} ${alert(1)}",
        "\x1b[31mred\x1b[0m",
        "\u202egnp.exe",
    ],
)
def test_hostile_wording_is_shown_as_text(editor, store, text):
    """A verdict is typed by somebody, or comes from a file."""
    hostile = replace(FLUID, edits=replace(FLUID.edits, terms=(text,)), comment=text)
    circumstances = VerdictContext(cohort="dev", prompt="tiny@v1", source="")
    save_verdicts(store, (hostile,), circumstances, WHEN)
    shown = begin(editor.does(events.refresh), hostile)
    for panel in (shown["verdicts"], shown["draft"]):
        assert "<script" not in panel
        assert "<img" not in panel
        assert "\x1b" not in panel
        assert "\u202e" not in panel


def test_a_reviewer_may_look_and_no_more(context, editor, given):
    """Boxes and buttons are not shown; the server refuses them besides."""
    begin(editor, FLUID)
    reviewer = Visitor(context, "Dr B. Example", UserRole.REVIEWER)
    reviewer.does(
        events.open_draft, right=Right.SEE, act="open", ref=editor.opened.draft
    )
    assert "fluid ... base" in reviewer["draft"]
    assert "checkbox" not in reviewer["verdicts"]
    assert "data-do" not in reviewer["verdicts"] + reviewer["draft"]
    assert reviewer["editing"].visible is False
    assert reviewer["deciding"].visible is False
    assert reviewer["asking"].visible is False


@pytest.mark.parametrize(
    "handler", [events.keep, events.discard, events.save_guide, events.run_check]
)
def test_a_call_without_a_page_is_refused(editor, given, handler):
    """Whoever calls a function by name has no draft open."""
    with pytest.raises(DataError, match="no draft is open here"):
        handler(editor.visit(), "tiny", "dev", None, "x")


def test_a_page_without_a_cohort_says_where_to_get_one(editor):
    """The first thing anybody sees of a new workspace."""
    outputs = events.refresh(editor.visit(), "tiny", None)
    assert "No cohort yet" in outputs.said


def test_work_under_way_is_seen_by_whoever_looks(editor, colleague, given, context):
    """It goes on when its page is left, and a reload shows how far it is."""
    begin(editor, FLUID)
    ref = editor.opened.draft
    editor.does(events.run_check, "rules", here=True)
    assert "waits until its engine is free" in editor["check"]
    job = context.queue.claim("here")
    with locked(context.workspace.private / "locks" / "worker-here.lock"):
        context.queue.note(job.number, "run 2 of 2: the draft on dev", 10, 25)
        keep_draft_open(colleague.visit(), "tiny", "dev", ref)
        colleague.does(events.refresh)
        assert colleague["timer"].active is True
        assert 'value="10" max="25"' in colleague["check"]
        assert "10 of 25 cases. Begun by Dr A. Example" in colleague["check"]
        assert colleague["run"].interactive is False
        with pytest.raises(ConflictError, match=r"checked already: job 1.*Dr A"):
            colleague.does(events.run_check, "rules", here=True)
    colleague.does(events.poll, here=True, right=Right.SEE)
    assert colleague["timer"].active is False
    assert "its process ended before the work did" in colleague["check"]


def test_why_a_check_failed_is_told_until_the_draft_is_another(
    editor, given, context, monkeypatch
):
    """Edited since, or checked since, the draft has no failed check."""
    begin(editor, FLUID)
    editor.does(events.run_check, "rules", here=True)
    context.queue.stop(1, "Dr C. Example")
    shown = editor.does(events.poll, here=True, right=Right.SEE)["check"]
    assert "stopped by Dr C. Example" in shown
    with context.store.writing() as connection:
        connection.execute("UPDATE jobs SET ended='2020-01-01T00:00:00Z'")
    assert "stopped by" not in editor.does(events.refresh)["check"]


def test_a_finished_check_leaves_alone_what_is_being_typed(editor, given):
    """The page is shown afresh around the editor, never under it."""
    begin(editor, FLUID)
    before = editor.opened.guide
    editor.does(events.run_check, "rules", here=True)
    finish_jobs(editor.context)
    outputs = events.poll(editor.visit(Right.SEE), "tiny", "dev", editor.opened)
    assert outputs.guide == outputs.label == outputs.why == SAME
    assert outputs.opened.guide == before
    assert outputs.keep_label == outputs.tried == outputs.heard == SAME


def test_a_draft_that_is_being_committed_is_not_read(editor, given):
    """It is moved meanwhile: a read that fails would leave the page without an end."""
    begin(editor, FLUID)
    check(editor)
    visit = editor.visit(Right.REVISE)
    outputs = events.commit(visit, "tiny", "dev", editor.opened, "needed", False)
    assert outputs.timer.active is True
    assert outputs.opened.running is True
    assert outputs.draft is outputs.drafts is outputs.check is SAME
    editor.opened = outputs.opened
    finish_jobs(editor.context)
    editor.does(events.poll, here=True, right=Right.SEE)
    assert "is tiny@v2 now" in editor["said"]


def test_a_late_answer_does_not_stop_the_clock_of_what_began_since(editor, given):
    """Two looks may cross: the end of a check and the beginning of a commit."""
    begin(editor, FLUID)
    editor.does(events.run_check, "rules", here=True)
    finish_jobs(editor.context)
    editor.does(events.poll, here=True, right=Right.SEE)
    late = events.poll(editor.visit(Right.SEE), "tiny", "dev", editor.opened)
    assert late == ReviseOutputs()
    commit(editor)
    assert "is tiny@v2 now" in editor["said"]


@pytest.mark.parametrize("opened", [None, OpenedDraft()])
def test_without_an_open_draft_the_clock_stops(editor, opened):
    """A tab whose state is lost would ask every few seconds, for nothing."""
    outputs = events.poll(editor.visit(Right.SEE), "tiny", "dev", opened)
    assert outputs.timer.active is False
    assert outputs.draft is outputs.check is SAME


def mark_answer(setting):
    """Write a second version that marks how to answer."""
    block = f"{{# frozen: answer #}}\n{LabelValues.instruction}{{# end frozen #}}\n"
    newest = latest_version(setting.workspace, "tiny")
    second = replace(
        newest,
        number=newest.number + 1,
        user=newest.user.replace("{{ text }}", block + "{{ text }}"),
        parent=newest.digest,
    )
    write_version(setting.workspace, second)


def test_only_contracts_of_the_same_task_are_offered(setting):
    """A prompt that reads one text is not answered about two, nor the other way."""
    block = "{# frozen: answer #}\nAnswer.\n{# end frozen #}\n"
    exchangeable = replace(setting.tiny, user=f"{block}{setting.tiny.user}")
    offered = _offered(exchangeable)
    assert tuple(offered) == list_contracts(PromptTask.EXTRACT)
    assert offered["binary"] == "present or absent for every label, never uncertain"
    judges = _offered(replace(exchangeable, contract="green_sections"))
    assert tuple(judges) == list_exchangeable(get_contract("green_sections"))
    assert "green_text" in judges and "entailment" not in judges
    assert tuple(_offered(replace(setting.tiny, contract="error_list"))) == (
        "error_list",
    )


def test_a_draft_may_be_begun_in_another_contract(editor, setting):
    """The choice is offered with what each says; the version's own is chosen."""
    assert "How the draft is answered" not in editor.does(events.refresh)["verdicts"]
    mark_answer(setting)
    shown = editor.does(events.refresh)["verdicts"]
    assert "How the draft is answered" in shown
    assert 'value="label_values" checked' in shown
    assert "never uncertain" in shown
    editor.does(events.act_on_verdicts, do="hand", chosen={"contract": "binary"})
    draft = read_version(setting.workspace, editor.opened.draft)
    assert draft.contract == "binary"


@pytest.mark.parametrize("chosen", [None, {}, {"contract": "no such"}, {"contract": 1}])
def test_whatever_else_a_browser_sends_keeps_the_contract(editor, setting, chosen):
    """Only a known name changes how a prompt is answered."""
    mark_answer(setting)
    editor.does(events.act_on_verdicts, do="hand", chosen=chosen)
    draft = read_version(setting.workspace, editor.opened.draft)
    assert draft.contract == "label_values"


def test_what_a_verdict_takes_away_is_listed_beside_what_it_adds():
    """A term that goes changes answers as much as one that comes."""
    edits = Edits(
        terms=("new term",),
        remove_terms=("old term",),
        remove_exclusions=("old exclusion",),
        remove_implies=("fracture",),
    )
    listed = [(one.sign, one.text) for one in asked(verdict(edits=edits))]
    assert sorted(listed) == [
        ("+", "new term"),
        ("-", "fracture"),
        ("-", "old exclusion"),
        ("-", "old term"),
    ]


def test_without_a_cohort_labels_have_the_names_of_the_taxonomy(editor):
    """The page opens all the same."""
    taxonomy = read_taxonomy(editor.context.workspace.labels)
    named = {one.id: one.name for one in taxonomy.labels}
    for cohort in ("dev", "nothing"):
        assert read_state(editor.visit(), "tiny", cohort, "").names == named


def test_a_reason_that_was_typed_is_there_after_a_reload(editor, given, context):
    """For whoever typed it, and with that draft only."""
    begin(editor, FLUID)
    assert editor["why"] == ""
    events.type_why(editor.visit(), editor.opened, "the readers asked")
    assert Visitor(context).does(events.refresh)["why"] == "the readers asked"
    begin(editor, USELESS)
    assert editor["why"] == ""
