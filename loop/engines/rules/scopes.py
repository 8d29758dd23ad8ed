"""Which characters of a sentence each cue governs.

A scope never leaves the statement its cue stands in. Statements end at terminators
("but", "with"), at words that start a new one ("..., stable ..."), and at a comma or
"and" whose next words hold a verb of their own ("..., and the heart is enlarged").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from loop.engines.rules.cues import Cues
from loop.engines.rules.vocabulary import Cue, CueRole, CueSide

Found = tuple[int, int, list[Cue]]
"""Start, end and meanings of one matched cue."""

_NEAR = 48
"""Characters on either side of "versus" within which a mention is one of the two."""

_VERB_WORDS = 7
"""Words after a comma or "and" within which a verb makes a new statement."""

_ALTERNATIVE = re.compile(r"\b(?:or|nor)\b")
_JOIN = re.compile(r"(?:,|\band)\s*$")
_COMMA = re.compile(r",\s*$")
_NEAR_END = re.compile(r",|\band\b")
_JOINT = re.compile(r",(?: and)?(?= )|(?<= )and(?= )|[()]")
_BOUND = re.compile(r"[,:()]")
_NO_MATCH = re.compile(r"(?!)")


class Scope(NamedTuple):
    """Characters that one cue governs."""

    role: CueRole
    side: CueSide
    start: int
    end: int
    cue_start: int
    cue_end: int

    @property
    def forward(self) -> bool:
        """Whether it governs what stands after the cue."""
        return self.side <= CueSide.AFTER_CUE_NEAR


class Grammar:
    """What the cue files say of statements, compiled.

    Parameters
    ----------
    cues
        One per language; their lists are searched together.
    """

    def __init__(self, cues: Sequence[Cues]) -> None:
        said = [one.statements for one in cues]
        verbs = _either(word for one in said for word in one.verbs)
        states = _either(word for one in said for word in (*one.verbs, *one.states))
        seen = _either(word for one in said for word in one.seen)
        single = _either(word for one in said for word in one.singular)
        self.verb = _words(rf"{verbs}\b(?! (?:(?:not|clearly|definitely) )*{seen})")
        self.statement = _words(states)
        self.singular = _words(single)

    def scopes(self, text: str, found: Sequence[Found]) -> list[Scope]:
        """Return what each cue of the folded sentence `text` governs.

        A cue inside a longer one ("no" in "no change in") does not count.
        """
        layout = _Layout(self, text, found)
        return [
            scope
            for cue in layout.kept
            for kind in cue[2]
            if kind.role <= CueRole.HYPOTHETICAL
            and (scope := layout.scope(cue, kind)) is not None
        ]


class _Layout:
    """Where the statements of one sentence begin and end."""

    def __init__(self, grammar: Grammar, text: str, found: Sequence[Found]) -> None:
        self._grammar = grammar
        self._text = text
        self.kept = _longest(found)
        self._starts = [
            e for _, e, kinds in self.kept if _has(kinds, CueRole.TERMINATOR)
        ]
        self._ends = [
            start
            for start, _, kinds in self.kept
            if _has(kinds, CueRole.TERMINATOR) or _has(kinds, CueRole.PSEUDO)
        ]
        self._turns = [s for s, _, kinds in found if self._is_turn(s, kinds)]

    def scope(self, cue: Found, kind: Cue) -> Scope | None:
        """Return what `cue` governs when it means `kind`; None for nothing."""
        start, end, _ = cue
        if kind.side is CueSide.BOTH:
            low, high = self._around(start, end)
        elif kind.side is CueSide.BEFORE_CUE:
            if self._goes_on(cue):
                return None
            low, high = self._begin(start), start
        else:
            low, high = end, self._stop(end)
            if kind.side is CueSide.AFTER_CUE_NEAR:
                near = _NEAR_END.search(self._text, end, high)
                high = near.start() if near else high
        return Scope(kind.role, kind.side, low, high, start, end)

    def _stop(self, end: int) -> int:
        """Return where a scope that begins at `end` stops."""
        bounds = (*self._ends, *self._turns, *self._openings)
        return min((one for one in bounds if one >= end), default=len(self._text))

    def _begin(self, start: int) -> int:
        """Return where a scope that stops at `start` begins."""
        bounds = (*self._starts, *self._turns, *self._closings)
        begin = max((one for one in bounds if one <= start), default=0)
        if not self._is_singular(start):
            return begin
        nearest = (
            end
            for _, end in self._joints
            if begin < end <= start
            and not _ALTERNATIVE.search(self._text, end - 1, start)
        )
        return max(nearest, default=begin)

    def _around(self, start: int, end: int) -> tuple[int, int]:
        """Return the few words on both sides of a cue such as "versus"."""
        marks = (one.end() for one in _BOUND.finditer(self._text, 0, start))
        terminated = (one for one in self._starts if one <= start)
        low = max(0, start - _NEAR, *marks, *terminated)
        high = min(
            len(self._text), end + _NEAR, *(one for one in self._ends if one >= end)
        )
        mark = _BOUND.search(self._text, end, high)
        return low, mark.start() if mark else high

    def _is_singular(self, start: int) -> bool:
        """Whether the cue at `start` speaks of one thing ("is not seen")."""
        before = self._text.rfind(" ", 0, max(0, start - 1)) + 1
        singular = self._grammar.singular
        return bool(
            singular.match(self._text, start) or singular.match(self._text, before)
        )

    def _goes_on(self, cue: Found) -> bool:
        """Whether a cue that could negate both ways speaks of what follows.

        "Atelectasis, less likely pneumonia" negates pneumonia alone; "pneumonia less
        likely" ends its statement and looks back.
        """
        _, end, kinds = cue
        if not any(kind.side is CueSide.AFTER_CUE for kind in kinds):
            return False
        rest = self._text[end:].lstrip()
        ended = not rest or rest[0] in ",()" or rest.startswith(("and ", "than "))
        return not ended and end + 1 not in self._ends

    def _is_turn(self, start: int, kinds: Sequence[Cue]) -> bool:
        """Whether a word starts a new statement inside its sentence."""
        text = self._text
        if _has(kinds, CueRole.AFFIRMATION):
            joined = _JOIN.search(text, max(0, start - 6), start)
        elif _has(kinds, CueRole.OPENING):
            joined = _COMMA.search(text, max(0, start - 3), start)
        else:
            return False
        if joined is None:
            return False
        stop = min((one for one in self._breaks if one > start), default=len(text))
        return not _ALTERNATIVE.search(text, start, stop)

    @cached_property
    def _breaks(self) -> list[int]:
        """Where an enumeration ends at the latest."""
        negations = [s for s, _, kinds in self.kept if _has(kinds, CueRole.NEGATION)]
        return self._ends + negations

    @cached_property
    def _joints(self) -> list[tuple[int, int]]:
        """Commas, "and" and brackets."""
        return [one.span() for one in _JOINT.finditer(self._text)]

    @cached_property
    def _openings(self) -> list[int]:
        """Joints whose next words have a verb of their own."""
        text, joints = self._text, self._joints
        nexts = [start for start, _ in joints[1:]] + [len(text)]
        return [
            end
            for (start, end), stop in zip(joints, nexts, strict=False)
            if text[start] in "()" or self._has_verb(end, stop)
        ]

    @cached_property
    def _closings(self) -> list[int]:
        """Joints that follow a complete statement."""
        found, last = [], 0
        for start, end in self._joints:
            said = self._grammar.statement.search(self._text, last, start)
            if self._text[start] in "()" or said:
                found.append(end)
            last = end
        return found

    def _has_verb(self, start: int, stop: int) -> bool:
        text = self._text
        if text.startswith((" or ", " nor "), start):
            return False
        verb = self._grammar.verb.search(text, start, stop)
        return verb is not None and text.count(" ", start, verb.start()) <= _VERB_WORDS


def _either(words: Iterable[str]) -> str:
    longest_first = sorted(set(words), key=lambda word: (-len(word), word))
    return "(?:" + "|".join(re.escape(word) for word in longest_first) + ")"


def _words(pattern: str) -> re.Pattern[str]:
    """Compile `pattern` for whole words; an empty list matches nothing."""
    return _NO_MATCH if "(?:)" in pattern else re.compile(rf"\b{pattern}\b")


def _longest(cues: Sequence[Found]) -> list[Found]:
    """Keep cues that are not inside a longer cue; the order is by start."""
    kept: list[Found] = []
    for cue in sorted(cues, key=lambda c: (c[0], -c[1])):
        inside = kept and cue[1] <= kept[-1][1]
        if not inside and any(_governing(kind) for kind in cue[2]):
            kept.append(cue)
    return kept


def _governing(cue: Cue) -> bool:
    return cue.role not in (CueRole.AFFIRMATION, CueRole.OPENING, CueRole.GAP_STOP)


def _has(kinds: Sequence[Cue], role: CueRole) -> bool:
    return any(kind.role is role for kind in kinds)
