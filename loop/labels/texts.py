"""Comparing texts without their spelling: folding, words, shingles, language."""

from __future__ import annotations

import re
import unicodedata

SHINGLE = 5
"""Words in a shingle; near-duplicates are judged by the shingles they share."""

# Chinese, Japanese and Korean characters: each is a word of its own.
_IDEOGRAPHS = "㐀-䶿一-鿿豈-﫿\U00020000-\U000323af"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W_{_IDEOGRAPHS}]+")
_IDEOGRAPH = re.compile(f"[{_IDEOGRAPHS}]")
_LETTER = re.compile(r"[^\W\d_]")


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


def guess_language(text: str) -> str:
    """Return ``"zh"`` when at least a fifth of the letters are Chinese, else ``"en"``.

    Chinese reports carry Latin abbreviations and measures; English ones never carry
    more than a stray ideograph.
    """
    if text.isascii():
        return "en"
    ideographs = len(_IDEOGRAPH.findall(text))
    return "zh" if 5 * ideographs >= max(1, len(_LETTER.findall(text))) else "en"
