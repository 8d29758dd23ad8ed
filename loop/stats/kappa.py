"""Cohen's kappa of two readings and among many readers, and the human ceiling."""

from __future__ import annotations

from itertools import combinations
from math import sqrt
from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from loop.stats.confusion import (
    EXCLUDED,
    Confusion,
    chance_agreement,
    count_confusions,
    divide,
    kappa_note,
    kappas,
    pair_indicators,
)
from loop.stats.intervals import Estimate as Estimate
from loop.stats.intervals import check_confidence, clopper_pearson, kappa_limits
from loop.stats.reliability import UNRATED, check_readers
from loop.stats.reliability import fleiss_kappa as fleiss_kappa
from loop.stats.reliability import krippendorff_alpha as krippendorff_alpha
from loop.stats.resampling import (
    NO_WIDTH,
    Resampling,
    Statistic,
    bootstrap,
    sum_by_unit,
    to_estimate,
)


class PairAgreement(NamedTuple):
    """Cohen's kappa of two readers on the cases that both rated."""

    first: int
    """Column of the first reader."""

    second: int
    """Column of the second reader."""

    kappa: Estimate
    n: int
    """Cases rated by both."""


class ReaderAgreement(NamedTuple):
    """One reader against the strict majority of the panel of the others."""

    reader: int
    """Column of the reader."""

    n: int
    """Cases the reader rated and the others have a majority on."""

    ties: int
    """Cases the reader rated and the others have no majority on; left out."""

    accuracy: Estimate
    """With the exact interval."""

    kappa: Estimate
    """With the asymptotic interval."""


class LeaveOneOut(NamedTuple):
    """Every reader against the others, and the mean: the human ceiling."""

    readers: tuple[ReaderAgreement, ...]
    accuracy: Estimate
    """Mean over readers, with a bootstrap interval."""

    kappa: Estimate
    """Mean over readers whose kappa is defined, with a bootstrap interval."""


def cohen_kappa(
    confusion: Confusion, *, confidence: float = 0.95, draws: int = 1
) -> Estimate:
    """Return Cohen's kappa of a two by two table with its asymptotic interval.

    The interval is poor for rare labels: show the bootstrap beside it.

    Parameters
    ----------
    confusion
        Counts of one label, or of two readers.
    confidence
        Two-sided level in (0, 1).
    draws
        As for `loop.stats.intervals.clopper_pearson`.

    Returns
    -------
    Estimate
        In [-1, 1]. Value None where both sides only ever say the same one thing
        (0/0). Where one side is constant the value is 0 and the interval None.

    Raises
    ------
    ValueError
        `confidence` is not in (0, 1).

    References
    ----------
    Cohen J. Educ Psychol Meas 1960;20:37-46. Standard error: Fleiss JL, Cohen J,
    Everitt BS. Psychol Bull 1969;72:323-327.

    Examples
    --------
    >>> value, low, high, _ = cohen_kappa(Confusion(tp=6, fp=2, fn=2, tn=290))
    >>> f"{value:.4f} ({low:.4f} to {high:.4f})"
    '0.7432 (0.5007 to 0.9856)'
    """
    check_confidence(confidence)
    if note := kappa_note(confusion):
        return Estimate(None if note.startswith("not") else 0.0, None, None, note)
    value, variance = _kappa_with_variance(confusion)
    reach = float(ndtri((1 + confidence) / 2)) * sqrt(max(variance * draws, 0.0))
    note = (
        ""
        if confusion.fp + confusion.fn
        else "interval has no width: perfect agreement"
    )
    return Estimate(value, max(value - reach, -1.0), min(value + reach, 1.0), note)


def bounded_kappa(confusion: Confusion, *, confidence: float = 0.95) -> Estimate:
    """Return Cohen's kappa, at perfect agreement with limits that have a width.

    The asymptotic error is 0 there, whether over five cases or five hundred: the limits
    are those of `kappa_limits` instead. Elsewhere the same as `cohen_kappa`.

    Parameters
    ----------
    confusion, confidence
        As for `cohen_kappa`.

    Raises
    ------
    ValueError
        `confidence` is not in (0, 1).

    References
    ----------
    As for `cohen_kappa` and `loop.stats.intervals.kappa_limits`.

    Examples
    --------
    >>> value, low, high, _ = bounded_kappa(Confusion(tp=20, fp=0, fn=0, tn=20))
    >>> f"{value:.1f} ({low:.3f} to {high:.3f})"
    '1.0 (0.824 to 1.000)'
    """
    found = cohen_kappa(confusion, confidence=confidence)
    if found.low is None or found.low != found.high:
        return found
    n, chance = confusion.n, chance_agreement(confusion)
    limits = kappa_limits(confusion.correct, n, chance, confidence=confidence)
    alike = "every pair agrees" if confusion.correct else "no pair agrees"
    return Estimate(found.value, *limits, f"exact limits: {alike}")


def _kappa_with_variance(confusion: Confusion) -> tuple[float, float]:
    """Return kappa and the square of its asymptotic standard error.

    In the notation of Fleiss, Cohen and Everitt; the order of the operations decides
    the last digit, which published limits rest on.
    """
    tp, fp, fn, tn = confusion
    shares = np.array([[tn, fp], [fn, tp]], dtype=np.float64)
    n = shares.sum()
    observed = np.diag(shares).sum() / n
    rows, columns = shares.sum(1) / n, shares.sum(0) / n
    shares /= n
    expected = np.diag(columns * rows[:, None]).sum()
    kappa = (observed - expected) / (1 - expected)
    agreeing = np.diag(shares) * (1 - (rows + columns) * (1 - kappa)) ** 2
    differing = shares * (columns[:, None] + rows) ** 2
    np.fill_diagonal(differing, 0)
    spread = agreeing.sum() + (1 - kappa) ** 2 * differing.sum()
    centre = (kappa - expected * (1 - kappa)) ** 2
    return float(kappa), float((spread - centre) / (1 - expected) ** 2 / n)


def pairwise_kappas(
    ratings: NDArray[np.int8], *, confidence: float = 0.95
) -> list[PairAgreement]:
    """Return Cohen's kappa of every pair of readers.

    Parameters
    ----------
    ratings
        Codes 1 present, 0 absent, -1 missing or uncertain, shape
        ``(n_cases, n_readers)``. A case counts for a pair if both decided it.
    confidence
        Two-sided level of the asymptotic intervals.

    Returns
    -------
    list[PairAgreement]
        ``k (k - 1) / 2`` pairs, in the order of the columns.

    Raises
    ------
    ValueError
        Fewer than two readers, or another code.

    References
    ----------
    Cohen J. Educ Psychol Meas 1960;20:37-46.
    """
    pairs = _pairs(ratings)
    first, second = ratings[:, pairs[:, 0]], ratings[:, pairs[:, 1]]
    tables = [Confusion(*row) for row in count_confusions(first, second).tolist()]
    return [
        PairAgreement(
            int(i), int(j), bounded_kappa(table, confidence=confidence), table.n
        )
        for (i, j), table in zip(pairs, tables, strict=True)
    ]


def mean_pairwise_kappa(
    ratings: NDArray[np.int8], **resampling: Unpack[Resampling]
) -> Estimate:
    """Return the mean of Cohen's kappa over the pairs of readers.

    Parameters
    ----------
    ratings
        As for `pairwise_kappas`.
    **resampling
        As for `fleiss_kappa`.

    Returns
    -------
    Estimate
        Mean over the pairs whose kappa is defined, with a bootstrap interval over
        cases; the note counts the pairs left out.

    Raises
    ------
    ValueError
        Fewer than two readers, or another code.

    References
    ----------
    Light RJ. Psychol Bull 1971;76:365-377.
    """
    pairs = _pairs(ratings)
    cells = pair_indicators(ratings[:, pairs[:, 0]], ratings[:, pairs[:, 1]])
    return _mean_kappa(cells, "pairs", **resampling)


def leave_one_out(
    ratings: NDArray[np.int8],
    *,
    need: int | None = None,
    **resampling: Unpack[Resampling],
) -> LeaveOneOut:
    """Compare each reader with the majority of the other readers.

    The mean is the ceiling a model can be held against, on the same cases and the
    same panels; against the majority that includes the reader it would flatter.

    Parameters
    ----------
    ratings
        Codes 1 present, 0 absent, -1 missing or uncertain, shape
        ``(n_cases, n_readers)``.
    need
        Equal votes among the others that make a majority; None: more than half of
        the others, whether they voted or not, so 3 of 5. Cases without one are left
        out and counted as ties.
    **resampling
        As for `fleiss_kappa`.

    Returns
    -------
    LeaveOneOut
        One entry per reader, and the means with bootstrap intervals over cases.

    Raises
    ------
    ValueError
        Fewer than two readers, another code, or a `need` that both values could
        reach or nobody can.

    References
    ----------
    Case bootstrap of the mean: Efron B, Tibshirani RJ. An Introduction to the
    Bootstrap. 1993, chapter 13.
    """
    panels = _panel_majorities(ratings, need)
    cells = pair_indicators(panels, ratings)
    tables = [Confusion(*row) for row in count_confusions(panels, ratings).tolist()]
    ties = ((ratings != UNRATED) & (panels == EXCLUDED)).sum(axis=0).tolist()
    confidence = resampling.get("confidence", 0.95)
    return LeaveOneOut(
        tuple(
            _reader_agreement(reader, table, tied, confidence)
            for reader, (table, tied) in enumerate(zip(tables, ties, strict=True))
        ),
        _mean_accuracy(cells, **resampling),
        _mean_kappa(cells, "readers", **resampling),
    )


def _reader_agreement(
    reader: int, table: Confusion, ties: int, confidence: float
) -> ReaderAgreement:
    limits = clopper_pearson(table.correct, table.n, confidence=confidence)
    accuracy = (
        Estimate(table.accuracy, *limits)
        if table.n
        else Estimate(None, None, None, "not estimable: no cases")
    )
    kappa = bounded_kappa(table, confidence=confidence)
    return ReaderAgreement(reader, table.n, ties, accuracy, kappa)


def _panel_majorities(ratings: NDArray[np.int8], need: int | None) -> NDArray[np.int8]:
    """Return, for each reader, what the others say: 1, 0, or -1 without majority."""
    others = check_readers(ratings) - 1
    if need is not None and not others / 2 < need <= others:
        raise ValueError(f"need must be over half of {others} votes, got {need}")
    least = others // 2 + 1 if need is None else need
    said = [(ratings == code).astype(np.int64) for code in (1, 0)]
    present, absent = (votes.sum(axis=1, keepdims=True) - votes for votes in said)
    panels = np.where(present >= least, 1, np.where(absent >= least, 0, EXCLUDED))
    return panels.astype(np.int8)


def _mean_accuracy(
    cells: NDArray[np.bool_], **resampling: Unpack[Resampling]
) -> Estimate:
    def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        counts = sums.reshape(len(sums), -1, 4)
        return divide(counts[..., 0] + counts[..., 3], counts.sum(axis=-1))

    found = _mean_over(cells, statistic, "readers", **resampling)
    if found.value not in (0.0, 1.0) or not found.note.startswith(NO_WIDTH):
        return found
    per_unit = sum_by_unit(cells.reshape(len(cells), -1), resampling.get("units"))
    units = int(per_unit.any(axis=1).sum())
    limits = clopper_pearson(
        units if found.value else 0,
        units,
        confidence=resampling.get("confidence", 0.95),
    )
    return found._replace(low=limits.low, high=limits.high, note="exact limits")


def _mean_kappa(
    cells: NDArray[np.bool_], what: str, **resampling: Unpack[Resampling]
) -> Estimate:
    def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return kappas(sums.reshape(len(sums), -1, 4))

    return _mean_over(cells, statistic, what, **resampling)


def _mean_over(
    cells: NDArray[np.bool_],
    statistic: Statistic,
    what: str,
    **resampling: Unpack[Resampling],
) -> Estimate:
    """Return the mean over the tables where `statistic` is defined on all cases."""
    whole = cells.sum(axis=0).reshape(1, -1).astype(np.float64)
    defined = ~np.isnan(statistic(whole)[0])
    if not defined.any():
        return Estimate(None, None, None, f"not estimable: none of the {what} defined")
    columns = cells[:, defined].reshape(len(cells), -1)
    result = bootstrap(columns, lambda s: statistic(s).mean(axis=1), **resampling)[0]
    left_out = len(defined) - int(defined.sum())
    note = f"{left_out} of {len(defined)} {what} not estimable" if left_out else ""
    return to_estimate(result, note)


def _pairs(ratings: NDArray[np.int8]) -> NDArray[np.intp]:
    return np.array(list(combinations(range(check_readers(ratings)), 2)), dtype=np.intp)


def distance_columns(
    own: NDArray[np.intp], others: NDArray[np.float64], distances: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what each case adds to the sums of `distance_kappas`.

    Parameters
    ----------
    own
        Place of one rater's value among the rows of `distances`, shape ``(n_cases,)``.
    others
        Share of the other raters who give each value, shape ``(n_cases, n_others)``;
        each row sums to 1.
    distances
        How far values are apart, at least 0, shape ``(n_own, n_others)``.

    Returns
    -------
    NDArray[np.float64]
        Shape ``(n_cases, 1 + n_own + n_others)``: the case's mean distance, which value
        is its own, and the shares.
    """
    observed = (others * distances[own]).sum(axis=1, keepdims=True)
    return np.hstack([observed, np.eye(len(distances))[own], others])


def distance_kappas(
    sums: NDArray[np.float64], distances: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return kappa weighted by distance, of summed `distance_columns`.

    One less the observed distance over the one of values paired at random: 1 for equal
    values everywhere, 0 for values that have nothing to do with each other.

    Parameters
    ----------
    sums
        Shape ``(n, 1 + n_own + n_others)``.
    distances
        As for `distance_columns`.

    Returns
    -------
    NDArray[np.float64]
        Shape ``(n,)``, at most 1; NaN where values at random are never apart.

    References
    ----------
    Cohen J. Weighted kappa. Psychol Bull 1968;70:213-220.

    Examples
    --------
    >>> steps = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    >>> others = np.eye(3)[[0, 1, 1, 2]]
    >>> columns = distance_columns(np.array([0, 1, 2, 2]), others, steps)
    >>> round(float(distance_kappas(columns.sum(axis=0, keepdims=True), steps)[0]), 4)
    0.7143
    """
    observed, own, others = np.split(sums, [1, 1 + len(distances)], axis=1)
    expected = np.einsum("na,ab,nb->n", own, distances, others)
    return 1 - divide(observed[:, 0] * own.sum(axis=1), expected)
