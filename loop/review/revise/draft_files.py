"""What is kept beside a draft: what it is about, and its last check.

Both stand outside the draft's folder, so that neither its files nor its age change. The
first is written before the draft: a kill between the two leaves a small file that
nothing reads, never a draft that nobody knows the cohort of.
"""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from loop.core.errors import DataError
from loop.core.files import locked, read_text, write_atomic
from loop.core.paths import Workspace
from loop.prompts.catalog import drafts_folder, parse_ref, write_version
from loop.prompts.version import PromptVersion


class DraftOrigin(StrEnum):
    """Where the wording of a draft came from."""

    VERDICTS = "verdicts"
    HAND = "hand"
    OPTIMIZER = "optimizer"


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftMetadata:
    """What a draft is about, besides its wording."""

    cohort: str
    """Dev cohort it is to be checked on; empty when nobody said."""

    origin: DraftOrigin
    begun_by: str
    begun: str
    """UTC, ISO 8601."""


class DraftFiles(NamedTuple):
    """The files beside one draft."""

    about: Path
    check: Path


def beside(workspace: Workspace, draft: PromptVersion) -> DraftFiles:
    """Return where the files beside `draft` are or will be."""
    return _find(workspace, draft.name, draft.draft)


def _find(workspace: Workspace, name: str, draft: str) -> DraftFiles:
    folder = workspace.private / "revising" / name
    return DraftFiles(folder / f"{draft}.about.json", folder / f"{draft}.check.json")


def write_draft(
    workspace: Workspace, draft: PromptVersion, about: DraftMetadata
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
    text = TypeAdapter(DraftMetadata).dump_json(about, indent=2)
    write_atomic(beside(workspace, draft).about, text, mode=0o600)
    return write_version(workspace, draft)


def read_about(workspace: Workspace, draft: PromptVersion) -> DraftMetadata:
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


def remove_draft(workspace: Workspace, name: str, draft: str) -> None:
    """Remove the draft `draft` of `name` and what is kept beside it.

    Doing it twice is harmless.
    """
    shutil.rmtree(drafts_folder(workspace, name) / draft, ignore_errors=True)
    for path in _find(workspace, name, draft):
        path.unlink(missing_ok=True)


def drafts_locked(workspace: Workspace, ref: str) -> AbstractContextManager[None]:
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
