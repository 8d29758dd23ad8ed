"""Rewriting that says the same: other words, another order, another form of numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from itertools import islice

from loop.judge.injection.chance import Chance
from loop.judge.injection.injection_bank import (
    InjectionBank,
    Pairs,
    Rewrite,
    phrase_pattern,
)
from loop.judge.injection.report_lines import LinedReport, ReportLine
from loop.judge.injection.text_changes import (
    EditOption,
    TextChange,
    article_before,
    tight_change,
)

_MOST_OPTIONS = 100
"""Of one kind and report."""

_FEWEST_WORDS = 3
"""Of a sentence that changes places with its neighbour."""

_SIZE = re.compile(
    r"(?<![\d.x-])(?<!x )(?<!by )\b(\d+(?:\.\d)?)( ?)(cm|mm)\b(?! ?(?:x|by|in|\d|-))",
    re.IGNORECASE,
)
_TEN = 10.0


class HarmlessKind(StrEnum):
    """What is rewritten."""

    SYNONYM = "synonym"
    ABBREVIATION = "abbreviation"
    ORDER = "order"
    STYLE = "style"
    NUMBER_FORMAT = "number_format"


class HarmlessRewriter:
    """Finds places where a report can be worded otherwise and say the same."""

    def __init__(self, bank: InjectionBank) -> None:
        self._bank = bank
        self._make = {
            HarmlessKind.SYNONYM: self._synonyms,
            HarmlessKind.ABBREVIATION: self._abbreviations,
            HarmlessKind.ORDER: self._orders,
            HarmlessKind.STYLE: self._styles,
            HarmlessKind.NUMBER_FORMAT: self._numbers,
        }

    def options(
        self, kind: str, report: LinedReport, chance: Chance
    ) -> Iterator[EditOption]:
        """Yield the places that a report has for a kind of rewriting, as drawn."""
        found = list(islice(self._make[HarmlessKind(kind)](report), _MOST_OPTIONS))
        yield from sorted(found, key=lambda one: chance.rank(one.name))

    @cached_property
    def _other_words(self) -> tuple[re.Pattern[str], Mapping[str, str]]:
        return _table(self._bank.synonyms)

    @cached_property
    def _short_words(self) -> tuple[re.Pattern[str], Mapping[str, str]]:
        return _table(self._bank.abbreviations)

    @cached_property
    def _lists(self) -> re.Pattern[str]:
        item = phrase_pattern(self._bank.lists).pattern
        return re.compile(rf"(\b(?:no|without) )({item})( or )({item})", re.IGNORECASE)

    def _synonyms(self, report: LinedReport) -> Iterator[EditOption]:
        yield from self._worded(HarmlessKind.SYNONYM, report, *self._other_words)

    def _abbreviations(self, report: LinedReport) -> Iterator[EditOption]:
        found, table = self._short_words
        yield from self._worded(HarmlessKind.ABBREVIATION, report, found, table)

    def _worded(
        self,
        kind: HarmlessKind,
        report: LinedReport,
        found: re.Pattern[str],
        table: Mapping[str, str],
    ) -> Iterator[EditOption]:
        for at, line in enumerate(report.lines):
            for match in found.finditer(line.text):
                old = match[0]
                new = table[" ".join(old.casefold().split())]
                if old.isupper() and not new.isupper() and line.text.isupper():
                    new = new.upper()
                elif not match.start() and line.text[:1].isupper():
                    new = new[:1].upper() + new[1:]
                if old == new or _bad_article(line.text[: match.start()], old, new):
                    continue
                change = TextChange(
                    kind=kind,
                    tag="words",
                    start=line.start + match.start(),
                    end=line.start + match.end(),
                    before=old,
                    after=new,
                )
                yield EditOption((change,), frozenset({at}))

    def _orders(self, report: LinedReport) -> Iterator[EditOption]:
        lines, text = report.lines, report.text
        for at, line in enumerate(lines):
            for match in self._lists.finditer(line.text):
                new = f"{match[1]}{match[4]}{match[3]}{match[2]}"
                if match[2].casefold() == match[4].casefold():
                    continue
                change = tight_change(
                    HarmlessKind.ORDER,
                    "list",
                    text,
                    (line.start + match.start(), line.start + match.end()),
                    new,
                )
                yield EditOption((change,), frozenset({at}))
        for at in range(len(lines) - 1):
            one, other = lines[at], lines[at + 1]
            third = lines[at + 2 : at + 3]
            between = text[one.stop : other.begin]
            if (
                all(map(_movable, (one, other)))
                and between == " "
                and text[one.end : one.stop] == text[other.end : other.stop] == "."
                and not any(each.refers for each in third)
                and one.text != other.text
            ):
                first = text[one.start : one.stop]
                second = text[other.start : other.stop]
                change = TextChange(
                    kind=HarmlessKind.ORDER,
                    tag="sentences",
                    start=one.start,
                    end=other.stop,
                    before=text[one.start : other.stop],
                    after=f"{second} {first}",
                )
                yield EditOption((change,), frozenset({at, at + 1}))

    def _styles(self, report: LinedReport) -> Iterator[EditOption]:
        for at, line in enumerate(report.lines):
            if line.odd:
                continue
            for one in self._bank.style:
                yield from self._rewritten(HarmlessKind.STYLE, report, at, one)

    def _numbers(self, report: LinedReport) -> Iterator[EditOption]:
        for at, line in enumerate(report.lines):
            if line.odd or not _has_number(line.text):
                continue
            for one in self._bank.numbers:
                yield from self._rewritten(HarmlessKind.NUMBER_FORMAT, report, at, one)
            for match in _SIZE.finditer(line.text):
                new = _other_unit(match)
                if new is not None:
                    change = TextChange(
                        kind=HarmlessKind.NUMBER_FORMAT,
                        tag="unit",
                        start=line.start + match.start(),
                        end=line.start + match.end(),
                        before=match[0],
                        after=new,
                    )
                    yield EditOption((change,), frozenset({at}))

    @staticmethod
    def _rewritten(
        kind: HarmlessKind, report: LinedReport, at: int, rewrite: Rewrite
    ) -> Iterator[EditOption]:
        line = report.lines[at]
        for match in rewrite.found.finditer(line.text):
            written = rewrite.write(match)
            if written is None:
                continue
            if not match.start() and line.text[:1].isupper():
                written = written[:1].upper() + written[1:]
            if written == match[0]:
                continue
            place = (line.start + match.start(), line.start + match.end())
            change = tight_change(kind, "pattern", report.text, place, written)
            yield EditOption((change,), frozenset({at}))


def _table(pairs: Pairs) -> tuple[re.Pattern[str], Mapping[str, str]]:
    return phrase_pattern(one for one, _ in pairs), {
        " ".join(one.casefold().split()): other for one, other in pairs
    }


def _movable(line: ReportLine) -> bool:
    """Whether a sentence can stand elsewhere in its paragraph."""
    return (
        not line.listed
        and not line.refers
        and not line.advises
        and not line.odd
        and line.begin == line.start
        and line.text[:1].isupper()
        and ":" not in line.text
        and len(line.text.split()) >= _FEWEST_WORDS
    )


def _bad_article(before: str, old: str, new: str) -> bool:
    """Whether the article before a word would no longer fit."""
    last = before.split()[-1:] if before.endswith(" ") else []
    if not last or last[0].casefold() not in ("a", "an"):
        return False
    return article_before(old) != article_before(new)


def _has_number(text: str) -> bool:
    return any(map(str.isdigit, text)) or bool(_SPELLED.search(text))


_SPELLED = re.compile(
    r"\b(?:two|three|third|fourth|fifth|sixth|seventh|eighth|ninth)\b", re.IGNORECASE
)


def _other_unit(match: re.Match[str]) -> str | None:
    """Return a size in the other unit, where that is as exact."""
    number, space, unit = match[1], match[2] or " ", match[3].casefold()
    if unit == "cm":
        value = float(number) * _TEN
        return f"{value:.0f}{space}mm"
    if "." in number or float(number) < _TEN:
        return None
    value = float(number) / _TEN
    return f"{value:.1f}{space}cm" if value % 1 else f"{value:.0f}{space}cm"
