"""Confusion counts of one label or many, and the rates made from them."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

PRESENT, ABSENT, EXCLUDED = 1, 0, -1
"""Codes of the arrays below: excluded is uncertain, unanswered or without reference."""

ZeroDivision = Literal["skip", "zero", "one"]
"""What a label without any positive, on either side, adds to an average of F1."""


class Confusion(NamedTuple):
    """Counts of one label over the cases where both sides are decided.

    Every rate is None, never NaN, when its denominator is 0.
    """

    tp: int
    fp: int
    fn: int
    tn: int

    @property
    def n(self) -> int:
        """Number of cases compared."""
        return self.tp + self.fp + self.fn + self.tn

    @property
    def positives(self) -> int:
        """Cases where the reference says present."""
        return self.tp + self.fn

    @property
    def negatives(self) -> int:
        """Cases where the reference says absent."""
        return self.fp + self.tn

    @property
    def correct(self) -> int:
        """Cases where prediction and reference agree."""
        return self.tp + self.tn

    @property
    def accuracy(self) -> float | None:
        """Share of cases that agree; also the raw agreement."""
        return _ratio(self.correct, self.n)

    @property
    def precision(self) -> float | None:
        """Share of predicted positives that are positive (PPV)."""
        return _ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float | None:
        """Share of positives that are found (sensitivity)."""
        return _ratio(self.tp, self.positives)

    @property
    def specificity(self) -> float | None:
        """Share of negatives predicted absent."""
        return _ratio(self.tn, self.negatives)

    @property
    def npv(self) -> float | None:
        """Share of predicted negatives that are negative."""
        return _ratio(self.tn, self.tn + self.fn)

    @property
    def f1(self) -> float | None:
        """``2 TP / (2 TP + FP + FN)``, the positive agreement (Dice 1945)."""
        return _ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn)

    @property
    def prevalence(self) -> float | None:
        """Share of compared cases that are positive in the reference."""
        return _ratio(self.positives, self.n)

    @property
    def pabak(self) -> float | None:
        """Prevalence- and bias-adjusted kappa, ``2 accuracy - 1``.

        References
        ----------
        Byrt T, Bishop J, Carlin JB. J Clin Epidemiol 1993;46:423-429.
        """
        return None if self.accuracy is None else 2 * self.accuracy - 1

    @property
    def ac1(self) -> float | None:
        """Agreement corrected for chance by Gwet's AC1, stable at low prevalence.

        References
        ----------
        Gwet KL. Br J Math Stat Psychol 2008;61:29-48.
        """
        if self.accuracy is None:
            return None
        share = (2 * self.tp + self.fp + self.fn) / (2 * self.n)
        chance = 2 * share * (1 - share)
        return (self.accuracy - chance) / (1 - chance)


def count_confusions(
    reference: NDArray[np.int8], predicted: NDArray[np.int8]
) -> NDArray[np.int64]:
    """Return the confusion counts of every label.

    Parameters
    ----------
    reference, predicted
        Codes 1 present, 0 absent, -1 excluded, shape ``(n_cases, n_labels)``. A pair
        is left out when either side is excluded.

    Returns
    -------
    NDArray[np.int64]
        Shape ``(n_labels, 4)``, in the order TP, FP, FN, TN: a row is what
        `Confusion` takes.

    Raises
    ------
    ValueError
        The shapes differ or another code occurs.

    Examples
    --------
    >>> reference = np.array([[1], [1], [0], [-1]], dtype=np.int8)
    >>> predicted = np.array([[1], [0], [0], [1]], dtype=np.int8)
    >>> count_confusions(reference, predicted).tolist()
    [[1, 0, 1, 1]]
    """
    cells = pair_indicators(reference, predicted)
    return np.asarray(cells.sum(axis=0, dtype=np.int64))


def pair_indicators(
    reference: NDArray[np.int8], predicted: NDArray[np.int8]
) -> NDArray[np.bool_]:
    """Return which cell of the confusion table each case falls in.

    Parameters
    ----------
    reference, predicted
        As for `count_confusions`.

    Returns
    -------
    NDArray[np.bool_]
        Shape ``(n_cases, n_labels, 4)``, in the order TP, FP, FN, TN; all false for
        an excluded pair. Its sum over cases is `count_confusions`.

    Raises
    ------
    ValueError
        The shapes differ or another code occurs.
    """
    check_codes(reference, predicted)
    cells = [
        (reference == truth) & (predicted == answer)
        for truth, answer in (
            (PRESENT, PRESENT),
            (ABSENT, PRESENT),
            (PRESENT, ABSENT),
            (ABSENT, ABSENT),
        )
    ]
    return np.stack(cells, axis=-1)


def f1_columns(
    reference: NDArray[np.int8], predicted: NDArray[np.int8]
) -> NDArray[np.int8]:
    """Return what each case adds to the two parts of each label's F1.

    Parameters
    ----------
    reference, predicted
        Codes 1 present, 0 absent, negative excluded, shapes
        ``(..., n_cases, n_labels)`` that broadcast.

    Returns
    -------
    NDArray[np.int8]
        Shape ``(..., n_cases, 2 * n_labels)``: ``2 TP`` of every label, then
        ``2 TP + FP + FN`` of every label; 0 where a side is excluded. Sums over cases
        are what `mean_f1` divides.

    Examples
    --------
    >>> truth = np.array([[1, 0, 1]], dtype=np.int8)
    >>> f1_columns(truth, np.array([[1, 1, -1]], dtype=np.int8)).tolist()
    [[2, 0, 0, 2, 1, 0]]
    """
    decided = (reference >= ABSENT) & (predicted >= ABSENT)
    truth, answer = decided & (reference == PRESENT), decided & (predicted == PRESENT)
    found = 2 * (truth & answer).astype(np.int8)
    weight = truth.astype(np.int8) + answer.astype(np.int8)
    return np.concatenate([found, weight], axis=-1)


def check_codes(*arrays: NDArray[np.int8]) -> None:
    """Raise `ValueError` unless the arrays are 2-D, of one shape, with known codes."""
    shapes = {array.shape for array in arrays}
    if len(shapes) != 1 or arrays[0].ndim != 2:
        raise ValueError(f"need equal shapes (n_cases, n_labels), got {sorted(shapes)}")
    for array in arrays:
        strange = array[(array < EXCLUDED) | (array > PRESENT)]
        if strange.size:
            raise ValueError(f"codes must be 1, 0 or -1, got {strange[0]}")


def average_f1(
    counts: NDArray[Any], *, zero_division: ZeroDivision = "skip"
) -> NDArray[np.float64]:
    """Return the macro F1: the mean over labels of each label's F1.

    Parameters
    ----------
    counts
        Shape ``(..., n_labels, 4)``, in the order TP, FP, FN, TN.
    zero_division
        A label with no positive on either side is left out (``"skip"``) or counts as
        0 or 1. Scores under different policies are not comparable.

    Returns
    -------
    NDArray[np.float64]
        Shape ``(...)``, in [0, 1]; NaN where every label is skipped.

    References
    ----------
    Opitz J, Burst S. Macro F1 and Macro F1. arXiv:1911.03347 (their averaged F1).

    Examples
    --------
    >>> counts = np.array([[1, 0, 0, 2], [1, 1, 1, 0], [0, 0, 0, 3]])
    >>> float(average_f1(counts)), float(average_f1(counts, zero_division="zero"))
    (0.75, 0.5)
    """
    found, weight = _f1_parts(counts)
    return mean_f1(found, weight, zero_division=zero_division)


def micro_f1(
    counts: NDArray[Any], *, zero_division: ZeroDivision = "skip"
) -> NDArray[np.float64]:
    """Return the micro F1: one F1 over the cells of all labels together.

    Parameters
    ----------
    counts
        Shape ``(..., n_labels, 4)``, in the order TP, FP, FN, TN.
    zero_division
        What a table without any positive gives: NaN (``"skip"``), 0 or 1.

    Returns
    -------
    NDArray[np.float64]
        Shape ``(...)``, in [0, 1].

    References
    ----------
    Lewis DD. Evaluating text categorization. Proc Speech and Natural Language
    Workshop 1991:312-318.
    """
    found, weight = _f1_parts(counts)
    found, weight = found.sum(axis=-1)[..., None], weight.sum(axis=-1)[..., None]
    return mean_f1(found, weight, zero_division=zero_division)


def mean_f1(
    found: NDArray[Any],
    weight: NDArray[Any],
    *,
    zero_division: ZeroDivision = "skip",
) -> NDArray[np.float64]:
    """Return the mean of ``found / weight`` over the last axis.

    Parameters
    ----------
    found, weight
        ``2 TP`` and ``2 TP + FP + FN``, shape ``(..., n_labels)``.
    zero_division
        As for `average_f1`.

    Returns
    -------
    NDArray[np.float64]
        Shape ``(...)``; NaN where every label is skipped.
    """
    defined = weight > 0
    scores = np.divide(
        found,
        weight,
        out=np.full(found.shape, 1.0 if zero_division == "one" else 0.0),
        where=defined,
    )
    size = defined.sum(axis=-1) if zero_division == "skip" else found.shape[-1]
    return divide(scores.sum(axis=-1), size)


def effective_labels(counts: NDArray[Any]) -> NDArray[np.int64]:
    """Return how many labels have a defined F1, the L a skipping average is over.

    Parameters
    ----------
    counts
        Shape ``(..., n_labels, 4)``, in the order TP, FP, FN, TN.

    Returns
    -------
    NDArray[np.int64]
        Shape ``(...)``, from 0 to `n_labels`.
    """
    return np.asarray((_f1_parts(counts)[1] > 0).sum(axis=-1, dtype=np.int64))


def kappas(counts: NDArray[Any]) -> NDArray[np.float64]:
    """Return Cohen's kappa of every table.

    Parameters
    ----------
    counts
        Shape ``(..., 4)``, in the order TP, FP, FN, TN.

    Returns
    -------
    NDArray[np.float64]
        Shape ``(...)``, in [-1, 1]; NaN where both sides only ever give the same one
        value, or where there is no case.

    References
    ----------
    Cohen J. Educ Psychol Meas 1960;20:37-46.

    Examples
    --------
    >>> round(float(kappas(np.array([6, 2, 2, 290]))), 4)
    0.7432
    """
    tp, fp, fn, tn = np.moveaxis(np.asarray(counts, dtype=np.float64), -1, 0)
    agreeing, n = tp + tn, tp + fp + fn + tn
    chance = (tp + fp) * (tp + fn) + (fn + tn) * (fp + tn)
    return divide(n * agreeing - chance, n * n - chance)


def chance_agreement(table: Confusion) -> float:
    """Return the share of cases on which both sides would agree by chance.

    Parameters
    ----------
    table
        Counts of one label, from one case.

    References
    ----------
    Cohen J. Educ Psychol Meas 1960;20:37-46.

    Examples
    --------
    >>> chance_agreement(Confusion(tp=3, fp=1, fn=0, tn=4))
    0.5
    """
    tp, fp, fn, tn = table
    return ((tp + fp) * (tp + fn) + (fn + tn) * (fp + tn)) / table.n**2


def kappa_note(table: Confusion) -> str:
    """Return why kappa, or its interval, cannot be estimated; empty if it can.

    Parameters
    ----------
    table
        Counts of one label; the wording is symmetric, so two readers fit too.

    Returns
    -------
    str
        Starts with ``"not estimable"`` where kappa is 0/0, and with ``"interval not
        estimable"`` where one side is constant, so that kappa is 0 by construction.
    """
    tp, fp, fn, tn = table
    if table.n == 0:
        return "not estimable: no cases"
    if tp + fp + fn == 0:
        return "not estimable: no positives"
    if fp + fn + tn == 0:
        return "not estimable: no negatives"
    if 0 in (tp + fp, tp + fn):
        return "interval not estimable: one side never says present"
    if 0 in (tn + fp, tn + fn):
        return "interval not estimable: one side never says absent"
    return ""


def divide(part: NDArray[Any], whole: NDArray[Any] | int) -> NDArray[np.float64]:
    """Return ``part / whole``, NaN where `whole` is not above 0."""
    out = np.full(np.shape(part), np.nan)
    np.divide(part, whole, out=out, where=np.asarray(whole) > 0)
    return out


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _f1_parts(counts: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    found = 2 * counts[..., 0]
    return found, found + counts[..., 1] + counts[..., 2]
