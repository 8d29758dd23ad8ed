"""Which characters of a report are read, and which of them decide."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from loop.engines.rules.cues import Cues

LONGEST = 1500
"""Characters after which a sentence without an end is cut at a space."""

SHORT_LINE = 50
"""Characters up to which a line may be an item of a list rather than wrapped prose."""

_SHORT_ANSWER = r"\s+(?i:no|none|nil|yes|negative|positive)\b"

# A full stop ends a sentence before white space, but not in "1.5 cm" or "vs."; also
# between a small letter and a capital ("effusion.No"). So does a question mark after a
# word that is not answered at once, and none before one ("? effusion"). Bullets, boxes
# and numbered items begin one of their own. One leading character class lets the search
# skip all other text.
_ENDS = (
    r"(?<=[.!;])(?=\s|$)(?<!\bvs.)(?<!\b[RrLl]t.)(?<!\bDr.)"
    rf"|(?<=[^\W\d_]\?)(?=\s|$)(?!{_SHORT_ANSWER})"
    r"|(?<=[a-z]{2}\.)(?=[A-Z][a-z])|(?<=[。；！？])|(?<=\n)\s*\n"
    r"|(?<=\n)(?=\s*(?:[-*•☐☒☑□■]|[\[(] ?[xXv✓]?[\])]|\d{1,2}[.)、](?!\d)))"
)
_BOUNDARY = re.compile(rf"[.!?;。；！？\n](?:{_ENDS})")
_BOUNDARY_OR_ITEM = re.compile(
    rf"[.!?;。；！？\n \t](?:{_ENDS}"
    r"|(?<=\s)(?=\d{1,2}[)、]\s?\w)|(?<=\s)(?=\(\d{1,2}\)\s))"
)
_BEFORE = re.compile(r"[\n.!?;。；\s](?:(?<=[\n.!?;。；])|(?=[A-Z]{4}))")
"""What a heading may follow, if it does not begin the text."""

_NEW_LINE = re.compile(r"\n[ \t]*(?=[A-Z][a-z]|[^\n:|\t]{2,40}[:|\t])")
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
_FULL_STOP = re.compile(r"[.。](?=\s)")
_UNREAD = {
    "ignored": _BLANK_LINE,
    "brief": re.compile(rf"[.。][ \t\r]*\n|{_BLANK_LINE.pattern}"),
}
"""What ends a section that is not read, if no heading does."""


class ReportSection(NamedTuple):
    """A stretch of text under one heading."""

    start: int
    end: int
    decisive: bool
    """Whether it wins over other sections where they disagree."""


class SectionFinder:
    """Finds headings of the given cue files."""

    def __init__(self, cues: Sequence[Cues]) -> None:
        self._kind: dict[str, str] = {}
        for one in cues:
            for kind in ("plain", "decisive", "brief", "ignored"):
                for heading in getattr(one.sections, kind):
                    self._kind[heading.lower()] = kind
        # By first letter, longest first: the search then tries few names at a place.
        rests: dict[str, list[str]] = {}
        for name in sorted(self._kind, key=len, reverse=True):
            rest = re.escape(name[1:]).replace(r"\ ", r"\s+")
            rests.setdefault(re.escape(name[0]), []).append(rest)
        either = "|".join(f"{one}(?:{'|'.join(more)})" for one, more in rests.items())
        first = f"[{''.join(rests)}]" if rests else "(?!)"
        self._heading = re.compile(
            rf"[ \t]*(?:\d+[.)]\s*)?(?={first})({either})"
            r"[ \t]*(?:[:：]|(?<=(?-i:[A-Z]))\r?\n)",
            re.IGNORECASE,
        )

    def find(self, text: str) -> list[ReportSection]:
        """Return the sections to read; the whole text when it has no heading."""
        if ":" not in text and "：" not in text and "\n" not in text:
            return [ReportSection(0, len(text), False)]
        headings = self._headings(text)
        if not headings:
            return [ReportSection(0, len(text), False)]
        sections = [ReportSection(0, headings[0].start(), False)]
        ends = [match.start() for match in headings[1:]] + [len(text)]
        for heading, end in zip(headings, ends, strict=True):
            kind = self._kind[" ".join(heading.group(1).lower().split())]
            start = heading.end()
            if kind in _UNREAD:
                sections += self._after(_UNREAD[kind], text, start, end)
            else:
                sections.append(ReportSection(start, end, kind == "decisive"))
        if not any(text[one.start : one.end].strip() for one in sections):
            # A report has a body: it follows the first sentence of the last section.
            sections += self._after(_FULL_STOP, text, headings[-1].end(), len(text))
        return sections

    def _headings(self, text: str) -> list[re.Match[str]]:
        """Return what stands as a heading, in order.

        A heading is looked for only where one may begin: a search of every place takes
        twice the time.
        """
        found: list[re.Match[str]] = []
        match, end = self._heading.match, 0
        for place in chain((0,), (one.end() for one in _BEFORE.finditer(text))):
            if place >= end and (heading := match(text, place)):
                found.append(heading)
                end = heading.end()
        return found

    @staticmethod
    def _after(
        last: re.Pattern[str], text: str, start: int, end: int
    ) -> Iterator[ReportSection]:
        """Yield what follows an unread paragraph before the next heading."""
        for stop in last.finditer(text, start, end):
            if text[start : stop.start() + 1].strip():
                yield ReportSection(stop.end(), end, False)
                return


def sentences(text: str, start: int, end: int) -> list[tuple[int, str]]:
    """Return ``(offset, sentence)`` for the characters `start` to `end` of `text`."""
    # Looked for in this stretch only: a text may have a section at every word.
    itemised = text.find(")", start, end) >= 0 or text.find("、", start, end) >= 0
    boundary = _BOUNDARY_OR_ITEM if itemised else _BOUNDARY
    split = _lines if text.find("\n", start, end) >= 0 else _pieces
    found: list[tuple[int, str]] = []
    for match in boundary.finditer(text, start, end):
        stop = match.start()
        if text[stop] in "?？":
            # It belongs to what is asked.
            stop += 1
        if stop > start:
            split(text, start, stop, found)
        start = match.end()
    if end > start:
        split(text, start, end, found)
    return found


def _lines(text: str, start: int, end: int, found: list[tuple[int, str]]) -> None:
    """Split where a short line is followed by a capital: a list without full stops.

    Lines that were wrapped are long, or go on in lower case.
    """
    if text.find("\n", start, end) >= 0:
        for match in _NEW_LINE.finditer(text, start, end):
            stop = match.start()
            line_start = max(start, text.rfind("\n", start, stop) + 1)
            if stop - line_start <= SHORT_LINE and text[stop - 1] != ",":
                _pieces(text, start, stop, found)
                start = match.end()
    _pieces(text, start, end, found)


def _pieces(text: str, start: int, end: int, found: list[tuple[int, str]]) -> None:
    """Cut an endless sentence at spaces so that time stays linear in its length."""
    while end - start > LONGEST:
        cut = text.rfind(" ", start + 1, start + LONGEST)
        cut = cut if cut > start else start + LONGEST
        found.append((start, text[start:cut]))
        start = cut
    found.append((start, text[start:end]))
