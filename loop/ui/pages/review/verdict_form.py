"""The verdict form: its fields, what still misses, and how it reads as a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from loop.core.records import Guide, Mark, Value
from loop.evaluate.failures import ALL_LABELS, FailureKind
from loop.labels.taxonomy import NO_FINDING
from loop.review.queue.records import QueueItem
from loop.review.revise.copies import warn_of_copy
from loop.review.verdict import (
    LONGEST_RULE,
    Context,
    Judgement,
    Severity,
    Verdict,
)

JUDGEMENTS = (
    ("Nothing wrong", Judgement.ANSWER_RIGHT.value),
    ("Model wrong", Judgement.MODEL_WRONG.value),
    ("Reference wrong", Judgement.REFERENCE_WRONG.value),
    ("Guideline ambiguous", Judgement.GUIDELINE_AMBIGUOUS.value),
    ("Report text problem", Judgement.SOURCE_TEXT_DEFECT.value),
)
VALUES = tuple((value.value.capitalize(), value.value) for value in Value)
UNSAID = ("Not said", "")
"""Takes back a choice: nothing is recorded that nobody chose."""

SEVERITIES = (*((one.value.capitalize(), one.value) for one in Severity), UNSAID)
CAUSES = (
    UNSAID,
    *((one.value.replace("_", " ").capitalize(), one.value) for one in Context),
)
NOTHING, TERM, EXCLUSION = "none", "term", "exclusion"
CLARIFICATION = "clarification"
POSITIVE, NEGATIVE = "positive_exemplar", "negative_exemplar"
GENERAL = "general_rule"
ACTIONS = (
    ("None", NOTHING),
    ("Term", TERM),
    ("Exclusion", EXCLUSION),
    ("Clarification", CLARIFICATION),
    ("Positive exemplar", POSITIVE),
    ("Negative exemplar", NEGATIVE),
    ("General rule", GENERAL),
)
ACTION_PARTS = {
    "Term": ("term", "a wording that shows the label"),
    "Exclusion": ("exclusion", "a wording that does not count"),
    "Clarification": ("clarification", "a rule for an unclear phrase of the label"),
    "Exemplar": ("exemplar", "an example sentence in your own words"),
    "General rule": ("general rule", "how to read any report, whatever the label"),
}
"""What each action adds to a version, as `READ_BY` names the part, and its meaning."""

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


class ReviewForm(NamedTuple):
    """The fields as they are shown; the browser hides those that do not matter."""

    judgement: str | None = None
    value: str | None = None
    severity: str | None = None
    cause: str | None = None
    action: str = NOTHING
    phrase: str = ""
    rule: str = ""
    paraphrase: str = ""
    comment: str = ""
    anchor: bool = False

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ReviewForm:
        """Return a form from what a browser sent or the store kept, made safe.

        Examples
        --------
        >>> sent = {"severity": "terrible", "phrase": None, "anchor": 1}
        >>> ReviewForm.of(sent) == ReviewForm()
        True
        """
        return cls(**{name: _known(name, values.get(name)) for name in cls._fields})

    @property
    def worded(self) -> bool:
        """Whether it asks for another wording."""
        return self.judgement in _WORDED and self.action != NOTHING


def _known(name: str, value: Any) -> Any:
    """Return `value` if the field may hold it, else what the field holds at first."""
    default = ReviewForm._field_defaults[name]
    if name in _CHOICES:
        known = value in [key for _, key in _CHOICES[name]]
        return value if known and value != "" else default
    return value if isinstance(value, type(default)) else default


def missing(form: ReviewForm) -> tuple[str, ...]:
    """Return what has to be filled in before the form can be handed in, in words."""
    if form.judgement is None:
        return ("what is wrong",)
    lacks = []
    if form.value is None and _needs_value(form):
        lacks.append("the right value")
    if form.worded and form.action == GENERAL:
        lacks += [] if form.rule.strip() else ["the rule in words"]
    elif form.worded:
        lacks += [] if form.phrase.strip() else ["the phrase"]
        if form.action in _EXEMPLARS:
            lacks += _lacks_of_exemplar(form)
    return (*lacks, *_too_long(form))


def _too_long(form: ReviewForm) -> list[str]:
    general = form.worded and form.action == GENERAL
    most = dict.fromkeys(_TEXTS, LONGEST) | {
        "rule": LONGEST_RULE if general else LONGEST
    }
    return [
        f"a shorter {word} (at most {most[name]:,} characters)"
        for name, word in _TEXTS.items()
        if len(getattr(form, name).strip()) > most[name]
    ]


def _needs_value(form: ReviewForm) -> bool:
    if form.judgement == Judgement.REFERENCE_WRONG:
        return True
    return form.worded and form.action == CLARIFICATION


def _lacks_of_exemplar(form: ReviewForm) -> list[str]:
    own, phrase = form.paraphrase.strip(), form.phrase.strip()
    if not own:
        return ["the statement in your own words"]
    if phrase.casefold() not in own.casefold():
        return ["the phrase inside your own words"]
    return []


def warn_of_copied_words(form: ReviewForm, text: str) -> str:
    """Return a warning about words copied from the case text, or nothing."""
    if form.worded and form.action == GENERAL:
        return warn_of_copy(form.rule, text)
    if not (form.worded and form.action in _EXEMPLARS):
        return ""
    return warn_of_copy(form.paraphrase, text)


def fields_of(form: ReviewForm, case_ids: Sequence[str], label: str) -> dict[str, Any]:
    """Return the fields of the verdict, without those that do not matter."""
    fields: dict[str, Any] = {
        "cases": list(case_ids),
        "label": label,
        "judgement": form.judgement,
        "severity": form.severity,
        "context": form.cause,
        "correct_value": form.value,
        "comment": form.comment,
        "anchor": form.anchor,
    }
    if form.judgement == Judgement.ANSWER_RIGHT:
        fields |= {"correct_value": None, "anchor": False}
    return fields | (_wording(form) if form.worded else {})


def _wording(form: ReviewForm) -> dict[str, Any]:
    phrase = form.phrase.strip()
    if form.action == GENERAL:
        return {"general_rules": [form.rule.strip()]}
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


def form_of(verdict: Verdict) -> ReviewForm | None:
    """Return a verdict as a form; None when it says more than the form can hold."""
    form = ReviewForm(
        judgement=verdict.judgement.value,
        value=verdict.correct_value.value if verdict.correct_value else None,
        severity=verdict.severity.value if verdict.severity else None,
        cause=verdict.context.value if verdict.context else None,
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
    for general in edits.general_rules:
        form = form._replace(action=GENERAL, rule=general)
    for one in edits.exemplars:
        action = next((k for k, v in _EXEMPLARS.items() if v == one.value), NOTHING)
        form = form._replace(action=action, phrase=one.evidence, paraphrase=one.text)
    return form if edits.count == 1 and form.action != NOTHING else None


def suggest(item: QueueItem, phrase: str, guide: Guide | None) -> ReviewForm | None:
    """Return the likely correction of a pair, to be looked at; None without one.

    The reference is taken to be right, except of "No Finding" that no failing label
    explains; a drawn right answer is taken to be right. The phrase that the model read
    wrongly becomes an exclusion, unless the label is called so or the guide has it as a
    term: then something else is wrong.

    Parameters
    ----------
    phrase
        What the model gave as its evidence, or empty.
    guide
        Of the label, in the version that was asked.
    """
    failure = item.failure
    if item.right:
        return ReviewForm(judgement=Judgement.ANSWER_RIGHT.value)
    if item.label == NO_FINDING:
        if any(cause.fails for cause in item.causes) or failure.predicted is None:
            return None
        return ReviewForm(
            judgement=Judgement.REFERENCE_WRONG.value, value=failure.predicted.value
        )
    if item.label == ALL_LABELS or failure.reference is None:
        return None
    present = failure.reference is Mark.PRESENT
    form = ReviewForm(
        judgement=Judgement.MODEL_WRONG.value,
        value=Value.PRESENT.value if present else Value.ABSENT.value,
    )
    if (
        failure.kind is FailureKind.FALSE_POSITIVE
        and phrase
        and not _names(guide, phrase)
    ):
        return form._replace(action=EXCLUSION, phrase=phrase)
    return form


def _names(guide: Guide | None, phrase: str) -> bool:
    """Whether a phrase is the label's name or one of its terms, or a part of one."""
    if guide is None:
        return False
    said = phrase.casefold()
    return any(said in one.casefold() for one in (guide.name, *guide.terms))


def with_part(form: ReviewForm, part: str, value: str, phrase: str) -> ReviewForm:
    """Return the form with a phrase as a part of a guide, as `GuidePart` names it.

    What it says otherwise stays, but for a judgement that asks for no wording.

    Parameters
    ----------
    value
        Of a clarification or an exemplar; empty for other parts.

    Examples
    --------
    >>> with_part(ReviewForm(), "clarification", "absent", "fat pad")[:2]
    ('model_wrong', 'absent')
    """
    exemplars = {said: action for action, said in _EXEMPLARS.items()}
    wanted = {
        "judgement": form.judgement
        if form.judgement in _WORDED
        else Judgement.MODEL_WRONG.value,
        "value": value if part == CLARIFICATION else form.value,
        "action": exemplars.get(value) if part == "exemplar" else part,
        "phrase": phrase,
    }
    return ReviewForm.of({**form._asdict(), **wanted})


def describe(form: ReviewForm) -> str:
    """Return what a form says, in a few words.

    Examples
    --------
    >>> describe(ReviewForm(judgement="model_wrong", value="absent"))
    'model wrong, right value absent'
    """
    words = {key: word.lower() for word, key in (*JUDGEMENTS, *ACTIONS)}
    said = [words[form.judgement]] if form.judgement else []
    said += [f"right value {form.value}"] if form.value else []
    if form.worded:
        wording = form.rule if form.action == GENERAL else form.phrase
        said.append(f"{words[form.action]} \u201c{wording}\u201d")
    return ", ".join(said)
