"""A case text cut where its evidence begins and ends, so that marks may overlap."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from loop.core.records import Span
from loop.labels.importing.report_sections import split_sections

_COLON = r"[:\uff1a]"
_STOP = r".;\u3002\uff1b"
_HEADING = re.compile(
    rf"(?:^|(?<=[{_STOP}]))[ \t]*"
    rf"[^\s:\uff1a{_STOP}][^:\uff1a{_STOP}\n]{{0,60}}{_COLON}",
    re.MULTILINE,
)
"""What could be a heading: a few words before a colon, at the start of a sentence."""


class Segment(NamedTuple):
    """A stretch of the raw text that is marked the same throughout."""

    text: str
    labels: tuple[str, ...]
    """Labels whose evidence covers it; empty for plain text."""

    heading: bool = False
    hit: bool = False
    """Whether it is what was searched for."""


def cut_text(
    text: str, evidence: Mapping[str, Sequence[Span]], hits: Sequence[Span] = ()
) -> tuple[Segment, ...]:
    """Return `text` in pieces that are each marked for one set of labels.

    The pieces joined are the text. What a span covers beyond the end is left out.

    Examples
    --------
    >>> parts = cut_text("abcd", {"x": [Span(0, 2)], "y": [Span(1, 3)]})
    >>> [(part.text, part.labels) for part in parts]
    [('a', ('x',)), ('b', ('x', 'y')), ('c', ('y',)), ('d', ())]
    """
    marks = [
        (max(span.start, 0), min(span.end, len(text)), label)
        for label, spans in evidence.items()
        for span in spans
    ]
    heads = find_headings(text)
    others = (*heads, *hits)
    edges = {0, len(text), *(edge for one in others for edge in (one.start, one.end))}
    cuts = sorted(edges | {edge for start, end, _ in marks for edge in (start, end)})
    return tuple(
        Segment(
            text[start:end],
            tuple(dict.fromkeys(m[2] for m in marks if m[0] <= start and end <= m[1])),
            any(head.start <= start and end <= head.end for head in heads),
            any(hit.start <= start and end <= hit.end for hit in hits),
        )
        for start, end in pairwise(cuts)
        if start < end
    )


def find_hits(text: str, words: str) -> list[Span]:
    """Return where `words` stand in `text`, in any case; they are no pattern.

    Examples
    --------
    >>> [hit.data for hit in find_hits("Fluid. FLUID (?)", "fluid")]
    [[0, 5], [7, 12]]
    >>> [hit.data for hit in find_hits("Fluid. FLUID (?)", "(?)")]
    [[13, 16]]
    """
    if not words or len(words) > len(text):
        return []
    found = re.finditer(re.escape(words), text, re.IGNORECASE)
    return [Span(one.start(), one.end()) for one in found]


def find_headings(text: str) -> list[Span]:
    """Return where the headings of findings and impression stand, colon included."""
    return [
        Span(found.end() - len(found[0].lstrip()), found.end())
        for found in _HEADING.finditer(text)
        if _opens_section(text, found)
    ]


def _opens_section(text: str, found: re.Match[str]) -> bool:
    """Whether what stands before a colon would open a section, there where it is."""
    before = text[: found.start()]
    lead = ". " if before and not before.endswith("\n") else ""
    return split_sections(f"{lead}{found[0].strip()} x").headed
