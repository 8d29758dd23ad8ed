"""An audit as data and as a table: what was recorded, and what of it holds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from loop import __version__
from loop.core.check_findings import Finding, FindingSeverity
from loop.core.ledger import LedgerEntry
from loop.core.safe_text import format_csv
from loop.documents.tables import neutralise
from loop.documents.templates import render_template, shipped_templates
from loop.release.audit.audit import LedgerAudit
from loop.release.audit.prompt_changes import PromptChanges

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
        "signed": audit.signed,
        "counts": {str(severity): count for severity, count in audit.counts.items()},
        "first_break": _finding_data(first) if first else None,
        "findings": [_finding_data(one) for one in audit.findings],
        "entries": [asdict(entry) for entry in audit.entries],
    }


def _finding_data(one: Finding) -> dict[str, Any]:
    return {
        "check": one.check,
        "severity": one.severity.value,
        "what": one.what,
        "where": one.where,
        "implies": one.implies,
        "todo": one.todo,
        "seq": one.seq,
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


def _entry(entry: LedgerEntry, doubt: Finding | None) -> Iterator[tuple[str, str]]:
    yield "row", "entry"
    for name in _COLUMNS[1:11]:
        yield name, neutralise(getattr(entry, name))
    payload = json.dumps(entry.payload, ensure_ascii=False, sort_keys=True)
    yield "payload", neutralise(payload)
    if doubt:
        yield "severity", doubt.severity.value
        yield "what", neutralise(doubt.what)


def _finding(one: Finding) -> Iterator[tuple[str, str]]:
    yield "row", "finding"
    yield "seq", str(one.seq) if one.seq else ""
    yield "severity", one.severity.value
    for name in ("check", "what", "where", "implies", "todo"):
        yield name, neutralise(getattr(one, name))


def render_audit_html(
    audit: LedgerAudit,
    histories: Sequence[PromptChanges],
    *,
    templates: Path | None = None,
) -> str:
    """Return who changed what, when and why, and what of the record holds.

    The page holds names, reasons, counts, ids and digests, never case text.

    Parameters
    ----------
    histories
        The prompts to tell of, one section each.
    templates
        Folder of templates; default: the shipped ones.

    Raises
    ------
    DataError
        The template is missing or wrong.
    """
    weights = [
        FindingSeverity.BROKEN,
        FindingSeverity.WARNING,
        FindingSeverity.NOTE,
        FindingSeverity.OK,
    ]
    findings = sorted(audit.findings, key=lambda one: weights.index(one.severity))
    variables = {
        "audit": audit,
        "findings": findings,
        "wrong": [one for one in findings if one.severity is FindingSeverity.BROKEN],
        "odd": [one for one in findings if one.severity is FindingSeverity.WARNING],
        "counts": {str(key): count for key, count in audit.counts.items()},
        "histories": histories,
        "title": ", ".join(one.prompt for one in histories) or "no prompt",
        "version": __version__,
    }
    folder = templates or shipped_templates()
    return render_template(folder, "audit.html.jinja", variables)
