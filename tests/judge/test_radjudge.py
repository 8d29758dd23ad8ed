"""RadJudge: which rankings scores reproduce, and which files are no RadJudge."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from loop import __version__
from loop.cli.main import app
from loop.core.errors import DataError
from loop.judge.discrimination import PairScores
from loop.judge.radjudge import (
    MOST_BYTES,
    RankingOutcome,
    grade_rankings,
    read_radjudge,
)
from loop.judge.radjudge_text import (
    category_rows,
    failed_rows,
    radjudge_conventions,
    radjudge_notes,
    total_rows,
)
from loop.judge.radjudge_text import radjudge_data as result_data
from loop.stats.intervals import clopper_pearson
from tests.judge.radjudge_file import radjudge_data, ranking, write_radjudge
from tests.judge.scenes import errors, tell

PASSED, TOLERATED, FAILED, UNSCORED, NOT_APPLICABLE = RankingOutcome


@pytest.fixture(autouse=True)
def away(tmp_path, monkeypatch):
    """Stand where there is no workspace, and no store of answers."""
    monkeypatch.chdir(tmp_path)


def one(expected, *candidates, **context):
    """Return a file's data with one test."""
    test = ranking("t", "Effusion.", expected, *candidates, **context)
    return [{"category": "x", "tests": [test]}]


def graded(tmp_path, expected, values, **options):
    """Return how scores of as many candidates end in one test."""
    texts = [f"text {place}" for place in range(len(values))]
    given = read_radjudge(write_radjudge(tmp_path / "r.json", one(expected, *texts)))
    lower = options.pop("lower", False)
    scores = PairScores(
        name="m", title="M", lower=lower, values=np.array(values), signature="m"
    )
    return grade_rankings(given, scores, **options)


def test_what_was_scored_without_context_is_named_where_tests_need_it(tmp_path):
    """And nothing is said where none does."""
    notes = []
    for context in ({}, {"C1": {"age": "80"}}):
        path = write_radjudge(tmp_path / "r.json", one("C1 > C2", "a", "b", **context))
        given = read_radjudge(path)
        scores = PairScores(
            name="m", title="M", lower=False, values=np.array([1, 0]), signature="m"
        )
        notes.append(" ".join(radjudge_notes(given, [grade_rankings(given, scores)])))
    assert "depend on the patient" not in notes[0]
    assert "Tests that depend on the patient (1) are not applicable to M:" in notes[1]


@pytest.mark.parametrize(
    ("expected", "values", "outcome"),
    [
        ("C1 > C2", [0.9, 0.1], PASSED),
        ("C1 > C2", [0.1, 0.9], FAILED),
        ("C1 > C2", [0.5, 0.5], FAILED),
        # What must be better is not passed by a tolerance.
        ("C1 > C2", [0.49, 0.5], FAILED),
        ("C1 > C2", [0.51, 0.5], PASSED),
        # The same fraction, computed in another order, is not better.
        ("C1 > C2", [0.1 + 0.2, 0.3], FAILED),
        ("C1 > C2", [0.3 + 1e-11, 0.3], PASSED),
        ("C1 = C2", [0.5, 0.5], PASSED),
        ("C1 = C2", [0.3, 0.1 + 0.2], PASSED),
        ("C1 = C2", [0.5, 0.55], TOLERATED),
        ("C1 = C2", [0.5, 0.56], FAILED),
        (["C1 > C2", "C2 = C3"], [0.9, 0.5, 0.5], PASSED),
        (["C1 > C2", "C2 = C3"], [0.9, 0.5, 0.52], TOLERATED),
        # What follows must hold, too: C1 is better than C3, and C1 is as good as C3.
        (["C1 > C2", "C2 = C3"], [0.52, 0.5, 0.54], FAILED),
        ("C1 = C2 > C3", [0.5, 0.54, 0.52], FAILED),
        ("C1 = C2 = C3", [0.5, 0.54, 0.58], FAILED),
        ("C1 = C2 = C3", [0.5, 0.54, 0.55], TOLERATED),
        ("C1 > C2 > C3", [0.9, 0.5, 0.1], PASSED),
        ("C1 > C2 > C3", [0.9, 0.1, 0.5], FAILED),
        ("C1 > C2", [np.nan, 0.5], UNSCORED),
        ("C1 = C2", [0.5, np.nan], UNSCORED),
    ],
)
def test_a_ranking_is_reproduced_or_not(tmp_path, expected, values, outcome):
    """By every order in it; without a score there is neither right nor wrong."""
    assert graded(tmp_path, expected, values).outcomes == (outcome,)


def test_fewer_errors_are_better_where_lower_is(tmp_path):
    """A count of errors ranks the other way round."""
    assert graded(tmp_path, "C1 > C2", [0.0, 2.0], lower=True).outcomes == (PASSED,)
    assert graded(tmp_path, "C1 > C2", [2.0, 0.0], lower=True).outcomes == (FAILED,)


def test_a_tolerance_is_in_the_units_of_the_score(tmp_path):
    """And none at all makes both readings the same."""
    found = graded(tmp_path, "C1 = C2", [1.0, 3.0], tolerance=2.0)
    assert found.outcomes == (TOLERATED,)
    assert graded(tmp_path, "C1 = C2", [1.0, 1.01], tolerance=0.0).outcomes == (FAILED,)
    for wrong in (-1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="tolerance must be 0 or more"):
            graded(tmp_path, "C1 = C2", [1.0, 3.0], tolerance=wrong)


def test_a_candidate_that_no_ranking_names_needs_no_score(tmp_path):
    """What is said of the others stands without it."""
    assert graded(tmp_path, "C1 > C2", [1.0, 0.0, np.nan]).outcomes == (PASSED,)
    assert graded(tmp_path, "C2 = C3", [np.nan, 1.0, 1.0]).outcomes == (PASSED,)


def test_scores_are_one_for_each_candidate(tmp_path):
    """One more or one fewer would shift them to other candidates."""
    given = read_radjudge(write_radjudge(tmp_path / "r.json", one("C1 > C2", "a", "b")))
    for size in (1, 3):
        scores = PairScores(
            name="m", title="M", lower=False, values=np.ones(size), signature="m"
        )
        with pytest.raises(ValueError, match="one score for each of 2 candidates"):
            grade_rankings(given, scores)


def test_what_is_without_a_score_is_in_no_share(tmp_path):
    """Of passed, tolerated, failed and unscored tests three are decided."""
    tests = [
        ranking(name, "Effusion.", "C1 = C2", "a", "b")
        for name in ("pass", "near", "fail", "none")
    ]
    data = [{"category": "x", "tests": tests}]
    given = read_radjudge(write_radjudge(tmp_path / "r.json", data))
    values = np.array([1, 1, 1, 0.97, 1, 0, 1, np.nan])
    scores = PairScores(name="m", title="M", lower=False, values=values, signature="m")
    total = grade_rankings(given, scores).total
    assert (total.strict.passed, total.strict.tests) == (1, 3)
    assert (total.tolerant.passed, total.tolerant.tests) == (2, 3)
    assert (total.unscored, total.not_applicable) == (1, 0)


def test_tests_of_the_patient_are_not_applicable_without_the_patient(tmp_path):
    """They are in no count, and a metric that was told of the patient takes them."""
    given = read_radjudge(write_radjudge(tmp_path / "r.json"))
    places = {key: place for place, key in enumerate(given.keys)}
    values = np.zeros(len(places))
    values[places["2a", "C1"]] = 1
    scores = PairScores(name="m", title="M", lower=False, values=values, signature="m")
    blind = grade_rankings(given, scores)
    (context,) = [
        one for one in blind.categories if one.category == "Patient context sensitivity"
    ]
    assert (context.not_applicable, context.strict.tests) == (3, 0)
    assert context.strict.value is None and context.strict.limits == (0, 1)
    told = grade_rankings(given, scores, with_context=True)
    ends = dict(zip([one.id for one in given.tests], told.outcomes, strict=True))
    assert [ends[name] for name in ("2a", "2b", "2c")] == [PASSED, FAILED, PASSED]
    assert told.total.strict.tests == 30


def test_limits_are_those_of_clopper_and_pearson(tmp_path):
    """27 of 30: the exact limits of tables, 0.735 to 0.979."""
    given = read_radjudge(write_radjudge(tmp_path / "r.json"))
    values = []
    for number, test in enumerate(given.tests):
        flat = all(one.tied for one in test.orders)
        # Each candidate worse than the one before; three tests are wrong.
        falling = -np.arange(len(test.candidates), dtype=float)
        right = falling * 0 if flat else falling
        values += list(right if number >= 3 else np.flip(falling))
    scores = PairScores(
        name="m", title="M", lower=False, values=np.array(values), signature="m"
    )
    total = grade_rankings(given, scores, with_context=True).total
    assert (total.strict.passed, total.strict.tests) == (27, 30)
    assert total.strict.limits == pytest.approx((0.7347, 0.9789), abs=5e-5)


def test_the_form_of_the_published_file_is_read(tmp_path):
    """Ten categories of three tests; rankings as one string or as a list."""
    given = read_radjudge(write_radjudge(tmp_path / "r.json"))
    assert given.as_published and len(given.tests) == 30
    assert sum(one.needs_context for one in given.tests) == 3
    chain = next(one for one in given.tests if one.id == "9a")
    assert [one[:2] for one in chain.orders] == [("C1", "C2"), ("C2", "C3")]
    data = radjudge_data()
    uneven = [*data[:-1], {**data[-1], "tests": data[-1]["tests"][:2]}]
    for other in (data[:1], data[:-1], uneven):
        fewer = read_radjudge(write_radjudge(tmp_path / "f.json", other))
        assert not fewer.as_published


def test_a_context_that_says_nothing_is_none(tmp_path):
    """A null or blank field is told to no judge, and makes no test of the patient."""
    data = one("C1 > C2", "a", "b")
    first, second = data[0]["tests"][0]["candidates"].values()
    first["context"] = {"age": None, "indication": " "}
    (test,) = read_radjudge(write_radjudge(tmp_path / "r.json", data)).tests
    assert not test.needs_context
    second["context"] = {"age": 0, "indication": None}
    (test,) = read_radjudge(write_radjudge(tmp_path / "r.json", data)).tests
    assert test.contexts == {"C2": "age: 0"}


def test_an_order_that_is_repeated_is_kept_once(tmp_path):
    """Whichever side comes first."""
    data = one(["C1 = C2", "C2 = C1", "C1 = C2"], "a", "b")
    (test,) = read_radjudge(write_radjudge(tmp_path / "r.json", data)).tests
    assert len(test.orders) == 1


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (one("C1 > C9", "a", "b"), "test 't': a ranking names 'C9', and its cand"),
        (one("C1 C2", "a", "b"), "test 't': a ranking does not compare"),
        (one("C1 >", "a", "b"), "test 't': a ranking does not compare"),
        (one("C1 > C2 > C1", "a", "b"), "test 't': its rankings contradict"),
        (one("C1 > C1", "a", "b"), "test 't': a ranking compares 'C1' with itself"),
        (one("C2 = C2", "a", "b"), "test 't': a ranking compares 'C2' with itself"),
        (one(["C1 > C2", "C2 = C1"], "a", "b"), "test 't': its rankings contradict"),
        (
            one(["C1 = C2", "C2 > C3", "C3 > C1"], "a", "b", "c"),
            "test 't': its rankings contradict",
        ),
        (one([], "a", "b"), "category 1: field tests.0.expected_ranking"),
        (one("C1 > C2", "a"), "category 1: field tests.0.candidates"),
        (one("C1 > C2", "a", " "), "category 1: field tests.0.candidates.C2.text"),
        ([*radjudge_data(), *one("C1 > C2", "a", "b")] * 2, "appears twice"),
        (
            [*one("C1 > C2", "a", "b"), {**one("C1 > C2", "a", "b")[0], "category": 0}],
            "category 2: field category",
        ),
        (
            [
                *one("C1 > C2", "a", "b"),
                {**one("C1 > C2", "a", "b")[0], "category": "y"},
            ],
            "test 't' appears twice",
        ),
        ({"tests": []}, "a list of categories is needed"),
        ([], "a list of categories is needed"),
        (["text"], "category 1: field"),
    ],
)
def test_what_is_no_radjudge_is_refused_with_its_place(tmp_path, data, words):
    """Names and places, and never a text."""
    path = write_radjudge(tmp_path / "r.json", data)
    with pytest.raises(DataError, match=words.replace("(", r"\(")) as caught:
        read_radjudge(path)
    assert "Effusion" not in str(caught.value)


def test_a_candidate_that_stands_twice_is_refused(tmp_path):
    """A JSON reader would keep the last one in silence."""
    path = tmp_path / "r.json"
    path.write_text(
        '[{"category": "x", "tests": [{"id": "t", "ground_truth": "a", "candidates": '
        '{"C1": {"text": "a"}, "C1": {"text": "b"}, "C2": {"text": "c"}}, '
        '"expected_ranking": "C1 > C2"}]}]'
    )
    with pytest.raises(DataError, match="a name appears twice in one object"):
        read_radjudge(path)


@pytest.mark.parametrize(
    "raw", [b"\xff\xfe\xff", b"{", b"[" * 100_000, b'[{"category": NaN}]']
)
def test_what_is_no_json_is_refused(tmp_path, raw):
    """Without a crash, however deep."""
    path = tmp_path / "r.json"
    path.write_bytes(raw)
    with pytest.raises(DataError, match=r"r\.json"):
        read_radjudge(path)


def test_a_file_of_40_mb_is_not_read(tmp_path):
    """Of a reader of some kilobytes nobody expects that."""
    path = tmp_path / "r.json"
    with path.open("wb") as stream:
        stream.truncate(40 * 10**6)
    with pytest.raises(DataError, match="larger than 8 MiB"):
        read_radjudge(path)
    assert MOST_BYTES == 8 * 2**20
    text = json.dumps(one("C1 > C2", "a", "b"))
    path.write_text(text.ljust(MOST_BYTES), "utf-8")
    assert len(read_radjudge(path).tests) == 1
    path.write_text(text.ljust(MOST_BYTES + 1), "utf-8")
    with pytest.raises(DataError, match="larger than 8 MiB"):
        read_radjudge(path)
    with pytest.raises(DataError, match="cannot read"):
        read_radjudge(tmp_path / "none.json")


def test_ten_thousand_candidates_in_a_ring_end_at_once(tmp_path):
    """A check of rankings that recursed would break."""
    names = [f"C{number}" for number in range(1, 10_001)]
    texts = ["a"] * len(names)
    write_radjudge(tmp_path / "r.json", one(" > ".join(names), *texts))
    assert len(read_radjudge(tmp_path / "r.json").keys) == 10_000
    write_radjudge(tmp_path / "r.json", one(" > ".join([*names, "C1"]), *texts))
    with pytest.raises(DataError, match="contradict each other"):
        read_radjudge(tmp_path / "r.json")
    write_radjudge(tmp_path / "r.json", one(" = ".join(names), *texts))
    assert read_radjudge(tmp_path / "r.json").tests[0].ties


def call(*arguments):
    """Run ``meta-eval``."""
    return CliRunner().invoke(app, ["meta-eval", *map(str, arguments)])


def test_judges_and_metrics_are_held_against_it(tmp_path):
    """By the names that `dr` takes; ROUGE-L prefers a swapped side to a paraphrase."""
    path = write_radjudge(tmp_path / "r.json")
    page = tmp_path / "r.md"
    done = call("--radjudge", path, "-m", "green", "-m", "rouge_l", "--md", page)
    assert done.exit_code == 0, done.output
    assert "30 tests in 10 categories of r.json, tolerance 0.05" in done.stdout
    assert "GREEN of green@v1" in page.read_text()
    named = ("-m", "green", "-m", "rouge_l", "-m", "crimson")
    told = call("--radjudge", path, *named, "--json")
    green, rouge, crimson = json.loads(told.stdout)["metrics"]
    assert green["strict"]["tests"] == 27 and green["not_applicable"] == 3
    # It is told of the patient, so these tests are for it, too.
    assert crimson["strict"]["tests"] == 30 and crimson["not_applicable"] == 0
    by_category = {one["category"]: one["strict"] for one in rouge["by_category"]}
    assert by_category["Paraphrase robustness"]["passed"] == 0
    assert by_category["Location errors"]["passed"] == 3
    assert green["strict"]["passed"] > rouge["strict"]["passed"]
    for text in ("pleural", "Cardiomegaly"):
        assert text not in told.stdout + page.read_text() + done.stdout


def test_a_judge_without_readable_answers_passes_nothing(tmp_path, monkeypatch):
    """All tests are without a score: none passed, none failed."""
    tell(monkeypatch, dict.fromkeys(_texts(), "I cannot say."))
    path = write_radjudge(tmp_path / "r.json")
    done = call("--radjudge", path, "-m", "one_pass", "-e", "told", "--json")
    assert done.exit_code == 0, done.output
    (green,) = json.loads(done.stdout)["metrics"]
    assert green["without_a_score"] == 27
    assert green["strict"] == {
        "passed": 0,
        "tests": 0,
        "share": None,
        "low": 0,
        "high": 1,
    }


def _texts():
    return [
        candidate["text"]
        for category in radjudge_data()
        for test in category["tests"]
        for candidate in test["candidates"].values()
    ]


def test_a_judge_that_praises_everything_passes_ties_only(tmp_path, monkeypatch):
    """Which the note says: few different scores pass these easily."""
    tell(monkeypatch, dict.fromkeys(_texts(), errors()))
    path = write_radjudge(tmp_path / "r.json")
    done = call("--radjudge", path, "-m", "one_pass", "-e", "told", "--json")
    (green,) = json.loads(done.stdout)["metrics"]
    given = read_radjudge(path)
    equal = [one.id for one in given.tests if one.ties and not one.needs_context]
    passed = [name for name, end in green["outcomes"].items() if end == "passed"]
    assert passed == equal


def test_scores_of_ones_own_are_joined_by_test_and_candidate(tmp_path):
    """With context where that is said; a column that is not there is refused."""
    path = write_radjudge(tmp_path / "r.json")
    given = read_radjudge(path)
    rows = [f"{test},{name},{-int(name[1:])}" for test, name in given.keys]
    table = tmp_path / "mine.csv"
    table.write_text("\n".join(["id,system,mine", *rows]))
    told = json.loads(
        call("--radjudge", path, table, "--with-context", "mine", "--json").stdout
    )
    (mine,) = told["metrics"]
    assert mine["with_context"] and mine["not_applicable"] == 0
    assert mine["strict"]["passed"] == sum(not one.ties for one in given.tests)
    wrong = call("--radjudge", path, table, "--with-context", "other")
    assert "'other', which is not measured here" in str(wrong.exception)
    table.write_text("id,system,mine\nz,C1,1\n")
    assert "no row of mine.csv belongs to a test" in str(
        call("--radjudge", path, table).exception
    )


@pytest.mark.parametrize(
    "more",
    [
        (),
        ("-m", "green", "--radpref", "x"),
        ("-m", "green", "--errors", "x"),
        ("-m", "green", "--html", "x"),
        # Nobody but ranloop says what a judge that it asks was told.
        ("-m", "green", "--with-context", "green"),
        ("-m", "rouge_l", "--lower", "rouge_l"),
        ("mine.csv", "-e", "rules"),
    ],
)
def test_what_does_not_belong_to_it_is_refused(tmp_path, more):
    """An option that did nothing would be believed to do something."""
    path = write_radjudge(tmp_path / "r.json")
    assert call("--radjudge", path, *more).exit_code == 2


def test_its_options_are_refused_without_it():
    """They would have no effect."""
    for option in (("--tolerance", "0.1"), ("--with-context", "a")):
        assert call("--ratings", "x", "s.csv", *option).exit_code == 2


def test_a_row_shows_strict_and_tolerant_side_by_side(tmp_path):
    """And the JSON has each outcome by the test's id."""
    found = graded(tmp_path, "C1 = C2", [0.5, 0.53])
    ((_, strict, _, tolerant, *_),) = total_rows([found])
    assert (strict, tolerant) == ("0 of 1", "1 of 1")
    given = read_radjudge(tmp_path / "r.json")
    data = result_data(given, [found], tolerance=0.05)
    assert data["metrics"][0]["outcomes"] == {"t": "passed with tolerance"}


@pytest.fixture
def two_metrics(tmp_path):
    """Return a file of five tests in three categories, and how two metrics end."""
    tests = [
        ("ties", "near", "C1 = C2", {}),
        ("ties", "same", "C1 = C2", {}),
        ("order", "good", "C1 > C2", {}),
        ("order", "lost", "C1 > C2", {}),
        ("patient", "old", "C1 > C2", {"C1": {"age": "80"}}),
    ]
    data = [
        {
            "category": category,
            "tests": [
                ranking(name, "Effusion.", order, "a", "b", **context)
                for each, name, order, context in tests
                if each == category
            ],
        }
        for category in ("ties", "order", "patient")
    ]
    given = read_radjudge(write_radjudge(tmp_path / "r.json", data))
    values = {
        "m": [1, 0.97, 1, 1, 1, 0, 1, np.nan, 1, 0],
        "n": [1, 0, 1, 1, 2, 1, 1, 2, 2, 1],
    }
    found = [
        grade_rankings(
            given,
            PairScores(
                name=name,
                title=name.upper(),
                lower=name == "n",
                values=np.array(numbers, dtype=float),
                signature=f"{name}|x",
            ),
            with_context=name == "n",
        )
        for name, numbers in values.items()
    ]
    return given, found


def test_tables_have_every_metric_and_category(two_metrics):
    """Strict beside tolerant; what was not decided is in no share."""
    given, found = two_metrics
    assert total_rows(found) == [
        (
            *("M", "2 of 3", "0.667 [0.094, 0.992]", "3 of 3"),
            *("1.000 [0.292, 1.000]", "1", "1"),
        ),
        (
            *("N", "2 of 5", "0.400 [0.053, 0.853]", "2 of 5"),
            *("0.400 [0.053, 0.853]", "0", "0"),
        ),
    ]
    assert category_rows(found) == [
        ("ties", "1+1/2", "1/2"),
        ("order", "1/1", "1/2"),
        ("patient", "n/a", "0/1"),
    ]
    assert category_rows([]) == []
    assert failed_rows(given, found) == [
        ("near", "ties", "passed with tolerance", "failed"),
        ("good", "order", "passed", "failed"),
        ("lost", "order", "without a score", "passed"),
        ("old", "patient", "not applicable", "failed"),
    ]


def test_a_category_of_which_nothing_has_a_score_is_a_dash(tmp_path):
    """It would apply: only nothing is known of it."""
    found = graded(tmp_path, "C1 > C2", [np.nan, 0.5])
    assert category_rows([found]) == [("x", "\N{EN DASH}")]
    assert total_rows([found]) == [("M", *["\N{EN DASH}"] * 4, "1", "0")]


def test_the_data_hold_every_count_and_outcome(two_metrics):
    """With what the file is, how tests are decided, and what must be known."""
    given, found = two_metrics
    data = result_data(given, found, tolerance=0.05)
    first, second = data.pop("metrics")
    notes = [
        "r.json has 5 tests in 3 categories; RadJudge as published has 3 tests in each "
        "of 10. Name the file when you cite the numbers.",
        "Tests that depend on the patient (1) are not applicable to M: these scores "
        "were made without that context.",
        "2 of 5 tests say that two candidates are worth the same. A metric with few "
        "distinct scores passes these more easily than one with many; compare the "
        "strict count with the tolerant one.",
    ]
    assert data == {
        "format": "ranloop-radjudge-1",
        "ranloop": __version__,
        "source": {"name": "r.json", "sha256": given.digest},
        "tests": 5,
        "categories": ["ties", "order", "patient"],
        "as_published": False,
        "tolerance": 0.05,
        "conventions": list(radjudge_conventions(0.05)),
        "notes": notes,
    }
    assert "differ by 0.05," in radjudge_conventions(0.05)[0]
    total, *_ = found[0].categories

    def share(passed, tests, limits):
        low, high = limits
        value = passed / tests if tests else None
        return {"passed": passed, "tests": tests, "share": value,
                "low": low, "high": high}  # fmt: skip

    none = share(0, 0, (0, 1))
    assert first == {
        "metric": "m",
        "title": "M",
        "better": "higher",
        "signature": "m|x",
        "with_context": False,
        "strict": share(2, 3, found[0].total.strict.limits),
        "tolerant": share(3, 3, found[0].total.tolerant.limits),
        "without_a_score": 1,
        "not_applicable": 1,
        "by_category": [
            {
                "category": "ties",
                "strict": share(1, 2, total.strict.limits),
                "tolerant": share(2, 2, total.tolerant.limits),
                "without_a_score": 0,
                "not_applicable": 0,
            },
            {
                "category": "order",
                "strict": share(1, 1, clopper_pearson(1, 1)),
                "tolerant": share(1, 1, clopper_pearson(1, 1)),
                "without_a_score": 1,
                "not_applicable": 0,
            },
            {
                "category": "patient",
                "strict": none,
                "tolerant": none,
                "without_a_score": 0,
                "not_applicable": 1,
            },
        ],
        "outcomes": {
            "near": "passed with tolerance",
            "same": "passed",
            "good": "passed",
            "lost": "without a score",
            "old": "not applicable",
        },
    }
    assert (second["better"], second["with_context"]) == ("lower", True)
    assert radjudge_notes(given, found[1:]) == [notes[0], notes[2]]


def test_what_is_as_published_needs_no_note_of_it(tmp_path):
    """And a file of tests without a patient is for every metric."""
    given = read_radjudge(write_radjudge(tmp_path / "r.json"))
    said = radjudge_notes(given, [])
    assert len(said) == 1 and "say that two candidates are worth the same" in said[0]
