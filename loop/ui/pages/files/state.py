"""One upload of the page Files: tried out first, imported only when confirmed."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, TypeAlias

from loop.core.errors import ConflictError, DataError
from loop.labels.dry_run import (
    ImportDryRun,
    VotesFile,
    dry_run_import,
    dry_run_votes,
    take_votes_file,
)
from loop.labels.importing.importer import ImportReport, import_cohort
from loop.labels.importing.source import ImportOptions
from loop.labels.votes import VotesReport
from loop.review.verdict_files import (
    ImportDefaults,
    VerdictsDryRun,
    dry_run_file,
    take_file,
)
from loop.ui.background import Job, JobProgress
from loop.ui.uploads import discard, named_shortly
from loop.ui.wiring import Visit


class ImportKind(StrEnum):
    """What is imported."""

    COHORT = "cohort"
    VOTES = "votes"
    VERDICTS = "verdicts"


UploadOptions: TypeAlias = ImportOptions | VotesFile | ImportDefaults
"""How a file is taken."""

UploadResult: TypeAlias = (
    ImportDryRun | ImportReport | VotesReport | VerdictsDryRun | None
)
"""What a file would do, or did."""


class CheckedUpload(NamedTuple):
    """A file that was tried out, and waits for a word."""

    kind: ImportKind
    path: Path
    how: UploadOptions
    """What was tried is what is done."""

    found: UploadResult = None
    """What it would do: ids, names and counts, never a text."""


class ImportedUpload(NamedTuple):
    """What became of a file."""

    kind: ImportKind
    file: str
    """Its name."""

    found: UploadResult


def find_progress(visit: Visit, kind: ImportKind) -> JobProgress | None:
    """Return how far the visitor's upload of a kind is; None when there is none."""
    return visit.context.jobs.progress_of(_key(visit, kind))


def offer(
    visit: Visit, kind: ImportKind, path: Path, how: Callable[[Path], UploadOptions]
) -> None:
    """Begin to try an uploaded file out; what was offered before is dropped.

    Parameters
    ----------
    how
        Makes the options of the import from the path at which the file waits.

    Raises
    ------
    DataError
        The options are wrong.
    ConflictError
        The visitor's last upload of this kind is under way.
    """
    wanted = how(path)
    drop(visit, kind)
    try:
        visit.context.jobs.start(
            _key(visit, kind),
            visit.actor.name,
            lambda job: _try_out(job, visit, CheckedUpload(kind, path, wanted)),
        )
    except BaseException:
        discard(path)
        raise


def take(visit: Visit, kind: ImportKind) -> None:
    """Begin to do what was offered, exactly as it was tried out.

    Raises
    ------
    DataError
        Nothing is offered any more.
    ConflictError
        It is being done already.
    """
    offered = _offered(visit, kind)
    if offered is None:
        raise DataError(
            "the checked file is not there any more. Upload it again and check it."
        )
    visit.context.jobs.start(
        _key(visit, kind),
        visit.actor.name,
        lambda job: _do(job, visit, offered),
    )


def drop(visit: Visit, kind: ImportKind) -> None:
    """Forget the visitor's last upload of a kind, and delete its file.

    Raises
    ------
    ConflictError
        It is under way.
    """
    progress = find_progress(visit, kind)
    if progress is not None and not progress.finished:
        raise ConflictError("this upload is under way. Wait for it to finish.")
    offered = _offered(visit, kind)
    if offered is not None:
        discard(offered.path)
    visit.context.jobs.forget(_key(visit, kind))


def _offered(visit: Visit, kind: ImportKind) -> CheckedUpload | None:
    progress = find_progress(visit, kind)
    found = progress.result if progress else None
    # After an hour the file was swept away, and what was offered with it.
    return found if isinstance(found, CheckedUpload) and found.path.is_file() else None


def _key(visit: Visit, kind: ImportKind) -> str:
    return f"{kind} upload of {visit.actor.name}"


def _try_out(job: Job, visit: Visit, what: CheckedUpload) -> CheckedUpload:
    job.step(f"checking {what.path.name}")
    try:
        with named_shortly(what.path):
            return what._replace(found=_dry_run(job, visit, what))
    except BaseException:
        discard(what.path)
        raise


def _dry_run(job: Job, visit: Visit, what: CheckedUpload) -> UploadResult:
    context, how = visit.context, what.how
    if isinstance(how, ImportOptions):
        return dry_run_import(
            context.workspace, what.path, how, actor=visit.actor, watch=job.watch
        )
    if isinstance(how, VotesFile):
        return dry_run_votes(context.workspace, how, actor=visit.actor)
    return dry_run_file(context.workspace, context.store, what.path, how, context.now)


def _do(job: Job, visit: Visit, what: CheckedUpload) -> ImportedUpload:
    job.step(f"importing {what.path.name}")
    try:
        with named_shortly(what.path):
            return ImportedUpload(what.kind, what.path.name, _taken(job, visit, what))
    finally:
        discard(what.path)


def _taken(job: Job, visit: Visit, what: CheckedUpload) -> UploadResult:
    context, how = visit.context, what.how
    if isinstance(how, ImportOptions):
        return import_cohort(
            context.workspace, what.path, how, actor=visit.actor, watch=job.watch
        )
    if isinstance(how, VotesFile):
        return take_votes_file(context.workspace, how, actor=visit.actor)
    take_file(context.workspace, context.store, what.path, how, context.now)
    return what.found
