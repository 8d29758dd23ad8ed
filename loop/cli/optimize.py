"""The verb ``optimize``: a search for a better wording, and the draft it makes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loop.cli.console import (
    ActorOption,
    JsonOption,
    ProgressBar,
    RoleOption,
    UnconstrainedOption,
    WorkspaceOption,
    acting,
    note,
    open_workspace,
    own_output,
    print_json,
    print_table,
    say,
    write_documents,
)
from loop.cli.library_search import show_forecast, show_result
from loop.documents.numbers import (
    count,
    interval,
    p_value,
    percent,
    share,
    signed,
    signed_interval,
)
from loop.documents.templates import template_folder
from loop.optimize.documents import (
    part_rows,
    render_result,
    render_search,
    render_verdicts,
)
from loop.optimize.library_search import BUDGET as CASES
from loop.optimize.library_search import Optimizer, SearchRequest, search_prompt
from loop.optimize.refusals import refuse_proposal
from loop.optimize.search import (
    BUDGET,
    FAILING,
    SearchOptions,
    SearchPlan,
    SearchReport,
    optimize_prompt,
    plan_search,
)
from loop.run.asking import EngineOptions

_ALL = "all"


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("optimize")(optimize)


def optimize(
    prompt: Annotated[
        str,
        typer.Argument(help="Prompt, e.g. extractor; with --study also extractor@v1."),
    ],
    cohort: Annotated[str, typer.Option("--cohort", "-c", help="Dev cohort.")],
    optimizer: Annotated[
        Optimizer, typer.Option("--with", help="What proposes.")
    ] = Optimizer.TERMS,
    labels: Annotated[
        str,
        typer.Option(
            "--labels",
            help="Labels to search for, separated by commas; failing; or all.",
            show_default="all for terms, failing for the others",
        ),
    ] = "",
    engine: Annotated[
        str, typer.Option("--engine", "-e", help="Engine that is asked.")
    ] = "rules",
    reflect: Annotated[
        str,
        typer.Option(
            "--reflect", help="Language model that proposes, for gepa and mipro."
        ),
    ] = "",
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            min=1,
            help="Proposals accepted at most; but for terms, cases that the search in "
            "each split may score.",
            show_default=f"{BUDGET} for terms, {CASES} for the others",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the splits.")] = 0,
    study: Annotated[
        bool,
        typer.Option("--study", help="Only report; may begin with an old version."),
    ] = False,
    accept_all: Annotated[
        bool,
        typer.Option(
            "--accept-all", help="With --study: say what all proposals come to."
        ),
    ] = False,
    refuse: Annotated[
        list[str] | None,
        typer.Option(
            "--refuse",
            help="Never make this proposal again, e.g. edema:term:fluid; with --why.",
        ),
    ] = None,
    why: Annotated[str, typer.Option("--why", help="Reason for what is refused.")] = "",
    resume: Annotated[
        bool,
        typer.Option(
            "--resume/--anew", help="Go on with what an unfinished search left."
        ),
    ] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the splits; ask nothing.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write the search as an HTML page.")
    ] = None,
    verdicts: Annotated[
        Path | None,
        typer.Option(
            "--verdicts", help="Write the proposals as a verdict file to go through."
        ),
    ] = None,
    unconstrained: UnconstrainedOption = False,
    actor: ActorOption = None,
    role: RoleOption = "editor",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search for a better wording, and draft what holds.

    A dev cohort is split into search, select and estimate, several times. A draft is
    made only where the estimate lies above the parent's by more than chance; it is
    checked like any other, and a person commits it. Nothing better is a good result.
    """
    place = open_workspace(workspace)
    if html is not None:
        own_output(html, place)
    asking = EngineOptions(allow_unconstrained=unconstrained)
    named = tuple(one.strip() for one in labels.split(",") if one.strip())
    if optimizer is not Optimizer.TERMS:
        if accept_all or refuse:
            raise typer.BadParameter("--accept-all and --refuse are for --with terms")
        request = SearchRequest(
            prompt=prompt,
            cohort=cohort,
            optimizer=optimizer,
            labels=() if named == (_ALL,) else named or (FAILING,),
            engine=engine,
            reflect=reflect,
            budget=CASES if budget is None else budget,
            seed=seed,
            study=study,
        )
        if dry_run:
            show_forecast(place, request, as_json=as_json)
            return
        with ProgressBar(f"optimize {prompt}", quiet=as_json).shown():
            result = search_prompt(
                place, request, acting(actor, role), asking=asking, anew=not resume
            )
        folder = template_folder(place)
        write_documents(
            [html], [lambda: render_result(request, result, templates=folder)]
        )
        show_result(request, result, as_json=as_json)
        return
    for path in (html, verdicts):
        if path is not None:
            own_output(path, place)
    options = SearchOptions(
        labels=() if named == (_ALL,) else named,
        engine=engine,
        asking=asking,
        budget=BUDGET if budget is None else budget,
        seed=seed,
        study=study,
        accept_all=accept_all,
        anew=not resume,
    )
    who = acting(actor, role)
    for one in refuse or ():
        refuse_proposal(place, prompt.partition("@")[0], one, why, who)
    if dry_run:
        _print_plan(plan_search(place, prompt, cohort, options), as_json=as_json)
        return
    with ProgressBar(f"optimize {prompt}", quiet=as_json).shown():
        report = optimize_prompt(place, prompt, cohort, actor=who, options=options)
    folder = template_folder(place)
    write_documents(
        [html, verdicts],
        [
            lambda: render_search(report, templates=folder),
            lambda: render_verdicts(report),
        ],
    )
    if as_json:
        print_json(report.data)
    else:
        _print_report(report, accepted=accept_all)


def _print_plan(plan: SearchPlan, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "search": plan.spec.key,
                "engine": plan.spec.engine,
                "splits": [list(one) for one in plan.splits],
                "labels": list(plan.labels),
                "not_estimable": list(plan.not_estimable),
                "prompts": plan.prompts,
            }
        )
        return
    print_table(
        ("split", "search", "select", "estimate"),
        [(str(n), *map(count, sizes)) for n, sizes in enumerate(plan.splits, 1)],
    )
    say(f"labels: {', '.join(plan.labels)}")
    if plan.not_estimable:
        say(f"not estimable, too few positives: {', '.join(plan.not_estimable)}")
    say(
        f"prompts for {plan.spec.engine}: {count(plan.prompts)} at most; none was asked"
    )


def _print_report(report: SearchReport, *, accepted: bool) -> None:
    findings, estimate = report.findings, report.findings.estimate
    print_table(
        ("part", "parent", "found", "above the estimate"),
        [
            (
                row.part,
                share(row.scores.parent),
                share(row.scores.found),
                "" if row.part == "estimate" else signed(row.excess),
            )
            for row in part_rows(report)
        ],
    )
    say(
        f"estimate, pooled over {count(estimate.cases)} cases: macro-F1 "
        f"{share(estimate.parent.estimate)} to {share(estimate.found.estimate)} "
        f"{interval(estimate.found)}, gain {signed(estimate.gain.estimate)} "
        f"{signed_interval(estimate.gain)}"
    )
    say(
        f"candidates tried: {count(findings.tested + findings.scored)}; the best of so "
        "many equally good ones is overrated by "
        f"{percent(report.expected_excess)} of one label's accuracy"
    )
    if report.not_estimable:
        say(f"not estimable, too few positives: {', '.join(report.not_estimable)}")
    for one in report.stale:
        note(f"out of date: {one}. Search again.")
    if report.remembered:
        note("this search was finished before: nothing was asked")
    if findings.proposals:
        say()
        print_table(
            ("label", "proposal", "for", "against", "only it", "gain", "p"),
            [
                (
                    one.label,
                    f"{one.kind}: {one.wording}{' (rare)' if one.rare else ''}",
                    count(len(one.support)),
                    count(len(one.against)),
                    count(one.fixed),
                    signed(one.gain),
                    p_value(one.p),
                )
                for one in findings.proposals
            ],
        )
    _print_end(report, accepted=accepted)


def _print_end(report: SearchReport, *, accepted: bool) -> None:
    """Print what came of it, last."""
    number = len(report.findings.proposals)
    if not report.better:
        say("no better prompt found")
    elif accepted:
        last = report.findings.curve[-1]
        say(
            f"all {number} proposals accepted: macro-F1 {share(last.search)} on the "
            "cases that were searched; no draft: this is a study"
        )
    elif not report.draft:
        why = "search again" if report.stale else "this is a study"
        say(f"{number} proposals; no draft: {why}")
    else:
        for one in report.notes:
            note(one)
        say(f"draft {report.draft}")
        objections = report.check.objections if report.check else ()
        said = (
            f"objects: {'; '.join(objections)}" if objections else "has no objections"
        )
        say(f"its check {said}")
        say(f'commit it with `ranloop draft commit {report.draft} --why "..."`')
