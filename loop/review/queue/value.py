"""What a failing case and label is worth to a reviewer, and why.

Where a version was asked several times, what fails in every draw comes first: an error
that is there, not one that chance made. A pair that flips asks another question: does
the guide leave it open? Within that, and where there is one draw, the value decides.

The value is ``rare + near + split + unsure / 2``, each part from 0 to 1:

rare
    The label has fewer scored positives than the protocol wants: the share that is
    missing. Its gate cannot be decided, and each of its cases teaches most.
near
    One over the number of answers that decide whether the label passes its gate (see
    `measure_nearness`). For a case without an answer: one over the number
    of such cases above what the gates allow.
split
    How much versions or readers disagree on this very pair: the chance that two of
    them, drawn at random, differ. The larger of answers and votes counts. The draws of
    one version are no versions.
unsure
    The answer is "uncertain" where the reference decides.

Every tenth place belongs to a random tenth of all failing pairs, drawn by a digest of
what the run asked, of case and label, in that order: from the first ``n`` places the
first ``n // 10`` of the draw are a simple random sample, so that rates among failing
pairs (how often the reference is wrong, say) stay estimable although the queue is not
random. A pair of the draw whose value comes first is met there. Cases without an answer
are drawn and valued like all others. Equal values stand in the order of cohort and
taxonomy.

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
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from loop.core.digests import framed
from loop.core.nouns import counted
from loop.core.records import Mark, Outcome, Value, ValueCode
from loop.evaluate.align import AlignedPairs
from loop.evaluate.failures import Failure, FailureKind
from loop.evaluate.protocol import Protocol
from loop.labels.reference import MARKS
from loop.labels.taxonomy import NO_FINDING
from loop.review.queue.records import OtherAnswer, QueueItem, Reasons, RightAnswer
from loop.stats.confusion import Confusion, count_confusions
from loop.stats.intervals import lower_limit

Turned = Callable[[Confusion, int, bool], Confusion]


class Nearness(NamedTuple):
    """The distance of a label from its gate, counted in answers."""

    answers: int
    """Answers that would have to be right, or wrong, instead; at least 1."""

    passing: bool
    """Whether the label reaches its thresholds now."""

    @property
    def words(self) -> str:
        """On which side of its gate the label stands, and by how many answers.

        Examples
        --------
        >>> Nearness(3, passing=True).words, Nearness(1, passing=False).words
        ('passes by 3', 'fails by 1')
        """
        return f"{'passes' if self.passing else 'fails'} by {self.answers}"


def measure_nearness(counts: Confusion, protocol: Protocol) -> Nearness | None:
    """Return the fewest answers that turn accuracy, kappa or sensitivity around.

    Each threshold is looked at alone and the largest (to pass) or smallest (to fail)
    count taken, so it is a lower bound where they want different answers. Limits by
    resampling are left out: they cannot be counted in answers.

    Parameters
    ----------
    counts
        One label over its scored cases.

    Returns
    -------
    Nearness or None
        None without scored cases, or when no change of answers would do: the limits
        ask for more cases.

    Examples
    --------
    >>> measure_nearness(Confusion(tp=20, fp=0, fn=8, tn=72), Protocol())
    Nearness(answers=3, passing=False)
    """
    if not counts.n:
        return None
    tests = _tests(protocol)
    if all(test(counts) for test in tests):
        to_fail = [_fewest(counts, test, passing=True) for test in tests]
        known = [count for count in to_fail if count is not None]
        return Nearness(min(known), True) if known else None
    to_pass = [_fewest(counts, t, passing=False) for t in tests if not t(counts)]
    known = [count for count in to_pass if count is not None]
    return Nearness(max(known), False) if len(known) == len(to_pass) else None


def _tests(protocol: Protocol) -> list[Callable[[Confusion], bool]]:
    """Return what every label must hold."""

    def accurate(counts: Confusion) -> bool:
        if protocol.rule == "point":
            return counts.correct / counts.n >= protocol.accuracy
        low = lower_limit(counts.correct, counts.n, confidence=protocol.confidence)
        return low >= protocol.accuracy

    def agreeing(counts: Confusion) -> bool:
        kappa = _kappa(counts)
        return kappa is not None and kappa >= protocol.kappa

    def sensitive(counts: Confusion) -> bool:
        level = protocol.confidence
        low = lower_limit(counts.tp, counts.positives, confidence=level)
        return low >= protocol.sensitivity_floor

    return [accurate, agreeing, *([sensitive] if protocol.rule == "lower" else [])]


def _kappa(counts: Confusion) -> float | None:
    """Cohen's kappa without an interval; None when both sides always say the same.

    References
    ----------
    Cohen J. Educ Psychol Meas 1960;20:37-46.
    """
    n, said = counts.n, counts.tp + counts.fp
    chance = (counts.positives * said + counts.negatives * (n - said)) / n**2
    return None if chance == 1 else (counts.correct / n - chance) / (1 - chance)


def _fewest(
    counts: Confusion, test: Callable[[Confusion], bool], *, passing: bool
) -> int | None:
    """Return the fewest answers that change what `test` says; None if none do.

    Turning answers on positives first, or on negatives first, are the extremes: the
    chance agreement of kappa is linear in the number of answers "present".
    """
    turn, most = (
        (_worsened, counts.correct)
        if passing
        else (_corrected, counts.n - counts.correct)
    )
    found = []
    for first in (True, False):
        if test(turn(counts, most, first)) == passing:
            continue
        low, high = 0, most
        while high - low > 1:
            middle = (low + high) // 2
            if test(turn(counts, middle, first)) == passing:
                low = middle
            else:
                high = middle
        found.append(high)
    return min(found, default=None)


def _corrected(counts: Confusion, answers: int, positives_first: bool) -> Confusion:
    """Return the table with so many wrong answers put right."""
    tp, fp, fn, tn = counts
    some = min(answers, fn) if positives_first else max(answers - fp, 0)
    return Confusion(tp + some, fp - (answers - some), fn - some, tn + answers - some)


def _worsened(counts: Confusion, answers: int, positives_first: bool) -> Confusion:
    """Return the table with so many right answers turned wrong."""
    tp, fp, fn, tn = counts
    some = min(answers, tp) if positives_first else max(answers - tn, 0)
    return Confusion(tp - some, fp + answers - some, fn + some, tn - (answers - some))


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


AUDIT_EVERY = 10
"""Every so many-th place is random."""

_RIGHT = {
    Mark.PRESENT: Value.PRESENT,
    Mark.ABSENT: Value.ABSENT,
    Mark.NOT_CODED: Value.ABSENT,
}

_UNANSWERED = frozenset({FailureKind.UNPARSED, FailureKind.ENGINE_FAILED})


class LabelWorth(NamedTuple):
    """What all failing cases of one label have in common."""

    rare: float
    gate: Nearness | None
    words: tuple[str, ...]


_UNJUDGED = LabelWorth(0.0, None, ("the reference cannot judge the label",))
"""Of a label without a gate that answers could decide."""


class Worth:
    """Values failing pairs of one run.

    Those of a label in `not_comparable` decide no gate, and say so.
    """

    def __init__(
        self,
        pairs: AlignedPairs,
        protocol: Protocol,
        not_comparable: Collection[str] = (),
    ) -> None:
        tables = count_confusions(
            pairs.binary_reference, pairs.answers_as(protocol.policy)
        )
        self._labels: Mapping[str, LabelWorth] = {
            label: _UNJUDGED
            if label in not_comparable
            else _label_worth(Confusion(*map(int, row)), protocol)
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
        repeats = [one.value for one in others if one.draw and one.value is not None]
        known = [one.value for one in others if not one.draw and one.value is not None]
        answers = Counter([*known, failure.predicted])
        by_answer, by_vote = chance_to_differ(answers), chance_to_differ(dict(votes))
        right = _RIGHT.get(failure.reference) if failure.reference else None
        fails = 1 + sum(one != right for one in repeats)
        draws = 1 + len(repeats)
        words = list(label.words)
        if fails < draws:
            words.append(f"fails in {fails} of {draws} draws: is the guide ambiguous?")
        elif repeats:
            words.append(f"fails in all {draws} draws")
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
            fails=fails,
            draws=draws,
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
    answered = int((pairs.predicted >= ValueCode.UNCERTAIN).any(axis=1).sum())
    # As the gates compare: 29 of 100 are a share of 0.29, whose product is below 29.
    silent, borne = cases - answered, int(protocol.max_unanswered * cases + 1e-9)
    many = counted(silent, "case has no", "cases have no")
    words = f"{many} readable answer; the gates allow {borne}"
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
    values: Sequence[float] | Sequence[tuple[float, float]],
) -> list[Placed]:
    """Return the order of the queue, first place first.

    Parameters
    ----------
    seed
        Decides the draw, with case and label: the digest of what the run asked.
    failures
        In the order of cohort and taxonomy, which decides between equal values.
    values
        What each is worth, the most first; see `Reasons.rank`.
    """
    count = len(failures)
    by_value = deque(sorted(range(count), key=values.__getitem__, reverse=True))
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
