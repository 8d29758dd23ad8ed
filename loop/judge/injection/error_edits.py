"""The six kinds of error: where a report has a place for each, and what it becomes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Final, NamedTuple

from loop.engines.rules.judging import GreenCategory
from loop.engines.rules.report_findings import ReportFinding
from loop.judge.injection.chance import Chance
from loop.judge.injection.injection_bank import (
    DegreeShift,
    FalseFinding,
    InjectionBank,
    ModalityBank,
)
from loop.judge.injection.report_lines import (
    LinedReport,
    RelatedPlaces,
    ReportLine,
    find_related,
    keys_of,
)
from loop.judge.injection.text_changes import (
    CLAUSE,
    NEGATED,
    RENUMBERED,
    SENTENCE,
    EditOption,
    TextChange,
    tight_change,
)

KINDS: Final[dict[str, GreenCategory]] = dict(zip("abcdef", GreenCategory, strict=True))
"""Letter of ``labels/errors.yaml`` to category."""

_CHANGED = frozenset({"new", "worse", "better"})
_MOST_OPTIONS = 200
"""Of one kind and report, so that a long report takes no longer than many short."""

_NEARBY = 2
"""Sentences after one that goes, which must not speak of it."""

_MOST_AGAINST = 2
"""Sentences that give way to one false finding: a denial, and "no acute disease"."""

_MEMO = 50_000
"""Distinct sentences whose topics are remembered."""

_SUMMARIES = ("acute", "calm")
"""Topics of a sentence that says that there is nothing at all."""

_SHORT_NORMAL = 8
"""Words up to which a normal sentence may be of one topic only."""

_JOINED = re.compile(r"[,;:/]|\b(?:and|or|but|with|while|although)\b", re.IGNORECASE)
_DENIAL = re.compile(
    r"(?P<head>(?:There (?:is|are) no |No )(?:evidence of |evidence for )?)"
    r"(?P<items>.+?)"
    r"(?P<tail> (?:is|are) (?:seen|noted|identified|present|visualized)| identified"
    r"| seen)?$",
    re.IGNORECASE,
)
_ITEMS = re.compile(r",\s*(?:or|nor)\s+|,\s*|\s+(?:or|nor)\s+", re.IGNORECASE)
_SPLIT = re.compile(r",?\s+(?:with|and|along with|as well as)\s+", re.IGNORECASE)
_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|may|which|that|appears?|seen|noted)\b",
    re.IGNORECASE,
)
_PLURAL = re.compile(r"\b(?:are|were|have)\b", re.IGNORECASE)
_DANGLING = re.compile(r"(?:^|\W)(?:of|in|the|and|or|with|versus|vs|a|an|to|by)$", re.I)
_ARTICLE = re.compile(r"\b(an?) $", re.IGNORECASE)
_MEASURE = re.compile(
    r"(?<![\d.])\d+(?:\.\d+)?(?:\s*(?:cm|mm))?"
    r"(?:\s*(?:x|by)\s*\d+(?:\.\d+)?(?:\s*(?:cm|mm))?)*",
    re.IGNORECASE,
)
_UNIT = re.compile(r"(cm|mm)\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:\.(\d+))?")
_WORD = re.compile(r"[^\W\d_]+")


class _Removal(NamedTuple):
    """What goes of a sentence, and what its list then needs."""

    changes: tuple[TextChange, ...]
    lines: frozenset[int]


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
        self._modality = modality
        self._kin = [
            frozenset().union(*map(bank.kin, one.keys))
            for one in modality.false_findings
        ]
        self._fillings = [
            list(_fillings(one, modality)) for one in modality.false_findings
        ]
        self._known: dict[str, frozenset[str]] = {}
        self._negated = negated
        self._make = {
            GreenCategory.OMISSION: self._omissions,
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
            # Most are not looked at: the first ones that fit are taken.
            yield from self._false_findings(report, chance)
            return
        make = self._make[GreenCategory(kind)]
        found = list(islice(make(report, chance), _MOST_OPTIONS))
        yield from sorted(found, key=lambda one: chance.rank(one.name))

    def _targets(
        self, report: LinedReport, kind: str
    ) -> Iterator[tuple[int, ReportFinding, RelatedPlaces]]:
        """Yield stated findings that matter for a kind, once each, and their places."""
        matters = self._bank.matters[kind]  # type: ignore[index]
        look = self._bank.patterns
        seen: set[int] = set()
        for at, line in enumerate(report.lines):
            for finding in line.findings:
                if not finding.certain or finding.key not in matters:
                    continue
                if id(finding) in seen or line.odd:
                    continue
                related = find_related(report, self._bank, at, finding)
                seen.update(id(one) for _, one in related.same)
                places = [report.lines[number] for number in related.lines]
                if any(one.odd or look.benign.search(one.text) for one in places):
                    continue
                if kind != GreenCategory.SEVERITY and any(
                    look.slight.search(one.text) for one in places
                ):
                    continue
                yield at, finding, related

    # False findings

    def _false_findings(
        self, report: LinedReport, chance: Chance
    ) -> Iterator[EditOption]:
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
            and not _JOINED.search(line.text)
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

    # Omissions

    def _omissions(self, report: LinedReport, chance: Chance) -> Iterator[EditOption]:
        for _, finding, related in self._targets(report, GreenCategory.OMISSION):
            if related.unclear:
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
            or _JOINED.search(gone)
            or _DANGLING.search(kept)
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

    # Sides

    def _locations(self, report: LinedReport, chance: Chance) -> Iterator[EditOption]:
        sides = self._bank.sides
        for at, finding, related in self._targets(report, GreenCategory.LOCATION):
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
        for _, _, related in self._targets(report, GreenCategory.SEVERITY):
            if any(self._has_degree(report.lines[at]) for at in related.unclear):
                continue
            keys = frozenset().union(*map(self._bank.kin, keys_of(related.same)))
            for make in (self._other_degree, self._other_size):
                changes = []
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
                    lines.add(number)
                else:
                    if changes and len({one.after.casefold() for one in changes}) == 1:
                        yield EditOption(tuple(changes), frozenset(lines), keys)
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
        first = _WORD.match(after)
        if first is None or first[0].casefold() in words.never_before:
            return None
        if before and before[0].strip(",").casefold() in words.never_after:
            return None
        shift = _shift_for(words.shifts[match[0].casefold()], after)
        if shift is None:
            return None
        start, new = match.start(), _cased(match[0], shift.to)
        article = _ARTICLE.search(line.text[:start])
        if article:
            start = article.start()
            new = f"{_cased(article[1], _article(shift.to))} {new}"
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
    ) -> TextChange | None:
        words = self._bank.severity
        mine = {id(one) for _, one in related.same}
        sized = [one for one in line.findings if one.said.size_mm]
        if (
            len(sized) != 1
            or id(sized[0]) not in mine
            or sized[0].key not in words.sized
            or any(one.said.degree for one in line.findings)
            or len(line.findings) != 1
        ):
            return None
        found = [
            match for match in _MEASURE.finditer(line.text) if _UNIT.search(match[0])
        ]
        if len(found) != 1 or words.far.search(line.text[found[0].end() :]):
            return None
        (match,) = found
        grows = sized[0].said.size_mm * words.times <= words.largest_mm
        new = _NUMBER.sub(lambda one: _scaled(one, words.times, grows), match[0])
        return TextChange(
            kind=GreenCategory.SEVERITY,
            tag="size",
            start=line.start + match.start(),
            end=line.start + match.end(),
            before=match[0],
            after=new,
        )

    # Comparisons

    def _comparisons(self, report: LinedReport, chance: Chance) -> Iterator[EditOption]:
        words = self._bank.comparisons
        if words.first_time.search(report.text):
            return
        if any(line.compares and not line.findings for line in report.lines):
            return
        for at, finding, related in self._targets(report, GreenCategory.COMPARISON):
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
        for _, _, related in self._targets(report, GreenCategory.OMITTED_CHANGE):
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
                written = f"{_article(rest)} "
            new = f"{line.text[: match.start()]}{written}{rest}".strip()
            if not match.start():
                new = new[:1].upper() + new[1:]
            if not _WORD.search(new) or _DANGLING.search(new):
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


def _fillings(one: FalseFinding, modality: ModalityBank) -> Iterator[tuple[str, str]]:
    """Yield a sentence and its summary with every choice of words."""
    for words in product(*(modality.slots[name] for name in one.slots)):
        chosen = dict(zip(one.slots, words, strict=True))
        yield one.sentence.format(**chosen), one.summary.format(**chosen)


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
    if not _WORD.search(rest):
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


def _is_unnamed(line: ReportLine) -> bool:
    """Whether a sentence reports something that has no name."""
    return any(not one.key for one in line.findings)


def _sided_alike(line: ReportLine, related: RelatedPlaces) -> bool:
    """Whether all that has a side in a sentence is the finding in question."""
    mine = {id(one) for _, one in related.same}
    return all(id(one) in mine or not one.said.side for one in line.findings)


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


def _article(word: str) -> str:
    return "an" if word[:1].casefold() in "aeiou" else "a"


def _cased(like: str, word: str) -> str:
    """Return a word in the case of the one that it stands for."""
    if like.isupper() and len(like) > 1:
        return word.upper()
    return word[:1].upper() + word[1:] if like[:1].isupper() else word
