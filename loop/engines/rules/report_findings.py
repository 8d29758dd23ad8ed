"""All findings of one report: every mention that is stated or left open, and denials.

Where `rules` gives one value per label, this gives each finding with what the words
around it say of it. Besides the labels it knows the findings that the data name, and a
sentence that says something abnormal and holds no known finding is one by its words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from loop.core.errors import EngineError
from loop.core.records import Clarification, Guide, Lexicon, Span, Value
from loop.engines.rules.attributes import (
    BOTH,
    NOTHING,
    AttributeReader,
    Attributes,
    Token,
)
from loop.engines.rules.cues import Cues
from loop.engines.rules.scopes import Grammar
from loop.engines.rules.sections import SectionFinder, sentences
from loop.engines.rules.sentence import (
    MEMO_SENTENCES,
    Hit,
    SentenceReader,
    Stance,
)
from loop.engines.rules.spelling import Speller
from loop.engines.rules.vocabulary import (
    build_vocabulary,
    fold,
    guide_wordings,
    has_cjk,
)
from loop.engines.rules.weights import JudgingData

_ANAPHORS = frozenset({"it", "this", "these", "they", "its"})
_STEM = 6
"""Letters by which two content words are the same: "elevated", "elevation"."""

MOST_ALIKE = 50
"""Findings of one label that are told apart; further ones are the last of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFinding:
    """One finding of a report that is stated or left open."""

    key: str
    """Label, or finding of the data; empty for a sentence by its words."""

    label: str
    """The label by which it is reported; empty without one."""

    certain: bool
    span: Span
    said: Attributes
    words: frozenset[str] = frozenset()
    """First letters of the content words, where the key is empty."""

    def saying(self, more: Attributes) -> ReportFinding:
        """Return the finding with what is said of it elsewhere."""
        return replace(self, said=self.said.joined(more))


class ReportFindings(NamedTuple):
    """What one report says."""

    findings: tuple[ReportFinding, ...]
    """In the order of the text."""

    denied: Mapping[str, Span]
    """Where a label or a finding of the data is denied first."""


class _FoundMention(NamedTuple):
    key: str
    stance: Stance
    span: Span


class _ReadSentence(NamedTuple):
    """One sentence as read, offsets into it."""

    findings: tuple[ReportFinding, ...] = ()
    denied: tuple[tuple[str, Span], ...] = ()
    continues: Attributes = NOTHING
    """What it says of the finding before it: "It measures 2 cm"."""


class SentenceFindings(NamedTuple):
    """What one sentence of a report says, before sentences are held together."""

    start: int
    end: int
    """Where it ends, without its full stop."""

    findings: tuple[ReportFinding, ...]
    """Spans are those in the report."""

    denied: frozenset[str]
    """Labels and findings of the data that it denies."""

    continues: bool
    """Whether it only says more of the finding before it: "It measures 2 cm"."""


class FindingReader:
    """Reads all findings of English reports.

    Parameters
    ----------
    guides
        What each label means.
    cues
        Assertion cues; those of the data's language are used.
    data
        How reports are compared.
    language
        Of the reports.
    memo
        How many distinct sentences to remember; 0 turns it off.

    Raises
    ------
    EngineError
        The language is not that of the data, or has no cues.
    """

    def __init__(
        self,
        guides: Sequence[Guide],
        cues: Sequence[Cues],
        data: JudgingData,
        *,
        language: str = "en",
        memo: int = MEMO_SENTENCES,
    ) -> None:
        own = [one for one in cues if one.language == language]
        if language != data.language or not own:
            raise EngineError(
                f"pairs of reports in language {language!r} cannot be judged without a "
                f"model: labels/judging.yaml has the words of {data.language!r} only. "
                "Choose an engine with a model."
            )
        self.data = data
        named = [
            Guide(
                label=one.id,
                name=f"@{one.id}",
                definition="",
                terms=one.terms,
                exclusions=one.exclusions,
            )
            for one in data.findings
        ]
        labels = [guide.label for guide in guides]
        self._n_labels = len(labels)
        self._keys = (*labels, *(one.label for one in named))
        self._label = {label: label for label in labels}
        if data.devices in labels:
            self._label |= dict.fromkeys(data.device_findings, data.devices)
        grammar = Grammar(own)
        bare = [_without_absent(guide) for guide in guides]
        vocabulary = build_vocabulary(bare, own)
        reader = SentenceReader(vocabulary, grammar, Speller(vocabulary, own), memo=0)
        read = [
            _excluding(without, _absent(guide), place, reader)
            for place, (without, guide) in enumerate(zip(bare, guides, strict=True))
        ]
        vocabulary = build_vocabulary((*read, *named), own)
        self._sections = SectionFinder(own)
        self._sentences = SentenceReader(
            vocabulary, grammar, Speller(vocabulary, own), memo=0
        )
        self._attributes = AttributeReader(data)
        self._memo: dict[str, _ReadSentence] = {}
        self._memo_size = memo

    def read(self, text: str) -> ReportFindings:
        """Return the findings of one report.

        A finding that is mentioned again is one finding; one that the impression denies
        and does not state is none.

        Raises
        ------
        EngineError
            The text is not in this language, or holds nothing to read.
        """
        if has_cjk(text):
            raise EngineError(
                "a text is not in the language of this reader: it has Chinese "
                "characters. Choose an engine with a model."
            )
        findings: list[ReportFinding] = []
        denied: dict[str, Span] = {}
        undone: set[str] = set()
        decided: set[str] = set()
        said_anything = False
        for offset, sentence, decisive in self._split(text):
            said_anything = True
            read = self._read_sentence(sentence)
            for key, place in read.denied:
                denied.setdefault(key, _moved(place, offset))
            if read.continues is not NOTHING and findings:
                findings[-1] = findings[-1].saying(read.continues)
            for one in read.findings:
                self._add(findings, replace(one, span=_moved(one.span, offset)))
            if decisive:
                undone.update(key for key, _ in read.denied)
                decided.update(one.key for one in read.findings)
        if not said_anything:
            raise EngineError(
                "a text holds nothing to read: it is empty, or each of its sections is "
                "one that is not read, such as an indication. Leave the pair out."
            )
        gone = undone - decided
        kept = (one for one in findings if one.key not in gone)
        return ReportFindings(tuple(kept), denied)

    def read_sentences(self, text: str) -> Iterator[SentenceFindings]:
        """Yield what each sentence that is read says, in the order of the text."""
        for offset, sentence, _ in self._split(text):
            read = self._read_sentence(sentence)
            yield SentenceFindings(
                start=offset,
                end=offset + len(sentence),
                findings=tuple(
                    replace(one, span=_moved(one.span, offset)) for one in read.findings
                ),
                denied=frozenset(key for key, _ in read.denied),
                continues=read.continues is not NOTHING,
            )

    def speaks(self, text: str) -> bool:
        """Whether a text holds anything to read."""
        return has_cjk(text) or any(True for _ in self._split(text))

    def _split(self, text: str) -> Iterator[tuple[int, str, bool]]:
        """Yield each sentence with its place, and whether its section decides."""
        for start, end, decisive in self._sections.find(text):
            for offset, sentence in sentences(text, start, end):
                if sentence.strip():
                    yield offset, sentence, decisive

    def _add(self, findings: list[ReportFinding], new: ReportFinding) -> None:
        """Add a finding, or what it says to the one that it speaks of again."""
        data = self.data
        if new.key == data.devices and findings:
            last = findings[-1]
            if last.key in data.device_findings:
                # "The tip is ..." after the device.
                findings[-1] = last.saying(new.said)
                return
        alike = [n for n, one in enumerate(findings) if one.key == new.key]
        full = len(alike) >= MOST_ALIKE
        for place in alike:
            one = findings[place]
            if (new.key and one.said.may_be(new.said)) or (full and place == alike[-1]):
                certain = one.certain or new.certain
                findings[place] = replace(
                    one.saying(new.said), certain=certain, words=one.words | new.words
                )
                return
        findings.append(new)

    def _read_sentence(self, sentence: str) -> _ReadSentence:
        known = self._memo.get(sentence)
        if known is None:
            known = self._look(sentence)
            if len(self._memo) >= self._memo_size:
                self._memo.clear()
            if self._memo_size:
                self._memo[sentence] = known
        return known

    def _look(self, sentence: str) -> _ReadSentence:
        mentions = self._mentions(self._sentences.read(sentence))
        if not mentions:
            return self._by_words(self._attributes.tokens(fold(sentence)))
        denied = tuple(
            (one.key, one.span) for one in mentions if one.stance is Stance.NEGATED
        )
        if all(one.stance <= Stance.NEGATED for one in mentions):
            return _ReadSentence(denied=denied)
        said = self._attributes.around(
            self._attributes.tokens(fold(sentence)),
            [one.span for one in mentions],
            [one.key for one in mentions],
        )
        findings: list[ReportFinding] = []
        for mention, attributes in zip(mentions, said, strict=True):
            if mention.stance > Stance.NEGATED:
                new = ReportFinding(
                    key=mention.key,
                    label=self._label.get(mention.key, ""),
                    certain=mention.stance is Stance.PRESENT,
                    span=mention.span,
                    said=attributes,
                )
                if not self._explains(findings, new):
                    findings.append(new)
        return _ReadSentence(tuple(findings), denied)

    def _mentions(self, hits: Sequence[Hit]) -> list[_FoundMention]:
        """Return one mention for each piece of text, in its order.

        Findings of the data go before labels, what is said before what is denied, and
        the longer before the shorter.
        """
        ordered = sorted(
            hits,
            key=lambda hit: (
                hit.target < self._n_labels,
                hit.stance <= Stance.NEGATED,
                hit.start - hit.end,
                -hit.stance,
                hit.target,
            ),
        )
        taken: list[_FoundMention] = []
        for hit in ordered:
            start, end = hit.start, hit.end
            if all(end <= one.span.start or start >= one.span.end for one in taken):
                key = self._keys[hit.target]
                taken.append(_FoundMention(key, hit.stance, Span(start, end)))
        taken.sort(key=lambda one: one.span)
        return taken

    def _explains(self, findings: list[ReportFinding], new: ReportFinding) -> bool:
        """Add to a finding of the sentence what a new one only says of it.

        "Opacity, possibly pneumonia" is one finding, and so is "right PICC, tip in the
        SVC".
        """
        data = self.data
        for place in reversed(range(len(findings))):
            one = findings[place]
            if one.certain and not new.certain and data.are_kin(one.key, new.key):
                findings[place] = one.saying(Attributes(reads=frozenset({new.key})))
                return True
            if new.key == data.devices and one.key in data.device_findings:
                findings[place] = one.saying(new.said)
                return True
            if one.key == data.devices and new.key in data.device_findings:
                findings[place] = new.saying(one.said)
                return True
        return False

    def _by_words(self, tokens: Sequence[Token]) -> _ReadSentence:
        """Return what a sentence without a known finding says."""
        data = self.data
        words = {word for word, _, _ in tokens}
        if not words or words & data.advice:
            return _ReadSentence()
        goes_on = tokens[0][0] in _ANAPHORS or "tip" in words
        if not goes_on and words & data.normal:
            return _ReadSentence()
        marks = self._attributes.marks(tokens)
        said = self._attributes.summary(
            marks, comparing=self._attributes.compares(words)
        )
        if goes_on:
            return _ReadSentence(continues=said)
        marked = {mark.at for mark in marks}
        content = frozenset(
            word[:_STEM]
            for word, start, _ in tokens
            if len(word) > 2
            and word[0].isalpha()
            and word not in data.plain
            and start not in marked
        )
        if not content:
            return _ReadSentence()
        finding = ReportFinding(
            key="",
            label="",
            certain=True,
            span=Span(tokens[0][1], tokens[-1][2]),
            said=said,
            words=content,
        )
        return _ReadSentence((finding,))


def merge_sides(
    findings: Sequence[ReportFinding], others: Sequence[ReportFinding]
) -> list[ReportFinding]:
    """Return findings with left and right as one where `others` has "bilateral"."""
    both = {one.key for one in others if one.said.side == BOTH and one.key}
    if not both:
        return list(findings)
    kept: list[ReportFinding] = []
    for one in findings:
        for place, known in enumerate(kept if one.key in both else ()):
            if known.key == one.key and known.said.side | one.said.side == BOTH:
                kept[place] = known.saying(one.said)
                break
        else:
            kept.append(one)
    return kept


def _moved(span: Span, offset: int) -> Span:
    return Span(span.start + offset, span.end + offset)


def _without_absent(guide: Guide) -> Guide:
    """Return a guide without its wordings for "absent"."""
    return replace(
        guide,
        clarifications=_others(guide),
        exemplars=tuple(
            one for one in guide.exemplars if one.value is not Value.ABSENT
        ),
        lexicon=tuple(
            replace(part, clarifications=_others(part)) for part in guide.lexicon
        ),
    )


def _others(part: Guide | Lexicon) -> tuple[Clarification, ...]:
    return tuple(one for one in part.clarifications if one.value is not Value.ABSENT)


def _absent(guide: Guide) -> Iterator[str]:
    for wording, value, _ in guide_wordings(guide):
        if value is Value.ABSENT:
            yield wording


def _excluding(
    guide: Guide, wordings: Iterable[str], target: int, reader: SentenceReader
) -> Guide:
    """Return a guide that excludes wordings, but for those that deny its finding.

    "Skin fold" says that a wording is not the finding; "no effusion" denies it.
    """
    wrong = [
        wording
        for wording in wordings
        if not any(
            hit.target == target and hit.stance is Stance.NEGATED
            for hit in reader.read(wording)
        )
    ]
    return replace(guide, exclusions=(*guide.exclusions, *wrong))
