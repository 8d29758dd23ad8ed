"""The form of verdicts in a file: forgiving in shape, strict in meaning."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from loop.core.errors import DataError
from loop.core.records import Value
from loop.prompts.guides import ClarificationModel, ExemplarModel, Phrase
from loop.review.verdict import Action, Context, Edits, Judgement, Severity, Verdict

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
