"""What a comparison of two runs says: the records that documents and tables read."""

from __future__ import annotations

from dataclasses import dataclass

from loop.evaluate.gates import Verdict, judge_all
from loop.evaluate.protocol import Protocol
from loop.evaluate.regression import Regression
from loop.evaluate.results import CohortFacts, Method, RunFacts
from loop.stats.bootstrap import Bootstrap


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelChange:
    """What changed for one label.

    Fixed and broken count cases decided by the reference and by both runs. Answers
    that turned uncertain or back are listed apart: they are changes of coverage.
    """

    label: str
    name: str
    fixed: tuple[str, ...]
    """Ids of cases wrong before and right after."""

    broken: tuple[str, ...]
    """Ids of cases right before and wrong after."""

    became_uncertain: tuple[str, ...]
    became_decided: tuple[str, ...]
    decided_right: int
    """How many of `became_decided` agree with the reference."""

    became_unanswered: tuple[str, ...]
    """Ids of cases with an answer before and none after."""

    f1_before: float | None
    f1_after: float | None
    p: float
    """Exact McNemar."""

    p_holm: float
    """Corrected over all labels with cases in common."""

    testable: bool
    """Whether so few discordant cases could reach the protocol's alpha at all."""

    accuracy: Regression
    sensitivity: Regression


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Run `after` against run `before` on the cases they share."""

    before: RunFacts
    after: RunFacts
    cohort: CohortFacts
    protocol: Protocol
    cases: int
    """Cases in both runs."""

    only_before: int
    only_after: int
    labels: tuple[LabelChange, ...]
    macro_before: float | None
    macro_after: float | None
    macro: Bootstrap
    """Paired bootstrap of macro-F1, after minus before."""

    method: Method

    @property
    def verdict(self) -> Verdict:
        """Whether no label's accuracy got worse by the margin.

        Labels without cases in common are left out.
        """
        return judge_all(
            change.accuracy.verdict
            for change in self.labels
            if change.accuracy.difference.n
        )

    @property
    def less_sensitive(self) -> tuple[LabelChange, ...]:
        """Labels that lost more sensitivity than its margin, as observed."""
        return tuple(
            change
            for change in self.labels
            if (change.sensitivity.difference.value or 0.0) < -change.sensitivity.margin
        )
