"""A matrix of engines as a page, as Markdown, as a table and as JSON data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from loop import __version__
from loop.documents.numbers import NOT_ESTIMABLE, interval, p_value, share
from loop.documents.tables import format_rows
from loop.documents.templates import markdown_cell, render_template, shipped_templates
from loop.evaluate.evaluation_json import evaluation_data
from loop.evaluate.gates import GateVerdict, count_verdicts
from loop.evaluate.matrix.records import (
    EngineColumn,
    EngineRank,
    Matrix,
    MatrixCell,
    MatrixRow,
)

SIGNS = {
    EngineRank.BEST: "*",
    EngineRank.LEVEL: "~",
    EngineRank.WORSE: "",
    EngineRank.UNRANKED: "?",
}
"""Marks of plain text."""

RESTS = "\N{DEGREE SIGN}"
"""In place of the best mark where it rests on uncertain answers."""

SELECTION = (
    "The best is chosen on the same cases it is tested on, and the labels are not "
    "corrected for each other: confirm a choice of engine on other cases."
)
"""What the tests against the best do not account for."""


def legend(matrix: Matrix) -> tuple[tuple[str, str], ...]:
    """Return each mark with what it means and what it does not."""
    alpha = f"{matrix.protocol.alpha:g}"
    return (
        (
            SIGNS[EngineRank.BEST],
            "best observed accuracy of the label, ties included; not a claim of "
            "significance",
        ),
        (
            RESTS,
            "best only because uncertain answers are left out: not if they counted as "
            "wrong",
        ),
        (
            SIGNS[EngineRank.LEVEL],
            "not distinguishable from the best (exact McNemar on the cases both "
            f"decide, Holm within the label, {alpha})",
        ),
        (
            SIGNS[EngineRank.UNRANKED],
            "not ranked: too few cases, positives or readable answers, "
            + (
                ""
                if len(matrix.comparable) == len(matrix.rows)
                else "a label that the reference cannot judge, "
            )
            + "or nothing to rank against",
        ),
        ("", "no mark: worse than the best by that test"),
    )


def floor_sentence(matrix: Matrix) -> str:
    """Return what the mean accuracy hides, with the number that shows it."""
    at = f"{matrix.floor.at_threshold} of {len(matrix.comparable)} labels"
    return (
        "Mean accuracy hides prevalence: an engine that finds nothing in any case "
        f"would have {share(matrix.floor.accuracy)}, and {at} at "
        f"{matrix.protocol.accuracy:g}."
    )


def tally(matrix: Matrix, column: EngineColumn) -> str:
    """Return pass / fail / insufficient of one engine, for example ``"16/1/4"``.

    Labels that the reference cannot judge are not among them.
    """
    if column.evaluation is None:
        return NOT_ESTIMABLE
    counts = matrix.verdicts(column)
    counts.pop(GateVerdict.NOT_COMPARABLE, None)
    return "/".join(map(str, counts.values()))


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
    yield ("uncertain", result and result.hedges.total)
    yield ("unparsed", excluded and excluded.unparsed)
    yield ("failed", excluded and excluded.failed)
    evaluation = column.evaluation
    yield ("run", evaluation and evaluation.run.run_id)
    yield ("signature", evaluation and evaluation.signature)
    yield ("failure", column.failure)


_ABOVE = 3
"""Tints from the threshold up to 1."""

_BELOW = (0.05, 0.15)
"""How far below the threshold each darker tint begins."""

_WIDE = 5
"""Engines from which on the table scrolls within its frame."""

_STANDINGS = {
    EngineRank.BEST: "best of the label",
    EngineRank.LEVEL: "not distinguishable from the best",
    EngineRank.WORSE: "worse than the best",
    EngineRank.UNRANKED: "not ranked",
}


class CellView(NamedTuple):
    """One cell as it is drawn."""

    cell: MatrixCell | None
    tone: str
    """Its tint: ``a1`` to ``a3`` from the threshold up, ``b1`` to ``b3`` down."""

    few: bool
    """Whether it counts clearly fewer cases than the label has."""

    title: str
    """What the cell says in words."""


class RowView(NamedTuple):
    """One label as it is drawn."""

    row: MatrixRow
    cells: tuple[CellView, ...]


class Tone(NamedTuple):
    """One tint of the legend."""

    name: str
    low: float
    high: float


def render_matrix_html(matrix: Matrix, *, templates: Path | None = None) -> str:
    """Return the matrix as one HTML page.

    The page holds counts, ids and digests, never case text nor a case id.

    Parameters
    ----------
    templates
        Folder of templates; default: the shipped ones.

    Raises
    ------
    DataError
        The template is missing or wrong.
    """
    variables = {
        "matrix": matrix,
        "rows": [_row(matrix, row) for row in matrix.rows],
        "tones": tones(matrix.protocol.accuracy),
        "verdicts": list(
            count_verdicts(
                cell.result.gate.verdict
                for row in matrix.rows
                for cell in row.cells
                if cell
            )
        ),
        "floor": floor_sentence(matrix),
        "selection": SELECTION,
        "wide": len(matrix.columns) >= _WIDE,
        "version": __version__,
    }
    folder = templates or shipped_templates()
    return render_template(folder, "matrix.html.jinja", variables)


def tones(threshold: float) -> tuple[Tone, ...]:
    """Return the tints from the lowest accuracy to the highest."""
    first, second = (max(threshold - below, 0.0) for below in _BELOW)
    step = (1 - threshold) / _ABOVE
    edges = (0.0, second, first, threshold, threshold + step, threshold + 2 * step, 1.0)
    names = ("b3", "b2", "b1", "a1", "a2", "a3")
    return tuple(
        Tone(name, low, high)
        for name, low, high in zip(names, edges, edges[1:], strict=False)
    )


def _row(matrix: Matrix, row: MatrixRow) -> RowView:
    cells = zip(matrix.columns, row.cells, strict=True)
    return RowView(row, tuple(_cell(matrix, row, *one) for one in cells))


def _cell(
    matrix: Matrix, row: MatrixRow, column: EngineColumn, cell: MatrixCell | None
) -> CellView:
    if cell is None:
        return CellView(None, "none", False, f"{row.name}, {column.engine}: no run")
    tone = "none" if not cell.result.confusion.n else "thin"
    if cell.enough:
        tone = _tone(cell, matrix.protocol.accuracy)
    few = cell.result.confusion.n < row.usable
    return CellView(cell, tone, few, _sentence(row, column, cell))


def _tone(cell: MatrixCell, threshold: float) -> str:
    accuracy = cell.result.confusion.accuracy or 0.0
    held = [tone.name for tone in tones(threshold) if accuracy >= tone.low]
    return held[-1]


def _sentence(row: MatrixRow, column: EngineColumn, cell: MatrixCell) -> str:
    """Return what a cell says, for a pointer that rests on it and for who listens."""
    counts, verdict = cell.result.confusion, cell.result.gate.verdict.value
    parts = [
        f"{row.name}, {column.engine}: accuracy {share(counts.accuracy)}",
        f"{counts.correct} of {counts.n} right",
        f"gate {verdict}",
        _STANDINGS[cell.standing],
    ]
    if counts.n:
        parts.insert(1, f"interval {interval(cell.result.accuracy)}")
    if cell.rests_on_uncertain:
        parts.append("only because uncertain answers are left out")
    if cell.paired is not None:
        parts.append(
            f"against the best {cell.paired.lost} cases lost and {cell.paired.gained} "
            f"gained, Holm p {p_value(cell.paired.p_holm)}"
        )
    return ", ".join(parts)


def matrix_data(matrix: Matrix) -> dict[str, Any]:
    """Return `matrix` as JSON data; a number that has no meaning is null."""
    return {
        "prompt": matrix.prompt,
        "prompt_digest": matrix.prompt_digest,
        "cohort": asdict(matrix.cohort),
        "protocol": matrix.protocol.model_dump(mode="json"),
        "protocol_digest": matrix.protocol_digest,
        "cases": matrix.cases,
        "finding_nothing": {
            "mean_accuracy": matrix.floor.accuracy,
            "at_threshold": matrix.floor.at_threshold,
        },
        "notes": list(matrix.notes),
        "engines": [_column(matrix, column) for column in matrix.columns],
        "labels": [_row_data(matrix, row) for row in matrix.rows],
    }


def _column(matrix: Matrix, column: EngineColumn) -> dict[str, Any]:
    head = {
        "key": column.key,
        "engine": column.engine,
        "failure": column.failure or None,
        "run": None,
    }
    if column.evaluation is None:
        return head
    whole = evaluation_data(column.evaluation)
    kept = ("outcomes", "macro_f1", "macro_f1_supported", "uncertain_read_as")
    return {
        **head,
        **whole["run"],
        "engine": column.engine,
        "signature": whole["signature"],
        "cases_left_out": column.left_out,
        "uncertain_answers": matrix.uncertain(column),
        "at_threshold": matrix.at_threshold(column),
        "at_threshold_on_too_little_evidence": matrix.thin(column),
        "gates": {
            verdict.value: number for verdict, number in matrix.verdicts(column).items()
        },
        "standings": {
            standing.value: matrix.count(column, standing) for standing in EngineRank
        },
        "mean_accuracy": column.evaluation.views[0].accuracy,
        **{name: whole[name] for name in kept},
    }


def _row_data(matrix: Matrix, row: MatrixRow) -> dict[str, Any]:
    return {
        "label": row.label,
        "name": row.name,
        "positives": row.positives,
        "usable": row.usable,
        "finding_nothing": row.floor,
        "cells": [
            None
            if cell is None
            else {"engine": column.engine, **_cell_data(column, cell)}
            for column, cell in zip(matrix.columns, row.cells, strict=True)
        ],
    }


def _cell_data(column: EngineColumn, cell: MatrixCell) -> dict[str, Any]:
    result, counts = cell.result, cell.result.confusion
    return {
        "key": column.key,
        "n": counts.n,
        "positives": counts.positives,
        "correct": counts.correct,
        "accuracy": counts.accuracy,
        "accuracy_interval": list(result.accuracy) if counts.n else None,
        "f1": counts.f1,
        "verdict": result.gate.verdict.value,
        "enough_evidence": cell.enough,
        "standing": cell.standing.value,
        "rests_on_uncertain": cell.rests_on_uncertain,
        "against_best": None if cell.paired is None else cell.paired._asdict(),
        "excluded": asdict(result.excluded),
    }
