"""Estimates with their intervals in rows: a ranking, differences, correlations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loop.report.figures.axis import Scale, draw_interval, draw_scale, fit_scale
from loop.report.figures.palette import ink
from loop.report.figures.svg import cut, figure, group, text
from loop.report.numbers import interval, share, signed, signed_interval
from loop.stats.intervals import Estimate

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
    scale = fit_scale(values, _NAMES, _PLOT)
    width = _NAMES + _PLOT + _NUMBERS + (_ASIDE if heads[1] else 0)
    bottom = _TOP + _ROW * len(rows)
    drawn = [
        _row(row, scale, (_TOP + _ROW * (place + 0.5), width), signed_axis)
        for place, row in enumerate(rows)
    ]
    about = ". ".join(_said(row, signed_axis) for row in rows) or "There is no row."
    return figure(
        (width, bottom + 10),
        title,
        about,
        *draw_scale(scale, _TOP, bottom, sign=signed_axis),
        text(_NAMES + _PLOT + 30, _TOP - 10, heads[0], colour="soft"),
        text(width, _TOP - 10, heads[1], anchor="end", colour="soft"),
        *drawn,
    )


def _row(row: IntervalRow, scale: Scale, place: tuple[float, float], sign: bool) -> str:
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
        parts.append(draw_interval(scale, y, low, high))
    if value is not None:
        x = scale.x(value)
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
