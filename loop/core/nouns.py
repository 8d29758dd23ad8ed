"""Numbers with their nouns."""

from __future__ import annotations


def counted(number: float | None, one: str, many: str = "") -> str:
    """Return a number with its noun; empty where the number is not known.

    Examples
    --------
    >>> counted(1, "case"), counted(1500, "case"), counted(None, "case")
    ('1 case', '1,500 cases', '')
    """
    if number is None:
        return ""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
