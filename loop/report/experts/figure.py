"""The rank correlation of every metric with the raters, with its interval."""

from __future__ import annotations

from math import floor

from loop.report.figures.palette import ink
from loop.report.figures.svg import cut, figure, group, line, path, text
from loop.report.forest import Axis
from loop.report.numbers import count, interval, share
from loop.score.experts.meta import MetaEvaluation, MetricAgreement

_NAMES, _PLOT, _NUMBERS = 200.0, 340.0, 200.0
"""Widths of the three columns, pixels."""

_WIDTH = _NAMES + _PLOT + _NUMBERS
_TOP, _ROW = 46.0, 24.0
_STEP = 0.2


def agreement_svg(result: MetaEvaluation) -> str:
    """Return one row per metric: tau-b with the mean of the raters, its interval.

    A dashed line shows how well two raters agree with each other.
    """
    axis = _axis(result)
    bottom = _TOP + _ROW * len(result.metrics)
    rows = [
        _row(one, axis, _TOP + _ROW * (place + 0.5))
        for place, one in enumerate(result.metrics)
    ]
    said = [_said(one) for one in result.metrics]
    return figure(
        (_WIDTH, bottom + 8),
        "Tau-b of each metric with the mean of the raters",
        ". ".join(said) or "There is no metric.",
        *_grid(axis, bottom),
        *_ceiling(result.agreement.tau_b, axis, bottom),
        *rows,
    )


def _axis(result: MetaEvaluation) -> Axis:
    """Return an axis from the lowest limit, 0 at most, up to 1."""
    values = [
        value
        for one in result.metrics
        for value in one.consensus.tau_b[:3]
        if value is not None
    ]
    low = max(floor(min([0.0, *values]) / _STEP + 1e-9) * _STEP, -1.0)
    steps = round((1 - low) / _STEP)
    ticks = tuple(round(low + _STEP * step, 1) for step in range(steps + 1))
    return Axis(round(low, 1), 1.0, ticks)


def _x(axis: Axis, value: float) -> float:
    return round(_NAMES + _PLOT * axis.x(value) / 100, 2)


def _grid(axis: Axis, bottom: float) -> list[str]:
    parts = []
    for tick in axis.ticks:
        x, zero = _x(axis, tick), tick == 0
        colour = "line" if zero else "grid"
        parts.append(line((x, _TOP), (x, bottom), colour=colour))
        words = share(tick, 1)
        parts.append(text(x, _TOP - 8, words, anchor="middle", colour="soft"))
    right = _NAMES + _PLOT + 12
    return [
        *parts,
        text(right, _TOP - 8, "tau-b", colour="soft"),
        text(_WIDTH, _TOP - 8, "n", anchor="end", colour="soft"),
    ]


def _ceiling(tau_b: float | None, axis: Axis, bottom: float) -> list[str]:
    if tau_b is None:
        return []
    x, words = _x(axis, tau_b), f"two raters: {share(tau_b)}"
    return [
        line((x, _TOP - 4), (x, bottom), colour="ink", width=1.2, dashes="4 3"),
        text(x, _TOP - 30, words, anchor="middle", colour="ink"),
    ]


def _row(one: MetricAgreement, axis: Axis, y: float) -> str:
    found = one.consensus.tau_b
    numbers = share(found.value)
    if found.low is not None:
        numbers += f" {interval(found)}"
    parts = [
        text(0, y + 4, cut(one.metric.title, _NAMES - 12)),
        text(_NAMES + _PLOT + 12, y + 4, numbers),
        text(_WIDTH, y + 4, count(one.consensus.n), anchor="end"),
    ]
    if found.low is not None and found.high is not None:
        low, high = _x(axis, found.low), _x(axis, found.high)
        parts.append(line((low, y), (high, y), colour="accent", width=2))
        parts += [path(f"M{x:g} {y - 4:g}v8", colour="accent") for x in (low, high)]
    if found.value is not None:
        x = _x(axis, found.value)
        parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="5" fill="{ink("accent")}"/>')
    return group(_said(one), *parts)


def _said(one: MetricAgreement) -> str:
    found = one.consensus.tau_b
    if found.value is None:
        return f"{one.metric.title}: no rank correlation"
    return f"{one.metric.title}: tau-b {share(found.value)}, interval {interval(found)}"
