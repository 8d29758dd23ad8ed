"""Pools of shots: the synthetic one that ships, and cohorts with that role."""

import json
import shutil
from pathlib import Path

import pytest

from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths, bundled
from loop.core.yaml_files import dump_yaml, parse_yaml
from loop.labels import shot_pool
from loop.labels.cohort import read_cohort
from loop.labels.error_categories import read_errors
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.rating_files import RatingFiles, take_rating_files
from loop.labels.importing.source import ImportOptions
from loop.labels.language import shingles
from loop.labels.overlap import near_duplicates
from loop.labels.shot_pool import SYNTHETIC, MarkedCounts, PoolPair, read_pool
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


PAIRS = [
    ("p1", "Left effusion of 8 mm.", "Clear.", "r1", "P1"),
    ("p2", "Left effusion of 8 mm.", "Right effusion.", "r1", "P1"),
    ("p3", "Normal heart.", "Normal heart size.", "", ""),
]
RATINGS = [
    *(("p1", "A", "2", "1-5"), ("p1", "B", "3", "1-5"), ("p1", "C", "5", "1-5")),
    ("p2", "B", "4", "1-5"),
]
ERRORS = [
    ("p1", "A", "omission", "significant", "left effusion"),
    ("p1", "A", "location", "insignificant", ""),
    ("p1", "A", "severity", "significant", "its size"),
    ("p1", "B", "", "", ""),
    ("p1", "C", "omission", "significant", "the effusion"),
    ("p1", "C", "omission", "significant", "8 mm"),
    ("p2", "B", "location", "significant", "right"),
    ("p2", "C", "", "", ""),
    ("p3", "A", "", "", ""),
]


def pool_of(workspace, tmp_path, ratings=(), errors=(), language="fr"):
    """Import the pairs as a pool, with what raters say of them, and return both."""
    header = ("id", "reference", "candidate", "reference_id", "patient")
    options = ImportOptions(name="mine", role="shots", language=language)
    actor = Actor(name="Dr A")
    import_cohort(
        workspace, table(tmp_path / "p.csv", header, PAIRS), options, actor=actor
    )
    columns = {
        "ratings": ("case_id", "rater", "points", "scale"),
        "errors": ("case_id", "rater", "category", "significance", "finding"),
    }
    files = {
        name: table(tmp_path / f"{name}.csv", columns[name], rows)
        for name, rows in (("ratings", ratings), ("errors", errors))
        if rows
    }
    if files:
        take_rating_files(workspace, RatingFiles("mine", **files), actor=actor)
    return read_pool(workspace, "mine"), read_cohort(workspace, "mine")


def counts(significant=(), insignificant=()):
    """Return counts with 0 for every category that is not named."""
    none = dict.fromkeys(CATEGORIES.ids, 0)
    return MarkedCounts(none | dict(significant), none | dict(insignificant))


def test_a_pair_is_told_with_all_that_raters_say_of_it(workspace, tmp_path):
    """Means, medians with a half rounded up, and the first who looked, by name."""
    pool, cohort = pool_of(workspace, tmp_path, RATINGS, ERRORS)
    assert (pool.name, pool.digest, pool.language) == ("mine", cohort.digest, "fr")
    assert pool.pseudonym_key == cohort.pseudonym_key != ""
    assert not pool.shipped and read_pool(None, SYNTHETIC).shipped
    first, second, third = pool.pairs
    assert first == PoolPair(
        id="p1",
        reference="Left effusion of 8 mm.",
        candidate="Clear.",
        reference_id="r1",
        patient=cohort.cases[0].patient,
        # A quarter, two quarters and four quarters.
        rating=0.583333,
        counts=counts({"omission": 1}),
        assessed=counts({"omission": 1, "severity": 1}, {"location": 1}),
        assessed_rating=0.25,
        explanation="omission, significant: left effusion\n"
        "severity, significant: its size",
    )
    assert second == PoolPair(
        id="p2",
        reference="Left effusion of 8 mm.",
        candidate="Right effusion.",
        reference_id="r1",
        patient=first.patient,
        rating=0.75,
        counts=counts({"location": 1}),
        assessed=counts({"location": 1}),
        assessed_rating=0.75,
        explanation="location, significant: right",
    )
    assert third == PoolPair(
        id="p3",
        reference="Normal heart.",
        candidate="Normal heart size.",
        reference_id=cohort.cases[2].reference_id,
        counts=counts(),
        assessed=counts(),
    )
    assert first.patient and third.reference_id


@pytest.mark.parametrize(
    ("ratings", "rated"),
    [
        ((), [None, None, None]),
        (RATINGS[:1], [0.25, None, None]),
        # Of a scale without an end there are no shares.
        ([("p1", "A", "2", "counts")], [None, None, None]),
    ],
)
def test_what_nobody_rated_has_no_rating(workspace, tmp_path, ratings, rated):
    """Nor does who looked for errors alone have any points."""
    pool, _ = pool_of(workspace, tmp_path, ratings, ERRORS[:1])
    assert [one.rating for one in pool.pairs] == rated
    assert [one.assessed_rating for one in pool.pairs] == rated
    assert [one.counts is None for one in pool.pairs] == [False, True, True]


def test_pairs_that_nobody_assessed_are_a_pool_too(workspace, tmp_path):
    """Without anything to show beside them."""
    pool, cohort = pool_of(workspace, tmp_path)
    assert pool.pairs == tuple(
        PoolPair(
            id=name,
            reference=reference,
            candidate=candidate,
            reference_id=of or case.reference_id,
            patient=case.patient,
        )
        for (name, reference, candidate, of, _), case in zip(
            PAIRS, cohort.cases, strict=True
        )
    )


SHIPPED = {
    "version": 1,
    "source": "made up",
    "language": "de",
    "pairs": [
        {
            "id": "one",
            "reference": " Klar. ",
            "candidate": "Erguss.",
            "significant": {"false_finding": 2},
            "insignificant": {"wording": 1},
            "score": 0.5,
            "explanation": "Erfunden.",
        }
    ],
}


@pytest.fixture
def ship(tmp_path, monkeypatch):
    """Return a function that lets a file of pairs ship."""
    folder = tmp_path / "shipped" / "labels"
    folder.mkdir(parents=True)
    shutil.copy(bundled() / "labels" / "errors.yaml", folder)
    monkeypatch.setattr(shot_pool, "bundled", lambda: folder.parent)

    def write(pairs):
        text = dump_yaml(SHIPPED | {"pairs": pairs})
        (folder / "shots.yaml").write_text(text, "utf-8")

    return write


def test_what_ships_is_told_as_it_is_written(ship):
    """Its author is its one rater; categories that are not named have none."""
    ship(SHIPPED["pairs"])
    pool = read_pool(None, SYNTHETIC)
    told = counts({"false_finding": 2}, {"wording": 1})
    assert pool.pairs == (
        PoolPair(
            id="one",
            reference="Klar.",
            candidate="Erguss.",
            reference_id="one",
            counts=told,
            rating=0.5,
            assessed=told,
            assessed_rating=0.5,
            explanation="Erfunden.",
        ),
    )
    assert (pool.name, pool.language, pool.pseudonym_key) == (SYNTHETIC, "de", "")
    ship([SHIPPED["pairs"][0] | {"score": 0.25}])
    assert read_pool(None, SYNTHETIC).digest != pool.digest


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        (lambda one: [one, one], "a pair is listed twice. Give each its own id."),
        (
            lambda one: [one | {"significant": {"miss": 1, "error": 1}}],
            r"one: errors\.yaml has no category error, miss\. Correct it\.",
        ),
        (lambda one: [one | {"insignificant": {"miss": 1}}], "no category miss"),
        (lambda one: [one | {"significant": {"omission": 0}}], "significant"),
        (lambda one: [one | {"score": 1.5}], "score"),
        (lambda one: [one | {"id": "One"}], "id"),
        (lambda one: [], "pairs"),
    ],
)
def test_a_file_of_pairs_that_is_wrong_is_refused(ship, pairs, said):
    """It is edited by hand before it ships."""
    ship(pairs(SHIPPED["pairs"][0]))
    with pytest.raises(DataError, match=said):
        read_pool(None, SYNTHETIC)
