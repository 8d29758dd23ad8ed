"""The page Judges: rated blind first, then a judge's errors held against that."""

import shutil

import pytest

from loop.core.errors import ConflictError, DataError
from loop.core.paths import WorkspacePaths
from loop.core.people.users import Right, UserRole
from loop.labels.expert_ratings import read_ratings_of
from loop.review.status import VerdictState, read_kept
from loop.review.verdict import Judgement
from loop.ui.pages.judges import events
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
    assert "right are 0 significant and 0 insignificant" in again


def test_what_was_said_before_is_taken_over_or_taken_back(context):
    """A category that is called right now stands no longer as wrong."""
    act(context, events.reveal)
    act(context, events.judge, fields={"listed.0.right": "severity"})
    act(context, events.judge, fields={})
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
            "no category of errors is called 'side'",
        ),
        ({"missed.0.words": "x"}, "a missed error has no category"),
        ({"listed.0.right": "nonsense"}, "no category of errors is called"),
    ],
)
def test_verdicts_that_cannot_be_meant_are_refused(context, fields, message):
    """All of them, with the reason."""
    act(context, events.reveal)
    with pytest.raises(DataError, match=message):
        act(context, events.judge, fields=fields)
    assert read_kept(context.store, context.workspace, COHORT) == ()


def test_verdicts_are_on_the_run_that_was_shown(context):
    """A newer one may list other errors; without a look there is no verdict."""
    with pytest.raises(DataError, match="were not shown yet"):
        act(context, events.judge, fields={})
    act(context, events.reveal)
    with pytest.raises(DataError, match="newer run"):
        act(context, events.judge, fields={}, run="another")
    with pytest.raises(DataError, match="another cohort"):
        act(context, events.judge, fields={}, cohort="rp@0")
    with pytest.raises(DataError, match="nothing to record"):
        act(context, events.reveal, case="p0")
        act(context, events.judge, fields={}, case="p0")


def test_a_form_that_was_begun_is_there_again(context):
    """Also after the page was left; rating it makes it empty again."""
    act(context, events.keep, fields=SIDE)
    page = act(context, events.move, act="open").sheet
    assert 'value="zebra side"' in page and 'value="2" checked' in page
    shown = act(context, events.rate, fields=SIDE)
    assert 'name="missed.0.words"' not in shown.sheet


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


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("extractor", "is no judge"),
        ("listed", "has not judged rp yet"),
        (None, "is no judge"),
    ],
)
def test_without_a_judge_pairs_are_rated_all_the_same(context, prompt, said):
    """And the page says what is missing."""
    made = call(context.workspace, "prompt", "new", "listed", "--from", "one_pass@v1")
    assert made.exit_code == 0, made.output
    shown = events.refresh(visit(context, right=Right.JUDGE), prompt, COHORT)
    assert said in shown.pairs
    assert 'data-send="rate"' in shown.sheet and "judges-reveal" not in shown.sheet


def test_a_holdout_is_rated_and_its_judge_stays_unseen(context, tmp_path):
    """Whatever was run on it."""
    path = tmp_path / "held.csv"
    path.write_text("id,reference,candidate\nh0,Left effusion.,Right effusion.\n")
    options = ("--role", "holdout", "--source", "made up", "--licence", "none")
    done = call(context.workspace, "cohort", "import", path, "--name", "held", *options)
    assert done.exit_code == 0, done.output
    shown = events.refresh(visit(context, right=Right.JUDGE), PROMPT, "held")
    assert "stays unseen" in shown.pairs and "judges-reveal" not in shown.sheet


def test_other_pages_say_where_pairs_are(context):
    """And this one where there are none."""
    judge = visit(context, right=Right.JUDGE)
    review = review_events.refresh(judge, PROMPT, COHORT, review_events.Place())
    assert any("on the page Judges" in str(one) for one in review)
    sheet = label_panel.open_(visit(context, right=Right.READ), PROMPT, COHORT).sheet
    assert "rated on the page Judges" in sheet
    closed = events.refresh(judge, PROMPT, None)
    assert "There are no pairs here" in closed.sheet
