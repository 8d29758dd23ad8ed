"""Handing in a verdict, and taking one back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.review.record import VerdictContext, payload, stamp
from loop.review.verdict import Verdict
from loop.run.store import Store

Clock = Callable[[], datetime]

WITHDRAWS = frozenset({"editor", "approver", "admin"})
"""Roles that may take back what someone else said."""


def submit_verdict(
    store: Store,
    verdict: Verdict,
    circumstances: VerdictContext,
    now: Clock = lambda: datetime.now(UTC),
    *,
    finishing: str = "",
) -> str:
    """Keep one verdict and return the id it is kept under.

    The same verdict on the same run, handed in twice, is kept once. After another
    verdict, a withdrawal or a newer run it counts anew.

    Parameters
    ----------
    finishing
        Subject of the reviewer's unfinished form, dropped in the same transaction.

    Raises
    ------
    ValueError
        The verdict names no reviewer.
    StoreError
        The store cannot be written; nothing was changed.
    """
    (key,) = submit_verdicts(store, (verdict,), circumstances, now, finishing=finishing)
    return key


def submit_verdicts(
    store: Store,
    verdicts: Sequence[Verdict],
    circumstances: VerdictContext,
    now: Clock = lambda: datetime.now(UTC),
    *,
    finishing: str = "",
) -> tuple[str, ...]:
    """Keep verdicts that were handed in together, all or none; return their ids.

    None of them supersedes another, as `submit_verdict` would.

    Raises
    ------
    ValueError
        A verdict names no reviewer.
    StoreError
        The store cannot be written; nothing was changed.
    """
    for verdict in verdicts:
        if not verdict.reviewer.strip():
            raise ValueError(f"a verdict on {verdict.label} names no reviewer")
    with store.writing() as connection:
        created = _next_stamp(connection, {v.reviewer for v in verdicts}, now())
        ids = tuple(
            _add(connection, verdict, circumstances, created) for verdict in verdicts
        )
        if finishing:
            connection.executemany(
                "DELETE FROM working WHERE actor = ? AND subject = ?",
                [(name, finishing) for name in {v.reviewer for v in verdicts}],
            )
    return ids


def withdraw_verdict(
    store: Store,
    ref: str,
    actor: Actor,
    reason: str,
    now: Clock = lambda: datetime.now(UTC),
) -> str:
    """Take a verdict back and return its id with the cohort; it stays in the record.

    Its author may, and an editor. Doing it twice changes nothing.

    Parameters
    ----------
    ref
        Its id, or ``COHORT:id`` where two cohorts have it.

    Raises
    ------
    DataError
        There is no such verdict, two cohorts have it, there is no reason, or the
        actor is neither its author nor an editor.
    StoreError
        The store cannot be written; nothing was changed.
    """
    if not reason.strip():
        raise DataError(f"withdrawing verdict {ref[:80]} needs a reason. Give one.")
    with store.writing() as connection:
        key, author = _find(connection, ref)
        if author != actor.name and actor.role not in WITHDRAWS:
            raise DataError(
                f"verdict {ref[:80]} was given by {author}: only its author or an "
                f"editor withdraws it, and {actor.name} acts as {actor.role}. Ask one "
                "of them, or give a verdict of your own."
            )
        connection.execute(
            "INSERT OR IGNORE INTO withdrawals VALUES (?,?,?,?)",
            [key, stamp(now()), actor.name, reason.strip()],
        )
    return key


def _find(connection: sqlite3.Connection, ref: str) -> tuple[str, str]:
    """Return key and author of the verdict that `ref` names."""
    rows = connection.execute(
        "SELECT id, actor FROM verdicts WHERE id = ?1 "
        "OR substr(id, instr(id, ':') + 1) = ?1 ORDER BY id",
        [ref],
    ).fetchall()
    if not rows:
        raise DataError(
            f"there is no verdict {ref[:80]!r}. See `ranloop verdict list`."
        )
    if len(rows) > 1:
        raise DataError(
            f"{ref!r} is a verdict in {len(rows)} cohorts. Write one of "
            f"{', '.join(key for key, _ in rows)}."
        )
    key, author = rows[0]
    return key, author


def _next_stamp(
    connection: sqlite3.Connection, reviewers: set[str], when: datetime
) -> str:
    """Return a time after everything these reviewers have said, whatever the clock."""
    marks = ",".join("?" * len(reviewers))
    ((last,),) = connection.execute(
        f"SELECT max(created) FROM verdicts WHERE actor IN ({marks})", list(reviewers)
    ).fetchall()
    created = stamp(when)
    if last is None or last < created:
        return created
    return stamp(datetime.fromisoformat(last) + timedelta(microseconds=1))


def _add(
    connection: sqlite3.Connection,
    verdict: Verdict,
    circumstances: VerdictContext,
    created: str,
) -> str:
    """Insert a verdict unless it stands already; return its id within the cohort."""
    base = f"{circumstances.cohort}:{verdict.id}"
    # What was said again has the same id with a number: "." follows "-".
    rows = connection.execute(
        "SELECT created, id, payload FROM verdicts WHERE id = ? OR (id > ? AND id < ?)",
        [base, f"{base}-", f"{base}."],
    ).fetchall()
    if rows and _stands(connection, max(rows), verdict, circumstances):
        return str(max(rows)[1]).partition(":")[2]
    key = f"{base}-{len(rows) + 1}" if rows else base
    text = json.dumps(payload(verdict, circumstances), ensure_ascii=False)
    connection.execute(
        "INSERT INTO verdicts VALUES (?,?,?,?)", [key, created, verdict.reviewer, text]
    )
    return key.partition(":")[2]


def _stands(
    connection: sqlite3.Connection,
    row: tuple[str, str, str],
    verdict: Verdict,
    circumstances: VerdictContext,
) -> bool:
    """Whether the same verdict, kept before, still says this of the same run."""
    created, key, text = row
    if json.loads(text).get("run", "") != circumstances.run:
        return False
    if connection.execute(
        "SELECT 1 FROM withdrawals WHERE verdict = ?", [key]
    ).fetchone():
        return False
    later = connection.execute(
        "SELECT payload FROM verdicts WHERE actor = ? AND created > ? AND id >= ? "
        "AND id < ? AND id NOT IN (SELECT verdict FROM withdrawals)",
        [
            verdict.reviewer,
            created,
            f"{circumstances.cohort}:",
            f"{circumstances.cohort};",
        ],
    )
    said = (json.loads(other)["verdict"] for (other,) in later)
    return not any(
        other["label"] == verdict.label
        and not set(verdict.case_ids).isdisjoint(other["case_ids"])
        for other in said
    )
