"""Permutation tests of two paired things: exchange them, one whole unit at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loop.stats.resampling import one_thread

Differences = Callable[[NDArray[np.bool_]], NDArray[np.float64]]
"""From which units are exchanged, ``(n, n_units)``, to differences ``(n, m)``; NaN
where undefined. Exchanging the other units instead must only change the sign."""

TIE = 1e-12
"""Values closer than this are equal: they differ by rounding alone."""

_BLOCK = 600_000
"""Exchanges of single units at once; fixed, because the draws depend on it."""

_MOST_ROWS = 256
"""Rows at once at most, so that what is made of them fits into the cache."""


def exact_p(
    differences: Differences, observed: NDArray[np.float64], n_units: int
) -> NDArray[np.float64]:
    """Return two-sided p-values from all ``2 ** n_units`` exchanges.

    Parameters
    ----------
    differences
        The statistic.
    observed
        Absolute differences without any exchange, shape ``(m,)``.
    n_units
        Units that are exchanged; time doubles with each.

    Returns
    -------
    NDArray[np.float64]
        Share of exchanges after which the absolute difference is as large or
        undefined, shape ``(m,)``; 1 without a unit.

    References
    ----------
    Pitman EJG. J R Stat Soc Suppl 1937;4:119-130.

    Examples
    --------
    >>> gains = np.array([1.0, 2.0, 3.0])
    >>> def total(swaps):
    ...     return np.where(swaps, -gains, gains).sum(axis=1, keepdims=True)
    >>> exact_p(total, np.array([6.0]), 3).tolist()
    [0.25]
    """
    # The last unit stays: the other half of all exchanges only has the other sign.
    free = max(n_units - 1, 0)
    larger = np.zeros(len(observed), dtype=np.int64)
    with one_thread():
        for start in range(0, 2**free, _MOST_ROWS):
            codes = np.arange(start, min(start + _MOST_ROWS, 2**free))
            swaps = (codes[:, None] >> np.arange(n_units)) & 1 == 1
            larger += _count_large(differences(swaps), observed)
    return np.asarray(larger / 2**free)


def sampled_p(
    differences: Differences,
    observed: NDArray[np.float64],
    n_units: int,
    *,
    permutations: int,
    seed: int,
) -> NDArray[np.float64]:
    """Return two-sided p-values from a sample of exchanges.

    Parameters
    ----------
    differences, observed, n_units
        As for `exact_p`.
    permutations
        Exchanges drawn, the same ones for all differences.
    seed
        Seed of the draws.

    Returns
    -------
    NDArray[np.float64]
        ``(k + 1) / (permutations + 1)`` with `k` differences as large or undefined,
        shape ``(m,)``; never 0.

    References
    ----------
    Phipson B, Smyth GK. Stat Appl Genet Mol Biol 2010;9:39.
    """
    larger = np.zeros(len(observed), dtype=np.int64)
    with one_thread():
        for swaps in _draw_swaps(n_units, permutations, seed):
            larger += _count_large(differences(swaps), observed)
    return np.asarray((larger + 1) / (permutations + 1))


def check_permutations(permutations: int) -> None:
    """Raise `ValueError` unless at least one exchange is asked for."""
    if permutations < 1:
        raise ValueError(f"permutations must be >= 1, got {permutations}")


def _count_large(
    after: NDArray[np.float64], observed: NDArray[np.float64]
) -> NDArray[Any]:
    return np.asarray((~(np.abs(after) < observed - TIE)).sum(axis=0))


def _draw_swaps(
    n_units: int, permutations: int, seed: int
) -> Iterator[NDArray[np.bool_]]:
    # Another stream than that of the resamples, which start from the bare seed.
    rng = np.random.default_rng([seed, 1])
    rows = max(16, min(_MOST_ROWS, _BLOCK // max(n_units, 1)))
    for start in range(0, permutations, rows):
        size = (min(rows, permutations - start), n_units)
        yield rng.integers(2, size=size, dtype=np.bool_)
