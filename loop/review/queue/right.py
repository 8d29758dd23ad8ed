"""Right answers to look at: a random sample of the pairs that agree with the reference.

Among failing pairs alone nobody finds an error that the reference shares with the
model, and nobody learns how often a reviewer objects to what is right. So the queue of
the workbench holds one right answer for every `RIGHT_EVERY` failing pairs, at least
one. They are a simple random sample, without replacement, of all pairs of the run that
are right: answered present or absent as the reference decides, "No Finding" left out,
which follows from the others. The draw is by a digest of what the run asked, of case
and of label: the same for everybody, and for a run that asks the same again. They stand
at evenly spread places and are never counted as failing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from loop.core.digests import framed
from loop.core.records import Outcome, Value
from loop.evaluate.pairs import AlignedPairs
from loop.labels.reference import MARKS
from loop.labels.taxonomy import NO_FINDING
from loop.review.queue.records import RightAnswer

RIGHT_EVERY = 20
"""Failing pairs for each right answer in the queue of the workbench."""

Listed = TypeVar("Listed")


class RightDraw(NamedTuple):
    """The right answers that were drawn."""

    answers: tuple[RightAnswer, ...]
    """In the order of the draw."""

    total: int
    """How many right answers they were drawn from."""


def draw_right(
    seed: str,
    pairs: AlignedPairs,
    outcomes: Sequence[Outcome],
    *,
    failing: int,
    every: int = RIGHT_EVERY,
) -> RightDraw:
    """Return one right answer for every so many failing pairs, drawn at random.

    At least one where anything fails, and never more than there are.

    Parameters
    ----------
    seed
        Decides the draw, with case and label: the digest of what the run asked.
    pairs
        Answers and reference of the run.
    outcomes
        Of the run, for the evidence of what is drawn.
    failing
        Number of failing pairs.
    every
        Failing pairs for each right answer; at least 1.
    """
    right = pairs.usable & (pairs.predicted == pairs.binary_reference)
    if NO_FINDING in pairs.labels:
        right[:, pairs.labels.index(NO_FINDING)] = False
    cells = [(int(row), int(column)) for row, column in np.argwhere(right)]
    size = max(failing // every, 1) if failing else 0

    def key(cell: tuple[int, int]) -> bytes:
        case_id, label = pairs.case_ids[cell[0]], pairs.labels[cell[1]]
        return hashlib.sha256(framed(("right", seed, case_id, label))).digest()

    drawn = sorted(cells, key=key)[:size] if size else []
    by_case = {outcome.item_id: outcome for outcome in outcomes}
    answers = []
    for row, column in drawn:
        case_id, label = pairs.case_ids[row], pairs.labels[column]
        answer = by_case[case_id].fields[label]
        answers.append(
            RightAnswer(
                case_id=case_id,
                label=label,
                predicted=Value(str(answer.value)),
                reference=MARKS[int(pairs.reference[row, column])],
                spans=answer.spans,
            )
        )
    return RightDraw(tuple(answers), len(cells))


def spread(failing: Sequence[Listed], right: Sequence[Listed]) -> list[Listed]:
    """Return both in one list, `right` at evenly spread places among `failing`.

    Examples
    --------
    >>> "".join(spread("........", "ab"))
    '..a....b..'
    """
    parts = 2 * len(right)
    before = [at * len(failing) // parts for at in range(1, parts, 2)]
    out: list[Listed] = []
    start = 0
    for end, one in zip(before, right, strict=True):
        out += [*failing[start:end], one]
        start = end
    return [*out, *failing[start:]]
