"""Intervals for a history of scores, from the runs that are still in the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

from loop.core.errors import DataError, StoreError
from loop.core.paths import Workspace
from loop.evaluate.codes import decided_reference, in_order, read_codes
from loop.evaluate.history import VersionScore
from loop.evaluate.measure import measure_f1, resampling_units
from loop.evaluate.protocol import read_protocol
from loop.labels.cohort import read_cohort
from loop.labels.reference import read_reference
from loop.labels.taxonomy import read_taxonomy
from loop.run.store import Store
from loop.stats.bootstrap import Bootstrap
from loop.stats.resampling import Resampling

_ROUNDING = 0.5e-4 + 1e-9
"""Largest difference between a score and its four decimals in the ledger."""


def with_intervals(
    workspace: Workspace,
    store: Store,
    scores: Sequence[VersionScore],
    **resampling: Unpack[Resampling],
) -> tuple[VersionScore, ...]:
    """Return `scores` with the interval of macro-F1 that an evaluation gives.

    That is for comparable scores whose runs are in the store and whose cohort and
    reference are as they were. The score itself has all its digits there: four of the
    ledger's, rounded again, may end otherwise than in an evaluation.

    Parameters
    ----------
    **resampling
        As for `loop.evaluate.measure.measure_f1`; by default as in an evaluation.

    Raises
    ------
    LedgerError
        The ledger is broken.
    """
    rows = [row for row in scores if row.run and row.comparable]
    if not rows:
        return tuple(scores)
    try:
        found = _measure(workspace, store, rows, resampling)
    except (DataError, StoreError):
        # Recorded scores are shown all the same when what they rest on is gone.
        return tuple(scores)
    return tuple(
        _filled(row, found[row.run]) if row.comparable and row.run in found else row
        for row in scores
    )


def _filled(row: VersionScore, found: Bootstrap) -> VersionScore:
    exact, recorded = found.estimate, row.macro_f1
    if exact is None or recorded is None or abs(exact - recorded) > _ROUNDING:
        return row
    return replace(row, macro_f1=exact, low=found.low, high=found.high)


def _measure(
    workspace: Workspace,
    store: Store,
    rows: Sequence[VersionScore],
    resampling: Resampling,
) -> dict[str, Bootstrap]:
    """Return run id to macro-F1 with its interval, for runs on the cohort as it is."""
    last = rows[-1]
    cohort = read_cohort(workspace, last.cohort)
    standard = read_reference(workspace, cohort.name, last.reference)
    if standard.digest != last.reference_digest:
        return {}
    taxonomy = read_taxonomy(workspace.labels)
    patients = {case.case_id: case.patient for case in cohort.cases}
    level = read_protocol(workspace).confidence
    marks = ",".join("?" * len(rows))
    ids = [row.run for row in rows]
    found = {}
    for run in store.find_runs(f"finished IS NOT NULL AND id IN ({marks})", ids):
        if run.spec.cohort_digest != cohort.digest:
            continue
        table = read_codes(store, run, taxonomy)
        cases = table.case_ids
        options: Resampling = {
            "units": resampling_units([patients.get(one, "") for one in cases]).units,
            "confidence": level,
            **resampling,
        }
        found[run.id] = measure_f1(
            decided_reference(standard, cases, taxonomy.ids),
            in_order(table, cases),
            **options,
        )
    return found
