"""Permutation p-values against published numbers and closed forms."""

import numpy as np
import pytest

from loop.stats.exchange import check_permutations, exact_p, sampled_p

# Darwin's Zea mays, crossed minus self-fertilised, eighths of an inch (Fisher RA. The
# Design of Experiments. 1935, section 21).
DARWIN = np.array([49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48.0])


def total(values):
    """Return the sum of paired differences after each exchange."""
    return lambda swaps: np.where(swaps, -values, values).sum(axis=1, keepdims=True)


def test_fishers_own_example_comes_out():
    """He counted 863 of 2^14 with a sum as large, on one side: 0.02634 of 2^15."""
    p = exact_p(total(DARWIN), np.array([abs(DARWIN.sum())]), 15)
    assert p[0] == pytest.approx(2 * 863 / 2**15)


def test_a_sample_comes_near_fishers_number():
    """Within four standard errors."""
    [p] = sampled_p(
        total(DARWIN), np.array([DARWIN.sum()]), 15, permutations=20_000, seed=0
    )
    assert abs(p - 2 * 863 / 2**15) < 4 * np.sqrt(0.05 / 20_000)


def test_a_sample_is_never_certain():
    """A hundred units all one way: one in permutations + 1, the observed one."""
    gains = np.ones(100)
    [p] = sampled_p(total(gains), np.array([100.0]), 100, permutations=999, seed=0)
    assert p == pytest.approx(1 / 1000)


def test_nothing_to_exchange_is_no_evidence():
    """The observed difference is the only one there is."""
    assert exact_p(total(np.zeros(0)), np.zeros(1), 0).tolist() == [1]


def test_an_undefined_difference_counts_as_large():
    """It must not make the p-value smaller."""

    def undefined(swaps):
        return np.where(swaps[:, :1], np.nan, 1.0)

    assert exact_p(undefined, np.array([5.0]), 3).tolist() == [0.5]


def test_rounding_does_not_break_ties():
    """Sums of tenths in another order differ in their last bit, and are equal."""
    gains = np.array([0.1, 0.2, 0.3, 0.0])
    [p] = exact_p(total(gains), np.array([0.6000000000000001]), 4)
    assert p == 4 / 16


def test_at_least_one_exchange_is_needed():
    """The message names the value."""
    with pytest.raises(ValueError, match="got 0"):
        check_permutations(0)
