"""Exact intervals against values that were not computed by this code."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta
from statsmodels.stats.proportion import proportion_confint

from loop.stats.intervals import clopper_pearson, clustered_interval, lower_limit


def test_matches_a_published_table():
    """5 of 25 at 95 %: 0.068 to 0.407 (Conover, Practical Nonparametric Statistics)."""
    assert clopper_pearson(5, 25) == pytest.approx((0.068, 0.407), abs=5e-4)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (300, 300, 0.9878, 1),
        (298, 300, 0.9761, 0.9992),
        (0, 300, 0, 0.0122),
        (97, 100, 0.9148, 0.9938),
        (194, 200, 0.9358, 0.9889),
        (291, 300, 0.9438, 0.9862),
        (388, 400, 0.9482, 0.9844),
        (970, 1000, 0.9574, 0.9797),
        (4, 4, 0.3976, 1),
        (5, 5, 0.4782, 1),
        (2, 4, 0.0676, 0.9324),
    ],
)
def test_matches_the_reference_values(successes, trials, low, high):
    """Values recomputed independently for the sample sizes users meet."""
    found = clopper_pearson(successes, trials)
    assert found == pytest.approx((low, high), abs=5.1e-5)


@settings(deadline=None)
@given(st.integers(0, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_agrees_with_statsmodels(counts):
    """Another implementation of the same interval, over all small tables."""
    successes, trials = counts
    if trials == 0:
        return
    expected = proportion_confint(successes, trials, alpha=0.05, method="beta")
    assert clopper_pearson(successes, trials) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("trials", [1, 20, 500])
def test_zero_successes_has_a_closed_form(trials):
    """With no success the upper limit is 1 - (alpha/2)^(1/n)."""
    expected = 1 - 0.025 ** (1 / trials)
    assert clopper_pearson(0, trials) == pytest.approx((0.0, expected))


def test_swapping_success_and_failure_mirrors_the_interval():
    """The limits for p and for 1-p mirror around one half."""
    low, high = clopper_pearson(7, 50)
    assert clopper_pearson(43, 50) == pytest.approx((1 - high, 1 - low))


def test_one_sided_limits_are_the_two_sided_at_half_the_error():
    """A one-sided 97.5 % limit is the lower end of the two-sided 95 % interval."""
    low = lower_limit(7, 50, confidence=0.975)
    assert low == pytest.approx(clopper_pearson(7, 50).low)


def test_no_trials_gives_the_whole_range():
    """Without data the interval makes no claim instead of dividing by zero."""
    assert clopper_pearson(0, 0) == (0.0, 1.0)
    assert lower_limit(0, 0) == 0.0


@pytest.mark.parametrize("function", [clopper_pearson, lower_limit])
@pytest.mark.parametrize(("successes", "trials"), [(-1, 5), (6, 5)])
def test_impossible_counts_are_refused(function, successes, trials):
    """The message names the offending counts."""
    with pytest.raises(ValueError, match=f"got {successes} of {trials}"):
        function(successes, trials)


def test_impossible_confidence_is_refused():
    """A percentage instead of a share is the usual slip."""
    with pytest.raises(ValueError, match="got 95"):
        clopper_pearson(1, 2, confidence=95)


def test_a_share_over_units_is_that_of_as_many_trials_as_they_are_worth():
    """Alone: itself. Always alike within a unit: as many trials as units."""
    alone = clustered_interval([1] * 43 + [0] * 7, [1] * 50)
    assert alone == pytest.approx(clopper_pearson(43, 50))
    twins = clustered_interval([2] * 43 + [0] * 7, [2] * 50)
    # 100 trials with twice the variance of independent ones, but for a degree of
    # freedom.
    share, worth = 43 / 50, 100 * 49 / 99
    assert twins.low == pytest.approx(
        beta.ppf(0.025, share * worth, worth * (1 - share) + 1)
    )
    assert twins.low < alone.low < alone.high < twins.high
    assert clustered_interval([4] * 20, [4] * 20) == clopper_pearson(20, 20)
    assert clustered_interval([0] * 20, [4] * 20) == clopper_pearson(0, 20)


def test_units_that_each_hold_their_share_are_worth_all_trials():
    """And never more than that."""
    assert clustered_interval([1] * 30, [2] * 30) == pytest.approx(
        clopper_pearson(30, 60)
    )
    assert clustered_interval([], []) == (0.0, 1.0)
    assert clustered_interval([0, 3], [0, 3]) == clopper_pearson(1, 1)


@pytest.mark.parametrize(
    ("right", "trials"), [([1], [1, 2]), ([2], [1]), ([-1, 1], [1, 1])]
)
def test_impossible_units_are_refused(right, trials):
    """Instead of an interval."""
    with pytest.raises(ValueError, match="need"):
        clustered_interval(right, trials)
