"""Two runs on the same cases: what is fixed, broken, or only hedged."""

import pytest

from loop.core.errors import DataError
from loop.evaluate.compare import compare_inputs
from loop.evaluate.gates import Verdict
from loop.evaluate.regression import Difference, judge_regression
from loop.stats.confusion import average_f1, count_confusions
from tests.evaluate.scenes import inputs, outcome, random_run, reference, silent


def compare(before, after, standard):
    """Compare two lists of outcomes with few resamples."""
    return compare_inputs(
        inputs(before, standard),
        inputs(after, standard, run="b", prompt="extractor@v2"),
        resamples=200,
    )


def edema(comparison):
    """Return the change of one label."""
    return next(row for row in comparison.labels if row.label == "edema")


def runs(before, after, truth):
    """Return two runs that answer `before` and `after` for edema, case by case."""
    standard = reference({f"c{i}": {"edema": mark} for i, mark in enumerate(truth)})
    left, right = (
        [
            silent(f"c{i}") if value is None else outcome(f"c{i}", {"edema": value})
            for i, value in enumerate(values)
        ]
        for values in (before, after)
    )
    return compare(left, right, standard)


def test_changes_of_coverage_are_not_fixes():
    """Turning uncertain, becoming decided and losing an answer are listed apart."""
    change = edema(
        runs(
            before=[0, 1, 1, -1, -1, 1, 1],
            after=[1, 0, -1, 1, 0, None, 1],
            truth=[1, 1, 1, 1, 1, 1, -1],
        )
    )
    assert change.fixed == ("c0",)
    assert change.broken == ("c1",)
    assert change.became_uncertain == ("c2",)
    assert change.became_decided == ("c3", "c4")
    assert change.decided_right == 1
    assert change.became_unanswered == ("c5",)


@pytest.mark.parametrize(("gained", "testable"), [(5, False), (6, True)])
def test_too_few_changes_cannot_be_significant(gained, testable):
    """Fewer than six discordant cases never reach 0.05, whatever the split."""
    comparison = runs([0] * gained + [1] * 50, [1] * (gained + 50), [1] * (gained + 50))
    assert edema(comparison).testable is testable


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [
        ((0, 0, 300), "PASS"),
        ((2, 10, 300), "PASS"),
        ((3, 1, 300), "INSUFFICIENT"),
        ((4, 0, 300), "INSUFFICIENT"),
        ((30, 0, 300), "FAIL"),
        ((0, 0, 0), "INSUFFICIENT"),
    ],
)
def test_regression_follows_the_score_interval(counts, verdict):
    """Margin 0.02 against the limits in the domain notes (-0.0089, 0.0087, ...)."""
    assert judge_regression(Difference(*counts), 0.02).verdict.value == verdict


def test_no_change_passes_only_with_enough_cases():
    """With 100 unchanged cases the limit is -0.026: a margin of 0.02 is undecided."""
    small = judge_regression(Difference(0, 0, 100), 0.02)
    assert small.verdict is Verdict.INSUFFICIENT
    assert small.bound == pytest.approx(-0.0263, abs=5e-4)


def test_both_versions_are_scored_on_the_same_pairs():
    """Macro-F1 before and after use only pairs that both runs decide."""
    before, standard = random_run(80, noise=2.0)
    after, _ = random_run(80, noise=0.5)
    left, right = inputs(before, standard), inputs(after, standard)
    comparison = compare(before, after, standard)
    truth = left.pairs.binary_reference.copy()
    one, two = left.pairs.binary_predicted, right.pairs.binary_predicted
    truth[(one < 0) | (two < 0)] = -1
    expected = float(average_f1(count_confusions(truth, two)))
    assert comparison.macro_after == pytest.approx(expected)
    difference = comparison.macro_after - comparison.macro_before
    assert comparison.macro.estimate == pytest.approx(difference)


def test_only_shared_cases_are_compared():
    """A limited run is compared on what both asked; the rest is counted."""
    outcomes, standard = random_run(20)
    comparison = compare(outcomes[:15], outcomes[5:][::-1], standard)
    counts = (comparison.cases, comparison.only_before, comparison.only_after)
    assert counts == (10, 5, 5)
    assert not any(row.fixed or row.broken for row in comparison.labels)


def test_runs_without_a_shared_case_are_refused():
    """There is nothing to compare, and no zero is invented."""
    outcomes, standard = random_run(20)
    with pytest.raises(DataError, match="no case in common"):
        compare(outcomes[:5], outcomes[5:], standard)


def test_runs_on_different_cohorts_are_refused():
    """Equal ids in two cohorts are not the same cases."""
    outcomes, standard = random_run(10)
    other = inputs(outcomes, standard, digest="d" * 64, name="other")
    with pytest.raises(DataError, match="same cohort"):
        compare_inputs(inputs(outcomes, standard), other)


def test_lost_sensitivity_is_named_beside_a_passing_accuracy():
    """Two of 20 positives lost among 1,000 cases pass on accuracy alone."""
    truth = [1] * 20 + [0] * 980
    comparison = runs(truth, [0, 0] + [1] * 18 + [0] * 980, truth)
    assert edema(comparison).accuracy.verdict is Verdict.PASS
    assert [row.label for row in comparison.less_sensitive] == ["edema"]
