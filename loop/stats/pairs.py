"""Counts of every pair of systems, on the cells that both of them decide."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from loop.stats.confusion import (
    EXCLUDED,
    ZeroDivision,
    check_codes,
    f1_columns,
    mean_f1,
)
from loop.stats.resampling import ROWS, exact_float, sum_by_unit

_AT_ONCE = 8_000_000
"""Counts made at once, so that memory does not grow with the number of pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTable:
    """What each unit adds to the F1 of both systems of each pair.

    A pair counts a cell only where both systems decide it. So that few columns are
    multiplied, each system is counted once on all its cells, and what the other one
    leaves open is taken off: those columns are nearly empty.
    """

    pairs: tuple[tuple[int, int], ...]
    """Positions of the systems, ``(0, 1), (0, 2), ... (1, 2), ...``."""

    alone: NDArray[Any]
    """`f1_columns` of every system, shape ``(n_units, n_systems * 2 * n_labels)``."""

    left_open: csr_array[Any]
    """The part of them in cells that the other system of the pair leaves open, shape
    ``(n_pairs * 2 * 2 * n_labels, n_units)``."""

    whole: NDArray[np.float64]
    """Counts over all units, shape ``(n_pairs, 2, 2 * n_labels)``."""

    zero_division: ZeroDivision

    @property
    def n_units(self) -> int:
        """Number of units."""
        return len(self.alone)

    @property
    def rows(self) -> int:
        """Rows of multipliers to take at once."""
        return max(1, min(ROWS, _AT_ONCE // max(self.whole.size, 1)))

    def sums(self, multipliers: NDArray[Any]) -> NDArray[np.float64]:
        """Return the counts with each unit taken so many times.

        Parameters
        ----------
        multipliers
            Whole numbers, shape ``(n, n_units)``.

        Returns
        -------
        NDArray[np.float64]
            Shape ``(n, n_pairs, 2, 2 * n_labels)``: of both systems of each pair.
        """
        times = multipliers.astype(self.alone.dtype, copy=False)
        return _pair_sums(self.pairs, self.alone, self.left_open, times)

    def differences(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return macro F1 of the first minus that of the second system.

        Parameters
        ----------
        sums
            Shape ``(..., 2, 2 * n_labels)``.

        Returns
        -------
        NDArray[np.float64]
            Shape ``(...)``; NaN where one of them is undefined.
        """
        found, weight = np.split(sums, 2, axis=-1)
        scores = mean_f1(found, weight, zero_division=self.zero_division)
        return np.asarray(scores[..., 0] - scores[..., 1])

    def columns(self, position: int) -> NDArray[np.float64]:
        """Return what each unit adds to one pair, ``(2, n_units, 2 * n_labels)``."""
        width = self.whole.shape[-1]
        rows = slice(2 * width * position, 2 * width * (position + 1))
        open_cells = self.left_open[rows].toarray().reshape(2, width, -1)
        each = self.alone.reshape(len(self.alone), -1, width)
        whole = each[:, list(self.pairs[position])].transpose(1, 0, 2)
        return np.asarray(whole - open_cells.transpose(0, 2, 1), dtype=np.float64)


def tabulate_pairs(
    reference: NDArray[np.int8],
    candidates: NDArray[np.int8],
    units: NDArray[Any] | None,
    zero_division: ZeroDivision,
) -> PairTable:
    """Return the counts of every pair of systems.

    Parameters
    ----------
    reference
        Codes 1 present, 0 absent, -1 excluded, shape ``(n_cases, n_labels)``.
    candidates
        The same codes, shape ``(n_systems, n_cases, n_labels)``.
    units
        Unit of each case, for example its patient; None: every case is its own.
    zero_division
        As for `average_f1`.

    Returns
    -------
    PairTable
        Units in the order of their names.

    Raises
    ------
    ValueError
        Shapes or codes are wrong, or a case has no unit.
    """
    check_codes(reference, *candidates)
    each = [f1_columns(reference, one) for one in candidates]
    alone = sum_by_unit(np.hstack(each), units)
    kind = exact_float(alone)
    pairs = tuple(combinations(range(len(candidates)), 2))
    left_open = _left_open(each, candidates == EXCLUDED, units, pairs).astype(kind)
    alone = alone.astype(kind)
    once = np.ones((1, len(alone)), dtype=kind)
    return PairTable(
        pairs=pairs,
        alone=alone,
        left_open=left_open,
        whole=_pair_sums(pairs, alone, left_open, once)[0],
        zero_division=zero_division,
    )


def _pair_sums(
    pairs: tuple[tuple[int, int], ...],
    alone: NDArray[Any],
    left_open: csr_array[Any],
    times: NDArray[Any],
) -> NDArray[np.float64]:
    width = left_open.shape[0] // (2 * len(pairs))
    each = (times @ alone).reshape(len(times), -1, width)
    sums = np.take(each, np.asarray(pairs), axis=1).astype(np.float64)
    if left_open.nnz:
        open_sums = left_open @ np.ascontiguousarray(times.T)
        sums -= open_sums.T.reshape(sums.shape)
    return np.asarray(sums)


def _left_open(
    each: list[NDArray[np.int8]],
    excluded: NDArray[np.bool_],
    units: NDArray[Any] | None,
    pairs: tuple[tuple[int, int], ...],
) -> csr_array[Any]:
    ordered = [order for a, b in pairs for order in ((a, b), (b, a))]
    return vstack(
        [
            csr_array(sum_by_unit(each[one] * np.tile(excluded[other], 2), units).T)
            for one, other in ordered
        ],
        format="csr",
    )
