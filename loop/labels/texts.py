"""Comparing texts without their spelling: folding, words, shingles."""

from __future__ import annotations

import re
import unicodedata

SHINGLE = 5
"""Words in a shingle; near-duplicates are judged by the shingles they share."""

IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
"""Chinese characters, also in Japanese and Korean: each is a word of its own."""

_WORD = re.compile(rf"[{IDEOGRAPHS}]|[^\W_{IDEOGRAPHS}]+")


def words(text: str) -> list[str]:
    """Return the words of `text`, lower case, without punctuation.

    A Chinese character counts as a word.

    Examples
    --------
    >>> words("No PNEUMOTHORAX; 双肺")
    ['no', 'pneumothorax', '双', '肺']
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _WORD.findall(text.casefold())


def has_words(text: str) -> bool:
    """Whether `text` holds a letter or a digit: whether it says anything.

    Examples
    --------
    >>> has_words("Normal."), has_words("心影正常"), has_words(" ... "), has_words("")
    (True, True, False, False)
    """
    return any(map(str.isalnum, text))


def fold_text(text: str) -> str:
    """Return `text` lower case, every run of other characters as one space.

    Two texts are the same text for duplicate checks when this is equal.
    """
    return " ".join(words(text))


def shingles(text: str, size: int = SHINGLE) -> frozenset[int]:
    """Return the hashes of all runs of `size` words.

    A shorter text is one shingle; a text without words has none. Hashes hold within
    one process only: compare them, never store them.
    """
    found = words(text)
    if len(found) < size:
        return frozenset({hash(tuple(found))} if found else ())
    runs = zip(*(found[start:] for start in range(size)), strict=False)
    return frozenset(map(hash, runs))
