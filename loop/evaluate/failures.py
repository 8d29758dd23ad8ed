"""Failing cases of a run, to review next, and those whose reference is uncertain."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.core.records import Field, Mark, Outcome, Span, Status, Value, ValueCode
from loop.documents.tables import format_rows
from loop.labels.cohort import (
    Cohort,
    CohortRole,
    iter_items,
    read_cohort,
    single_report,
)
from loop.labels.reference import MARKS, Reference, as_scored, read_reference
from loop.labels.taxonomy import NO_FINDING, Taxonomy, read_taxonomy
from loop.prompts.outputs.strict import NOTES
from loop.run.manifest import find_run
from loop.run.store import open_store, read_outcomes

_COLUMNS = (
    *("case_id", "label", "kind", "predicted", "reference", "spans", "problem"),
    *("on_run", "on_cohort"),
)
"""Of the table: as in one of verdicts, so that it can be filled in and sent back."""

ALL_LABELS = ""
"""Label of a row that concerns every label of its case."""


class FailureKind(StrEnum):
    """How a case fails."""

    FALSE_POSITIVE = "false_positive"
    FALSE_NEGATIVE = "false_negative"
    UNCERTAIN = "uncertain"
    """Answered uncertain where the reference decides."""

    UNPARSED = "unparsed"
    ENGINE_FAILED = "engine_failed"


class Failure(NamedTuple):
    """One failing case and label; holds no case text."""

    case_id: str
    label: str
    """Label id, or `ALL_LABELS` when the case has no answer at all."""

    kind: FailureKind
    predicted: Value | None
    reference: Mark | None
    spans: tuple[Span, ...]
    """Where the answer's evidence stands in the case text."""

    problem: str = ""
    """For cases without an answer: why. Else what the engine noted of its answer."""


class Failures(NamedTuple):
    """The failing cases of one run."""

    run_id: str
    cohort: str
    rows: tuple[Failure, ...]
    """In the order of the taxonomy, then of the cohort."""


class OpenKind(StrEnum):
    """Why a case is listed that is no failure."""

    REFERENCE_UNCERTAIN = "reference_uncertain"


class OpenCase(NamedTuple):
    """One case and label whose reference is uncertain: whatever the answer, no failure.

    The fields are those of `Failure`.
    """

    case_id: str
    label: str
    predicted: Value | None
    """None where there is no answer."""

    spans: tuple[Span, ...]
    problem: str = ""
    kind: OpenKind = OpenKind.REFERENCE_UNCERTAIN
    reference: Mark = Mark.UNCERTAIN


class OpenCases(NamedTuple):
    """The cases of one run whose reference is uncertain."""

    run_id: str
    cohort: str
    rows: tuple[OpenCase, ...]
    """In the order of the taxonomy, then of the cohort."""


Listing = Failures | OpenCases


def open_cases(
    workspace: WorkspacePaths,
    run_ref: str,
    *,
    labels: Collection[str] | None = None,
    reference: int | None = None,
) -> OpenCases:
    """Return how a run answers the cases whose reference is uncertain.

    They are in no rate of an evaluation.

    Parameters
    ----------
    labels
        Names or ids of labels; None for all.

    Raises
    ------
    DataError
        As `failing_cases` does.
    """
    record = find_run(workspace, run_ref)
    cohort = open_for_review(workspace, record.spec.cohort)
    taxonomy = read_taxonomy(workspace.labels)
    standard = read_reference(workspace, cohort.name, reference)
    wanted = {taxonomy.find(name).id for name in labels or taxonomy.ids}
    with open_store(workspace) as store:
        outcomes = tuple(read_outcomes(store, record.id))
    rows = [
        row
        for row in find_open_cases(outcomes, standard, taxonomy)
        if row.label in wanted
    ]
    order = {label: position for position, label in enumerate(taxonomy.ids)}
    rows.sort(key=lambda row: order[row.label])
    return OpenCases(record.id, cohort.name, tuple(rows))


def find_open_cases(
    outcomes: Sequence[Outcome], reference: Reference, taxonomy: Taxonomy
) -> Iterator[OpenCase]:
    """Yield every case and label whose reference is uncertain, with its answer."""
    where = {case_id: row for row, case_id in enumerate(reference.case_ids)}
    for outcome in outcomes:
        row = where.get(outcome.item_id)
        if row is None:
            continue
        answers = _answers(outcome, taxonomy)
        for column, label in enumerate(reference.labels):
            if reference.marks[row, column] == ValueCode.UNCERTAIN:
                answer = answers.get(label)
                yield OpenCase(
                    case_id=outcome.item_id,
                    label=label,
                    predicted=Value(str(answer.value)) if answer else None,
                    spans=answer.spans if answer else (),
                    problem=outcome.problem,
                )


def failing_cases(
    workspace: WorkspacePaths,
    run_ref: str,
    *,
    labels: Collection[str] | None = None,
    kinds: Collection[FailureKind] | None = None,
    reference: int | None = None,
) -> Failures:
    """Return the failing cases of a run, filtered by label and kind.

    Parameters
    ----------
    labels
        Names or ids of labels; None for all. Cases without an answer concern every
        label and are always included.
    kinds
        None for all.

    Raises
    ------
    DataError
        The run does not exist, a label is unknown, or the cohort is a holdout: its
        cases must stay unseen.
    """
    record = find_run(workspace, run_ref)
    cohort = open_for_review(workspace, record.spec.cohort)
    taxonomy = read_taxonomy(workspace.labels)
    standard = read_reference(workspace, cohort.name, reference)
    wanted = {taxonomy.find(name).id for name in labels} if labels else None
    with open_store(workspace) as store:
        found = list(find_failures(read_outcomes(store, record.id), standard, taxonomy))
    rows = [
        row
        for row in found
        if (wanted is None or row.label in wanted or row.label == ALL_LABELS)
        and (kinds is None or row.kind in kinds)
    ]
    order = {label: position for position, label in enumerate(taxonomy.ids)}
    rows.sort(key=lambda row: order.get(row.label, -1))
    return Failures(record.id, cohort.name, tuple(rows))


def open_for_review(workspace: WorkspacePaths, name: str) -> Cohort:
    """Return cohort `name`, whose failing cases may be seen.

    Raises
    ------
    DataError
        There is no such cohort, or it is a holdout: its cases must stay unseen.
    """
    cohort = read_cohort(workspace, name)
    if cohort.role is CohortRole.HOLDOUT:
        raise DataError(
            f"cohort {cohort.name} is a holdout: its failing cases stay unseen, or it "
            "can no longer decide anything. Review a cohort with role dev."
        )
    return cohort


def find_failures(
    outcomes: Iterator[Outcome], reference: Reference, taxonomy: Taxonomy
) -> Iterator[Failure]:
    """Yield the failures of each outcome, in the order of `outcomes`."""
    reference = as_scored(reference, taxonomy)
    where = {case_id: row for row, case_id in enumerate(reference.case_ids)}
    columns = {label: column for column, label in enumerate(reference.labels)}
    labels = [(label, columns[label]) for label in taxonomy.ids if label in columns]
    for outcome in outcomes:
        if outcome.status is not Status.ANSWERED:
            yield _unanswered(outcome)
        row = where.get(outcome.item_id)
        if row is not None:
            codes = reference.marks[row].tolist()
            marks = {label: MARKS[codes[column]] for label, column in labels}
            yield from _wrong_answers(outcome, marks, taxonomy)


def read_evidence(
    workspace: WorkspacePaths, found: Listing, *, around: int = 40
) -> Mapping[tuple[str, str], str]:
    """Return the evidence of each row from the private store, for display only.

    Parameters
    ----------
    around
        Characters of context on each side of a span.

    Returns
    -------
    Mapping[tuple[str, str], str]
        (case id, label) to the phrases, joined by `` | ``; a row without spans has
        the empty string.

    Raises
    ------
    DataError
        The texts are not on this machine.
    """
    spans = {(row.case_id, row.label): row.spans for row in found.rows}
    texts = read_texts(workspace, found)
    return {
        (case_id, label): " | ".join(
            _excerpt(texts[case_id], span, around) for span in where
        )
        for (case_id, label), where in spans.items()
    }


def read_texts(workspace: WorkspacePaths, found: Listing) -> Mapping[str, str]:
    """Return the text of each failing case from the private store, for display only.

    Raises
    ------
    DataError
        The texts are not on this machine.
    """
    wanted = {row.case_id for row in found.rows}
    cohort = read_cohort(workspace, found.cohort)
    return {
        item.id: single_report(item)
        for item in iter_items(workspace, cohort)
        if item.id in wanted
    }


def count_kinds(rows: Sequence[Failure]) -> Mapping[FailureKind, int]:
    """Return how many rows there are of each kind."""
    return {kind: sum(row.kind is kind for row in rows) for kind in FailureKind}


def _unanswered(outcome: Outcome) -> Failure:
    return Failure(
        case_id=outcome.item_id,
        label=ALL_LABELS,
        kind=FailureKind(outcome.status.value),
        predicted=None,
        reference=None,
        spans=(),
        problem=outcome.problem,
    )


def _wrong_answers(
    outcome: Outcome, marks: Mapping[str, Mark], taxonomy: Taxonomy
) -> Iterator[Failure]:
    """Yield the labels of one outcome that contradict the reference."""
    answers = _answers(outcome, taxonomy)
    for label, mark in marks.items():
        answer = answers.get(label)
        kind = _kind(Value(str(answer.value)), mark) if answer else None
        if answer and kind:
            yield Failure(
                case_id=outcome.item_id,
                label=label,
                kind=kind,
                predicted=Value(str(answer.value)),
                reference=mark,
                spans=answer.spans,
                problem="; ".join(
                    note
                    for note in NOTES.values()
                    if f"{label}: {note}" in outcome.repairs
                ),
            )


def _answers(outcome: Outcome, taxonomy: Taxonomy) -> dict[str, Field]:
    """Return the answers of an outcome with "No Finding"."""
    answers = dict(outcome.fields)
    found = taxonomy.find_no_finding(_values(answers))
    if found is not None:
        answers[NO_FINDING] = Field(found)
    return answers


def _values(answers: Mapping[str, Field]) -> Mapping[str, Value]:
    return {label: Value(str(answer.value)) for label, answer in answers.items()}


def _kind(value: Value, mark: Mark) -> FailureKind | None:
    """Return how `value` fails against `mark`; None when it does not."""
    absent = mark in (Mark.ABSENT, Mark.NOT_CODED)
    if not absent and mark is not Mark.PRESENT:
        return None
    if value is Value.UNCERTAIN:
        return FailureKind.UNCERTAIN
    if absent:
        return FailureKind.FALSE_POSITIVE if value is Value.PRESENT else None
    return FailureKind.FALSE_NEGATIVE if value is Value.ABSENT else None


def _excerpt(text: str, span: Span, around: int) -> str:
    """Return a span with its surroundings on one line, the span in brackets."""
    before = text[max(span.start - around, 0) : span.start]
    after = text[span.end : span.end + around]
    phrase = f"{before}[{text[span.start : span.end]}]{after}"
    return " ".join(phrase.split())


def failures_table(
    found: Listing,
    beside: Mapping[tuple[str, str], Mapping[str, object]] = MappingProxyType({}),
) -> str:
    """Return one row per failing case and label as CSV; ids and places, no text.

    Parameters
    ----------
    beside
        Case and label to further cells, the same of every row: why it is worth a look,
        or the private text that was asked for.
    """
    rows = [
        {
            "case_id": row.case_id,
            "label": row.label,
            "kind": row.kind.value,
            "predicted": row.predicted.value if row.predicted else "",
            "reference": row.reference.value if row.reference else "",
            "spans": " ".join(f"{one.start}-{one.end}" for one in row.spans),
            "problem": row.problem,
            "on_run": found.run_id,
            "on_cohort": found.cohort,
            **beside.get((row.case_id, row.label), {}),
        }
        for row in found.rows
    ]
    return format_rows(rows, (*_COLUMNS, *next(iter(beside.values()), ())))
