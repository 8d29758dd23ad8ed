"""What a comparison of two runs says: the records that documents and tables read."""

from __future__ import annotations

from dataclasses import dataclass

from loop.evaluate.gates import GateVerdict, judge_all
from loop.evaluate.protocol import Protocol
from loop.evaluate.regression import Regression
from loop.evaluate.results import CohortFacts, Method, RunFacts
from loop.stats.bootstrap import Bootstrap


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelChange:
    """What changed for one label.

    Fixed and broken count cases decided by the reference and by both runs. Answers
    that turned uncertain or back are listed apart: they are changes of coverage. Only
    `accuracy` and `sensitivity` take a right answer that is no longer given as lost.
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
    """Over the cases that the reference and the run before decide."""

    sensitivity: Regression
    """The same over the positives among them."""

    judged: bool = True
    """False when the reference leaves the label open, or neither run asks for it."""

    @property
    def verdict(self) -> GateVerdict:
        """Whether neither accuracy nor sensitivity got worse by its margin."""
        return judge_all((self.accuracy.verdict, self.sensitivity.tolerable))


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
    unanswered_before: float = 0.0
    """Largest share, over the labels, of unparsed and failed answers."""

    unanswered_after: float = 0.0

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the two runs cannot be compared, whatever the labels say."""
        shares = (("before", self.unanswered_before), ("after", self.unanswered_after))
        return tuple(
            f"the run {which} left {100 * share:.1f} % of a label's answers unparsed "
            f"or failed (at most {100 * self.protocol.max_unanswered:g} % allowed)"
            for which, share in shares
            if share > self.protocol.max_unanswered
        )

    @property
    def verdict(self) -> GateVerdict:
        """Whether no label's accuracy or sensitivity got worse by its margin.

        A label is left out only if the reference leaves it open or neither run asks
        for it. ``INSUFFICIENT`` when too many answers are missing on either side.
        """
        if self.reasons:
            return GateVerdict.INSUFFICIENT
        return judge_all(change.verdict for change in self.labels if change.judged)

    @property
    def less_sensitive(self) -> tuple[LabelChange, ...]:
        """Labels that lost more sensitivity than its margin, as observed."""
        return tuple(
            change
            for change in self.labels
            if (change.sensitivity.difference.value or 0.0) < -change.sensitivity.margin
        )
