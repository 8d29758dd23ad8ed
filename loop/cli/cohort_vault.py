"""The verbs ``cohort seal`` and ``cohort retire``: a holdout closed, and given up."""

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
from loop.labels.holdout import retire_holdout, seal_holdout

NameArgument = Annotated[str, typer.Argument(help="Name of the holdout.")]
WhyOption = Annotated[str, typer.Option("--why", help="Reason, for the ledger.")]


def register(verbs: typer.Typer) -> None:
    """Add the verbs to ``cohort``."""
    verbs.command("seal")(seal)
    verbs.command("retire")(retire)


def seal(
    name: NameArgument,
    why: WhyOption,
    workspace: WorkspaceOption = None,
    actor: ActorOption = None,
    role: RoleOption = "editor",
    as_json: JsonOption = False,
) -> None:
    """Encrypt the labels and votes of a holdout that lie in plain, and remove these.

    New holdouts are sealed when they are imported. Copies in version control or in
    backups are not touched.
    """
    place = open_workspace(workspace)
    made = seal_holdout(place, name, acting(actor, role), why)
    if as_json:
        print_json({"cohort": made.cohort, "files": list(made.files)})
        return
    if not made.files:
        say(f"{name}: no label lies in plain; nothing was changed")
        return
    say(f"{name}: {len(made.files)} files sealed, and no longer there in plain")
    for file in made.files:
        say(f"  {file}")
    say("copies in version control or in backups can still be read: remove them there")
    say("keep a backup of .ranloop/keys/vault.key elsewhere: without it they are lost")


def retire(
    name: NameArgument,
    why: WhyOption,
    workspace: WorkspaceOption = None,
    actor: ActorOption = None,
    role: RoleOption = "editor",
    as_json: JsonOption = False,
) -> None:
    """Give a holdout up: it becomes a cohort for development, and its labels open.

    It cannot be sealed again, and no later claim can rest on its cases.
    """
    place = open_workspace(workspace)
    made = retire_holdout(place, name, acting(actor, role), why)
    if as_json:
        data = {"openings": made.openings, "files": list(made.files), "role": "dev"}
        print_json({"cohort": made.cohort, **data})
        return
    say(f"{name} is for development now; it was opened {made.openings} times before")
    for file in made.files:
        say(f"  {file} lies in plain")
    say("next: import a new holdout, with other cases and another name")
