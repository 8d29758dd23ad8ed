"""The history of a prompt as figures: its lineage, and the score of every version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor
from typing import NamedTuple

from loop.documents.numbers import NOT_ESTIMABLE, interval, share
from loop.documents.svg import (
    SMALL,
    clean,
    cut,
    figure,
    group,
    ink,
    line,
    path,
    rect,
    text,
    text_width,
)
from loop.evaluate.gates import GateVerdict
from loop.evaluate.score_history import Lineage, Node, VersionScore
from loop.evaluate.tried import WordingStatus

_COLOURS = {
    GateVerdict.PASS: "pass",
    GateVerdict.FAIL: "fail",
    GateVerdict.INSUFFICIENT: "unsure",
    GateVerdict.NOT_COMPARABLE: "soft",
}

_STEP = 96.0
"""From one version to the next, pixels."""

_BOX = (52.0, 30.0)
"""Width and height of a version, pixels."""

_EDGE = 24.0
_PILL = 22.0
"""Height that one alias takes, pixels."""

_DRAFT = 30.0
"""Height that one draft takes, pixels."""


class _NodeCentre(NamedTuple):
    """Centre of a node, pixels."""

    x: float
    y: float


def lineage_svg(graph: Lineage) -> str:
    """Return the versions of a prompt with their drafts and aliases.

    A revision of any version but the one before is drawn as a curve above the row.
    """
    versions = [node for node in graph.nodes if node.number]
    row = 30 + _PILL * max((len(one.aliases) for one in versions), default=0)
    row += 26 if _far(graph) else 0
    places = {
        node.ref: _NodeCentre(_EDGE + _BOX[0] / 2 + place * _STEP, row + _BOX[1] / 2)
        for place, node in enumerate(versions)
    }
    most = _put_drafts(graph, places)
    parts = [_edge(edge.parent, edge.child, places) for edge in graph.edges]
    parts += [
        _node(node, places[node.ref]) for node in graph.nodes if node.ref in places
    ]
    width = 2 * _EDGE + _BOX[0] + _STEP * max(len(versions) - 1, 0) + 76
    height = row + _BOX[1] + 34 + _DRAFT * most
    return figure(
        (max(width, 260), height), f"Lineage of {graph.prompt}", _about(graph), *parts
    )


def _far(graph: Lineage) -> bool:
    """Whether a version was revised from another one than the one before it."""
    numbers = {node.ref: node.number for node in graph.nodes}
    return any(
        numbers[edge.child] and numbers[edge.child] != numbers[edge.parent] + 1
        for edge in graph.edges
    )


def _put_drafts(graph: Lineage, places: dict[str, _NodeCentre]) -> int:
    """Add the places of drafts under their parents; return the longest column."""
    taken: dict[str, int] = {}
    for parent, child in graph.edges:
        if child not in places and parent in places:
            taken[parent] = taken.get(parent, 0) + 1
            x, y = places[parent]
            places[child] = _NodeCentre(x + 10, y + 22 + _DRAFT * taken[parent])
    return max(taken.values(), default=0)


def _edge(parent: str, child: str, places: Mapping[str, _NodeCentre]) -> str:
    """Return the line from a version to what was made of it."""
    if parent not in places or child not in places:
        return ""
    (x1, y1), (x2, y2) = places[parent], places[child]
    half = _BOX[0] / 2
    if y2 > y1:
        trunk = x1 - 12
        # From below the date, which stands between the version and its drafts.
        start = f"M{trunk:g} {y1 + _BOX[1] / 2 + 20:g}V{y2 - 6:g}"
        return path(f"{start}Q{trunk:g} {y2:g} {x2 - 9:g} {y2:g}")
    head = f"M{x2 - half - 6:g} {y1 - 4:g}l5 4l-5 4"
    if x2 - x1 <= _STEP:
        reach = line((x1 + half, y1), (x2 - half - 2, y2), width=1.5)
        return reach + path(head)
    top = y1 - 15
    return path(
        f"M{x1 + 8:g} {top:g}C{x1 + 24:g} {top - 30:g} {x2 - 24:g} {top - 30:g} "
        f"{x2 - 8:g} {top:g}m-7 -3l7 3l0 -7"
    )


def _node(node: Node, place: _NodeCentre) -> str:
    return _version(node, place) if node.number else _draft(node, place)


def _version(node: Node, place: _NodeCentre) -> str:
    x, y = place
    wide, high = _BOX
    parts = [
        rect((x - wide / 2, y - high / 2), _BOX, fill=ink("paper"), stroke="accent"),
        text(x, y + 4, node.tag, anchor="middle", weight=600),
        text(x, y + high / 2 + 15, node.when[:10], anchor="middle", colour="soft"),
    ]
    for number, alias in enumerate(node.aliases, 1):
        parts.append(_pill(alias, x, y - high / 2 - _PILL * number))
    return group(_said(node), *parts)


def _pill(alias: str, x: float, top: float) -> str:
    """Return an alias as a tag above its version."""
    words = cut(alias, _STEP - 22, SMALL)
    wide = text_width(words, SMALL) + 12
    return rect((x - wide / 2, top), (wide, 18), fill=ink("accent"), title=alias) + (
        f'<text x="{x:g}" y="{top + 13:g}" font-size="{SMALL}" font-weight="600" '
        f'text-anchor="middle" fill="{ink("paper")}">{clean(words)}</text>'
    )


def _draft(node: Node, place: _NodeCentre) -> str:
    """Return a draft: a hollow circle while it is one, a cross once it was rejected."""
    x, y = place
    colour = "fail" if node.status is WordingStatus.REJECTED else "unsure"
    mark = (
        path(f"M{x - 4:g} {y - 4:g}l8 8m0-8l-8 8", colour=colour, width=2)
        if node.status is WordingStatus.REJECTED
        else f'<circle cx="{x:g}" cy="{y:g}" r="5" fill="{ink("paper")}" '
        f'stroke="{ink(colour)}" stroke-width="2"/>'
    )
    return group(
        _said(node), mark, text(x + 10, y + 4, node.status.value, colour=colour)
    )


def _said(node: Node) -> str:
    known = (node.ref, node.status.value, node.when, node.who, node.why)
    aliases = f"alias {', '.join(node.aliases)}" if node.aliases else ""
    return "; ".join(part for part in (*known, aliases) if part)


def _about(graph: Lineage) -> str:
    parents = {edge.child: edge.parent for edge in graph.edges}
    return (
        ". ".join(
            f"{node.ref} ({node.status.value})"
            + (f" from {parents[node.ref]}" if node.ref in parents else "")
            + (f", alias {', '.join(node.aliases)}" if node.aliases else "")
            for node in graph.nodes
        )
        or "There is no version yet."
    )


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
    return figure(
        (width, _HEIGHT), "Scores of every version", _about_versions(shown), *parts
    )


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
    return group(_said_versions(one), *parts)


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


def _said_versions(one: VersionScore) -> str:
    words = [one.ref, f"macro-F1 {share(one.macro_f1)}"]
    if one.low is not None:
        words[-1] += f" {interval(one)}"
    if one.measured:
        words.append(one.measured)
    if one.labels_passed is not None:
        words.append(
            f"{one.labels_passed} labels pass, {one.labels_failed} fail, "
            f"{one.labels_insufficient} lack evidence"
        )
    if one.status is not WordingStatus.COMMITTED:
        words.append(one.status.value)
    if not one.comparable:
        words.append(
            "not comparable with the newest score: other cases, reference, engine or "
            "policy"
        )
    return "; ".join(words)


def _about_versions(shown: Sequence[VersionScore]) -> str:
    return ". ".join(_said_versions(one) for one in shown) or "There is no version yet."


def verdict_mark(x: float, y: float, verdict: GateVerdict) -> str:
    """Return the sign of a verdict: a filled circle or square, or hollow.

    A diamond lacks evidence, a triangle is not comparable.
    """
    colour = ink(_COLOURS[verdict])
    if verdict is GateVerdict.PASS:
        return f'<circle cx="{x:g}" cy="{y:g}" r="5.5" fill="{colour}"/>'
    if verdict is GateVerdict.FAIL:
        return (
            f'<rect x="{x - 5:g}" y="{y - 5:g}" width="10" height="10" '
            f'fill="{colour}"/>'
        )
    if verdict is GateVerdict.NOT_COMPARABLE:
        return (
            f'<polygon points="{x:g},{y - 5.5:g} {x + 5.5:g},{y + 4.5:g} '
            f'{x - 5.5:g},{y + 4.5:g}" fill="{ink("paper")}" stroke="{colour}" '
            'stroke-width="2"/>'
        )
    return (
        f'<path d="M{x:g} {y - 6.5:g}l6.5 6.5l-6.5 6.5l-6.5-6.5Z" '
        f'fill="{ink("paper")}" stroke="{colour}" stroke-width="2"/>'
    )
