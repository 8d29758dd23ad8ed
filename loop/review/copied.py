"""Wording that runs equal with case texts: found, never kept."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

REFUSED_RUN = 6
"""Consecutive equal words that count as copied from a case of another role."""

LONG_RUN = 8
"""Consecutive equal words that are warned about for a case of the same role."""

_TOKEN = re.compile(r"[^\W\d_\u3400-\u9fff]+|\d+|[\u3400-\u9fff]")
_CJK = re.compile(r"[\u3400-\u9fff]")


class NewWording(NamedTuple):
    """New wording and where it stands."""

    where: str
    """For example ``"edema, exemplar"``."""

    text: str


class Copy(NamedTuple):
    """Wording that runs equal with a case text; the text itself is not kept."""

    where: str
    cohort: str
    case_id: str
    words: int
    """Length of the run that was looked for."""


def find_copies(
    wording: Iterable[NewWording],
    texts: Iterable[tuple[str, str]],
    run: int,
    cohort: str,
) -> list[Copy]:
    """Return each wording that shares `run` consecutive words with a text.

    Case, punctuation and spacing do not count. A Chinese character counts as half a
    word. At most one copy is reported for each wording.

    Parameters
    ----------
    texts
        ``(case id, text)`` pairs, read once.
    """
    from ahocorasick_rs import AhoCorasick

    windows: dict[str, list[str]] = {}
    for where, text in wording:
        for window in find_windows(text, run):
            windows.setdefault(window, []).append(where)
    if not windows:
        return []
    keys = list(windows)
    automaton = AhoCorasick(keys)
    found: dict[str, Copy] = {}
    for case_id, text in texts:
        for index, _, _ in automaton.find_matches_as_indexes(
            _normal(text), overlapping=True
        ):
            for where in windows[keys[index]]:
                found.setdefault(where, Copy(where, cohort, case_id, run))
    return list(found.values())


def warn_of_copy(wording: str, text: str) -> str:
    """Return a warning that `wording` is copied from a case text, or nothing.

    Cheap enough for every change of a field; all other cases are looked at when a
    draft is built.

    Examples
    --------
    >>> warn_of_copy("Heart is big.", "The heart is big today.")
    ''
    >>> warn_of_copy("a b c d e f g h", "A B C, D E F G H I")
    '8 words in a row are copied from the case. Say it in your own words.'
    """
    copies = find_copies([NewWording("", wording)], [("", text)], LONG_RUN, "")
    if not copies:
        return ""
    return (
        f"{LONG_RUN} words in a row are copied from the case. Say it in your own words."
    )


def find_windows(text: str, run: int) -> list[str]:
    """Return the shortest stretches of `text` that weigh `run` words."""
    tokens = _tokens(text)
    windows = []
    for start in range(len(tokens)):
        weight = 0.0
        for end in range(start, len(tokens)):
            weight += 0.5 if _CJK.match(tokens[end]) else 1.0
            if weight >= run:
                windows.append(f" {' '.join(tokens[start : end + 1])} ")
                break
    return windows


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.casefold())


def _normal(text: str) -> str:
    return f" {' '.join(_tokens(text))} "
