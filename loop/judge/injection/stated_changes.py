"""Changes as a model states them, made into changes of the text, or refused by code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Final, NamedTuple

from loop.engines.rules.judging import GreenCategory
from loop.judge.injection.injection_bank import InjectionBank
from loop.judge.injection.report_lines import LinedReport, ReportLine
from loop.judge.injection.text_changes import (
    CLAUSE,
    NEGATED,
    SENTENCE,
    TextChange,
    apply_changes,
    tight_change,
    why_wrong,
)
from loop.prompts.outputs.report_changes import StatedChange, StatedRewrite

ADDED: Final = "added"
REPLACED: Final = "replaced"

OTHER_NUMBER: Final = "another number of changes"
NO_SENTENCE: Final = "a sentence that is not there"
TWICE: Final = "two changes in one sentence"
NOT_THERE: Final = "words that are not in their sentence"
SOMETHING_ELSE: Final = "report and changes do not agree"

_MOST_WAYS: Final = 512
_SPACE = re.compile(r"\s+")
_SAME_WIDTH: Final = str.maketrans(
    "\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}"
    "\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}\u00a0\n\t\r",
    "''\"\"    ",
)
"""One character for another, so that places stay: quotes, and white space."""


class PlacedChanges(NamedTuple):
    """What became of a stated rewrite."""

    candidate: str
    """The report with the changes made by code; empty where it is refused."""

    changes: tuple[TextChange, ...]
    problem: str
    """Why it is refused; empty where it is not. Never words of a report."""


class _StatedPlace(NamedTuple):
    """One way in which a stated change may be meant."""

    start: int
    end: int
    new: str


def number_sentences(report: LinedReport) -> str:
    """Return the sentences of a report, one a line, with their numbers from 0."""
    return "\n".join(
        f"{number}: {_SPACE.sub(' ', report.text[line.start : line.stop])}"
        for number, line in enumerate(report.lines)
    )


def place_changes(
    report: LinedReport,
    bank: InjectionBank,
    said: StatedRewrite,
    *,
    kind: str,
    number: int,
) -> PlacedChanges:
    """Return the changes that an answer states as changes of the report.

    The candidate is made from the report by the changes alone, and must be what the
    answer gives as the changed report, but for quotation marks and white space. So
    nothing else differs. A change that is not where it says, or two in one sentence,
    refuse the whole answer.

    Parameters
    ----------
    kind, number
        What was asked for: the kind of every change, and how many.
    """
    problem = _count_wrong(report, said.changes, number)
    if problem:
        return PlacedChanges("", (), problem)
    ways = [list(_places(report, one)) for one in said.changes]
    if not all(ways):
        return PlacedChanges("", (), NOT_THERE)
    wanted = _folded(said.report)
    for chosen in islice(product(*ways), _MOST_WAYS):
        changes = tuple(
            _as_change(report, bank, kind, place, error)
            for error, place in enumerate(chosen, 1)
        )
        try:
            candidate = apply_changes(report.text, changes)
        except ValueError:
            continue
        if _folded(candidate) != wanted:
            continue
        ordered = tuple(sorted(changes, key=lambda one: (one.start, one.end)))
        wrong = why_wrong(report.text, candidate, ordered, kind=kind, number=number)
        return PlacedChanges(
            "" if wrong else candidate, () if wrong else ordered, wrong
        )
    return PlacedChanges("", (), SOMETHING_ELSE)


def _count_wrong(
    report: LinedReport, changes: Sequence[StatedChange], number: int
) -> str:
    if len(changes) != number:
        return OTHER_NUMBER
    places = [one.sentence for one in changes]
    if any(place >= len(report.lines) for place in places):
        return NO_SENTENCE
    if len(set(places)) < len(places):
        return TWICE
    return ""


def _places(report: LinedReport, said: StatedChange) -> Iterator[_StatedPlace]:
    """Yield where a stated change may stand; nothing where its words do not."""
    line = report.lines[said.sentence]
    if not said.original.strip():
        yield from _added(report, line, said.modified.strip())
        return
    bounds = _bounds(report, said.sentence)
    region = report.text[bounds[0] : bounds[1]].translate(_SAME_WIDTH)
    wanted = said.original.translate(_SAME_WIDTH).strip()
    at = region.find(wanted)
    if at < 0 or region.find(wanted, at + 1) >= 0:
        return
    start = bounds[0] + at
    end = start + len(wanted)
    new = said.modified.strip()
    if new:
        yield _StatedPlace(start, end, new)
        return
    ends = tuple(dict.fromkeys((end, line.stop if end == line.end else end)))
    for last in ends:
        yield _without_gap(report.text, start, last)
    for last in ends:
        # The sentence before may be left out, too, with the white space between them.
        yield _StatedPlace(start, last, "")


def _bounds(report: LinedReport, number: int) -> tuple[int, int]:
    """Return where a sentence begins and ends, with its number and its full stop."""
    line, following = report.lines[number], report.lines[number + 1 : number + 2]
    return line.begin, following[0].begin if following else len(report.text)


def _added(report: LinedReport, line: ReportLine, new: str) -> Iterator[_StatedPlace]:
    """Yield where a sentence of its own may stand beside another one, and in it."""
    if new:
        yield _StatedPlace(line.stop, line.stop, f" {new}")
        yield _StatedPlace(line.end, line.end, f" {new}")
        yield _StatedPlace(line.start, line.start, f"{new} ")


def _without_gap(text: str, start: int, end: int) -> _StatedPlace:
    """Return a removal with the white space that would stay twice."""
    before, after = text[:start], text[end:]
    if not after.strip():
        return _StatedPlace(
            len(before.rstrip()), end + len(after) - len(after.lstrip()), ""
        )
    gap = len(after) - len(after.lstrip())
    if gap and (not before or before[-1].isspace()):
        return _StatedPlace(start, end + gap, "")
    if not gap and before and before[-1] == " " and not after[:1].isalnum():
        return _StatedPlace(start - 1, end, "")
    return _StatedPlace(start, end, "")


def _as_change(
    report: LinedReport, bank: InjectionBank, kind: str, place: _StatedPlace, error: int
) -> TextChange:
    old = report.text[place.start : place.end]
    if not place.new:
        tag = SENTENCE if _is_sentence(report, place) else CLAUSE
    elif not old:
        tag = ADDED
    elif kind == GreenCategory.OMISSION and _denies(bank, old, place.new):
        tag = NEGATED
    else:
        tag = REPLACED
    found = tight_change(kind, tag, report.text, (place.start, place.end), place.new)
    if kind == GreenCategory.OMISSION and tag == REPLACED and not found.after.strip():
        tag = CLAUSE
    return TextChange(
        kind=kind,
        tag=tag,
        start=found.start,
        end=found.end,
        before=found.before,
        after=found.after,
        error=error,
    )


def _is_sentence(report: LinedReport, place: _StatedPlace) -> bool:
    return any(
        place.start <= line.start and line.end <= place.end for line in report.lines
    )


_DENIES = re.compile(
    r"\b(?:no|not|without|negative|free|absent|never)\b", re.IGNORECASE
)


def _denies(bank: InjectionBank, old: str, new: str) -> bool:
    """Whether words call normal, or deny, what the words before them did not."""
    return any(
        found.search(new) and not found.search(old)
        for found in (_DENIES, bank.patterns.normal)
    )


def _folded(text: str) -> str:
    """Return a text without what a model may write otherwise: quotes, white space."""
    return _SPACE.sub(" ", text.translate(_SAME_WIDTH)).strip()
