"""One command from a committed version to a signed release, or to the reason why not.

The order is the promise: the claim is registered, the dev cohort is measured, whatever
objects is said, only then is the holdout opened, once; the folder is written as a whole
and the ledger has the last word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import NamedTuple, TypedDict

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import ValidationError

from loop.core.clock import Clock, format_time, utc_now
from loop.core.digests import digest_json
from loop.core.errors import ConflictError, DataError
from loop.core.heads import find_rollback
from loop.core.ledger import Actor, LedgerEntry, read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.records import PromptTask
from loop.core.safe_text import quoted
from loop.core.yaml_files import field_name
from loop.engines.base import DEFAULT_THINKING
from loop.evaluate.gates import GateVerdict, describe_verdicts
from loop.evaluate.tried import Selection, correct_optimism
from loop.judge.ensemble_versions import (
    EnsembleVersion,
    ensemble_files,
    judge_pins,
    read_ensemble,
)
from loop.judge.rated_rows import RatedRow
from loop.labels.cohort import Cohort, CohortRole, read_cohort, require_inputs
from loop.prompts.catalog import FILES, find_parent, read_version, version_folder
from loop.prompts.stages import given_texts
from loop.prompts.version import PromptVersion
from loop.release.candidate import (
    Candidate,
    FreezeRequest,
    Holdout,
    HoldoutResult,
    How,
    MeasuredVersion,
    Watching,
    claim_facts,
    open_for,
    opening_facts,
    read_candidate,
)
from loop.release.change import Base, Compared, change_facts, compare_with_base
from loop.release.facts import (
    DRAWN_FORMAT,
    FACTS,
    FORMAT,
    ClaimFacts,
    ComputeFacts,
    EngineFacts,
    FrozenFacts,
    HeadFacts,
    ListedOpening,
    ReleasedFacts,
    ReleaseFacts,
    SeparationFacts,
    SupersededFacts,
    ToolFacts,
)
from loop.release.folder import ROWS, ensemble_names
from loop.release.judge_candidate import (
    JudgeCandidate,
    JudgeHoldoutResult,
    holdout_objections,
    open_for_judge,
    read_judge_candidate,
)
from loop.release.judge_consistency import rows_table
from loop.release.judge_facts import (
    JUDGE_FORMAT,
    JudgeClaimFacts,
    JudgeReleaseFacts,
    ensemble_facts,
    shots_facts,
)
from loop.release.judge_provenance import (
    categories_facts,
    judge_change_facts,
    judge_evaluation_facts,
    judge_history_facts,
    judge_protocol_facts,
    rated_cohort_facts,
    read_facts,
    score_facts,
)
from loop.release.keys import PublicKey
from loop.release.load import verify_release
from loop.release.provenance import (
    ceiling_facts,
    cohort_facts,
    compute_facts,
    evaluation_facts,
    history_facts,
    protocol_facts,
    reading_facts,
    selection_facts,
)
from loop.release.release_json import (
    AnyFacts,
    format_facts,
    parse_facts,
    predicate_of,
)
from loop.release.released import (
    APPROVERS,
    Released,
    Step,
    find_release,
    find_unrecorded,
    freezing,
    list_releases,
    record_release,
    release_folder,
    release_name,
    unwatched,
    write_release,
)
from loop.release.rendering import render_files
from loop.release.separation import Separation, find_earlier_looks, measure_separation
from loop.release.statement import ENVELOPE, Approval, sign_release
from loop.run.asking import HeldEngine, hold_engine
from loop.run.store import open_store
from loop.run.task_fields import task_of

Render = Callable[[AnyFacts, Sequence[Approval]], Mapping[str, bytes]]
"""Facts of a release and whoever signs it to its documents, file name to bytes."""

MEANINGS = ("authorship", "review", "approval", "responsibility")


@dataclass(frozen=True, slots=True, kw_only=True)
class Signing:
    """Somebody who signs, and what it means."""

    key: PublicKey
    private: Ed25519PrivateKey
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """What a freeze came to."""

    name: str
    """For example ``"extractor-v7"``."""

    folder: Path | None
    """None where it was stopped: then nothing was released."""

    objections: tuple[str, ...]
    """What stood against it; answered by an override where there is a folder."""

    claim: ClaimFacts | JudgeClaimFacts
    """The claim that decided: on the holdout where one was opened, else on the dev
    cohort."""

    facts: AnyFacts | None = None
    entry: LedgerEntry | None = None
    completed: bool = False
    """Whether a freeze that was killed before was only brought to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeContext:
    """Where and how a freeze is done."""

    workspace: WorkspacePaths
    actor: Actor
    signing: Sequence[Signing]
    render: Render
    now: Clock = utc_now
    reached: Step = unwatched
    watching: Watching = lambda task: None


class MeasuredExtractor(NamedTuple):
    """An extractor on the dev cohort and, once it was opened, on the holdout."""

    candidate: Candidate
    compared: Compared
    """Beside the release in use, or its parent."""

    holdout: Holdout[HoldoutResult] | None = None
    """None for a release on development data only."""

    @property
    def base(self) -> Base:
        """The release in use, or the parent."""
        return self.compared.base

    @property
    def claim(self) -> ClaimFacts:
        """What the dev cohort would let it claim."""
        cohort = self.candidate.evaluation.cohort.name
        return claim_facts(self.candidate.claim, cohort)

    @property
    def objections(self) -> tuple[str, ...]:
        """What the dev cohort shows against it."""
        return (*self.candidate.objections, *self.compared.losses)


class MeasuredJudge(NamedTuple):
    """A judge on the dev cohort and, once it was opened, on the holdout."""

    candidate: JudgeCandidate
    holdout: Holdout[JudgeHoldoutResult] | None = None
    """None for a release on development data only."""

    @property
    def base(self) -> Base:
        """The release in use, or the parent."""
        return self.candidate.base

    @property
    def claim(self) -> JudgeClaimFacts:
        """What the dev cohort would let it claim."""
        return self.candidate.claim

    @property
    def objections(self) -> tuple[str, ...]:
        """What the dev cohort shows against it."""
        return self.candidate.objections


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseEvidence:
    """What a release rests on."""

    request: FreezeRequest
    measured: MeasuredExtractor | MeasuredJudge
    separation: Separation
    objections: tuple[str, ...]
    """What an override answers; empty when nothing stood against it."""

    ensembles: tuple[EnsembleVersion, ...] = ()
    """What is released with a judge."""


def freeze(desk: FreezeContext, request: FreezeRequest) -> Frozen:
    """Freeze a version for release, or say what stands against it.

    Stopped by a gate, nothing is released, and the holdout stays closed unless the
    gate was its own. The same call again, after a kill or with an override, goes on
    from there: a holdout that was opened for this candidate is not opened twice. A
    verdict of the holdout can be overridden only once it is known, by another call.

    Raises
    ------
    DataError
        The actor may not approve, nobody signs, the version is a draft or was
        released, the holdout shares text or patients with what it was made from,
        nothing is claimed of judges and the version is one, or it is not a member of
        an ensemble that is named.
    ConflictError
        Another freeze is under way.
    SealedError
        The holdout's budget is used up.
    WriteError
        The workspace cannot be written; nothing was released.
    """
    _require_approver(desk, request)
    workspace = desk.workspace
    version = read_version(workspace, request.prompt)
    name = release_name(version.ref)
    with freezing(workspace) as staging:
        unfinished = None if version.draft else find_unrecorded(workspace, name)
        if unfinished is not None:
            return _complete(desk, unfinished)
        if not version.draft:
            _refuse_released(workspace, version)
        return _freeze(desk, request, staging, name)


def _freeze(
    desk: FreezeContext, request: FreezeRequest, staging: Path, name: str
) -> Frozen:
    workspace = desk.workspace
    # What no engine is needed for comes first: asking one may take hours.
    opens = bool(request.holdout)
    separation = _require_separate(workspace, request)
    ensembles = _require_ensembles(workspace, request)
    task = task_of(read_version(workspace, request.prompt))
    with hold_engine(workspace, request.engine, request.asking, task) as engine:
        _require_asked_alike(workspace, request, ensembles, engine)
        measure = _measure_judge if task is PromptTask.JUDGE else _measure_extractor
        measured: MeasuredExtractor | MeasuredJudge = measure(desk, request, engine)
        desk.reached("measured")
        objections = (
            *measured.objections,
            *_rolled_back(workspace),
            *(find_earlier_looks(workspace, request.holdout) if opens else ()),
        )
        if objections and not request.override.strip():
            return Frozen(
                name=name, folder=None, objections=objections, claim=measured.claim
            )
        if opens:
            measured = _open(desk, request, measured, engine)
            desk.reached("opened")
    failed = _holdout_objections(measured)
    objections = (*objections, *failed)
    # Whoever overrides a verdict knows it: one that is news stops the freeze.
    news = bool(failed) and measured.holdout is not None and measured.holdout.fresh
    if news or (objections and not request.override.strip()):
        return Frozen(
            name=name,
            folder=None,
            objections=objections,
            claim=_deciding_claim(measured),
        )
    evidence = ReleaseEvidence(
        request=request,
        measured=measured,
        separation=separation,
        objections=objections,
        ensembles=ensembles,
    )
    return _release(desk, staging, evidence)


def _measure_extractor(
    desk: FreezeContext, request: FreezeRequest, engine: HeldEngine
) -> MeasuredExtractor:
    given = (engine, desk.actor, desk.watching)
    candidate = read_candidate(desk.workspace, request, *given)
    return MeasuredExtractor(
        candidate, compare_with_base(desk.workspace, candidate, *given)
    )


def _measure_judge(
    desk: FreezeContext, request: FreezeRequest, engine: HeldEngine
) -> MeasuredJudge:
    return MeasuredJudge(
        read_judge_candidate(desk.workspace, request, engine, desk.actor, desk.watching)
    )


def _open(
    desk: FreezeContext,
    request: FreezeRequest,
    measured: MeasuredExtractor | MeasuredJudge,
    engine: HeldEngine,
) -> MeasuredExtractor | MeasuredJudge:
    """Return what was measured with what the holdout says of it."""
    how = How(desk.actor, desk.now, desk.watching)
    if isinstance(measured, MeasuredJudge):
        judge = measured.candidate
        told = open_for_judge(desk.workspace, judge, request, engine, how)
        return measured._replace(holdout=told)
    extractor = measured.candidate
    found = open_for(desk.workspace, extractor, request, engine, how)
    return measured._replace(holdout=found)


def _deciding_claim(
    measured: MeasuredExtractor | MeasuredJudge,
) -> ClaimFacts | JudgeClaimFacts:
    return measured.holdout.result.claim if measured.holdout else measured.claim


def _release(desk: FreezeContext, staging: Path, evidence: ReleaseEvidence) -> Frozen:
    """Sign and write what was decided, and give the ledger the last word."""
    workspace, version = desk.workspace, evidence.measured.candidate.version
    name = release_name(version.ref)
    facts = _release_facts(workspace, evidence, desk.actor, desk.now())
    approvals = [
        Approval(
            one.key.keyid, one.key.name, one.key.role, one.meaning, facts.frozen.time
        )
        for one in desk.signing
    ]
    files = _make_files(desk, version, facts, approvals)
    if isinstance(evidence.measured, MeasuredJudge):
        files[ROWS] = rows_table(_rows(evidence.measured))
    for one in evidence.ensembles:
        files |= zip(ensemble_names(one.ref), ensemble_files(one), strict=True)
    signers = [
        (approval, one.private)
        for approval, one in zip(approvals, desk.signing, strict=True)
    ]
    files[ENVELOPE] = sign_release(files, predicate_of(facts), signers)
    desk.reached("signed")
    folder = write_release(workspace, staging, name, files, desk.reached)
    entry = record_release(
        workspace, facts, desk.actor, now=desk.now, reached=desk.reached
    )
    return Frozen(
        name=name,
        folder=folder,
        objections=evidence.objections,
        claim=_deciding_claim(evidence.measured),
        facts=facts,
        entry=entry,
    )


def _complete(desk: FreezeContext, facts: AnyFacts) -> Frozen:
    """Record a release whose folder a kill left behind, as who froze it meant it."""
    name = facts.release.name
    frozen = facts.frozen
    if (frozen.actor, frozen.role) != (desk.actor.name, desk.actor.role):
        raise ConflictError(
            f"{name} was frozen by {frozen.actor} and not recorded, as after a "
            f"kill. Let {frozen.actor} freeze it again: that completes it."
        )
    entry = record_release(
        desk.workspace, facts, desk.actor, now=desk.now, reached=desk.reached
    )
    return Frozen(
        name=name,
        folder=release_folder(desk.workspace, name),
        objections=tuple(frozen.objections),
        claim=facts.claim,
        facts=facts,
        entry=entry,
        completed=True,
    )


def _require_approver(desk: FreezeContext, request: FreezeRequest) -> None:
    """Refuse a freeze that nobody who may approve signs."""
    actor = desk.actor
    if actor.role not in APPROVERS:
        raise DataError(
            f"a release takes an approver, and {actor.name} acts as {actor.role}. "
            "Freeze with --role approver and a key of that role (`ranloop key new`)."
        )
    for meaning in (request.meaning, *(one.meaning for one in desk.signing)):
        if meaning not in MEANINGS:
            raise DataError(
                f"a signature means {', '.join(MEANINGS)}, not {quoted(meaning)}."
            )
    try:
        "".join((request.why, request.override)).encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(
            "a reason contains an unpaired surrogate or bytes that are not UTF-8. Type "
            "it again."
        ) from error
    _require_keys(desk)


def _require_keys(desk: FreezeContext) -> None:
    """Refuse keys whose signatures nobody could accept."""
    actor = desk.actor
    own = [
        one
        for one in desk.signing
        if (one.key.name, one.key.role) == (actor.name, actor.role)
    ]
    if not own:
        raise DataError(
            f"no key of {actor.name} as {actor.role} signs. Make one with `ranloop key "
            f"new {actor.name!r} --role {actor.role}`."
        )
    if len({one.key.keyid for one in desk.signing}) != len(desk.signing):
        raise DataError(
            "somebody signs twice. Name everyone who signs besides once, with --sign."
        )
    revoked = [one.key.name for one in desk.signing if one.key.revoked]
    if revoked:
        raise DataError(
            f"the key of {', '.join(revoked)} was revoked. Sign with another one."
        )
    time = format_time(desk.now())
    unfit = [one.key.name for one in desk.signing if not one.key.is_valid(time)]
    if unfit:
        raise DataError(
            f"the key of {', '.join(unfit)} does not count at {time}, the time of this "
            "machine: it was made later, or has ended. Set the clock, or sign with "
            "another one."
        )


def _refuse_released(workspace: WorkspacePaths, version: PromptVersion) -> None:
    released = find_release(workspace, release_name(version.ref))
    if released is not None:
        raise ConflictError(
            f"{version.ref} was released as {released.name} at {released.entry.time} "
            f"by {released.entry.actor}, and a release is never changed. Commit a new "
            "version to supersede it, or take it back with `ranloop withdraw "
            f"{released.name}`."
        )


def _require_separate(workspace: WorkspacePaths, request: FreezeRequest) -> Separation:
    """Refuse a holdout that shares text or patients; no override helps there."""
    version, holdout = read_version(workspace, request.prompt), request.holdout
    if not holdout:
        return Separation(checked=(), objections=(), remarks=())
    cohort = read_cohort(workspace, holdout)
    if cohort.role is not CohortRole.HOLDOUT:
        raise DataError(
            f"cohort {holdout} has the role {cohort.role}: there is nothing to open. "
            "Name a holdout with --holdout."
        )
    require_inputs(cohort, version.ref, given_texts(version.inputs))
    found = measure_separation(workspace, version, holdout)
    if found.objections:
        raise DataError(
            f"{version.ref} cannot be released on {holdout}: "
            f"{'; '.join(found.objections)}. No override helps there, and nothing was "
            "opened. Import the holdout anew without these cases (--replace "
            "--exclude), or take another one; copied wording takes a new version."
        )
    told = _released_rows(workspace, cohort)
    return found._replace(remarks=(*found.remarks, *told))


def _require_ensembles(
    workspace: WorkspacePaths, request: FreezeRequest
) -> tuple[EnsembleVersion, ...]:
    """Return the ensembles that are named; refuse one that the judge is not part of."""
    version = read_version(workspace, request.prompt)
    found = {}
    for ref in request.ensembles:
        ensemble = read_ensemble(workspace, ref)
        own = judge_pins(ensemble, version.digest)
        if not own:
            raise DataError(
                f"{version.ref} is not a member of the ensemble {ensemble.ref}, so it "
                "cannot be released with it. Name ensembles of which it is one; "
                "`ranloop ensemble show` says what the members are."
            )
        if any(one.engine != request.engine for one in own):
            raise DataError(
                f"{version.ref} is a member of the ensemble {ensemble.ref} with the "
                f"engine {own[0].engine}, and is to be released with "
                f"{request.engine}. Fit the ensemble with that engine."
            )
        if request.asking and request.asking.thinking != DEFAULT_THINKING:
            raise DataError(
                f"the members of the ensemble {ensemble.ref} were asked without a "
                f"level of thinking, and {version.ref} is to be released with thinking "
                f"{request.asking.thinking}: its answers would be others. Leave out "
                "--thinking, or --ensemble."
            )
        found[ensemble.ref] = ensemble
    return tuple(found.values())


def _require_asked_alike(
    workspace: WorkspacePaths,
    request: FreezeRequest,
    ensembles: Sequence[EnsembleVersion],
    engine: HeldEngine,
) -> None:
    """Refuse ensembles for which the judge was asked of another model, or otherwise."""
    if not ensembles:
        return
    now, version = digest_json(engine.asker), read_version(workspace, request.prompt)
    for one in ensembles:
        if any(pin.identity != now for pin in judge_pins(one, version.digest)):
            raise DataError(
                f"{version.ref} was asked otherwise, or of another model, when the "
                f"ensemble {one.ref} was fitted: its coefficient is of other scores. "
                "Fit the ensemble again, as the judge is to be released."
            )


def _released_rows(workspace: WorkspacePaths, holdout: Cohort) -> Iterator[str]:
    """Yield which releases of judges hold rows of the same pairs already."""
    for released in list_releases(workspace):
        try:
            raw = (release_folder(workspace, released.name) / FACTS).read_bytes()
            facts = parse_facts(raw)
        except (OSError, DataError):
            continue
        if isinstance(facts, JudgeReleaseFacts) and any(
            one.digest == holdout.digest for one in facts.cohorts
        ):
            yield (
                f"rows of scores and points of {holdout.name} left the vault before, "
                f"with {released.name}: whoever has its texts may have learnt the "
                "points from them"
            )


def _rolled_back(workspace: WorkspacePaths) -> tuple[str, ...]:
    """Return that the ledger lacks what this machine has seen in it, if it does."""
    lost = find_rollback(workspace)
    if lost is None:
        return ()
    return (
        f"the ledger lacks entry {lost.seq} of {lost.time} ({lost.hash[:12]}), which "
        "this machine has seen: what was measured or opened then is not known",
    )


def _holdout_objections(
    measured: MeasuredExtractor | MeasuredJudge,
) -> tuple[str, ...]:
    if measured.holdout is None:
        return ()
    if isinstance(measured, MeasuredJudge):
        return tuple(holdout_objections(measured.holdout.result))
    result = measured.holdout.result
    if result.claim.verdict is GateVerdict.PASS:
        return ()
    evaluation, claim = result.evaluation, result.claim
    tally = describe_verdicts(one.gate.verdict for one in evaluation.labels)
    return (f"the gate on {evaluation.cohort} says {claim.verdict} ({tally})",)


def _make_files(
    desk: FreezeContext,
    version: PromptVersion,
    facts: AnyFacts,
    approvals: Sequence[Approval],
) -> dict[str, bytes]:
    """Return every file of the release but the envelope."""
    source = version_folder(desk.workspace, version)
    return {
        FACTS: format_facts(facts),
        **{f"prompt/{name}": (source / name).read_bytes() for name in FILES},
        **render_files(version),
        "ledger.jsonl": _ledger_until(desk.workspace, facts.ledger.seq),
        **desk.render(facts, approvals),
    }


def _ledger_until(workspace: WorkspacePaths, seq: int) -> bytes:
    """Return the lines of the ledger up to the head that the release names."""
    read_ledger(workspace.ledger)
    lines = workspace.ledger.read_bytes().splitlines(keepends=True)[:seq]
    return b"".join(lines)


def _rows(measured: MeasuredJudge) -> list[tuple[str, Sequence[RatedRow]]]:
    """Return the rows of each evaluation, by cohort."""
    found = measured.candidate.evaluation
    tables: list[tuple[str, Sequence[RatedRow]]] = [(found.cohort, found.rows)]
    if measured.holdout is not None:
        result = measured.holdout.result
        tables.append((result.cohort.name, [one.row for one in result.rows]))
    return tables


def _release_facts(
    workspace: WorkspacePaths, evidence: ReleaseEvidence, actor: Actor, time: datetime
) -> AnyFacts:
    """Return the content of ``release.json``: numbers, digests, words, no case."""
    measured = evidence.measured
    try:
        shared = _gather_shared(workspace, evidence, actor, time)
        if isinstance(measured, MeasuredJudge):
            return _gather_judge(workspace, measured, shared, evidence.ensembles)
        return _gather(workspace, measured, shared)
    except ValidationError as error:
        wrong = "; ".join(
            f"{field_name(one['loc'])}: {one['msg']}"
            for one in error.errors(include_input=False, include_url=False)[:5]
        )
        raise DataError(
            f"{FACTS} of the release cannot be written: {wrong}. Nothing was released."
        ) from error


class _CommonFacts(TypedDict):
    """The parts that the facts of both forms have in common."""

    release: ReleasedFacts
    frozen: FrozenFacts
    supersedes: SupersededFacts | None
    engine: EngineFacts
    openings: list[ListedOpening]
    development_only: bool
    separation: SeparationFacts
    compute: ComputeFacts
    ledger: HeadFacts
    tool: ToolFacts


def _gather_shared(
    workspace: WorkspacePaths, evidence: ReleaseEvidence, actor: Actor, time: datetime
) -> _CommonFacts:
    measured = evidence.measured
    candidate, opened = measured.candidate, measured.holdout is not None
    language = read_cohort(workspace, evidence.request.cohort).language
    head = read_ledger(workspace.ledger)[-1]
    return _CommonFacts(
        release=_version_facts(workspace, candidate, language),
        frozen=_frozen(evidence, actor, time),
        supersedes=_supersedes(workspace, measured.base.release),
        engine=candidate.engine,
        openings=opening_facts(workspace, evidence.request.holdout) if opened else [],
        development_only=not opened,
        separation=SeparationFacts(
            checked=list(evidence.separation.checked),
            remarks=list(evidence.separation.remarks),
        ),
        compute=compute_facts(candidate.manifest),
        ledger=HeadFacts(seq=head.seq, head=head.hash),
        tool=ToolFacts(ranloop=_own_version()),
    )


def _gather(
    workspace: WorkspacePaths, measured: MeasuredExtractor, shared: _CommonFacts
) -> ReleaseFacts:
    candidate = measured.candidate
    holdout = measured.holdout.result if measured.holdout else None
    dev = candidate.evaluation
    evaluations = [
        evaluation_facts(dev),
        *([holdout.evaluation] if holdout else []),
    ]
    return ReleaseFacts(
        **shared,
        format=DRAWN_FORMAT if any(one.draws > 1 for one in evaluations) else FORMAT,
        protocol=protocol_facts(dev),
        cohorts=[
            cohort_facts(workspace, dev.cohort),
            *([holdout.cohort] if holdout else []),
        ],
        evaluations=evaluations,
        claim=holdout.claim if holdout else measured.claim,
        selection=selection_facts(_select(workspace, candidate)),
        ceiling=ceiling_facts(workspace, dev),
        change=change_facts(candidate.version, measured.compared),
        history=history_facts(workspace, candidate.version.name, dev.cohort.name),
        reading=reading_facts(workspace, dev.cohort),
    )


def _gather_judge(
    workspace: WorkspacePaths,
    measured: MeasuredJudge,
    shared: _CommonFacts,
    ensembles: Sequence[EnsembleVersion],
) -> JudgeReleaseFacts:
    candidate = measured.candidate
    holdout = measured.holdout.result if measured.holdout else None
    version, dev = candidate.version, candidate.evaluation
    return JudgeReleaseFacts(
        **shared,
        format=JUDGE_FORMAT,
        reads=read_facts(version),
        categories=categories_facts(workspace),
        score=score_facts(dev.score),
        protocol=judge_protocol_facts(workspace, dev),
        cohorts=[
            rated_cohort_facts(workspace, dev),
            *([holdout.cohort] if holdout else []),
        ],
        evaluations=[
            judge_evaluation_facts(workspace, dev),
            *([holdout.evaluation] if holdout else []),
        ],
        claim=holdout.claim if holdout else measured.claim,
        change=judge_change_facts(version, candidate.base, candidate.comparison),
        history=judge_history_facts(workspace, version.name, dev.cohort),
        shots=shots_facts(version),
        ensembles=[ensemble_facts(one) for one in ensembles],
    )


def _version_facts(
    workspace: WorkspacePaths, candidate: MeasuredVersion, language: str
) -> ReleasedFacts:
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
        languages=[language],
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


def _supersedes(
    workspace: WorkspacePaths, release: Released | None
) -> SupersededFacts | None:
    if release is None:
        return None
    found = verify_release(workspace, release.name)
    return SupersededFacts(
        name=release.name,
        statement_sha256=release.statement,
        ref=release.ref,
        engine=found.facts.engine if found.holds and found.facts else None,
    )


def _select(workspace: WorkspacePaths, candidate: Candidate) -> Selection:
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
        return metadata.version("ranloop")
    except metadata.PackageNotFoundError:
        return "unknown"
