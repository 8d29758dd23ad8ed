"""Tests of two metrics against published examples, scipy and enumeration."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, rankdata
from scipy.stats import t as student

from loop.stats.dependent import MetricTest, compare_metrics, williams


def metrics(n=10, seed=0, steps=4):
    """Return two metrics with ties, and the ratings they are about."""
    rng = np.random.default_rng(seed)
    rating = rng.integers(1, 6, n).astype(float)
    noisy = rating[:, None] + rng.normal(0, [1, 3], (n, 2))
    one, two = (np.round(noisy * steps) / steps).T
    return one, two, rating


def compare(one, two, rating, units=None, **options) -> MetricTest:
    """Return the test of two metrics."""
    table = np.stack([one, two], axis=1)
    return compare_metrics(table, rating, units, **options)[0]


def rolled(n):
    """Return two metrics that differ in every case, and their ratings."""
    one, _, rating = metrics(n)
    order = np.argsort(one)
    one[order], two = np.arange(n), np.empty(n)
    two[order] = np.roll(np.arange(n), 3)
    return one, two, rating


def tau(x, y):
    """Return scipy's tau-b, NaN where one side is constant."""
    flat = len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0
    return np.nan if flat else kendalltau(x, y).statistic


def enumerate_exchanges(one, two, rating, units):
    """Return the exact p-value, each exchange scored by scipy."""
    one, two, names = rankdata(one), rankdata(two), np.unique(units)

    def difference(swapped):
        where = np.isin(units, names[np.array(swapped, dtype=bool)])
        first, second = np.where(where, two, one), np.where(where, one, two)
        return tau(first, rating) - tau(second, rating)

    observed = abs(difference([0] * len(names)))
    ways = product([0, 1], repeat=len(names))
    return np.mean([not abs(difference(way)) < observed - 1e-12 for way in ways])


def test_williams_gives_the_textbook_example():
    """Howell DC. Statistical Methods for Psychology, 6th ed., p. 262."""
    t, df, p = williams(0.80, 0.72, 0.89, 26)
    assert (round(t, 3), df, round(p, 3)) == (1.361, 23, 0.187)


def test_williams_by_hand():
    """With r23 = 0 and r12 = -r13 the mean is 0: t = 2 r sqrt((n-3) / (2 - 4 r^2))."""
    r, n = 0.5, 52
    t, df, _ = williams(r, -r, 0.0, n)
    assert t == pytest.approx(2 * r * np.sqrt((n - 3) / (2 * (1 - 2 * r * r))))
    assert df == 49


def test_williams_mirrors_when_the_metrics_swap():
    """The sign says which one is better, the p-value does not care."""
    t, _, p = williams(0.5, 0.3, 0.4, 50)
    back = williams(0.3, 0.5, 0.4, 50)
    assert back == (pytest.approx(-t), 47, pytest.approx(p))


def test_williams_holds_its_level():
    """Two equally good normal metrics: a tenth of the p-values is below 0.1."""
    rng = np.random.default_rng(0)
    small = 0
    for _ in range(1000):
        truth = rng.normal(size=40)
        table = np.corrcoef([truth, *(truth + rng.normal(size=(2, 40)))])
        small += williams(table[0, 1], table[0, 2], table[1, 2], 40).p <= 0.1
    assert abs(small - 100) < 4 * np.sqrt(1000 * 0.1 * 0.9)


def test_williams_has_its_corners():
    """Too few candidates, equal correlations, no variance left, impossible input."""
    assert williams(0.5, 0.3, 0.4, 3) == (None, 0, None)
    assert williams(0.5, 0.5, 1.0, 30) == (0, 27, 1)
    assert williams(1.0, -1.0, -1.0, 30) == (None, 27, None)
    with pytest.raises(ValueError, match="got nan"):
        williams(float("nan"), 0, 0, 9)


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 2))
def test_a_short_test_equals_the_enumeration(seed, n_units, each):
    """All exchanges of whole cases, with ties, scored by scipy one by one."""
    n = n_units * each
    one, two, rating = metrics(n, seed, steps=1)
    units = np.arange(n) % n_units
    found = compare(one, two, rating, units)
    difference = tau(one, rating) - tau(two, rating)
    if np.isnan(difference):
        assert found == (None, None, False, n, n_units)
        return
    assert found.exact and found.difference == pytest.approx(difference, abs=1e-12)
    expected = enumerate_exchanges(one, two, rating, units)
    assert found.p == pytest.approx(expected)


def test_a_sample_of_exchanges_comes_near_all_of_them():
    """Twenty cases: sampled, and within four standard errors of 2^20 exchanges."""
    one, two, rating = metrics(20)
    drawn = compare(one, two, rating, permutations=2000)
    exact = compare(one, two, rating, permutations=2**20)
    assert (drawn.exact, exact.exact) == (False, True)
    error = np.sqrt(exact.p * (1 - exact.p) / 2000)
    assert abs(drawn.p - exact.p) < 4 * error + 1 / 2000


def test_cases_on_which_both_agree_leave_the_test_exact():
    """Sixty cases of which two have other ranks: four exchanges."""
    one, _, rating = metrics(60, steps=10**6)
    two = one.copy()
    order = np.argsort(one)
    two[order[[3, 4]]] = one[order[[4, 3]]]
    found = compare(one, two, rating)
    assert found.exact and (found.p * 4).is_integer()


def test_scales_of_the_metrics_do_not_matter():
    """Only ranks are exchanged, so any growing function of a metric is the same."""
    one, two, rating = metrics(30)
    plain = compare(one, two, rating, permutations=500)
    moved = compare(np.exp(one), 1e6 * two - 5, rating, permutations=500)
    assert moved == plain


def test_swapping_the_metrics_changes_the_sign():
    """The same exchanges count."""
    one, two, rating = metrics(30)
    there = compare(one, two, rating, permutations=500)
    back = compare(two, one, rating, permutations=500)
    assert back.difference == pytest.approx(-there.difference)
    assert back.p == there.p


def test_two_equal_metrics_do_not_differ():
    """Exactly 1, whatever the number of cases."""
    one, _, rating = metrics(300)
    assert compare(one, 2 * one, rating)[:3] == (0, 1, True)


def test_metrics_that_differ_in_their_last_digits_do_not_differ():
    """Rounding makes no rank that could be exchanged."""
    one, _, rating = metrics(300)
    one = one.round(1)
    noise = np.random.default_rng(0).choice([-1, 0, 1], len(one))
    other = one * (1 + noise * np.finfo(np.float64).eps)
    assert (one != other).any()
    assert compare(one, other, rating)[:3] == (0, 1, True)


def test_a_candidate_without_all_three_is_left_out():
    """Both metrics are compared on the same candidates."""
    one, two, rating = metrics(30)
    one[0], two[1], rating[2] = np.nan, np.nan, np.nan
    found = compare(one, two, rating, permutations=100)
    cut = compare(one[3:], two[3:], rating[3:], permutations=100)
    assert found == cut and (found.n, found.n_units) == (27, 27)


def test_the_level_holds():
    """Equally noisy metrics, two candidates per case: a tenth is below 0.1."""
    small = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        rating = rng.integers(1, 6, 40).astype(float)
        one, two = rating + rng.normal(0, 2, (2, 40))
        found = compare(
            one, two, rating, np.arange(40) // 2, permutations=199, seed=seed
        )
        small += found.p <= 0.1
    assert abs(small - 30) < 4 * np.sqrt(300 * 0.1 * 0.9)


def test_a_constant_metric_cannot_be_compared():
    """None, not a difference of nothing."""
    one, _, rating = metrics(12)
    found = compare(np.ones(12), one, rating)
    assert found == (None, None, False, 12, 12)
    assert compare(one[:0], one[:0], one[:0]).difference is None


def test_wrong_input_is_refused():
    """The message names the value."""
    one, two, rating = metrics(12)
    with pytest.raises(ValueError, match="got 0"):
        compare(one, two, rating, permutations=0)
    with pytest.raises(ValueError, match=r"got \(12, 2\) and \(11,\)"):
        compare(one, two, rating[1:])
    with pytest.raises(ValueError, match=r"got \(12,\) and \(12,\)"):
        compare_metrics(one, rating)
    with pytest.raises(ValueError, match="must be finite"):
        compare(np.append(one[1:], np.inf), two, rating)


def test_few_cases_are_enumerated_however_few_exchanges_are_asked_for():
    """One exchange asked for, all 64 counted."""
    one, two, rating = rolled(6)
    found = compare(one, two, rating, permutations=1)
    expected = enumerate_exchanges(one, two, rating, np.arange(6))
    assert (found.exact, found.p) == (True, pytest.approx(expected))


@pytest.mark.parametrize(
    ("n", "permutations", "exact"),
    [(18, 99, True), (19, 99, False), (19, 2**18, False), (19, 2**19, True)],
)
def test_up_to_18_cases_or_as_many_as_allowed_are_exact(n, permutations, exact):
    """A sampled p has one exchange more in its denominator."""
    one, two, rating = rolled(n)
    found = compare(one, two, rating, permutations=permutations)
    whole = found.p * (2 ** (n - 1) if exact else permutations + 1)
    assert found.exact is exact and whole == pytest.approx(round(whole), abs=1e-6)
    if exact:
        assert found.p == compare(one, two, rating, permutations=2**n).p


@pytest.mark.parametrize("cells", [1, 2**24])
def test_many_pairs_are_tested_as_each_alone(cells, monkeypatch):
    """Bit for bit, sampled and exact, where metrics are undefined in other rows."""
    monkeypatch.setattr("loop.stats.correlation._FORM_CELLS", cells)
    rng = np.random.default_rng(3)
    rating = rng.integers(1, 6, 60).astype(float)
    table = rating[:, None] + rng.normal(0, [1, 2, 3, 1, 2], (60, 5)).round(1)
    table[::7, 1], table[::9, 2], rating[4] = np.nan, np.nan, np.nan
    table[:, 4] = table[:, 3]
    table[[6, 8], 4] = table[[8, 6], 3]
    units = np.arange(60) // 2
    pairs = [(2, 1), (0, 3), (0, 1), (3, 4), (1, 0)]
    found = compare_metrics(table, rating, units, pairs=pairs, permutations=300)
    assert {one.exact for one in found} == {True, False}
    for (one, two), test in zip(pairs, found, strict=True):
        alone = compare(table[:, one], table[:, two], rating, units, permutations=300)
        assert test == alone


def test_a_sampled_test_equals_the_plain_loop():
    """The same exchanges drawn, each scored by scipy."""
    one, two, rating = metrics(50)
    units = np.arange(50) // 2
    found = compare(one, two, rating, units, permutations=60, seed=5)
    ranks = np.stack([rankdata(one), rankdata(two)])
    rng = np.random.default_rng([5, 1])
    swaps = rng.integers(2, size=(60, 25), dtype=np.bool_)[:, units]
    observed = abs(tau(one, rating) - tau(two, rating))
    larger = 0
    for swap in swaps:
        first, second = np.where(swap, ranks[::-1], ranks)
        larger += abs(tau(first, rating) - tau(second, rating)) > observed - 1e-12
    assert not found.exact and found.p == pytest.approx((larger + 1) / 61)


@pytest.mark.parametrize("n", [4, 5, 30])
@pytest.mark.parametrize("seed", range(4))
def test_williams_is_his_formula_for_any_three_correlations(n, seed):
    """With the determinant of the matrix, and t from scipy; from one degree on."""
    rng = np.random.default_rng(seed)
    matrix = np.corrcoef(rng.normal(size=(3, 8)))
    r12, r13, r23 = matrix[0, 1], matrix[0, 2], matrix[1, 2]
    mean = (r12 + r13) / 2
    spread = 2 * np.linalg.det(matrix) * (n - 1) / (n - 3) + mean**2 * (1 - r23) ** 3
    expected = (r12 - r13) * np.sqrt((n - 1) * (1 + r23) / spread)
    found = williams(r12, r13, r23, n)
    assert found == (
        pytest.approx(expected),
        n - 3,
        pytest.approx(2 * student.sf(abs(expected), n - 3)),
    )


def test_a_pair_that_cannot_be_compared_ends_nothing():
    """A constant metric comes first; the pair after it is as if alone."""
    one, two, rating = metrics(30)
    table = np.stack([np.ones(30), one, two], axis=1)
    pairs = [(0, 1), (1, 2), (2, 0)]
    found = compare_metrics(table, rating, pairs=pairs, permutations=200)
    alone = compare(one, two, rating, permutations=200)
    nothing = (None, None, False, 30, 30)
    assert found == [nothing, alone, nothing]
