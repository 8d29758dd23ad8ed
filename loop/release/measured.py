"""Evaluations as a release carries them: every count, every interval, no case."""

from __future__ import annotations

from dataclasses import asdict

from loop.evaluate.protocol import Protocol
from loop.evaluate.recording import counts_digest
from loop.evaluate.results import Average, Evaluation, LabelResult
from loop.release.form import (
    AverageFacts,
    EvaluationFacts,
    ExcludedFacts,
    GateFacts,
    HedgeFacts,
    KappaFacts,
    LabelFacts,
    MethodFacts,
    RateFacts,
)
from loop.stats.intervals import Estimate, clopper_pearson


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
