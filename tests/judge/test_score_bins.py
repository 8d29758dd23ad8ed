"""How scores are spread: bins of shares, of counts, and of anything else."""

import numpy as np
import pytest

from loop.judge.score_bins import bins_data, score_bins


def labels(values):
    """Return the filled bins by label."""
    found = score_bins(np.array(values, dtype=float))
    assert sum(one.share for one in found) == pytest.approx(1) if found else True
    return {one.label: one.n for one in found if one.n}


def test_a_score_is_in_the_bin_that_begins_with_it():
    """0.3 as 3/10 and as 0.1 + 0.2 is one score; 1 is in the last bin."""
    assert labels([0.3, 0.1 + 0.2, 0.29, 0.0, 1.0]) == {
        "0-0.1": 1,
        "0.2-0.3": 1,
        "0.3-0.4": 2,
        "0.9-1": 1,
    }


def test_counts_have_a_bin_each():
    """And one for all above ten; a judge that finds nothing has one bar."""
    assert labels([0, 2, 2, 11, 40]) == {"0": 1, "2": 2, "11+": 2}
    assert len(score_bins(np.array([0.0, 2.0]))) == 3
    assert labels([0, 1, 0]) == {"0-0.1": 2, "0.9-1": 1}


def test_scores_below_zero_are_spread_over_what_is_there():
    """As of CRIMSON, from -1 to 1."""
    found = score_bins(np.array([-1.0, -0.5, 0.25, 1.0]))
    assert (found[0].low, found[-1].high) == (-1, 1)
    assert sum(one.n for one in found) == 4 and found[-1].n == 1
    assert labels([-2.5, -2.5]) == {"-2.5": 2}


def test_what_has_no_score_is_in_no_bin():
    """Shares are of the pairs that have one; without any there is no bin."""
    (found,) = [one for one in score_bins(np.array([np.nan, 0.5])) if one.n]
    assert (found.n, found.share) == (1, 1.0)
    assert score_bins(np.array([np.nan])) == ()
    assert bins_data(score_bins(np.array([0.0, 12.0])))[-1] == {
        "low": 11.0,
        "high": None,
        "n": 1,
        "share": 0.5,
    }
