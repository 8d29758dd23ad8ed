"""Which characters of a sentence each cue governs.

A scope never leaves the statement its cue stands in. Statements end at terminators
("but", "with"), at words that start a new one ("..., stable ..."), and at a comma or
"and" whose next words hold a verb of their own ("..., and the heart is enlarged").
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from loop.engines.rules.cues import Cues
from loop.engines.rules.vocabulary import Cue, CueRole, CueSide, Meanings, has_cjk

Found = tuple[int, int, Meanings]
"""Start, end and meanings of one matched cue."""

_JUDGING = (
    *(CueRole.NEGATION, CueRole.LIMITED, CueRole.UNCERTAIN),
    *(CueRole.HYPOTHETICAL, CueRole.REPORTED, CueRole.OVER),
    *(CueRole.EMPTY_BOX, CueRole.TICKED_BOX),
)
_GOVERNING = sum(1 << role for role in _JUDGING)
"""Roles by which a mention is judged."""

_DENYING = 1 << CueRole.NEGATION | 1 << CueRole.LIMITED
_TURNING = 1 << CueRole.AFFIRMATION | 1 << CueRole.OPENING | 1 << CueRole.RESTART
_BOX = 1 << CueRole.EMPTY_BOX | 1 << CueRole.TICKED_BOX
_TERMINATING = 1 << CueRole.TERMINATOR | _BOX
_ENDING = _TERMINATING | 1 << CueRole.PSEUDO
_AWAITING = 1 << CueRole.PENDING
_ONLY_ANSWERS = 2

LOST_STOP = Meanings.of([Cue(CueRole.TERMINATOR, CueSide.BOTH)])
"""What a capital inside a sentence means where a full stop was lost."""

_NOTHING = Meanings.of([Cue(CueRole.PSEUDO, CueSide.BOTH)])
"""What a cue means that only looks like one."""

_NEAR = 48
"""Characters on either side of "versus" within which a mention is one of the two."""

_VERB_WORDS = 7
"""Words after a comma or "and" within which a verb makes a new statement."""

_ALTERNATIVE = re.compile(r"\b(?:or|nor)\b")
_JOIN = re.compile(r"(?:,|\band)\s*$")
_COMMA = re.compile(r",\s*$")
_NEAR_JOINT = re.compile(r"[,:;(]|\b(?:and|or|nor)\b")
_NEAR_END = re.compile(r",|\band\b")
_JOINT = re.compile(r",(?: and)?(?= )|(?<= )and(?= )|[()]")
_BOUND = re.compile(r"[,:()]")
_ANSWERED = re.compile(r"[^\S\n]*(?:$|[.,;|)\]。，；])")
_MARKS = frozenset(":=|(?：（？")
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
        self.pronoun = _words(_either(w for one in said for w in one.pronouns) + r"\b")
        boxes = [one.boxes for one in cues]
        denied = _either(word for one in boxes for word in one.no)
        told = _either(word for one in boxes for word in (*one.no, *one.yes))
        self.box_no = re.compile(rf"\s*{denied}\b")
        self.box_word = re.compile(rf"\s*{told}\b")
        self.either = _words(
            _either(w for one in cues for w in one.uncertain.either) + r"\b"
        )
        changes = [one.changes for one in cues]
        degrees = _either(word for one in changes for word in one.degrees)
        changed = _either(word for one in changes for word in one.words)
        self.change = _words(rf"(?:{degrees} ){{0,4}}{changed}\b")
        others = [one.other_studies for one in cues]
        earlier = _either(word for one in others for word in one.earlier)
        studies = _either(word for one in others for word in one.studies)
        modalities = _either(word for one in others for word in one.modalities)
        current = _either(word for one in others for word in one.current)
        still = _either(word for one in others for word in one.still)
        before = _either(word for one in others for word in one.prepositions)
        adverbs = _either(word for one in others for word in one.adverbs)
        self.elsewhere = _words(
            rf"(?:{adverbs}|{before} (?:(?!{current}\b)\w+ ){{0,3}}?"
            rf"(?:{earlier}|{studies} (?:of|from|dated|done|performed|made)))\b"
        )
        self.other_study = _words(rf"(?:{earlier}|{modalities})\b")
        self.this_study = _words(rf"(?:{current}|since|compar\w*|interval|than)\b")
        self.still = _words(rf"{still}\b")
        self.sides = [
            frozenset(w for one in cues for w in one.sides[n]) for n in (0, 1)
        ]
        stops = [one.lost_stops for one in cues]
        openers = _either(word for one in stops for word in one.openers)
        after = [word for one in stops for word in one.never_after]
        # A space first: the search skips everything else.
        never = "".join(rf"(?<!\b{re.escape(word)} )" for word in sorted(after))
        self.lost_stop = (
            re.compile(rf" (?=[A-Z][a-z]|No\b)(?<=[a-z)] ){never}({openers}\b)?")
            if openers != "(?:)"
            else _NO_MATCH
        )
        sides = frozenset[str]().union(*self.sides)
        self.side = _apart(sides)
        self.narrow = _apart({*sides, *(w for one in cues for w in one.qualifiers)})

    def scopes(
        self, text: str, found: Sequence[Found], named: Collection[int] = ()
    ) -> list[Scope]:
        """Return what each cue of the folded sentence `text` governs.

        A cue that begins inside another one ("no" in "no doubt") does not count.

        Parameters
        ----------
        text, found
            The sentence and the cues in it.
        named
            Where findings end in it.
        """
        layout = _Layout(self, text, found, named)
        return [
            scope
            for cue in layout.kept
            if cue[2].roles & _GOVERNING
            for kind in cue[2].kinds
            if 1 << kind.role & _GOVERNING
            and (scope := layout.scope(cue, kind)) is not None
        ]

    @staticmethod
    def is_denied(found: Sequence[Found], place: int) -> bool:
        """Whether the last word on the statement at `place` before it is a denial."""
        telling = _DENYING | _ENDING
        before = [cue for cue in found if cue[0] < place and cue[2].roles & telling]
        last = max(before, key=lambda cue: cue[0], default=None)
        return last is not None and not last[2].roles & _TERMINATING

    def narrows(self, text: str, mention: tuple[int, int], scope: Scope) -> bool:
        """Whether a negation denies a mention of one side, or in one form only."""
        start, end = mention
        low = scope.cue_end if scope.forward else scope.start
        high = scope.end if scope.forward else scope.cue_start
        for joint in _NEAR_JOINT.finditer(text, low, start):
            low = joint.end()
        after = _NEAR_JOINT.search(text, end, high)
        beside = (
            *self.narrow.findall(text, low, start),
            *self.side.findall(text, end, after.start() if after else high),
        )
        return bool(beside) and any(side.isdisjoint(beside) for side in self.sides)


class _Layout:
    """Where the statements of one sentence begin and end."""

    def __init__(
        self,
        grammar: Grammar,
        text: str,
        found: Sequence[Found],
        named: Collection[int],
    ) -> None:
        self._grammar = grammar
        self._text = text
        self._named = named
        self.kept: list[Found] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._pending: list[int] = []
        covered = 0
        for cue in sorted(found, key=_by_place) if len(found) > 1 else found:
            start, end, kinds = cue
            # What begins inside a cue before it is a part of it: "no" in "no doubt".
            if kinds.silent or start < covered:
                continue
            if kinds.answers == _ONLY_ANSWERS and not self._ends_here(end):
                continue
            covered = end
            if kinds.roles & _DENYING:
                kinds = self._as_meant(cue)
            self.kept.append((start, end, kinds))
            if kinds.roles & _ENDING:
                self._ends.append(start)
                if kinds.roles & _TERMINATING:
                    self._starts.append(end)
            if kinds.roles & _AWAITING:
                self._pending.append(start)
        self._turns = [
            start
            for start, _, kinds in found
            if kinds.roles & _TURNING and self._is_turn(start, kinds)
        ]

    def _as_meant(self, cue: Found) -> Meanings:
        """Return what a negation means: nothing, if of a change or another study.

        "No further increase of the effusion", "not seen on the previous study": the
        finding is there.
        """
        _, end, kinds = cue
        for kind in kinds.kinds:
            ahead = kind.side is CueSide.AFTER_CUE
            sign = self._grammar.change if ahead else self._grammar.elsewhere
            if sign.match(self._text, end + 1):
                return _NOTHING
        return kinds

    def scope(self, cue: Found, kind: Cue) -> Scope | None:
        """Return what `cue` governs when it means `kind`; None for nothing."""
        start, end, kinds = cue
        if kind.role is CueRole.REPORTED:
            if not self._is_elsewhere(start):
                return None
            return Scope(
                CueRole.LIMITED, CueSide.AFTER_CUE, end, self._stop(end), start, end
            )
        if kind.role is CueRole.OVER:
            if not any(
                one < start
                for one, _, said in self.kept
                if _has(said, CueRole.PREFERRED)
            ):
                return None
            return Scope(
                CueRole.UNCERTAIN, CueSide.AFTER_CUE, end, self._stop(end), start, end
            )
        if 1 << kind.role & _BOX:
            return self._box(cue)
        if kind.side is CueSide.BOTH:
            low, high = self._around(start, end)
        elif kind.side is CueSide.ANSWER:
            if not self._ends_here(end):
                return None
            low, high = self._asked(start), start
        elif kind.side is CueSide.QUESTION:
            if self._ends_here(end):
                low = self._asked(start)
                return Scope(kind.role, CueSide.BEFORE_CUE, low, start, start, end)
            near = _NEAR_END.search(self._text, end)
            high = min(self._stop(end), near.start() if near else len(self._text))
            return Scope(kind.role, CueSide.AFTER_CUE_NEAR, end, high, start, end)
        elif kind.side is CueSide.BEFORE_CUE:
            if self._goes_on(cue) or self._is_pending(start):
                return None
            low, high = self._begin(start), start
            if kind.role is CueRole.UNCERTAIN and self._stands_for(low, start):
                low = 0
        elif kind.role is not CueRole.UNCERTAIN and self._is_answer(cue):
            return None
        else:
            low, high = end, self._stop(end)
            if kind.side is CueSide.AFTER_CUE_NEAR:
                near = _NEAR_END.search(self._text, end, high)
                high = near.start() if near else high
        return Scope(kind.role, kind.side, low, high, start, end)

    def _box(self, cue: Found) -> Scope | None:
        """Return what a box denies: an empty one what it stands beside.

        Boxes stand before their findings, unless a finding stands before the first
        one. One before "yes" or "no" is about that word.
        """
        start, end, kinds = cue
        first = next(at for at, _, said in self.kept if said.roles & _BOX)
        after = any(one <= first for one in self._named)
        ticked = _has(kinds, CueRole.TICKED_BOX)
        if self._grammar.box_word.match(self._text, end):
            denied = self._grammar.box_no.match(self._text, end)
            if not (ticked and denied and after):
                return None
            return Scope(CueRole.NEGATION, CueSide.ANSWER, 0, first, start, end)
        if ticked:
            return None
        if after:
            low = max((stop for stop in self._starts if stop <= start), default=0)
            return Scope(CueRole.NEGATION, CueSide.ANSWER, low, start, start, end)
        high = min((one for one in self._ends if one >= end), default=len(self._text))
        return Scope(CueRole.NEGATION, CueSide.AFTER_CUE, end, high, start, end)

    def _is_elsewhere(self, start: int) -> bool:
        """Whether what is reported after `start` was seen on another study only."""
        text, grammar = self._text, self._grammar
        if grammar.other_study.search(text, 0, start) is None:
            return False
        return not (
            grammar.this_study.search(text, 0, start)
            or grammar.still.search(text, start)
        )

    def _stands_for(self, low: int, high: int) -> bool:
        """Whether no finding stands between, but a pronoun for one said before."""
        if any(low < one <= high for one in self._named):
            return False
        return self._grammar.pronoun.search(self._text, low, high) is not None

    def _ends_here(self, end: int) -> bool:
        """Whether nothing of the statement follows."""
        return _ANSWERED.match(self._text, end) is not None

    def _is_answer(self, cue: Found) -> bool:
        """Whether a cue such as "no" answers what stands before it."""
        return bool(cue[2].answers) and self._ends_here(cue[1])

    def _asked(self, start: int) -> int:
        """Return where what is answered at `start` begins.

        "Effusion, pneumothorax: no" answers for both, "effusion: small, pneumothorax:
        no" for the second, and so does "effusion small, pneumothorax no".
        """
        text = self._text
        before = text[:start].rstrip()
        if not before or before[-1] not in _MARKS:
            return self._near_begin(start)
        earlier = max(before.rfind(mark, 0, len(before) - 1) for mark in _MARKS)
        comma = max(text.rfind(mark, 0, start) for mark in ",，")
        return max(earlier, comma) + 1 if earlier >= 0 else 0

    def _near_begin(self, start: int) -> int:
        """Return where the few words that end at `start` begin."""
        bounds = (*self._starts, *self._turns)
        comma = max(self._text.rfind(mark, 0, start) for mark in ",，") + 1
        return max(comma, *(one for one in bounds if one <= start), 0)

    def _is_pending(self, start: int) -> bool:
        """Whether what is said at `start` is only awaited ("until ... resolved")."""
        return any(one < start for one in self._pending)

    def _stop(self, end: int) -> int:
        """Return where a scope that begins at `end` stops."""
        bounds = (*self._ends, *self._turns, *self._openings)
        stop = min((one for one in bounds if one >= end), default=len(self._text))
        # "No fracture: the ribs ..." is said; "no signs of: fracture" goes on.
        colon = self._text.find(":", end, stop)
        return colon if colon > 0 and self._text[end:colon].strip() else stop

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
        if not any(kind.side is CueSide.AFTER_CUE for kind in kinds.kinds):
            return False
        rest = self._text[end:].lstrip()
        ended = not rest or rest[0] in ",()" or rest.startswith(("and ", "than "))
        return not ended and end + 1 not in self._ends

    def _is_turn(self, start: int, kinds: Meanings) -> bool:
        """Whether a word starts a new statement inside its sentence."""
        text = self._text
        if _has(kinds, CueRole.AFFIRMATION):
            joined = _JOIN.search(text, max(0, start - 6), start)
        elif _has(kinds, CueRole.OPENING):
            joined = _COMMA.search(text, max(0, start - 3), start)
        else:
            joined = None
        if joined is None and not (
            start - 1 in self._named and _has(kinds, CueRole.RESTART)
        ):
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


def _apart(words: Iterable[str]) -> re.Pattern[str]:
    """Compile a search for `words`, whole ones where the language separates them."""
    joined = [word for word in words if has_cjk(word)]
    spaced = [word for word in words if not has_cjk(word)]
    either = [rf"\b{_either(spaced)}\b"] * bool(spaced) + [_either(joined)] * bool(
        joined
    )
    return re.compile("|".join(either)) if either else _NO_MATCH


def _by_place(cue: Found) -> tuple[int, int]:
    """Order cues by their start; of those that begin together the longest first."""
    return cue[0], -cue[1]


def _has(kinds: Meanings, role: CueRole) -> bool:
    return kinds.roles >> role & 1 == 1
