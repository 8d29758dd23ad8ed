"""Graded codes as counts: conventions applied, columns to resample, pairs left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.records import ValueCode
from loop.score.records import Codes, Coverage, Graded, Uncertain
from loop.stats.confusion import EXCLUDED

GRADED_CODES = (
    ValueCode.PRESENT,
    ValueCode.ABSENT,
    ValueCode.UNCERTAIN,
    ValueCode.UNANSWERED,
    ValueCode.MISSING,
)


class LeftOut(NamedTuple):
    """Pairs that do not count, by reason, each of shape ``(..., n_labels)``."""

    uncertain: NDArray[np.int64]
    """Both sides have a value, and the policy leaves uncertain ones out."""

    unanswered: NDArray[np.int64]
    """A side has no value at all, whatever the other says."""


def apply(codes: Codes, uncertain: Uncertain) -> NDArray[np.int8]:
    """Return the codes with the policy for uncertain values applied.

    Parameters
    ----------
    codes
        The five codes of `loop.score.records`, any shape.
    uncertain
        What an uncertain value counts as.

    Returns
    -------
    NDArray[np.int8]
        Codes 1 present, 0 absent, -1 excluded, same shape. What is unanswered or
        missing is excluded under every policy: never absent.

    Raises
    ------
    ValueError
        Another code occurs.

    Examples
    --------
    >>> codes = np.array([[1, 0, -1, -7, -3]], dtype=np.int8)
    >>> apply(codes, Uncertain.EXCLUDED).tolist()
    [[1, 0, -1, -1, -1]]
    >>> apply(codes, Uncertain.PRESENT).tolist()
    [[1, 0, 1, -1, -1]]
    """
    strange = codes[~np.isin(codes, GRADED_CODES)]
    if strange.size:
        raise ValueError(
            f"codes must be among {sorted(map(int, GRADED_CODES))}, got {strange[0]}"
        )
    counted = {
        Uncertain.EXCLUDED: EXCLUDED,
        Uncertain.PRESENT: ValueCode.PRESENT,
        Uncertain.ABSENT: ValueCode.ABSENT,
    }[Uncertain(uncertain)]
    binary = np.where(codes < ValueCode.ABSENT, np.int8(EXCLUDED), codes)
    binary[codes == ValueCode.UNCERTAIN] = counted
    return np.asarray(binary, dtype=np.int8)


def paired_rows(graded: Graded, coverage: Sequence[Coverage] = ()) -> NDArray[np.bool_]:
    """Return which cases have a candidate of which system.

    Parameters
    ----------
    graded
        Codes of both sides.
    coverage
        What joining found, one entry per system; without it a row that holds nothing
        but `MISSING` has no candidate.

    Returns
    -------
    NDArray[np.bool_]
        Shape ``(n_systems, n_cases)``.

    Raises
    ------
    ValueError
        `coverage` is not of these systems, in this order.
    """
    if not coverage:
        return np.asarray((graded.candidates != ValueCode.MISSING).any(axis=-1))
    named = tuple(entry.system for entry in coverage)
    if named != graded.systems:
        raise ValueError(f"coverage is of {named}, the codes of {graded.systems}")
    rows = np.ones(graded.candidates.shape[:2], dtype=np.bool_)
    place = {case: row for row, case in enumerate(graded.case_ids)}
    for system, entry in enumerate(coverage):
        gone = [place[case] for case in entry.missing if case in place]
        rows[system, gone] = False
    return rows


def count_left_out(
    reference: Codes, candidates: Codes, uncertain: Uncertain, paired: NDArray[np.bool_]
) -> LeftOut:
    """Return how many pairs of each label do not count, by reason.

    Parameters
    ----------
    reference
        Shape ``(n_cases, n_labels)``, before the policy.
    candidates
        Shape ``(n_systems, n_cases, n_labels)``, before the policy.
    uncertain
        The policy.
    paired
        As `paired_rows` returns it; cases without a candidate are counted nowhere.

    Returns
    -------
    LeftOut
        Shapes ``(n_systems, n_labels)``. Together with the confusion counts they sum
        to the number of paired cases.
    """
    valueless = (reference < ValueCode.UNCERTAIN) | (candidates < ValueCode.UNCERTAIN)
    vague = (
        (reference == ValueCode.UNCERTAIN) | (candidates == ValueCode.UNCERTAIN)
    ) & ~valueless
    if uncertain is not Uncertain.EXCLUDED:
        vague &= False
    pair = paired[..., None]
    return LeftOut(
        (vague & pair).sum(axis=1, dtype=np.int64),
        (valueless & pair).sum(axis=1, dtype=np.int64),
    )
