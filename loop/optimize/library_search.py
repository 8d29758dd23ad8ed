"""Searches for a better prompt with an optimizer, and makes drafts of what it found.

The optimizer proposes; nested splits say what that is worth; a draft is checked and
committed by a person like any other. Where the pooled estimate is not above the
version that the search began with, there is no draft, and that is a good result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Final

import numpy as np
from pydantic import TypeAdapter, ValidationError

from loop.core.clock import Clock, utc_now
from loop.core.digests import digest_json
from loop.core.errors import ConflictError, DataError
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.records import Status, ValueCode
from loop.evaluate.align import AlignedPairs
from loop.evaluate.gates import GateVerdict
from loop.evaluate.measure import measure_labels
from loop.evaluate.protocol import protocol_digest
from loop.evaluate.results import Method
from loop.labels.reference import read_reference
from loop.optimize.dspy_search import (
    require_optuna,
    search_bootstrap,
    search_mipro,
)
from loop.optimize.estimate import NestedEstimate
from loop.optimize.gepa_search import SaidByClinicians, gather_verdicts, search_gepa
from loop.optimize.nearest import list_approved, search_nearest
from loop.optimize.nested_search import NestedSearch, Propose, search_nested
from loop.optimize.objective import Objective, open_objective
from loop.optimize.proposals import (
    ProposalReader,
    draft_proposal,
    read_private_wording,
)
from loop.optimize.reflect import Reflector, check_reflects, is_on_this_machine
from loop.optimize.search import FAILING
from loop.optimize.search_record import (
    SearchFolder,
    SearchSpec,
    library_versions,
    open_search,
)
from loop.optimize.splits import FOLDS, digest_splits, split_cases
from loop.prompts.catalog import read_version
from loop.prompts.version import PromptVersion
from loop.review.revise.begin import find_start
from loop.review.revise.run_check import Examination, check_draft_ref
from loop.review.revise.wording import Authorship
from loop.review.status import KeptVerdict, read_kept
from loop.run.asking import EngineOptions, HeldEngine, hold_engine
from loop.run.store import Store, open_store
from loop.stats.optimism import expected_excess

BUDGET: Final = 300
"""Cases that each search may score, where nothing else is said."""

_FEW: Final = 4
"""Labels that the reason of a draft names; of more it gives the number."""

REFLECTION_TOKENS: Final = 2_048
"""Most output tokens of one proposal."""


class Optimizer(StrEnum):
    """What proposes wordings."""

    TERMS = "terms"
    """Mined without a model, see `loop.optimize.search`."""

    GEPA = "gepa"
    MIPRO = "mipro"
    BOOTSTRAP = "bootstrap"
    NEAREST = "nearest"

    @property
    def reflects(self) -> bool:
        """Whether it asks a language model what to propose."""
        return self in (Optimizer.GEPA, Optimizer.MIPRO)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """What to search for, from what, and with what."""

    prompt: str
    """The newest version, ``"extractor"``; with `study` any version."""

    cohort: str
    """Dev cohort."""

    optimizer: Optimizer
    labels: tuple[str, ...] = (FAILING,)
    """Labels whose guides may change; `FAILING` for those that fail their gate; empty
    for all that are wrong somewhere."""

    engine: str = "rules"
    """Engine that answers."""

    reflect: str = ""
    """Engine that proposes, for optimizers that need one."""

    budget: int = BUDGET
    """Cases that each search may score, one candidate on one case each; there is one
    search a split, and one more where these were better."""

    splits: int = FOLDS
    """Nested splits; fewer than `FOLDS` leave cases without an estimate."""

    seed: int = 0
    study: bool = False
    """Whether to report only, from any version: no draft is made."""

    def __post_init__(self) -> None:
        if self.optimizer is Optimizer.TERMS:
            raise ValueError("terms are searched for by `loop.optimize.search`")
        if self.budget < 1:
            raise ValueError(f"budget must be >= 1, got {self.budget}")
        if self.splits < 1:
            raise ValueError(f"splits must be >= 1, got {self.splits}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsData:
    """A number with its interval; None where it is not defined."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What a search ended with: all of it is private, and no case text is in it."""

    better: bool
    """Whether the lower limit of the gain is above 0 on cases that were not seen."""

    labels: tuple[str, ...]
    """Whose guides could change."""

    parent: LimitsData
    """Macro-F1 of what it began with, on the pooled estimate cases."""

    found: LimitsData
    """The same of what was found in each split."""

    gain: LimitsData
    parts: Mapping[str, tuple[float | None, float | None]]
    """``search``, ``select`` and ``estimate``: mean macro-F1 over the splits of the
    version that it began with, and of what was found."""

    gains: Mapping[str, tuple[float | None, float | None, bool]]
    """Label to F1 before and after, and whether it is estimable."""

    candidates: int
    """Different wordings that were scored, the one that it began with not counted."""

    calls: int
    """Cases of candidates that the optimizer scored."""

    proposals: int
    refused: Mapping[str, int]
    """Why proposals were refused, and how often."""

    reflections: int
    """Questions that the reflecting engine answered."""

    left_out: int
    """Cases that the engine failed on."""

    expected_excess: float
    """By how much the best of so many wordings is overrated where it was chosen, in the
    accuracy of one label, if all are equally good."""

    drafts: tuple[str, ...] = ()
    """References of the drafts that were made, the best first."""

    objections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Draft to what its regression check says against it; nothing where it passed."""

    stale: str = ""
    """What was changed while it was searched, in words."""

    @property
    def words(self) -> str:
        """How it ended, in one line."""
        if not self.labels:
            return "nothing to search for: no label is wrong"
        if not self.better:
            return "no better prompt found"
        count = len(self.drafts)
        return (
            f"{count} draft{'' if count == 1 else 's'}" if count else "better, a study"
        )


_RESULT: Final = TypeAdapter(SearchResult)


def search_prompt(
    workspace: WorkspacePaths,
    request: SearchRequest,
    actor: Actor,
    *,
    asking: EngineOptions | None = None,
    anew: bool = False,
    tell: Callable[[int, int], object] = lambda done, total: None,
    now: Clock = utc_now,
) -> SearchResult:
    """Return what a search found; drafts are written, and it stands in the ledger.

    A search that was killed goes on where it was, and a finished one is read again.

    Parameters
    ----------
    asking
        How the answering engine is asked; None for greedily.
    anew
        Whether an unfinished search of the same kind is forgotten first.
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
    EngineError
        An engine is not there, cannot reflect, or failed too often.
    LedgerError
        The ledger is broken.
    """
    if request.optimizer.reflects:
        check_reflects(request.optimizer, request.reflect)
    if request.optimizer is Optimizer.MIPRO:
        require_optuna()
    base = find_base(workspace, request)
    with ExitStack() as stack:
        objective = stack.enter_context(
            open_objective(
                workspace, base, request.cohort, engine=request.engine, asking=asking
            )
        )
        reflecting = None
        if request.optimizer.reflects:
            how = EngineOptions(
                temperature=1.0,
                max_tokens=REFLECTION_TOKENS,
                seed=request.seed,
                allow_unconstrained=True,
            )
            reflecting = stack.enter_context(
                hold_engine(workspace, request.reflect, how)
            )
        store = stack.enter_context(open_store(workspace))
        kept = read_kept(store, workspace, request.cohort)
        search = _Search(workspace, request, objective, reflecting, kept)
        folder = stack.enter_context(
            open_search(workspace, search.spec, actor, anew=anew, now=now)
        )
        if folder.result is not None:
            return _read_result(folder)
        found = search.run(folder, tell)
        result = search.result(found)
        if found is not None and not request.study:
            by = Authorship(actor.name, now(), explain_result(request, result))
            drafts = tuple(
                _make_draft(workspace, folder, wording, base, request, by)
                for wording in found.kept
            )
            examined = Examination(
                engine=request.engine,
                asking=asking or EngineOptions(),
                cohort=request.cohort,
            )
            result = replace(
                result,
                drafts=drafts,
                objections={
                    ref: _check(workspace, store, ref, actor, examined, now)
                    for ref in drafts
                },
            )
        result = replace(result, stale=_name_changes(workspace, search.spec))
        folder.finish(
            asdict(result), candidates=result.candidates, asked=objective.asked, now=now
        )
        return result


def find_base(workspace: WorkspacePaths, request: SearchRequest) -> PromptVersion:
    """Return the version that a search begins with.

    Raises
    ------
    ConflictError
        It is not the newest one, and the search is no study.
    """
    if request.study:
        return read_version(workspace, request.prompt)
    return find_start(workspace, request.prompt).base


def explain_result(request: SearchRequest, result: SearchResult) -> str:
    """Return the reason of a draft, from counts."""
    gain = result.gain
    if gain.value is None or gain.low is None or gain.high is None:
        said = ""
    else:
        said = (
            f"; macro-F1 {gain.value:+.3f} ({gain.low:+.3f} to {gain.high:+.3f}) on "
            f"cases of {request.cohort} that it had not seen"
        )
    count = len(result.labels)
    about = ", ".join(result.labels) if count <= _FEW else f"{count} labels"
    return (
        f"found by {request.optimizer} among {result.candidates} wordings for "
        f"{about}{said}"
    )


def choose_labels(objective: Objective, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Return the labels to search for, those that fail their gate first.

    A label that the version answers rightly everywhere, or that has fewer positives
    than the protocol's minimum, is left out unless it is named.

    Parameters
    ----------
    wanted
        As `SearchRequest.labels`.

    Raises
    ------
    DataError
        A label is not asked for, or the reference does not judge it.
    """
    ground = objective.ground
    named = tuple(one for one in wanted if one != FAILING)
    unknown = [one for one in named if one not in ground.labels]
    if unknown:
        raise DataError(
            f"{ground.version.ref} on cohort {ground.cohort.name} has no label "
            f"{', '.join(unknown)} to search for. Name some of "
            f"{', '.join(ground.labels)}."
        )
    answers = objective.answers(ground.version)
    pairs = AlignedPairs(
        case_ids=ground.case_ids,
        labels=ground.labels,
        # 1, 0 and -1 are the codes of present, absent and uncertain.
        reference=ground.truth,
        predicted=answers,
        statuses={Status.ANSWERED: len(answers)},
        not_run=0,
    )
    results = measure_labels(
        pairs,
        ground.taxonomy,
        ground.protocol,
        Method(units=len(np.unique(ground.clusters.units))),
        ground.clusters.units,
    )
    given = objective.decided(answers, ground.truth)
    lost = answers == ValueCode.FAILED
    wrong = ((ground.truth >= 0) & (given != ground.truth) & ~lost).sum(axis=0)
    fails = [one.gate.verdict is GateVerdict.FAIL for one in results]
    order = sorted(
        range(len(ground.labels)), key=lambda one: (not fails[one], -int(wrong[one]))
    )
    if named:
        chosen = [one for one in order if ground.labels[one] in named]
    else:
        chosen = [one for one in order if wrong[one] and ground.scored[one]]
        if wanted:
            chosen = [one for one in chosen if fails[one]]
    return tuple(ground.labels[one] for one in chosen)


class _Search:
    """One search: what it depends on, and how it goes."""

    def __init__(
        self,
        workspace: WorkspacePaths,
        request: SearchRequest,
        objective: Objective,
        reflecting: HeldEngine | None,
        kept: tuple[KeptVerdict, ...],
    ) -> None:
        ground = objective.ground
        self._request = request
        self._objective = objective
        self._reflecting = reflecting
        self._reflector: Reflector | None = None
        self.labels = choose_labels(objective, request.labels)
        self._splits = split_cases(
            ground.truth,
            ground.clusters.units,
            repeats=request.splits,
            seed=request.seed,
        )
        local = reflecting is None or is_on_this_machine(workspace, request.reflect)
        self._said: SaidByClinicians = gather_verdicts(kept, comments=local)
        self._approved = list_approved(workspace, ground.version, kept)
        comments = [one.verdict.comment for one in kept]
        self._reader = ProposalReader(
            ground.version, read_private_wording(workspace, ground.cohort, comments)
        )
        asked = digest_json(sorted(one.id for one in kept))
        self.spec = SearchSpec(
            prompt=ground.version.ref,
            prompt_digest=ground.version.digest,
            cohort=ground.cohort.name,
            cohort_digest=ground.cohort.digest,
            reference=ground.reference.number,
            reference_digest=ground.reference.digest,
            protocol_digest=protocol_digest(workspace),
            splits=digest_splits(self._splits, ground.case_ids),
            engine=request.engine,
            asker=digest_json(objective.engine.asker),
            optimizer=request.optimizer,
            seed=request.seed,
            budget=request.budget,
            settings={
                "labels": list(self.labels),
                "study": request.study,
                "reflect": digest_json(reflecting.asker) if reflecting else "",
                "verdicts": asked,
                "comments": local,
                "exemplars": digest_json(
                    {
                        label: [asdict(one) for one in rows]
                        for label, rows in self._approved.items()
                    }
                ),
            },
            libraries=library_versions("dspy", "gepa", "optuna", "scikit-learn"),
        )

    def run(
        self, folder: SearchFolder, tell: Callable[[int, int], object]
    ) -> NestedSearch | None:
        """Return what was found; None where there is nothing to search for."""
        if not self.labels:
            return None
        if self._reflecting is not None:
            self._reflector = Reflector(self._reflecting, folder)
        total = len(self._splits) + 1
        return search_nested(
            self._objective,
            self._propose(),
            self._splits,
            seed=self._request.seed,
            tell=lambda done: tell(done, total),
        )

    def _propose(self) -> Propose:
        """Return how the optimizer proposes."""
        request, objective, reader = self._request, self._objective, self._reader
        labels = self.labels
        if request.optimizer is Optimizer.NEAREST:
            return lambda cases, seed: search_nearest(
                objective, reader, self._approved, search=cases.search, labels=labels
            )
        if request.optimizer is Optimizer.BOOTSTRAP:
            return lambda cases, seed: search_bootstrap(
                objective, reader, self._approved, labels=labels, seed=seed
            )
        reflector = self._reflector
        if reflector is None:
            raise ValueError(f"{request.optimizer} needs an engine that reflects")
        if request.optimizer is Optimizer.MIPRO:
            return lambda cases, seed: search_mipro(
                objective,
                reader,
                reflector,
                self._approved,
                cases=cases,
                labels=labels,
                budget=request.budget,
                seed=seed,
            )
        return lambda cases, seed: search_gepa(
            objective,
            reader,
            reflector,
            cases,
            labels=labels,
            budget=request.budget,
            said=self._said,
            seed=seed,
        )

    def result(self, found: NestedSearch | None) -> SearchResult:
        """Return the result, without drafts."""
        estimate = found.estimate if found else None
        rounds = found.rounds if found else ()
        refused: Counter[str] = Counter()
        for one in rounds:
            refused.update({why.value: count for why, count in one.refused.items()})
        none = LimitsData(value=None, low=None, high=None)
        return SearchResult(
            better=bool(found and found.kept),
            labels=self.labels,
            parent=_limits(estimate, "parent") if estimate else none,
            found=_limits(estimate, "found") if estimate else none,
            gain=_limits(estimate, "gain") if estimate else none,
            parts={
                part: (estimate.mean(part).parent, estimate.mean(part).found)
                for part in ("search", "select", "estimate")
            }
            if estimate
            else {},
            gains={
                one.label: (one.parent, one.found, one.estimable)
                for one in (estimate.labels if estimate else ())
            },
            candidates=self._objective.candidates - 1,
            calls=sum(one.calls for one in rounds),
            proposals=sum(one.proposals for one in rounds),
            refused=dict(refused),
            reflections=self._reflector.answered if self._reflector else 0,
            left_out=estimate.left_out if estimate else 0,
            expected_excess=expected_excess(
                self._objective.ground.clusters.total,
                max(1, self._objective.candidates - 1),
                self._objective.ground.protocol.accuracy,
            ),
        )


def _name_changes(workspace: WorkspacePaths, spec: SearchSpec) -> str:
    newest = read_reference(workspace, spec.cohort)
    if newest.digest == spec.reference_digest:
        return ""
    return (
        f"the reference of {spec.cohort} was revised to version {newest.number} while "
        "it was searched"
    )


def _limits(estimate: NestedEstimate, name: str) -> LimitsData:
    one = getattr(estimate, name)
    return LimitsData(value=one.estimate, low=one.low, high=one.high)


def _read_result(folder: SearchFolder) -> SearchResult:
    try:
        return _RESULT.validate_python(folder.result)
    except ValidationError as error:
        raise DataError(
            f"{folder.path} holds the result of another version of ranloop. Remove "
            "the folder and search again."
        ) from error


def _check(
    workspace: WorkspacePaths,
    store: Store,
    ref: str,
    actor: Actor,
    how: Examination,
    now: Clock,
) -> tuple[str, ...]:
    """Return what the regression check of a draft says against it."""
    try:
        return check_draft_ref(workspace, store, ref, actor, how, now=now).objections
    except ConflictError as error:  # another version was committed meanwhile
        return (str(error),)


_DRAFT: Final = "draft"


def _make_draft(
    workspace: WorkspacePaths,
    folder: SearchFolder,
    wording: PromptVersion,
    base: PromptVersion,
    request: SearchRequest,
    by: Authorship,
) -> str:
    """Return the draft with a wording, written unless a killed search wrote it."""
    known = folder.recall(_DRAFT, wording.digest)
    if known is not None:
        return str(known)
    ref = draft_proposal(workspace, base, wording, request.cohort, by).ref
    folder.remember(_DRAFT, wording.digest, ref)
    return ref
