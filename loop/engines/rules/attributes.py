"""What the words around a finding say of it: side, place, degree, size, change.

What stands in a sentence between two mentions goes to one of them: a word such as
"with", else the last "and" or comma, is the border. Two mentions in a list, and one
that explains the other, have their side and place in common where only one says it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from typing import Final, NamedTuple

from loop.core.records import Span
from loop.engines.rules.vocabulary import tidy
from loop.engines.rules.weights import JudgingData

LEFT: Final = 1
RIGHT: Final = 2
BOTH: Final = LEFT | RIGHT

Token = tuple[str, int, int]
"""A word of a folded sentence, and where it begins and ends."""

_TOKEN = re.compile(r"[a-z][a-z']*\d*|\d+(?:\.\d+)?(?:st|nd|rd|th)?|[,;:()]")
_SPAN = re.Match.span
_LEVEL = re.compile(r"[ctl]\d{1,2}$")
_BORDERS: Final = (
    frozenset({"with", "but", "without", "which", ";", "there", "while", "due"}),
    frozenset({"and", "or"}),
    frozenset({",", ":", "(", ")"}),
)
_MILLIMETRES = {"cm": 10.0, "mm": 1.0}
_UNIT_REACH = 5
"""Words after a number among which its unit stands: "3 x 2 x 1 cm"."""

_APART = ("zone", "bone", "spine", "level")
"""Axes on which two mentions of one label are of two findings."""

_OF_SPINE = ("spine", "level")
_OF_LUNGS = ("zone", "depth", "face")
_END: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """What the words around a mention say of it."""

    side: int = 0
    """Left 1, right 2, both 3; 0 where it is not said."""

    places: frozenset[tuple[str, str]] = frozenset()
    """Axis and place, as in the data."""

    degree: float = 0.0
    """From 1, the least; 0 where it is not said."""

    size_mm: float = 0.0
    """The largest measurement; 0 without one."""

    change: str = ""
    """new, worse, better or same; empty where it is not said."""

    weak: bool = False
    """Whether the change may be a mere property ("increased markings")."""

    characters: frozenset[tuple[str, str]] = frozenset()
    """Line of the data and trait."""

    borrowed: bool = False
    """Whether side and place are those of a finding beside it in its sentence."""

    reads: frozenset[str] = frozenset()
    """What it may be, where the same sentence leaves that open: "opacity, possibly
    pneumonia"."""

    def on(self, axis: str) -> set[str]:
        """Return the places on one axis."""
        return {place for one, place in self.places if one == axis}

    def joined(self, other: Attributes) -> Attributes:
        """Return what two mentions of one finding say together."""
        if other is NOTHING or self is NOTHING:
            return self if other is NOTHING else other
        change, weak = self.change, self.weak
        if other.change and (not change or weak or change == "same"):
            change, weak = other.change, other.weak
        return Attributes(
            side=self.side | other.side,
            places=self.places | other.places,
            degree=self.degree or other.degree,
            size_mm=max(self.size_mm, other.size_mm),
            change=change,
            weak=weak,
            characters=self.characters | other.characters,
            reads=self.reads | other.reads,
        )

    def sharing(self, other: Attributes) -> Attributes:
        """Return this with the side, place and change that only its neighbour has."""
        settled = (
            (self.side or not other.side)
            and (self.places or not other.places)
            and (self.change or not other.change)
        )
        if settled:
            return self
        return replace(
            self,
            side=self.side or other.side,
            places=self.places or other.places,
            change=self.change or other.change,
            weak=self.weak if self.change else other.weak,
            borrowed=not self.side and not self.places,
        )

    def may_be(self, other: Attributes) -> bool:
        """Whether two mentions of one label can be of one finding."""
        if self.side and other.side and not self.side & other.side:
            return False
        if self.size_mm and other.size_mm and self.size_mm != other.size_mm:
            return False
        if not self.places or not other.places:
            return True
        both = ((self.on(axis), other.on(axis)) for axis in _APART)
        return all(not one or not two or one & two for one, two in both)


NOTHING: Final = Attributes()


class SaidWord(NamedTuple):
    """One word or phrase of a sentence that says something of a finding."""

    at: int
    kind: str
    value: str


class _Link(Enum):
    """How a mention goes with the one before it in its sentence."""

    NONE = 0
    LIST = 1
    EXPLAINS = 2


class AttributeReader:
    """Finds what words say of the findings beside them."""

    def __init__(self, data: JudgingData) -> None:
        self._data = data
        self._phrases = _phrases(data)
        self._comparing = frozenset(data.changes.comparing)
        self._no_lung = data.midline | data.device_findings | {data.devices}

    @staticmethod
    def tokens(text: str) -> list[Token]:
        """Return the words and marks of a folded sentence."""
        places = map(_SPAN, _TOKEN.finditer(text))
        return [(text[start:end], start, end) for start, end in places]

    def marks(self, tokens: Sequence[Token]) -> list[SaidWord]:
        """Return the words that say something, the longest phrases first."""
        marks: list[SaidWord] = []
        words = [token[0] for token in tokens]
        known, after = self._phrases, 0
        for place, word in enumerate(words):
            if place < after:
                continue
            if word in known:
                for phrase, meanings in known[word]:
                    length = len(phrase)
                    if length == 1 or tuple(words[place : place + length]) == phrase:
                        start = tokens[place][1]
                        marks += [
                            SaidWord(start, kind, value) for kind, value in meanings
                        ]
                        after = place + length
                        break
            elif word[-1].isdigit():
                marks += self._measured(words, place, tokens[place][1])
        return marks

    def _measured(self, words: Sequence[str], place: int, start: int) -> list[SaidWord]:
        """Return a vertebra, or a size that is not only advised."""
        word = words[place]
        if _LEVEL.match(word):
            return [SaidWord(start, "level", word)]
        if not word[0].isdigit() or not self._data.advice.isdisjoint(words):
            return []
        for other in words[place + 1 : place + 1 + _UNIT_REACH]:
            if other in _MILLIMETRES:
                size = float(word) * _MILLIMETRES[other]
                return [SaidWord(start, "size", str(size))]
            if other not in ("x", "by") and not other[0].isdigit():
                break
        return []

    def around(
        self, tokens: Sequence[Token], spans: Sequence[Span], keys: Sequence[str]
    ) -> list[Attributes]:
        """Return what is said of each mention of a sentence.

        Parameters
        ----------
        tokens
            The sentence.
        spans, keys
            Where the mentions stand, in order, and what each is of.
        """
        marks = self.marks(tokens)
        if not marks:
            return [NOTHING] * len(spans)
        comparing = any(word in self._comparing for word, _, _ in tokens)
        listed = {mark.at for mark in marks if mark.kind in ("degree", "change")}
        borders, links = [], []
        for one, other in pairwise(spans):
            between = [token for token in tokens if one.end <= token[1] < other.start]
            links.append(self._link(between, listed))
            borders.append(_border(between, one.end))
        grouped: list[list[SaidWord]] = [[] for _ in spans]
        number = 0
        for mark in marks:
            while number < len(borders) and mark.at >= borders[number]:
                number += 1
            grouped[number].append(mark)
        said = [self.summary(group, comparing=comparing) for group in grouped]
        if any(link is not _Link.NONE for link in links):
            self._share(said, links, grouped, spans, comparing=comparing)
        return [
            self._of_its_kind(key, one) for key, one in zip(keys, said, strict=True)
        ]

    def _share(
        self,
        said: list[Attributes],
        links: Sequence[_Link],
        grouped: Sequence[Sequence[SaidWord]],
        spans: Sequence[Span],
        *,
        comparing: bool,
    ) -> None:
        """Give linked mentions what only their neighbour says.

        In a list that is what stands before its first and after its last mention.
        """
        for place, link in enumerate(links):
            if link is _Link.LIST:
                start = spans[place].start
                leading = [mark for mark in grouped[place] if mark.at < start]
                given = self.summary(leading, comparing=comparing)
                said[place + 1] = said[place + 1].sharing(given)
            elif link is _Link.EXPLAINS:
                said[place + 1] = said[place + 1].sharing(said[place])
        for place in reversed(range(len(links))):
            if links[place] is _Link.LIST:
                end = spans[place + 1].end
                trailing = [mark for mark in grouped[place + 1] if mark.at >= end]
                given = self.summary(trailing, comparing=comparing)
                said[place] = said[place].sharing(given)
            elif links[place] is _Link.EXPLAINS:
                said[place] = said[place].sharing(said[place + 1])

    def _link(self, between: Sequence[Token], listed: Container[int]) -> _Link:
        """Return how the words between two mentions join them."""
        if any(word in self._data.explaining for word, _, _ in between):
            return _Link.EXPLAINS
        lists = all(
            word in self._data.listing or word == "," or start in listed
            for word, start, _ in between
        )
        return _Link.LIST if lists else _Link.NONE

    def _of_its_kind(self, key: str, said: Attributes) -> Attributes:
        """Return what can be said of a finding: a heart lies in no part of a lung."""
        if key not in self._no_lung or not (said.side or said.places):
            return said
        kept = frozenset(place for place in said.places if place[0] not in _OF_LUNGS)
        side = 0 if key in self._data.midline else said.side
        return replace(said, side=side, places=kept)

    def compares(self, words: Container[str]) -> bool:
        """Whether one of `words` compares with an earlier examination."""
        return any(word in words for word in self._comparing)

    def summary(self, marks: Sequence[SaidWord], *, comparing: bool) -> Attributes:
        """Return what words say together.

        Parameters
        ----------
        marks
            In the order of the text.
        comparing
            Whether the sentence compares with an earlier examination.
        """
        if not marks:
            return NOTHING
        of: dict[str, list[str]] = defaultdict(list)
        places, characters = [], []
        for _, kind, value in marks:
            if kind in _PLAIN_KINDS:
                of[kind].append(value)
            elif kind[0] == "@":
                characters.append((kind, value))
            else:
                places.append((kind, value))
                if kind in _OF_SPINE:
                    places.append(("bone", "spine"))
        side = 0
        for value in of["side"]:
            side |= int(value)
        degrees = of["degree"]
        change, weak = _change(of["change"], of["weak"], comparing=comparing)
        return Attributes(
            side=side,
            places=frozenset(places),
            degree=sum(map(float, degrees)) / len(degrees) if degrees else 0.0,
            size_mm=max(map(float, of["size"]), default=0.0),
            change=change,
            weak=weak,
            characters=frozenset(characters),
        )


_PLAIN_KINDS = frozenset({"side", "degree", "size", "change", "weak", "none"})


def _change(
    firm: Sequence[str], weak: Sequence[str], *, comparing: bool
) -> tuple[str, bool]:
    """Return the change that is said, and whether it may be a mere property.

    "Stable" gives way to any other word, and "increased" to "worse" unless the sentence
    compares.
    """
    said = next((one for one in firm if one != "same"), "")
    if said:
        return said, False
    if weak and (comparing or not firm):
        return weak[0], not comparing
    return ("same", False) if firm else ("", False)


def _border(between: Sequence[Token], end: int) -> int:
    """Return where the words about one mention end and those about the next begin."""
    for borders in _BORDERS:
        found = [start for word, start, _ in between if word in borders]
        if found:
            return found[-1]
    return end


_Phrase = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]


def _phrases(data: JudgingData) -> dict[str, list[_Phrase]]:
    """Return the phrases by their first word, longest first, and what each says."""
    changes = data.changes
    said: list[tuple[Sequence[str], str, str]] = [
        (data.sides.left, "side", str(LEFT)),
        (data.sides.right, "side", str(RIGHT)),
        ((*data.sides.both, *data.sides.compared), "side", str(BOTH)),
        (data.sides.neither, "none", ""),
        *(
            (words, axis, one)
            for axis, of in data.places.items()
            for one, words in of.items()
        ),
        *((words, "degree", str(n)) for n, words in enumerate(data.degrees, start=1)),
        (changes.new, "change", "new"),
        (changes.worse, "change", "worse"),
        (changes.better, "change", "better"),
        (changes.same, "change", "same"),
        *((words, "weak", name) for name, words in changes.weak.items()),
        *(
            (words, f"@{n}", trait)
            for n, line in enumerate(data.characters)
            for trait, words in line.items()
        ),
    ]
    meanings: dict[tuple[str, ...], list[tuple[str, str]]] = defaultdict(list)
    for phrases, kind, value in said:
        for phrase in phrases:
            meanings[tuple(tidy(phrase).split())].append((kind, value))
    by_first: dict[str, list[_Phrase]] = defaultdict(list)
    for words in sorted(meanings, key=len, reverse=True):
        by_first[words[0]].append((words, tuple(meanings[words])))
    return dict(by_first)
