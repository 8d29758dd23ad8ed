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
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError, EngineError
from loop.core.paths import WorkspacePaths
from loop.core.records import Guide, Item, Outcome, PromptTask
from loop.evaluate.align import Codes, decided_reference
from loop.evaluate.measure import comparable_labels, resampling_units
from loop.evaluate.protocol import read_protocol
from loop.labels.cohort import iter_items
from loop.labels.reference import read_reference
from loop.labels.taxonomy import read_taxonomy
from loop.optimize.ground import Answers, LabelGround, SearchGround
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

MAX_FAILED: Final = 0.05
"""Largest share of the answers that the engine may fail on; above, the search stops.

An answer is that of one candidate about one case, however often it was asked."""

_EXAMPLES = 3


class CandidateScore(NamedTuple):
    """How one candidate did on some cases."""

    value: float | None
    """Over the labels that are scored, see `SearchGround.score_name`; None where none
    is defined."""

    by_label: NDArray[np.float64]
    """Of each label, NaN where undefined, shape ``(n_labels,)``."""

    points: NDArray[np.float64]
    """Of each case that was scored, see `SearchGround.points`; shape
    ``(n_cases, n_labels)``."""

    truth: Codes
    """Of the same cases: whether there is something to find."""

    left_out: int
    """Cases that the engine failed on, here or in the answers beside."""

    @property
    def cases(self) -> int:
        """Cases that were scored."""
        return len(self.points)


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
        self._known: dict[str, dict[int, Answers]] = {}
        self._lost: set[tuple[str, int]] = set()
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

    def answers(self, candidate: PromptVersion, rows: Rows | None = None) -> Answers:
        """Return what `candidate` answers about cases, in the form of the ground.

        Where the version asks about each label in a separate call, only labels whose
        guide differs from the parent's are asked.

        Parameters
        ----------
        rows
            Places of cases; None for all.

        Returns
        -------
        Answers
            One row a case, see `SearchGround.read`.

        Raises
        ------
        EngineError
            The engine as a whole failed, or failed on more than `MAX_FAILED` of the
            answers that were asked.
        DataError
            The candidate cannot be rendered or asked.
        """
        ground = self.ground
        wanted = range(len(ground.items)) if rows is None else rows.tolist()
        known = self._known.setdefault(candidate.digest, {})
        missing = [row for row in wanted if row not in known]
        failed: dict[int, Answers] = {}
        if missing:
            found = self._ask(candidate, missing)
            for row, told, lost in zip(missing, found, ground.lost(found), strict=True):
                (failed if lost else known)[row] = told
            self._refuse_failures(candidate.digest, list(failed))
        table = [known[row] if row in known else failed[row] for row in wanted]
        return np.array(table) if table else ground.read(())

    def score(
        self,
        answers: Answers,
        rows: Rows | None = None,
        *,
        beside: Answers | None = None,
    ) -> CandidateScore:
        """Return how answers did.

        What could not be read is wrong, so that no candidate gains by it. A case that
        the engine failed on, here or `beside`, is left out of both.

        Parameters
        ----------
        answers
            From `answers`, for the same `rows`.
        beside
            Answers of the other candidate that these are compared with.
        """
        ground = self.ground
        rows = np.arange(len(ground.items)) if rows is None else rows
        lost = ground.lost(answers)
        if beside is not None:
            lost |= ground.lost(beside)
        answers, rows = answers[~lost], rows[~lost]
        total = ground.total(answers, rows)
        return CandidateScore(
            value=total.value,
            by_label=total.by_label,
            points=ground.points(answers, rows),
            truth=ground.truth[rows],
            left_out=int(lost.sum()),
        )

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

    def _ask(self, candidate: PromptVersion, rows: Sequence[int]) -> Answers:
        """Return answers to the cases at `rows`, asking no more than what differs."""
        ground = self.ground
        parent, asked = ground.version, candidate
        changed = tuple(
            guide for guide in candidate.guides if parent.guide(guide.label) != guide
        )
        same_words = (candidate.system, candidate.user) == (parent.system, parent.user)
        alone = candidate.plan is not CallPlan.JOINT and same_words
        if ground.answers_apart and alone and 0 < len(changed) < len(candidate.guides):
            asked = replace(candidate, guides=changed)
        items = [ground.items[row] for row in rows]
        found = ground.read(self.ask_items(asked, items))
        if asked is not candidate:
            new = np.array([label in asked.labels for label in ground.labels])
            old = self.answers(parent, np.array(rows, dtype=np.intp))
            found = np.where(new, found, old).astype(found.dtype)
        return found

    def _refuse_failures(self, digest: str, failed: Sequence[int]) -> None:
        """Stop where the engine fails too often to compare anything."""
        if not failed:
            return
        # A case that fails is asked again at every look, and counts once.
        self._lost.update((digest, row) for row in failed)
        lost = len(self._lost)
        asked = sum(map(len, self._known.values())) + sum(
            row not in self._known[wording] for wording, row in self._lost
        )
        # A minibatch is too small to tell: the share is of all that was asked so far.
        if lost <= MAX_FAILED * max(asked, len(self.ground.items)):
            return
        ids = [self.ground.case_ids[row] for row in failed[:_EXAMPLES]]
        raise EngineError(
            f"{self._engine.name} failed on {lost:,} of {asked:,} answers that were "
            f"asked, for example on {', '.join(ids)}: too often to compare wordings. "
            "Repair the engine and start the same search again; what it answered is "
            "not asked twice."
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
        Number of the version of the reference, of a judge that of the ratings; None for
        the newest.

    Raises
    ------
    DataError
        The version neither labels texts nor counts errors of pairs, the cohort is not
        for development, has no reference, or no errors that readers marked, or no texts
        here, or shares no label with the version.
    OverlapError
        A pair of the cohort shares its reference, patient or id with a shot.
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
    OverlapError
        A pair of the cohort shares its reference, patient or id with a shot.
    """
    members = require_dev(workspace, cohort)
    task = task_of(version)
    if task is PromptTask.JUDGE:
        # Heavy, and of no use where no judge is searched for.
        from loop.optimize.judge_ground import read_count_ground

        return read_count_ground(workspace, version, members, reference)
    if task is not PromptTask.EXTRACT:
        raise DataError(
            f"{version.ref} neither labels texts nor judges pairs: nothing says which "
            "of its answers are right. Name an extractor or a judge."
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
    return LabelGround(
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
