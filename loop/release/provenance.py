"""What a release says of each evaluation, and of its origin: cohorts, readers, history.

Every count and every interval is there, and no case: what is said of a holdout may be
kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from loop.core.paths import WorkspacePaths
from loop.evaluate.ceiling import measure_run_ceiling
from loop.evaluate.inputs import read_inputs
from loop.evaluate.protocol import Protocol
from loop.evaluate.recording import counts_digest
from loop.evaluate.results import Average, CohortFacts, Evaluation, LabelResult
from loop.evaluate.score_history import main_scores, score_history
from loop.evaluate.tried import Selection
from loop.labels.ballots import read_cohort_votes
from loop.labels.cohort import CohortRecord, read_cohort, read_record
from loop.labels.taxonomy import read_taxonomy
from loop.release.facts import (
    AverageFacts,
    CeilingFacts,
    CeilingLabelFacts,
    ComputeFacts,
    EvaluationFacts,
    ExcludedFacts,
    FrozenCohort,
    GateFacts,
    HedgeFacts,
    KappaFacts,
    LabelFacts,
    MethodFacts,
    PastFacts,
    ProtocolFacts,
    RateFacts,
    ReadingFacts,
    SelectionFacts,
)
from loop.stats.intervals import Estimate, clopper_pearson


def cohort_facts(workspace: WorkspacePaths, facts: CohortFacts) -> FrozenCohort:
    """Return what a release says of one cohort: names and digests, no case.

    Raises
    ------
    DataError
        The cohort is no longer as recorded.
    """
    cohort = read_cohort(workspace, facts.name)
    payload = _reference_payload(read_record(workspace, facts.name), facts.reference)
    return FrozenCohort(
        name=facts.name,
        role=facts.role,
        source=facts.source,
        licence=facts.licence,
        citation=cohort.citation,
        language=facts.language,
        digest=facts.digest,
        cases=facts.cases,
        synthetic=facts.synthetic,
        patients_known=cohort.patients_known,
        reference=facts.reference,
        reference_digest=facts.reference_digest,
        readers=payload.get("readers"),
        need=payload.get("need"),
        not_coded=cohort.not_coded,
        not_comparable=dict(cohort.not_comparable),
    )


def reading_facts(workspace: WorkspacePaths, facts: CohortFacts) -> ReadingFacts | None:
    """Return who read a cohort; None where its reference comes from no readers."""
    payload = _reference_payload(read_record(workspace, facts.name), facts.reference)
    readers = payload.get("readers")
    if readers is None:
        return None
    return ReadingFacts(
        readers=readers,
        blind=readers - len(payload.get("not_blind", ())),
        votes=None,
        kappa=None,
    )


def _reference_payload(record: CohortRecord, number: int) -> Mapping[str, Any]:
    """Return what was recorded of a reference; a correction keeps the readers."""
    payload = record.references.get(number, {})
    if "readers" not in payload and "corrects" in payload:
        return _reference_payload(record, int(payload["corrects"]))
    return payload


def ceiling_facts(
    workspace: WorkspacePaths, evaluation: Evaluation
) -> CeilingFacts | None:
    """Return the model beside the readers, on accuracy; None without readers' votes.

    Each reader is held against the majority of the others, and so is the model.
    """
    inputs = read_inputs(
        workspace, evaluation.run.run_id, reference=evaluation.cohort.reference
    )
    cohort = read_cohort(workspace, evaluation.cohort.name)
    if read_record(workspace, cohort.name).votes is None:
        return None
    votes = read_cohort_votes(workspace, cohort, read_taxonomy(workspace.labels))
    if len(votes.readers) < 2:
        return None
    found = measure_run_ceiling(inputs, votes)
    said = f"Uncertain answers and votes are {found.policy.words}."
    return CeilingFacts(
        readers=len(found.readers),
        labels=[
            CeilingLabelFacts(
                label=row.label,
                readers=row.accuracy.reader.value,
                model=row.accuracy.model.value,
                difference=row.accuracy.difference.value,
                low=row.accuracy.difference.low,
                high=row.accuracy.difference.high,
            )
            for row in found.labels
        ],
        note=" ".join((said, *found.warnings)),
    )


def selection_facts(selection: Selection | None) -> SelectionFacts | None:
    """Return how many versions were tried, and the macro-F1 corrected for that.

    Where others were tried and none can be scored again, nothing is corrected.
    """
    if selection is None:
        return None
    score, unscored = selection.score, selection.unscored
    note = score.note
    if selection.rescored == 1 < selection.k:
        score = score._replace(corrected=None, low=None, high=None)
        note = "not corrected"
    if unscored:
        left = f"no run can be scored here of {', '.join(unscored)}"
        note = "; ".join(filter(None, [note, left]))
    if selection.tried.searched:
        candidates = f"{selection.tried.searched:,} of them were candidates of searches"
        note = "; ".join(filter(None, [note, candidates]))
    return SelectionFacts(
        tried=selection.k,
        apparent=score.apparent,
        corrected=score.corrected,
        low=score.low,
        high=score.high,
        expected_drop=selection.expected_drop,
        note=note,
    )


def history_facts(
    workspace: WorkspacePaths, prompt: str, cohort: str
) -> list[PastFacts]:
    """Return every version and draft of `prompt` with its score on a dev cohort."""
    return [
        PastFacts(
            ref=row.ref,
            digest=row.digest,
            time=row.when,
            author=row.who,
            why=row.why,
            verdicts=row.verdicts,
            status=row.status.value,
            macro_f1=row.macro_f1,
            measured=row.measured,
            verdict_roles=dict(row.verdict_roles),
        )
        for row in main_scores(score_history(workspace, prompt, cohort)).values()
    ]


def compute_facts(manifest: Mapping[str, Any]) -> ComputeFacts:
    """Return what the run took, from its manifest; null where nobody counted."""
    account = manifest.get("engine_account") or {}
    tokens = [account.get(f"{kind}_tokens") for kind in ("prompt", "completion")]
    packages = {k: v for k, v in manifest["packages"].items() if v is not None}
    return ComputeFacts(
        seconds=_seconds(manifest),
        tokens=sum(t for t in tokens if t) if any(tokens) else None,
        platform=manifest["platform"],
        python=manifest["python"],
        packages=packages,
    )


def _seconds(manifest: Mapping[str, Any]) -> float | None:
    try:
        ended = datetime.fromisoformat(manifest["finished"])
        began = datetime.fromisoformat(manifest["created"])
    except (TypeError, ValueError):
        return None
    return round((ended - began).total_seconds(), 3)


def protocol_facts(evaluation: Evaluation) -> ProtocolFacts:
    """Return the protocol an evaluation was judged by, and when it was registered."""
    return ProtocolFacts(
        digest=evaluation.protocol_digest,
        registered=evaluation.registered,
        late=evaluation.registered_late,
        content=evaluation.protocol.model_dump(mode="json"),
    )


def evaluation_facts(evaluation: Evaluation) -> EvaluationFacts:
    """Return an evaluation: aggregates only, so that a holdout's may be kept.

    Shares have Clopper-Pearson intervals at the protocol's confidence; a share without
    a denominator is null with its limits.
    """
    return EvaluationFacts(
        cohort=evaluation.cohort.name,
        role=evaluation.cohort.role,
        run=evaluation.run.run_id,
        draws=evaluation.draws,
        runs=list(evaluation.runs),
        created=evaluation.run.created,
        cases=evaluation.cases,
        not_run=evaluation.not_run,
        statuses={
            status.value: number for status, number in evaluation.statuses.items()
        },
        policy=evaluation.policy,
        verdict=evaluation.verdict,
        registered_late=evaluation.registered_late,
        labels=[_label(one, evaluation.protocol) for one in evaluation.labels],
        macro=_average(evaluation.macro),
        supported=_average(evaluation.supported),
        micro=_average(evaluation.micro),
        method=MethodFacts(**asdict(evaluation.method)),
        signature=evaluation.signature,
        counts_digest=counts_digest(evaluation),
        notes=list(evaluation.notes),
    )


def _label(result: LabelResult, protocol: Protocol) -> LabelFacts:
    counts, level = result.confusion, protocol.confidence
    return LabelFacts(
        label=result.label,
        name=result.name,
        tp=counts.tp,
        fp=counts.fp,
        fn=counts.fn,
        tn=counts.tn,
        n=counts.n,
        excluded=ExcludedFacts(**asdict(result.excluded)),
        not_coded=result.not_coded,
        accuracy=_share(counts.correct, counts.n, level, result.draws),
        sensitivity=_share(counts.tp, counts.positives, level, result.draws),
        specificity=_share(counts.tn, counts.negatives, level, result.draws),
        kappa=_kappa(result.kappa),
        kappa_bootstrap=_kappa(result.kappa_bootstrap),
        f1=counts.f1,
        gate=GateFacts(
            verdict=result.gate.verdict,
            reasons=list(result.gate.reasons),
            needs=result.gate.needs,
        ),
        answered_uncertain=(
            None
            if protocol.uncertain_answers is None
            else HedgeFacts(**result.hedges._asdict())
        ),
    )


def _share(successes: int, trials: int, confidence: float, draws: int) -> RateFacts:
    if not trials:
        return RateFacts(value=None, low=None, high=None)
    low, high = clopper_pearson(successes, trials, confidence=confidence, draws=draws)
    return RateFacts(value=successes / trials, low=low, high=high)


def _kappa(found: Estimate) -> KappaFacts:
    return KappaFacts(
        value=found.value, low=found.low, high=found.high, note=found.note
    )


def _average(average: Average) -> AverageFacts:
    score = average.score
    return AverageFacts(
        name=average.name,
        value=score.estimate,
        low=score.low,
        high=score.high,
        labels=average.labels,
    )
