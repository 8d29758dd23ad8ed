"""The bootstrap itself: draws, weights, sums and percentile intervals.

A resample is a vector of weights, how often each unit was drawn. One matrix product
of a block of such vectors with the per-unit counts gives the counts of every resample
in the block, the same integers that counting the resampled rows would give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from loop.stats.intervals import Estimate, check_confidence


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which matrix products run in the calling thread alone.

    The products of a bootstrap are many and small. Where other processes want the
    processor too, the threads of each product wait for the one that is held up, and
    all of it takes ten times as long; on an idle machine one thread loses a fifth.
    The setting is the process's, and is put back at the end.
    """
    limits: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limits


@cache
def _controller() -> ThreadpoolController:
    """Return what sets the threads of the libraries that are loaded by now."""
    return ThreadpoolController()


Statistic = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""From summed columns ``(n, n_columns)`` to values ``(n,)`` or ``(n, m)``."""

Drawing = Callable[[int, np.random.Generator], NDArray[np.float64]]
"""From a number of resamples, and the source of draws, to values ``(n, m)``."""

_BLOCK = 600_000
"""Weights per block: small enough for the processor's cache, and fixed, because the
random stream must not depend on the machine."""

_LEAST_ROWS = 16
"""Resamples per block at least, so that a large table is not read again for each."""

_COUNTED = 2**14
"""Draws counted at once: of a small table many resamples, and still in the cache."""

ROWS = 256
"""Rows of weights from which much is made at once."""

NO_WIDTH = "interval not estimable: every resample gives the same value"
"""What is said in place of an interval without width, which is no certainty."""

_WIDTH = 1e-12
"""Below it two values of a statistic differ by rounding only."""

_UNDEFINED = 0.05
"""Beyond this share of undefined resamples the statistic is not estimable."""


class Bootstrap(NamedTuple):
    """A statistic with its percentile interval."""

    estimate: float | None
    """Value on the cases themselves; None where it is undefined."""

    low: float | None
    """Lower limit; None when not estimable."""

    high: float | None
    """Upper limit; None when not estimable."""

    resamples: int
    """Resamples the interval rests on."""

    redrawn: int
    """Resamples that were drawn again because the statistic was undefined."""

    @property
    def has_no_width(self) -> bool:
        """Whether the resamples agree, as they do where there is no error at all."""
        return has_no_width(self.low, self.high)


def has_no_width(low: float | None, high: float | None) -> bool:
    """Return whether two limits are the same but for rounding; False without limits."""
    return low is not None and high is not None and high - low < _WIDTH


class Resampling(TypedDict, total=False):
    """Options shared by every bootstrap."""

    units: NDArray[Any] | None
    """Unit of each case, for example its patient; None: every case is its own."""

    resamples: int
    """Number of resamples; default 2,000."""

    seed: int
    """Seed of the random generator; default 0. Record it."""

    confidence: float
    """Two-sided level; default 0.95."""


class DrawResampling(Resampling, total=False):
    """The same for answers of several draws."""

    draws: NDArray[Any] | None
    """Draw of each case, where a model with chance answered each several times; units
    and draws are then resampled independently of each other. None: one draw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """The same options with their defaults, checked."""

    units: NDArray[Any] | None = None
    draws: NDArray[Any] | None = None
    resamples: int = 2000
    seed: int = 0
    confidence: float = 0.95

    def __post_init__(self) -> None:
        check_confidence(self.confidence)
        if self.resamples < 1:
            raise ValueError(f"resamples must be >= 1, got {self.resamples}")


def bootstrap(
    columns: NDArray[Any], statistic: Statistic, **resampling: Unpack[DrawResampling]
) -> list[Bootstrap]:
    """Return percentile bootstrap intervals of statistics of column sums.

    Parameters
    ----------
    columns
        What each case adds to the counts, shape ``(n_cases, n_columns)``.
    statistic
        From sums of shape ``(n, n_columns)`` to values ``(n,)`` or ``(n, m)``; NaN
        where undefined.
    **resampling
        As for `bootstrap_f1`.

    Returns
    -------
    list[Bootstrap]
        One per statistic. An undefined resample is drawn again and counted; with more
        than 5 % of them, or fewer than two units, the limits are None.

    Raises
    ------
    ValueError
        An option is out of range, or `units` does not name a unit for every case.

    References
    ----------
    Efron B, Tibshirani RJ. An Introduction to the Bootstrap. 1993, chapter 13;
    resampling whole clusters: Field CA, Welsh AH. J R Stat Soc B 2007;69:369-390; two
    crossed factors, each resampled by itself, which is rather too wide: Owen AB. Ann
    Appl Stat 2007;1:386-411.
    """
    draw = Draw(**resampling)
    per_unit = sum_by_unit(_apart(columns, draw.draws), draw.units)
    times = 1 if draw.draws is None else len(np.unique(draw.draws))
    whole = per_unit.sum(axis=0, dtype=np.float64).reshape(1, times, -1).sum(axis=1)
    estimates = _as_matrix(statistic(whole))[0]

    def compute(size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        sums = resample_sums(per_unit, size, rng)
        if times > 1:
            weights = rng.multinomial(times, [1 / times] * times, size)
            sums = np.einsum("nd,ndc->nc", weights, sums.reshape(size, times, -1))
        return _as_matrix(statistic(sums))

    values = draw_values(compute, estimates, len(per_unit), draw)
    return summarise(estimates, values, draw)


def _apart(columns: NDArray[Any], draws: NDArray[Any] | None) -> NDArray[Any]:
    """Return `columns` with those of each draw apart, shape (n_cases, draws x columns).

    Raises
    ------
    ValueError
        `draws` does not name a draw for every case.
    """
    if draws is None:
        return columns
    if np.shape(draws) != (len(columns),):
        raise ValueError(
            f"need one draw per case, got shape {np.shape(draws)} for {len(columns)}"
        )
    numbers = np.unique(draws)
    return np.hstack([np.where((draws == one)[:, None], columns, 0) for one in numbers])


def resample_weights(
    n_units: int, resamples: int, rng: np.random.Generator
) -> Iterator[NDArray[np.float32]]:
    """Yield, in blocks, how often each unit is drawn in each resample.

    Parameters
    ----------
    n_units
        Number of units; each resample draws as many, with replacement.
    resamples
        Number of resamples in all blocks together.
    rng
        Source of randomness; a block's draws are one call of its `integers`.

    Yields
    ------
    NDArray[np.float32]
        Shape ``(n_block, n_units)``, whole numbers, each row summing to `n_units`.

    References
    ----------
    Efron B, Tibshirani RJ. An Introduction to the Bootstrap. 1993, chapter 6 (a
    resample as a vector of weights).
    """
    rows = max(1, _COUNTED // n_units)
    apart = np.arange(rows, dtype=np.intp)[:, None] * n_units
    for drawn in draw_units(n_units, resamples, rng):
        weights = np.empty(drawn.shape, dtype=np.float32)
        for start in range(0, len(drawn), rows):
            piece = drawn[start : start + rows]
            places = (piece + apart[: len(piece)]).ravel()
            counts = np.bincount(places, minlength=piece.size)
            weights[start : start + rows] = counts.reshape(piece.shape)
        yield weights


def draw_units(
    n_units: int, resamples: int, rng: np.random.Generator
) -> Iterator[NDArray[Any]]:
    """Yield, in blocks, the units drawn in each resample.

    Parameters
    ----------
    n_units, resamples, rng
        As for `resample_weights`, which counts exactly these draws.

    Yields
    ------
    NDArray[np.uint16] or NDArray[np.uint32]
        Unit numbers from 0, shape ``(n_block, n_units)``.
    """
    # Narrow integers cost fewer random bits, the largest part of a bootstrap.
    kind = np.uint16 if n_units <= 2**16 else np.uint32
    rows = max(_LEAST_ROWS, _BLOCK // n_units)
    for start in range(0, resamples, rows):
        size = (min(rows, resamples - start), n_units)
        yield rng.integers(n_units, size=size, dtype=kind)


def resample_sums(
    columns: NDArray[Any], resamples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return the column sums of every resample.

    Parameters
    ----------
    columns
        What each unit adds, shape ``(n_units, n_columns)``.
    resamples, rng
        As for `resample_weights`.

    Returns
    -------
    NDArray[np.float64]
        Shape ``(resamples, n_columns)``; exact for whole numbers.
    """
    table: NDArray[Any] = columns.astype(exact_float(columns))
    blocks = resample_weights(len(columns), resamples, rng)
    return np.concatenate([weights @ table for weights in blocks]).astype(np.float64)


def sum_by_unit(columns: NDArray[Any], units: NDArray[Any] | None) -> NDArray[Any]:
    """Return what each unit adds, units in the order of their names.

    Parameters
    ----------
    columns
        What each case adds, shape ``(n_cases, n_columns)``.
    units
        Unit of each case; None: every case is its own, in the order given.

    Returns
    -------
    NDArray
        Shape ``(n_units, n_columns)``.

    Raises
    ------
    ValueError
        `units` does not name a unit for every case.
    """
    if units is None:
        return columns
    if np.shape(units) != (len(columns),):
        raise ValueError(
            f"need one unit per case, got shape {np.shape(units)} for {len(columns)}"
        )
    names, position = np.unique(units, return_inverse=True)
    kind = np.int64 if columns.dtype.kind in "bui" else np.float64
    table = np.zeros((len(names), columns.shape[1]), dtype=kind)
    np.add.at(table, position, columns)
    return table


def draw_values(
    compute: Drawing, estimates: NDArray[np.float64], n_units: int, draw: Draw
) -> NDArray[np.float64]:
    """Return the values of every resample, with spare rows where one is undefined.

    Parameters
    ----------
    compute
        Gives the values of a number of resamples; NaN where undefined.
    estimates
        The values on the cases themselves, shape ``(m,)``. Where they are NaN, an
        undefined resample is no reason for more of them.
    n_units
        Units that are drawn from.
    draw
        Number of resamples and seed.

    Returns
    -------
    NDArray[np.float64]
        Shape ``(n, m)``; no row for fewer than two units, or nothing to estimate.
    """
    wanted = ~np.isnan(estimates)
    if n_units < 2 or not wanted.any():
        return np.empty((0, len(estimates)))
    rng = np.random.default_rng(draw.seed)
    with one_thread():
        values = compute(draw.resamples, rng)
        if not np.isnan(values[:, wanted]).any():
            return values
        spare = ceil(_UNDEFINED * draw.resamples)
        return np.concatenate([values, compute(spare, rng)])


def summarise(
    estimates: NDArray[np.float64], values: NDArray[np.float64], draw: Draw
) -> list[Bootstrap]:
    """Return the percentile interval of every column of `values`.

    Parameters
    ----------
    estimates
        Shape ``(m,)``; NaN where undefined.
    values
        As `draw_values` returns them, shape ``(n, m)``.
    draw
        Number of resamples and confidence.

    Returns
    -------
    list[Bootstrap]
        One per column.
    """
    return [
        _summarise(estimate, column, draw)
        for estimate, column in zip(estimates, values.T, strict=True)
    ]


def split_rows(weights: NDArray[Any], rows: int = ROWS) -> list[NDArray[Any]]:
    """Return the rows in pieces of `rows`, for when much is made of each.

    A block of `resample_weights` has many rows where units are few.
    """
    return [weights[i : i + rows] for i in range(0, len(weights), rows)]


def exact_float(columns: NDArray[Any]) -> type[np.float32 | np.float64]:
    """Return the narrowest float that holds every resampled sum of counts exactly."""
    if columns.dtype.kind not in "bui":
        return np.float64
    largest = int(np.abs(columns.astype(np.int64)).max(initial=0)) * len(columns)
    return np.float32 if largest < 2**24 else np.float64


def to_estimate(result: Bootstrap, note: str = "") -> Estimate:
    """Return a bootstrap result as an `Estimate`.

    Parameters
    ----------
    result
        The bootstrap result.
    note
        What is known to be degenerate; any note starting with ``"interval not
        estimable"`` drops the interval.

    Returns
    -------
    Estimate
        With a note whenever limits are missing or resamples were redrawn. An interval
        without width is none: it would read as certainty.
    """
    if result.estimate is None or note.startswith("interval not estimable"):
        return Estimate(result.estimate, None, None, note or "not estimable")
    if result.low is None:
        reason = "interval not estimable: too few units or defined resamples"
        note = f"{reason}; {note}" if note else reason
        return Estimate(result.estimate, None, None, note)
    if result.has_no_width:
        note = f"{NO_WIDTH}; {note}" if note else NO_WIDTH
        return Estimate(result.estimate, None, None, note)
    if result.redrawn and not note:
        note = f"{result.redrawn} undefined resamples redrawn"
    return Estimate(result.estimate, result.low, result.high, note)


def _summarise(
    estimate: np.float64, values: NDArray[np.float64], draw: Draw
) -> Bootstrap:
    if np.isnan(estimate):
        return Bootstrap(None, None, None, 0, 0)
    defined = np.flatnonzero(~np.isnan(values))
    if len(defined) < draw.resamples:
        undefined = len(values) - len(defined)
        return Bootstrap(float(estimate), None, None, len(defined), undefined)
    used = defined[: draw.resamples]
    tail = (1 - draw.confidence) / 2
    low, high = np.quantile(values[used], [tail, 1 - tail])
    redrawn = int(used[-1]) + 1 - draw.resamples
    return Bootstrap(float(estimate), float(low), float(high), draw.resamples, redrawn)


def _as_matrix(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values.reshape(len(values), -1)
