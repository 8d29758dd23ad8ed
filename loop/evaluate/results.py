"""What an evaluation says: the records that documents, tables and gates read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from loop.core.records import Status
from loop.evaluate.flips import Flips, Stability
from loop.evaluate.gates import Gate, GateVerdict, judge_all
from loop.evaluate.protocol import Protocol
from loop.stats.bootstrap import Bootstrap
from loop.stats.confusion import Confusion
from loop.stats.intervals import Estimate, Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusions:
    """Why cases of one label were not scored; each case is counted once.

    The reference decides first: a case it leaves open is counted there, whatever the
    answer was.
    """

    uncertain_reference: int = 0
    no_majority: int = 0
    missing: int = 0
    """No reference label at all."""

    uncertain_predicted: int = 0
    unparsed: int = 0
    failed: int = 0
    not_asked: int = 0
    """The prompt version does not ask for the label."""

    @property
    def by_reference(self) -> int:
        """Cases the reference does not decide."""
        return self.uncertain_reference + self.no_majority + self.missing

    @property
    def by_answer(self) -> int:
        """Cases the reference decides and the run does not."""
        unanswered = self.unparsed + self.failed + self.not_asked
        return self.uncertain_predicted + unanswered

    @property
    def total(self) -> int:
        """All cases that were not scored."""
        return self.by_reference + self.by_answer


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelResult:
    """One label of one evaluation."""

    label: str
    name: str
    """Name as published."""

    confusion: Confusion
    """Counts over the scored cases."""

    accuracy: Interval
    """Clopper-Pearson interval of the accuracy; (0, 1) without scored cases."""

    kappa: Estimate
    """Cohen's kappa with its asymptotic interval."""

    kappa_bootstrap: Estimate
    """The same with a bootstrap interval."""

    excluded: Exclusions
    not_coded: int
    """Scored cases whose reference is absent only because nothing was coded."""

    as_absent: Confusion
    """Counts when an uncertain answer is read as absent."""

    as_present: Confusion
    """Counts when an uncertain answer is read as present."""

    gate: Gate
    flips: Flips | None = None
    """How stable the answers are; None unless the run was repeated."""

    @property
    def kappa_interval(self) -> Estimate:
        """Kappa as it is printed.

        With the asymptotic interval, and at perfect agreement, where that has no width,
        with the limits beside the bootstrap, which then are exact.
        """
        sure = self.kappa.low is not None and self.kappa.low == self.kappa.high
        return self.kappa_bootstrap if sure else self.kappa

    def rests_on_uncertain(self, threshold: float) -> bool:
        """Whether a pass would be lost by reading uncertain answers one way."""
        readings = (self.as_absent.accuracy, self.as_present.accuracy)
        return self.gate.verdict is GateVerdict.PASS and any(
            share is not None and share < threshold for share in readings
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Average:
    """An F1 over several labels with its bootstrap interval."""

    name: str
    """``"macro-F1"``, ``"micro-F1"`` or ``"macro-F1, supported labels"``."""

    score: Bootstrap
    labels: int
    """Labels that entered: those whose F1 is defined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The averages under one reading of uncertain answers."""

    reading: str
    """``"excluded"``, ``"absent"`` or ``"present"``."""

    macro_f1: float | None
    micro_f1: float | None
    accuracy: float | None
    """Mean over labels of the accuracy."""

    scored: int
    """Case-label pairs that entered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What an evaluation must know of its run."""

    run_id: str
    created: str
    """UTC, ISO 8601."""

    prompt: str
    """For example ``"extractor@v3"``."""

    prompt_digest: str
    engine: str
    manifest: Mapping[str, object]
    """The run's manifest as written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortFacts:
    """What an evaluation must know of its cohort."""

    name: str
    role: str
    source: str
    licence: str
    language: str
    digest: str
    cases: int
    reference: int
    """Number of the reference version scored against."""

    reference_digest: str

    @property
    def synthetic(self) -> bool:
        """Whether the texts were made up for a demonstration."""
        return "synthetic" in self.source.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How the intervals were made."""

    unit: str = "case"
    """What the bootstrap resamples: ``"case"`` or ``"patient"``."""

    units: int = 0
    known: int = 0
    """Cases whose patient is known; any other case is a unit of its own."""

    resamples: int = 2000
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One run scored against one reference version under one protocol."""

    run: RunFacts
    cohort: CohortFacts
    protocol: Protocol
    protocol_digest: str
    policy: str
    """How "No Finding" is derived: ``"ran"`` or ``"chexpert"``."""

    cases: int
    """Cases of the run."""

    statuses: Mapping[Status, int]
    not_run: int
    """Cases of the cohort or of its reference that the run does not hold."""

    labels: tuple[LabelResult, ...]
    macro: Average
    supported: Average
    """Macro-F1 over the labels with the protocol's minimum of positives."""

    micro: Average
    views: tuple[View, ...]
    method: Method
    notes: tuple[str, ...] = ()
    """Caveats a reader of the numbers must know, as sentences."""

    protocol_changed: bool = False
    """Whether another protocol stood in the workspace when the run began."""

    stability: Stability | None = None
    """The run and its repeats; None unless it was repeated."""

    registered: str = ""
    """When the ledger first saw the protocol, UTC; empty when it has not."""

    @property
    def registered_late(self) -> bool:
        """Whether the claim was not yet fixed when the run began."""
        began = f"{self.run.created[:19]}Z"
        unset = not self.registered or self.protocol_changed
        return unset or self.registered > began

    @property
    def verdict(self) -> GateVerdict:
        """The verdict on the claim that every label passes.

        Some of the cases cannot pass for all of them.
        """
        verdict = judge_all(result.gate.verdict for result in self.labels)
        if verdict is GateVerdict.PASS and self.not_run:
            return GateVerdict.INSUFFICIENT
        return verdict

    def count(self, verdict: GateVerdict) -> int:
        """Labels with `verdict`."""
        return sum(result.gate.verdict is verdict for result in self.labels)

    @property
    def signature(self) -> str:
        """The conventions behind the numbers, on one line."""
        return "|".join(
            (
                "acc+f1",
                f"{self.run.prompt}:{self.run.prompt_digest[:6]}",
                self.run.engine,
                f"{self.cohort.name}:ref{self.cohort.reference}",
                "unc:excl",
                "nc:absent",
                f"nf:{self.policy}",
                "zd:skip",
                f"L:{self.macro.labels}",
                f"n:{self.cases}",
            )
        )
