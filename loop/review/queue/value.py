"""What a failing case and label is worth to a reviewer, and why.

The value is ``rare + near + split + unsure / 2``, each part from 0 to 1:

rare
    The label has fewer scored positives than the protocol wants: the share that is
    missing. Its gate cannot be decided, and each of its cases teaches most.
near
    One over the number of answers that decide whether the label passes its gate (see
    `loop.review.queue.nearness`). For a case without an answer: one over the number
    of such cases above what the gates bear.
split
    How much versions, repeats or readers disagree on this very pair: the chance that
    two of them, drawn at random, differ. The larger of answers and votes counts.
unsure
    The answer is "uncertain" where the reference decides.

Every tenth place belongs to a random tenth of all failing pairs, drawn by a digest of
what the run asked, of case and label, in that order: from the first ``n`` places the
first ``n // 10`` of the draw are a simple random sample, so that rates among failing
pairs (how often the reference is wrong, say) stay estimable although the queue is not
random. A pair of the draw whose value comes first is met there. Cases without an answer
are drawn and valued like all others. Equal values stand in the order of cohort and
taxonomy.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loop.core.digests import framed
from loop.core.records import Value
from loop.evaluate.failures import Failure, FailureKind
from loop.evaluate.pairs import AlignedPairs
from loop.evaluate.protocol import Protocol
from loop.review.queue.nearness import Nearness, measure_nearness
from loop.review.queue.records import OtherAnswer, QueueItem, Reasons
from loop.stats.confusion import Confusion, count_confusions

AUDIT_EVERY = 10
"""Every so many-th place is random."""

_UNANSWERED = frozenset({FailureKind.UNPARSED, FailureKind.ENGINE_FAILED})


class LabelWorth(NamedTuple):
    """What all failing cases of one label have in common."""

    rare: float
    gate: Nearness | None
    words: tuple[str, ...]


class Worth:
    """Values failing pairs of one run."""

    def __init__(self, pairs: AlignedPairs, protocol: Protocol) -> None:
        tables = count_confusions(pairs.binary_reference, pairs.binary_predicted)
        self._labels: Mapping[str, LabelWorth] = {
            label: _label_worth(Confusion(*map(int, row)), protocol)
            for label, row in zip(pairs.labels, tables, strict=True)
        }
        self._silent = _silent_worth(pairs, protocol)

    def explain(
        self,
        failure: Failure,
        others: Sequence[OtherAnswer],
        votes: Sequence[tuple[Value, int]],
    ) -> Reasons:
        """Return the parts of the value of one failing pair, in words and numbers."""
        if failure.kind in _UNANSWERED:
            return self._silent
        label = self._labels[failure.label]
        known = [one.value for one in others if one.value is not None]
        answers = Counter([*known, failure.predicted])
        by_answer, by_vote = chance_to_differ(answers), chance_to_differ(dict(votes))
        words = list(label.words)
        if by_answer:
            words.append(f"{answers.total()} runs of the prompt disagree")
        if by_vote:
            words.append("the readers disagree")
        unsure = float(failure.kind is FailureKind.UNCERTAIN)
        if unsure:
            words.append("answered uncertain")
        return Reasons(
            rare=label.rare,
            near=1 / label.gate.answers if label.gate else 0.0,
            split=max(by_answer, by_vote),
            unsure=unsure,
            words=tuple(words),
            gate=label.gate.words if label.gate else "",
        )


def _label_worth(counts: Confusion, protocol: Protocol) -> LabelWorth:
    words = []
    missing = max(protocol.min_positives - counts.positives, 0)
    if missing:
        words.append(
            f"rare: {counts.positives} of at least {protocol.min_positives} positives"
        )
    near = measure_nearness(counts, protocol)
    if near is not None:
        words.append(f"{near.words} answer{'' if near.answers == 1 else 's'}")
    return LabelWorth(missing / protocol.min_positives, near, tuple(words))


def _silent_worth(pairs: AlignedPairs, protocol: Protocol) -> Reasons:
    """Return what a case without an answer is worth: they can block every gate."""
    cases = len(pairs.case_ids)
    answered = int((pairs.predicted >= -1).any(axis=1).sum())
    silent, borne = cases - answered, int(protocol.max_unanswered * cases)
    words = f"{silent} cases have no readable answer; the gates bear {borne}"
    over = silent - borne
    return Reasons(near=1 / over, words=(words,)) if over > 0 else Reasons()


def chance_to_differ(counts: Mapping[Value | None, int]) -> float:
    """Return the chance that two of the answers, drawn at random, differ.

    0 for fewer than two answers.

    References
    ----------
    One minus Simpson's index for a finite sample: Simpson EH. Nature 1949;163:688.

    Examples
    --------
    >>> chance_to_differ({Value.PRESENT: 2, Value.ABSENT: 2})
    0.6666666666666667
    """
    total = sum(counts.values())
    if total < 2:
        return 0.0
    same = sum(count * (count - 1) for count in counts.values())
    return 1 - same / (total * (total - 1))


class Placed(NamedTuple):
    """Where one failing pair stands in the queue."""

    at: int
    """Index in what was put in order."""

    audit: bool


def arrange(
    seed: str,
    failures: Sequence[Failure | QueueItem],
    values: Sequence[float],
) -> list[Placed]:
    """Return the order of the queue, first place first.

    Parameters
    ----------
    seed
        Decides the draw, with case and label: the digest of what the run asked.
    failures
        In the order of cohort and taxonomy, which decides between equal values.
    values
        What each is worth.
    """
    count = len(failures)
    by_value = deque(sorted(range(count), key=lambda index: -values[index]))
    size = -(-count // AUDIT_EVERY)
    keys = [_draw(seed, failure) for failure in failures]
    drawn = deque(sorted(range(count), key=keys.__getitem__)[:size])
    audit, placed = frozenset(drawn), set[int]()
    order: list[Placed] = []
    for place in range(1, count + 1):
        line = drawn if place % AUDIT_EVERY == 0 else by_value
        index = _next(line, placed)
        index = _next(by_value, placed) if index is None else index
        if index is not None:
            placed.add(index)
            order.append(Placed(index, index in audit))
    return order


def _next(line: deque[int], placed: set[int]) -> int | None:
    """Take the first of `line` that has no place yet."""
    while line:
        index = line.popleft()
        if index not in placed:
            return index
    return None


def _draw(seed: str, failure: Failure | QueueItem) -> bytes:
    parts = framed((seed, failure.case_id, failure.label))
    return hashlib.sha256(parts).digest()
