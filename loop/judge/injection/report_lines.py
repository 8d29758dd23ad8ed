"""A report as injection sees it: its sentences, what each says, what hangs together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from loop.engines.rules.attributes import Attributes
from loop.engines.rules.report_findings import FindingReader, ReportFinding
from loop.judge.injection.injection_bank import InjectionBank

_MARKER = re.compile(r"\d{1,2}")
_INLINE = re.compile(r"(\d{1,2})[.)]\s+(?=\S)")
_BULLET = re.compile(r"[-*•]\s+")
_GLUED = re.compile(r"\s\d{1,2}$")
_LETTER = re.compile(r"[^\W\d_]")
JOINED = re.compile(r"[,;:/]|\b(?:and|or|but|with|while|although)\b", re.IGNORECASE)
"""Finds that a sentence joins several things."""

DANGLING = re.compile(r"(?:^|\W)(?:of|in|the|and|or|with|versus|vs|a|an|to|by)$", re.I)
"""Finds that a text ends in the middle."""

WORD = re.compile(r"[^\W\d_]+")

_OF_ANY_DEGREE = "severity"
"""The kind of error for which a slight finding will do."""

_STOPS = ".!;"
_FEWEST = 3
"""Words below which a sentence that says nothing only goes on: "Increased."."""

_LONG = re.compile(r"[^\W\d_]{5,}")
_STEM = 6
"""Letters by which two words are the same: "opacity", "opacities"."""

_SIZE = re.compile(r"\d+(?:\.\d+)?(?: x \d+(?:\.\d+)?)* ?[cm]m\b")

_ALIKE = 3
"""Words that two sentences share where they may be of the same thing."""

_ANATOMY = frozenset(
    {"cardia", "pulmon", "pleura", "medias", "right", "lower", "upper", "heart"}
)
"""Stems that are shared without speaking of the same finding."""


class ListNumber(NamedTuple):
    """The number of an item in a list."""

    value: int
    start: int
    end: int
    """Where its digits end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportLine:
    """One sentence of a report."""

    start: int
    """Where its words begin, after a number or bullet."""

    end: int
    """Where they end, without the full stop."""

    stop: int
    """Where it ends, with the full stop."""

    begin: int
    """Where it begins, with its number or bullet."""

    text: str
    findings: tuple[ReportFinding, ...]
    denied: frozenset[str]
    number: ListNumber | None
    listed: bool
    """Whether it stands in a numbered list."""

    odd: bool
    """Whether the number of the next item is glued to it."""

    leads: bool
    """Whether it begins with a word for something said before."""

    refers: bool
    """Whether it speaks of something said elsewhere."""

    advises: bool
    compares: bool
    moves: bool
    """Whether it says that something is not as it was."""

    normal: bool
    """Whether it calls something normal."""


ReadFinding = tuple[str, bool, Attributes, frozenset[str]]
"""A finding as read, without its place: key, certain, attributes, words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinedReport:
    """A report, its sentences, and what it says as a whole."""

    text: str
    lines: tuple[ReportLine, ...]
    read: Counter[ReadFinding]
    denied: frozenset[str]

    @property
    def stated(self) -> frozenset[str]:
        """Findings that it states or leaves open."""
        return frozenset(one[0] for one in self.read)


class RelatedPlaces(NamedTuple):
    """Where a report speaks of one finding."""

    same: tuple[tuple[int, ReportFinding], ...]
    """Sentences and findings that are the same thing, the one asked for included."""

    opposite: bool
    """Whether the like is on the other side, too."""

    unclear: frozenset[int]
    """Sentences that may speak of it, without it being clear."""

    @property
    def lines(self) -> tuple[int, ...]:
        """Sentences that speak of it, in order."""
        return tuple(sorted({number for number, _ in self.same}))


def read_findings(reader: FindingReader, text: str) -> Counter[ReadFinding]:
    """Return all findings of a text, each as often as there are such."""
    return Counter(
        (one.key, one.certain, one.said, one.words)
        for one in reader.read(text).findings
    )


def line_report(reader: FindingReader, bank: InjectionBank, text: str) -> LinedReport:
    """Return a report as injection sees it.

    Raises
    ------
    EngineError
        It is not in the reader's language, or holds nothing to read.
    """
    whole = reader.read(text)
    return LinedReport(
        text=text,
        lines=tuple(_lines(reader, bank, text)),
        read=Counter(
            (one.key, one.certain, one.said, one.words) for one in whole.findings
        ),
        denied=frozenset(whole.denied),
    )


def _lines(
    reader: FindingReader, bank: InjectionBank, text: str
) -> Iterator[ReportLine]:
    number: ListNumber | None = None
    listed = False
    for one in reader.read_sentences(text):
        raw = text[one.start : one.end]
        start = one.start + len(raw) - len(raw.lstrip())
        end = one.start + len(raw.rstrip())
        words = text[start:end]
        if _MARKER.fullmatch(words) and text[end : end + 1] == ".":
            number, listed = ListNumber(int(words), start, end), True
            continue
        if not _LETTER.search(words):
            continue
        begin = number.start if number else start
        inline = None if number else _INLINE.match(text, start, end)
        if inline:
            number, listed = ListNumber(int(inline[1]), start, inline.end(1)), True
            start = inline.end()
        elif bullet := _BULLET.match(text, start, end):
            start = bullet.end()
        words = text[start:end]
        stop = end
        while stop < len(text) and text[stop] in _STOPS:
            stop += 1
        told = bank.look_at(words)
        says = bool(one.findings or one.denied or told.normal)
        fragment = len(words.split()) < _FEWEST and not says
        leads = fragment or told.leads or one.continues
        yield ReportLine(
            start=start,
            end=end,
            stop=stop,
            begin=begin,
            text=words,
            findings=one.findings,
            denied=one.denied,
            number=number,
            listed=listed,
            odd=bool(_GLUED.search(words)),
            leads=leads,
            refers=leads or told.refers,
            advises=told.advises,
            compares=told.compares,
            moves=told.moves,
            normal=told.normal,
        )
        number = None


def find_related(
    report: LinedReport, bank: InjectionBank, at: int, finding: ReportFinding
) -> RelatedPlaces:
    """Return where else a report speaks of a finding.

    What has the same name and can be the same thing is; what has a name that may be
    of the same thing is where both have a side, and else it is not clear. Nor is a
    sentence clear that has a word of it and neither states nor denies the like, or
    that has the same size, or reports something without a name in much the same words.
    """
    kin = bank.kin(finding.key)
    same = [(at, finding)]
    unclear: set[int] = set()
    others: set[int] = set()
    opposite = False
    for number, line in enumerate(report.lines):
        for one in line.findings:
            if one is finding or one.key not in kin:
                continue
            sides = finding.said.side, one.said.side
            if all(sides) and not sides[0] & sides[1]:
                opposite = True
                others.add(number)
            elif not finding.said.may_be(one.said):
                others.add(number)
            elif one.key == finding.key or number == at or all(sides):
                same.append((number, one))
            else:
                unclear.add(number)
    same.sort(key=lambda each: each[1].span)
    own = {number for number, _ in same}
    stems = _stems(report.text[finding.span.start : finding.span.end])
    around = _stems(report.lines[at].text)
    sizes = set(_SIZE.findall(report.lines[at].text))
    for number, line in enumerate(report.lines):
        if number in own or number in others or line.denied & kin:
            continue
        folded = line.text.casefold()
        unnamed = any(not one.key for one in line.findings)
        alike = unnamed and len(around & _stems(line.text)) >= _ALIKE
        alike = alike or not sizes.isdisjoint(_SIZE.findall(line.text))
        if alike or any(stem in folded for stem in stems):
            unclear.add(number)
    return RelatedPlaces(tuple(same), opposite, frozenset(unclear))


def find_targets(
    report: LinedReport, bank: InjectionBank, kind: str
) -> Iterator[tuple[int, ReportFinding, RelatedPlaces]]:
    """Yield stated findings that matter for a kind, once each, and their places."""
    matters = bank.matters[kind]  # type: ignore[index]
    look = bank.patterns
    seen: set[int] = set()
    for at, line in enumerate(report.lines):
        for finding in line.findings:
            if not finding.certain or finding.key not in matters:
                continue
            if id(finding) in seen or line.odd:
                continue
            related = find_related(report, bank, at, finding)
            seen.update(id(one) for _, one in related.same)
            places = [report.lines[number] for number in related.lines]
            if any(one.odd or look.benign.search(one.text) for one in places):
                continue
            if kind != _OF_ANY_DEGREE and any(
                look.slight.search(one.text) for one in places
            ):
                continue
            yield at, finding, related


def _stems(text: str) -> set[str]:
    """Return the beginnings of the long words of a text."""
    return {word[:_STEM] for word in _LONG.findall(text.casefold())} - _ANATOMY


def keys_of(places: Sequence[tuple[int, ReportFinding]]) -> frozenset[str]:
    """Return the names of the findings at some places."""
    return frozenset(one.key for _, one in places)
