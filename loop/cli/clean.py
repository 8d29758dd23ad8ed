"""The verb ``clean``: show what may go, and remove it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from loop.cli.console import (
    JsonOption,
    WorkspaceOption,
    find_place,
    megabytes,
    print_json,
    say,
)
from loop.core.errors import WorkspaceError
from loop.release.state import StatePart, list_demos, list_removable, remove
from loop.run.prune import Pruned, prune_completions


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("clean")(clean)


def clean(
    completions: Annotated[
        bool,
        typer.Option(
            "--completions",
            help="Stored answers that no run rests on; asked again, they cost again.",
        ),
    ] = False,
    replaced: Annotated[
        bool,
        typer.Option(
            "--replaced", help="Cohorts and votes that an import replaced, for good."
        ),
    ] = False,
    demos: Annotated[
        bool,
        typer.Option("--demos", help="Your demos in the folder of temporary files."),
    ] = False,
    head: Annotated[
        bool,
        typer.Option(
            "--head",
            help="What this machine remembers of the ledger, to notice a rollback.",
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Remove it; without this it is only shown.")
    ] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what may go, and remove it with --yes.

    Without an option that is what killed commands left a day ago or longer. Texts,
    runs, verdicts, drafts, users and keys are never removed.
    """
    place = find_place(workspace)
    if place is None and not demos:
        raise WorkspaceError(
            "no workspace here: only --demos can be cleaned. Name one with "
            "--workspace DIR."
        )
    parts = list_demos() if demos else []
    pruned = Pruned(0, 0)
    if place is not None:
        parts += list_removable(place, replaced=replaced, head=head)
        if completions:
            pruned = prune_completions(place, dry_run=not yes)
    if yes:
        remove(parts)
    if as_json:
        print_json(_data(parts, pruned, removed=yes))
        return
    for part in parts:
        say(f"{megabytes(part.size):>10}  {part.path}  ({part.purpose})")
    if completions:
        text = f"{pruned.answers:,} stored answers that no run rests on"
        say(f"{megabytes(pruned.size):>10}  {text}")
    total = megabytes(sum(part.size for part in parts) + pruned.size)
    if not parts and not pruned.answers:
        say("nothing to remove")
    elif yes:
        say(f"{total:>10}  removed")
    else:
        say(f"{total:>10}  would be removed: run it again with --yes")


def _data(
    parts: Sequence[StatePart], pruned: Pruned, *, removed: bool
) -> dict[str, object]:
    return {
        "removed": removed,
        "files": [
            {"path": str(one.path), "bytes": one.size, "purpose": one.purpose}
            for one in parts
        ],
        "completions": {"answers": pruned.answers, "bytes": pruned.size},
    }
