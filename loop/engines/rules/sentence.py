"""What one sentence says of each label: mentions, then their assertion status."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
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
    respelled: tuple[tuple[str, str], ...] = ()
    """Misspelt words in it, each as written and as it was read."""

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


class _ParsedSentence:
    """What stands in a sentence, and what came of it for readers that share it."""

    __slots__ = ("changed", "cues", "hits", "mentions", "origin", "scopes", "text")

    def __init__(
        self,
        text: str,
        origin: Sequence[int] | None,
        changed: Sequence[tuple[int, int]],
        cues: list[Found],
        mentions: list[Mention],
    ) -> None:
        self.text = text
        self.origin = origin
        self.changed = changed
        self.cues = cues
        self.mentions = mentions
        self.scopes: dict[frozenset[int], Sequence[Scope]] = {}
        """What the cues govern, by where the mentions end that count."""

        self.hits: dict[tuple[Value | None, tuple[int, ...]], tuple[Hit, ...]] = {}
        """By what the wording means, and by the mentions that do not count."""


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
        self._parsed: dict[str, _ParsedSentence] | None = None
        self._shared: dict[GuideWording, dict[str, _ParsedSentence]] = {}
        self._retaken: tuple[GuideWording, GuideWording] | None = None

    def read(self, sentence: str) -> tuple[Hit, ...]:
        """Return the judged mentions of `sentence`, offsets into it."""
        known = self._memo.get(sentence)
        if known is None:
            known = self._judge(sentence)
            self._remember(sentence, known)
        return known

    def _remember(self, sentence: str, hits: tuple[Hit, ...]) -> None:
        if len(self._memo) >= self._memo_size:
            self._memo.clear()
        if self._memo_size:
            self._memo[sentence] = hits

    def retaking(self, old: GuideWording, new: GuideWording) -> SentenceReader:
        """Return a reader that takes one wording for something else.

        All that take this one share what stands in the sentences, since they find the
        same words, and what comes of it where it must be the same.
        """
        other = copy(self)
        other._memo = {}
        other._parsed = self._shared.setdefault(old, {})
        other._retaken = old, new
        return other

    def has_read(self, sentences: Iterable[str]) -> bool:
        """Whether it remembers all of the sentences."""
        return all(map(self._memo.__contains__, sentences))

    def judge_for(self, other: SentenceReader, sentences: Iterable[str]) -> None:
        """Judge sentences for a reader that lacks nothing but the wording retaken."""
        if self._retaken is None:
            return
        old = self._retaken[0]
        nothing = old, old._replace(value=None, clarifies=False)
        speller = other._speller
        for sentence in sentences:
            if sentence in other._memo:
                continue
            parsed = self._parse(sentence)
            # Where either corrects a word, the two may read different words.
            if not parsed.changed and not (
                speller.works and speller.fixes(parsed.text)
            ):
                other._remember(sentence, self._judge_parsed(sentence, parsed, nothing))

    def take_over(self, other: SentenceReader) -> None:
        """Judge each sentence that only `other` has read so far as it did."""
        self._memo = other._memo | self._memo

    def explain(self, sentence: str) -> tuple[JudgedMention, ...]:
        """Return every mention that `read` looked at, and what became of it."""
        judged: list[JudgedMention] = []
        self._judge(sentence, judged)
        return tuple(judged)

    def _judge(
        self, sentence: str, told: list[JudgedMention] | None = None
    ) -> tuple[Hit, ...]:
        """Return the judged mentions; put into `told` why, where somebody asks."""
        return self._judge_parsed(sentence, self._parse(sentence), self._retaken, told)

    def _judge_parsed(
        self,
        sentence: str,
        parsed: _ParsedSentence,
        retaken: tuple[GuideWording, GuideWording] | None,
        told: list[JudgedMention] | None = None,
    ) -> tuple[Hit, ...]:
        """Return what comes of a sentence if one wording is taken for another."""
        found = parsed.mentions
        if not found:
            return ()
        meant = None
        if retaken:
            old, new = retaken
            meant = new.value
            found = [
                Mention(new, one.start, one.end, one.head)
                if one.wording is old
                else one
                for one in found
            ]
        dropped = _overruled(found)
        key = meant, dropped
        if told is None and key in parsed.hits:
            return parsed.hits[key]
        mentions = found
        if dropped:
            mentions = [one for n, one in enumerate(found) if n not in dropped]
        cues, scopes = self._scopes(sentence, parsed, mentions)
        hits = []
        decided: list[_Decided] | None = None if told is None else []
        assessed = self._assess(parsed.text, mentions, cues, scopes, decided=decided)
        if told is not None:
            places = _Places(sentence, parsed.text, parsed.origin, parsed.changed)
            told += _tell(found, decided or (), assessed, places)
        origin, changed = parsed.origin, parsed.changed
        for mention, stance in assessed:
            start, end = mention.start, mention.end
            respelled = bool(changed) and any(
                start < stop and at < end for at, stop in changed
            )
            if origin is not None:
                start, end = origin[start], origin[end - 1] + 1
            hits.append(Hit(mention.wording.target, stance, start, end, respelled))
        parsed.hits[key] = tuple(hits)
        return parsed.hits[key]

    def _parse(self, sentence: str) -> _ParsedSentence:
        """Return what stands in a sentence."""
        if self._parsed and sentence in self._parsed:
            return self._parsed[sentence]
        text, origin = _single_spaced(fold(sentence))
        changed: Sequence[tuple[int, int]] = ()
        if self._speller.works:
            fixes = self._speller.fixes(text)
            if fixes:
                text, origin, changed = respell(text, origin, fixes)
        cues, parts = self._match(text)
        mentions = self._mentions(text, parts, cues) if parts else []
        parsed = _ParsedSentence(text, origin, changed, cues, mentions)
        if self._parsed is not None and len(self._parsed) < self._memo_size:
            self._parsed[sentence] = parsed
        return parsed

    def _scopes(
        self, sentence: str, parsed: _ParsedSentence, mentions: Sequence[Mention]
    ) -> tuple[list[Found], Sequence[Scope]]:
        """Return the cues of a sentence with these mentions, and what they govern."""
        cues, ends = parsed.cues, frozenset([mention.end for mention in mentions])
        if self._grammar.lost_stop.search(sentence):
            # Where it is lost depends on where the mentions begin.
            cues = [*cues, *self._lost_stops(sentence, parsed.text, mentions, cues)]
            return cues, self._grammar.scopes(parsed.text, cues, ends)
        if ends not in parsed.scopes:
            parsed.scopes[ends] = self._grammar.scopes(parsed.text, cues, ends)
        return cues, parsed.scopes[ends]

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
        scopes: Sequence[Scope],
        *,
        decided: list[_Decided] | None = None,
    ) -> list[tuple[Mention, Stance]]:
        """Return the mentions that are more than asked about, with their status.

        Into `decided` goes what the cues alone make of every mention.
        """
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
        self,
        sentence: str,
        text: str,
        mentions: Sequence[Mention],
        cues: Sequence[Found],
    ) -> Iterator[Found]:
        """Yield the spaces at which a sentence ended although its full stop is lost.

        None is where every word has a capital ("No Pleural Effusion"), and none where a
        denial still needs its finding ("No focal Consolidation").
        """
        if len(sentence) != len(text):
            return
        for opener in self._grammar.lost_stop.finditer(sentence):
            place = opener.start()
            named = any(mention.start == place + 1 for mention in mentions)
            if not opener[1] and not named:
                continue
            before = sentence.rfind(" ", 0, place) + 1
            if all(mention.end != place for mention in mentions):
                if before and sentence[before].isupper():
                    continue
                if not opener[1] and self._grammar.awaits_finding(cues, place):
                    continue
            yield place, place + 1, LOST_STOP

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
            if len(found) < wording.parts:
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


def _overruled(mentions: Sequence[Mention]) -> tuple[int, ...]:
    """Return which terms a clarification or exclusion of the same label overlaps.

    Among those, the longest wording decides. Exclusions only drop; they are no
    mention themselves.
    """
    ruling = [m for m in mentions if m.wording.clarifies]
    dropped = []
    for number, mention in enumerate(mentions):
        if mention.wording.value is None:
            dropped.append(number)
            continue
        # Not `any`: most sentences have no rule or one.
        for rule in ruling:
            if _overrules(rule, mention):
                dropped.append(number)
                break
    return tuple(dropped)


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

    sentence: str
    text: str
    """Folded, its spelling corrected."""

    origin: Sequence[int] | None
    changed: Sequence[tuple[int, int]]
    """What the correction of spelling touched in `text`."""

    def of(self, start: int, end: int) -> Span:
        if self.origin is None or start >= end:
            return Span(start, max(start, end))
        end = min(end, len(self.origin))
        return Span(self.origin[start], self.origin[end - 1] + 1)

    def respelled(self, mention: Mention) -> Iterator[tuple[str, str]]:
        for at, stop in self.changed:
            if mention.start < stop and at < mention.end:
                place = self.of(at, stop)
                yield self.sentence[place.start : place.end], self.text[at:stop]


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
            tuple(places.respelled(mention)),
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
    decides. A differential ("versus") does not undo a negation. A degree that belongs
    to the wording is denied with it: "no acute infarct" denies "acute infarct".
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
    return min(_made_of(mention, decisive), stated), decisive


def _made_of(mention: Mention, decisive: Scope) -> Stance:
    """Return what a cue makes of a mention that states its finding."""
    stance = _STANCE[decisive.role]
    if stance is Stance.LIMITED and _begins_in_cue(mention, decisive):
        return Stance.NEGATED
    return stance


def _begins_in_cue(mention: Mention, scope: Scope) -> bool:
    """Whether the last words of a cue that looks ahead are the first of a mention."""
    begins = scope.cue_start < mention.start < scope.cue_end < mention.end
    return scope.forward and begins


def _governs(scope: Scope, mention: Mention) -> bool:
    if scope.forward:
        head = mention.head
        if _begins_in_cue(mention, scope):
            head = max(head, scope.start)
        return scope.start <= head < scope.end
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
