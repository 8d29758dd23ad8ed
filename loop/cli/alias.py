"""The verb ``alias``: give a prompt version a name such as production."""

from __future__ import annotations

from typing import Annotated

import typer

from loop.cli.console import (
    ActorOption,
    JsonOption,
    RoleOption,
    WorkspaceOption,
    acting,
    open_workspace,
    print_json,
    say,
)
from loop.prompts.history import move_alias


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("alias")(alias)


def alias(
    prompt: Annotated[str, typer.Argument(help="Version, e.g. extractor@v3.")],
    name: Annotated[str, typer.Argument(help="Alias, e.g. production.")],
    why: Annotated[str, typer.Option("--why", help="Reason, kept in the ledger.")],
    actor: ActorOption = None,
    role: RoleOption = "editor",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Point an alias, such as production, at a version.

    The ledger keeps every move.
    """
    if not why.strip():
        raise typer.BadParameter("--why needs a reason: the ledger records it")

    place = open_workspace(workspace)
    entry = move_alias(place, prompt, name, actor=acting(actor, role), reason=why)
    if as_json:
        print_json(
            {
                "alias": name,
                "version": entry.subject,
                "before": entry.payload["before"],
                "seq": entry.seq,
            }
        )
        return
    before = entry.payload["before"]
    was = f" (was {before})" if before else ""
    say(f"{entry.subject.partition('@')[0]}@{name} is now {entry.subject}{was}")
