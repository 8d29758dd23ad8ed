"""Reading plans: which cases a reader was given to read, and in which order.

A reader without a plan reads every case of the cohort, see `reading_order`. A plan
says only what comes next: answers given before it, or outside it, stay and count.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from loop.core.clock import Clock, format_time, utc_now
from loop.core.digests import framed
from loop.core.errors import DataError, StoreError
from loop.core.ledger import Actor
from loop.review.reading.assignment import (
    Assignment,
    check_reader,
    positions,
    reading_order,
    require_cases,
)
from loop.run.store import Store

_LATEST = (
    "SELECT reader, cases, actor, created, max(number) FROM reading_plans "
    "WHERE cohort = ? {where} GROUP BY reader"
)


class CaseOrder(StrEnum):
    """In which order the cases of a plan are read."""

    RANDOM = "random"
    """In an order of each reader's own, so that tiredness falls on other cases."""

    LISTED = "listed"
    """As the cohort, or the list of cases that was given, has them."""


def read_order(word: str) -> CaseOrder:
    """Return the order called `word`.

    Raises
    ------
    DataError
        There is no such order.
    """
    try:
        return CaseOrder(word)
    except ValueError as error:
        known = " or ".join(CaseOrder)
        raise DataError(f"no order {word[:40]!r}. Use {known}.") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """Who is given how many cases, and which of them all of these readers share."""

    readers: tuple[str, ...]
    cases: int | None = None
    """Cases of each reader; None: all there are."""

    overlap: int | None = None
    """Of these: cases that all of these readers share, the others are of one reader
    alone; None: all are shared."""

    order: CaseOrder = CaseOrder.RANDOM
    seed: int = 1
    """The same seed draws the same cases, on every machine."""

    among: tuple[str, ...] = ()
    """Case ids to draw from, in their order; empty: the whole cohort."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingPlan:
    """The cases that one reader was given."""

    reader: str
    case_ids: tuple[str, ...]
    """In the order of reading."""

    given_by: str
    created: str
    """UTC, ISO 8601."""


def plan_cases(
    assignment: Assignment, wanted: PlanRequest
) -> dict[str, tuple[str, ...]]:
    """Return reader to the cases they are to read, in order; nothing is kept.

    Cases are drawn by ``sha256(cohort digest, seed, case id)``: first those that all
    share, then each reader's own, none of them twice.

    Raises
    ------
    DataError
        No reader is named, one twice, a case is unknown or listed twice, or there are
        not enough cases.
    """
    readers = [check_reader(name) for name in wanted.readers]
    if not readers or len(set(readers)) < len(readers):
        raise DataError("name each reader who is to read these cases once.")
    require_cases(assignment, wanted.among)
    pool = wanted.among or assignment.cohort.case_ids
    if len(set(pool)) < len(pool):
        raise DataError("a case is listed twice. Name each case once.")
    each = len(pool) if wanted.cases is None else wanted.cases
    overlap = each if wanted.overlap is None else wanted.overlap
    if each < 1 or not 0 <= overlap <= each:
        raise DataError(
            f"{each} cases of which {overlap} are shared cannot be drawn. Ask for at "
            "least 1 case, and share at most as many as each reader has."
        )
    own = each - overlap
    wants = overlap + own * len(readers)
    if wants > len(pool):
        raise DataError(
            f"{len(readers)} readers with {each} cases each, {overlap} of them shared, "
            f"take {wants} cases, and there are {len(pool)}. Ask for fewer, or share "
            "more."
        )
    drawn = _draw(assignment, pool, wanted.seed)
    found = {}
    for number, reader in enumerate(readers):
        start = overlap + number * own
        chosen = {*drawn[:overlap], *drawn[start : start + own]}
        order = pool
        if wanted.order is CaseOrder.RANDOM:
            order = reading_order(assignment.cohort, reader)
        found[reader] = tuple(case for case in order if case in chosen)
    return found


def assign_cases(
    store: Store,
    assignment: Assignment,
    wanted: PlanRequest,
    actor: Actor,
    now: Clock = utc_now,
) -> tuple[ReadingPlan, ...]:
    """Give each reader a plan, in place of any they had; return them by name.

    No answer is lost by it: a case that is no longer given is not asked for, and what
    was said of it stays.

    Raises
    ------
    DataError
        As `plan_cases`; nothing was changed.
    StoreError
        The store cannot be written; nothing was changed.
    """
    return _keep(store, assignment, plan_cases(assignment, wanted), actor, now)


def clear_plans(
    store: Store,
    assignment: Assignment,
    readers: Sequence[str],
    actor: Actor,
    now: Clock = utc_now,
) -> None:
    """Let these readers read every case again; no answer is lost.

    Raises
    ------
    DataError
        The name of a reader is none.
    StoreError
        The store cannot be written; nothing was changed.
    """
    cleared: dict[str, tuple[str, ...]] = {check_reader(name): () for name in readers}
    _keep(store, assignment, cleared, actor, now)


def read_plans(store: Store, assignment: Assignment) -> dict[str, ReadingPlan]:
    """Return reader to plan, by name; whoever reads every case is left out.

    Raises
    ------
    StoreError
        The store cannot be read, or something else changed a plan.
    """
    rows = store.read(_LATEST.format(where=""), [assignment.key])
    found = {}
    for reader, cases, actor, created, _ in sorted(rows):
        plan = _parse(cases, reader)
        if plan:
            found[reader] = ReadingPlan(
                reader=reader, case_ids=plan, given_by=actor, created=created
            )
    return found


def cases_to_read(store: Store, assignment: Assignment, reader: str) -> tuple[str, ...]:
    """Return the cases that `reader` is to read, in order: the plan, or every case.

    Raises
    ------
    StoreError
        The store cannot be read, or something else changed the plan.
    """
    who = check_reader(reader)
    rows = store.read(_LATEST.format(where="AND reader = ?"), [assignment.key, who])
    known = positions(assignment.cohort)
    plan = _parse(rows[0][1], who) if rows else ()
    cases = tuple(case for case in plan if case in known)
    return cases or reading_order(assignment.cohort, who)


def count_shared(plans: Mapping[str, ReadingPlan], reader: str) -> int:
    """Return how many cases of a reader's plan stand in somebody else's as well."""
    own = set(plans[reader].case_ids)
    others = {
        case for name, plan in plans.items() if name != reader for case in plan.case_ids
    }
    return len(own & others)


def _draw(assignment: Assignment, pool: Sequence[str], seed: int) -> list[str]:
    start = framed(["reading plan", assignment.cohort.digest, str(seed)])

    def key(case_id: str) -> bytes:
        return hashlib.sha256(start + framed([case_id])).digest()

    return sorted(pool, key=key)


def _keep(
    store: Store,
    assignment: Assignment,
    cases: Mapping[str, tuple[str, ...]],
    actor: Actor,
    now: Clock,
) -> tuple[ReadingPlan, ...]:
    """Keep plans, all or none."""
    created = format_time(now())
    with store.writing() as connection:
        connection.executemany(
            "INSERT INTO reading_plans (cohort, reader, cases, actor, created) "
            "VALUES (?,?,?,?,?)",
            [
                [assignment.key, reader, json.dumps(ids), actor.name, created]
                for reader, ids in cases.items()
            ],
        )
    return tuple(
        ReadingPlan(reader=name, case_ids=ids, given_by=actor.name, created=created)
        for name, ids in sorted(cases.items())
    )


def _parse(cases: str, reader: str) -> tuple[str, ...]:
    try:
        found = json.loads(cases)
        if isinstance(found, list):
            return tuple(map(str, found))
    except ValueError:
        pass
    raise StoreError(
        f"the reading plan of {reader!r} cannot be read; something other than ranloop "
        "changed it. Assign cases to the reader again with `ranloop reading assign`."
    )
