"""What all visitors share: the workspace, its open store, and what was worked out."""

from __future__ import annotations

from dataclasses import dataclass, field

from loop.core.clock import Clock
from loop.core.errors import DataError
from loop.core.ledger import read_ledger
from loop.core.paths import Workspace
from loop.evaluate.evaluation import evaluate_run
from loop.evaluate.protocol import protocol_digest
from loop.evaluate.results import Evaluation
from loop.evaluate.tried import Selection, correct_optimism
from loop.labels.cohort import CohortRole, read_record
from loop.run.manifest import find_run
from loop.run.store import RunRecord, Store
from loop.ui.access.access import Access
from loop.ui.jobs import Jobs
from loop.ui.memo import Memo


@dataclass(frozen=True, kw_only=True)
class Desk:
    """One workspace as the workbench serves it; used from many threads at once."""

    workspace: Workspace
    store: Store
    access: Access
    now: Clock
    memo: Memo = field(default_factory=Memo)
    jobs: Jobs = field(default_factory=Jobs)

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
        return self.memo.get(key, lambda: evaluate_run(self.workspace, run.id))

    def selection(self, run: RunRecord) -> Selection:
        """Return the score of `run` corrected for the versions tried on its cohort.

        Raises
        ------
        DataError
            The cohort is not as it was asked, or has no reference.
        """
        key = ("selection", self.tried_mark(), *self.standing(run))
        return self.memo.get(
            key, lambda: correct_optimism(self.workspace, self.store, run.id)
        )

    def tried_mark(self) -> tuple[int, int]:
        """Return what changes whenever another version is tried: runs and entries."""
        (row,) = self.store.read("SELECT count(*) FROM runs WHERE finished IS NOT NULL")
        return int(row[0]), len(read_ledger(self.workspace.ledger))

    def standing(self, run: RunRecord) -> tuple[str, int, str]:
        """Return what the numbers of `run` rest on: run, reference, protocol."""
        record = read_record(self.workspace, run.spec.cohort)
        return run.id, record.newest, protocol_digest(self.workspace)
