"""Cells that no spreadsheet takes for a formula, and what they were before."""

from __future__ import annotations

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def shielded(text: str) -> str:
    """Return `text` with an apostrophe before what a spreadsheet would run.

    Where apostrophes stand before such a start already, one more is added, since
    `unshielded` takes one away.

    References
    ----------
    OWASP. CSV Injection.

    Examples
    --------
    >>> shielded("=1+1"), shielded("'-2"), shielded("no change")
    ("'=1+1", "''-2", 'no change')
    """
    return f"'{text}" if _runs(text) else text


def unshielded(text: str) -> str:
    """Return what `shielded` was given.

    Examples
    --------
    >>> unshielded("'=1+1"), unshielded("''-2"), unshielded("'s")
    ('=1+1', "'-2", "'s")
    """
    return text[1:] if text[:1] == "'" and _runs(text) else text


def _runs(text: str) -> bool:
    return text.lstrip(" '").startswith(_FORMULA)
