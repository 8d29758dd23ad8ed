"""Several systems against one reference: their ranking, and tests of every pair."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from loop.stats.confusion import ZeroDivision, mean_f1
from loop.stats.exchange import TIE, check_permutations, exact_p, sampled_p
from loop.stats.paired import holm
from loop.stats.pairs import PairTable, tabulate_pairs
from loop.stats.resampling import (
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
    Standing(estimate=1.0, low=1.0, high=1.0, best=1.0)
    Standing(estimate=0.0, low=0.0, high=0.0, best=0.0)
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
