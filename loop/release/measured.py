"""Evaluations as a release carries them: every count, every interval, no case."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from loop.evaluate.protocol import Protocol
from loop.evaluate.recording import counts_digest
from loop.evaluate.results import Average, Evaluation, LabelResult
from loop.stats.intervals import Estimate, clopper_pearson


def evaluation_facts(evaluation: Evaluation) -> dict[str, Any]:
    """Return an evaluation as JSON data: aggregates only, so a holdout's may be kept.

    Shares have Clopper-Pearson intervals at the protocol's confidence; a share without
    a denominator is null with its limits.
    """
    return {
        "cohort": evaluation.cohort.name,
        "role": evaluation.cohort.role,
        "run": evaluation.run.run_id,
        "created": evaluation.run.created,
        "cases": evaluation.cases,
        "not_run": evaluation.not_run,
        "statuses": {
            status.value: number for status, number in evaluation.statuses.items()
        },
        "policy": evaluation.policy,
        "verdict": evaluation.verdict.value,
        "registered_late": evaluation.registered_late,
        "labels": [_label(one, evaluation.protocol) for one in evaluation.labels],
        "macro": _average(evaluation.macro),
        "supported": _average(evaluation.supported),
        "micro": _average(evaluation.micro),
        "method": asdict(evaluation.method),
        "signature": evaluation.signature,
        "counts_digest": counts_digest(evaluation),
        "notes": list(evaluation.notes),
    }


def _label(result: LabelResult, protocol: Protocol) -> dict[str, Any]:
    counts, level = result.confusion, protocol.confidence
    return {
        "label": result.label,
        "name": result.name,
        **counts._asdict(),
        "n": counts.n,
        "excluded": asdict(result.excluded),
        "not_coded": result.not_coded,
        "accuracy": _share(counts.correct, counts.n, level),
        "sensitivity": _share(counts.tp, counts.positives, level),
        "specificity": _share(counts.tn, counts.negatives, level),
        "kappa": _estimate(result.kappa),
        "kappa_bootstrap": _estimate(result.kappa_bootstrap),
        "f1": counts.f1,
        "gate": {
            "verdict": result.gate.verdict.value,
            "reasons": list(result.gate.reasons),
            "needs": result.gate.needs,
        },
    }


def _share(successes: int, trials: int, confidence: float) -> dict[str, Any]:
    if not trials:
        return {"value": None, "low": None, "high": None}
    low, high = clopper_pearson(successes, trials, confidence=confidence)
    return {"value": successes / trials, "low": low, "high": high}


def _estimate(found: Estimate) -> dict[str, Any]:
    return {
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "note": found.note,
    }


def _average(average: Average) -> dict[str, Any]:
    score = average.score
    return {
        "name": average.name,
        "value": score.estimate,
        "low": score.low,
        "high": score.high,
        "labels": average.labels,
    }
