"""A table of tinted numbers: labels by system, rates by system, metrics by metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from loop.report.figures.heatmap import STRONGEST
from loop.report.figures.palette import ink
from loop.report.figures.svg import SMALL, clean, cut, figure, group, text, text_width

_HIGH = 34.0
_MOST_NAME = 210.0
_CELL = (44.0, 104.0)
"""Least and most width of a cell, pixels."""

_TOP = 30.0
_EDGE = 4.0


class GridCell(NamedTuple):
    """One number of a grid."""

    shown: str
    """The number as printed; a dash where there is none."""

    title: str
    """What it says in words, with its counts."""

    tint: float | None = None
    """From 0 to 1; negative ones take the second colour; None for no number."""

    below: str = ""
    """What stands under it in small: its denominator or its counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table of numbers with a name for every row and column."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[GridCell, ...], ...]
    """One tuple per row."""

    colour: str = "accent"
    """Of the palette: the tint of what is above 0."""

    other: str = "fail"
    """The tint of what is below 0."""


def tint_percent(cell: GridCell) -> int:
    """Return the opacity of a cell's tint, percent; ink on it stays readable.

    Examples
    --------
    >>> tint_percent(GridCell("1", "", 1.0)), tint_percent(GridCell("", ""))
    (36, 0)
    """
    return round(100 * STRONGEST * min(abs(cell.tint or 0.0), 1.0))


def tint_colour(grid: Grid, cell: GridCell) -> str:
    """Return the name of the colour that a cell is tinted with."""
    return grid.other if (cell.tint or 0.0) < 0 else grid.colour


def grid_svg(grid: Grid) -> str:
    """Return the table as a figure."""
    wide = _cell_width(grid)
    left = 12 + min(max(map(text_width, grid.rows), default=0.0), _MOST_NAME)
    parts = []
    for place, name in enumerate(grid.columns):
        x = left + wide * (place + 0.5)
        short = cut(name, wide - 6)
        parts.append(group(name, text(x, _TOP - 10, short, anchor="middle")))
    for place, (name, cells) in enumerate(zip(grid.rows, grid.cells, strict=True)):
        y = _TOP + _HIGH * place
        parts.append(
            text(left - 8, y + _HIGH / 2 + 4, cut(name, _MOST_NAME), anchor="end")
        )
        parts += [
            _cell(grid, cell, (left + wide * column, y), wide)
            for column, cell in enumerate(cells)
        ]
    size = (
        max(left + wide * len(grid.columns) + _EDGE, 200.0),
        _TOP + _HIGH * len(grid.rows) + _EDGE,
    )
    about = ". ".join(cell.title for cells in grid.cells for cell in cells)
    return figure(size, grid.title, about or "There is no number.", *parts)


def _cell_width(grid: Grid) -> float:
    """Return the width that holds the longest number and most of the longest name."""
    words: Sequence[str] = [
        text
        for cells in grid.cells
        for cell in cells
        for text in (cell.shown, cell.below)
    ]
    needed = max((text_width(one) + 12 for one in (*words, *grid.columns)), default=0.0)
    return min(max(needed, _CELL[0]), _CELL[1])


def _cell(grid: Grid, cell: GridCell, corner: tuple[float, float], wide: float) -> str:
    x, y = corner
    opacity = tint_percent(cell) / 100
    box = (
        f'<rect x="{x + 1:g}" y="{y + 1:g}" width="{wide - 2:g}" '
        f'height="{_HIGH - 2:g}" rx="2" fill="{ink(tint_colour(grid, cell))}" '
        f'fill-opacity="{opacity:g}" stroke="{ink("line")}" stroke-width="1"/>'
    )
    middle, centre = x + wide / 2, y + _HIGH / 2
    if not cell.below:
        words = text(middle, centre + 4, cell.shown, anchor="middle", weight=600)
        return group(cell.title, box, words)
    words = text(middle, centre - 2, cell.shown, anchor="middle", weight=600)
    small = (
        f'<text x="{middle:g}" y="{centre + 12:g}" font-size="{SMALL}" '
        f'text-anchor="middle" fill="{ink("ink")}">{clean(cell.below)}</text>'
    )
    return group(cell.title, box, words, small)
