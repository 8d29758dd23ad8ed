"""Where a judge counts other errors than the readers, furthest first."""

import json

import pytest

from loop.core.errors import DataError
from loop.judge.count_failures import find_count_failures
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
    listed = {(one.case_id, one.category): one for one in found.rows}
    assert found.rows[0].case_id == "p2" and found.rows[0].problem == "unparsed"
    assert listed["p1", "severity"].judge == (0, 1)
    assert listed["p1", "severity"].readers == (0, 0)
    assert listed["p3", "false_finding"].judge == (0, 0)
    assert listed["p3", "false_finding"].readers == (1, 0)
    assert ("p1", "location") not in listed and ("p0", "location") not in listed
    assert len(found.cases) == 8 and found.ratings == "rp:ratings1"


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
    with open_store(judged) as store, pytest.raises(DataError, match="is not asked"):
        find_count_failures(judged, store, "latest", categories=["edema"])
