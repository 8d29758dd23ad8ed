"""The verb ``upgrade``: labels as they ship now, where they were not edited."""

from __future__ import annotations

from typing import Annotated

import typer

from loop import __version__
from loop.cli.console import (
    ActorOption,
    JsonOption,
    WorkspaceOption,
    acting,
    open_workspace,
    print_json,
    print_table,
    say,
)
from loop.labels.upgrade import CopyState, compare_labels, upgrade_labels


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("upgrade")(upgrade)


def upgrade(
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only show what the installed ranloop changes."),
    ] = False,
    why: Annotated[str, typer.Option("--why", help="Reason, kept in the ledger.")] = "",
    actor: ActorOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take the labels, cues and crosswalks of the installed ranloop.

    Only those that were not edited here since they were copied; the others stay, and
    --dry-run shows what differs. The ledger records it. The protocol, prompts and
    cohorts are never changed.
    """
    place = open_workspace(workspace)
    if dry_run:
        found = compare_labels(place)
    else:
        found = upgrade_labels(place, acting(actor), why=why)
    if as_json:
        files = [
            {
                "file": f"labels/{one.name}",
                "state": one.state.value,
                "taken": one.taken,
                "diff": one.diff,
            }
            for one in found
        ]
        print_json({"ranloop": __version__, "dry_run": dry_run, "files": files})
        return
    print_table(
        ("file", "state"), [(f"labels/{one.name}", one.state.value) for one in found]
    )
    if dry_run:
        for one in found:
            if one.diff and one.state not in (CopyState.EDITED, CopyState.REMOVED):
                say()
                say(one.diff)
    taken = sum(one.taken for one in found)
    if not taken:
        say("nothing to take: no file is older than the shipped one and unedited")
    elif dry_run:
        say(f"\n{taken} would be taken: run it again without --dry-run")
    else:
        say(f"{taken} taken from ranloop {__version__}")
        say("Scores from now on rest on them. Next: ranloop lint, run and evaluate")
