"""The few shapes that figures are made of, escaped and addressed in pixels.

A figure has a fixed size and is never scaled, so that 11 pixel text stays 11 pixels:
give it a box that scrolls sideways.
"""

from __future__ import annotations

from html import escape

from loop.core.safe_text import printable
from loop.evaluate.gates import GateVerdict
from loop.report.figures.palette import ink

FONT = "system-ui,-apple-system,'Segoe UI',Roboto,Arial,'Noto Sans',sans-serif"
SMALL = 11
"""Least size of text, pixels."""

_CHARACTER = 0.58
"""Mean width of a character as a share of its size; wide enough for capitals."""

_COLOURS = {
    GateVerdict.PASS: "pass",
    GateVerdict.FAIL: "fail",
    GateVerdict.INSUFFICIENT: "unsure",
}


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


def verdict_mark(x: float, y: float, verdict: GateVerdict) -> str:
    """Return the sign of a verdict: filled circle, filled square, hollow diamond."""
    colour = ink(_COLOURS[verdict])
    if verdict is GateVerdict.PASS:
        return f'<circle cx="{x:g}" cy="{y:g}" r="5.5" fill="{colour}"/>'
    if verdict is GateVerdict.FAIL:
        return (
            f'<rect x="{x - 5:g}" y="{y - 5:g}" width="10" height="10" '
            f'fill="{colour}"/>'
        )
    return (
        f'<path d="M{x:g} {y - 6.5:g}l6.5 6.5l-6.5 6.5l-6.5-6.5Z" '
        f'fill="{ink("paper")}" stroke="{colour}" stroke-width="2"/>'
    )


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
