"""False findings: where a report has room for one, and what gives way to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from loop.engines.rules.judging import GreenCategory
from loop.judge.injection.chance import Chance
from loop.judge.injection.injection_bank import (
    FalseFinding,
    InjectionBank,
    ModalityBank,
)
from loop.judge.injection.report_lines import JOINED, LinedReport
from loop.judge.injection.text_changes import EditOption, TextChange, tight_change

_MOST_AGAINST = 2
"""Sentences that give way to one false finding: a denial, and "no acute disease"."""

_MEMO = 50_000
"""Distinct sentences whose topics are remembered."""

_SUMMARIES = ("acute", "calm")
"""Topics of a sentence that says that there is nothing at all."""

_SHORT_NORMAL = 8
"""Words up to which a normal sentence may be of one topic only."""

_DENIAL = re.compile(
    r"(?P<head>(?:There (?:is|are) no |No )(?:evidence of |evidence for )?)"
    r"(?P<items>.+?)"
    r"(?P<tail> (?:is|are) (?:seen|noted|identified|present|visualized)| identified"
    r"| seen)?$",
    re.IGNORECASE,
)
_ITEMS = re.compile(r",\s*(?:or|nor)\s+|,\s*|\s+(?:or|nor)\s+", re.IGNORECASE)


class _Room(NamedTuple):
    """Where a false finding can stand."""

    main: int | None
    """The sentence that gives way to it."""

    rest: str
    """What stays of that sentence."""

    after: int | None
    """The sentence that it follows, where none gives way."""

    summary: int | None
    """The sentence by which there is nothing acute."""

    @property
    def lines(self) -> frozenset[int]:
        """All of them."""
        places = (self.main, self.after, self.summary)
        return frozenset(one for one in places if one is not None)

    def write(
        self, report: LinedReport, sentence: str, summary: str
    ) -> tuple[TextChange, ...] | None:
        """Return the changes; None where there is no summary and one is needed."""
        kind, changes = GreenCategory.FALSE_FINDING, []
        if self.main is not None:
            line = report.lines[self.main]
            new = f"{sentence} {self.rest}" if self.rest else sentence.rstrip(".")
            span = (line.start, line.end)
            tag = "out_of_list" if self.rest else "instead_of_normal"
            changes.append(tight_change(kind, tag, report.text, span, new))
        elif self.after is not None:
            at = report.lines[self.after].stop
            changes.append(
                TextChange(
                    kind=kind,
                    tag="added",
                    start=at,
                    end=at,
                    before="",
                    after=f" {sentence}",
                )
            )
        if self.summary is not None:
            if not summary:
                return None
            line = report.lines[self.summary]
            new = summary[:1].upper() + summary[1:]
            span = (line.start, line.end)
            changes.append(tight_change(kind, "summary", report.text, span, new))
        return tuple(changes)


class FalseFindingWriter:
    """Finds room for false findings.

    Parameters
    ----------
    bank, modality
        What is written.
    """

    def __init__(self, bank: InjectionBank, modality: ModalityBank) -> None:
        self._bank = bank
        self._modality = modality
        self._kin = [
            frozenset().union(*map(bank.kin, one.keys))
            for one in modality.false_findings
        ]
        self._fillings = [
            list(_fillings(one, modality)) for one in modality.false_findings
        ]
        self._known: dict[str, frozenset[str]] = {}

    def options(self, report: LinedReport, chance: Chance) -> Iterator[EditOption]:
        """Yield the false findings that a report has room for, as drawn.

        Most are not looked at: who asks takes the first ones that fit.
        """
        known = report.stated
        topics = [self._topics(line.text) for line in report.lines]
        entries = self._modality.false_findings
        drawn = sorted(
            range(len(entries)),
            key=lambda place: chance.rank(f"entry {place}", entries[place].weight),
        )
        for place in drawn:
            one, kin = entries[place], self._kin[place]
            if (kin | one.unlikely_with) & known:
                continue
            against = [
                number
                for number, line in enumerate(report.lines)
                if not topics[number].isdisjoint(one.contradicts)
                or not kin.isdisjoint(line.denied)
            ]
            if len(against) > _MOST_AGAINST:
                continue
            room = self._make_room(report, one, kin, against)
            if room is None:
                continue
            fillings = self._fillings[place]
            sentence, summary = fillings[chance.choose(f"words {place}", len(fillings))]
            changes = room.write(report, sentence, summary)
            if changes is not None:
                yield EditOption(changes, room.lines, kin)

    def _make_room(
        self,
        report: LinedReport,
        one: FalseFinding,
        kin: frozenset[str],
        against: Sequence[int],
    ) -> _Room | None:
        """Return where a false finding can stand; None where it would contradict.

        A sentence that denies it, and nothing else, gives way to it; a list of what is
        not there loses it; and "no acute disease" becomes what there is.
        """
        main: int | None = None
        rest, summary = "", None
        for number in against:
            if self._is_summary(report, number, kin):
                if summary is not None:
                    return None
                summary = number
                continue
            if main is not None:
                return None
            main = number
            if not self._is_of_one_topic(report, number, one, kin):
                rest = self._others_denied(report, number, one)
                if not rest:
                    return None
        after = None if main is not None else self._insertion_place(report, one)
        if main is None and after is None:
            return None
        return _Room(main, rest, after, summary)

    def _topics(self, sentence: str) -> frozenset[str]:
        """Return the topics that a sentence calls normal."""
        known = self._known.get(sentence)
        if known is None:
            topics = self._bank.topics
            known = frozenset(
                name for name, topic in topics.items() if topic.speaks(sentence)
            )
            if len(self._known) >= _MEMO:
                self._known.clear()
            self._known[sentence] = known
        return known

    def _is_summary(self, report: LinedReport, at: int, kin: frozenset[str]) -> bool:
        """Whether a sentence says that there is nothing acute, and nothing else."""
        line = report.lines[at]
        topics = self._topics(line.text)
        return (
            not topics.isdisjoint(_SUMMARIES)
            and "bones" not in topics
            and self._says_one_thing(report, at)
            and line.denied <= kin
        )

    def _is_of_one_topic(
        self, report: LinedReport, at: int, one: FalseFinding, kin: frozenset[str]
    ) -> bool:
        """Whether a sentence says nothing but that this finding is not there."""
        line = report.lines[at]
        topics = self._topics(line.text)
        return (
            self._says_one_thing(report, at)
            and line.denied <= kin
            and topics <= {*one.contradicts}
            and "whole" not in topics
        )

    @staticmethod
    def _says_one_thing(report: LinedReport, at: int) -> bool:
        line = report.lines[at]
        following = report.lines[at + 1 :][:1]
        return (
            not line.findings
            and not line.odd
            and not line.refers
            and not any(each.leads for each in following)
            and report.text[line.end : line.stop] in (".", "")
            and len(line.text.split()) <= _SHORT_NORMAL
            and not JOINED.search(line.text)
        )

    def _others_denied(self, report: LinedReport, at: int, one: FalseFinding) -> str:
        """Return a list of what is not there without a finding; empty if it is none."""
        line = report.lines[at]
        match = _DENIAL.match(line.text)
        if line.findings or line.odd or line.refers or match is None:
            return ""
        items = _ITEMS.split(match["items"])
        listed = self._bank.listed
        others = [item for item in items if not one.names.search(item)]
        if (
            not others
            or len(others) != len(items) - 1
            or not all(map(listed.fullmatch, items))
        ):
            return ""
        *first, last = others
        joined = f"{', '.join(first)}{',' if len(first) > 1 else ''} or {last}"
        return f"{match['head']}{joined if first else last}"

    @staticmethod
    def _insertion_place(report: LinedReport, one: FalseFinding) -> int | None:
        """Return the sentence after which a false finding can stand."""
        lines = report.lines
        first_list = next((n for n, line in enumerate(lines) if line.listed), None)
        free = [
            number
            for number, line in enumerate(lines[:first_list])
            if report.text[line.end : line.stop] == "."
            and not line.odd
            and not line.advises
            and line.begin == line.start
            and (number + 1 == len(lines) or not lines[number + 1].refers)
        ]
        near = [number for number in free if one.place.search(lines[number].text)]
        return next(iter(near or free), None)


def _fillings(one: FalseFinding, modality: ModalityBank) -> Iterator[tuple[str, str]]:
    """Yield a sentence and its summary with every choice of words."""
    for words in product(*(modality.slots[name] for name in one.slots)):
        chosen = dict(zip(one.slots, words, strict=True))
        yield one.sentence.format(**chosen), one.summary.format(**chosen)
