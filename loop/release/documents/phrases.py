"""The facts of a release in words: numbers, lists, and what nobody recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loop.core.records import Status
from loop.documents.numbers import NOT_ESTIMABLE, interval, share, signed_interval
from loop.stats.intervals import Estimate

Facts = Mapping[str, Any]

AUTHOR = "author to complete"
"""Printed where only a person knows; nothing is ever invented in its place."""

NO_MODEL = (
    "the engine rules is no language model: it reads the terms, exclusions and "
    "exemplars of the prompt's guides"
)


def told(value: object) -> str:
    """Return a fact in words; empty for one that nobody recorded.

    Examples
    --------
    >>> told({"temperature": 0.0, "seed": None}), told(["en", "de"]), told(None)
    ('temperature 0; seed not set', 'en, de', '')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        pairs = ((key, told(one) or "not set") for key, one in value.items())
        return "; ".join(f"{key} {text}" for key, text in pairs)
    if isinstance(value, list | tuple):
        return ", ".join(filter(None, map(told, value)))
    return " ".join(str(value).split())


def counted(number: object, one: str, many: str = "") -> str:
    """Return a number with its noun; empty where the number is not known.

    Examples
    --------
    >>> counted(1, "case"), counted(1500, "case"), counted(None, "case")
    ('1 case', '1,500 cases', '')
    """
    if not isinstance(number, int | float):
        return ""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def estimate(record: Facts | None) -> Estimate:
    """Return an estimate as recorded; without numbers where there is none."""
    given = record or {}
    return Estimate(given.get("value"), given.get("low"), given.get("high"))


def rate(record: Facts | None, digits: int = 3) -> str:
    """Return a share with its interval, or a dash."""
    numbers = estimate(record)
    limits = interval(numbers, digits)
    if numbers.value is None or limits == NOT_ESTIMABLE:
        return share(numbers.value, digits)
    return f"{share(numbers.value, digits)} {limits}"


def change_limits(record: Facts) -> str:
    """Return the interval of a difference, or a dash."""
    return signed_interval(estimate(record))


def label_names(facts: Facts) -> dict[str, str]:
    """Return label ids with the names of their labels, as the evaluations print them.

    An id without an evaluation is its own name.
    """
    names = {label: told(label) for label in facts["release"]["labels"] or ()}
    for evaluation in facts["evaluations"] or ():
        names |= {
            one["label"]: told(one["name"]) or told(one["label"])
            for one in evaluation["labels"] or ()
        }
    return names


def named(facts: Facts, labels: object) -> str:
    """Return labels by their names, with commas."""
    names = label_names(facts)
    given = labels if isinstance(labels, list | tuple) else ()
    return ", ".join(names.get(one, told(one)) for one in given)


def claimed(facts: Facts) -> Facts | None:
    """Return the evaluation the claim is about; the last one where it names none."""
    evaluations = facts["evaluations"] or ()
    on_cohort = [
        one for one in evaluations if one["cohort"] == facts["claim"]["cohort"]
    ]
    return next(reversed([*evaluations, *on_cohort]), None)


def labels_with(evaluation: Facts, verdict: str) -> list[str]:
    """Return the names of the labels of an evaluation with one verdict."""
    return [
        told(one["name"]) or told(one["label"])
        for one in evaluation["labels"] or ()
        if one["gate"]["verdict"] == verdict
    ]


def outcomes(evaluation: Facts) -> str:
    """Return how many cases were answered, unparsed and so on, in words."""
    statuses: Facts = evaluation["statuses"] or {}
    parts = [
        f"{statuses[status]:,} {told(status).replace('_', ' ')}"
        for status in dict.fromkeys([*Status, *statuses])
        if statuses.get(status) is not None
    ]
    if evaluation["not_run"]:
        parts.append(f"{counted(evaluation['not_run'], 'case')} of the cohort not run")
    return ", ".join(parts)


def is_compared(facts: Facts) -> bool:
    """Whether answers were compared with those of the version before."""
    return any(facts["change"][name] for name in ("improved", "unchanged", "worse"))


def uses_a_model(facts: Facts) -> bool:
    """Whether the engine is a language model; the embedded one is not."""
    return told(facts["engine"]["name"]).partition(":")[0] != "rules"


def objections(evaluation: Facts) -> Iterator[str]:
    """Yield what kept each label of an evaluation from passing."""
    for one in evaluation["labels"] or ():
        gate = one["gate"]
        why = "; ".join(
            filter(None, [*map(told, gate["reasons"] or ()), told(gate["needs"])])
        )
        if why and gate["verdict"] != "PASS":
            yield f"{told(one['name'])}, {gate['verdict']}: {why}"
