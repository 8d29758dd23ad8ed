"""Cohen's kappa of every pair of readers, as a table of tinted cells."""

from __future__ import annotations

from collections.abc import Sequence

from loop.report.figures.palette import ink
from loop.report.figures.svg import cut, figure, group, line, text, text_width
from loop.report.numbers import interval, share
from loop.stats.agreement import PairAgreement

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
        ". ".join(_said(one, readers) for one in pairs)
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
    return group(_said(pair, readers) if pair else "no cases in common", box, words)


def _said(pair: PairAgreement, readers: Sequence[str]) -> str:
    first, second = readers[pair.first], readers[pair.second]
    said = f"{first} and {second}: kappa {share(pair.kappa.value)}"
    if pair.kappa.low is not None:
        said += f" {interval(pair.kappa)}"
    return f"{said}, {pair.n} cases"
