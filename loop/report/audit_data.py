"""An audit as data and as a table: what was recorded, and what of it holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from loop.core.ledger import LedgerEntry
from loop.core.safe_text import format_csv
from loop.release.audit.audit import LedgerAudit
from loop.release.audit.findings import AuditFinding, FindingSeverity
from loop.report.evaluation_text import neutralise

_COLUMNS = (
    *("row", "seq", "time", "actor", "role", "action", "subject", "reason", "meaning"),
    *("keyid", "hash", "payload", "severity", "check", "what", "where", "implies"),
    "todo",
)


def audit_data(audit: LedgerAudit) -> dict[str, Any]:
    """Return the audit as JSON data, its numbers plain and its entries whole."""
    first = audit.first_break
    return {
        "holds": audit.holds,
        "time": audit.time,
        "head": audit.head,
        "counts": {str(severity): count for severity, count in audit.counts.items()},
        "first_break": asdict(first) if first else None,
        "findings": [asdict(one) for one in audit.findings],
        "entries": [asdict(entry) for entry in audit.entries],
    }


def render_audit_csv(audit: LedgerAudit) -> str:
    """Return one row per entry, then one per finding, as CSV that no spreadsheet runs.

    An entry that something is broken about says so in its own row too.
    """
    doubts = {
        one.seq: one
        for one in reversed(audit.findings)
        if one.seq and one.severity in (FindingSeverity.BROKEN, FindingSeverity.WARNING)
    }
    rows = [dict(_entry(entry, doubts.get(entry.seq))) for entry in audit.entries]
    rows += [dict(_finding(one)) for one in audit.findings]
    return format_csv(_COLUMNS, ([row.get(c, "") for c in _COLUMNS] for row in rows))


def _entry(entry: LedgerEntry, doubt: AuditFinding | None) -> Iterator[tuple[str, str]]:
    yield "row", "entry"
    for name in _COLUMNS[1:11]:
        yield name, neutralise(getattr(entry, name))
    payload = json.dumps(entry.payload, ensure_ascii=False, sort_keys=True)
    yield "payload", neutralise(payload)
    if doubt:
        yield "severity", doubt.severity.value
        yield "what", neutralise(doubt.what)


def _finding(one: AuditFinding) -> Iterator[tuple[str, str]]:
    yield "row", "finding"
    yield "seq", str(one.seq) if one.seq else ""
    yield "severity", one.severity.value
    for name in ("check", "what", "where", "implies", "todo"):
        yield name, neutralise(getattr(one, name))
