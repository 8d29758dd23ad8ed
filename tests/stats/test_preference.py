"""Pairwise preferences, counted by hand."""

import numpy as np
import pytest

from loop.stats.preference import preference_accuracy


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
