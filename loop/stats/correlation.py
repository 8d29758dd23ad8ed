"""How far scores and ratings go together: tau-b, Spearman, Pearson, and preferences.

Whether two candidates are ordered alike by scores and ratings does not change between
resamples; only how often the pair occurs does, the product of two weights. So the
signs of all pairs are added up once, by unit, and a resample is a matrix product. What
one column needs is made once for all the columns it is held against, on the same
resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import Any, NamedTuple, Self, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from loop.stats.confusion import divide
from loop.stats.intervals import Estimate
from loop.stats.paired import TIE
from loop.stats.resampling import (
    Draw,
    Resampling,
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
    starts = _starts(position[order])
    kind = exact_kind(position)
    total = np.zeros((len(starts), len(starts)), dtype=kind)
    rows = max(1, _PIECE // max(len(order), 1))
    for first in range(0, len(order), rows):
        piece = order[first : first + rows]
        signs = _signs(x, piece, order)
        signs = abs(signs) if y is None else signs * _signs(y, piece, order)
        begun = _starts(position[piece])
        by_unit = _add_runs(_add_runs(signs.astype(kind), starts, 1), begun, 0)
        total[position[piece[begun]]] += by_unit
    return total


def _starts(position: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return where each run of equal positions begins."""
    return np.flatnonzero(np.diff(position, prepend=-1))


def _add_runs(
    values: NDArray[Any], starts: NDArray[np.intp], axis: int
) -> NDArray[Any]:
    if len(starts) == values.shape[axis]:
        return values
    return np.asarray(np.add.reduceat(values, starts, axis=axis))


def exact_kind(
    position: NDArray[np.intp], together: int = 2
) -> type[np.float32 | np.float64]:
    """Return the narrowest float that holds every count in a resample exactly.

    Parameters
    ----------
    position
        Position of each candidate's unit, from 0, shape ``(n,)``.
    together
        Candidates that are counted together: 2 for pairs.
    """
    # No resample holds more candidates than its largest unit over and over again.
    sizes = np.bincount(position)
    most = len(sizes) * int(sizes.max(initial=0))
    return np.float32 if most**together < 2**24 else np.float64


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

_CELLS = 2**18
"""Ranks held at once."""

_FORM_CELLS = 2**24
"""Cells of the tables of pairs that are held at once."""


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
    return _correlate(keep_rated(x, y, units=units), [(0, 1)], draw)[0]


def correlate_columns(
    table: NDArray[Any],
    pairs: Sequence[tuple[int, int]],
    **resampling: Unpack[Resampling],
) -> list[Correlations]:
    """Return what `correlate` does for many pairs of columns, in much less time.

    Parameters
    ----------
    table
        Scores and ratings of the same candidates, NaN where missing, shape
        ``(n_candidates, n_columns)``.
    pairs
        Positions of the scores and of the ratings of each pair in the columns.
    **resampling
        ``units``, ``resamples`` (2,000), ``seed`` (0), ``confidence`` (0.95).

    Returns
    -------
    list[Correlations]
        One per pair: the same numbers that `correlate` gives for its two columns.

    Raises
    ------
    ValueError
        As for `correlate`.
    """
    draw = Draw(**resampling)
    found: dict[tuple[int, int], Correlations] = {}
    n_units = len(table) if draw.units is None else len(np.unique(draw.units))
    for group in group_complete(table, pairs):
        for part in split_forms(group, n_units):
            columns = sorted({column for pair in part for column in pair})
            rated = keep_rated(*table.T[columns], units=draw.units)
            places = [(columns.index(x), columns.index(y)) for x, y in part]
            found |= zip(part, _correlate(rated, places, draw), strict=True)
    return [found[pair] for pair in pairs]


def tau_b(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Return Kendall's tau-b alone; NaN where a side has fewer than two values.

    Parameters
    ----------
    x, y
        Shape (n,), finite; values that differ by rounding alone are ties.

    References
    ----------
    Kendall MG. The treatment of ties in ranking problems. Biometrika 1945;33:239-251.

    Examples
    --------
    >>> round(tau_b(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])), 4)
    0.3333
    """
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    # Heavy, and not needed by most commands.
    from scipy.stats import kendalltau

    return float(kendalltau(tie_equal(x), tie_equal(y)).statistic)


def kendall_p(x: NDArray[Any], y: NDArray[Any]) -> float | None:
    """Return the two-sided p-value of Kendall's test that tau-b is 0.

    The test treats candidates as independent, which several candidates of one case are
    not: read the interval of `correlate`, over units, beside it.

    Parameters
    ----------
    x, y
        Scores and ratings of the same candidates, NaN where missing, shape
        ``(n_candidates,)``.

    Returns
    -------
    float | None
        Exact without ties and with 33 candidates or fewer, else by the normal
        approximation with the variance for ties; None where tau-b is undefined.

    Raises
    ------
    ValueError
        The shapes differ or a value is infinite.

    References
    ----------
    Kendall MG. Rank Correlation Methods. 4th ed. 1970, chapter 5.

    Examples
    --------
    >>> round(kendall_p(np.arange(4.0), np.array([1.0, 3.0, 2.0, 4.0])), 4)
    0.3333
    """
    kept = keep_rated(x, y, units=None)
    one, other = kept.values
    if kept.n < 2 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return None
    # Heavy, and not needed where no such test is shown.
    from scipy.stats import kendalltau

    p = float(kendalltau(one, other).pvalue)
    return None if np.isnan(p) else p


def is_shown(found: Correlations, p: float | None, alpha: float = 0.05) -> bool:
    """Whether a tau-b is shown to differ from 0: by its test and by its interval.

    The test guards against few candidates, the interval over units against several
    candidates of one case.

    Parameters
    ----------
    found
        With the interval of its tau-b over units. Without an interval it is not shown,
        except a tau-b of 1 or -1, from which no resample differs: that is shown where
        2 of n!, the share of the orders of n units that are as extreme, is below
        `alpha`.
    p
        Of `kendall_p`.

    Examples
    --------
    >>> x = np.arange(6.0)
    >>> found = correlate(x, x, resamples=50)
    >>> is_shown(found, kendall_p(x, x))
    True
    >>> found = correlate(x, x, np.zeros(6), resamples=50)
    >>> is_shown(found, kendall_p(x, x))
    False
    """
    tau_b = found.tau_b
    if tau_b.value is None or p is None or p >= alpha:
        return False
    if tau_b.low is None or tau_b.high is None:
        perfect = abs(tau_b.value) > 1 - _FLAT
        return perfect and 2 / factorial(min(found.n_units, 20)) < alpha
    return not tau_b.low <= 0 <= tau_b.high


class PartialTau(NamedTuple):
    """How scores go with something that should not matter, beside the ratings."""

    scores: Estimate
    """tau-b of the scores with it."""

    ratings: Estimate
    """tau-b of the ratings with it: what it has to do with quality."""

    difference: Estimate
    """The first minus the second."""

    partial: Estimate
    """tau of the scores with it, the ratings held constant."""

    n: int
    """Candidates with all three."""

    n_units: int


def partial_tau(
    scores: NDArray[Any],
    other: NDArray[Any],
    ratings: NDArray[Any],
    **resampling: Unpack[Resampling],
) -> PartialTau:
    """Return how far scores go with another quantity, beyond what the ratings do.

    Parameters
    ----------
    scores, other, ratings
        Of the same candidates, NaN where missing, each ``(n_candidates,)``.
    **resampling
        ``units``, ``resamples`` (2,000), ``seed`` (0), ``confidence`` (0.95).

    Returns
    -------
    PartialTau
        On the candidates that have all three, all on the same resamples. Each but the
        difference is in [-1, 1]; None where one side is constant, the partial one also
        where the ratings order scores or `other` without an exception.

    Raises
    ------
    ValueError
        The shapes differ, a value is infinite, or an option is out of range.

    References
    ----------
    Kendall MG. Biometrika 1942;32:277-283 (partial rank correlation). With ties, of
    tau-b: Kendall MG, Gibbons JD. Rank Correlation Methods. 5th ed. 1990, chapter 8.

    Examples
    --------
    >>> score, length = np.array([1, 2, 3, 4, 5]), np.array([1, 3, 2, 5, 4])
    >>> found = partial_tau(score, length, np.array([2, 1, 3, 5, 4]), resamples=9)
    >>> [round(one.value, 4) for one in found[:4]]
    [0.6, 0.6, 0.0, 0.375]
    """
    draw = Draw(**resampling)
    rated = keep_rated(scores, other, ratings, units=draw.units)
    taus = _TauB.of(rated, np.array([0, 2, 0]), np.array([1, 1, 2]))

    def values_of(weights: NDArray[Any]) -> NDArray[np.float64]:
        own, theirs, shared = taus.values(weights).T
        partial = normalise(own - theirs * shared, 1 - theirs**2, 1 - shared**2)
        return np.stack([own, theirs, own - theirs, partial], axis=1)

    estimates = values_of(np.ones((1, rated.n_units)))[0]
    values = _resample(values_of, estimates, rated.n_units, draw)
    note = "" if rated.n > 1 else f"not estimable: {rated.n} candidates with all three"
    own, theirs, difference, partial = (
        to_estimate(one, note) for one in summarise(estimates, values, draw)
    )
    return PartialTau(own, theirs, difference, partial, rated.n, rated.n_units)


_Columns = TypeVar("_Columns", bound=tuple[int, ...])


def group_complete(
    table: NDArray[Any], chosen: Sequence[_Columns]
) -> list[list[_Columns]]:
    """Return the choices of columns, those that are defined in the same rows together.

    Parameters
    ----------
    table
        NaN where missing, shape ``(n_candidates, n_columns)``.
    chosen
        Positions of columns that are used together.

    Examples
    --------
    >>> group_complete(np.array([[1, 2, np.nan], [3, 4, 5]]), [(0, 1), (0, 2), (1, 2)])
    [[(0, 1)], [(0, 2), (1, 2)]]
    """
    defined = ~np.isnan(np.asarray(table, dtype=np.float64))
    groups: dict[bytes, list[_Columns]] = {}
    for columns in dict.fromkeys(chosen):
        rows = defined[:, list(columns)].all(axis=1)
        groups.setdefault(rows.tobytes(), []).append(columns)
    return list(groups.values())


def split_forms(chosen: Sequence[_Columns], n_units: int) -> list[list[_Columns]]:
    """Return the choices in parts whose tables of pairs of units fit into memory.

    Parameters
    ----------
    chosen
        Columns that are used together, which have tables of ``(n_units, n_units)``.
    n_units
        Number of units.

    Examples
    --------
    >>> split_forms([(0, 1), (0, 2), (1, 2)], 2896)
    [[(0, 1), (0, 2)], [(1, 2)]]
    """
    size = max(1, _FORM_CELLS // max(n_units**2, 1))
    return [list(chosen[at : at + size]) for at in range(0, len(chosen), size)]


def _correlate(
    rated: Rated, pairs: Sequence[tuple[int, int]], draw: Draw
) -> list[Correlations]:
    """Return the coefficients of pairs of arrays that all candidates have."""
    x, y = np.array(pairs, dtype=np.intp).T
    coefficients = (
        _TauB.of(rated, x, y),
        _Spearman.of(rated, x, y),
        _Pearson.of(rated, x, y),
    )

    def values_of(weights: NDArray[Any]) -> NDArray[np.float64]:
        values = [one.values(weights) for one in coefficients]
        return np.stack(values, axis=2).reshape(len(weights), -1)

    estimates = values_of(np.ones((1, rated.n_units)))[0]
    values = _resample(values_of, estimates, rated.n_units, draw)
    every = summarise(estimates, values, draw)
    found = []
    for place, (first, second) in enumerate(pairs):
        note = _note(rated.values[first], rated.values[second])
        three = every[3 * place : 3 * place + 3]
        tau_b, spearman, pearson = (to_estimate(one, note) for one in three)
        found.append(Correlations(tau_b, spearman, pearson, rated.n, rated.n_units))
    return found


def _resample(
    values_of: Callable[[NDArray[Any]], NDArray[np.float64]],
    estimates: NDArray[np.float64],
    n_units: int,
    draw: Draw,
) -> NDArray[np.float64]:
    """Return the values of every resample, made from blocks of weights."""

    def compute(size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        blocks = resample_weights(n_units, size, rng)
        return np.concatenate(
            [values_of(part) for block in blocks for part in split_rows(block)]
        )

    return draw_values(compute, estimates, n_units, draw)


def _note(x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    if len(x) < 2:
        return f"not estimable: {len(x)} candidates with a score and a rating"
    flat = [name for name, of in (("scores", x), ("ratings", y)) if np.ptp(of) == 0]
    return f"not estimable: all {' and all '.join(flat)} are equal" if flat else ""


class _TauB(NamedTuple):
    """tau-b of every pair of arrays."""

    ordered: tuple[NDArray[Any], ...]
    """Of each pair of arrays, pairs of candidates in the same order minus those in
    opposite order, added up by unit, each ``(n_units, n_units)``."""

    counts: tuple[NDArray[Any], ...]
    """Of each array, candidates of each unit with each distinct value, ``(n_units,
    n_values)``."""

    x: NDArray[np.intp]
    y: NDArray[np.intp]

    @classmethod
    def of(cls, rated: Rated, x: NDArray[np.intp], y: NDArray[np.intp]) -> Self:
        values = rated.values
        ordered = [
            sum_signs((values[a], values[a]), (values[b], values[b]), rated.position)
            for a, b in zip(x, y, strict=True)
        ]
        return cls(tuple(ordered), tuple(_count(one, rated) for one in values), x, y)

    def values(self, weights: NDArray[Any]) -> NDArray[np.float64]:
        """Return them with each unit taken so often, shape ``(n, n_pairs)``."""
        products = np.stack([quadratic(one, weights) for one in self.ordered], axis=1)
        untied = np.stack([_untied(one, weights) for one in self.counts], axis=1)
        return normalise(products, untied[:, self.x], untied[:, self.y])


def _count(values: NDArray[np.float64], rated: Rated) -> NDArray[Any]:
    distinct, value = np.unique(values, return_inverse=True)
    cells = rated.position * len(distinct) + value
    counts = np.bincount(cells, minlength=rated.n_units * len(distinct))
    table = counts.reshape(rated.n_units, len(distinct))
    return table.astype(exact_kind(rated.position))


def _untied(counts: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
    """Return the pairs with different values in each resample, either way round."""
    sizes = weights.astype(counts.dtype, copy=False) @ counts
    tied = np.einsum("rv,rv->r", sizes, sizes)
    every = sizes.sum(axis=1) ** 2
    return np.asarray(every - tied, dtype=np.float64)


class _Spearman(NamedTuple):
    """Spearman's coefficient of every pair of arrays.

    The rank of a candidate, minus the mean rank, is half the sum of the signs of its
    differences from all candidates.
    """

    signs: NDArray[Any]
    """For each array, signs of the differences of each candidate from the candidates
    of each unit, added up, shape ``(n_arrays, n_units, n)``."""

    position: NDArray[np.intp]
    x: NDArray[np.intp]
    y: NDArray[np.intp]

    @classmethod
    def of(cls, rated: Rated, x: NDArray[np.intp], y: NDArray[np.intp]) -> Self:
        signs = np.stack([_signs_by_unit(one, rated) for one in rated.values])
        # A product of two ranks, added up, counts three candidates together.
        kind = exact_kind(rated.position, together=3)
        return cls(signs.astype(kind, copy=False), rated.position, x, y)

    def values(self, weights: NDArray[Any]) -> NDArray[np.float64]:
        """Return them with each unit taken so often, shape ``(n, n_pairs)``."""
        rows = max(1, _CELLS // max(len(self.signs) * len(self.position), 1))
        return np.concatenate(
            [self._values(part) for part in split_rows(weights, rows)]
        )

    def _values(self, weights: NDArray[Any]) -> NDArray[np.float64]:
        weights = weights.astype(self.signs.dtype, copy=False)
        ranks = (weights @ self.signs).transpose(1, 0, 2)
        times = weights[:, None, self.position]
        sums = (ranks * times) @ ranks.transpose(0, 2, 1)
        products = sums.astype(np.float64)
        own = np.diagonal(products, axis1=1, axis2=2)
        return normalise(products[:, self.x, self.y], own[:, self.x], own[:, self.y])


def _signs_by_unit(values: NDArray[np.float64], rated: Rated) -> NDArray[Any]:
    order = np.argsort(rated.position, kind="stable")
    starts = _starts(rated.position[order])
    kind = exact_kind(rated.position)
    total = np.empty((rated.n, rated.n_units), dtype=kind)
    rows = max(1, _PIECE // max(rated.n, 1))
    for first in range(0, rated.n, rows):
        piece = np.arange(first, min(first + rows, rated.n))
        signs = _signs((values, values), piece, order)
        total[piece] = _add_runs(signs.astype(kind), starts, 1)
    return np.ascontiguousarray(total.T)


class _Pearson(NamedTuple):
    """Pearson's coefficient of every pair of arrays."""

    table: NDArray[np.float64]
    """For each pair the sums of 1, x, y, xy, xx, yy by unit, shape ``(n_pairs,
    n_units, 6)``."""

    @classmethod
    def of(cls, rated: Rated, x: NDArray[np.intp], y: NDArray[np.intp]) -> Self:
        scaled = [_standardise(one) for one in rated.values]
        tables = [
            _moments(scaled[a], scaled[b], rated) for a, b in zip(x, y, strict=True)
        ]
        return cls(np.stack(tables))

    def values(self, weights: NDArray[Any]) -> NDArray[np.float64]:
        """Return them with each unit taken so often, shape ``(n, n_pairs)``."""
        sums = weights.astype(np.float64) @ self.table
        n, x, y, xy, xx, yy = sums.transpose(2, 1, 0)
        return normalise(
            n * xy - x * y,
            *(
                np.where(variance > _FLAT * n * square, variance, 0.0)
                for variance, square in ((n * xx - x * x, xx), (n * yy - y * y, yy))
            ),
        )


def _moments(
    x: NDArray[np.float64], y: NDArray[np.float64], rated: Rated
) -> NDArray[np.float64]:
    columns = np.stack([np.ones(rated.n), x, y, x * y, x * x, y * y], axis=1)
    return sum_by_unit(columns, rated.position)


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
    drawn = Resampling(
        units=units, resamples=resamples, seed=seed, confidence=confidence
    )
    return preference_accuracies(scores[:, :, None], ratings, **drawn)[0]


def preference_accuracies(
    scores: NDArray[Any], ratings: NDArray[Any], **resampling: Unpack[Resampling]
) -> list[Preference]:
    """Return what `preference_accuracy` does for many metrics, in much less time.

    Parameters
    ----------
    scores
        Shape ``(n_pairs, 2, n_metrics)``; otherwise as for `preference_accuracy`.
    ratings
        Shape ``(n_pairs, 2)``.
    **resampling
        ``units``, ``resamples`` (2,000), ``seed`` (0), ``confidence`` (0.95).

    Returns
    -------
    list[Preference]
        One per metric, on the same resamples.
    """
    preferred, rated = _prefer(scores), _prefer(ratings[:, :, None])
    defined = ~np.isnan(preferred) & ~np.isnan(rated)
    judged = defined & (rated != 0)
    right = judged & (preferred == rated)
    tied = judged & (preferred == 0)

    def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return divide(*np.split(sums, 2, axis=1))

    accuracies = bootstrap(np.hstack([right, judged]), statistic, **resampling)
    return [
        Preference(
            right=int(right[:, place].sum()),
            wrong=int((judged & ~right & ~tied)[:, place].sum()),
            tied=int(tied[:, place].sum()),
            rater_ties=int((defined & (rated == 0))[:, place].sum()),
            undefined=int((~defined)[:, place].sum()),
            accuracy=to_estimate(accuracy),
        )
        for place, accuracy in enumerate(accuracies)
    ]


def _prefer(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return 1 for the first, -1 for the second, 0 for none, NaN if one is missing."""
    difference = np.asarray(values[:, 0] - values[:, 1], dtype=np.float64)
    return np.where(np.abs(difference) <= TIE, 0.0, np.sign(difference))
