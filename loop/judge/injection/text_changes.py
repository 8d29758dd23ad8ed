"""Changes of a text: where, from which words to which; applied, taken back, checked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, NamedTuple

SENTENCE: Final = "sentence"
CLAUSE: Final = "clause"
NEGATED: Final = "omission_by_negation"
RENUMBERED: Final = "renumbered"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TextChange:
    """One change of a reference."""

    kind: str
    """Id of a category of ``labels/errors.yaml``, or of a harmless rewriting."""

    tag: str
    """How it was made: ``sentence``, ``clause``, ``omission_by_negation`` ..."""

    start: int
    end: int
    """Where in the reference; equal where something is only added."""

    before: str
    after: str
    error: int = 1
    """Which of the errors of its variant it belongs to, from 1: an error that the
    reference says twice is changed at both places."""

    def data(self) -> dict[str, Any]:
        """Return it as ``changes.jsonl`` has it."""
        return {
            "kind": self.kind,
            "tag": self.tag,
            "error": self.error,
            "start": self.start,
            "end": self.end,
            "before": self.before,
            "after": self.after,
        }


class EditOption(NamedTuple):
    """One error, or one harmless rewriting, that a report has a place for."""

    changes: tuple[TextChange, ...]
    lines: frozenset[int]
    """Numbers of the sentences that it changes or stands beside."""

    keys: frozenset[str] = frozenset()
    """Findings that it is about, under any of their names; empty of a rewriting."""

    worse: tuple[TextChange, ...] = ()
    """The same error further from the truth; empty where there is none such."""

    @property
    def name(self) -> str:
        """What tells it from the other options of a report and kind."""
        return "|".join(
            f"{one.tag}:{one.start}:{one.end}:{one.after}" for one in self.changes
        )


def tight_change(
    kind: str, tag: str, text: str, span: tuple[int, int], new: str
) -> TextChange:
    """Return the change of `span` to `new` without the words that stay at its ends."""
    start, end = span
    old = text[start:end]
    most = min(len(old), len(new))
    same = 0
    while same < most and old[same] == new[same]:
        same += 1
    while same and not _edge(old, new, same):
        same -= 1
    tail = 0
    while tail < most - same and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    while tail and not _edge(old, new, len(old) - tail, len(new) - tail):
        tail -= 1
    return TextChange(
        kind=kind,
        tag=tag,
        start=start + same,
        end=end - tail,
        before=old[same : len(old) - tail],
        after=new[same : len(new) - tail],
    )


_ABBREVIATION: Final = 4
"""The most letters of an abbreviation that is spoken letter by letter."""

_VOWEL = re.compile(r"[aeiou8]|1[18](?!\d)", re.IGNORECASE)


def article_before(words: str) -> str:
    """Return the article for words as they are spoken: RLL and the like by letters.

    Examples
    --------
    >>> [article_before(one) for one in ("edema", "RLL", "LLL", "8 mm", "18", "110")]
    ['an', 'an', 'an', 'an', 'an', 'a']
    """
    if words.isupper() and words.isalpha() and 1 < len(words) <= _ABBREVIATION:
        return "an" if words[0] in "AEFHILMNORSX" else "a"
    return "an" if _VOWEL.match(words) else "a"


def _edge(old: str, new: str, at: int, other: int | None = None) -> bool:
    """Whether both texts have the edge of a word at these places."""
    places = (old, at), (new, at if other is None else other)
    return not any(
        0 < one < len(text) and text[one - 1].isalnum() and text[one].isalnum()
        for text, one in places
    )


def apply_changes(text: str, changes: Iterable[TextChange]) -> str:
    """Return a text with its changes made.

    Raises
    ------
    ValueError
        They overlap, or the text does not have the words that they change.
    """
    parts, done = [], 0
    for one in sorted(changes, key=lambda each: (each.start, each.end)):
        if one.start < done or text[one.start : one.end] != one.before:
            raise ValueError(f"a change at {one.start} does not fit the text")
        parts += [text[done : one.start], one.after]
        done = one.end
    return "".join([*parts, text[done:]])


def undo_changes(candidate: str, changes: Iterable[TextChange]) -> str:
    """Return the text from which `changes` made a candidate.

    Raises
    ------
    ValueError
        The candidate does not have the words that they made.
    """
    shift, back = 0, []
    for one in sorted(changes, key=lambda each: (each.start, each.end)):
        start = one.start + shift
        back.append(
            replace(
                one,
                start=start,
                end=start + len(one.after),
                before=one.after,
                after=one.before,
            )
        )
        shift += len(one.after) - len(one.before)
    return apply_changes(candidate, back)


def combine(options: Sequence[EditOption]) -> tuple[TextChange, ...]:
    """Return the changes of several options, numbered by option, in text order."""
    numbered = [
        replace(change, error=number)
        for number, one in enumerate(options, 1)
        for change in one.changes
    ]
    return tuple(sorted(numbered, key=lambda each: (each.start, each.end)))


def fits_beside(option: EditOption, taken: Sequence[EditOption]) -> bool:
    """Whether an option shares no sentence, finding or place with those taken."""
    if any(option.lines & one.lines or option.keys & one.keys for one in taken):
        return False
    places = sorted(
        (change.start, change.end) for one in (*taken, option) for change in one.changes
    )
    return all(one[1] <= other[0] for one, other in pairwise(places)) and len(
        {place for place in places if place[0] == place[1]}
    ) == sum(place[0] == place[1] for place in places)


def why_wrong(
    reference: str,
    candidate: str,
    changes: Sequence[TextChange],
    *,
    kind: str,
    number: int,
) -> str:
    """Return why changes are not what a variant says they are; empty where they are.

    Parameters
    ----------
    kind, number
        Of the variant: every change is of this kind, and they are so many errors.
    """
    if any(one.kind != kind for one in changes):
        return "a change of another kind"
    if {one.error for one in changes} != set(range(1, number + 1)):
        return "another number of errors"
    if candidate == reference or any(one.before == one.after for one in changes):
        return "nothing is changed"
    try:
        if apply_changes(reference, changes) != candidate:
            return "the changes do not give the candidate"
        if undo_changes(candidate, changes) != reference:
            return "something else differs"
    except ValueError:
        return "the changes do not give the candidate"
    if any(map(_adds, changes)):
        return "an omission adds a statement"
    return ""


def _adds(one: TextChange) -> bool:
    """Whether something that leaves words out adds any."""
    if one.kind != "omission" or one.tag in (NEGATED, RENUMBERED):
        return False
    return bool(one.after.strip())
