"""What the ledger keeps of an evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from loop.core.digests import digest_json
from loop.core.ledger import Actor, Event, LedgerEntry, append_event, read_ledger
from loop.core.paths import Workspace
from loop.evaluate.certify import certify_evaluation
from loop.evaluate.protocol import register_protocol
from loop.evaluate.results import Evaluation, Exclusions
from loop.stats.confusion import Confusion


def record_evaluation(
    workspace: Workspace, evaluation: Evaluation, actor: Actor
) -> Evaluation:
    """Write the evaluation and its gate into the ledger, once.

    Return it with the time its protocol was registered.

    The same run scored again on the same reference under the same protocol adds
    nothing.

    Raises
    ------
    LedgerError
        The ledger's chain is broken.
    WriteError
        The ledger cannot be written.
    """
    protocol = register_protocol(workspace, actor)
    entries = read_ledger(workspace.ledger)
    for action, payload in (
        ("evaluated", _scores(evaluation)),
        ("gate_decided", _verdicts(evaluation)),
    ):
        if not _is_recorded(entries, action, payload):
            event = Event(
                action=action,
                subject=evaluation.run.prompt,
                reason=f"run {evaluation.run.run_id} on {evaluation.cohort.name}",
                payload=payload,
            )
            append_event(workspace.ledger, event, actor)
    return replace(evaluation, registered=protocol.time)


def _scores(evaluation: Evaluation) -> dict[str, Any]:
    return {
        **_identity(evaluation),
        "macro_f1": _decimal(evaluation.macro.score.estimate),
        "micro_f1": _decimal(evaluation.micro.score.estimate),
        "signature": evaluation.signature,
    }


def _verdicts(evaluation: Evaluation) -> dict[str, Any]:
    return {
        **_claimed(evaluation),
        **_identity(evaluation),
        "rule": evaluation.protocol.rule,
        "verdict": evaluation.verdict.value,
        "labels": {
            result.label: result.gate.verdict.value for result in evaluation.labels
        },
    }


def _claimed(evaluation: Evaluation) -> dict[str, Any]:
    """Return which labels are certified, where the claim is not on all of them."""
    if evaluation.protocol.claim == "all":
        return {}
    claim = certify_evaluation(evaluation)
    certified = [one.label for one in claim.certified]
    return {"claim": {"verdict": claim.verdict.value, "certified": certified}}


def _identity(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "run": evaluation.run.run_id,
        "prompt_digest": evaluation.run.prompt_digest,
        "cohort": evaluation.cohort.name,
        "reference": evaluation.cohort.reference,
        "reference_digest": evaluation.cohort.reference_digest,
        "protocol_digest": evaluation.protocol_digest,
        "cases": evaluation.cases,
        "not_run": evaluation.not_run,
        "counts_digest": counts_digest(evaluation),
    }


def counts_digest(evaluation: Evaluation) -> str:
    """Sha256 over the counts of every label: scored cases and exclusions.

    Two evaluations with this digest rest on the same numbers.
    """
    return digest_counts(
        (one.label, one.confusion, one.excluded) for one in evaluation.labels
    )


def digest_counts(rows: Iterable[tuple[str, Confusion, Exclusions]]) -> str:
    """Sha256 over label, counts and exclusions of each of `rows`, in any order."""
    return digest_json(
        {
            label: {**counts._asdict(), **asdict(excluded)}
            for label, counts, excluded in rows
        }
    )


def _is_recorded(
    entries: tuple[LedgerEntry, ...], action: str, payload: Mapping[str, Any]
) -> bool:
    return any(
        entry.action == action and dict(entry.payload) == payload for entry in entries
    )


def _decimal(score: float | None) -> str:
    """Four decimals as text: a float is not written the same everywhere."""
    return "not estimable" if score is None else f"{score:.4f}"
