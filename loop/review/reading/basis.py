"""What everything worked out of a cohort's readings and votes rests on, in short."""

from __future__ import annotations

from typing import NamedTuple

from loop.core.ledger import read_ledger
from loop.core.paths import Workspace
from loop.review.reading.assignment import Assignment
from loop.run.store import Store

_CHANGING = ("reference_revised", "holdout_sealed", "holdout_retired")


class ReadingCacheKey(NamedTuple):
    """As long as this is the same, so is what was worked out."""

    cohort: str
    """Name and digest of the cohort."""

    taxonomy: str
    """Digest of the labels."""

    recorded: str
    """Hash of the last ledger entry on votes or reference of the cohort, on its seal,
    or on its import."""

    readings: int = 0
    """Number of the last reading in the store, of any cohort."""

    plans: int = 0
    """Number of the last reading plan in the store, of any cohort."""

    verdicts: int = 0
    """Number of verdicts in the store: they tell who is blind."""


def read_basis(
    workspace: Workspace, assignment: Assignment, store: Store | None = None
) -> ReadingCacheKey:
    """Return the basis of votes and disputes; with `store` that of readings as well.

    Raises
    ------
    LedgerError
        The ledger is broken.
    StoreError
        The store cannot be read.
    """
    readings = plans = verdicts = 0
    if store is not None:
        ((readings, plans, verdicts),) = store.read(
            "SELECT (SELECT coalesce(max(number), 0) FROM readings), "
            "(SELECT coalesce(max(number), 0) FROM reading_plans), "
            "(SELECT count(*) FROM verdicts)"
        )
    return ReadingCacheKey(
        cohort=assignment.key,
        taxonomy=assignment.taxonomy.digest,
        recorded=_last_entry(workspace, assignment.cohort.name),
        readings=readings,
        plans=plans,
        verdicts=verdicts,
    )


def _last_entry(workspace: Workspace, cohort: str) -> str:
    for entry in reversed(read_ledger(workspace.ledger)):
        about = entry.action == "cohort_added" and entry.subject == cohort
        revised = entry.action in _CHANGING
        if about or (revised and entry.payload.get("cohort") == cohort):
            return entry.hash
    return ""
