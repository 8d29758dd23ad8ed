"""Charts of numbers: intervals, a heat map of pairs, a grid of cells, bars, a curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from loop.core.nouns import counted
from loop.documents.numbers import interval, share, signed, signed_interval
from loop.documents.svg import (
    SMALL,
    Axis,
    clean,
    cut,
    draw_axis,
    draw_interval,
    figure,
    fit_axis,
    group,
    ink,
    line,
    rect,
    text,
    text_width,
    tick_labels,
)
from loop.stats.intervals import Estimate
from loop.stats.kappa import PairAgreement

_NAMES, _PLOT, _NUMBERS = 220.0, 320.0, 180.0
"""Widths of the columns, pixels."""

_ASIDE = 110.0
"""Width of the last column, where rows have one."""

_TOP, _ROW = 34.0, 26.0


class IntervalRow(NamedTuple):
    """One row of the figure."""

    name: str
    estimate: Estimate
    aside: str = ""
    """A further number at the right end."""


def interval_rows(
    title: str,
    rows: Sequence[IntervalRow],
    *,
    heads: tuple[str, str],
    signed_axis: bool = False,
) -> str:
    """Return one row per estimate: its name, point and interval, and its numbers.

    An estimate without a value has a dash in place of its point.

    Parameters
    ----------
    heads
        What stands over the numbers, and over the column at the right end; the
        column is left out where the second is empty.
    signed_axis
        Whether values are differences: signs are printed, and zero stands out.
    """
    values = [one for row in rows for one in row.estimate[:3] if one is not None]
    if signed_axis:
        values.append(0.0)
    axis = fit_axis(values, _NAMES, _PLOT)
    width = _NAMES + _PLOT + _NUMBERS + (_ASIDE if heads[1] else 0)
    bottom = _TOP + _ROW * len(rows)
    drawn = [
        _row(row, axis, (_TOP + _ROW * (place + 0.5), width), signed_axis)
        for place, row in enumerate(rows)
    ]
    about = ". ".join(_said(row, signed_axis) for row in rows) or "There is no row."
    return figure(
        (width, bottom + 10),
        title,
        about,
        *draw_axis(axis, _TOP, bottom, sign=signed_axis),
        text(_NAMES + _PLOT + 30, _TOP - 10, heads[0], colour="soft"),
        text(width, _TOP - 10, heads[1], anchor="end", colour="soft"),
        *drawn,
    )


def _row(row: IntervalRow, axis: Axis, place: tuple[float, float], sign: bool) -> str:
    """Return one row; `place` is its height and the right end of the figure."""
    y, right = place
    parts = [
        text(0, y + 4, cut(row.name, _NAMES - 22)),
        text(_NAMES + _PLOT + 30, y + 4, _numbers(row.estimate, sign)),
    ]
    if row.aside:
        parts.append(text(right, y + 4, row.aside, anchor="end"))
    value, low, high = row.estimate[:3]
    if low is not None and high is not None:
        parts.append(draw_interval(axis, y, low, high))
    if value is not None:
        x = axis.x(value)
        parts.append(
            f'<circle class="point" cx="{x:g}" cy="{y:g}" r="5" '
            f'fill="{ink("accent")}" stroke="{ink("paper")}" stroke-width="1"/>'
        )
    return group(_said(row, sign), *parts)


def _numbers(estimate: Estimate, sign: bool) -> str:
    if estimate.low is None:
        return signed(estimate.value) if sign else share(estimate.value)
    if sign:
        return f"{signed(estimate.value)} {signed_interval(estimate)}"
    return f"{share(estimate.value)} {interval(estimate)}"


def _said(row: IntervalRow, sign: bool) -> str:
    aside = f", {row.aside}" if row.aside else ""
    return f"{row.name}: {_numbers(row.estimate, sign)}{aside}"


_CELL = (62.0, 34.0)
_MOST = 150.0
"""Most room for a reader's name, pixels."""

STRONGEST = 0.36
"""Opacity of a cell with kappa 1: ink on it stays readable, light and dark."""


def kappa_heatmap(readers: Sequence[str], pairs: Sequence[PairAgreement]) -> str:
    """Return a table of all readers with kappa in every cell.

    The tint grows with kappa from 0 to 1; at or below 0 there is none. A pair without
    an estimate shows a dash.
    """
    names = [cut(reader, _MOST) for reader in readers]
    left = 12 + max((text_width(name) for name in names), default=0.0)
    wide, high = _CELL
    top = 30.0
    known = {frozenset((one.first, one.second)): one for one in pairs}
    parts: list[str] = []
    for row, reader in enumerate(readers):
        y = top + high * row
        parts.append(text(left - 8, y + high / 2 + 4, names[row], anchor="end"))
        x = left + wide * (row + 0.5)
        parts.append(text(x, top - 10, cut(reader, wide - 6), anchor="middle"))
        for column in range(len(readers)):
            corner = (left + wide * column, y)
            if row == column:
                parts.append(_diagonal(corner))
            else:
                pair = known.get(frozenset((row, column)))
                parts.append(_cell(corner, pair, readers))
    size = (left + wide * len(names) + 4, top + high * len(names) + 6)
    about = (
        ". ".join(_said_heatmap(one, readers) for one in pairs)
        or "There is no pair of readers."
    )
    return figure(
        (max(size[0], 180), max(size[1], 60)),
        "Kappa of pairs of readers",
        about,
        *parts,
    )


def _diagonal(corner: tuple[float, float]) -> str:
    (x, y), (wide, high) = corner, _CELL
    return line((x + 10, y + 6), (x + wide - 10, y + high - 6), colour="grid")


def _cell(
    corner: tuple[float, float], pair: PairAgreement | None, readers: Sequence[str]
) -> str:
    (x, y), (wide, high) = corner, _CELL
    value = pair.kappa.value if pair else None
    tint = round(STRONGEST * min(max(value or 0.0, 0.0), 1.0), 3)
    box = (
        f'<rect x="{x + 1:g}" y="{y + 1:g}" width="{wide - 2:g}" height="{high - 2:g}" '
        f'rx="2" fill="{ink("accent")}" fill-opacity="{tint:g}" '
        f'stroke="{ink("line")}" stroke-width="1"/>'
    )
    words = text(
        x + wide / 2, y + high / 2 + 4, share(value, 2), anchor="middle", weight=600
    )
    return group(
        _said_heatmap(pair, readers) if pair else "no cases in common", box, words
    )


def _said_heatmap(pair: PairAgreement, readers: Sequence[str]) -> str:
    first, second = readers[pair.first], readers[pair.second]
    said = f"{first} and {second}: kappa {share(pair.kappa.value)}"
    if pair.kappa.low is not None:
        said += f" {interval(pair.kappa)}"
    return f"{said}, {counted(pair.n, 'case')}"


_HIGH = 34.0
_MOST_NAME = 210.0
_CELL_grid = (44.0, 104.0)
"""Least and most width of a cell, pixels."""

_TOP_grid = 30.0
_EDGE = 4.0


class GridCell(NamedTuple):
    """One number of a grid."""

    shown: str
    """The number as printed; a dash where there is none."""

    title: str
    """The same in words, with its counts."""

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
        parts.append(group(name, text(x, _TOP_grid - 10, short, anchor="middle")))
    for place, (name, cells) in enumerate(zip(grid.rows, grid.cells, strict=True)):
        y = _TOP_grid + _HIGH * place
        parts.append(
            text(left - 8, y + _HIGH / 2 + 4, cut(name, _MOST_NAME), anchor="end")
        )
        parts += [
            _cell_grid(grid, cell, (left + wide * column, y), wide)
            for column, cell in enumerate(cells)
        ]
    size = (
        max(left + wide * len(grid.columns) + _EDGE, 200.0),
        _TOP_grid + _HIGH * len(grid.rows) + _EDGE,
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
    return min(max(needed, _CELL_grid[0]), _CELL_grid[1])


def _cell_grid(
    grid: Grid, cell: GridCell, corner: tuple[float, float], wide: float
) -> str:
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


_LEAST_LEFT = 44.0
_SMALL_PLOT = (300.0, 108.0)
"""Width and height of bars or a curve, pixels."""

_FOOT = 34.0


class ShareBar(NamedTuple):
    """One bar of a chart of shares."""

    label: str
    """Written below it."""

    share: float
    """Height, from 0 to 1."""

    title: str
    """The same in words, with its counts."""


def bars_svg(title: str, bars: Sequence[ShareBar], foot: str) -> str:
    """Return shares as bars side by side, the largest as high as the figure.

    Parameters
    ----------
    bars
        From left to right; only the first, the middle and the last label are written.
    foot
        Caption of the labels, in a few words.
    """
    wide, high = _SMALL_PLOT
    left, top = _LEAST_LEFT, 12.0
    size = (left + wide + _EDGE, top + high + _FOOT)
    if not bars:
        empty = text(left, top + high / 2, "no score", colour="soft")
        return figure(size, title, "There is no score.", empty)
    most = max(bar.share for bar in bars) or 1.0
    step = wide / len(bars)
    parts = [
        line((left, top), (left + wide, top), colour="grid"),
        text(left - 6, top + 4, share(most, 2), anchor="end", colour="soft"),
        text(left - 6, top + high + 4, "0", anchor="end", colour="soft"),
    ]
    for place, bar in enumerate(bars):
        tall = high * bar.share / most
        x = left + step * place
        parts.append(
            rect(
                (round(x + 1, 2), round(top + high - tall, 2)),
                (round(step - 2, 2), round(tall, 2)),
                fill=ink("accent"),
                title=bar.title,
            )
        )
    parts.append(line((left, top + high), (left + wide, top + high), colour="line"))
    named = {0: "start", len(bars) // 2: "middle", len(bars) - 1: "end"}
    for place, anchor in named.items():
        shift = {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
        parts.append(
            text(
                round(left + step * (place + shift), 2),
                top + high + 15,
                bars[place].label,
                anchor=anchor,
                colour="soft",
            )
        )
    middle = left + wide / 2
    parts.append(text(middle, top + high + 31, foot, anchor="middle", colour="soft"))
    return figure(size, title, ". ".join(bar.title for bar in bars), *parts)


class CurvePoint(NamedTuple):
    """One point of a curve, with its interval."""

    x: float
    value: float
    low: float | None
    high: float | None
    title: str
    """The same in words, with its counts."""


def curve_svg(title: str, points: Sequence[CurvePoint], feet: tuple[str, str]) -> str:
    """Return values against whole numbers, with intervals and a line at zero.

    Parameters
    ----------
    points
        From left to right.
    feet
        Captions of the horizontal and of the vertical axis, in a few words each.
    """
    wide, high = _SMALL_PLOT
    left, top = _LEAST_LEFT, 24.0
    if not points:
        size = (left + wide + _EDGE, top + high + _FOOT)
        empty = text(left, top + high / 2, "nothing to show", colour="soft")
        return figure(size, title, "There is no point.", empty)
    ends = [
        end
        for point in points
        for end in (point.value, point.low, point.high)
        if end is not None
    ]
    up = fit_axis([*ends, 0.0], 0.0, high)
    labels = tick_labels(up.ticks, sign=True)
    left = max(left, 10 + max(map(text_width, labels)))
    size = (left + wide + _EDGE, top + high + _FOOT)
    across = Axis(0.0, max(max(one.x for one in points) + 1, 4.0), (), left, wide)

    def height(value: float) -> float:
        return round(top + high - up.x(value), 2)

    parts = [text(4, 12, feet[1], colour="soft")]
    for tick, label in zip(up.ticks, labels, strict=True):
        y = height(tick)
        colour = "line" if tick == 0 else "grid"
        parts.append(line((left, y), (left + wide, y), colour=colour))
        parts.append(text(left - 6, y + 4, label, anchor="end", colour="soft"))
    for point in points:
        x, y = across.x(point.x), height(point.value)
        shapes = []
        if point.low is not None and point.high is not None:
            stop = (height(point.low), height(point.high))
            shapes.append(line((x, stop[0]), (x, stop[1]), colour="accent", width=1.5))
        shapes.append(f'<circle cx="{x:g}" cy="{y:g}" r="4" fill="{ink("accent")}"/>')
        parts.append(group(point.title, *shapes))
        label = text(x, top + high + 15, f"{point.x:g}", anchor="middle", colour="soft")
        parts.append(label)
    middle = left + wide / 2
    parts.append(text(middle, top + high + 31, feet[0], anchor="middle", colour="soft"))
    return figure(size, title, ". ".join(one.title for one in points), *parts)
