"""Flesch reading ease: sentences, words and syllables by stated rules."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any, NamedTuple

_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_END = re.compile(r"[.!?]+(?=\s|$)|\n\s*\n")


class TextCounts(NamedTuple):
    """What Flesch's formula needs of a text."""

    words: int
    sentences: int
    syllables: int


def count_text(text: str) -> TextCounts:
    """Return words, sentences and syllables of an English text.

    A word is a run of letters with inner apostrophes and hyphens; numbers are none. A
    sentence ends at ``.``, ``!`` or ``?`` before white space, or at an empty line, and
    has a word. Syllables are what pyphen's American English hyphenation finds.

    Examples
    --------
    >>> count_text("Heart size is normal. 3.5 cm nodule.")
    TextCounts(words=6, sentences=2, syllables=8)
    """
    sentences = [_WORD.findall(part) for part in _END.split(text)]
    found = [word for sentence in sentences for word in sentence]
    return TextCounts(
        len(found), sum(map(bool, sentences)), sum(map(count_syllables, found))
    )


@lru_cache(maxsize=2**16)
def count_syllables(word: str) -> int:
    """Return the parts that pyphen hyphenates a word into, 1 or more.

    The parts of a word written with hyphens count one by one.

    Examples
    --------
    >>> count_syllables("pneumonia"), count_syllables("x-ray")
    (3, 2)
    """
    positions = _hyphens().positions
    return sum(len(positions(part)) + 1 for part in word.lower().split("-"))


def reading_ease(counts: TextCounts) -> float | None:
    """Return the Flesch reading ease; None for an empty text.

    Higher reads easier, which says nothing about whether it is true. Usually 0 to
    100, without a bound on either side.

    References
    ----------
    Flesch R. A new readability yardstick. J Appl Psychol 1948;32:221-233.

    Examples
    --------
    >>> round(reading_ease(TextCounts(words=5, sentences=1, syllables=8)), 2)
    66.4
    """
    words, sentences, syllables = counts
    if not words:
        return None
    return 206.835 - 1.015 * words / sentences - 84.6 * syllables / words


@cache
def _hyphens() -> Any:
    from pyphen import Pyphen

    return Pyphen(lang="en_US")
