"""Formulas on raters' own counts, against the published numbers of RadPref."""

import numpy as np
import pytest

from loop.score.experts.error_counts import Empty, count_agreement, share_matched
from loop.score.experts.radpref import read_radpref
from loop.score.experts.ratings import rater_agreement
from tests.score.experts.test_ratings import ratings_of

FORMULAS = [
    ((0, 0, 1), None, None, 0),
    ((0, 1, 0), 0, 0, 0),
    ((1, 0, 0), 1, 1, 1),
    ((3, 1, 2), 0.75, 0.8571, 0.5),
    ((4, 2, 1), 0.6667, 0.8, 0.4706),
    ((5, 0, 3), 1, 1, 0.7692),
    ((10, 3, 2), 0.7692, 0.8696, 0.5882),
    ((2, 4, 0), 0.3333, 0.5, 0.2),
    ((0, 0, 0), None, None, None),
]
"""Counts, then GREEN, GREEN-F1 and Formula."""

PUBLISHED = {
    ("GREEN", Empty.ZERO): (0.4858, 0.5318, 0.4870),
    ("GREEN", Empty.ONE): (0.7778, 0.7757, 0.7000),
    ("GREEN", Empty.SKIP): (0.8290, 0.8102, 0.7392),
    ("Formula", Empty.ZERO): (0.5097, 0.5310, 0.5033),
    ("Formula", Empty.ONE): (0.7565, 0.7368, 0.7405),
    ("Formula", Empty.SKIP): (0.7022, 0.6881, 0.6735),
    ("significant errors", None): (0.6413, 0.6767, 0.6453),
    ("all errors", None): (0.6935, 0.6803, 0.6739),
    ("weighted errors", None): (0.7117, 0.6967, 0.7000),
}
"""tau-b of each reader on all 100 cases of RadPref."""


@pytest.mark.parametrize(("counts", "green", "f1", "formula"), FORMULAS)
def test_the_formulas_give_the_published_values(counts, green, f1, formula):
    """One family of ratios with other weights; nothing over nothing is undefined."""
    given = np.array(counts, dtype=float)
    found = [
        share_matched(given),
        share_matched(given, significant=0.5),
        share_matched(given, significant=2, insignificant=0.5),
    ]
    for value, expected in zip(found, (green, f1, formula), strict=True):
        if expected is None:
            assert np.isnan(value)
        else:
            assert value == pytest.approx(expected, abs=5e-5)


def test_the_policy_for_empty_candidates_decides():
    """The same counts: left out, at the bottom, or at the top."""
    ratings = ratings_of([[5], [4], [2], [1]])
    counts = np.array([[[0, 0, 0]], [[3, 0, 0]], [[2, 2, 0]], [[1, 3, 0]]], dtype=float)
    found = {
        one.empty: one
        for one in count_agreement(ratings, counts, resamples=20)
        if one.name == "GREEN"
    }
    assert found[Empty.SKIP].raters[0].n == 3
    assert found[Empty.SKIP].tau_b == pytest.approx(1)
    assert found[Empty.ZERO].tau_b == pytest.approx(0)
    assert found[Empty.ONE].tau_b == pytest.approx(5 / np.sqrt(30))


def test_counts_that_nobody_gave_are_no_zero():
    """The policy is for empty candidates, not for missing raters."""
    ratings = ratings_of([[5, 4], [3, 2], [1, 1]])
    counts = np.ones((3, 2, 3))
    counts[1, 1] = np.nan
    for one in count_agreement(ratings, counts, resamples=20):
        assert [rater.n for rater in one.raters] == [3, 2]


def test_counts_of_another_shape_are_refused():
    """Three counts for every rating."""
    with pytest.raises(ValueError, match="three counts per rating"):
        count_agreement(ratings_of([[1, 2]]), np.zeros((1, 2, 2)))


@pytest.mark.data
def test_the_published_numbers_lie_within_the_intervals_found_here(data_folder):
    """Half of the cases cannot give the same number, but must not contradict it."""
    found = read_radpref(data_folder / "radpref")
    said = count_agreement(
        found.ratings, found.counts, patients=found.patients, resamples=1000
    )
    assert {(one.name, one.empty) for one in said} == set(PUBLISHED)
    for one in said:
        published = PUBLISHED[one.name, one.empty]
        for rater, expected in zip(one.raters, published, strict=True):
            assert rater.tau_b.low <= expected <= rater.tau_b.high


@pytest.mark.data
def test_the_published_ceiling_lies_within_the_intervals_found_here(data_folder):
    """tau-b and Pearson of raters 1-2, 1-3 and 2-3 on all 100 cases."""
    found = read_radpref(data_folder / "radpref")
    agreed = rater_agreement(found.ratings, patients=found.patients, resamples=1000)
    taus, pearsons = (0.789, 0.765, 0.757), (0.853, 0.860, 0.836)
    for pair, tau, pearson in zip(agreed.pairs, taus, pearsons, strict=True):
        said = pair.correlations
        assert said.tau_b.low <= tau <= said.tau_b.high
        assert said.pearson.low <= pearson <= said.pearson.high
