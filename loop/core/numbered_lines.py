"""A report as numbered lines, one sentence each: what a prompt shows, a reader finds.

Whoever numbers the lines of a text and whoever finds a line again must split it alike,
so both do it here.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

_STOP: Final = re.compile(r"[.!?。！？]+[\"'”’)\]]*")  # noqa: RUF001
_LINE: Final = re.compile(r"[^\r\n]+")
_WORD: Final = re.compile(r"\w")
_NUMBER: Final = re.compile(r"\s*\(?\d{1,2}")
_WORD_BEFORE: Final = re.compile(r"([^\W\d_]+(?:\.[^\W\d_]+)*)\Z")
_SHORT: Final = frozenset(
    [
        *("dr", "mr", "mrs", "ms", "prof", "st", "nr", "fig", "vs", "approx", "ca"),
        *("cf", "eg", "ie", "resp", "incl", "excl", "dept", "tel", "pt", "hx", "dx"),
    ]
)
"""Words that end with a full stop inside a sentence."""

_WIDE: Final = "。！？"


class NumberedLine(NamedTuple):
    """One sentence of a report, by its place in the text."""

    start: int
    end: int
    """Where it ends, with its full stop."""


@lru_cache(maxsize=4096)
def split_lines(text: str) -> tuple[NumberedLine, ...]:
    r"""Return the sentences of a text; the first is line 0.

    A line break ends a sentence, and so does a full stop unless it stands in a number
    (``1.5 cm``), after the number of a list item (``2. Effusion``), after an initial or
    an abbreviation (``Dr. Low``, ``e.g. left``), or before a word in lower case. What
    holds no letter or digit is no line.

    Examples
    --------
    >>> text = "1. Nodule of 1.5 cm. Seen by Dr. Low.\nNormal heart"
    >>> [text[one.start : one.end] for one in split_lines(text)]
    ['1. Nodule of 1.5 cm.', 'Seen by Dr. Low.', 'Normal heart']
    """
    found: list[NumberedLine] = []
    for line in _LINE.finditer(text):
        begin = line.start()
        for stop in _STOP.finditer(text, line.start(), line.end()):
            if _ends(text, begin, stop, line.end()):
                _keep(text, begin, stop.end(), found)
                begin = stop.end()
        _keep(text, begin, line.end(), found)
    return tuple(found)


def _ends(text: str, begin: int, stop: re.Match[str], end: int) -> bool:
    """Whether a full stop ends the sentence that begins at `begin`."""
    at = stop.end()
    if at >= end or stop[0][0] in _WIDE:
        return True
    if not text[at].isspace():
        return False
    after = text[at:end].lstrip()
    if not after or stop[0][0] != ".":
        return True
    before = text[begin : stop.start()]
    if _NUMBER.fullmatch(before):
        return False
    word = _WORD_BEFORE.search(before)
    if word is not None:
        bare = word[1].replace(".", "").casefold()
        initial = (len(word[1]) == 1 and word[1].isupper()) or "." in word[1]
        if bare in _SHORT or initial:
            return False
    # "2 cm. in length" goes on.
    return not after[0].islower()


def _keep(text: str, start: int, end: int, found: list[NumberedLine]) -> None:
    said = text[start:end]
    if _WORD.search(said):
        left = start + len(said) - len(said.lstrip())
        found.append(NumberedLine(left, start + len(said.rstrip())))


def number_lines(text: str) -> str:
    """Return a text with each sentence in a line of its own, behind its number.

    Examples
    --------
    >>> print(number_lines("Clear lungs. No effusion."))
    [0] Clear lungs.
    [1] No effusion.
    """
    return "\n".join(
        f"[{number}] {text[one.start : one.end]}"
        for number, one in enumerate(split_lines(text))
    )
