"""The verb ``plan``: how many cases and positives the claim needs, label by label."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from loop.cli.console import (
    JsonOption,
    ProgressBar,
    WorkspaceOption,
    note,
    note_part,
    open_workspace,
    own_output,
    print_json,
    print_table,
    say,
)
from loop.core.files import write_atomic
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.evaluate.plan import CANDIDATES, SampleSizePlan, find_planned_run, plan_cohort
from loop.evaluate.plan_text import (
    collect_lines,
    label_table,
    level_tables,
    never_lines,
    plan_data,
    plan_notes,
    render_plan_csv,
)

CsvOption = Annotated[
    Path | None,
    typer.Option("--csv", help="Write one row per label and supposed accuracy as CSV."),
]


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("plan")(plan)


def plan(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="PROMPT|RUN",
            help="Adds what was observed: extractor@v3, a run id, or latest.",
        ),
    ] = None,
    cohort: Annotated[
        str | None,
        typer.Option("--cohort", "-c", help="Cohort to plan on; default: the run's."),
    ] = None,
    supposed: Annotated[
        list[float] | None,
        typer.Option(
            "--accuracy",
            help="True accuracy to suppose; repeat for several. Default: 0.99 0.98 "
            "0.97.",
        ),
    ] = None,
    csv: CsvOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compute how many cases each label needs to pass.

    Gives exact numbers of cases and positives for 80 and 90 % power under
    labels/protocol.yaml, the labels that the cohort can never certify, and what to
    collect. Nothing is recorded.
    """
    place = open_workspace(workspace)
    if csv is not None:
        own_output(csv, place)
    with ProgressBar("plan", quiet=as_json).shown():
        made = _plan(place, run, cohort, supposed)
    if made.run:
        note_part(place, made.run)
    if csv is not None:
        write_atomic(csv, render_plan_csv(made))
        note(f"wrote {csv}")
    if as_json:
        print_json(plan_data(made))
    else:
        show_plan(made)


def _plan(
    workspace: WorkspacePaths,
    run: str | None,
    cohort: str | None,
    supposed: Sequence[float] | None,
) -> SampleSizePlan:
    candidates = tuple(dict.fromkeys(supposed or CANDIDATES))
    wrong = next((one for one in candidates if not 0 < one <= 1), None)
    if wrong is not None:
        raise typer.BadParameter(f"--accuracy is a share up to 1, got {wrong:g}")
    if run is None and cohort is None:
        raise typer.BadParameter("name a cohort with --cohort, or a prompt or run")
    record = find_planned_run(workspace, run, cohort or "") if run else None
    where = cohort or (record.spec.cohort if record else "")
    return plan_cohort(workspace, where, record, candidates=candidates)


def show_plan(plan: SampleSizePlan) -> None:
    """Print the tables, what can never be certified, what to collect, and caveats."""
    with_run = f", {plan.prompt} in run {plan.run}" if plan.run else ""
    say(
        f"{plan.cohort}: {counted(plan.cases, 'case')}, reference v{plan.reference}"
        f"{with_run}"
    )
    say(f"claim: {plan.protocol.claim}, rule {plan.protocol.rule}")
    for table in (*level_tables(plan), label_table(plan)):
        say()
        print_table(table.header, table.rows, title=table.title)
    for title, lines in (
        ("never with this cohort, even without an error:", never_lines(plan)),
        ("what to collect:", collect_lines(plan)),
    ):
        if lines:
            say()
            say(title)
        for line in lines:
            say(f"  {line}")
    say()
    for text in plan_notes(plan):
        say(f"note: {text}")
