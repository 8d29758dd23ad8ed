"""Correlations against scipy, on the data and resample by resample."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from loop.stats.correlation import (
    Correlations,
    correlate,
    correlate_columns,
    is_shown,
    kendall_p,
    partial_tau,
    preference_accuracies,
    preference_accuracy,
    tau_b,
)
from loop.stats.intervals import Estimate
from loop.stats.resampling import draw_units

LIBRARY = (stats.kendalltau, stats.spearmanr, stats.pearsonr)


def scores(n=60, seed=1, steps=10):
    """Return scores with ties and ratings from 1 to 5 that go with them."""
    rng = np.random.default_rng(seed)
    x = np.round(rng.random(n) * steps) / steps
    return x, np.clip(np.round(1 + 4 * x + rng.normal(0, 1, n)), 1, 5)


def library(x, y):
    """Return what scipy says, NaN where it is undefined."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return [np.nan] * 3
    return [float(one(x, y).statistic) for one in LIBRARY]


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(-3, 3), st.sampled_from([0.1, 0.2, 0.30000001, -7e5])),
        min_size=2,
        max_size=40,
    )
)
def test_all_three_agree_with_scipy(pairs):
    """With any ties, to twelve digits; None where scipy has NaN."""
    x, y = np.array(pairs).T
    found = [one.value for one in correlate(x, y, resamples=2)[:3]]
    for mine, theirs in zip(found, library(x, y), strict=True):
        assert (mine is None) == bool(np.isnan(theirs))
        assert mine is None or mine == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("steps", [3, 10**6])
def test_intervals_equal_those_of_the_plain_loop(steps):
    """The same cases drawn, all their candidates taken along, scored by scipy."""
    x, y = scores(steps=steps)
    units = np.arange(60) % 23
    drawn = np.concatenate(list(draw_units(23, 80, np.random.default_rng(9))))
    values = []
    for cases in drawn:
        rows = np.concatenate([np.flatnonzero(units == case) for case in cases])
        values.append(library(x[rows], y[rows]))
    found = correlate(x, y, units, resamples=80, seed=9)
    limits = np.quantile(values, [0.025, 0.975], axis=0).T
    for mine, theirs in zip(found[:3], limits, strict=True):
        assert (mine.low, mine.high) == pytest.approx(tuple(theirs), abs=1e-12)
    assert (found.n, found.n_units) == (60, 23)


def test_intervals_are_over_cases_not_candidates():
    """Nine copies of each candidate under one case tell nothing new."""
    x, y = scores()
    once = correlate(x, y, resamples=200)
    many = correlate(
        np.repeat(x, 9), np.repeat(y, 9), np.repeat(np.arange(60), 9), resamples=200
    )
    for one, other in zip(once[1:3], many[1:3], strict=True):
        assert one[:3] == pytest.approx(other[:3])
    assert once.tau_b[:3] == pytest.approx(many.tau_b[:3])
    assert (many.n, many.n_units) == (540, 60)


def test_a_large_case_drawn_often_is_still_exact():
    """All draws of a case with 60 candidates hold more pairs than float32 counts."""
    x, y = scores(4100, steps=10**6)
    units = np.where(np.arange(4100) < 4000, 0, np.arange(4100))
    drawn = np.concatenate(list(draw_units(101, 3, np.random.default_rng(0))))
    values = [
        library(*(side[np.concatenate([np.flatnonzero(units == u) for u in names])]
                  for side in (x, y)))
        for names in np.unique(units)[drawn]
    ]  # fmt: skip
    found = correlate(x, y, units, resamples=3)
    limits = np.quantile(values, [0.025, 0.975], axis=0).T
    for one, (low, high) in zip(found[:3], limits, strict=True):
        assert (one.low, one.high) == pytest.approx((low, high), abs=1e-12)


def test_missing_values_are_left_out_and_counted():
    """A candidate without a rating is no candidate; nothing is filled in."""
    x, y = scores()
    units = np.repeat(np.arange(30), 2)
    x[:3], y[10] = np.nan, np.nan
    found = correlate(x, y, units, resamples=50)
    kept = ~(np.isnan(x) | np.isnan(y))
    assert found == correlate(x[kept], y[kept], units[kept], resamples=50)
    assert (found.n, found.n_units) == (56, 29)


def test_the_order_of_rows_changes_nothing():
    """Units are drawn by name, so candidates may come in any order."""
    x, y = scores()
    units = np.array([f"case {i % 20}" for i in range(60)])
    order = np.random.default_rng(0).permutation(60)
    shuffled = correlate(x[order], y[order], units[order], resamples=100)
    for one, other in zip(correlate(x, y, units, resamples=100), shuffled, strict=True):
        assert one == pytest.approx(other)


def test_the_last_digit_of_a_float_is_no_order():
    """One F1 by two formulas, one mean in two orders: still the same number."""
    right, told, there = np.random.default_rng(0).integers(1, 9, (3, 60))
    precision, recall = right / (right + told), right / (right + there)
    harmonic = 2 * precision * recall / (precision + recall)
    direct = 2 * right / (2 * right + told + there)
    assert (harmonic != direct).any()
    _, ratings = scores()
    one, other = (correlate(x, ratings, resamples=50) for x in (harmonic, direct))
    for coefficient, same in zip(one[:2], other[:2], strict=True):
        assert coefficient == pytest.approx(same)
    assert correlate(harmonic, direct, resamples=2).tau_b.value == pytest.approx(1)
    rest = np.array([0.3, 0.1 + 0.2, 0.3, 0.1 + 0.2])
    assert correlate(rest, np.arange(4.0)).tau_b.value is None


def test_a_metric_against_itself_is_one_and_its_negative_minus_one():
    """Exactly, in every resample: which is no interval."""
    x, _ = scores()
    for sign in (1, -1):
        for one in correlate(x, sign * x)[:3]:
            assert one.value == pytest.approx(sign, abs=1e-12)
            assert one.low is None
            assert "every resample gives the same value" in one.note


@pytest.mark.parametrize("factor", [1e-12, 1e9])
def test_scale_and_shift_change_nothing(factor):
    """A metric may live anywhere on the line."""
    x, y = scores()
    plain, moved = (
        correlate(side, y, resamples=100) for side in (x, 1000 * factor + factor * x)
    )
    for one, other in zip(plain[:3], moved[:3], strict=True):
        assert one[:3] == pytest.approx(other[:3], abs=1e-9)


def test_no_spread_is_not_estimable():
    """A constant metric has no correlation: None, and the note says why."""
    x, y = scores()
    found = correlate(np.full(60, 0.7), y)
    assert found.tau_b == (None, None, None, "not estimable: all scores are equal")
    assert correlate(x, np.full(60, 3)).pearson.note.endswith("all ratings are equal")
    assert correlate(x[:1], y[:1]).spearman.note.startswith("not estimable: 1 cand")
    assert correlate(x[:0], y[:0])[3:] == (0, 0)


def test_one_case_has_no_interval():
    """Two candidates of one case can be ordered, and that is all."""
    found = correlate(np.array([1, 2]), np.array([3, 5]), np.array(["a", "a"]))
    assert found.tau_b[:3] == (1, None, None)
    assert found.tau_b.note.startswith("interval not estimable")


def test_the_interval_has_its_textbook_width():
    """Fisher's z: the standard error of a correlation is 1 / sqrt(n - 3)."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    found = correlate(x, x + rng.normal(size=500), resamples=1000).pearson
    z = np.arctanh([found.low, found.high])
    assert (z[1] - z[0]) / 2 == pytest.approx(1.96 / np.sqrt(497), rel=0.1)


def test_wrong_input_is_refused():
    """An infinite score is a defect of the metric, not a rank."""
    with pytest.raises(ValueError, match="equal shapes"):
        correlate(np.ones(3), np.ones(4))
    with pytest.raises(ValueError, match="equal shapes"):
        correlate(np.ones(3), np.ones(3), np.ones(4))
    with pytest.raises(ValueError, match="infinite"):
        correlate(np.array([1, np.inf]), np.ones(2))
    with pytest.raises(ValueError, match="confidence"):
        correlate(np.ones(3), np.ones(3), confidence=1)


def test_every_pair_is_counted_once():
    """Each kind of pair, once or twice."""
    nan = np.nan
    ratings = np.array(
        [[5, 1], [1, 5], [5, 1], [5, 1], [3, 3], [3, 3], [5, nan], [5, 1]]
    )
    scores = np.array(
        [[2, 1], [1, 2], [1, 2], [1, 1], [1, 1], [1, 2], [1, 2], [nan, 1]]
    )
    found = preference_accuracy(scores, ratings)
    assert found[:5] == (2, 1, 1, 2, 2)
    assert found.accuracy.value == 0.5
    assert sum(found[:5]) == len(scores)


def test_a_tie_is_not_a_right_answer():
    """A constant metric prefers nothing: 0 right, and all of it tied."""
    ratings = np.array([[1, 2]] * 9)
    found = preference_accuracy(np.ones((9, 2)), ratings)
    assert (found.right, found.tied, found.accuracy.value) == (0, 9, 0)


def test_rounding_is_no_preference():
    """Means of three ratings differ in their last bit, and are equal."""
    ratings = np.array([[0.1 + 0.2, 0.3]])
    assert preference_accuracy(np.array([[1, 2]]), ratings).rater_ties == 1


def test_the_interval_is_the_bootstrap_of_a_share():
    """Plus and minus 1.96 standard errors of 0.8 of 400."""
    scores = np.tile([[1, 2]] * 4 + [[2, 1]], (80, 1))
    ratings = np.tile([[1, 2]], (400, 1))
    found = preference_accuracy(scores, ratings, resamples=4000).accuracy
    error = 1.96 * np.sqrt(0.8 * 0.2 / 400)
    assert found[:3] == pytest.approx((0.8, 0.8 - error, 0.8 + error), abs=4e-3)


def test_pairs_of_one_case_stay_together():
    """Nine pairs of one case are no nine cases."""
    rng = np.random.default_rng(0)
    scores, ratings = rng.random((2, 40, 2))
    once = preference_accuracy(scores, ratings, resamples=200)
    many = preference_accuracy(
        np.repeat(scores, 9, 0),
        np.repeat(ratings, 9, 0),
        np.repeat(np.arange(40), 9),
        resamples=200,
    )
    assert many.accuracy == pytest.approx(once.accuracy)


def test_without_a_preference_there_is_no_accuracy():
    """None, not 0."""
    found = preference_accuracy(np.ones((3, 2)), np.ones((3, 2)))
    assert found.accuracy.value is None and found.rater_ties == 3
    assert preference_accuracy(np.ones((0, 2)), np.ones((0, 2)))[:5] == (0,) * 5


def test_wrong_shapes_are_refused():
    """The message names both."""
    with pytest.raises(ValueError, match=r"\(3, 2\) and \(2, 2\)"):
        preference_accuracy(np.ones((3, 2)), np.ones((2, 2)))
    with pytest.raises(ValueError, match="n_pairs, 2"):
        preference_accuracy(np.ones(3), np.ones(3))


@pytest.mark.parametrize("cells", [1, 2**24])
def test_many_pairs_of_columns_are_correlated_as_each_alone(cells, monkeypatch):
    """Bit for bit, with values missing in other rows and with one constant column."""
    monkeypatch.setattr("loop.stats.correlation._FORM_CELLS", cells)
    rng = np.random.default_rng(4)
    table = rng.normal(size=(40, 1)) + rng.normal(size=(40, 6))
    table[:, 1], table[:, 5] = table[:, 1].round(), 3
    table[::5, 2], table[1::7, 3] = np.nan, np.nan
    units = np.arange(40) // 3
    pairs = [(0, 1), (1, 0), (2, 3), (0, 4), (4, 2), (5, 0)]
    found = correlate_columns(table, pairs, units=units, resamples=300, seed=2)
    for (x, y), one in zip(pairs, found, strict=True):
        alone = correlate(table[:, x], table[:, y], units, resamples=300, seed=2)
        assert one == alone
    assert correlate_columns(table, []) == []


@pytest.mark.parametrize("n", [3, 300, 700])
def test_sums_are_exact_whatever_the_number_of_candidates(n):
    """Ranks and pairs are whole numbers; wider floats are taken where they must be."""
    x, y = scores(n, steps=n)
    units = np.zeros(n)
    found = correlate(x, y, np.append(units[1:], 1), resamples=4)
    for mine, theirs in zip(found[:3], library(x, y), strict=True):
        assert mine.value == pytest.approx(theirs, abs=1e-12)


def test_many_metrics_have_the_preferences_of_each_alone():
    """Bit for bit, undefined scores included."""
    rng = np.random.default_rng(6)
    values = rng.integers(0, 4, (30, 2, 3)).astype(float)
    values[::4, 1, 1] = np.nan
    ratings, units = rng.integers(1, 4, (30, 2)), np.arange(30) // 2
    found = preference_accuracies(values, ratings, units=units, resamples=200)
    for place, one in enumerate(found):
        alone = preference_accuracy(values[:, :, place], ratings, units, resamples=200)
        assert one == alone


def test_what_only_ratings_share_with_scores_leaves_no_partial_tau():
    """Kendall's formula from scipy's tau-b, on the data and on every resample."""
    rng = np.random.default_rng(5)
    ratings = rng.integers(1, 6, 40).astype(float)
    scores, length = (ratings + rng.normal(0, 1, (2, 40))).round(1)
    units = np.arange(40) // 2

    def plain(rows):
        tau = [
            stats.kendalltau(one[rows], other[rows]).statistic
            for one, other in ((scores, length), (ratings, length), (scores, ratings))
        ]
        spread = np.sqrt((1 - tau[1] ** 2) * (1 - tau[2] ** 2))
        return [*tau[:2], tau[0] - tau[1], (tau[0] - tau[1] * tau[2]) / spread]

    found = partial_tau(scores, length, ratings, units=units, resamples=60, seed=2)
    told = [one.value for one in found[:4]]
    assert told == pytest.approx(plain(np.arange(40)))
    [drawn] = draw_units(20, 60, np.random.default_rng(2))
    rows = [np.concatenate([np.flatnonzero(units == u) for u in one]) for one in drawn]
    limits = np.quantile([plain(one) for one in rows], [0.025, 0.975], axis=0).T
    for one, (low, high) in zip(found[:4], limits, strict=True):
        assert (one.low, one.high) == pytest.approx((low, high))
    assert (found.n, found.n_units) == (40, 20)


def test_partial_tau_is_undefined_where_nothing_is_left():
    """Scores that are the ratings, a constant length, and nobody rated."""
    x, y = scores()
    assert partial_tau(y, x, y, resamples=20).partial.value is None
    flat = partial_tau(x, np.ones(60), y, resamples=20)
    assert (flat.scores.value, flat.partial.value) == (None, None)
    nobody = partial_tau(x, y, np.full(60, np.nan))
    assert nobody.n == 0 and nobody.scores.note.startswith("not estimable: 0 cand")
    alone = partial_tau(x[:1], y[:1], y[:1])
    assert alone.partial.note == "not estimable: 1 candidates with all three"


def test_the_test_of_kendall_is_exact_where_it_can_be():
    """Of three in order two of six orders are as extreme; of five two of 120."""
    assert kendall_p(np.arange(3.0), np.arange(3.0)) == pytest.approx(2 / 6)
    assert kendall_p(np.arange(5.0), -np.arange(5.0)) == pytest.approx(2 / 120)
    gaps = np.array([0, 1, np.nan, 2])
    assert kendall_p(gaps, np.array([0, 1, 7, 2])) == pytest.approx(2 / 6)
    x, y = scores()
    assert kendall_p(x, y) == stats.kendalltau(x, y).pvalue


def test_a_flat_side_has_no_p():
    """Nothing is ordered there; a single candidate has no order either."""
    assert kendall_p(np.ones(4), np.arange(4.0)) is None
    assert kendall_p(np.arange(4.0), np.ones(4)) is None
    assert kendall_p(np.array([1.0]), np.array([1.0])) is None


@pytest.mark.parametrize(
    ("estimate", "units", "p", "shown"),
    [
        (Estimate(0.4, 0.1, 0.6), 9, 0.01, True),
        (Estimate(-0.4, -0.6, -0.1), 9, 0.01, True),
        (Estimate(0.4, 0.1, 0.6), 9, 0.05, False),
        (Estimate(0.4, -0.1, 0.6), 9, 0.01, False),
        (Estimate(0.4, 0.0, 0.6), 9, 0.01, False),
        (Estimate(0.4, 0.1, 0.6), 9, None, False),
        (Estimate(None, None, None), 9, 0.01, False),
        (Estimate(0.4, None, None), 9, 0.01, False),
        # Every resample of a perfect order is one. Of five units two in 120 orders
        # are as extreme, of four two in 24, however many candidates they have.
        (Estimate(-1.0, None, None), 5, 0.01, True),
        (Estimate(1.0, None, None), 4, 0.01, False),
        (Estimate(1.0, None, None), 5, 0.33, False),
    ],
)
def test_a_tau_is_shown_by_its_test_and_its_interval(estimate, units, p, shown):
    """The one guards against few candidates, the other against many of one case."""
    found = Correlations(estimate, estimate, estimate, n=9, n_units=units)
    assert is_shown(found, p) is shown


def test_many_candidates_of_one_case_show_nothing():
    """Eight in perfect order are one unit: no other case says the same."""
    x = np.arange(8.0)
    assert kendall_p(x, x) < 0.001
    assert not is_shown(correlate(x, x, np.zeros(8)), kendall_p(x, x))
    assert is_shown(correlate(x, x), kendall_p(x, x))


def test_nobody_rated_has_no_p():
    """Nor has a single candidate; two of them have one."""
    nothing = np.full(3, np.nan)
    assert kendall_p(nothing, np.arange(3.0)) is None
    assert kendall_p(np.array([1.0, np.nan]), np.array([2.0, 1.0])) is None
    assert kendall_p(np.array([1.0, 2.0]), np.array([2.0, 3.0])) == 1.0


@pytest.mark.parametrize("n", [0, 1])
def test_tau_b_of_fewer_than_two_values_is_undefined(n):
    """NaN, as where a side is constant."""
    assert np.isnan(tau_b(np.arange(float(n)), np.arange(float(n))))
    assert np.isnan(tau_b(np.ones(4), np.arange(4.0)))
    assert np.isnan(tau_b(np.arange(4.0), np.ones(4)))
    assert tau_b(np.arange(2.0), -np.arange(2.0)) == -1
    # The last digit of a float is no order.
    near = np.array([0.3, 0.1 + 0.2, 0.5])
    expected = stats.kendalltau([1, 1, 2], [1, 2, 3]).statistic
    assert tau_b(near, np.arange(3.0)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("apart", "tied"), [(0.0, True), (9e-13, True), (1.1e-12, False), (1.0, False)]
)
def test_values_apart_by_more_than_rounding_are_a_preference(apart, tied):
    """Of scores as of ratings."""
    near, sure = np.array([[apart, 0.0]]), np.array([[2.0, 1.0]])
    by_scores = preference_accuracy(near, sure, resamples=5)
    by_raters = preference_accuracy(sure, near, resamples=5)
    assert (by_scores.tied, by_scores.right) == (tied, not tied)
    assert (by_raters.rater_ties, by_raters.right) == (tied, not tied)
    turned = preference_accuracy(near, sure[:, ::-1], resamples=5)
    assert (turned.tied, turned.wrong) == (tied, not tied)
