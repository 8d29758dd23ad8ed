"""Pools of shots: the synthetic one that ships, and cohorts with that role."""

import json
import shutil
from pathlib import Path

import pytest

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths, bundled
from loop.core.yaml_files import parse_yaml
from loop.labels.error_categories import read_errors
from loop.labels.language import shingles
from loop.labels.overlap import near_duplicates
from loop.labels.shot_pool import SYNTHETIC, read_pool
from tests.judge.scenes import as_pool, call, rate, table

CATEGORIES = read_errors(bundled() / "labels")


@pytest.fixture
def workspace(tmp_path, first_version):
    """Make a workspace with all that ships beside its prompts."""
    root = tmp_path.resolve() / "ws"
    return WorkspacePaths(Path(shutil.copytree(first_version.root, root)))


def test_the_synthetic_pool_has_each_category_twice_and_pairs_without_errors():
    """Significant once and insignificant once, each alone in its candidate."""
    pairs = read_pool(None, SYNTHETIC).pairs
    alone = {
        (weight, name)
        for pair in pairs
        for weight, table in pair.counts._asdict().items()
        for name, number in table.items()
        if number == 1 and sum(map(sum, map(dict.values, pair.counts))) == 1
    }
    weights = ("significant", "insignificant")
    clinical = CATEGORIES.clinical
    assert alone == {(weight, name) for weight in weights for name in clinical}
    assert sum(not any(map(any, map(dict.values, p.counts))) for p in pairs) == 2
    assert all(tuple(table) == CATEGORIES.ids for p in pairs for table in p.counts)
    assert all(0 <= p.rating <= 1 and p.explanation for p in pairs)


def test_worse_candidates_of_the_synthetic_pool_score_less():
    """No pair with a significant error scores as high as one without."""
    pairs = read_pool(None, SYNTHETIC).pairs
    wrong = [p.rating for p in pairs if any(p.counts.significant.values())]
    right = [p.rating for p in pairs if not any(p.counts.significant.values())]
    assert max(wrong) < min(right)
    assert [p.rating for p in pairs if p.candidate == p.reference] == []


def test_the_synthetic_pool_shares_no_text_with_what_else_ships():
    """Demo cohorts and the words that errors are made of stay apart from it."""
    pool = read_pool(None, SYNTHETIC).pairs
    own = {pair.id: shingles(pair.reference) for pair in pool}
    demo = [
        (f"{path.name}-{number}", shingles(str(json.loads(line).get("text", line))))
        for path in sorted((bundled() / "labels" / "demo").rglob("*.jsonl"))
        for number, line in enumerate(path.read_text("utf-8").splitlines())
    ]
    assert len(demo) > 20
    assert list(near_duplicates(own, demo)) == []
    shipped = "\n".join(
        path.read_text("utf-8")
        for path in sorted((bundled() / "labels").rglob("*"))
        if path.is_file() and path.name != "shots.yaml"
    )
    for pair in pool:
        assert pair.reference not in shipped and pair.candidate not in shipped


def test_the_synthetic_pool_needs_no_workspace_and_no_cohort_takes_its_name(workspace):
    """So that a version with these shots reads alike everywhere."""
    assert read_pool(workspace, SYNTHETIC) == read_pool(None, SYNTHETIC)
    with pytest.raises(DataError, match="no workspace here"):
        read_pool(None, "mine")


@pytest.fixture
def rated(workspace, tmp_path):
    """Make a workspace with rated pairs in the dev cohort ``rp``."""
    return rate(workspace, tmp_path)


def test_a_pool_has_what_raters_say(workspace, tmp_path):
    """Points from 0 to 1, the median of the counts, and one rater's words."""
    assert as_pool(workspace, tmp_path).exit_code == 0
    first, second, third = read_pool(workspace, "pool").pairs
    assert [first.rating, second.rating, third.rating] == [0.375, 0.0, 1.0]
    assert first.counts.significant["location"] == 1
    # The median of none and one is a half, which is rounded up.
    assert first.counts.insignificant["severity"] == 1
    assert first.assessed.insignificant["severity"] == 0
    assert (first.assessed_rating, third.assessed_rating) == (0.25, 1.0)
    assert first.explanation == "location, significant: zebra side"
    assert second.counts.significant["omission"] == 1
    assert not any(third.counts.significant.values()) and third.explanation == ""
    assert second.assessed_rating == 0.0
    assert first.reference_id == second.reference_id != third.reference_id
    assert first.patient == second.patient != third.patient


def test_a_pool_without_marks_has_no_counts(workspace, tmp_path):
    """Nobody looked, which is not that there are no errors."""
    assert as_pool(workspace, tmp_path, marks=False).exit_code == 0
    assert all(pair.counts is None for pair in read_pool(workspace, "pool").pairs)


@pytest.mark.parametrize("role", ["dev", "holdout", "external"])
def test_a_cohort_of_another_role_is_no_pool(workspace, tmp_path, role):
    """Least of all a holdout; the message has no text of it."""
    assert as_pool(workspace, tmp_path, role=role).exit_code == 0
    with pytest.raises(DataError, match=f"has the role {role}.*--role shots") as said:
        read_pool(workspace, "pool")
    assert "ebra" not in str(said.value)


def test_a_role_that_was_edited_by_hand_is_refused(workspace, tmp_path):
    """The ledger knows which role it was imported with."""
    assert as_pool(workspace, tmp_path, role="holdout").exit_code == 0
    path = workspace.cohorts / "pool" / "cohort.yaml"
    path.write_text(path.read_text().replace("role: holdout", "role: shots"))
    assert parse_yaml(path.read_text(), path)["role"] == "shots"
    with pytest.raises(DataError, match="role: is 'shots' now, but the ledger"):
        read_pool(workspace, "pool")


def test_cohort_check_holds_a_pool_apart_from_what_is_measured(rated, tmp_path):
    """A shared reference or patient is named as between any two roles."""
    assert as_pool(rated, tmp_path).exit_code == 0
    assert call(rated, "cohort", "check").exit_code == 0
    shared = table(
        tmp_path / "shared.csv",
        ("id", "reference", "candidate"),
        [("z1", "Zebra nodule on the left.", "Something else is said here.")],
    )
    made = call(
        rated,
        *("cohort", "import", shared, "--name", "ext", "--role", "external"),
        *("--source", "made up", "--licence", "none"),
    )
    assert made.exit_code == 0, made.output
    found = call(rated, "cohort", "check")
    assert found.exit_code == 1
    said = str(found.exception)
    assert "ext (external) and pool (shots) share 1 text" in said
    assert "ebra" not in said + found.output


def test_reports_are_no_pool(workspace, tmp_path):
    """Shots are pairs."""
    reports = table(tmp_path / "r.csv", ("id", "text"), [("a", "Clear lungs.")])
    options = ("--role", "shots", "--source", "made up", "--licence", "none")
    done = call(workspace, "cohort", "import", reports, "--name", "texts", *options)
    assert done.exit_code == 0, done.output
    with pytest.raises(DataError, match="holds single reports"):
        read_pool(workspace, "texts")


def test_the_file_is_where_the_wheel_takes_it(labels_folder):
    """And a workspace needs no copy of it."""
    assert (labels_folder / "shots.yaml").is_file()
    assert WorkspacePaths(bundled()).labels == labels_folder
