"""Chance that is alike on every machine: by the seed, the case and what is drawn."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from loop.core.digests import framed

MOST_WEIGHT: Final = 8
"""Times that one thing can take part in a draw."""

_BYTES = 4


class Chance:
    """Draws by digest: what is drawn depends on nothing that else was drawn.

    Parameters
    ----------
    parts
        What it is for: the seed, and for example the id of a case.

    Examples
    --------
    >>> Chance("0", "a").choose("words", 3) == Chance("0", "a").choose("words", 3)
    True
    """

    def __init__(self, *parts: str) -> None:
        self._state = sha256(framed(parts))

    def _draw(self, what: str) -> bytes:
        drawn = self._state.copy()
        drawn.update(what.encode())
        return drawn.digest()

    def choose(self, what: str, of: int) -> int:
        """Return which one of so many, from 0."""
        return int.from_bytes(self._draw(what)[:8], "big") % of

    def rank(self, what: str, weight: int = 1) -> bytes:
        """Return by what things are ordered: the least of as many draws as `weight`.

        Parameters
        ----------
        weight
            From 1 to `MOST_WEIGHT`.
        """
        drawn = self._draw(what)
        starts = range(0, _BYTES * weight, _BYTES)
        return min(drawn[start : start + _BYTES] for start in starts) + drawn
