"""Micro and macro precision, recall and accuracy of one system."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.stats.confusion import ZeroDivision


class Averages(NamedTuple):
    """Rates over all labels; None, never NaN, where there is nothing to divide by."""

    micro_precision: float | None
    micro_recall: float | None
    micro_accuracy: float | None
    macro_precision: float | None
    macro_recall: float | None
    macro_accuracy: float | None


def average(counts: NDArray[Any], *, zero_division: ZeroDivision = "skip") -> Averages:
    """Return the rates of one system, averaged over cells and over labels.

    Macro precision and recall are means over the labels that the macro-F1 is a mean
    of. There a label that is never predicted has precision 0, one that never occurs
    has recall 0; a label without any positive on either side is skipped or counts 0
    or 1, as in the F1. Macro accuracy is over the labels with a decided pair.

    Parameters
    ----------
    counts
        Shape ``(n_labels, 4)``, in the order TP, FP, FN, TN.
    zero_division
        As for `loop.stats.confusion.average_f1`.

    References
    ----------
    Sokolova M, Lapalme G. Inf Process Manag 2009;45:427-437.

    Examples
    --------
    >>> rates = average(np.array([[1, 1, 0, 2], [0, 0, 2, 2], [0, 0, 0, 4]]))
    >>> rates.micro_precision, rates.macro_precision, rates.macro_recall
    (0.5, 0.25, 0.5)
    """
    tp, fp, fn, tn = np.asarray(counts, dtype=np.int64).T
    counting = (
        tp + fp + fn > 0
        if zero_division == "skip"
        else np.ones(len(tp), dtype=np.bool_)
    )
    empty = 1.0 if zero_division == "one" else 0.0
    return Averages(
        micro_precision=_ratio(tp.sum(), (tp + fp).sum()),
        micro_recall=_ratio(tp.sum(), (tp + fn).sum()),
        micro_accuracy=_ratio((tp + tn).sum(), (tp + fp + fn + tn).sum()),
        macro_precision=_mean(_rates(tp, tp + fp, fn, empty)[counting]),
        macro_recall=_mean(_rates(tp, tp + fn, fp, empty)[counting]),
        macro_accuracy=_mean_accuracy(tp + tn, tp + fp + fn + tn),
    )


def _rates(
    right: NDArray[np.int64],
    whole: NDArray[np.int64],
    others: NDArray[np.int64],
    empty: float,
) -> NDArray[np.float64]:
    """Return ``right / whole``: 0 where undefined, `empty` for an empty label."""
    undefined = np.where(others > 0, 0.0, empty)
    return np.divide(right, whole, out=undefined, where=whole > 0)


def _mean_accuracy(right: NDArray[np.int64], n: NDArray[np.int64]) -> float | None:
    return _mean(right[n > 0] / n[n > 0])


def _mean(values: NDArray[np.float64]) -> float | None:
    return float(values.mean()) if values.size else None


def _ratio(part: np.int64, whole: np.int64) -> float | None:
    return float(part / whole) if whole else None
