"""How scores are spread: bins of shares, of counts, and of anything else."""

import numpy as np
import pytest

from loop.judge.score_bins import bins_data, score_bins


def labels(values, *bounds):
    """Return the filled bins by label."""
    found = score_bins(np.array(values, dtype=float), *bounds)
    assert sum(one.share for one in found) == pytest.approx(1) if found else True
    return {one.label: one.n for one in found if one.n}


COUNT = (0.0, None)


def test_a_score_is_in_the_bin_that_begins_with_it():
    """0.3 as 3/10 and as 0.1 + 0.2 is one score; 1 is in the last bin."""
    assert labels([0.3, 0.1 + 0.2, 0.29, 0.0, 1.0]) == {
        "0-0.1": 1,
        "0.2-0.3": 1,
        "0.3-0.4": 2,
        "0.9-1": 1,
    }
    # All or nothing is still a score from 0 to 1.
    assert labels([0, 1, 0]) == {"0-0.1": 2, "0.9-1": 1}


def test_counts_have_a_bin_each():
    """And one for all above ten; a judge that finds at most one error counts, too."""
    assert labels([0, 2, 2, 11, 40], *COUNT) == {"0": 1, "2": 2, "11+": 2}
    assert len(score_bins(np.array([0.0, 2.0]), *COUNT)) == 3
    assert labels([0, 1, 0], *COUNT) == {"0": 2, "1": 1}
    assert labels([0, 0], *COUNT) == {"0": 2}


def test_points_have_a_bin_for_each_that_can_be_given():
    """Of 1 to 5, whichever were given: no bin for 0, and one for 5."""
    found = score_bins(np.array([2.0, 3.0, 3.0]), 1.0, 5.0)
    assert [(one.label, one.n) for one in found] == [
        ("1", 0), ("2", 1), ("3", 2), ("4", 0), ("5", 0),
    ]  # fmt: skip
    means = score_bins(np.array([0.5, 2.0]), 0.0, 4.0)
    assert [one.label for one in means if one.n] == ["0.4-0.8", "2-2.4"]


def test_scores_below_zero_are_spread_over_their_range():
    """CRIMSON goes from -1 to 1, whichever values a judge gives."""
    found = score_bins(np.array([-0.5, 0.0, 0.25]), -1.0, 1.0)
    assert (found[0].low, found[-1].high, len(found)) == (-1, 1, 10)
    assert labels([-0.5, 0.0, 0.25, 1.0], -1.0, 1.0) == {
        "-0.6 to -0.4": 1,
        "0-0.2": 1,
        "0.2-0.4": 1,
        "0.8-1": 1,
    }


def test_what_is_outside_its_range_or_has_none_is_spread_over_what_is_there():
    """However near the least and the largest are."""
    assert labels([-2.5, -2.5]) == {"-2.5": 2}
    assert sum(labels([-2.5, 0.5]).values()) == 2
    near = score_bins(np.array([2.3333333333, 2.3333333334]), *COUNT)
    assert sum(one.n for one in near) == 2


def test_what_has_no_score_is_in_no_bin():
    """Shares are of the pairs that have one; without any there is no bin."""
    (found,) = [one for one in score_bins(np.array([np.nan, 0.5])) if one.n]
    assert (found.n, found.share) == (1, 1.0)
    assert score_bins(np.array([np.nan])) == ()
    assert bins_data(score_bins(np.array([0.0, 12.0]), *COUNT))[-1] == {
        "low": 11.0,
        "high": None,
        "n": 1,
        "share": 0.5,
    }


@pytest.mark.parametrize(
    ("high", "filled", "bins"),
    [
        # Ten bins of one width over what there is from 0 to 1.
        (1.0, {"0-0.1": 1, "0.9-1": 1}, 10),
        (2.0, {"0": 1, "1": 1}, 3),
        (10.0, {"0": 1, "1": 1}, 11),
        (11.0, {"0-1.1": 2}, 10),
    ],
)
def test_points_have_a_bin_each_from_two_to_ten(high, filled, bins):
    """A score up to 1 is a share, and more than eleven bins are too many."""
    assert labels([0, 1], 0.0, high) == filled
    assert len(score_bins(np.array([0.0, 1.0]), 0.0, high)) == bins


@pytest.mark.parametrize(
    ("values", "bounds", "filled"),
    [
        ([10, 10], COUNT, {"10": 2}),
        ([10, 11], COUNT, {"10": 1, "11+": 1}),
        ([12], COUNT, {"11+": 1}),
        # The bounds themselves are inside.
        ([1, 5], (1.0, 5.0), {"1": 1, "5": 1}),
        # Beside them the range is that of the values.
        ([0, 5], (1.0, 5.0), {"0-0.5": 1, "4.5-5": 1}),
        ([1, 6], (1.0, 5.0), {"1-1.5": 1, "5.5-6": 1}),
        # A number below 0 is no count, and 2.5 no whole one.
        ([-1, 2], (-1.0, None), {"-1 to -0.7": 1, "1.7-2": 1}),
        ([0, 2.5], COUNT, {"0-0.25": 1, "2.25-2.5": 1}),
    ],
)
def test_whole_numbers_within_their_bounds_have_a_bin_each(values, bounds, filled):
    """What is outside, or no count, is spread over ten bins of what is there."""
    assert labels(values, *bounds) == filled


def test_a_bin_without_an_end_and_one_with_two_are_told_apart_in_data():
    """Null is no end; a whole number begins and ends its bin."""
    zero, *_, above = bins_data(score_bins(np.array([0.0, 0.0, 11.0]), *COUNT))
    assert (zero["low"], zero["high"], zero["n"]) == (0, 0, 2)
    assert (above["low"], above["high"], above["n"]) == (11, None, 1)
    assert (zero["share"], above["share"]) == (2 / 3, 1 / 3)
