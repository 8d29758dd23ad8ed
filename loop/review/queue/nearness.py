"""How many answers decide whether a label passes its gate."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from loop.evaluate.protocol import Protocol
from loop.stats.confusion import Confusion
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
