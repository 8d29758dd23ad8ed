"""The content of ``release.json`` of an extractor, and the parts that all forms share.

What documents are made of and `verify` reads. That of a judge stands in
`loop.release.judge_facts`.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from loop.evaluate.gates import NO_HEDGES, GateVerdict, Hedges
from loop.evaluate.results import Exclusions
from loop.labels.cohort import Reason
from loop.prompts.version import CallPlan
from loop.release.statement import Hex, Time
from loop.stats.confusion import Confusion
from loop.stats.intervals import Estimate

FACTS = "release.json"
FORMAT: Final = "ranloop-release/1"
DRAWN_FORMAT: Final = "ranloop-release/2"
"""Of a release whose engine was asked each case several times."""


Verdict = Annotated[GateVerdict, Field(strict=False)]
Count = Annotated[int, Field(ge=0, le=10**8)]
OneOrMore = Annotated[int, Field(ge=1, le=10**8)]
Number = int | float
"""A whole number stays one: it is written and printed as it was read."""

Share = Annotated[Number, Field(ge=0, le=1)]
Slug = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]


class ReleaseModel(BaseModel):
    """A part of ``release.json``: read strictly, and never changed."""

    model_config = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, frozen=True
    )


class ReleasedFacts(ReleaseModel):
    """The prompt version that is released."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}-v[1-9][0-9]*$")]
    prompt: Slug
    version: OneOrMore
    ref: str
    digest: Hex
    parent: Hex | None
    parent_ref: str
    author: str
    time: str
    why: str
    contract: str
    plan: Annotated[CallPlan, Field(strict=False)]
    labels: list[str]
    languages: list[str]


class FrozenFacts(ReleaseModel):
    """Who froze the release, when and why."""

    time: Time
    actor: str
    role: str
    meaning: str
    why: str
    objections: list[str]
    override: str


class EngineFacts(ReleaseModel):
    """The engine, every parameter, and what it says it is."""

    name: str
    parameters: dict[str, Any]
    identity: dict[str, Any]
    digest: Hex


class SupersededFacts(ReleaseModel):
    """The release whose place this one takes."""

    name: str
    statement_sha256: Hex
    ref: str
    engine: EngineFacts | None = None
    """What it was released with; not written down where its folder does not hold."""

    @model_serializer(mode="wrap")
    def _leave_out_unknown_engine(self, write: SerializerFunctionWrapHandler) -> Any:
        written = write(self)
        if self.engine is None:
            written.pop("engine", None)
        return written


class ProtocolFacts(ReleaseModel):
    """The protocol it was judged by."""

    digest: Hex
    registered: str
    late: bool
    content: dict[str, Any]


class FrozenCohort(ReleaseModel):
    """A cohort that the release was measured on."""

    name: str
    role: str
    source: str
    licence: str
    citation: str
    language: str
    digest: Hex
    cases: Count
    synthetic: bool
    patients_known: bool | Count
    reference: OneOrMore | None
    reference_digest: Hex | None
    readers: Count | None
    need: Count | None
    not_coded: bool | Count | None
    not_comparable: dict[str, Reason] = {}
    """Label id to why the reference cannot judge it; not written down where it is
    empty."""

    @model_serializer(mode="wrap")
    def _leave_out_what_was_not_said(self, write: SerializerFunctionWrapHandler) -> Any:
        written = write(self)
        if not self.not_comparable:
            written.pop("not_comparable", None)
        return written


class RateFacts(ReleaseModel):
    """A share with its exact interval; null without a denominator."""

    value: Share | None
    low: Share | None
    high: Share | None


class KappaFacts(ReleaseModel):
    """Cohen's kappa with an interval, and why it has none."""

    value: Number | None
    low: Number | None
    high: Number | None
    note: str

    @property
    def estimate(self) -> Estimate:
        """Kappa as an estimate."""
        return Estimate(self.value, self.low, self.high)


class AverageFacts(ReleaseModel):
    """An F1 over several labels."""

    name: str
    value: Share | None
    low: Share | None
    high: Share | None
    labels: Count


class ExcludedFacts(ReleaseModel):
    """Why cases of a label were not scored."""

    uncertain_reference: Count
    no_majority: Count
    missing: Count
    uncertain_predicted: Count
    unparsed: Count
    failed: Count
    not_asked: Count


class HedgeFacts(ReleaseModel):
    """Uncertain answers to cases that the reference decides."""

    positives: Count
    negatives: Count


class GateFacts(ReleaseModel):
    """What the gate of a label said."""

    verdict: Verdict
    reasons: list[str]
    needs: str


class LabelFacts(ReleaseModel):
    """One label of an evaluation."""

    label: str
    name: str
    tp: Count
    fp: Count
    fn: Count
    tn: Count
    n: Count
    excluded: ExcludedFacts
    not_coded: Count
    accuracy: RateFacts
    sensitivity: RateFacts
    specificity: RateFacts
    kappa: KappaFacts
    kappa_bootstrap: KappaFacts
    f1: Share | None
    gate: GateFacts
    answered_uncertain: HedgeFacts | None = None
    """None, and not written down, under a protocol that says nothing of uncertain
    answers: they are left out, and counted among the exclusions."""

    @model_serializer(mode="wrap")
    def _leave_out_what_was_not_asked(
        self, write: SerializerFunctionWrapHandler
    ) -> Any:
        written = write(self)
        if self.answered_uncertain is None:
            written.pop("answered_uncertain", None)
        return written

    @property
    def comparable(self) -> bool:
        """Whether the reference can judge the label, so that it is of the claim."""
        return self.gate.verdict is not GateVerdict.NOT_COMPARABLE

    @property
    def hedges(self) -> Hedges:
        """Uncertain answers as far as they were written down."""
        said = self.answered_uncertain
        return Hedges(said.positives, said.negatives) if said else NO_HEDGES

    @property
    def confusion(self) -> Confusion:
        """The shipped counts."""
        return Confusion(self.tp, self.fp, self.fn, self.tn)

    @property
    def exclusions(self) -> Exclusions:
        """Why cases were not scored, with their sums."""
        return Exclusions(**self.excluded.model_dump())


class MethodFacts(ReleaseModel):
    """How the bootstrap intervals were made."""

    unit: str
    units: Count
    known: Count
    resamples: Count
    seed: int


class EvaluationFacts(ReleaseModel):
    """One evaluation: aggregates, never a case.

    Over several draws, counts and statuses are added up over them, and a share with
    its interval is that of the cases' means. One draw is not written down.
    """

    cohort: str
    role: str
    run: str
    draws: OneOrMore = 1
    runs: list[str] = []
    """Those of all draws; empty for one."""

    created: str
    cases: Count
    not_run: Count
    statuses: dict[str, Count]
    policy: str
    verdict: Verdict
    registered_late: bool
    labels: list[LabelFacts]
    macro: AverageFacts
    supported: AverageFacts
    micro: AverageFacts
    method: MethodFacts
    signature: str
    counts_digest: Hex
    notes: list[str]

    @model_serializer(mode="wrap")
    def _leave_out_one_draw(self, write: SerializerFunctionWrapHandler) -> Any:
        written = write(self)
        if self.draws == 1:
            for name in ("draws", "runs"):
                written.pop(name, None)
        return written

    @property
    def comparable(self) -> list[LabelFacts]:
        """Labels that the reference can judge: those of the claim and the averages."""
        return [one for one in self.labels if one.comparable]


class ClaimedFacts(ReleaseModel):
    """What the claim says of one label."""

    label: str
    p: Share | None
    p_holm: Share | None
    certified: bool | None


class ClaimFacts(ReleaseModel):
    """What the evaluation on one cohort certifies."""

    kind: Literal["all", "subset"]
    alpha: Share
    verdict: Verdict
    cohort: str
    labels: list[ClaimedFacts]


class SelectionFacts(ReleaseModel):
    """How many versions were tried, and the score corrected for that."""

    tried: Count
    apparent: Number | None
    corrected: Number | None
    low: Number | None
    high: Number | None
    expected_drop: Number | None
    note: str


class CeilingLabelFacts(ReleaseModel):
    """Readers and model on one label, by accuracy."""

    label: str
    readers: Number | None
    model: Number | None
    difference: Number | None
    low: Number | None
    high: Number | None


class CeilingFacts(ReleaseModel):
    """The model beside the readers."""

    readers: Count | None
    labels: list[CeilingLabelFacts]
    note: str


class ListedOpening(ReleaseModel):
    """One opening of the holdout."""

    number: OneOrMore
    budget: Count
    time: Time
    actor: str
    why: str
    prompt: str


class SeparationFacts(ReleaseModel):
    """What was checked between development and holdout."""

    checked: list[str]
    remarks: list[str]


class ChangedLabelFacts(ReleaseModel):
    """How the guide of one label changed: how often, or the wordings."""

    label: str
    added: Count | list[str]
    removed: Count | list[str]
    changed: Count | list[str]


class WorseFacts(ReleaseModel):
    """A label that lost more right answers than it gained."""

    label: str
    before: Number | None
    after: Number | None
    lost: Count
    gained: Count
    low: Number | None
    high: Number | None


class ChangeFacts(ReleaseModel):
    """What the release changes against the one in use."""

    previous: str
    from_ref: str
    classes: list[str]
    labels: list[ChangedLabelFacts]
    diff_digest: str
    improved: list[str]
    unchanged: list[str]
    worse: list[WorseFacts]
    rollback: str
    harm: list[str] | None = None
    """Over several draws: what got worse by the evidence, in words; the lists above
    are then of the first draw. None, and not written down, for one draw."""

    @model_serializer(mode="wrap")
    def _leave_out_one_draw(self, write: SerializerFunctionWrapHandler) -> Any:
        written = write(self)
        if self.harm is None:
            written.pop("harm", None)
        return written


class PastFacts(ReleaseModel):
    """One version or draft that led here."""

    ref: str
    digest: str
    time: str
    author: str
    why: str
    verdicts: Count
    status: str
    macro_f1: Number | None
    measured: str = ""
    """By which engine, policy and reference; not written down where nobody said."""

    verdict_roles: dict[str, OneOrMore] = {}
    """Roles to the verdicts that people in these roles gave; not written down where
    none is known, and fewer than `verdicts` where some are."""

    @model_serializer(mode="wrap")
    def _leave_out_what_was_not_said(self, write: SerializerFunctionWrapHandler) -> Any:
        written = write(self)
        for name in ("measured", "verdict_roles"):
            if not written.get(name):
                written.pop(name, None)
        return written


class ReadingFacts(ReleaseModel):
    """Who read the dev cohort."""

    readers: Count | None
    blind: Count | None
    votes: Count | None
    kappa: dict[str, Any] | None


class ComputeFacts(ReleaseModel):
    """What the run took; null where nobody counted."""

    seconds: Number | None
    tokens: Count | None
    platform: str
    python: str
    packages: dict[str, str]


class HeadFacts(ReleaseModel):
    """The last entry of the ledger that the release ships."""

    seq: OneOrMore
    head: Hex


class ToolFacts(ReleaseModel):
    """What wrote the release."""

    ranloop: str


class ReleaseFacts(ReleaseModel):
    """The content of ``release.json`` of an extractor."""

    format: Literal["ranloop-release/1", "ranloop-release/2"]
    release: ReleasedFacts
    frozen: FrozenFacts
    supersedes: SupersededFacts | None
    engine: EngineFacts
    protocol: ProtocolFacts
    cohorts: list[FrozenCohort]
    evaluations: list[EvaluationFacts]
    claim: ClaimFacts
    selection: SelectionFacts | None
    ceiling: CeilingFacts | None
    openings: list[ListedOpening]
    development_only: bool
    separation: SeparationFacts
    change: ChangeFacts
    history: list[PastFacts]
    reading: ReadingFacts | None
    compute: ComputeFacts
    ledger: HeadFacts
    tool: ToolFacts
