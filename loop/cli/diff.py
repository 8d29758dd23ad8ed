"""The verb ``diff``: what changed between two prompt versions."""

from __future__ import annotations

from typing import Annotated

import typer

from loop.cli.console import (
    JsonOption,
    WorkspaceOption,
    open_workspace,
    print_json,
    say,
)
from loop.prompts.catalog import read_version
from loop.prompts.diff import diff_data, diff_versions, format_diff


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("diff")(diff)


def diff(
    before: Annotated[str, typer.Argument(help="Earlier version, e.g. extractor@v1.")],
    after: Annotated[str, typer.Argument(help="Later version, e.g. extractor@v2.")],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what changed between two prompt versions.

    Guides are compared label by label, templates line by line.
    """
    place = open_workspace(workspace)
    changes = diff_versions(read_version(place, before), read_version(place, after))
    if as_json:
        print_json(diff_data(changes))
        return
    for line in format_diff(changes):
        say(line)
