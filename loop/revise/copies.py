"""Wording copied from case texts: refused or warned about before it enters a prompt.

A prompt is public and its versions are scored on cohorts: text of a holdout case in a
prompt would leak the answer, text of any case would leak the patient.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from loop.core.errors import OverlapError
from loop.core.paths import Workspace
from loop.labels.cohort import (
    Cohort,
    Role,
    has_texts,
    iter_items,
    list_cohorts,
    read_cohort,
)
from loop.review.verdict import Verdict

REFUSED_RUN = 6
"""Consecutive equal words that count as copied from a case of another role."""

LONG_RUN = 8
"""Consecutive equal words that are warned about for a case of the same role."""

_TOKEN = re.compile(r"[^\W\d_\u3400-\u9fff]+|\d+|[\u3400-\u9fff]")
_CJK = re.compile(r"[\u3400-\u9fff]")


class Wording(NamedTuple):
    """New wording and where it stands."""

    where: str
    """For example ``"verdict 3, exemplar"``."""

    text: str


class Copy(NamedTuple):
    """Wording that runs equal with a case text; the text itself is not kept."""

    where: str
    cohort: str
    case_id: str
    words: int
    """Length of the run that was looked for."""


def new_wording(verdicts: Sequence[Verdict]) -> Iterator[Wording]:
    """Yield everything `verdicts` would bring into the prompt."""
    for number, verdict in enumerate(verdicts, 1):
        for kind, text in verdict.edits.passages():
            yield Wording(f"verdict {number}, {kind}", text)


def find_copies(
    wording: Iterable[Wording], texts: Iterable[tuple[str, str]], run: int, cohort: str
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
        for window in _windows(text, run):
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


def check_copies(
    workspace: Workspace, verdicts: Sequence[Verdict], cohort: Cohort
) -> tuple[Copy, ...]:
    """Return long copies from cases of `cohort` and its role, after refusing others.

    Cohorts whose texts are not on this machine cannot be looked at.

    Raises
    ------
    OverlapError
        Wording is copied from a case of a cohort that is not for development.
    """
    wording = list(new_wording(verdicts))
    if not any(_windows(one.text, REFUSED_RUN) for one in wording):
        return ()
    warned: list[Copy] = []
    for name in list_cohorts(workspace):
        if not has_texts(workspace, name):
            continue
        other = read_cohort(workspace, name)
        allowed = other.role is Role.DEV or name == cohort.name
        run = LONG_RUN if allowed else REFUSED_RUN
        texts = (
            (item.id, item.variables["text"]) for item in iter_items(workspace, other)
        )
        copies = find_copies(wording, texts, run, name)
        if copies and not allowed:
            raise OverlapError(_refusal(copies, other))
        warned += copies
    return tuple(warned)


def _refusal(copies: Sequence[Copy], cohort: Cohort) -> str:
    first = copies[0]
    more = f" ({len(copies)} such wordings)" if len(copies) > 1 else ""
    return (
        f"{first.where}: {REFUSED_RUN} or more consecutive words also stand in case "
        f"{first.case_id} of cohort {cohort.name}, whose role is {cohort.role}{more}. "
        "A prompt must not carry text of cases it will be measured on. Say it in your "
        "own words."
    )


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.casefold())


def _normal(text: str) -> str:
    return f" {' '.join(_tokens(text))} "


def _windows(text: str, run: int) -> list[str]:
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
