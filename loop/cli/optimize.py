"""The verb ``optimize``: search for a better prompt; what is found becomes drafts."""

from __future__ import annotations

from dataclasses import asdict
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
    open_workspace,
    print_json,
    print_table,
    say,
    say_wrapped,
)
from loop.optimize.library_search import (
    FAILING,
    Optimizer,
    SearchRequest,
    SearchResult,
    search_prompt,
)
from loop.optimize.search_forecast import AskingForecast, SearchForecast, forecast_search
from loop.run.asking import EngineOptions

_ALL = "all"


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("optimize")(optimize)


def optimize(
    prompt: Annotated[
        str, typer.Argument(help="Prompt; with --study any version, e.g. extractor@v1.")
    ],
    optimizer: Annotated[
        Optimizer, typer.Option("--with", help="What proposes wordings.")
    ],
    cohort: Annotated[str, typer.Option("--cohort", "-c", help="Dev cohort.")],
    labels: Annotated[
        str,
        typer.Option(
            "--labels", help="failing (of their gate), all, or labels with commas."
        ),
    ] = FAILING,
    engine: Annotated[
        str, typer.Option("--engine", "-e", help="Engine that answers.")
    ] = "rules",
    reflect: Annotated[
        str,
        typer.Option(
            "--reflect", help="Language model that proposes, for gepa and mipro."
        ),
    ] = "",
    budget: Annotated[
        int,
        typer.Option(
            "--budget", min=1, help="Cases that the search in each split may score."
        ),
    ] = 300,
    splits: Annotated[
        int, typer.Option("--splits", min=1, max=50, help="Nested splits.")
    ] = 5,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed.")] = 0,
    study: Annotated[
        bool, typer.Option("--study", help="Only report: make no draft.")
    ] = False,
    anew: Annotated[
        bool, typer.Option("--anew", help="Forget what a killed search had done.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count what would be asked.")
    ] = False,
    unconstrained: UnconstrainedOption = False,
    actor: ActorOption = None,
    role: RoleOption = "editor",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search for a better prompt; what is found becomes drafts.

    Each nested split is searched, and what is found there is measured on cases that the
    search has not seen. Drafts are made only where these say that it is better; you
    check and commit them like any other. A search that was killed goes on.
    """
    place = open_workspace(workspace)
    request = SearchRequest(
        prompt=prompt,
        cohort=cohort,
        optimizer=optimizer,
        labels=_labels(labels),
        engine=engine,
        reflect=reflect,
        budget=budget,
        splits=splits,
        seed=seed,
        study=study,
    )
    if dry_run:
        found = forecast_search(place, request)
        if as_json:
            print_json(_forecast_data(found))
        else:
            _show_forecast(found)
        return
    progress = ProgressBar(f"optimize {prompt}", quiet=as_json)
    with progress.shown():
        result = search_prompt(
            place,
            request,
            acting(actor, role),
            asking=EngineOptions(allow_unconstrained=unconstrained),
            anew=anew,
        )
    if as_json:
        print_json(asdict(result))
    else:
        _show(request, result)


def _labels(words: str) -> tuple[str, ...]:
    """Return the labels of the option; none for all."""
    if words == _ALL:
        return ()
    return tuple(filter(None, (one.strip() for one in words.split(","))))


def _show(request: SearchRequest, result: SearchResult) -> None:
    say(
        f"{request.prompt} on {request.cohort} with {request.optimizer}: {result.words}"
    )
    if not result.labels:
        return
    say_wrapped("  labels       ", ", ".join(result.labels))
    say(
        f"  tried        {result.candidates:,} wordings, {result.calls:,} cases "
        f"scored, {result.reflections:,} questions answered"
    )
    if result.proposals:
        say(f"  proposals    {result.proposals:,}, refused {_refused(result)}")
    if result.left_out:
        say(f"  left out     {result.left_out:,} cases that the engine failed on")
    say()
    parts = ("search", "select", "estimate")
    rows = [(part, *map(_number, result.parts[part])) for part in parts]
    print_table(("macro-F1, mean of splits", "before", "found"), rows)
    say()
    gain = result.gain
    say(
        f"on the cases that were not seen, pooled: {_number(result.parent.value)} "
        f"before, {_number(result.found.value)} found; gain {_number(gain.value)} "
        f"({_number(gain.low)} to {_number(gain.high)})"
    )
    open_labels = [name for name in result.labels if not result.gains[name][2]]
    for name in result.labels:
        before, after, estimable = result.gains[name]
        if estimable:
            say(f"  {name}: F1 {_number(before)} before, {_number(after)} found")
    if open_labels:
        say_wrapped("  not estimable: ", ", ".join(open_labels))
    if result.candidates > 1:
        say(
            f"  the best of {result.candidates:,} equally good wordings would be "
            f"overrated by {100 * result.expected_excess:.1f} points where it was "
            "chosen"
        )
    if result.stale:
        say(f"  STALE: {result.stale}")
    for ref in result.drafts:
        against = result.objections.get(ref, ())
        say(f"draft {ref}: {'checked, no objections' if not against else 'objections'}")
        for one in against:
            say_wrapped("  - ", one)


def _refused(result: SearchResult) -> str:
    parts = [f"{count} {why}" for why, count in sorted(result.refused.items())]
    return ", ".join(parts) or "none"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _show_forecast(found: SearchForecast) -> None:
    say(f"{found.prompt} on {found.cohort} with {found.optimizer}: NOTHING WAS ASKED")
    say(f"  cases   {found.cases:,}")
    say(f"  labels  {', '.join(found.labels) or _ALL}")
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
    return (one.engine, *(f"{count:,}" for count in counts), cost)


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _forecast_data(found: SearchForecast) -> dict[str, Any]:
    data = found._asdict()
    data["parts"] = [part._asdict() for part in found.parts]
    data["answering"] = found.answering._asdict()
    data["reflecting"] = found.reflecting._asdict() if found.reflecting else None
    return data
