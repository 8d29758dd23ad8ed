"""Exact intervals against values that were not computed by this code."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta
from statsmodels.stats.proportion import proportion_confint

from loop.stats.intervals import (
    clopper_pearson,
    clustered_interval,
    f1_limits,
    kappa_limits,
    lower_limit,
)


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


def test_limits_of_f1_hold_for_all_labels_together():
    """Two labels share the error: 3 of 3 and 0 of 7, by hand."""
    tail = 0.1 / 2 / 2
    low, high = tail ** (1 / 3), 1 - tail ** (1 / 7)
    expected = (
        (2 * low / (1 + low) + 0) / 2,
        (1 + 2 * high / (1 + high)) / 2,
    )
    assert f1_limits([3, 0], [3, 7], confidence=0.9) == pytest.approx(expected)


def test_limits_of_kappa_are_those_of_the_agreement_beyond_chance():
    """2 of 4 at a chance of 0.3; what is below -1 is held there."""
    low, high = clopper_pearson(2, 4, confidence=0.8)
    expected = ((low - 0.3) / 0.7, (high - 0.3) / 0.7)
    assert kappa_limits(2, 4, 0.3, confidence=0.8) == pytest.approx(expected)
    assert kappa_limits(0, 50, 0.9) == (-1.0, -1.0)


def test_several_draws_of_a_case_are_one_trial():
    """27 of 30 answers of ten cases are 9 of 10."""
    assert clopper_pearson(27, 30, draws=3) == clopper_pearson(9, 10)
    assert lower_limit(27, 30, draws=3) == lower_limit(9, 10)
    low, high = clopper_pearson(28, 30, draws=3)
    right = 28 / 3
    assert low == pytest.approx(beta.ppf(0.025, right, 11 - right))
    assert high == pytest.approx(beta.ppf(0.975, right + 1, 10 - right))


def test_units_of_any_sizes_are_worth_what_their_variance_says():
    """Cochran's variance of a share over four units of 3, 1, 4 and 2 trials."""
    right, trials = [3, 0, 1, 2], [3, 1, 4, 2]
    share = 6 / 10
    spread = sum((k - share * n) ** 2 for k, n in zip(right, trials, strict=True))
    variance = 4 / 3 * spread / 10**2
    worth = 10 * (share * 0.4 / 9) / variance
    assert worth < 10
    found = clustered_interval(right, trials, confidence=0.9)
    x = share * worth
    assert found == pytest.approx(
        (beta.ppf(0.05, x, worth - x + 1), beta.ppf(0.95, x + 1, worth - x))
    )
    # One unit alone tells nothing of how alike its trials are.
    assert clustered_interval([3], [10]) == pytest.approx(
        (beta.ppf(0.025, 0.3, 1.7), beta.ppf(0.975, 1.3, 0.7))
    )
