"""What the ledger recorded of a cohort, for its files to be held against.

Files under ``labels/`` can be edited with any editor; the ledger's chain cannot be
without notice. So role, cases, references and votes are believed only as recorded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loop.core.errors import DataError
from loop.core.ledger import Entry, read_ledger
from loop.core.paths import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortRecord:
    """The last import of a cohort and what was recorded of it since."""

    added: Mapping[str, Any]
    """Payload of its ``cohort_added`` entry."""

    references: Mapping[int, Mapping[str, Any]]
    """Reference number to the payload that recorded it last, in order of recording."""

    @property
    def votes(self) -> str | None:
        """Digest of the votes that made a reference last, or None without any."""
        digests = [p["votes"] for p in self.references.values() if "votes" in p]
        return str(digests[-1]) if digests else None

    @property
    def newest(self) -> int:
        """Highest reference number that was ever recorded; 0 without any."""
        return max(self.references, default=0)


def find_record(entries: Sequence[Entry], name: str) -> CohortRecord | None:
    """Return what `entries` hold of cohort `name`, or None when it was never added.

    What was recorded before the last import belongs to a cohort that it replaced.
    """
    added: Mapping[str, Any] | None = None
    references: dict[int, Mapping[str, Any]] = {}
    for entry in entries:
        if entry.action == "cohort_added" and entry.subject == name:
            added, references = entry.payload, {}
        elif (
            entry.action == "reference_revised" and entry.payload.get("cohort") == name
        ):
            number = int(entry.payload["number"])
            references.pop(number, None)
            references[number] = entry.payload
    return None if added is None else CohortRecord(added=added, references=references)


def read_record(workspace: Workspace, name: str) -> CohortRecord:
    """Return what the ledger recorded of cohort `name`.

    Raises
    ------
    DataError
        It recorded nothing: a cohort copied here without its ledger, or made by hand.
    LedgerError
        The ledger is broken.
    """
    record = find_record(read_ledger(workspace.ledger), name)
    if record is None:
        raise DataError(
            f"{workspace.ledger} has no entry cohort_added of cohort {name!r}: nothing "
            "shows that its role and cases are those it was imported with. Bring the "
            "ledger along with which it was made, or import it again with --replace."
        )
    return record
