"""A release appears as a whole: staged in private, moved by one rename, recorded.

Killed before the rename there is no release; killed after it, the folder is complete
and signed, and the next freeze writes the ledger entry that is missing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from loop.core.clock import Clock
from loop.core.digests import digest_bytes
from loop.core.errors import DataError
from loop.core.files import (
    locked,
    make_folder,
    move_folder,
    sync_folder,
    write_atomic,
    write_error,
)
from loop.core.git import commit_paths, tag
from loop.core.ledger import Actor, Event, LedgerEntry, append_events, read_ledger
from loop.core.paths import Workspace
from loop.release.facts import ReleaseFacts
from loop.release.keys import read_public_keys
from loop.release.released import (
    find_in,
    frozen_payload,
    holds_head,
    release_folder,
    replay_releases,
)
from loop.release.statement import ENVELOPE
from loop.release.verify import verify_folder

Step = Callable[[str], None]
"""Told the name of every step as it is reached; a test stops the process there."""


def unwatched(step: str) -> None:
    """Do nothing at a step."""


@contextmanager
def freezing(workspace: Workspace) -> Iterator[Path]:
    """Hold the only freeze of a workspace, and give an empty folder to stage it in.

    What a freeze that was killed left there is removed.

    Raises
    ------
    ConflictError
        Another freeze is under way.
    """
    private = workspace.open_private()
    with locked(private / "locks" / "freeze.lock", wait=False):
        staging = private / "freezing"
        shutil.rmtree(staging, ignore_errors=True)
        make_folder(staging, mode=0o700)
        try:
            yield staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)


def write_release(
    workspace: Workspace,
    staging: Path,
    name: str,
    files: Mapping[str, bytes],
    reached: Step = unwatched,
) -> Path:
    """Write the files of release `name`, all of them or none, and return the folder.

    Raises
    ------
    ConflictError
        There is such a folder: a release is never changed.
    DataError
        The release would not pass its own checks; nothing was released.
    WriteError
        It cannot be written; nothing was released.
    """
    folder = release_folder(workspace, name)
    building = staging / name
    for place, raw in sorted(files.items()):
        write_atomic(building / place, raw, mode=0o644)
    for inside in (building, *(one for one in building.iterdir() if one.is_dir())):
        inside.chmod(0o755)
        sync_folder(inside)
    reached("staged")
    _require_sound(workspace, building)
    taken = (
        f"{folder} exists already, and a release is never changed. Commit a new "
        "version and release that."
    )
    move_folder(building, folder, taken=taken)
    reached("published")
    return folder


def _require_sound(workspace: Workspace, building: Path) -> None:
    """Refuse what whoever is handed it would refuse: it could never be corrected."""
    try:
        found = verify_folder(building, read_public_keys(workspace))
    except OSError as error:
        raise write_error(building, error) from error
    if not found.holds:
        what = "; ".join(f"{one.check}: {one.what}" for one in found.broken)
        raise DataError(
            f"{building.name} would not pass its own checks: {what}. Correct that and "
            "freeze again; nothing was released."
        )


def record_release(
    workspace: Workspace,
    facts: ReleaseFacts,
    actor: Actor,
    *,
    now: Clock,
    reached: Step = unwatched,
) -> LedgerEntry:
    """Write a release whose folder stands there into the ledger, and into git.

    An override is an entry of its own, in the same write.

    Raises
    ------
    WriteError
        The ledger cannot be written; freezing again goes on from here.
    """
    frozen, release = facts.frozen, facts.release
    folder = release_folder(workspace, release.name)
    payload = frozen_payload(facts, digest_bytes((folder / ENVELOPE).read_bytes()))
    events = [
        Event(
            action="frozen",
            subject=release.ref,
            reason=frozen.why,
            meaning=frozen.meaning,
            payload=payload,
        )
    ]
    if frozen.override:
        events.insert(
            0,
            Event(
                action="override",
                subject=release.ref,
                reason=frozen.override,
                meaning=frozen.meaning,
                payload={
                    "release": release.name,
                    "verdict": facts.claim.verdict.value,
                },
            ),
        )
    entry = append_events(workspace.ledger, events, actor, now=now)[-1]
    reached("recorded")
    keep_in_git(workspace, facts, actor)
    return entry


def keep_in_git(workspace: Workspace, facts: ReleaseFacts, actor: Actor) -> str | None:
    """Commit and tag a release where the workspace is a repository; None elsewhere."""
    name = facts.release.name
    paths = [workspace.releases / name, workspace.ledger]
    keys = workspace.releases / "keys"
    if keys.is_dir():
        paths.append(keys)
    message = f"Release {name}\n\n{facts.frozen.why}"
    revision = commit_paths(workspace.root, paths, message, actor.name)
    if revision is None:
        return None
    return tag(
        workspace.root,
        f"release/{name}",
        message,
        revision=revision,
        tagger=actor.name,
    )


def find_unrecorded(workspace: Workspace, name: str) -> ReleaseFacts | None:
    """Return the facts of a release that a kill left without its ledger entry.

    None where there is no such folder, or it is recorded.

    Raises
    ------
    DataError
        There is such a folder and it is no release made here: a check fails.
    """
    folder = release_folder(workspace, name)
    entries = read_ledger(workspace.ledger)
    if not folder.exists() or find_in(replay_releases(entries), name) is not None:
        return None
    found = verify_folder(folder, read_public_keys(workspace))
    problems = [f"{one.check}: {one.what}" for one in found.broken]
    if found.facts is not None and not holds_head(entries, found.facts.ledger):
        problems.append("the ledger it ships is not a part of the workspace's")
    if problems or found.facts is None:
        what = "; ".join(problems)
        raise DataError(
            f"{folder} is not in the ledger, and it is no release that can be "
            f"completed: {what}. Move it away and freeze again."
        )
    return found.facts
