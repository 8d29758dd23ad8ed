"""Names of users: what they may hold, and when two are the same."""

from __future__ import annotations

import unicodedata

LONGEST = 64
"""Longest name, characters."""

_SIGNS = frozenset(".-_@ ")

_UNSEEN = frozenset(
    map(chr, (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0))
) | frozenset(map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10))))
"""Letters and marks that show nothing: with one of these, two names look the same."""


def check_name(name: str) -> str:
    """Return `name` composed (NFC) and without spaces around it.

    Letters of any script, digits, ``. - _ @`` and single spaces: nothing that a
    terminal, a page or a log could take for anything but a name.

    Raises
    ------
    ValueError
        It is empty, longer than 64 characters, or holds something else.

    Examples
    --------
    >>> check_name(" Zoë Müller ")
    'Zoë Müller'
    """
    # Split at the space only: str.strip would swallow control characters as well.
    composed = unicodedata.normalize("NFC", name).strip(" ")
    if not composed or len(composed) > LONGEST:
        raise ValueError(f"a name has 1 to {LONGEST} characters, not {len(composed)}")
    wrong = next((char for char in composed if not _allowed(char)), None)
    if wrong is not None:
        raise ValueError(
            f"a name may not hold the character U+{ord(wrong):04X}; "
            "use letters, digits, spaces and . - _ @"
        )
    if "  " in composed:
        raise ValueError("a name may not hold two spaces in a row")
    if not any(char.isalnum() for char in composed):
        raise ValueError("a name needs a letter or a digit")
    return composed


def name_key(name: str) -> str:
    """Return what two spellings of one name have in common.

    Capitals, composition and width do not make another person.

    Examples
    --------
    >>> name_key("DR. ZOË") == name_key("dr. zoe\u0308")
    True
    """
    folded = unicodedata.normalize("NFKC", name).casefold()
    return unicodedata.normalize("NFKC", folded).strip(" ")


def _allowed(char: str) -> bool:
    """Letters, the marks that are part of them, decimal digits, a few signs."""
    if char in _UNSEEN or char >= "\U000e0000":
        return False
    return char in _SIGNS or unicodedata.category(char)[0] in "LM" or char.isdecimal()
