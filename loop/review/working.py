"""Work under way: a case that somebody has reserved, a form not handed in yet."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from loop.core.clock import Clock, utc_now
from loop.core.errors import DataError, StoreError
from loop.core.ledger import Actor
from loop.review.submit import stamp
from loop.run.store import Store


class Reservation(NamedTuple):
    """A case that someone works on."""

    cohort: str
    case_id: str
    actor: str
    until: str
    """When it ends by itself, UTC, ISO 8601."""


def reserve(
    store: Store,
    cohort: str,
    case_id: str,
    actor: Actor,
    now: Clock = utc_now,
    *,
    minutes: float = 20,
) -> Reservation:
    """Reserve a case and return its reservation: the other person's if they have it.

    Of two at once exactly one gets it. One's own is renewed. It hinders nobody: a
    verdict on a reserved case is kept like any other.

    Raises
    ------
    ValueError
        `minutes` is not above 0.
    StoreError
        The store cannot be written.
    """
    if minutes <= 0:
        raise ValueError(f"minutes must be above 0, got {minutes}")
    when = now()
    with store.writing() as connection:
        held = _find_held(connection, cohort, case_id)
        if held and held.actor != actor.name and held.until > stamp(when):
            return held
        until = stamp(when + timedelta(minutes=minutes))
        mine = Reservation(cohort, case_id, actor.name, until)
        connection.execute(
            "INSERT OR REPLACE INTO reservations VALUES (?,?,?,?)", list(mine)
        )
    return mine


def release(store: Store, cohort: str, case_id: str, actor: Actor) -> None:
    """Give back a case that `actor` reserved; another person's stays.

    Raises
    ------
    StoreError
        The store cannot be written.
    """
    with store.writing() as connection:
        connection.execute(
            "DELETE FROM reservations WHERE cohort = ? AND case_id = ? AND actor = ?",
            [cohort, case_id, actor.name],
        )


def list_reservations(
    store: Store, cohort: str, now: Clock = utc_now
) -> tuple[Reservation, ...]:
    """Return the reservations of `cohort` that have not ended, by case id.

    Raises
    ------
    StoreError
        The store cannot be read.
    """
    rows = store.read(
        "SELECT cohort, case_id, actor, until FROM reservations "
        "WHERE cohort = ? AND until > ? ORDER BY case_id",
        [cohort, stamp(now())],
    )
    return tuple(Reservation(*row) for row in rows)


def _find_held(
    connection: sqlite3.Connection, cohort: str, case_id: str
) -> Reservation | None:
    row = connection.execute(
        "SELECT cohort, case_id, actor, until FROM reservations "
        "WHERE cohort = ? AND case_id = ?",
        [cohort, case_id],
    ).fetchone()
    return Reservation(*row) if row else None


LARGEST = 64 * 1024
"""Bytes that one unfinished form may take."""


class Working(NamedTuple):
    """Something begun."""

    payload: Mapping[str, Any]
    saved: str
    """UTC, ISO 8601."""


def keep_working(
    store: Store,
    actor: Actor,
    subject: str,
    payload: Mapping[str, Any],
    now: Clock = utc_now,
) -> None:
    """Keep what `actor` has begun, in place of what was kept of the same subject.

    Parameters
    ----------
    subject
        What it is about, ``form:<run>:<case>:<label>`` or ``place:<prompt>:<cohort>``.
    payload
        JSON data.

    Raises
    ------
    DataError
        It is larger than `LARGEST`.
    StoreError
        The store cannot be written; what was kept before is unchanged.
    """
    text = json.dumps(dict(payload))
    if len(text) > LARGEST:
        raise DataError(
            f"the unfinished form of {actor.name} takes {len(text):,} bytes; at most "
            f"{LARGEST:,} are kept. Shorten its texts, or hand it in."
        )
    with store.writing() as connection:
        connection.execute(
            "INSERT OR REPLACE INTO working VALUES (?,?,?,?)",
            [actor.name, subject, stamp(now()), text],
        )


def read_working(store: Store, actor: Actor, subject: str) -> Working | None:
    """Return what `actor` has begun on `subject`, or None.

    Raises
    ------
    StoreError
        Something other than ranloop changed it.
    """
    rows = store.read(
        "SELECT payload, saved FROM working WHERE actor = ? AND subject = ?",
        [actor.name, subject],
    )
    if not rows:
        return None
    text, saved = rows[0]
    try:
        return Working(dict(json.loads(text)), saved)
    except (ValueError, TypeError) as error:
        raise StoreError(
            f"an unfinished form of {actor.name} cannot be read; something other than "
            "ranloop changed it. Begin the form again."
        ) from error


def drop_working(store: Store, actor: Actor, subject: str) -> None:
    """Forget what `actor` has begun on `subject`, if anything.

    Raises
    ------
    StoreError
        The store cannot be written.
    """
    with store.writing() as connection:
        connection.execute(
            "DELETE FROM working WHERE actor = ? AND subject = ?",
            [actor.name, subject],
        )
