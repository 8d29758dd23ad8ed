"""A matrix as Markdown and as CSV."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from loop.evaluate.matrix.records import EngineColumn, Matrix, MatrixCell, MatrixRow
from loop.report.evaluation_text import format_rows
from loop.report.matrix.words import (
    RESTS,
    SELECTION,
    SIGNS,
    floor_sentence,
    legend,
    tally,
)
from loop.report.numbers import NOT_ESTIMABLE, interval, share
from loop.report.templates import markdown_cell, render_template, shipped_templates


def render_matrix_markdown(matrix: Matrix, *, templates: Path | None = None) -> str:
    """Return the matrix as a Markdown document.

    Raises
    ------
    DataError
        The template is missing or wrong.
    """
    variables = {
        "matrix": matrix,
        "rows": [(row, [_shown(cell) for cell in row.cells]) for row in matrix.rows],
        "tallies": {column.key: tally(matrix, column) for column in matrix.columns},
        "legend": [(markdown_cell(sign), text) for sign, text in legend(matrix)],
        "floor": floor_sentence(matrix),
        "selection": SELECTION,
    }
    folder = templates or shipped_templates()
    return render_template(folder, "matrix.md.jinja", variables)


def _shown(cell: MatrixCell | None) -> str:
    """Return accuracy, interval and mark of one cell."""
    if cell is None or not cell.result.confusion.n:
        return NOT_ESTIMABLE
    numbers = (
        f"{share(cell.result.confusion.accuracy)} {interval(cell.result.accuracy)}"
    )
    return f"{numbers} {markdown_cell(sign(cell))}".rstrip()


def sign(cell: MatrixCell) -> str:
    """Return the mark of one cell in plain text."""
    return RESTS if cell.rests_on_uncertain else SIGNS[cell.standing]


def render_matrix_csv(matrix: Matrix) -> str:
    """Return one row per label and engine, safe to open in a spreadsheet.

    One row each, not one column per engine: engine names stay cells, and a pivot
    makes the table. An engine without a run keeps its rows, with empty numbers.
    """
    rows = [
        dict(_cells(matrix, row, column, cell))
        for row in matrix.rows
        for column, cell in zip(matrix.columns, row.cells, strict=True)
    ]
    return format_rows(rows)


def _cells(
    matrix: Matrix, row: MatrixRow, column: EngineColumn, cell: MatrixCell | None
) -> Iterator[tuple[str, object]]:
    """Yield the cells of one label and engine with their column names."""
    yield from (("label", row.label), ("name", row.name))
    yield from (("reference_positives", row.positives), ("usable", row.usable))
    yield from (("finding_nothing", row.floor), ("key", column.key))
    yield ("engine", column.engine)
    result = cell and cell.result
    counts = result and result.confusion
    limits = result.accuracy if result and result.confusion.n else None
    yield from (("n", counts and counts.n), ("correct", counts and counts.correct))
    yield ("accuracy", counts and counts.accuracy)
    yield ("accuracy_low", limits and limits.low)
    yield ("accuracy_high", limits and limits.high)
    yield from (("f1", counts and counts.f1), ("gate", result and result.gate.verdict))
    yield ("standing", cell and cell.standing.value)
    yield ("rests_on_uncertain", cell and int(cell.rests_on_uncertain))
    paired = cell and cell.paired
    yield ("lost_against_best", paired and paired.lost)
    yield ("gained_against_best", paired and paired.gained)
    yield ("mcnemar_p_holm", paired and paired.p_holm)
    excluded = result and result.excluded
    yield ("uncertain", excluded and excluded.uncertain_predicted)
    yield ("unparsed", excluded and excluded.unparsed)
    yield ("failed", excluded and excluded.failed)
    evaluation = column.evaluation
    yield ("run", evaluation and evaluation.run.run_id)
    yield ("signature", evaluation and evaluation.signature)
    yield ("failure", column.failure)
