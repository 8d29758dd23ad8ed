"""The verb ``init``: make a workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loop.cli.console import JsonOption, print_json, say
from loop.core.git import find_repository
from loop.core.paths import init_workspace


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("init")(init)


def init(
    folder: Annotated[Path, typer.Argument(help="Folder to make.")],
    as_json: JsonOption = False,
) -> None:
    """Make a workspace from the shipped prompts and labels."""
    workspace = init_workspace(folder)
    if as_json:
        print_json({"workspace": str(workspace.root)})
        return
    say(f"workspace ready in {workspace.root}")
    outer = find_repository(workspace.root)
    if outer is not None and not outer.samefile(workspace.root):
        say(f"It lies in the git repository {outer}, in which ranloop commits nothing;")
        say("to keep its history in git, run `git init` in the workspace itself.")
    say("Next: ranloop cohort import FILE --name NAME --role dev")
