"""The record of verdicts in the private store, and the cases they pin."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from loop.core.errors import StoreError
from loop.core.records import Value
from loop.review.verdict import Verdict
from loop.run import store as runs


class Anchor(NamedTuple):
    """A case that must stay right for a label."""

    case_id: str
    label: str
    value: Value | None
    """What is right; None leaves it to the reference."""


class Circumstances(NamedTuple):
    """What verdicts were made on, kept with each of them."""

    cohort: str
    prompt: str
    """Version reference the verdicts answer."""

    source: str
    """Name of the file they came in."""


def save_verdicts(
    store: runs.Store,
    verdicts: Iterable[Verdict],
    circumstances: Circumstances,
    when: datetime,
) -> None:
    """Keep verdicts in the store; doing it twice changes nothing.

    Raises
    ------
    StoreError
        The store cannot be written.
    """
    created = when.strftime("%Y-%m-%dT%H:%M:%SZ")
    store.add_verdicts(
        runs.Verdict(
            id=f"{circumstances.cohort}:{verdict.id}",
            created=created,
            actor=verdict.reviewer,
            payload=circumstances._asdict() | _payload(verdict),
        )
        for verdict in verdicts
    )


def _payload(verdict: Verdict) -> dict[str, Any]:
    return {"verdict": asdict(verdict)}


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
    wanted = {f"{cohort}:{one}" for one in ids}
    return tuple(_verdict(row) for row in store.list_verdicts() if row.id in wanted)


def _verdict(row: runs.Verdict) -> Verdict:
    try:
        return TypeAdapter(Verdict).validate_python(row.payload.get("verdict"))
    except ValidationError as error:
        raise StoreError(
            f"the kept verdict {row.id} cannot be read; something other than ranloop "
            "changed it. Restore the store from a backup."
        ) from error


def read_anchors(store: runs.Store, cohort: str) -> tuple[Anchor, ...]:
    """Return every pinned case of `cohort`; a later pin of the same pair wins."""
    pins: dict[tuple[str, str], Anchor] = {}
    for row in store.list_verdicts():
        data = row.payload.get("verdict", {})
        if row.payload.get("cohort") == cohort and data.get("anchor"):
            for anchor in _anchors(data["case_ids"], data["label"], data):
                pins[anchor.case_id, anchor.label] = anchor
    return tuple(pins.values())


def _anchors(case_ids: Sequence[str], label: str, data: dict[str, Any]) -> list[Anchor]:
    value = data.get("correct_value")
    known = Value(value) if value else None
    return [Anchor(case_id, label, known) for case_id in case_ids]
