"""What a person has begun and not handed in: unfinished forms, the place in a queue."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from loop.core.clock import Clock, utc_now
from loop.core.errors import DataError, StoreError
from loop.core.ledger import Actor
from loop.review.submit import stamp
from loop.run.store import Store

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
