"""What experts say of pairs: read strictly, recorded, and sealed for holdouts."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loop.core.check_findings import FindingSeverity
from loop.core.errors import DataError, SealedError, WriteError
from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.core.paths import WorkspacePaths
from loop.labels.cohort import Cohort, read_cohort, read_record
from loop.labels.error_categories import ErrorCategories, read_errors
from loop.labels.expert_ratings import (
    ExpertRating,
    Judgements,
    MarkedError,
    PointScale,
    RatingsReport,
    RatingsTaking,
    add_ratings,
    check_judgements,
    edited_ratings,
    errors_path,
    parse_scale,
    ratings_path,
    read_ratings_of,
)
from loop.labels.holdout import (
    label_files,
    replaced_files,
    retire_holdout,
    seal_holdout,
)
from loop.labels.importing import rating_files
from loop.labels.importing.importer import ImportReport, import_cohort
from loop.labels.importing.rating_files import RatingFiles, take_rating_files
from loop.labels.importing.source import ImportOptions
from loop.labels.sealing import Opening, sealed_path, unseal, write_labels
from loop.release.audit.cohorts import check_cohorts
from loop.score.experts.radpref import read_radpref
from loop.score.experts.ratings import cohort_ratings
from tests.score.experts.radpref_folder import candidate, case, write_folder

ACTOR = Actor(name="Dr. Example")
PAIRS = [
    ["id", "reference", "candidate", "system", "reference_id"],
    ["p1", "Small effusion on the left.", "No effusion.", "one", "r1"],
    ["p2", "Small effusion on the left.", "Left effusion.", "two", "r1"],
    ["p3", "A nodule of 8 mm.", "", "one", "r2"],
]
RATINGS = """case_id,rater,dimension,points,scale
p1,A,overall,2,1-5
p2,A,overall,5,1-5
p1,B,overall,1.5,1-5
p1,A,style,0,counts
"""
ERRORS = """case_id,rater,category,significance,finding
p1,A,omission,significant,the left effusion
p1,A,b,insignificant,
p1,B,Omitted finding,Clinically significant,effusion
p2,A,,,
"""

Taker = Callable[..., object]


@pytest.fixture
def workspace(workspace: WorkspacePaths, labels_folder: Path) -> WorkspacePaths:
    """Add the categories of errors to the workspace."""
    path = workspace.labels / "errors.yaml"
    path.write_bytes((labels_folder / "errors.yaml").read_bytes())
    return workspace


@pytest.fixture
def categories(workspace: WorkspacePaths) -> ErrorCategories:
    """Return the shipped categories."""
    return read_errors(workspace.labels)


@pytest.fixture
def pairs(
    workspace: WorkspacePaths,
    take: Callable[..., ImportReport],
    write_csv: Callable[..., Path],
) -> Cohort:
    """Import three pairs of two references."""
    take(write_csv(PAIRS, "pairs.csv"), "rp")
    return read_cohort(workspace, "rp")


@pytest.fixture
def add(workspace: WorkspacePaths, tmp_path: Path) -> Taker:
    """Return a function that adds ratings and errors, given as the text of files."""

    def run(ratings: str = "", errors: str = "", **options: object) -> object:
        named: dict[str, Path | None] = {}
        for kind, text in (("ratings", ratings), ("errors", errors)):
            path = tmp_path / f"{kind}.csv"
            path.write_text(text, encoding="utf-8")
            named[kind] = path if text else None
        files = RatingFiles(**{"cohort": "rp", **named, **options})  # type: ignore[arg-type]
        return take_rating_files(workspace, files, actor=ACTOR)

    return run


_NAMES = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=20)


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    rater=_NAMES,
    points=st.floats(-1000, 1000),
    finding=st.text(min_size=1),
)
def test_whatever_was_given_comes_back(
    workspace: WorkspacePaths,
    pairs: Cohort,
    rater: str,
    points: float,
    finding: str,
) -> None:
    """Names with commas and quotes, any number, and any text of a finding."""
    said = Judgements(
        (ExpertRating("p1", rater, "style", points, PointScale(-1000, 1000)),),
        (MarkedError("p2", rater, "severity", "insignificant", finding),),
    )
    how = RatingsTaking(actor=ACTOR, replace=True)
    number = add_ratings(workspace, pairs, said, how).number
    kept = read_ratings_of(workspace, "rp", number, findings=True).given
    assert [one for one in kept.rows if one.rater == rater] == list(said.rows)


@given(
    low=st.floats(-(10**5), 0).map(lambda number: round(number, 3)),
    high=st.floats(1, 10**5).map(lambda number: round(number, 3)),
)
def test_a_scale_is_read_as_it_is_written(low: float, high: float) -> None:
    """A version that was written can be read again."""
    scale = PointScale(low, high)
    assert parse_scale(scale.words) == scale


def test_a_dimension_keeps_its_scale_from_version_to_version(
    workspace: WorkspacePaths, pairs: Cohort, add: Taker
) -> None:
    """Points of two scales cannot be compared, whoever gave them."""
    add(RATINGS)
    with pytest.raises(DataError, match="A dimension has one scale"):
        add(f"{ONE}p1,C,2,0-5\n")
    assert read_ratings_of(workspace, "rp").number == 1


def test_the_order_of_rows_makes_no_version(
    workspace: WorkspacePaths, pairs: Cohort, add: Taker
) -> None:
    """A table sorted otherwise says the same."""
    add("", ERRORS)
    head, *rows = ERRORS.splitlines()
    assert add("", "\n".join([head, *rows[::-1]])).number == 1


def test_points_and_marks_come_back_as_arrays(
    workspace: WorkspacePaths, pairs: Cohort, add: Taker, categories: ErrorCategories
) -> None:
    """Missing is NaN, looked and found nothing is 0: silence is never an answer."""
    add(RATINGS, ERRORS)
    found = read_ratings_of(workspace, "rp")
    assert found.ref == "rp:ratings1"
    assert found.dimensions == ("overall", "style")
    overall = found.points()
    assert (overall.raters, overall.scale) == (("A", "B"), (1.0, 5.0))
    nan = np.nan
    np.testing.assert_array_equal(overall.points, [[2, 1.5], [5, nan], [nan, nan]])
    assert found.points("style").scale.words == "counts"
    counts = found.counts(categories)
    assert counts.categories == categories.ids
    assert counts.counts.shape == (3, 2, len(categories.ids), 2)
    omission = counts.counts[:, :, categories.ids.index("omission")]
    np.testing.assert_array_equal(
        omission, [[[1, 1], [1, 0]], [[0, 0], [nan, nan]], [[nan, nan], [nan, nan]]]
    )
    np.testing.assert_array_equal(counts.counts[1, 0], np.zeros((7, 2)))


def test_words_of_findings_lie_in_the_private_folder_alone(
    workspace: WorkspacePaths, pairs: Cohort, add: Taker
) -> None:
    """They are clinical text, and labels/ is committed."""
    add(RATINGS, ERRORS)
    for path in workspace.labels.rglob("*"):
        assert path.is_dir() or b"the left effusion" not in path.read_bytes()
    assert b"the left effusion" not in workspace.ledger.read_bytes()
    (kept,) = (workspace.private / "findings").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert not any(one.finding for one in read_ratings_of(workspace, "rp").given.errors)
    told = read_ratings_of(workspace, "rp", findings=True).given.errors
    marked = MarkedError("p1", "A", "omission", "significant", "the left effusion")
    assert marked in told
    kept.unlink()
    away = read_ratings_of(workspace, "rp", findings=True).given.errors
    assert [one[:4] for one in away] == [one[:4] for one in told]


@pytest.mark.parametrize("file", [ratings_path, errors_path])
def test_an_edited_file_is_noticed(
    workspace: WorkspacePaths, pairs: Cohort, add: Taker, file: Callable[..., Path]
) -> None:
    """Ratings are believed only as the ledger recorded them."""
    add(RATINGS, ERRORS)
    path = file(workspace, "rp", 1)
    path.write_text(path.read_text().replace("p1,B", "p2,B"))
    assert edited_ratings(workspace, "rp") == (
        path.relative_to(workspace.root).as_posix(),
    )
    with pytest.raises(DataError, match=rf"{path.name} was edited"):
        read_ratings_of(workspace, "rp")
    with pytest.raises(DataError, match="was edited"):
        add("case_id,rater,points\np3,C,1\n", scale="1-5")


def test_edited_words_of_findings_are_noticed(
    workspace: WorkspacePaths, pairs: Cohort, add: Taker
) -> None:
    """What a clinician is shown is what was marked."""
    add("", ERRORS)
    (kept,) = (workspace.private / "findings").iterdir()
    kept.write_text(kept.read_text().replace("left", "right"))
    with pytest.raises(DataError, match="was edited"):
        read_ratings_of(workspace, "rp", findings=True)
    assert read_ratings_of(workspace, "rp").given.errors


def test_more_ratings_make_the_next_version(
    workspace: WorkspacePaths, pairs: Cohort, add: Taker
) -> None:
    """Raters who are not in the file keep theirs, and the earlier version stays."""
    add(RATINGS, ERRORS)
    report = add("case_id,rater,points\np3,C,3\n", scale="1-5")
    assert (report.number, report.raters) == (2, ("A", "B", "C"))
    assert read_ratings_of(workspace, "rp").points().raters == ("A", "B", "C")
    assert read_ratings_of(workspace, "rp", 1).points().raters == ("A", "B")
    assert len(read_ratings_of(workspace, "rp").given.errors) == 4
    told = read_ratings_of(workspace, "rp", findings=True).given.errors
    assert "the left effusion" in [one.finding for one in told]


def test_the_same_ratings_once_more_change_nothing(
    workspace: WorkspacePaths, pairs: Cohort, add: Taker
) -> None:
    """Neither a version nor an entry is made of nothing."""
    add(RATINGS, ERRORS)
    before = workspace.ledger.read_bytes()
    assert add(RATINGS, ERRORS).number == 1
    assert workspace.ledger.read_bytes() == before


def test_other_points_of_a_rater_replace_only_when_asked(
    workspace: WorkspacePaths, pairs: Cohort, add: Taker
) -> None:
    """An expert's word is not overwritten by a slip."""
    add(RATINGS)
    again = "case_id,rater,points\np1,A,4\n"
    with pytest.raises(DataError, match=r"rater 'A' already has.*--replace"):
        add(again, scale="1-5")
    assert add(again, scale="1-5", replace=True).ratings == 2


def test_the_ledger_records_digests_and_no_points(
    workspace: WorkspacePaths, pairs: Cohort, add: Taker
) -> None:
    """Under a separate action, for the cohort that it is about."""
    add(RATINGS, ERRORS)
    entry = read_ledger(workspace.ledger)[-1]
    assert (entry.action, entry.subject) == ("ratings_added", "rp:ratings1")
    assert entry.reason == "what 2 raters said"
    assert set(entry.payload) == {
        *("cohort", "cohort_digest", "number", "digest"),
        *("ratings", "errors", "findings", "findings_file"),
    }
    record = read_record(workspace, "rp")
    assert record.newest_digest == entry.payload["digest"]


def test_ratings_of_a_replaced_cohort_are_gone_with_it(
    workspace: WorkspacePaths,
    pairs: Cohort,
    add: Taker,
    take: Callable[..., ImportReport],
    write_csv: Callable[..., Path],
) -> None:
    """They are of other texts; what was marked is kept beside what was replaced."""
    add(RATINGS, ERRORS)
    (kept,) = (workspace.private / "findings").iterdir()
    take(write_csv(PAIRS, "pairs.csv"), "rp", replace=True)
    with pytest.raises(DataError, match="no experts' ratings"):
        read_ratings_of(workspace, "rp")
    assert not kept.exists()
    (away,) = (workspace.private / "replaced").glob(f"*/{kept.name}")
    assert away in replaced_files(workspace, "rp")
    add("", ERRORS)
    assert read_ratings_of(workspace, "rp").number == 1


ONE = "case_id,rater,points,scale\n"


@pytest.mark.parametrize(
    ("ratings", "errors", "problem"),
    [
        ("case_id,points\np1,2\n", "", r"ratings\.csv: no column rater"),
        (f"{ONE}p9,A,2,1-5\n", "", r"line 2: cohort 'rp' has no pair 'p9'"),
        (f"{ONE}p1,,2,1-5\n", "", "line 2: no rater"),
        (f"{ONE}p1,A,good,1-5\n", "", "line 2: the points are not a number"),
        (f"{ONE}p1,A,nan,1-5\n", "", "off the scale 1-5"),
        (f"{ONE}p1,A,6,1-5\n", "", "off the scale 1-5"),
        (f"{ONE}p1,A,2,five\n", "", "line 2: 'five' is no scale"),
        (f"{ONE}p1,A,2,\n", "", "line 2: nothing says on which scale"),
        (f"{ONE}p1,A,2,1-5\np2,A,2,0-5\n", "", "A dimension has one scale"),
        (f"{ONE}p1,A,2,1-5\np1,A,3,1-5\n", "", "rated twice in 'overall'"),
        (f"{ONE}p1,A,,1-5\n", "", "no rating and no marked error"),
        ("", "case_id,rater,category\np1,A,omission\n", "no column significance"),
        ("", f"{ERRORS}p2,B,omission,,\n", "line 6: an error has a category and a"),
        ("", f"{ERRORS}p2,B,,,effusion\n", "line 6: an error has a category and a"),
        ("", f"{ERRORS}p2,B,wrong,significant,\n", "line 6: that category is none of"),
        ("", f"{ERRORS}p2,B,omission,much,\n", "that significance is none of"),
        ("", f"{ERRORS}p1,B,,,\n", "one row says that there is no error"),
        ("", "", r"no file is named\. Give --ratings FILE, --errors FILE or both"),
        (f"{ONE},A,2,1-5\n", "", "line 2: no rater or no case id"),
        (
            f"case_id,rater,dimension,points,scale\np1,A,{'d' * 201},2,1-5\n",
            "",
            "line 2: the dimension has no short name",
        ),
        (
            "case_id,rater,dimension,points,scale\np1,A,a\tb,2,1-5\n",
            "",
            "line 2: the dimension has no short name",
        ),
        (
            "",
            f"{ERRORS}p2,B,omission,much,\n",
            r"none of significant, insignificant\. Correct it; labels/errors\.yaml",
        ),
    ],
)
def test_a_wrong_row_is_refused_and_nothing_changes(
    workspace: WorkspacePaths,
    pairs: Cohort,
    add: Taker,
    ratings: str,
    errors: str,
    problem: str,
) -> None:
    """The message names the line or the rater, and never the words of a cell."""
    before = workspace.ledger.read_bytes()
    with pytest.raises(DataError, match=problem) as refused:
        add(ratings, errors)
    for words in ("good", "wrong", "much", "effusion"):
        assert words not in str(refused.value)
    assert workspace.ledger.read_bytes() == before


def test_a_row_may_name_reference_and_system(
    workspace: WorkspacePaths, pairs: Cohort, add: Taker
) -> None:
    """As published ratings do, which know no id of a pair."""
    add("id,system,radiologist,score\nr1,two,A,4\n", scale="0-5")
    given = read_ratings_of(workspace, "rp").given.ratings
    assert [(one.case_id, one.points) for one in given] == [("p2", 4.0)]
    with pytest.raises(DataError, match="no pair 'r1'"):
        add("id,system,rater,score\nr1,three,A,4\n", scale="0-5")


def test_a_reference_with_several_candidates_of_one_system_is_refused(
    workspace: WorkspacePaths,
    take: Callable[..., ImportReport],
    write_csv: Callable[..., Path],
    add: Taker,
) -> None:
    """Which of them was rated is not known; a pair's own id still is one."""
    rows = [*PAIRS, ["p4", "Small effusion on the left.", "Clear.", "one", "r1"]]
    take(write_csv(rows, "pairs.csv"), "rp")
    with pytest.raises(DataError) as refused:
        add("id,system,rater,score\nr1,one,A,4\n", scale="0-5")
    assert str(refused.value) == (
        "ratings.csv, line 2: cohort 'rp' has no pair 'r1', and several of this "
        "reference and system. Give the id of the pair, or that of its reference and "
        "the system."
    )
    add("id,rater,score\np4,A,4\n", scale="0-5")


def test_a_table_is_read_by_its_columns_and_its_words(
    workspace: WorkspacePaths, pairs: Cohort, add: Taker
) -> None:
    """First names of columns, ids and letters alike; a scale of its own goes before."""
    long = "d" * 200
    header = "Rater,rating,Score,Case ID,SCALE,criterion\n"
    add(
        f"{header}A,1,4,p1,,{long}\nA,1,3,p2,0-5,\n",
        "reader,model,words,Error-Category,clinical significance,case\n"
        "A,,gone,B,Insignificant,p1\nA,,,,,p3\n",
        scale="1-5",
    )
    given = read_ratings_of(workspace, "rp", findings=True).given
    assert given.ratings == (
        ExpertRating("p1", "A", long, 4.0, PointScale(1, 5)),
        ExpertRating("p2", "A", "overall", 3.0, PointScale(0, 5)),
    )
    assert given.errors == (
        MarkedError("p1", "A", "omission", "insignificant", "gone"),
        MarkedError("p3", "A", "", "", ""),
    )


def test_a_finding_is_as_long_as_a_report_at_most(
    workspace: WorkspacePaths,
    pairs: Cohort,
    add: Taker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is longer is no finding, and none of its words is told."""
    monkeypatch.setattr(rating_files, "MAX_TEXT", 5)
    with pytest.raises(DataError) as refused:
        add("", f"{ERRORS.splitlines()[0]}\np1,A,b,insignificant,abcdef\n")
    assert str(refused.value) == (
        "errors.csv, line 2: the finding is no finding: it is too long."
    )
    add("", f"{ERRORS.splitlines()[0]}\np1,A,b,insignificant,abcde\n")


def test_a_cohort_of_reports_takes_no_ratings(
    workspace: WorkspacePaths,
    take: Callable[..., ImportReport],
    write_csv: Callable[..., Path],
    add: Taker,
) -> None:
    """Candidates are rated, and a single report is none."""
    take(write_csv([["id", "text"], ["p1", "Normal."]]), "rp")
    with pytest.raises(DataError, match="holds single reports"):
        add(f"{ONE}p1,A,2,1-5\n")


def _hold(workspace: WorkspacePaths, tmp_path: Path) -> None:
    path = tmp_path / "held.csv"
    path.write_text("\n".join(",".join(row) for row in PAIRS))
    options = ImportOptions(name="rp", role="holdout")
    import_cohort(workspace, path, options, actor=ACTOR)


def test_ratings_of_a_holdout_are_sealed(
    workspace: WorkspacePaths, tmp_path: Path, add: Taker
) -> None:
    """As votes are: no file in plain, no count told, and no digest to guess by."""
    _hold(workspace, tmp_path)
    report = add(RATINGS, ERRORS)
    assert (report.raters, report.ratings, report.errors) == ((), None, None)
    files = label_files(workspace, "rp")
    assert len(files) == 3
    for path in files:
        assert not path.exists()
        assert sealed_path(path).is_file()
    with pytest.raises(SealedError):
        read_ratings_of(workspace, "rp")
    with pytest.raises(SealedError):
        cohort_ratings(workspace, "rp")
    assert edited_ratings(workspace, "rp") == ()
    # The same once more must not be told from others.
    with pytest.raises(DataError, match=r"already has ratings\. Leave"):
        add(RATINGS)


def test_ratings_of_a_holdout_in_plain_are_refused_until_they_are_sealed(
    workspace: WorkspacePaths, tmp_path: Path, add: Taker
) -> None:
    """A copy that somebody brought back would let everybody read them."""
    _hold(workspace, tmp_path)
    add(RATINGS, ERRORS)
    files = label_files(workspace, "rp")
    for path in files:
        path.write_bytes(unseal(workspace, path))
    with pytest.raises(DataError, match="holds labels of a holdout in plain"):
        read_ratings_of(workspace, "rp")
    found = check_cohorts(workspace, read_ledger(workspace.ledger))
    assert sum("lies open" in one.what for one in found) == 3
    assert len(seal_holdout(workspace, "rp", ACTOR, "again").files) == 3
    assert not any(path.exists() for path in files)


def test_an_audit_tells_edited_and_missing_ratings(
    workspace: WorkspacePaths, pairs: Cohort, add: Taker
) -> None:
    """Numbers measured on them cannot be made again."""
    add(RATINGS, ERRORS)
    entries = read_ledger(workspace.ledger)

    def broken() -> list[str]:
        found = check_cohorts(workspace, entries)
        return [one.what for one in found if one.severity is FindingSeverity.BROKEN]

    assert broken() == []
    ratings_path(workspace, "rp", 1).write_text("x")
    errors_path(workspace, "rp", 1).unlink()
    assert broken() == [
        "rp:ratings1, ratings.csv: edited after it was recorded",
        "rp:ratings1, errors.csv: recorded, and gone",
    ]


def test_an_opening_for_these_ratings_opens_them(
    workspace: WorkspacePaths, tmp_path: Path, add: Taker
) -> None:
    """It is of one version of them: what is added later stays sealed."""
    _hold(workspace, tmp_path)
    add(RATINGS)
    record = read_record(workspace, "rp")
    payload = {
        "cohort": "rp",
        "cohort_digest": record.added["cohort_digest"],
        "reference_digest": record.newest_digest,
        "candidate": "c",
    }
    event = Event(action="holdout_opened", subject="rp", reason="test", payload=payload)
    append_event(workspace.ledger, event, ACTOR)
    entry = read_ledger(workspace.ledger)[-1]
    opening = Opening("rp", entry.seq, entry.hash, "c")
    assert read_ratings_of(workspace, "rp", opening=opening).points().raters == (
        "A",
        "B",
    )
    add("case_id,rater,points\np3,C,3\n", scale="1-5")
    with pytest.raises(SealedError):
        read_ratings_of(workspace, "rp", opening=opening)


def test_a_retired_holdout_opens_its_ratings(
    workspace: WorkspacePaths, tmp_path: Path, add: Taker
) -> None:
    """All of them, the words of findings too, and they are as recorded."""
    _hold(workspace, tmp_path)
    add(RATINGS, ERRORS)
    retire_holdout(workspace, "rp", ACTOR, "to learn from it")
    found = read_ratings_of(workspace, "rp", findings=True)
    assert "the left effusion" in [one.finding for one in found.given.errors]
    assert edited_ratings(workspace, "rp") == ()


def test_counts_reach_the_statistics_negated(
    workspace: WorkspacePaths, pairs: Cohort, add: Taker
) -> None:
    """Fewer errors are better, and the largest count seen ends the scale."""
    add(RATINGS + "p2,A,style,3,counts\n")
    found = cohort_ratings(workspace, "rp", "style")
    assert (found.scale, found.against) == ((-3, 0), "error counts, negated")
    assert sorted(found.scores[~np.isnan(found.scores)]) == [-3, 0]


def test_ratings_reach_the_statistics_by_reference_and_system(
    workspace: WorkspacePaths, pairs: Cohort, add: Taker
) -> None:
    """Candidates of one reference are compared with each other."""
    add(RATINGS)
    found = cohort_ratings(workspace, "rp")
    assert found.keys == (("r1", "one"), ("r1", "two"), ("r2", "one"))
    assert found.scores[0].tolist() == [2, 1.5]
    assert found.scale == (1, 5)


def test_candidates_without_a_system_are_told_apart_by_their_ids(
    workspace: WorkspacePaths,
    take: Callable[..., ImportReport],
    write_csv: Callable[..., Path],
    add: Taker,
) -> None:
    """Else two candidates of a reference would be one row."""
    rows = [[row[0], row[1], row[2], "", row[4]] for row in PAIRS[1:]]
    take(write_csv([PAIRS[0], *rows]), "rp")
    add(RATINGS)
    expected = (("r1", "p1"), ("r1", "p2"), ("r2", "p3"))
    assert cohort_ratings(workspace, "rp").keys == expected


RATED = {
    "one": {
        "C1": candidate(5),
        "C2": candidate(2, missing={0: "urgent", 1: "benign_expected"}),
    },
    "two": {
        "C1": candidate(
            1, false=["actionable_not_urgent"], attributes=[["significant"]]
        ),
    },
}


@pytest.fixture
def radpref(tmp_path: Path) -> Path:
    """Make a folder in the form of RadPref, with made-up texts."""
    cases = [case("one", 2), case("two", 3)]
    cases[0] |= {"PatientAge": "072Y", "PatientSex": "F", "Indication": "Cough."}
    cases[1]["C1_findings"] = ["a nodule", "an effusion"]
    rated = json.loads(json.dumps(RATED))
    rated["two"]["C1"]["finding_errors"]["1"]["attributes"] = {
        "location": "significant",
        "severity": "negligible",
    }
    return write_folder(tmp_path / "radpref", cases, {1: rated, 2: {}})


def test_radpref_is_a_cohort_of_rated_pairs(
    workspace: WorkspacePaths,
    radpref: Path,
    take: Callable[..., ImportReport],
    categories: ErrorCategories,
) -> None:
    """Recognised by its files; each candidate is a pair, its model the system."""
    report = take(radpref, "rp")
    assert report.format == "radpref"
    assert (report.cases, report.references) == (4, 2)
    assert report.systems == {"gpt": 2, "medgemma": 2}
    assert report.ratings is not None
    assert (report.ratings.ratings, report.ratings.errors) == (3, 4)
    cohort = read_cohort(workspace, "rp")
    assert cohort.inputs == ("reference", "candidate", "context")
    assert [(one.case_id, one.reference_id) for one in cohort.cases] == [
        ("one-C1", "one"), ("one-C2", "one"), ("two-C1", "two"), ("two-C2", "two"),
    ]  # fmt: skip
    found = read_ratings_of(workspace, "rp", findings=True)
    assert set(found.given.errors) == {
        MarkedError("one-C1", "1"),
        MarkedError("one-C2", "1", "omission", "significant", "finding 0"),
        MarkedError("one-C2", "1", "omission", "insignificant", "finding 1"),
        MarkedError("two-C1", "1", "false_finding", "significant", "a nodule"),
        MarkedError("two-C1", "1", "location", "significant", "an effusion"),
    }
    overall = found.points()
    assert overall.points[:3, 0].tolist() == [5, 2, 1]
    assert np.isnan(overall.points[3]).all()
    assert overall.raters == ("1",)
    assert np.isnan(found.counts(categories).counts[3]).all()
    context = [
        json.loads(line)["texts"]["context"]
        for line in (workspace.private / "cases" / "rp.jsonl").read_text().splitlines()
    ]
    assert context[0] == "Age: 72 years\nSex: F\nIndication: Cough."


@pytest.mark.parametrize(
    ("attributes", "category"),
    [
        ({"location": "negligible"}, "location"),
        ({"location": "significant", "severity": "significant"}, "location"),
        ({"location": "negligible", "severity": "significant"}, "severity"),
        ({"measurement": "significant"}, "severity"),
    ],
)
def test_an_attribute_error_is_of_place_or_of_severity(
    workspace: WorkspacePaths,
    tmp_path: Path,
    take: Callable[..., ImportReport],
    attributes: dict[str, str],
    category: str,
) -> None:
    """By the type of the attribute that weighs most."""
    judged = candidate(3, attributes=[[]])
    judged["finding_errors"]["0"]["attributes"] = attributes
    folder = write_folder(
        tmp_path / "r", [case("one", 1)], {1: {"one": {"C1": judged}}}
    )
    take(folder, "rp")
    (error,) = read_ratings_of(workspace, "rp").given.errors
    weight = "significant" if "significant" in attributes.values() else "insignificant"
    assert (error.category, error.significance) == (category, weight)


def test_parts_of_a_source_share_no_patient_and_lose_no_case(
    workspace: WorkspacePaths, take: Callable[..., ImportReport], tmp_path: Path
) -> None:
    """Both candidates of a case, and all cases of a patient, go together."""
    names = [f"pGRD{n % 9}_aGRD{n}_s1.{n}" for n in range(30)]
    rated = {name: {"C1": candidate(3), "C2": candidate(4)} for name in names}
    folder = write_folder(tmp_path / "r", [case(n, 1) for n in names], {1: rated})
    reports = [
        take(folder, f"part{n}", part=f"{n}/3", role=role)
        for n, role in ((1, "dev"), (2, "holdout"), (3, "external"))
    ]
    cohorts = [read_cohort(workspace, report.cohort) for report in reports]
    assert sum(len(cohort.cases) for cohort in cohorts) == 60
    patients = [{one.patient for one in cohort.cases} for cohort in cohorts]
    assert sum(map(len, patients)) == len(set.union(*patients)) == 9
    ids = [set(cohort.case_ids) for cohort in cohorts]
    given = read_ratings_of(workspace, "part1").given
    assert {one.case_id for one in given.ratings} == ids[0]
    again = take(folder, "again", part="1/3")
    assert again.digest == reports[0].digest
    entry = read_ledger(workspace.ledger)[-2]
    assert (entry.payload["part"], again.unusable) == (
        "1/3",
        {"of another part": 60 - again.cases},
    )


@pytest.mark.parametrize("part", ["3/2", "0/2", "1", "1/x", "1/9999", "-1/2"])
def test_a_part_that_is_none_is_refused(part: str) -> None:
    """The message shows how one is written."""
    with pytest.raises(DataError, match=r"is no part. Write for example 1/2"):
        ImportOptions(name="x", role="dev", part=part)


@pytest.mark.data
def test_published_ratings_are_the_same_by_either_way(
    workspace: WorkspacePaths,
    data_folder: Path,
    take: Callable[..., ImportReport],
    categories: ErrorCategories,
) -> None:
    """Imported, RadPref gives the points and the counts of errors that it has."""
    take(data_folder / "radpref", "rp")
    known, found = (
        read_radpref(data_folder / "radpref"),
        cohort_ratings(workspace, "rp"),
    )
    assert found.keys == known.ratings.keys
    np.testing.assert_array_equal(found.scores, known.ratings.scores)
    cohort = read_cohort(workspace, "rp")
    counts = read_ratings_of(workspace, "rp").counts(categories)
    order = [(one.reference_id, one.system) for one in cohort.cases]
    rows = [order.index(key) for key in known.ratings.keys]
    significant = [one.id for one in categories.significances].index("significant")
    summed = counts.counts.sum(axis=2)[rows]
    np.testing.assert_array_equal(summed[..., significant], known.counts[..., 1])
    np.testing.assert_array_equal(summed[..., 1 - significant], known.counts[..., 2])
    assert cohort.patients_known


def test_what_became_of_ratings_is_told_whole(
    workspace: WorkspacePaths, pairs: Cohort, add: Taker
) -> None:
    """Pairs with points or marks, ratings, errors without "none found", scales once."""
    assert add(RATINGS, ERRORS) == RatingsReport(
        cohort="rp",
        number=1,
        raters=("A", "B"),
        rated=2,
        ratings=4,
        errors=3,
        dimensions=("overall 1-5", "style counts"),
    )
    more = add("case_id,rater,points\np3,C,3\n", "", scale="1-5")
    assert more == RatingsReport(
        cohort="rp",
        number=2,
        raters=("A", "B", "C"),
        rated=3,
        ratings=5,
        errors=3,
        dimensions=("overall 1-5", "style counts"),
    )


def test_files_are_sorted_by_case_then_rater_whatever_the_source_is(
    workspace: WorkspacePaths, pairs: Cohort, add: Taker
) -> None:
    """So the same ratings have one digest; the words of findings stand in step."""
    head, *rows = RATINGS.splitlines()
    add("\n".join([head, *rows[::-1]]), ERRORS)
    assert ratings_path(workspace, "rp", 1).read_text("utf-8") == (
        "case_id,rater,dimension,points,scale\n"
        "p1,A,overall,2,1-5\n"
        "p1,A,style,0,counts\n"
        "p1,B,overall,1.5,1-5\n"
        "p2,A,overall,5,1-5\n"
    )
    assert errors_path(workspace, "rp", 1).read_text("utf-8") == (
        "case_id,rater,category,significance\n"
        "p1,A,omission,insignificant\n"
        "p1,A,omission,significant\n"
        "p1,B,omission,significant\n"
        "p2,A,,\n"
    )
    (kept,) = (workspace.private / "findings").iterdir()
    said = [json.loads(line) for line in kept.read_text("ascii").splitlines()]
    assert said == ["", "the left effusion", "effusion", ""]


def test_a_version_or_dimension_that_is_not_there_names_those_that_are(
    workspace: WorkspacePaths, pairs: Cohort, add: Taker, categories: ErrorCategories
) -> None:
    """And where nothing was rated, that."""
    with pytest.raises(DataError, match=r"'rp' has no experts' ratings\. Add them"):
        read_ratings_of(workspace, "rp")
    add(RATINGS)
    add("case_id,rater,points\np3,C,3\n", "", scale="1-5")
    with pytest.raises(DataError, match=r"no ratings v3 \(recorded: v1, v2\)"):
        read_ratings_of(workspace, "rp", 3)
    found = read_ratings_of(workspace, "rp", 1)
    with pytest.raises(
        DataError, match=r"no ratings of 'speed' \(rated: overall, style\)"
    ):
        found.points("speed")
    with pytest.raises(DataError, match=r"rp:ratings1 has no marked errors\. Add a"):
        found.counts(categories)
    add("", ERRORS, replace=True)
    marks = replace(found, given=Judgements((), (MarkedError("p1", "A"),)))
    with pytest.raises(DataError, match=r"\(rated: nothing\)"):
        marks.points()


def _recorded_as(
    workspace: WorkspacePaths, part: str, path: Path, content: bytes
) -> None:
    """Write a file of ratings v1, and record a version of it as if it were right."""
    path.write_bytes(content)
    made = [e for e in read_ledger(workspace.ledger) if e.action == "ratings_added"][-1]
    payload = {**made.payload, part: hashlib.sha256(content).hexdigest()}
    event = Event(
        action=made.action, subject=made.subject, reason="again", payload=payload
    )
    append_event(workspace.ledger, event, ACTOR)


@pytest.mark.parametrize(
    ("part", "content", "problem"),
    [
        ("ratings", b"\xff\n", "cannot be read as CSV"),
        ("ratings", b'case_id,"x', "cannot be read as CSV"),
        ("ratings", b"", "the columns are not case_id,rater,dimension,points,scale"),
        ("ratings", b"case_id,rater\n", "the columns are not case_id,rater,dimension"),
        ("ratings", b"p1,A,overall,2\n", "too many or too few cells"),
        ("ratings", b"p1,A,overall,two,1-5\n", "points that are no number"),
        ("ratings", b"p9,A,overall,2,1-5\n", "names cases that cohort 'rp' does not"),
        ("errors", b"p9,A,,\n" * 4, "names cases that cohort 'rp' does not have"),
        ("errors", b"p1,A,,,\n", "too many or too few cells"),
        ("findings", b'""\n', "is not of these errors"),
    ],
)
def test_a_recorded_file_that_is_no_file_of_ratings_is_refused(
    workspace: WorkspacePaths,
    pairs: Cohort,
    add: Taker,
    part: str,
    content: bytes,
    problem: str,
) -> None:
    """The message says which, and to restore it."""
    add(RATINGS, ERRORS)
    heads = {
        "ratings": b"case_id,rater,dimension,points,scale\n",
        "errors": b"case_id,rater,category,significance\n",
    }
    if content[:1] == b"p":
        content = heads[part] + content
    (kept,) = (workspace.private / "findings").iterdir()
    path = {
        "ratings": ratings_path(workspace, "rp", 1),
        "errors": errors_path(workspace, "rp", 1),
        "findings": kept,
    }[part]
    _recorded_as(workspace, part, path, content)
    with pytest.raises(DataError, match=problem) as told:
        read_ratings_of(workspace, "rp", findings=True)
    assert "Restore" in str(told.value)


def test_nothing_is_left_of_a_version_that_could_not_be_recorded(
    workspace: WorkspacePaths, pairs: Cohort, add: Taker, monkeypatch
) -> None:
    """Neither points nor words of findings lie about unrecorded."""

    def refuse(*_: object) -> None:
        raise WriteError("the ledger cannot be written")

    monkeypatch.setattr("loop.labels.expert_ratings.append_event", refuse)
    with pytest.raises(WriteError, match="the ledger"):
        add(RATINGS, ERRORS)
    assert not ratings_path(workspace, "rp", 1).exists()
    assert not errors_path(workspace, "rp", 1).exists()
    assert list((workspace.private / "findings").iterdir()) == []


def test_nothing_is_left_of_a_version_whose_last_file_could_not_be_written(
    workspace: WorkspacePaths, pairs: Cohort, add: Taker, monkeypatch
) -> None:
    """The ledger is as it was, too."""
    before = workspace.ledger.read_bytes()

    def write(workspace, path, raw, **options):
        if path.parent.name == "findings":
            raise WriteError(f"cannot write {path.name}")
        return write_labels(workspace, path, raw, **options)

    monkeypatch.setattr("loop.labels.expert_ratings.write_labels", write)
    with pytest.raises(WriteError, match="cannot write rp-"):
        add(RATINGS, ERRORS)
    assert not ratings_path(workspace, "rp", 1).exists()
    assert not errors_path(workspace, "rp", 1).exists()
    assert workspace.ledger.read_bytes() == before


@pytest.mark.parametrize("name", ["", "x" * 201, "tab\there"])
def test_a_rater_has_a_short_printable_name(
    workspace: WorkspacePaths, pairs: Cohort, categories: ErrorCategories, name: str
) -> None:
    """In ratings and in marks alike; a number is a name."""
    scale = PointScale(1, 5)
    for said in (
        Judgements((ExpertRating("p1", name, "overall", 2, scale),), ()),
        Judgements((), (MarkedError("p1", name),)),
    ):
        with pytest.raises(DataError, match="case 'p1': the name of a rater is empty"):
            check_judgements(pairs, said, categories)
    fine = Judgements((ExpertRating("p1", "7", "overall", 2, scale),), ())
    check_judgements(pairs, fine, categories)


@pytest.mark.parametrize(
    ("marks", "problem"),
    [
        ([("p1", "A", "style", "significant")], "category 'style' is none of"),
        ([("p1", "A", "omission", "")], "significance '' is none of significant, "),
        ([("p1", "A", "", "significant")], "category '' is none of false_finding, "),
        (
            [("p1", "A"), ("p1", "B", "omission", "significant")],
            "",
        ),
        (
            [("p2", "A"), ("p1", "A", "omission", "significant")],
            "",
        ),
        (
            [("p1", "A", "omission", "significant"), ("p1", "A")],
            "rater 'A', case 'p1': one row says that there is no error",
        ),
    ],
)
def test_a_mark_has_both_parts_or_none(
    pairs: Cohort, categories: ErrorCategories, marks: list, problem: str
) -> None:
    """Whoever found no error found none in that pair; another rater, or pair, may."""
    given = Judgements((), tuple(MarkedError(*one) for one in marks))
    if problem:
        with pytest.raises(DataError, match=problem):
            check_judgements(pairs, given, categories)
    else:
        check_judgements(pairs, given, categories)


def test_judgements_of_some_cases_are_taken_under_their_prefix() -> None:
    """Ids of the source are not those of the cohort; what is not in it is left out."""
    scale = PointScale(1, 5)
    given = Judgements(
        (
            ExpertRating("1", "B", "overall", 2, scale),
            ExpertRating("2", "A", "o", 1, scale),
        ),
        (MarkedError("1", "C"), MarkedError("3", "D")),
    )
    assert given.raters == ("A", "B", "C", "D")
    assert given.of(["x-1", "x-3"], "x-") == Judgements(
        (given.ratings[0]._replace(case_id="x-1"),),
        (
            given.errors[0]._replace(case_id="x-1"),
            given.errors[1]._replace(case_id="x-3"),
        ),
    )


@pytest.mark.parametrize(
    ("words", "scale"),
    [
        ("1-5", (1, 5)),
        (" 0 to 100 ", (0, 100)),
        ("-2.5\N{EN DASH}2.5", (-2.5, 2.5)),
        ("Counts", (0, np.inf)),
        ("5-1", None),
        ("3-3", None),
        ("1-1234567", None),
        ("0.1234-1", None),
        ("", None),
    ],
)
def test_a_scale_goes_from_less_to_more(words: str, scale: tuple | None) -> None:
    """Up to six digits and three decimals, which are kept exactly."""
    if scale is None:
        with pytest.raises(DataError, match=r"is no scale\. Write the least"):
            parse_scale(words)
    else:
        assert parse_scale(words) == PointScale(*scale)
