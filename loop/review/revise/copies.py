"""Wording copied from case texts: refused or warned about before it enters a prompt.

A prompt is public and its versions are scored on cohorts: text of a holdout case in a
prompt would leak the answer, text of any case would leak the patient.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from loop.core.errors import OverlapError
from loop.core.paths import WorkspacePaths
from loop.core.records import Guide
from loop.labels.cohort import (
    Cohort,
    CohortRole,
    has_texts,
    iter_items,
    list_cohorts,
    read_cohort,
)
from loop.prompts.version import PromptVersion

REFUSED_RUN = 6
"""Consecutive equal words that count as copied from a case of another role."""

LONG_RUN = 8
"""Consecutive equal words that are warned about for a case of the same role."""


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


class CopyCheck(NamedTuple):
    """What looking for copied wording found, and where it could not look."""

    copies: tuple[Copy, ...]
    """Long copies from cases of the cohort and its role: a warning."""

    skipped: tuple[tuple[str, CohortRole], ...]
    """Name and role of cohorts whose texts are not on this machine."""


def new_wording(parent: PromptVersion, draft: PromptVersion) -> Iterator[NewWording]:
    """Yield everything that `draft` says and `parent` does not.

    It does not matter how it came in, by a verdict or by an edit of the files.
    """
    for guide in draft.guides:
        old = parent.guide(guide.label)
        known = set(_passages(old)) if old else set()
        for kind, text in _passages(guide):
            if (kind, text) not in known:
                yield NewWording(f"{guide.label}, {kind}", text)
    for file, before, after in (
        ("system.jinja", parent.system, draft.system),
        ("user.jinja", parent.user, draft.user),
    ):
        for text in _new_lines(before, after):
            yield NewWording(file, text)


def _passages(guide: Guide) -> Iterator[tuple[str, str]]:
    """Yield all wording of a guide as (kind, text)."""
    yield "name", guide.name
    yield "definition", guide.definition
    for words in (*guide.counts, *guide.does_not_count, *guide.uncertain_when):
        yield "guidance", words
    for part in guide.parts:
        for term in part.terms:
            yield "term", term
        for exclusion in part.exclusions:
            yield "exclusion", exclusion
        for rule in part.clarifications:
            yield "clarification", rule.phrase
            yield "clarification", rule.note
    for example in guide.exemplars:
        yield "exemplar", example.text
        yield "exemplar", example.evidence
        yield "exemplar", example.why


def _new_lines(before: str, after: str) -> Iterator[str]:
    """Yield each stretch of new or changed lines."""
    old, new = before.splitlines(), after.splitlines()
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for tag, _, _, start, end in matcher.get_opcodes():
        if tag in ("replace", "insert"):
            yield "\n".join(new[start:end])


def check_copies(
    workspace: WorkspacePaths, wording: Iterable[NewWording], cohort: Cohort
) -> CopyCheck:
    """Return long copies from cases of `cohort` and its role, after refusing others.

    Wording too short to be a copy needs no look at any cohort.

    Raises
    ------
    OverlapError
        Wording is copied from a case of a cohort that is not for development.
    """
    long = [one for one in wording if find_windows(one.text, REFUSED_RUN)]
    if not long:
        return CopyCheck((), ())
    warned: list[Copy] = []
    skipped: list[tuple[str, CohortRole]] = []
    for name in list_cohorts(workspace):
        other = read_cohort(workspace, name)
        if not has_texts(workspace, name):
            skipped.append((name, other.role))
            continue
        allowed = other.role is CohortRole.DEV or name == cohort.name
        run = LONG_RUN if allowed else REFUSED_RUN
        texts = (
            (item.id, text)
            for item in iter_items(workspace, other)
            for text in item.variables.values()
        )
        copies = find_copies(long, texts, run, name)
        if copies and not allowed:
            raise OverlapError(_refusal(copies, other))
        warned += copies
    return CopyCheck(tuple(warned), tuple(skipped))


def _refusal(copies: Sequence[Copy], cohort: Cohort) -> str:
    first = copies[0]
    more = f" ({len(copies)} such wordings)" if len(copies) > 1 else ""
    return (
        f"{first.where}: {REFUSED_RUN} or more consecutive words also occur in case "
        f"{first.case_id} of cohort {cohort.name}, whose role is {cohort.role}{more}. "
        "A prompt must not carry text of cases it will be measured on. Say it in your "
        "own words."
    )


def name_unseen(skipped: Sequence[tuple[str, CohortRole]]) -> tuple[str, ...]:
    """Name the cohorts that were not looked at for copied wording."""
    return tuple(
        f"cohort {name} ({role}) was not looked at for copied wording: its texts are "
        "not on this machine"
        for name, role in skipped
    )


def object_to_unseen(skipped: Sequence[tuple[str, CohortRole]]) -> tuple[str, ...]:
    """Return the objection to a holdout that was not looked at, if there is one."""
    names = [name for name, role in skipped if role is CohortRole.HOLDOUT]
    if not names:
        return ()
    return (
        f"not looked at for copied wording: holdout {', '.join(names)} (bring its "
        "texts to this machine)",
    )


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


_TOKEN = re.compile(r"[^\W\d_\u3400-\u9fff]+|\d+|[\u3400-\u9fff]")

_CJK = re.compile(r"[\u3400-\u9fff]")


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
