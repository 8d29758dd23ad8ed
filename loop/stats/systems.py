"""Several systems against one reference: their ranking, and tests of every pair."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple, Unpack

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
from loop.stats.paired import TIE, check_permutations, exact_p, holm, sampled_p
from loop.stats.resampling import (
    ROWS,
    Bootstrap,
    Draw,
    Resampling,
    draw_values,
    exact_float,
    resample_weights,
    split_rows,
    sum_by_unit,
    summarise,
)

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


class SystemRank(NamedTuple):
    """The macro F1 of one system among the others."""

    estimate: float | None
    """None where every label is skipped."""

    low: float | None
    """Lower limit; None when not estimable."""

    high: float | None
    """Upper limit; None when not estimable."""

    best: float
    """Share of resamples in which it is the best, ties shared."""


class PairedTest(NamedTuple):
    """Two systems on the cells that the reference and both of them decide."""

    first: int
    """Position of the system; below `second`."""

    second: int
    difference: Bootstrap
    """Macro F1 of `first` minus that of `second`, with its paired interval."""

    p: float | None
    """Two-sided; None where the difference is undefined."""

    p_holm: float | None
    """The same, adjusted for all pairs that have one."""

    exact: bool
    """Whether every exchange was counted, not a sample of them."""


def rank_systems(
    columns: NDArray[Any],
    *,
    zero_division: ZeroDivision = "skip",
    **resampling: Unpack[Resampling],
) -> list[SystemRank]:
    """Return the macro F1 of every system, and how often it is the best one.

    All systems are scored on the same resamples.

    Parameters
    ----------
    columns
        `f1_columns` of every system, shape ``(n_systems, n_cases, 2 * n_labels)``:
        ``2 TP`` of every label, then ``2 TP + FP + FN`` of every label.
    zero_division
        As for `average_f1`.
    **resampling
        ``units``, ``resamples`` (10,000), ``seed`` (0), ``confidence`` (0.95).

    Returns
    -------
    list[Standing]
        In the order given. Resamples in which a system has no score do not count for
        `best`. With fewer than two units there is no interval, and `best` is about
        the cases themselves. It is 0 for a system without a score, and the shares
        of all others add up to 1.

    Raises
    ------
    ValueError
        The shape is wrong or an option is out of range.

    References
    ----------
    Share of resamples a system wins: Berg-Kirkpatrick T, Burkett D, Klein D. Proc
    EMNLP-CoNLL 2012:995-1005. Percentiles: Efron B, Tibshirani RJ. An Introduction
    to the Bootstrap. 1993, chapter 13.

    Examples
    --------
    >>> right, wrong = [[2, 2]] * 50, [[0, 2]] * 50
    >>> for one in rank_systems(np.array([right, wrong]), resamples=200):
    ...     print(one)
    SystemRank(estimate=1.0, low=1.0, high=1.0, best=1.0)
    SystemRank(estimate=0.0, low=0.0, high=0.0, best=0.0)
    """
    draw = _draw(resampling)
    if columns.ndim != 3 or columns.shape[2] % 2:
        raise ValueError(
            "need the shape (n_systems, n_cases, 2 * n_labels), "
            f"got {columns.shape}: pass what f1_columns returns, stacked"
        )
    n_systems, _, width = columns.shape
    per_unit = sum_by_unit(np.hstack(list(columns)), draw.units)
    table: NDArray[Any] = per_unit.astype(exact_float(per_unit))

    def score(sums: NDArray[Any]) -> NDArray[np.float64]:
        each = sums.reshape(-1, n_systems, 2, width // 2).astype(np.float64)
        return mean_f1(each[:, :, 0], each[:, :, 1], zero_division=zero_division)

    def compute(size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        blocks = resample_weights(len(table), size, rng)
        return np.concatenate([score(weights @ table) for weights in blocks])

    estimates = score(per_unit.sum(axis=0)[None])[0]
    values = draw_values(compute, estimates, len(table), draw)
    best = _share_best(values if len(values) else estimates[None], estimates, draw)
    return [
        SystemRank(*result[:3], best=float(share))
        for result, share in zip(summarise(estimates, values, draw), best, strict=True)
    ]


def compare_systems(
    reference: NDArray[np.int8],
    candidates: NDArray[np.int8],
    *,
    zero_division: ZeroDivision = "skip",
    permutations: int = 10_000,
    **resampling: Unpack[Resampling],
) -> list[PairedTest]:
    """Return the difference of every pair of systems, its interval and its test.

    Each pair is scored on the cells that the reference and both systems decide. The
    test exchanges the answers of the two systems, a whole unit at a time, and asks
    how often the difference becomes at least as large. Units on which both count the
    same cannot change it: where all 2^k exchanges of the k others are no more than
    `permutations`, all of them are counted and the p-value is exact.

    Parameters
    ----------
    reference
        Codes 1 present, 0 absent, -1 excluded, shape ``(n_cases, n_labels)``.
    candidates
        The same codes, shape ``(n_systems, n_cases, n_labels)``.
    zero_division
        As for `average_f1`.
    permutations
        Exchanges drawn per pair, the same ones for all pairs.
    **resampling
        As for `rank_systems`; the same resamples serve all pairs.

    Returns
    -------
    list[PairedTest]
        Pairs ``(0, 1), (0, 2), ... (1, 2), ...``; empty for fewer than two systems.
        A sampled p is ``(k + 1) / (permutations + 1)``. An exchange after which the
        difference is undefined counts as large.

    Raises
    ------
    ValueError
        Shapes or codes are wrong, or an option is out of range.

    References
    ----------
    Noreen EW. Computer-Intensive Methods for Testing Hypotheses. 1989 (approximate
    randomisation). The p-value of a sample of exchanges: Phipson B, Smyth GK. Stat
    Appl Genet Mol Biol 2010;9:39. Holm S. Scand J Stat 1979;6:65-70.

    Examples
    --------
    >>> truth = np.ones((6, 1), dtype=np.int8)
    >>> [test] = compare_systems(truth, np.stack([truth, 0 * truth]), resamples=99)
    >>> test.difference.estimate, test.p, test.exact
    (1.0, 0.03125, True)
    """
    draw = _draw(resampling)
    check_permutations(permutations)
    if candidates.ndim != 3:
        raise ValueError(
            f"need the shape (n_systems, n_cases, n_labels), got {candidates.shape}"
        )
    if len(candidates) < 2:
        return []
    table = tabulate_pairs(reference, candidates, draw.units, zero_division)
    estimates = table.differences(table.whole)
    results = _intervals(table, estimates, draw)
    tests = _exchange(table, np.abs(estimates), permutations, draw.seed)
    return _assemble(table.pairs, results, tests)


def _draw(resampling: Resampling) -> Draw:
    options: Resampling = {"resamples": 10_000, **resampling}
    return Draw(**options)


def _share_best(
    values: NDArray[np.float64], estimates: NDArray[np.float64], draw: Draw
) -> NDArray[np.float64]:
    """Return how often each column holds the largest value, ties shared."""
    wanted = ~np.isnan(estimates)
    usable = values[~np.isnan(values[:, wanted]).any(axis=1)][: draw.resamples]
    shares = np.zeros(len(estimates))
    if wanted.any() and len(usable):
        scores = usable[:, wanted]
        top = scores >= scores.max(axis=1, keepdims=True) - TIE
        shares[wanted] = (top / top.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares


def _intervals(
    table: PairTable, estimates: NDArray[np.float64], draw: Draw
) -> list[Bootstrap]:
    def compute(size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        blocks = resample_weights(table.n_units, size, rng)
        return np.concatenate(
            [
                table.differences(table.sums(part))
                for weights in blocks
                for part in split_rows(weights, table.rows)
            ]
        )

    values = draw_values(compute, estimates, table.n_units, draw)
    return summarise(estimates, values, draw)


class _Exchanged(NamedTuple):
    p: float | None
    exact: bool


def _exchange(
    table: PairTable, observed: NDArray[np.float64], permutations: int, seed: int
) -> list[_Exchanged]:
    """Return the test of every pair; those that are not exact share their exchanges."""
    exact = [
        _exact(table, position, float(size), permutations)
        for position, size in enumerate(observed)
    ]
    if all(exact):
        return [one for one in exact if one]

    def exchange(swaps: NDArray[np.bool_]) -> NDArray[np.float64]:
        moved = table.sums(swaps)
        return table.differences(table.whole - moved + moved[..., ::-1, :])

    def differences(swaps: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.concatenate([exchange(s) for s in split_rows(swaps, table.rows)])

    sampled = sampled_p(
        differences, observed, table.n_units, permutations=permutations, seed=seed
    )
    return [
        one or _Exchanged(float(p), False)
        for one, p in zip(exact, sampled, strict=True)
    ]


def _exact(
    table: PairTable, position: int, observed: float, permutations: int
) -> _Exchanged | None:
    """Return the test over all exchanges; None where they are too many."""
    if np.isnan(observed):
        return _Exchanged(None, False)
    columns = table.columns(position)
    moved = columns[1] - columns[0]
    moved = moved[moved.any(axis=1)]
    if len(moved) >= permutations.bit_length():
        return None
    whole = table.whole[position]

    def differences(swaps: NDArray[np.bool_]) -> NDArray[np.float64]:
        change = swaps @ moved
        return table.differences(whole + np.stack([change, -change], axis=1))[:, None]

    [p] = exact_p(differences, np.array([observed]), len(moved))
    return _Exchanged(float(p), True)


def _assemble(
    pairs: tuple[tuple[int, int], ...],
    results: list[Bootstrap],
    tests: list[_Exchanged],
) -> list[PairedTest]:
    adjusted = iter(holm([test.p for test in tests if test.p is not None]))
    return [
        PairedTest(
            first=first,
            second=second,
            difference=result,
            p=test.p,
            p_holm=None if test.p is None else next(adjusted),
            exact=test.exact,
        )
        for (first, second), result, test in zip(pairs, results, tests, strict=True)
    ]
