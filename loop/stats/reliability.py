"""Agreement among many raters: Fleiss' kappa, Krippendorff's alpha, and ICC."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from loop.stats.confusion import divide
from loop.stats.intervals import Estimate
from loop.stats.resampling import Resampling, bootstrap, to_estimate

_MOST_VALUES = 64
"""Different points beyond which their table of pairs would not stay small."""


def ordinal_alpha(
    ratings: NDArray[np.float64], **resampling: Unpack[Resampling]
) -> Estimate:
    """Return Krippendorff's alpha for ordered points, missing ratings allowed.

    Parameters
    ----------
    ratings
        Points of any scale, NaN missing, shape ``(n_cases, n_raters)``.
    **resampling
        ``units``, ``resamples`` (2,000), ``seed`` (0), ``confidence`` (0.95).

    Returns
    -------
    Estimate
        At most 1, with a bootstrap interval over units; None where every rating is
        the same, or with more than 64 different points. The note counts the cases
        with fewer than two ratings, which say nothing.

    Raises
    ------
    ValueError
        Fewer than two raters, or infinite points.

    References
    ----------
    Krippendorff K. Content Analysis. 4th ed. 2019, chapter 12. The distance of two
    ranks is that of their mid-ranks, so it follows the points given in each resample.

    Examples
    --------
    >>> points = np.array([[1, 1], [2, 3], [3, 3], [1, 2.0]])
    >>> round(ordinal_alpha(points).value, 4)
    0.7083
    """
    paired = _paired(ratings)
    values = np.unique(ratings[~np.isnan(ratings)])
    if len(values) > _MOST_VALUES:
        return Estimate(
            None, None, None, f"not estimable: over {_MOST_VALUES} different points"
        )
    given = (ratings[:, :, None] == values).sum(axis=1) * paired[:, None]
    table = given[:, :, None] * given[:, None, :] - _diagonal(given)
    pairs = table / np.maximum(given.sum(axis=1) - 1, 1)[:, None, None]

    def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        tables = sums.reshape(len(sums), len(values), len(values))
        marginal = tables.sum(axis=2)
        place = marginal.cumsum(axis=1) - marginal / 2
        distance = (place[:, :, None] - place[:, None, :]) ** 2
        observed = (tables * distance).sum(axis=(1, 2))
        expected = np.einsum("bi,bj,bij->b", marginal, marginal, distance)
        return 1 - divide((marginal.sum(axis=1) - 1) * observed, expected)

    result = bootstrap(pairs.reshape(len(pairs), -1), statistic, **resampling)[0]
    return to_estimate(result, _note(paired, result.estimate))


def interval_alpha(
    ratings: NDArray[np.float64], **resampling: Unpack[Resampling]
) -> Estimate:
    """Return Krippendorff's alpha for points with equal steps.

    Parameters
    ----------
    ratings, **resampling
        As for `ordinal_alpha`.

    Returns
    -------
    Estimate
        As for `ordinal_alpha`, for any number of different points.

    Raises
    ------
    ValueError
        Fewer than two raters, or infinite points.

    References
    ----------
    Krippendorff K. Content Analysis. 4th ed. 2019, chapter 12.

    Examples
    --------
    >>> points = np.array([[1, 1], [2, 3], [3, 3], [1, 2.0]])
    >>> round(interval_alpha(points).value, 4)
    0.7083
    """
    paired = _paired(ratings)
    result = bootstrap(interval_columns(ratings), interval_alphas, **resampling)[0]
    return to_estimate(result, _note(paired, result.estimate))


def interval_columns(ratings: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what each case adds to the sums of `interval_alphas`.

    Parameters
    ----------
    ratings
        As for `interval_alpha`.

    Returns
    -------
    NDArray[np.float64]
        Shape ``(n_cases, 4)``; nothing from a case with fewer than two ratings.

    Raises
    ------
    ValueError
        Fewer than two raters, or infinite points.
    """
    number, total, squares = _moments(ratings, _paired(ratings))
    within = (number * squares - total**2) / np.maximum(number - 1, 1)
    return np.stack([within, number, total, squares], axis=1)


def interval_alphas(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Krippendorff's alpha for equal steps of summed `interval_columns`.

    Parameters
    ----------
    sums
        Shape ``(n, 4)``.

    Returns
    -------
    NDArray[np.float64]
        Shape ``(n,)``; NaN where every rating is the same.
    """
    observed, n, first, second = sums.T
    return 1 - divide((n - 1) * observed, n * second - first**2)


def icc_agreement(
    ratings: NDArray[np.float64], **resampling: Unpack[Resampling]
) -> Estimate:
    """Return ICC(2,1): absolute agreement of one rater drawn from many.

    Parameters
    ----------
    ratings, **resampling
        As for `ordinal_alpha`; cases without a rating by everyone are left out.

    Returns
    -------
    Estimate
        At most 1, with a bootstrap interval over units; None with fewer than two
        complete cases or where every rating is the same.

    Raises
    ------
    ValueError
        Fewer than two raters, or infinite points.

    References
    ----------
    Shrout PE, Fleiss JL. Psychol Bull 1979;86:420-428.

    Examples
    --------
    >>> points = np.array([[1, 1], [2, 3], [3, 3], [1, 2.0]])
    >>> round(icc_agreement(points).value, 4)
    0.75
    """
    _paired(ratings)
    raters = ratings.shape[1]
    complete = (~np.isnan(ratings)).sum(axis=1) == raters
    kept = np.where(complete[:, None], ratings - _middle(ratings), 0.0)
    columns = np.column_stack(
        [complete, kept, (kept**2).sum(axis=1), kept.sum(axis=1) ** 2 / raters]
    )

    def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        n, by_rater = sums[:, 0], sums[:, 1:-2]
        mean = divide(by_rater.sum(axis=1) ** 2, n * raters)
        cases = sums[:, -1] - mean
        rater = divide((by_rater**2).sum(axis=1), n) - mean
        rest = sums[:, -2] - mean - cases - rater
        freedom = n - 1
        between = divide(cases, freedom)
        error = divide(rest, freedom * (raters - 1))
        bias = divide(rater / (raters - 1) - error, n)
        return divide(between - error, between + (raters - 1) * error + raters * bias)

    result = bootstrap(columns, statistic, **resampling)[0]
    return to_estimate(result, _note(complete, result.estimate))


def _paired(ratings: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which cases have two ratings or more."""
    if ratings.ndim != 2 or ratings.shape[1] < 2:
        raise ValueError(f"need shape (n_cases, 2 or more raters), got {ratings.shape}")
    if np.isinf(ratings).any():
        raise ValueError("points must be finite, got an infinite one")
    paired: NDArray[np.bool_] = (~np.isnan(ratings)).sum(axis=1) >= 2
    return paired


def _diagonal(given: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a matrix for each row, with the row on its diagonal."""
    return given[:, :, None] * np.eye(given.shape[1], dtype=np.int64)


def _middle(ratings: NDArray[np.float64]) -> float:
    """Return the mean of all points: sums of squares lose least around it."""
    given = ratings[~np.isnan(ratings)]
    return float(given.mean()) if given.size else 0.0


def _moments(
    ratings: NDArray[np.float64], used: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return number, sum and sum of squares of the points of each case."""
    given = ~np.isnan(ratings) & used[:, None]
    kept = np.where(given, ratings - _middle(ratings), 0.0)
    number = given.sum(axis=1).astype(np.float64)
    return number, kept.sum(axis=1), (kept**2).sum(axis=1)


def _note(used: NDArray[np.bool_], estimate: float | None) -> str:
    if not used.any():
        return "not estimable: no case with enough ratings"
    if estimate is None:
        return "not estimable: every rating is the same, or too few cases"
    return "" if used.all() else f"{int(used.sum())} of {used.size} cases used"


UNRATED = -1
"""Code of a rating that was not given."""


def fleiss_kappa(
    ratings: NDArray[np.int8], **resampling: Unpack[Resampling]
) -> Estimate:
    """Return Fleiss' kappa over the cases rated by every reader.

    Parameters
    ----------
    ratings
        Nominal codes from 0, -1 missing, shape ``(n_cases, n_readers)``. With many
        missing ratings use `krippendorff_alpha`.
    **resampling
        ``units``, ``resamples`` (2,000), ``seed`` (0), ``confidence`` (0.95).

    Returns
    -------
    Estimate
        At most 1, with a bootstrap interval over cases; None where every rating is
        the same. The note counts the cases left out.

    Raises
    ------
    ValueError
        Fewer than two readers, or a code below -1.

    References
    ----------
    Fleiss JL. Psychol Bull 1971;76:378-382.

    Examples
    --------
    >>> round(fleiss_kappa(np.array([[0, 0, 0], [1, 1, 1], [0, 0, 1]])).value, 2)
    0.55
    """
    counts = _category_counts(ratings)
    readers = ratings.shape[1]
    complete = counts.sum(axis=1) == readers
    counts[~complete] = 0
    agreeing = (counts * (counts - 1)).sum(axis=1, keepdims=True)

    def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        pairs, by_category = sums[:, 0], sums[:, 1:]
        total = by_category.sum(axis=1)
        chance = (by_category**2).sum(axis=1)
        observed = pairs * total / (readers - 1)
        return divide(observed - chance, total**2 - chance)

    result = bootstrap(np.hstack([agreeing, counts]), statistic, **resampling)[0]
    return to_estimate(result, _usage_note(complete, result.estimate))


def krippendorff_alpha(
    ratings: NDArray[np.int8], **resampling: Unpack[Resampling]
) -> Estimate:
    """Return Krippendorff's alpha for nominal data, missing ratings allowed.

    Parameters
    ----------
    ratings
        Nominal codes from 0, -1 missing, shape ``(n_cases, n_readers)``.
    **resampling
        As for `fleiss_kappa`.

    Returns
    -------
    Estimate
        At most 1, with a bootstrap interval over cases (not Krippendorff's own
        bootstrap over pairs); None where every paired rating is the same. The note
        counts the cases with fewer than two ratings, which say nothing.

    Raises
    ------
    ValueError
        Fewer than two readers, or a code below -1.

    References
    ----------
    Krippendorff K. Content Analysis. 4th ed. 2019, chapter 12.

    Examples
    --------
    >>> round(krippendorff_alpha(np.array([[0, 0], [1, 1], [0, 1], [0, 0]])).value, 4)
    0.5333
    """
    counts = _category_counts(ratings)
    paired = counts.sum(axis=1) >= 2
    counts[~paired] = 0
    given = counts.sum(axis=1)
    differing = (given**2 - (counts**2).sum(axis=1)) / np.maximum(given - 1, 1)

    def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        observed, by_category = sums[:, 0], sums[:, 1:]
        total = by_category.sum(axis=1)
        room = total**2 - (by_category**2).sum(axis=1)
        return 1 - divide((total - 1) * observed, room)

    columns = np.hstack([differing[:, None], counts])
    result = bootstrap(columns, statistic, **resampling)[0]
    return to_estimate(result, _usage_note(paired, result.estimate))


def check_readers(ratings: NDArray[np.int8]) -> int:
    """Return the number of readers; `ValueError` unless there are two or more."""
    if ratings.ndim != 2 or ratings.shape[1] < 2:
        raise ValueError(
            f"need shape (n_cases, 2 or more readers), got {ratings.shape}"
        )
    return int(ratings.shape[1])


def _category_counts(ratings: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return how many readers gave each category, ``(n_cases, n_categories)``."""
    check_readers(ratings)
    if ratings.size and ratings.min() < UNRATED:
        raise ValueError(f"codes must be >= -1, got {ratings.min()}")
    highest = int(ratings.max(initial=0))
    given = [(ratings == code).sum(axis=1) for code in range(highest + 1)]
    return np.stack(given, axis=1).astype(np.int64)


def _usage_note(used: NDArray[np.bool_], estimate: float | None) -> str:
    if not used.any():
        return "not estimable: no case with enough ratings"
    if estimate is None:
        return "not estimable: every rating is the same"
    return "" if used.all() else f"{int(used.sum())} of {used.size} cases used"
