"""A clinician's verdict on one or more cases of one label, and what it asks for."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.records import Clarification, Exemplar, Value
from loop.prompts.guides import ClarificationModel, ExemplarModel, Phrase


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


_SINGULAR = {
    "case": "cases",
    "case_id": "cases",
    "case_ids": "cases",
    "term": "terms",
    "exclusion": "exclusions",
    "clarification": "clarifications",
    "exemplar": "exemplars",
    "implication": "implies",
    "implications": "implies",
    "cause": "context",
    "remove_term": "remove_terms",
    "remove_exclusion": "remove_exclusions",
    "remove_clarification": "remove_clarifications",
    "remove_exemplar": "remove_exemplars",
}
"""Other spellings of a key; both at once are refused."""

_ADDS = {
    Action.ADD_TERM: "terms",
    Action.ADD_EXCLUSION: "exclusions",
    Action.CLARIFY: "clarifications",
    Action.ADD_EXEMPLAR: "exemplars",
    Action.ADD_IMPLICATION: "implies",
}
_REMOVES = {
    Action.REMOVE_TERM: "terms",
    Action.REMOVE_EXCLUSION: "exclusions",
    Action.REMOVE_CLARIFICATION: "clarifications",
    Action.REMOVE_EXEMPLAR: "exemplars",
    Action.REMOVE_IMPLICATION: "implies",
}
_CONTENT = frozenset(_ADDS.values()) | {f"remove_{key}" for key in _REMOVES.values()}


def _listed(value: object) -> object:
    """Accept one value where a list is expected, and nothing for an empty list."""
    if value is None or value == "":
        return ()
    return value if isinstance(value, list | tuple) else (value,)


def _case_ids(value: object) -> object:
    """Accept a number where a case id is expected."""
    listed = _listed(value)
    if isinstance(listed, list | tuple):
        return tuple(str(one) if isinstance(one, int) else one for one in listed)
    return listed


Phrases = Annotated[tuple[Phrase, ...], BeforeValidator(_listed)]

Named = TypeVar("Named")
Said = Annotated[Named | None, BeforeValidator(lambda value: value or None)]
"""What may be left out or left empty: then nobody chose it."""


class VerdictForm(BaseModel):
    """One verdict as written; see `as_verdict` for what it means."""

    model_config = ConfigDict(extra="forbid")

    cases: Annotated[tuple[Phrase, ...], BeforeValidator(_case_ids)] = ()
    label: Phrase
    judgement: Judgement
    severity: Said[Severity] = None
    context: Said[Context] = None
    terms: Phrases = ()
    exclusions: Phrases = ()
    clarifications: Annotated[
        tuple[ClarificationModel, ...], BeforeValidator(_listed)
    ] = ()
    exemplars: Annotated[tuple[ExemplarModel, ...], BeforeValidator(_listed)] = ()
    implies: Phrases = ()
    remove_terms: Phrases = ()
    remove_exclusions: Phrases = ()
    remove_clarifications: Phrases = ()
    remove_exemplars: Phrases = ()
    remove_implies: Phrases = ()
    correct_value: Value | None = None
    reviewer: str = ""
    comment: str = ""
    anchor: bool = False

    @model_validator(mode="before")
    @classmethod
    def _one_shape(cls, data: Any) -> Any:
        """Bring the accepted spellings into one."""
        if not isinstance(data, dict):
            raise ValueError("a verdict is a list of `key: value` lines")
        return _apply_action(_collect_rule(_plural(data)))

    def as_verdict(self, reviewer: str) -> Verdict:
        """Return the record; `reviewer` stands in where the file names none."""
        return Verdict(
            label=self.label,
            judgement=self.judgement,
            severity=self.severity,
            context=self.context,
            case_ids=self.cases,
            edits=Edits(
                terms=self.terms,
                exclusions=self.exclusions,
                clarifications=tuple(rule.record() for rule in self.clarifications),
                exemplars=tuple(one.record() for one in self.exemplars),
                implies=self.implies,
                remove_terms=self.remove_terms,
                remove_exclusions=self.remove_exclusions,
                remove_clarifications=self.remove_clarifications,
                remove_exemplars=self.remove_exemplars,
                remove_implies=self.remove_implies,
            ),
            correct_value=self.correct_value,
            reviewer=self.reviewer or reviewer,
            comment=self.comment,
            anchor=self.anchor,
        )


def _plural(data: dict[Any, Any]) -> dict[Any, Any]:
    """Replace singular keys by the plural ones."""
    out: dict[Any, Any] = {}
    for key, value in data.items():
        name = _SINGULAR.get(key, key)
        if name in out:
            raise ValueError(f"{key!r} and {name!r} are the same thing; keep one")
        out[name] = value
    return out


def _collect_rule(data: dict[Any, Any]) -> dict[Any, Any]:
    """Turn plain ``phrase``, ``value`` and ``note`` into one clarification."""
    rule = {key: data.pop(key) for key in ("phrase", "value", "note") if key in data}
    if not any(rule.values()):
        return data
    if data.get("action") in (Action.ADD_EXCLUSION, Action.REMOVE_CLARIFICATION):
        data["phrase_only"] = rule.get("phrase")
        return _take_phrase(data)
    if data.get("clarifications"):
        raise ValueError("use either phrase and value, or clarifications")
    return data | {"clarifications": [rule]}


def _take_phrase(data: dict[Any, Any]) -> dict[Any, Any]:
    """Use ``phrase`` as the content of an action that needs only a wording."""
    key = (
        "exclusions"
        if data["action"] == Action.ADD_EXCLUSION
        else "remove_clarifications"
    )
    phrase = data.pop("phrase_only")
    return data | {key: data.get(key) or [phrase]}


def _apply_action(data: dict[Any, Any]) -> dict[Any, Any]:
    """Check ``action`` against the content it names; it may be left out."""
    raw = data.pop("action", None)
    if not raw:
        return data
    if raw not in tuple(Action):
        raise ValueError(f"action {raw!r} is none of {', '.join(Action)}")
    action = Action(raw)
    if action in _REMOVES:
        key = _REMOVES[action]
        if data.get(key):
            data[f"remove_{key}"] = data.pop(key)
    wanted = _ADDS.get(action) or f"remove_{_REMOVES.get(action, '')}"
    given = {key for key in _CONTENT if data.get(key)}
    if action is Action.NONE and given:
        raise ValueError(f"action none, but {', '.join(sorted(given))} given")
    if action is not Action.NONE and wanted not in given:
        raise ValueError(f"action {action} needs {wanted.removeprefix('remove_')}")
    return data


def build_verdict(form: VerdictForm, reviewer: str, where: str) -> Verdict:
    """Return the verdict of a form.

    Raises
    ------
    DataError
        Its parts contradict each other; names `where`.
    """
    try:
        return form.as_verdict(reviewer)
    except ValueError as error:
        raise DataError(f"{where}: {error}. Correct it.") from error
