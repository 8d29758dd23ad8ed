"""What is left of a run's macro-F1 when the choice of its version is taken off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loop.core.errors import DataError, StoreError
from loop.core.paths import Workspace
from loop.evaluate.codes import (
    CodeTable,
    decided_reference,
    in_order,
    read_codes,
)
from loop.evaluate.measure import Clusters, resampling_units
from loop.evaluate.protocol import read_protocol
from loop.evaluate.tried import Tried, versions_tried
from loop.labels.cohort import read_cohort
from loop.labels.reference import read_reference
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.run.store import RunRecord, Store
from loop.stats.optimism import (
    RESAMPLES,
    Optimism,
    expected_excess,
    f1_optimism,
)

LIMITS = (
    "The correction is for the choice among these versions only: not for wording and "
    "exemplars taken from the same cases, and not for other reports. It does not "
    "replace the holdout."
)
"""What every document says beside a corrected score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """One run's macro-F1 as it looks, and corrected for the versions tried."""

    run: str
    prompt: str
    """For example ``"extractor@v3"``."""

    tried: Tried
    rescored: int
    """Versions whose cases entered the correction, this one included."""

    unscored: tuple[str, ...]
    """Versions that were tried and could not be scored again, by name."""

    score: Optimism
    """Macro-F1: apparent, corrected, limits."""

    expected_drop: float | None
    """By how much the accuracy of one label is overrated if the best of so many
    equally good versions is taken; None without cases."""

    accuracy: float
    """The accuracy that `expected_drop` supposes: the protocol's threshold."""

    unit: str
    """``"patient"`` or ``"case"``."""

    seed: int

    @property
    def k(self) -> int:
        """Versions tried, drafts and rejected ones included."""
        return self.tried.count


def correct_optimism(
    workspace: Workspace,
    store: Store,
    run_id: str,
    *,
    reference: int | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Selection:
    """Return a run's macro-F1 corrected for the versions tried on its cohort.

    Versions of which only the ledger knows count as tried, and for the expected drop,
    but cannot enter the correction.

    Parameters
    ----------
    run_id
        Id of a finished run, in full.
    reference
        Number of the reference version; None for the newest.

    Raises
    ------
    DataError
        There is no such finished run, its cohort changed, or there is no reference.
    LedgerError
        The ledger is broken.
    StoreError
        The store cannot be read.
    """
    run = _find(store, run_id)
    cohort = read_cohort(workspace, run.spec.cohort)
    if cohort.digest != run.spec.cohort_digest:
        raise DataError(
            f"cohort {cohort.name} holds other cases than run {run.id} asked. Run the "
            "prompt again on the cohort as it is now."
        )
    taxonomy = read_taxonomy(workspace.labels)
    standard = read_reference(workspace, cohort.name, reference)
    cases = read_codes(store, run, taxonomy).case_ids
    tried = versions_tried(workspace, store, run.spec.prompt, cohort.name, like=run)
    scored, unscored = _answers(store, tried, taxonomy, cases)
    patients = {case.case_id: case.patient for case in cohort.cases}
    clusters = resampling_units([patients.get(case, "") for case in cases])
    accuracy = read_protocol(workspace).accuracy
    return Selection(
        run=run.id,
        prompt=run.spec.prompt,
        tried=tried,
        rescored=len(scored),
        unscored=unscored,
        score=f1_optimism(
            decided_reference(standard, cases, taxonomy.ids),
            np.stack([in_order(table, cases) for table in scored.values()]),
            chosen=list(scored).index(run.id),
            units=clusters.units,
            resamples=resamples,
            seed=seed,
        ),
        expected_drop=_expected(clusters, tried.count, accuracy),
        accuracy=accuracy,
        unit=clusters.unit,
        seed=seed,
    )


def _find(store: Store, run_id: str) -> RunRecord:
    found = store.find_runs("id = ? AND finished IS NOT NULL", [run_id])
    if not found:
        raise DataError(
            f"there is no finished run {run_id}. Make one with `ranloop run`."
        )
    return found[0]


def _answers(
    store: Store, tried: Tried, taxonomy: Taxonomy, case_ids: tuple[str, ...]
) -> tuple[dict[str, CodeTable], tuple[str, ...]]:
    """Return run id to its answers, and the attempts that have none on these cases."""
    cases = set(case_ids)
    tables: dict[str, CodeTable] = {}
    without = list(tried.gone)
    for one in tried.attempts:
        if one.run is None:
            continue
        try:
            table = read_codes(store, one.run, taxonomy)
        except (DataError, StoreError):
            # One damaged old run must not hide the score of a sound new one.
            without.append(one.ref)
            continue
        if set(table.case_ids) == cases:
            tables[one.run.id] = table
        else:
            without.append(one.ref)
    return tables, tuple(without)


def _expected(clusters: Clusters, versions: int, accuracy: float) -> float | None:
    if not clusters.total:
        return None
    return expected_excess(clusters.total, versions, accuracy)
