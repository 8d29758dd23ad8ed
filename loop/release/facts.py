"""The content of ``release.json``, gathered from everything that was measured."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version

from pydantic import ValidationError

from loop.core.clock import format_time
from loop.core.errors import DataError
from loop.core.ledger import Actor, read_ledger
from loop.core.paths import Workspace
from loop.evaluate.tried import Selection, correct_optimism
from loop.prompts.catalog import find_parent
from loop.release.candidate import Candidate, FreezeRequest
from loop.release.change import Compared, change_facts
from loop.release.form import (
    DRAWN_FORMAT,
    FACTS,
    FORMAT,
    ClaimFacts,
    FrozenFacts,
    HeadFacts,
    ReleasedFacts,
    ReleaseFacts,
    SeparationFacts,
    SupersededFacts,
    ToolFacts,
)
from loop.release.measured import evaluation_facts
from loop.release.opened import Holdout, opening_facts
from loop.release.provenance import (
    ceiling_facts,
    cohort_facts,
    compute_facts,
    history_facts,
    protocol_facts,
    reading_facts,
    selection_facts,
)
from loop.release.released import Released, release_name
from loop.release.separation import Separation
from loop.run.store import open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseEvidence:
    """What a release rests on."""

    request: FreezeRequest
    candidate: Candidate
    compared: Compared
    """The candidate beside the release in use, or its parent."""

    claim: ClaimFacts
    holdout: Holdout | None
    """None for a release on development data only."""

    separation: Separation
    objections: tuple[str, ...]
    """What an override answers; empty when nothing stood against it."""


def release_facts(
    workspace: Workspace, evidence: ReleaseEvidence, actor: Actor, time: datetime
) -> ReleaseFacts:
    """Return the content of ``release.json``: numbers, digests and words, no case.

    Raises
    ------
    DataError
        Something the release rests on is no longer as it was measured.
    LedgerError
        The ledger is broken.
    """
    try:
        return _gather(workspace, evidence, actor, time)
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(map(str, one['loc']))}: {one['msg']}"
            for one in error.errors(include_input=False, include_url=False)[:5]
        )
        raise DataError(
            f"{FACTS} of the release cannot be written: {wrong}. Nothing was released."
        ) from error


def _gather(
    workspace: Workspace, evidence: ReleaseEvidence, actor: Actor, time: datetime
) -> ReleaseFacts:
    candidate = evidence.candidate
    holdout = evidence.holdout.result if evidence.holdout else None
    dev = candidate.evaluation
    head = read_ledger(workspace.ledger)[-1]
    evaluations = [
        evaluation_facts(dev),
        *([holdout.evaluation] if holdout else []),
    ]
    return ReleaseFacts(
        format=DRAWN_FORMAT if any(one.draws > 1 for one in evaluations) else FORMAT,
        release=_release(workspace, candidate),
        frozen=_frozen(evidence, actor, time),
        supersedes=_supersedes(evidence.compared.base.release),
        engine=candidate.engine,
        protocol=protocol_facts(dev),
        cohorts=[
            cohort_facts(workspace, dev.cohort),
            *([holdout.cohort] if holdout else []),
        ],
        evaluations=evaluations,
        claim=evidence.claim,
        selection=selection_facts(_select(workspace, candidate)),
        ceiling=ceiling_facts(workspace, dev),
        openings=opening_facts(workspace, evidence.request.holdout) if holdout else [],
        development_only=holdout is None,
        separation=SeparationFacts(
            checked=list(evidence.separation.checked),
            remarks=list(evidence.separation.remarks),
        ),
        change=change_facts(candidate.version, evidence.compared),
        history=history_facts(workspace, candidate.version.name, dev.cohort.name),
        reading=reading_facts(workspace, dev.cohort),
        compute=compute_facts(candidate.manifest),
        ledger=HeadFacts(seq=head.seq, head=head.hash),
        tool=ToolFacts(ranloop=_own_version()),
    )


def _release(workspace: Workspace, candidate: Candidate) -> ReleasedFacts:
    made = candidate.version
    parent = find_parent(workspace, made)
    return ReleasedFacts(
        name=release_name(made.ref),
        prompt=made.name,
        version=made.number,
        ref=made.ref,
        digest=made.digest,
        parent=made.parent,
        parent_ref=parent.ref if parent else "",
        author=made.author,
        time=made.time,
        why=made.why,
        contract=candidate.contract,
        plan=made.plan,
        labels=list(made.labels),
        languages=[candidate.evaluation.cohort.language],
    )


def _frozen(evidence: ReleaseEvidence, actor: Actor, time: datetime) -> FrozenFacts:
    override = ""
    if evidence.objections:
        override = evidence.request.override.strip()
    return FrozenFacts(
        time=format_time(time),
        actor=actor.name,
        role=actor.role,
        meaning=evidence.request.meaning,
        why=evidence.request.why.strip(),
        objections=list(evidence.objections),
        override=override,
    )


def _supersedes(release: Released | None) -> SupersededFacts | None:
    if release is None:
        return None
    return SupersededFacts(
        name=release.name, statement_sha256=release.statement, ref=release.ref
    )


def _select(workspace: Workspace, candidate: Candidate) -> Selection:
    """Correct the dev score for the versions tried on its cohort."""
    evaluation = candidate.evaluation
    with open_store(workspace) as store:
        return correct_optimism(
            workspace,
            store,
            evaluation.run.run_id,
            reference=evaluation.cohort.reference,
        )


def _own_version() -> str:
    try:
        return version("ranloop")
    except PackageNotFoundError:
        return "unknown"
