"""A clinician's verdict on one or more cases of one label, and what it asks for."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum

from loop.core.digests import digest_json
from loop.core.records import Clarification, Exemplar, Value


class Judgement(StrEnum):
    """Who is at fault."""

    MODEL_WRONG = "model_wrong"
    """The instructions suffice; the answer is wrong all the same."""

    REFERENCE_WRONG = "reference_wrong"
    """The answer is right and the reference label is not."""

    GUIDELINE_AMBIGUOUS = "guideline_ambiguous"
    """The instructions leave the case open."""

    SOURCE_TEXT_DEFECT = "source_text_defect"
    """The text is masked, cut off or contradicts itself."""

    ANSWER_RIGHT = "answer_right"
    """The answer and the reference are both right: nothing to do."""


RECORDED_ONLY = frozenset({Judgement.SOURCE_TEXT_DEFECT, Judgement.ANSWER_RIGHT})
"""Judgements that nothing is made from: no wording, no reference, no target."""


class Severity(StrEnum):
    """How much it matters."""

    MAJOR = "major"
    """Would change management or the clinical meaning of the label."""

    MINOR = "minor"


class Context(StrEnum):
    """What made the case hard."""

    NEGATION = "negation"
    UNCERTAINTY_TIER = "uncertainty_tier"
    SYNONYM_OR_ABBREVIATION = "synonym_or_abbreviation"
    TEMPORALITY_OR_RESOLUTION = "temporality_or_resolution"
    SECTION_CONFLICT = "section_conflict"
    LATERALITY_OR_LOCATION = "laterality_or_location"
    DEVICE_REMOVAL = "device_removal"
    LABEL_BOUNDARY = "label_boundary"
    INDIRECT_EVIDENCE = "indirect_evidence"
    HOMOGRAPH = "homograph"
    COORDINATION_OR_SCOPE = "coordination_or_scope"
    LANGUAGE = "language"
    HIERARCHY_OR_NO_FINDING = "hierarchy_or_no_finding"
    MASKED_TEXT = "masked_text"
    OTHER = "other"


class Action(StrEnum):
    """What a verdict asks to be done to the label's guide."""

    ADD_TERM = "add_term"
    ADD_EXCLUSION = "add_exclusion"
    CLARIFY = "clarify"
    ADD_EXEMPLAR = "add_exemplar"
    ADD_IMPLICATION = "add_implication"
    REMOVE_TERM = "remove_term"
    REMOVE_EXCLUSION = "remove_exclusion"
    REMOVE_CLARIFICATION = "remove_clarification"
    REMOVE_EXEMPLAR = "remove_exemplar"
    REMOVE_IMPLICATION = "remove_implication"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """Everything one verdict changes in the guide of its label."""

    terms: tuple[str, ...] = ()
    exclusions: tuple[str, ...] = ()
    clarifications: tuple[Clarification, ...] = ()
    exemplars: tuple[Exemplar, ...] = ()
    implies: tuple[str, ...] = ()
    """Label ids."""

    remove_terms: tuple[str, ...] = ()
    remove_exclusions: tuple[str, ...] = ()
    remove_clarifications: tuple[str, ...] = ()
    """Their phrases."""

    remove_exemplars: tuple[str, ...] = ()
    """Their texts."""

    remove_implies: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is changed."""
        return any(getattr(self, one.name) for one in fields(self))

    @property
    def count(self) -> int:
        """How many single changes there are."""
        return sum(len(getattr(self, one.name)) for one in fields(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one clinician says of some cases and one label."""

    label: str
    """Label id."""

    judgement: Judgement
    severity: Severity | None = None
    """None where the clinician did not say."""

    context: Context | None = None
    """None where the clinician did not say."""

    case_ids: tuple[str, ...] = ()
    """Cases that show it; empty for a verdict on the guide as such."""

    edits: Edits = field(default_factory=Edits)
    correct_value: Value | None = None
    """What the label should be in these cases; None leaves it to the reference."""

    reviewer: str = ""
    comment: str = ""
    """A note for the team: seen by whoever may open the review, never in a prompt, the
    ledger or a report, and in an export only when asked for."""

    anchor: bool = False
    """Whether the cases must stay right in every later version."""

    def __post_init__(self) -> None:
        problem = _contradiction(self)
        if problem:
            raise ValueError(problem)

    @property
    def id(self) -> str:
        """Short digest of everything it says, 12 hex characters."""
        return digest_json(asdict(self))[:12]

    @property
    def targets(self) -> tuple[tuple[str, str], ...]:
        """``(case id, label)`` pairs that the change should put right."""
        if self.judgement in {Judgement.REFERENCE_WRONG, *RECORDED_ONLY}:
            return ()
        return tuple((case_id, self.label) for case_id in self.case_ids)


def _contradiction(verdict: Verdict) -> str:
    """Say what in a verdict cannot be meant together, or nothing."""
    if verdict.judgement is Judgement.REFERENCE_WRONG:
        if verdict.edits:
            return (
                "reference_wrong corrects the reference and never changes the prompt: "
                "make a second verdict for the wording"
            )
        if verdict.correct_value is None or not verdict.case_ids:
            return "reference_wrong needs case_id and correct_value"
    if verdict.judgement in RECORDED_ONLY and verdict.edits:
        return f"{verdict.judgement} is recorded only and changes no wording"
    if verdict.judgement is Judgement.ANSWER_RIGHT:
        if verdict.anchor or verdict.correct_value is not None:
            return "answer_right is recorded only: leave out anchor and correct_value"
        if not verdict.case_ids:
            return "answer_right needs case_id"
    if not verdict.case_ids and not verdict.comment.strip():
        return "a verdict without case_id needs a comment that says why"
    if verdict.anchor and not verdict.case_ids:
        return "anchor needs case_id: it pins cases"
    return ""
