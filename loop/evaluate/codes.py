"""The answers of whole runs as code tables, kept once they were read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from loop.core.errors import DataError
from loop.core.records import Status, Value
from loop.evaluate.pairs import Answer, Codes
from loop.labels.reference import ABSENT, NOT_CODED, PRESENT, Reference
from loop.labels.taxonomy import Taxonomy
from loop.run.store import RunRecord, Store
from loop.run.values import Values, read_values

_KEPT = 256
"""Tables kept in memory: 21 labels of 3,000 cases take about 60 kB each."""

_ANSWERS: Mapping[object, int] = {value.value: Answer[value.name] for value in Value}
_UNANSWERED = {
    Status.ANSWERED: Answer.NOT_ASKED,
    Status.UNPARSED: Answer.UNPARSED,
    Status.ENGINE_FAILED: Answer.FAILED,
}


class CodeTable(NamedTuple):
    """What one run said of every case and label."""

    case_ids: tuple[str, ...]
    codes: Codes
    """Shape (cases, labels), codes of `Answer`; not to be written to."""


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
    """Return the codes of a finished run, the same as `loop.evaluate.pairs.align`.

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
        finding = taxonomy.derive_no_finding(one.values)  # type: ignore[arg-type]
        for place in derived:
            row[place] = row[place] if finding is None else int(_ANSWERS[finding])
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
            code = _ANSWERS.get(values[label])
            if code is None:
                raise DataError(
                    f"case {one.item_id}: an answer is not present, absent or "
                    "uncertain. Only runs with label values can be compared."
                )
            row[place] = code


def decided_reference(
    standard: Reference, case_ids: Sequence[str], labels: Sequence[str]
) -> Codes:
    """Return the reference of `case_ids` as 1, 0, or -1 where it leaves a case open.

    The same as `Pairs.binary_reference`; a case or label it does not know is open.
    """
    where = {case_id: row for row, case_id in enumerate(standard.case_ids)}
    known = [row for row, case in enumerate(case_ids) if case in where]
    rows = [where[case_ids[row]] for row in known]
    columns = [place for place, name in enumerate(labels) if name in standard.labels]
    marks = standard.marks[
        np.ix_(rows, [standard.labels.index(labels[place]) for place in columns])
    ]
    usable = np.isin(marks, (PRESENT, ABSENT, NOT_CODED))
    table = np.full((len(case_ids), len(labels)), -1, dtype=np.int8)
    table[np.ix_(known, columns)] = np.where(usable, marks == PRESENT, -1)
    return table


def in_order(table: CodeTable, case_ids: tuple[str, ...]) -> Codes:
    """Return the answers of `case_ids` as 1, 0, or -1 where there is none.

    Raises
    ------
    KeyError
        The run does not hold one of the cases.
    """
    codes = table.codes
    if table.case_ids != case_ids:
        where = {case: row for row, case in enumerate(table.case_ids)}
        codes = codes[[where[case] for case in case_ids]]
    return np.maximum(codes, -1)
