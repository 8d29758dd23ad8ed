"""A chart of macro-F1 and of labels passed over the versions of a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor
from typing import NamedTuple

from loop.evaluate.gates import GateVerdict
from loop.evaluate.history import VersionScore
from loop.evaluate.tried import WordingStatus
from loop.report.figures.palette import ink
from loop.report.figures.svg import figure, group, line, path, rect, text, verdict_mark
from loop.report.numbers import NOT_ESTIMABLE, interval, share

_LEFT, _RIGHT = 46.0, 18.0
_SCORES = (44.0, 190.0)
"""Top and bottom of the upper panel, pixels."""

_LABELS = (226.0, 306.0)
"""Top and bottom of the lower panel, pixels."""

_HEIGHT = 356.0
_NARROW, _WIDE = 34.0, 92.0
"""Least and most room for one version, pixels."""

_FITTING = 640.0
"""Width within which a few versions are spread, pixels."""


class _Frame(NamedTuple):
    """Where things are."""

    step: float
    low: float
    """Macro-F1 at the bottom of the upper panel."""

    labels: int
    """Labels at the top of the lower panel."""

    def x(self, place: int) -> float:
        return _LEFT + self.step * (place + 0.5)

    def y(self, score: float) -> float:
        top, bottom = _SCORES
        part = (max(score, self.low) - self.low) / (1 - self.low)
        return round(bottom - (bottom - top) * part, 2)

    def height(self, labels: int) -> float:
        top, bottom = _LABELS
        return round((bottom - top) * labels / max(self.labels, 1), 2)


def version_chart(scores: Sequence[VersionScore]) -> str:
    """Return macro-F1 with its intervals, and labels by verdict, for every version.

    Drafts appear only with a score. A score that is not comparable with the newest one
    is a hollow point outside the line. A version without a score keeps its place.
    """
    shown = [one for one in scores if one.number or one.macro_f1 is not None]
    frame = _frame(shown)
    width = _LEFT + _RIGHT + max(frame.step * len(shown), 400.0)
    right = width - _RIGHT
    parts = [*_legend(), *_axes(frame, right), *_curve(shown, frame)]
    for place, one in enumerate(shown):
        parts.append(_column(one, frame, place))
    if not shown:
        parts.append(text(width / 2, 120, "no version yet", anchor="middle"))
    return figure((width, _HEIGHT), "Scores of every version", _about(shown), *parts)


def _frame(shown: Sequence[VersionScore]) -> _Frame:
    step = min(max((_FITTING - _LEFT) / max(len(shown), 1), _NARROW), _WIDE)
    values = [
        value for one in shown for value in (one.macro_f1, one.low) if value is not None
    ]
    low = floor(min([*values, 0.9]) * 10 + 1e-9) / 10
    most = max((one.labels for one in shown), default=0)
    return _Frame(step, max(min(low, 0.9), 0.0), most)


def _axes(frame: _Frame, right: float) -> list[str]:
    parts = [
        text(_LEFT - 38, _SCORES[0] - 14, "macro-F1", colour="soft", weight=600),
        text(_LEFT - 38, _LABELS[0] - 14, "labels", colour="soft", weight=600),
    ]
    for tick in _ticks(frame.low):
        y = frame.y(tick)
        parts.append(line((_LEFT, y), (right, y), colour="grid"))
        parts.append(text(_LEFT - 8, y + 4, f"{tick:.1f}", anchor="end", colour="soft"))
    top, bottom = _LABELS
    parts.append(line((_LEFT, bottom), (right, bottom)))
    if frame.labels:
        parts.append(
            text(_LEFT - 8, top + 8, frame.labels, anchor="end", colour="soft")
        )
    parts.append(text(_LEFT - 8, bottom, 0, anchor="end", colour="soft"))
    return parts


def _ticks(low: float) -> list[float]:
    step = 0.1 if low > 0.45 else 0.2
    first = ceil(low / step - 1e-9)
    return [round(step * tick, 1) for tick in range(first, round(1 / step) + 1)]


def _legend() -> list[str]:
    y, x = _HEIGHT - 14, _LEFT - 38
    parts = []
    for verdict, words, room in (
        (GateVerdict.PASS, "pass", 60),
        (GateVerdict.INSUFFICIENT, "lacks evidence", 118),
        (GateVerdict.FAIL, "fail", 56),
    ):
        parts += [verdict_mark(x + 6, y - 4, verdict), text(x + 18, y, words)]
        x += room
    hollow = (
        f'<circle cx="{x + 6:g}" cy="{y - 4:g}" r="4.5" fill="{ink("paper")}" '
        f'stroke="{ink("line")}" stroke-width="2"/>'
    )
    return [*parts, hollow, text(x + 18, y, "draft, or not comparable")]


def _curve(shown: Sequence[VersionScore], frame: _Frame) -> list[str]:
    """Return the line through comparable scores of neighbouring versions."""
    data, before = "", False
    for place, one in enumerate(shown):
        joins = one.macro_f1 is not None and _solid(one)
        if joins and one.macro_f1 is not None:
            y = frame.y(one.macro_f1)
            data += f"{'L' if before else 'M'}{frame.x(place):g} {y:g}"
        before = joins or (before and not one.number)
    return [path(data, colour="accent", width=2)] if data else []


def _solid(one: VersionScore) -> bool:
    return one.comparable and one.status is WordingStatus.COMMITTED


def _column(one: VersionScore, frame: _Frame, place: int) -> str:
    """Return everything about one version, with its numbers as a title."""
    x = frame.x(place)
    tag = f"v{one.number}" if one.number else "draft"
    parts = [
        text(
            x, _LABELS[1] + 18, tag, anchor="middle", weight=600 if one.number else 400
        ),
        # An invisible surface, so that the whole column can be pointed at.
        f'<rect x="{x - frame.step / 2:g}" y="{_SCORES[0]:g}" width="{frame.step:g}" '
        f'height="{_LABELS[1] - _SCORES[0]:g}" fill="transparent"/>',
        *_point(one, frame, x),
        *_bar(one, frame, x),
    ]
    return group(_said(one), *parts)


def _point(one: VersionScore, frame: _Frame, x: float) -> list[str]:
    if one.macro_f1 is None:
        y = _SCORES[1] - 6
        return [text(x, y, NOT_ESTIMABLE, anchor="middle", colour="soft")]
    y = frame.y(one.macro_f1)
    colour = "accent" if _solid(one) else "line"
    parts = []
    if one.low is not None and one.high is not None:
        low, high = frame.y(one.low), frame.y(one.high)
        parts = [line((x, low), (x, high), colour=colour, width=2)]
        parts += [
            line((x - 4, end), (x + 4, end), colour=colour, width=2)
            for end in (low, high)
        ]
    fill = ink(colour) if _solid(one) else ink("paper")
    parts.append(
        f'<circle class="point" cx="{x:g}" cy="{y:g}" r="4.5" fill="{fill}" '
        f'stroke="{ink(colour)}" stroke-width="2"/>'
    )
    return parts


def _bar(one: VersionScore, frame: _Frame, x: float) -> list[str]:
    """Return the labels as a stack: pass below, then open, then fail on top."""
    wide = min(frame.step - 8, 34.0)
    bottom = _LABELS[1]
    parts = []
    for count, name in (
        (one.labels_passed, "pass"),
        (one.labels_insufficient, "unsure"),
        (one.labels_failed, "fail"),
    ):
        if not count:
            continue
        high = frame.height(count)
        bottom -= high
        hollow = name == "unsure"
        inset = 1.0 if hollow else 0.0
        parts.append(
            rect(
                (x - wide / 2 + inset, bottom + 0.5 + inset / 2),
                (wide - 2 * inset, max(high - 1 - inset, 1)),
                fill=ink("paper") if hollow else ink(name),
                stroke=name if hollow else "",
            )
        )
        if high >= 14:
            colour = "unsure" if hollow else "paper"
            middle = bottom + high / 2 + 4
            parts.append(text(x, middle, count, anchor="middle", colour=colour))
    return parts


def _said(one: VersionScore) -> str:
    words = [one.ref, f"macro-F1 {share(one.macro_f1)}"]
    if one.low is not None:
        words[-1] += f" {interval(one)}"
    if one.labels_passed is not None:
        words.append(
            f"{one.labels_passed} labels pass, {one.labels_failed} fail, "
            f"{one.labels_insufficient} lack evidence"
        )
    if one.status is not WordingStatus.COMMITTED:
        words.append(one.status.value)
    if not one.comparable:
        words.append(
            "not comparable with the newest score: other cases, reference or engine"
        )
    return "; ".join(words)


def _about(shown: Sequence[VersionScore]) -> str:
    return ". ".join(_said(one) for one in shown) or "There is no version yet."
