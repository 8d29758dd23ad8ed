"""Dry runs: what an import or votes would do, tried on a throw-away copy."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loop.core.errors import ConflictError, DataError, LoopError
from loop.core.files import locked, make_folder, write_error
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.labels.ballots import Votes, read_votes
from loop.labels.cohort import Cohort, list_cohorts, read_cohort, read_cohort_file
from loop.labels.importing.importer import ImportReport, import_cohort
from loop.labels.importing.source import ImportOptions, SourceCase
from loop.labels.overlap import PairReport, check_cohorts
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.labels.votes import Taking, VotesReport, preview_votes, take_votes

if TYPE_CHECKING:
    from pandas import DataFrame

_LINKED = ("cases", "findings", "replaced")
"""Private folders whose files are read, or replaced as a whole, never written into."""

_KEYS = ("pseudonym", "vault.key")
"""Without them patients could not be compared, and no sealed vote be added to."""


@contextmanager
def trial(workspace: WorkspacePaths) -> Iterator[WorkspacePaths]:
    """Give a workspace with the same taxonomy, cohorts, texts, ledger and keys.

    Whatever is done in it is gone afterwards, and nothing of it reaches `workspace`.
    It has no prompts and an empty store, and errors of the block name `workspace`. It
    lies in ``.ranloop/trials/``, mode 0700; what a killed process left there is
    removed first.

    Raises
    ------
    WriteError
        The copy cannot be made.
    """
    parent = workspace.open_private() / "trials"
    make_folder(parent, mode=0o700)
    _sweep(parent)
    place = parent / secrets.token_hex(8)
    with locked(_lock(place)):
        try:
            make_folder(place, mode=0o700)
            _fill(WorkspacePaths(place), workspace)
            yield WorkspacePaths(place)
        except LoopError as error:
            # Whoever reads the message looks for the file in the workspace.
            error.args = (str(error).replace(str(place), str(workspace.root)),)
            raise
        finally:
            shutil.rmtree(place, ignore_errors=True)
            _lock(place).unlink(missing_ok=True)


def _fill(copy: WorkspacePaths, workspace: WorkspacePaths) -> None:
    try:
        shutil.copytree(
            workspace.labels, copy.labels, ignore=shutil.ignore_patterns(".*")
        )
        copy.prompts.mkdir()
        if workspace.ledger.exists():
            shutil.copyfile(workspace.ledger, copy.ledger)
        copy.private.mkdir(mode=0o700)
        make_folder(copy.keys, mode=0o700)
        for key in _KEYS:
            if (workspace.keys / key).exists():
                shutil.copy(workspace.keys / key, copy.keys / key)
        for name in _LINKED:
            _link_files(workspace.private / name, copy.private / name)
    except OSError as error:
        # shutil.Error, which gathers several, has no number of its own.
        cause = error if error.errno else OSError(str(error))
        raise write_error(copy.root, cause) from error


def _link_files(source: Path, target: Path) -> None:
    """Give every file of `source` a name in `target`; replacing one replaces a link."""
    if source.is_dir():
        target.mkdir(mode=0o700)
        for path in source.iterdir():
            if path.is_file() and not path.name.startswith("."):
                os.symlink(path.resolve(), target / path.name)


def _sweep(parent: Path) -> None:
    """Remove the copies whose process is gone: nobody holds their lock."""
    for place in parent.iterdir():
        if place.is_dir():
            try:
                with locked(_lock(place), wait=False):
                    shutil.rmtree(place, ignore_errors=True)
                    _lock(place).unlink(missing_ok=True)
            except ConflictError:
                continue


def _lock(place: Path) -> Path:
    return place.with_name(f".{place.name}.lock")


class ImportDryRun(NamedTuple):
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
    path: Path | DataFrame
    need: int | None = None
    """Fewest equal votes, beyond over half of those who voted; None: as recorded."""

    replace: bool = False
    """Whether a reader's votes take the place of all earlier ones."""

    reason: str = ""
    """Why, for the ledger; empty: by which rule."""

    values: Mapping[str, str] = {}
    """Word of a cell to what it means, ``{"yes": "present"}``."""


def dry_run_import(
    workspace: WorkspacePaths,
    source: Path | DataFrame,
    options: ImportOptions,
    *,
    actor: Actor,
    watch: Callable[[Iterable[SourceCase]], Iterable[SourceCase]] = iter,
) -> ImportDryRun:
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
    return ImportDryRun(report, overlap, unread)


def dry_run_votes(
    workspace: WorkspacePaths, file: VotesFile, *, actor: Actor
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
    workspace: WorkspacePaths, file: VotesFile, *, actor: Actor
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
    workspace: WorkspacePaths,
    file: VotesFile,
    actor: Actor,
    take: Callable[[WorkspacePaths, Cohort, Votes, Taxonomy, Taking], VotesReport],
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
    votes = read_votes(file.path, cohort, taxonomy, file.values)
    return take(workspace, cohort, votes, taxonomy, how)


def _compare(
    workspace: WorkspacePaths, name: str
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
