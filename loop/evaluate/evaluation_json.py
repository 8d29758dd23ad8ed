"""Evaluations and comparisons as JSON data, the shape of every ``--json``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from loop.documents.numbers import p_value
from loop.evaluate.compare import Comparison, LabelChange, Regression
from loop.evaluate.protocol import Protocol
from loop.evaluate.results import (
    Average,
    Claim,
    Evaluation,
    LabelResult,
    RunFacts,
    View,
    certify_evaluation,
)
from loop.evaluate.tried import Selection
from loop.evaluate.tried_text import selection_data
from loop.stats.confusion import Confusion
from loop.stats.intervals import Estimate, Interval
from loop.stats.resampling import Bootstrap


def evaluation_data(
    evaluation: Evaluation, selection: Selection | None = None
) -> dict[str, Any]:
    """Return `evaluation` as JSON data; a number that has no meaning is null.

    Parameters
    ----------
    selection
        The versions tried before it; None leaves ``selection`` null.
    """
    return {
        "run": run_data(evaluation.run),
        "cohort": asdict(evaluation.cohort),
        "signature": evaluation.signature,
        "verdict": evaluation.verdict.value,
        "claim": claim_data(certify_evaluation(evaluation)),
        "uncertain_answers": _policy_data(evaluation.protocol),
        "protocol": evaluation.protocol.model_dump(mode="json"),
        "protocol_digest": evaluation.protocol_digest,
        "protocol_registered": evaluation.registered or None,
        "protocol_registered_late": evaluation.registered_late,
        "cases": evaluation.cases,
        "draws": evaluation.draws,
        "not_run": evaluation.not_run,
        "outcomes": {
            status.value: count for status, count in evaluation.statuses.items()
        },
        "macro_f1": _average(evaluation.macro),
        "macro_f1_supported": _average(evaluation.supported),
        "micro_f1": _average(evaluation.micro),
        "selection": None if selection is None else selection_data(selection),
        "uncertain_read_as": [_view_data(view) for view in evaluation.views],
        "bootstrap": asdict(evaluation.method),
        "repeats": _repeats(evaluation),
        "notes": list(evaluation.notes),
        "labels": [
            label_data(result)
            | {
                "verdict_if_uncertain": {
                    view.policy.value: view.verdicts[place].value
                    for view in evaluation.views
                }
            }
            for place, result in enumerate(evaluation.labels)
        ],
    }


def _policy_data(protocol: Protocol) -> dict[str, Any]:
    """Return what an uncertain answer counts as, and how many there may be."""
    return {
        "policy": protocol.policy.value,
        "said_by_protocol": protocol.uncertain_answers is not None,
        "max_uncertain": protocol.max_uncertain if protocol.limits_uncertain else None,
        "meaning": protocol.uncertain_words,
    }


def _view_data(view: View) -> dict[str, Any]:
    return {
        "reading": view.policy.value,
        "macro_f1": view.macro_f1,
        "micro_f1": view.micro_f1,
        "accuracy": view.accuracy,
        "scored": view.scored,
        "labels_passed": view.passed,
    }


def label_data(result: LabelResult) -> dict[str, Any]:
    """Return one label as JSON data."""
    return {
        "label": result.label,
        "name": result.name,
        "verdict": result.gate.verdict.value,
        "reasons": list(result.gate.reasons),
        "needs": result.gate.needs,
        **_counts(result.confusion),
        "accuracy_interval": _limits(result.accuracy),
        "kappa": _estimate(result.kappa),
        "kappa_bootstrap": _estimate(result.kappa_bootstrap),
        "excluded": asdict(result.excluded),
        "not_coded": result.not_coded,
        "answered_uncertain": result.hedges._asdict(),
        "reference_uncertain": result.open_answers._asdict(),
        "flips": _flips(result),
    }


def _repeats(evaluation: Evaluation) -> dict[str, Any] | None:
    stability = evaluation.stability
    if stability is None:
        return None
    return {
        "runs": list(stability.runs),
        "answered_in_some_only": stability.partly,
        "answered_in_the_same_words": stability.same_words,
        "temperature": stability.temperature,
        "left_to_chance": stability.chance,
    }


def _flips(result: LabelResult) -> dict[str, Any] | None:
    flips = result.flips
    if flips is None:
        return None
    return {
        "n": flips.n,
        "flipped": flips.flipped,
        "rate": flips.rate,
        "interval": _limits(flips.interval) if flips.n else None,
        "disagreement": flips.disagreement,
    }


def comparison_data(
    comparison: Comparison, *, with_cases: bool = True
) -> dict[str, Any]:
    """Return `comparison` as JSON data.

    Parameters
    ----------
    with_cases
        False leaves out case ids and keeps their counts.
    """
    return {
        "before": run_data(comparison.before),
        "after": run_data(comparison.after),
        "cohort": asdict(comparison.cohort),
        "uncertain_answers": comparison.protocol.policy.value,
        "cases": comparison.cases,
        "only_before": comparison.only_before,
        "only_after": comparison.only_after,
        "macro_f1_before": comparison.macro_before,
        "macro_f1_after": comparison.macro_after,
        "macro_f1_difference": _bootstrap(comparison.macro),
        "bootstrap": asdict(comparison.method),
        "no_label_worse": comparison.verdict.value,
        "reasons": list(comparison.reasons),
        "engine_changes": list(comparison.engine_changes),
        "unanswered_before": comparison.unanswered_before,
        "unanswered_after": comparison.unanswered_after,
        "labels": [
            change_data(change, with_cases=with_cases) for change in comparison.labels
        ],
    }


def change_data(change: LabelChange, *, with_cases: bool = True) -> dict[str, Any]:
    """Return what changed for one label as JSON data."""
    cases = {
        "fixed": change.fixed,
        "broken": change.broken,
        "became_uncertain": change.became_uncertain,
        "became_decided": change.became_decided,
        "became_unanswered": change.became_unanswered,
    }
    return {
        "label": change.label,
        "name": change.name,
        "f1_before": change.f1_before,
        "f1_after": change.f1_after,
        "mcnemar_p": change.p,
        "mcnemar_p_holm": change.p_holm,
        "can_be_significant": change.testable,
        "verdict": change.verdict.value,
        "judged": change.judged,
        "accuracy": _regression(change.accuracy),
        "sensitivity": _regression(change.sensitivity),
        **{name: list(ids) if with_cases else len(ids) for name, ids in cases.items()},
        "decided_right": change.decided_right,
    }


def run_data(run: RunFacts) -> dict[str, Any]:
    """Return what identifies a run as JSON data."""
    return {
        "run": run.run_id,
        "created": run.created,
        "prompt": run.prompt,
        "prompt_digest": run.prompt_digest,
        "engine": run.engine,
    }


def _counts(counts: Confusion) -> dict[str, Any]:
    return {
        "n": counts.n,
        "positives": counts.positives,
        "tp": counts.tp,
        "fp": counts.fp,
        "fn": counts.fn,
        "tn": counts.tn,
        "accuracy": counts.accuracy,
        "precision": counts.precision,
        "recall": counts.recall,
        "specificity": counts.specificity,
        "npv": counts.npv,
        "f1": counts.f1,
        "prevalence": counts.prevalence,
        "pabak": counts.pabak,
        "ac1": counts.ac1,
    }


def _regression(regression: Regression) -> dict[str, Any]:
    return {
        "lost": regression.difference.lost,
        "gained": regression.difference.gained,
        "n": regression.difference.n,
        "difference": regression.difference.value,
        "interval": _limits(regression.interval),
        "lower_bound": regression.bound,
        "margin": regression.margin,
        "verdict": regression.verdict.value,
    }


def _average(average: Average) -> dict[str, Any]:
    return {**_bootstrap(average.score), "labels": average.labels}


def _bootstrap(score: Bootstrap) -> dict[str, Any]:
    return {
        "value": score.estimate,
        "low": score.low,
        "high": score.high,
        "redrawn": score.redrawn,
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return dict(estimate._asdict())


def _limits(limits: Interval | None) -> list[float] | None:
    return None if limits is None else [limits.low, limits.high]


def claim_lines(claim: Claim) -> tuple[str, ...]:
    """Return which labels are certified, by what test, and what weakens it.

    Empty for a claim on all labels: the verdict says it all.
    """
    if claim.kind == "all":
        return ()
    names = ", ".join(
        f"{one.name} (p {p_value(one.p_holm)})" for one in claim.certified
    )
    lines = (
        f"claim on a subset: {claim.verdict.value}",
        f"certified: {len(claim.certified)} of {len(claim.labels)} labels"
        + (f": {names}" if names else ""),
        f"a label is certified when its gate passes and the exact one-sided p-value of "
        f"its accuracy, Holm-adjusted over {len(claim.labels)} labels, is at most "
        f"{claim.alpha:g}",
        claim.note,
    )
    return tuple(line for line in lines if line)


def claim_data(claim: Claim) -> dict[str, Any]:
    """Return `claim` as JSON data."""
    return {
        "kind": claim.kind,
        "alpha": claim.alpha,
        "verdict": claim.verdict.value,
        "labels": [one._asdict() for one in claim.labels],
        "note": claim.note,
    }
