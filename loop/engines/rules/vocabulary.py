"""Cues and guide wordings as one list of strings for the multi-pattern matcher."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from enum import IntEnum
from operator import is_
from typing import NamedTuple

from loop.core.records import Guide, Value
from loop.engines.rules.cues import Cues, Directed

GAP = "..."
"""Between two words of a wording: up to `MAX_GAP_WORDS` other words may stand here."""

MAX_GAP_WORDS = 5

MAX_GAP_CHARACTERS = 8
"""The same for text without spaces between words, in characters."""

MEMO_PARTS = 10_000
"""Parts of wordings whose spellings are remembered."""

_CJK_COMMA = re.compile(r"(?<=[\u3400-\u9fff]),|,(?=[\u3400-\u9fff])")
_FOLD = {ord(char): " " for char in "-‐‑‒–—/\\\t\r\n\u00a0\u3000"} | {0x2019: "'"}
_SPACES = re.compile(r"\s+")
_PARENTHESES = re.compile(r"\s*\([^)]*\)")


class CueRole(IntEnum):
    """What a matched string does in its sentence."""

    NEGATION = 1
    LIMITED = 2
    UNCERTAIN = 3
    HYPOTHETICAL = 4
    PSEUDO = 5
    TERMINATOR = 6
    AFFIRMATION = 7
    GAP_STOP = 8
    PROBABLE = 9
    OPENING = 10
    RESTART = 11
    PENDING = 12
    REPORTED = 13
    PREFERRED = 14
    OVER = 15
    NEUTRAL = 16
    EMPTY_BOX = 17
    TICKED_BOX = 18
    QUALIFIER = 19
    LEFT = 20
    RIGHT = 21
    DENIABLE = 22


class CueSide(IntEnum):
    """Where the words a cue governs stand."""

    AFTER_CUE = 1
    AFTER_CUE_NEAR = 2
    BEFORE_CUE = 3
    BOTH = 4
    ANSWER = 5
    """What stands before, when the cue ends its statement: "Effusion: no"."""

    QUESTION = 6
    """What it touches: "?effusion" or "effusion?"."""


class Cue(NamedTuple):
    """One meaning of a cue string."""

    role: CueRole
    side: CueSide


class Meanings(NamedTuple):
    """Everything that one matched string means as a cue."""

    kinds: tuple[Cue, ...]
    roles: int
    """One bit for each role."""

    silent: bool
    """Whether it governs nothing and hides no cue inside it."""

    answers: int
    """1 where it may answer what stands before it, 2 where it can do nothing else."""

    @classmethod
    def of(cls, kinds: Sequence[Cue]) -> Meanings:
        """Return the meanings of a string with these kinds."""
        roles = {kind.role for kind in kinds}
        asked = {kind.side is CueSide.ANSWER for kind in kinds}
        return cls(
            kinds=tuple(kinds),
            roles=sum(1 << role for role in roles),
            silent=roles <= _SILENT,
            answers=asked.__contains__(True) + (asked == {True}),
        )


_SILENT = frozenset(
    {
        *(CueRole.AFFIRMATION, CueRole.OPENING, CueRole.GAP_STOP, CueRole.RESTART),
        *(CueRole.QUALIFIER, CueRole.LEFT, CueRole.RIGHT),
    }
)
"""Roles that govern nothing and hide no cue inside them."""


class GuideWording(NamedTuple):
    """One wording of one label, possibly in several parts."""

    target: int
    """Index of the label among the guides."""

    value: Value | None
    """What it means when not negated; None for an exclusion."""

    parts: int
    """Number of parts; parts are separated by a limited gap."""

    clarifies: bool
    """Whether it outranks the terms it overlaps."""

    text: str
    """As the guide has it."""


Wording = tuple[str, Value | None, bool]
"""A wording as a guide has it, what it means, and whether it clarifies."""


class WordingPart(NamedTuple):
    """One part of a wording."""

    wording: int
    order: int


@dataclass(slots=True)
class VocabularyEntry:
    """All meanings of one string."""

    prefix: bool
    """Whether the word may go on, as in ``atelecta*``."""

    opens: bool
    """Whether it must begin at a word boundary."""

    closes: bool
    """Whether it must end at one; a prefix need not."""

    cues: Meanings | None = None
    parts: list[WordingPart] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Strings with their meanings, ready for the matcher."""

    strings: tuple[str, ...]
    entries: tuple[VocabularyEntry, ...]
    wordings: tuple[GuideWording, ...]

    def adds(self, wording: GuideWording, other: Vocabulary) -> bool:
        """Whether this is another vocabulary and one wording more.

        The matcher then finds all others in the same order.
        """
        if [one for one in self.wordings if one is not wording] != [*other.wordings]:
            return False
        mine, theirs = self._first_of_both(), other._first_of_both()
        return all(mine[text] == before for text, before in theirs.items())

    def _first_of_both(self) -> dict[str, bool]:
        """Return which strings are there with and without "*", and which came first.

        The matcher finds these two in the order in which they were added, and all
        others in that of the text.
        """
        order: dict[str, list[bool]] = defaultdict(list)
        for text, entry in zip(self.strings, self.entries, strict=True):
            order[text].append(entry.prefix)
        return {text: both[0] for text, both in order.items() if len(both) > 1}


def fold(text: str) -> str:
    """Lower-case `text` with hyphens, slashes and line ends as spaces, same length."""
    lowered = text.lower()
    if len(lowered) != len(text):  # for example a dotted capital I
        lowered = "".join(c if len(c.lower()) != 1 else c.lower() for c in text)
    if not lowered.isascii():
        # In Chinese a comma typed as ASCII still ends a statement.
        lowered = _CJK_COMMA.sub("，", lowered)
    return lowered.translate(_FOLD)


def build_vocabulary(guides: Sequence[Guide], cues: Sequence[Cues]) -> Vocabulary:
    """Return the matcher's strings for these guides under these cues.

    Parameters
    ----------
    guides
        Labels in the order of `GuideWording.target`.
    cues
        One per language; all are searched for at once.
    """
    builder = _with_cues(tuple(cues))
    for target, guide in enumerate(guides):
        for wording, value, clarifies in guide_wordings(guide):
            builder.add_wording(wording, target, value, clarifies)
    keys = tuple(builder.entries)
    return Vocabulary(
        tuple(text for text, _ in keys),
        tuple(builder.entries[key] for key in keys),
        tuple(builder.wordings),
    )


_KNOWN: deque[tuple[tuple[Cues, ...], _Builder]] = deque(maxlen=4)
"""Cues that were compiled last: prompts with a call for each label share them."""


def _with_cues(cues: tuple[Cues, ...]) -> _Builder:
    """Return a separate builder that holds all strings of `cues`."""
    for known, builder in tuple(_KNOWN):
        if len(known) == len(cues) and all(map(is_, known, cues)):
            return builder.begun()
    made = _Builder(cues)
    for language in cues:
        made.add_cues(language)
    _KNOWN.append((cues, made))
    return made.begun()


def guide_wordings(guide: Guide) -> Iterator[Wording]:
    """Yield ``(wording, value, clarifies)`` for everything in a guide that can match.

    The label's own name counts as a term. The evidence of an exemplar counts as a
    clarification with the exemplar's value.
    """
    yield _PARENTHESES.sub("", guide.name), Value.PRESENT, False
    for wordings in guide.parts:
        for term in wordings.terms:
            yield term, Value.PRESENT, False
        for exclusion in wordings.exclusions:
            yield exclusion, None, True
        for rule in wordings.clarifications:
            if isinstance(rule.value, Value):
                yield rule.phrase, rule.value, True
    for exemplar in guide.exemplars:
        if isinstance(exemplar.value, Value):
            yield exemplar.evidence, exemplar.value, True


class _Builder:
    """Collects strings; equal strings share one entry."""

    def __init__(self, cues: Sequence[Cues]) -> None:
        self.entries: dict[tuple[str, bool], VocabularyEntry] = {}
        self._begun: Mapping[tuple[str, bool], VocabularyEntry] = {}
        self.wordings: list[GuideWording] = []
        self._inflections = [pair for one in cues for pair in one.inflections]
        self._spellings = [pair for one in cues for pair in one.spellings]
        spelled = {re.escape(one) for pair in self._spellings for one in pair}
        self._spelled = re.compile("|".join(sorted(spelled)) or "(?!)")
        self._spelled_parts: dict[str, Iterable[str]] = {}

    def begun(self) -> _Builder:
        """Return a copy that wordings are added to, and not to this one."""
        made = copy(self)
        made.wordings = []
        made.entries, made._begun = {**self.entries}, self.entries
        return made

    def add_cues(self, cues: Cues) -> None:
        kinds = (
            (CueRole.NEGATION, cues.negation),
            (CueRole.LIMITED, cues.limited),
            (CueRole.UNCERTAIN, cues.uncertain),
            (CueRole.PROBABLE, cues.probable),
            (CueRole.NEGATION, cues.historical),
            (CueRole.HYPOTHETICAL, cues.hypothetical),
        )
        for role, directed in kinds:
            for phrase, side in _sides(directed):
                self._add_cue(phrase, Cue(role, side), cues)
        plain = (
            (CueRole.PSEUDO, cues.pseudo),
            (CueRole.NEUTRAL, cues.neutral),
            (CueRole.DENIABLE, cues.deniable),
            (CueRole.TERMINATOR, cues.terminators),
            (CueRole.QUALIFIER, cues.qualifiers),
            (CueRole.LEFT, cues.sides.left),
            (CueRole.RIGHT, cues.sides.right),
            (CueRole.EMPTY_BOX, cues.boxes.empty),
            (CueRole.TICKED_BOX, cues.boxes.ticked),
            (CueRole.AFFIRMATION, cues.affirmations),
            (CueRole.OPENING, cues.openings),
            (CueRole.GAP_STOP, cues.gap_stops),
            (CueRole.RESTART, cues.restarts),
            (CueRole.PENDING, cues.pending),
            (CueRole.REPORTED, cues.other_studies.reported),
            (CueRole.PREFERRED, cues.preferred),
            (CueRole.OVER, cues.over),
        )
        for role, phrases in plain:
            for phrase in phrases:
                self._add_cue(phrase, Cue(role, CueSide.BOTH), cues)

    def _add_cue(self, phrase: str, cue: Cue, cues: Cues) -> None:
        for form in cues.spelled_out(phrase):
            entry = self._entry(tidy(form), prefix=False, words=cues.words)
            known = entry.cues.kinds if entry.cues else ()
            if cue not in known:
                entry.cues = Meanings.of((*known, cue))

    def add_wording(
        self, wording: str, target: int, value: Value | None, clarifies: bool
    ) -> None:
        parts = [tidy(part) for part in wording.replace("…", GAP).split(GAP)]
        parts = [part for part in parts if part.strip("*")]
        if not parts:
            return
        number = len(self.wordings)
        self.wordings.append(
            GuideWording(target, value, len(parts), clarifies, wording)
        )
        for index, part in enumerate(parts):
            prefix = part.endswith("*")
            for spelling in self._variants(part):
                words = not has_cjk(spelling)
                entry = self._entry(spelling, prefix=prefix, words=words)
                if entry is self._begun.get((spelling, prefix)):
                    entry = replace(entry, parts=[])
                    self.entries[spelling, prefix] = entry
                entry.parts.append(WordingPart(number, index))

    def _entry(self, text: str, *, prefix: bool, words: bool) -> VocabularyEntry:
        key = text, prefix
        if key not in self.entries:
            self.entries[key] = VocabularyEntry(
                prefix=prefix,
                opens=words and text[:1].isalnum(),
                closes=words and not prefix and text[-1:].isalnum(),
            )
        return self.entries[key]

    def _variants(self, part: str) -> Iterable[str]:
        """Return every spelling and inflection of one part.

        They are shared with every builder that begins with these cues: a search
        compiles the same guides many times, each time with one wording more.
        """
        known = self._spelled_parts.get(part)
        if known is None:
            if len(self._spelled_parts) >= MEMO_PARTS:
                self._spelled_parts.clear()
            known = self._spelled_parts[part] = self._spell(part)
        return known

    def _spell(self, part: str) -> Iterable[str]:
        if has_cjk(part):
            return {part}
        forms = (
            {part[:-1]}
            if part.endswith("*")
            else set(inflected(part, self._inflections))
        )
        if not any(map(self._spelled.search, forms)):
            return forms
        for one, other in self._spellings:
            forms |= {form.replace(one, other) for form in forms}
            forms |= {form.replace(other, one) for form in forms}
        return forms


def inflected(
    phrase: str, inflections: Sequence[tuple[str, Sequence[str]]]
) -> Iterator[str]:
    """Yield a folded phrase with every form of its last word, itself first.

    Parameters
    ----------
    inflections
        Endings and what may stand in place of each; the longest that fits applies.
    """
    yield phrase
    endings = [e for e, _ in inflections if phrase.endswith(e)]
    if not endings or not phrase[-1:].isalpha():
        return
    longest = max(endings, key=len)
    stem = phrase[: len(phrase) - len(longest)]
    for ending, replacements in inflections:
        if ending == longest:
            for replacement in replacements:
                yield stem + replacement


def tidy(phrase: str) -> str:
    """Return a wording as it is searched for: folded, single spaces, no edges."""
    return _SPACES.sub(" ", fold(phrase)).strip()


def has_cjk(text: str) -> bool:
    """Whether `text` holds a Chinese character: no word boundaries then."""
    if text.isascii():  # nearly all, and quickly told
        return False
    return any("\u3400" <= char <= "\u9fff" or char in "，：、" for char in text)


def _sides(directed: Directed) -> Iterator[tuple[str, CueSide]]:
    for phrase in directed.before:
        yield phrase, CueSide.AFTER_CUE
    for phrase in directed.before_near:
        yield phrase, CueSide.AFTER_CUE_NEAR
    for phrase in directed.after:
        yield phrase, CueSide.BEFORE_CUE
    for phrase in directed.between:
        yield phrase, CueSide.BOTH
    for phrase in directed.answers:
        yield phrase, CueSide.ANSWER
    for phrase in directed.questions:
        yield phrase, CueSide.QUESTION
