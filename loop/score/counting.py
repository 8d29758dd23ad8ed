"""Graded codes as counts: what is left out, each case, labels taken for another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.records import ValueCode
from loop.score.records import (
    CaseScore,
    Codes,
    Conventions,
    Coverage,
    Graded,
    Uncertain,
)
from loop.stats.confusion import ABSENT, EXCLUDED, PRESENT

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


class PairCodes(NamedTuple):
    """Both sides after the policy for uncertain values: 1, 0, or -1 for excluded."""

    reference: NDArray[np.int8]
    candidates: NDArray[np.int8]


def apply_to_pairs(
    reference: Codes, candidates: Codes, uncertain: Uncertain
) -> PairCodes:
    """Return both sides with the policy for uncertain values applied.

    Parameters
    ----------
    reference
        The five codes of `loop.score.records`, shape ``(n_cases, n_labels)``.
    candidates
        The same, shape ``(..., n_cases, n_labels)``.
    uncertain
        What an uncertain value counts as.

    Raises
    ------
    ValueError
        Another code occurs.

    Examples
    --------
    >>> truth = np.array([1, 0, -1, 1, 0], dtype=np.int8)
    >>> told = np.array([-1, -1, 1, 1, -7], dtype=np.int8)
    >>> apply_to_pairs(truth, told, Uncertain.WRONG).candidates.tolist()
    [0, 1, 1, 1, -1]
    >>> apply_to_pairs(truth, told, Uncertain.WRONG).reference.tolist()
    [1, 0, -1, 1, 0]
    """
    if uncertain is not Uncertain.WRONG:
        return PairCodes(apply(reference, uncertain), apply(candidates, uncertain))
    truth = apply(reference, Uncertain.EXCLUDED)
    told = apply(candidates, Uncertain.EXCLUDED)
    denied = np.where(truth == PRESENT, np.int8(ABSENT), np.int8(PRESENT))
    hedged = (candidates == ValueCode.UNCERTAIN) & (truth != EXCLUDED)
    return PairCodes(truth, np.where(hedged, denied, told).astype(np.int8))


def apply(codes: Codes, uncertain: Uncertain) -> NDArray[np.int8]:
    """Return the codes of one side with the policy for uncertain values applied.

    Parameters
    ----------
    codes
        The five codes of `loop.score.records`, any shape.
    uncertain
        What an uncertain value counts as; `Uncertain.WRONG` takes both sides, see
        `apply_to_pairs`.

    Returns
    -------
    NDArray[np.int8]
        Codes 1 present, 0 absent, -1 excluded, same shape. What is unanswered or
        missing is excluded under every policy: never absent.

    Raises
    ------
    ValueError
        Another code occurs, or the policy takes both sides.

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
    if uncertain is Uncertain.WRONG:
        raise ValueError("an uncertain value is wrong only beside its reference")
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
    vague = np.zeros_like(valueless)
    if uncertain in (Uncertain.EXCLUDED, Uncertain.WRONG):
        vague |= reference == ValueCode.UNCERTAIN
    if uncertain is Uncertain.EXCLUDED:
        vague |= candidates == ValueCode.UNCERTAIN
    vague &= ~valueless
    pair = paired[..., None]
    return LeftOut(
        (vague & pair).sum(axis=1, dtype=np.int64),
        (valueless & pair).sum(axis=1, dtype=np.int64),
    )


def case_f1(
    reference: NDArray[np.int8], candidates: NDArray[np.int8]
) -> NDArray[np.float64]:
    """Return the F1 over the labels of each case.

    Parameters
    ----------
    reference
        Codes 1, 0, -1, shape ``(n_cases, n_labels)``.
    candidates
        Shape ``(..., n_cases, n_labels)``.

    Returns
    -------
    NDArray[np.float64]
        Shape ``(..., n_cases)``, in [0, 1]; 1 where labels are decided and nothing
        is positive on either side, NaN where no label is decided.

    References
    ----------
    Dice LR. Ecology 1945;26:297-302.

    Examples
    --------
    >>> truth = np.array([[1, 1, 0], [0, 0, 0], [-1, -1, -1]], dtype=np.int8)
    >>> told = np.array([[1, 0, 1], [0, 0, 0], [1, 0, 0]], dtype=np.int8)
    >>> case_f1(truth, told).tolist()
    [0.5, 1.0, nan]
    """
    truth, answer, decided = _sides(reference, candidates)
    found = 2 * (truth & answer).sum(axis=-1)
    weight = truth.sum(axis=-1) + answer.sum(axis=-1)
    scores = np.divide(found, weight, out=np.ones(weight.shape), where=weight > 0)
    return np.where(decided.any(axis=-1), scores, np.nan)


def case_errors(
    reference: NDArray[np.int8], candidates: NDArray[np.int8]
) -> NDArray[np.float64]:
    """Return how many labels each candidate misses or invents.

    Parameters
    ----------
    reference, candidates
        As for `case_f1`.

    Returns
    -------
    NDArray[np.float64]
        Shape ``(..., n_cases)``, whole numbers, lower is better; NaN where no label
        is decided.

    Examples
    --------
    >>> truth = np.array([[1, 1, 0], [-1, -1, -1]], dtype=np.int8)
    >>> told = np.array([[1, 0, 1], [1, 0, 0]], dtype=np.int8)
    >>> case_errors(truth, told).tolist()
    [2.0, nan]
    """
    truth, answer, decided = _sides(reference, candidates)
    wrong = (truth != answer).sum(axis=-1).astype(np.float64)
    return np.where(decided.any(axis=-1), wrong, np.nan)


def score_cases(
    graded: Graded, conventions: Conventions, *, coverage: Sequence[Coverage] = ()
) -> tuple[CaseScore, ...]:
    """Return every pair's score, systems in the order given, cases by id.

    Parameters
    ----------
    graded
        Codes of both sides.
    conventions
        Only the policy for uncertain values matters here.
    coverage
        As for `loop.score.counting.paired_rows`; a case without a candidate of a
        system is not among that system's scores.

    Raises
    ------
    ValueError
        `coverage` is not of these systems.
    """
    reference, candidates = apply_to_pairs(
        graded.reference, graded.candidates, conventions.uncertain
    )
    paired = paired_rows(graded, coverage)
    return tuple(
        score
        for number, system in enumerate(graded.systems)
        for score in _score_system(
            graded,
            system,
            reference,
            candidates[number],
            np.flatnonzero(paired[number]),
        )
    )


def _score_system(
    graded: Graded,
    system: str,
    reference: Codes,
    candidate: Codes,
    rows: NDArray[np.intp],
) -> list[CaseScore]:
    scores = case_f1(reference, candidate).tolist()
    decided = ((reference != EXCLUDED) & (candidate != EXCLUDED)).sum(axis=-1).tolist()
    missed = _names(graded.labels, (reference == PRESENT) & (candidate == ABSENT))
    invented = _names(graded.labels, (reference == ABSENT) & (candidate == PRESENT))
    return [
        CaseScore(
            system=system,
            case_id=graded.case_ids[row],
            f1=scores[row] if decided[row] else None,
            errors=len(missed[row]) + len(invented[row]),
            missed=missed[row],
            invented=invented[row],
            decided=decided[row],
        )
        for row in rows.tolist()
    ]


def _names(labels: tuple[str, ...], chosen: NDArray[np.bool_]) -> list[tuple[str, ...]]:
    """Return the chosen labels of every case."""
    rows, places = np.nonzero(chosen)
    ends = np.searchsorted(rows, np.arange(len(chosen) + 1)).tolist()
    names = [labels[place] for place in places.tolist()]
    return [tuple(names[start:end]) for start, end in pairwise(ends)]


def _sides(
    reference: NDArray[np.int8], candidates: NDArray[np.int8]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return reference and candidate as present or not where decided, and where."""
    decided = (reference != EXCLUDED) & (candidates != EXCLUDED)
    return (
        decided & (reference == PRESENT),
        decided & (candidates == PRESENT),
        decided,
    )


class Confused(NamedTuple):
    """One label taken for another by one system."""

    system: str
    missed: str
    """Label id that only the reference has."""

    invented: str
    """Label id that only the candidate has."""

    n: int
    """Cases in which both happen; at least 1."""

    of_missed: int
    """Cases in which `missed` is missed, whatever is invented."""

    of_invented: int
    """Cases in which `invented` is invented, whatever is missed."""

    case_ids: tuple[str, ...]
    """The first few of these cases, by id."""


def confusions(
    graded: Graded,
    conventions: Conventions,
    *,
    coverage: Sequence[Coverage] = (),
    most: int = 10,
    examples: int = 5,
) -> tuple[Confused, ...]:
    """Return the most common confusions of every system.

    A case that misses two labels and invents two counts for four confusions: which
    was taken for which is not known.

    Parameters
    ----------
    graded
        Codes of both sides.
    conventions
        Only the policy for uncertain values matters here.
    coverage
        As for `loop.score.counting.paired_rows`.
    most
        Confusions per system at most.
    examples
        Case ids per confusion at most.

    Returns
    -------
    tuple[Confused, ...]
        Systems in the order given; the most frequent first, equal ones in the order
        of the labels. Empty where nothing is confused.

    Raises
    ------
    ValueError
        `coverage` is not of these systems.
    """
    reference, candidates = apply_to_pairs(
        graded.reference, graded.candidates, conventions.uncertain
    )
    paired = paired_rows(graded, coverage)[..., None]
    missed = paired & (reference == PRESENT) & (candidates == ABSENT)
    invented = paired & (reference == ABSENT) & (candidates == PRESENT)
    return tuple(
        confused
        for number, system in enumerate(graded.systems)
        for confused in _most_common(
            graded,
            system,
            missed[number],
            invented[number],
            most=most,
            examples=examples,
        )
    )


def _most_common(
    graded: Graded,
    system: str,
    missed: NDArray[np.bool_],
    invented: NDArray[np.bool_],
    *,
    most: int,
    examples: int,
) -> Iterator[Confused]:
    together = missed.T.astype(np.int64) @ invented.astype(np.int64)
    order = np.argsort(-together, axis=None, kind="stable")[:most]
    for lost, made in zip(*np.unravel_index(order, together.shape), strict=True):
        if not together[lost, made]:
            return
        rows = np.flatnonzero(missed[:, lost] & invented[:, made])[:examples]
        yield Confused(
            system=system,
            missed=graded.labels[lost],
            invented=graded.labels[made],
            n=int(together[lost, made]),
            of_missed=int(missed[:, lost].sum()),
            of_invented=int(invented[:, made].sum()),
            case_ids=tuple(graded.case_ids[row] for row in rows),
        )
