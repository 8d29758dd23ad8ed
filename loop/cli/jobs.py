"""The verb ``jobs``: work that goes on in a separate process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from loop.cli.console import (
    ActorOption,
    JsonOption,
    MaxDrawsOption,
    MaxTokensOption,
    ReferenceOption,
    ThinkingOption,
    UnconstrainedOption,
    WorkspaceOption,
    acting,
    open_workspace,
    print_json,
    print_table,
    say,
)
from loop.cli.run import LimitOption, SeedOption, TemperatureOption
from loop.core.errors import DataError
from loop.release.keys import signer_for
from loop.review.job_work import start_job, work_through
from loop.run.jobs import (
    JobKind,
    JobQueue,
    JobRecord,
    JobRequest,
    find_job,
    list_jobs,
)
from loop.run.store import open_store

NumberArgument = Annotated[
    int, typer.Argument(help="Number of the job, as `ranloop jobs` shows it.")
]
EnginesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--engine",
        "-e",
        show_default="rules",
        help="rules, openai:MODEL[@URL] or vllm:MODEL[@URL]; for a matrix several.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the verbs to `app`."""
    group = typer.Typer(rich_markup_mode=None, invoke_without_command=True)
    group.callback()(jobs)
    group.command("show")(show_job)
    group.command("start")(start)
    group.command("stop")(stop)
    group.command("resume")(resume)
    group.command("work", hidden=True)(work)
    app.add_typer(
        group, name="jobs", help="Start work that goes on by itself, watch and stop it."
    )


@contextmanager
def _open(workspace: Path | None) -> Iterator[JobQueue]:
    place = open_workspace(workspace)
    with open_store(place) as store:
        yield JobQueue(workspace=place, store=store)


def jobs(
    context: typer.Context,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start work that goes on by itself, watch and stop it.

    Without a command: list the jobs, the newest first. A job goes on when the terminal
    or the workbench is closed. One job asks an engine at a time; the others wait in
    their order.
    """
    if context.invoked_subcommand is not None:
        return
    with _open(workspace) as queue:
        queue.dispatch()
        found = list_jobs(queue.store)
    if as_json:
        print_json({"jobs": [job_data(job) for job in found]})
    elif found:
        header = ("job", "state", "progress", "by", "created", "what")
        print_table(header, map(_row, found))
    else:
        say("no jobs yet; start one with `ranloop jobs start run PROMPT -c COHORT`")


def _row(job: JobRecord) -> tuple[str, ...]:
    progress = f"{job.done:,} of {job.total:,}" if job.total else ""
    title = job.request.title
    return (
        str(job.number), job.state.value, progress, job.actor, job.created, title
    )  # fmt: skip


def job_data(job: JobRecord) -> dict[str, Any]:
    """Return a job as JSON data."""
    data = {**asdict(job), "kind": job.request.kind.value}
    data["parameters"] = job.request.data
    del data["request"]
    return {**data, "log": list(job.log), "runs": list(job.runs)}


def show_job(
    number: NumberArgument,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how far a job is, and its log."""
    with _open(workspace) as queue:
        queue.dispatch()
        job = find_job(queue.store, number)
    _show(job, as_json=as_json)


def _show(job: JobRecord, *, as_json: bool) -> None:
    if as_json:
        print_json(job_data(job))
        return
    say(f"job {job.number}: {job.request.title}")
    say(f"  state     {job.state}")
    say(f"  by        {job.actor}")
    if job.step:
        of = f": {job.done:,} of {job.total:,} cases" if job.total else ""
        say(f"  step      {job.step}{of}")
    if job.message:
        say(f"  message   {job.message}")
    if job.runs:
        say(f"  runs      {', '.join(job.runs)}")
    for line in job.log:
        say(f"  {line}")


def start(
    kind: Annotated[JobKind, typer.Argument(help="What is to be done.")],
    subject: Annotated[
        str | None,
        typer.Argument(
            help="Prompt version; for an evaluation a run, for a check a draft.",
            show_default=False,
        ),
    ] = None,
    cohort: Annotated[
        str | None, typer.Option("--cohort", "-c", help="Name of an imported cohort.")
    ] = None,
    engine: EnginesOption = None,
    limit: LimitOption = None,
    draws: Annotated[
        int | None,
        typer.Option(
            "--draws",
            min=1,
            max=100,
            help="How often to ask; for a check, parent and draft each.",
            show_default="1; for a check the protocol's, 3",
        ),
    ] = None,
    max_draws: MaxDrawsOption = None,
    reference: ReferenceOption = None,
    temperature: TemperatureOption = None,
    max_tokens: MaxTokensOption = None,
    seed: SeedOption = None,
    thinking: ThinkingOption = "",
    allow_unconstrained: UnconstrainedOption = False,
    actor: ActorOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start a run, an evaluation, a matrix or the check of a draft.

    It goes on when this command has ended. What is under way already is refused, with
    the number of its job. What it would cost, `ranloop run --dry-run` says.
    """
    evaluation, check = kind is JobKind.EVALUATION, kind is JobKind.CHECK
    named = subject or ("latest" if evaluation else "")
    request = JobRequest(
        kind=kind,
        prompt="" if evaluation or check else named,
        run=named if evaluation else "",
        draft=named if check else "",
        cohort=cohort or "",
        engines=tuple(engine or ()) or (() if evaluation else ("rules",)),
        reference=reference,
        limit=limit,
        draws=draws,
        max_draws=max_draws,
        temperature=temperature,
        max_tokens=max_tokens,
        seed=seed,
        thinking=thinking,
        allow_unconstrained=allow_unconstrained,
    )
    with _open(workspace) as queue:
        who = acting(actor)
        job = start_job(queue, request, who.name, who.role)
    _show(job, as_json=as_json)


def stop(
    number: NumberArgument,
    now: Annotated[
        bool, typer.Option("--now", help="Kill its process if it does not stop.")
    ] = False,
    actor: ActorOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stop a job; what was answered is kept."""
    with _open(workspace) as queue:
        job = queue.stop(number, acting(actor).name, at_once=now)
    _show(job, as_json=as_json)


def resume(
    number: NumberArgument,
    actor: ActorOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Resume a job that was stopped or that failed: only what is missing is asked."""
    with _open(workspace) as queue:
        who = acting(actor)
        job = queue.resume(number, who.name, who.role)
    _show(job, as_json=as_json)


def work(
    worker: Annotated[str, typer.Argument(help="Name of its lock.")],
    lock: Annotated[int, typer.Option("--lock", help="Handle that holds it.")],
    workspace: WorkspaceOption = None,
) -> None:
    """Work through the queue: what the process of a job does."""
    try:
        os.set_inheritable(lock, False)
    except OSError as error:
        raise DataError(
            "this command is for the process of a job. Start one with "
            "`ranloop jobs start`."
        ) from error
    with _open(workspace) as queue:
        work_through(queue, worker, partial(signer_for, queue.workspace))
