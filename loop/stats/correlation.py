"""How far scores and ratings go together: tau-b, Spearman, Pearson, and preferences.

Whether two candidates are ordered alike by scores and ratings does not change between
resamples; only how often the pair occurs does, the product of two weights. So the
signs of all pairs are added up once, by unit, and a resample is a matrix product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.stats.confusion import divide
from loop.stats.intervals import Estimate
from loop.stats.paired import TIE
from loop.stats.resampling import (
    Draw,
    bootstrap,
    draw_values,
    resample_weights,
    split_rows,
    sum_by_unit,
    summarise,
    to_estimate,
)

_ROUNDING = 1e-14
"""Share of the largest value by which equal ones may differ: the last digits of the
same fraction, or of the same mean, computed in another order."""


class Rated(NamedTuple):
    """What is left when candidates without a value are dropped."""

    values: tuple[NDArray[np.float64], ...]
    """The arrays in the order given, each ``(n,)``, as `tie_equal` leaves them."""

    position: NDArray[np.intp]
    """Position of each candidate's unit, from 0, in the order of the units' names."""

    n_units: int

    @property
    def n(self) -> int:
        """Number of candidates."""
        return len(self.position)


def keep_rated(*values: NDArray[Any], units: NDArray[Any] | None) -> Rated:
    """Return the candidates that have all the values.

    Parameters
    ----------
    *values
        Scores, ratings and so on, NaN where missing, each ``(n_candidates,)``.
    units
        Unit of each candidate, for example its case; None: each is its own.

    Returns
    -------
    Rated
        Without the candidates that lack a value.

    Raises
    ------
    ValueError
        The shapes differ or a value is infinite.
    """
    arrays = [np.asarray(one, dtype=np.float64) for one in values]
    names = np.arange(arrays[0].size) if units is None else np.asarray(units)
    shapes = {one.shape for one in (*arrays, names)}
    if len(shapes) != 1 or arrays[0].ndim != 1:
        raise ValueError(f"need equal shapes (n_candidates,), got {sorted(shapes)}")
    if any(np.isinf(one).any() for one in arrays):
        raise ValueError(
            "scores and ratings must be finite or NaN, got an infinite one"
        )
    there = ~np.any([np.isnan(one) for one in arrays], axis=0)
    kept, position = np.unique(names[there], return_inverse=True)
    values_there = tuple(tie_equal(one[there]) for one in arrays)
    return Rated(values_there, position, len(kept))


def tie_equal(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values with those that differ by rounding alone made the same.

    An order that only the last digit of a float makes is no order: it would count for
    or against a metric, and change with the order of raters.

    Parameters
    ----------
    values
        Finite, shape ``(n,)``.

    Examples
    --------
    >>> tie_equal(np.array([0.3, 0.1 + 0.2, 0.5])).tolist()
    [0.3, 0.3, 0.5]
    """
    if not values.size:
        return values
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    apart = np.diff(ordered) > _ROUNDING * np.abs(values).max()
    first = np.concatenate([[0], np.flatnonzero(apart) + 1])
    tied = np.empty_like(values)
    tied[order] = np.repeat(ordered[first], np.diff(first, append=len(values)))
    return tied


_PIECE = 2**22
"""Pairs of candidates whose signs are held at once."""


class Concordance(NamedTuple):
    """Pairs of candidates added up by the units they belong to, ``(n_units, n_units)``.

    Every pair is in there twice, once from either side.
    """

    ordered: NDArray[Any]
    """Pairs in the same order on both sides, minus those in opposite order."""

    x_untied: NDArray[Any]
    y_untied: NDArray[Any]

    def taus(self, weights: NDArray[Any]) -> NDArray[np.float64]:
        """Return tau-b with each unit taken so many times.

        Parameters
        ----------
        weights
            Whole numbers, shape ``(n, n_units)``.

        Returns
        -------
        NDArray[np.float64]
            Shape ``(n,)``, in [-1, 1]; NaN where all of one side are tied.
        """
        forms = [quadratic(form, weights) for form in self]
        return normalise(*forms)


def tabulate_concordance(
    x: NDArray[Any], y: NDArray[Any], position: NDArray[np.intp]
) -> Concordance:
    """Return the pairs of candidates by the units they belong to.

    Parameters
    ----------
    x, y
        Scores and ratings of each candidate, finite, shape ``(n,)``.
    position
        Position of each candidate's unit, from 0, shape ``(n,)``.

    Returns
    -------
    Concordance
        Exact, in the narrowest float that holds every sum. Memory grows with the
        square of the units, time with the square of the candidates.
    """
    return Concordance(
        ordered=sum_signs((x, x), (y, y), position),
        x_untied=sum_signs((x, x), None, position),
        y_untied=sum_signs((y, y), None, position),
    )


def sum_signs(
    x: tuple[NDArray[Any], NDArray[Any]],
    y: tuple[NDArray[Any], NDArray[Any]] | None,
    position: NDArray[np.intp],
) -> NDArray[Any]:
    """Return the signs of all pairs of candidates, added up by unit.

    Parameters
    ----------
    x
        Values of the one and of the other candidate of a pair, each ``(n,)``.
    y
        The same for the other side: its signs are multiplied with those of `x`. None
        for the number of pairs that are not tied in `x`.
    position
        Position of each candidate's unit, from 0, shape ``(n,)``.

    Returns
    -------
    NDArray
        Shape ``(n_units, n_units)``.
    """
    order = np.argsort(position, kind="stable")
    starts = np.flatnonzero(np.diff(position[order], prepend=-1))
    # No resample holds more candidates than its largest unit over and over again.
    most = len(starts) * int(np.diff(starts, append=len(order)).max(initial=0))
    kind = np.float32 if most**2 < 2**24 else np.float64
    total = np.zeros((len(starts), len(starts)), dtype=kind)
    rows = max(1, _PIECE // max(len(order), 1))
    for first in range(0, len(order), rows):
        piece = order[first : first + rows]
        signs = _signs(x, piece, order)
        signs = abs(signs) if y is None else signs * _signs(y, piece, order)
        by_unit = np.add.reduceat(signs, starts, axis=1, dtype=kind)
        np.add.at(total, position[piece], by_unit)
    return total


def quadratic(form: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
    """Return the value of a form for every row of weights, shape ``(n,)``."""
    weights = weights.astype(form.dtype, copy=False)
    values = np.einsum("ru,ru->r", weights @ form, weights)
    return np.asarray(values, dtype=np.float64)


def normalise(
    product: NDArray[Any], x_square: NDArray[Any], y_square: NDArray[Any]
) -> NDArray[np.float64]:
    """Return ``product / sqrt(x_square y_square)``, NaN where one side is flat."""
    spread = np.sqrt(x_square * y_square)
    out = np.full(np.shape(product), np.nan)
    np.divide(product, spread, out=out, where=spread > 0)
    return np.asarray(np.clip(out, -1, 1))


def _signs(
    values: tuple[NDArray[Any], NDArray[Any]],
    piece: NDArray[np.intp],
    order: NDArray[np.intp],
) -> NDArray[np.int8]:
    one, other = values[0][piece][:, None], values[1][order]
    return (one > other).astype(np.int8) - (one < other).astype(np.int8)


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
