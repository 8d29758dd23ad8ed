"""Where a judge counts other errors than the readers, furthest first."""

import json

import pytest

from loop.core.errors import DataError
from loop.judge.count_failures import CountFailure, find_count_failures
from loop.run.manifest import find_run
from loop.run.store import open_store
from tests.judge.scenes import call, errors, rate, table, tell

RIGHT = "Small right pleural effusion."
MASS = "The lungs are clear."


@pytest.fixture
def judged(workspace, tmp_path, monkeypatch):
    """Return a workspace in which a judge misses one error and answers one not."""
    rate(workspace, tmp_path)
    tell(
        monkeypatch,
        {
            RIGHT: errors(("location", True), ("severity", False)),
            "No pneumothorax.": "no JSON",
            "Cardiomegaly. Right pneumothorax.": errors(),
        },
    )
    made = call(workspace, "prompt", "new", "listed", "--from", "one_pass@v1")
    assert made.exit_code == 0, made.output
    done = call(workspace, "run", "listed", "--cohort", "rp", "--engine", "told")
    assert done.exit_code == 0, done.output
    return workspace


def test_pairs_and_categories_that_differ_are_listed(judged):
    """No answer is furthest; what is counted alike is not there."""
    with open_store(judged) as store:
        found = find_count_failures(judged, store, "latest")
        some = find_count_failures(judged, store, "latest", categories=["omission"])
    none, one, both = (0.0, 0.0), (1.0, 0.0), (0.0, 1.0)
    silent = CountFailure("p2", "", None, None, float("inf"), "unparsed")
    omitted = CountFailure("p7", "omission", none, one, 1.0)
    assert found.rows == (
        silent,
        CountFailure("p1", "severity", both, none, 1.0),
        CountFailure("p3", "false_finding", none, one, 1.0),
        CountFailure("p5", "false_finding", none, one, 1.0),
        omitted,
    )
    assert some.rows == (silent, omitted)
    assert found.cases == tuple(f"p{place}" for place in range(8))
    assert found.ratings == "rp:ratings1"
    assert found.run == find_run(judged, "latest")


def three(workspace, tmp_path, *marked):
    """Import pairs c, a and b with these marks: case, rater, category, weight."""
    pairs = table(
        tmp_path / "three.csv",
        ("id", "reference", "candidate"),
        [(name, f"Reference of {name}.", f"Candidate of {name}.") for name in "cab"],
    )
    errors_file = table(
        tmp_path / "three-errors.csv",
        ("case_id", "rater", "category", "significance"),
        marked,
    )
    options = ("--role", "dev", "--source", "made up", "--licence", "none")
    done = call(
        workspace,
        *("cohort", "import", pairs, "--name", "three", *options),
        *("--errors", errors_file),
    )
    assert done.exit_code == 0, done.output


def failures_of(workspace, monkeypatch, source, answers):
    """Return the failures of a judge made from `source` that answers as told."""
    told = {f"Candidate of {name}.": answer for name, answer in answers.items()}
    tell(monkeypatch, told)
    for step in (
        ("prompt", "new", "own", "--from", source),
        ("run", "own", "--cohort", "three", "--engine", "told"),
    ):
        done = call(workspace, *step)
        assert done.exit_code == 0, done.output
    with open_store(workspace) as store:
        return find_count_failures(workspace, store, "latest").rows


def test_the_furthest_come_first_then_those_first_in_the_cohort(
    workspace, tmp_path, monkeypatch
):
    """Errors of the wrong weight are two apart; half an error decides nothing."""
    serious, slight = "significant", "insignificant"
    three(
        workspace,
        tmp_path,
        *((*row, weight) for row, weight in (
            (("c", "r1", "location"), serious), (("c", "r2", "location"), serious),
            (("c", "r1", "severity"), slight), (("c", "r2", "severity"), slight),
            (("a", "r1", "omission"), serious), (("a", "r2", ""), ""),
            (("b", "r1", "omission"), serious), (("b", "r1", "omission"), serious),
            (("b", "r2", "omission"), serious), (("b", "r2", "omission"), serious),
        )),
    )  # fmt: skip
    rows = failures_of(
        workspace,
        monkeypatch,
        "one_pass@v1",
        {
            "c": errors(("location", True), ("severity", True)),
            "a": errors(("location", True)),
            "b": errors(),
        },
    )
    assert rows == (
        CountFailure("c", "severity", (1, 0), (0, 1), 2),
        CountFailure("b", "omission", (0, 0), (2, 0), 2),
        CountFailure("a", "location", (1, 0), (0, 0), 1),
    )


def test_either_weight_is_an_error_to_a_judge_that_does_not_weigh(
    workspace, tmp_path, monkeypatch
):
    """One significant and one other error are two; one of either is one."""
    three(
        workspace,
        tmp_path,
        ("c", "r1", "location", "significant"),
        ("c", "r1", "location", "insignificant"),
        ("a", "r1", "severity", "insignificant"),
        ("b", "r1", "severity", "insignificant"),
    )
    found = {"category": "severity", "reference": "", "candidate": "", "why": "x"}
    answers = [json.dumps({"errors": one, "matched_findings": 1})
               for one in ([], [found])]  # fmt: skip
    rows = failures_of(
        workspace,
        monkeypatch,
        "two_pass_list@v1",
        {"c": answers[0], "a": answers[1], "b": answers[0]},
    )
    assert rows == (
        CountFailure("c", "location", (0, 0), (2, 0), 2),
        CountFailure("b", "severity", (0, 0), (1, 0), 1),
    )


def test_the_command_lists_them(judged):
    """As a table, CSV or JSON; what is of labels alone is refused."""
    shown = call(judged, "failures", "latest")
    assert "(all) unparsed" in shown.output
    assert "rows, in 5 of 8 pairs" in shown.output
    csv = call(judged, "failures", "latest", "--format", "csv", "-l", "severity")
    assert "p1,severity,0 + 1,0 + 0" in csv.output
    data = json.loads(call(judged, "failures", "latest", "--json").stdout)
    assert data["rows"][0]["apart"] is None
    assert data["total"] == len(data["rows"])
    for more in (("--text", "case"), ("--kind", "unparsed"), ("--order", "value")):
        refused = call(judged, "failures", "latest", *more)
        assert "the run is one of a judge" in str(refused.exception)
    unknown = call(judged, "failures", "latest", "--label", "edema")
    assert "no category of errors is called" in str(unknown.exception)


def test_without_marked_errors_nothing_is_wrong(judged, tmp_path):
    """Points are of a pair as a whole."""
    pairs = table(
        tmp_path / "bare.csv",
        ("id", "reference", "candidate"),
        [("b1", "Left effusion.", "Right effusion.")],
    )
    points = table(
        tmp_path / "points.csv",
        ("case_id", "rater", "dimension", "points", "scale"),
        [("b1", "r1", "overall", 3, "1-5")],
    )
    options = ("--role", "dev", "--source", "made up", "--licence", "none")
    done = call(
        judged,
        *("cohort", "import", pairs, "--name", "bare", *options, "--ratings", points),
    )
    assert done.exit_code == 0, done.output
    call(judged, "run", "listed", "--cohort", "bare", "--engine", "told")
    refused = call(judged, "failures", "latest:listed:bare")
    assert "nobody marked errors in cohort bare" in str(refused.exception)


def test_a_category_that_is_not_asked_for_is_refused(judged):
    """With those that are."""
    with open_store(judged) as store, pytest.raises(DataError) as refused:
        find_count_failures(judged, store, "latest", categories=["omission", "edema"])
    said = str(refused.value)
    assert said.startswith("listed@v1 is not asked for edema. Name one of false_fi")
