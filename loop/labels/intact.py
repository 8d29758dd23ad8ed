"""Whether the reference files of a cohort are those that the ledger recorded."""

from __future__ import annotations

from loop.core.paths import Workspace
from loop.labels.recorded import read_record
from loop.labels.reference import list_references, reference_path
from loop.labels.sealing import stored_digest


def edited_references(workspace: Workspace, cohort_name: str) -> tuple[int, ...]:
    """Return versions whose file is not the recorded one, or was never recorded.

    Of a sealed one the digest of its plain text is compared.

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
        if stored_digest(
            workspace,
            reference_path(workspace, cohort_name, number),
            sealed=record.is_holdout,
        )
        != record.references.get(number, {}).get("digest")
    )
