"""A candidate for release: measured on a dev cohort, then once on a holdout.

What objects is said before a holdout is opened; of that, only counts come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from loop.core.clock import Clock
from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.ledger import Actor, LedgerEntry, read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.yaml_files import check_model
from loop.evaluate.evaluation import evaluate_run
from loop.evaluate.gates import GateVerdict, describe_verdicts
from loop.evaluate.protocol import (
    find_registration,
    protocol_digest,
    read_protocol,
    register_protocol,
)
from loop.evaluate.recording import record_evaluation
from loop.evaluate.results import Claim, Evaluation, certify_evaluation
from loop.labels.cohort import (
    CohortRole,
    read_cohort,
    read_record,
    require_inputs,
)
from loop.labels.sealing import Opening
from loop.prompts.catalog import read_version
from loop.prompts.stages import given_texts
from loop.prompts.version import PromptVersion
from loop.release.facts import (
    ClaimedFacts,
    ClaimFacts,
    EngineFacts,
    EvaluationFacts,
    FrozenCohort,
    ListedOpening,
    ReleaseModel,
)
from loop.release.provenance import cohort_facts, evaluation_facts
from loop.release.vault import (
    Claimant,
    find_openings,
    keep_result,
    open_holdout,
    read_result,
)
from loop.run.asking import EngineOptions, HeldEngine, has_chance
from loop.run.canary import require_same_model
from loop.run.manifest import read_manifest
from loop.run.spec import RunSpec, undrawn
from loop.run.store import Store, open_store
from loop.run.task import Task, Watch, prepare_run, run_draws

Watching = Callable[[Task], Watch | None]
"""A run that is to be made to what shows its progress; None for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeRequest:
    """What somebody wants to release, and why."""

    prompt: str
    """Reference of a committed version, for example ``"extractor@v7"``."""

    cohort: str
    """Dev cohort it is measured on first."""

    why: str
    holdout: str = ""
    """Holdout that is opened for it; empty: the release rests on development data."""

    engine: str = "rules"
    asking: EngineOptions | None = None
    ensembles: tuple[str, ...] = ()
    """Ensembles that are released with a judge: it is a member of each."""

    meaning: str = "approval"
    """What the actor's act means: authorship, review, approval or responsibility."""

    override: str = ""
    """Why it is released although something objects; empty to be stopped then."""

    def __post_init__(self) -> None:
        if not self.why.strip():
            raise ValueError("a release needs a reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredVersion:
    """What is known of every candidate that was measured on a dev cohort."""

    version: PromptVersion
    protocol_digest: str
    """Of the protocol that it was held against."""

    objections: tuple[str, ...]
    """Why it should not be released, as sentences; empty when nothing objects."""

    manifest: Mapping[str, Any]
    """Of the run on the dev cohort; of its first draw."""

    runs: tuple[str, ...]
    """Those on the dev cohort, by the number of the draw from 0."""

    @property
    def engine(self) -> EngineFacts:
        """The engine as a release names it, with the digest of all that it does."""
        return engine_facts(self.manifest)

    @property
    def contract(self) -> str:
        """Output contract and version of its parser."""
        return str(self.manifest["spec"]["contract"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate(MeasuredVersion):
    """An extractor as it was measured on the dev cohort."""

    evaluation: Evaluation
    """On the dev cohort."""

    claim: Claim
    """What the dev cohort would let it claim."""


def engine_facts(manifest: Mapping[str, Any]) -> EngineFacts:
    """Return the engine of a run's manifest: name, parameters, identity and digest."""
    spec = manifest["spec"]
    found = {
        "name": str(spec["engine"]),
        "parameters": dict(spec["parameters"]),
        "identity": dict(manifest["engine_identity"]),
    }
    return EngineFacts.model_validate({**found, "digest": digest_json(found)})


def read_candidate(
    workspace: WorkspacePaths,
    request: FreezeRequest,
    engine: HeldEngine,
    actor: Actor,
    watching: Watching,
) -> Candidate:
    """Return the version that `request` names, measured on its dev cohort.

    Runs of the same question that are in the store are taken; else it is asked now. The
    evaluation is over all its draws, and goes into the ledger, once.

    Raises
    ------
    DataError
        The version is a draft or was edited, or the cohort is not a dev cohort.
    EngineError
        The engine cannot answer.
    """
    version = read_committed(workspace, request)
    register_protocol(workspace, actor)
    late = is_registered_late(workspace, version, request.cohort)
    runs = ask_draws(workspace, version.ref, request.cohort, engine, actor, watching)
    evaluation = evaluate_run(workspace, runs[0])
    evaluation = record_evaluation(workspace, evaluation, actor)
    claim = certify_evaluation(evaluation)
    late = late or evaluation.registered_late
    return Candidate(
        version=version,
        protocol_digest=evaluation.protocol_digest,
        evaluation=evaluation,
        claim=claim,
        objections=(
            *_gate_objections(evaluation, claim),
            *order_objections(version, request.cohort, actor, late=late),
        ),
        manifest=read_manifest(workspace, runs[0]),
        runs=runs,
    )


def read_committed(workspace: WorkspacePaths, request: FreezeRequest) -> PromptVersion:
    """Return the version that is to be released, if it may be, on a dev cohort.

    Raises
    ------
    DataError
        The version is a draft or was edited, or the cohort is not a dev cohort, or has
        not what the version reads.
    """
    version = read_version(workspace, request.prompt)
    if version.draft:
        raise DataError(
            f"{version.ref} is a draft, and only a committed version can be released. "
            "Commit it with `ranloop draft commit` or `ranloop revise`."
        )
    cohort = read_cohort(workspace, request.cohort)
    if cohort.role is not CohortRole.DEV:
        raise DataError(
            f"cohort {cohort.name} has the role {cohort.role}. Name the dev cohort "
            "with --cohort, and a holdout with --holdout."
        )
    require_inputs(cohort, version.ref, given_texts(version.inputs))
    return version


def ask_draws(
    workspace: WorkspacePaths,
    prompt: str,
    cohort: str | Opening,
    engine: HeldEngine,
    actor: Actor,
    watching: Watching,
) -> tuple[str, ...]:
    """Return the ids of whole runs of `prompt` over `cohort` by the engine as it is.

    One for an engine that repeats itself; as many draws as the protocol says, from 0,
    of one with chance in it. Those in the store are taken if the engine has the same
    identity now, and is still the model that gave them; the others are asked, and only
    the cases the store has no answers to.

    Raises
    ------
    DataError
        The version or the cohort cannot be used.
    EngineError
        The engine is not available, or another model answers under its name.
    """
    task = prepare_run(workspace, prompt, cohort, engine=engine)
    draws = range(read_protocol(workspace).draws if has_chance(engine) else 1)
    with open_store(workspace) as store:
        if has_chance(engine) and isinstance(cohort, str):
            version = read_version(workspace, prompt)
            require_same_model(workspace, store, version, cohort, engine, draws, actor)
        found = _find_draws(workspace, store, task, engine)
    missing = [draw for draw in draws if draw not in found]
    if missing:
        runs = run_draws(
            workspace, task, missing, watch=watching(task), actor=actor.name
        )
        found |= {draw: run.run_id for draw, run in zip(missing, runs, strict=True)}
    return tuple(found[draw] for draw in draws)


def _find_draws(
    workspace: WorkspacePaths, store: Store, task: Task, engine: HeldEngine
) -> dict[int, str]:
    """Return number of the draw to run id, of what was asked already; newest first."""
    identity, found = dict(engine.identity()), {}
    for run in store.find_runs(finished=True):
        draw = run.spec.draw
        if draw not in found and _asked(run.spec) == _asked(task.spec):
            manifest = read_manifest(workspace, run.id)
            if manifest.get("engine_identity") == identity:
                found[draw] = run.id
    return found


def _asked(spec: RunSpec) -> RunSpec:
    """Return what a run asks, whatever its draw; the labels do not matter."""
    return replace(
        spec,
        draw=0,
        parameters=undrawn(spec),
        reference=None,
        reference_digest=None,
        protocol_digest=None,
    )


def is_registered_late(
    workspace: WorkspacePaths, version: PromptVersion, cohort: str
) -> bool:
    """Whether the version was measured on the cohort before its claim was fixed."""
    registered = find_registration(workspace, protocol_digest(workspace))
    first = next(
        (
            entry
            for entry in read_ledger(workspace.ledger)
            if _is_measured(entry, version.digest, cohort)
        ),
        None,
    )
    if registered is None or first is None:
        return False
    return first.seq < registered.seq


def _is_measured(entry: LedgerEntry, digest: str, cohort: str) -> bool:
    payload = entry.payload
    return (
        entry.action in ("evaluated", "judge_evaluated")
        and payload.get("prompt_digest") == digest
        and payload.get("cohort") == cohort
    )


def _gate_objections(evaluation: Evaluation, claim: Claim) -> Iterator[str]:
    if claim.verdict is not GateVerdict.PASS:
        tally = describe_verdicts(one.gate.verdict for one in evaluation.labels)
        yield (
            f"the gate on {evaluation.cohort.name} says {claim.verdict.value} ({tally})"
        )


def order_objections(
    version: PromptVersion, cohort: str, actor: Actor, *, late: bool
) -> Iterator[str]:
    """Yield what is wrong with the order of things, and with who approves.

    Parameters
    ----------
    late
        Whether the claim was registered after the version was measured on the cohort.
    """
    if late:
        yield (
            f"the protocol was registered after {version.ref} was measured on "
            f"{cohort}: the claim was not fixed before it was known"
        )
    if actor.name == version.author:
        yield f"{actor.name} wrote {version.ref} and may not approve it alone"


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


Shown = TypeVar("Shown", bound=ReleaseModel)
"""What an opening showed, of an extractor or of a judge."""


class Holdout(NamedTuple, Generic[Shown]):
    """What the holdout said of a candidate."""

    result: Shown
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


def claimant_of(
    workspace: WorkspacePaths, candidate: MeasuredVersion, holdout: str
) -> Claimant:
    """Return everything that the candidate's result on `holdout` depends on.

    Raises
    ------
    DataError
        The holdout has no reference labels yet, or of pairs no ratings.
    """
    cohort = read_cohort(workspace, holdout)
    reference = read_record(workspace, holdout).newest_digest
    if reference is None and cohort.holds_pairs:
        raise DataError(
            f"holdout {holdout} has no experts' ratings yet. Add them with `ranloop "
            f"cohort ratings {holdout} --ratings FILE --errors FILE`."
        )
    if reference is None:
        raise DataError(
            f"holdout {holdout} has no reference labels yet. Add readers' votes with "
            f"`ranloop cohort votes {holdout} FILE`, or import it with label columns."
        )
    return Claimant(
        prompt=candidate.version.ref,
        prompt_digest=candidate.version.digest,
        engine_digest=candidate.engine.digest,
        protocol_digest=candidate.protocol_digest,
        cohort=holdout,
        cohort_digest=cohort.digest,
        reference_digest=reference,
    )


class Showing(NamedTuple, Generic[Shown]):
    """How an opening is measured."""

    form: type[Shown]
    measure: Callable[[str, Opening], Shown]
    """From a run over the holdout to what it showed; records the evaluation."""


def open_for(
    workspace: WorkspacePaths,
    candidate: Candidate,
    request: FreezeRequest,
    engine: HeldEngine,
    how: How,
) -> Holdout[HoldoutResult]:
    """Return what the holdout says of an extractor; see `open_once`."""

    def measure(run: str, opening: Opening) -> HoldoutResult:
        evaluation = evaluate_run(workspace, run, opening=opening)
        evaluation = record_evaluation(workspace, evaluation, how.actor)
        return HoldoutResult(
            evaluation=evaluation_facts(evaluation),
            claim=claim_facts(certify_evaluation(evaluation), request.holdout),
            cohort=cohort_facts(workspace, evaluation.cohort),
        )

    showing = Showing(HoldoutResult, measure)
    return open_once(workspace, candidate, request, engine, how, showing)


def open_once(
    workspace: WorkspacePaths,
    candidate: MeasuredVersion,
    request: FreezeRequest,
    engine: HeldEngine,
    how: How,
    showing: Showing[Shown],
) -> Holdout[Shown]:
    """Return what the holdout says of `candidate`, opening it if it was not yet.

    The opening is in the ledger before a label or a rating is read. Killed half-way,
    the next call goes on with the same opening; once over, it returns the result that
    was kept.

    Raises
    ------
    SealedError
        The budget is used up.
    DataError
        The holdout cannot be opened, or the engine is another than on the dev cohort.
    """
    claimant = claimant_of(workspace, candidate, request.holdout)
    kept = read_result(workspace, claimant)
    if kept is not None:
        what = f"the kept result of {request.holdout}"
        return Holdout(check_model(kept, showing.form, what), fresh=False)
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
    asked = engine_facts(read_manifest(workspace, run_id))
    if asked.digest != claimant.engine_digest:
        raise DataError(
            f"the engine changed between {request.cohort} and {request.holdout}: its "
            "identity has changed. Freeze again with one engine for both; the opening "
            "counts."
        )
    result = showing.measure(run_id, opening)
    keep_result(workspace, opening, result.model_dump(), how.actor, now=how.now)
    return Holdout(result, fresh=True)


def opening_facts(workspace: WorkspacePaths, holdout: str) -> list[ListedOpening]:
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
