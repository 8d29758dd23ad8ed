"""Which label is missed while which other one is invented in the same case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.score.counting import apply, paired_rows
from loop.score.records import Conventions, Coverage, Graded
from loop.stats.confusion import ABSENT, PRESENT


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
    reference = apply(graded.reference, conventions.uncertain)
    candidates = apply(graded.candidates, conventions.uncertain)
    paired = paired_rows(graded, coverage)[..., None]
    missed = paired & (reference == PRESENT) & (candidates == ABSENT)
    invented = paired & (reference == ABSENT) & (candidates == PRESENT)
    return tuple(
        confused
        for number, system in enumerate(graded.systems)
        for confused in _most_common(
            graded, system, missed[number], invented[number], (most, examples)
        )
    )


def _most_common(
    graded: Graded,
    system: str,
    missed: NDArray[np.bool_],
    invented: NDArray[np.bool_],
    limits: tuple[int, int],
) -> Iterator[Confused]:
    most, examples = limits
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
