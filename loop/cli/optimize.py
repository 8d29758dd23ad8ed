"""The verb ``optimize``: a search for a better wording, and the draft it makes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

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
    say_wrapped,
    write_documents,
)
from loop.core.nouns import counted
from loop.documents.numbers import (
    count,
    interval,
    p_value,
    share,
    signed,
    signed_interval,
)
from loop.documents.templates import template_folder
from loop.optimize.documents import part_rows, render_search, render_verdicts
from loop.optimize.ground import AgreementGain
from loop.optimize.refusals import refuse_proposal
from loop.optimize.search import search_prompt
from loop.optimize.search_forecast import (
    AskingForecast,
    SearchForecast,
    forecast_search,
)
from loop.optimize.search_report import (
    CASES,
    PROPOSALS,
    Optimizer,
    SearchReport,
    SearchRequest,
)
from loop.run.asking import EngineOptions

_ALL = "all"


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("optimize")(optimize)


def optimize(
    prompt: Annotated[
        str,
        typer.Argument(
            help="Extractor or judge, e.g. extractor; with --study also extractor@v1."
        ),
    ],
    cohort: Annotated[str, typer.Option("--cohort", "-c", help="Dev cohort.")],
    optimizer: Annotated[
        Optimizer,
        typer.Option("--with", help="Optimizer; terms is for extractors only."),
    ] = Optimizer.TERMS,
    labels: Annotated[
        str,
        typer.Option(
            "--labels",
            help="Labels to search for, or a judge's categories of errors, separated "
            "by commas; failing; or all.",
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
            help="With terms, proposals accepted at most; else cases that each search "
            "may score.",
            show_default=f"{PROPOSALS} for terms, {CASES} for the others",
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
            "--accept-all",
            help="With --study: report the score with all proposals accepted.",
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
            "--resume/--restart",
            help="Resume an unfinished search, or start it over; a finished one is "
            "kept.",
        ),
    ] = True,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show the splits and the cost; ask nothing."),
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write the search as an HTML page.")
    ] = None,
    verdicts: Annotated[
        Path | None,
        typer.Option(
            "--verdicts", help="Write the proposals as a verdict file for review."
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

    An extractor is scored by F1 against the reference, a judge by how far its counts of
    errors are from the readers'; its agreement with their ratings is reported as
    well.
    """
    others = optimizer is not Optimizer.TERMS and (accept_all or refuse or verdicts)
    _refuse_options(
        {
            "--accept-all, --refuse and --verdicts are for --with terms": others,
            "--accept-all is for a --study: a person edits drafts": (
                accept_all and not study
            ),
            "--dry-run writes nothing: leave out --refuse, --html and --verdicts": (
                dry_run and (refuse or html or verdicts)
            ),
            "--why is the reason of a --refuse: name a proposal": why and not refuse,
            "--labels names no label; write `all` for all": (
                labels and not labels.strip(" ,")
            ),
        }
    )
    named = tuple(one.strip() for one in labels.split(",") if one.strip())
    place = open_workspace(workspace)
    for path in (html, verdicts):
        if path is not None:
            own_output(path, place)
    request = SearchRequest(
        prompt=prompt,
        cohort=cohort,
        optimizer=optimizer,
        labels=() if named == (_ALL,) else named or None,
        engine=engine,
        reflect=reflect,
        budget=budget,
        seed=seed,
        study=study,
    )
    who = acting(actor, role)
    for one in refuse or ():
        kept = refuse_proposal(place, prompt.partition("@")[0], one, why, who)
        note(f"{one} was refused by {kept.by}: {kept.reason}")
    if dry_run:
        forecast = forecast_search(place, request)
        if as_json:
            print_json(_forecast_data(forecast))
        else:
            _print_forecast(forecast)
        return
    asking = EngineOptions(allow_unconstrained=unconstrained)
    progress = ProgressBar(f"optimize {prompt}", quiet=as_json)
    with progress.shown():
        report = search_prompt(
            place,
            request,
            who,
            asking=asking,
            restart=not resume,
            tell=progress.count,
        )
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


def _refuse_options(problems: Mapping[str, object]) -> None:
    """Refuse options of which one of these problems is true."""
    for problem, found in problems.items():
        if found:
            raise typer.BadParameter(problem)


def _print_forecast(found: SearchForecast) -> None:
    say(f"{found.prompt} on {found.cohort} with {found.optimizer}: NOTHING WAS ASKED")
    say(f"  cases   {found.cases:,}")
    say_wrapped("  labels  ", ", ".join(found.labels) or "all")
    _print_not_estimable(found.not_estimable)
    say()
    rows = [
        (
            part.name,
            str(len(part.cases)),
            _range(min(part.cases), max(part.cases)),
            _range(*part.positives),
        )
        for part in found.parts
    ]
    print_table(("part", "splits", "cases", "positives of a label"), rows)
    say()
    asked = [("answers", found.answering)]
    if found.reflecting is not None:
        asked.append(("proposes", found.reflecting))
    header = ("at most", "engine", "requests", "prompt tokens", "output tokens", "cost")
    print_table(header, [(what, *_asking(one)) for what, one in asked])
    if not found.exact:
        say("tokens are estimated: the model's tokenizer is not on this machine")


def _asking(one: AskingForecast) -> tuple[str, ...]:
    cost = "-" if one.cost is None else f"{one.cost:,.2f} {one.currency}"
    counts = (one.requests, one.prompt_tokens, one.output_tokens)
    return (one.engine, *(f"{number:,}" for number in counts), cost)


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _forecast_data(found: SearchForecast) -> dict[str, Any]:
    data = found._asdict()
    data["parts"] = [part._asdict() for part in found.parts]
    data["answering"] = found.answering._asdict()
    data["reflecting"] = found.reflecting._asdict() if found.reflecting else None
    return data


def _print_report(report: SearchReport, *, accepted: bool) -> None:
    findings, estimate = report.findings, report.findings.estimate
    if not findings.labels:
        say(report.words)
        return
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
        f"estimate, pooled over {count(estimate.cases)} cases: {estimate.score} "
        f"{share(estimate.parent.estimate)} to {share(estimate.found.estimate)} "
        f"{interval(estimate.found)}, gain {signed(estimate.gain.estimate)} "
        f"{signed_interval(estimate.gain)}"
    )
    _print_agreement(estimate.agreement)
    tried = f"candidates tried: {count(findings.candidates)}"
    if findings.candidates > 1:
        tried += (
            "; if all were equally good, the best one's accuracy on a label would be "
            f"overstated by {100 * report.expected_excess:.1f} percentage points"
        )
    say_wrapped("", tried)
    _print_effort(report)
    if estimate.left_out:
        left_out = counted(estimate.left_out, "case")
        say(f"left out, because the engine failed: {left_out}")
    _print_not_estimable(report.not_estimable)
    for one in report.stale:
        note(f"out of date: {one}. Search again.")
    if report.remembered:
        note("this search was finished before: nothing was asked")
    say()
    _print_asked(report)
    if findings.proposals:
        _print_proposals(report)
    else:
        _print_labels(report)
    _print_end(report, accepted=accepted)


def _print_agreement(found: AgreementGain | None) -> None:
    """Print how a judge agrees with the raters, which it was not chosen by."""
    if found is None:
        return
    say_wrapped(
        "",
        f"{found.measure} of {found.score} on these: {share(found.parent.estimate)} "
        f"{interval(found.parent)} to {share(found.found.estimate)} "
        f"{interval(found.found)}, gain {signed(found.gain.estimate)} "
        f"{signed_interval(found.gain)}, with {found.against}; it does not "
        "influence the search",
    )


def _print_effort(report: SearchReport) -> None:
    """Print what was proposed as text, where it was."""
    effort = report.findings.effort
    if not (effort.calls or effort.proposed):
        return
    refused = [f"{number} {why}" for why, number in effort.refused]
    say(
        f"texts proposed: {count(effort.proposed)}, refused: "
        f"{', '.join(refused) or 'none'}; {counted(effort.calls, 'case')} scored, "
        f"{counted(effort.reflections, 'question')} answered"
    )


def _print_asked(report: SearchReport) -> None:
    """Print what was asked of each engine, and what it cost."""
    if not report.engines:
        return
    print_table(
        (
            "asked",
            "engine",
            "requests",
            "stored",
            "prompt tokens",
            "output tokens",
            "cost",
        ),
        [
            (
                one.what,
                one.use.engine,
                *map(count, (one.use.requests, one.use.cached)),
                *map(count, one.tokens or (None, None)),
                one.cost_words,
            )
            for one in report.engines
        ],
    )
    say()


def _print_not_estimable(labels: tuple[str, ...]) -> None:
    if labels:
        say_wrapped("not estimable, too few positives: ", ", ".join(labels))


def _print_proposals(report: SearchReport) -> None:
    print_table(
        ("label", "proposal", "for", "against", "only this", "gain", "p"),
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
            for one in report.findings.proposals
        ],
    )


def _print_labels(report: SearchReport) -> None:
    """Print the scores of the labels that were searched for, on the estimate parts."""
    labels = report.findings.labels
    rows = [
        (one.label, count(one.positives), share(one.parent), share(one.found))
        for one in report.findings.estimate.labels
        if one.label in labels and one.estimable
    ]
    if rows:
        print_table(("label", "positives", "parent", "found"), rows)


def _print_end(report: SearchReport, *, accepted: bool) -> None:
    """Print what came of it, last."""
    if accepted and report.better:
        last = report.findings.curve[-1]
        say(
            f"all {len(report.findings.proposals)} proposals accepted: macro-F1 "
            f"{share(last.search)} on the cases that were searched; no draft: this is "
            "a study"
        )
        return
    if not report.drafts:
        say_wrapped("", report.words)
    estimate = report.findings.estimate
    if not estimate.better and (estimate.gain.low or 0.0) > 0:
        say_wrapped(
            "",
            f"the gain in {estimate.score} alone is above 0: that in kappa is "
            f"{signed(estimate.kappa_gain.estimate)} "
            f"{signed_interval(estimate.kappa_gain)}, so it may come from "
            f"{'counting fewer errors' if estimate.counts_errors else 'more findings'}",
        )
    for one in report.drafts:
        for line in one.notes:
            note(line)
        say(f"draft {one.ref}: its check {'objects' if one.objections else 'passed'}")
        for objection in one.objections:
            say_wrapped("  - ", objection)
    if report.drafts:
        best = report.drafts[0]
        command = f'ranloop draft commit {best.ref} --why "..."'
        if best.objections:
            say(f'commit it anyway with `{command} --override "..."`')
        else:
            say(f"commit it with `{command}`")
