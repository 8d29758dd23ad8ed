"""The accuracy of every label with its exact interval, against the threshold."""

from __future__ import annotations

from loop.evaluate.results import Evaluation, LabelResult
from loop.report.figures.svg import (
    cut,
    figure,
    group,
    line,
    path,
    text,
    verdict_colour,
    verdict_mark,
)
from loop.report.forest import Axis, Mark, accuracy_axis, accuracy_mark, tick_labels
from loop.report.numbers import count, interval, share

_NAMES, _PLOT, _NUMBERS = 236.0, 310.0, 190.0
"""Widths of the three columns, pixels."""

_WIDTH = _NAMES + _PLOT + _NUMBERS
_TOP, _ROW = 30.0, 24.0


def forest_svg(evaluation: Evaluation) -> str:
    """Return one row per label: sign of its verdict, exact interval, numbers.

    A label far below the others has an arrow and its value at the left end, as in the
    document.
    """
    axis = accuracy_axis(evaluation)
    confidence = evaluation.protocol.confidence
    marks = [accuracy_mark(one, axis, confidence) for one in evaluation.labels]
    bottom = _TOP + _ROW * len(marks)
    rows = [
        _row(result, mark, _TOP + _ROW * (place + 0.5))
        for place, (result, mark) in enumerate(
            zip(evaluation.labels, marks, strict=True)
        )
    ]
    return figure(
        (_WIDTH, bottom + 8),
        f"Accuracy of each label, {evaluation.run.prompt} on {evaluation.cohort.name}",
        ". ".join(mark.title for mark in marks) or "There is no label.",
        *_grid(axis, evaluation.protocol.accuracy, bottom),
        *rows,
    )


def _x(percent: float) -> float:
    return round(_NAMES + _PLOT * percent / 100, 2)


def _grid(axis: Axis, threshold: float, bottom: float) -> list[str]:
    """Return the ticks, and the threshold as a dashed line."""
    parts = []
    for tick, words in zip(axis.ticks, tick_labels(axis.ticks), strict=True):
        x = _x(axis.x(tick))
        parts.append(line((x, _TOP), (x, bottom), colour="grid"))
        parts.append(text(x, _TOP - 10, words, anchor="middle", colour="soft"))
    x = _x(axis.x(threshold))
    heads = [
        text(_NAMES + _PLOT + 12, _TOP - 10, "accuracy", colour="soft"),
        text(_WIDTH, _TOP - 10, "n", anchor="end", colour="soft"),
    ]
    limit = line((x, _TOP - 5), (x, bottom), colour="ink", width=1.2, dashes="4 3")
    return [*parts, limit, *heads]


def _row(result: LabelResult, mark: Mark, y: float) -> str:
    counts = result.confusion
    numbers = share(counts.accuracy)
    if counts.n:
        numbers += f" {interval(result.accuracy)}"
    parts = [
        text(0, y + 4, cut(result.name, _NAMES - 26)),
        text(_NAMES + _PLOT + 12, y + 4, numbers),
        text(_WIDTH, y + 4, count(counts.n), anchor="end"),
    ]
    if mark.point is None:
        parts.append(verdict_mark(_NAMES - 16, y, mark.verdict))
        return group(mark.title, *parts)
    colour = verdict_colour(mark.verdict)
    low, high = _x(mark.low), _x(mark.high)
    parts.append(line((low, y), (high, y), colour=colour, width=2))
    parts.append(path(_end(low, y, mark), colour=colour, width=2))
    parts.append(path(f"M{high:g} {y - 4:g}v8", colour=colour, width=2))
    if mark.off:
        parts.append(text(low - 4, y + 4, mark.value, colour=colour))
    else:
        parts.append(verdict_mark(_x(mark.point), y, mark.verdict))
    return group(mark.title, *parts)


def _end(x: float, y: float, mark: Mark) -> str:
    """Return the left end of an interval: a stop, or an arrow where it goes on."""
    if mark.off:
        return f"M{x - 10:g} {y - 5:g}l-5 5l5 5"
    if mark.cut_low:
        return f"M{x + 4:g} {y - 4:g}l-5 4l5 4"
    return f"M{x:g} {y - 4:g}v8"
