"""What an evaluation says: the records that documents, tables and gates read.

Certifying is more than passing. The rule ``point`` compares observed values with the
thresholds and certifies nothing. A claim on all labels needs no correction, since one
label that fails takes it back; picking the labels that passed does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from loop.core.records import Status, UncertainAnswers
from loop.evaluate.flips import Flips, Stability
from loop.evaluate.gates import (
    Gate,
    GateVerdict,
    Hedges,
    combine_verdicts,
    count_verdicts,
)
from loop.evaluate.protocol import Protocol
from loop.stats.confusion import Confusion
from loop.stats.intervals import Estimate, Interval
from loop.stats.paired import holm
from loop.stats.power import exact_p
from loop.stats.resampling import Bootstrap


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
    """None where the protocol counts them as answers."""

    unparsed: int = 0
    failed: int = 0
    not_asked: int = 0
    """The prompt version does not ask for the label, or the engine does not know it."""

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


class OpenAnswers(NamedTuple):
    """Answers to cases of one label whose reference is uncertain; none is scored."""

    present: int = 0
    absent: int = 0
    uncertain: int = 0
    unanswered: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelResult:
    """One label of one evaluation."""

    label: str
    name: str
    """Name as published."""

    confusion: Confusion
    """Counts over the scored cases, uncertain answers as the protocol says."""

    accuracy: Interval
    """Clopper-Pearson interval of the accuracy; (0, 1) without scored cases."""

    kappa: Estimate
    """Cohen's kappa with its asymptotic interval."""

    kappa_bootstrap: Estimate
    """The same with a bootstrap interval."""

    excluded: Exclusions
    not_coded: int
    """Scored cases whose reference is absent only because nothing was coded."""

    hedges: Hedges
    """Uncertain answers where the reference decides, whether or not they count."""

    open_answers: OpenAnswers
    """How the cases are answered that the reference calls uncertain."""

    gate: Gate
    draws: int = 1
    """Draws of the run that all counts are added up over; intervals take the mean of
    a case as one answer."""

    flips: Flips | None = None
    """How stable the answers are; None unless the run was repeated."""

    @property
    def comparable(self) -> bool:
        """Whether the reference can judge the label."""
        return self.gate.verdict is not GateVerdict.NOT_COMPARABLE

    @property
    def kappa_interval(self) -> Estimate:
        """Kappa as it is printed.

        With the asymptotic interval, and at perfect agreement, where that has no width,
        with the limits beside the bootstrap, which then are exact.
        """
        sure = self.kappa.low is not None and self.kappa.low == self.kappa.high
        return self.kappa_bootstrap if sure else self.kappa


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
    """What an evaluation would say under one policy for uncertain answers."""

    policy: UncertainAnswers

    macro_f1: float | None
    micro_f1: float | None
    accuracy: float | None
    """Mean over labels of the accuracy."""

    scored: int
    """Case-label pairs that entered; here and in the averages, of the labels that the
    reference can judge."""

    verdicts: tuple[GateVerdict, ...]
    """The gate of every label, in published order."""

    @property
    def words(self) -> str:
        """What the policy does, in a few words."""
        return self.policy.words

    @property
    def passed(self) -> int:
        """Labels whose gate passes."""
        return self.verdicts.count(GateVerdict.PASS)


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

    @property
    def limit(self) -> int | None:
        """Number of the first cases that were to be asked; None for all."""
        spec = self.manifest.get("spec")
        limit = spec.get("limit") if isinstance(spec, Mapping) else None
        return limit if isinstance(limit, int) else None


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
    """How "No Finding" is derived: ``"ran"`` or ``"chexpert"``; empty where it is no
    label."""

    cases: int
    """Cases of the run."""

    draws: int = 1
    """How often each was asked; the counts of labels and statuses are added up over
    them."""

    runs: tuple[str, ...] = ()
    """Ids of the runs of all draws; empty for one."""

    statuses: Mapping[Status, int]
    not_run: int
    """Cases of the cohort or of its reference that the run does not hold."""

    labels: tuple[LabelResult, ...]
    macro: Average
    supported: Average
    """Macro-F1 over the labels with the protocol's minimum of positives."""

    micro: Average
    views: tuple[View, ...]
    """Every policy for uncertain answers, the protocol's first."""

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
        verdict = combine_verdicts(result.gate.verdict for result in self.labels)
        if verdict is GateVerdict.PASS and self.not_run:
            return GateVerdict.INSUFFICIENT
        return verdict

    @property
    def comparable(self) -> tuple[LabelResult, ...]:
        """Labels that the reference can judge: those of the claim and the averages."""
        return tuple(one for one in self.labels if one.comparable)

    @property
    def not_comparable(self) -> tuple[LabelResult, ...]:
        """Labels that it cannot judge: they are shown, and their gates say why."""
        return tuple(one for one in self.labels if not one.comparable)

    def count(self, verdict: GateVerdict) -> int:
        """Labels with `verdict`."""
        return self.verdicts.get(verdict, 0)

    @property
    def verdicts(self) -> dict[GateVerdict, int]:
        """Verdict to number of labels; see `loop.evaluate.gates.count_verdicts`."""
        return count_verdicts(result.gate.verdict for result in self.labels)

    @property
    def resting(self) -> tuple[str, ...]:
        """Names of the labels that pass as counted and not if uncertain is wrong."""
        wrong = next(
            view for view in self.views if view.policy is UncertainAnswers.WRONG
        )
        return tuple(
            result.name
            for result, verdict in zip(self.labels, wrong.verdicts, strict=True)
            if result.gate.verdict is GateVerdict.PASS
            and verdict is not GateVerdict.PASS
        )

    @property
    def signature(self) -> str:
        """The conventions behind the numbers, on one line."""
        return "|".join(
            (
                "acc+f1",
                f"{self.run.prompt}:{self.run.prompt_digest[:6]}",
                self.run.engine,
                f"{self.cohort.name}:ref{self.cohort.reference}",
                self.protocol.policy.sign,
                "nc:absent",
                *([f"nf:{self.policy}"] if self.policy else []),
                "zd:skip",
                *sign_left_out(one.label for one in self.not_comparable),
                f"L:{self.macro.labels}",
                f"n:{self.cases}",
                *([f"draws:{self.draws}"] if self.draws > 1 else []),
            )
        )


_LEFT_OUT = "without:"


def sign_left_out(labels: Iterable[str]) -> tuple[str, ...]:
    """Return the part of a signature that names labels in no average; none without.

    Examples
    --------
    >>> sign_left_out(["no_finding", "fracture"]), sign_left_out([])
    (('without:fracture,no_finding',), ())
    """
    names = ",".join(sorted(labels))
    return (f"{_LEFT_OUT}{names}",) if names else ()


def left_out_of(signature: str) -> frozenset[str]:
    """Return the labels that a signature names as being in no average."""
    return frozenset(
        label
        for part in signature.split("|")
        if part.startswith(_LEFT_OUT)
        for label in part.removeprefix(_LEFT_OUT).split(",")
    )


POINT_RULE = (
    "Nothing is certified: the protocol's rule is `point`, which compares observed "
    "values with the thresholds. The rule `lower` certifies."
)
NOT_ALL_RUN = "Nothing is certified: not all cases of the cohort were run."
REPEATED = (
    "The p-values take every case as independent, and patients repeat: they are too "
    "small."
)


class LabelClaim(NamedTuple):
    """One label of a claim."""

    label: str
    name: str
    p: float
    """Exact one-sided p-value against an accuracy of at most the threshold."""

    p_holm: float
    """The same adjusted for the number of labels; decides a claim on a subset."""

    certified: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What the protocol lets an evaluation claim."""

    kind: str
    """``"all"`` or ``"subset"``."""

    alpha: float
    """Chance of a false claim that is accepted: per label for ``"all"``, for any label
    of the family for ``"subset"``."""

    verdict: GateVerdict
    """Of ``"all"``: every label passes. Of ``"subset"``: some label is certified."""

    labels: tuple[LabelClaim, ...]
    """The family: every label that the reference can judge, in published order."""

    note: str = ""
    """Why nothing is certified, or what weakens it; empty where there is nothing."""

    @property
    def certified(self) -> tuple[LabelClaim, ...]:
        """Labels that are certified."""
        return tuple(one for one in self.labels if one.certified)


class ClaimDecision(NamedTuple):
    """How a claim is decided from gates and p-values."""

    verdict: GateVerdict
    p_holm: tuple[float, ...]
    """Adjusted p-values, in the order of the labels."""

    certified: tuple[bool, ...]


def decide_claim(
    gates: Sequence[GateVerdict],
    p_values: Sequence[float],
    protocol: Protocol,
    *,
    whole: bool = True,
) -> ClaimDecision:
    """Return what labels certify whose gates and exact p-values are known.

    They are those that the reference can judge. A claim on all of them is an
    intersection-union test: every label is judged at ``1 - confidence``, and either all
    are certified or none. A claim on a subset takes the exact binomial p-value of every
    label, adjusts it over all of them, scored or not, and certifies a label when that
    is at most ``alpha`` and its gate passes as well.

    Parameters
    ----------
    whole
        False where cases of the cohort were not run: then no label is certified and
        the claim does not pass.

    References
    ----------
    Berger RL. Technometrics 1982;24:295-300. Holm S. Scand J Stat 1979;6:65-70.
    """
    adjusted, certifies = holm(p_values), whole and protocol.rule == "lower"
    if protocol.claim == "subset":
        kept = [
            certifies and gate is GateVerdict.PASS and p <= protocol.alpha
            for gate, p in zip(gates, adjusted, strict=True)
        ]
        verdict = _any_kept(kept, gates)
    else:
        verdict = combine_verdicts(gates)
        kept = [certifies and verdict is GateVerdict.PASS] * len(gates)
    if verdict is GateVerdict.PASS and not whole:
        verdict = GateVerdict.INSUFFICIENT
    return ClaimDecision(verdict, tuple(adjusted), tuple(kept))


def certify(
    labels: Sequence[LabelResult], protocol: Protocol, *, whole: bool = True
) -> Claim:
    """Return what `labels` certify under `protocol`; see `decide_claim`.

    A label that the reference cannot judge is not of the family.
    """
    labels = [one for one in labels if one.comparable]
    p_values = [_p_value(result, protocol) for result in labels]
    gates = [result.gate.verdict for result in labels]
    decided = decide_claim(gates, p_values, protocol, whole=whole)
    rows = zip(labels, p_values, decided.p_holm, decided.certified, strict=True)
    return Claim(
        kind=protocol.claim,
        alpha=claim_level(protocol),
        verdict=decided.verdict,
        labels=tuple(
            LabelClaim(result.label, result.name, p, adjusted, certified)
            for result, p, adjusted, certified in rows
        ),
        note=POINT_RULE if protocol.rule == "point" else "",
    )


def certify_evaluation(evaluation: Evaluation) -> Claim:
    """Return what an evaluation certifies: as `certify`, and nothing of a part.

    Where cases of the cohort were not run, no label is certified and the claim does
    not pass.
    """
    whole = not evaluation.not_run
    claim = certify(evaluation.labels, evaluation.protocol, whole=whole)
    repeated = evaluation.method.units < evaluation.cases
    weakness = REPEATED if repeated else ""
    return replace(claim, note=claim.note or (weakness if whole else NOT_ALL_RUN))


def _p_value(result: LabelResult, protocol: Protocol) -> float:
    counts = result.confusion
    return exact_p(counts.correct, counts.n, protocol.accuracy, draws=result.draws)


def _any_kept(kept: Sequence[bool], gates: Sequence[GateVerdict]) -> GateVerdict:
    """Return the verdict on a subset: it fails only where every label does."""
    if any(kept):
        return GateVerdict.PASS
    return (
        GateVerdict.FAIL
        if set(gates) == {GateVerdict.FAIL}
        else GateVerdict.INSUFFICIENT
    )


def claim_level(protocol: Protocol) -> float:
    """Return the level of the protocol's claim: alpha, or that of every gate.

    As written: one minus 0.95 is not 0.05 in binary.
    """
    if protocol.claim == "subset":
        return protocol.alpha
    return round(1 - protocol.confidence, 12)
