"""Raters among themselves: pairs, one against the rest, missing ratings."""

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr

from loop.score.experts.agreement import rater_agreement, unit_codes
from loop.score.experts.ratings import Ratings, candidate_pairs

NA = np.nan


def ratings_of(scores, ids=None, systems=None):
    """Return ratings with made-up names."""
    scores = np.asarray(scores, dtype=float)
    rows, raters = scores.shape
    return Ratings(
        ids=tuple(ids or (f"c{row:03}" for row in range(rows))),
        systems=tuple(systems or ["x"] * rows),
        raters=tuple(f"r{rater}" for rater in range(raters)),
        scores=scores,
        scale=(1, 5),
    )


@pytest.fixture
def random_ratings():
    """Return 40 candidates of three raters, some of them missing."""
    rng = np.random.default_rng(3)
    truth = rng.integers(1, 6, size=(40, 1))
    scores = np.clip(truth + rng.integers(-1, 2, size=(40, 3)), 1, 5).astype(float)
    scores[rng.random(scores.shape) < 0.1] = NA
    return ratings_of(scores)


def test_pairs_are_scipys_on_the_candidates_that_both_rated(random_ratings):
    """A missing rating drops the candidate from the pair and is never a low one."""
    found = rater_agreement(random_ratings, resamples=50)
    assert [(pair.first, pair.second) for pair in found.pairs] == [
        ("r0", "r1"),
        ("r0", "r2"),
        ("r1", "r2"),
    ]
    for pair, places in zip(found.pairs, [(0, 1), (0, 2), (1, 2)], strict=True):
        both = random_ratings.scores[:, places]
        both = both[~np.isnan(both).any(axis=1)].T
        assert pair.correlations.n == both.shape[1]
        assert pair.correlations.tau_b.value == pytest.approx(kendalltau(*both)[0])
        assert pair.correlations.pearson.value == pytest.approx(pearsonr(*both)[0])
        assert pair.same == pytest.approx((both[0] == both[1]).mean())
    assert found.tau_b == pytest.approx(
        np.mean([pair.correlations.tau_b.value for pair in found.pairs])
    )
    assert found.missing == np.isnan(random_ratings.scores).sum()
    assert found.complete == (~np.isnan(random_ratings.scores).any(axis=1)).sum()


def test_one_rater_is_compared_with_the_others_without_them(random_ratings):
    """With themselves in the mean the ceiling would be too high."""
    found = rater_agreement(random_ratings, resamples=50)
    others = np.nanmean(random_ratings.scores[:, 1:], axis=1)
    own = random_ratings.scores[:, 0]
    both = ~np.isnan(own) & ~np.isnan(others)
    expected = kendalltau(own[both], others[both])[0]
    assert found.rest[0].correlations.tau_b.value == pytest.approx(expected)


def test_one_rater_alone_has_no_ceiling():
    """Nothing to agree with is undefined, neither 0 nor 1."""
    found = rater_agreement(ratings_of([[1], [2], [3]]), resamples=20)
    assert (found.pairs, found.rest, found.tau_b) == ((), (), None)
    assert found.icc.note == found.ordinal.note == "not estimable: one rater"


def test_raters_without_a_common_candidate_have_no_agreement():
    """The pair is there with its zero, so that nobody overlooks it."""
    found = rater_agreement(ratings_of([[1, NA], [2, NA], [NA, 3]]), resamples=20)
    [pair] = found.pairs
    assert (pair.correlations.n, pair.same) == (0, None)
    assert pair.correlations.tau_b.value is None
    assert found.tau_b is None


def test_patients_are_drawn_together():
    """The unit of a candidate is its patient where known, else its case."""
    assert unit_codes(("a", "b"), {"a": "p", "b": "p"}).tolist() == ["p", "p"]
    assert unit_codes(("a", "a"), None).tolist() == ["a", "a"]
    with pytest.raises(ValueError, match="no patient for case b"):
        unit_codes(("a", "b"), {"a": "p"})


def test_pairs_of_candidates_are_those_of_one_case():
    """Three systems make three pairs; a case with one candidate makes none."""
    given = ratings_of(
        [[5, 4], [3, 3], [1, 1], [2, NA], [4, 4], [4, 4], [1, 2], [2, 1]],
        ids=["a", "a", "a", "b", "c", "c", "d", "d"],
        systems=["x", "y", "z", "x", "x", "y", "x", "y"],
    )
    found = candidate_pairs(given, np.array(given.ids))
    assert found.rows.tolist() == [[0, 1], [0, 2], [1, 2], [4, 5], [6, 7]]
    assert found.unanimous.tolist() == [True, True, True, False, False]
    assert found.tied.tolist() == [False, False, False, True, False]
    assert found.consensus[0].tolist() == [4.5, 3]
    assert found.units.tolist() == ["a", "a", "a", "c", "d"]


def test_a_pair_is_compared_over_the_raters_who_saw_both():
    """Else a strict rater who saw only one candidate would decide against it."""
    given = ratings_of([[5, 1], [4, NA]], ids=["a", "a"], systems=["x", "y"])
    found = candidate_pairs(given, np.array(given.ids))
    assert found.consensus.tolist() == [[5, 4]]
    assert not found.unanimous[0]


def test_one_rater_is_never_unanimous():
    """Unanimity says that several agree."""
    given = ratings_of([[5], [4]], ids=["a", "a"], systems=["x", "y"])
    found = candidate_pairs(given, np.array(given.ids))
    assert not found.unanimous.any()
    assert not found.tied.any()


def test_cases_with_one_candidate_have_no_pairs():
    """Arrays of no length, with their shapes."""
    given = ratings_of([[5, 4], [3, 3]])
    found = candidate_pairs(given, np.array(given.ids))
    assert found.rows.shape == found.consensus.shape == (0, 2)
