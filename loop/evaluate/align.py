"""Outcomes and reference labels side by side, one code per case and label."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError
from loop.core.records import Outcome, Status, UncertainAnswers, Value, ValueCode
from loop.labels.reference import Reference, as_scored
from loop.labels.taxonomy import NO_FINDING, Taxonomy
from loop.run.store import RunRecord, Store, Values, read_values

Codes = NDArray[np.int8]


_VALUES = {value.value: value for value in Value}
_ANSWERS = {value: ValueCode[value.name] for value in Value}
_UNANSWERED = {
    Status.ANSWERED: ValueCode.NOT_ASKED,
    Status.UNPARSED: ValueCode.UNPARSED,
    Status.ENGINE_FAILED: ValueCode.FAILED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedPairs:
    """Reference and predicted codes of the cases of one run."""

    case_ids: tuple[str, ...]
    """The cases of the run, in its order."""

    labels: tuple[str, ...]
    """All label ids of the taxonomy, in published order."""

    reference: Codes
    """Shape (cases, labels), the marks as `ValueCode`."""

    predicted: Codes
    """Shape (cases, labels), the answers as `ValueCode`."""

    statuses: Mapping[Status, int]
    """How the cases ended; adds up to the number of cases."""

    not_run: int
    """Cases of the reference that the run does not hold."""

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Where the reference is present or absent."""
        return np.isin(
            self.reference, (ValueCode.PRESENT, ValueCode.ABSENT, ValueCode.NOT_CODED)
        )

    @property
    def binary_reference(self) -> Codes:
        """Reference as 1, 0, or -1 for excluded."""
        present = self.reference == ValueCode.PRESENT
        return np.where(self.usable, present, -1).astype(np.int8)

    def answers_as(self, policy: UncertainAnswers) -> Codes:
        """Answers as 1, 0, or -1 for none; see `count_uncertain`."""
        return count_uncertain(self.predicted, self.binary_reference, policy)

    def leave_open(self, labels: Collection[str]) -> AlignedPairs:
        """Return the same with a reference that decides nothing of `labels`."""
        chosen = [one in labels for one in self.labels]
        if not any(chosen):
            return self
        reference = self.reference.copy()
        reference[:, chosen] = ValueCode.MISSING
        return replace(self, reference=reference)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Ids of the labels that the reference says nothing of, in no case."""
        empty = (self.reference == ValueCode.MISSING).all(axis=0)
        return tuple(np.array(self.labels)[empty].tolist())

    @property
    def not_coded(self) -> bool:
        """Whether a reference label is absent only because nothing was coded."""
        return bool((self.reference == ValueCode.NOT_CODED).any())


def count_uncertain(answers: Codes, truth: Codes, policy: UncertainAnswers) -> Codes:
    """Return answers as 1, 0, or -1 for none, the uncertain ones as `policy` says.

    Each label by itself: an uncertain "No Finding" is not derived anew. What was not
    answered is no answer under every policy.

    Parameters
    ----------
    answers
        Codes of `ValueCode`.
    truth
        The reference as 1, 0, or -1 where it leaves a case open, of a shape that goes
        with `answers`.

    Examples
    --------
    >>> answers, truth = np.array([1, 0, -1, -1, -4]), np.array([1, 1, 1, 0, 1])
    >>> count_uncertain(answers, truth, UncertainAnswers.WRONG).tolist()
    [1, 0, 0, 1, -1]
    >>> count_uncertain(answers, truth, UncertainAnswers.EXCLUDED).tolist()
    [1, 0, -1, -1, -1]
    """
    binary = np.maximum(answers, -1).astype(np.int8)
    if policy is UncertainAnswers.EXCLUDED:
        return binary
    uncertain = answers == ValueCode.UNCERTAIN
    if policy is UncertainAnswers.WRONG:
        counted = np.where(truth == 1, 0, 1).astype(np.int8)
        return np.where(uncertain, counted, binary)
    binary[uncertain] = int(policy is UncertainAnswers.PRESENT)
    return binary


def join_draws(draws: Sequence[AlignedPairs]) -> AlignedPairs:
    """Return the answers of several draws one after the other, as if of other cases.

    Case ids repeat. What is counted over it is added up over the draws.

    Raises
    ------
    ValueError
        The draws do not hold the same cases and labels in the same order.
    """
    first, *others = draws
    if not others:
        return first
    if any(
        (one.case_ids, one.labels) != (first.case_ids, first.labels) for one in others
    ):
        raise ValueError("the draws do not hold the same cases and labels")
    return AlignedPairs(
        case_ids=first.case_ids * len(draws),
        labels=first.labels,
        reference=np.concatenate([one.reference for one in draws]),
        predicted=np.concatenate([one.predicted for one in draws]),
        statuses={
            status: sum(one.statuses[status] for one in draws)
            for status in first.statuses
        },
        not_run=first.not_run,
    )


def align(
    outcomes: Iterable[Outcome], reference: Reference, taxonomy: Taxonomy
) -> AlignedPairs:
    """Join `outcomes` with `reference` by case id, never by position.

    "No Finding" is derived from the other answers by the taxonomy's policy; it
    inherits the reason when one of them is missing.

    Raises
    ------
    DataError
        A case has two outcomes, or the run did not answer with label values.
    """
    labels = tuple(taxonomy.ids)
    ids: list[str] = []
    rows: list[list[int]] = []
    statuses = dict.fromkeys(Status, 0)
    for outcome in outcomes:
        ids.append(outcome.item_id)
        rows.append(_answers(outcome, labels, taxonomy))
        statuses[outcome.status] += 1
    _refuse_repeated(ids)
    return AlignedPairs(
        case_ids=tuple(ids),
        labels=labels,
        reference=_reference_rows(ids, labels, as_scored(reference, taxonomy)),
        predicted=np.array(rows, dtype=np.int8).reshape(len(ids), len(labels)),
        statuses=statuses,
        not_run=len(set(reference.case_ids) - set(ids)),
    )


def read_answers(
    outcomes: Iterable[Outcome], taxonomy: Taxonomy
) -> dict[str, list[int]]:
    """Return case id to its codes of `ValueCode`, one per label in published order.

    Raises
    ------
    DataError
        The run did not answer with label values.
    """
    labels = tuple(taxonomy.ids)
    return {one.item_id: _answers(one, labels, taxonomy) for one in outcomes}


def _answers(outcome: Outcome, labels: Sequence[str], taxonomy: Taxonomy) -> list[int]:
    """Return the codes of one outcome, derived labels included."""
    values = _values(outcome)
    otherwise = _UNANSWERED[outcome.status]
    derived = taxonomy.find_no_finding(values)
    codes: list[int] = []
    for label in labels:
        value = derived if label == NO_FINDING else values.get(label)
        codes.append(otherwise if value is None else _ANSWERS[value])
    return codes


def _values(outcome: Outcome) -> dict[str, Value]:
    try:
        # Looking a value up costs a fraction of making it, and a run has 60,000.
        return {label: _VALUES[str(f.value)] for label, f in outcome.fields.items()}
    except KeyError as error:
        raise DataError(
            f"case {outcome.item_id}: an answer is not present, absent or uncertain. "
            "Only runs with the label_values contract can be evaluated."
        ) from error


def _reference_rows(
    ids: Sequence[str], labels: Sequence[str], reference: Reference
) -> Codes:
    """Return the reference marks in the order of `ids` and `labels`."""
    table = np.full((len(ids), len(labels)), ValueCode.MISSING, dtype=np.int8)
    where = {case_id: row for row, case_id in enumerate(reference.case_ids)}
    known = [(row, where[case]) for row, case in enumerate(ids) if case in where]
    columns = [
        (column, reference.labels.index(label))
        for column, label in enumerate(labels)
        if label in reference.labels
    ]
    if known and columns:
        to_rows, from_rows = (np.array(side) for side in zip(*known, strict=True))
        to_cols, from_cols = (np.array(side) for side in zip(*columns, strict=True))
        table[np.ix_(to_rows, to_cols)] = reference.marks[np.ix_(from_rows, from_cols)]
    return table


def _refuse_repeated(ids: Sequence[str]) -> None:
    if len(set(ids)) == len(ids):
        return
    seen: set[str] = set()
    for case_id in ids:
        if case_id in seen:
            raise DataError(
                f"case {case_id} has two outcomes in this run. Run the prompt again."
            )
        seen.add(case_id)


_KEPT = 256
"""Tables kept in memory: 21 labels of 3,000 cases take about 60 kB each."""

_ANSWER_OF_WORD: Mapping[object, int] = {
    value.value: ValueCode[value.name] for value in Value
}


class CodeTable(NamedTuple):
    """What one run said of every case and label."""

    case_ids: tuple[str, ...]
    codes: Codes
    """Shape (cases, labels), codes of `ValueCode`; not to be written to."""


@dataclass(frozen=True, slots=True)
class _Question:
    """What a table depends on; who reads it makes no difference."""

    path: Path
    run: str
    finished: str | None
    taxonomy: str
    """Its digest."""

    store: Store = field(compare=False)
    record: RunRecord = field(compare=False)
    labels: Taxonomy = field(compare=False)


def read_codes(store: Store, run: RunRecord, taxonomy: Taxonomy) -> CodeTable:
    """Return the codes of a finished run, the same as `loop.evaluate.align.align`.

    A finished run does not change, so its table is kept for the next call.

    Raises
    ------
    DataError
        The run did not answer with label values.
    StoreError
        The store cannot be read.
    """
    question = _Question(
        store.path, run.id, run.finished, taxonomy.digest, store, run, taxonomy
    )
    return _read(question)


@lru_cache(maxsize=_KEPT)
def _read(question: _Question) -> CodeTable:
    taxonomy = question.labels
    columns = {label: place for place, label in enumerate(taxonomy.ids)}
    asked = tuple((label, columns[label]) for label in taxonomy.extracted)
    derived = [place for label, place in columns.items() if (label, place) not in asked]
    ids: list[str] = []
    rows: list[list[int]] = []
    for one in read_values(question.store, question.record):
        row = [int(_UNANSWERED[one.status])] * len(columns)
        _fill(row, one, asked)
        # The words compare like the values they spell.
        finding = taxonomy.find_no_finding(one.values)  # type: ignore[arg-type]
        for place in derived:
            row[place] = (
                row[place] if finding is None else int(_ANSWER_OF_WORD[finding])
            )
        ids.append(one.item_id)
        rows.append(row)
    codes = np.array(rows, dtype=np.int8).reshape(len(rows), len(columns))
    codes.setflags(write=False)
    return CodeTable(tuple(ids), codes)


def _fill(row: list[int], one: Values, asked: Sequence[tuple[str, int]]) -> None:
    """Write the codes of the labels that were answered into `row`."""
    values = one.values
    for label, place in asked:
        if label in values:
            code = _ANSWER_OF_WORD.get(values[label])
            if code is None:
                raise DataError(
                    f"case {one.item_id}: an answer is not present, absent or "
                    "uncertain. Only runs with label values can be compared."
                )
            row[place] = code


def decided_reference(
    standard: Reference, case_ids: Sequence[str], taxonomy: Taxonomy
) -> Codes:
    """Return the reference of `case_ids` as 1, 0, or -1 where it leaves a case open.

    The same as `binary_reference` of `AlignedPairs`; what it does not know is open.
    """
    labels, standard = taxonomy.ids, as_scored(standard, taxonomy)
    where = {case_id: row for row, case_id in enumerate(standard.case_ids)}
    known = [row for row, case in enumerate(case_ids) if case in where]
    rows = [where[case_ids[row]] for row in known]
    columns = [place for place, name in enumerate(labels) if name in standard.labels]
    marks = standard.marks[
        np.ix_(rows, [standard.labels.index(labels[place]) for place in columns])
    ]
    usable = np.isin(marks, (ValueCode.PRESENT, ValueCode.ABSENT, ValueCode.NOT_CODED))
    table = np.full((len(case_ids), len(labels)), -1, dtype=np.int8)
    table[np.ix_(known, columns)] = np.where(usable, marks == ValueCode.PRESENT, -1)
    return table


def in_order(table: CodeTable, case_ids: tuple[str, ...]) -> Codes:
    """Return the answers of `case_ids` as codes of `ValueCode`.

    Raises
    ------
    KeyError
        The run does not hold one of the cases.
    """
    codes = table.codes
    if table.case_ids != case_ids:
        where = {case: row for row, case in enumerate(table.case_ids)}
        codes = codes[[where[case] for case in case_ids]]
    return codes
