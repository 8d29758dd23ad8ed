"""The engine: one answer per prompt, from the guides in its frame."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from weakref import ref

from loop.core.errors import EngineError
from loop.core.records import (
    Completion,
    Guide,
    Note,
    Prompt,
    PromptFrame,
    PromptTask,
    Span,
    Value,
)
from loop.engines.base import Engine, Settings, register
from loop.engines.rules.cues import Cues, read_cues
from loop.engines.rules.judge_engine import JudgingEngine
from loop.engines.rules.scopes import Grammar
from loop.engines.rules.sections import SectionFinder, sentences
from loop.engines.rules.sentence import (
    MEMO_SENTENCES,
    Hit,
    JudgedMention,
    SentenceReader,
    Stance,
)
from loop.engines.rules.spelling import Speller
from loop.engines.rules.vocabulary import (
    CueRole,
    GuideWording,
    Wording,
    build_vocabulary,
)
from loop.engines.rules.weights import JUDGING, read_judging

REVISION = 6
"""Raised whenever the same guides and cues may give another answer."""

_BINARY = frozenset({Value.PRESENT.value, Value.ABSENT.value})

_NOTHING_READ = (
    "every section of the text is one that is not read, such as an indication; name "
    "the sections in labels/cues, or leave the case out"
)

_VALUE = {
    Stance.PRESENT: Value.PRESENT,
    Stance.UNCERTAIN: Value.UNCERTAIN,
    Stance.NEGATED: Value.ABSENT,
    Stance.LIMITED: Value.ABSENT,
}


class ReportSentence(NamedTuple):
    """One sentence that is read of a report."""

    offset: int
    """Where it begins in the report."""

    sentence: str
    decisive: bool
    """Whether its section wins over others where they disagree."""


class RulesMention(NamedTuple):
    """One mention of a label in a text: which guide line found it, what decided."""

    label: str
    part: str
    """Of the guide: name, term, exclusion, clarification or exemplar."""

    wording: str
    """That guide line, as the guide has it."""

    span: Span
    value: Value | None
    """What it says of the label; None where it says nothing."""

    why: str
    """What decided, in words."""

    cue: Span | None
    scope: Span | None
    """What the cue governs."""

    decides: bool
    """Whether the answer about its label rests on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesExplanation:
    """Why `rules` answers a text as it does."""

    mentions: tuple[RulesMention, ...]
    """In the order of the text."""

    implied: Mapping[str, str]
    """Label that is present only because another one is, to that other one."""

    disputed: tuple[str, ...]
    """Labels of which the impression was believed against the findings."""

    def value(self, label: str) -> Value:
        """Return what the explanation comes to: the value that was answered."""
        if label in self.implied:
            return Value.PRESENT
        decisive = (one for one in self.mentions if one.decides and one.label == label)
        return next((one.value for one in decisive if one.value), Value.ABSENT)


class RulesEngine:
    """Finds guide wordings in a text and judges negation and uncertainty."""

    def __init__(self, cues: Sequence[Cues], weights: Path | None = None) -> None:
        """Prepare to answer by `cues`.

        Parameters
        ----------
        weights
            File by which pairs of reports are judged; None for the one that ships.
        """
        self._cues = tuple(cues)
        self._weights = weights
        self._languages = frozenset(one.language for one in cues)
        self._readers: dict[int, tuple[ref[PromptFrame], ReportReader]] = {}

    @property
    def languages(self) -> Collection[str]:
        """The languages of the cue files."""
        return self._languages

    def for_task(self, task: PromptTask) -> Engine:
        """Return the engine of a task: a judge's prompts are answered by other data.

        Raises
        ------
        EngineError
            The task is to change a text, which takes a language model.
        """
        if task is PromptTask.REWRITE:
            raise EngineError(
                "rules is not a language model and cannot change a text. Leave out "
                "--engine of `ranloop inject` to put errors in by rules, or name a "
                "model."
            )
        if task is not PromptTask.JUDGE:
            return self
        return JudgingEngine(self._cues, read_judging(self._weights), REVISION)

    def identity(self) -> Mapping[str, object]:
        """Return the revision of the rules and the digest of every cue file."""
        return {
            "engine": "rules",
            "revision": REVISION,
            "cues": {cues.language: cues.digest for cues in self._cues},
        }

    def complete(self, prompts: Iterable[Prompt]) -> Iterator[tuple[int, Completion]]:
        """Yield ``(index, completion)`` in order; see `Engine.complete`."""
        clock = time.perf_counter
        for index, prompt in enumerate(prompts):
            began = clock()
            text = prompt.item.variables.get("text", "")
            problem = self._refusal(prompt, text)
            if problem:
                yield index, Completion("", finish_reason="error", error=problem)
                continue
            answer = self._reader(prompt.frame).answer(text)
            if answer:
                yield index, Completion(answer, latency_s=clock() - began)
            else:
                yield index, Completion("", finish_reason="error", error=_NOTHING_READ)

    def explain(self, prompt: Prompt) -> RulesExplanation | None:
        """Return why `prompt` is answered so; None where it cannot be answered."""
        text = prompt.item.variables.get("text", "")
        if self._refusal(prompt, text):
            return None
        return self._reader(prompt.frame).explain(text)

    def _refusal(self, prompt: Prompt, text: str) -> str:
        """Say why a prompt cannot be answered, or nothing.

        Silence about everything is "absent" only in a text the engine can read.
        """
        language = prompt.item.language
        if language not in self._languages:
            return (
                f"no cues for language {language!r}: add labels/cues/{language}.yaml, "
                "or name the right --language"
            )
        if not prompt.frame.guides:
            return "the prompt has no guides for `rules` to read"
        return "" if text.strip() else "the case has no text"

    def _reader(self, frame: PromptFrame) -> ReportReader:
        """Return the compiled reader of a frame, kept as long as the frame is.

        No longer: a search asks hundreds of wordings, and each reader takes megabytes.
        """
        key, readers = id(frame), self._readers
        known = readers.get(key)
        if known is None or known[0]() is not frame:
            held = ref(frame, lambda _: readers.pop(key, None))
            known = (held, self.compile(frame))
            readers[key] = known
        return known[1]

    def compile(self, frame: PromptFrame) -> ReportReader:
        """Return a new reader of what a frame asks.

        Raises
        ------
        EngineError
            A field has no guide.
        """
        return ReportReader(
            frame.guides,
            frame.fields,
            self._cues,
            listing=wants_list(frame.schema),
            binary=wants_binary(frame.schema),
        )


def wants_list(schema: Mapping[str, object]) -> bool:
    """Whether an answer's schema wants a list of findings, not a key per label."""
    properties = schema.get("properties")
    if schema.get("required") != ["findings"] or not isinstance(properties, dict):
        return False
    listed = properties.get("findings")
    return isinstance(listed, dict) and listed.get("type") == "array"


def wants_binary(schema: Mapping[str, object]) -> bool:
    """Whether every label of an answer's schema takes present or absent only."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties:
        return False
    return all(_offered(one) == _BINARY for one in properties.values())


def _offered(entry: object) -> frozenset[str]:
    """Return the values that the schema of one label offers."""
    forms = entry.get("anyOf") if isinstance(entry, dict) else None
    values = [
        form.get("properties", {}).get("value", {}).get("enum", ())
        for form in forms or ()
        if isinstance(form, dict)
    ]
    return frozenset(str(value) for one in values for value in one)


class ReportReader:
    """Answers for one set of guides.

    Parameters
    ----------
    guides
        What each field means.
    fields
        Labels to answer, in order; each needs a guide.
    cues
        Assertion cues of every language.
    memo
        How many distinct sentences to remember; 0 turns it off.
    listing
        Whether to list the labels that are not absent, as the contract ``findings``
        wants it, instead of giving one key per label.
    binary
        Whether what is not stated or unequivocal is absent, as the contract ``binary``
        wants it, instead of uncertain.

    Raises
    ------
    EngineError
        A field has no guide.
    """

    def __init__(
        self,
        guides: Sequence[Guide],
        fields: Sequence[str],
        cues: Sequence[Cues],
        *,
        memo: int = MEMO_SENTENCES,
        listing: bool = False,
        binary: bool = False,
    ) -> None:
        names = [guide.label for guide in guides]
        missing = [field for field in fields if field not in names]
        if missing:
            raise EngineError(
                f"no guide for {', '.join(missing)}: `rules` can only answer fields "
                "that guides.yaml describes. Add the guides, or use another engine."
            )
        wanted = set(fields)
        targets = {name: index for index, name in enumerate(names)}
        self._guides = tuple(guides)
        self._names = [name if name in wanted else None for name in names]
        self._implies = [
            tuple(targets[other] for other in guide.implies if other in targets)
            for guide in guides
        ]
        self._retaken: GuideWording | None = None
        self._has_implications = any(self._implies)
        self._sections = SectionFinder(cues)
        self.vocabulary = build_vocabulary(guides, cues)
        self.speller = Speller(self.vocabulary, cues)
        self._sentences = SentenceReader(
            self.vocabulary, Grammar(cues), self.speller, memo=memo
        )
        self._plain = [f'"{field}":"absent"' for field in fields]
        self._slot = [fields.index(name) if name in wanted else None for name in names]
        self._listing = listing
        unsure = Value.ABSENT if binary else Value.UNCERTAIN
        self._value = {**_VALUE, Stance.UNCERTAIN: unsure}

    def answer(self, text: str) -> str:
        """Return the answer for one report as JSON of the contract wanted.

        Empty when no section of the text is one to read: that says nothing of any
        label. Evidence is given by its span alone: it is exact, so a quote adds
        nothing.
        """
        report = self.split(text)
        return self.answer_sentences(report) if report else ""

    def answer_sentences(self, report: Sequence[ReportSentence]) -> str:
        """Return what `answer` does, for the sentences that `split` gives of a text."""
        best, disputed = self._collect(report)
        if self._has_implications:
            self._imply(best)
        if self._listing:
            return self._list_findings(best, disputed)
        # Not a method of its own: this is most of what a fast run does besides.
        answers = self._plain.copy()
        for target, hit in best.items():
            slot = self._slot[target]
            if slot is not None:
                answers[slot] = (
                    f'"{self._names[target]}":{{"value":"{self._value[hit.stance]}",'
                    f'"span":[{hit.start},{hit.end}]'
                    f"{_notes(hit, disputed) if hit.respelled or disputed else ''}}}"
                )
        return "{" + ",".join(answers) + "}"

    def retaking(
        self, label: str, old: Wording, value: Value | None, *, clarifies: bool
    ) -> ReportReader:
        """Return a reader that takes one wording of a guide for something else.

        It finds the same words, so nothing is compiled again, and all readers that take
        this wording for something else share what they find.

        Parameters
        ----------
        old
            The wording, and what it is taken for now; the guide has it once.
        value, clarifies
            What it is taken for then, as in `guide_wordings`.
        """
        other = copy(self)
        text, was, clarified = old
        target = [guide.label for guide in self._guides].index(label)
        found = next(
            one
            for one in self.vocabulary.wordings
            if (one.target, one.text, one.value, one.clarifies)
            == (target, text, was, clarified)
        )
        other._retaken = found
        other._sentences = self._sentences.retaking(
            found, found._replace(value=value, clarifies=clarifies)
        )
        return other

    def differing(self, other: ReportReader, among: Iterable[str]) -> list[str]:
        """Return the sentences that this reader and another judge in two ways.

        Where the other lacks nothing but the wording retaken, this one judges for it.
        """
        mine, others = self._sentences, other._sentences
        among = list(among)
        if (
            self._retaken
            and not others.has_read(among)
            and self.vocabulary.adds(self._retaken, other.vocabulary)
        ):
            mine.judge_for(others, among)
        return [one for one in among if mine.read(one) != others.read(one)]

    def take_over(self, other: ReportReader) -> None:
        """Judge each sentence that only `other` has read so far as it did."""
        self._sentences.take_over(other._sentences)

    def split(self, text: str) -> list[ReportSentence]:
        """Return the sentences to read; none where no section is one to read."""
        sections = self._sections.find(text)
        if not any(text[one.start : one.end].strip() for one in sections):
            return []
        return [
            ReportSentence(offset, sentence, decisive)
            for start, end, decisive in sections
            for offset, sentence in sentences(text, start, end)
        ]

    def stances(self, report: Sequence[ReportSentence]) -> dict[str, Stance]:
        """Return what the sentences that `split` gives of a text say of each label.

        As `answer` decides it, implications included. A label that is not mentioned,
        or only asked about, is not there; one that the guides have and nobody asks for
        is.
        """
        best, _ = self._collect(report)
        if self._has_implications:
            self._imply(best)
        labels = self._guides
        return {labels[target].label: hit.stance for target, hit in best.items()}

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the guides, in order."""
        return tuple(guide.label for guide in self._guides)

    def read_sentence(self, sentence: str) -> tuple[Hit, ...]:
        """Return the judged mentions of one sentence; targets count the guides."""
        return self._sentences.read(sentence)

    def judge(self, sentence: str) -> tuple[JudgedMention, ...]:
        """Return every mention in one sentence that `split` gives, places within it."""
        return self._sentences.explain(sentence)

    def explain(self, text: str) -> RulesExplanation:
        """Return why `answer` says what it says of `text`."""
        report = self.split(text)
        best, disputed = self._collect(report)
        mentions: list[RulesMention] = []
        open_hits = dict(best)
        for offset, sentence, _ in report:
            for one in self.judge(sentence):
                place = Span(one.place.start + offset, one.place.end + offset)
                target = one.wording.target
                hit = open_hits.get(target)
                decides = hit is not None and (
                    (hit.stance, hit.start, hit.end)
                    == (one.stance, place.start, place.end)
                )
                if decides:
                    del open_hits[target]
                mentions.append(self._mention(one, place, offset, decides))
        implied: dict[int, int] = {}
        self._imply(best, implied)
        labels = [guide.label for guide in self._guides]
        return RulesExplanation(
            mentions=tuple(sorted(mentions, key=lambda one: one.span)),
            implied={labels[to]: labels[by] for to, by in implied.items()},
            disputed=tuple(labels[target] for target in sorted(disputed)),
        )

    def _mention(
        self, one: JudgedMention, place: Span, offset: int, decides: bool
    ) -> RulesMention:
        guide = self._guides[one.wording.target]
        return RulesMention(
            label=guide.label,
            part=_guide_part(guide, one),
            wording=one.wording.text,
            span=place,
            value=None if one.stance is None else self._value[one.stance],
            why=_reason(one),
            cue=_moved(one.cue, offset),
            scope=_moved(one.scope, offset),
            decides=decides,
        )

    def _list_findings(self, best: Mapping[int, Hit], disputed: Collection[int]) -> str:
        """Return the labels that are not absent, in the order asked."""
        listed = [
            (
                slot,
                f'{{"label":"{self._names[target]}","value":"{self._value[hit.stance]}",'
                f'"span":[{hit.start},{hit.end}]{_notes(hit, disputed)}}}',
            )
            for target, hit in best.items()
            if (slot := self._slot[target]) is not None
            and self._value[hit.stance] is not Value.ABSENT
        ]
        return f'{{"findings":[{",".join(text for _, text in sorted(listed))}]}}'

    def _collect(
        self, report: Sequence[ReportSentence]
    ) -> tuple[dict[int, Hit], Collection[int]]:
        """Return the winning hit of each label that is mentioned, and the disputed.

        Disputed is a label that one part of the report denies, and the other does not.
        """
        best: dict[int, Hit] = {}
        decided: dict[int, Hit] = {}
        read = self._sentences.read
        for offset, sentence, decisive in report:
            into = decided if decisive else best
            for target, stance, begin, stop, respelled in read(sentence):
                known = into.get(target)
                if known is None or stance > known.stance:
                    into[target] = Hit(
                        target, stance, begin + offset, stop + offset, respelled
                    )
        disputed = set()
        for target, hit in decided.items():
            if target not in best:
                best[target] = hit
            elif hit.stance is not Stance.LIMITED:
                if (hit.stance is Stance.NEGATED) != (
                    best[target].stance <= Stance.NEGATED
                ):
                    disputed.add(target)
                best[target] = hit
        return best, disputed

    def _imply(self, best: dict[int, Hit], told: dict[int, int] | None = None) -> None:
        """Make the implied labels of every present label present, transitively.

        Into `told` goes which label made which one present.
        """
        open_targets = [t for t, hit in best.items() if hit.stance is Stance.PRESENT]
        while open_targets:
            source = best[open_targets.pop()]
            for target in self._implies[source.target]:
                known = best.get(target)
                if known is None or known.stance is not Stance.PRESENT:
                    best[target] = Hit(target, Stance.PRESENT, source.start, source.end)
                    open_targets.append(target)
                    if told is not None:
                        told[target] = source.target


def _moved(span: Span | None, offset: int) -> Span | None:
    return None if span is None else Span(span.start + offset, span.end + offset)


def _guide_part(guide: Guide, one: JudgedMention) -> str:
    """Return which part of a guide has the wording of a mention."""
    wording = one.wording
    if wording.value is None:
        return "exclusion"
    if not wording.clarifies:
        terms = {term for part in guide.parts for term in part.terms}
        return "term" if wording.text in terms else "name"
    phrases = {rule.phrase for part in guide.parts for rule in part.clarifications}
    return "clarification" if wording.text in phrases else "exemplar"


_ROLE_WORDS = {
    CueRole.NEGATION: "negated",
    CueRole.LIMITED: "only its degree is negated",
    CueRole.UNCERTAIN: "uncertain",
    CueRole.HYPOTHETICAL: "only asked about",
}


def _reason(one: JudgedMention) -> str:
    """Return in words what made a mention count as it does."""
    if one.overruled is not None:
        kind = "exclusion" if one.overruled.value is None else "clarification"
        return f"overruled by the {kind} {one.overruled.text!r}"
    if one.wording.value is None:
        return "an exclusion: what it overlaps does not count"
    said = (
        "stated" if one.role is None else _ROLE_WORDS.get(one.role, "decided by a cue")
    )
    if one.role is None and one.wording.value is not Value.PRESENT:
        said = f"the guide calls it {one.wording.value}"
    if one.by_cues is Stance.NEGATED and one.stance is Stance.LIMITED:
        said += ", of one side or form only"
    elif one.by_cues is not one.stance and one.stance is Stance.UNCERTAIN:
        said = 'an "or" leaves open which of two'
    read = (f"{written!r} read as {meant!r}" for written, meant in one.respelled)
    return "; ".join((said, *read))


def _notes(hit: Hit, disputed: Collection[int]) -> str:
    """Return what an answer says of itself, as the last key of its entry."""
    notes = [Note.SPELLING] * hit.respelled + [Note.SECTIONS] * (hit.target in disputed)
    listed = ",".join(f'"{one}"' for one in notes)
    return f',"notes":[{listed}]' if notes else ""


@register("rules")
def _make(_model: str, settings: Settings) -> RulesEngine:
    own = settings.labels / JUDGING
    return RulesEngine(read_cues(settings.labels), own if own.is_file() else None)
