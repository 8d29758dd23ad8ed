"""A draft becomes the next version, or stays a draft: one at a time, recorded."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loop.core.clock import Clock, utc_now
from loop.core.errors import ConflictError, LoopError
from loop.core.files import locked
from loop.core.git import commit_paths
from loop.core.ledger import (
    Actor,
    Event,
    LedgerEntry,
    append_event,
    append_events,
    read_ledger,
)
from loop.core.paths import Workspace
from loop.labels.reference import reference_path
from loop.prompts.catalog import (
    file_digests,
    latest_version,
    renumbered,
    version_folder,
    write_version,
)
from loop.prompts.version import PromptVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class Commitment:
    """Who decides on a draft, on what evidence, and with which objections."""

    actor: Actor
    reason: str
    evidence: Mapping[str, Any]
    """Counts and run ids for the ledger; never case text."""

    objections: Sequence[str] = ()
    """What stands against a commit; empty when the check passed."""

    override_reason: str = ""
    """Why it is committed all the same."""


def commit_draft(
    workspace: Workspace,
    draft: PromptVersion,
    commitment: Commitment,
    *,
    now: Clock = utc_now,
) -> PromptVersion:
    """Return `draft` committed as the version after its parent.

    The number is taken under a lock, and only if the parent is still the newest
    version: of two people who revise the same version at once, the first commits and
    the second keeps a draft. The draft folder is removed after the ledger entry is
    written; before that, in a git repository, version, ledger and references corrected
    on the way are committed. A commit of this draft that was killed half-way is
    finished.

    Raises
    ------
    ConflictError
        Another version was committed since the draft was begun.
    LedgerError
        The ledger is broken; no version was made.
    WriteError
        The workspace cannot be written; no version was made.
    """
    lock = workspace.open_private() / "locks" / f"prompt-{draft.name}.lock"
    with locked(lock):
        version = find_commit(workspace, draft) or _make(workspace, draft)
        if not is_recorded(workspace, version):
            _record(workspace, version, draft, commitment, now)
        _commit_to_git(workspace, version, commitment)
    shutil.rmtree(version_folder(workspace, draft), ignore_errors=True)
    return version


def overtaken(draft: PromptVersion, newest: PromptVersion) -> ConflictError:
    """Return the refusal of a draft after whose start `newest` was committed."""
    return ConflictError(
        f"{newest.ref} was committed by {newest.author} at {newest.time}, after "
        f"{draft.ref} was begun. The draft is kept. Bring its changes to {newest.ref} "
        f"with `ranloop draft rebase {draft.ref}`."
    )


def find_commit(workspace: Workspace, draft: PromptVersion) -> PromptVersion | None:
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


def is_recorded(workspace: Workspace, version: PromptVersion) -> bool:
    """Whether the ledger knows of the commit of `version`."""
    return _find_entry(workspace, version) is not None


def _find_entry(workspace: Workspace, version: PromptVersion) -> LedgerEntry | None:
    """Return the ledger entry of a version's commit, if it has one."""
    for entry in reversed(read_ledger(workspace.ledger)):
        if entry.action == "draft_committed" and entry.subject == version.ref:
            return entry
    return None


def _make(workspace: Workspace, draft: PromptVersion) -> PromptVersion:
    """Write `draft` as the version after its parent; refuse where there is one."""
    latest = latest_version(workspace, draft.name)
    if latest.digest != draft.parent:
        raise overtaken(draft, latest)
    return write_version(workspace, renumbered(draft, latest.number + 1))


def _record(
    workspace: Workspace,
    version: PromptVersion,
    draft: PromptVersion,
    commitment: Commitment,
    now: Clock,
) -> None:
    """Write the ledger entries; if that fails, take the version back."""
    folder = version_folder(workspace, version)
    payload: dict[str, Any] = {
        "digest": version.digest,
        "parent": version.parent,
        "draft": draft.ref,
        "verdicts": list(version.verdicts),
        "files": file_digests(folder),
        "check": dict(commitment.evidence),
    }
    if commitment.objections:
        payload["override"] = {
            "reason": commitment.override_reason,
            "overridden": list(commitment.objections),
        }
    committed = Event(
        action="draft_committed",
        subject=version.ref,
        reason=commitment.reason,
        payload=payload,
    )
    # The commit comes first and names the override: none can stand without it.
    events = [committed]
    if commitment.objections:
        events.append(_override(version, commitment))
    try:
        append_events(workspace.ledger, events, commitment.actor, now=now)
    except LoopError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _commit_to_git(
    workspace: Workspace, version: PromptVersion, commitment: Commitment
) -> None:
    """Make one git commit of what belongs to `version`, where there is git."""
    paths = [version_folder(workspace, version), workspace.ledger]
    paths += _corrected_references(workspace, version)
    message = f"{version.ref}\n\n{commitment.reason}\n\nDigest: {version.digest}"
    commit_paths(workspace.root, paths, message, commitment.actor.name)


def _corrected_references(workspace: Workspace, version: PromptVersion) -> list[Path]:
    """Return the references corrected since the version before `version`."""
    found: dict[Path, None] = {}
    for entry in read_ledger(workspace.ledger):
        prompt, _, number = entry.subject.partition("@v")
        if entry.action == "draft_committed" and prompt == version.name:
            if int(number) == version.number:
                break
            found.clear()
        elif entry.action == "reference_revised" and "corrects" in entry.payload:
            name, _, number = entry.subject.rpartition(":ref")
            found[reference_path(workspace, name, int(number))] = None
    return [path for path in found if path.is_file()]


def _override(version: PromptVersion, commitment: Commitment) -> Event:
    return Event(
        action="override",
        subject=version.ref,
        reason=commitment.override_reason,
        payload={
            "digest": version.digest,
            "overridden": list(commitment.objections),
        },
    )


def reject_draft(
    workspace: Workspace,
    draft: PromptVersion,
    parent_ref: str,
    commitment: Commitment,
    *,
    now: Clock = utc_now,
) -> LedgerEntry:
    """Record that `draft` was checked and stays a draft, and return the entry.

    Without objections it was kept on request. What was tried and did not hold belongs
    to the history of a prompt as much as what did.

    Raises
    ------
    LedgerError
        The ledger is broken.
    WriteError
        It cannot be written; the draft is there all the same.
    """
    event = Event(
        action="draft_rejected",
        subject=draft.ref,
        reason=commitment.reason,
        payload={
            "digest": draft.digest,
            "parent": draft.parent,
            "parent_ref": parent_ref,
            "verdicts": list(draft.verdicts),
            "objections": list(commitment.objections),
            "check": dict(commitment.evidence),
        },
    )
    return append_event(workspace.ledger, event, commitment.actor, now=now)
