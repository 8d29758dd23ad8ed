"""Phrases that reports assert: taken out by word lists, judged as `rules` judges terms.

A phrase is a run of at most a few words of one clause, without side, degree and age. No
language model and no tagger takes part: what ends a phrase, what is left out inside it
and what alone names no finding are lists in ``labels/discovery.yaml``. Every phrase is
then a term of a guide of its own, and the engine `rules` reads all reports with all of
these guides at once: so negation, doubt and sections count as they would for a label.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from loop.core.records import Guide
from loop.engines.rules.cues import Cues
from loop.engines.rules.engine import ReportReader, ReportSentence
from loop.engines.rules.sentence import MEMO_SENTENCES, Stance
from loop.engines.rules.vocabulary import GAP, fold
from loop.optimize.discovery.phrase_words import PhraseWords, WordForms

SHORTEST_WORD: Final = 2
LONGEST_WORD: Final = 32
"""Letters of the words of a phrase."""

_TOKEN: Final = re.compile(r"[^\W\d_]+|\d+|[^\w\s]|_")

_HALVES: Final = re.compile("[\ud800-\udfff]")

_MASK: Final = re.compile(r"x+")
"""What stands for a word that was removed, as in Open-i: "XXXX"."""

_NAME_WORDS: Final = 2
"""Words after "Dr." or before "MD" that may be one person's name."""

_SHOUTED_WORDS: Final = 3
"""Words in capitals from which on a sentence is all in capitals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertedPhrase:
    """One phrase, and the reports that assert, hedge and deny it."""

    words: tuple[str, ...]
    """In their one form, see `WordForms`."""

    wording: str
    """As it is written most often; ``...`` stands where words were left out."""

    asserted: frozenset[int]
    """Places of the reports, from 0, that say it is there."""

    hedged: frozenset[int]
    """Those that leave it open."""

    denied: frozenset[int]
    """Those that say it is not there."""

    context: Mapping[str, int]
    """Words of the sentences that assert it, each with its number of reports."""

    located: Mapping[str, frozenset[int]]
    """Places of the body among these words, each with the reports."""

    meaning: str
    """Its words that are neither places nor plain words."""


class MinedPhrases(NamedTuple):
    """The phrases of reports, and what is not among them."""

    phrases: tuple[AssertedPhrase, ...]
    """Those that enough patients' reports assert, in alphabetical order of words."""

    rare: int
    """Phrases that reports of fewer patients hold, or assert: never shown."""

    names: int
    """Words that may be a name, in reports of as many patients: never shown."""

    beyond: int
    """Phrases left out because there were too many; the most frequent are kept."""


class _Word(NamedTuple):
    """A word of a chunk."""

    word: str
    gap: bool
    """Whether words were left out before it."""


class _Gram(NamedTuple):
    """One phrase as it stands in a sentence."""

    words: tuple[str, ...]
    wording: str


def mine_phrases(
    texts: Sequence[str],
    cues: Sequence[Cues],
    words: PhraseWords,
    *,
    units: Sequence[int],
    min_reports: int,
    longest: int,
    most: int,
) -> MinedPhrases:
    """Return the phrases that reports of at least `min_reports` patients assert.

    A phrase that is part of a longer one is left out where the same reports assert
    both.

    Parameters
    ----------
    texts
        One report each.
    cues
        Of every language; those of the language of `words` inflect.
    units
        Number of each report's patient; one for itself where the patient is unknown.
    longest
        Words of a phrase, without those left out inside it.
    most
        Phrases at most.
    """
    reports = _split(texts, cues)
    weights = Counter(one for report in reports for one in _distinct(report))
    finder = _PhraseFinder(weights, cues, words, longest)
    held: Counter[tuple[str, ...]] = Counter()
    names: Counter[str] = Counter()
    for sentences in _by_unit(reports, units):
        held.update({gram.words for one in sentences for gram in finder.grams(one)})
        names.update({word for one in sentences for word in finder.names_in(one)})
    frequent = [key for key, count in held.items() if count >= min_reports]
    frequent.sort(key=lambda key: (-held[key], key))
    kept = sorted(frequent[:most])
    wordings = _collect_wordings(weights, finder, kept)
    phrases = _read(reports, cues, finder, wordings)
    asserted = [o for o in phrases if count_units(o.asserted, units) >= min_reports]
    return MinedPhrases(
        _without_parts(asserted),
        rare=len(held) - len(frequent) + len(phrases) - len(asserted),
        names=sum(count >= min_reports for count in names.values()),
        beyond=len(frequent) - len(kept),
    )


def mend(text: str) -> str:
    """Return `text` with letters and their marks composed, and no half characters.

    A letter whose mark is a character apart would end a word: "Mu", "ller".
    """
    return unicodedata.normalize("NFC", _HALVES.sub("\N{REPLACEMENT CHARACTER}", text))


def count_units(reports: Iterable[int], units: Sequence[int]) -> int:
    """Return how many patients reports are of, see `mine_phrases`."""
    return len({units[place] for place in reports})


def _split(
    texts: Sequence[str], cues: Sequence[Cues]
) -> list[tuple[ReportSentence, ...]]:
    reader = ReportReader((), (), cues)
    return [tuple(reader.split(mend(text))) for text in texts]


def _distinct(report: Iterable[ReportSentence]) -> list[str]:
    return list(dict.fromkeys(one.sentence for one in report))


def _by_unit(
    reports: Iterable[Sequence[ReportSentence]], units: Sequence[int]
) -> Iterable[list[str]]:
    """Return the distinct sentences of each patient."""
    found: dict[int, list[ReportSentence]] = {}
    for report, unit in zip(reports, units, strict=True):
        found.setdefault(unit, []).extend(report)
    return map(_distinct, found.values())


class _PhraseFinder:
    """Finds the phrases of a sentence; knows all sentences, to tell names."""

    def __init__(
        self,
        sentences: Iterable[str],
        cues: Sequence[Cues],
        words: PhraseWords,
        longest: int,
    ) -> None:
        self._words = words
        self._longest = longest
        spoken = next(one for one in cues if one.language == words.language)
        found, self._names = _find_names(sentences, words)
        self._forms = WordForms(found, spoken)
        self._unnamed = self._forms.all_of(words.unnamed)
        self._relative = self._forms.all_of(words.relative)
        self._places = self._forms.all_of(words.places)
        self._meant: dict[tuple[str, ...], tuple[str, ...]] = {
            (self._forms.of(short),): key
            for short, full in words.abbreviations.items()
            if (key := self._key_of(full.lower()))
        }
        self.grams = lru_cache(maxsize=MEMO_SENTENCES)(self._find)

    def _find(self, sentence: str) -> tuple[_Gram, ...]:
        """Return every phrase of a sentence that may name a finding."""
        return tuple(self._each(sentence))

    def _each(self, sentence: str) -> Iterator[_Gram]:
        for chunk in self._chunks(sentence):
            forms = [self._forms.of(one.word) for one in chunk]
            for start in range(len(chunk)):
                for stop in range(start + 1, len(chunk) + 1)[: self._longest]:
                    key = tuple(forms[start:stop])
                    if self._may_name(key):
                        wording = _worded(chunk[start:stop])
                        yield _Gram(self._meant.get(key, key), wording)

    def context(self, sentence: str) -> frozenset[str]:
        """Return the words of a sentence, in their one form, without grammar."""
        own = self._words
        grammar = own.breaks | own.articles | own.links
        return frozenset(
            self._forms.of(word)
            for word in _plain_words(sentence)
            if word not in grammar and word not in self._names
        )

    def names_in(self, sentence: str) -> frozenset[str]:
        """Return the words of a sentence that may be a person's name."""
        return self._names.intersection(_plain_words(sentence))

    def is_place(self, form: str) -> bool:
        """Whether a word in its one form is a part of the body or a direction."""
        return form in self._places

    def meaning(self, key: Sequence[str]) -> tuple[str, ...]:
        """Return the words of a phrase that are neither places nor plain words."""
        return tuple(one for one in key if one not in self._unnamed)

    def _may_name(self, key: tuple[str, ...]) -> bool:
        meant = self.meaning(key)
        return bool(meant) and (len(key) > 1 or meant[0] not in self._relative)

    def _key_of(self, phrase: str) -> tuple[str, ...]:
        chunk = next(self._chunks(phrase), [])
        return tuple(self._forms.of(one.word) for one in chunk)

    def _chunks(self, sentence: str) -> Iterator[list[_Word]]:
        """Yield the runs of words of a sentence between what ends a phrase."""
        chunk: list[_Word] = []
        gap = False
        for word in _TOKEN.findall(fold(sentence)):
            if self._ends(word):
                if chunk:
                    yield chunk
                chunk, gap = [], False
            elif word in self._words.skipped:
                gap = True
            else:
                chunk.append(_Word(word, gap and bool(chunk)))
                gap = False
        if chunk:
            yield chunk

    def _ends(self, word: str) -> bool:
        """Whether a token of a folded sentence ends a phrase."""
        own = self._words
        if word in own.ending or word in self._names:
            return True
        return word not in own.skipped and not _is_plain(word)


def _is_plain(token: str) -> bool:
    """Whether it can stand in a phrase: no letter alone, no digit and no mask."""
    return (
        token.isalpha()
        and SHORTEST_WORD <= len(token) <= LONGEST_WORD
        and not _MASK.fullmatch(token)
    )


def _plain_words(sentence: str) -> list[str]:
    return [word for word in _TOKEN.findall(fold(sentence)) if _is_plain(word)]


def _worded(chunk: Sequence[_Word]) -> str:
    """Return a phrase as a term of a guide is written."""
    first, *rest = chunk
    return first.word + "".join(
        f" {GAP} {one.word}" if one.gap else f" {one.word}" for one in rest
    )


def _find_names(
    sentences: Iterable[str], words: PhraseWords
) -> tuple[frozenset[str], frozenset[str]]:
    """Return all words, and those that may be a person's name.

    A name is what stands next to a title in at least half of its uses, and what is
    written with a capital more often than in lower case, or never in lower case. The
    first word of a sentence or after a colon, and sentences all in capitals, say
    nothing of that.
    """
    every: Counter[str] = Counter()
    small: Counter[str] = Counter()
    capital: Counter[str] = Counter()
    titled: Counter[str] = Counter()
    for sentence in sentences:
        tokens = [
            (written, fold(written))
            for written in _TOKEN.findall(sentence)
            if written[0].isalpha() or written == ":"
        ]
        spoken = [(written, low) for written, low in tokens if written != ":"]
        every.update(low for _, low in spoken)
        titled.update(_beside_titles([low for _, low in spoken], words))
        shouted = sum(one.isupper() and len(one) > 1 for one, _ in spoken)
        if shouted >= _SHOUTED_WORDS and 2 * shouted > len(spoken):
            continue
        opens = True
        for written, low in tokens:
            if written == ":":
                opens = True
                continue
            if written.islower():
                small[low] += 1
            elif not opens:
                capital[low] += 1
            opens = False
    known = words.small | words.ending | words.skipped
    names = {
        word
        for word, count in every.items()
        if word not in known
        and (
            not small[word] or capital[word] > small[word] or 2 * titled[word] >= count
        )
    }
    return frozenset(every), frozenset(names)


def _beside_titles(spoken: Sequence[str], words: PhraseWords) -> Iterator[str]:
    """Yield the words next to a title."""
    for place, word in enumerate(spoken):
        if word in words.titles:
            yield from spoken[place + 1 : place + 1 + _NAME_WORDS]
        if word in words.titles_after:
            yield from spoken[max(0, place - _NAME_WORDS) : place]


def _collect_wordings(
    weights: Mapping[str, int], finder: _PhraseFinder, kept: Sequence[tuple[str, ...]]
) -> dict[tuple[str, ...], list[str]]:
    """Return how each phrase is written, most often first."""
    counts: dict[tuple[str, ...], Counter[str]] = {key: Counter() for key in kept}
    for sentence, weight in weights.items():
        for gram in set(finder.grams(sentence)):
            if gram.words in counts:
                counts[gram.words][gram.wording] += weight
    return {key: _by_count(found) for key, found in counts.items()}


def _by_count(counts: Counter[str]) -> list[str]:
    return sorted(counts, key=lambda one: (-counts[one], one))


def _read(
    reports: Sequence[Sequence[ReportSentence]],
    cues: Sequence[Cues],
    finder: _PhraseFinder,
    wordings: Mapping[tuple[str, ...], Sequence[str]],
) -> list[AssertedPhrase]:
    """Return every phrase with what each report says of it."""
    guides = [
        Guide(label=str(number), name=written[0], definition="", terms=tuple(written))
        for number, written in enumerate(wordings.values())
    ]
    reader = ReportReader(guides, [guide.label for guide in guides], cues)
    said: list[dict[Stance, set[int]]] = [
        {stance: set() for stance in Stance} for _ in guides
    ]
    around: list[dict[str, set[int]]] = [defaultdict(set) for _ in guides]
    for place, report in enumerate(reports):
        for label, stance in reader.stances(report).items():
            said[int(label)][stance].add(place)
        for sentence in _distinct(report):
            hits = reader.read_sentence(sentence)
            stated = {one.target for one in hits if one.stance is Stance.PRESENT}
            for word in finder.context(sentence) if stated else ():
                for target in stated:
                    around[target][word].add(place)
    return [
        AssertedPhrase(
            words=key,
            wording=written[0],
            asserted=frozenset(found[Stance.PRESENT]),
            hedged=frozenset(found[Stance.UNCERTAIN]),
            denied=frozenset(found[Stance.NEGATED] | found[Stance.LIMITED]),
            context={word: len(held) for word, held in sorted(words.items())},
            located={
                word: frozenset(held)
                for word, held in sorted(words.items())
                if finder.is_place(word)
            },
            meaning=" ".join(finder.meaning(key)),
        )
        for (key, written), found, words in zip(
            wordings.items(), said, around, strict=True
        )
    ]


def _without_parts(phrases: Sequence[AssertedPhrase]) -> tuple[AssertedPhrase, ...]:
    """Return `phrases` without those that a longer one says in the same reports."""
    by_words = {one.words: one for one in phrases}
    parts: set[tuple[str, ...]] = set()
    for one in phrases:
        size = len(one.words)
        for start in range(size):
            for stop in range(start + 1, size + 1):
                part = by_words.get(one.words[start:stop])
                if part and stop - start < size and part.asserted == one.asserted:
                    parts.add(part.words)
    return tuple(one for one in phrases if one.words not in parts)
