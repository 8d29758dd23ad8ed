"""A search for a better wording: nested splits, an honest estimate, and a draft.

What is searched on tells little of what was found: that is what the estimate is for. A
draft is made only where the estimate lies above the parent's by more than chance; else
nothing better was found, which is a good result too. A draft is checked as one that a
person wrote, and committed by a person only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np
from pydantic import TypeAdapter, ValidationError

from loop.core.clock import Clock, utc_now
from loop.core.digests import canonical_json, digest_bytes, digest_json
from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.evaluate.protocol import protocol_digest
from loop.labels.reference import read_reference
from loop.optimize.estimate import NestedEstimate, estimate_nested
from loop.optimize.objective import Objective, SearchGround, open_objective
from loop.optimize.refusals import read_refusals
from loop.optimize.search_record import (
    SearchFolder,
    SearchSpec,
    library_versions,
    open_search,
)
from loop.optimize.splits import FOLDS, NestedSplit, digest_splits, split_cases
from loop.optimize.terms import (
    LEVELS,
    REVISION,
    MinedTerms,
    TermMiner,
    TermProposal,
    apply_proposals,
)
from loop.prompts.catalog import list_drafts, read_version
from loop.prompts.version import PromptVersion
from loop.review.revise.begin import DraftRequest, begin_draft, find_start
from loop.review.revise.check_record import Checked
from loop.review.revise.draft_files import DraftOrigin
from loop.review.revise.run_check import Examination, check_draft_ref
from loop.run.asking import EngineOptions
from loop.run.store import open_store
from loop.stats.confusion import kappas
from loop.stats.optimism import expected_excess

BUDGET: Final = 60
"""Proposals that are accepted, at most, where nothing else is said."""

FAILING: Final = "failing"
"""In place of labels: those that do not reach the protocol's thresholds now."""

_POINTS: Final = 10
"""Points of the curve, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """How a search is made, besides of what and on what."""

    labels: tuple[str, ...] = ()
    """Labels whose guides may change, or `FAILING` alone; none for all."""

    engine: str = "rules"
    asking: EngineOptions = field(default_factory=EngineOptions)
    budget: int = BUDGET
    """Proposals that are accepted, at most."""

    seed: int = 0
    repeats: int = FOLDS
    """Nested splits; `FOLDS` put every case into an estimate once."""

    study: bool = False
    """Whether nothing but a report is made, which may begin with an old version."""

    accept_all: bool = False
    """Whether a study says what all its proposals come to."""

    anew: bool = False
    """Whether what an unfinished search left is removed first; else it goes on."""

    def __post_init__(self) -> None:
        if self.budget < 1 or self.repeats < 1:
            raise ValueError(
                f"budget and repeats must be >= 1, got {self.budget} and {self.repeats}"
            )
        if self.accept_all and not self.study:
            raise ValueError("accept_all is for a study: a draft is a person's to edit")


class AcceptedScore(NamedTuple):
    """Scores with so many proposals accepted, those that promise the most first."""

    accepted: int
    search: float | None
    """Macro-F1 on all cases, with the proposals mined on them."""

    estimate: float | None
    """The same over the pooled estimate cases, with the proposals of each split."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFindings:
    """What a finished search found, as it is kept."""

    proposals: tuple[TermProposal, ...]
    estimate: NestedEstimate
    curve: tuple[AcceptedScore, ...]
    least_gain: float
    """Gain that a proposal had to promise, as the select parts decided."""

    tested: int
    """Wordings whose contrast was tested, added up over labels."""

    scored: int
    """Different versions of the prompt that were asked, the parent not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchReport:
    """What a search came to."""

    spec: SearchSpec
    findings: SearchFindings
    labels: tuple[str, ...]
    """Labels that were searched for."""

    not_estimable: tuple[str, ...]
    """Labels below the protocol's minimum of positives: never improved."""

    found: PromptVersion
    """The parent with all proposals."""

    expected_excess: float | None
    """By how much the best of so many candidates is overrated, in the accuracy of one
    label, if all are equally good."""

    remembered: bool
    """Whether it was found before, and nothing was asked."""

    stale: tuple[str, ...] = ()
    """What has changed since it was found, in words."""

    draft: str = ""
    """The draft that was made, or that says the same already; empty for none."""

    check: Checked | None = None
    """Its regression check."""

    notes: tuple[str, ...] = ()

    @property
    def better(self) -> bool:
        """Whether the estimate lies above the parent's by more than chance."""
        return bool(self.findings.proposals) and self.findings.estimate.better

    @property
    def data(self) -> dict[str, Any]:
        """The report as JSON data."""
        estimate = self.findings.estimate
        return {
            "prompt": self.spec.prompt,
            "cohort": self.spec.cohort,
            "engine": self.spec.engine,
            "optimizer": self.spec.optimizer,
            "seed": self.spec.seed,
            "search": self.spec.key,
            "better": self.better,
            "remembered": self.remembered,
            "stale": list(self.stale),
            "labels": list(self.labels),
            "not_estimable": list(self.not_estimable),
            "candidates": self.findings.tested + self.findings.scored,
            "expected_excess": self.expected_excess,
            "parts": {
                part: estimate.mean(part)._asdict()
                for part in ("search", "select", "estimate")
            },
            "estimate": {
                "parent": estimate.parent._asdict(),
                "found": estimate.found._asdict(),
                "gain": estimate.gain._asdict(),
                "kappa_gain": estimate.kappa_gain._asdict(),
                "cases": estimate.cases,
                "left_out": estimate.left_out,
            },
            "per_label": [one._asdict() for one in estimate.labels],
            "curve": [one._asdict() for one in self.findings.curve],
            "proposals": [one.data for one in self.findings.proposals],
            "draft": self.draft or None,
            "objections": list(self.check.objections) if self.check else None,
            "notes": list(self.notes),
        }


class SearchPlan(NamedTuple):
    """What a search would do; nothing was asked."""

    spec: SearchSpec
    splits: tuple[tuple[int, int, int], ...]
    """Cases of search, select and estimate of each split."""

    labels: tuple[str, ...]
    not_estimable: tuple[str, ...]
    prompts: int
    """Prompts that the engine would be asked, at most."""


def plan_search(
    workspace: WorkspacePaths,
    prompt: str,
    cohort: str,
    options: SearchOptions | None = None,
) -> SearchPlan:
    """Return what `optimize_prompt` would do; asks nothing and writes nothing.

    Raises
    ------
    DataError
        As for `optimize_prompt`.
    """
    options = options or SearchOptions()
    version = _read_start(workspace, prompt, options)
    with open_objective(
        workspace, version, cohort, engine=options.engine, asking=options.asking
    ) as objective:
        ground = objective.ground
        splits = _split(ground, options)
        labels = _choose_labels(ground, options, None)
        spec = _spec(workspace, objective, splits, options, ())
    sizes = tuple((len(a), len(b), len(c)) for a, b, c in splits)
    wordings = sum((len(LEVELS) + 1) * b + a + (_POINTS + 1) * c for a, b, c in sizes)
    calls = len(version.guides) if version.plan.value != "joint" else 1
    return SearchPlan(
        spec=spec,
        splits=sizes,
        labels=labels,
        not_estimable=_not_estimable(ground),
        prompts=calls * (wordings + (_POINTS + 2) * len(ground.items)),
    )


def optimize_prompt(
    workspace: WorkspacePaths,
    prompt: str,
    cohort: str,
    *,
    actor: Actor,
    options: SearchOptions | None = None,
    now: Clock = utc_now,
) -> SearchReport:
    """Return what a search for better terms found, and the draft it made, if any.

    Terms and exclusions are mined on the search part of every nested split; its select
    part decides how much a proposal must promise, and its estimate part, which nothing
    was chosen on, says what the whole procedure is worth. The proposals themselves are
    mined on all cases. The same search again gives the same result and asks nothing.

    Parameters
    ----------
    prompt
        The newest version, for example ``"extractor"``, or a draft of it; for a study
        any version, for example ``"extractor@v1"``.
    cohort
        Name of a dev cohort.
    actor
        Who searches, as the ledger names them; the draft is theirs.
    options
        How; None for the defaults.

    Raises
    ------
    DataError
        The prompt, a label or the cohort cannot be searched with, or the folder of the
        search was changed by hand.
    ConflictError
        `prompt` is not the newest version and this is no study, or another process
        makes the same search.
    OverlapError
        A proposal is copied from a case of a cohort that is not for development.
    EngineError
        The engine failed on more than a few cases.
    WriteError
        The workspace cannot be written.
    """
    options = options or SearchOptions()
    version = _read_start(workspace, prompt, options)
    refused = tuple(sorted(read_refusals(workspace, version.name)))
    with open_objective(
        workspace, version, cohort, engine=options.engine, asking=options.asking
    ) as objective:
        ground = objective.ground
        splits = _split(ground, options)
        spec = _spec(workspace, objective, splits, options, refused)
        with open_search(workspace, spec, actor, anew=options.anew, now=now) as folder:
            remembered = folder.result is not None
            if remembered:
                findings, labels = _read_result(folder)
            else:
                answers = objective.answers(version)
                labels = _choose_labels(ground, options, objective)
                miner = TermMiner(workspace, ground, answers, refused=refused)
                findings = _search(objective, miner, splits, labels, options)
                folder.finish(
                    {
                        "findings": _FINDINGS.dump_python(findings, mode="json"),
                        "labels": list(labels),
                    },
                    candidates=findings.tested + findings.scored,
                    asked=objective.asked,
                    now=now,
                )
        found = _with(objective, findings.proposals)
    tried = findings.tested + findings.scored
    report = SearchReport(
        spec=spec,
        findings=findings,
        labels=labels,
        not_estimable=_not_estimable(ground),
        found=found,
        expected_excess=expected_excess(
            ground.clusters.total, max(tried, 1), ground.protocol.accuracy
        ),
        remembered=remembered,
        stale=_name_changes(workspace, spec, None if options.study else prompt),
    )
    if options.study or not report.better:
        return report
    if find_start(workspace, prompt).base.digest != spec.prompt_digest:
        return report
    return _make_draft(workspace, report, prompt, options, actor, now)


_FINDINGS: TypeAdapter[SearchFindings] = TypeAdapter(SearchFindings)


def _read_start(
    workspace: WorkspacePaths, prompt: str, options: SearchOptions
) -> PromptVersion:
    if options.study:
        return read_version(workspace, prompt)
    return find_start(workspace, prompt).base


def _split(ground: SearchGround, options: SearchOptions) -> tuple[NestedSplit, ...]:
    try:
        return split_cases(
            ground.truth,
            ground.clusters.units,
            repeats=options.repeats,
            seed=options.seed,
        )
    except ValueError as error:
        raise DataError(
            f"cohort {ground.cohort.name} cannot be split: {error}. Name a larger one."
        ) from error


def _spec(
    workspace: WorkspacePaths,
    objective: Objective,
    splits: Sequence[NestedSplit],
    options: SearchOptions,
    refused: Sequence[str],
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
        asker=digest_bytes(canonical_json(objective.engine.asker)),
        optimizer="terms",
        seed=options.seed,
        budget=options.budget,
        settings={
            "labels": list(options.labels),
            "repeats": options.repeats,
            "refused": digest_json(list(refused)),
            "revision": REVISION,
        },
        libraries=library_versions("ahocorasick-rs", "numpy", "scipy"),
    )


def _choose_labels(
    ground: SearchGround, options: SearchOptions, objective: Objective | None
) -> tuple[str, ...]:
    """Return the labels that may change, in published order.

    Without an objective, `FAILING` stands for all that may be among them.
    """
    if options.labels == (FAILING,):
        if objective is None:
            return _estimable(ground)
        return _failing(objective)
    unknown = [one for one in options.labels if one not in ground.labels]
    if unknown:
        raise DataError(
            f"{unknown[0]!r} is no label that {ground.version.ref} asks for and the "
            f"reference of {ground.cohort.name} judges. Name some of "
            f"{', '.join(ground.labels)}, or {FAILING}."
        )
    chosen = options.labels or ground.labels
    return tuple(one for one in _estimable(ground) if one in chosen)


def _estimable(ground: SearchGround) -> tuple[str, ...]:
    return tuple(
        label
        for label, known in zip(ground.labels, ground.scored, strict=True)
        if known
    )


def _not_estimable(ground: SearchGround) -> tuple[str, ...]:
    return tuple(one for one in ground.labels if one not in _estimable(ground))


def _failing(objective: Objective) -> tuple[str, ...]:
    """Return the labels below the protocol's thresholds on all cases."""
    ground, protocol = objective.ground, objective.ground.protocol
    score = objective.score(objective.answers(ground.version))
    passed = (score.accuracy >= protocol.accuracy) & (
        kappas(score.counts) >= protocol.kappa
    )
    failing = ground.scored & ~passed
    return tuple(
        label for label, fails in zip(ground.labels, failing, strict=True) if fails
    )


def _search(
    objective: Objective,
    miner: TermMiner,
    splits: Sequence[NestedSplit],
    labels: Collection[str],
    options: SearchOptions,
) -> SearchFindings:
    """Search in every split, then on all cases; see `optimize_prompt`."""
    tested = 0

    def mine(rows: Any, least_gain: float) -> tuple[TermProposal, ...]:
        nonlocal tested
        made: MinedTerms = miner.mine(rows, labels, least_gain=least_gain)
        tested = max(tested, made.tested)
        return made.proposals[: options.budget]

    selected = np.zeros((len(splits), len(LEVELS)))
    chains: list[tuple[TermProposal, ...]] = []
    for row, split in enumerate(splits):
        for column, level in enumerate(LEVELS):
            made = _with(objective, mine(split.search, level))
            score = objective.score(
                objective.answers(made, split.select), split.select
            ).macro_f1
            selected[row, column] = -1 if score is None else score
        chains.append(mine(split.known, LEVELS[int(selected[row].argmax())]))
    level = LEVELS[int(selected.mean(axis=0).argmax())]
    proposals = mine(np.arange(len(objective.ground.items)), level)
    found = [_with(objective, chain) for chain in chains]
    estimate = estimate_nested(objective, splits, found, seed=options.seed)
    curve = _draw_curve(objective, splits, chains, proposals)
    return SearchFindings(
        proposals=proposals,
        estimate=estimate,
        curve=curve,
        least_gain=level,
        tested=tested,
        scored=objective.candidates - 1,
    )


def _with(objective: Objective, proposals: Sequence[TermProposal]) -> PromptVersion:
    ground = objective.ground
    language = ground.items[0].language if ground.items else "en"
    guides = apply_proposals(ground.version, proposals, language)
    return objective.candidate(guides)


def _draw_curve(
    objective: Objective,
    splits: Sequence[NestedSplit],
    chains: Sequence[Sequence[TermProposal]],
    proposals: Sequence[TermProposal],
) -> tuple[AcceptedScore, ...]:
    """Return scores by the number of proposals accepted."""
    total = len(proposals)
    steps = np.unique(
        np.linspace(0, total, min(total, _POINTS) + 1).round().astype(int)
    )
    pooled = np.concatenate([split.estimate for split in splits])
    points = []
    for accepted in map(int, steps):
        whole = _with(objective, proposals[:accepted])
        parts = [
            objective.answers(
                # So much of each chain, since chains differ in length.
                _with(objective, chain[: round(accepted * len(chain) / max(total, 1))]),
                split.estimate,
            )
            for chain, split in zip(chains, splits, strict=True)
        ]
        points.append(
            AcceptedScore(
                accepted,
                objective.score(objective.answers(whole)).macro_f1,
                objective.score(np.concatenate(parts), pooled).macro_f1,
            )
        )
    return tuple(points)


def _read_result(folder: SearchFolder) -> tuple[SearchFindings, tuple[str, ...]]:
    data: Mapping[str, Any] = folder.result or {}
    try:
        findings = _FINDINGS.validate_python(data["findings"])
        return findings, tuple(data["labels"])
    except (KeyError, ValidationError) as error:
        raise DataError(
            f"{folder.path} holds the result of another ranloop. Remove it and search "
            "again."
        ) from error


def _name_changes(
    workspace: WorkspacePaths, spec: SearchSpec, prompt: str | None
) -> tuple[str, ...]:
    """Return what has changed since the search began.

    Parameters
    ----------
    prompt
        What a draft would be made of; None for none.
    """
    changes: list[str] = []
    newest = read_reference(workspace, spec.cohort)
    if newest.digest != spec.reference_digest:
        number = newest.number
        changes.append(
            f"the reference of {spec.cohort} was revised to version {number}"
        )
    if prompt is not None:
        base = find_start(workspace, prompt).base
        if base.digest != spec.prompt_digest:
            changes.append(f"{base.ref} was committed, so that there is no draft")
    return tuple(changes)


def _make_draft(
    workspace: WorkspacePaths,
    report: SearchReport,
    prompt: str,
    options: SearchOptions,
    actor: Actor,
    now: Clock,
) -> SearchReport:
    """Return the report with its draft, checked; an open draft that says it is used."""
    guides = {
        guide.label: guide
        for guide in report.found.guides
        if guide.label in {one.label for one in report.findings.proposals}
    }
    known = _find_draft(workspace, report.found)
    with open_store(workspace) as store:
        if known:
            ref = known
            notes: tuple[str, ...] = ("an open draft says this already",)
        else:
            made = begin_draft(
                workspace,
                store,
                DraftRequest(
                    prompt=prompt,
                    cohort=report.spec.cohort,
                    guides=guides,
                    engine=options.engine,
                    why=_explain(report),
                    origin=DraftOrigin.OPTIMIZER,
                ),
                actor,
                now=now,
            )
            ref, notes = made.draft.ref, made.notes
        how = Examination(
            engine=options.engine, asking=options.asking, cohort=report.spec.cohort
        )
        check = check_draft_ref(workspace, store, ref, actor, how, now=now)
    return replace(report, draft=ref, check=check, notes=notes)


def _find_draft(workspace: WorkspacePaths, found: PromptVersion) -> str:
    """Return the open draft with the wording of `found`; empty for none."""
    for draft in list_drafts(workspace, found.name):
        try:
            version = read_version(workspace, f"{found.name}@draft:{draft}")
        except DataError:
            continue
        if version.digest == found.digest:
            return version.ref
    return ""


def _explain(report: SearchReport) -> str:
    """Return the reason of a draft, in counts."""
    labels = {one.label for one in report.findings.proposals}
    gain = report.findings.estimate.gain.estimate or 0.0
    return (
        f"{len(report.findings.proposals)} terms and exclusions for {len(labels)} "
        f"labels, mined by terms; macro-F1 {gain:+.3f} on cases not searched"
    )
