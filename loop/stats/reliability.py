"""Agreement among many readers: Fleiss' kappa and Krippendorff's alpha."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from loop.stats.confusion import divide
from loop.stats.intervals import Estimate
from loop.stats.resampling import Resampling, bootstrap, to_estimate

MISSING = -1
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
    if ratings.size and ratings.min() < MISSING:
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
