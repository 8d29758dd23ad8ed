"""Figures as SVG: colours, shapes, one axis, a file of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import count
from math import ceil, floor
from types import MappingProxyType
from typing import NamedTuple

from loop.core.safe_text import printable

LIGHT: Mapping[str, str] = MappingProxyType(
    {
        "paper": "#ffffff",
        "ink": "#17212b",
        "soft": "#55616e",
        "line": "#868f98",
        "grid": "#dfe4e9",
        "pass": "#00745a",
        "fail": "#b84700",
        "unsure": "#7d5a00",
        "accent": "#0072b2",
    }
)
"""Name to colour on light paper."""

DARK: Mapping[str, str] = MappingProxyType(
    {
        "paper": "#12181f",
        "ink": "#e8edf2",
        "soft": "#a9b4bf",
        "line": "#73808d",
        "grid": "#2b343e",
        "pass": "#2fc39a",
        "fail": "#f58a4b",
        "unsure": "#e6b23c",
        "accent": "#56b4e9",
    }
)
"""The same on dark paper."""

TEXT = ("ink", "soft", "pass", "fail", "unsure", "accent")
"""Colours that text is set in: contrast 4.5 to 1 at least."""

GRAPHICS = ("line",)
"""Colours of lines that carry meaning: contrast 3 to 1 at least."""


def ink(name: str) -> str:
    """Return the CSS of a colour: the page's own, or else the one for light paper.

    Raises
    ------
    KeyError
        There is no such colour.

    Examples
    --------
    >>> ink("pass")
    'var(--pass,#00745a)'
    """
    return f"var(--{name},{LIGHT[name]})"


FONT = "system-ui,-apple-system,'Segoe UI',Roboto,Arial,'Noto Sans',sans-serif"
SMALL = 11
"""Least size of text, pixels."""

_CHARACTER = 0.58
"""Mean width of a character as a share of its size; wide enough for capitals."""


def clean(text: object) -> str:
    """Return `text` for a figure: one line, escaped, nothing invisible in it."""
    return escape(printable(" ".join(str(text).split())))


def figure(size: tuple[float, float], title: str, about: str, *parts: str) -> str:
    """Return a whole figure with its title and what it says in words.

    Parameters
    ----------
    size
        Width and height, pixels.
    title
        What it shows, for everyone who does not see it.
    about
        What is to be seen in it, as sentences.
    """
    width, height = (f"{value:g}" for value in size)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}" '
        f'style="max-width:none;display:block" font-family="{FONT}" '
        f'font-size="12"><title>{clean(title)}</title><desc>{clean(about)}</desc>'
        f"{''.join(parts)}</svg>"
    )


def text(
    x: float,
    y: float,
    words: object,
    *,
    anchor: str = "start",
    colour: str = "ink",
    weight: int = 400,
) -> str:
    """Return one line of text whose baseline starts, ends or is centred at (x, y)."""
    bold = f' font-weight="{weight}"' if weight != 400 else ""
    side = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return (
        f'<text x="{x:g}" y="{y:g}" fill="{ink(colour)}"{side}{bold}>'
        f"{clean(words)}</text>"
    )


def line(
    start: tuple[float, float],
    end: tuple[float, float],
    *,
    colour: str = "line",
    width: float = 1.0,
    dashes: str = "",
) -> str:
    """Return a straight line."""
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    (x1, y1), (x2, y2) = start, end
    return (
        f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" '
        f'stroke="{ink(colour)}" stroke-width="{width:g}"{dashed}/>'
    )


def path(data: str, *, colour: str = "line", width: float = 1.5) -> str:
    """Return an unfilled path."""
    return (
        f'<path d="{data}" fill="none" stroke="{ink(colour)}" '
        f'stroke-width="{width:g}"/>'
    )


def rect(
    corner: tuple[float, float],
    size: tuple[float, float],
    *,
    fill: str,
    stroke: str = "",
    title: str = "",
) -> str:
    """Return a rectangle; with a title it can be pointed at."""
    (x, y), (width, height) = corner, size
    edge = f' stroke="{ink(stroke)}"' if stroke else ""
    said = f"<title>{clean(title)}</title>" if title else ""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="2" '
        f'fill="{fill}"{edge}>{said}</rect>'
    )


def group(title: str, *parts: str) -> str:
    """Return shapes that belong together, with what they say when pointed at."""
    return f"<g><title>{clean(title)}</title>{''.join(parts)}</g>"


def text_width(words: str, size: float = 12) -> float:
    """Return about how wide `words` are, pixels; full-width characters count twice.

    Examples
    --------
    >>> text_width("v12") < text_width("v123")
    True
    """
    return sum(2 if ord(char) > 0x2E80 else 1 for char in words) * size * _CHARACTER


def cut(words: str, room: float, size: float = 12) -> str:
    """Return as much of `words` as fits into `room` pixels, with an ellipsis."""
    if text_width(words, size) <= room:
        return words
    kept = words
    while kept and text_width(kept + "\N{HORIZONTAL ELLIPSIS}", size) > room:
        kept = kept[:-1]
    return kept.rstrip() + "\N{HORIZONTAL ELLIPSIS}"


_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5)
"""Steps of an axis below 1; from there on they are 1, 2 and 5 times a power of ten."""

_MOST = 6
"""Most steps between ticks."""


_EDGE = 6.0
"""Percent kept free on both sides, so that a mark at an end stays whole."""


class Axis(NamedTuple):
    """A linear axis: where values lie, in pixels or in percent of a width."""

    low: float
    """Value at the left end."""

    high: float
    ticks: tuple[float, ...]
    left: float
    """Position of the left end."""

    width: float

    def x(self, value: float) -> float:
        """Return where `value` lies; beyond an end it is held there.

        Examples
        --------
        >>> axis = Axis(0.0, 1.0, (), left=100.0, width=200.0)
        >>> axis.x(0.25), axis.x(2.0)
        (150.0, 300.0)
        """
        inside = min(max(value, self.low), self.high)
        share = (inside - self.low) / (self.high - self.low)
        return round(self.left + self.width * share, 3)

    def cuts(self, value: float) -> bool:
        """Whether `value` lies beyond an end of the axis."""
        return not self.low - 1e-9 <= value <= self.high + 1e-9


def percent_axis(low: float, high: float, ticks: Sequence[float]) -> Axis:
    """Return an axis in percent of a width; its ends keep free of the edges.

    Examples
    --------
    >>> percent_axis(0.0, 1.0, ()).x(0.5)
    50.0
    """
    return Axis(low, high, tuple(ticks), _EDGE, 100 - 2 * _EDGE)


def tick_labels(ticks: Sequence[float], *, sign: bool = False) -> tuple[str, ...]:
    """Return the ticks as text, with two decimals where one is not enough.

    Whole numbers from 10 on have no decimals.

    Examples
    --------
    >>> tick_labels([0.0, 0.5, 1.0]), tick_labels([0.0, 50.0, 100.0], sign=True)
    (('0.0', '0.5', '1.0'), ('0', '+50', '+100'))
    """
    large = max((abs(tick) for tick in ticks), default=0.0) >= 10
    if large and all(tick == round(tick) for tick in ticks):
        digits = 0
    else:
        short = all(abs(tick * 10 - round(tick * 10)) < 1e-9 for tick in ticks)
        digits = 1 if short else 2
    if not sign:
        return tuple(f"{tick:.{digits}f}" for tick in ticks)
    return tuple(
        f"{tick:+.{digits}f}".replace("-", "\N{MINUS SIGN}") if tick else "0"
        for tick in ticks
    )


def _steps() -> Iterator[float]:
    """Yield ever larger steps between ticks, without end."""
    yield from _STEPS
    for power in count():
        yield from (float(first * 10**power) for first in (1, 2, 5))


def fit_axis(values: Iterable[float], left: float, width: float) -> Axis:
    """Return the shortest axis between round ticks that holds all `values`.

    Without a value it is the axis from 0 to 1.

    Examples
    --------
    >>> fit_axis([0.42, 0.58], 0, 100)[:2]
    (0.4, 0.6)
    >>> fit_axis([0.0, 163.0], 0, 100).ticks
    (0.0, 50.0, 100.0, 150.0, 200.0)
    """
    held = sorted(values) or [0.0, 1.0]
    span = max(held[-1] - held[0], 0.02)
    step = next(one for one in _steps() if span / one <= _MOST)
    first, last = floor(held[0] / step + 1e-9), ceil(held[-1] / step - 1e-9)
    last = max(last, first + 1)
    ticks = tuple(round(step * tick, 6) for tick in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks, left, width)


def draw_axis(axis: Axis, top: float, bottom: float, *, sign: bool) -> list[str]:
    """Return the ticks with their grid lines; zero stands out on a signed axis."""
    parts = []
    words = tick_labels(axis.ticks, sign=sign)
    for tick, label in zip(axis.ticks, words, strict=True):
        x, zero = axis.x(tick), sign and tick == 0
        colour = "line" if zero else "grid"
        parts.append(line((x, top), (x, bottom), colour=colour))
        parts.append(text(x, top - 10, label, anchor="middle", colour="soft"))
    return parts


def draw_interval(axis: Axis, y: float, low: float, high: float) -> str:
    """Return an interval as a line with a stop at each end."""
    left, right = axis.x(low), axis.x(high)
    body = line((left, y), (right, y), colour="accent", width=2)
    ends = f"M{left:g} {y - 4:g}v8M{right:g} {y - 4:g}v8"
    return body + path(ends, colour="accent", width=2)


_PROPERTY = re.compile(r"var\(--[a-z]+,(#[0-9a-f]{6})\)")
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)" viewBox="[^"]*"')

_MARGIN = 16
"""Pixels of paper around the figure."""


def as_file(figure: str) -> str:
    """Return a figure of this package as the content of an ``.svg`` file.

    Programs for documents know no CSS properties, so every colour is spelled out;
    and they show a figure on whatever paper they have, so it brings its own.

    Raises
    ------
    ValueError
        It is not a figure of this package.
    """
    plain = _PROPERTY.sub(r"\1", figure)
    size = _SIZE.search(plain)
    if size is None:
        raise ValueError("this is not a figure: it has no size in pixels")
    wide, high = (float(one) + 2 * _MARGIN for one in size.groups())
    box = (
        f'width="{wide:g}" height="{high:g}" '
        f'viewBox="{-_MARGIN} {-_MARGIN} {wide:g} {high:g}"'
    )
    paper = (
        f'<rect x="{-_MARGIN}" y="{-_MARGIN}" width="{wide:g}" height="{high:g}" '
        f'fill="{LIGHT["paper"]}"/>'
    )
    plain = plain.replace(size[0], box, 1).replace("</desc>", f"</desc>{paper}", 1)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{plain}\n'
