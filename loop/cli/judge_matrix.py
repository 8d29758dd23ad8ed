"""Judges side by side, for ``matrix`` and ``compare``: asked, read, shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from loop.cli.console import (
    ProgressBar,
    note,
    print_json,
    print_table,
    say,
    say_wrapped,
    write_documents,
)
from loop.core.ledger import Actor
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.documents.templates import template_folder
from loop.engines.base import DEFAULT_THINKING
from loop.evaluate.matrix.runs import EngineRun, MatrixRequest, ask_requests
from loop.evaluate.protocol import register_protocol
from loop.judge.judge_matrix import (
    JudgeMatrix,
    JudgeRun,
    as_judge_runs,
    asked_engine,
    check_judging,
    read_judge_matrix,
)
from loop.judge.judge_matrix_documents import (
    COMPARED,
    STRATA,
    column_strata,
    comparison_rows,
    judge_matrix_data,
    judge_matrix_notes,
    judge_rows,
    render_judge_matrix_csv,
    render_judge_matrix_html,
    render_judge_matrix_markdown,
)
from loop.run.execute import RunSummary
from loop.run.task import Task, Watch

_SIDE_BY_SIDE = 3
"""Columns in one table: more do not fit."""


def note_answers(engine: str, summary: RunSummary, unit: str) -> None:
    """Say on stderr how a run of an engine ended, in cases or pairs."""
    note(
        f"{engine}: {summary.items} {unit}, {summary.answered} answered, "
        f"{summary.unparsed} unparsed, {summary.failed} failed; "
        f"{summary.cached} from the store, {summary.seconds:.1f} s"
    )


def ask_judges(
    place: WorkspacePaths,
    requests: Sequence[MatrixRequest],
    named: Sequence[EngineRun],
    actor: Actor,
    progress: ProgressBar,
) -> list[JudgeRun]:
    """Ask every judge with every engine; return these runs and the named ones."""

    def ready(task: Task) -> None:
        check_judging(place, task, named)
        # The claim must be in the ledger before the first answer exists.
        register_protocol(place, actor)

    def watch(task: Task) -> Watch:
        level = str(task.spec.parameters.get("thinking", DEFAULT_THINKING))
        note(f"asking {task.spec.prompt}, {asked_engine(task.spec.engine, level)}")
        return progress.part("pairs", task.total)

    def done(engine: str, summary: RunSummary) -> None:
        note_answers(engine, summary, "pairs")

    asked: list[EngineRun] = []
    if requests:
        with progress.shown():
            asked = ask_requests(place, requests, ready=ready, watch=watch, done=done)
    found = as_judge_runs(place, requests, asked, named)
    for one in found:
        if one.run is None:
            kind = "" if one.no_effect else "error: "
            note(f"{kind}{one.prompt}, {one.asked}: {one.failure}")
    return found


def compare_judges(
    place: WorkspacePaths,
    runs: Sequence[JudgeRun],
    documents: Sequence[Path | None],
    progress: ProgressBar,
    *,
    strata: Path | None = None,
    as_json: bool,
) -> None:
    """Compare judges' runs with the ratings and each other; write and print the result.

    Parameters
    ----------
    documents
        Where to write HTML, Markdown and CSV; None to write none.
    """
    with progress.shown():
        result = read_judge_matrix(place, runs, strata=strata)
        folder = template_folder(place)
        write_documents(
            documents,
            (
                lambda: render_judge_matrix_html(result, templates=folder),
                lambda: render_judge_matrix_markdown(result, templates=folder),
                lambda: render_judge_matrix_csv(result),
            ),
        )
    if as_json:
        print_json(judge_matrix_data(result))
    else:
        _show(result)
    if result.failed:
        raise typer.Exit(1)


def _show(matrix: JudgeMatrix) -> None:
    """Print the columns, their numbers, and how they compare."""
    say(
        f"{counted(len(matrix.columns), 'column')} on "
        f"{matrix.cohort}, {counted(matrix.pairs, 'pair')}, against {matrix.against}"
    )
    for one in matrix.columns:
        end = one.run or f"no run: {one.failure}"
        say(f"  {one.key}  {one.prompt}  {one.engine}  {end}")
    rows = judge_rows(matrix)
    for start in range(0, len(matrix.columns), _SIDE_BY_SIDE):
        say()
        stop = start + _SIDE_BY_SIDE
        keys = [one.key for one in matrix.columns[start:stop]]
        print_table(("", *keys), [(row.name, *row.cells[start:stop]) for row in rows])
    if matrix.comparisons:
        say()
        print_table(COMPARED, comparison_rows(matrix))
    if matrix.strata:
        say()
        print_table(STRATA, column_strata(matrix))
    say()
    if matrix.synthetic:
        say("note: synthetic cohort: these numbers say nothing about real reports.")
    for text in judge_matrix_notes(matrix):
        say_wrapped("note: ", text)
