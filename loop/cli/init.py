"""The verb ``init``: make a workspace."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from loop.cli.console import ActorOption, JsonOption, acting, print_json, say
from loop.review.start import PROMPT, start_task


class TaskKind(StrEnum):
    """What a new workspace is for."""

    CHEST_XRAY = "chest-xray"
    NEW = "new"


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("init")(init)


def init(
    folder: Annotated[Path, typer.Argument(help="Folder to make.")],
    task: Annotated[
        TaskKind,
        typer.Option(
            "--task",
            help="chest-xray: 21 findings and the shipped extractor. new: your labels.",
        ),
    ] = TaskKind.CHEST_XRAY,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            help="Labels of a new task: a table with name and definition, or YAML.",
        ),
    ] = None,
    prompt: Annotated[
        str, typer.Option("--prompt", help="Name of the first prompt.")
    ] = PROMPT,
    actor: ActorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a workspace with a first prompt version.

    A table of labels may also have the columns id, group, counts, does_not_count,
    uncertain_when and aliases (entries separated by a semicolon). Its history
    is its own; the first ledger entry says where the prompt comes from.
    """
    if (task is TaskKind.NEW) != (labels is not None):
        raise typer.BadParameter(
            "--task new and --labels FILE go together: the labels are the task"
        )
    made = start_task(folder, acting(actor), labels=labels, prompt=prompt)
    root, version = made.workspace.root, made.version
    if as_json:
        print_json(
            {
                "workspace": str(root),
                "prompt": version.ref,
                "digest": version.digest,
                "labels": list(version.labels),
            }
        )
        return
    say(f"workspace ready in {root}")
    say(f"{version.ref}: {len(version.labels)} labels, {version.why}")
    say("Next:")
    for command, what in _next_steps(version.name, task):
        say(f"  {command:<52}  {what}".rstrip())


def _next_steps(prompt: str, task: TaskKind) -> list[tuple[str, str]]:
    """Return what to do next, as commands and their reasons."""
    steps = [
        ("cohort import REPORTS --name dev --role dev", "your texts"),
        ("cohort votes dev VOTES", "readers' labels, if not in the same file"),
        (f"run {prompt} --cohort dev", "then: ranloop evaluate, ranloop review"),
    ]
    if task is TaskKind.NEW:
        steps[:0] = [
            (f"lint {prompt}", "what the first version still lacks"),
            (f"guideline {prompt} --out guideline.docx", "what readers are told"),
        ]
    return [(f"ranloop {command}", what) for command, what in steps]
