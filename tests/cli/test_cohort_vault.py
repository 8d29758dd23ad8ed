"""The verbs that seal a holdout and give it up, and what is shown of one."""

import json

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.labels.reference import reference_path
from loop.labels.sealing import sealed_path, unseal, vault_key
from tests.review.scenes import add_cohort

ROWS = [("h1", "An effusion.", 1, 0), ("h2", "Nothing.", 0, 0)]


@pytest.fixture
def call(workspace, tmp_path):
    """Return a function that runs a command line on a workspace with a holdout."""
    add_cohort(workspace, tmp_path, ROWS, name="held", role="holdout")

    def run(*words):
        line = ["cohort", *words, "--workspace", str(workspace.root)]
        return CliRunner().invoke(app, line)

    return run


def lay_open(workspace):
    """Put the reference back as an earlier ranloop left it."""
    path = reference_path(workspace, "held", 1)
    path.write_bytes(unseal(workspace, path))
    sealed_path(path).unlink()


def test_a_sealed_holdout_shows_that_it_is_and_no_mark(call):
    """Role, cases and digests, and nothing that is counted in labels."""
    shown = json.loads(call("show", "held", "--json").stdout)
    assert (shown["sealed"], shown["key_here"], shown["marks"]) == (True, True, {})
    assert (shown["references"], len(shown["reference_digest"])) == ([1], 64)
    assert "present" not in call("show", "held").stdout


def test_a_holdout_whose_key_is_elsewhere_is_shown_all_the_same(call, workspace):
    """Cohorts travel without the private folder."""
    vault_key(workspace).unlink()
    shown = json.loads(call("show", "held", "--json").stdout)
    assert (shown["sealed"], shown["key_here"]) == (True, False)


def test_labels_in_plain_are_named_and_sealed(call, workspace):
    """What to do, and what is left to do by hand."""
    lay_open(workspace)
    assert "reference/v1.csv" in call("show", "held").stdout
    said = call("seal", "held", "--why", "a new ranloop").stdout
    assert "1 file sealed" in said
    assert "\n  labels/cohorts/held/reference/v1.csv\n" in said
    assert "version control" in said
    assert "backup of .ranloop/keys/vault.key" in said
    assert "nothing was changed" in call("seal", "held", "--why", "again").stdout


def test_a_retired_holdout_shows_its_marks(call):
    """It is a cohort like any other now."""
    data = json.loads(call("retire", "held", "--why", "used up", "--json").stdout)
    assert data["files"] == ["labels/cohorts/held/reference/v1.csv"]
    assert (data["role"], data["openings"]) == ("dev", 0)
    shown = json.loads(call("show", "held", "--json").stdout)
    assert shown["marks"]["pleural_effusion"] == {"present": 1, "absent": 1}
    assert isinstance(call("retire", "held", "--why", "again").exception, Exception)


def test_what_lies_in_plain_after_retiring_is_named(call):
    """Whoever gives a holdout up sees what it lays open, and how often it was used."""
    said = call("retire", "held", "--why", "used up").stdout
    assert "opened 0 times before" in said
    assert "\n  labels/cohorts/held/reference/v1.csv lies in plain\n" in said


def test_votes_on_a_holdout_say_who_and_how_many(call, tmp_path):
    """And not what."""
    votes = tmp_path / "votes.csv"
    votes.write_text("reader,case_id,label,value\nA,h1,edema,uncertain\n")
    for words in (("--dry-run",), ()):
        said = call("votes", "held", str(votes), *words).stdout
        assert "1 vote" in said
        assert "the labels of a holdout are not shown" in said
        assert "uncertain" not in said
