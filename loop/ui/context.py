"""What all visitors share: the workspace, its open store, and what was worked out."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeVar

from loop.core.clock import Clock
from loop.core.errors import DataError
from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths
from loop.evaluate.evaluation import evaluate_run
from loop.evaluate.protocol import protocol_digest
from loop.evaluate.results import Evaluation
from loop.evaluate.tried import Selection, correct_optimism
from loop.labels.cohort import CohortRole, read_record
from loop.review.status import KeptVerdict, Verdicts
from loop.run.jobs import JobQueue
from loop.run.manifest import find_run
from loop.run.store import RunRecord, Store
from loop.ui.access.access import Access
from loop.ui.background import Jobs

Made = TypeVar("Made")


class ResultCache:
    """A thread-safe LRU cache that computes each key once.

    Threads that want the same result wait for it. A key must name everything that the
    result depends on: nothing is ever made stale.
    """

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._lock = Lock()
        self._slots: OrderedDict[Hashable, _CacheSlot] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what `make` returned for `key`, calling it at most once.

        An error of `make` is passed on and not kept.
        """
        with self._lock:
            slot = self._slots.setdefault(key, _CacheSlot())
            self._slots.move_to_end(key)
            while len(self._slots) > self._most:
                self._slots.popitem(last=False)
        with slot.lock:
            if not slot.made:
                slot.result = make()
                slot.made = True
        result: Made = slot.result
        return result


class _CacheSlot:
    """Room for one result."""

    __slots__ = ("lock", "made", "result")

    def __init__(self) -> None:
        self.lock = Lock()
        self.made = False
        self.result: Any = None


@dataclass(frozen=True, kw_only=True)
class AppContext:
    """One workspace as the workbench serves it; used from many threads at once."""

    workspace: WorkspacePaths
    store: Store
    access: Access
    now: Clock
    cache: ResultCache = field(default_factory=ResultCache)
    jobs: Jobs = field(default_factory=Jobs)

    @property
    def queue(self) -> JobQueue:
        """The jobs of the workspace, which go on without the workbench."""
        return JobQueue(workspace=self.workspace, store=self.store, now=self.now)

    def kept_verdicts(self, cohort: str) -> tuple[KeptVerdict, ...]:
        """Return the verdicts on a cohort, oldest first, with what became of each.

        Only what is new is read.
        """
        known: Verdicts = self.cache.get(
            ("verdicts",), lambda: Verdicts(self.store, self.workspace)
        )
        return known.read(cohort)

    def without_root(self, text: str) -> str:
        """Return `text` with paths that begin at the workspace.

        Where it lies on the server is nobody's business.
        """
        return text.replace(f"{self.workspace.root}/", "")

    def latest_run(self, prompt: str, cohort: str) -> RunRecord:
        """Return the newest finished run of a prompt's versions on a cohort.

        Raises
        ------
        DataError
            There is none, or the cohort is a holdout: whoever may read it blind must
            not see here how a model does on it.
        """
        run = find_run(self.workspace, f"latest:{prompt}:{cohort}")
        if read_record(self.workspace, cohort).added.get("role") == CohortRole.HOLDOUT:
            raise DataError(
                f"cohort {cohort} is a holdout: no result on it is shown here. Choose "
                "another cohort."
            )
        return run

    def evaluation(self, run: RunRecord) -> Evaluation:
        """Return the evaluation of `run` on the newest reference, worked out once.

        Raises
        ------
        DataError
            The reference or the protocol is missing or unfit.
        """
        key = ("evaluation", *self.standing(run))
        return self.cache.get(key, lambda: evaluate_run(self.workspace, run.id))

    def selection(self, run: RunRecord) -> Selection:
        """Return the score of `run` corrected for the versions tried on its cohort.

        Raises
        ------
        DataError
            The cohort is not as it was asked, or has no reference.
        """
        key = ("selection", self.tried_mark(), *self.standing(run))
        return self.cache.get(
            key, lambda: correct_optimism(self.workspace, self.store, run.id)
        )

    def tried_mark(self) -> tuple[int, int]:
        """Return what changes whenever another version is tried: runs and entries."""
        (row,) = self.store.read("SELECT count(*) FROM runs WHERE finished IS NOT NULL")
        return int(row[0]), len(read_ledger(self.workspace.ledger))

    def standing(self, run: RunRecord) -> tuple[str, int, str, frozenset[str]]:
        """Return what the numbers of `run` rest on.

        Run, reference, protocol, and the labels that the reference cannot judge.
        """
        record = read_record(self.workspace, run.spec.cohort)
        protocol = protocol_digest(self.workspace)
        return run.id, record.newest, protocol, record.not_comparable
