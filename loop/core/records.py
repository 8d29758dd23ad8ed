"""The records every room speaks: start reading here.

A case becomes an `Item`; a prompt version turns an item into `Prompt` records; an
engine turns a prompt into a `Completion`; an output contract turns a completion into
a `Reading`; a run keeps exactly one `Outcome` per item.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import NamedTuple


class Value(StrEnum):
    """What a text says of one label."""

    PRESENT = "present"
    """Explicitly stated, or unequivocal evidence."""

    ABSENT = "absent"
    """Negated, very unlikely, or not mentioned."""

    UNCERTAIN = "uncertain"
    """Anything in between: in a reference, a case that is not scored; in an answer,
    what the protocol says (`UncertainAnswers`)."""


class ErrorWeight(StrEnum):
    """How much an error of a candidate matters: ids of ``labels/errors.yaml``."""

    SIGNIFICANT = "significant"
    """It could change how the patient is treated or followed up."""

    INSIGNIFICANT = "insignificant"
    """It would not."""

    NO_ERROR = "no_error"
    """In a guide: the wording is no error of its category at all."""


class PromptTask(StrEnum):
    """What a prompt is for; its output contract says which."""

    EXTRACT = "extract"
    """Says what one text states of each label."""

    JUDGE = "judge"
    """Says what is right and wrong in a candidate, against a reference."""

    REWRITE = "rewrite"
    """Gives a text back with something changed."""


GuideValue = Value | ErrorWeight
"""What a guide says of a wording: a word of the task of its prompt."""


class UncertainAnswers(StrEnum):
    """What an uncertain answer counts as where the reference decides."""

    WRONG = "wrong"
    """As the value that the reference denies: a false negative or a false positive."""

    ABSENT = "absent"
    PRESENT = "present"
    EXCLUDED = "excluded"
    """As no answer: the pair is left out of every rate, and counted."""

    @property
    def sign(self) -> str:
        """How a signature names it: ``unc:wrong``, ``neg``, ``pos`` or ``excl``."""
        short = {"absent": "neg", "present": "pos", "excluded": "excl"}
        return f"unc:{short.get(self.value, self.value)}"

    @property
    def words(self) -> str:
        """What it does, in words: "wrong", "read as absent" or "left out"."""
        if self is UncertainAnswers.WRONG:
            return "wrong"
        left_out = self is UncertainAnswers.EXCLUDED
        return "left out" if left_out else f"read as {self.value}"


class Mark(StrEnum):
    """What a reference standard says of one case and label."""

    PRESENT = "present"
    ABSENT = "absent"
    UNCERTAIN = "uncertain"
    """The readers, or the coder, say the text is uncertain."""

    NOT_CODED = "not_coded"
    """A coder recorded nothing: weaker than `ABSENT`, scored as absent and said so."""

    NO_MAJORITY = "no_majority"
    """Readers disagree without the agreed majority."""

    MISSING = "missing"
    """Nobody looked."""


class ValueCode(IntEnum):
    """What stands for a value, a vote or a missing one in every array of the package.

    Only `PRESENT` and `ABSENT` are ever scored, and `NOT_CODED` as absent; the others
    are kept apart and never become absent. Files spell values out.
    """

    ABSENT = 0
    PRESENT = 1
    NOT_CODED = 2
    UNCERTAIN = -1

    NO_MAJORITY = -2
    MISSING = -3
    """Nobody looked: no vote, no text, or a blank label."""

    UNPARSED = -4
    """The engine's answer could not be read."""

    FAILED = -5
    """The engine failed."""

    NOT_ASKED = -6
    """The prompt does not ask for the label, or the engine does not know it."""

    UNANSWERED = -7
    """Asked, and no value came back, for any of these reasons."""

    NOT_VOTED = -8
    """The reader gave no vote on the pair."""

    @property
    def words(self) -> str:
        """What it says, in words: "present", "not coded", "unparsed"."""
        return self.name.lower().replace("_", " ")


class Status(StrEnum):
    """How a case ended in a run: exactly one of these."""

    ANSWERED = "answered"
    UNPARSED = "unparsed"
    ENGINE_FAILED = "engine_failed"


class Note(StrEnum):
    """What an engine that is no model says of its own answer about one label."""

    SPELLING = "spelling"
    """A misspelt word was read as the finding's word."""

    SECTIONS = "sections"
    """The findings say otherwise than the impression, which was believed."""

    CUT = "cut"
    """The text is longer than the engine reads."""


class Span(NamedTuple):
    """Characters ``start`` to ``end`` (exclusive) of a text of an item."""

    start: int
    end: int
    input: str = "text"
    """Name of the text: ``"reference"`` or ``"candidate"`` of a judged pair."""

    @property
    def data(self) -> list[int | str]:
        """Start and end as JSON data, and the name of another text than ``"text"``."""
        place: list[int | str] = [self.start, self.end]
        return place if self.input == "text" else [*place, self.input]


class Message(NamedTuple):
    """One chat message."""

    role: str
    """``"system"`` or ``"user"``."""

    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing to ask about: a case, or a pair to be judged."""

    id: str
    """Case id, unique in its cohort."""

    variables: Mapping[str, str]
    """Template variables, for example ``{"text": ...}``."""

    language: str = "en"
    """Language of the texts, ISO 639-1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exemplar:
    """A short worked example inside a guide."""

    text: str
    """The statement, in the author's own words; never copied from a cohort."""

    value: GuideValue
    """What the statement means for the label, or how much it matters as an error."""

    evidence: str
    """The phrase inside `text` that decides."""

    why: str = ""
    """One sentence of reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clarification:
    """A decision rule for one wording."""

    phrase: str
    """The wording; words may be separated by ``...`` for a limited gap."""

    value: GuideValue
    """What the wording means for the label when it is not negated; in the guide of a
    category of errors, how much the wording matters."""

    note: str = ""
    """The rule in words, shown to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """More wordings of one label in one language, which only `rules` reads.

    A language model is not shown them: it knows that words have synonyms and endings.
    """

    language: str
    """Language of the wordings, ISO 639-1."""

    terms: tuple[str, ...] = ()
    exclusions: tuple[str, ...] = ()
    clarifications: tuple[Clarification, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Guide:
    """The clinical content of one label in one prompt version.

    All but the `lexicon` is guidance: whoever reads, a person or a model, is shown it.
    """

    label: str
    """Label id of the taxonomy, for example ``"pleural_effusion"``."""

    name: str
    """Name as published."""

    definition: str
    """What the label means, one to three sentences."""

    terms: tuple[str, ...] = ()
    """Wordings that name the finding; ``...`` between words allows a limited gap."""

    exclusions: tuple[str, ...] = ()
    """Wordings that contain a term and are not the finding."""

    clarifications: tuple[Clarification, ...] = ()
    exemplars: tuple[Exemplar, ...] = ()

    implies: tuple[str, ...] = ()
    """Label ids that are present whenever this one is."""

    counts: tuple[str, ...] = ()
    """What counts as the finding, in a few words each."""

    does_not_count: tuple[str, ...] = ()
    """What looks like the finding and is not, in a few words each."""

    uncertain_when: tuple[str, ...] = ()
    """What neither states the finding nor rules it out, in a few words each."""

    lexicon: tuple[Lexicon, ...] = ()
    """Wordings for `rules` alone, one part a language."""

    @property
    def parts(self) -> tuple[Guide | Lexicon, ...]:
        """Where its wordings are kept: itself, then each lexicon."""
        return (self, *self.lexicon)

    @property
    def identity(self) -> dict[str, object]:
        """What digests are made of: every field, and of the last four the filled ones.

        Guides written before these existed keep their digests.
        """
        later = ("counts", "does_not_count", "uncertain_when", "lexicon")
        return {
            name: value
            for name, value in asdict(self).items()
            if value or name not in later
        }


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """What is asked of an engine in one call.

    The text is kept as a static `frame` and the variable `tail`, because the frame is
    the same for every case of a run: it is built, hashed and serialised once.
    """

    frame: PromptFrame
    """Everything that does not depend on the case."""

    tail: str
    """End of the last message: the case text and what follows it."""

    item: Item
    """The item whose variables were rendered."""

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The chat messages as sent."""
        *head, last = self.frame.messages
        return (*head, Message(last.role, last.content + self.tail))


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class PromptFrame:
    """The part of a prompt that all cases of a run share."""

    call: str
    """Name of the call in its plan: ``"joint"`` or a label id."""

    messages: tuple[Message, ...]
    """Messages up to where the case text begins; the last one is continued."""

    fields: tuple[str, ...]
    """Answer fields wanted, for example label ids, in order."""

    schema: Mapping[str, object]
    """JSON schema of the answer; empty where it is free text."""

    guides: tuple[Guide, ...] = ()
    """Guides rendered into the messages, for engines that read data, not prose."""

    reads: tuple[Guide, ...] = ()
    """By which such an engine finds what the texts say that a judge compares; they are
    in no message."""


class Completion(NamedTuple):
    """What an engine returned for one prompt, before any parsing."""

    text: str
    """Raw text, unstripped; empty when `finish_reason` is ``"error"``."""

    finish_reason: str = "stop"
    """``"stop"``, ``"length"``, ``"refusal"`` or ``"error"``."""

    error: str = ""
    """For ``"error"``: what went wrong, without case text."""

    latency_s: float = 0.0
    """Wall time in seconds."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    """How many of the prompt tokens the server had in its prefix cache."""

    thinking: str = ""
    """What the server gave as reasoning apart from the text; never read for values."""


class Reading(NamedTuple):
    """What an output contract made of one completion."""

    fields: Mapping[str, Field] | None
    """Field name to answer; None when the completion cannot be read."""

    repairs: tuple[str, ...] = ()
    """What had to be repaired, for example ``"code fence removed"``."""

    problem: str = ""
    """Why there are no fields; never case text."""


class Field(NamedTuple):
    """The answer to one field."""

    value: str | int | float
    """A `Value` for labels; a number or a category for judges."""

    spans: tuple[Span, ...] = ()
    """Where in the case text the evidence stands; empty when nothing was mentioned."""

    entries: tuple[Entry, ...] = ()
    """What a judge lists of the field, for example each error of a category."""

    @property
    def places(self) -> tuple[Span, ...]:
        """Where its evidence stands, and that of what it lists."""
        return (*self.spans, *(span for one in self.entries for span in one.spans))


class Entry(NamedTuple):
    """One thing that an answer lists: an error, or a finding that matches."""

    words: str
    """As the answer has them. They may quote a case: clinical text."""

    category: str = ""
    """What kind it is, for example the id of a category of errors."""

    weight: str = ""
    """How much it matters: ``"significant"``, ``"insignificant"``; empty: not said."""

    spans: tuple[Span, ...] = ()
    """Where in the texts of the pair it stands, as far as that was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one item ended in a run."""

    item_id: str
    status: Status
    """Worst of the item's calls: failed before unparsed before answered."""

    fields: Mapping[str, Field] = field(default_factory=dict)
    """Answers of the calls that were read; a missing field was not answered."""

    repairs: tuple[str, ...] = ()
    problem: str = ""
    """Why the status is not `ANSWERED`; never case text."""
