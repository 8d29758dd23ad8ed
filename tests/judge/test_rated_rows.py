"""Rows that tell nothing of the cases, and the same intervals from them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from loop.judge.rated_rows import digest_rows, number_units, rated_rows
from loop.stats.correlation import correlate

PAIRS = st.lists(
    st.tuples(
        st.sampled_from("abcde"),
        st.sampled_from([1.0, 2.0, 3.5, np.nan]),
        st.sampled_from([0.0, 0.25, 0.5, 1.0, np.nan]),
    ),
    min_size=1,
    max_size=12,
)


def columns(pairs):
    """Return units, points and scores as arrays."""
    units, points, scores = zip(*pairs, strict=True)
    return np.array(units), np.array(points), np.array(scores)


@given(PAIRS, st.randoms(use_true_random=False), st.permutations("vwxyz"))
def test_rows_hang_neither_on_the_order_nor_on_the_names(pairs, random, names):
    """The cohort in another order, its patients under other names: the same rows."""
    renamed = [(names["abcde".index(one[0])], *one[1:]) for one in pairs]
    random.shuffle(renamed)
    found = []
    for given_pairs in (pairs, renamed):
        units, points, scores = columns(given_pairs)
        numbers = number_units(units, points, scores)
        found.append(rated_rows(numbers, points, scores))
    assert found[0] == found[1]
    assert digest_rows(found[0]) == digest_rows(found[1])
    assert len(found[0]) == sum(not np.isnan(one[1]) for one in pairs)


def test_whoever_has_the_rows_gets_the_same_interval():
    """Bit for bit: units are resampled in the order in which the rows have them."""
    source = np.random.default_rng(4)
    units = source.integers(9, size=40).astype(str)
    scores = source.random(40).round(2)
    points = (4 * scores + source.random(40)).round(1)
    points[3], scores[5] = np.nan, np.nan
    numbers = number_units(units, points, scores)
    both = ~np.isnan(points) & ~np.isnan(scores)
    there = correlate(scores[both], points[both], numbers[both], resamples=200)
    rows = [one for one in rated_rows(numbers, points, scores) if one.score is not None]
    table = np.array([one[:3] for one in rows])
    here = correlate(table[:, 1], table[:, 2], table[:, 0], resamples=200)
    assert here.tau_b == there.tau_b
    assert here.n_units == there.n_units
