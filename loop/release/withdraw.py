"""Taking a release back: it stays as it was, and is not loaded any more."""

from __future__ import annotations

from loop.core.clock import Clock, utc_now
from loop.core.errors import ConflictError, DataError
from loop.core.git import commit_paths
from loop.core.ledger import Actor, Event, LedgerEntry, append_event
from loop.core.paths import Workspace
from loop.release.candidate import APPROVERS
from loop.release.released import find_in, list_releases, unknown_release


def withdraw_release(
    workspace: Workspace,
    name: str,
    actor: Actor,
    why: str,
    *,
    now: Clock = utc_now,
) -> LedgerEntry:
    """Record that release `name` must not be used any more, and return the entry.

    The folder is not touched: who has a copy of it can still check what it was.

    Raises
    ------
    DataError
        There is no such release, no reason, or the actor may not approve.
    ConflictError
        It was withdrawn before.
    WriteError
        The ledger cannot be written; nothing was withdrawn.
    """
    if not why.strip():
        raise DataError("withdrawing a release needs a reason. Say why with --why.")
    if actor.role not in APPROVERS:
        raise DataError(
            f"withdrawing takes an approver, and {actor.name} acts as {actor.role}. "
            "Use --role approver."
        )
    releases = list_releases(workspace)
    release = find_in(releases, name)
    if release is None:
        raise unknown_release(name, releases)
    if release.withdrawal:
        raise ConflictError(
            f"{name} was withdrawn already: {release.withdrawal.reason}"
        )
    event = Event(
        action="withdrawn",
        subject=release.ref,
        reason=why.strip(),
        meaning="responsibility",
        payload={"release": name, "statement_sha256": release.statement},
    )
    entry = append_event(workspace.ledger, event, actor, now=now)
    message = f"Withdraw {name}\n\n{why.strip()}"
    commit_paths(workspace.root, [workspace.ledger], message, actor.name)
    return entry
