"""The lineage of a prompt: versions in a row, drafts below them, aliases above."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from loop.evaluate.history import Lineage, Node
from loop.evaluate.tried import WordingStatus
from loop.report.figures.palette import ink
from loop.report.figures.svg import (
    SMALL,
    clean,
    cut,
    figure,
    group,
    line,
    path,
    rect,
    text,
    text_width,
)

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
