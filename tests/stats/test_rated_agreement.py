"""Agreement of a judge with ratings, and the difference of two, unit by unit."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import kendalltau

from loop.stats.rated_agreement import (
    AgreementMeasure,
    compare_agreement,
    measure_agreement,
)
from loop.stats.reliability import interval_alpha

TAU, ALPHA = AgreementMeasure.TAU_B, AgreementMeasure.ALPHA
RNG = np.random.default_rng(5)
RATINGS = RNG.integers(1, 6, 60).astype(float)
GOOD = RATINGS + RNG.normal(0, 1, 60)
POOR = RATINGS + RNG.normal(0, 4, 60)
UNITS = np.repeat(np.arange(20), 3)


def test_tau_b_is_scipys():
    """The same coefficient, ties in the ratings and all."""
    found = measure_agreement(TAU, GOOD, RATINGS, units=UNITS, resamples=9)
    expected = kendalltau(GOOD, RATINGS).statistic
    assert found.value.estimate == pytest.approx(expected)
    assert (found.n, found.n_units) == (60, 20)


def test_alpha_of_two_judges_by_hand():
    """Observed over expected squared differences, over all pairs of values."""
    scores, ratings = np.array([1.0, 2, 3, 4]), np.array([1.0, 3, 3, 5])
    values = np.concatenate([scores, ratings])
    observed = ((scores - ratings) ** 2).mean()
    expected = np.mean([(a - b) ** 2 for a, b in combinations(values, 2)])
    found = measure_agreement(ALPHA, scores, ratings, resamples=9)
    assert found.value.estimate == pytest.approx(1 - observed / expected)


@pytest.mark.parametrize("measure", [TAU, ALPHA])
def test_an_interval_is_that_of_resampled_units(measure):
    """Each resample by hand: whole units, as often as they were drawn."""
    drawn = {"units": UNITS, "resamples": 200, "seed": 3, "confidence": 0.9}
    found = measure_agreement(measure, GOOD, RATINGS, **drawn).value
    picks = np.random.default_rng(3).integers(20, size=(200, 20), dtype=np.uint16)
    values = []
    for pick in picks:
        rows = np.concatenate([np.flatnonzero(unit == UNITS) for unit in pick])
        pair = GOOD[rows], RATINGS[rows]
        values.append(
            kendalltau(*pair).statistic
            if measure is TAU
            else interval_alpha(np.stack(pair, axis=1), resamples=1).value
        )
    assert (found.low, found.high) == pytest.approx(np.quantile(values, [0.05, 0.95]))


@pytest.mark.parametrize("measure", [TAU, ALPHA])
def test_a_difference_is_that_of_the_agreements(measure):
    """On the same candidates, and turned round with its sign turned."""
    drawn = {"units": UNITS, "resamples": 300}
    found = compare_agreement(measure, GOOD, POOR, RATINGS, **drawn).value
    turned = compare_agreement(measure, POOR, GOOD, RATINGS, **drawn).value
    each = [
        measure_agreement(measure, one, RATINGS, resamples=1).value.estimate
        for one in (GOOD, POOR)
    ]
    assert found.estimate == pytest.approx(each[0] - each[1])
    ours = (-found.estimate, -found.high, -found.low)
    assert turned[:3] == pytest.approx(ours)
    assert found.low > 0


def test_pairs_of_judges_share_what_makes_candidates_hard():
    """The interval of the difference is narrower than those of both would let it be."""
    close = GOOD + np.random.default_rng(1).normal(0, 0.1, 60)
    drawn = {"units": UNITS, "resamples": 300}
    apart = measure_agreement(TAU, GOOD, RATINGS, **drawn).value
    paired = compare_agreement(TAU, GOOD, close, RATINGS, **drawn).value
    assert paired.high - paired.low < (apart.high - apart.low) / 2


def test_judges_that_order_alike_do_not_differ_in_any_resample():
    """Another scale is no other order."""
    found = compare_agreement(TAU, GOOD, GOOD * 2 + 1, RATINGS, resamples=50).value
    assert found[:3] == (0, 0, 0)
    assert found.has_no_width


@pytest.mark.parametrize("measure", [TAU, ALPHA])
def test_a_missing_value_leaves_its_candidate_out(measure):
    """Never a low score: as if the candidate were not there."""
    short = GOOD.copy()
    short[::7] = np.nan
    rows = ~np.isnan(short)
    found = compare_agreement(measure, short, POOR, RATINGS, resamples=50)
    there = compare_agreement(
        measure, GOOD[rows], POOR[rows], RATINGS[rows], resamples=50
    )
    assert found == there
    assert found.n == 51


@pytest.mark.parametrize("measure", [TAU, ALPHA])
def test_nothing_to_measure_is_no_number(measure):
    """Neither without candidates nor where everything is the same."""
    nothing, same = np.full(4, np.nan), np.ones(4)
    assert measure_agreement(measure, nothing, same).value.estimate is None
    assert measure_agreement(measure, same, same).value.estimate is None


def test_an_infinite_score_is_refused():
    """It would be a rank to tau-b, and to alpha everything."""
    with pytest.raises(ValueError, match="finite"):
        measure_agreement(TAU, np.array([1, np.inf]), np.array([1.0, 2]))


def test_measures_are_called_as_people_read_them():
    """The name of tau-b has a hyphen there."""
    assert [one.words for one in AgreementMeasure] == ["tau-b", "alpha"]
