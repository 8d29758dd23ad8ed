"""Pairs rated blind: kept, frozen once the judge was shown, published, sealed."""

import json

import pytest

from loop.core.errors import ConflictError, DataError, StoreError
from loop.core.ledger import Actor, read_ledger
from loop.labels.expert_ratings import read_ratings_of
from loop.labels.holdout import retire_holdout
from loop.review.reading.pair_ratings import (
    LONGEST_WORDS,
    MOST_ERRORS,
    PairRating,
    RatedError,
    RatingsPublication,
    agreed_pairs,
    keep_rating,
    mark_agreed,
    mark_shown,
    publish_ratings,
    read_all_ratings,
    read_own_ratings,
    read_rating_task,
    shown_pairs,
)
from loop.run.store import open_store
from tests.judge.scenes import call, rate, table

EDITOR = Actor(name="Dr Editor", role="editor")
SIDE = RatedError("location", "significant", "wrong side of the zebra")
WRONG = PairRating(2.0, (SIDE,))
FINE = PairRating(5.0, ())


def pairs(workspace, tmp_path, role="dev"):
    """Import two pairs that nobody has rated."""
    path = table(
        tmp_path / "bare.csv",
        ("id", "reference", "candidate"),
        [
            ("p0", "Left effusion.", "Right effusion."),
            ("p1", "The lungs are clear.", "The lungs are clear."),
        ],
    )
    options = ("--role", role, "--source", "made up", "--licence", "none")
    done = call(workspace, "cohort", "import", path, "--name", "bare", *options)
    assert done.exit_code == 0, done.output
    return read_rating_task(workspace, "bare")


@pytest.fixture
def store(workspace):
    """Return the open store of the workspace."""
    with open_store(workspace) as opened:
        yield opened


def test_the_last_rating_of_a_pair_counts(workspace, tmp_path, store):
    """What was said before stays in the store."""
    task = pairs(workspace, tmp_path)
    keep_rating(store, task, "Ann", "p0", FINE)
    keep_rating(store, task, "Ann", "p0", WRONG)
    keep_rating(store, task, "Bob", "p0", FINE)
    assert read_own_ratings(store, task, "Ann") == {"p0": WRONG}
    assert set(read_all_ratings(store, task)) == {"Ann", "Bob"}
    assert sorted(task.order("Ann")) == ["p0", "p1"]


def test_whoever_was_shown_the_judge_rates_that_pair_no_more(
    workspace, tmp_path, store
):
    """A rating given then would not be blind; others, and other pairs, go on."""
    task = pairs(workspace, tmp_path)
    keep_rating(store, task, "Ann", "p0", WRONG)
    mark_shown(store, task, "Ann", "p0")
    mark_shown(store, task, "Ann", "p0")
    assert shown_pairs(store, task, "Ann") == {"p0"}
    with pytest.raises(ConflictError, match="would not be blind any more"):
        keep_rating(store, task, "Ann", "p0", FINE)
    keep_rating(store, task, "Ann", "p1", FINE)
    keep_rating(store, task, "Bob", "p0", FINE)
    assert read_own_ratings(store, task, "Ann")["p0"] == WRONG


@pytest.mark.parametrize(
    ("case_id", "rating", "message"),
    [
        ("p9", FINE, "has no pair 'p9'"),
        ("p0", PairRating(6.0, ()), "off the scale 1-5"),
        ("p0", PairRating(float("nan"), ()), "off the scale"),
        ("p0", PairRating(3.0, (RatedError("side", "significant", ""),)), "category"),
        ("p0", PairRating(3.0, (RatedError("location", "grave", ""),)), "significance"),
        ("p0", PairRating(3.0, (SIDE._replace(words="x" * 501),)), "501 characters"),
        ("p0", PairRating(3.0, (SIDE,) * (MOST_ERRORS + 1)), "61 errors are marked"),
    ],
)
def test_what_cannot_be_published_is_not_kept(
    workspace, tmp_path, store, case_id, rating, message
):
    """Refused while whoever rates can still correct it."""
    assert LONGEST_WORDS == 500
    task = pairs(workspace, tmp_path)
    with pytest.raises(DataError, match=message):
        keep_rating(store, task, "Ann", case_id, rating)
    assert read_all_ratings(store, task) == {}


def test_just_the_most_of_a_rating_is_kept(workspace, tmp_path, store):
    """Either end of the scale, the longest words, the most errors."""
    task = pairs(workspace, tmp_path)
    errors = (SIDE._replace(words="x" * LONGEST_WORDS),) * MOST_ERRORS
    least, most = PairRating(1.0, errors), PairRating(5.0, ())
    keep_rating(store, task, "Ann", "p0", least)
    keep_rating(store, task, "Ann", "p1", most)
    assert read_own_ratings(store, task, "Ann") == {"p0": least, "p1": most}
    for points in (0.99, 5.01):
        with pytest.raises(DataError, match="off the scale 1-5"):
            keep_rating(store, task, "Ann", "p0", PairRating(points, ()))


def test_ratings_are_published_as_a_version(workspace, tmp_path, store):
    """With a reason in the ledger; the words of findings stay private."""
    task = pairs(workspace, tmp_path)
    keep_rating(store, task, "Ann", "p0", WRONG)
    keep_rating(store, task, "Ann", "p1", FINE)
    keep_rating(store, task, "Bob", "p0", FINE)
    with pytest.raises(DataError, match="needs a reason"):
        publish_ratings(workspace, store, task, RatingsPublication(), EDITOR)
    wanted = RatingsPublication(("Ann",), "Ann is done")
    publish_ratings(workspace, store, task, wanted, EDITOR)
    given = read_ratings_of(workspace, "bare")
    assert given.given.raters == ("Ann",)
    overall = given.points()
    assert overall.points.tolist() == [[2.0], [5.0]]
    counts = given.counts(task.categories).counts[:, 0]
    assert counts[:, task.categories.ids.index("location"), 0].tolist() == [1, 0]
    entry = read_ledger(workspace.ledger)[-1]
    assert (entry.action, entry.reason) == ("ratings_added", "Ann is done")
    assert "zebra" not in workspace.ledger.read_text()
    everybody = RatingsPublication(reason="all are done")
    publish_ratings(workspace, store, task, everybody, EDITOR)
    assert read_ratings_of(workspace, "bare").given.raters == ("Ann", "Bob")
    assert call(workspace, "audit").exit_code == 0


def test_nobody_loses_what_they_said_in_a_file(workspace, tmp_path, store):
    """Unless it is said; the scale is that of the ratings that are there."""
    rate(workspace, tmp_path)
    task = read_rating_task(workspace, "rp")
    assert task.scale.words == "1-5"
    keep_rating(store, task, "r1", "p0", WRONG)
    wanted = RatingsPublication(reason="again")
    with pytest.raises(DataError, match="'r1' rated pairs before"):
        publish_ratings(workspace, store, task, wanted, EDITOR)
    publish_ratings(workspace, store, task, wanted._replace(replace=True), EDITOR)
    points = read_ratings_of(workspace, "rp").points()
    assert points.raters == ("r1", "r2")
    assert points.points[0].tolist() == [2.0, 5.0]


def test_a_rater_of_a_file_is_not_replaced_by_a_namesake(workspace, tmp_path, store):
    """Also who rates every pair; one's own earlier ratings are replaced."""
    rate(workspace, tmp_path)
    task = read_rating_task(workspace, "rp")
    for case_id in task.cohort.case_ids:
        keep_rating(store, task, "r1", case_id, PairRating(4.0, ()))
    wanted = RatingsPublication(reason="all")
    with pytest.raises(DataError, match="'r1' rated pairs before, in a file"):
        publish_ratings(workspace, store, task, wanted, EDITOR)
    for points in (2.0, 3.0):
        keep_rating(store, task, "Ann", "p0", PairRating(points, ()))
        publish_ratings(
            workspace, store, task, wanted._replace(raters=("Ann",)), EDITOR
        )
    found = read_ratings_of(workspace, "rp").points()
    assert found.points[0, found.raters.index("Ann")] == 3.0


@pytest.mark.parametrize("other", ["\u0410nn", "ann", "Ann\u00a0"])
def test_a_rater_who_looks_like_another_one_is_refused(
    workspace, tmp_path, store, other
):
    """Nobody could tell their ratings apart."""
    task = pairs(workspace, tmp_path)
    keep_rating(store, task, "Ann", "p0", FINE)
    keep_rating(store, task, other, "p1", FINE)
    if other.strip() == "Ann":
        assert set(read_all_ratings(store, task)) == {"Ann"}
        return
    with pytest.raises(DataError, match="looks like"):
        publish_ratings(workspace, store, task, RatingsPublication(reason="x"), EDITOR)


def test_on_a_holdout_they_are_sealed(workspace, tmp_path, store):
    """In the store and in the version, and by their length nothing is told."""
    task = pairs(workspace, tmp_path, "holdout")
    keep_rating(store, task, "Ann", "p0", WRONG)
    keep_rating(store, task, "Ann", "p1", FINE)
    kept = [value for (value,) in store.read("SELECT value FROM readings")]
    assert not any("zebra" in one or "points" in one for one in kept)
    assert len({len(one) for one in kept}) == 1
    assert read_own_ratings(store, task, "Ann")["p0"] == WRONG
    wanted = RatingsPublication(reason="done")
    publish_ratings(workspace, store, task, wanted, EDITOR)
    with pytest.raises(DataError, match="are sealed"):
        publish_ratings(workspace, store, task, wanted, EDITOR)
    folder = workspace.labels / "cohorts" / "bare" / "experts" / "v1"
    assert {one.suffix for one in folder.iterdir()} == {".sealed"}


def test_ratings_of_a_retired_holdout_can_be_read_and_published(
    workspace, tmp_path, store
):
    """What was sealed before stays so in the store, and later ones with it."""
    task = pairs(workspace, tmp_path, "holdout")
    keep_rating(store, task, "Ann", "p0", WRONG)
    retire_holdout(workspace, "bare", EDITOR, "given up")
    after = read_rating_task(workspace, "bare")
    keep_rating(store, after, "Ann", "p1", FINE)
    assert read_own_ratings(store, after, "Ann") == {"p0": WRONG, "p1": FINE}
    kept = [value for (value,) in store.read("SELECT value FROM readings")]
    assert not any("zebra" in one or "points" in one for one in kept)
    wanted = RatingsPublication(reason="done")
    publish_ratings(workspace, store, after, wanted, EDITOR)
    assert read_ratings_of(workspace, "bare").points().points.tolist() == [[2.0], [5.0]]


def test_a_row_that_something_else_changed_is_told(workspace, tmp_path, store):
    """Never taken for a rating."""
    task = pairs(workspace, tmp_path)
    keep_rating(store, task, "Ann", "p0", WRONG)
    with store.writing() as connection:
        connection.execute("UPDATE readings SET value = '{}'")
    with pytest.raises(StoreError, match="something other than ranloop"):
        read_own_ratings(store, task, "Ann")


def test_a_cohort_of_reports_is_not_rated(workspace, tmp_path):
    """There is no candidate in it."""
    path = table(tmp_path / "reports.csv", ("id", "text"), [("a", "Left effusion.")])
    options = ("--role", "dev", "--source", "made up", "--licence", "none")
    done = call(workspace, "cohort", "import", path, "--name", "single", *options)
    assert done.exit_code == 0, done.output
    with pytest.raises(DataError, match="holds single reports"):
        read_rating_task(workspace, "single")


def test_the_command_publishes_what_was_collected(workspace, tmp_path, store):
    """A dry run changes nothing; files and the workbench are two sources."""
    task = pairs(workspace, tmp_path)
    keep_rating(store, task, "Ann", "p0", WRONG)
    ratings = ("cohort", "ratings", "bare", "--collected", "--why", "done", "--json")
    tried = call(workspace, *ratings, "--dry-run")
    assert json.loads(tried.stdout)["dry_run"] is True
    with pytest.raises(DataError, match="has no experts' ratings"):
        read_ratings_of(workspace, "bare")
    both = call(workspace, *ratings, "--scale", "1-5")
    assert "files are another source" in str(both.exception)
    nobody = call(workspace, *ratings, "--rater", "Zoe")
    assert "no rating of 'Zoe'" in str(nobody.exception)
    alone = call(workspace, "cohort", "ratings", "bare", "--rater", "Zoe")
    assert "--rater goes with --collected" in str(alone.exception)
    assert call(workspace, *ratings).exit_code == 0
    given = read_ratings_of(workspace, "bare").given
    assert (given.raters, len(given.errors)) == (("Ann",), 1)


@pytest.mark.parametrize("role", ["dev", "holdout"])
def test_an_answer_without_an_error_is_agreed_to_run_by_run(
    workspace, tmp_path, store, role
):
    """The last run that was agreed to counts; of others nothing is known."""
    task = pairs(workspace, tmp_path, role)
    mark_agreed(store, task, "Ann", "p0", "run-1")
    mark_agreed(store, task, "Ann", "p0", "run-1")
    if role == "dev":
        assert agreed_pairs(store, task, "Ann", "run-1") == {"p0"}
        mark_agreed(store, task, "Ann", "p1", "run-1")
        mark_agreed(store, task, "Ann", "p0", "run-2")
        assert agreed_pairs(store, task, "Ann", "run-1") == {"p1"}
        assert agreed_pairs(store, task, "Ann", "run-2") == {"p0"}
        assert agreed_pairs(store, task, "Bob", "run-2") == frozenset()
        assert store.read("SELECT count(*) FROM readings") == [(3,)]
    else:
        assert store.read("SELECT count(*) FROM readings") == [(1,)]
    assert shown_pairs(store, task, "Ann") == frozenset()
    assert read_all_ratings(store, task) == {}


def test_what_is_shown_is_kept_once_by_rater(workspace, tmp_path, store):
    """Two raters and two pairs are four."""
    task = pairs(workspace, tmp_path)
    for _ in range(2):
        for rater in ("Ann", "Bob"):
            for case_id in ("p0", "p1"):
                mark_shown(store, task, rater, case_id)
    assert store.read("SELECT count(*) FROM readings") == [(4,)]
    assert shown_pairs(store, task, " Ann ") == {"p0", "p1"}
    assert shown_pairs(store, task, "Zoe") == frozenset()


def test_ratings_of_each_rater_are_their_own(workspace, tmp_path, store):
    """One rater is read alone; the row says beside which categories it was given."""
    task = pairs(workspace, tmp_path)
    keep_rating(store, task, "Ann", "p0", WRONG)
    keep_rating(store, task, "Ann", "p1", FINE)
    keep_rating(store, task, " Bob ", "p0", PairRating(3.5, (SIDE, SIDE)))
    assert read_all_ratings(store, task, "Bob ") == {
        "Bob": {"p0": PairRating(3.5, (SIDE, SIDE))}
    }
    assert read_own_ratings(store, task, "Zoe") == {}
    rows = store.read("SELECT DISTINCT cohort, label, guideline FROM readings")
    assert rows == [
        (f"bare@{task.cohort.digest[:16]}", "rating", task.categories.digest[:12])
    ]


def test_those_who_rated_nothing_are_named(workspace, tmp_path, store):
    """Up to five; nobody at all is anybody."""
    task = pairs(workspace, tmp_path)
    wanted = RatingsPublication(reason="x")
    with pytest.raises(DataError, match="'bare': no rating of anybody to publish"):
        publish_ratings(workspace, store, task, wanted, EDITOR)
    keep_rating(store, task, "Ann", "p0", FINE)
    names = ("Ann", *"zyxwvu")
    told = ", ".join(repr(name) for name in names[1:6])
    with pytest.raises(DataError, match=f"no rating of {told} to publish"):
        publish_ratings(workspace, store, task, wanted._replace(raters=names), EDITOR)
    twice = wanted._replace(raters=("Ann", "Ann"))
    publish_ratings(workspace, store, task, twice, EDITOR)
    assert len(read_ratings_of(workspace, "bare").given.ratings) == 1


def test_an_answer_is_agreed_to_again_after_another_one(workspace, tmp_path, store):
    """A rater who goes back to the first run has looked at it again."""
    task = pairs(workspace, tmp_path)
    for run in ("run-1", "run-2", "run-1", "run-1"):
        mark_agreed(store, task, "Ann", "p0", run)
    assert agreed_pairs(store, task, "Ann", "run-1") == {"p0"}
    assert agreed_pairs(store, task, "Ann", "run-2") == frozenset()
    assert store.read("SELECT count(*) FROM readings") == [(3,)]


def given_in_files(workspace, tmp_path, points, marked=()):
    """Import two pairs with points and marked errors of files; return the task."""
    pairs(workspace, tmp_path)
    files = (
        *("--ratings", tmp_path / "points.csv", "--errors", tmp_path / "marked.csv"),
        *("--why", "of a file"),
    )
    table(files[1], ("case_id", "rater", "dimension", "points", "scale"), points)
    table(files[3], ("case_id", "rater", "category", "significance", "finding"), marked)
    done = call(workspace, "cohort", "ratings", "bare", *files)
    assert done.exit_code == 0, done.output
    return read_rating_task(workspace, "bare")


@pytest.mark.parametrize(
    ("dimension", "scale", "asked"),
    [("overall", "0-10", "0-10"), ("overall", "1-4", "1-4"), ("style", "1-4", "1-5")],
)
def test_points_are_asked_on_the_scale_that_those_for_the_whole_have(
    workspace, tmp_path, dimension, scale, asked
):
    """Where a file has points for something else only, they are of one to five."""
    task = given_in_files(workspace, tmp_path, [("p0", "Zoe", dimension, 3, scale)])
    assert task.scale.words == asked


def test_whoever_looks_like_a_rater_of_a_file_is_refused(workspace, tmp_path, store):
    """Their ratings would stand beside each other as those of two."""
    task = given_in_files(workspace, tmp_path, [("p0", "Zoe", "overall", 3, "1-5")])
    keep_rating(store, task, "zoe", "p0", FINE)
    wanted = RatingsPublication(reason="done")
    with pytest.raises(DataError, match="looks like"):
        publish_ratings(workspace, store, task, wanted, EDITOR)


def test_errors_that_were_marked_in_a_file_alone_are_not_lost(
    workspace, tmp_path, store
):
    """Who marked none there, and who rates the same pair again, is published."""
    marked = [("p1", "Zoe", "location", "significant", "zebra")]
    task = given_in_files(workspace, tmp_path, [], marked)
    for rater, case_id in (("Zoe", "p0"), ("Ann", "p0")):
        keep_rating(store, task, rater, case_id, WRONG)
    ann = RatingsPublication(("Ann",), "Ann is done")
    publish_ratings(workspace, store, task, ann, EDITOR)
    given = read_ratings_of(workspace, "bare").given
    assert [(one.rater, one.case_id) for one in given.errors] == [
        ("Ann", "p0"),
        ("Zoe", "p1"),
    ]
    both = RatingsPublication(reason="all are done")
    with pytest.raises(DataError, match="'Zoe' rated pairs before, in a file"):
        publish_ratings(workspace, store, task, both, EDITOR)
    keep_rating(store, task, "Zoe", "p1", FINE)
    publish_ratings(workspace, store, task, both, EDITOR)
    given = read_ratings_of(workspace, "bare").given
    assert {(one.rater, one.case_id) for one in given.errors if one.category} == {
        ("Ann", "p0"),
        ("Zoe", "p0"),
    }


def test_a_blank_reason_publishes_nothing(workspace, tmp_path, store):
    """The ledger would record why in empty words."""
    task = pairs(workspace, tmp_path)
    keep_rating(store, task, "Ann", "p0", FINE)
    with pytest.raises(DataError, match="a publication needs a reason"):
        publish_ratings(workspace, store, task, RatingsPublication(reason=" "), EDITOR)
