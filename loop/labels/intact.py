"""Whether the reference files of a cohort are those that the ledger recorded."""

from __future__ import annotations

from loop.core.paths import Workspace
from loop.labels.recorded import CohortRecord, read_record
from loop.labels.reference import list_references, reference_path
from loop.labels.sealing import is_digest_of, read_labels


def edited_references(workspace: Workspace, cohort_name: str) -> tuple[int, ...]:
    """Return versions whose file is not the recorded one, or was never recorded.

    A sealed one is unsealed for that.

    Raises
    ------
    DataError
        The ledger has no entry of the cohort; or a holdout's labels lie in plain, or
        the key that they were sealed with is not here.
    LedgerError
        The ledger is broken.
    """
    record = read_record(workspace, cohort_name)
    return tuple(
        number
        for number in list_references(workspace, cohort_name)
        if not _is_intact(workspace, record, number)
    )


def _is_intact(workspace: Workspace, record: CohortRecord, number: int) -> bool:
    path = reference_path(workspace, record.name, number)
    raw = read_labels(workspace, path, sealed=record.is_holdout)
    recorded = record.references.get(number, {}).get("digest")
    return is_digest_of(workspace, recorded, raw)
