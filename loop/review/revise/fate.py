"""What became of a draft that is not there any more, as the ledger tells it."""

from __future__ import annotations

from typing import NamedTuple

from loop.core.ledger import read_ledger
from loop.core.paths import Workspace


class DraftOutcome(NamedTuple):
    """The last thing that was decided on a draft."""

    version: str
    """Version it was committed as; empty when it was kept back or given up."""

    actor: str
    time: str
    """UTC, ISO 8601."""

    reason: str


def find_fate(workspace: Workspace, ref: str) -> DraftOutcome | None:
    """Return what was decided last on the draft `ref`; None where nothing was.

    A draft that was given up before it was measured leaves no entry.

    Raises
    ------
    LedgerError
        The ledger is broken.
    """
    for entry in reversed(read_ledger(workspace.ledger)):
        if entry.action == "draft_committed" and entry.payload.get("draft") == ref:
            return DraftOutcome(entry.subject, entry.actor, entry.time, entry.reason)
        if entry.action == "draft_rejected" and entry.subject == ref:
            return DraftOutcome("", entry.actor, entry.time, entry.reason)
    return None
