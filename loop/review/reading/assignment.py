"""What readers are asked to read, who they are, and the order in which they do it."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from loop.core.digests import framed
from loop.core.errors import DataError, UnknownLabelError
from loop.core.ledger import read_ledger
from loop.core.paths import Workspace
from loop.labels.cohort import Cohort, read_cohort, read_record
from loop.labels.sealing import WordSeal, open_words
from loop.labels.taxonomy import NO_FINDING, Taxonomy, read_taxonomy
from loop.run.store import Store

LONGEST_NAME = 64
"""Characters in the name of a reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A cohort and the labels that its readers are asked for."""

    cohort: Cohort
    taxonomy: Taxonomy
    words: WordSeal | None = None
    """What seals the answers in the store; None where they need no seal."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Label ids that a complete case has values for; "No Finding" is derived."""
        return self.taxonomy.extracted

    @property
    def key(self) -> str:
        """What answers are kept under: the name and digest of the cohort.

        A cohort that is imported again with other texts under the same name starts
        anew, because an answer holds for the text that was read.
        """
        return f"{self.cohort.name}@{self.cohort.digest[:16]}"


def read_assignment(workspace: Workspace, cohort_name: str) -> Assignment:
    """Return what readers of a cohort are asked.

    Raises
    ------
    DataError
        There is no such cohort, or its files are not those recorded.
    """
    record = read_record(workspace, cohort_name)
    # What was sealed before a holdout was retired stays so.
    sealed = record.is_holdout or record.retired
    return Assignment(
        cohort=read_cohort(workspace, cohort_name, record=record),
        taxonomy=read_taxonomy(workspace.labels),
        words=open_words(workspace) if sealed else None,
    )


def check_reader(name: str) -> str:
    """Return the name of a reader without surrounding space.

    Raises
    ------
    DataError
        It is empty, longer than 64 characters, or holds control characters.
    """
    plain = unicodedata.normalize("NFC", name).strip()
    if not 1 <= len(plain) <= LONGEST_NAME or not plain.isprintable():
        raise DataError(
            f"the name of a reader has 1 to {LONGEST_NAME} printable characters, this "
            f"one has {len(plain)}. Use the name that the reader signs in with."
        )
    return plain


def require_cases(assignment: Assignment, case_ids: Iterable[str]) -> None:
    """Refuse case ids that the cohort does not have.

    Raises
    ------
    DataError
        It lacks one; names the first.
    """
    known = positions(assignment.cohort)
    for case_id in case_ids:
        if case_id not in known:
            raise DataError(
                f"cohort {assignment.cohort.name!r} has no case {case_id[:80]!r}. "
                "Correct the id, or name the cohort that was read."
            )


def require_label(assignment: Assignment, name: str) -> str:
    """Return the id of a label that readers are asked for.

    Raises
    ------
    UnknownLabelError
        The taxonomy has no such label.
    DataError
        It is "No Finding", which follows from the other labels.
    """
    label = assignment.taxonomy.find(name).id
    if label == NO_FINDING:
        raise DataError(
            f"{label} is not asked: it follows from the other labels. Give values for "
            "those and leave it out."
        )
    if label not in assignment.labels:
        raise UnknownLabelError(f"label {label!r} is not read. Leave it out.")
    return label


def positions(cohort: Cohort) -> Mapping[str, int]:
    """Return case id to its place in the cohort, from 0."""
    return _positions(cohort.case_ids)


def reading_order(cohort: Cohort, reader: str) -> tuple[str, ...]:
    """Return the case ids of `cohort` in the order in which `reader` reads them.

    A random permutation of its own for every reader, so that tiredness and learning
    do not fall on the same cases. It depends on nothing but the cohort's digest and
    the reader's name: cases are sorted by ``sha256(digest, reader, case id)``, which
    gives the same order after a restart and on every machine.
    """
    return _order(cohort.digest, check_reader(reader), cohort.case_ids)


@lru_cache(maxsize=64)
def _order(digest: str, reader: str, case_ids: tuple[str, ...]) -> tuple[str, ...]:
    start = hashlib.sha256(framed([digest, reader]))

    def draw(case_id: str) -> bytes:
        mixed = start.copy()
        mixed.update(case_id.encode("utf-8", "surrogatepass"))
        return mixed.digest()

    return tuple(sorted(case_ids, key=draw))


@lru_cache(maxsize=16)
def _positions(case_ids: tuple[str, ...]) -> dict[str, int]:
    return {case_id: number for number, case_id in enumerate(case_ids)}


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
