"""What a candidate wording is worth: its answers on a dev cohort beside the reference.

A candidate is a prompt version that differs from the one a search began with in guides
or in words of its system template. It is asked as a run asks it, by the same plan,
cache and contract, and there is no run of it: nothing of a search is ever the latest
run, in a history or among failing cases. Answers of engines other than `rules` are
stored by content in the workspace's store, so that what a search asked is not asked
again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError, EngineError
from loop.core.paths import WorkspacePaths
from loop.core.records import (
    Guide,
    Item,
    Outcome,
    PromptTask,
    UncertainAnswers,
    ValueCode,
)
from loop.evaluate.align import (
    Codes,
    count_uncertain,
    decided_reference,
    read_answers,
)
from loop.evaluate.measure import Clusters, comparable_labels, resampling_units
from loop.evaluate.protocol import Protocol, read_protocol
from loop.labels.cohort import Cohort, iter_items
from loop.labels.reference import Reference, read_reference
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.optimize.splits import Rows
from loop.prompts.catalog import read_version
from loop.prompts.version import CallPlan, PromptVersion
from loop.review.revise.begin import require_dev, with_guides
from loop.run.asking import EngineOptions, HeldEngine, hold_engine
from loop.run.cost import EngineUse
from loop.run.execute import RunSummary
from loop.run.pool_shots import with_shots
from loop.run.runner import PromptRunner, RunnerOptions
from loop.run.store import Store, open_store
from loop.run.task_fields import task_of
from loop.stats.confusion import count_confusions, mean_f1

MAX_FAILED: Final = 0.05
"""Largest share of the cases asked that the engine may fail on; above, it stops."""

_EXAMPLES = 3


class CandidateScore(NamedTuple):
    """How one candidate did on some cases."""

    macro_f1: float | None
    """Mean F1 over the labels that are scored; None where none is defined."""

    f1: NDArray[np.float64]
    """Of each label, NaN where undefined, shape ``(n_labels,)``."""

    accuracy: NDArray[np.float64]
    """Of each label over the decided cases, NaN without any, shape ``(n_labels,)``."""

    counts: NDArray[np.int64]
    """TP, FP, FN, TN of each label, shape ``(n_labels, 4)``."""

    cases: int
    """Cases that were scored."""

    left_out: int
    """Cases that the engine failed on, here or in the answers beside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchGround:
    """What candidates are scored on."""

    version: PromptVersion
    """What the search began with: the parent of every candidate."""

    cohort: Cohort
    reference: Reference
    taxonomy: Taxonomy
    protocol: Protocol
    items: tuple[Item, ...]
    """The cases with their texts: private."""

    labels: tuple[str, ...]
    """Labels that the version asks for and the reference can judge."""

    truth: Codes
    """The reference as 1, 0, or -1 where open, shape ``(n_cases, n_labels)``."""

    clusters: Clusters
    """Unit of each case: its patient, or itself."""

    @property
    def case_ids(self) -> tuple[str, ...]:
        """Ids of the cases, in the order of every array here."""
        return tuple(item.id for item in self.items)

    @property
    def positives(self) -> NDArray[np.int64]:
        """Decided positives of each label, shape ``(n_labels,)``."""
        return np.asarray((self.truth == 1).sum(axis=0))

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Which labels have the protocol's minimum of positives, ``(n_labels,)``.

        The others are not estimable: no search may claim to improve them, and they
        are in no mean.
        """
        return self.positives >= self.protocol.min_positives


class Objective:
    """Asks candidates and scores their answers; made by `open_objective`.

    What was answered is remembered by the digest of the candidate and by case, except
    where the engine failed, which is asked again next time.
    """

    def __init__(
        self,
        workspace: WorkspacePaths,
        ground: SearchGround,
        engine: HeldEngine,
        store: Store,
    ) -> None:
        """Prepare to ask; see `open_objective`."""
        self.ground: Final = ground
        self._workspace = workspace
        self._engine = engine
        self._store = store
        self._keep = engine.name.partition(":")[0] != "rules"
        self._known: dict[str, dict[int, NDArray[np.int8]]] = {}
        self._lost = 0
        self.asked = 0
        """Cases of candidates that were asked or found in the store; those remembered
        do not count."""

        self.use = EngineUse(engine.name)
        """What the engine was asked about them."""

    @property
    def engine(self) -> HeldEngine:
        """The engine, held open."""
        return self._engine

    @property
    def candidates(self) -> int:
        """Different wordings that were asked, the parent included."""
        return len(self._known)

    def candidate(
        self, guides: Mapping[str, Guide], *, system: str | None = None
    ) -> PromptVersion:
        """Return the parent with these guides, and another system template, in place.

        Raises
        ------
        ValueError
            A guide stands under another label than its own.
        DataError
            A label is none of the parent's.
        """
        version = self.ground.version
        for label in guides:
            if label not in version.labels:
                raise DataError(f"{version.ref} asks for no label {label!r}")
        made = with_guides(version, guides)
        return made if system is None else replace(made, system=system)

    def answers(self, candidate: PromptVersion, rows: Rows | None = None) -> Codes:
        """Return what `candidate` answers about cases, as codes of `ValueCode`.

        Where the version asks about each label in a call of its own, only labels whose
        guide differs from the parent's are asked.

        Parameters
        ----------
        rows
            Places of cases; None for all.

        Returns
        -------
        Codes
            Shape ``(n_rows, n_labels)``. `ValueCode.FAILED` where the engine failed.

        Raises
        ------
        EngineError
            The engine as a whole failed, or failed on more than `MAX_FAILED` of the
            cases asked.
        DataError
            The candidate cannot be rendered or asked.
        """
        ground = self.ground
        wanted = range(len(ground.items)) if rows is None else rows.tolist()
        known = self._known.setdefault(candidate.digest, {})
        missing = [row for row in wanted if row not in known]
        failed: dict[int, NDArray[np.int8]] = {}
        if missing:
            found = self._ask(candidate, missing)
            bad = (found == ValueCode.FAILED).any(axis=1)
            self._refuse_failures(np.array(missing)[bad])
            for row, codes, lost in zip(missing, found, bad, strict=True):
                (failed if lost else known)[row] = codes
        table = [known[row] if row in known else failed[row] for row in wanted]
        return np.array(table, dtype=np.int8).reshape(-1, len(ground.labels))

    def score(
        self, answers: Codes, rows: Rows | None = None, *, beside: Codes | None = None
    ) -> CandidateScore:
        """Return how answers did; uncertain ones count as the protocol says.

        What could not be read is wrong, so that no candidate gains by it. A case that
        the engine failed on, here or `beside`, is left out of both.

        Parameters
        ----------
        answers
            From `answers`, for the same `rows`.
        beside
            Answers of the other candidate that these are compared with.
        """
        truth = self.ground.truth if rows is None else self.ground.truth[rows]
        lost = (answers == ValueCode.FAILED).any(axis=1)
        if beside is not None:
            lost |= (beside == ValueCode.FAILED).any(axis=1)
        truth, answers = truth[~lost], answers[~lost]
        counts = count_confusions(truth, self.decided(answers, truth))
        found, weight = 2 * counts[:, 0], 2 * counts[:, 0] + counts[:, 1] + counts[:, 2]
        scored = self.ground.scored
        macro = mean_f1(found[scored], weight[scored])
        with np.errstate(invalid="ignore"):
            f1 = found / weight
            accuracy = (counts[:, 0] + counts[:, 3]) / counts.sum(axis=1)
        return CandidateScore(
            macro_f1=None if np.isnan(macro) else float(macro),
            f1=f1,
            accuracy=accuracy,
            counts=counts,
            cases=int((~lost).sum()),
            left_out=int(lost.sum()),
        )

    def decided(self, answers: Codes, truth: Codes) -> Codes:
        """Return answers as 1, 0, or -1 for none, by the protocol's policy.

        What could not be read, or was not answered, is wrong where the reference
        decides; what the engine failed on is no answer.

        Parameters
        ----------
        answers
            Codes of `ValueCode`.
        truth
            The reference of the same cases and labels as 1, 0 or -1.
        """
        policy: UncertainAnswers = self.ground.protocol.policy
        decided = count_uncertain(answers, truth, policy)
        unread = np.isin(answers, (ValueCode.UNPARSED, ValueCode.NOT_ASKED))
        return np.where(unread & (truth >= 0), 1 - truth, decided).astype(np.int8)

    def wrong(self, answers: Codes, truth: Codes) -> NDArray[np.bool_]:
        """Return where answers are not what the reference decides.

        What the engine failed on is not wrong.

        Parameters
        ----------
        answers, truth
            As for `decided`.
        """
        given = self.decided(answers, truth)
        lost = answers == ValueCode.FAILED
        return np.asarray((truth >= 0) & (given != truth) & ~lost)

    def ask_items(
        self, version: PromptVersion, items: Sequence[Item]
    ) -> tuple[Outcome, ...]:
        """Return what `version` answers about items of any origin, in their order.

        Raises
        ------
        EngineError
            The engine as a whole failed.
        DataError
            The version cannot be rendered or asked.
        """
        runner = PromptRunner(
            with_shots(self._workspace, version),
            self._workspace,
            self._engine,
            self._store,
            RunnerOptions(),
        )
        self.asked += len(items)
        return runner.ask_block(items, keep=self._keep, count=self._count)

    def _count(self, summary: RunSummary) -> None:
        self.use = self.use.plus(
            asked=summary.asked,
            cached=summary.cached,
            unanswered=summary.unanswered,
            used=summary.used,
        )

    def _ask(self, candidate: PromptVersion, rows: Sequence[int]) -> Codes:
        """Return codes of the cases at `rows`, asking no more than what differs."""
        ground = self.ground
        parent, asked = ground.version, candidate
        changed = tuple(
            guide for guide in candidate.guides if parent.guide(guide.label) != guide
        )
        same_words = (candidate.system, candidate.user) == (parent.system, parent.user)
        alone = candidate.plan is not CallPlan.JOINT and same_words
        if alone and 0 < len(changed) < len(candidate.guides):
            asked = replace(candidate, guides=changed)
        items = [ground.items[row] for row in rows]
        told = read_answers(self.ask_items(asked, items), ground.taxonomy)
        columns = [ground.taxonomy.ids.index(label) for label in ground.labels]
        found = np.array([told[item.id] for item in items], dtype=np.int8)[:, columns]
        if asked is not candidate:
            new = np.array([label in asked.labels for label in ground.labels])
            old = self.answers(parent, np.array(rows, dtype=np.intp))
            found = np.where(new, found, old).astype(np.int8)
        return found

    def _refuse_failures(self, failed: NDArray[np.int64]) -> None:
        """Stop where the engine fails too often to compare anything."""
        self._lost += len(failed)
        # A minibatch is too small to tell: the share is of all that was asked so far.
        if self._lost <= MAX_FAILED * max(self.asked, len(self.ground.items)):
            return
        ids = [self.ground.case_ids[row] for row in failed[:_EXAMPLES]]
        raise EngineError(
            f"{self._engine.name} failed {self._lost} times in {self.asked} cases, for "
            f"example on {', '.join(ids)}: too often to compare wordings. Repair the "
            "engine and start the same search again; what it answered is not asked "
            "twice."
        )


@contextmanager
def open_objective(
    workspace: WorkspacePaths,
    prompt: str | PromptVersion,
    cohort: str,
    *,
    engine: str = "rules",
    asking: EngineOptions | None = None,
    reference: int | None = None,
) -> Iterator[Objective]:
    """Hold what scores candidates of a version for the length of the block.

    Parameters
    ----------
    prompt
        The parent: a reference, or the version itself.
    cohort
        Name of a dev cohort; no other can be searched on.
    engine
        Engine name; it is opened by the first question.
    reference
        Number of the reference version; None for the newest.

    Raises
    ------
    DataError
        The version does not label one text, the cohort is not for development, has no
        reference or no texts here, or shares no label with the version.
    EngineError
        There is no such engine.
    """
    version = read_version(workspace, prompt) if isinstance(prompt, str) else prompt
    ground = read_search_ground(workspace, version, cohort, reference)
    with ExitStack() as stack:
        store = stack.enter_context(open_store(workspace))
        held = stack.enter_context(
            hold_engine(workspace, engine, asking, task_of(version))
        )
        yield Objective(workspace, ground, held, store)


def read_search_ground(
    workspace: WorkspacePaths,
    version: PromptVersion,
    cohort: str,
    reference: int | None = None,
) -> SearchGround:
    """Return what candidates of `version` are scored on; asks nothing.

    Raises
    ------
    DataError
        As `open_objective` says.
    """
    members = require_dev(workspace, cohort)
    if task_of(version) is not PromptTask.EXTRACT:
        raise DataError(
            f"{version.ref} does not label one text: only prompts that extract labels "
            "can be searched for. Name an extractor."
        )
    taxonomy = read_taxonomy(workspace.labels)
    standard = read_reference(workspace, members.name, reference)
    items = tuple(iter_items(workspace, members))
    ids = tuple(item.id for item in items)
    truth = decided_reference(standard, ids, taxonomy)
    judged = comparable_labels(taxonomy.ids, members.not_comparable)
    columns = [
        place
        for place, label in enumerate(taxonomy.ids)
        if label in version.labels and judged[place] and (truth[:, place] >= 0).any()
    ]
    if not columns:
        raise DataError(
            f"the reference of cohort {members.name} judges no label that "
            f"{version.ref} asks for. Name another cohort."
        )
    patients = {case.case_id: case.patient for case in members.cases}
    return SearchGround(
        version=version,
        cohort=members,
        reference=standard,
        taxonomy=taxonomy,
        protocol=read_protocol(workspace),
        items=items,
        labels=tuple(taxonomy.ids[place] for place in columns),
        truth=truth[:, columns],
        clusters=resampling_units([patients.get(case, "") for case in ids]),
    )
