"""The words of a text, whether two texts are alike, and which language one is in."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

SHINGLE = 5
"""Words in a shingle; near-duplicates are judged by the shingles they share."""

IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
"""Chinese characters, also in Japanese and Korean: each is a word of its own."""

_WORD = re.compile(rf"[{IDEOGRAPHS}]|[^\W_{IDEOGRAPHS}]+")
_ASCII_WORDS = {
    code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)
}
"""ASCII in lower case, a space for what is in no word: as `_WORD`, and faster."""


def words(text: str) -> list[str]:
    """Return the words of `text`, lower case, without punctuation.

    A Chinese character counts as a word.

    Examples
    --------
    >>> words("No PNEUMOTHORAX; 双肺")
    ['no', 'pneumothorax', '双', '肺']
    """
    if text.isascii():
        return text.translate(_ASCII_WORDS).split()
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


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


UNKNOWN = "und"
"""ISO 639 code for a language that was not recognised."""

SAMPLE = 4000
"""Characters looked at: more than almost any report has."""

_IDEOGRAPH = re.compile(f"[{IDEOGRAPHS}]")
_KANA = re.compile("[ぁ-ゖァ-ヺーｦ-ﾟ]")
_LETTER = re.compile(r"[^\W\d_]")
_LATIN = re.compile("[A-Za-zªµºÀ-ÖØ-öø-ɏ\u1e00-\u1eff\uff21-\uff3a\uff41-\uff5a]")

# Words of no other of these languages, as far as reports go. Left out are those that an
# English report may hold as an abbreviation or a name (LA, ET, EM; am, op, in, de).
_STOP_WORDS: Mapping[str, str] = {
    "en": "the of are and with for there without or to at from was were has have this "
    "be which right left lungs heart clear seen evidence chest within",
    "de": "der das und ist sind mit ohne kein keine keinen nicht zum zur von nach auf "
    "ein eine einen beidseits rechts links herz lunge regelrecht sowie oder",
    "fr": "les des du une est sont pas avec sans dans aux sur pour aucun aucune droit "
    "droite gauche coeur cœur poumon poumons pulmonaire épanchement pleurale de",
    "es": "el los las una sin con del se que para pulmones pulmonares derrame derecho "
    "derecha izquierdo izquierda corazón hay de",
    "it": "il gli della dei delle degli del con nei nella alla senza sono versamento "
    "destra sinistra polmonare polmoni cuore",
    "pt": "dos nas nos com sem não uma um ao pelo pela há são pulmões pulmonares "
    "derrame direito direita esquerdo esquerda coração de",
    "nl": "het een geen van zijn niet bij aan voor naar ook rechts links longen "
    "beiderzijds de",
}


def _by_word() -> dict[str, tuple[str, ...]]:
    """Return the languages of every stop word."""
    found: dict[str, tuple[str, ...]] = {}
    for language, listed in _STOP_WORDS.items():
        for word in listed.split():
            found[word] = (*found.get(word, ()), language)
    return found


_LANGUAGES_OF = _by_word()
_FOREIGN = frozenset(one for one, codes in _LANGUAGES_OF.items() if codes != ("en",))


class _Letters(NamedTuple):
    """Letters of a text by script."""

    all: int
    latin: int
    ideographs: int
    kana: int


def guess_language(text: str) -> str:
    """Return an ISO 639-1 code: ``"en"`` in doubt among Latin scripts, else `UNKNOWN`.

    Chinese from a fifth of the letters, because such reports carry Latin abbreviations
    and measures; Japanese when a tenth of those is kana. Of other scripts none is
    recognised. A Latin text is English unless stop words say otherwise.

    Examples
    --------
    >>> guess_language("No pneumothorax."), guess_language("Kein Pneumothorax.")
    ('en', 'de')
    >>> guess_language("双肺清晰"), guess_language("Лёгкие без изменений")
    ('zh', 'und')
    """
    sample = text[:SAMPLE]
    if sample.isascii():
        return _guess_latin(sample)
    letters = _count_letters(sample)
    eastern = letters.ideographs + letters.kana
    if 5 * eastern >= max(1, letters.all):
        return "ja" if 10 * letters.kana >= eastern else "zh"
    if 5 * (letters.all - letters.latin - eastern) >= max(1, letters.all):
        return UNKNOWN
    return _guess_latin(sample)


def _count_letters(text: str) -> _Letters:
    patterns = (_LETTER, _LATIN, _IDEOGRAPH, _KANA)
    return _Letters(*(len(pattern.findall(text)) for pattern in patterns))


def _guess_latin(text: str) -> str:
    """Return the language whose stop words clearly outnumber the English ones.

    Two languages that do so alike, or accents in an otherwise unknown text, are
    `UNKNOWN`.
    """
    found = words(text)
    if text.isascii() and _FOREIGN.isdisjoint(found):
        return "en"
    hits = Counter[str]()
    # Counted before they are spread over languages: most words are of none.
    for codes, number in Counter(map(_LANGUAGES_OF.get, found)).items():
        hits.update(dict.fromkeys(codes or (), number))
    english = hits.pop("en", 0)
    (best, number), *rest = [*hits.most_common(2), ("", 0)][:2]
    if number > english and (number > 1 or 4 * number >= len(found)):
        return UNKNOWN if rest and rest[0][1] == number else best
    accented = 0 if text.isascii() else len(_LATIN.findall(re.sub("[ -~]+", "", text)))
    strange = accented > 2 and 20 * accented >= len(_LETTER.findall(text))
    return UNKNOWN if strange and not english else "en"
