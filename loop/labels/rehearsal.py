"""Uploads tried out before they count: what an import or votes would do, and change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.core.paths import Workspace
from loop.labels.cohort import list_cohorts, read_cohort, read_cohort_file
from loop.labels.importing.importer import ImportReport, import_cohort
from loop.labels.importing.source import ImportOptions, SourceCase
from loop.labels.overlap import PairReport, check_cohorts
from loop.labels.recorded import read_record
from loop.labels.taxonomy import read_taxonomy
from loop.labels.trial import trial
from loop.labels.votes import VotesReport, import_votes, replace_votes


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
    """Equal votes wanted of all readers; None: over half."""

    replace: bool = False
    """Whether a reader's votes take the place of all earlier ones."""


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
        The copy to try it in cannot be made.
    """
    with trial(workspace) as copy:
        report = take_votes_file(copy, file, actor=actor)
    if not report.sealed:
        return report
    # Whether the majority would change tells of the votes that are sealed.
    newest = read_record(workspace, file.cohort).newest
    return replace(report, reference=newest + 1)


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
    take = replace_votes if file.replace else import_votes
    return take(
        workspace,
        read_cohort(workspace, file.cohort),
        file.path,
        read_taxonomy(workspace.labels),
        need=file.need,
        actor=actor,
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
