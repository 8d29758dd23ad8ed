"""Agreement of raters' points, against published worked examples."""

import numpy as np
import pytest

from loop.stats.reliability import icc_agreement, interval_alpha, ordinal_alpha

NA = np.nan
KRIPPENDORFF = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NA, NA, NA],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NA, 3],
        [NA, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NA],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NA],
    ]
).T
"""Four observers, twelve units: Krippendorff, Computing alpha-reliability, 2011."""

SHROUT_FLEISS = np.array(
    [
        [9, 2, 5, 8],
        [6, 1, 3, 2],
        [8, 4, 6, 8],
        [7, 1, 2, 6],
        [10, 5, 6, 9],
        [6, 2, 4, 7.0],
    ]
)
"""Six targets, four judges: Psychol Bull 1979;86:420-428, table 2."""


@pytest.mark.parametrize(
    ("alpha", "published"), [(ordinal_alpha, 0.815), (interval_alpha, 0.849)]
)
def test_alpha_of_the_published_example(alpha, published):
    """Krippendorff 2011, section C: 0.815 ordinal and 0.849 interval."""
    found = alpha(KRIPPENDORFF, resamples=200)
    assert found.value == pytest.approx(published, abs=5e-4)
    assert found.low < found.value < found.high
    assert found.note == "11 of 12 cases used"


def test_icc_of_the_published_example():
    """Shrout and Fleiss print ICC(2,1) = 0.29."""
    found = icc_agreement(SHROUT_FLEISS, resamples=200)
    assert found.value == pytest.approx(0.29, abs=5e-3)


@pytest.mark.parametrize("alpha", [ordinal_alpha, interval_alpha])
def test_alpha_equals_the_naive_double_loop(alpha):
    """Krippendorff's own definition: sums over all pairs of values."""
    rng = np.random.default_rng(4)
    ratings = rng.integers(1, 6, size=(30, 3)).astype(float)
    ratings[rng.random(ratings.shape) < 0.2] = NA
    assert alpha(ratings, resamples=20).value == pytest.approx(
        _naive(ratings, ordinal=alpha is ordinal_alpha)
    )


def _naive(ratings, *, ordinal):
    units = [row[~np.isnan(row)] for row in ratings]
    units = [row for row in units if len(row) > 1]
    every = np.concatenate(units)

    def squared(a, b):
        if not ordinal:
            return (a - b) ** 2
        low, high = min(a, b), max(a, b)
        between = ((every >= low) & (every <= high)).sum()
        return (between - ((every == a).sum() + (every == b).sum()) / 2) ** 2

    observed = sum(
        squared(a, b) / (len(row) - 1) for row in units for a in row for b in row
    )
    expected = sum(squared(a, b) for a in every for b in every) / (len(every) - 1)
    return 1 - observed / expected


def test_alpha_does_not_depend_on_the_steps_of_an_ordinal_scale():
    """Points 1, 2, 3, 4, 5 and 1, 10, 11, 50, 99 order the cases alike."""
    wider = np.array([NA, 1, 10, 11, 50, 99])
    other = wider[np.nan_to_num(KRIPPENDORFF).astype(int)]
    first = ordinal_alpha(KRIPPENDORFF, resamples=50)
    assert ordinal_alpha(other, resamples=50) == first


@pytest.mark.parametrize("measure", [ordinal_alpha, interval_alpha, icc_agreement])
def test_full_agreement_is_one(measure):
    """Raters who always agree have nothing to disagree about."""
    same = np.repeat(np.arange(1.0, 6.0)[:, None], 3, axis=1)
    assert measure(same, resamples=50).value == pytest.approx(1.0)


@pytest.mark.parametrize("measure", [ordinal_alpha, interval_alpha, icc_agreement])
@pytest.mark.parametrize("points", [np.full((4, 2), 3.0), np.full((4, 2), NA)])
def test_no_difference_at_all_is_undefined(measure, points):
    """Neither 0 nor 1: without two different ratings agreement has no meaning."""
    found = measure(points, resamples=50)
    assert found[:3] == (None, None, None)
    assert found.note.startswith("not estimable")


def test_many_different_points_have_no_ordinal_alpha():
    """The table of pairs would not stay small; interval alpha goes on."""
    points = np.random.default_rng(1).random((50, 2))
    assert ordinal_alpha(points, resamples=20).note.endswith("different points")
    assert interval_alpha(points, resamples=20).value is not None


@pytest.mark.parametrize("measure", [ordinal_alpha, interval_alpha, icc_agreement])
def test_wrong_ratings_are_refused(measure):
    """One rater agrees with nobody; an infinite rating is none."""
    with pytest.raises(ValueError, match="2 or more raters"):
        measure(np.ones((3, 1)))
    with pytest.raises(ValueError, match="finite"):
        measure(np.array([[1.0, np.inf], [1.0, 2.0]]))


@pytest.mark.parametrize("measure", [ordinal_alpha, interval_alpha, icc_agreement])
def test_two_candidates_of_a_case_are_drawn_together(measure):
    """Copies of every row in one unit say nothing new: the interval stays as wide."""
    rng = np.random.default_rng(9)
    ratings = rng.integers(1, 6, size=(25, 3)).astype(float)
    twice = np.repeat(ratings, 2, axis=0)
    once = measure(ratings, resamples=400)
    both = measure(twice, units=np.repeat(np.arange(25), 2), resamples=400)
    apart = measure(twice, resamples=400)
    width = [one.high - one.low for one in (once, both, apart)]
    assert width[1] == pytest.approx(width[0], rel=0.15)
    assert width[2] < 0.9 * width[1]


@pytest.mark.parametrize(
    ("measure", "used"), [(ordinal_alpha, 4), (interval_alpha, 4), (icc_agreement, 3)]
)
def test_cases_that_say_nothing_are_counted_in_the_note(measure, used):
    """Alpha takes two ratings of three, an ICC all; the value is that of the rest."""
    nan = np.nan
    points = np.array(
        [[1, 2, 1], [3, nan, nan], [4, 5, 4], [2, 2, nan], [5, 5, 4], [nan, nan, nan]]
    )
    found = measure(points, resamples=20)
    assert found.note.endswith(f"{used} of 6 cases used")
    kept = (~np.isnan(points)).sum(axis=1) >= (3 if measure is icc_agreement else 2)
    assert found.value == pytest.approx(measure(points[kept], resamples=20).value)
    nobody = measure(np.full((3, 2), nan), resamples=20)
    assert nobody == (None, None, None, "not estimable: no case with enough ratings")
    same = measure(np.ones((4, 2)), resamples=20)
    assert same.note == "not estimable: every rating is the same, or too few cases"


@pytest.mark.parametrize(("different", "told"), [(64, True), (65, False)])
def test_up_to_64_different_points_have_an_ordinal_alpha(different, told):
    """Beyond that the note says how many are too many."""
    points = np.arange(different, dtype=float)
    found = ordinal_alpha(np.stack([points, points], axis=1), resamples=2)
    assert (found.value == 1) == told
    assert (found.note == "not estimable: over 64 different points") != told


@pytest.mark.parametrize("raters", [2, 5])
def test_an_icc_is_made_of_its_three_mean_squares(raters):
    """Between cases, between raters and what is left, each over its freedom."""
    points = np.random.default_rng(raters).normal(3, 1, (7, raters)).round(2)
    points += np.arange(7.0)[:, None]
    n, mean = len(points), points.mean()
    cases = raters * ((points.mean(axis=1) - mean) ** 2).sum() / (n - 1)
    judges = n * ((points.mean(axis=0) - mean) ** 2).sum() / (raters - 1)
    rest = points - points.mean(axis=1, keepdims=True) - points.mean(axis=0) + mean
    error = (rest**2).sum() / ((n - 1) * (raters - 1))
    expected = (cases - error) / (
        cases + (raters - 1) * error + raters * (judges - error) / n
    )
    assert icc_agreement(points, resamples=5).value == pytest.approx(expected)
