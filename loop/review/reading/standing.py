"""How far one reader is with each case, kept up as answers come in."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from loop.review.reading.answers import DEFERRED
from loop.review.reading.assignment import Assignment, check_reader
from loop.run.store import Store


class ReadingState(NamedTuple):
    """What the readings in the store say of a reader's cases."""

    given: Mapping[str, int]
    """Case id to the number of labels with a value; cases without a row left out."""

    deferred: Mapping[str, int]
    """Case id to a number that grows with when the case was put off last."""


def read_standing(store: Store, assignment: Assignment, reader: str) -> ReadingState:
    """Return how far `reader` is with each case.

    Rows of readings are only ever appended, so that after the first call only rows
    are read that were added since, whoever added them.

    Raises
    ------
    StoreError
        The store cannot be read.
    """
    who = check_reader(reader)
    key = assignment.key, assignment.labels, who
    with _LOCK:
        tally = _TALLIES.setdefault(store, {}).setdefault(key, _Tally(key[1]))
    with tally.lock:
        for row in store.read(tally.query, [key[0], who, tally.number]):
            tally.take(*row)
        return ReadingState(
            {case: given.bit_count() for case, given in tally.given.items()},
            dict(tally.deferred),
        )


class _Tally:
    """The rows of one reader taken in so far."""

    __slots__ = ("bits", "deferred", "given", "lock", "number")

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.lock = Lock()
        self.bits = {label: 1 << at for at, label in enumerate(labels)}
        self.number = 0
        self.given: dict[str, int] = {}
        self.deferred: dict[str, int] = {}

    @property
    def query(self) -> str:
        """The rows after `number`, oldest first."""
        # A plus keeps SQLite from walking the reader's whole index for the few new
        # rows at the end of the table.
        plus = "+" if self.number else ""
        return (
            "SELECT number, case_id, label, value FROM readings "
            f"WHERE {plus}cohort = ? AND {plus}reader = ? AND number > ? "
            "ORDER BY number"
        )

    def take(self, number: int, case_id: str, label: str, value: str) -> None:
        """Take in one row: the last one on a case and label counts."""
        self.number = number
        if value == DEFERRED:
            self.deferred[case_id] = number
        elif label in self.bits:
            before = self.given.get(case_id, 0) & ~self.bits[label]
            self.given[case_id] = before | (self.bits[label] if value else 0)


_LOCK = Lock()
_TALLIES: WeakKeyDictionary[Store, dict[Any, _Tally]] = WeakKeyDictionary()
