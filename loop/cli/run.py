"""The verb ``run``: ask an engine one prompt version over one cohort."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from loop.cli.console import (
    ActorOption,
    JsonOption,
    Progress,
    WorkspaceOption,
    acting,
    open_workspace,
    print_json,
    say,
)

if TYPE_CHECKING:
    from loop.run.execute import RunSummary


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("run")(run)


def run(
    prompt: Annotated[
        str, typer.Argument(help="Prompt version, for example extractor@v1.")
    ],
    cohort: Annotated[
        str, typer.Option("--cohort", "-c", help="Name of an imported cohort.")
    ],
    engine: Annotated[
        str, typer.Option("--engine", "-e", help="Engine, for example rules.")
    ] = "rules",
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Only the first N cases.")
    ] = None,
    actor: ActorOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask an engine one prompt version over one cohort, and keep every outcome.

    Answers that are stored already are not asked again: a run that was stopped goes
    on where it was when the same command is started again.
    """
    from loop.evaluate.protocol import register_protocol
    from loop.run.task import prepare_run, run_task

    place = open_workspace(workspace)
    task = prepare_run(place, prompt, cohort, engine=engine, limit=limit)
    # What will be claimed stands in the ledger before the first answer exists.
    register_protocol(place, acting(actor))
    progress = Progress(f"run {task.spec.prompt}", total=task.total, quiet=as_json)
    summary = run_task(place, task, watch=progress.track)
    if as_json:
        print_json(
            {
                **summary._asdict(),
                "prompt": task.spec.prompt,
                "cohort": cohort,
                "engine": engine,
            }
        )
    else:
        say(f"{task.spec.prompt} on {cohort} with {engine}")
        for line in describe(summary):
            say(line)


def describe(summary: RunSummary) -> list[str]:
    """Return the lines that tell what a run did."""
    rate = summary.items / summary.seconds if summary.seconds > 0 else 0.0
    return [
        f"  run            {summary.run_id}",
        f"  cases          {summary.items}",
        f"  answered       {summary.answered}",
        f"  unparsed       {summary.unparsed}",
        f"  engine failed  {summary.failed}",
        f"  asked          {summary.asked} (from the store: {summary.cached})",
        f"  speed          {rate:,.0f} cases/s, {summary.seconds:.1f} s",
    ]
