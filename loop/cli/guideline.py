"""The verb ``guideline``: write down what readers and models are told."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loop.cli.console import (
    JsonOption,
    WorkspaceOption,
    open_workspace,
    own_output,
    print_json,
    say,
)
from loop.core.nouns import counted
from loop.review.guideline import write_guideline


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("guideline")(guideline)


def guideline(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="File that ends in .html, .md or .docx.")
    ],
    prompt: Annotated[
        str | None,
        typer.Argument(help="Prompt version whose examples are shown, if any."),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the annotation guideline for readers.

    Definitions, rules of reading, what counts and what does not, one page a label,
    with the version and the digest of the taxonomy. With a prompt version, its
    wordings, rulings and examples are added, and its definition where that differs.
    Readers have the same text, without a prompt's examples, beside each case.
    """
    place = open_workspace(workspace)
    own_output(out, place)
    written = write_guideline(place, out, prompt=prompt)
    differs = [entry.name for entry in written.entries if entry.in_prompt]
    if as_json:
        print_json(
            {
                "file": str(out),
                "sources": list(written.sources),
                "labels": [entry.name for entry in written.entries],
                "worded_otherwise": differs,
            }
        )
        return
    for source in written.sources:
        say(source)
    say(f"{counted(len(written.entries), 'label')}: {out}")
    if differs:
        say(f"worded otherwise in the prompt version: {', '.join(differs)}")
