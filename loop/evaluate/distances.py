"""How far answers are from what is right: the table that a check for losses compares.

An answer at distance 0 is right, every other one wrong, and of two wrong ones the
nearer is better. That holds for the values that an extractor reads, where the distance
is one of ranks, and for the errors that a judge counts, where it is their difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.records import ValueCode
from loop.evaluate.align import Codes

Distances = NDArray[np.float32] | NDArray[np.float64]
"""Shape ``(n_cases, n_fields)``, at least 0: 0 for a right answer, infinite for an
unreadable count, NaN where nothing says what is right or the engine failed."""

Mask = NDArray[np.bool_]


class Transitions(NamedTuple):
    """What became of each answer; masks of shape (cases, fields).

    Right is what equals the reference, and every other answer is wrong.
    """

    fixed: Mask
    broken: Mask
    still_wrong: Mask
    still_right: Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceTable:
    """Two runs on the same cases, each answer by its distance from what is right."""

    fields: tuple[str, ...]
    """Labels of an extractor, or fields of a judge such as
    ``"significant.omission"``."""

    before: Distances
    after: Distances
    positive: Mask
    """Where the reference has something to find: a label that is present, or an error;
    shape ``(n_cases, n_fields)``."""

    answered: Mask
    """Where the engine failed in neither run; the same shape."""

    def __post_init__(self) -> None:
        parts = (self.before, self.after, self.positive, self.answered)
        shapes = {one.shape for one in parts}
        if len(shapes) > 1 or self.before.shape[1:] != (len(self.fields),):
            raise ValueError(
                f"need equal shapes (n_cases, {len(self.fields)}), got {sorted(shapes)}"
            )

    @property
    def judged(self) -> Mask:
        """Where something says what is right and the engine failed in neither run."""
        unknown = np.isnan(self.before) | np.isnan(self.after)
        return np.asarray(self.answered & ~unknown)

    def sort(self, cases: Mask) -> Transitions:
        """Return what became of the answers that `cases` holds."""
        was, now = self.before == 0, self.after == 0
        return Transitions(
            fixed=cases & ~was & now,
            broken=cases & was & ~now,
            still_wrong=cases & ~was & ~now,
            still_right=cases & was & now,
        )


_RANKS: Final = {ValueCode.ABSENT: 0, ValueCode.UNCERTAIN: 1, ValueCode.PRESENT: 2}
"""Uncertain lies between absent and present."""

_NO_ANSWER: Final = 3
"""Distance of no answer: beyond every value."""

_LOWEST: Final = -min(ValueCode)
_WIDTH: Final = max(ValueCode) + _LOWEST + 1


def _tabulate(values: Mapping[ValueCode, int]) -> NDArray[np.float32]:
    """Return the distance of every answer from every code, both shifted to 0.

    Whatever is none of `values` says nothing of what is right.
    """
    table = np.full((_WIDTH, _WIDTH), np.nan, dtype=np.float32)
    for right, rank in values.items():
        table[right + _LOWEST] = _NO_ANSWER
        for answer, other in _RANKS.items():
            table[right + _LOWEST, answer + _LOWEST] = abs(rank - other)
    table[:, ValueCode.FAILED + _LOWEST] = np.nan
    return table


_STEPS: Final = _tabulate(_RANKS)
_DECIDED: Final = _tabulate(
    {one: _RANKS[one] for one in (ValueCode.ABSENT, ValueCode.PRESENT)}
).ravel()


def value_distances(reference: Codes, answers: Codes) -> NDArray[np.float32]:
    """Return how many ranks each answer is from the reference.

    Parameters
    ----------
    reference, answers
        As `ValueCode`, of equal shapes.

    Returns
    -------
    NDArray[np.float32]
        0, 1 or 2; 3 for no answer; NaN where the reference is neither present nor
        absent, or the engine failed.

    Examples
    --------
    >>> reference = np.array([1, 1, 1, 0, -1], dtype=np.int8)
    >>> answers = np.array([1, -1, 0, -4, 1], dtype=np.int8)
    >>> value_distances(reference, answers).tolist()
    [0.0, 1.0, 2.0, 3.0, nan]
    """
    # Within a byte, so that no wider copy of the table is made on the way.
    places = reference * np.int8(_WIDTH) + answers + np.int8(_LOWEST * (_WIDTH + 1))
    return _DECIDED.take(places)


def value_distance(right: ValueCode | None, answer: ValueCode) -> float:
    """Return the distance of one answer; NaN where nothing says what is right.

    Examples
    --------
    >>> value_distance(ValueCode.ABSENT, ValueCode.PRESENT)
    2.0
    """
    known = ValueCode.MISSING if right is None else right
    return float(_STEPS[known + _LOWEST, answer + _LOWEST])


def count_distances(
    counted: NDArray[np.float64], answers: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return how far each count of a judge is from that of the experts.

    Parameters
    ----------
    counted
        What the experts counted, for example the median over them; NaN where nobody
        did. Shape ``(n_cases, n_fields)``.
    answers
        What the judge counted, at least 0: infinite for an answer that cannot be read,
        NaN where the engine failed. The same shape.

    Returns
    -------
    NDArray[np.float64]
        The absolute difference: infinite for what cannot be read, so that it is never
        right and every count is nearer; NaN where either is.

    Raises
    ------
    ValueError
        The shapes differ, a count is negative, or one of the experts' is infinite.

    Examples
    --------
    >>> counted = np.array([[2, 0, np.nan]])
    >>> count_distances(counted, np.array([[3, np.inf, 1]])).tolist()
    [[1.0, inf, nan]]
    """
    if counted.shape != answers.shape:
        raise ValueError(f"need equal shapes, got {counted.shape} and {answers.shape}")
    if (counted < 0).any() or (answers < 0).any() or np.isinf(counted).any():
        raise ValueError("counts must be at least 0, and those of experts finite")
    return np.asarray(np.abs(answers - counted))
