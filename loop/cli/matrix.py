"""The verb ``matrix``: one prompt over several engines, or judges, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from loop.cli.console import (
    ActorOption,
    JsonOption,
    ProgressBar,
    ReferenceOption,
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
from loop.cli.judge_matrix import ask_judges, compare_judges, note_answers
from loop.core.ledger import Actor
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.core.records import Status
from loop.documents.numbers import NOT_ESTIMABLE, share
from loop.documents.templates import template_folder
from loop.engines.base import check_thinking
from loop.evaluate.matrix.documents import (
    SELECTION,
    floor_sentence,
    legend,
    matrix_data,
    render_matrix_csv,
    render_matrix_html,
    render_matrix_markdown,
    sign,
    tally,
)
from loop.evaluate.matrix.records import EngineColumn, EngineRank, Matrix, MatrixCell
from loop.evaluate.matrix.runs import (
    EngineRun,
    MatrixRequest,
    ask_engines,
    check_before,
    name_runs,
    read_matrix,
)
from loop.evaluate.protocol import register_protocol
from loop.judge.judge_matrix import (
    are_judge_runs,
    judging_requests,
    sweep_thinking,
)
from loop.run.asking import EngineOptions
from loop.run.execute import RunSummary
from loop.run.task import Task, Watch

_SIDE_BY_SIDE = 4
"""Engines in one table: more do not fit."""

_CUT_TO = 20
"""Room for label names beside that many engines."""


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("matrix")(matrix)


def matrix(
    prompt: Annotated[
        str | None,
        typer.Argument(
            help="Prompt version, for example extractor@v1; several judges with commas."
        ),
    ] = None,
    cohort: Annotated[
        str | None, typer.Option("--cohort", "-c", help="Name of an imported cohort.")
    ] = None,
    engine: Annotated[
        list[str] | None,
        typer.Option("--engine", "-e", help="Engine to ask; once for each."),
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(
            "--run", help="Finished run to take: id, its beginning, or latest:PROMPT."
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Only the first N cases.")
    ] = None,
    reference: ReferenceOption = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write the table as one HTML page.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option("--md", help="Write the table as Markdown.")
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option("--csv", help="Write a row per label, or score, and engine."),
    ] = None,
    strata: Annotated[
        Path | None,
        typer.Option(
            "--strata",
            help="For judges; columns id and, say, modality: shows agreement in each.",
        ),
    ] = None,
    thinking: Annotated[
        str,
        typer.Option(
            "--thinking",
            metavar="LEVEL,...",
            help="For judges: ask every model at these levels, too: none, low, medium, "
            "high or a number of tokens.",
        ),
    ] = "",
    allow_unconstrained: UnconstrainedOption = False,
    actor: ActorOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare engines on one prompt version, or judges side by side.

    Shows accuracy by label and engine, marks the best engine of each label and counts
    the labels at the threshold. Stored answers are not asked again. An engine that
    fails keeps its column, with the reason; the exit code is then 1. Gates are shown,
    not decided: use `evaluate` for that.

    Judges (`ranloop matrix green,one_pass`) are compared with the newest ratings of
    their cohort: agreement of each score, unreadable answers, time and cost of every
    judge with every engine, and which judge agrees better.
    """
    place = open_workspace(workspace)
    for path in (html, markdown, csv):
        if path is not None:
            own_output(path, place)
    # What `latest` names is settled before new runs are made.
    progress = ProgressBar("matrix", quiet=as_json)
    asked = name_runs(place, run or ())
    request = None
    if engine:
        request = MatrixRequest(
            *_wanted(prompt, cohort),
            engines=_once(engine),
            limit=limit,
            asking=EngineOptions(tell=note, allow_unconstrained=allow_unconstrained),
            actor=acting(actor).name,
        )
    elif not asked:
        raise typer.BadParameter("name engines with --engine, or runs with --run")
    with progress.shown():
        requests = () if request is None else judging_requests(place, request)
        judged = bool(requests) or (request is None and are_judge_runs(place, asked))
    documents = (html, markdown, csv)
    if judged:
        if reference is not None:
            raise typer.BadParameter(
                "--reference is for extractors; judges are compared with the newest "
                "ratings: leave it out"
            )
        if thinking:
            requests = sweep_thinking(requests, _read_levels(thinking))
        judges = ask_judges(place, requests, asked, acting(actor), progress)
        compare_judges(
            place, judges, documents, progress, strata=strata, as_json=as_json
        )
        return
    if strata is not None or thinking:
        given = "--thinking" if strata is None else "--strata"
        raise typer.BadParameter(f"{given} is for judges: leave it out")
    if request is not None:
        with progress.shown():
            answers = _ask(place, request, asked, reference, acting(actor), progress)
        asked = [*answers, *asked]
    with progress.shown():
        result = read_matrix(place, asked, reference=reference)
        _write_documents(place, result, documents)
    _conclude(result, as_json=as_json)


def _conclude(result: Matrix, *, as_json: bool) -> None:
    """Print the matrix; exit with 1 where an engine has no run."""
    if as_json:
        print_json(matrix_data(result))
    else:
        show_matrix(result)
    if result.failed:
        raise typer.Exit(1)


def _wanted(prompt: str | None, cohort: str | None) -> tuple[str, str]:
    """Return prompt and cohort; asking an engine needs both."""
    if prompt is None:
        raise typer.BadParameter("name the prompt version to ask, or use only --run")
    if cohort is None:
        raise typer.BadParameter("name the cohort with --cohort, or use only --run")
    return prompt, cohort


def _read_levels(words: str) -> list[str]:
    """Return the levels of thinking in ``"none,low"``."""
    try:
        return [check_thinking(one) for one in words.split(",")]
    except ValueError as error:
        raise typer.BadParameter(f"--thinking: {error}") from error


def _once(engines: Sequence[str]) -> tuple[str, ...]:
    """Return `engines`; one that is named twice would be asked for nothing."""
    twice = next((one for one in engines if engines.count(one) > 1), None)
    if twice is not None:
        raise typer.BadParameter(f"engine {twice} is named twice")
    return tuple(engines)


def _ask(
    workspace: WorkspacePaths,
    request: MatrixRequest,
    named: Sequence[EngineRun],
    reference: int | None,
    actor: Actor,
    progress: ProgressBar,
) -> list[EngineRun]:
    """Run the engines one after the other, with progress and a line for each."""

    def ready(task: Task) -> None:
        check_before(workspace, task, named, reference)
        # What will be claimed stands in the ledger before the first answer exists.
        register_protocol(workspace, actor)

    def watch(task: Task) -> Watch:
        # An engine's name may hold what a progress bar takes for markup.
        note(f"asking {task.spec.engine}")
        return progress.part("cases", task.total)

    def done(engine: str, summary: RunSummary) -> None:
        note_answers(engine, summary, "cases")

    asked = ask_engines(workspace, request, ready=ready, watch=watch, done=done)
    for one in asked:
        if one.run is None:
            note(f"error: {one.engine}: {one.failure}")
    return asked


def _write_documents(
    workspace: WorkspacePaths, result: Matrix, paths: Sequence[Path | None]
) -> None:
    """Write the documents that are wanted, and say so."""
    folder = template_folder(workspace)
    write_documents(
        paths,
        (
            lambda: render_matrix_html(result, templates=folder),
            lambda: render_matrix_markdown(result, templates=folder),
            lambda: render_matrix_csv(result),
        ),
    )


def show_matrix(matrix: Matrix) -> None:
    """Print the engines, accuracy by label and engine, and the caveats."""
    say(
        f"{matrix.prompt} on {matrix.cohort.name}, {counted(matrix.cases, 'case')}, "
        f"reference v{matrix.cohort.reference}"
    )
    for column in matrix.columns:
        run = column.evaluation
        end = run.run.run_id if run else f"no run: {column.failure}"
        say(f"  {column.key}  {column.engine}  {end}")
    for start in range(0, len(matrix.columns), _SIDE_BY_SIDE):
        say()
        _show_block(matrix, matrix.columns[start : start + _SIDE_BY_SIDE])
    say()
    say("accuracy with its exact interval; positives of the reference in column pos")
    for mark, text in legend(matrix):
        say_wrapped(f"  {mark or ' '}  ", text)
    say_wrapped("", SELECTION)
    say_wrapped("", floor_sentence(matrix))
    if matrix.cohort.synthetic:
        say("note: synthetic cohort: these numbers say nothing about real reports.")
    for text in matrix.notes:
        say_wrapped("note: ", text)


def _show_block(matrix: Matrix, columns: Sequence[EngineColumn]) -> None:
    """Print one table of a few engines."""
    places = [matrix.columns.index(column) for column in columns]
    filled = sum(column.evaluation is not None for column in columns)
    width = _CUT_TO if filled == _SIDE_BY_SIDE else None
    rows = [
        (
            _cut(row.name, width),
            str(row.positives),
            *(_shown(row.cells[place]) for place in places),
        )
        for row in matrix.rows
    ]
    facts = [("", "", *("" for _ in columns)), *_facts(matrix, columns)]
    header = ("label", "pos", *(column.key for column in columns))
    print_table(header, [*rows, *facts])


def _cut(name: str, width: int | None) -> str:
    if width is None or len(name) <= width:
        return name
    return f"{name[: width - 1].rstrip()}\N{HORIZONTAL ELLIPSIS}"


def _shown(cell: MatrixCell | None) -> str:
    """Return one cell in 17 characters: mark, accuracy and interval."""
    if cell is None or not cell.result.confusion.n:
        return NOT_ESTIMABLE
    accuracy = share(cell.result.confusion.accuracy)
    return f"{sign(cell)}{accuracy} {_span(*cell.result.accuracy)}"


def _span(low: float, high: float) -> str:
    """Return an interval in nine characters, for example ``".966-.996"``."""
    return "-".join(
        f"{limit:.2f}" if f"{limit:.3f}" == "1.000" else f"{limit:.3f}"[1:]
        for limit in (low, high)
    )


def _facts(
    matrix: Matrix, columns: Sequence[EngineColumn]
) -> Iterator[tuple[str, ...]]:
    """Yield the rows about whole engines."""
    told = [_engine_facts(matrix, column) for column in columns]
    for name in next(filter(None, told), {}):
        yield (name, "", *(facts.get(name, NOT_ESTIMABLE) for facts in told))


def _engine_facts(matrix: Matrix, column: EngineColumn) -> dict[str, str]:
    """Return what is told of one engine; nothing when it has no run."""
    evaluation = column.evaluation
    if evaluation is None:
        return {}
    status, macro = evaluation.statuses, evaluation.macro.score
    f1 = share(macro.estimate)
    if macro.low is not None and macro.high is not None:
        f1 += f" {_span(macro.low, macro.high)}"
    thin = matrix.thin(column)
    chosen, *others = evaluation.views
    return {
        "answered": f"{status[Status.ANSWERED]} of {evaluation.cases}",
        "unparsed": str(status[Status.UNPARSED]),
        "engine failed": str(status[Status.ENGINE_FAILED]),
        "uncertain answers": str(matrix.uncertain(column)),
        f"labels at {matrix.protocol.accuracy:g}": str(matrix.at_threshold(column)),
        "  on thin evidence": str(thin),
        "pass/fail/insuff.": tally(matrix, column),
        "best or tied": str(matrix.count(column, EngineRank.BEST)),
        "macro-F1": f1,
        "mean accuracy": share(chosen.accuracy),
        **{f"  unc. {view.words}": share(view.accuracy) for view in others},
    }
