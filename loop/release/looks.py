"""Whether the cases of a holdout were looked at before they were one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loop.core.ledger import LedgerEntry, read_ledger
from loop.core.paths import Workspace
from loop.labels.cohort import CohortRole, list_cohorts, read_cohort, read_cohort_file


def find_earlier_looks(workspace: Workspace, holdout: str) -> tuple[str, ...]:
    """Return how the cases of a holdout were seen before, as sentences.

    Empty for cases that were never anything but a holdout, as far as the ledger knows:
    it has the digest of every cohort as a whole, and those of its source files.

    Raises
    ------
    DataError
        There is no such cohort.
    LedgerError
        The ledger is broken.
    """
    digest = read_cohort(workspace, holdout).digest
    entries = read_ledger(workspace.ledger)
    return (
        *_same_cases(entries, holdout, digest),
        *_same_source(workspace, entries, holdout, digest),
    )


def was_open(entry: LedgerEntry, digest: str) -> bool:
    """Whether an entry says that the cases with that digest were no holdout then."""
    return entry.payload.get("cohort_digest") == digest and _tells_of_open(entry)


def _tells_of_open(entry: LedgerEntry) -> bool:
    added = (
        entry.action == "cohort_added"
        and entry.payload.get("role") != CohortRole.HOLDOUT
    )
    return added or entry.action == "holdout_retired"


def _same_cases(
    entries: Sequence[LedgerEntry], holdout: str, digest: str
) -> Iterator[str]:
    """Yield that exactly these cases were an open cohort, and how often measured on."""
    added = [entry for entry in entries if was_open(entry, digest)]
    if not added:
        return
    names = {entry.subject for entry in added}
    since = _newest_import(entries, holdout).seq
    looks = sum(
        entry.action == "evaluated"
        and entry.payload.get("cohort") in names
        and entry.seq < since
        for entry in entries
    )
    where = ", ".join(f"{entry.subject}, entry {entry.seq}" for entry in added)
    times = "once" if looks == 1 else f"{looks} times"
    yield (
        f"the cases of {holdout} are no longer unseen: they were an open cohort before "
        f"({where} of the ledger), and versions were measured on them {times}"
    )


def _same_source(
    workspace: Workspace, entries: Sequence[LedgerEntry], holdout: str, digest: str
) -> Iterator[str]:
    """Yield that an open cohort of the same file is gone: some cases may be both's."""
    here = {
        read_cohort_file(workspace, name).digest for name in list_cohorts(workspace)
    }
    files = _files(_newest_import(entries, holdout))
    for entry in entries:
        other = entry.payload.get("cohort_digest")
        if entry.action != "cohort_added" or other in here or other == digest:
            continue
        if _tells_of_open(entry) and files & _files(entry):
            yield (
                f"{entry.subject} (entry {entry.seq} of the ledger) was an open cohort "
                f"from a source file that {holdout} comes from too; it is not here any "
                "more, so the cases they share are unknown"
            )


def _newest_import(entries: Sequence[LedgerEntry], name: str) -> LedgerEntry:
    ours = [e for e in entries if e.action == "cohort_added" and e.subject == name]
    return ours[-1]


def _files(entry: LedgerEntry) -> set[str]:
    return set(map(str, dict(entry.payload.get("files", {})).values()))
