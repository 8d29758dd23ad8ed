"""Areas under the curve by group, and of pairs within a unit, with their intervals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from loop.stats.auc import grouped_auc, within_units
from loop.stats.resampling import draw_units


def scene(seed=0, units=40, each=6, step=0.5):
    """Return scores, groups and units: half of each unit's pairs are of a group."""
    rng = np.random.default_rng(seed)
    groups = np.tile([0, 1, 2, -1, -1, -1][:each], units)
    scores = np.round(rng.normal(size=groups.size) + step * (groups < 0), 1)
    return scores, groups, np.repeat(np.arange(units), each)


def test_the_areas_are_those_of_scikit_learn():
    """Ties included; each group against the same others."""
    scores, groups, units = scene()
    found = grouped_auc(scores, groups, units, 3, resamples=10)
    assert found.whole.estimate == pytest.approx(roc_auc_score(groups < 0, scores))
    for place, one in enumerate(found.groups):
        kept = (groups == place) | (groups < 0)
        wanted = roc_auc_score(groups[kept] < 0, scores[kept])
        assert one.estimate == pytest.approx(wanted)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(-3, 3), st.integers(-1, 1), st.integers(0, 4)),
        min_size=2,
        max_size=30,
    )
)
def test_the_areas_are_those_counted_one_by_one(rows):
    """Whatever ties there are; None without a pair of a group, or of the others."""
    scores, groups, units = (np.array(column) for column in zip(*rows, strict=True))
    found = grouped_auc(scores.astype(float), groups, units, 2, resamples=5)
    for one, own in zip(
        (found.whole, *found.groups),
        (groups >= 0, groups == 0, groups == 1),
        strict=True,
    ):
        low, high = scores[own], scores[groups < 0]
        if not (len(low) and len(high)):
            assert one.estimate is None
            continue
        wins = [1.0 if b > a else 0.5 if b == a else 0.0 for a in low for b in high]
        assert one.estimate == pytest.approx(np.mean(wins))


def test_a_resample_is_of_whole_units():
    """Copies of every pair within its unit change no interval."""
    scores, groups, units = scene(units=30)
    once = grouped_auc(scores, groups, units, 3, resamples=500, seed=3)
    twice = grouped_auc(
        *(np.tile(one, 2) for one in (scores, groups, units)), 3, resamples=500, seed=3
    )
    assert once.whole == pytest.approx(twice.whole)


def test_the_interval_covers():
    """About as often as it says, where pairs of a unit go together."""
    hits = 0
    for seed in range(120):
        rng = np.random.default_rng(seed)
        units = np.repeat(np.arange(40), 4)
        groups = np.tile([0, 0, -1, -1], 40)
        shift = rng.normal(size=40)[units]
        scores = shift + rng.normal(size=160) + 0.8 * (groups < 0)
        found = grouped_auc(scores, groups, units, 1, resamples=400, seed=seed).whole
        # Of two normal variables with variance 2 each, 0.8 apart.
        truth = 0.6554
        hits += found.low <= truth <= found.high
    assert 0.88 <= hits / 120 <= 0.99


def test_what_has_no_score_is_left_out():
    """And what is left decides."""
    scores, groups, units = scene()
    more = np.concatenate([scores, [np.nan, np.nan]])
    found = grouped_auc(
        more, np.append(groups, [0, -1]), np.append(units, [90, 91]), 3, resamples=10
    )
    alone = grouped_auc(scores, groups, units, 3, resamples=10)
    assert found.whole.estimate == alone.whole.estimate


def test_within_units_each_unit_counts_the_same():
    """Two of three wins in one unit, none in another; one without a partner is out."""
    scores = np.array([1, 2, 2, 3, 5, 4, 9.0])
    first = np.array([1, 1, 0, 0, 1, 0, 1], dtype=bool)
    units = np.array(["a", "a", "a", "a", "b", "b", "c"])
    found, count = within_units(scores, first, units, resamples=50)
    assert count == 2
    assert found.estimate == pytest.approx((3.5 / 4 + 0) / 2)


def test_within_units_without_a_pair_is_undefined():
    """No unit holds both."""
    found, count = within_units(
        np.array([1.0, 2.0]), np.array([True, False]), np.array([0, 1]), resamples=5
    )
    assert (found.estimate, count) == (None, 0)


def test_intervals_are_those_of_the_plain_loop():
    """The units drawn, all their pairs taken along, and counted one by one."""
    scores, groups, units = scene(units=12)
    drawn = np.concatenate(list(draw_units(12, 60, np.random.default_rng(4))))
    values = []
    for names in drawn:
        rows = np.concatenate([np.flatnonzero(units == one) for one in names])
        score, group = scores[rows], groups[rows]
        areas = []
        for own in (group >= 0, group == 0, group == 1, group == 2):
            low, high = score[own][:, None], score[group < 0]
            areas.append((low < high).mean() + (low == high).mean() / 2)
        values.append(areas)
    limits = np.quantile(values, [0.1, 0.9], axis=0).T
    found = grouped_auc(scores, groups, units, 3, resamples=60, seed=4, confidence=0.8)
    for one, (low, high) in zip((found.whole, *found.groups), limits, strict=True):
        assert (one.low, one.high) == pytest.approx((low, high))
        assert one[3:] == (60, 0)


def test_within_units_intervals_are_over_units_with_both():
    """The share of wins of each unit, drawn as a whole; gaps are no pairs."""
    scores, groups, units = scene(units=9)
    scores = np.where(np.arange(scores.size) % 7 == 0, np.nan, scores)
    first = groups == 0
    shares = []
    for one in range(9):
        low = scores[(units == one) & first & ~np.isnan(scores)]
        high = scores[(units == one) & ~first & ~np.isnan(scores)]
        if low.size and high.size:
            wins = (low[:, None] < high).mean() + (low[:, None] == high).mean() / 2
            shares.append(wins)
    found, count = within_units(scores, first, units, resamples=50, seed=2)
    assert count == len(shares) < 9
    assert found.estimate == pytest.approx(np.mean(shares))
    drawn = np.concatenate(list(draw_units(count, 50, np.random.default_rng(2))))
    limits = np.quantile(np.array(shares)[drawn].mean(axis=1), [0.025, 0.975])
    assert (found.low, found.high) == pytest.approx(tuple(limits))
