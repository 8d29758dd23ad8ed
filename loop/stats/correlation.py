"""How far scores and ratings go together: tau-b, Spearman and Pearson."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.stats.concordance import normalise, tabulate_concordance
from loop.stats.intervals import Estimate
from loop.stats.rated import Rated, keep_rated
from loop.stats.resampling import (
    Draw,
    draw_values,
    resample_weights,
    split_rows,
    sum_by_unit,
    summarise,
    to_estimate,
)

_FLAT = 1e-13
"""A variance below this share of the mean square is rounding."""

_Coefficient = Callable[[NDArray[Any]], NDArray[np.float64]]


class Correlations(NamedTuple):
    """Three coefficients of the same scores and ratings."""

    tau_b: Estimate
    """Kendall's, of the orders, corrected for ties."""

    spearman: Estimate
    """Of the ranks, ties at their middle."""

    pearson: Estimate
    """Of the values."""

    n: int
    """Candidates with a score and a rating."""

    n_units: int
    """Units (cases) that these candidates belong to."""


def correlate(
    x: NDArray[Any],
    y: NDArray[Any],
    units: NDArray[Any] | None = None,
    *,
    resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Correlations:
    """Return tau-b, Spearman's and Pearson's coefficient with bootstrap intervals.

    Whole units are resampled, so that several candidates of one case stay together;
    the same units and seed give the same resamples, whatever the scores.

    Parameters
    ----------
    x, y
        Scores and ratings of the same candidates, NaN where missing, shape
        ``(n_candidates,)``.
    units
        Unit of each candidate, for example its case; None: each is its own.
    resamples
        Number of resamples.
    seed
        Seed of the draws.
    confidence
        Two-sided confidence level in (0, 1).

    Returns
    -------
    Correlations
        Each in [-1, 1]; None where all scores or all ratings are equal. An undefined
        resample is drawn again; the interval is None with more than 5 % of them.

    Raises
    ------
    ValueError
        The shapes differ, a value is infinite, or an option is out of range.

    References
    ----------
    Kendall MG. Biometrika 1945;33:239-251 (tau-b). Spearman C. Am J Psychol
    1904;15:72-101. Pearson K. Proc R Soc Lond 1895;58:240-242. Resampling whole
    clusters: Field CA, Welsh AH. J R Stat Soc B 2007;69:369-390.

    Examples
    --------
    >>> found = correlate(np.array([1, 2, 3, 4]), np.array([1, 3, 2, 4]), resamples=9)
    >>> [round(one.value, 4) for one in found[:3]]
    [0.6667, 0.8, 0.8]
    """
    draw = Draw(resamples=resamples, seed=seed, confidence=confidence)
    rated = keep_rated(x, y, units=units)
    coefficients = (_tau_b(rated), _spearman(rated), _pearson(rated))

    def values_of(weights: NDArray[Any]) -> NDArray[np.float64]:
        return np.stack([one(weights) for one in coefficients], axis=1)

    def compute(size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        blocks = resample_weights(rated.n_units, size, rng)
        parts = [part for block in blocks for part in split_rows(block)]
        return np.concatenate([values_of(part) for part in parts])

    estimates = values_of(np.ones((1, rated.n_units)))[0]
    values = draw_values(compute, estimates, rated.n_units, draw)
    note = _note(rated)
    tau_b, spearman, pearson = (
        to_estimate(one, note) for one in summarise(estimates, values, draw)
    )
    return Correlations(tau_b, spearman, pearson, rated.n, rated.n_units)


def _note(rated: Rated) -> str:
    if rated.n < 2:
        return f"not estimable: {rated.n} candidates with a score and a rating"
    x, y = rated.values
    flat = [name for name, of in (("scores", x), ("ratings", y)) if np.ptp(of) == 0]
    return f"not estimable: all {' and all '.join(flat)} are equal" if flat else ""


def _tau_b(rated: Rated) -> _Coefficient:
    x, y = rated.values
    return tabulate_concordance(x, y, rated.position).taus


def _spearman(rated: Rated) -> _Coefficient:
    groups = [_group(one, rated) for one in rated.values]

    def coefficient(weights: NDArray[Any]) -> NDArray[np.float64]:
        times = weights.astype(np.float64)
        middle = (times[:, rated.position].sum(axis=1, keepdims=True) + 1) / 2
        x, y = (_mid_ranks(times, *group) - middle for group in groups)
        times = times[:, rated.position]
        parts = [(times * a * b).sum(axis=1) for a, b in ((x, y), (x, x), (y, y))]
        return normalise(*parts)

    return coefficient


def _pearson(rated: Rated) -> _Coefficient:
    x, y = (_standardise(one) for one in rated.values)
    columns = np.stack([np.ones(rated.n), x, y, x * y, x * x, y * y], axis=1)
    table = sum_by_unit(columns, rated.position)

    def coefficient(weights: NDArray[Any]) -> NDArray[np.float64]:
        n, x, y, xy, xx, yy = (weights.astype(np.float64) @ table).T
        return normalise(
            n * xy - x * y,
            *(
                np.where(variance > _FLAT * n * square, variance, 0.0)
                for variance, square in ((n * xx - x * x, xx), (n * yy - y * y, yy))
            ),
        )

    return coefficient


class _Group(NamedTuple):
    counts: NDArray[np.float64]
    """Candidates of each unit with each distinct value, ``(n_units, n_values)``."""

    value: NDArray[np.intp]
    """Position of each candidate's value among the distinct ones in order."""


def _group(values: NDArray[np.float64], rated: Rated) -> _Group:
    distinct, value = np.unique(values, return_inverse=True)
    counts = np.zeros((rated.n_units, len(distinct)))
    np.add.at(counts, (rated.position, value), 1)
    return _Group(counts, value)


def _mid_ranks(
    weights: NDArray[np.float64], counts: NDArray[np.float64], value: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return the rank of each candidate in each resample, ties at their middle."""
    sizes = weights @ counts
    ranks = np.cumsum(sizes, axis=1) - (sizes - 1) / 2
    return np.asarray(ranks[:, value])


def _standardise(values: NDArray[np.float64]) -> NDArray[np.float64]:
    if not values.size or np.ptp(values) == 0:
        return np.zeros_like(values)
    centred = values - values.mean()
    return np.asarray(centred / np.abs(centred).max())
