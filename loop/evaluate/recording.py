"""What the ledger keeps of an evaluation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Unpack

import numpy as np

from loop.core.digests import canonical_json, digest_json
from loop.core.errors import DataError, StoreError
from loop.core.ledger import Actor, Event, LedgerEntry, append_event, read_ledger
from loop.core.paths import WorkspacePaths
from loop.evaluate.align import (
    count_uncertain,
    decided_reference,
    in_order,
    read_codes,
)
from loop.evaluate.measure import (
    comparable_labels,
    measure_f1,
    resample_draws,
    resampling_units,
)
from loop.evaluate.protocol import read_protocol, register_protocol
from loop.evaluate.results import (
    Evaluation,
    Exclusions,
    Method,
    certify_evaluation,
)
from loop.evaluate.score_history import VersionScore
from loop.labels.cohort import read_cohort
from loop.labels.reference import read_reference
from loop.labels.taxonomy import read_taxonomy, taxonomy_digest
from loop.run.store import Store, open_store, read_values
from loop.stats.confusion import Confusion
from loop.stats.resampling import Bootstrap, DrawResampling, Resampling

_ROUNDING = 0.5e-4 + 1e-9
"""Largest difference between a score and its four decimals in the ledger."""


def with_intervals(
    workspace: WorkspacePaths,
    store: Store,
    scores: Sequence[VersionScore],
    **resampling: Unpack[Resampling],
) -> tuple[VersionScore, ...]:
    """Return `scores` with the interval of macro-F1 that an evaluation gives.

    That is for comparable scores whose runs are in the store and whose cohort and
    reference are as they were. The score itself has all its digits there: four of the
    ledger's, rounded again, may end otherwise than in an evaluation.

    Parameters
    ----------
    **resampling
        As for `loop.evaluate.measure.measure_f1`; by default as in an evaluation.

    Raises
    ------
    LedgerError
        The ledger is broken.
    """
    rows = [row for row in scores if row.run and row.comparable]
    if not rows:
        return tuple(scores)
    try:
        found = _measure(workspace, store, rows, resampling)
    except (DataError, StoreError):
        # Recorded scores are shown all the same when what they rest on is gone.
        return tuple(scores)
    return tuple(
        _filled(row, found[row.run]) if row.comparable and row.run in found else row
        for row in scores
    )


def _filled(row: VersionScore, found: Bootstrap) -> VersionScore:
    exact, recorded = found.estimate, row.macro_f1
    if exact is None or recorded is None or abs(exact - recorded) > _ROUNDING:
        return row
    return replace(row, macro_f1=exact, low=found.low, high=found.high)


def _measure(
    workspace: WorkspacePaths,
    store: Store,
    rows: Sequence[VersionScore],
    resampling: Resampling,
) -> dict[str, Bootstrap]:
    """Return run id to macro-F1 with its interval, for runs on the cohort as it is."""
    last = rows[-1]
    cohort = read_cohort(workspace, last.cohort)
    standard = read_reference(workspace, cohort.name, last.reference)
    if standard.digest != last.reference_digest:
        return {}
    taxonomy = read_taxonomy(workspace.labels)
    patients = {case.case_id: case.patient for case in cohort.cases}
    protocol = read_protocol(workspace)
    found = {}
    for row in rows:
        draws = store.find_runs(finished=True, ids=row.runs or [row.run])
        if len(draws) < len(row.runs or [row.run]) or any(
            run.spec.cohort_digest != cohort.digest for run in draws
        ):
            continue
        draws.sort(key=lambda run: run.spec.draw)
        tables = [read_codes(store, run, taxonomy) for run in draws]
        cases = tables[0].case_ids
        units = resampling_units([patients.get(one, "") for one in cases]).units
        options: DrawResampling = {
            **resample_draws(protocol, Method(), units, len(draws)),
            **resampling,
        }
        truth = np.tile(decided_reference(standard, cases, taxonomy), (len(draws), 1))
        answers = np.concatenate([in_order(table, cases) for table in tables])
        counted = count_uncertain(answers, truth, row.policy)
        kept = comparable_labels(taxonomy.ids, row.without)
        found[row.run] = measure_f1(truth[:, kept], counted[:, kept], **options)
    return found


def record_evaluation(
    workspace: WorkspacePaths, evaluation: Evaluation, actor: Actor
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
        ("evaluated", {**_scores(evaluation), **_basis(workspace, evaluation)}),
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
        **_served(evaluation),
    }


def _basis(workspace: WorkspacePaths, evaluation: Evaluation) -> dict[str, Any]:
    """Return digests of what the scores rest on besides prompt, cohort and protocol.

    Without the run in the store there is none of its answers.
    """
    identity = evaluation.run.manifest.get("engine_identity")
    cues = identity.get("cues") if isinstance(identity, Mapping) else None
    with open_store(workspace) as store:
        answers = digest_answers(store, evaluation.runs or (evaluation.run.run_id,))
    found = {
        "taxonomy_digest": taxonomy_digest(workspace.labels),
        "cues": dict(cues) if isinstance(cues, Mapping) else None,
        "answers_digest": answers,
    }
    return {name: value for name, value in found.items() if value is not None}


BASIS = frozenset({"taxonomy_digest", "cues", "answers_digest"})
"""Fields of an ``evaluated`` entry that earlier versions did not write."""


def digest_answers(store: Store, runs: Sequence[str]) -> str | None:
    """Sha256 over case, outcome and values of every answer of `runs`, in their order.

    None where a run is not in the store.

    Raises
    ------
    StoreError
        A row was changed by something other than ranloop.
    """
    known = {one.id: one for one in store.find_runs(finished=True, ids=runs)}
    if len(known) < len(set(runs)):
        return None
    digest = hashlib.sha256()
    for run in runs:
        for one in read_values(store, known[run]):
            answer = [run, one.item_id, one.status.value, dict(one.values)]
            digest.update(canonical_json(answer) + b"\n")
    return digest.hexdigest()


def _served(evaluation: Evaluation) -> dict[str, str]:
    """Return the digest of a served model's identity: more than its name says."""
    identity = evaluation.run.manifest.get("engine_identity")
    if not isinstance(identity, Mapping) or "model" not in identity:
        return {}
    return {"engine_digest": digest_json(dict(identity))}


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
        **({"runs": list(evaluation.runs)} if evaluation.runs else {}),
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
    """Whether an entry says the same, as far as its version of ranloop said it."""
    return any(
        entry.action == action
        and entry.payload
        == {
            name: value
            for name, value in payload.items()
            if name in entry.payload or name not in BASIS
        }
        for entry in entries
    )


def _decimal(score: float | None) -> str:
    """Four decimals as text: a float is not written the same everywhere."""
    return "not estimable" if score is None else f"{score:.4f}"
