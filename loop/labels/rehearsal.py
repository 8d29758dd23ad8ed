"""Uploads tried out before they count: what an import or votes would do, and change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.core.paths import Workspace
from loop.labels.cohort import Cohort, list_cohorts, read_cohort, read_cohort_file
from loop.labels.importing.importer import ImportReport, import_cohort
from loop.labels.importing.source import ImportOptions, SourceCase
from loop.labels.overlap import PairReport, check_cohorts
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.labels.trial import trial
from loop.labels.votes import (
    Taking,
    Votes,
    VotesReport,
    preview_votes,
    read_votes,
    take_votes,
)


class ImportRehearsal(NamedTuple):
    """What an import would do."""

    report: ImportReport
    overlap: tuple[PairReport, ...]
    """What it would share with each cohort of another role."""

    unread: tuple[str, ...]
    """Cohorts it could not be compared with, because they are not as recorded."""

    @property
    def separate(self) -> bool:
        """Whether nothing is shared, as far as could be told."""
        return not any(pair.shared for pair in self.overlap)


class VotesFile(NamedTuple):
    """A file of votes and how it is taken."""

    cohort: str
    path: Path
    need: int | None = None
    """Fewest equal votes, beyond over half of those who voted; None: as recorded."""

    replace: bool = False
    """Whether a reader's votes take the place of all earlier ones."""

    reason: str = ""
    """Why, for the ledger; empty: by which rule."""


def rehearse_import(
    workspace: Workspace,
    source: Path,
    options: ImportOptions,
    *,
    actor: Actor,
    watch: Callable[[Iterable[SourceCase]], Iterable[SourceCase]] = iter,
) -> ImportRehearsal:
    """Return what `import_cohort` would do with these options; nothing is changed.

    Raises
    ------
    DataError
        The import would be refused.
    WriteError
        The copy to try it in cannot be made.
    """
    with trial(workspace) as copy:
        report = import_cohort(copy, source, options, actor=actor, watch=watch)
        overlap, unread = _compare(copy, options.name)
    return ImportRehearsal(report, overlap, unread)


def rehearse_votes(
    workspace: Workspace, file: VotesFile, *, actor: Actor
) -> VotesReport:
    """Return what `take_votes_file` would do; nothing is changed.

    Raises
    ------
    DataError
        The votes would be refused.
    WriteError
        The locks cannot be made.
    """
    return _read(workspace, file, actor, preview_votes)


def take_votes_file(
    workspace: Workspace, file: VotesFile, *, actor: Actor
) -> VotesReport:
    """Add or replace the votes of a file, as `import_votes` and `replace_votes` do.

    Raises
    ------
    DataError
        The cohort or the file is wrong; nothing was changed.
    WriteError
        The workspace cannot be written; nothing was changed.
    """
    return _read(workspace, file, actor, take_votes)


def _read(
    workspace: Workspace,
    file: VotesFile,
    actor: Actor,
    take: Callable[[Workspace, Cohort, Votes, Taxonomy, Taking], VotesReport],
) -> VotesReport:
    """Hand the votes of a file to `take`."""
    cohort = read_cohort(workspace, file.cohort)
    taxonomy = read_taxonomy(workspace.labels)
    how = Taking(
        actor=actor,
        need=file.need,
        replace=file.replace,
        discard=file.replace,
        reason=file.reason,
    )
    return take(
        workspace, cohort, read_votes(file.path, cohort, taxonomy), taxonomy, how
    )


def _compare(
    workspace: Workspace, name: str
) -> tuple[tuple[PairReport, ...], tuple[str, ...]]:
    """Return what cohort `name` shares with every other, and which cannot be read."""
    role = read_cohort_file(workspace, name).role
    pairs: list[PairReport] = []
    unread: list[str] = []
    for other in list_cohorts(workspace):
        if other == name:
            continue
        with suppress(DataError):
            if read_cohort_file(workspace, other).role is role:
                continue
        try:
            pairs += check_cohorts(workspace, [name, other]).pairs
        except DataError:
            # One damaged cohort must not hide what the others share.
            unread.append(other)
    return tuple(pairs), tuple(unread)
