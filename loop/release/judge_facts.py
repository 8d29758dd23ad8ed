"""The content of ``release.json`` of a judge: the third form, held against ratings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from loop.judge.ensemble_versions import EnsembleVersion
from loop.judge.judge_gates import JudgeAspect, JudgeCheck
from loop.judge.rated_rows import RatedRow
from loop.labels.error_categories import ErrorGroup
from loop.prompts.shot_records import ShotKind, ShotScore
from loop.prompts.version import PromptVersion
from loop.release.facts import (
    ChangedLabelFacts,
    ComputeFacts,
    Count,
    EngineFacts,
    FrozenFacts,
    HeadFacts,
    ListedOpening,
    Number,
    OneOrMore,
    ProtocolFacts,
    ReleasedFacts,
    ReleaseModel,
    SeparationFacts,
    SupersededFacts,
    ToolFacts,
    Verdict,
)
from loop.release.statement import Hex
from loop.stats.correlation import Correlations
from loop.stats.intervals import Estimate

JUDGE_FORMAT: Final = "ranloop-release/3"
"""Of a release of a judge; the first two are an extractor's."""


class EstimateFacts(ReleaseModel):
    """A number with its interval, and why it has none."""

    value: Number | None
    low: Number | None
    high: Number | None
    note: str

    @property
    def estimate(self) -> Estimate:
        """The same as the statistics take it."""
        return Estimate(self.value, self.low, self.high, self.note)


class ReadFacts(ReleaseModel):
    """A version by whose guides the engine ``rules`` reads both texts."""

    ref: str
    digest: Hex


class ShotsFacts(ReleaseModel):
    """Which examples the judge shows: ``prompt.yaml`` has their ids, no file a text."""

    pool: str
    kind: Annotated[ShotKind, Field(strict=False)]
    n: OneOrMore
    seed: int
    score: Annotated[ShotScore, Field(strict=False)]
    examples: OneOrMore
    """How many there are."""

    digest: Hex


class EnsembleMemberFacts(ReleaseModel):
    """One member of an ensemble, and what becomes of its values."""

    name: str
    title: str
    coefficient: Number
    """What one unit of the member's own scale adds."""

    centre: Number
    """What is taken from its values first."""


class EnsembleFacts(ReleaseModel):
    """An ensemble that the judge is a member of: two files of ``ensembles/``."""

    ref: str
    digest: Hex
    """Of the file with its coefficients."""

    rows_digest: Hex
    """Of the file with the rows that it was fitted on."""

    method: str
    unit: str
    """Of its scores."""

    intercept: Number
    members: list[EnsembleMemberFacts]
    cohort: str
    ratings: str
    pairs: OneOrMore
    """That it was fitted on."""

    tau_b: EstimateFacts | None
    """Out of fold; None where that was not measured."""

    beats: bool | None
    """Whether it is shown to agree more than its best member, out of fold."""


class CategoriesFacts(ReleaseModel):
    """The categories of errors of ``labels/errors.yaml``."""

    version: OneOrMore
    digest: Hex


class ScoreFacts(ReleaseModel):
    """The score that is claimed to agree with raters."""

    name: str
    title: str
    about: str
    weights: list[Number] | None
    """Of matched findings, significant and insignificant errors; null for a score of
    another form."""

    better: Literal["higher", "lower"]


class RatedCohort(ReleaseModel):
    """A cohort of rated pairs that the release was measured on."""

    name: str
    role: str
    source: str
    licence: str
    citation: str
    language: str
    digest: Hex
    cases: Count
    """Pairs."""

    references: Count
    synthetic: bool
    patients_known: bool
    ratings: OneOrMore
    """Version of the experts' ratings."""

    ratings_digest: Hex
    raters: OneOrMore
    dimension: str
    scale: str
    """Least and most points, or ``counts``."""


class AgreementFacts(ReleaseModel):
    """The claimed score, turned so that more is better, and the mean of the raters."""

    n: Count
    """Pairs with a score and a rating."""

    units: Count
    tau_b: EstimateFacts
    spearman: EstimateFacts
    pearson: EstimateFacts
    one_rater: Number | None
    """Mean tau-b with one rater."""

    two_raters: Number | None
    """Mean tau-b of two raters."""


class ErrorFacts(ReleaseModel):
    """Significant errors of one kind, by counts, against the raters' median.

    Counts have halves where an even number of raters marked errors.
    """

    name: str
    categories: list[str]
    n: Count
    """Pairs that both sides judged."""

    tp: Number
    fp: Number
    fn: Number
    f1: EstimateFacts
    two_raters: Number | None
    """Mean F1 of two raters."""

    @property
    def counted(self) -> tuple[Sequence[str], float, float, float]:
        """Categories, and errors that agree, that the judge and that raters count."""
        true = float(self.tp)
        return self.categories, true, true + self.fp, true + self.fn


class FloorFacts(ReleaseModel):
    """The F1 of a group as the gate takes it: its ends are one-sided limits."""

    group: Annotated[ErrorGroup, Field(strict=False)]
    f1: EstimateFacts


class BiasFacts(ReleaseModel):
    """How far scores go with what should not matter, by tau-b."""

    by: Literal["length", "position"]
    scores: EstimateFacts
    ratings: Number | None
    """The same of the raters, on the rated pairs."""

    difference: EstimateFacts | None
    """Scores less ratings, on these pairs."""


class CopyFacts(ReleaseModel):
    """Candidates that are equal to their references."""

    pairs: Count
    best: Count
    """With the best score."""

    unanswered: Count


class RepeatFacts(ReleaseModel):
    """What several draws of the same question have in common."""

    pairs: Count
    """With a score in every draw."""

    incomplete: Count
    sd: EstimateFacts
    identical: EstimateFacts
    icc: EstimateFacts


class CheckFacts(ReleaseModel):
    """One line of the gate."""

    aspect: Annotated[JudgeAspect, Field(strict=False)]
    what: str
    verdict: Verdict
    observed: Number | None
    limit: Number | None
    threshold: Number | None
    reason: str
    needs: str

    @property
    def check(self) -> JudgeCheck:
        """The same as the gate has it."""
        return JudgeCheck(**dict(self))


class JudgeEvaluationFacts(ReleaseModel):
    """One evaluation of a judge; what is of single pairs stands in the table of rows.

    Scores are of the first draw, `repeats` of all of them.
    """

    cohort: str
    role: str
    run: str
    draws: OneOrMore
    runs: list[str]
    """Those of all draws; empty for one."""

    created: str
    cases: Count
    statuses: dict[str, Count]
    """Of the first draw."""

    verdict: Verdict
    registered_late: bool
    rows: Count
    """Rated pairs, each a row of the table."""

    rows_digest: Hex
    unit: Literal["patient", "reference"]
    resamples: Annotated[int, Field(ge=1, le=10_000)]
    seed: int
    agreement: AgreementFacts
    errors: list[ErrorFacts]
    """All kinds together, by group, by category; empty where nobody marked errors."""

    counts_digest: Hex
    """Of the counts of `errors`, as the ledger has it."""

    floors: list[FloorFacts]
    bias: list[BiasFacts]
    copies: CopyFacts
    repeats: RepeatFacts | None
    gate: list[CheckFacts]
    suspicious: list[str]
    signature: str


class JudgeClaimFacts(ReleaseModel):
    """The claim of the section ``judging`` of the protocol, on one cohort."""

    kind: Literal["judging"]
    verdict: Verdict
    cohort: str


class ChangedScoreFacts(ReleaseModel):
    """One number before and after."""

    name: str
    before: Number | None
    after: Number | None


class JudgeChangeFacts(ReleaseModel):
    """What the release changes against the one in use, or its parent."""

    previous: str
    from_ref: str
    classes: list[str]
    labels: list[ChangedLabelFacts]
    diff_digest: str
    rollback: str
    agreement: ChangedScoreFacts | None
    """Of the claimed score on the dev cohort; null where nothing was compared."""

    difference: EstimateFacts | None
    f1: list[ChangedScoreFacts]


class PastJudgeFacts(ReleaseModel):
    """One version or draft that led here."""

    ref: str
    digest: str
    time: str
    author: str
    why: str
    verdicts: Count
    verdict_roles: dict[str, OneOrMore]
    """Roles to the verdicts that people in these roles gave, where that is known."""

    status: str
    observed: Number | None
    """Its newest recorded agreement on the dev cohort, by the claimed measure."""

    measured: str
    """Of which score, by which engine and ratings; empty without one."""


class RowFacts(ReleaseModel):
    """One rated pair, as the vault keeps it and the table shows it."""

    unit: OneOrMore
    score: Number | None
    points: Number
    parent: Number | None

    @property
    def row(self) -> RatedRow:
        """The same as it is measured."""
        score, parent = (
            None if one is None else float(one) for one in (self.score, self.parent)
        )
        return RatedRow(self.unit, score, float(self.points), parent)


class JudgeReleaseFacts(ReleaseModel):
    """The content of ``release.json`` of a judge."""

    format: Literal["ranloop-release/3"]
    release: ReleasedFacts
    """Its labels are the categories of errors that are asked for."""

    frozen: FrozenFacts
    supersedes: SupersededFacts | None
    engine: EngineFacts
    reads: list[ReadFacts]
    categories: CategoriesFacts
    score: ScoreFacts
    protocol: ProtocolFacts
    cohorts: list[RatedCohort]
    evaluations: list[JudgeEvaluationFacts]
    claim: JudgeClaimFacts
    openings: list[ListedOpening]
    development_only: bool
    separation: SeparationFacts
    change: JudgeChangeFacts
    history: list[PastJudgeFacts]
    compute: ComputeFacts
    ledger: HeadFacts
    tool: ToolFacts
    shots: ShotsFacts | None = None
    """None for a judge without examples: releases of such judges keep their form."""

    ensembles: list[EnsembleFacts] = Field(default_factory=list)
    """Released with the judge; releases without any keep their form."""

    @model_serializer(mode="wrap")
    def _leave_out_what_is_not_there(self, write: SerializerFunctionWrapHandler) -> Any:
        written = write(self)
        for name in ("shots", "ensembles"):
            if not getattr(self, name):
                written.pop(name, None)
        return written


def shots_facts(version: PromptVersion) -> ShotsFacts | None:
    """Return which examples a judge shows; None without any."""
    shots = version.shots
    if shots is None:
        return None
    return ShotsFacts(
        pool=shots.pool,
        kind=shots.kind,
        n=shots.n,
        seed=shots.seed,
        score=shots.score,
        examples=len(shots.pins),
        digest=shots.digest,
    )


def ensemble_facts(version: EnsembleVersion) -> EnsembleFacts:
    """Return what a release says of an ensemble: all of it follows from its files."""
    told = version.ensemble
    fold = told.out_of_fold
    kept = None if fold is None else fold.of(told.method).tau_b
    return EnsembleFacts(
        ref=version.ref,
        digest=version.digest,
        rows_digest=told.rows,
        method=str(told.method),
        unit=told.unit,
        intercept=told.intercept,
        members=[
            EnsembleMemberFacts(
                name=one.name,
                title=one.title,
                coefficient=one.coefficient,
                centre=one.centre,
            )
            for one in told.members
        ],
        cohort=told.fitted_on.cohort,
        ratings=told.fitted_on.ratings,
        pairs=told.fitted_on.pairs,
        tau_b=None
        if kept is None
        else EstimateFacts(value=kept.value, low=kept.low, high=kept.high, note=""),
        beats=None if fold is None else fold.beside(told.method).beats,
    )


def estimate_facts(found: Estimate) -> EstimateFacts:
    """Return a number as a release carries it."""
    return EstimateFacts(
        value=found.value, low=found.low, high=found.high, note=found.note
    )


_NONE = Estimate(None, None, None, "not estimable: fewer than two pairs have both")


def agreement_facts(
    found: Correlations | None,
    *,
    one_rater: float | None,
    two_raters: float | None,
) -> AgreementFacts:
    """Return an agreement as a release carries it.

    Parameters
    ----------
    found
        None where fewer than two pairs have a score and a rating.
    one_rater, two_raters
        Mean tau-b with one rater, and of two.
    """
    return AgreementFacts(
        n=found.n if found else 0,
        units=found.n_units if found else 0,
        tau_b=estimate_facts(found.tau_b if found else _NONE),
        spearman=estimate_facts(found.spearman if found else _NONE),
        pearson=estimate_facts(found.pearson if found else _NONE),
        one_rater=one_rater,
        two_raters=two_raters,
    )


def check_facts_of(check: JudgeCheck) -> CheckFacts:
    """Return a line of the gate as a release carries it."""
    return CheckFacts(
        aspect=check.aspect,
        what=check.what,
        verdict=check.verdict,
        observed=check.observed,
        limit=check.limit,
        threshold=check.threshold,
        reason=check.reason,
        needs=check.needs,
    )
