"""The change history of prompts as one self-contained page: no network, no script."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from loop import __version__
from loop.release.audit.audit import LedgerAudit
from loop.release.audit.changes import PromptChanges
from loop.release.audit.findings import FindingSeverity
from loop.report.templates import render_template, shipped_templates


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
