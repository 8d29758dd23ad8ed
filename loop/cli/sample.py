"""The verb ``sample``: draw the cases whose reading is probably worth most."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from loop.cli.console import (
    ActorOption,
    JsonOption,
    ProgressBar,
    RoleOption,
    WorkspaceOption,
    acting,
    open_workspace,
    own_output,
    print_json,
    print_table,
    say,
    write_documents,
)
from loop.cli.reading import plans_data
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.documents.numbers import NOT_ESTIMABLE, percent, share
from loop.labels.named_samples import check_sample_name
from loop.optimize.sample import (
    EVEN,
    CaseSample,
    PartWorth,
    SamplePurpose,
    draw_cases,
    keep_drawn_list,
    keep_reading_sample,
)
from loop.optimize.sample_documents import (
    render_sample_csv,
    render_sample_html,
    render_sample_list,
    sample_data,
    sample_effective,
)
from loop.optimize.unread import PARTS
from loop.review.reading.assignment import (
    ReadingPlan,
    read_assignment,
    read_plans,
)
from loop.run.store import open_store

_SHOWN = 10


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("sample")(sample)


def sample(
    cohort: Annotated[str, typer.Argument(help="Cohort to draw from; no holdout.")],
    purpose: Annotated[
        SamplePurpose,
        typer.Option("--for", help="Readers label them blind, or a list to review."),
    ],
    size: Annotated[int, typer.Option("-n", min=1, help="Cases to draw.")] = 100,
    between: Annotated[
        str,
        typer.Option(
            "--between",
            metavar="VERSION,VERSION",
            help="Versions whose answers are compared, the one in question last; "
            "default: that of the newest run on the cohort.",
        ),
    ] = "",
    fit_on: Annotated[
        str,
        typer.Option(
            "--fit-on",
            help="Development cohort to learn from; default: the only one with a "
            "reference and the same runs.",
        ),
    ] = "",
    seed: Annotated[int, typer.Option("--seed", help="Random seed of the draw.")] = 1,
    reader: Annotated[
        list[str] | None,
        typer.Option("--reader", help="Who reads them; may be repeated."),
    ] = None,
    overlap: Annotated[
        int | None,
        typer.Option(
            "--overlap",
            min=0,
            help="How many of them all readers share, the others are dealt out; "
            "default: all.",
        ),
    ] = None,
    name: Annotated[
        str,
        typer.Option(
            "--name",
            help="With --for review: keep the cases under this name; the page Review "
            "can list them alone.",
        ),
    ] = "",
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace the sample drawn for readers before."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Draw and show; keep and give nothing.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write the sample as one HTML page.")
    ] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", help="Write one row per case as CSV.")
    ] = None,
    listed: Annotated[
        Path | None,
        typer.Option("--list", help="Write the case ids, as `failures` takes them."),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
    actor: ActorOption = None,
    role: RoleOption = "editor",
) -> None:
    """Draw the cases whose reading is probably worth most.

    No reference is needed of them: what is known is which findings a version answers,
    where versions, models, rules and repeats of a run differ, what is hedged, lacks
    positives or is near its gate. A model fitted on a development cohort estimates how
    likely each case is to fail, and cases that are likelier to fail are likelier to be
    drawn; a quarter of the sample is spread evenly, so every case has a chance, and
    each is known.

    For reading, the draw is recorded: a reference that decides its cases, and not the
    whole cohort, is weighted by `ranloop evaluate` and never read as a random one. For
    review it is a list, which is kept only under a --name.
    """
    place = open_workspace(workspace)
    reading = purpose is SamplePurpose.READING
    _check_options(reading, name, reader or (), overlap, replace=replace)
    for path in (html, csv, listed):
        if path is not None:
            own_output(path, place)
    with ProgressBar(f"sample {cohort}", quiet=as_json).shown():
        found = draw_cases(
            place,
            cohort,
            size=size,
            between=[one.strip() for one in between.split(",") if one.strip()],
            fit_on=fit_on,
            seed=seed,
        )
    number, plans = 0, tuple[ReadingPlan, ...]()
    if reading and not dry_run:
        number, plans = keep_reading_sample(
            place,
            found,
            actor=acting(actor, role),
            readers=reader or (),
            overlap=overlap,
            replace=replace,
        )
    if name and not dry_run:
        keep_drawn_list(place, found, name, actor=acting(actor, role))
    write_documents(
        (html, csv, listed),
        (
            lambda: render_sample_html(found, purpose=purpose),
            lambda: render_sample_csv(found),
            lambda: render_sample_list(found),
        ),
    )
    if as_json:
        kept = {
            "number": number or None,
            "name": None if dry_run else name or None,
            "dry_run": dry_run,
        }
        given = plans_data({one.reader: one for one in plans})
        print_json({"for": purpose, **kept, **sample_data(found), "plans": given})
        return
    show_sample(found)
    if dry_run:
        say("dry run: nothing was kept")
    elif reading:
        say_recorded(place, found, number, plans)
        who = shlex.quote(plans[0].reader) if plans else "NAME"
        again = f"assign {cohort} --sample" if not plans else f"next {cohort}"
        say(f"next: ranloop reading {again} --reader {who}")
    else:
        _say_review(found, name)


def _check_options(
    reading: bool,
    name: str,
    readers: Sequence[str],
    overlap: int | None,
    *,
    replace: bool,
) -> None:
    """Refuse options that are for the other purpose."""
    if not reading and (readers or overlap is not None or replace):
        raise typer.BadParameter(
            "--reader, --overlap and --replace are for --for reading"
        )
    if name and reading:
        raise typer.BadParameter("--name is for --for review: this one has a number")
    if name:
        check_sample_name(name)
    if overlap is not None and not readers:
        raise typer.BadParameter("--overlap is for readers: name them with --reader")


def _say_review(found: CaseSample, name: str) -> None:
    if name:
        say(f"kept as {name}: choose it under Sample on the page Review")
    else:
        say(
            f"next: ranloop failures {found.weighed.run} --cases-file FILE, written "
            "with --list"
        )


def say_recorded(
    workspace: WorkspacePaths,
    found: CaseSample,
    number: int,
    plans: Sequence[ReadingPlan],
) -> None:
    """Print who reads a sample, and who still has cases of one that it replaced."""
    cohort = found.weighed.cohort.name
    say(f"recorded as value sample {number} of {cohort}; the ledger has its digest")
    for plan in plans:
        say(f"{plan.reader}: {counted(len(plan.case_ids), 'case')}")
    if number == 1:
        return
    drawn = {one.case_id for one in found.drawn}
    with open_store(workspace) as store:
        known = read_plans(store, read_assignment(workspace, cohort))
    for name, plan in known.items():
        if not drawn.issuperset(plan.case_ids):
            say(f"{name} still has cases that this sample did not draw")


def show_sample(found: CaseSample) -> None:
    """Print what the sample was drawn by, what each part is worth, and its cases."""
    weighed = found.weighed
    cohort = weighed.cohort
    say(
        f"{weighed.size} of {len(cohort.cases)} cases of {cohort.name} for "
        f"{weighed.prompt} by {weighed.engine}, run {weighed.run}, seed {found.seed}"
    )
    if len(weighed.between) > 1:
        say(f"answers compared: {', '.join(weighed.between)}")
    say(
        f"fitted on {weighed.fitted_on}: {weighed.dev_failing} of "
        f"{weighed.dev_cases} cases fail, uncertain answers {weighed.policy.value}"
    )
    say()
    print_table(
        ("part", "failing", "others", "odds ratio", "alone", "without"),
        [_part_cells(one) for one in weighed.parts],
        title=f"what each part was worth on {weighed.fitted_on}",
    )
    say()
    say("failing, others: mean of the cases there that fail, and that do not")
    say(
        "odds ratio: for one standard deviation of log(1 + value), other parts held "
        "fixed"
    )
    say(
        "alone, without: times as many failing cases as at random, drawn by this part "
        "alone and by all the others; cross-validated"
    )
    for one in weighed.parts:
        if one.note:
            say(f"{one.name} ({PARTS[one.name]}): not weighed, {one.note}")
    say()
    if weighed.lift is None:
        say(
            f"together: not estimable, since the cases of {weighed.fitted_on} are of "
            "too few patients to be cross-validated"
        )
    else:
        say(
            f"together: {weighed.lift:.2f} times as many failing cases as at random on "
            f"{weighed.fitted_on}, cross-validated"
        )
    say(
        f"chances of all {len(cohort.cases)} cases: {weighed.chances.min():.4f} to "
        f"{weighed.chances.max():.4f}; {percent(EVEN, 0)} of the sample spread evenly"
    )
    say(
        f"for a share of the cohort the {len(found.drawn)} drawn cases say as much as "
        f"{sample_effective(found):.0f} at random (Kish)"
    )
    say()
    print_table(
        ("case", "chance", "weight", "fails"),
        [
            (one.case_id, f"{one.chance:.4f}", f"{one.weight:.2f}", share(one.fails))
            for one in found.drawn[:_SHOWN]
        ],
        title="drawn, the likeliest first",
    )
    if len(found.drawn) > _SHOWN:
        say(f"and {len(found.drawn) - _SHOWN} more; --csv, --json and --html have all")


def _part_cells(one: PartWorth) -> tuple[str, ...]:
    numbers = (one.failing, one.others, one.odds_ratio, one.alone, one.without)
    return (
        one.name,
        *(NOT_ESTIMABLE if number is None else f"{number:.2f}" for number in numbers),
    )
