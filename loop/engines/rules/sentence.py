"""What one sentence says of each label: mentions, then their assertion status."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from ahocorasick_rs import AhoCorasick, Implementation, MatchKind

from loop.core.records import Value
from loop.engines.rules.vocabulary import (
    MAX_GAP_WORDS,
    Cue,
    Entry,
    Role,
    Side,
    Vocabulary,
    Wording,
    fold,
)

_MEMO_SENTENCES = 50_000
_NEAR = 48
"""Characters on either side of "versus" within which a mention is one of the two."""

_RUN = re.compile(r"  +")
_ALTERNATIVE = re.compile(r"\b(?:or|nor)\b")
_JOIN = re.compile(r"(?:,|\band)\s*$")
_COMMA = re.compile(r",\s*$")
_NEAR_END = re.compile(r",|\band\b")


class Stance(IntEnum):
    """Assertion status; the larger one wins within a report."""

    LIMITED = 1
    """Only a degree is negated ("no large effusion")."""

    NEGATED = 2
    UNCERTAIN = 3
    PRESENT = 4


class Hit(NamedTuple):
    """One judged mention."""

    target: int
    stance: Stance
    start: int
    end: int


class Mention(NamedTuple):
    """Where a wording stands in a folded sentence."""

    wording: Wording
    start: int
    end: int
    head: int
    """Start of the last part: the word that a cue inside the gap can govern."""


class Scope(NamedTuple):
    """Characters that one cue governs."""

    role: Role
    start: int
    end: int
    cue_start: int
    cue_end: int
    forward: bool


_STANCE = {
    Role.NEGATION: Stance.NEGATED,
    Role.LIMITED: Stance.LIMITED,
    Role.UNCERTAIN: Stance.UNCERTAIN,
}
_OF_VALUE = {
    Value.PRESENT: Stance.PRESENT,
    Value.UNCERTAIN: Stance.UNCERTAIN,
    Value.ABSENT: Stance.NEGATED,
}


class SentenceReader:
    """Reads sentences; remembers those it has read, since reports repeat them."""

    def __init__(self, vocabulary: Vocabulary, *, memo: int = _MEMO_SENTENCES) -> None:
        self._entries = vocabulary.entries
        self._wordings = vocabulary.wordings
        self._automaton = AhoCorasick(
            vocabulary.strings,
            matchkind=MatchKind.Standard,
            implementation=Implementation.DFA,
            store_patterns=False,
        )
        self._memo: dict[str, tuple[Hit, ...]] = {}
        self._memo_size = memo

    def read(self, sentence: str) -> tuple[Hit, ...]:
        """Return the judged mentions of `sentence`, offsets into it."""
        known = self._memo.get(sentence)
        if known is None:
            known = self._judge(sentence)
            if len(self._memo) >= self._memo_size:
                self._memo.clear()
            if self._memo_size:
                self._memo[sentence] = known
        return known

    def _judge(self, sentence: str) -> tuple[Hit, ...]:
        text, origin = _single_spaced(fold(sentence))
        cues: list[tuple[int, int, list[Cue]]] = []
        parts: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for number, start, end in self._automaton.find_matches_as_indexes(
            text, overlapping=True
        ):
            entry = self._entries[number]
            if not _at_boundary(text, start, end, entry):
                continue
            if entry.prefix:
                end = _word_end(text, end)
            if entry.cues:
                cues.append((start, end, entry.cues))
            for wording, order in entry.parts:
                parts[wording].append((order, start, end))
        if not parts:
            return ()
        mentions = _without_overruled(self._mentions(text, parts, cues))
        scopes = build_scopes(text, cues) if cues else []
        hits = []
        for mention in mentions:
            stance = judge_mention(mention, scopes)
            if stance is not None:
                start, end = mention.start, mention.end
                if origin is not None:
                    start, end = origin[start], origin[end - 1] + 1
                hits.append(Hit(mention.wording.target, stance, start, end))
        return tuple(hits)

    def _mentions(
        self,
        text: str,
        parts: dict[int, list[tuple[int, int, int]]],
        cues: Sequence[tuple[int, int, list[Cue]]],
    ) -> list[Mention]:
        stops = None
        mentions = []
        for number, found in parts.items():
            wording = self._wordings[number]
            if wording.parts == 1:
                mentions += [Mention(wording, s, e, s) for _, s, e in found]
                continue
            if stops is None:
                stops = [s for s, _, kinds in cues if _has(kinds, Role.GAP_STOP)]
            mentions += _gapped(text, wording, found, stops)
        return mentions


def _gapped(
    text: str,
    wording: Wording,
    found: Sequence[tuple[int, int, int]],
    stops: Sequence[int],
) -> list[Mention]:
    """Join parts in order, each within `MAX_GAP_WORDS` words of the one before."""
    chains = [(s, e, s) for order, s, e in found if order == 0]
    for part in range(1, wording.parts):
        following = [(s, e) for order, s, e in found if order == part]
        longer = []
        for first, end, _ in chains:
            for start, stop in following:
                if start >= end and _is_gap(text, end, start, stops):
                    longer.append((first, stop, start))
                    break
        chains = longer
    return [Mention(wording, start, end, head) for start, end, head in chains]


def _is_gap(text: str, start: int, end: int, stops: Sequence[int]) -> bool:
    """Whether the words between two parts are few and do not start a new thought."""
    between = text[start:end]
    if "," in between or between.count(" ") > MAX_GAP_WORDS + 1:
        return False
    return not any(start <= stop < end for stop in stops)


def _without_overruled(mentions: list[Mention]) -> list[Mention]:
    """Drop terms overlapped by a clarification or exclusion of the same label.

    Among those, the longest wording decides. Exclusions only drop; they are no
    mention themselves.
    """
    ruling = [m for m in mentions if m.wording.clarifies]
    if not ruling:
        return mentions
    kept = []
    for mention in mentions:
        if mention.wording.value is None:
            continue
        if not any(_overrules(rule, mention) for rule in ruling):
            kept.append(mention)
    return kept


def _overrules(rule: Mention, mention: Mention) -> bool:
    if rule is mention or rule.wording.target != mention.wording.target:
        return False
    if rule.start >= mention.end or mention.start >= rule.end:
        return False
    if not mention.wording.clarifies:
        return True
    return rule.end - rule.start > mention.end - mention.start


def build_scopes(text: str, cues: Sequence[tuple[int, int, list[Cue]]]) -> list[Scope]:
    """Return what each cue of a sentence governs.

    A cue inside a longer one ("no" in "no change in") does not count. A scope ends at
    a terminator, at the start of a new statement, or at the end of the sentence.
    """
    kept = _longest(cues)
    ends = [start for start, _, kinds in kept if _has(kinds, Role.TERMINATOR)]
    starts = [end for _, end, kinds in kept if _has(kinds, Role.TERMINATOR)]
    turns = [start for start, _, kinds in cues if _is_turn(text, start, kinds)]
    scopes = []
    for start, end, kinds in kept:
        for role, side in kinds:
            if role > Role.HYPOTHETICAL:
                continue
            if side in (Side.AFTER_CUE, Side.AFTER_CUE_NEAR):
                stop = min((p for p in (*ends, *turns) if p >= end), default=len(text))
                if side is Side.AFTER_CUE_NEAR:
                    near = _NEAR_END.search(text, end, stop)
                    stop = near.start() if near else stop
                scopes.append(Scope(role, end, stop, start, end, True))
            elif side is Side.BEFORE_CUE:
                begin = max((p for p in (*starts, *turns) if p <= start), default=0)
                scopes.append(Scope(role, begin, start, start, end, False))
            else:
                scopes.append(_between(text, role, start, end))
    return scopes


def _between(text: str, role: Role, start: int, end: int) -> Scope:
    """Return the scope of a cue such as "versus": a few words on both sides."""
    begin = max(0, start - _NEAR, text.rfind(",", 0, start))
    stop = min(len(text), end + _NEAR)
    comma = text.find(",", end, stop)
    return Scope(role, begin, stop if comma < 0 else comma, start, end, False)


def _is_turn(text: str, start: int, kinds: Sequence[Cue]) -> bool:
    """Whether a word starts a new statement inside its sentence."""
    if _has(kinds, Role.AFFIRMATION):
        joined = _JOIN.search(text, max(0, start - 6), start)
    elif _has(kinds, Role.OPENING):
        joined = _COMMA.search(text, max(0, start - 3), start)
    else:
        return False
    return joined is not None and not _ALTERNATIVE.search(text, start)


def _longest(
    cues: Sequence[tuple[int, int, list[Cue]]],
) -> list[tuple[int, int, list[Cue]]]:
    """Keep cues that are not inside a longer cue; the order is by start."""
    kept: list[tuple[int, int, list[Cue]]] = []
    for cue in sorted(cues, key=lambda c: (c[0], -c[1])):
        inside = kept and cue[1] <= kept[-1][1]
        if not inside and any(_governing(kind) for kind in cue[2]):
            kept.append(cue)
    return kept


def _governing(cue: Cue) -> bool:
    return cue.role not in (Role.AFFIRMATION, Role.OPENING, Role.GAP_STOP)


def _has(kinds: Sequence[Cue], role: Role) -> bool:
    return any(kind.role is role for kind in kinds)


def judge_mention(mention: Mention, scopes: Sequence[Scope]) -> Stance | None:
    """Return the status of a mention; None when it is only asked about.

    What is said after a mention ("... cannot be excluded") outranks what stands
    before it; of several cues before it the nearest decides.
    """
    value = mention.wording.value
    if value is None:
        return None
    nearest, said_after = None, None
    for scope in scopes:
        if not _governs(scope, mention):
            continue
        if scope.role is Role.HYPOTHETICAL:
            return None
        if not scope.forward:
            said_after = scope if said_after is None else said_after
        elif nearest is None or scope.cue_end >= nearest.cue_end:
            nearest = scope
    decisive = said_after or nearest
    stated = _OF_VALUE[value]
    if decisive is None:
        return stated
    return min(_STANCE[decisive.role], stated)


def _governs(scope: Scope, mention: Mention) -> bool:
    if scope.forward:
        return scope.start <= mention.head < scope.end
    inside = mention.start >= scope.start and mention.end <= scope.end
    apart = mention.end <= scope.cue_start or mention.start >= scope.cue_end
    return inside and apart


def _single_spaced(text: str) -> tuple[str, list[int] | None]:
    """Collapse runs of spaces; return the text and each character's old position."""
    if "  " not in text:
        return text, None
    origin: list[int] = []
    last = 0
    for run in _RUN.finditer(text):
        origin += range(last, run.start() + 1)
        last = run.end()
    origin += range(last, len(text))
    return _RUN.sub(" ", text), origin


def _word_end(text: str, end: int) -> int:
    while end < len(text) and text[end].isalnum():
        end += 1
    return end


def _at_boundary(text: str, start: int, end: int, entry: Entry) -> bool:
    if not entry.words:
        return True
    if start and text[start - 1].isalnum():
        return False
    return entry.prefix or end == len(text) or not text[end].isalnum()
