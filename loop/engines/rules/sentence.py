"""What one sentence says of each label: mentions, then their assertion status."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from ahocorasick_rs import AhoCorasick, Implementation, MatchKind

from loop.core.records import Span, Value
from loop.engines.rules.scopes import LOST_STOP, Found, Grammar, Scope
from loop.engines.rules.spelling import Speller, respell
from loop.engines.rules.vocabulary import (
    MAX_GAP_CHARACTERS,
    MAX_GAP_WORDS,
    CueRole,
    CueSide,
    GuideWording,
    Vocabulary,
    fold,
    has_cjk,
)

MEMO_SENTENCES = 50_000
"""Distinct sentences remembered."""

_RUN = re.compile(r"  +")
_GAP_END = re.compile(r"[,，、]")
_GAP_BREAK = re.compile(r"[,:;()]|\band\b")

ALTERNATIVE_GAP = 40
"""Characters that may stand between two findings that an "or" makes uncertain."""


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

    respelled: bool = False
    """Whether it rests on a word whose spelling was corrected."""


class Mention(NamedTuple):
    """Where a wording stands in a folded sentence."""

    wording: GuideWording
    start: int
    end: int
    head: int
    """Start of the last part: the word that a cue inside the gap can govern."""


_STANCE = {
    CueRole.NEGATION: Stance.NEGATED,
    CueRole.LIMITED: Stance.LIMITED,
    CueRole.UNCERTAIN: Stance.UNCERTAIN,
}
_OF_VALUE = {
    Value.PRESENT: Stance.PRESENT,
    Value.UNCERTAIN: Stance.UNCERTAIN,
    Value.ABSENT: Stance.NEGATED,
}


class JudgedMention(NamedTuple):
    """Why a mention counts as it does; places are those of the sentence as written."""

    wording: GuideWording
    place: Span
    respelled: bool
    stance: Stance | None = None
    """None where it says nothing: overruled, an exclusion, or only asked about."""

    by_cues: Stance | None = None
    """What its wording and the cue alone say, before the words around weaken it."""

    role: CueRole | None = None
    """What the cue that decides does; None where the wording alone decides."""

    cue: Span | None = None
    scope: Span | None = None
    """What that cue governs."""

    overruled: GuideWording | None = None
    """The exclusion or clarification that takes its place."""


_Decided = tuple[Mention, Stance | None, Scope | None]


class SentenceReader:
    """Reads sentences; remembers those it has read, since reports repeat them."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        grammar: Grammar,
        speller: Speller,
        *,
        memo: int = MEMO_SENTENCES,
    ) -> None:
        self._grammar = grammar
        self._speller = speller
        self._entries = vocabulary.entries
        self._wordings = vocabulary.wordings
        self._automaton = AhoCorasick(
            vocabulary.strings,
            matchkind=MatchKind.Standard,
            implementation=Implementation.ContiguousNFA,
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

    def explain(self, sentence: str) -> tuple[JudgedMention, ...]:
        """Return every mention that `read` looked at, and what became of it."""
        judged: list[JudgedMention] = []
        self._judge(sentence, judged)
        return tuple(judged)

    def _judge(
        self, sentence: str, told: list[JudgedMention] | None = None
    ) -> tuple[Hit, ...]:
        """Return the judged mentions; put into `told` why, where somebody asks."""
        text, origin = _single_spaced(fold(sentence))
        changed: Sequence[tuple[int, int]] = ()
        if self._speller.works:
            fixes = self._speller.fixes(text)
            if fixes:
                text, origin, changed = respell(text, origin, fixes)
        cues, parts = self._match(text)
        if not parts:
            return ()
        found = self._mentions(text, parts, cues)
        mentions = _without_overruled(found)
        if self._grammar.lost_stop.search(sentence):
            cues += self._lost_stops(sentence, text, mentions)
        hits = []
        decided: list[_Decided] | None = None if told is None else []
        assessed = self._assess(text, mentions, cues, decided)
        if told is not None:
            told += _tell(found, decided or (), assessed, _Places(origin, changed))
        for mention, stance in assessed:
            start, end = mention.start, mention.end
            respelled = bool(changed) and any(
                start < stop and at < end for at, stop in changed
            )
            if origin is not None:
                start, end = origin[start], origin[end - 1] + 1
            hits.append(Hit(mention.wording.target, stance, start, end, respelled))
        return tuple(hits)

    def _match(
        self, text: str
    ) -> tuple[list[Found], dict[int, list[tuple[int, int, int]]]]:
        """Return the cues in a folded sentence, and the parts of wordings."""
        length = len(text)
        cues: list[Found] = []
        parts: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for number, start, end in self._automaton.find_matches_as_indexes(
            text, overlapping=True
        ):
            entry = self._entries[number]
            # Not a function of its own: most of the time goes here.
            if entry.opens and start and text[start - 1].isalnum():
                continue
            if entry.closes and end < length and text[end].isalnum():
                continue
            if entry.prefix:
                end = _word_end(text, end)
            if entry.cues is not None:
                cues.append((start, end, entry.cues))
            for wording, order in entry.parts:
                parts[wording].append((order, start, end))
        return cues, parts

    def _assess(
        self,
        text: str,
        mentions: Sequence[Mention],
        cues: Sequence[Found],
        decided: list[_Decided] | None = None,
    ) -> list[tuple[Mention, Stance]]:
        """Return the mentions that are more than asked about, with their status.

        Into `decided` goes what the cues alone make of every mention.
        """
        scopes: Sequence[Scope] = ()
        if cues:
            ends = [mention.end for mention in mentions]
            scopes = self._grammar.scopes(text, cues, ends)
        beside: Sequence[Found] | None = None
        judged = []
        present = set()
        for mention in mentions:
            stance, decisive = judge_mention(mention, scopes)
            if decided is not None:
                decided.append((mention, stance, decisive))
            if stance is None:
                continue
            if stance is Stance.PRESENT:
                present.add(mention.wording.target)
            elif stance is Stance.NEGATED and decisive is not None:
                if beside is None:
                    beside = self._grammar.narrowing(cues)
                place = mention.start, mention.end
                if beside and self._grammar.narrows(text, place, decisive, beside):
                    stance = Stance.LIMITED
            judged.append((mention, stance))
        if len(present) > 1:
            return self._without_alternatives(text, judged, cues)
        return judged

    def _lost_stops(
        self, sentence: str, text: str, mentions: Sequence[Mention]
    ) -> Iterator[Found]:
        """Yield the spaces at which a sentence ended although its full stop is lost."""
        if len(sentence) != len(text):
            return
        for opener in self._grammar.lost_stop.finditer(sentence):
            end = opener.start() + 1
            if opener[1] or any(mention.start == end for mention in mentions):
                yield end - 1, end, LOST_STOP

    def _without_alternatives(
        self,
        text: str,
        judged: list[tuple[Mention, Stance]],
        cues: Sequence[Found],
    ) -> list[tuple[Mention, Stance]]:
        """Return `judged` with two present findings uncertain if "or" joins them."""
        for found in self._grammar.either.finditer(text):
            low, high = found.span()
            mentions = [one for one, _ in judged]
            end = max((one.end for one in mentions if one.end <= low), default=-1)
            start = min(
                (one.start for one in mentions if one.start >= high), default=-1
            )
            # Only words such as "early" may stand between a finding and the "or".
            if end < 0 or not 0 < start - end <= ALTERNATIVE_GAP:
                continue
            if _GAP_BREAK.search(text, end, start) or any(
                end <= at < start for at, _, kinds in cues if not kinds.silent
            ):
                continue
            # In "no change in A or B" it only joins what is not changed.
            if self._grammar.is_denied(cues, end):
                continue
            left = {one.wording.target for one in mentions if one.end == end}
            right = {one.wording.target for one in mentions if one.start == start}
            if left.isdisjoint(right):
                judged = [
                    (one, min(stance, Stance.UNCERTAIN))
                    if one.end == end or one.start == start
                    else (one, stance)
                    for one, stance in judged
                ]
        return judged

    def _mentions(
        self,
        text: str,
        parts: dict[int, list[tuple[int, int, int]]],
        cues: Sequence[Found],
    ) -> list[Mention]:
        stops = None
        mentions = []
        for number, found in parts.items():
            wording = self._wordings[number]
            if wording.parts == 1:
                mentions += [Mention(wording, s, e, s) for _, s, e in found]
                continue
            if stops is None:
                stops = [
                    start
                    for start, _, kinds in cues
                    if kinds.roles >> CueRole.GAP_STOP & 1
                ]
            mentions += _gapped(text, wording, found, stops)
        return mentions


def _gapped(
    text: str,
    wording: GuideWording,
    found: Sequence[tuple[int, int, int]],
    stops: Sequence[int],
) -> list[Mention]:
    """Join parts in order, each within `MAX_GAP_WORDS` words of the one before."""
    chains = [(s, e, s) for order, s, e in found if order == 0]
    for part in range(1, wording.parts):
        following = sorted((s, e) for order, s, e in found if order == part)
        longer = []
        for first, end, _ in chains:
            # The nearest one or none: a longer gap holds all that a shorter one does.
            near = bisect_left(following, (end, 0))
            if near < len(following):
                start, stop = following[near]
                if _is_gap(text, end, start, stops):
                    longer.append((first, stop, start))
        chains = longer
    return [Mention(wording, start, end, head) for start, end, head in chains]


def _is_gap(text: str, start: int, end: int, stops: Sequence[int]) -> bool:
    """Whether the words between two parts are few and do not start a new thought."""
    between = text[start:end]
    if _GAP_END.search(between) or between.count(" ") > MAX_GAP_WORDS + 1:
        return False
    if has_cjk(between) and len(between) > MAX_GAP_CHARACTERS:
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


class _Places(NamedTuple):
    """How places in a folded sentence are found in the sentence as written."""

    origin: Sequence[int] | None
    changed: Sequence[tuple[int, int]]
    """What the correction of spelling touched."""

    def of(self, start: int, end: int) -> Span:
        if self.origin is None or start >= end:
            return Span(start, max(start, end))
        end = min(end, len(self.origin))
        return Span(self.origin[start], self.origin[end - 1] + 1)

    def respelled(self, mention: Mention) -> bool:
        return any(
            mention.start < stop and at < mention.end for at, stop in self.changed
        )


def _tell(
    found: Sequence[Mention],
    decided: Sequence[_Decided],
    assessed: Sequence[tuple[Mention, Stance]],
    places: _Places,
) -> Iterator[JudgedMention]:
    """Yield why each of the mentions `found` counts as it does."""
    kept = {id(mention): (stance, scope) for mention, stance, scope in decided}
    final = {id(mention): stance for mention, stance in assessed}
    for mention in found:
        bare = JudgedMention(
            mention.wording,
            places.of(mention.start, mention.end),
            places.respelled(mention),
        )
        if id(mention) in kept:
            stance, scope = kept[id(mention)]
            bare = bare._replace(stance=final.get(id(mention)), by_cues=stance)
            if scope is not None:
                bare = bare._replace(
                    role=scope.role,
                    cue=places.of(scope.cue_start, scope.cue_end),
                    scope=places.of(scope.start, scope.end),
                )
        elif mention.wording.value is not None:
            rules = (one for one in found if one.wording.clarifies)
            by = next((one for one in rules if _overrules(one, mention)), None)
            bare = bare._replace(overruled=by.wording if by else None)
        yield bare


def judge_mention(
    mention: Mention, scopes: Sequence[Scope]
) -> tuple[Stance | None, Scope | None]:
    """Return the status of a mention and what decides it.

    Without a status it is only asked about. What is said after a mention ("... cannot
    be excluded") outranks what stands before it; of several cues before it the nearest
    decides. A differential ("versus") does not undo a negation.
    """
    value = mention.wording.value
    if value is None:
        return None, None
    nearest, said_after, around = None, None, None
    for scope in scopes:
        if not _governs(scope, mention):
            continue
        if scope.role is CueRole.HYPOTHETICAL:
            return None, scope
        if scope.side is CueSide.BOTH:
            around = around or scope
        elif not scope.forward:
            if said_after is None or scope.side is CueSide.ANSWER:
                said_after = scope
        elif nearest is None or scope.cue_end >= nearest.cue_end:
            nearest = scope
    decisive = said_after or nearest or around
    stated = _OF_VALUE[value]
    if decisive is None:
        return stated, None
    return min(_STANCE[decisive.role], stated), decisive


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
