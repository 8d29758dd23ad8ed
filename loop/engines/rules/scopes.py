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

from loop.engines.rules.cues import Cues, LostStops, OtherStudies
from loop.engines.rules.vocabulary import Cue, CueRole, CueSide, Meanings

Found = tuple[int, int, Meanings]
"""Start, end and meanings of one matched cue."""

_JUDGING = (
    *(CueRole.NEGATION, CueRole.LIMITED, CueRole.UNCERTAIN),
    *(CueRole.HYPOTHETICAL, CueRole.REPORTED, CueRole.OVER),
    *(CueRole.EMPTY_BOX, CueRole.TICKED_BOX),
)
_READ_AS = {CueRole.REPORTED: CueRole.LIMITED, CueRole.OVER: CueRole.UNCERTAIN}
"""Roles that hold in some sentences only, and what they mean there."""

_GOVERNING = sum(1 << role for role in _JUDGING)
"""Roles by which a mention is judged."""

_DENYING = 1 << CueRole.NEGATION | 1 << CueRole.LIMITED
_TURNING = 1 << CueRole.AFFIRMATION | 1 << CueRole.OPENING | 1 << CueRole.RESTART
_BOX = 1 << CueRole.EMPTY_BOX | 1 << CueRole.TICKED_BOX
_TERMINATING = 1 << CueRole.TERMINATOR | _BOX
_ENDING = _TERMINATING | 1 << CueRole.PSEUDO
_DENIABLE = 1 << CueRole.DENIABLE
_AWAITING = 1 << CueRole.PENDING
_SIDES = 1 << CueRole.LEFT | 1 << CueRole.RIGHT
_NARROWING = 1 << CueRole.QUALIFIER | _SIDES
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
_JOIN = re.compile(r"(?:,|\band)(?: an?)?\s*$")
_COMMA = re.compile(r",\s*$")
_NEAR_JOINT = re.compile(r"[,:;(]|\b(?:and|or|nor)\b")
_NEAR_END = re.compile(r",|\band\b")
_JOINT = re.compile(r",(?: and)?(?= )|(?<= )and(?= )|[()]")
_BOUND = re.compile(r"[,:()]")
_AFTER_END = ("and ", "than ", "by ", "on ", "at ", "in ")
_ANSWERED = re.compile(r"[^\S\n]*(?:$|[.,;|)\]。，；）])")
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
        pronouns = _either(word for one in said for word in one.pronouns)
        alternatives = _either(w for one in cues for w in one.uncertain.either)
        self.verb = _words(rf"{verbs}\b(?! (?:(?:not|clearly|definitely) )*{seen})")
        self.seen = _words(rf"{seen}\b")
        self.statement = _words(states)
        self.singular = _words(single)
        self.pronoun = _words(rf"{pronouns}\b")
        self.either = _words(rf"{alternatives}\b")
        self.lost_stop = _lost_stop([one.lost_stops for one in cues])
        boxes = [one.boxes for one in cues]
        denied = _either(word for one in boxes for word in one.no)
        told = _either(word for one in boxes for word in (*one.no, *one.yes))
        self.box_no = re.compile(rf"\s*{denied}\b")
        self.box_word = re.compile(rf"\s*{told}\b")
        changes = [one.changes for one in cues]
        degrees = _either(word for one in changes for word in one.degrees)
        changed = _either(word for one in changes for word in one.words)
        self.change = _words(rf"(?:{degrees} ){{0,4}}{changed}\b")
        others = [one.other_studies for one in cues]
        earlier = _either(word for one in others for word in one.earlier)
        modalities = _either(word for one in others for word in one.modalities)
        current = _either(word for one in others for word in one.current)
        still = _either(word for one in others for word in one.still)
        self.elsewhere = _elsewhere(others)
        self.other_study = _words(rf"(?:{earlier}|{modalities})\b")
        self.this_study = _words(rf"(?:{current}|since|compar\w*|interval|than)\b")
        self.still = _words(rf"{still}\b")
        first = [
            *(w for one in changes for w in (*one.degrees, *one.words)),
            *(w for one in others for w in (*one.adverbs, *one.prepositions)),
        ]
        self.telling = frozenset(word.partition(" ")[0] for word in first)
        """First words of `change` and `elsewhere`: a look before a search."""

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
            Where findings end in it, in any order.
        """
        if not any([kinds.roles & _GOVERNING for _, _, kinds in found]):
            return []
        layout = _Layout(self, text, found, named)
        scopes = [
            scope
            for cue in layout.kept
            if cue[2].roles & _GOVERNING
            for kind in cue[2].kinds
            if 1 << kind.role & _GOVERNING
            and (scope := layout.scope(cue, kind)) is not None
        ]
        doubts = [start for start, _, said in layout.kept if said.roles & _DENIABLE]
        return _without_denied(scopes, doubts) if doubts else scopes

    @staticmethod
    def narrowing(found: Iterable[Found]) -> list[Found]:
        """Return those of `found` that are words for sides and forms."""
        return [cue for cue in found if cue[2].roles & _NARROWING]

    @staticmethod
    def is_denied(found: Sequence[Found], place: int) -> bool:
        """Whether the last word on the statement at `place` before it is a denial."""
        telling = _DENYING | _ENDING
        before = [cue for cue in found if cue[0] < place and cue[2].roles & telling]
        last = max(before, key=lambda cue: cue[0], default=None)
        return last is not None and not last[2].roles & _TERMINATING

    def awaits_finding(self, found: Sequence[Found], place: int) -> bool:
        """Whether a denial, or an adjective of what is denied, ends at `place`."""
        partial = _DENYING | 1 << CueRole.QUALIFIER
        last = any(end == place and kinds.roles & partial for _, end, kinds in found)
        return last and self.is_denied(found, place)

    @staticmethod
    def narrows(
        text: str, mention: tuple[int, int], scope: Scope, beside: Sequence[Found]
    ) -> bool:
        """Whether a negation denies a mention of one side, or in one form only.

        `beside` are the words for sides and forms in the sentence. What is denied of
        both sides is denied.
        """
        start, end = mention
        low = scope.cue_end if scope.forward else scope.start
        high = scope.end if scope.forward else scope.cue_start
        for joint in _NEAR_JOINT.finditer(text, low, start):
            low = joint.end()
        after = _NEAR_JOINT.search(text, end, high)
        stop = after.start() if after else high
        said = 0
        for at, until, kinds in beside:
            if low <= at and until <= start:
                said |= kinds.roles & _NARROWING
            elif end <= at and until <= stop:
                said |= kinds.roles & _SIDES
        return said != 0 and said & _SIDES != _SIDES


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
        start, end, kinds = cue
        text, grammar = self._text, self._grammar
        stop = text.find(" ", end + 1)
        following = text[end + 1 : stop if stop > 0 else len(text)].rstrip(".,;:)")
        if following not in grammar.telling:
            return kinds
        for kind in kinds.kinds:
            if kind.side is CueSide.AFTER_CUE:
                other = grammar.change.match(text, end + 1)
            else:
                unseen = grammar.seen.search(text, start, end)
                other = unseen and grammar.elsewhere.match(text, end + 1)
            if other:
                return _NOTHING
        return kinds

    def scope(self, cue: Found, kind: Cue) -> Scope | None:
        """Return what `cue` governs when it means `kind`; None for nothing."""
        start, end, _ = cue
        role, side = kind
        if 1 << role & _BOX:
            return self._box(cue)
        if role is CueRole.REPORTED and not self._is_elsewhere(start):
            return None
        if role is CueRole.OVER and not self._is_preferred(start):
            return None
        if role in _READ_AS:
            stop = self._stop(end)
            return Scope(_READ_AS[role], CueSide.AFTER_CUE, end, stop, start, end)
        if side is CueSide.BOTH:
            return Scope(role, side, *self._around(start, end), start, end)
        if side is CueSide.QUESTION:
            asked = self._ends_here(end)
            side = CueSide.ANSWER if asked else CueSide.AFTER_CUE_NEAR
        if side is CueSide.ANSWER or side is CueSide.BEFORE_CUE:
            return self._back(cue, role, side)
        return self._ahead(cue, role, side)

    def _back(self, cue: Found, role: CueRole, side: CueSide) -> Scope | None:
        """Return what a cue governs that looks back."""
        start, end, _ = cue
        if side is CueSide.ANSWER:
            if not self._ends_here(end):
                return None
            low = self._asked(start)
        elif self._goes_on(cue) or self._is_pending(start):
            return None
        elif self._is_answer(cue) and ":" in self._text[:start]:
            # "Effusion: small right, left none" answers for what is next to it.
            return None
        else:
            low = self._begin(start)
            if role is CueRole.UNCERTAIN and self._stands_for(low, start):
                low = 0
            elif not self._text[low:start].strip():
                low = max((one for one in self._starts if one < low), default=0)
        return Scope(role, side, low, start, start, end)

    def _ahead(self, cue: Found, role: CueRole, side: CueSide) -> Scope | None:
        """Return what a cue governs that looks ahead."""
        start, end, _ = cue
        if role is not CueRole.UNCERTAIN and self._is_answer(cue):
            return None
        stop = self._stop(end)
        if side is CueSide.AFTER_CUE_NEAR:
            near = _NEAR_END.search(self._text, end, stop)
            stop = near.start() if near else stop
        return Scope(role, side, end, stop, start, end)

    def _is_preferred(self, start: int) -> bool:
        """Whether something is preferred to what follows `start`."""
        return any(
            one < start and _has(said, CueRole.PREFERRED) for one, _, said in self.kept
        )

    def _box(self, cue: Found) -> Scope | None:
        """Return what a box denies: an empty one what is next to it.

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
        ended = not rest or rest[0] in ",()" or rest.startswith(_AFTER_END)
        return not ended and end + 1 not in self._ends

    def _is_turn(self, start: int, kinds: Meanings) -> bool:
        """Whether a word starts a new statement inside its sentence."""
        text = self._text
        if _has(kinds, CueRole.AFFIRMATION):
            joined = _JOIN.search(text, max(0, start - 9), start)
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


def _without_denied(scopes: Sequence[Scope], doubts: Sequence[int]) -> list[Scope]:
    """Return `scopes` without doubts that are denied ("no opacity concerning for")."""
    denials = [one for one in scopes if one.forward and 1 << one.role & _DENYING]
    return [
        one
        for one in scopes
        if one.cue_start not in doubts
        or not any(deny.start <= one.cue_start < deny.end for deny in denials)
    ]


def _lost_stop(stops: Sequence[LostStops]) -> re.Pattern[str]:
    """Return what finds the space before a capital where a full stop may be lost."""
    openers = [word for one in stops for word in one.openers]
    if not openers:
        return _NO_MATCH
    plain = {word for one in stops for word in one.never_after}
    after = sorted(plain | {word.capitalize() for word in plain})
    never = "".join(rf"(?<!\b{re.escape(word)} )" for word in after)
    names = [word for one in stops for word in one.names]
    # The space comes first: a search skips everything else.
    capital = r" (?=[A-Z][a-z])(?<=[a-z)] )"
    return re.compile(
        rf"{capital}{never}(?!{_either(names)}\b)({_either(openers)}\b)?"
        if names
        else rf"{capital}{never}({_either(openers)}\b)?"
    )


def _elsewhere(others: Sequence[OtherStudies]) -> re.Pattern[str]:
    """Return what finds "on the previous film" right after "not seen"."""
    earlier = _either(word for one in others for word in one.earlier)
    studies = _either(word for one in others for word in one.studies)
    current = _either(word for one in others for word in one.current)
    before = _either(word for one in others for word in one.prepositions)
    adverbs = _either(word for one in others for word in one.adverbs)
    dated = rf"{studies} (?:of|from|dated|done|performed|made)"
    some = rf"(?:(?!{current}\b)\w+ ){{0,3}}?"
    return _words(rf"(?:{adverbs}|{before} {some}(?:{earlier}|{dated}))\b")


def _by_place(cue: Found) -> tuple[int, int]:
    """Order cues by their start; of those that begin together the longest first."""
    return cue[0], -cue[1]


def _has(kinds: Meanings, role: CueRole) -> bool:
    return kinds.roles >> role & 1 == 1
