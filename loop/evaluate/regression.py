"""Whether a version got worse, decided by a margin that was fixed before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from loop.evaluate.gates import GateVerdict
from loop.stats.intervals import Interval
from loop.stats.paired import tango_interval


class ShareDifference(NamedTuple):
    """After minus before of a share, over the same cases."""

    lost: int
    """Right before, wrong after."""

    gained: int
    """Wrong before, right after."""

    n: int

    @property
    def value(self) -> float | None:
        """(gained - lost) / n; None without cases."""
        return (self.gained - self.lost) / self.n if self.n else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """Whether a share got worse by less than its margin."""

    difference: ShareDifference
    interval: Interval | None
    """Tango score interval at the protocol's confidence."""

    bound: float | None
    """One-sided lower limit of the difference at the same confidence."""

    margin: float
    verdict: GateVerdict
    """PASS: not worse by the margin. FAIL: worse by more than it."""

    reachable: bool = True
    """Whether so many cases could pass at all if nothing had changed."""

    @property
    def tolerable(self) -> GateVerdict:
        """`verdict`; over too few cases to pass, PASS if no more was lost than gained.

        For the share that stands beside another: 30 positives can never show that
        sensitivity fell by less than 0.05, but a loss among them must not be passed.
        """
        if self.reachable or self.verdict is GateVerdict.FAIL:
            return self.verdict
        lost, gained, _ = self.difference
        return GateVerdict.PASS if lost <= gained else GateVerdict.INSUFFICIENT


def judge_regression(
    difference: ShareDifference, margin: float, confidence: float = 0.95
) -> Regression:
    """Return whether a share got worse by less than `margin`.

    The one-sided lower limit of the difference must lie above ``-margin``. That limit
    is the lower end of the two-sided interval at twice the error. A test that finds
    no difference would not show that nothing got worse.

    References
    ----------
    Tango T. Stat Med 1998;17:891-908.
    """
    if not difference.n:
        return Regression(
            difference=difference,
            interval=None,
            bound=None,
            margin=margin,
            verdict=GateVerdict.INSUFFICIENT,
            reachable=False,
        )
    lost, gained, n = difference
    level = 2 * confidence - 1
    one_sided = tango_interval(lost, gained, n, confidence=level)
    verdict = GateVerdict.INSUFFICIENT
    if one_sided.low > -margin:
        verdict = GateVerdict.PASS
    elif one_sided.high < -margin:
        verdict = GateVerdict.FAIL
    return Regression(
        difference=difference,
        interval=tango_interval(lost, gained, n, confidence=confidence),
        bound=one_sided.low,
        margin=margin,
        verdict=verdict,
        reachable=tango_interval(0, 0, n, confidence=level).low > -margin,
    )
