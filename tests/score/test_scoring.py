"""From pairs to a document: twins, a second extractor, experts, words."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kendalltau

from loop.core.errors import DataError
from loop.core.paths import bundled
from loop.core.records import ValueCode
from loop.labels.taxonomy import read_taxonomy
from loop.run.execute import Problem
from loop.score.documents.score_files import render_score_html, render_score_markdown
from loop.score.documents.sentences import coverage_lines, floor_sentence, problem_line
from loop.score.experts.ratings import Ratings
from loop.score.metrics.base import Direction
from loop.score.metrics.score_sheet import ScoreSheet
from loop.score.records import (
    Conventions,
    Coverage,
    Graded,
    Joined,
    PairSide,
    Uncertain,
)
from loop.score.scoring import (
    Counting,
    ReadPairs,
    build_document,
    describe_experts,
    describe_sources,
    find_twins,
    key,
    metric_rows,
    worst_cases,
)
from loop.stats.confusion import Confusion
from tests.score.documents.score_scenes import (
    FACTS,
    document_of,
    metric,
    ran_score,
    sheet_of,
)

TAXONOMY = read_taxonomy(bundled() / "labels")
QUICK = Counting(metrics=(), resamples=50, permutations=50)


def labels(seed, share=0.2, cases=40):
    """Return random labels."""
    rng = np.random.default_rng(seed)
    return (rng.random((cases, len(TAXONOMY.ids))) < share).astype(np.int8)


def read_of(reference, systems, **others):
    """Return given labels of a few systems, as they are read."""
    ids = tuple(f"c{n:02}" for n in range(len(reference)))
    columns = tuple(PairSide(name=n, texts=None, codes=c) for n, c in systems.items())
    joined = Joined(
        case_ids=ids,
        reference=PairSide(name="reference", texts=None, codes=reference),
        systems=columns,
        coverage=tuple(
            Coverage(name, len(ids), len(ids), (), (), (), ()) for name in systems
        ),
    )
    graded = Graded(
        case_ids=ids,
        labels=TAXONOMY.ids,
        systems=tuple(systems),
        reference=reference,
        candidates=np.stack(list(systems.values())),
    )
    return ReadPairs(joined=joined, graded=graded, **others)


def ratings_of(systems, points, cases=40):
    """Return two raters who give every candidate of a system `points` and one more."""
    ids = tuple(f"c{n:02}" for n in range(cases) for _ in systems)
    names = tuple(systems) * cases
    first = np.array([points[name] + (n % 3) / 4 for n, name in enumerate(names)])
    return Ratings(
        ids=ids,
        systems=names,
        raters=("r1", "r2"),
        scores=np.stack([first, first + 0.5], axis=1),
        scale=(1.0, 5.0),
    )


def test_a_copy_of_the_references_scores_one_and_stands_first():
    """Perfect agreement is 1.0 under skip, and the page says so."""
    truth = labels(1)
    read = read_of(truth, {"random": labels(2), "copy": truth})
    document = build_document(read, TAXONOMY, QUICK)
    first = document.score.systems[0]
    assert (first.system, first.ran_score.value, first.perfect) == ("copy", 1.0, 1.0)
    assert document.keys == {"copy": "A", "random": "B"}
    assert "labels as given" in render_score_html(document)


def test_labels_that_never_occur_lower_a_perfect_copy_under_zero():
    """Three findings of 21, one in each of three cases: 3/21 (metrics, section 8)."""
    truth = np.zeros((3, len(TAXONOMY.ids)), dtype=np.int8)
    truth[[0, 1, 2], [0, 1, 2]] = 1
    read = read_of(truth, {"copy": truth})
    rules = Conventions(zero_division="zero")
    document = build_document(read, TAXONOMY, replace(QUICK, conventions=rules))
    assert document.score.systems[0].ran_score.value == pytest.approx(3 / 21)
    page = render_score_html(document)
    assert "would score only 0.143, not 1" in page


@pytest.mark.parametrize(
    ("policy", "errors"), [("wrong", 4.0), ("pos", 0.0), ("neg", 4.0), ("excl", 0.0)]
)
@pytest.mark.parametrize("empty", ["skip", "zero"])
def test_metrics_of_labels_follow_the_conventions_of_the_ranking(policy, errors, empty):
    """One hedge on each of 4 positives; the convention stands in their signatures."""
    truth = np.zeros((5, len(TAXONOMY.ids)), dtype=np.int8)
    truth[:4, 0] = truth[4, 1] = 1
    told = truth.copy()
    told[:4, 0] = ValueCode.UNCERTAIN
    rules = Conventions(uncertain=Uncertain(policy), zero_division=empty)
    counting = replace(QUICK, conventions=rules)
    document = build_document(read_of(truth, {"a": told}), TAXONOMY, counting)
    found = {one.metric.name: one for one in document.sheet.results}
    assert found["ran_errors"].per_case.sum() == errors
    assert f"unc:{policy}" in found["ran_errors"].signature
    assert f"zd:{empty}" in found["ran_score"].signature


def test_languages_are_counted_the_commonest_first():
    """Whichever the first case is in."""
    read = read_of(labels(1, cases=3), {"a": labels(2, cases=3)})
    joined = replace(read.joined, languages=("zh", "en", "en"))
    assert [*describe_sources(joined).languages.items()] == [("en", 2), ("zh", 1)]


def test_no_finding_is_taken_for_nothing():
    """It is missed wherever something is invented in a clear case, by its making."""
    truth = np.zeros((4, len(TAXONOMY.ids)), dtype=np.int8)
    told = truth.copy()
    clear = TAXONOMY.ids.index("no_finding")
    truth[:, clear] = 1
    told[:, 0] = 1
    truth[0, [clear, 1]] = (0, 1)
    document = build_document(read_of(truth, {"a": told}), TAXONOMY, QUICK)
    assert [(one.missed, one.invented, one.n) for one in document.confused] == [
        (TAXONOMY.ids[1], TAXONOMY.ids[0], 1)
    ]


def test_metrics_with_the_same_values_are_told_once():
    """Macro and micro averages of one thing are the same for a single case."""
    sheet = sheet_of(("a",))
    again = sheet.results[0]._replace(metric=metric("twin", "Twin"))
    sheet = replace(sheet, results=(*sheet.results[:1], again))
    assert find_twins(sheet) == {"twin": "ran_score"}
    assert "twin as ran\\_score" in render_score_markdown(
        document_of("a", twins={"twin": "ran_score"})
    )


def test_a_second_extractor_is_shown_beside_the_first():
    """A reader sees what depends on who read the labels."""
    truth = labels(1)
    systems = {"good": truth, "bad": labels(2)}
    first = read_of(truth, systems)
    graded = replace(first.graded, extractor=FACTS)
    swapped = read_of(truth, {"good": labels(3), "bad": truth}).graded
    second = replace(swapped, extractor=replace(FACTS, ref="other@v1"))
    read = replace(first, graded=graded, second=second)
    document = build_document(read, TAXONOMY, QUICK)
    for text in (render_score_html(document), render_score_markdown(document)):
        assert "other@v1" in text and "Change places" in text


def test_experts_are_joined_by_case_and_system():
    """The better system gets more points; a metric's sign is turned where needed."""
    truth = labels(1)
    systems = {"good": truth, "bad": labels(2)}
    ratings = ratings_of(systems, {"good": 4.0, "bad": 2.0})
    read = read_of(truth, systems, ratings=ratings)
    document = build_document(read, TAXONOMY, QUICK)
    found = document.experts
    assert [(one.system, one.n) for one in found.points] == [("good", 40), ("bad", 40)]
    assert found.points[0].mean == pytest.approx(4.5, abs=0.02)
    assert (found.rated, found.unrated, found.unscored) == (80, 0, 0)
    by_name = {one.name: one for one in found.metrics}
    assert by_name["ran_errors"].negated and not by_name["ran_score"].negated
    assert all(one.found.tau_b.value > 0.5 for one in found.metrics)
    assert "What experts say" in render_score_html(document)


def test_ratings_without_a_system_are_those_of_the_only_one():
    """A file about one system need not name it."""
    sheet = sheet_of(("a",))
    ratings = Ratings(
        ids=("c1", "c2", "zz"),
        systems=("", "", ""),
        raters=("r",),
        scores=np.array([[1.0], [5.0], [3.0]]),
        scale=(1.0, 5.0),
    )
    found = describe_experts(sheet, ratings)
    assert (found.rated, found.unrated, found.unscored) == (2, 1, 1)
    assert found.points[0].mean == 3.0
    assert found.agreement.ordinal.value is None


def experts_on(points, patients=None, values=None):
    """Return what one rater and two metrics say of the cases of one system."""
    ids = tuple(f"c{n}" for n in range(len(points)))
    sheet = sheet_of(("a",))
    values = points if values is None else values
    results = tuple(one._replace(per_case=np.array(values)) for one in sheet.results)
    ratings = Ratings(
        ids=ids,
        systems=("a",) * len(ids),
        raters=("r1", "r2"),
        scores=np.stack([points, points + np.arange(len(ids)) % 2 / 4], axis=1),
        scale=(0.0, 9.0),
    )
    sheet = replace(sheet, case_ids={"a": ids}, results=results)
    return describe_experts(sheet, ratings, patients=patients)


def test_experts_are_resampled_by_patient_where_every_rated_case_has_one():
    """Three copies of each case of a patient make an interval no narrower."""
    points, values = [1.0, 2.0, 4.0, 3.0, 5.0, 9.0], [2.0, 1.0, 3.0, 4.0, 9.0, 5.0]
    often = np.repeat(points, 3), np.repeat(values, 3)
    owners = {f"c{row}": f"p{row // 3}" for row in range(18)}
    alone = experts_on(often[0], values=often[1])
    by_patient = experts_on(often[0], owners, often[1])
    taus = [one.metrics[0].found.tau_b for one in (alone, by_patient)]
    assert taus[0].value == taus[1].value
    assert taus[1].low < taus[0].low
    kappas = [one.agreement.ordinal for one in (alone, by_patient)]
    assert kappas[0].value == kappas[1].value
    assert kappas[0][1:3] != kappas[1][1:3]
    for unknown in ({"c0": "p0"}, {}):
        again = experts_on(often[0], unknown, often[1])
        assert again.metrics[0].found.tau_b == taus[0]
        assert again.agreement == alone.agreement


def test_the_metric_nearest_to_the_experts_comes_first():
    """By tau-b, whichever direction a metric has; two candidates are enough for one."""
    up, down = [1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]
    for values, first in ((up, "ran_score"), (down, "ran_errors")):
        found = experts_on(np.array(up), values=values)
        assert found.metrics[0].name == first
        assert [one.found.tau_b.value for one in found.metrics] == [1.0, -1.0]
    two = experts_on(np.array([1.0, 2.0]))
    assert [one.found.tau_b.value for one in two.metrics] == [1.0, -1.0]
    assert experts_on(np.array([1.0, 2.0]), values=[1.0, np.nan]).metrics == ()


def test_ratings_of_other_candidates_are_refused():
    """The message shows one of each side, so that the mistake can be seen."""
    sheet = sheet_of(("a",))
    ratings = ratings_of({"b": 0}, {"b": 3.0})
    with pytest.raises(DataError, match=r"'c00' of 'b', scores of 'c1' of 'a'"):
        describe_experts(sheet, ratings)


def test_a_metric_that_ran_for_some_systems_only_is_not_held_against_experts():
    """Its correlation would be over other candidates than that of the rest."""
    sheet = sheet_of(("a", "b"))
    sheet = ScoreSheet(
        systems=sheet.systems, case_ids=sheet.case_ids, results=sheet.results[1:]
    )
    ratings = Ratings(
        ids=("c1", "c2"),
        systems=("a", "b"),
        raters=("r",),
        scores=np.array([[1.0], [5.0]]),
        scale=(1.0, 5.0),
    )
    found = describe_experts(sheet, ratings)
    assert [one.name for one in found.metrics] == ["ran_errors"]


def test_nothing_wrong_with_the_rows_is_no_line():
    """Lines are for what a reader must know."""
    truth = labels(1)
    document = build_document(read_of(truth, {"copy": truth}), TAXONOMY, QUICK)
    assert coverage_lines(document) == ()
    assert "every candidate a reference" in render_score_html(document)


def test_too_many_systems_for_the_exchanges_are_said():
    """Else dummies would make every difference look like chance."""
    many = ran_score([f"s{n}" for n in range(36)])
    assert "With 630 pairs and 10,000 exchanges" in floor_sentence(many)
    assert "--permutations 126000" in floor_sentence(many)
    assert "no sampled pair can have" in render_score_html(
        replace(document_of("a"), score=many)
    )
    assert floor_sentence(ran_score(("a", "b", "c"))) == ""
    exact = [one._replace(exact=True, p=1e-6) for one in many.differences]
    assert floor_sentence(replace(many, differences=tuple(exact))) == ""
    # Exact ones come first in Holm's order: a single sampled one is multiplied by 1.
    some = (*exact[1:], many.differences[0])
    assert floor_sentence(replace(many, differences=some)) == ""


def test_unanswered_texts_are_told_with_their_cases():
    """An engine's failure is counted in the open, never as absent."""
    told = problem_line(Problem("HTTP 503", 7, ("c1", "c2")))
    assert told == "no answer for 7 distinct texts: HTTP 503 (c1, c2, ...)"
    page = render_score_html(
        document_of("a", problems=(Problem("HTTP 503", 7, ("c1", "c2")),))
    )
    assert told in page


def test_the_ran_score_has_one_interval_wherever_it_stands():
    """A system that lost cases: its metric would draw others than the ranking does."""
    truth = labels(1)
    less = labels(2)
    less[:5] = ValueCode.MISSING
    read = read_of(truth, {"less": less, "more": labels(3)})
    lost = tuple(f"c{n:02}" for n in range(5))
    coverage = (Coverage("less", 35, 35, lost, (), (), ()), read.joined.coverage[1])
    read = replace(read, joined=replace(read.joined, coverage=coverage))
    document = build_document(read, TAXONOMY, QUICK)
    ranked = {one.system: one.ran_score for one in document.score.systems}
    shown = {
        one.system: one.estimate
        for one in document.sheet.results
        if one.metric.name == "ran_score"
    }
    assert shown == ranked


@pytest.mark.parametrize(
    ("permutations", "told"), [(14, True), (15, True), (16, False)]
)
def test_a_least_p_of_exactly_the_level_is_not_below_it(permutations, told):
    """One sampled pair of B exchanges has a p of at least 1 / (B + 1)."""
    score = ran_score(("a", "b", "c"))
    one = score.differences[0]._replace(exact=False, p=0.5)
    score = replace(score, differences=(one,), permutations=permutations)
    assert bool(floor_sentence(score, alpha=1 / 16)) == told


def test_the_worst_cases_of_a_system_are_five_of_its_own():
    """The most errors first, then the lower F1, an undefined one last; then by id."""
    score = ran_score(("a", "b"))
    one = score.cases[0]
    given = (
        ("a", "z", 2, 0.5),
        ("a", "y", 2, 0.1),
        ("a", "x", 2, None),
        ("a", "w", 3, 0.9),
        ("a", "v", 0, 0.0),
        ("a", "u", 1, 0.0),
        ("a", "t", 1, 0.0),
        ("b", "s", 9, 0.0),
    )
    cases = tuple(
        one._replace(system=system, case_id=case, errors=errors, f1=f1)
        for system, case, errors, f1 in given
    )
    score = replace(score, cases=cases)
    mine, other = (worst_cases(score, system) for system in score.systems)
    assert [case.case_id for case in mine] == ["w", "x", "y", "z", "t"]
    assert [case.case_id for case in other] == ["s"]


def test_the_letter_of_a_system_turns_after_z():
    """And again, so that no two systems have one."""
    assert [key(number) for number in (1, 25, 26, 51, 52)] == [
        "B",
        "Z",
        "A2",
        "Z2",
        "A3",
    ]
    assert len({key(number) for number in range(100)}) == 100


def test_a_metric_has_a_place_for_every_system_best_first():
    """None where it did not run for one; each result stands under its own system."""
    document = document_of("a", "b")
    sheet = sheet_of(("b", "a"))
    document = replace(document, sheet=replace(sheet, results=sheet.results[1:]))
    rows = [
        (metric.name, [one and one.system for one in results])
        for metric, results in metric_rows(document)
    ]
    assert rows == [("ran_score", ["a", None]), ("ran_errors", ["a", "b"])]


def test_what_is_asked_for_reaches_every_number():
    """Resamples, exchanges, seed and level, in the ranking and in each metric."""
    truth = labels(1)
    read = read_of(truth, {"x": labels(2), "y": labels(3)}, remarks=("Said.",))
    counting = replace(QUICK, seed=3, confidence=0.8, metrics=("clinical_f1",))
    document = build_document(read, TAXONOMY, counting)
    score = document.score
    assert (score.resamples, score.permutations) == (50, 50)
    assert (score.seed, score.confidence) == (3, 0.8)
    assert document.remarks == ("Said.",)
    assert document.names == {one.id: one.name for one in TAXONOMY.labels}
    found = {one.metric.name for one in document.sheet.results}
    assert found == {"ran_score", "ran_errors", "clinical_f1"}
    for changed in ({"seed": 4}, {"confidence": 0.9}, {"resamples": 60}):
        again = build_document(read, TAXONOMY, replace(counting, **changed))
        for one, other in zip(document.sheet.results, again.sheet.results, strict=True):
            assert one.estimate.value == other.estimate.value
            assert one.estimate[1:3] != other.estimate[1:3]
    assert document.panel is None and document.experts is None


def test_metrics_correlate_where_two_are_different():
    """A twin is told as one; a metric alone correlates with nothing."""
    truth = labels(1)
    read = read_of(truth, {"x": labels(2)})
    counting = replace(QUICK, metrics=("clinical_f1", "clinical_f1_macro"))
    document = build_document(read, TAXONOMY, counting)
    assert document.twins == {"clinical_f1_macro": "clinical_f1"}
    names = ("ran_score", "ran_errors", "clinical_f1")
    found = document.correlations
    assert found.metrics == names
    columns = [document.sheet.column(name) for name in names]
    for row, column in ((0, 1), (0, 2), (1, 2)):
        expected = kendalltau(columns[row].round(12), columns[column].round(12))
        assert found.tau_b[row, column] == pytest.approx(expected.statistic)
        assert found.n[row, column] == 40
    empty = np.zeros_like(truth)
    empty[:, 0] = 1
    same = build_document(read_of(empty, {"x": 1 - empty}), TAXONOMY, QUICK)
    assert same.twins == {} and len(same.correlations.metrics) == 2


def test_the_errors_of_the_extractor_correct_the_ranking_alone():
    """A second extractor has other errors, and none that were measured here."""
    truth = labels(1)
    read = read_of(truth, {"x": labels(2), "y": truth})
    errors = {TAXONOMY.ids[0]: Confusion(90, 10, 10, 90)}
    document = build_document(
        replace(read, errors=errors, second=read.graded), TAXONOMY, QUICK
    )
    assert all(one.corrected is not None for one in document.score.systems)
    assert document.score.assumptions
    assert [row.system for row in document.panel.systems] == ["y", "x"]
    assert [row.equal for row in document.panel.systems] == [1.0, 1.0]
    plain = build_document(read, TAXONOMY, QUICK)
    assert [one.corrected for one in plain.score.systems] == [None, None]


def test_experts_who_rate_some_systems_only_leave_the_others_without_points():
    """Each mean is over its own rated candidates, and says over how many."""
    sheet = sheet_of(("a", "b", "c"))
    ratings = Ratings(
        ids=("c1", "c1", "c2"),
        systems=("a", "c", "c"),
        raters=("r", "s"),
        scores=np.array([[1.0, 2.0], [4.0, np.nan], [3.0, 2.0]]),
        scale=(1.0, 5.0),
    )
    found = describe_experts(sheet, ratings)
    assert found.points == (("a", 1.5, 1), ("b", None, 0), ("c", 3.25, 2))
    assert (found.rated, found.unrated, found.unscored) == (3, 6, 0)
    assert (found.raters, found.scale) == (("r", "s"), (1.0, 5.0))


def test_ratings_without_a_system_are_of_nobody_where_there_are_two():
    """Which of them was rated cannot be known."""
    ratings = Ratings(
        ids=("c1",),
        systems=("",),
        raters=("r",),
        scores=np.array([[1.0]]),
        scale=(1.0, 5.0),
    )
    with pytest.raises(DataError, match="no rated candidate is among those"):
        describe_experts(sheet_of(("a", "b")), ratings)


def test_a_metric_that_only_describes_is_not_held_against_experts():
    """Neither more nor less of it is better; of one that grades all values count."""
    sheet = sheet_of(("a",))
    length = metric("length", "Length", Direction.NEITHER)
    results = (sheet.results[0]._replace(metric=length), sheet.results[1])
    ratings = Ratings(
        ids=("c1", "c2"),
        systems=("a", "a"),
        raters=("r",),
        scores=np.array([[1.0], [5.0]]),
        scale=(1.0, 5.0),
    )
    found = describe_experts(replace(sheet, results=results), ratings)
    (one,) = found.metrics
    assert (one.name, one.title, one.negated) == ("ran_errors", "Label errors", True)
    assert (one.found.n, one.found.n_units, one.found.tau_b.value) == (2, 2, -1.0)


def test_metrics_that_agree_alike_are_in_the_order_of_their_names():
    """One without a number comes last."""
    sheet = sheet_of(("a",))
    first = sheet.results[0]
    results = tuple(
        first._replace(metric=metric(name, name), per_case=np.array(values))
        for name, values in (
            ("aaa", [0.5, 0.5, 0.5]),
            ("zz", [0.1, 0.2, 0.3]),
            ("bb", [1.0, 2.0, 3.0]),
        )
    )
    ratings = Ratings(
        ids=("c1", "c2", "c3"),
        systems=("a",) * 3,
        raters=("r",),
        scores=np.array([[1.0], [2.0], [5.0]]),
        scale=(1.0, 5.0),
    )
    found = describe_experts(replace(sheet, results=results), ratings)
    assert [one.name for one in found.metrics] == ["bb", "zz", "aaa"]
    assert found.metrics[-1].found.tau_b.value is None


def test_twins_are_named_after_the_first_of_them():
    """Three of a kind, over all systems; undefined at the same places counts too."""
    sheet = sheet_of(("a", "b"))
    first, second = sheet.results[:2]
    twin, third = (
        (
            first._replace(metric=metric(name, name)),
            second._replace(metric=metric(name, name)),
        )
        for name in ("twin", "third")
    )
    odd = (
        first._replace(metric=metric("odd", "odd")),
        second._replace(
            metric=metric("odd", "odd"), per_case=np.array([0.25, 0.5, 0.75])
        ),
    )
    results = (first, second, *twin, *odd, *third)
    found = find_twins(replace(sheet, results=results))
    assert found == {"twin": "ran_score", "third": "ran_score"}
