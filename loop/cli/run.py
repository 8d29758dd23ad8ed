"""The verb ``run``: ask an engine one prompt version over one cohort."""

from __future__ import annotations

from enum import StrEnum
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import typer

from loop.cli.console import (
    ActorOption,
    JsonOption,
    MaxTokensOption,
    ProgressBar,
    ThinkingOption,
    UnconstrainedOption,
    WorkspaceOption,
    acting,
    note,
    note_part,
    open_workspace,
    own_output,
    print_json,
    print_table,
    say,
)
from loop.cli.labels import describe_labels
from loop.core.config import Config, read_config
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.evaluate.protocol import register_protocol
from loop.prompts.version import PromptVersion
from loop.release.load import engine_remark, find_request, is_released_engine
from loop.run.asking import EngineOptions
from loop.run.cost import DryRun, Shape, estimate_run
from loop.run.execute import Problem, RunSummary
from loop.run.label_table import check_target, write_labels
from loop.run.reference_implementation import FIGURE, SOURCE
from loop.run.task import (
    Task,
    check_way,
    prepare_run,
    require_answers,
    run_draws,
)

_HEADER = (
    "layout",
    "answer",
    "requests",
    "prompt tokens",
    "per case",
    "in prefix",
    "uncached/case",
    "fewer",
    "output/case",
)

EngineOption = Annotated[
    str | None,
    typer.Option(
        "--engine",
        "-e",
        show_default="rules",
        help="rules, openai:MODEL[@URL], vllm:MODEL[@URL], chexbert:FOLDER or "
        "replay:RUN.",
    ),
]


class AskAgain(StrEnum):
    """What to ask once more although it was answered."""

    UNPARSED = "unparsed"


TemperatureOption = Annotated[
    float | None,
    typer.Option(
        "--temperature",
        min=0.0,
        help="Sampling temperature.",
        show_default="0.0",
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option("--seed", help="Seed of the first draw.", show_default="0"),
]
LimitOption = Annotated[
    int | None, typer.Option("--limit", min=1, help="Only the first N cases.")
]


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("run")(run)


def run(
    cohort: Annotated[
        str, typer.Option("--cohort", "-c", help="Name of an imported cohort.")
    ],
    prompt: Annotated[
        str | None, typer.Argument(help="Prompt version, for example extractor@v1.")
    ] = None,
    release: Annotated[
        str | None,
        typer.Option(
            "--release",
            help="Release instead of a version, for example extractor-v7: verified "
            "first, and asked of its own engine unless another one is named.",
        ),
    ] = None,
    engine: EngineOption = None,
    limit: LimitOption = None,
    repeats: Annotated[
        int,
        typer.Option(
            "--repeats",
            min=1,
            help="Ask everything so many times anew, each time with the next seed; "
            "needs a --temperature above 0 to show how sure a model is.",
        ),
    ] = 1,
    temperature: TemperatureOption = None,
    max_tokens: MaxTokensOption = None,
    seed: SeedOption = None,
    thinking: ThinkingOption = "",
    batch: Annotated[
        bool, typer.Option("--batch", help="Hand all to vLLM's offline batch runner.")
    ] = False,
    allow_unconstrained: UnconstrainedOption = False,
    again: Annotated[
        AskAgain | None,
        typer.Option(
            "--again",
            help="Ask again what earlier runs could not read, whatever they tried.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Write the labels to this .csv, .parquet or .xlsx as well, as "
            "`labels` does: of several draws, the first.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count requests, tokens and cost.")
    ] = False,
    actor: ActorOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask an engine one prompt version over one cohort.

    Every outcome is stored. Stored answers are not asked again: to resume a run that
    was stopped, repeat the same command. A run in which nothing was answered ends with
    exit code 1.
    """
    if (prompt is None) == (release is None):
        raise typer.BadParameter("name a prompt version, or a release with --release")
    place = open_workspace(workspace)
    given = _given(temperature=temperature, max_tokens=max_tokens, seed=seed)
    if thinking:
        given["thinking"] = thinking
    wanted = find_request(place, prompt, release, engine=engine, parameters=given)
    _check_out(out, place, dry_run=dry_run)
    if dry_run:
        show_dry_run(
            place,
            wanted.prompt,
            cohort,
            engine=wanted.engine,
            limit=limit,
            asking=EngineOptions(**wanted.parameters),
            as_json=as_json,
        )
        return
    _check(wanted.engine, repeats=repeats, batch=batch)
    asking = EngineOptions(
        **wanted.parameters,
        allow_unconstrained=allow_unconstrained,
        batch=batch,
        tell=note,
    )
    with ProgressBar(f"prepare {wanted.prompt}", quiet=as_json).shown():
        task = prepare_run(
            place,
            wanted.prompt,
            cohort,
            engine=wanted.engine,
            limit=limit,
            asking=asking,
            again=again is not None,
        )
    # What will be claimed stands in the ledger before the first answer exists.
    who = acting(actor)
    register_protocol(place, who)
    progress = _announce(task, cohort, quiet=as_json)
    summaries = []
    for summary in run_draws(
        place, task, range(repeats), watch=progress.track, actor=who.name
    ):
        summaries.append(summary)
        if not as_json:
            _show(summary, read_config(place), task, draw=len(summaries), of=repeats)
    same = wanted.release is None or is_released_engine(
        place, wanted.release, summaries[0].run_id
    )
    if wanted.release is not None and not same:
        note(engine_remark(wanted.release))
    note_part(place, summaries[0].run_id)
    written = write_labels(place, out, summaries[0].run_id) if out else None
    if as_json:
        of_release = {"release": release, "released_engine": same} if release else {}
        of_labels = {"labels": dict(written.manifest)} if written else {}
        print_json(_data(summaries, task) | of_release | of_labels)
    else:
        for line in describe_labels(written) if written else ():
            say(line)
    for summary in summaries:
        require_answers(summary)


def _announce(task: Task, cohort: str, *, quiet: bool) -> ProgressBar:
    """Say what begins, and what cannot be read; return the bar to show it with."""
    if task.unread:
        note(task.unread)
    if not quiet:
        say(f"{task.spec.prompt} on {cohort} with {task.spec.engine}")
    return ProgressBar(f"run {task.spec.prompt}", total=task.total, quiet=quiet)


def show_dry_run(
    place: WorkspacePaths,
    prompt: str | PromptVersion,
    cohort: str,
    *,
    engine: str,
    limit: int | None,
    asking: EngineOptions | None = None,
    as_json: bool,
) -> None:
    """Print what a run would ask and cost; the engine is not opened.

    Raises
    ------
    LoopError
        As `loop.run.cost.estimate_run` does.
    """
    with ProgressBar(f"estimate {prompt}", quiet=as_json).shown():
        found = estimate_run(
            place, prompt, cohort, engine=engine, limit=limit, asking=asking
        )
    if as_json:
        print_json(_dry_run_data(found))
    else:
        _show_dry_run(found)


def _show_dry_run(found: DryRun) -> None:
    length = found.characters / found.cases
    say(f"{found.prompt} on {found.cohort} with {found.engine}: NOTHING WAS SENT")
    say(f"  cases    {found.cases:,}, {length:,.0f} characters in the mean")
    say(f"  tokens   {found.counter.remark}")
    say(f"  output   expected from {found.expectation.basis}")
    if found.thinking_remark:
        say(f"  thinking {found.thinking_remark}")
    say()
    header = (*_HEADER, f"cost {found.price.currency}") if found.price else _HEADER
    print_table(header, [_row(one, found) for one in found.shapes])
    say("* how the prompt version asks")
    say()
    for line in _comparison(found):
        say(line)


def _row(shape: Shape, found: DryRun) -> tuple[str, ...]:
    cases, fewer = found.cases, found.times_fewer(shape)
    cells = (
        f"{shape.layout} *" if shape.chosen else shape.layout.value,
        shape.contract,
        f"{shape.requests:,}",
        f"{shape.prompt_tokens:,}",
        f"{shape.prompt_tokens / cases:,.0f}",
        f"{100 * shape.prefix_share:.1f} %",
        f"{shape.uncached_tokens / cases:,.1f}",
        "-" if fewer is None else f"{fewer:,.0f} x",
        f"{shape.output_tokens / cases:,.1f}",
    )
    if shape.cost is None:
        return cells
    return (*cells, f"{shape.cost:,.{2 if shape.cost >= 1 else 4}f}")


def _comparison(found: DryRun) -> list[str]:
    """Return the lines that say what the columns compare, and with what."""
    columns = [
        "requests    at most: what is stored already, or asked twice, is not sent",
        "in prefix   prompt tokens before the case text, the same in every case",
        "uncached    read anew if a server keeps that prefix: it is counted once;",
        "            with blocks of 16 tokens up to 15 more a request are read anew,",
        "            and llama.cpp reads the prefix once in each of its slots",
    ]
    if found.published is None:
        return columns
    return [
        *columns,
        "fewer       uncached tokens than the layout 'reference': the same guides,",
        f"            asked as the {SOURCE} does,",
        "            one call a label, the case before the guidance",
        f"published   {FIGURE.requests} requests and about {FIGURE.prompt_tokens:,} "
        f"prompt tokens for a case of {FIGURE.characters} characters",
        f"            (source: {SOURCE})",
    ]


def _dry_run_data(found: DryRun) -> dict[str, Any]:
    return {
        "sent": 0,
        "prompt": found.prompt,
        "cohort": found.cohort,
        "engine": found.engine,
        "cases": found.cases,
        "characters": found.characters,
        "tokens": {"exact": found.counter.exact, "remark": found.counter.remark},
        "output": found.expectation.basis,
        "thinking": found.thinking_remark or None,
        "currency": found.price.currency if found.price else None,
        "layouts": [_shape_data(one, found) for one in found.shapes],
        "published": {"source": SOURCE, **FIGURE._asdict()}
        if found.published
        else None,
    }


def _shape_data(shape: Shape, found: DryRun) -> dict[str, Any]:
    return {
        "layout": shape.layout.value,
        "contract": shape.contract,
        "chosen": shape.chosen,
        "requests": shape.requests,
        "prompt_tokens": shape.prompt_tokens,
        "prefix_tokens": shape.prefix_tokens,
        "prefix_share": shape.prefix_share,
        "uncached_tokens": shape.uncached_tokens,
        "output_tokens": shape.output_tokens,
        "cost": shape.cost,
        "times_fewer_uncached": found.times_fewer(shape),
    }


def _given(**parameters: float | None) -> dict[str, Any]:
    """Return the parameters that were given.

    Raises
    ------
    typer.BadParameter
        The temperature is no number.
    """
    temperature = parameters["temperature"]
    if temperature is not None and not isfinite(temperature):
        raise typer.BadParameter("--temperature must be a finite number")
    return {name: value for name, value in parameters.items() if value is not None}


def _check_out(out: Path | None, place: WorkspacePaths, *, dry_run: bool) -> None:
    """Refuse a file that labels cannot be written to, before anything is asked."""
    if out is None:
        return
    if dry_run:
        raise typer.BadParameter(
            "--dry-run asks nothing: there are no labels for --out"
        )
    own_output(out, place)
    check_target(out)


def _check(engine: str, *, repeats: int, batch: bool) -> None:
    """Refuse what would only look like what was asked for, as a wrong use."""
    try:
        check_way(engine, repeats=repeats, batch=batch)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _data(summaries: list[RunSummary], task: Task) -> dict[str, Any]:
    """Return the first draw, with the ids and outcomes of all."""
    first = summaries[0]
    return {
        **first._asdict(),
        "spent": first.spent._asdict(),
        "used": first.used._asdict(),
        "problems": [problem._asdict() for problem in first.problems],
        "prompt": task.spec.prompt,
        "cohort": task.spec.cohort,
        "engine": task.spec.engine,
        "draws": [summary.run_id for summary in summaries],
        "outcomes_of_draws": [
            {
                "run_id": summary.run_id,
                "items": summary.items,
                "answered": summary.answered,
                "unparsed": summary.unparsed,
                "failed": summary.failed,
            }
            for summary in summaries
        ],
    }


def _show(
    summary: RunSummary, config: Config, task: Task, *, draw: int, of: int
) -> None:
    if of > 1:
        say(f"  draw           {draw} of {of}")
    for line in (*describe(summary), *describe_usage(summary, config, task)):
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
        *map(_problem_line, summary.problems[:5]),
        f"  asked          {summary.asked} (from the store: {summary.cached})",
        *_describe_retries(summary),
        f"  speed          {rate:,.0f} cases/s, {summary.seconds:.1f} s",
    ]


def _describe_retries(summary: RunSummary) -> list[str]:
    """Return a line on the unreadable answers that were asked for again, if any."""
    if not summary.retried and not summary.recovered:
        return []
    return [
        f"  asked again    {counted(summary.retried, 'unreadable answer')}, of which "
        f"{counted(summary.recovered, 'call')} could be read in the end"
    ]


def _problem_line(problem: Problem) -> str:
    more = ", ..." if problem.cases > len(problem.examples) else ""
    cases = ", ".join(problem.examples)
    return f"    {problem.cases} × {problem.text} ({cases}{more})"


def describe_usage(summary: RunSummary, config: Config, task: Task) -> list[str]:
    """Return the tokens this process spent, and their cost where a price is known."""
    spent = summary.spent
    if not spent.answers:
        return []
    lines = [
        f"  tokens         {spent.prompt_tokens:,} prompt "
        f"({spent.cached_tokens:,} from the server's prefix cache), "
        f"{spent.completion_tokens:,} output"
    ]
    model = task.engine.identity().get("model")
    price = config.prices.get(str(model))
    if price is not None:
        lines.append(f"  cost           {price.cost(*spent[1:]):.4f} {price.currency}")
    return lines
