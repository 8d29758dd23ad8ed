"""Where a judge counts other errors than the readers of the same pairs."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.core.records import Status
from loop.evaluate.failures import open_for_review
from loop.judge.judge_evaluation import (
    expert_median,
    expert_table,
    run_counts,
    version_of,
)
from loop.labels.expert_ratings import read_ratings_of
from loop.run.manifest import find_run
from loop.run.store import RunRecord, Store
from loop.score.experts.error_tables import SIGNIFICANCES


class CountFailure(NamedTuple):
    """One pair and category in which a judge does not count what the readers do."""

    case_id: str
    category: str
    """Empty of a pair without a readable answer."""

    judge: tuple[float, float] | None
    """Significant and insignificant errors as the judge counts them; None where there
    is no readable answer."""

    readers: tuple[float, float] | None
    """The same as the readers' median."""

    apart: float
    """By how many errors they differ; infinite without a readable answer."""

    problem: str = ""
    """``unparsed`` or ``engine_failed``."""


class CountFailures(NamedTuple):
    """The failing pairs of a judge's run."""

    run: RunRecord
    ratings: str
    """Version of the ratings, ``"rp:ratings1"``."""

    rows: tuple[CountFailure, ...]
    """Furthest from the readers first, then in the order of the cohort."""

    cases: tuple[str, ...]
    """All pairs of the cohort, in its order."""


def find_count_failures(
    workspace: WorkspacePaths,
    store: Store,
    run_ref: str,
    *,
    categories: Collection[str] = (),
) -> CountFailures:
    """Return where a judge's run and the readers' median counts differ.

    Where the readers' median is no whole number, they do not decide, and nothing is
    listed.

    Parameters
    ----------
    categories
        Only these; empty for all that the judge is asked for.

    Raises
    ------
    DataError
        There is no such run, it is none of a judge, the cohort is a holdout or nobody
        marked errors in it, or a category is none that the judge is asked for.
    StoreError
        The store cannot be read.
    """
    run = find_run(workspace, run_ref)
    cohort = open_for_review(workspace, run.spec.cohort)
    version = version_of(workspace, run)
    unknown = [name for name in categories if name not in version.labels]
    if unknown:
        raise DataError(
            f"{version.ref} is not asked for {unknown[0]}. Name one of "
            f"{', '.join(version.labels)}."
        )
    given = read_ratings_of(workspace, cohort.name)
    experts = expert_table(workspace, given)
    if experts is None:
        raise DataError(
            f"nobody marked errors in cohort {cohort.name}, so nothing says which "
            "counts are wrong. Add them with `ranloop cohort ratings NAME --errors "
            "FILE`, or rate pairs on the page Judges of the workbench."
        )
    counted = run_counts(store, run, version)
    if not counted.categories:
        raise DataError(
            f"{version.ref} counts no errors by category, so that no count of it can "
            "be wrong. Name a run of a judge that does."
        )
    wanted = [
        (place, name)
        for place, name in enumerate(version.labels)
        if name in experts.categories and name in (categories or version.labels)
    ]
    rows = [
        CountFailure(case, "", None, None, float("inf"), status.value)
        for case, status in zip(given.case_ids, counted.statuses, strict=True)
        if status is not None and status is not Status.ANSWERED
    ]
    for place, name in wanted:
        own = counted.by_weight[:, place]
        if counted.weighs:
            sides = [expert_median(experts, name, weight) for weight in SIGNIFICANCES]
        else:
            # Readers weigh what this judge does not: either weight is an error.
            either = expert_median(experts, name)
            sides = [either, 0 * either]
        right = np.stack(sides, axis=-1)
        apart = np.abs(own - right).sum(axis=-1)
        rows += [
            CountFailure(
                given.case_ids[row],
                name,
                (float(own[row, 0]), float(own[row, 1])),
                (float(right[row, 0]), float(right[row, 1])),
                float(apart[row]),
            )
            for row in np.flatnonzero(apart > 0)
        ]
    order = {case: place for place, case in enumerate(given.case_ids)}
    rows.sort(key=lambda one: (-one.apart, order[one.case_id]))
    return CountFailures(run, given.ref, tuple(rows), given.case_ids)
