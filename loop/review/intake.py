"""A verdict file taken into the store."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from loop.core.errors import DataError
from loop.core.paths import Workspace
from loop.evaluate.failures import open_for_review
from loop.labels.taxonomy import read_taxonomy
from loop.review.files import check_verdicts, read_verdicts
from loop.review.record import VerdictContext
from loop.review.submit import submit_verdicts
from loop.run.manifest import find_run
from loop.run.store import Store


class ImportDefaults(NamedTuple):
    """What the verdicts of a file are about, where the file does not say it."""

    reviewer: str
    """Who judges where a verdict names nobody."""

    cohort: str = ""
    """Cohort of the cases; by default what the file says, or the run's."""

    run: str = ""
    """Run that was judged; by default what the file says, or none."""


class ImportedVerdicts(NamedTuple):
    """What was taken from a file."""

    cohort: str
    run: str
    """Full id of the run, or empty."""

    ids: tuple[str, ...]
    """Ids the verdicts are kept under, in file order."""


def take_file(
    workspace: Workspace,
    store: Store,
    path: Path,
    occasion: ImportDefaults,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> ImportedVerdicts:
    """Keep the verdicts of a file, all or none, and return their ids.

    Raises
    ------
    DataError
        The file, a verdict, the cohort or the run is wrong; nothing was kept.
    UnknownLabelError
        A label is not in the taxonomy; nothing was kept.
    StoreError
        The store cannot be written; nothing was kept.
    """
    file = read_verdicts(path, reviewer=occasion.reviewer)
    ref = occasion.run or file.run
    record = find_run(workspace, ref) if ref else None
    of_run = record.spec.cohort if record else ""
    name = occasion.cohort or file.cohort or of_run
    if not name:
        raise DataError(
            f"nothing says which cohort the cases of {path} belong to. Name it with "
            "--cohort or --run, or write `cohort: NAME` at the top of the file."
        )
    if record and name != of_run:
        raise DataError(
            f"run {record.id} asked the cases of {of_run}, and the verdicts are on "
            f"{name}. Name the right run or the right cohort."
        )
    cohort = open_for_review(workspace, name)
    taxonomy = read_taxonomy(workspace.labels)
    verdicts = check_verdicts(file.verdicts, taxonomy, frozenset(cohort.case_ids))
    made_on = VerdictContext(
        cohort=name,
        prompt=record.spec.prompt if record else file.prompt,
        source=path.name,
        run=record.id if record else "",
    )
    return ImportedVerdicts(
        name, made_on.run, submit_verdicts(store, verdicts, made_on, now)
    )
