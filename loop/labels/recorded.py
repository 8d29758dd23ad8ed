"""What the ledger recorded of a cohort, for its files to be held against.

Files under ``labels/`` can be edited with any editor; the ledger's chain cannot be
without notice. So role, cases, references and votes are believed only as recorded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loop.core.errors import DataError
from loop.core.ledger import LedgerEntry, read_ledger
from loop.core.paths import Workspace

HOLDOUT = "holdout"
RETIRED = "dev"
"""Role of a holdout that was retired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortRecord:
    """The last import of a cohort and what was recorded of it since."""

    name: str
    added: Mapping[str, Any]
    """Payload of its ``cohort_added`` entry; a retired holdout has the role it has
    since."""

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

    @property
    def newest_digest(self) -> str | None:
        """Digest of that reference version; None without any."""
        digest = self.references.get(self.newest, {}).get("digest")
        return None if digest is None else str(digest)

    @property
    def is_holdout(self) -> bool:
        """Whether its labels and votes are sealed."""
        return self.added.get("role") == HOLDOUT

    @property
    def retired(self) -> bool:
        """Whether it was a holdout and was given up."""
        return self.added.get("retired") is True


def find_record(entries: Sequence[LedgerEntry], name: str) -> CohortRecord | None:
    """Return what `entries` hold of cohort `name`, or None when it was never added.

    What was recorded before the last import belongs to a cohort that it replaced.
    """
    added: Mapping[str, Any] | None = None
    references: dict[int, Mapping[str, Any]] = {}
    for entry in entries:
        if entry.action == "cohort_added" and entry.subject == name:
            added, references = entry.payload, {}
        elif entry.action == "holdout_retired" and entry.subject == name and added:
            added = {**added, "role": RETIRED, "retired": True}
            plain = entry.payload.get("digests", {})
            references = {n: _in_plain(p, plain) for n, p in references.items()}
        elif (
            entry.action == "reference_revised" and entry.payload.get("cohort") == name
        ):
            number = int(entry.payload["number"])
            references.pop(number, None)
            references[number] = entry.payload
    if added is None:
        return None
    return CohortRecord(name=name, added=added, references=references)


def _in_plain(
    payload: Mapping[str, Any], plain: Mapping[str, str]
) -> Mapping[str, Any]:
    """Return what was recorded of a version, with digests that need no key."""
    digests = {
        key: plain.get(str(payload[key]), payload[key])
        for key in ("digest", "votes")
        if key in payload
    }
    return {**payload, **digests}


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


def choose_version(
    record: CohortRecord, numbers: Sequence[int], number: int | None
) -> int:
    """Return reference version `number`, or the newest; `numbers` have a file.

    Raises
    ------
    DataError
        There is no such version, or it was recorded and its file is gone.
    """
    known = {*numbers, *record.references}
    votes = f"`ranloop cohort votes {record.name} FILE`"
    if not known:
        raise DataError(
            f"cohort {record.name!r} has no reference yet. Import label columns, or "
            f"add readers' votes with {votes}."
        )
    wanted = max(known) if number is None else number
    if wanted in numbers:
        return wanted
    if wanted in record.references:
        raise DataError(
            f"reference v{wanted}.csv of cohort {record.name!r} is gone, but the "
            "ledger recorded it. Restore it from version control or a backup, or make "
            f"a new version with {votes}."
        )
    there = ", ".join(f"v{n}" for n in sorted(numbers))
    raise DataError(
        f"cohort {record.name!r} has no reference v{wanted} (found: {there}). Name one "
        "of these."
    )


def require_version(record: CohortRecord, number: int, digest: str, path: Path) -> None:
    """Refuse a reference file whose sha256 `digest` is not the recorded one.

    Raises
    ------
    DataError
        It was edited, or never recorded.
    """
    votes = f"`ranloop cohort votes {record.name} FILE`"
    recorded = record.references.get(number)
    if recorded is None:
        raise DataError(
            f"{path} is not in the ledger: nothing says who made it, and why. Move it "
            f"away, and register its marks: readers' votes with {votes}, single marks "
            "with `ranloop revise` and a verdict reference_wrong."
        )
    if recorded["digest"] != digest:
        raise DataError(
            f"{path} was edited: the ledger recorded sha256 {recorded['digest'][:12]}, "
            f"found {digest[:12]}. Restore it from version control or a backup, or "
            f"make a new version with {votes}; a wrong mark is corrected with `ranloop "
            "revise` and a verdict reference_wrong."
        )
