"""Where wordings stand in the cases of a cohort, and what is said there.

Candidate wordings are n-grams of the cohort's own sentences, words with an open ending
(``*``), and pairs of words with a gap (``...``). Each is read as a guide of its own by
the reader of the engine `rules`: one pass over the distinct sentences gives the status
of every mention of every candidate, negation and hedging included.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loop.core.paths import WorkspacePaths
from loop.core.records import Guide, Item
from loop.engines.rules.cues import Cues, read_cues
from loop.engines.rules.engine import ReportReader
from loop.engines.rules.sentence import Stance
from loop.engines.rules.vocabulary import GAP, fold, has_cjk
from loop.prompts.version import PromptVersion

LONGEST: Final = 4
"""Words of the longest n-gram."""

FARTHEST: Final = 6
"""Words from the first to the second part of a gap, at most."""

_SHORTEST = 3
"""Letters of the shortest first or last word, and of the shortest word with a gap less
one."""

_STEM = 5
"""Letters of the shortest beginning that stands for a family of words."""

_FAMILY = 6
"""Words of the largest family that an open ending may stand for."""

_CJK_LONGEST = 6
"""Characters of the longest n-gram of Chinese text."""

_CLAUSE_END = re.compile(r"[,;:.()\[\]?!，、；。：（）？！]")
_NEXT_WORD = re.compile(r"[\s\-/]+((?:(?![\u3400-\u9fff\d_])[\w'])+)")
_WORD = re.compile(r"[\u3400-\u9fff]|(?:(?![\u3400-\u9fff\d_])[\w'])+|\d+")

# Words that neither begin nor end a wording: they name nothing.
_FUNCTION_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        "a also again an and any are as at be been being but by can could did do does "
        "for from had has have in into is it its likely may might no nor not noted of "
        "on or our out over possible seen should that the their there these this those "
        "to under was we were which while with within without would consistent",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortSentences:
    """The distinct sentences of a cohort that are read, and whose they are."""

    sentences: tuple[str, ...]
    """Private text."""

    case: NDArray[np.intp]
    """Case of each place, shape ``(n_places,)``."""

    sentence: NDArray[np.intp]
    """Sentence of each place."""

    decisive: NDArray[np.bool_]
    """Whether its section wins over others where they disagree."""

    cases: int


class MentionTable:
    """What every candidate wording says in every case."""

    def __init__(
        self, wordings: Sequence[str], read: CohortSentences, reader: ReportReader
    ) -> None:
        """Read all sentences once; the reader has the wordings as its guides."""
        self.wordings: Final = tuple(wordings)
        self.read: Final = read
        rows: list[tuple[int, int, int, int, int]] = []
        for number, sentence in enumerate(read.sentences):
            for one in reader.judge(sentence):
                if one.stance is not None:
                    place = one.place
                    target = one.wording.target
                    rows.append(
                        (target, number, place.start, place.end, int(one.stance))
                    )
        table = np.array(rows, dtype=np.intp).reshape(-1, 5)
        self.word, self.at, self.start, self.end, self.stance = table.T
        self.stances: Final = self._by_case()
        """Status of each wording in each case, as `Stance` or 0 where it is not said,
        shape ``(n_wordings, n_cases)``."""

    def _by_case(self) -> NDArray[np.int8]:
        sides = []
        said = np.zeros((len(self.wordings), len(self.read.sentences)), dtype=np.int8)
        np.maximum.at(said, (self.word, self.at), self.stance.astype(np.int8))
        for decisive in (False, True):
            table = np.zeros((len(self.wordings), self.read.cases), dtype=np.int8)
            for place in np.flatnonzero(self.read.decisive == decisive):
                column = table[:, self.read.case[place]]
                np.maximum(column, said[:, self.read.sentence[place]], out=column)
            sides.append(table)
        plain, wins = sides
        over = (wins > Stance.LIMITED) | (plain == 0)
        return np.where(over & (wins > 0), wins, plain)

    @cached_property
    def cases_of(self) -> Mapping[int, NDArray[np.intp]]:
        """Cases of each sentence."""
        found: dict[int, list[int]] = defaultdict(list)
        for case, number in zip(self.read.case, self.read.sentence, strict=True):
            found[int(number)].append(int(case))
        return {number: np.unique(cases) for number, cases in found.items()}

    @cached_property
    def closing(self) -> NDArray[np.float64]:
        """How often a phrase ends with each wording, shape ``(n_wordings,)``.

        Of the cases in which a mention is asserted the share in which the clause ends
        after it, or goes on with a function word, drawn to one half by one case. A
        wording that other words nearly always follow (the "small" of a small nodule) is
        only part of a name.
        """
        ends = np.zeros(len(self.wordings))
        total = np.zeros(len(self.wordings))
        known: dict[tuple[int, int], bool] = {}
        for row in np.flatnonzero(self.stance == Stance.PRESENT).tolist():
            place = number, end = int(self.at[row]), int(self.end[row])
            if place not in known:
                after = _NEXT_WORD.match(self.read.sentences[number], end)
                known[place] = not after or fold(after[1]) in _FUNCTION_WORDS
            cases = len(self.cases_of[number])
            total[self.word[row]] += cases
            ends[self.word[row]] += cases * known[place]
        return np.asarray((ends + 0.5) / (total + 1))

    @cached_property
    def _in_sentence(self) -> Mapping[int, NDArray[np.intp]]:
        order = np.argsort(self.at, kind="stable")
        cuts = np.flatnonzero(np.diff(self.at[order])) + 1
        return (
            {int(self.at[part[0]]): part for part in np.split(order, cuts)}
            if len(order)
            else {}
        )

    @cached_property
    def fragments(self) -> NDArray[np.int64]:
        """On how many sides each Chinese wording is always followed by the same sign.

        Such a wording is a piece of a longer one (``侧胸`` of ``侧胸腔``); of wordings
        with spaces it is 0, since there the ends of words are seen.
        """
        sides: list[tuple[set[str], set[str]]] = [(set(), set()) for _ in self.wordings]
        cjk = np.array([has_cjk(one) for one in self.wordings], dtype=bool)
        for place in np.flatnonzero(cjk[self.word]).tolist():
            sentence = fold(self.read.sentences[self.at[place]])
            start, end = int(self.start[place]), int(self.end[place])
            for side, sign in zip(
                sides[self.word[place]],
                (sentence[:start][-1:], sentence[end : end + 1]),
                strict=True,
            ):
                side.add(sign if sign.isalnum() else "")
        return np.array(
            [sum(len(side) == 1 and "" not in side for side in one) for one in sides],
            dtype=np.int64,
        )

    def around(self, number: int, start: int, end: int) -> list[int]:
        """Return the wordings with a longer mention that overlaps one place."""
        there = self._in_sentence.get(number)
        if there is None:
            return []
        overlaps = (self.start[there] < end) & (start < self.end[there])
        longer = (self.end[there] - self.start[there]) > end - start
        found: list[int] = np.unique(self.word[there[overlaps & longer]]).tolist()
        return found


def read_sentences(
    workspace: WorkspacePaths, version: PromptVersion, items: Sequence[Item]
) -> CohortSentences:
    """Return what the engine `rules` reads of the cases.

    Raises
    ------
    DataError
        A cue file is missing or malformed.
    """
    reader = ReportReader(version.guides, version.labels, read_cues(workspace.labels))
    known: dict[str, int] = {}
    places: list[tuple[int, int, bool]] = []
    for case, item in enumerate(items):
        for one in reader.split(item.variables["text"]):
            number = known.setdefault(one.sentence, len(known))
            places.append((case, number, one.decisive))
    table = np.array(places, dtype=np.intp).reshape(-1, 3)
    return CohortSentences(
        sentences=tuple(known),
        case=table[:, 0],
        sentence=table[:, 1],
        decisive=table[:, 2].astype(bool),
        cases=len(items),
    )


def read_mentions(
    workspace: WorkspacePaths, read: CohortSentences, *, support: int
) -> MentionTable:
    """Return the status of every candidate wording of the cohort in every case.

    Parameters
    ----------
    support
        Cases in which a candidate must stand, at least.
    """
    cues: Sequence[Cues] = read_cues(workspace.labels)
    wordings = find_wordings(read, support)
    guides = [
        Guide(label=f"w{number}", name="", definition="", terms=(wording,))
        for number, wording in enumerate(wordings)
    ]
    names = [guide.label for guide in guides]
    return MentionTable(wordings, read, ReportReader(guides, names, cues, memo=0))


def find_wordings(read: CohortSentences, support: int) -> tuple[str, ...]:
    """Return n-grams, prefixes and gaps that stand in at least `support` cases, sorted.

    None crosses the end of a clause, and none begins or ends with a function word, a
    number, or letters that are all the same, as what was removed to hide a name.
    """
    where: dict[int, set[int]] = defaultdict(set)
    for case, number in zip(read.case, read.sentence, strict=True):
        where[int(number)].add(int(case))
    clauses = [
        (where[number], words)
        for number, sentence in enumerate(read.sentences)
        for clause in _CLAUSE_END.split(fold(sentence))
        if (words := _WORD.findall(clause))
    ]
    forms = _families({word for _, words in clauses for word in words})
    found: dict[str, set[int]] = defaultdict(set)
    for cases, words in clauses:
        for wording in _wordings_of(words, forms):
            found[wording] |= cases
    return tuple(sorted(one for one, cases in found.items() if len(cases) >= support))


def _names_something(word: str) -> bool:
    if has_cjk(word):
        return True
    return (
        word[0].isalpha()
        and len(word) >= _SHORTEST
        and not _hides(word)
        and word not in _FUNCTION_WORDS
    )


def _hides(word: str) -> bool:
    """Whether a word is what stands for something that was removed."""
    return len(word) > 1 and len(set(word)) == 1


def _families(words: set[str]) -> Mapping[str, tuple[str, ...]]:
    """Return word to the open endings that stand for it and for others."""
    begins: dict[str, set[str]] = defaultdict(set)
    for word in filter(_names_something, words):
        for length in range(_STEM, len(word) + 1):
            begins[word[:length]].add(word)
    kept = {
        stem: family
        for stem, family in begins.items()
        if 1 < len(family) <= _FAMILY
        # Of stems with the same words the longest.
        and not any(
            begins[word[: len(stem) + 1]] == family
            for word in family
            if len(word) > len(stem)
        )
    }
    forms: dict[str, list[str]] = defaultdict(list)
    for stem in sorted(kept):
        for word in kept[stem]:
            forms[word].append(stem)
    return {word: tuple(stems) for word, stems in forms.items()}


def _wordings_of(
    words: Sequence[str], forms: Mapping[str, tuple[str, ...]]
) -> Iterator[str]:
    """Yield the candidates of one clause."""
    for first, word in enumerate(words):
        if not _names_something(word):
            continue
        if has_cjk(word):
            yield from _cjk_wordings(words, first)
            continue
        yield from (f"{stem}*" for stem in forms.get(word, ()))
        for last in range(first, min(first + LONGEST, len(words))):
            if _hides(words[last]):
                break
            if _ends_wording(words[last]):
                begun = "".join(f"{one} " for one in words[first:last])
                yield begun + words[last]
                if begun:
                    yield from (
                        f"{begun}{stem}*" for stem in forms.get(words[last], ())
                    )
        yield from _gaps_of(words, first, forms)


def _ends_wording(word: str) -> bool:
    return _names_something(word) and not has_cjk(word)


def _gaps_of(
    words: Sequence[str], first: int, forms: Mapping[str, tuple[str, ...]]
) -> Iterator[str]:
    """Yield the pairs with a gap that begin at one word."""
    if len(words[first]) <= _SHORTEST:
        return
    begins = [words[first], *(f"{stem}*" for stem in forms.get(words[first], ()))]
    for last in words[first + 2 : first + FARTHEST + 1]:
        if _ends_wording(last) and len(last) > _SHORTEST:
            ends = [last, *(f"{stem}*" for stem in forms.get(last, ()))]
            for pair in product(begins, ends):
                yield f" {GAP} ".join(pair)


def _cjk_wordings(words: Sequence[str], first: int) -> Iterator[str]:
    """Yield the n-grams of Chinese characters that begin at one."""
    for last in range(first + 1, min(first + _CJK_LONGEST, len(words))):
        if not has_cjk(words[last]):
            break
        yield "".join(words[first : last + 1])
