"""Omissions: how a finding goes, wherever it is said, and leaves no trace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from loop.engines.rules.judging import GreenCategory
from loop.engines.rules.report_findings import ReportFinding
from loop.judge.injection.injection_bank import InjectionBank
from loop.judge.injection.report_lines import (
    DANGLING,
    JOINED,
    WORD,
    LinedReport,
    RelatedPlaces,
    ReportLine,
    find_targets,
    keys_of,
)
from loop.judge.injection.text_changes import (
    CLAUSE,
    NEGATED,
    RENUMBERED,
    SENTENCE,
    EditOption,
    TextChange,
)

_NEARBY = 2
"""Sentences after one that goes, which must not speak of it."""

_SPLIT = re.compile(r",?\s+(?:with|and|along with|as well as)\s+", re.IGNORECASE)
_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|may|which|that|appears?|seen|noted)\b",
    re.IGNORECASE,
)
_PLURAL = re.compile(r"\b(?:are|were|have)\b", re.IGNORECASE)


class _Removal(NamedTuple):
    """What goes of a sentence, and what its list then needs."""

    changes: tuple[TextChange, ...]
    lines: frozenset[int]


class OmissionWriter:
    """Takes findings out of reports.

    Parameters
    ----------
    bank
        Which findings matter, and how each is denied.
    negated
        Whether an omission denies the finding instead of leaving it out.
    """

    def __init__(self, bank: InjectionBank, *, negated: bool) -> None:
        self._bank = bank
        self._negated = negated

    def options(self, report: LinedReport) -> Iterator[EditOption]:
        """Yield the findings that can be taken out of a report."""
        for _, finding, related in find_targets(
            report, self._bank, GreenCategory.OMISSION
        ):
            sides = {one.said.side for _, one in related.same if one.said.side}
            if related.unclear or len(sides) > 1:
                # One of the mentions may be of more than this finding.
                continue
            if self._negated:
                found = self._denied_instead(report, finding, related)
            else:
                found = self._left_out(report, related)
            if found is not None:
                keys = frozenset().union(*map(self._bank.kin, keys_of(related.same)))
                yield EditOption(found.changes, found.lines, keys)

    def _left_out(self, report: LinedReport, related: RelatedPlaces) -> _Removal | None:
        """Return how every mention of a finding goes; None if that leaves a trace."""
        group = {id(one) for _, one in related.same}
        changes: dict[int, TextChange] = {}
        lines: set[int] = set()
        for number in related.lines:
            if number in lines:
                continue
            found = self._take_out(report, number, group, related)
            if found is None:
                return None
            changes |= {one.start: one for one in found.changes}
            lines |= found.lines
        rest = [line for n, line in enumerate(report.lines) if n not in lines]
        if any(line.advises for line in rest):
            return None
        return _Removal(tuple(changes.values()), frozenset(lines))

    def _take_out(
        self, report: LinedReport, at: int, group: set[int], related: RelatedPlaces
    ) -> _Removal | None:
        line = report.lines[at]
        if line.leads:
            return None
        if not _says_only(line, group):
            return self._without_clause(report, at, group)
        kin = frozenset().union(*map(self._bank.kin, keys_of(related.same)))
        last = at
        for number in range(at + 1, len(report.lines)):
            further = report.lines[number]
            if further.number or not (further.leads or further.advises):
                break
            told = any(one.key not in kin for one in further.findings)
            if told or further.odd or further.denied or further.normal:
                return None
            last = number
        nearby = report.lines[last + 1 : last + 1 + _NEARBY]
        if any(one.refers for one in nearby):
            return None
        return _without_sentences(report, at, last)

    def _without_clause(
        self, report: LinedReport, at: int, group: set[int]
    ) -> _Removal | None:
        """Take out the last part of a sentence: "with ..." or "and ..."."""
        line = report.lines[at]
        following = report.lines[at + 1 :][:1]
        if any(one.refers or one.advises for one in following):
            return None
        mine = [one for one in line.findings if id(one) in group]
        first = min(one.span.start for one in mine) - line.start
        cuts = [cut for cut in _SPLIT.finditer(line.text) if cut.end() <= first]
        if not cuts:
            return None
        cut = cuts[-1]
        gone, kept = line.text[cut.end() :], line.text[: cut.start()]
        others = [one for one in line.findings if id(one) not in group]
        joins = "with" not in cut[0].casefold()
        if (
            any(one.span.end - line.start > cut.start() for one in others)
            or _VERB.search(gone)
            or self._bank.patterns.normal.search(gone)
            or JOINED.search(gone)
            or DANGLING.search(kept)
            or len(kept.split()) < 2
            or (joins and (_PLURAL.search(line.text) or "," in kept))
        ):
            return None
        change = TextChange(
            kind=GreenCategory.OMISSION,
            tag=CLAUSE,
            start=line.start + cut.start(),
            end=line.end,
            before=line.text[cut.start() :],
            after="",
        )
        return _Removal((change,), frozenset({at}))

    def _denied_instead(
        self, report: LinedReport, finding: ReportFinding, related: RelatedPlaces
    ) -> _Removal | None:
        """Return the finding's one sentence as a denial of it."""
        denial = self._bank.denials.get(finding.key)
        numbers = related.lines
        if denial is None or len(numbers) != 1 or related.opposite:
            return None
        (at,) = numbers
        line = report.lines[at]
        group = {id(one) for _, one in related.same}
        following = report.lines[at + 1 :][:1]
        if (
            line.leads
            or not _says_only(line, group)
            or any(one.leads for one in following)
            or any(one.advises for one in report.lines)
        ):
            return None
        change = TextChange(
            kind=GreenCategory.OMISSION,
            tag=NEGATED,
            start=line.start,
            end=line.end,
            before=line.text,
            after=denial,
        )
        return _Removal((change,), frozenset({at}))


def _without_sentences(report: LinedReport, first: int, last: int) -> _Removal | None:
    """Return how sentences go; None where an empty heading or list would stay."""
    text, lines = report.text, report.lines
    one = lines[first]
    item = next((n for n in range(first, -1, -1) if lines[n].number is not None), None)
    whole_item = (
        one.number is not None
        and item == first
        and (last + 1 == len(lines) or lines[last + 1].number is not None)
    )
    if one.listed and any(line.odd for line in lines):
        return None
    starts = one.begin if whole_item or one.number is None else one.start
    stops = lines[last].stop
    nxt = stops + len(text[stops:]) - len(text[stops:].lstrip())
    behind = text[stops:nxt]
    back = len(text[:starts].rstrip())
    ahead = text[back:starts]
    heading = text[:back].endswith(":")
    if nxt == len(text) or "\n" in behind:
        if heading:
            return None
        span = (back, stops) if ahead else (starts, nxt)
    else:
        span = (starts, nxt)
    rest = text[: span[0]] + text[span[1] :]
    if not WORD.search(rest):
        return None
    change = TextChange(
        kind=GreenCategory.OMISSION,
        tag=SENTENCE,
        start=span[0],
        end=span[1],
        before=text[span[0] : span[1]],
        after="",
    )
    changes = [change]
    if whole_item:
        renumbered = _renumbered(report, last)
        if renumbered is None:
            return None
        changes += renumbered
    return _Removal(tuple(changes), frozenset(range(first, last + 1)))


def _renumbered(report: LinedReport, last: int) -> list[TextChange] | None:
    """Return the numbers of the items after one that goes, each one less."""
    changes = []
    before = None
    for line in report.lines[: last + 1]:
        if line.number is not None:
            before = line.number.value
    for line in report.lines[last + 1 :]:
        number = line.number
        if number is None:
            continue
        if number.value == 1:
            break
        if before is None or number.value != before + 1:
            return None
        before = number.value
        changes.append(
            TextChange(
                kind=GreenCategory.OMISSION,
                tag=RENUMBERED,
                start=number.start,
                end=number.end,
                before=report.text[number.start : number.end],
                after=str(number.value - 1),
            )
        )
    return changes


def _says_only(line: ReportLine, group: set[int]) -> bool:
    """Whether a sentence says nothing but one finding."""
    alone = all(id(one) in group for one in line.findings)
    return alone and not line.denied and not line.normal
