"""What documents of a release are made of: facts in words, lines, tables, sections."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from loop.core.nouns import counted
from loop.core.records import Status
from loop.documents.numbers import (
    NOT_ESTIMABLE,
    Limits,
    interval,
    share,
    signed_interval,
)
from loop.evaluate.documents import ForestMark
from loop.evaluate.gates import GateVerdict
from loop.release.facts import EvaluationFacts, ReleaseFacts
from loop.release.release_json import AnyFacts
from loop.stats.intervals import Estimate

AUTHOR = "author to complete"
"""Printed where only a person knows; nothing is ever invented in its place."""

NO_MODEL = (
    "the engine rules is no language model: it reads the terms, exclusions and "
    "exemplars of the prompt's guides"
)

_DIGEST = re.compile(r"[0-9a-f]{6,64}")


class FactLine(NamedTuple):
    """One fact with its name."""

    term: str
    text: str = ""
    digest: str = ""
    author: str = ""
    """What only a person can add; empty where nothing is open."""


class DocumentColumn(NamedTuple):
    """The heading of a column."""

    text: str
    numeric: bool = False


class DocumentTable(NamedTuple):
    """Rows of words; a row has a cell for every column."""

    columns: tuple[DocumentColumn, ...]
    rows: tuple[tuple[str, ...], ...]


class LabelRow(NamedTuple):
    """One label of an evaluation with its place in the forest plot."""

    name: str
    verdict: str
    mark: ForestMark
    rates: tuple[tuple[str, str], ...]
    """Value and interval of each rate."""

    why: str


class Forest(NamedTuple):
    """The labels of an evaluation on one axis; positions in percent."""

    low: float
    ticks: tuple[tuple[float, str], ...]
    line: float | None
    """Position of the threshold; None without one."""

    names: tuple[str, ...]
    """Names of the rates."""

    rows: tuple[LabelRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSection:
    """A titled part of a document; whatever is empty is left out."""

    key: str
    """Anchor on the page, for example ``"worse"``."""

    title: str
    lead: tuple[str, ...] = ()
    """Sentences."""

    lines: tuple[FactLine, ...] = ()
    tables: tuple[DocumentTable, ...] = ()
    forest: Forest | None = None
    """Drawn by the page in place of the first table."""

    notes: tuple[str, ...] = ()
    alarm: bool = False
    """Whether nobody may miss it."""


class Banner(NamedTuple):
    """What stands above everything else, for ever."""

    title: str
    text: str


class Figure(NamedTuple):
    """A number in large letters."""

    term: str
    big: str
    small: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseDocument:
    """One document of a release."""

    title: str
    subtitle: str = ""
    header: tuple[tuple[str, str], ...] = ()
    """Names and JSON values of the YAML header; empty without one."""

    banners: tuple[Banner, ...] = ()
    intro: tuple[str, ...] = ()
    sections: tuple[DocumentSection, ...]


def table(columns: str, rows: Sequence[tuple[str, ...]]) -> tuple[DocumentTable, ...]:
    """Return one table, or none where there is no row.

    Parameters
    ----------
    columns
        Headings with ``|`` between them; one that begins with ``#`` is of numbers.
    """
    if not rows:
        return ()
    heads = (
        DocumentColumn(one.lstrip("#"), one.startswith("#"))
        for one in columns.split("|")
    )
    return (DocumentTable(tuple(heads), tuple(rows)),)


def fact(term: str, value: object, author: str = "") -> FactLine:
    """Return a line of a recorded fact; a digest is set apart."""
    text = told(value)
    if _DIGEST.fullmatch(text) and isinstance(value, str):
        return FactLine(term, digest=text, author=author)
    return FactLine(term, text or ("" if author else "not recorded"), author=author)


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


class WithInterval(Limits, Protocol):
    """A number with its interval."""

    @property
    def value(self) -> float | None:
        """The number; None where it cannot be estimated."""
        ...


def rate(numbers: WithInterval) -> str:
    """Return a share with its interval, or a dash."""
    limits = interval(numbers)
    if numbers.value is None or limits == NOT_ESTIMABLE:
        return share(numbers.value)
    return f"{share(numbers.value)} {limits}"


def change_limits(low: float | None, high: float | None) -> str:
    """Return the interval of a difference, or a dash."""
    return signed_interval(Estimate(None, low, high))


def label_names(facts: AnyFacts) -> dict[str, str]:
    """Return label ids with the names of their labels, as the evaluations print them.

    An id without an evaluation is its own name, and so is a category of errors.
    """
    names = {label: told(label) for label in facts.release.labels}
    for evaluation in facts.evaluations if isinstance(facts, ReleaseFacts) else ():
        names |= {
            one.label: told(one.name) or told(one.label) for one in evaluation.labels
        }
    return names


def named(facts: AnyFacts, labels: Iterable[str]) -> str:
    """Return labels by their names, with commas."""
    names = label_names(facts)
    return ", ".join(names.get(one, told(one)) for one in labels)


def claimed(facts: ReleaseFacts) -> EvaluationFacts | None:
    """Return the evaluation the claim is about; the last one where it names none."""
    evaluations = facts.evaluations
    on_cohort = [one for one in evaluations if one.cohort == facts.claim.cohort]
    return next(reversed([*evaluations, *on_cohort]), None)


def labels_with(evaluation: EvaluationFacts, verdict: GateVerdict) -> list[str]:
    """Return the names of the labels of an evaluation with one verdict."""
    return [
        told(one.name) or told(one.label)
        for one in evaluation.labels
        if one.gate.verdict is verdict
    ]


def labels_without_pass(evaluation: EvaluationFacts) -> list[str]:
    """Return the names of the labels that did not pass, those that failed first."""
    return [
        *labels_with(evaluation, GateVerdict.FAIL),
        *labels_with(evaluation, GateVerdict.INSUFFICIENT),
    ]


def outcomes(evaluation: EvaluationFacts) -> str:
    """Return how many cases were answered, unparsed and so on, in words."""
    parts = [outcome_words(evaluation.statuses)]
    if evaluation.not_run:
        parts.append(f"{counted(evaluation.not_run, 'case')} of the cohort not run")
    over = f"over {evaluation.draws} draws: " if evaluation.draws > 1 else ""
    return over + ", ".join(filter(None, parts))


def outcome_words(statuses: Mapping[str, int]) -> str:
    """Return how often each outcome was, in words."""
    return ", ".join(
        f"{statuses[status]:,} {told(status).replace('_', ' ')}"
        for status in dict.fromkeys([*Status, *statuses])
        if status in statuses
    )


def is_compared(facts: ReleaseFacts) -> bool:
    """Whether answers were compared with those of the version before."""
    change = facts.change
    return bool(change.improved or change.unchanged or change.worse)


def uses_a_model(facts: AnyFacts) -> bool:
    """Whether the engine is a language model; the embedded one is not."""
    return told(facts.engine.name).partition(":")[0] != "rules"


def objections(evaluation: EvaluationFacts) -> Iterator[str]:
    """Yield what kept each label of the claim from passing."""
    for one in evaluation.labels:
        gate = one.gate
        why = "; ".join(filter(None, [*map(told, gate.reasons), told(gate.needs)]))
        if why and one.comparable and gate.verdict is not GateVerdict.PASS:
            yield f"{told(one.name)}, {gate.verdict}: {why}"
