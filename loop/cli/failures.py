"""The verb ``failures``: the failing cases of a run, for review."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loop.cli.console import (
    JsonOption,
    WorkspaceOption,
    open_workspace,
    print_json,
    print_table,
    say,
)

if TYPE_CHECKING:
    from loop.core.paths import Workspace
    from loop.evaluate.failures import Failure, Failures


class Layout(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class Show(StrEnum):
    """How much private text is printed beside each row."""

    NONE = "none"
    EVIDENCE = "evidence"
    CASE = "case"


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("failures")(failures)


def failures(
    run: Annotated[
        str,
        typer.Argument(help="Run id, its beginning, latest, or latest:PROMPT."),
    ] = "latest",
    label: Annotated[
        list[str] | None, typer.Option("--label", "-l", help="Only this label; again.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            "-k",
            help="false_positive, false_negative, uncertain, unparsed, engine_failed.",
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="At most so many rows.")
    ] = None,
    layout: Annotated[
        Layout, typer.Option("--format", help="How rows are printed.")
    ] = Layout.TABLE,
    text: Annotated[
        Show,
        typer.Option(
            "--text", help="Show private text: the evidence phrase, or the whole case."
        ),
    ] = Show.NONE,
    reference: Annotated[
        int | None,
        typer.Option("--reference", min=1, help="Reference version; default: newest."),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the failing cases of a run. Refused for holdout cohorts."""
    from loop.evaluate.failures import failing_cases

    place = open_workspace(workspace)
    found = failing_cases(
        place, run, labels=label, kinds=_kinds(kind), reference=reference
    )
    total = len(found.rows)
    found = found._replace(rows=found.rows[:limit])
    rows = _rows(found, _texts(place, found, text))
    if as_json or layout is Layout.JSON:
        shown = {"run": found.run_id, "cohort": found.cohort, "total": total}
        print_json({**shown, "rows": rows})
    elif layout is Layout.CSV:
        _print_csv(rows)
    else:
        _print_rows(found, rows, total)


def _kinds(names: Sequence[str] | None) -> list[Any] | None:
    from loop.core.errors import DataError
    from loop.evaluate.failures import Kind

    try:
        return [Kind(name.replace("-", "_")) for name in names] if names else None
    except ValueError as error:
        known = ", ".join(Kind)
        raise DataError(f"{error}. Use one of {known}.") from error


def _texts(
    workspace: Workspace, found: Failures, show: Show
) -> Mapping[tuple[str, str], str] | None:
    """Return the private text of each row, or None when none is wanted."""
    from loop.evaluate.failures import read_evidence, read_texts

    if show is Show.NONE:
        return None
    if show is Show.EVIDENCE:
        return read_evidence(workspace, found)
    texts = read_texts(workspace, found)
    return {(row.case_id, row.label): texts[row.case_id] for row in found.rows}


def _rows(
    found: Failures, texts: Mapping[tuple[str, str], str] | None
) -> list[dict[str, Any]]:
    rows = []
    for row in found.rows:
        data = _row(row)
        if texts is not None:
            data["text"] = texts[row.case_id, row.label]
        rows.append(data)
    return rows


def _row(row: Failure) -> dict[str, Any]:
    return {
        "case_id": row.case_id,
        "label": row.label,
        "kind": row.kind.value,
        "predicted": row.predicted.value if row.predicted else "",
        "reference": row.reference.value if row.reference else "",
        "spans": [list(span) for span in row.spans],
        "problem": row.problem,
    }


def _print_csv(rows: Sequence[Mapping[str, Any]]) -> None:
    from loop.report.evaluation_text import neutralise

    stream = io.StringIO()
    names = ["case_id", "label", "kind", "predicted", "reference", "spans", "problem"]
    if rows and "text" in rows[0]:
        names.append("text")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        cells = {**row, "spans": _span_words(row["spans"])}
        writer.writerow([neutralise(cells[name]) for name in names])
    say(stream.getvalue().rstrip("\n"))


def _print_rows(found: Failures, rows: Sequence[Mapping[str, Any]], total: int) -> None:
    from loop.evaluate.failures import count_kinds

    header = ("case", "label", "kind", "predicted", "reference", "evidence at")
    print_table(
        header,
        [
            (
                row["case_id"],
                row["label"] or "(all)",
                row["kind"],
                row["predicted"],
                row["reference"],
                _span_words(row["spans"]) or row["problem"],
            )
            for row in rows
        ],
        title=f"failing cases of run {found.run_id} on {found.cohort}",
    )
    for row in rows:
        if row.get("text"):
            say()
            say(f"{row['case_id']}, {row['label'] or '(all)'}, {row['kind']}:")
            say(f"  {row['text']}")
    say()
    kinds = count_kinds(found.rows)
    parts = ", ".join(f"{number} {kind.value}" for kind, number in kinds.items())
    say(f"{len(rows)} of {total} rows: {parts}")


def _span_words(spans: Sequence[Sequence[int]]) -> str:
    return " ".join(f"{start}-{end}" for start, end in spans)
