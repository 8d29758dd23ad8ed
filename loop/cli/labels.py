"""The verb ``labels``: write what a run read out of its cases as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loop.cli.console import (
    JsonOption,
    ProgressBar,
    WorkspaceOption,
    note_part,
    open_workspace,
    own_output,
    print_json,
    say,
)
from loop.core.nouns import counted
from loop.run.label_table import (
    CellValues,
    LabelNames,
    LabelTable,
    manifest_path,
    write_labels,
)


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("labels")(labels)


def labels(
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="File to write: .csv, .parquet or .xlsx."),
    ],
    run: Annotated[
        str, typer.Argument(help="Run id, its beginning, latest, or latest:PROMPT.")
    ] = "latest",
    names: Annotated[
        LabelNames,
        typer.Option("--names", help="Columns as published, or by label id."),
    ] = LabelNames.PUBLISHED,
    values: Annotated[
        CellValues,
        typer.Option("--values", help="present, absent, uncertain; or 1, 0, -1."),
    ] = CellValues.WORDS,
    evidence: Annotated[
        bool,
        typer.Option(
            "--evidence", help="Quote the words each answer rests on. Private."
        ),
    ] = False,
    text: Annotated[
        bool, typer.Option("--text", help="Add the text of each case. Private.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Write over a file that exists.")
    ] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the labels of a run as a table, one row a case.

    A label that was not answered is blank, never absent; the column status says how
    the case ended. A manifest beside the file, FILE.json, names the run, the prompt
    and the engine with their digests. `score` reads the table, and so does `cohort
    import` if it holds the texts.
    """
    place = open_workspace(workspace)
    own_output(out, place)
    with ProgressBar(f"labels {run}", quiet=as_json).shown():
        written = write_labels(
            place,
            out,
            run,
            names=names,
            values=values,
            evidence=evidence,
            text=text,
            replace=replace,
        )
    note_part(place, written.manifest["run"])
    if as_json:
        print_json(dict(written.manifest))
    else:
        for line in describe_labels(written):
            say(line)


def describe_labels(written: LabelTable) -> list[str]:
    """Return the lines that tell what a table of labels holds."""
    known = written.manifest
    ended = ", ".join(f"{n:,} {status}" for status, n in known["statuses"].items())
    private = " and ".join(known["private"])
    return [
        f"labels of {known['prompt']} by {known['engine']}, run {known['run']}",
        f"  {written.path}: {counted(known['rows'], 'case')} ({ended})",
        f"  {manifest_path(written.path).name}: prompt, engine and digests",
        *([f"  it holds private {private} of the cases"] if private else []),
    ]
