"""One upload from file to import: tried out first, done only when confirmed."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, TypeAlias

from loop.core.errors import ConflictError, DataError
from loop.core.ledger import Actor
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
from loop.ui.desk import Desk
from loop.ui.jobs import Job, JobProgress
from loop.ui.uploads import discard, named_shortly


class ImportKind(StrEnum):
    """What is imported."""

    COHORT = "cohort"
    VOTES = "votes"
    VERDICTS = "verdicts"


How: TypeAlias = ImportOptions | VotesFile | ImportDefaults
"""How a file is taken."""

Found: TypeAlias = ImportDryRun | ImportReport | VotesReport | VerdictsDryRun | None
"""What a file would do, or did."""


class Offer(NamedTuple):
    """A file that was tried out, and waits for a word."""

    kind: ImportKind
    path: Path
    how: How
    """What was tried is what is done."""

    found: Found = None
    """What it would do: ids, names and counts, never a text."""


class Done(NamedTuple):
    """What became of a file."""

    kind: ImportKind
    file: str
    """Its name."""

    found: Found


class Visitor(NamedTuple):
    """On whose desk, and for whom."""

    desk: Desk
    actor: Actor


def look(visitor: Visitor, kind: ImportKind) -> JobProgress | None:
    """Return how far the visitor's upload of a kind is; None when there is none."""
    return visitor.desk.jobs.look(_key(visitor, kind))


def offer(
    visitor: Visitor, kind: ImportKind, path: Path, how: Callable[[Path], How]
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
    drop(visitor, kind)
    try:
        visitor.desk.jobs.start(
            _key(visitor, kind),
            visitor.actor.name,
            lambda job: _try_out(job, visitor, Offer(kind, path, wanted)),
        )
    except BaseException:
        discard(path)
        raise


def take(visitor: Visitor, kind: ImportKind) -> None:
    """Begin to do what was offered, exactly as it was tried out.

    Raises
    ------
    DataError
        Nothing is offered any more.
    ConflictError
        It is being done already.
    """
    offered = _offered(visitor, kind)
    if offered is None:
        raise DataError(
            "the checked file is not there any more. Upload it again and check it."
        )
    visitor.desk.jobs.start(
        _key(visitor, kind),
        visitor.actor.name,
        lambda job: _do(job, visitor, offered),
    )


def drop(visitor: Visitor, kind: ImportKind) -> None:
    """Forget the visitor's last upload of a kind, and delete its file.

    Raises
    ------
    ConflictError
        It is under way.
    """
    progress = look(visitor, kind)
    if progress is not None and not progress.finished:
        raise ConflictError("this upload is under way. Wait for it to finish.")
    offered = _offered(visitor, kind)
    if offered is not None:
        discard(offered.path)
    visitor.desk.jobs.forget(_key(visitor, kind))


def _offered(visitor: Visitor, kind: ImportKind) -> Offer | None:
    progress = look(visitor, kind)
    found = progress.result if progress else None
    # After an hour the file was swept away, and what was offered with it.
    return found if isinstance(found, Offer) and found.path.is_file() else None


def _key(visitor: Visitor, kind: ImportKind) -> str:
    return f"{kind} upload of {visitor.actor.name}"


def _try_out(job: Job, visitor: Visitor, what: Offer) -> Offer:
    job.step(f"checking {what.path.name}")
    try:
        with named_shortly(what.path):
            return what._replace(found=_dry_run(job, visitor, what))
    except BaseException:
        discard(what.path)
        raise


def _dry_run(job: Job, visitor: Visitor, what: Offer) -> Found:
    desk, how = visitor.desk, what.how
    if isinstance(how, ImportOptions):
        return dry_run_import(
            desk.workspace, what.path, how, actor=visitor.actor, watch=job.watch
        )
    if isinstance(how, VotesFile):
        return dry_run_votes(desk.workspace, how, actor=visitor.actor)
    return dry_run_file(desk.workspace, desk.store, what.path, how, desk.now)


def _do(job: Job, visitor: Visitor, what: Offer) -> Done:
    job.step(f"importing {what.path.name}")
    try:
        with named_shortly(what.path):
            return Done(what.kind, what.path.name, _taken(job, visitor, what))
    finally:
        discard(what.path)


def _taken(job: Job, visitor: Visitor, what: Offer) -> Found:
    desk, how = visitor.desk, what.how
    if isinstance(how, ImportOptions):
        return import_cohort(
            desk.workspace, what.path, how, actor=visitor.actor, watch=job.watch
        )
    if isinstance(how, VotesFile):
        return take_votes_file(desk.workspace, how, actor=visitor.actor)
    take_file(desk.workspace, desk.store, what.path, how, desk.now)
    return what.found
