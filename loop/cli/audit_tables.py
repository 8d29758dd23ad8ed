"""The verb ``audit-tables``: recompute what published tables print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from loop.cli.console import GATE_EXIT, JsonOption, note, print_json, say
from loop.core.check_findings import FindingSeverity
from loop.core.errors import DataError
from loop.core.files import write_atomic
from loop.published import table_audit as published
from loop.published.claims import Notes, beside, read_notes
from loop.published.documents import (
    WORDS,
    published_data,
    render_html,
    render_markdown,
    sections,
)
from loop.published.result_table import RATES
from loop.published.table_audit import TableAudit


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("audit-tables")(audit_tables)


def audit_tables(
    files: Annotated[
        list[Path], typer.Argument(help="CSV or Markdown files of tables.")
    ],
    n: Annotated[
        int | None,
        typer.Option("--n", min=1, help="Cases behind each row, where not stated."),
    ] = None,
    measure: Annotated[
        str,
        typer.Option(
            "--measure",
            help="Measure of columns whose header names none, e.g. accuracy.",
        ),
    ] = "",
    notes: Annotated[
        Path | None,
        typer.Option(
            "--notes",
            help="YAML with cases, comparable rows and claims; "
            "default: FILE.notes.yaml beside a file.",
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write the findings as one HTML page.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the findings as Markdown.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check the numbers of published tables.

    Intervals, averages, counts, differences and claims are recomputed. Exits with 100
    when something does not hold.
    """
    if measure and measure not in RATES:
        raise typer.BadParameter(f"--measure is one of {', '.join(RATES)}")
    known = _read_notes(files, notes)
    for path in (html, out):
        _spare(path, files)
    tables = published.read_tables(files, known, n=n, measure=measure)
    audit = published.audit_tables(tables, known)
    if not audit.findings:
        raise DataError(
            f"nothing in {', '.join(path.name for path in files)} could be checked: no "
            "column was read as a measure. Name measures in the headers or with "
            "--measure, and write intervals as 0.98 (0.95-0.99)."
        )
    names = [path.name for path in files]
    if html is not None:
        _write(html, render_html(audit, names))
    if out is not None:
        _write(out, render_markdown(audit, names))
    if as_json:
        print_json(published_data(audit, names))
    else:
        _show(audit)
    if audit.count(FindingSeverity.BROKEN):
        raise typer.Exit(GATE_EXIT)


def _read_notes(files: Sequence[Path], named: Path | None) -> Notes:
    """Read the notes named, or all that lie beside the files."""
    if named is not None:
        return read_notes(named)
    found = [path for file in files if (path := beside(file)).is_file()]
    every = [read_notes(path) for path in dict.fromkeys(found)]
    return Notes(
        tables={name: about for one in every for name, about in one.tables.items()},
        claims=tuple(claim for one in every for claim in one.claims),
    )


def _spare(path: Path | None, files: Sequence[Path]) -> None:
    """Refuse to write over a file that is read."""
    if path is not None and path.resolve() in {file.resolve() for file in files}:
        raise typer.BadParameter(f"{path} is read; name another file to write")


def _write(path: Path, text: str) -> None:
    write_atomic(path, text)
    note(f"wrote {path}")


def _show(audit: TableAudit) -> None:
    """Print the findings by table, what does not hold first."""
    for section in sections(audit):
        say(section.title)
        say(f"  {section.read}")
        for one in section.findings:
            say(f"  {WORDS[one.severity]:<17}  {one.check}, {one.part}: {one.what}")
        say()
    say(", ".join(f"{audit.count(one)} {word}" for one, word in WORDS.items()))
