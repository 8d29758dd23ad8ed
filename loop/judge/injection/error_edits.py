"""The six kinds of error: where a report has a place for each, and what it becomes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from loop.engines.rules.judging import GreenCategory
from loop.judge.injection.chance import Chance
from loop.judge.injection.false_findings import FalseFindingWriter
from loop.judge.injection.injection_bank import (
    DegreeShift,
    InjectionBank,
    ModalityBank,
)
from loop.judge.injection.omissions import OmissionWriter
from loop.judge.injection.report_lines import (
    DANGLING,
    WORD,
    LinedReport,
    RelatedPlaces,
    ReportLine,
    find_targets,
    keys_of,
)
from loop.judge.injection.text_changes import (
    EditOption,
    TextChange,
    article_before,
    tight_change,
)

KINDS: Final[dict[str, GreenCategory]] = dict(zip("abcdef", GreenCategory, strict=True))
"""Letter of ``labels/errors.yaml`` to category."""

_CHANGED = frozenset({"new", "worse", "better"})
_MOST_OPTIONS = 200
"""Of one kind and report, so that a long report takes no longer than many short."""

_ARTICLE = re.compile(r"\b(an?) $", re.IGNORECASE)
_MEASURE = re.compile(
    r"(?<![\d.])\d+(?:\.\d+)?(?:\s*(?:cm|mm))?"
    r"(?:\s*(?:x|by)\s*\d+(?:\.\d+)?(?:\s*(?:cm|mm))?)*",
    re.IGNORECASE,
)
_UNIT = re.compile(r"(cm|mm)\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:\.(\d+))?")


class ErrorEditor:
    """Finds places for errors.

    Parameters
    ----------
    bank, modality
        What is written.
    negated
        Whether an omission denies the finding instead of leaving it out.
    """

    def __init__(
        self, bank: InjectionBank, modality: ModalityBank, *, negated: bool = False
    ) -> None:
        self._bank = bank
        self._false = FalseFindingWriter(bank, modality)
        self._omitted = OmissionWriter(bank, negated=negated)
        self._make = {
            GreenCategory.LOCATION: self._locations,
            GreenCategory.SEVERITY: self._severities,
            GreenCategory.COMPARISON: self._comparisons,
            GreenCategory.OMITTED_CHANGE: self._omitted_changes,
        }

    def options(
        self, kind: str, report: LinedReport, chance: Chance
    ) -> Iterator[EditOption]:
        """Yield the places that a report has for errors of a kind, as drawn."""
        if kind == GreenCategory.FALSE_FINDING:
            yield from self._false.options(report, chance)
            return
        if kind == GreenCategory.OMISSION:
            places = self._omitted.options(report)
        else:
            places = self._make[GreenCategory(kind)](report, chance)
        found = list(islice(places, _MOST_OPTIONS))
        yield from sorted(found, key=lambda one: chance.rank(one.name))

    # Sides

    def _locations(self, report: LinedReport, chance: Chance) -> Iterator[EditOption]:
        sides = self._bank.sides
        for at, finding, related in find_targets(
            report, self._bank, GreenCategory.LOCATION
        ):
            if related.opposite or finding.said.side not in (1, 2):
                continue
            if any(
                sides.found.search(line.text)
                for number, line in enumerate(report.lines)
                if number in related.unclear
                or (number not in related.lines and _is_unnamed(line))
            ):
                continue
            wanted = self._side_of(report.lines[at])
            if wanted is None:
                continue
            changes = []
            for number in related.lines:
                line = report.lines[number]
                if not sides.found.search(line.text):
                    continue
                if self._side_of(line) is not wanted or not _sided_alike(line, related):
                    break
                changes.append(self._mirrored(report, line))
            else:
                lines = frozenset(related.lines)
                if not self._other_side_is_told(report, lines, wanted):
                    keys = frozenset().union(
                        *map(self._bank.kin, keys_of(related.same))
                    )
                    yield EditOption(tuple(changes), lines, keys)

    def _side_of(self, line: ReportLine) -> bool | None:
        """Return whether the one side that a sentence says is the left one."""
        sides = self._bank.sides
        if sides.ties.search(line.text):
            return None
        found = {
            match[0].casefold() in sides.left
            for match in sides.found.finditer(line.text)
        }
        return found.pop() if len(found) == 1 else None

    def _mirrored(self, report: LinedReport, line: ReportLine) -> TextChange:
        mirror = self._bank.sides.mirror
        new = self._bank.sides.found.sub(
            lambda match: _cased(match[0], mirror[match[0].casefold()]), line.text
        )
        return tight_change(
            GreenCategory.LOCATION, "side", report.text, (line.start, line.end), new
        )

    def _other_side_is_told(
        self, report: LinedReport, own: frozenset[int], left: bool
    ) -> bool:
        """Whether a normal sentence speaks of the side that would be said."""
        sides = self._bank.sides
        return any(
            (match[0].casefold() in sides.left) is not left
            for number, line in enumerate(report.lines)
            if number not in own and (not line.findings or line.denied or line.normal)
            for match in sides.found.finditer(line.text)
        )

    # Severity

    def _severities(self, report: LinedReport, chance: Chance) -> Iterator[EditOption]:
        for _, _, related in find_targets(report, self._bank, GreenCategory.SEVERITY):
            if any(self._has_degree(report.lines[at]) for at in related.unclear):
                continue
            keys = frozenset().union(*map(self._bank.kin, keys_of(related.same)))
            for make in (self._other_degree, self._other_size):
                changes: list[TextChange] = []
                further: list[TextChange | None] = []
                lines = set()
                for number in related.lines:
                    line = report.lines[number]
                    says = any(
                        one.said.degree or one.said.size_mm
                        for place, one in related.same
                        if place == number
                    )
                    if not says:
                        continue
                    change = make(report, line, related)
                    if change is None:
                        break
                    changes.append(change)
                    further.append(make(report, line, related, further=True))
                    lines.add(number)
                else:
                    if changes and _are_alike(changes):
                        worse = _all_worse(further, changes)
                        yield EditOption(tuple(changes), frozenset(lines), keys, worse)
                        break

    def _has_degree(self, line: ReportLine) -> bool:
        found = self._bank.severity.found.search(line.text)
        return bool(found) or any(
            _UNIT.search(match[0]) for match in _MEASURE.finditer(line.text)
        )

    def _other_degree(
        self,
        report: LinedReport,
        line: ReportLine,
        related: RelatedPlaces,
        *,
        further: bool = False,
    ) -> TextChange | None:
        words = self._bank.severity
        mine = {id(one) for _, one in related.same}
        graded = [one for one in line.findings if one.said.degree]
        found = list(words.found.finditer(line.text))
        if (
            len(found) != 1
            or len(graded) != 1
            or id(graded[0]) not in mine
            or any(one.said.size_mm for one in line.findings)
            or line.denied
            or words.relative.search(line.text)
        ):
            return None
        (match,) = found
        before = line.text[: match.start()].split()[-1:]
        after = line.text[match.end() :].lstrip(" -")
        first = WORD.match(after)
        if first is None or first[0].casefold() in words.never_before:
            return None
        if before and before[0].strip(",").casefold() in words.never_after:
            return None
        shift = _shift_for(words.shifts[match[0].casefold()], after)
        degree = "" if shift is None else shift.further if further else shift.to
        if not degree:
            return None
        new = _cased(match[0], degree)
        start, new = _with_article(line.text[: match.start()], new)
        return tight_change(
            GreenCategory.SEVERITY,
            "degree",
            report.text,
            (line.start + start, line.start + match.end()),
            new,
        )

    def _other_size(
        self,
        report: LinedReport,
        line: ReportLine,
        related: RelatedPlaces,
        *,
        further: bool = False,
    ) -> TextChange | None:
        words = self._bank.severity
        times = words.further_times if further else words.times
        mine = {id(one) for _, one in related.same}
        sized = [one for one in line.findings if one.said.size_mm]
        if (
            len(sized) != 1
            or id(sized[0]) not in mine
            or sized[0].key not in words.sized
            or any(one.said.degree for one in line.findings)
            or len(line.findings) != 1
            or times is None
        ):
            return None
        found = [
            match for match in _MEASURE.finditer(line.text) if _UNIT.search(match[0])
        ]
        if len(found) != 1 or words.far.search(line.text[found[0].end() :]):
            return None
        (match,) = found
        grows = sized[0].said.size_mm * words.times <= words.largest_mm
        new = _NUMBER.sub(lambda one: _scaled(one, times, grows), match[0])
        start, new = _with_article(line.text[: match.start()], new)
        return TextChange(
            kind=GreenCategory.SEVERITY,
            tag="size",
            start=line.start + start,
            end=line.start + match.end(),
            before=line.text[start : match.end()],
            after=new,
        )

    # Comparisons

    def _comparisons(self, report: LinedReport, chance: Chance) -> Iterator[EditOption]:
        words = self._bank.comparisons
        if words.first_time.search(report.text):
            return
        if any(line.compares and not line.findings for line in report.lines):
            return
        for at, finding, related in find_targets(
            report, self._bank, GreenCategory.COMPARISON
        ):
            numbers = {*related.lines, *related.unclear}
            line = report.lines[at]
            if (
                any(report.lines[number].compares for number in numbers)
                or any(one.said.change for _, one in related.same)
                or len(line.findings) != 1
                or line.denied
                or line.refers
                or line.normal
                or line.advises
                or words.unfit.search(line.text)
                or line.end == line.stop
                or not line.text[-1].isalpha()
            ):
                continue
            keys = frozenset().union(*map(self._bank.kin, keys_of(related.same)))
            phrases = words.of.get(finding.key, words.phrases)
            change = TextChange(
                kind=GreenCategory.COMPARISON,
                tag="phrase",
                start=line.end,
                end=line.end,
                before="",
                after=phrases[chance.choose(f"phrase {at}", len(phrases))],
            )
            yield EditOption((change,), frozenset({at}), keys)

    # Changes

    def _omitted_changes(
        self, report: LinedReport, chance: Chance
    ) -> Iterator[EditOption]:
        for _, _, related in find_targets(
            report, self._bank, GreenCategory.OMITTED_CHANGE
        ):
            if not any(
                one.said.change in _CHANGED and not one.said.weak
                for _, one in related.same
            ):
                continue
            numbers = related.lines
            if self._change_is_told(report, related):
                continue
            changes, lines = [], set()
            for number in numbers:
                line = report.lines[number]
                if not line.moves:
                    continue
                change = self._without_change(report, line)
                if change is None or line.leads:
                    break
                changes.append(change)
                lines.add(number)
            else:
                if changes:
                    keys = frozenset().union(
                        *map(self._bank.kin, keys_of(related.same))
                    )
                    yield EditOption(tuple(changes), frozenset(lines), keys)

    @staticmethod
    def _change_is_told(report: LinedReport, related: RelatedPlaces) -> bool:
        """Whether another sentence may speak of the same change."""
        return any(
            line.moves
            and number not in related.lines
            and (
                number in related.unclear
                or line.leads
                or not any(one.key for one in line.findings)
            )
            for number, line in enumerate(report.lines)
        )

    def _without_change(
        self, report: LinedReport, line: ReportLine
    ) -> TextChange | None:
        """Return a sentence without its change, if none is left in it then."""
        for one in self._bank.changes.patterns:
            match = one.found.search(line.text)
            written = one.write(match) if match else None
            if match is None or written is None:
                continue
            rest = line.text[match.end() :]
            if written.casefold() in ("a ", "an ") and rest:
                written = f"{article_before(rest)} "
            new = f"{line.text[: match.start()]}{written}{rest}".strip()
            if not match.start():
                new = new[:1].upper() + new[1:]
            if not WORD.search(new) or DANGLING.search(new):
                continue
            if self._bank.patterns.against.search(new):
                continue
            return tight_change(
                GreenCategory.OMITTED_CHANGE,
                "words",
                report.text,
                (line.start, line.end),
                new,
            )
        return None


def _is_unnamed(line: ReportLine) -> bool:
    """Whether a sentence reports something that has no name."""
    return any(not one.key for one in line.findings)


def _sided_alike(line: ReportLine, related: RelatedPlaces) -> bool:
    """Whether all that has a side in a sentence is the finding in question."""
    mine = {id(one) for _, one in related.same}
    return all(id(one) in mine or not one.said.side for one in line.findings)


def _are_alike(changes: Sequence[TextChange]) -> bool:
    """Whether the same is written at every place."""
    return len({one.after.casefold() for one in changes}) == 1


def _all_worse(
    further: Sequence[TextChange | None], changes: Sequence[TextChange]
) -> tuple[TextChange, ...]:
    """Return changes that go further off, if there is another one for every place."""
    found = [one for one in further if one is not None]
    every = len(found) == len(changes) and _are_alike(found)
    return tuple(found) if every and found[0].after != changes[0].after else ()


def _shift_for(shifts: object, after: str) -> DegreeShift | None:
    """Return the first shift that fits what follows a degree."""
    for one in shifts:  # type: ignore[attr-defined]
        if not one.before or one.followers.match(after):
            return one  # type: ignore[no-any-return]
    return None


def _scaled(number: re.Match[str], times: int, grows: bool) -> str:
    """Return a number of a size many times larger or smaller, as exact as it was."""
    digits = len(number[1] or "")
    value = float(number[0]) * times if grows else float(number[0]) / times
    if not grows and not digits:
        value = max(1.0, value)
    return f"{value:.{digits}f}"


def _with_article(before: str, new: str) -> tuple[int, str]:
    """Return where a change begins and its words; an article changes where it must."""
    article = _ARTICLE.search(before)
    # No degree or size is an abbreviation, whatever its case.
    fits = article_before(new.casefold())
    if article is None or article[1].casefold() == fits:
        return len(before), new
    return article.start(), f"{_cased(article[1], fits)} {new}"


def _cased(like: str, word: str) -> str:
    """Return a word in the case of the one that it stands for."""
    if like.isupper() and len(like) > 1:
        return word.upper()
    return word[:1].upper() + word[1:] if like[:1].isupper() else word
