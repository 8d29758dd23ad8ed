"""Of two candidates of one case: does a metric prefer the one that raters prefer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.stats.confusion import divide
from loop.stats.exchange import TIE
from loop.stats.intervals import Estimate
from loop.stats.resampling import bootstrap, to_estimate


class Preference(NamedTuple):
    """What became of every pair of candidates."""

    right: int
    """The metric prefers the same one as the raters."""

    wrong: int
    """It prefers the other one."""

    tied: int
    """The raters prefer one, the scores are equal."""

    rater_ties: int
    """The raters prefer none; such pairs are not in the accuracy."""

    undefined: int
    """A score or a rating is missing; such pairs are not in the accuracy."""

    accuracy: Estimate
    """``right / (right + wrong + tied)``; None without a preference of the raters."""


def preference_accuracy(
    scores: NDArray[Any],
    ratings: NDArray[Any],
    units: NDArray[Any] | None = None,
    *,
    resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Preference:
    """Return how often scores prefer the candidate that ratings prefer.

    Parameters
    ----------
    scores
        Scores of both candidates of each pair, higher is better (negate the others),
        NaN where missing, shape ``(n_pairs, 2)``.
    ratings
        Ratings of the same candidates.
    units
        Unit of each pair, for example its case; None: each pair is its own.
    resamples
        Number of resamples.
    seed
        Seed of the draws.
    confidence
        Two-sided confidence level in (0, 1).

    Returns
    -------
    Preference
        Values within 1e-12 of each other are equal, so that the mean of some ratings
        does not prefer by rounding.

    Raises
    ------
    ValueError
        The shapes differ, are not ``(n_pairs, 2)``, or an option is out of range.

    References
    ----------
    Deutsch D, Foster G, Freitag M. Proc EMNLP 2023:12914-12929 (why ties must be
    counted, and apart).

    Examples
    --------
    >>> scores = np.array([[0.9, 0.1], [0.2, 0.3], [0.5, 0.5], [0.4, 0.8]])
    >>> ratings = np.array([[5, 1], [4, 2], [3, 2], [3, 3]])
    >>> preference_accuracy(scores, ratings)[:5]
    (1, 1, 1, 1, 0)
    """
    if scores.shape != ratings.shape or scores.ndim != 2 or scores.shape[1] != 2:
        raise ValueError(
            f"need equal shapes (n_pairs, 2), got {scores.shape} and {ratings.shape}"
        )
    preferred, rated = _prefer(scores), _prefer(ratings)
    defined = ~np.isnan(preferred) & ~np.isnan(rated)
    judged = defined & (rated != 0)
    right = judged & (preferred == rated)
    tied = judged & (preferred == 0)
    [accuracy] = bootstrap(
        np.stack([right, judged], axis=1),
        lambda sums: divide(sums[:, 0], sums[:, 1]),
        units=units,
        resamples=resamples,
        seed=seed,
        confidence=confidence,
    )
    return Preference(
        right=int(right.sum()),
        wrong=int((judged & ~right & ~tied).sum()),
        tied=int(tied.sum()),
        rater_ties=int((defined & (rated == 0)).sum()),
        undefined=int((~defined).sum()),
        accuracy=to_estimate(accuracy),
    )


def _prefer(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return 1 for the first, -1 for the second, 0 for none, NaN if one is missing."""
    difference = np.asarray(values[:, 0] - values[:, 1], dtype=np.float64)
    return np.where(np.abs(difference) <= TIE, 0.0, np.sign(difference))
