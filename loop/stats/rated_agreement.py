"""How far the scores of a judge agree with ratings, and those of two judges apart.

Whole units are resampled; the scores of two judges on the same candidates share every
resample, so that what makes the candidates easy or hard falls out of the difference.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from loop.stats.correlation import keep_rated, normalise, quadratic, sum_signs
from loop.stats.reliability import interval_alphas, interval_columns
from loop.stats.resampling import (
    Bootstrap,
    Draw,
    Resampling,
    draw_values,
    resample_weights,
    split_rows,
    sum_by_unit,
    summarise,
)


class AgreementMeasure(StrEnum):
    """How the agreement of a judge with raters is measured."""

    TAU_B = "tau_b"
    """Kendall's tau-b: of the orders, whatever the scales."""

    ALPHA = "alpha"
    """Krippendorff's alpha for equal steps: of the values, so only on one scale."""

    @property
    def words(self) -> str:
        """As people read it: "tau-b" or "alpha"."""
        return self.value.replace("_", "-")


class RatedAgreement(NamedTuple):
    """An agreement, or the difference of two, and what it rests on."""

    value: Bootstrap
    """With a percentile interval over units."""

    n: int
    """Candidates that have every value."""

    n_units: int
    """Units that these candidates belong to."""


def measure_agreement(
    measure: AgreementMeasure,
    scores: NDArray[np.float64],
    ratings: NDArray[np.float64],
    **resampling: Unpack[Resampling],
) -> RatedAgreement:
    """Return how far scores agree with ratings.

    Parameters
    ----------
    scores, ratings
        Of the same candidates, in the same direction, NaN where missing; shape
        ``(n_candidates,)``.
    **resampling
        ``units``, ``resamples`` (2,000), ``seed`` (0), ``confidence`` (0.95).

    Returns
    -------
    RatedAgreement
        In [-1, 1] for tau-b, at most 1 for alpha. The estimate is None where all scores
        or all ratings are equal; alpha is defined where only one of them is.

    Raises
    ------
    ValueError
        The shapes differ, a value is infinite, or an option is out of range.

    References
    ----------
    Kendall MG. Biometrika 1945;33:239-251 (tau-b). Krippendorff K. Content Analysis.
    4th ed. 2019, chapter 12. Resampling whole clusters: Field CA, Welsh AH. J R Stat
    Soc B 2007;69:369-390.

    Examples
    --------
    >>> found = measure_agreement(
    ...     AgreementMeasure.TAU_B, np.arange(4.0), np.array([1, 3, 2, 4.0])
    ... )
    >>> round(found.value.estimate, 4), found.n
    (0.6667, 4)
    """
    kept = keep_rated(scores, ratings, units=resampling.get("units"))
    score, rating = kept.values
    coefficient = _coefficient(measure, score, rating, kept.position)
    return _resample(coefficient, kept.n, kept.n_units, Draw(**resampling))


def compare_agreement(
    measure: AgreementMeasure,
    scores: NDArray[np.float64],
    others: NDArray[np.float64],
    ratings: NDArray[np.float64],
    **resampling: Unpack[Resampling],
) -> RatedAgreement:
    """Return the agreement of `scores` minus that of `others` with the same ratings.

    Parameters
    ----------
    scores, others
        Of the same candidates, in the direction of the ratings, NaN where missing;
        shape ``(n_candidates,)``.
    ratings, **resampling
        As for `measure_agreement`.

    Returns
    -------
    RatedAgreement
        Over the candidates that have all three. Above 0 where `scores` agree better.
        Without width where every resample gives the same difference, as for two judges
        that order all candidates alike.

    Raises
    ------
    ValueError
        The shapes differ, a value is infinite, or an option is out of range.

    References
    ----------
    Efron B, Tibshirani RJ. An Introduction to the Bootstrap. 1993, chapter 13; the
    rest as for `measure_agreement`.
    """
    kept = keep_rated(scores, others, ratings, units=resampling.get("units"))
    first, second, rating = kept.values
    one = _coefficient(measure, first, rating, kept.position)
    other = _coefficient(measure, second, rating, kept.position)

    def difference(weights: NDArray[Any]) -> NDArray[np.float64]:
        return one(weights) - other(weights)

    return _resample(difference, kept.n, kept.n_units, Draw(**resampling))


_Values = Callable[[NDArray[Any]], NDArray[np.float64]]
"""From weights of units, shape ``(n, n_units)``, to values, shape ``(n,)``."""


def _coefficient(
    measure: AgreementMeasure,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    position: NDArray[np.intp],
) -> _Values:
    if measure is AgreementMeasure.TAU_B:
        forms = (
            sum_signs((x, x), (y, y), position),
            sum_signs((x, x), None, position),
            sum_signs((y, y), None, position),
        )
        return lambda weights: normalise(*(quadratic(one, weights) for one in forms))
    table = sum_by_unit(interval_columns(np.stack([x, y], axis=1)), position)
    return lambda weights: interval_alphas(weights.astype(np.float64) @ table)


def _resample(values_of: _Values, n: int, n_units: int, draw: Draw) -> RatedAgreement:
    def compute(size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        blocks = resample_weights(n_units, size, rng)
        parts = [part for block in blocks for part in split_rows(block)]
        return np.concatenate([values_of(part)[:, None] for part in parts])

    estimates = values_of(np.ones((1, n_units)))
    values = draw_values(compute, estimates, n_units, draw)
    (result,) = summarise(estimates, values, draw)
    return RatedAgreement(result, n, n_units)
