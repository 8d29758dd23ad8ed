"""Handing in a verdict, and taking one back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from loop.core.clock import Clock, utc_now
from loop.core.errors import DataError, StoreError
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.people.roster import require_distinct
from loop.core.records import ErrorWeight, Value
from loop.core.safe_text import quoted
from loop.review.verdict import Verdict, count_errors
from loop.run import store as runs
from loop.run.store import Store

_LOOKUP = 500
"""Ids in one SELECT."""


class Anchor(NamedTuple):
    """A case that must stay right for a label."""

    case_id: str
    label: str
    value: Value | None
    """What is right; None leaves it to the reference."""

    counts: tuple[int, int] | None = None
    """Of a judge: significant and other errors that are right; None leaves them to the
    raters."""


class VerdictContext(NamedTuple):
    """What verdicts were made on, kept with each of them."""

    cohort: str
    prompt: str
    """Version reference the verdicts answer."""

    source: str
    """Name of the file they came in, or the search and the proposal that was accepted;
    empty for one made by hand."""

    run: str = ""
    """Run whose answers were judged; empty where nobody said."""

    flips: str = ""
    """``"2 of 3"``: in how many draws the pair failed, where not in all; empty where
    it did, where there was one, or where nobody said."""


def save_verdicts(
    store: runs.Store,
    verdicts: Iterable[Verdict],
    circumstances: VerdictContext,
    when: datetime,
) -> None:
    """Keep verdicts in the store; doing it twice changes nothing.

    Raises
    ------
    StoreError
        The store cannot be written.
    """
    created = stamp(when)
    store.add_verdicts(
        runs.StoredVerdict(
            id=f"{circumstances.cohort}:{verdict.id}",
            created=created,
            actor=verdict.reviewer,
            payload=payload(verdict, circumstances),
        )
        for verdict in verdicts
    )


def stamp(when: datetime) -> str:
    """Return a time as the store keeps it: UTC, ISO 8601, microseconds.

    Examples
    --------
    >>> stamp(datetime(2026, 1, 5, 9, 0, tzinfo=UTC))
    '2026-01-05T09:00:00.000000Z'
    """
    return f"{when.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def payload(verdict: Verdict, circumstances: VerdictContext) -> dict[str, Any]:
    """Return what the store keeps of a verdict, as JSON data."""
    made_on = circumstances._asdict()
    if not circumstances.flips:
        del made_on["flips"]
    return made_on | {"verdict": verdict.data}


def load_verdicts(
    store: runs.Store, cohort: str, ids: Collection[str]
) -> tuple[Verdict, ...]:
    """Return the kept verdicts on `cohort` with these ids, oldest first.

    Ids that the store does not have, or has for another cohort, are left out.

    Raises
    ------
    StoreError
        A verdict cannot be read.
    """
    wanted = sorted({f"{cohort}:{one}" for one in ids})
    rows: list[tuple[str, str, str]] = []
    for start in range(0, len(wanted), _LOOKUP):
        part = wanted[start : start + _LOOKUP]
        marks = ",".join("?" * len(part))
        rows += store.read(
            f"SELECT created, id, payload FROM verdicts WHERE id IN ({marks})", part
        )
    return tuple(decode(key, text)[0] for _, key, text in sorted(rows))


def require_distinct_reviewers(
    workspace: WorkspacePaths, store: runs.Store, verdicts: Iterable[Verdict]
) -> None:
    """Refuse a new reviewer whose name looks like that of another one.

    Others are who is known in the workspace, and who gave a verdict that is kept.

    Raises
    ------
    DataError
        It does; or the users or the ledger are broken.
    StoreError
        The store cannot be read.
    """
    given = store.read("SELECT DISTINCT actor FROM verdicts")
    names = dict.fromkeys(one.reviewer for one in verdicts)
    require_distinct(workspace, *names, others=[name for (name,) in given])


def decode(key: str, text: str) -> tuple[Verdict, VerdictContext]:
    """Return a kept verdict and what it was made on.

    Parameters
    ----------
    key
        Id of the row, named in the error.
    text
        Its payload, JSON.

    Raises
    ------
    StoreError
        Something other than ranloop changed it.
    """
    try:
        data = json.loads(text)
        verdict = _adapter().validate_python(data.get("verdict"))
        names = {name: str(data.get(name, "")) for name in VerdictContext._fields}
    except (ValidationError, ValueError, AttributeError) as error:
        raise StoreError(
            f"the kept verdict {key} cannot be read; something other than ranloop "
            "changed it. Restore the store from a backup."
        ) from error
    return verdict, VerdictContext(**names)


@cache
def _adapter() -> TypeAdapter[Verdict]:
    """Return the reader of verdicts: making one costs more than reading hundreds."""
    return TypeAdapter(Verdict)


def read_anchors(store: runs.Store, cohort: str) -> tuple[Anchor, ...]:
    """Return every pinned case of `cohort`; a later pin of the same pair wins.

    A verdict that was withdrawn pins nothing. Where the reviewer of a pin later names
    another value for the pair, the pin takes that value.
    """
    withdrawn = {key for (key,) in store.read("SELECT verdict FROM withdrawals")}
    pins: dict[tuple[str, str], tuple[Anchor, str]] = {}
    for row in store.list_verdicts():
        data = row.payload.get("verdict", {})
        if row.payload.get("cohort") != cohort or row.id in withdrawn:
            continue
        for anchor in _anchors(data):
            pair = anchor[:2]
            named = anchor.value or anchor.counts
            corrects = pair in pins and pins[pair][1] == row.actor and named
            if data.get("anchor") or corrects:
                pins[pair] = anchor, row.actor
    return tuple(anchor for anchor, _ in pins.values())


def _anchors(data: Mapping[str, Any]) -> list[Anchor]:
    value = data.get("correct_value")
    known = Value(value) if value else None
    right = [ErrorWeight(one["right"]) for one in data.get("errors", ())]
    counts = count_errors(right) if right else None
    return [
        Anchor(case_id, data["label"], known, counts)
        for case_id in data.get("case_ids", ())
    ]


WITHDRAWS = frozenset({"editor", "approver", "admin"})
"""Roles that may take back what someone else said."""


def submit_verdict(
    store: Store,
    verdict: Verdict,
    circumstances: VerdictContext,
    now: Clock = utc_now,
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
    now: Clock = utc_now,
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
    now: Clock = utc_now,
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
            f"there is no verdict {quoted(ref)}. See `ranloop verdict list`."
        )
    if len(rows) > 1:
        raise DataError(
            f"{quoted(ref)} is a verdict in {len(rows)} cohorts. Write one of "
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
