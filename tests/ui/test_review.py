"""The page Review without a browser: queue, form, and what two people do at once."""

import re
import socket
from dataclasses import replace
from types import SimpleNamespace

import gradio as gr
import pytest

from loop.core.errors import DataError, EngineError
from loop.core.people.users import PermissionRefused, Right, UserRole
from loop.core.records import (
    Clarification,
    Completion,
    Exemplar,
    Mark,
    Span,
    Value,
)
from loop.engines import base
from loop.evaluate.failures import Failure, FailureKind
from loop.labels.cohort import read_cohort
from loop.labels.named_samples import ReviewSample, keep_review_sample
from loop.labels.taxonomy import NO_FINDING
from loop.review.queue.records import OtherAnswer, QueueItem, Reasons
from loop.review.revise.phrases import GuidePart, PhraseTryout, TriedChange, TriedPart
from loop.review.status import VerdictState, read_kept
from loop.review.verdict import Context, Edits, Judgement
from loop.run.task import run_prompt
from loop.ui.pages.review import events, state, view
from loop.ui.pages.review.page import follow
from loop.ui.pages.review.state import Filters, Place
from loop.ui.pages.review.verdict_form import ReviewForm
from loop.ui.pages.review.view import FILTERS, ReviewOutputs
from loop.ui.phrase_panel import render_phrase
from loop.ui.serve import warm
from loop.ui.trying import try_key
from tests.review.scenes import ANN, BEN, add_cohort, add_prompt
from tests.ui.reviewed import SHOWN, context_of, make_reviewed, run_next, seat
from tests.ui.visits import until

NOTHING_WRONG = ReviewForm(judgement="answer_right")
TERM = ReviewForm(judgement="model_wrong", action="term", phrase="fluid at the base")


@pytest.fixture
def version(workspace, tmp_path):
    """Make a workspace in which version 1 misses fluid; return the version."""
    return make_reviewed(workspace, tmp_path)


@pytest.fixture
def context(workspace, version):
    """Serve it without a browser."""
    with context_of(workspace) as opened:
        yield opened


@pytest.fixture
def ann(context):
    """Return a reviewer at a tab."""
    return seat(context)


def on(ann, case, label="pleural_effusion"):
    """Return the place with one pair open."""
    place = ann.open()["place"]
    return ann.act(events.choose, place, act="open", case=case, label=label)["place"]


def on_right(ann):
    """Return the place with the drawn right answer open."""
    place = ann.open()["place"]
    return ann.act(events.narrow, place, Filters(kind="right"))["place"]


def kept(context):
    """Return all verdicts on the cohort."""
    return read_kept(context.store, context.workspace, "dev")


def test_opening_shows_the_first_pair_with_its_text_and_guide(ann):
    """Nothing has to be chosen before the first case can be judged."""
    shown = ann.open()
    assert shown["place"].case
    assert "Guide of" in shown["case"]
    assert 'aria-current="true"' in shown["queue"]
    assert "3</b> of 3 pairs" in shown["queue"]


def test_hostile_text_is_shown_as_text(ann):
    """A case is data: no markup, no template, no control character."""
    place = on(ann, "f2")
    html = ann.open(place)["case"]
    assert "&lt;script&gt;alert(1)" in html and "<script>" not in html
    assert "<img" not in html and "**bold** {{ 1/0 }}" in html
    assert "\\x1b[31m" in html and "\x1b" not in html
    assert "\\u202e" in html and "\u202e" not in html


def test_evidence_is_marked_and_headings_are_headings(ann):
    """The eye finds what the model read."""
    place = on(ann, "c1", "cardiomegaly")
    html = ann.open(place)["case"]
    assert 'title="Evidence for Cardiomegaly">Cardiomegaly</mark>' in html
    assert '<b class="case-heading">IMPRESSION:</b>' in html
    assert "<q>Cardiomegaly</q>" in html


def test_a_verdict_is_kept_with_its_run_and_the_next_pair_opens(ann, context):
    """Submit and next: saved with what it was said of, and on."""
    place = on(ann, "f1")
    shown = ann.submit(place, TERM)
    (one,) = kept(context)
    assert one.verdict.reviewer == ANN
    assert one.verdict.edits.terms == ("fluid at the base",)
    assert one.circumstances.run == place.run
    assert one.circumstances.prompt == "tiny@v1"
    assert shown["place"].pair != place.pair
    assert "Saved Pleural Effusion, f1" in shown["status"]
    assert shown["phrase"] == ""
    assert "reviewed by" in shown["queue"]


def test_each_action_becomes_its_edit(ann, context):
    """The form asks for what a verdict file could ask for."""
    rule = ReviewForm(
        judgement="guideline_ambiguous",
        value="uncertain",
        cause="synonym_or_abbreviation",
        action="clarification",
        phrase="layers",
        rule="On its own it is not enough.",
    )
    place = on(ann, "f2")
    ann.submit(place, rule)
    ann.submit(
        on(ann, "f1"),
        TERM._replace(action="positive_exemplar", paraphrase="Some Fluid at the base!"),
    )
    clarified, shown = (one.verdict for one in kept(context))
    assert clarified.context is Context.SYNONYM_OR_ABBREVIATION
    assert clarified.edits.clarifications[0].note == "On its own it is not enough."
    assert shown.edits.exemplars[0].evidence == "fluid at the base"
    assert shown.edits.exemplars[0].value == "present"


def test_fields_that_do_not_matter_are_not_read(ann, context):
    """What was typed under another choice and is hidden now does not come along."""
    place = on(ann, "f1")
    form = TERM._replace(judgement="reference_wrong", value="absent")
    ann.submit(place, form)
    (one,) = kept(context)
    assert one.verdict.judgement is Judgement.REFERENCE_WRONG
    assert not one.verdict.edits


def test_what_is_missing_is_said_and_nothing_is_saved(ann, context):
    """The form says what it needs instead of failing later."""
    place = on(ann, "f1")
    shown = ann.submit(place, ReviewForm(judgement="reference_wrong"))
    assert "still missing the right value" in shown["status"]
    assert 'role="alert"' in shown["status"]
    assert shown["place"].pair == place.pair
    assert kept(context) == ()


def test_wording_copied_from_a_holdout_is_refused_beside_the_form(
    ann, context, workspace, tmp_path
):
    """Whoever revises later could not use it, and the clinician would be gone."""
    text = "There is a meniscus of fluid along the left wall."
    add_cohort(workspace, tmp_path, [("h1", text, 1, 0)], name="held", role="holdout")
    place = on(ann, "f1")
    shown = ann.submit(place, TERM._replace(phrase=text))
    assert "Not submitted: " in shown["status"]
    assert "case h1 of cohort held" in shown["status"]
    assert "verdict 1" not in shown["status"]
    assert "meniscus" not in shown["status"]
    assert shown["place"].pair == place.pair
    assert kept(context) == ()


def test_a_reload_in_the_middle_of_a_form_loses_nothing(ann):
    """A new tab has no memory: case and form come from the store."""
    place = on(ann, "f2")
    line = ann.keep(place, TERM._replace(comment="ask Ben"))
    assert "Kept" in line and "UTC" in line
    again = ann.open(Place())
    assert again["place"].pair == ("f2", "pleural_effusion")
    assert again["phrase"] == "fluid at the base"
    assert again["comment"] == "ask Ben"
    assert again["judgement"] == "model_wrong"


def test_a_late_change_of_the_last_form_does_not_reach_the_next_pair(ann, context):
    """What is typed for one case must never stand under another."""
    place = on(ann, "f1")
    after = ann.submit(place, TERM)["place"]
    late = ann.keep(after, TERM, token=place.token)
    assert late == gr.skip()
    twice = events.hand_in(
        ann.visit(Right.JUDGE), after, place.token, *Filters(), *TERM
    )
    assert twice == gr.skip()
    assert len(kept(context)) == 1
    assert ann.open(after)["phrase"] == ""


@pytest.mark.parametrize(
    ("said", "language"), [("mixed", "zh"), ("en", "en"), ("zh", "zh")]
)
def test_the_language_of_a_text_of_many_is_told_by_its_words(
    ann, monkeypatch, said, language
):
    """That of others is what their cohort says."""
    facts = state.ReviewCohort(said, frozenset(), False)
    monkeypatch.setattr(view, "cohort_facts", lambda *_: facts)
    found = view._language(ann.visit(Right.JUDGE), on(ann, "f1"), "双肺纹理清晰。")
    assert found == language


@pytest.mark.parametrize("sent", ["[" * 100_000, "{", None, 7, '{"a": 1}'])
def test_what_a_browser_sends_that_is_no_list_or_text_is_nothing(sent):
    """However deep it is nested."""
    assert events._read_cases(sent) == set()
    assert events._read_text(sent) == ""


@pytest.mark.parametrize("hand_in", [events.hand_in, events.hand_in_together])
def test_a_form_of_a_pair_that_is_not_open_is_refused_in_words(ann, context, hand_in):
    """Never taken for the open pair, and never dropped without a word."""
    shown_to_ann = on(ann, "f1")
    opened = on(ann, "f2")
    for token in (shown_to_ann.token, "", None, ["x"]):
        values = hand_in(ann.visit(Right.JUDGE), opened, token, *Filters(), *TERM)
        shown = dict(zip(SHOWN, values, strict=True))
        assert "that of another pair" in shown["status"]
        assert shown["place"].pair == opened.pair and shown["judgement"] is None
    assert kept(context) == ()


def test_the_finished_form_is_dropped_with_the_submission(ann):
    """Coming back shows what was said, not a form that still waits."""
    place = on(ann, "f1")
    ann.keep(place, TERM)
    ann.submit(place, TERM)
    back = ann.open(on(ann, "f1"))
    assert back["phrase"] == "" and "You</b>: Model wrong" in back["said"]


def test_two_reviewers_on_one_pair_are_both_kept(ann, context):
    """Nobody overwrites anybody; each sees the other's verdict with the team's note."""
    ben = seat(context, BEN)
    theirs = on(ben, "f1")
    ann.submit(on(ann, "f1"), TERM._replace(comment="see the prior"))
    ben.submit(theirs, ReviewForm(judgement="reference_wrong", value="absent"))
    assert {one.verdict.reviewer for one in kept(context)} == {ANN, BEN}
    said = ben.open(on(ben, "f1"))["said"]
    assert f"{ANN}</b>: Model wrong" in said
    assert "Note: see the prior" in said
    assert "disagrees with another reviewer" in said
    assert said.count('data-act="change"') == 1


def test_an_own_verdict_is_changed_by_a_second_one(ann, context):
    """Changing supersedes; both stay in the record."""
    place = on(ann, "f1")
    ann.submit(place, TERM)
    (first,) = kept(context)
    place = on(ann, "f1")
    visit = ann.visit(Right.JUDGE, act="change", id=first.id)
    status, judgement, *_ = events.change(visit, place, *Filters())
    assert judgement == "model_wrong" and "takes the place" in status
    ann.submit(place, TERM._replace(action="exclusion"))
    old, new = kept(context)
    assert old.state is VerdictState.SUPERSEDED
    assert new.verdict.edits.exclusions == ("fluid at the base",)


def test_nobody_changes_what_another_said(ann, context):
    """The id comes from the browser and is looked up, not believed."""
    ann.submit(on(ann, "f1"), TERM)
    (one,) = kept(context)
    ben = seat(context, BEN)
    visit = ben.visit(Right.JUDGE, act="change", id=one.id)
    with pytest.raises(DataError, match="not yours"):
        events.change(visit, on(ben, "f1"), *Filters())


def test_taking_back_needs_a_reason_and_leaves_others_alone(ann, context):
    """A withdrawal is on record with its why."""
    ben = seat(context, BEN)
    ben.submit(on(ben, "f1"), TERM)
    ann.submit(on(ann, "f1"), TERM)
    place = on(ann, "f1")
    with pytest.raises(DataError, match="needs a reason"):
        events.take_back(ann.visit(Right.JUDGE), place, " ", *Filters())
    events.take_back(ann.visit(Right.JUDGE), place, "wrong case", *Filters())
    states = {one.verdict.reviewer: one.state for one in kept(context)}
    assert states == {ANN: VerdictState.WITHDRAWN, BEN: VerdictState.OPEN}


def test_a_reserved_case_is_shown_to_others_and_hinders_nobody(ann, context):
    """Two people see who is at it; a verdict is kept all the same."""
    place = on(ann, "f1")
    mine = ann.act(events.toggle_reserve, place, right=Right.JUDGE)
    assert "Reserved by you until" in mine["status"]
    assert mine["reserve"] == "Give back"
    ben = seat(context, BEN)
    there = on(ben, "f1")
    assert f"reserved by {ANN} until" in ben.open(there)["case"]
    refused = ben.act(events.toggle_reserve, there, right=Right.JUDGE)
    assert f"Reserved by {ANN}" in refused["status"]
    after = ben.submit(there, TERM)
    assert "both answers are kept" in after["status"]


def test_submitting_goes_round_what_others_reserved_and_have_done(ann, context):
    """The next pair is one that waits."""
    ben = seat(context, BEN)
    ben.act(events.toggle_reserve, on(ben, "f2"), right=Right.JUDGE)
    ben.submit(on(ben, "c1", "cardiomegaly"), ReviewForm(judgement="model_wrong"))
    ben.submit(on_right(ben), NOTHING_WRONG)
    shown = ann.submit(on(ann, "f1"), TERM)
    assert "Nothing in this list waits" in shown["status"]
    assert shown["place"].case == "f1"


def test_filters_narrow_the_list_and_open_their_first_pair(ann):
    """Choosing a label is meant to be worked on at once."""
    place = on(ann, "f1")
    only = Filters(label="cardiomegaly", kind="false_positive")
    shown = ann.act(events.narrow, place, only)
    assert shown["place"].pair == ("c1", "cardiomegaly")
    assert "1</b> of 3 pairs" in shown["queue"]
    for filters in (
        Filters(search="SCRIPT"),
        Filters(kind="false_positive"),
        Filters(section="impression"),
        Filters(status="reserved"),
        Filters(reviewer="nobody"),
    ):
        count = 1 if filters.status != "reserved" and not filters.reviewer else 0
        found = ann.act(events.narrow, place, filters)["queue"]
        assert f"<b>{count}</b> of 3 pairs" in found


def keep_list(context, name, *case_ids):
    """Keep cases of the cohort under a name."""
    cohort = read_cohort(context.workspace, "dev")
    sample = ReviewSample(
        name=name,
        cohort="dev",
        cohort_digest=cohort.digest,
        run="r1",
        seed=1,
        by="Dr B",
        case_ids=case_ids,
    )
    keep_review_sample(context.workspace, sample)


def sample_menu(ann):
    """Return the menu of samples as the page opens with it."""
    values = events.refresh(ann.visit(), "tiny", "dev", Place(), *Filters())
    return values[Filters._fields.index("sample")]


def test_cases_of_a_sample_are_listed_alone(ann, context):
    """The menu is there where something was drawn, and comes back as it was chosen."""
    assert sample_menu(ann).visible is False
    keep_list(context, "worth", "c1", "n1")
    assert [value for _, value in sample_menu(ann).choices] == ["", "worth"]
    place = on(ann, "f1")
    shown = ann.act(events.narrow, place, Filters(sample="worth"))
    assert shown["place"].case == "c1"
    assert "1</b> of 3 pairs" in shown["queue"]
    assert sample_menu(ann).value == "worth"
    # What is not there, or not any more, lets all through.
    every = ann.act(events.narrow, place, Filters(sample="gone"))["queue"]
    assert "3</b> of 3 pairs" in every


def test_a_sample_that_was_damaged_is_said_and_hinders_nobody(ann, context):
    """The page opens without the filter that was left on."""
    keep_list(context, "worth", "c1")
    ann.act(events.narrow, on(ann, "f1"), Filters(sample="worth"))
    (path,) = (context.workspace.private / "samples" / "dev").glob("*.json")
    path.write_text("{}", "utf-8")
    context.cache._slots.clear()
    values = events.refresh(ann.visit(), "tiny", "dev", Place(), *Filters())
    assert values[Filters._fields.index("sample")].value == ""
    shown = dict(zip(SHOWN, values[len(Filters._fields) :], strict=True))
    assert "is damaged" in shown["status"]
    with pytest.raises(DataError, match="is damaged"):
        ann.act(events.narrow, on(ann, "f1"), Filters(sample="worth"))


def test_what_was_searched_for_is_not_stored(ann, context):
    """Search words may be clinical text; the other filters come back."""
    place = on(ann, "f1")
    ann.act(events.narrow, place, Filters(search="fluid", label="pleural_effusion"))
    rows = context.store.read("SELECT payload FROM working")
    assert all("fluid" not in payload for (payload,) in rows)
    values = events.refresh(ann.visit(), "tiny", "dev", Place(), *Filters())
    assert values[0] == "" and values[1].value == "pleural_effusion"


def test_next_and_previous_stop_at_the_ends(ann):
    """Nothing wraps round unnoticed while one goes through the list."""
    place, seen = ann.open()["place"], []
    for _ in range(4):
        seen.append(place.pair)
        shown = ann.act(events.turn, place, act="next")
        place = shown["place"]
    assert len(set(seen)) == 4
    assert "last pair of the list" in shown["status"]
    assert ann.act(events.turn, place, act="previous")["place"].pair == seen[2]


def test_a_newer_run_is_said_and_never_slipped_under_a_form(ann, context, version):
    """The verdict names the run that was looked at; the newest opens on request."""
    place = on(ann, "f1")
    run_next(context.workspace, version)
    stayed = ann.open(place)
    assert "There is a newer run" in stayed["remark"]
    assert stayed["place"].run == place.run
    ann.submit(place, TERM)
    assert kept(context)[0].circumstances.prompt == "tiny@v1"
    newest = ann.act(events.renew, stayed["place"], act="newest")
    assert newest["place"].run != place.run
    assert "newer" not in newest["remark"]


def test_a_run_on_a_part_of_the_cohort_is_said(ann, context):
    """Above the page, and with each verdict that was given on it."""
    place = on(ann, "f1")
    part = run_prompt(context.workspace, "tiny@v1", "dev", limit=3)
    shown = ann.open(place._replace(run=part.run_id))
    said = "on the first 3 cases only"
    assert "a run on a part of the cohort" in shown["remark"]
    assert said in shown["remark"] and "newer run" not in shown["remark"]
    ann.submit(shown["place"], TERM)
    again = ann.open(on(ann, "f1"))
    assert said in again["said"] and said not in again["remark"]


def test_an_unfinished_form_brings_back_the_run_it_was_begun_on(ann, context, version):
    """A reload after a new run shows the old one with the form, and says so."""
    place = on(ann, "f1")
    ann.keep(place, TERM)
    run_next(context.workspace, version)
    again = ann.open(Place())
    assert again["place"].run == place.run
    assert again["phrase"] == "fluid at the base"
    assert "There is a newer run" in again["remark"]


def test_what_the_browser_says_is_looked_up(ann):
    """Ids, pages and acts from outside are untrusted."""
    place = ann.open()["place"]
    with pytest.raises(DataError, match="not in the queue"):
        ann.act(events.choose, place, act="open", case="../x", label="<b>")
    page = ann.act(events.choose, place, act="page", start="99999999")
    assert "1</b>" not in page["queue"] or page["place"].pair == place.pair
    assert events.turn(ann.visit(act="drop table"), place, *Filters()) == gr.skip()
    with pytest.raises(DataError, match="nothing is open"):
        ann.act(events.turn, Place(), act="next")


def test_who_may_only_look_gets_no_form(context):
    """An approver sees the cases and is told who judges them."""
    shown = seat(context, "Dr C", UserRole.APPROVER).open()
    assert "data-no-form" in shown["offer"]
    assert "data-no-form" not in seat(context).open()["offer"]
    assert "given by reviewers and editors" in shown["said"]


def test_taking_text_keeps_the_form_with_it(ann):
    """The marked words become the phrase; none marked is said."""
    place = on(ann, "f1")
    visit = ann.visit(Right.JUDGE)
    form = ReviewForm(judgement="model_wrong", action="term")
    token = place.token
    words, line = events.take_text(visit, place, token, *form, "Fluid  at\nthe base")
    assert words == "Fluid at the base" and "Kept" in line
    assert ann.open(place)["phrase"] == "Fluid at the base"
    skipped, line = events.take_text(visit, place, token, *form, "")
    assert skipped == gr.skip() and "Mark some words" in line


def test_words_copied_from_the_case_are_warned_about(ann):
    """An exemplar is said in one's own words."""
    place = on(ann, "f2")
    copied = "Fluid script alert 1 script img src x onerror"
    form = TERM._replace(action="positive_exemplar", phrase="x", paraphrase=copied)
    assert "copied from the case" in ann.keep(place, form)


def test_opening_on_a_label_shows_its_first_pair(ann):
    """The overview's rows lead here."""
    values = events.open_on_label(ann.visit(), "tiny", "dev", "cardiomegaly", Place())
    assert values[1].value == "cardiomegaly"
    assert values[FILTERS].pair == ("c1", "cardiomegaly")


def test_opening_on_a_case_shows_its_pair(ann):
    """A case that fails there is opened; any other name leads to the first pair."""
    for label, case, pair in (
        ("", "f2", ("f2", "pleural_effusion")),
        ("cardiomegaly", "c1", ("c1", "cardiomegaly")),
        ("cardiomegaly", "f2", ("c1", "cardiomegaly")),
    ):
        values = events.open_on_label(ann.visit(), "tiny", "dev", label, Place(), case)
        assert values[FILTERS].pair == pair


def test_a_holdout_stays_closed(context, workspace, tmp_path, ann):
    """The page says why there is nothing to see, and shows no text."""
    add_cohort(workspace, tmp_path, [("h1", "Secret.", 1, 0)], name="h", role="holdout")
    values = events.refresh(ann.visit(), "tiny", "h", Place(), *Filters())
    html = "".join(one for one in values if isinstance(one, str))
    assert "Nothing to review here" in html and "Secret" not in html


def test_a_verdict_without_severity_or_cause_is_kept_without(ann, context):
    """Nothing is recorded that nobody chose."""
    ann.submit(on(ann, "f1"), ReviewForm(judgement="model_wrong"))
    said = kept(context)[0].verdict
    assert (said.severity, said.context) == (None, None)
    shown = ann.open(on(ann, "f1"))["said"]
    assert "major" not in shown and "None" not in shown


def test_the_last_verdict_is_undone_with_its_form(ann, context):
    """A slip costs one key; the record keeps both, with a reason."""
    filled = TERM._replace(severity="minor", comment="why")
    after = ann.submit(on(ann, "f1"), filled)
    assert 'id="review-undo"' in after["status"]
    undone = ann.act(events.undo, after["place"], right=Right.JUDGE)
    assert undone["place"].pair == ("f1", "pleural_effusion")
    assert {name: undone[name] for name in ReviewForm._fields} == filled._asdict()
    assert "Undone" in undone["status"] and "review-undo" not in undone["status"]
    (one,) = kept(context)
    assert one.state is VerdictState.WITHDRAWN
    assert one.withdrawal.actor == ANN and "undone" in one.withdrawal.reason
    assert ann.open(undone["place"])["phrase"] == filled.phrase
    with pytest.raises(DataError, match="no verdict of this tab"):
        ann.act(events.undo, undone["place"], right=Right.JUDGE)


def test_undoing_gives_back_what_the_verdict_had_replaced(ann, context):
    """Precisely one verdict goes: not the one said before on the same pair."""
    ann.submit(on(ann, "f1"), TERM)
    after = ann.submit(on(ann, "f1"), TERM._replace(action="exclusion"))
    ann.act(events.undo, after["place"], right=Right.JUDGE)
    first, second = kept(context)
    assert (first.state, second.state) == (VerdictState.OPEN, VerdictState.WITHDRAWN)


def test_what_no_longer_stands_is_not_undone_and_that_is_said(ann, context):
    """Another tab may have replaced it; another person never can undo it."""
    after = ann.submit(on(ann, "f1"), TERM)
    ann.submit(on(ann, "f1"), ReviewForm(judgement="guideline_ambiguous"))
    shown = ann.act(events.undo, after["place"], right=Right.JUDGE)
    assert "Not undone" in shown["status"] and "superseded" in shown["status"]
    ben = seat(context, BEN)
    mine = ann.submit(on(ann, "f2"), TERM)
    stolen = ben.act(events.undo, mine["place"], right=Right.JUDGE)
    assert "not yours" in stolen["status"]
    assert [one.state for one in kept(context)] == [
        VerdictState.SUPERSEDED,
        VerdictState.OPEN,
        VerdictState.OPEN,
    ]


def test_a_case_is_found_by_its_id(ann):
    """A colleague names it; the same box takes ids and words."""
    place = on(ann, "f1")
    shown = ann.act(events.narrow, place, Filters(search="C1"))
    assert shown["place"].case == "c1"
    assert "1</b> of 3 pairs" in shown["queue"]


def test_what_was_searched_for_is_marked_in_the_text(ann):
    """Apart from evidence, by more than colour, and still as text."""
    place = on(ann, "f2")
    html = ann.act(events.narrow, place, Filters(search="<SCRIPT>"))["case"]
    assert 'class="hit" title="Found by the search">&lt;script&gt;</mark>' in html
    assert "<script>" not in html
    both = ann.act(
        events.narrow, on(ann, "c1", "cardiomegaly"), Filters(search="Cardiomegaly")
    )
    assert 'class="hit own"' in both["case"]


def test_a_link_opens_its_pair_and_says_when_there_is_none(ann, context):
    """What one reviewer sends, another opens, whatever they had open before."""
    shown = ann.open(on(ann, "f2"))
    assert 'href="/?case=f2&amp;label=pleural_effusion&amp;' in shown["case"]
    ben = seat(context, BEN)
    ben.act(events.narrow, on(ben, "f1"), Filters(label="pleural_effusion"))
    follow(ben.visit(), "case=c1&label=cardiomegaly&prompt=tiny&cohort=dev")
    opened = ben.open()
    assert opened["place"].pair == ("c1", "cardiomegaly")
    assert "3</b> of 3 pairs" in opened["queue"]
    follow(ben.visit(), f"case=n1&label={NO_FINDING}")
    assert "not among the failing ones" in ben.open()["status"]
    for nothing in ("", None, "case=c1", "case=%00&label=<b>", "&&=" * 500):
        follow(ben.visit(), nothing)


def test_a_session_says_how_far_it_is(ann, context):
    """Of these filters; a time is told only when there is a pace."""
    assert "0 of 3 judged by you</p>" in ann.open()["queue"]
    shown = ann.submit(on(ann, "f1"), TERM)
    assert "1 of 3 judged by you</p>" in shown["queue"]
    only = ann.act(events.narrow, shown["place"], Filters(label="cardiomegaly"))
    assert "0 of 1 judged by you" in only["queue"]
    assert (
        "judged by you" not in seat(context, "Dr C", UserRole.APPROVER).open()["queue"]
    )


def test_the_likely_correction_is_offered_and_filled_in_but_not_submitted(ann, context):
    """One key fills the form; nothing is recorded until it is handed in."""
    place = on(ann, "c1", "cardiomegaly")
    assert "Suggested: model wrong, right value absent" in ann.open(place)["offer"]
    filled = ann.offered(place, act="suggest")
    assert (filled["judgement"], filled["value"]) == ("model_wrong", "absent")
    assert "not submitted" in filled["status"] and kept(context) == ()
    begun = ann.offered(place, ReviewForm(judgement="reference_wrong"), act="suggest")
    assert begun["judgement"] == gr.skip() and "holds something" in begun["status"]
    ann.submit(place, ReviewForm(judgement="model_wrong"))
    assert "Suggested" not in ann.open(on(ann, "c1", "cardiomegaly"))["offer"]
    looker = seat(context, "Dr C", UserRole.APPROVER)
    assert "Suggested" not in looker.open()["offer"]
    with pytest.raises(PermissionRefused):
        looker.offered(looker.open()["place"], act="suggest")


def test_who_judges_blind_sees_what_others_said_only_after(ann, context):
    """Neither list, names, filters nor panel tell of a pair not yet judged."""
    ben = seat(context, BEN)
    ben.submit(on(ben, "f1"), TERM._replace(comment="look at the base"))
    place = on(ann, "f1")
    assert BEN in ann.open(place)["queue"]
    blind = ann.act(events.choose, place, act="blind")
    assert blind["place"].blind and 'aria-checked="true"' in blind["queue"]
    again = events.refresh(ann.visit(), "tiny", "dev", Place(), *Filters())
    assert BEN not in "".join(str(one) for one in again)
    assert "look at the base" not in "".join(str(one) for one in again)
    for filters in (Filters(reviewer=BEN), Filters(status="reviewed")):
        found = ann.act(events.narrow, blind["place"], filters)["queue"]
        assert "0</b> of 3 pairs" in found
    ann.submit(on(ann, "f1"), ReviewForm(judgement="model_wrong"))
    after = ann.open(on(ann, "f1"))
    assert BEN in after["queue"] and "look at the base" in after["said"]
    assert not ben.open()["place"].blind


@pytest.fixture
def like(workspace, tmp_path):
    """Serve a queue in which one phrase misled the model three times."""
    rows = [
        ("a1", "Small effusion.", 0, 0),
        ("a2", "There is an\nEFFUSION.", 0, 0),
        ("a3", "Effusion on the left.", 0, 0),
        ("b1", "Cardiomegaly.", 0, 0),
    ]
    add_cohort(workspace, tmp_path, rows)
    add_prompt(workspace, 1, "effusion", "cardiomegaly")
    run_prompt(workspace, "tiny@v1", "dev")
    with context_of(workspace) as opened:
        yield seat(opened)


def test_one_verdict_is_given_on_all_pairs_with_the_same_phrase(like):
    """Those that are ticked, in one verdict that is undone as one."""
    place = on(like, "a1")
    shown = like.open(place)
    assert "2 more pairs with the same phrase and label" in shown["alike"]
    listed = events.list_alike(like.visit(Right.JUDGE), place)
    assert 'value="a2"' in listed and 'value="a3"' in listed and "b1" not in listed
    form = ReviewForm(judgement="model_wrong", value="absent")
    after = like.submit_together(place, form, ["a2", "a3"])
    (one,) = kept(like.context)
    assert one.verdict.case_ids == ("a1", "a2", "a3")
    assert "and 2 more cases" in after["status"]
    undone = like.act(events.undo, after["place"], right=Right.JUDGE)
    assert "Undone on 3 cases" in undone["status"]
    assert like.open(undone["place"])["alike"] == shown["alike"]


def test_taking_back_says_of_how_many_cases(like):
    """A verdict on one case needs no number."""
    place, form = on(like, "a1"), ReviewForm(judgement="model_wrong", value="absent")
    says = []
    for cases in (["a2", "a3"], ["a2"], []):
        like.submit_together(place, form, cases)
        visit = like.visit(Right.JUDGE)
        _, *shown = events.take_back(visit, place, "wrong", *Filters())
        says.append(str(dict(zip(SHOWN, shown, strict=False))["status"]))
    end = "; it stays in the record with your reason."
    assert f"Withdrawn on all 3 cases it was given for{end}" in says[0]
    assert f"Withdrawn on all 2 cases it was given for{end}" in says[1]
    assert f"Withdrawn{end}" in says[2]


def test_a_verdict_on_several_pairs_takes_only_pairs_that_are_alike(like):
    """Ids come from the browser, and the form is asked for as always."""
    place, form = on(like, "a1"), ReviewForm(judgement="model_wrong")
    with pytest.raises(DataError, match="not like the open one"):
        like.submit_together(place, form, ["a2", "b1"])
    refused = like.submit_together(place, ReviewForm(), ["a2"])
    assert "still missing what is wrong" in refused["status"]
    assert kept(like.context) == ()
    like.submit_together(place, form, [])
    assert kept(like.context)[0].verdict.case_ids == ("a1",)


@pytest.mark.slow
def test_no_finding_offers_the_labels_it_follows_from(demo):
    """And the server still refuses, in words, what cannot be said of it."""
    with context_of(demo) as context:
        ann = seat(context)
        values = events.open_on_label(
            ann.visit(), "extractor", "demo_dev", NO_FINDING, Place()
        )
        place = values[FILTERS]
        offered = events.refresh(
            ann.visit(), "extractor", "demo_dev", place, *Filters()
        )[FILTERS + ReviewOutputs._fields.index("offer")]
        assert "data-derived" in offered and 'id="review-cause-label"' in offered
        label = re.search(r'data-label="([^"]*)"', offered)[1]
        opened = ann.offered(place, act="open", case=place.case, label=label)
        assert opened["place"].pair == (place.case, label)
        refused = ann.submit(place, ReviewForm(judgement="model_wrong"))
        assert "only its reference or the text can be wrong" in refused["status"]
        ann.submit(place, ReviewForm(judgement="source_text_defect"))
        (one,) = read_kept(context.store, context.workspace, "demo_dev")
        assert one.verdict.judgement is Judgement.SOURCE_TEXT_DEFECT


def test_a_right_answer_says_that_it_is_one_and_how_it_was_drawn(ann):
    """One of the seven right answers is looked at beside the three errors."""
    place = on_right(ann)
    shown = ann.open(place)
    assert "<b>3</b> of 3 pairs, and 1 of 1 right answer</p>" in shown["queue"]
    assert "0 of 3 judged by you" in shown["queue"]
    assert shown["queue"].count("right, drawn at random") == 1
    assert "drawn at random: 1 of the 7 answers that agree" in shown["queue"]
    assert "drawn at random among 7 right answers (1 for every 20" in shown["case"]
    assert "data-right" in shown["offer"]
    assert shown["alike"] == ""
    found = ann.act(events.narrow, place, Filters(kind="right"))["queue"]
    assert "<b>0</b> of 3 pairs, and 1 of 1 right answer" in found
    for kind in ("false_positive", "false_negative"):
        found = ann.act(events.narrow, place, Filters(kind=kind))["queue"]
        assert "right, drawn at random" not in found


def test_of_a_right_answer_it_is_suggested_and_kept_that_nothing_is_wrong(ann, context):
    """One key and one press; it counts as no judged error."""
    place = on_right(ann)
    assert "Suggested: nothing wrong" in ann.open(place)["offer"]
    assert (
        ReviewForm(*list(ann.offered(place).values())[-len(ReviewForm()) :])
        == NOTHING_WRONG
    )
    shown = ann.submit(place, NOTHING_WRONG._replace(value="present", anchor=True))
    (one,) = kept(context)
    assert one.verdict.judgement is Judgement.ANSWER_RIGHT
    assert one.pairs == (place.pair,) and one.verdict.targets == ()
    assert not one.verdict.anchor and one.verdict.correct_value is None
    assert "0 of 3 judged by you" in shown["queue"]
    assert "Nothing wrong" in ann.open(place)["said"]


@pytest.mark.parametrize(
    "form",
    [
        ReviewForm(judgement="reference_wrong", value="uncertain"),
        ReviewForm(judgement="model_wrong", action="term", phrase="a wording"),
        ReviewForm(judgement="guideline_ambiguous"),
        ReviewForm(judgement="source_text_defect"),
    ],
)
def test_something_may_be_wrong_with_a_right_answer(ann, context, form):
    """An error that the reference shares is said as any other."""
    place = on_right(ann)
    ann.submit(place, form)
    (one,) = kept(context)
    assert (one.verdict.judgement, one.pairs) == (form.judgement, (place.pair,))


def test_an_error_cannot_be_called_right(ann, context):
    """Either the model or the reference is wrong there, or the text is."""
    shown = ann.submit(on(ann, "f1"), NOTHING_WRONG)
    assert "something is wrong. Choose what" in shown["status"]
    assert kept(context) == ()
    assert "data-right" not in ann.open(on(ann, "f1"))["offer"]


def test_what_was_taken_back_is_no_longer_said(ann, context):
    """Blind or not, a verdict that was withdrawn does not count as one's own."""
    mine, other = (SimpleNamespace(reviewer=name) for name in (ann.user.name, "Dr Z"))
    kept = [
        SimpleNamespace(verdict=who, withdrawal=withdrawal)
        for who in (mine, other)
        for withdrawal in (None, "a typing error")
    ]
    assert state.said_by(ann, SimpleNamespace(kept=kept)) == kept[:1]


def test_a_pair_says_which_of_the_list_it_is(ann):
    """Counted from one, as people count."""
    shown, seen = ann.open(), []
    for _ in range(3):
        seen += re.findall(r'role="status">(\d+) of (\d+)<', shown["case"])
        shown = ann.act(events.turn, shown["place"], act="next")
    assert seen == [("1", "4"), ("2", "4"), ("3", "4")]


@pytest.mark.parametrize("opening", ["page", "label"])
def test_another_cohort_opens_on_its_own_run(ann, context, tmp_path, opening):
    """The tab was on a run of the first one; no verdict is given there unseen."""
    before = on(ann, "f1")
    rows = [("o1", "An effusion.", 0, 0)]
    add_cohort(context.workspace, tmp_path, rows, name="other")
    run_prompt(context.workspace, "tiny@v1", "other")
    assert before.run
    if opening == "page":
        values = events.refresh(ann.visit(), "tiny", "other", before, *Filters())
    else:
        values = events.open_on_label(
            ann.visit(), "tiny", "other", "pleural_effusion", before
        )
    place = values[FILTERS]
    assert (place.cohort, place.case) == ("other", "o1")
    assert place.run not in ("", before.run)


def traced(ann, place, **data):
    """Return the trace panel after a press on its button."""
    return events.turn_trace(ann.visit(**data), place)


def test_a_trace_opens_on_the_open_case_and_folds_up(ann):
    """It is asked for, and gone with the next pair."""
    place = on(ann, "f1")
    closed = ann.act(events.choose, place, case="f1", label="pleural_effusion")
    assert 'data-act="open"' in closed["trace"]
    opened = traced(ann, place, act="open")
    assert "as it was sent" in opened and "Fluid at the base." in opened
    assert "No wording of the guide is in the text: absent." in opened
    assert 'data-act="close"' in opened
    folded = traced(ann, place, act="close")
    assert folded == closed["trace"] and "Fluid" not in folded


def test_the_first_trace_finds_its_prompt_compiled(ann, monkeypatch):
    """The start of the workbench does it for the newest run."""
    warm(ann.context)
    monkeypatch.setattr("loop.engines.rules.engine.build_vocabulary", None)
    assert "why" in traced(ann, on(ann, "f1"), act="open").casefold()


def test_a_trace_of_hostile_text_is_inert(ann):
    """HTML is text, and characters that act are spelled out."""
    shown = traced(ann, on(ann, "f2"), act="open")
    assert "&lt;script&gt;" in shown and "<script" not in shown and "<img" not in shown
    assert "\x1b" not in shown and "\u202e" not in shown and "{{ 1/0 }}" in shown


def test_a_trace_needs_an_open_case_and_no_holdout(ann, workspace):
    """A request that was made by hand gets no more than the page shows."""
    with pytest.raises(DataError, match="no case is open"):
        traced(ann, Place(), act="open")
    place = on(ann, "f1")
    path = workspace.cohorts / "dev" / "cohort.yaml"
    path.write_text(path.read_text().replace("role: dev", "role: holdout"))
    with pytest.raises(DataError):
        traced(ann, place, act="open")


def phrased(ann, place, words="", form=None, token=None, **data):
    """Return what an event of the panel about marked words shows, by name."""
    visit = ann.visit(Right.JUDGE, **{"act": "open", **data})
    token = place.token if token is None else token
    values = events.turn_phrase(visit, place, token, *(form or ReviewForm()), words)
    names = ("phrases", "status", *ReviewForm._fields)
    return dict(zip(names, values, strict=True))


def test_marked_words_are_told_what_they_could_become(ann, context):
    """Each part with how many cases it changes, which way, and their ids."""
    place = on(ann, "f1")
    assert "What marked words could become" in ann.open(place)["phrases"]
    html = phrased(ann, place, "Fluid\n at")["phrases"]
    assert "<q>Fluid at</q> in the guide of Pleural Effusion" in html
    assert "The words stand in 1 of the 5 cases of dev." in html
    assert "1 absent &rarr; present: " in html
    assert '<span class="case-id">f1</span> (right)' in html
    assert [len(kept(context)), context.store.count_completions()] == [0, 5]
    closed = phrased(ann, place, "Fluid", act="close")["phrases"]
    assert "<table" not in closed and "review-phrase-turn" in closed


def test_a_part_that_is_chosen_fills_the_form(ann, context):
    """And is kept as the form is; nothing is handed in."""
    place = on(ann, "f1")
    begun = ReviewForm(comment="seen", severity="minor", value="present")
    wanted = {"act": "fill", "phrase": '"Fluid \\u202e at"'}
    shown = phrased(ann, place, form=begun, part="term", value="", **wanted)
    filled = begun._replace(
        judgement="model_wrong", action="term", phrase="Fluid \u202e at"
    )
    assert {name: shown[name] for name in ReviewForm._fields} == filled._asdict()
    assert "Filled in, not submitted" in shown["status"]
    assert ann.open(place)["phrase"] == "Fluid \u202e at"
    for part, value, fields in (
        ("exclusion", "", {"action": "exclusion", "value": "present"}),
        ("clarification", "absent", {"action": "clarification", "value": "absent"}),
        ("exemplar", "present", {"action": "positive_exemplar"}),
        ("exemplar", "absent", {"action": "negative_exemplar", "value": "present"}),
        ("anything", "absent", {"action": "none"}),
        ("clarification", "maybe", {"action": "clarification", "value": None}),
    ):
        unclear = begun._replace(judgement="guideline_ambiguous")
        shown = phrased(ann, place, form=unclear, part=part, value=value, **wanted)
        assert {name: shown[name] for name in fields} == fields
        assert shown["judgement"] == "guideline_ambiguous"
    assert not kept(context)


def test_without_marked_words_it_is_said_what_to_do(ann):
    """A key that does nothing is taken for a broken one."""
    place = on(ann, "f1")
    shown = phrased(ann, place)
    assert "Mark words in the text first" in shown["phrases"]
    assert shown["phrase"] == gr.skip()
    with pytest.raises(DataError, match="holds no word"):
        phrased(ann, place, "...")


def test_words_of_another_pair_change_nothing(ann):
    """A late press belongs to the pair that it was meant for."""
    place = on(ann, "f1")
    values = phrased(ann, place, "Fluid", token="0:cardiomegaly:f1")
    assert set(map(str, values.values())) == {str(gr.skip())}
    with pytest.raises(DataError, match="does not know this tab"):
        phrased(ann, Place(), "Fluid")


def test_a_phrase_whose_changes_nobody_can_judge_makes_nothing_right_or_wrong(ann):
    """A zero would say that it is known."""
    change = TriedChange("f1", "edema", "absent", "present", "present")
    unsure = change._replace(case_id="f2", expected="")
    part = TriedPart(part=GuidePart.TERM, value=None, changes=(unsure,))
    found = PhraseTryout(
        prompt="p@v1", cohort="dev", cases=9, engine="rules", label="edema",
        phrase="x", holding=2, estimated=False, run="",
        parts=(part, replace(part, changes=(unsure, change))),
    )  # fmt: skip
    html = render_phrase(found, turn="t", name="Edema")
    rows = re.findall(r'(<td class="num">.*?)</tr>', html)
    cells = [re.sub(r"(?:<[^>]*>)+", "|", row).strip("|") for row in rows]
    assert cells == ["1|not known|not known|0", "2|1 |1 not known|0|0"]


def test_a_hostile_phrase_is_shown_as_text(ann):
    """It comes from a browser, or from the text of a case."""
    words = "<script>alert(1)</script> {{ 1/0 }} \u202e' onclick='x"
    html = phrased(ann, on(ann, "f2"), words)["phrases"]
    assert "<script" not in html and "\u202e" not in html
    assert "onclick='" not in html
    for odd in (None, "[" * 100_000, "5", '{"a": 1}'):
        shown = phrased(ann, on(ann, "f2"), act="fill", part="term", phrase=odd)
        assert shown["phrase"] == ""


def test_who_cannot_judge_is_not_asked_for_words(ann, context, monkeypatch):
    """A label that follows from the others has no guide; a form is for who judges."""
    place = on(ann, "f1")
    assert ann.open(place)["phrases"]
    approver = seat(context, "Dr V", UserRole.APPROVER)
    assert approver.open(place)["case"] and approver.open(place)["phrases"] == ""
    monkeypatch.setattr(view, "guides_of", lambda *_: {})
    assert ann.open(place)["phrases"] == ""


def test_the_answers_of_another_engine_are_estimated(ann, context, monkeypatch):
    """By the run that the queue is of; the server is not asked."""
    place = on(ann, "f1")
    run = events.find_run(context.workspace, place.run)
    other = replace(run, spec=replace(run.spec, engine="openai:a@http://127.0.0.1:1"))
    monkeypatch.setattr(events, "find_run", lambda *_: other)
    html = phrased(ann, place, "Fluid at")["phrases"]
    assert "An estimate by wording" in html and "was not asked" in html
    assert "1 absent &rarr; present: " in html


def tried(ann, place, form, token=None, **data):
    """Return the panel after trying a form, and the clock."""
    visit = ann.visit(Right.JUDGE, **{"act": "open", **data})
    return events.turn_try(visit, place, token or place.token, *form)


def test_a_form_is_tried_before_it_is_submitted(ann, context):
    """Both answers about the case, why, and what the wording does to pairs like it."""
    place = on(ann, "f1")
    assert "Try the form on this case" in ann.open(place)["tried"]
    html, heard, _ = tried(ann, place, TERM)
    assert heard == ""
    assert "Right in 1 of 1 pairs of this verdict and its like" in html
    assert "<dt>tiny@v1</dt><dd><b>absent</b>" in html
    assert "<dt>tiny@draft:unsaved</dt><dd><b>present</b>" in html
    assert "term <code>fluid at the base</code>" in html
    html, *_ = tried(ann, place, TERM._replace(phrase="ascites"))
    assert "Right in 0 of 1 pairs" in html
    html, *_ = tried(ann, place, TERM, act="case", case="c1")
    assert "Case c1" in html
    html, *_ = tried(ann, place, TERM, act="close")
    assert "<table" not in html
    assert not kept(context) and context.jobs.progress_of("try") is None


def test_a_form_that_cannot_be_tried_says_what_it_lacks(ann):
    """As submitting would."""
    place = on(ann, "f1")
    for form, why in (
        (ReviewForm(), "what is wrong"),
        (TERM._replace(phrase=""), "the phrase"),
        (TERM._replace(action="none"), "a suggested change"),
        (TERM._replace(judgement="reference_wrong"), "the right value"),
    ):
        assert f"Still missing: {why}" in tried(ann, place, form)[0]
    with pytest.raises(DataError, match="has no case"):
        tried(ann, place, TERM, act="case", case="nothing")
    assert tried(ann, place, TERM, token="0:x:y") == [gr.skip()] * 3


@pytest.fixture
def silent(context, monkeypatch):
    """Make the queue's run one of a server that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        find = events.find_run

        def of_server(*where):
            run = find(*where)
            return replace(run, spec=replace(run.spec, engine=f"openai:x@{host}"))

        monkeypatch.setattr(events, "find_run", of_server)
        yield listening


def test_a_try_of_a_server_that_never_answers_is_stopped(ann, context, silent):
    """By the person, or by going on to another pair; nobody waits for it."""
    place, see = on(ann, "f1"), ann.visit(Right.JUDGE)
    key = try_key(see, place.token)
    html, _, clock = tried(ann, place, TERM)
    assert "Asking openai:x@http" in html and 'data-act="stop"' in html
    assert clock.active
    with silent.accept()[0]:
        assert events.poll_try(see, place) == [gr.skip(), "", gr.skip()]
        html, _, clock = tried(ann, place, TERM, act="stop")
        assert "Stopped." in html and not clock.active
        until(lambda: (now := context.jobs.progress_of(key)) is None or now.finished)
    tried(ann, place, TERM)
    with silent.accept()[0]:
        *_, clock = events.poll_try(see, on(ann, "f2"))
        assert not clock.active
        until(lambda: context.jobs.progress_of(key).finished)
    assert context.jobs.progress_of(key).error == "Stopped."


class Talker:
    """A model that talks instead of answering."""

    def identity(self):
        """Return a name."""
        return {"engine": "talker"}

    def complete(self, prompts):
        """Yield markup to each prompt."""
        for index, _ in enumerate(prompts):
            yield index, Completion("<script>Well</script>", "stop")


def refuse(talker, prompts):
    """Fail as a server that is gone."""
    raise EngineError("the server is gone")


def test_a_server_that_is_asked_answers_side_by_side(ann, context, monkeypatch):
    """The form's answer appears when it is there; an unreadable one says why."""
    find = events.find_run

    def of_other(*where):
        run = find(*where)
        return replace(run, spec=replace(run.spec, engine="talker"))

    monkeypatch.setattr(events, "find_run", of_other)
    monkeypatch.setitem(base._FACTORIES, "talker", lambda *_: Talker())
    place, see = on(ann, "f1"), ann.visit(Right.JUDGE)
    tried(ann, place, TERM)
    key = try_key(see, place.token)
    until(lambda: context.jobs.progress_of(key).finished)
    html, _, clock = events.poll_try(see, place)
    assert not clock.active
    assert "tiny@draft:unsaved on case f1" in html
    assert html.count("<b>unparsed</b>") == 2 and "no wording" not in html
    assert "<script" not in html
    assert context.jobs.progress_of(key) is None
    monkeypatch.setattr(Talker, "complete", refuse)
    tried(ann, place, TERM._replace(phrase="fluid"))
    until(lambda: context.jobs.progress_of(key).finished)
    assert "the server is gone" in events.poll_try(see, place)[0]


def queued(**changes):
    """Return a failing pair, answered absent, that nothing makes worth a look."""
    failure = Failure(
        *("c1", "edema", FailureKind.FALSE_NEGATIVE, Value.ABSENT, Mark.PRESENT),
        (Span(100, 105),),
    )
    told = {"failure": failure, "place": 2, "reasons": Reasons(), **changes}
    return QueueItem(**told)


def answered(prompt, value, draw=0):
    """Return what another run said."""
    return OtherAnswer("run-1", prompt, draw, value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, []),
        ({"reasons": Reasons(rare=0.1)}, ["rare"]),
        ({"reasons": Reasons(gate="fails by 1")}, ["fails by 1"]),
        ({"reasons": Reasons(fails=2, draws=3)}, ["fails in 2 of 3"]),
        ({"reasons": Reasons(fails=3, draws=3)}, []),
        ({"others": (answered("tiny@v2", Value.ABSENT),)}, []),
        ({"others": (answered("tiny@v2", None),)}, ["versions disagree"]),
        # A repeat is no version.
        ({"others": (answered("tiny@v1", Value.PRESENT, 1),)}, []),
        ({"votes": ((Value.PRESENT, 3),)}, []),
        ({"votes": ((Value.PRESENT, 2), (Value.ABSENT, 1))}, ["readers disagree"]),
        ({"audit": True}, ["audit"]),
        (
            {
                "audit": True,
                "votes": ((Value.PRESENT, 2), (Value.ABSENT, 1)),
                "others": (
                    answered("tiny@v2", Value.ABSENT),
                    answered("tiny@v3", Value.PRESENT),
                ),
                "reasons": Reasons(rare=0.5, gate="passes by 3", fails=1, draws=2),
            },
            [
                *("rare", "passes by 3", "fails in 1 of 2", "versions disagree"),
                *("readers disagree", "audit"),
            ],
        ),
    ],
)
def test_why_a_pair_is_worth_a_look_in_a_word_or_two(changes, words):
    """One for each reason, in their order."""
    assert view.shorten(queued(**changes)) == words


def test_other_runs_are_named_by_version_and_repeat():
    """With what they said, or that they said nothing."""
    others = (
        answered("tiny@v3", Value.PRESENT),
        answered("tiny@v3", None, 2),
        answered("tiny@v1", Value.UNCERTAIN),
    )
    assert view._versions(queued(others=others)) == [
        ("v3", "present"),
        ("v3, repeat 2", "no answer"),
        ("v1", "uncertain"),
    ]


@pytest.mark.parametrize(
    ("start", "place", "shown"),
    [
        (0, 1, 0),
        (39, 1, 0),
        (40, 1, 40),
        (79, 1, 40),
        (85, 1, 80),
        (5000, 1, 80),
        (-5, 1, 0),
        (state.FOLLOW, 1, 0),
        (state.FOLLOW, 40, 0),
        (state.FOLLOW, 41, 40),
        (state.FOLLOW, 86, 80),
        # A pair that the filters leave out is followed nowhere.
        (state.FOLLOW, 200, 0),
    ],
)
def test_the_list_shows_whole_pages(start, place, shown):
    """The one that was turned to, or that with the open pair; never past the last."""
    items = [queued(place=number) for number in range(1, 87)]
    found = SimpleNamespace(items=items, item=queued(place=place))
    assert view._start(Place(start=start), found) == shown
    nothing = SimpleNamespace(items=[], item=None)
    assert view._start(Place(start=start), nothing) == 0


def test_the_place_of_a_pair_is_counted_from_one():
    """Among those that the filters let through."""
    items = [queued(place=number) for number in range(2, 1300)]
    found = SimpleNamespace(items=items)
    assert view._position(found, queued(place=2)) == "1 of 1,298"
    assert view._position(found, queued(place=1299)) == "1,298 of 1,298"
    left_out = "not among the pairs of these filters"
    assert view._position(found, queued(place=1)) == left_out


@pytest.mark.parametrize(
    ("begins", "before", "after"), [(100, 60, 60), (10, 10, 60), (190, 60, 5)]
)
def test_a_phrase_is_shown_with_what_stands_around_it(begins, before, after):
    """Sixty characters on each side, where there are so many."""
    text = "b" * begins + "fluid" + "a" * (195 - begins)
    found = SimpleNamespace(
        queue=SimpleNamespace(texts=SimpleNamespace(read={"c1": text}.get))
    )
    failure = queued().failure._replace(spans=(Span(begins, begins + 5),))
    assert view._occurrence(found, queued(failure=failure)) == view.Occurrence(
        "c1", "b" * before, "fluid", "a" * after
    )


def test_every_change_that_a_verdict_asks_for_is_told_in_words():
    """And how many more there are than the form can make."""
    edits = Edits(
        terms=("t1", "t2"),
        exclusions=("x",),
        clarifications=(
            Clarification(phrase="p", value=Value.ABSENT, note="Always."),
            Clarification(phrase="q", value=Value.PRESENT),
        ),
        exemplars=(
            Exemplar(text="An a.", value=Value.PRESENT, evidence="a"),
            Exemplar(text="No a.", value=Value.ABSENT, evidence="no a"),
            Exemplar(text="An a?", value=Value.UNCERTAIN, evidence="a?"),
        ),
        general_rules=("Read all.",),
        implies=("mass",),
        remove_terms=("old",),
    )
    assert view._asks(edits) == (
        "Term: t1",
        "Term: t2",
        "Exclusion: x",
        "Clarification: p means absent. Always.",
        "Clarification: q means present.",
        "Positive exemplar: An a. (a)",
        "Negative exemplar: No a. (no a)",
        "Exemplar: An a? (a?)",
        "General rule: Read all.",
        "2 more changes",
    )
    assert view._asks(Edits(terms=("t",))) == ("Term: t",)
    assert view._asks(Edits()) == ()
