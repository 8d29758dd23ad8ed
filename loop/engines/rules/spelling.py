"""Misspelt words of a report, corrected towards the words of the guides only."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from loop.engines.rules.cues import Cues
from loop.engines.rules.vocabulary import Vocabulary

SHORTEST = 6
"""Letters that a word must have to be corrected, or corrected to."""

LONGEST_WORD = 32
"""Letters of the longest word that is looked at; what is longer is no word."""

MEMO_WORDS = 100_000
"""Unknown words remembered."""

_WORD = re.compile(rf"[a-z]{{{SHORTEST},}}")


class Speller:
    """Corrects what is no known word and one edit from one word of the guides.

    An edit is a letter too many, too few, changed, or swapped with the next. Known are
    the words of guides and cues, and those that a cue file lists. Two words of the
    guides that differ in their ending are one: "effusion", "effusions".

    Parameters
    ----------
    vocabulary
        The words of guides and cues.
    cues
        Whose lists of known words count; the words of a language are corrected where
        its file says so.
    """

    def __init__(self, vocabulary: Vocabulary, cues: Sequence[Cues]) -> None:
        self.works = any(one.spelling.correct for one in cues)
        self._known: set[str] = set()
        self._beginnings: tuple[str, ...] = ()
        self._near: dict[str, set[str]] = defaultdict(set)
        self._fixes: dict[str, str] = {}
        if not self.works:
            return
        listed = frozenset(word for one in cues for word in one.spelling.known)
        self._known.update(*(one.spelling.forms for one in cues))
        self._findings: set[str] = set()
        for text, entry in zip(vocabulary.strings, vocabulary.entries, strict=True):
            words = _WORD.findall(text)
            self._known.update(words)
            alone = words == [text] and any(
                vocabulary.wordings[part.wording].parts == 1 for part in entry.parts
            )
            if entry.prefix:
                words = words[:-1] if text.endswith(tuple(words)) else words
                self._beginnings += (text,) * alone
            elif alone:
                self._findings.add(text)
            for word in words if entry.parts else ():
                if word not in listed and (word == text or len(word) > SHORTEST):
                    for key in _shortened(word):
                        self._near[key].add(word)

    def fixes(self, text: str) -> Mapping[str, str]:
        """Return the misspelt words of a folded sentence, and what they should be."""
        words = _WORD.findall(text)
        if self._known.issuperset(words):
            return {}
        found = {}
        for word in set(words) - self._known:
            fixed = self._fixes.get(word) or self._correct(word[: LONGEST_WORD + 1])
            if fixed:
                found[word] = fixed
            elif len(self._known) < MEMO_WORDS:
                self._known.add(word)
        if len(self._fixes) < MEMO_WORDS:
            self._fixes.update(found)
        return found

    def _correct(self, word: str) -> str:
        """Return the one word of the guides that `word` is an edit away from, or "".

        One that is a wording by itself goes before one that is only part of some, and
        a whole word before the beginning of one.
        """
        if len(word) > LONGEST_WORD or word.startswith(self._beginnings):
            return ""
        near = {
            other
            for key in _shortened(word)
            if key in self._near
            for other in self._near[key]
            if one_edit(word, other)
        }
        for found in (near & self._findings, near):
            if found:
                best = min(found, key=lambda one: (abs(len(one) - len(word)), one))
                return best if all(_same_word(best, one) for one in found) else ""
        heads = {
            (abs(len(start) - cut), start + word[cut:], start)
            for start in self._beginnings
            # One edit leaves one half of a word as it is.
            if word.startswith(start[: len(start) // 2])
            or start[len(start) // 2 + 1 :] in word
            for cut in range(len(start) - 1, len(start) + 2)
            if one_edit(word[:cut], start)
        }
        if len({_stem(start) for _, _, start in heads}) != 1:
            return ""
        return min(heads)[1]


def respell(
    text: str, origin: Sequence[int] | None, fixes: Mapping[str, str]
) -> tuple[str, list[int], list[tuple[int, int]]]:
    """Return `text` with words replaced, each character's old place, and where."""
    pieces: list[str] = []
    places: list[int] = []
    changed: list[tuple[int, int]] = []
    last = 0
    for match in _WORD.finditer(text):
        fixed = fixes.get(match.group())
        if fixed is None:
            continue
        start, end = match.span()
        pieces += (text[last:start], fixed)
        places += range(last, start)
        changed.append((len(places), len(places) + len(fixed)))
        places += (min(start + n, end - 1) for n in range(len(fixed) - 1))
        places.append(end - 1)
        last = end
    pieces.append(text[last:])
    places += range(last, len(text))
    if origin is not None:
        places = [origin[place] for place in places]
    return "".join(pieces), places, changed


def _shortened(word: str) -> Iterator[str]:
    """Yield `word` and what is left of it without any one letter."""
    yield word
    for place in range(len(word)):
        yield word[:place] + word[place + 1 :]


def one_edit(one: str, other: str) -> bool:
    """Whether two different words are one edit apart."""
    if one == other:
        return False
    first = next(
        (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    rest, others = one[first:], other[first:]
    return (
        rest[1:] == others
        or rest == others[1:]
        or rest[1:] == others[1:]
        or (rest[:2] == others[1::-1] and rest[2:] == others[2:] and len(others) > 1)
    )


def _stem(start: str) -> str:
    """Return what the beginnings of one word have in common, as "bronchiecta"."""
    return start[: SHORTEST - 1]


def _same_word(one: str, other: str) -> bool:
    """Whether two words differ in their ending only."""
    least = min(len(one), len(other)) - 2
    return one[:least] == other[:least]
