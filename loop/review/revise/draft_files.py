"""A draft as it is kept: its files, what it is about, and the versions around it.

What it is about and its last check stand outside the draft's folder, so that neither
its files nor its age change. The first is written before the draft: a kill between the
two leaves a small file that nothing reads, never a draft that nobody knows the cohort
of.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from loop.core.errors import ConflictError, DataError
from loop.core.files import locked, read_text, write_atomic
from loop.core.ledger import LedgerEntry, read_ledger
from loop.core.paths import WorkspacePaths
from loop.prompts.catalog import (
    drafts_folder,
    find_parent,
    latest_version,
    parse_ref,
    read_version,
    write_version,
)
from loop.prompts.version import PromptVersion


class DraftOrigin(StrEnum):
    """Where the wording of a draft came from."""

    VERDICTS = "verdicts"
    HAND = "hand"
    OPTIMIZER = "optimizer"


class Acceptance(NamedTuple):
    """Who accepted what a search proposed for a draft, and when."""

    by: str
    time: str
    """UTC, ISO 8601."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftMetadata:
    """What a draft is about, besides its wording."""

    cohort: str
    """Dev cohort it is to be checked on; empty when nobody said."""

    origin: DraftOrigin
    begun_by: str
    begun: str
    """UTC, ISO 8601."""

    search: str = ""
    """Key of the search that wrote it; empty where none did."""

    wording: str = ""
    """Digest of what that search wrote, whatever the draft says by now."""

    accepted: Mapping[str, Acceptance] = field(default_factory=dict)
    """Id of a guide that the search proposed to who accepted it."""


class DraftFiles(NamedTuple):
    """The files beside one draft."""

    about: Path
    check: Path
    tries: Path


def beside(workspace: WorkspacePaths, draft: PromptVersion) -> DraftFiles:
    """Return where the files beside a draft are or will be; a version has tries."""
    return _files_of(workspace, draft.name, draft.draft or draft.tag)


def _files_of(workspace: WorkspacePaths, name: str, draft: str) -> DraftFiles:
    folder = workspace.private / "revising" / name
    kinds = ("about", "check", "tries")
    return DraftFiles(*(folder / f"{draft}.{kind}.json" for kind in kinds))


def write_draft(
    workspace: WorkspacePaths, draft: PromptVersion, about: DraftMetadata
) -> PromptVersion:
    """Write a new draft and what it is about, and return the draft.

    Raises
    ------
    ConflictError
        A draft of that id exists.
    WriteError
        The workspace cannot be written; there is no draft.
    """
    workspace.open_private()
    _write_about(workspace, draft, about)
    return write_version(workspace, draft)


def _write_about(
    workspace: WorkspacePaths, draft: PromptVersion, about: DraftMetadata
) -> None:
    text = TypeAdapter(DraftMetadata).dump_json(about, indent=2)
    write_atomic(beside(workspace, draft).about, text, mode=0o600)


def keep_accepted(
    workspace: WorkspacePaths, ref: str, proposal: str, accepted: Acceptance | None
) -> None:
    """Remember who accepted a proposed guide of the draft `ref`; None to forget it.

    Raises
    ------
    DataError
        There is no such draft.
    WriteError
        The workspace cannot be written.
    """
    with drafts_locked(workspace, ref):
        draft = read_version(workspace, ref)
        about = read_about(workspace, draft)
        known = {name: one for name, one in about.accepted.items() if name != proposal}
        if accepted is not None:
            known[proposal] = accepted
        _write_about(workspace, draft, replace(about, accepted=known))


def read_about(workspace: WorkspacePaths, draft: PromptVersion) -> DraftMetadata:
    """Return what `draft` is about; derived from the draft where nothing says so.

    A draft that names verdicts comes from them; any other was written by hand.
    """
    try:
        text = read_text(beside(workspace, draft).about)
        return TypeAdapter(DraftMetadata).validate_json(text)
    except (DataError, ValidationError):
        return DraftMetadata(
            cohort="",
            origin=DraftOrigin.VERDICTS if draft.verdicts else DraftOrigin.HAND,
            begun_by=draft.author,
            begun=draft.time,
        )


def remove_draft(workspace: WorkspacePaths, name: str, draft: str) -> None:
    """Remove the draft `draft` of `name` and what is kept beside it.

    Doing it twice is harmless.
    """
    shutil.rmtree(drafts_folder(workspace, name) / draft, ignore_errors=True)
    for path in _files_of(workspace, name, draft):
        path.unlink(missing_ok=True)


def drafts_locked(workspace: WorkspacePaths, ref: str) -> AbstractContextManager[None]:
    """Hold the lock under which the drafts of a prompt are changed and removed.

    Parameters
    ----------
    ref
        Reference to any of them.

    Raises
    ------
    DataError
        `ref` is not a reference.
    WriteError
        The workspace cannot be written.
    """
    name = parse_ref(ref).name
    return locked(workspace.open_private() / "locks" / f"drafts-{name}.lock")


class DraftLineage(NamedTuple):
    """A draft and the versions around it."""

    draft: PromptVersion
    parent: PromptVersion
    """The version it was made from."""

    newest: PromptVersion
    """The newest committed version; the parent unless someone was faster."""

    @property
    def behind(self) -> bool:
        """Whether another version was committed since the draft was made."""
        return self.parent.digest != self.newest.digest


def read_line(workspace: WorkspacePaths, ref: str) -> DraftLineage:
    """Return the draft that `ref` names, its parent and the newest version.

    A version that a killed commit made of this very draft does not count as newer.

    Raises
    ------
    DataError
        `ref` names no draft, or its parent is not among the versions.
    """
    draft = read_version(workspace, ref)
    if not draft.draft:
        raise DataError(
            f"{draft.ref} is a committed version and stays as it is. Begin a draft of "
            f"it with `ranloop draft begin {draft.name}`."
        )
    parent = find_parent(workspace, draft)
    if parent is None:
        raise DataError(
            f"{draft.ref} was made from a version ({(draft.parent or 'none')[:12]}) "
            f"that {draft.name} does not have. Restore it from version control, or "
            f"discard the draft with `ranloop draft discard {draft.ref}`."
        )
    if find_commit(workspace, draft) is not None:
        return DraftLineage(draft, parent, parent)
    return DraftLineage(draft, parent, latest_version(workspace, draft.name))


def require_current(line: DraftLineage) -> None:
    """Refuse a draft whose parent is not the newest version any more.

    Raises
    ------
    ConflictError
        Another version was committed meanwhile; says whose, and what to do.
    """
    if line.behind:
        raise overtaken(line.draft, line.newest)


def overtaken(draft: PromptVersion, newest: PromptVersion) -> ConflictError:
    """Return the refusal of a draft after whose start `newest` was committed."""
    return ConflictError(
        f"{newest.ref} was committed by {newest.author} at {newest.time}, after "
        f"{draft.ref} was begun. The draft is kept. Bring its changes to {newest.ref} "
        f"with `ranloop draft rebase {draft.ref}`."
    )


def find_commit(
    workspace: WorkspacePaths, draft: PromptVersion
) -> PromptVersion | None:
    """Return the newest version if it is this draft, committed; None if it is not.

    A kill may come between the version and its ledger entry, or between that and the
    removal of the draft: then version and draft stand side by side.

    Raises
    ------
    DataError
        The newest version cannot be read.
    """
    latest = latest_version(workspace, draft.name)
    if (latest.digest, latest.parent) != (draft.digest, draft.parent):
        return None
    entry = _find_entry(workspace, latest)
    return latest if entry is None or entry.payload.get("draft") == draft.ref else None


def is_recorded(workspace: WorkspacePaths, version: PromptVersion) -> bool:
    """Whether the ledger knows of the commit of `version`."""
    return _find_entry(workspace, version) is not None


def _find_entry(
    workspace: WorkspacePaths, version: PromptVersion
) -> LedgerEntry | None:
    """Return the ledger entry of a version's commit, if it has one."""
    for entry in reversed(read_ledger(workspace.ledger)):
        if entry.action == "draft_committed" and entry.subject == version.ref:
            return entry
    return None
