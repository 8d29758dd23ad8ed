"""What the queue is made of: its items, their order explained, and its filters."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from loop.core.records import Mark, Span, Value
from loop.evaluate.failures import Failure, FailureKind


class TextSection(StrEnum):
    """Part of a case text."""

    FINDINGS = "findings"
    IMPRESSION = "impression"
    OTHER = "other"
    """Under another heading, such as the indication."""


class ReviewStatus(StrEnum):
    """How far the review of one case and label is."""

    UNREVIEWED = "unreviewed"
    REVIEWED = "reviewed"
    """Someone's verdict on it is open."""

    ADDRESSED = "addressed"
    """A later version, or a later reference, answers every verdict on it."""

    RETURNED = "returned"
    """A verdict on it was answered before this run, and it still fails."""


class OtherAnswer(NamedTuple):
    """What another run of the same prompt said of a case and label."""

    run: str
    prompt: str
    """Version reference."""

    draw: int
    """Number of the repeat; 0 for the first."""

    value: Value | None
    """None when the case has no readable answer, or the label was not asked."""


class Reasons(NamedTuple):
    """Why an item is worth a look; each part is 0 to 1, and 0 says nothing."""

    rare: float = 0.0
    near: float = 0.0
    split: float = 0.0
    unsure: float = 0.0
    words: tuple[str, ...] = ()
    """One phrase for each part that is not 0."""

    fails: int = 1
    """In how many draws of this version it fails, of those with an answer."""

    draws: int = 1
    gate: str = ""
    """``"passes by 3"`` or ``"fails by 1"``, in answers; empty where none would do."""

    @property
    def value(self) -> float:
        """``rare + near + split + unsure / 2``, 0 to 3.5."""
        return self.rare + self.near + self.split + self.unsure / 2

    @property
    def persistence(self) -> Persistence | None:
        """Whether it fails in every draw; None where there is one."""
        if self.draws == 1:
            return None
        every = self.fails == self.draws
        return Persistence.EVERY_DRAW if every else Persistence.FLIPS

    @property
    def rank(self) -> tuple[float, float]:
        """What orders the queue: the share of draws that fail, then the value."""
        return self.fails / self.draws, self.value


class Cause(NamedTuple):
    """A label from which "No Finding" follows in one case."""

    label: str
    predicted: Value | None
    reference: Mark | None
    fails: bool
    """Whether the answer contradicts the reference, so that it can be judged."""


class RightKind(StrEnum):
    """How a drawn pair stands that does not fail."""

    RIGHT = "right"
    """The answer agrees with the reference."""


class RightAnswer(NamedTuple):
    """One case and label whose answer agrees with the reference; holds no case text.

    See `loop.review.queue.value`; the fields are those of `Failure`.
    """

    case_id: str
    label: str
    predicted: Value | None
    reference: Mark | None
    spans: tuple[Span, ...]
    """Where the answer's evidence stands in the case text."""

    kind: RightKind = RightKind.RIGHT
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueItem:
    """One failing case and label, or a drawn right one; holds no case text."""

    failure: Failure | RightAnswer
    place: int
    """Place in the whole queue, from 1."""

    reasons: Reasons
    audit: bool = False
    """Whether it belongs to the random share, whatever it is worth."""

    sections: tuple[TextSection, ...] = ()
    """Where its evidence stands; empty when there is none, or no heading."""

    votes: tuple[tuple[Value, int], ...] = ()
    """How many readers said what; empty without votes."""

    others: tuple[OtherAnswer, ...] = ()
    """Newest version first, then by draw."""

    causes: tuple[Cause, ...] = ()
    """Of "No Finding": the labels that make it so; empty for all other labels."""

    reviewers: tuple[str, ...] = ()
    """Who has a verdict on it that still stands, first one first."""

    progress: ReviewStatus = ReviewStatus.UNREVIEWED
    reserved_by: str = ""
    """Who works on the case just now, or empty."""

    @property
    def case_id(self) -> str:
        """Case it is about."""
        return self.failure.case_id

    @property
    def label(self) -> str:
        """Label id, or empty when the case has no answer at all."""
        return self.failure.label

    @property
    def right(self) -> bool:
        """Whether it was drawn from the right answers and does not fail."""
        return self.failure.kind is RightKind.RIGHT

    @property
    def value(self) -> float:
        """What it is worth, 0 to 3.5; see `Reasons`."""
        return self.reasons.value


class Persistence(StrEnum):
    """How a pair fails where its version was asked several times."""

    EVERY_DRAW = "every draw"
    """In all of them: an error that is there."""

    FLIPS = "flips"
    """In some: does the guide leave the case open?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFilter:
    """What to show of a queue; an empty field lets everything through."""

    labels: frozenset[str] = frozenset()
    """Label ids; cases without any answer concern every label and stay."""

    kinds: frozenset[FailureKind | RightKind] = frozenset()
    sections: frozenset[TextSection] = frozenset()
    text: str = ""
    """Words of the case text or part of the case id, in any case; never a pattern."""

    reviewers: frozenset[str] = frozenset()
    """Only what one of them has judged."""

    progress: frozenset[ReviewStatus] = frozenset()
    reserved: bool | None = None
    """Only cases that someone has reserved, or only those that nobody has."""

    draws: Persistence | None = None

    cases: frozenset[str] = frozenset()
    """Case ids, such as those that were drawn for review."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """The run a queue is of."""

    run_id: str
    cohort: str
    prompt: str
    """Version reference."""

    reference: int
    """Number of the reference version held against."""

    others: tuple[str, ...] = field(default=())
    """Ids of the runs whose answers are shown beside."""
