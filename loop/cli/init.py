"""The verb ``init``: make a workspace."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from loop.cli.console import ActorOption, JsonOption, acting, print_json, say
from loop.cli.prompt import first_data, say_first
from loop.core.git import find_repository
from loop.review.start import SHIPPED_PROMPT, start_workspace


class StartTask(StrEnum):
    """What the reports of a new workspace are read for."""

    CHEST_XRAY = "chest-xray"
    NEW = "new"


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("init")(init)


def init(
    folder: Annotated[Path, typer.Argument(help="Folder to make.")],
    task: Annotated[
        StartTask,
        typer.Option(
            "--task",
            help="chest-xray: the 21 labels and the extractor that ship with ranloop. "
            "new: your own labels, of any kind of report.",
        ),
    ] = StartTask.CHEST_XRAY,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            help="With --task new: the labels, as .csv, .xlsx or .yaml. Needed are "
            "name and definition; id, group, counts, does_not_count, uncertain_when "
            "and aliases may be there.",
        ),
    ] = None,
    prompt: Annotated[
        str, typer.Option("--prompt", help="Name of the first prompt.")
    ] = SHIPPED_PROMPT,
    actor: ActorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a workspace of your own, with a first prompt.

    Its history begins with that version: own ledger, own protocol, no cohorts and no
    releases.
    """
    if (task is StartTask.NEW) != (labels is not None):
        raise typer.BadParameter(
            "--task new needs --labels FILE, and only that task takes it"
        )
    made = start_workspace(folder, acting(actor), labels=labels, prompt=prompt)
    if as_json:
        print_json({"workspace": str(made.workspace.root), **first_data(made)})
        return
    say(f"workspace ready in {made.workspace.root}")
    root = made.workspace.root
    outer = find_repository(root)
    if outer is not None and not outer.samefile(root):
        say(f"It lies in the git repository {outer}, in which ranloop commits nothing;")
        say("to keep its history in git, run `git init` in the workspace itself.")
    say_first(made)
    say("Next:")
    say(f"  cd {folder}")
    if labels is not None:
        say("  read labels/taxonomy.yaml, and say of each label what counts there")
    say("  ranloop cohort import FILE --name dev --role dev")
    say("  ranloop cohort votes dev FILE")
    say(f"  ranloop run {prompt} --cohort dev")
    say("  ranloop evaluate")
