"""Intervals for a history of scores, from the runs that are still in the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError, StoreError
from loop.core.paths import Workspace
from loop.evaluate.codes import CodeTable, decided_reference, in_order, read_codes
from loop.evaluate.history import VersionScore
from loop.evaluate.measure import resampling_units
from loop.labels.cohort import read_cohort
from loop.labels.reference import read_reference
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.run.store import Store
from loop.stats.confusion import f1_columns
from loop.stats.optimism import score_f1
from loop.stats.resampling import Bootstrap, bootstrap


def with_intervals(
    workspace: Workspace,
    store: Store,
    scores: Sequence[VersionScore],
    *,
    resamples: int = 500,
    seed: int = 0,
) -> tuple[VersionScore, ...]:
    """Return `scores` with the bootstrap interval of macro-F1 where it can be made.

    That is for comparable scores whose runs are in the store and whose cohort and
    reference are as they were. All are resampled together, patients as wholes.

    Raises
    ------
    LedgerError
        The ledger is broken.
    """
    rows = [row for row in scores if row.run and row.comparable]
    if not rows:
        return tuple(scores)
    try:
        found = _resample(workspace, store, rows, resamples, seed)
    except (DataError, StoreError):
        # Recorded scores are shown all the same when what they rest on is gone.
        return tuple(scores)
    return tuple(
        replace(row, low=found[row.run].low, high=found[row.run].high)
        if row.comparable and row.run in found
        else row
        for row in scores
    )


def _resample(
    workspace: Workspace,
    store: Store,
    rows: Sequence[VersionScore],
    resamples: int,
    seed: int,
) -> dict[str, Bootstrap]:
    """Return run id to macro-F1 with its interval, for runs of the same cases."""
    last = rows[-1]
    cohort = read_cohort(workspace, last.cohort)
    standard = read_reference(workspace, cohort.name, last.reference)
    if standard.digest != last.reference_digest:
        return {}
    taxonomy = read_taxonomy(workspace.labels)
    tables = _tables(store, [row.run for row in rows], cohort.digest, taxonomy)
    if not tables:
        return {}
    case_ids = next(iter(tables.values())).case_ids
    answers = np.stack([in_order(table, case_ids) for table in tables.values()])
    truth = decided_reference(standard, case_ids, taxonomy.ids)
    columns = f1_columns(truth, answers)
    versions, cases, width = columns.shape

    def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return score_f1(sums.reshape(-1, width)).reshape(-1, versions)

    patients = {case.case_id: case.patient for case in cohort.cases}
    found = bootstrap(
        columns.transpose(1, 0, 2).reshape(cases, versions * width),
        statistic,
        units=resampling_units([patients.get(case, "") for case in case_ids]).units,
        resamples=resamples,
        seed=seed,
    )
    return dict(zip(tables, found, strict=True))


def _tables(
    store: Store, runs: Sequence[str], cohort_digest: str, taxonomy: Taxonomy
) -> dict[str, CodeTable]:
    """Return run id to answers, for the runs that asked the cases of the first."""
    marks = ",".join("?" * len(runs))
    records = store.find_runs(f"finished IS NOT NULL AND id IN ({marks})", runs)
    tables = {
        run.id: read_codes(store, run, taxonomy)
        for run in records
        if run.spec.cohort_digest == cohort_digest
    }
    cases = [set(table.case_ids) for table in tables.values()]
    return {run: one for run, one in tables.items() if set(one.case_ids) == cases[0]}
