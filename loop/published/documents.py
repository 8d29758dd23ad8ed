"""What an audit of published tables found, as Markdown, one page, or plain data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from loop import __version__
from loop.core.check_findings import Finding, FindingSeverity
from loop.documents.templates import render_template, shipped_templates
from loop.published.result_table import PublishedTable
from loop.published.table_audit import TableAudit

WORDS = {
    FindingSeverity.BROKEN: "does not hold",
    FindingSeverity.NOTE: "cannot be decided",
    FindingSeverity.OK: "holds",
}
"""Severity of a finding to what it says of a table; what does not hold comes first."""


class TableSection(NamedTuple):
    """One table with its findings, the worst first."""

    table: PublishedTable
    read: str
    """How the table was understood, as a sentence."""
    findings: tuple[Finding, ...]

    @property
    def title(self) -> str:
        """The caption, after the table's name unless it begins with it."""
        name, caption = self.table.name, self.table.caption
        if not caption or caption.casefold().startswith(name.casefold()):
            return caption or name
        return f"{name}: {caption}"


def render_markdown(
    audit: TableAudit, sources: Sequence[str], *, templates: Path | None = None
) -> str:
    """Return the audit as Markdown.

    Parameters
    ----------
    sources
        Names of the files that were read.
    templates
        Folder of templates; default: the shipped ones.

    Raises
    ------
    DataError
        The template is missing or wrong.
    """
    return _render("published.md.jinja", audit, sources, templates)


def render_html(
    audit: TableAudit, sources: Sequence[str], *, templates: Path | None = None
) -> str:
    """Return the audit as one self-contained page: no network, no script.

    Raises
    ------
    DataError
        The template is missing or wrong.
    """
    return _render("published.html.jinja", audit, sources, templates)


def published_data(audit: TableAudit, sources: Sequence[str]) -> dict[str, Any]:
    """Return the audit as the object of ``--json``."""
    return {
        "files": list(sources),
        "counts": {word: audit.count(severity) for severity, word in WORDS.items()},
        "tables": [_table_data(table) for table in audit.tables],
        "findings": [
            {
                "check": one.check,
                "table": one.where,
                "subject": one.part,
                "standing": WORDS[one.severity],
                "text": one.what,
                "numbers": dict(one.numbers),
            }
            for one in audit.findings
        ],
    }


def sections(audit: TableAudit) -> list[TableSection]:
    """Return the findings by table, what does not hold first."""
    return [
        TableSection(
            table,
            read_as(table),
            tuple(
                one
                for severity in WORDS
                for one in audit.findings
                if one.where == table.name and one.severity is severity
            ),
        )
        for table in audit.tables
    ]


def read_as(table: PublishedTable) -> str:
    """Return how a table was understood, so that a misreading is seen."""
    measures = dict.fromkeys(c.measure for c in table.values() if c.measure)
    cases = f"n = {table.n}" if table.n else "n not stated for the whole table"
    side = "system" if table.rows_are_systems else "label or category"
    what = f"columns of {', '.join(measures)}" if measures else "no column of a measure"
    return f"{len(table.results)} x {side}, {what}; {cases}."


def _render(
    name: str, audit: TableAudit, sources: Sequence[str], folder: Path | None
) -> str:
    variables = {
        "sections": sections(audit),
        "sources": list(sources),
        "words": WORDS,
        "counts": [(severity, audit.count(severity)) for severity in WORDS],
        "version": __version__,
    }
    return render_template(folder or shipped_templates(), name, variables)


def _table_data(table: PublishedTable) -> dict[str, Any]:
    return {
        "name": table.name,
        "caption": table.caption,
        "n": table.n,
        "rows": len(table.results),
        "rows_are": "systems" if table.rows_are_systems else "labels",
        "columns": [
            {
                "header": column.header, "measure": column.measure,
                "part": column.part, "system": column.system, "time": column.time,
                "average": column.average, "difference": column.delta, "n": column.n,
            }
            for column in table.columns
        ],
    }  # fmt: skip
