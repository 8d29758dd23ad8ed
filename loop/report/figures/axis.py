"""A linear axis in pixels, with round ticks and the marks of an estimate."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, floor
from typing import NamedTuple

from loop.report.figures.svg import line, path, text
from loop.report.forest import tick_labels

_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0)
_MOST = 6
"""Most steps between ticks."""


class Scale(NamedTuple):
    """Where values lie, pixels."""

    low: float
    """Value at the left end."""

    high: float
    left: float
    """Left end, pixels."""

    width: float
    ticks: tuple[float, ...]

    def x(self, value: float) -> float:
        """Return where `value` lies; it must be on the axis.

        Examples
        --------
        >>> Scale(0.0, 1.0, 100.0, 200.0, ()).x(0.25)
        150.0
        """
        share = (value - self.low) / (self.high - self.low)
        return round(self.left + self.width * share, 2)


def fit_scale(values: Iterable[float], left: float, width: float) -> Scale:
    """Return the shortest axis between round ticks that holds all `values`.

    Without a value it is the axis from 0 to 1.

    Examples
    --------
    >>> fit_scale([0.42, 0.58], 0, 100)[:2]
    (0.4, 0.6)
    """
    held = sorted(values) or [0.0, 1.0]
    span = max(held[-1] - held[0], 0.02)
    step = next((one for one in _STEPS if span / one <= _MOST), span / _MOST)
    first, last = floor(held[0] / step + 1e-9), ceil(held[-1] / step - 1e-9)
    last = max(last, first + 1)
    ticks = tuple(round(step * tick, 6) for tick in range(first, last + 1))
    return Scale(ticks[0], ticks[-1], left, width, ticks)


def draw_scale(scale: Scale, top: float, bottom: float, *, sign: bool) -> list[str]:
    """Return the ticks with their grid lines; zero stands out on a signed axis."""
    parts = []
    words = tick_labels(scale.ticks, sign=sign)
    for tick, label in zip(scale.ticks, words, strict=True):
        x, zero = scale.x(tick), sign and tick == 0
        colour = "line" if zero else "grid"
        parts.append(line((x, top), (x, bottom), colour=colour))
        parts.append(text(x, top - 10, label, anchor="middle", colour="soft"))
    return parts


def draw_interval(scale: Scale, y: float, low: float, high: float) -> str:
    """Return an interval as a line with a stop at each end."""
    left, right = scale.x(low), scale.x(high)
    body = line((left, y), (right, y), colour="accent", width=2)
    ends = f"M{left:g} {y - 4:g}v8M{right:g} {y - 4:g}v8"
    return body + path(ends, colour="accent", width=2)
