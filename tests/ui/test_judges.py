"""The page Judges: rated blind first, then a judge's errors held against that."""

import re
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest

from loop.core.errors import ConflictError, DataError
from loop.core.paths import WorkspacePaths
from loop.core.people.users import Right, UserRole
from loop.core.records import Item, Span
from loop.labels.expert_ratings import PointScale, read_ratings_of
from loop.review.status import VerdictState, read_kept
from loop.review.verdict import Judgement
from loop.ui.pages.judges import events, view
from loop.ui.pages.judges.state import Desk
from loop.ui.pages.readers import label_panel
from loop.ui.pages.review import events as review_events
from tests.judge.scenes import call, rate, tell
from tests.ui.visits import opened, visit

PROMPT, COHORT = "mine", "rp"
GOOD = {"points": "3", "none": "yes"}
SIDE = {
    "points": "2",
    "marked.0.category": "location",
    "marked.0.weight": "significant",
    "marked.0.words": "zebra side",
    "marked.4.category": "",
    "marked.4.weight": "",
    "marked.4.words": "",
}


@pytest.fixture(scope="module")
def judged(first_version, tmp_path_factory):
    """Make a workspace with a judge's run on rated pairs, once."""
    folder = tmp_path_factory.mktemp("judged")
    workspace = WorkspacePaths(folder / "ws")
    shutil.copytree(first_version.root, workspace.root)
    rate(workspace, folder)
    assert call(workspace, "run", "mine", "--cohort", "rp").exit_code == 0
    return workspace


@pytest.fixture
def context(judged, tmp_path):
    """Give the context of a copy of that workspace."""
    root = shutil.copytree(judged.root, tmp_path / "ws")
    with opened(WorkspacePaths(root)) as found:
        yield found


@pytest.mark.parametrize(
    ("low", "high", "offered"),
    [(1, 5, 5), (0, 10, 11), (0, 11, 0), (0, 2.5, 0), (0.5, 3, 0)],
)
def test_points_of_a_short_scale_are_chosen_and_others_typed(
    context, low, high, offered
):
    """A scale of at most eleven whole points."""
    desk = events.open_desk(visit(context, right=Right.JUDGE), PROMPT, COHORT)
    task = replace(desk.task, scale=PointScale(low, high))
    assert len(view._points(replace(desk, task=task))) == offered


def come(context, *roles, right=Right.JUDGE, case="p1", **data):
    """Return a visit with an act about one pair."""
    task = events.open_desk(visit(context, right=Right.JUDGE), PROMPT, COHORT).task
    run = context.latest_run(PROMPT, COHORT).id
    sent = {"case": case, "cohort": task.key, "run": run, **data}
    return visit(context, *roles, right=right, **sent)


def act(context, handler, *more, **data):
    """Do something about a pair, and return what is shown."""
    return handler(come(context, **data), PROMPT, COHORT, *more)


def test_a_pair_is_shown_blind_and_then_beside_the_judge(context):
    """Nothing of the judge is in the page before one's own rating."""
    first = events.refresh(visit(context, right=Right.JUDGE), PROMPT, COHORT)
    assert "8 of 8 wait" in first.pairs
    page = act(context, events.move, act="open").sheet
    assert "Small left pleural effusion." in page
    assert (
        "<mark" not in page
        and "mine@v1" not in page
        and "from the readers" not in (first.pairs)
    )
    shown = act(context, events.rate, fields=SIDE)
    assert "Your own rating, given blind" in shown.sheet
    assert "zebra side" in shown.sheet
    assert "Wrong location" in shown.sheet and "<sup>1</sup>" in shown.sheet
    assert "is kept" in shown.status
    with pytest.raises(ConflictError, match="would not be blind"):
        act(context, events.rate, fields=GOOD)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"none": "yes"}, "points are missing"),
        ({"points": "3"}, "no error is marked"),
        ({**SIDE, "none": "yes"}, "Take one away"),
        ({"points": "3", "marked.0.words": "x"}, "an error has no category"),
        ({**SIDE, "marked.0.category": "side"}, "category 'side' is none of"),
        ({**GOOD, "points": "9"}, "off the scale 1-5"),
        ({**GOOD, "points": "x" * 5000}, "more than 4,000 characters"),
        ("points=3", "the page sent no form"),
        ({f"marked.{n}.words": "" for n in range(601)}, "the page sent no form"),
    ],
)
def test_a_rating_that_says_too_little_is_refused(context, fields, message):
    """With what is missing; nothing is kept, and nothing is shown."""
    with pytest.raises(DataError, match=message):
        act(context, events.rate, fields=fields)
    desk = events.open_desk(visit(context, right=Right.JUDGE), PROMPT, COHORT)
    assert not desk.ratings and not desk.shown


def test_verdicts_are_kept_together_and_the_next_pair_opens(context):
    """One a category: wrong ones with their counts."""
    act(context, events.rate, fields=SIDE)
    said = {
        "listed.0.right": "no_error",
        "missed.0.category": "severity",
        "missed.0.weight": "insignificant",
        "missed.0.words": "grade",
        "rule.category": "location",
        "rule.phrase": "right for left",
        "rule.value": "no_error",
        "judgement": "guideline_ambiguous",
        "comment": "why",
        "anchor": "yes",
    }
    done = act(context, events.judge, fields=said)
    assert "Kept on p1: 2 of 2 categories are wrong" in done.status
    assert 'data-case="p1" data-cohort' not in done.sheet
    kept = {
        one.verdict.label: one.verdict
        for one in read_kept(context.store, context.workspace, COHORT)
    }
    assert kept["location"].correct_counts == (0, 0)
    assert kept["severity"].correct_counts == (0, 1)
    assert kept["location"].edits.clarifications[0].phrase == "right for left"
    assert {one.judgement for one in kept.values()} == {Judgement.GUIDELINE_AMBIGUOUS}
    again = act(context, events.move, act="open").sheet
    assert "correct counts: 0 significant, 0 insignificant" in again


def test_what_was_said_before_is_taken_over_or_taken_back(context):
    """A category that is called right now stands no longer as wrong."""
    act(context, events.reveal)
    act(context, events.judge, fields={"listed.0.right": "severity"})
    act(context, events.judge, fields={"listed.0.right": "ok"})
    kept = read_kept(context.store, context.workspace, COHORT)
    states = [
        (one.verdict.label, one.verdict.judgement.value, one.state) for one in kept
    ]
    assert ("location", "model_wrong", VerdictState.SUPERSEDED) in states
    assert ("severity", "answer_right", VerdictState.OPEN) in states
    newest = next(one for one in kept if one.state is VerdictState.OPEN)
    shown = act(context, events.take_back, verdict=newest.id)
    assert "is withdrawn" in shown.status
    with pytest.raises(DataError, match="no verdict of yours"):
        act(context, events.take_back, verdict=newest.id)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rule.phrase": "right for left"}, "a clarification needs a category"),
        (
            {
                "rule.category": "side",
                "rule.phrase": "right for left",
                "rule.value": "no_error",
            },
            "a category is none that the judge is asked for",
        ),
        ({"missed.0.words": "x"}, "a missed error has no category"),
        ({"listed.0.right": "nonsense"}, "a category is none that the judge"),
        ({"listed.0.right": ""}, "error 1 of the judge has no verdict of yours"),
        (
            {
                "missed.0.category": "wording",
                "missed.0.weight": "significant",
            },
            "a category is none that the judge is asked for",
        ),
        (
            {
                "missed.0.category": "severity",
                "missed.0.weight": "significant",
                "missed.0.words": "x" * 501,
            },
            "may have 500 characters",
        ),
        ({"rule.category": "location"}, "a clarification needs a category"),
    ],
)
def test_verdicts_that_cannot_be_meant_are_refused(context, fields, message):
    """All of them, with the reason."""
    act(context, events.reveal)
    with pytest.raises(DataError, match=message):
        act(context, events.judge, fields={"listed.0.right": "ok"} | fields)
    assert read_kept(context.store, context.workspace, COHORT) == ()


def test_wording_of_a_holdout_is_refused_before_anything_is_kept(context, tmp_path):
    """The message has the category and no verdict's number, since none was kept."""
    told = "Large zebra striped effusion in the left costophrenic recess."
    path = tmp_path / "held.csv"
    path.write_text(f"id,reference,candidate\nh0,{told},Clear.\n")
    options = ("--role", "holdout", "--source", "made up", "--licence", "none")
    done = call(context.workspace, "cohort", "import", path, "--name", "held", *options)
    assert done.exit_code == 0, done.output
    act(context, events.reveal)
    rule = {
        "listed.0.right": "no_error",
        "rule.category": "location",
        "rule.phrase": told,
        "rule.value": "no_error",
    }
    with pytest.raises(DataError) as refused:
        act(context, events.judge, fields=rule)
    assert str(refused.value).startswith("not handed in: location")
    assert read_kept(context.store, context.workspace, COHORT) == ()


def test_one_goes_through_the_pairs_and_stops_at_both_ends(context):
    """Previous and next stop at both ends; "next waiting" goes on from the top."""
    judge = visit(context, right=Right.JUDGE)
    rows = events.list_pairs(judge, events.open_desk(judge, PROMPT, COHORT))
    first, second, third, *_, before, last = [row.case_id for row in rows]
    act(context, events.reveal, case=second)
    act(context, events.judge, case=second, fields=all_right(context, second))

    def opened_by(how, case):
        sheet = act(context, events.move, act=how, case=case).sheet
        (found,) = re.findall(r'data-case="(\w+)" data-cohort', sheet)
        return found

    assert opened_by("previous", first) == first
    assert opened_by("previous", second) == first
    assert opened_by("previous", last) == before
    assert opened_by("after", first) == second
    assert opened_by("after", before) == last
    assert opened_by("after", last) == last
    assert opened_by("next", first) == third
    assert opened_by("next", before) == last
    assert opened_by("next", last) == first
    with pytest.raises(DataError, match="no such pair"):
        act(context, events.move, act="next", case="p99")


def all_right(context, case):
    """Return the form that finds an answer right in everything."""
    desk = events.open_desk(visit(context, right=Right.JUDGE), PROMPT, COHORT)
    answer = events.read_judged(context.store, desk.run, desk.version, case)
    listed = {f"listed.{n}.right": "ok" for n in range(len(answer.errors))}
    return listed or {"complete": "yes"}


def test_a_pair_found_all_right_opens_so_on_its_run_only(context):
    """A newer run begins without earlier verdicts and without the form's draft."""
    act(context, events.reveal)
    done = act(context, events.judge, fields={"listed.0.right": "ok"})
    assert "Kept on p1: all is right." in done.status
    assert '<option value="ok" selected>' in act(context, events.move, act="open").sheet
    act(context, events.keep, fields={"listed.0.right": "ok", "comment": "begun"})
    assert ">begun</textarea>" in act(context, events.move, act="open").sheet
    again = call(context.workspace, "run", PROMPT, "--cohort", COHORT)
    assert again.exit_code == 0, again.output
    sheet = act(context, events.move, act="open").sheet
    assert '<option value="ok" selected>' not in sheet and ">begun<" not in sheet


def test_verdicts_are_on_the_run_that_was_shown(context):
    """A newer one may list other errors; without a look there is no verdict."""
    with pytest.raises(DataError, match="were not shown yet"):
        act(context, events.judge, fields={})
    act(context, events.reveal)
    with pytest.raises(DataError, match="newer run"):
        act(context, events.judge, fields={}, run="another")
    with pytest.raises(DataError, match="another cohort"):
        act(context, events.judge, fields={}, cohort="rp@0")


def test_that_there_is_no_error_is_said_and_kept(context):
    """Of a pair without one the judge is right only if that was ticked."""
    act(context, events.reveal, case="p0")
    with pytest.raises(DataError, match="Tick that it missed none"):
        act(context, events.judge, fields={}, case="p0")
    done = act(context, events.judge, fields={"complete": "yes"}, case="p0")
    assert "Kept on p0: there is no error" in done.status
    desk = events.open_desk(visit(context, right=Right.JUDGE), PROMPT, COHORT)
    assert not desk.waits("p0") and desk.stage("p0").value == "judged"
    again = act(context, events.move, act="open", case="p0").sheet
    assert 'name="complete" checked' in again


def test_a_judged_pair_opens_as_it_was_judged(context):
    """So that handing it in again changes nothing."""
    said = {
        "listed.0.right": "no_error",
        "missed.0.category": "severity",
        "missed.0.weight": "insignificant",
        "missed.0.words": "grade",
        "missed.1.category": "severity",
        "missed.1.weight": "significant",
        "missed.1.words": "size",
        "rule.category": "location",
        "rule.phrase": "right for left",
        "rule.value": "no_error",
        "rule.note": "why not",
        "judgement": "guideline_ambiguous",
        "comment": "why",
        "anchor": "yes",
    }
    act(context, events.reveal)
    act(context, events.judge, fields=said)
    desk = events.open_desk(visit(context, right=Right.JUDGE), PROMPT, COHORT)
    answer = events.read_judged(context.store, desk.run, desk.version, "p1")
    own = desk.own_verdicts("p1")
    fields = events.fields_of_verdicts(answer, own, desk.run.id)
    assert fields == said
    other = replace(answer, errors=(answer.errors[0]._replace(words="other"),))
    assert "listed.0.right" not in events.fields_of_verdicts(other, own, "newer")
    act(context, events.judge, fields=fields)
    kept = read_kept(context.store, context.workspace, COHORT)
    assert len(kept) == 2 and {one.state for one in kept} == {VerdictState.OPEN}


def test_what_the_form_cannot_show_is_not_taken_over(context, tmp_path):
    """A file may ask for more than one rule."""
    act(context, events.reveal)
    path = tmp_path / "v.yaml"
    path.write_text(
        "reviewer: Dr A\nverdicts:\n- case: p1\n  label: location\n"
        "  judgement: model_wrong\n  clarifications:\n"
        "  - {phrase: right for left, value: no_error}\n"
        "  - {phrase: left for right, value: no_error}\n"
    )
    added = call(context.workspace, "verdict", "add", path, "--run", "latest:mine")
    assert added.exit_code == 0, added.output
    with pytest.raises(DataError, match="more wording than this form"):
        act(context, events.judge, fields={"listed.0.right": "ok"})


def test_a_rating_that_was_begun_is_not_lost_to_a_look(context):
    """It is handed in or emptied first; and one that was given comes back."""
    with pytest.raises(DataError, match="you have begun a rating"):
        act(context, events.reveal, fields=SIDE)
    assert "Your own rating" not in act(context, events.move, act="open").sheet
    reader = {"right": Right.READ, "fields": SIDE}
    events.rate(come(context, UserRole.READER, **reader), PROMPT, COHORT)
    page = events.move(
        come(context, UserRole.READER, right=Right.READ, act="open"), PROMPT, COHORT
    ).sheet
    assert 'value="zebra side"' in page and 'value="2" checked' in page


def test_after_other_texts_were_imported_no_old_answer_is_shown(context, tmp_path):
    """Nor does what was said of them count."""
    act(context, events.reveal)
    act(context, events.judge, fields={"listed.0.right": "no_error"})
    pairs = tmp_path / "again.csv"
    pairs.write_text("id,reference,candidate\np1,Left mass.,Left mass.\n")
    options = ("--role", "dev", "--source", "made up", "--licence", "none")
    done = call(
        context.workspace,
        *("cohort", "import", pairs, "--name", "rp", *options),
        *("--replace", "--why", "new texts"),
    )
    assert done.exit_code == 0, done.output
    shown = events.refresh(visit(context, right=Right.JUDGE), PROMPT, COHORT)
    assert "judged other texts of rp" in shown.pairs
    assert "What the judge says" not in shown.sheet
    desk = events.open_desk(visit(context, right=Right.JUDGE), PROMPT, COHORT)
    assert desk.verdicts == {}


def test_others_verdicts_stay_hidden_until_ones_own(context):
    """Who judges first is not led."""
    act(context, events.reveal)
    act(context, events.judge, fields={"listed.0.right": "no_error"})
    other = {"case": "p1", "right": Right.JUDGE, "name": "Dr B"}
    desk = events.open_desk(visit(context, right=Right.JUDGE), PROMPT, COHORT)
    sent = other | {"cohort": desk.task.key, "run": desk.run.id}
    page = events.reveal(visit(context, **sent), PROMPT, COHORT).sheet
    assert "Verdicts on this pair" not in page
    said = sent | {"fields": {"listed.0.right": "ok"}}
    events.judge(visit(context, **said), PROMPT, COHORT)
    page = events.move(visit(context, **sent, act="open"), PROMPT, COHORT).sheet
    assert "Verdicts on this pair" in page and "disputed" in page


def test_a_forged_name_of_a_field_is_left_aside(context):
    """One's own page opens again."""
    forged = {f"marked.{'9' * 5000}.words": "x", "marked.x.words": "y", "points": "2"}
    act(context, events.keep, fields=forged)
    page = act(context, events.move, act="open").sheet
    assert 'value="2" checked' in page


def test_a_form_that_was_begun_is_there_again(context):
    """Also after the page was left; rating it makes it empty again."""
    act(context, events.keep, fields=SIDE)
    page = act(context, events.move, act="open").sheet
    assert 'value="zebra side"' in page and 'value="2" checked' in page
    shown = act(context, events.rate, fields=SIDE)
    assert 'name="missed.0.words"' not in shown.sheet


def test_what_just_fits_is_kept_whole(context):
    """The longest text of a field, in the longest form; the longest words of a miss."""
    act(context, events.reveal)
    words = {f"marked.{number}.words": "" for number in range(599)}
    done = act(context, events.keep, fields={**words, "comment": "x" * 4000})
    assert "Draft saved" in done.status
    shown = act(context, events.move, act="open").sheet
    assert re.search("x{9,}", shown)[0] == "x" * 4000
    missed = {
        "listed.0.right": "ok",
        "missed.0.category": "severity",
        "missed.0.weight": "significant",
        "missed.0.words": "x" * 500,
    }
    assert "1 of 2 categories are wrong" in (
        act(context, events.judge, fields=missed).status
    )
    kept = str(read_kept(context.store, context.workspace, COHORT))
    assert re.search("x{9,}", kept)[0] == "x" * 500


def test_a_reader_rates_and_never_sees_a_judge(context):
    """No run, no number, no verdict; the next pair opens."""
    reader = {"right": Right.READ}
    shown = events.refresh(
        visit(context, UserRole.READER, right=Right.READ), PROMPT, COHORT
    )
    assert "mine@v1" not in shown.sheet and shown.publication == ""
    done = events.rate(
        come(context, UserRole.READER, fields=SIDE, **reader), PROMPT, COHORT
    )
    assert "Your rating of p1 is kept" in done.status
    assert "Your own rating" not in done.sheet and "<mark" not in done.sheet
    for handler in (events.reveal, events.judge):
        with pytest.raises(DataError, match="you may not"):
            handler(come(context, UserRole.READER, fields={}, **reader), PROMPT, COHORT)


def test_whoever_only_sees_results_sees_the_judge_without_a_form(context):
    """An approver rates nothing, so nothing needs to stay blind."""
    page = events.refresh(
        visit(context, UserRole.APPROVER, right=Right.SEE), PROMPT, COHORT
    )
    assert "What the judge says" in page.sheet
    assert "data-send" not in page.sheet
    with pytest.raises(DataError, match="you may not rate"):
        events.rate(
            come(context, UserRole.APPROVER, right=Right.SEE, fields=GOOD),
            PROMPT,
            COHORT,
        )


def test_ratings_are_published_by_an_editor(context):
    """With a reason; raters of files keep theirs."""
    act(context, events.rate, fields=SIDE)
    editor = visit(context, right=Right.IMPORT)
    with pytest.raises(DataError, match="needs a reason"):
        events.publish(editor, PROMPT, COHORT, "")
    done = events.publish(editor, PROMPT, COHORT, "first look")
    assert "Ratings version 2 of rp is recorded" in done.publication
    assert read_ratings_of(context.workspace, COHORT).given.raters == (
        "Dr A",
        "r1",
        "r2",
    )


def test_the_pairs_furthest_from_the_readers_come_first(context, monkeypatch):
    """For whoever judges; how far is told only of what was shown."""
    rows = events.list_pairs(
        visit(context, right=Right.JUDGE),
        events.open_desk(visit(context, right=Right.JUDGE), PROMPT, COHORT),
    )
    assert {row.apart for row in rows} == {None}
    act(context, events.reveal, case=rows[0].case_id)
    desk = events.open_desk(visit(context, right=Right.JUDGE), PROMPT, COHORT)
    apart = events.list_pairs(visit(context, right=Right.JUDGE), desk)[0].apart
    assert apart is not None


def test_an_unreadable_answer_has_no_form(context, monkeypatch):
    """It says why, and takes no verdict."""
    tell(monkeypatch, {"Small right pleural effusion.": "no JSON"})
    call(context.workspace, "run", "mine", "--cohort", "rp", "--engine", "told")
    page = act(context, events.reveal).sheet
    assert "No readable answer (unparsed)" in page
    assert 'data-send="judge"' not in page
    with pytest.raises(DataError, match="no readable answer about this pair"):
        act(context, events.judge, fields={})
    desk = events.open_desk(visit(context, right=Right.JUDGE), PROMPT, COHORT)
    assert not desk.waits("p1")


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("extractor", "is not a judge"),
        ("listed", "has not judged rp yet"),
        (None, "is not a judge"),
    ],
)
def test_without_a_judge_pairs_are_rated_all_the_same(context, prompt, said):
    """And the page says what is missing."""
    made = call(context.workspace, "prompt", "new", "listed", "--from", "one_pass@v1")
    assert made.exit_code == 0, made.output
    shown = events.refresh(visit(context, right=Right.JUDGE), prompt, COHORT)
    assert said in shown.pairs
    assert 'data-send="rate"' in shown.sheet and "judges-reveal" not in shown.sheet
    before = re.findall(r'data-case="(\w+)" data-cohort', shown.sheet)
    task = events.open_desk(visit(context, right=Right.JUDGE), prompt, COHORT).task
    sent = {"case": before[0], "cohort": task.key, "run": "", "fields": GOOD}
    done = events.rate(visit(context, right=Right.JUDGE, **sent), prompt, COHORT)
    assert f"Your rating of {before[0]} is kept." in done.status
    assert re.findall(r'data-case="(\w+)" data-cohort', done.sheet) != before
    desk = events.open_desk(visit(context, right=Right.JUDGE), prompt, COHORT)
    assert (set(desk.ratings), desk.shown) == ({before[0]}, frozenset())
    page = events.move(
        visit(context, right=Right.JUDGE, **sent, act="open"), prompt, COHORT
    ).sheet
    assert 'name="none" checked' in page
    assert "You rated this pair: 3 points, 0 errors." in page


def test_a_holdout_is_rated_and_its_judge_stays_unseen(context, tmp_path):
    """Whatever was run on it."""
    path = tmp_path / "held.csv"
    path.write_text("id,reference,candidate\nh0,Left effusion.,Right effusion.\n")
    options = ("--role", "holdout", "--source", "made up", "--licence", "none")
    done = call(context.workspace, "cohort", "import", path, "--name", "held", *options)
    assert done.exit_code == 0, done.output
    shown = events.refresh(visit(context, right=Right.JUDGE), PROMPT, "held")
    assert "stays unseen" in shown.pairs and "judges-reveal" not in shown.sheet
    desk = events.open_desk(visit(context, right=Right.JUDGE), PROMPT, "held")
    sent = {"case": "h0", "cohort": desk.task.key, "fields": SIDE}
    kept = events.keep(visit(context, right=Right.JUDGE, **sent), PROMPT, "held")
    assert "not kept until you hand it in" in kept.status
    events.rate(visit(context, right=Right.JUDGE, **sent), PROMPT, "held")
    for table in ("working", "readings"):
        rows = context.store.read(f"SELECT * FROM {table}")
        assert not any("zebra" in str(row) for row in rows)


def test_other_pages_say_where_pairs_are(context):
    """And this one where there are none."""
    judge = visit(context, right=Right.JUDGE)
    review = review_events.refresh(judge, PROMPT, COHORT, review_events.Place())
    assert any("on the page Judges" in str(one) for one in review)
    sheet = label_panel.open_(visit(context, right=Right.READ), PROMPT, COHORT).sheet
    assert "rated on the page Judges" in sheet
    closed = events.refresh(judge, PROMPT, None)
    assert "There are no pairs here" in closed.sheet


def desk(**changes):
    """Return what a reviewer works on who rated, saw and judged one pair each."""
    return Desk(
        **{
            "task": None,
            "person": "Ann",
            "rates": True,
            "judges": True,
            "run": SimpleNamespace(id="run-1"),
            "version": None,
            "why": "",
            "ratings": dict.fromkeys(("rated", "shown", "agreed", "judged", "unread")),
            "shown": frozenset({"shown", "agreed", "judged", "unread"}),
            "agreed": frozenset({"agreed"}),
            "unread": frozenset({"unread", "rated"}),
            "verdicts": {
                "judged": (said_by("Ben"), said_by("Ann")),
                "open": (said_by("Ben"),),
            },
            **changes,
        }
    )


def said_by(reviewer):
    """Return a verdict as far as it matters whose it is."""
    return SimpleNamespace(verdict=SimpleNamespace(reviewer=reviewer))


PAIRS = ("open", "rated", "shown", "unread", "agreed", "judged")


def test_how_far_a_visitor_is_with_a_pair():
    """Others' verdicts are not one's own; to agree is to have judged."""
    stages = [desk().stage(pair) for pair in PAIRS]
    assert stages == ["open", "rated", "shown", "shown", "judged", "judged"]
    assert [len(desk().own_verdicts(pair)) for pair in PAIRS] == [0] * 5 + [1]


@pytest.mark.parametrize(
    ("changes", "revealed"),
    [
        ({}, "..SSSS"),
        # Who does not rate is blind to nothing.
        ({"rates": False}, "SSSSSS"),
        ({"run": None}, "......"),
        ({"run": None, "rates": False}, "......"),
    ],
)
def test_a_judge_is_seen_only_after_ones_own_rating(changes, revealed):
    """A rating after that would not be blind."""
    seen = [desk(**changes).is_revealed(pair) for pair in PAIRS]
    assert seen == [letter == "S" for letter in revealed]


@pytest.mark.parametrize(
    ("changes", "waiting"),
    [
        # Of an answer that cannot be read there is nothing to judge once it was shown.
        ({}, "WWW..."),
        ({"unread": frozenset({"rated"})}, "WWWW.."),
        # Without a run, or without the right to judge, to rate is all there is.
        ({"run": None}, "W....."),
        ({"judges": False}, "W....."),
        ({"judges": False, "rates": False}, "......"),
    ],
)
def test_a_pair_waits_while_there_is_something_to_do(changes, waiting):
    """For this visitor."""
    found = [desk(**changes).waits(pair) for pair in PAIRS]
    assert found == [letter == "W" for letter in waiting]


def page_of(**changes):
    """Return a pair of two short texts, of which nothing was said yet."""
    texts = {"reference": "One two.", "candidate": "Three four."}
    told = {
        "desk": desk(),
        "item": Item(id="open", variables=texts),
        "answer": None,
        "fields": {},
    }
    return view.PairPage(**{**told, **changes})


def test_others_verdicts_are_shown_beside_ones_own_only():
    """And all of them to who gives none."""
    judged = replace(page_of().item, id="judged")
    assert view._verdicts_shown(page_of()) == ()
    assert len(view._verdicts_shown(page_of(item=judged))) == 2
    sees = desk(judges=False)
    assert len(view._verdicts_shown(page_of(desk=sees))) == 1
    shown = replace(judged, id="shown")
    assert view._verdicts_shown(page_of(desk=sees, item=shown)) == ()


def test_rows_of_a_form_come_in_the_order_of_their_numbers():
    """As numbers; what is not there is empty, and other fields are none."""
    fields = {
        "marked.10.words": "ten",
        "marked.2.category": "location",
        "marked.2.weight": "significant",
        "marked.x.words": "no",
        "missed.1.words": "other list",
        "points": "3",
    }
    assert view._form_rows(page_of(fields=fields), "marked") == [
        view.FormRow(2, "location", "significant", ""),
        view.FormRow(10, "", "", "ten"),
    ]
    assert view._form_rows(page_of(fields=fields), "missed") == [
        view.FormRow(1, "", "", "other list")
    ]


def test_what_a_judge_lists_is_marked_in_both_texts():
    """Errors by their numbers, what matches without one; nothing before it is shown."""
    blind = view._texts(page_of())
    assert blind == [
        view.PairText("reference", [("One two.", "", "")]),
        view.PairText("candidate", [("Three four.", "", "")]),
    ]
    errors = (
        SimpleNamespace(spans=(Span(0, 3, "reference"), Span(0, 5, "candidate"))),
        SimpleNamespace(spans=(Span(0, 5, "candidate"),)),
    )
    matched = (SimpleNamespace(spans=(Span(4, 7, "reference"),)),)
    answer = SimpleNamespace(errors=errors, matched=matched)
    assert view._texts(page_of(answer=answer)) == [
        view.PairText(
            "reference",
            [("One", "1", "own"), (" ", "", ""), ("two", "", "other"), (".", "", "")],
        ),
        view.PairText("candidate", [("Three", "1, 2", "own"), (" four.", "", "")]),
    ]
