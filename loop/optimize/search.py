"""Searches for a better prompt with an optimizer, and makes drafts of what it found.

The optimizer proposes; nested splits say what that is worth; a draft is checked and
committed by a person like any other. Where the pooled estimate is not above the
version that the search began with by more than chance, there is no draft, and that is
a good result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import Final, NamedTuple

from pydantic import ValidationError

from loop.core.clock import Clock, utc_now
from loop.core.digests import digest_json
from loop.core.errors import ConflictError, DataError
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.engines.rules.cues import read_cues
from loop.evaluate.protocol import protocol_digest
from loop.labels.expert_ratings import ExpertRatings, read_ratings_of
from loop.labels.reference import read_reference
from loop.optimize.dspy_search import (
    require_optuna,
    search_bootstrap,
    search_mipro,
)
from loop.optimize.estimate import estimate_nested
from loop.optimize.gepa_search import gather_verdicts, search_gepa
from loop.optimize.ground import LabelGround, SearchGround
from loop.optimize.nearest import list_approved, search_nearest
from loop.optimize.nested_search import (
    AcceptedScore,
    Conclusion,
    RankedFinder,
    SearchEffort,
    WordingFinder,
    find_effects,
    search_nested,
)
from loop.optimize.objective import Objective, open_objective
from loop.optimize.proposals import (
    MOST_NAMED,
    ProposalReader,
    Proposed,
    draft_proposal,
    read_private_wording,
)
from loop.optimize.reflect import (
    Reflector,
    is_on_this_machine,
)
from loop.optimize.refusals import read_refusals
from loop.optimize.search_labels import choose_labels, require_labels
from loop.optimize.search_record import (
    SearchFolder,
    SearchSpec,
    library_versions,
    open_search,
)
from loop.optimize.search_report import (
    ENGINES,
    FINDINGS,
    FoundDraft,
    KeptWording,
    Optimizer,
    SearchFindings,
    SearchReport,
    SearchRequest,
    price_engines,
)
from loop.optimize.splits import (
    NestedSplit,
    SeenCases,
    digest_splits,
    split_cases,
)
from loop.optimize.terms import REVISION, ProposalKind, TermMiner
from loop.optimize.terms_search import TermFinder
from loop.prompts.catalog import latest_version, read_version
from loop.prompts.version import PromptVersion
from loop.review.revise.begin import find_start
from loop.review.revise.check_record import recall_check
from loop.review.revise.copies import check_copies, name_unseen, new_wording
from loop.review.revise.machine_made import refuse_copied
from loop.review.revise.run_check import Examination, check_draft_ref
from loop.review.revise.wording import Authorship
from loop.review.status import VerdictState, read_kept
from loop.run.asking import EngineOptions, HeldEngine, hold_engine
from loop.run.cost import EngineUse
from loop.run.store import Store, open_store
from loop.stats.optimism import expected_excess

REFLECTION_TOKENS: Final = 2_048
"""Most output tokens of one proposal."""


def search_prompt(
    workspace: WorkspacePaths,
    request: SearchRequest,
    actor: Actor,
    *,
    asking: EngineOptions | None = None,
    restart: bool = False,
    tell: Callable[[int, int], object] = lambda done, total: None,
    now: Clock = utc_now,
) -> SearchReport:
    """Return what a search found, and the drafts it made, if any.

    A search that was killed goes on where it was; the same search again gives the same
    result and asks nothing. It stands in the ledger with what it tried.

    Parameters
    ----------
    actor
        Who searches, as the ledger names them; drafts are theirs.
    asking
        How the answering engine is asked; None for greedily.
    restart
        Whether what an unfinished search left is removed first.
    tell
        Told how many of the searches are done, and how many there are.

    Raises
    ------
    DataError
        The prompt, the cohort or a label cannot be searched; or the folder of the
        search was changed by hand.
    ConflictError
        The prompt is not the newest version and this is no study, or another process
        holds the same search.
    OverlapError
        What was found is copied from a case, or from the comment of a verdict.
    EngineError
        An engine is not there, cannot reflect, or failed too often.
    LedgerError
        The ledger is broken.
    WriteError
        The workspace cannot be written.
    """
    optimizer = request.optimizer
    optimizer.check_reflects(request.reflect)
    if optimizer is Optimizer.MIPRO:
        require_optuna()
    base = find_base(workspace, request)
    asking = asking or EngineOptions()
    with ExitStack() as stack:
        enter = stack.enter_context
        objective = enter(
            open_objective(
                workspace, base, request.cohort, engine=request.engine, asking=asking
            )
        )
        reflecting = None
        if optimizer.reflects:
            how = EngineOptions(
                temperature=1.0,
                max_tokens=REFLECTION_TOKENS,
                seed=request.seed,
                allow_unconstrained=True,
            )
            reflecting = enter(hold_engine(workspace, request.reflect, how))
        ground, store = objective.ground, enter(open_store(workspace))
        require_labels(ground, request.wanted)
        splits = split_ground(ground, request)
        if optimizer is Optimizer.TERMS:
            prepared = _prepare_terms(workspace, request, objective)
        else:
            prepared = _prepare_library(
                workspace, request, objective, reflecting=reflecting, store=store
            )
        spec = _specify(
            workspace, request, objective, splits=splits, settings=prepared.settings
        )
        folder = enter(open_search(workspace, spec, actor, restart=restart, now=now))
        remembered = folder.result is not None
        if remembered:
            findings, uses = _read_findings(folder)
        else:
            findings, uses = _search(
                request,
                objective,
                splits=splits,
                make=lambda labels: prepared.make(labels, folder),
                tell=tell,
            )
            folder.finish(
                FINDINGS.dump_python(findings, mode="json"),
                candidates=findings.candidates,
                asked=objective.asked,
                engines=ENGINES.dump_python(uses, mode="json"),
                now=now,
            )
        found = tuple(
            objective.candidate(
                {guide.label: guide for guide in one.guides}, system=one.system
            )
            for one in findings.kept
        )
        drafts: tuple[FoundDraft, ...] = ()
        if not request.study:
            by = Authorship(actor.name, now(), explain_findings(request, findings))
            examined = Examination(
                engine=request.engine, asking=asking, cohort=request.cohort
            )
            written = (
                _write_found(workspace, store, ground, one, by=by, key=spec.key)
                for one in found
            )
            drafts = tuple(
                _check_found(workspace, store, one, actor, how=examined, now=now)
                for one in written
            )
    return SearchReport(
        spec=spec,
        findings=findings,
        engines=price_engines(workspace, uses),
        not_estimable=not_estimable(ground),
        found=found,
        expected_excess=expected_excess(
            ground.clusters.total, max(1, findings.candidates), ground.protocol.accuracy
        ),
        remembered=remembered,
        stale=_name_changes(workspace, spec, ground, request),
        drafts=drafts,
    )


def find_base(workspace: WorkspacePaths, request: SearchRequest) -> PromptVersion:
    """Return the version that a search begins with.

    Raises
    ------
    ConflictError
        It is not the newest one, and the search is no study.
    """
    base = read_version(workspace, request.prompt)
    if request.study:
        return base
    newest = latest_version(workspace, base.name)
    if not base.draft and base.ref != newest.ref:
        raise ConflictError(
            f"{base.ref} is not the newest version: {newest.ref} is. Search from that "
            f"one, `ranloop optimize {base.name} ...`, or give --study to study "
            f"{base.ref}."
        )
    return find_start(workspace, request.prompt).base


def require_labels_of_text(ground: SearchGround) -> LabelGround:
    """Return the ground of an extractor, the one on which terms can be mined.

    Raises
    ------
    DataError
        It is that of a judge; names the optimizers that work for it.
    """
    if isinstance(ground, LabelGround):
        return ground
    others = [one.value for one in Optimizer if one is not Optimizer.TERMS]
    raise DataError(
        f"terms are wordings that name a label in a text, and {ground.version.ref} "
        f"judges pairs: nothing can be mined. Choose --with {', '.join(others[:-1])} "
        f"or {others[-1]}."
    )


def split_ground(
    ground: SearchGround, request: SearchRequest
) -> tuple[NestedSplit, ...]:
    """Return the nested splits of a search.

    Raises
    ------
    DataError
        The cohort is too small.
    """
    try:
        return split_cases(
            ground.truth,
            ground.clusters.units,
            repeats=request.splits,
            seed=request.seed,
        )
    except ValueError as error:
        raise DataError(
            f"cohort {ground.cohort.name} cannot be split: {error}. Name a larger one."
        ) from error


def not_estimable(ground: SearchGround) -> tuple[str, ...]:
    """Return the labels below the protocol's minimum of positives."""
    return tuple(
        label
        for label, known in zip(ground.labels, ground.scored, strict=True)
        if not known
    )


def explain_findings(request: SearchRequest, findings: SearchFindings) -> str:
    """Return the reason of a draft, from counts."""
    gain = findings.estimate.gain
    if gain.estimate is None or gain.low is None or gain.high is None:
        said = ""
    else:
        said = (
            f"; {findings.estimate.score} {gain.estimate:+.3f} ({gain.low:+.3f} to "
            f"{gain.high:+.3f}) on cases of {request.cohort} that it had not seen"
        )
    labels = findings.labels
    about = ", ".join(labels) if len(labels) <= MOST_NAMED else f"{len(labels)} labels"
    return (
        f"found by {request.optimizer} among {findings.candidates} candidates for "
        f"{about}{said}"
    )


def _whole(proposal: str) -> bool:
    """Whether the id of a proposal is that of a whole guide."""
    return proposal.partition(":")[2].startswith(f"{ProposalKind.GUIDE}:")


class _Prepared(NamedTuple):
    """An optimizer with all that it needs besides cases."""

    settings: Mapping[str, object]
    """What its result depends on, as JSON data without text of cases."""

    make: Callable[[Sequence[str], SearchFolder], WordingFinder]
    """Returns what finds wordings for labels."""


class _Searched(NamedTuple):
    """What a search found, and what it asked."""

    findings: SearchFindings
    engines: tuple[EngineUse, ...]
    """The one that answers first."""


def _prepare_terms(
    workspace: WorkspacePaths, request: SearchRequest, objective: Objective
) -> _Prepared:
    ground = require_labels_of_text(objective.ground)
    refused = sorted(
        one for one in read_refusals(workspace, ground.version.name) if not _whole(one)
    )

    def make(labels: Sequence[str], folder: SearchFolder) -> WordingFinder:
        answers = objective.answers(ground.version)
        miner = TermMiner(workspace, ground, answers, refused=refused)
        return TermFinder(objective, miner, labels=labels, budget=request.limit)

    settings = {
        "refused": digest_json(refused),
        "revision": REVISION,
        "taxonomy": ground.taxonomy.digest,
        "cues": {one.language: one.digest for one in read_cues(workspace.labels)},
    }
    return _Prepared(settings, make)


def _prepare_library(
    workspace: WorkspacePaths,
    request: SearchRequest,
    objective: Objective,
    *,
    reflecting: HeldEngine | None,
    store: Store,
) -> _Prepared:
    ground = objective.ground
    kept = read_kept(store, workspace, request.cohort)
    local = reflecting is None or is_on_this_machine(workspace, request.reflect)
    said = gather_verdicts(kept, comments=local)
    approved = list_approved(workspace, ground.version, kept)
    comments = [one.verdict.comment for one in kept]
    refused = sorted(filter(_whole, read_refusals(workspace, ground.version.name)))
    private = read_private_wording(workspace, ground.cohort, comments)
    reader = ProposalReader(ground.version, private, refused)

    def make(labels: Sequence[str], folder: SearchFolder) -> WordingFinder:
        reflector = Reflector(reflecting, folder) if reflecting else None

        def propose(cases: SeenCases, seed: int) -> Proposed:
            if request.optimizer is Optimizer.NEAREST:
                return search_nearest(
                    objective, reader, approved, search=cases.search, labels=labels
                )
            if request.optimizer is Optimizer.BOOTSTRAP:
                return search_bootstrap(
                    objective, reader, approved, labels=labels, seed=seed
                )
            if reflector is None:
                raise ValueError(f"{request.optimizer} needs an engine that reflects")
            if request.optimizer is Optimizer.MIPRO:
                return search_mipro(
                    objective,
                    reader,
                    reflector,
                    approved,
                    cases=cases,
                    labels=labels,
                    budget=request.limit,
                    seed=seed,
                )
            return search_gepa(
                objective,
                reader,
                reflector,
                cases,
                labels=labels,
                budget=request.limit,
                said=said,
                seed=seed,
            )

        return RankedFinder(objective, propose, reflector)

    settings = {
        "reflect": digest_json(reflecting.asker) if reflecting else "",
        "verdicts": digest_json(
            sorted(
                one.id
                for one in kept
                if one.state not in (VerdictState.WITHDRAWN, VerdictState.SUPERSEDED)
            )
        ),
        "private": private.digest,
        "comments": local,
        "exemplars": digest_json(
            {label: [asdict(one) for one in rows] for label, rows in approved.items()}
        ),
        **({"refused": digest_json(refused)} if refused else {}),
    }
    return _Prepared(settings, make)


def _specify(
    workspace: WorkspacePaths,
    request: SearchRequest,
    objective: Objective,
    *,
    splits: Sequence[NestedSplit],
    settings: Mapping[str, object],
) -> SearchSpec:
    ground = objective.ground
    return SearchSpec(
        prompt=ground.version.ref,
        prompt_digest=ground.version.digest,
        cohort=ground.cohort.name,
        cohort_digest=ground.cohort.digest,
        reference=ground.reference.number,
        reference_digest=ground.reference.digest,
        protocol_digest=protocol_digest(workspace),
        splits=digest_splits(splits, ground.case_ids),
        engine=objective.engine.name,
        asker=digest_json(objective.engine.asker),
        optimizer=request.optimizer.value,
        seed=request.seed,
        budget=request.limit,
        settings={"labels": list(request.wanted), **settings},
        libraries=library_versions(*request.optimizer.libraries),
    )


def _search(
    request: SearchRequest,
    objective: Objective,
    *,
    splits: Sequence[NestedSplit],
    make: Callable[[Sequence[str]], WordingFinder],
    tell: Callable[[int, int], object],
) -> _Searched:
    """Return what is found; where no label is wrong, nothing is searched for."""
    parent = objective.ground.version
    labels = choose_labels(objective, request.wanted)
    conclusion, effort = Conclusion(), SearchEffort()
    curve: tuple[AcceptedScore, ...] = ()
    reflecting: EngineUse | None = None
    scored = 0
    if labels:
        finder, total = make(labels), len(splits) + 1
        estimate, conclusion = search_nested(
            objective,
            finder,
            splits,
            seed=request.seed,
            tell=lambda done: tell(done, total),
        )
        effort, reflecting = finder.effort, finder.reflecting
        # What the curve, and the report on what was kept, ask about chooses nothing.
        scored = objective.candidates - 1
        curve = finder.draw_curve(splits, conclusion.proposals)
    else:
        unchanged = [parent] * len(splits)
        estimate = estimate_nested(objective, splits, unchanged, seed=request.seed)
    findings = SearchFindings(
        labels=labels,
        estimate=estimate,
        kept=tuple(
            KeptWording(
                tuple(one for one in made.guides if one != parent.guide(one.label)),
                None if made.system == parent.system else made.system,
                () if conclusion.proposals else find_effects(objective, made),
            )
            for made in conclusion.kept
        ),
        proposals=conclusion.proposals,
        curve=curve,
        scored=scored,
        effort=effort,
    )
    asked = (objective.use, *([reflecting] if reflecting else []))
    return _Searched(findings, asked)


def _read_findings(folder: SearchFolder) -> _Searched:
    try:
        return _Searched(
            FINDINGS.validate_python(folder.result),
            ENGINES.validate_python(folder.engines),
        )
    except ValidationError as error:
        raise DataError(
            f"{folder.path} holds the result of another version of ranloop. Remove "
            "the folder and search again."
        ) from error


def _name_changes(
    workspace: WorkspacePaths,
    spec: SearchSpec,
    ground: SearchGround,
    request: SearchRequest,
) -> tuple[str, ...]:
    """Return what has changed since the search began."""
    changes: list[str] = []
    judges = isinstance(ground.reference, ExpertRatings)
    right = (read_ratings_of if judges else read_reference)(workspace, spec.cohort)
    if right.digest != spec.reference_digest:
        what = "ratings" if judges else "reference"
        were = "were" if judges else "was"
        changes.append(
            f"the {what} of {spec.cohort} {were} revised to version {right.number}"
        )
    if not request.study:
        base = read_version(workspace, spec.prompt)
        newest = latest_version(workspace, base.name)
        if newest.digest not in (base.digest, base.parent if base.draft else ""):
            changes.append(f"{newest.ref} was committed")
    return tuple(changes)


def _write_found(
    workspace: WorkspacePaths,
    store: Store,
    ground: SearchGround,
    wording: PromptVersion,
    *,
    by: Authorship,
    key: str,
) -> FoundDraft:
    """Return the draft with a wording; an open one that says the same is used."""
    words = tuple(new_wording(ground.version, wording))
    copies, unseen = check_copies(workspace, words, ground.cohort)
    refuse_copied(workspace, store, words, ground.cohort.name, copies)
    base, cohort = ground.version, ground.cohort.name
    ref = draft_proposal(workspace, base, wording, cohort, by, search=key).ref
    return FoundDraft(ref, (), name_unseen(unseen))


def _check_found(
    workspace: WorkspacePaths,
    store: Store,
    draft: FoundDraft,
    actor: Actor,
    *,
    how: Examination,
    now: Clock,
) -> FoundDraft:
    """Return the draft with what its check says against it."""
    known = recall_check(workspace, store, draft.ref, how.engine)
    if (
        known is not None
        and not known.stale
        and known.checked.ground.cohort == how.cohort
    ):
        return draft._replace(objections=known.checked.objections)
    try:
        checked = check_draft_ref(workspace, store, draft.ref, actor, how, now=now)
    except ConflictError as error:  # another version was committed meanwhile
        return draft._replace(objections=(str(error),))
    return draft._replace(objections=checked.objections)
