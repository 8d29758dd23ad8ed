"""Answers of readers in the private store: appended, the last one counts.

Those on a holdout are sealed one by one: they are what its reference is made of.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from loop.core.clock import Clock, format_time, utc_now
from loop.core.errors import DataError, StoreError
from loop.core.records import Value
from loop.review.reading.assignment import (
    Assignment,
    check_reader,
    require_cases,
    require_label,
)
from loop.run.store import Store

Answers = Mapping[str, Value | None]
"""Label name or id to its value; None takes an earlier answer back."""

DEFERRED = "deferred"
"""Value of a row without a label: the reader put the case off."""

LATEST = (
    "SELECT reader, case_id, label, value, created, max(number) AS number "
    "FROM readings WHERE cohort = ? {where} GROUP BY reader, case_id, label"
)
"""The rows that count; ``{where}`` narrows them. SQLite takes the other columns from
the row with the highest number."""

_INSERT = (
    "INSERT INTO readings (cohort, reader, case_id, label, value, created) "
    "VALUES (?,?,?,?,?,?)"
)


def answer(
    store: Store,
    assignment: Assignment,
    reader: str,
    case_id: str,
    answers: Answers,
    now: Clock = utc_now,
) -> None:
    """Save what `reader` says of some labels of one case, at once.

    Earlier answers stay in the store and no longer count. Saving what already counts
    adds nothing.

    Raises
    ------
    DataError
        The case or a label is unknown, or the label is derived; nothing was saved.
    StoreError
        The store cannot be written; nothing was saved.
    """
    answer_many(store, assignment, reader, {case_id: answers}, now)


def answer_many(
    store: Store,
    assignment: Assignment,
    reader: str,
    answers: Mapping[str, Answers],
    now: Clock = utc_now,
) -> int:
    """Save answers on several cases, all or none; return how many were new or changed.

    Raises
    ------
    DataError
        A case or label is unknown, or the label is derived; nothing was saved.
    StoreError
        The store cannot be written; nothing was saved.
    """
    who = check_reader(reader)
    require_cases(assignment, answers)
    wanted = {case: _by_id(assignment, said) for case, said in answers.items()}
    with store.writing() as connection:
        rows = [
            _row(assignment, (who, case_id, label), value, now)
            for case_id, values in wanted.items()
            for label, value in _changes(connection, assignment, who, case_id, values)
        ]
        connection.executemany(_INSERT, rows)
    return len(rows)


def complete_case(
    store: Store,
    assignment: Assignment,
    reader: str,
    case_id: str,
    rest: Value = Value.ABSENT,
    now: Clock = utc_now,
) -> int:
    """Give every label of a case without an answer the value `rest`; return how many.

    This is an act of the reader ("the rest is absent"): without it a label that was
    not answered stays open, and the case incomplete.

    Raises
    ------
    DataError
        The case is unknown; nothing was saved.
    StoreError
        The store cannot be written; nothing was saved.
    """
    who = check_reader(reader)
    require_cases(assignment, [case_id])
    with store.writing() as connection:
        known = _standing(connection, assignment, who, case_id)
        rows = [
            _row(assignment, (who, case_id, label), rest, now)
            for label in assignment.labels
            if not known.get(label)
        ]
        connection.executemany(_INSERT, rows)
    return len(rows)


def defer_case(
    store: Store,
    assignment: Assignment,
    reader: str,
    case_id: str,
    now: Clock = utc_now,
) -> None:
    """Put a case off: `next_case` comes back to it after all others.

    Cases put off come back in the order in which they were put off last. Nothing that
    was answered on the case is lost.

    Raises
    ------
    DataError
        The case is unknown.
    StoreError
        The store cannot be written.
    """
    who = check_reader(reader)
    require_cases(assignment, [case_id])
    with store.writing() as connection:
        connection.execute(
            _INSERT, [assignment.key, who, case_id, "", DEFERRED, format_time(now())]
        )


def read_answers(
    store: Store, assignment: Assignment, reader: str, case_id: str | None = None
) -> dict[str, dict[str, Value]]:
    """Return case id to label id to the value that counts now.

    Parameters
    ----------
    case_id
        Only this case; None for all. A case without an answer is left out.

    Raises
    ------
    StoreError
        The store cannot be read, or a row was changed by something else.
    """
    who = check_reader(reader)
    where, values = "AND reader = ?", [assignment.key, who]
    if case_id is not None:
        where, values = f"{where} AND case_id = ?", [*values, case_id]
    asked = frozenset(assignment.labels)
    found: dict[str, dict[str, Value]] = {}
    for _, case, label, value, _, _ in store.read(LATEST.format(where=where), values):
        if value and label in asked:
            word = _open(assignment, (who, case, label), value)
            found.setdefault(case, {})[label] = _value(word, case)
    return found


def _value(word: str, case_id: str) -> Value:
    try:
        return Value(word)
    except ValueError as error:
        raise StoreError(
            f"an answer on case {case_id} cannot be read; something other than ranloop "
            "changed the store. Restore it from a backup."
        ) from error


def _by_id(assignment: Assignment, answers: Answers) -> dict[str, Value | None]:
    found: dict[str, Value | None] = {}
    for name, value in answers.items():
        label = require_label(assignment, name)
        if label in found:
            raise DataError(f"label {label!r} appears twice. Keep one of the two.")
        found[label] = None if value is None else Value(value)
    return found


def _changes(
    connection: sqlite3.Connection,
    assignment: Assignment,
    reader: str,
    case_id: str,
    values: Mapping[str, Value | None],
) -> list[tuple[str, Value | None]]:
    """Return the answers that differ from what counts now."""
    known = _standing(connection, assignment, reader, case_id)
    return [
        (label, value)
        for label, value in values.items()
        if (value or "") != known.get(label, "")
    ]


def _standing(
    connection: sqlite3.Connection, assignment: Assignment, reader: str, case_id: str
) -> dict[str, str]:
    """Return label id to kept value of one case, inside a transaction."""
    rows = connection.execute(
        LATEST.format(where="AND reader = ? AND case_id = ?"),
        [assignment.key, reader, case_id],
    )
    return {
        label: _open(assignment, (reader, case_id, label), value)
        for _, _, label, value, _, _ in rows
        if label
    }


def _row(
    assignment: Assignment, pair: tuple[str, str, str], value: Value | None, now: Clock
) -> tuple[str, ...]:
    """Return the row of an answer; `pair` is reader, case and label."""
    word = value.value if value else ""
    if assignment.words:
        word = assignment.words.close(word, (assignment.key, *pair))
    return assignment.key, *pair, word, format_time(now())


def _open(assignment: Assignment, pair: tuple[str, str, str], kept: str) -> str:
    """Return the word of a row, sealed or not."""
    if not assignment.words:
        return kept
    return assignment.words.open(kept, (assignment.key, *pair))
