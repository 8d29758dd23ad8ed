"""Whether a committed version is still what was committed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from loop.core.ledger import read_ledger
from loop.core.paths import Workspace
from loop.prompts.folder import Header, file_digests
from loop.prompts.version import PromptVersion


class Edit(NamedTuple):
    """How the files of a version differ from what was recorded of them."""

    problem: str
    """In a few words, for a history."""

    detail: str
    """What was recorded and what was found."""


def find_edit(
    workspace: Workspace, folder: Path, version: PromptVersion, header: Header
) -> Edit | None:
    """Return how a version was edited after it was committed; None if it was not.

    ``prompt.yaml`` can be edited together with the wording, so the ledger has the last
    word where it knows the version. Where it does not, only ``prompt.yaml`` is asked.

    Raises
    ------
    LedgerError
        The ledger is broken.
    """
    if version.digest != header.digest:
        return Edit(
            "edited after it was committed",
            f"recorded digest {header.digest[:12]}, found {version.digest[:12]}",
        )
    committed = _find_commit(workspace, version.ref)
    recorded = str(committed.get("digest", version.digest))
    if version.digest != recorded:
        return _differs(f"digest {recorded[:12]}, found {version.digest[:12]}")
    files: Mapping[str, str] = committed.get("files", {})
    found = file_digests(folder) if files else {}
    edited = [name for name in files if found.get(name) != files[name]]
    return _differs(f"another {' and '.join(edited)}") if edited else None


def _differs(what: str) -> Edit:
    problem = "differs from what the ledger recorded"
    return Edit(problem, f"the ledger recorded {what}")


def _find_commit(workspace: Workspace, ref: str) -> Mapping[str, Any]:
    """Return what the ledger recorded when `ref` was committed; empty if nothing."""
    for entry in reversed(read_ledger(workspace.ledger)):
        if entry.action == "draft_committed" and entry.subject == ref:
            return entry.payload
    return {}
