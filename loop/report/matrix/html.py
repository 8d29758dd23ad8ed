"""A matrix as one self-contained page: no network, no script."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from loop import __version__
from loop.evaluate.gates import GateVerdict
from loop.evaluate.matrix.records import (
    EngineColumn,
    EngineRank,
    Matrix,
    MatrixCell,
    MatrixRow,
)
from loop.report.matrix.words import SELECTION, floor_sentence
from loop.report.numbers import interval, p_value, share
from loop.report.templates import render_template, shipped_templates

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
        "verdicts": list(GateVerdict),
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
