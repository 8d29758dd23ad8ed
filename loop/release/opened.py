"""A candidate on the holdout: opened for it once, and only counts come back."""

from __future__ import annotations

from typing import Literal, NamedTuple

from loop.core.clock import Clock
from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.core.paths import Workspace
from loop.core.yaml_files import check_model
from loop.evaluate.evaluation import evaluate_run
from loop.evaluate.recording import record_evaluation
from loop.evaluate.results import Claim, certify_evaluation
from loop.labels.cohort import read_cohort, read_record
from loop.release.candidate import (
    Candidate,
    FreezeRequest,
    Watching,
    ask_draws,
    engine_facts,
)
from loop.release.form import (
    ClaimedFacts,
    ClaimFacts,
    EvaluationFacts,
    FrozenCohort,
    ListedOpening,
    ReleaseModel,
)
from loop.release.measured import evaluation_facts
from loop.release.provenance import cohort_facts
from loop.release.vault import (
    Claimant,
    find_openings,
    keep_result,
    open_holdout,
    read_result,
)
from loop.run.asking import HeldEngine
from loop.run.manifest import read_manifest


class How(NamedTuple):
    """Who opens, when, and what shows how far the run is."""

    actor: Actor
    now: Clock
    watching: Watching


class HoldoutResult(ReleaseModel):
    """What an opening showed, as the vault keeps it: aggregates, never a case."""

    evaluation: EvaluationFacts
    claim: ClaimFacts
    cohort: FrozenCohort


class Holdout(NamedTuple):
    """What the holdout said of a candidate."""

    result: HoldoutResult
    fresh: bool
    """Whether nobody knew it before this call."""


def claim_facts(claim: Claim, cohort: str) -> ClaimFacts:
    """Return a claim as a release carries it."""
    kind: Literal["all", "subset"] = "all" if claim.kind == "all" else "subset"
    return ClaimFacts(
        kind=kind,
        alpha=claim.alpha,
        verdict=claim.verdict,
        cohort=cohort,
        labels=[
            ClaimedFacts(
                label=one.label, p=one.p, p_holm=one.p_holm, certified=one.certified
            )
            for one in claim.labels
        ],
    )


def claimant_of(workspace: Workspace, candidate: Candidate, holdout: str) -> Claimant:
    """Return everything that the candidate's result on `holdout` depends on.

    Raises
    ------
    DataError
        The holdout has no reference labels yet.
    """
    cohort = read_cohort(workspace, holdout)
    reference = read_record(workspace, holdout).newest_digest
    if reference is None:
        raise DataError(
            f"holdout {holdout} has no reference labels yet. Add readers' votes with "
            f"`ranloop cohort votes {holdout} FILE`, or import it with label columns."
        )
    return Claimant(
        prompt=candidate.version.ref,
        prompt_digest=candidate.version.digest,
        engine_digest=candidate.engine.digest,
        protocol_digest=candidate.evaluation.protocol_digest,
        cohort=holdout,
        cohort_digest=cohort.digest,
        reference_digest=reference,
    )


def open_for(
    workspace: Workspace,
    candidate: Candidate,
    request: FreezeRequest,
    engine: HeldEngine,
    how: How,
) -> Holdout:
    """Return what the holdout says of `candidate`, opening it if it was not yet.

    The opening is in the ledger before a label is read. Killed half-way, the next call
    goes on with the same opening; once over, it returns the result that was kept.

    Raises
    ------
    SealedError
        The budget is used up.
    DataError
        The holdout cannot be opened, or the engine is another than on the dev cohort.
    """
    claimant = claimant_of(workspace, candidate, request.holdout)
    kept = read_result(workspace, claimant)
    if kept is None:
        opening = open_holdout(
            workspace,
            claimant,
            how.actor,
            request.why,
            seen=bool(request.override.strip()),
            now=how.now,
        )
        ref = candidate.version.ref
        run_id, *_ = ask_draws(workspace, ref, opening, engine, how.actor, how.watching)
        evaluation = evaluate_run(workspace, run_id, opening=opening)
        asked = engine_facts(read_manifest(workspace, run_id))
        if asked.digest != claimant.engine_digest:
            raise DataError(
                f"the engine changed between {request.cohort} and {request.holdout}: "
                "its identity has changed. Freeze again with one engine for both; "
                "the opening counts."
            )
        evaluation = record_evaluation(workspace, evaluation, how.actor)
        result = HoldoutResult(
            evaluation=evaluation_facts(evaluation),
            claim=claim_facts(certify_evaluation(evaluation), request.holdout),
            cohort=cohort_facts(workspace, evaluation.cohort),
        )
        keep_result(workspace, opening, result.model_dump(), how.actor, now=how.now)
        return Holdout(result, fresh=True)
    what = f"the kept result of {request.holdout}"
    return Holdout(check_model(kept, HoldoutResult, what), fresh=False)


def opening_facts(workspace: Workspace, holdout: str) -> list[ListedOpening]:
    """Return every opening of a holdout, as printed on every later document."""
    return [
        ListedOpening(
            number=one.number,
            budget=one.budget,
            time=one.time,
            actor=one.actor,
            why=one.why,
            prompt=one.prompt,
        )
        for one in find_openings(workspace, holdout)
    ]
