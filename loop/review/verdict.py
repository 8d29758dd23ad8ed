"""A clinician's verdict on one or more cases of one label, and what it asks for.

It has three shapes: what people write, in a file or in the form on a page
(`VerdictForm`); the record (`Verdict`); and the JSON data that the store keeps of it
(`loop.review.submit.payload`).
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    StringConstraints,
    model_validator,
)

from loop.core.digests import digest_json
from loop.core.errors import DataError, UnknownLabelError
from loop.core.paths import WorkspacePaths
from loop.core.records import (
    Clarification,
    ErrorWeight,
    Exemplar,
    GuideValue,
    Lexicon,
    Value,
)
from loop.core.safe_text import quoted
from loop.core.yaml_files import check_model
from loop.labels.cohort import Cohort
from loop.labels.error_categories import ErrorCategories, read_errors
from loop.labels.taxonomy import NO_FINDING, Taxonomy, read_taxonomy
from loop.prompts.diff import show_clarification, show_exemplar
from loop.prompts.guides import ClarificationModel, ExemplarModel, Phrase
from loop.prompts.lint import fold_phrase


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
    """What a verdict asks to be done to the label's guide, or to the instructions."""

    ADD_TERM = "add_term"
    ADD_EXCLUSION = "add_exclusion"
    CLARIFY = "clarify"
    ADD_EXEMPLAR = "add_exemplar"
    ADD_IMPLICATION = "add_implication"
    ADD_GENERAL_RULE = "add_general_rule"
    REMOVE_TERM = "remove_term"
    REMOVE_EXCLUSION = "remove_exclusion"
    REMOVE_CLARIFICATION = "remove_clarification"
    REMOVE_EXEMPLAR = "remove_exemplar"
    REMOVE_IMPLICATION = "remove_implication"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """Everything one verdict changes: its label's guide, and the general rules."""

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
    general_rules: tuple[str, ...] = ()
    """Rules of reading that hold for every label, in the instructions of the prompt."""

    def __bool__(self) -> bool:
        """Whether anything is changed."""
        return any(getattr(self, one.name) for one in fields(self))

    @property
    def count(self) -> int:
        """How many single changes there are."""
        return sum(len(getattr(self, one.name)) for one in fields(self))

    @property
    def in_guide(self) -> bool:
        """Whether anything is changed in the guide of the label."""
        return self.count > len(self.general_rules)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorVerdict:
    """What a clinician says of one error that a judge lists, or that it missed."""

    words: str
    """What it is about, in the words of the judge or of the clinician: clinical text,
    kept and exported as a comment is."""

    said: ErrorWeight
    """How the judge weighs it; `NO_ERROR` where it does not list it."""

    right: ErrorWeight
    """How it should be weighed; `NO_ERROR` where it is none of this category."""


def count_errors(weights: Sequence[ErrorWeight]) -> tuple[int, int]:
    """Return how many are significant, and how many are not."""
    significant = weights.count(ErrorWeight.SIGNIFICANT)
    return significant, weights.count(ErrorWeight.INSIGNIFICANT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one clinician says of some cases and one label."""

    label: str
    """Label id; of a judge, id of a category of errors."""

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

    errors: tuple[ErrorVerdict, ...] = ()
    """Of a judge: every error of the category in the one case, those that the judge
    lists and those that it missed. Empty leaves the counts to the raters."""

    reviewer: str = ""
    comment: str = ""
    """A note for the team: seen by whoever may open the review, never in a prompt, the
    ledger or a report, and in an export only when asked for."""

    anchor: bool = False
    """Whether the cases must stay right in every later version."""

    def __post_init__(self) -> None:
        problem = _contradiction(self) or _too_long(self.edits.general_rules)
        if problem:
            raise ValueError(problem)

    @property
    def id(self) -> str:
        """Short digest of everything it says, 12 hex characters."""
        return digest_json(self.data)[:12]

    @property
    def data(self) -> dict[str, Any]:
        """Everything it says, as JSON data.

        General rules and errors are left out where there are none: what was said
        before there were any keeps its id.
        """
        data = asdict(self)
        if not self.edits.general_rules:
            del data["edits"]["general_rules"]
        if not self.errors:
            del data["errors"]
        return data

    @property
    def correct_counts(self) -> tuple[int, int] | None:
        """Significant and other errors that are right; None leaves it to the raters."""
        if not self.errors:
            return None
        return count_errors([one.right for one in self.errors])

    @property
    def targets(self) -> tuple[tuple[str, str], ...]:
        """``(case id, label)`` pairs that the change should put right."""
        if self.judgement in {Judgement.REFERENCE_WRONG, *RECORDED_ONLY}:
            return ()
        return tuple((case_id, self.label) for case_id in self.case_ids)


LONGEST_RULE = 500
"""Characters of one general rule: every case is read with all of them."""


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
    return _misplaced_errors(verdict)


def _misplaced_errors(verdict: Verdict) -> str:
    """Say why a verdict cannot list errors, or nothing."""
    if not verdict.errors:
        return ""
    if len(verdict.case_ids) != 1:
        return "errors are those of one case: name it with case_id"
    if verdict.judgement in RECORDED_ONLY:
        return f"{verdict.judgement} is recorded only: leave out errors"
    return ""


def _too_long(rules: Sequence[str]) -> str:
    """Say which of the general rules is longer than it may be, or nothing."""
    for number, rule in enumerate(rules, 1):
        if len(rule) > LONGEST_RULE:
            return (
                f"general rule {number} has {len(rule):,} characters, and may have "
                f"{LONGEST_RULE}: say it in a sentence or two"
            )
    return ""


class GuideList(NamedTuple):
    """One of the lists that a guide is made of, and a verdict may edit."""

    kind: str
    """As a change of it is called: ``"term"``."""

    name: str
    """Of `Guide` and `Edits`: ``"terms"``."""

    key: Callable[[Any], str] = fold_phrase
    """What tells its rows apart."""

    show: Callable[[Any], str] = str
    """A row as one line."""

    @property
    def removals(self) -> str:
        """Its counterpart among the `Edits`: ``"remove_terms"``."""
        return f"remove_{self.name}"


GUIDE_LISTS = (
    GuideList("term", "terms"),
    GuideList("exclusion", "exclusions"),
    GuideList(
        "clarification",
        "clarifications",
        lambda one: fold_phrase(one.phrase),
        show_clarification,
    ),
    GuideList(
        "exemplar",
        "exemplars",
        lambda example: fold_phrase(example.text),
        show_exemplar,
    ),
    GuideList("implies", "implies", str),
)
"""All of them that a verdict changes, in reading order."""

LEXICON_LISTS = tuple(one for one in GUIDE_LISTS if hasattr(Lexicon, one.name))
"""Those that a lexicon has as well."""

GUIDANCE_LISTS = (
    GuideList("counts", "counts"),
    GuideList("does not count", "does_not_count"),
    GuideList("uncertain when", "uncertain_when"),
)
"""The lists of a guide that only an editor changes."""

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
    "general_rule": "general_rules",
    "error": "errors",
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
    Action.ADD_GENERAL_RULE: "general_rules",
}

_REMOVES = {
    Action.REMOVE_TERM: "terms",
    Action.REMOVE_EXCLUSION: "exclusions",
    Action.REMOVE_CLARIFICATION: "clarifications",
    Action.REMOVE_EXEMPLAR: "exemplars",
    Action.REMOVE_IMPLICATION: "implies",
}

_CONTENT = frozenset(one.name for one in fields(Edits))


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


class _ErrorForm(BaseModel):
    """One error as written."""

    model_config = ConfigDict(extra="forbid")

    words: Annotated[str, StringConstraints(strip_whitespace=True)] = ""
    said: ErrorWeight
    right: ErrorWeight

    def record(self) -> ErrorVerdict:
        return ErrorVerdict(words=self.words, said=self.said, right=self.right)


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
    general_rules: Phrases = ()
    correct_value: Value | None = None
    errors: Annotated[tuple[_ErrorForm, ...], BeforeValidator(_listed)] = ()
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
                **{one.name: _records(getattr(self, one.name)) for one in fields(Edits)}
            ),
            correct_value=self.correct_value,
            errors=tuple(one.record() for one in self.errors),
            reviewer=self.reviewer or reviewer,
            comment=self.comment,
            anchor=self.anchor,
        )


def _records(rows: Iterable[Any]) -> tuple[Any, ...]:
    """Return the rows of one list, rules and examples as records."""
    return tuple(
        row.record() if isinstance(row, ClarificationModel | ExemplarModel) else row
        for row in rows
    )


def _plural(data: dict[Any, Any]) -> dict[Any, Any]:
    """Replace singular keys by the plural ones."""
    out: dict[Any, Any] = {}
    for key, value in data.items():
        name = _SINGULAR.get(key, key)
        if name in out:
            raise ValueError(f"{quoted(key)} and {name!r} are the same thing; keep one")
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
        raise ValueError(f"action {quoted(raw)} is none of {', '.join(Action)}")
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


_WHERE = "the verdict"


def build_from_form(
    fields: Mapping[str, Any],
    *,
    reviewer: str,
    asked: Asked,
    case_ids: Collection[str],
) -> Verdict:
    """Return the verdict that the fields of a form say, checked against its cohort.

    Parameters
    ----------
    fields
        As in a verdict file, see `loop.review.verdict_files`; empty ones do not count.
    reviewer
        Who is signed in; a name among the fields is not believed.
    case_ids
        The cases of the cohort.

    Raises
    ------
    DataError
        A field is wrong or missing, the parts contradict each other, a case is not in
        the cohort, or the evidence of an exemplar is not in its text.
    UnknownLabelError
        The label is not in the taxonomy, or the category not in ``errors.yaml``.
    """
    filled = {key: _filled(value) for key, value in fields.items() if key != "reviewer"}
    filled = {key: value for key, value in filled.items() if value not in ("", [], {})}
    _require_characters(filled)
    form = check_model(filled, VerdictForm, _WHERE)
    verdict = build_verdict(form, reviewer, _WHERE)
    (checked,) = check_verdicts((verdict,), asked, case_ids)
    _require_evidence(checked)
    return checked


def _filled(value: Any) -> Any:
    """Return a field without blank ends, and without its empty parts."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list | tuple):
        parts = (_filled(one) for one in value)
        return [one for one in parts if one not in ("", None, {}, [])]
    if isinstance(value, Mapping):
        parts_by_key = {key: _filled(one) for key, one in value.items()}
        return {key: one for key, one in parts_by_key.items() if one not in ("", None)}
    return "" if value is None else value


def _require_characters(value: object) -> None:
    """Refuse what is no text: half of a character, which nothing could store."""
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(
                f"{_WHERE}: character {error.start + 1} of a field is incomplete. "
                "Delete it and type it again."
            ) from error
    elif isinstance(value, list):
        for one in value:
            _require_characters(one)
    elif isinstance(value, dict):
        for one in value.values():
            _require_characters(one)


def _require_evidence(verdict: Verdict) -> None:
    """Refuse an exemplar whose evidence is not in its text, as lint would later."""
    for number, example in enumerate(verdict.edits.exemplars, 1):
        if example.evidence.casefold() not in example.text.casefold():
            raise DataError(
                f"{_WHERE}, exemplar {number}: its evidence phrase is not in "
                "its text. Use the phrase in the paraphrase, or shorten the phrase."
            )


Asked = Taxonomy | ErrorCategories
"""What prompts are asked about a cohort, and verdicts name: the labels of reports, or
the categories of errors of pairs."""


def read_asked(workspace: WorkspacePaths, cohort: Cohort) -> Asked:
    """Return what verdicts on the cases of a cohort may name.

    Raises
    ------
    DataError
        The file that says so is missing or malformed.
    """
    if cohort.holds_pairs:
        return read_errors(workspace.labels)
    return read_taxonomy(workspace.labels)


DERIVED = frozenset({Judgement.REFERENCE_WRONG, *RECORDED_ONLY})
"""What can be said of a label that follows from the others."""


def check_verdicts(
    verdicts: Sequence[Verdict], asked: Asked, case_ids: Collection[str]
) -> tuple[Verdict, ...]:
    """Return the verdicts with canonical label ids, after checking what they name.

    Raises
    ------
    UnknownLabelError
        A label is not in the taxonomy, or a category not in ``errors.yaml``.
    DataError
        A case is not in the cohort, wording is given for "No Finding", a verdict says
        what only one on another task can say, or two disagree on what is right.
    """
    checked = tuple(
        _check_one(number, verdict, asked, case_ids)
        for number, verdict in enumerate(verdicts, 1)
    )
    _refuse_disagreement(checked)
    return checked


def _refuse_disagreement(verdicts: Sequence[Verdict]) -> None:
    """Refuse two verdicts that call different things right for the same case."""
    said: dict[tuple[str, str], tuple[int, str]] = {}
    for number, verdict in enumerate(verdicts, 1):
        right = _right_words(verdict)
        if not right:
            continue
        for case_id in verdict.case_ids:
            first, before = said.setdefault((case_id, verdict.label), (number, right))
            if before != right:
                raise DataError(
                    f"verdicts {first} and {number} disagree on {verdict.label} of "
                    f"case {quoted(case_id)}: {before} and {right}. "
                    "Agree on one and remove the other. Nothing was changed."
                )


def _right_words(verdict: Verdict) -> str:
    """Return what a verdict calls right, in words; empty where it leaves that open."""
    if verdict.correct_value is not None:
        return f"correct_value {verdict.correct_value}"
    counts = verdict.correct_counts
    if counts is None:
        return ""
    return f"{counts[0]} significant and {counts[1]} insignificant errors"


def _check_one(
    number: int, verdict: Verdict, asked: Asked, case_ids: Collection[str]
) -> Verdict:
    try:
        label = asked.find(verdict.label).id
        implied = tuple(asked.find(name).id for name in verdict.edits.implies)
        no_more = tuple(asked.find(name).id for name in verdict.edits.remove_implies)
    except UnknownLabelError as error:
        raise UnknownLabelError(f"verdict {number}: {error}") from error
    unknown = [case for case in verdict.case_ids if case not in case_ids]
    if unknown:
        raise DataError(
            f"verdict {number}: the cohort has no case {quoted(unknown[0])}. Correct "
            "the case id (put ids with leading zeros in quotes) or name the cohort "
            "with --cohort."
        )
    if label == NO_FINDING and verdict.judgement not in DERIVED:
        raise DataError(
            f"verdict {number}: No Finding is derived from the other labels and has no "
            "guide: only its reference or the text can be wrong. Judge the "
            "label that is wrong in this case."
        )
    judges = isinstance(asked, ErrorCategories)
    problem = _not_of_judges(verdict) if judges else _not_of_labels(verdict)
    if problem:
        raise DataError(f"verdict {number}: {problem}.")
    edits = replace(verdict.edits, implies=implied, remove_implies=no_more)
    return replace(verdict, label=label, edits=edits)


_OF_JUDGES = ("clarifications", "exemplars", "general_rules")
"""What a verdict on a judge may add, or take out: its guides have no other lists."""


def _not_of_judges(verdict: Verdict) -> str:
    """Say what of a verdict nobody can say of a judge, or nothing."""
    if verdict.judgement is Judgement.REFERENCE_WRONG:
        return (
            "reference_wrong corrects labels. What raters say of a pair stays theirs: "
            "they rate again, or `ranloop cohort ratings` replaces what they said"
        )
    if verdict.correct_value is not None:
        return "correct_value is of labels; list the errors of the category as errors"
    edits = verdict.edits
    for one in fields(edits):
        name = one.name.removeprefix("remove_")
        if getattr(edits, one.name) and name not in _OF_JUDGES:
            return (
                f"the guide of a category has no {name}. Say it with one of "
                f"{', '.join(_OF_JUDGES)}"
            )
    for value in _values_given(edits):
        if not isinstance(value, ErrorWeight):
            return (
                f"{value} is said of a label. An error is one of "
                f"{', '.join(ErrorWeight)}"
            )
    return ""


def _not_of_labels(verdict: Verdict) -> str:
    """Say what of a verdict nobody can say of a label, or nothing."""
    if verdict.errors:
        return "errors are those of a judge, on a cohort of pairs; give correct_value"
    for value in _values_given(verdict.edits):
        if not isinstance(value, Value):
            return f"{value} is said of an error. A label is one of {', '.join(Value)}"
    return ""


def _values_given(edits: Edits) -> Iterator[GuideValue]:
    yield from (one.value for one in edits.clarifications)
    yield from (one.value for one in edits.exemplars)
