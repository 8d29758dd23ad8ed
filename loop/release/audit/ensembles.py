"""Recorded ensembles held against their files, and fitted again."""

from __future__ import annotations

from loop.core.check_findings import Finding, broken, ok, warning
from loop.core.errors import DataError
from loop.core.ledger import LedgerEntry
from loop.core.paths import WorkspacePaths
from loop.judge.ensemble_versions import list_recorded, read_recorded, refit

_CHECK = "ensembles"


def check_ensembles(
    workspace: WorkspacePaths, entries: tuple[LedgerEntry, ...]
) -> list[Finding]:
    """Return whether recorded ensembles are as recorded, and follow from their rows.

    A cohort or ratings that an ensemble names and no entry before it recorded are
    told, too.
    """
    recorded = list_recorded(entries)
    if not recorded:
        return []
    found: list[Finding] = []
    for one in recorded:
        try:
            version = read_recorded(workspace, one)
        except DataError:
            found.append(
                broken(
                    _CHECK,
                    f"{one.subject} is not as recorded",
                    where=one.subject,
                    implies="A file of it was edited, or is gone.",
                    todo="Restore its folder from version control or a backup.",
                    seq=one.seq,
                )
            )
            continue
        if not refit(version):
            found.append(
                broken(
                    _CHECK,
                    f"the rows of {one.subject} give other coefficients",
                    where=one.subject,
                    implies="It was not fitted on them, or by another ranloop.",
                    todo="Fit it again.",
                    seq=one.seq,
                )
            )
        told = version.ensemble.fitted_on.ratings_digest
        if not any(
            each.action == "ratings_added" and each.payload.get("digest") == told
            for each in entries
            if each.seq < one.seq
        ):
            found.append(
                warning(
                    _CHECK,
                    f"{one.subject} was fitted on ratings that were not recorded "
                    "before",
                    where=one.subject,
                    seq=one.seq,
                )
            )
    if found:
        return found
    number = len(recorded)
    what = f"{number} ensemble{' is' if number == 1 else 's are'} as recorded, and "
    return [ok(_CHECK, what + "given by the rows that are kept")]
