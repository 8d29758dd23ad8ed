"""The record of verdicts in the private store, and the cases they pin."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from loop.core.errors import StoreError
from loop.core.records import Value
from loop.review.verdict import Verdict
from loop.run import store as runs

_LOOKUP = 500
"""Ids in one SELECT."""


class Anchor(NamedTuple):
    """A case that must stay right for a label."""

    case_id: str
    label: str
    value: Value | None
    """What is right; None leaves it to the reference."""


class VerdictContext(NamedTuple):
    """What verdicts were made on, kept with each of them."""

    cohort: str
    prompt: str
    """Version reference the verdicts answer."""

    source: str
    """Name of the file they came in; empty for one made by hand."""

    run: str = ""
    """Run whose answers were judged; empty where nobody said."""


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
    return circumstances._asdict() | {"verdict": asdict(verdict)}


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
            corrects = pair in pins and pins[pair][1] == row.actor and anchor.value
            if data.get("anchor") or corrects:
                pins[pair] = anchor, row.actor
    return tuple(anchor for anchor, _ in pins.values())


def _anchors(data: Mapping[str, Any]) -> list[Anchor]:
    value = data.get("correct_value")
    known = Value(value) if value else None
    return [
        Anchor(case_id, data["label"], known) for case_id in data.get("case_ids", ())
    ]
