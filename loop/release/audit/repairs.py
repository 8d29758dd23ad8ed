"""Torn lines that were moved aside, held against the entries that say so."""

from __future__ import annotations

from pathlib import Path

from loop.core.digests import digest_bytes
from loop.core.ledger import LedgerEntry
from loop.release.audit.findings import AuditFinding, note, warning
from loop.release.audit.lines import Ledger

_CHECK = "repairs"


def check_repairs(ledger: Ledger) -> list[AuditFinding]:
    """Return every repair of the ledger, and whether the torn bytes are kept."""
    repairs = [one for one in ledger.entries if one.action == "ledger_repaired"]
    found = [_check_repair(ledger.path.parent, entry) for entry in repairs]
    known = {str(entry.payload.get("file")) for entry in repairs}
    for path in sorted(ledger.path.parent.glob(f"{ledger.path.stem}.torn-*.bin")):
        if path.name not in known:
            what = f"{path.name} is left from a repair that did not end"
            todo = "Run `ranloop audit --repair` again."
            found.append(note(_CHECK, what, where=str(path), todo=todo))
    return found


def _check_repair(folder: Path, entry: LedgerEntry) -> AuditFinding:
    path = folder / Path(str(entry.payload.get("file"))).name
    what = f"a torn line was moved aside to {path.name}"
    try:
        kept = digest_bytes(path.read_bytes()) == entry.payload.get("sha256")
    except OSError:
        kept = False
    if kept:
        return note(_CHECK, f"{what}; its bytes are kept", where=f"entry {entry.seq}")
    return warning(
        _CHECK,
        f"{what}, and is not there as it was",
        where=f"entry {entry.seq}",
        implies="What the torn line began to say cannot be looked at any more.",
        todo="Restore the file from a backup.",
        seq=entry.seq,
    )
