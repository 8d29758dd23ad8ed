"""How far readers are, what comes next, and whether they were blind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from loop.review.reading.answers import DEFERRED, LATEST
from loop.review.reading.assignment import (
    Assignment,
    ReadingPlan,
    cases_to_read,
    check_reader,
    count_shared,
    positions,
    read_plans,
)
from loop.run.store import Store


class ReadingState(NamedTuple):
    """What the readings in the store say of a reader's cases."""

    given: Mapping[str, int]
    """Case id to the number of labels with a value; cases without a row left out."""

    deferred: Mapping[str, int]
    """Case id to a number that grows with when the case was put off last."""

    other_guideline: frozenset[str]
    """Ids of cases with a value given beside another guideline than today's."""


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
    key = assignment.key, assignment.labels, assignment.guideline, who
    with _LOCK:
        tally = _TALLIES.setdefault(store, {}).setdefault(key, _Tally(*key[1:3]))
    with tally.lock:
        rows = store.read(tally.query, [key[0], who, tally.number])
        for number, case_id, label, value, guideline in rows:
            tally.take(number, case_id, label, value=value, guideline=guideline)
        return ReadingState(
            {case: given.bit_count() for case, given in tally.given.items()},
            dict(tally.deferred),
            frozenset(case for case, given in tally.other.items() if given),
        )


class _Tally:
    """The rows of one reader taken in so far."""

    __slots__ = ("bits", "deferred", "given", "guideline", "lock", "number", "other")

    def __init__(self, labels: tuple[str, ...], guideline: str) -> None:
        self.lock = Lock()
        self.guideline = guideline
        self.bits = {label: 1 << at for at, label in enumerate(labels)}
        self.number = 0
        self.given: dict[str, int] = {}
        self.other: dict[str, int] = {}
        self.deferred: dict[str, int] = {}

    @property
    def query(self) -> str:
        """The rows after `number`, oldest first."""
        # A plus keeps SQLite from walking the reader's whole index for the few new
        # rows at the end of the table.
        plus = "+" if self.number else ""
        return (
            "SELECT number, case_id, label, value, guideline FROM readings "
            f"WHERE {plus}cohort = ? AND {plus}reader = ? AND number > ? "
            "ORDER BY number"
        )

    def take(
        self, number: int, case_id: str, label: str, *, value: str, guideline: str
    ) -> None:
        """Take in one row: the last one on a case and label counts."""
        self.number = number
        if value == DEFERRED:
            self.deferred[case_id] = number
        elif label in self.bits:
            other = value and guideline not in (None, self.guideline)
            for kept, said in ((self.given, value), (self.other, other)):
                before = kept.get(case_id, 0) & ~self.bits[label]
                kept[case_id] = before | (self.bits[label] if said else 0)


_LOCK = Lock()
_TALLIES: WeakKeyDictionary[Store, dict[Any, _Tally]] = WeakKeyDictionary()


class State(StrEnum):
    """How far a reader is with one case."""

    COMPLETE = "complete"
    """Every label has a value."""

    BEGUN = "begun"
    NOT_BEGUN = "not_begun"


class CasePosition(NamedTuple):
    """One case in the order of a reader."""

    case_id: str
    state: State
    deferred: int
    """0, or a number that grows with when the case was put off."""


class _ReadCase(NamedTuple):
    """How many answers a reader gave on one case, and when the last one."""

    case_id: str
    answers: int
    last: str
    other_guideline: int


class ReaderPosition(NamedTuple):
    """Where one reader is among the cases, in the reader's own order."""

    here: str | None
    """The case looked at; None for none, because every case is complete."""

    before: str | None
    """The nearest complete case before it; None without any."""

    next: str | None
    """The first incomplete case; None when every case is complete."""

    of: int
    """Cases to read: those of the reader's plan, or of the cohort."""

    complete: int
    begun: int
    """Cases with some answers, not complete."""

    deferred: int
    """Cases put off and not complete."""

    other_guideline: int
    """Cases with a value given beside another guideline than today's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderProgress:
    """How far one reader is, and whether the answers were given blind."""

    reader: str
    complete: int
    """Cases in which every label has a value."""

    begun: int
    """Cases with some answers, not complete."""

    answers: int
    """Case-label pairs with a value."""

    other_guideline: int
    """Of these: given beside another guideline than today's; see
    `Assignment.guideline`."""

    last: str
    """When the reader answered last; UTC, ISO 8601, empty without an answer."""

    given: int
    """Cases to read: those of the reader's plan, or of the cohort."""

    given_complete: int
    """Of these: complete."""

    shared: int | None
    """Of the cases given: those given to another reader as well; None without a
    plan."""

    not_blind: int
    """Answers given when this reader had already given a verdict on the cohort, and so
    had seen a model's output on it. Verdicts are the only trace that is looked at."""

    @property
    def blind(self) -> bool:
        """Whether no answer was given after a verdict of the same person."""
        return self.not_blind == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingProgress:
    """How far the readers of one cohort are."""

    cohort: str
    of: int
    """Cases of the cohort."""

    labels: int
    """Labels that a complete case has values for."""

    readers: tuple[ReaderProgress, ...]
    """Everyone who answered anything or was given cases, by name."""

    earlier: int
    """Answers to cohorts of the same name with other texts: kept, and not counted."""


def measure_progress(store: Store, assignment: Assignment) -> ReadingProgress:
    """Return how far every reader of a cohort is.

    Raises
    ------
    StoreError
        The store cannot be read.
    """
    rows = store.read(
        "SELECT reader, case_id, count(*), max(created), "
        "coalesce(sum(guideline <> ?), 0) FROM ("
        f"{LATEST.format(where='')}) WHERE value <> '' AND {_asked(assignment)} "
        "GROUP BY reader, case_id",
        [assignment.guideline, assignment.key, *assignment.labels],
    )
    plans = read_plans(store, assignment)
    by_reader: dict[str, list[_ReadCase]] = {name: [] for name in plans}
    for reader, *read in rows:
        by_reader.setdefault(reader, []).append(_ReadCase(*read))
    seen = _first_verdicts(store, assignment)
    return ReadingProgress(
        cohort=assignment.cohort.name,
        of=len(assignment.cohort.cases),
        labels=len(assignment.labels),
        readers=tuple(
            _reader_progress(store, assignment, reader, cases, seen, plans)
            for reader, cases in sorted(by_reader.items())
        ),
        earlier=_count_earlier(store, assignment),
    )


def list_places(
    store: Store, assignment: Assignment, reader: str
) -> tuple[CasePosition, ...]:
    """Return the cases to read in the order of `reader`, with how far each is.

    Raises
    ------
    StoreError
        The store cannot be read.
    """
    who = check_reader(reader)
    given, deferred, _ = read_standing(store, assignment, who)
    wanted = len(assignment.labels)
    return tuple(
        _place(case_id, given.get(case_id, 0), deferred.get(case_id, 0), wanted)
        for case_id in cases_to_read(store, assignment, who)
    )


def complete_cases(store: Store, assignment: Assignment, reader: str) -> frozenset[str]:
    """Return the cases that `reader` has completed, given or not.

    Raises
    ------
    StoreError
        The store cannot be read.
    """
    given, *_ = read_standing(store, assignment, check_reader(reader))
    wanted = len(assignment.labels)
    known = positions(assignment.cohort)
    return frozenset(c for c, n in given.items() if n == wanted and c in known)


def next_case(store: Store, assignment: Assignment, reader: str) -> str | None:
    """Return the first incomplete case in the order of `reader`; None when all are.

    Cases that were put off come after all others, in the order of putting off.

    Raises
    ------
    StoreError
        The store cannot be read.
    """
    return _first_open(list_places(store, assignment, reader))


def find_way(
    store: Store, assignment: Assignment, reader: str, case_id: str | None = None
) -> ReaderPosition:
    """Return how far `reader` is, and where to go from `case_id`.

    Parameters
    ----------
    case_id
        The case before the reader's eyes; None: the first incomplete one.

    Raises
    ------
    StoreError
        The store cannot be read.
    """
    places = list_places(store, assignment, reader)
    first = _first_open(places)
    here = first if case_id is None else case_id
    order = [place.case_id for place in places]
    at = order.index(here) if here in order else len(order)
    states = [place.state for place in places]
    return ReaderPosition(
        here=here,
        before=next((one.case_id for one in places[:at][::-1] if _is_done(one)), None),
        next=first,
        of=len(places),
        complete=states.count(State.COMPLETE),
        begun=states.count(State.BEGUN),
        deferred=sum(place.deferred > 0 for place in places),
        other_guideline=len(
            read_standing(store, assignment, reader).other_guideline.intersection(order)
        ),
    )


def _is_done(place: CasePosition) -> bool:
    return place.state is State.COMPLETE


def _first_open(places: Sequence[CasePosition]) -> str | None:
    """Return the case that comes next; those put off come last."""
    left = [place for place in places if not _is_done(place)]
    return min(left, key=lambda place: place.deferred).case_id if left else None


def _asked(assignment: Assignment) -> str:
    """Return the condition that a row is about a label that is asked."""
    return f"label IN ({','.join('?' * len(assignment.labels))})"


def _place(case_id: str, answers: int, deferred: int, wanted: int) -> CasePosition:
    if answers == wanted:
        return CasePosition(case_id, State.COMPLETE, 0)
    return CasePosition(case_id, State.BEGUN if answers else State.NOT_BEGUN, deferred)


def _reader_progress(
    store: Store,
    assignment: Assignment,
    reader: str,
    cases: Sequence[_ReadCase],
    seen: Mapping[str, str],
    plans: Mapping[str, ReadingPlan],
) -> ReaderProgress:
    done = {one.case_id for one in cases if one.answers == len(assignment.labels)}
    plan = plans.get(reader)
    wanted = plan.case_ids if plan else assignment.cohort.case_ids
    return ReaderProgress(
        reader=reader,
        complete=len(done),
        begun=len(cases) - len(done),
        answers=sum(one.answers for one in cases),
        other_guideline=sum(one.other_guideline for one in cases),
        last=max((one.last for one in cases), default=""),
        given=len(wanted),
        given_complete=sum(case in done for case in wanted),
        shared=count_shared(plans, reader) if plan else None,
        not_blind=_count_since(store, assignment, reader, seen.get(reader.casefold())),
    )


def _first_verdicts(store: Store, assignment: Assignment) -> dict[str, str]:
    """Return folded name to the time of the first verdict on this cohort's name."""
    rows = store.read(
        "SELECT actor, min(created) FROM verdicts "
        "WHERE json_extract(payload, '$.cohort') = ? GROUP BY actor",
        [assignment.cohort.name],
    )
    found: dict[str, str] = {}
    for actor, created in rows:
        name = str(actor).strip().casefold()
        found[name] = min(created, found.get(name, created))
    return found


def _count_since(
    store: Store, assignment: Assignment, reader: str, since: str | None
) -> int:
    """Count the answers of `reader` at or after `since`, those taken back included."""
    if since is None:
        return 0
    (row,) = store.read(
        "SELECT count(*) FROM readings WHERE cohort = ? AND reader = ? "
        "AND label <> '' AND created >= ?",
        [assignment.key, reader, since],
    )
    return int(row[0])


def _count_earlier(store: Store, assignment: Assignment) -> int:
    (row,) = store.read(
        "SELECT count(*) FROM readings WHERE label <> '' AND cohort <> ? "
        "AND substr(cohort, 1, ?) = ?",
        [
            assignment.key,
            len(assignment.cohort.name) + 1,
            f"{assignment.cohort.name}@",
        ],
    )
    return int(row[0])
