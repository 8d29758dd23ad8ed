"""The verdict form: its fields, what still misses, and how it reads as a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from loop.core.records import Value
from loop.review.copied import warn_of_copy
from loop.review.verdict import Context, Judgement, Severity, Verdict

JUDGEMENTS = (
    ("Model wrong", Judgement.MODEL_WRONG.value),
    ("Reference wrong", Judgement.REFERENCE_WRONG.value),
    ("Guideline ambiguous", Judgement.GUIDELINE_AMBIGUOUS.value),
    ("Text defect", Judgement.SOURCE_TEXT_DEFECT.value),
)
VALUES = tuple((value.value.capitalize(), value.value) for value in Value)
SEVERITIES = tuple((one.value.capitalize(), one.value) for one in Severity)
CAUSES = tuple((one.value.replace("_", " ").capitalize(), one.value) for one in Context)
NOTHING, TERM, EXCLUSION = "none", "term", "exclusion"
CLARIFICATION = "clarification"
POSITIVE, NEGATIVE = "positive_exemplar", "negative_exemplar"
ACTIONS = (
    ("None", NOTHING),
    ("Term", TERM),
    ("Exclusion", EXCLUSION),
    ("Clarification", CLARIFICATION),
    ("Positive exemplar", POSITIVE),
    ("Negative exemplar", NEGATIVE),
)
_EXEMPLARS = {POSITIVE: Value.PRESENT.value, NEGATIVE: Value.ABSENT.value}
_WORDED = frozenset({Judgement.MODEL_WRONG.value, Judgement.GUIDELINE_AMBIGUOUS.value})
"""Judgements that may ask for another wording."""

_CHOICES = {
    "judgement": JUDGEMENTS,
    "value": VALUES,
    "severity": SEVERITIES,
    "cause": CAUSES,
    "action": ACTIONS,
}


LONGEST = 8000
"""Characters of one text of a form; a wording or a note needs far fewer."""

_TEXTS = {
    "phrase": "phrase",
    "rule": "rule",
    "paraphrase": "statement",
    "comment": "note",
}


class Form(NamedTuple):
    """The fields as they are shown; the browser hides those that do not matter."""

    judgement: str | None = None
    value: str | None = None
    severity: str = Severity.MAJOR.value
    cause: str | None = None
    action: str = NOTHING
    phrase: str = ""
    rule: str = ""
    paraphrase: str = ""
    comment: str = ""
    anchor: bool = False

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Form:
        """Return a form from what a browser sent or the store kept, made safe.

        Examples
        --------
        >>> Form.of({"severity": "terrible", "phrase": None, "anchor": 1}) == Form()
        True
        """
        return cls(**{name: _known(name, values.get(name)) for name in cls._fields})

    @property
    def worded(self) -> bool:
        """Whether it asks for another wording."""
        return self.judgement in _WORDED and self.action != NOTHING


def _known(name: str, value: Any) -> Any:
    """Return `value` if the field may hold it, else what the field holds at first."""
    default = Form._field_defaults[name]
    if name in _CHOICES:
        return value if value in [key for _, key in _CHOICES[name]] else default
    return value if isinstance(value, type(default)) else default


def missing(form: Form) -> tuple[str, ...]:
    """Return what has to be filled in before the form can be handed in, in words."""
    if form.judgement is None:
        return ("what is wrong",)
    lacks = []
    if form.value is None and _needs_value(form):
        lacks.append("the right value")
    if form.worded:
        lacks += [] if form.phrase.strip() else ["the phrase"]
        if form.action in _EXEMPLARS:
            lacks += _lacks_of_exemplar(form)
    return (*lacks, *_too_long(form))


def _too_long(form: Form) -> list[str]:
    return [
        f"a shorter {word} (at most {LONGEST:,} characters)"
        for name, word in _TEXTS.items()
        if len(getattr(form, name)) > LONGEST
    ]


def _needs_value(form: Form) -> bool:
    if form.judgement == Judgement.REFERENCE_WRONG:
        return True
    return form.worded and form.action == CLARIFICATION


def _lacks_of_exemplar(form: Form) -> list[str]:
    own, phrase = form.paraphrase.strip(), form.phrase.strip()
    if not own:
        return ["the statement in your own words"]
    if phrase.casefold() not in own.casefold():
        return ["the phrase inside your own words"]
    return []


def warn(form: Form, text: str) -> str:
    """Return a warning about words copied from the case text, or nothing."""
    if not (form.worded and form.action in _EXEMPLARS):
        return ""
    return warn_of_copy(form.paraphrase, text)


def fields_of(form: Form, case_id: str, label: str) -> dict[str, Any]:
    """Return the fields of the verdict, without those that do not matter."""
    fields: dict[str, Any] = {
        "cases": [case_id],
        "label": label,
        "judgement": form.judgement,
        "severity": form.severity,
        "context": form.cause,
        "correct_value": form.value,
        "comment": form.comment,
        "anchor": form.anchor,
    }
    return fields | (_wording(form) if form.worded else {})


def _wording(form: Form) -> dict[str, Any]:
    phrase = form.phrase.strip()
    if form.action == TERM:
        return {"terms": [phrase]}
    if form.action == EXCLUSION:
        return {"exclusions": [phrase]}
    if form.action == CLARIFICATION:
        rule = {"phrase": phrase, "value": form.value, "note": form.rule}
        return {"clarifications": [rule]}
    value = _EXEMPLARS[form.action]
    example = {"text": form.paraphrase, "value": value, "evidence": phrase}
    return {"exemplars": [example]}


def form_of(verdict: Verdict) -> Form | None:
    """Return a verdict as a form; None when it says more than the form can hold."""
    form = Form(
        judgement=verdict.judgement.value,
        value=verdict.correct_value.value if verdict.correct_value else None,
        severity=verdict.severity.value,
        cause=verdict.context.value,
        comment=verdict.comment,
        anchor=verdict.anchor,
    )
    edits = verdict.edits
    if not edits:
        return form
    for term in edits.terms:
        form = form._replace(action=TERM, phrase=term)
    for phrase in edits.exclusions:
        form = form._replace(action=EXCLUSION, phrase=phrase)
    for rule in edits.clarifications:
        form = form._replace(
            action=CLARIFICATION,
            phrase=rule.phrase,
            rule=rule.note,
            value=rule.value.value,
        )
    for one in edits.exemplars:
        action = next((k for k, v in _EXEMPLARS.items() if v == one.value), NOTHING)
        form = form._replace(action=action, phrase=one.evidence, paraphrase=one.text)
    return form if edits.count == 1 and form.action != NOTHING else None
