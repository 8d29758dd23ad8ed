"""Two runs of judges on the same rated pairs: how much better the later one agrees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.paths import WorkspacePaths
from loop.evaluate.protocol import JudgingRules
from loop.judge.counts import JudgeCounts, score_counts
from loop.judge.judge_evaluation import (
    EMPTY,
    RESAMPLES,
    claimed_score,
    expert_table,
    rated_points,
    run_counts,
    version_of,
)
from loop.judge.rated_rows import number_units
from loop.labels.cohort import read_cohort
from loop.labels.expert_ratings import read_ratings_of
from loop.run.manifest import find_run
from loop.run.store import open_store
from loop.score.experts.error_agreement import (
    category_groups,
    count_f1,
    median_given,
)
from loop.score.experts.error_tables import ErrorTable
from loop.score.metrics.base import Direction
from loop.stats.intervals import Estimate
from loop.stats.rated_agreement import (
    AgreementMeasure,
    RatedAgreement,
    compare_agreement,
    measure_agreement,
)
from loop.stats.resampling import to_estimate


class NumberChange(NamedTuple):
    """One number of both runs, by its name."""

    name: str
    before: float | None
    after: float | None


class JudgeComparison(NamedTuple):
    """The later run beside the earlier one, on the pairs that both have a score of."""

    agreement: NumberChange
    """Of the claimed score with the mean of the raters, by the claimed measure."""

    difference: Estimate
    """After less before; one-sided limits at the protocol's confidence."""

    f1: tuple[NumberChange, ...]
    """Of significant errors by group; empty where nobody marked errors."""


def compare_judge_runs(
    workspace: WorkspacePaths,
    before: str,
    after: str,
    rules: JudgingRules,
    *,
    confidence: float,
) -> JudgeComparison:
    """Return how far two runs on one open cohort agree with its newest ratings.

    Raises
    ------
    DataError
        A run or its version is gone, or nobody gave points.
    SealedError
        The cohort is a holdout.
    StoreError
        The store cannot be read.
    """
    runs = [find_run(workspace, one) for one in (before, after)]
    cohort = read_cohort(workspace, runs[1].spec.cohort)
    given = read_ratings_of(workspace, cohort.name)
    points = rated_points(given).consensus
    with open_store(workspace) as store:
        versions = [version_of(workspace, one) for one in runs]
        counts = [run_counts(store, *one) for one in zip(runs, versions, strict=True)]
    score, measure = claimed_score(versions[1], rules.score), rules.measure
    sign = 1
    if measure is AgreementMeasure.TAU_B and score.direction is Direction.LOWER:
        sign = -1
    earlier, later = (sign * score_counts(one, score, EMPTY) for one in counts)
    both = ~np.isnan(earlier) & ~np.isnan(later)
    names = np.array([one.patient or one.reference_id for one in cohort.cases])
    units = number_units(names, points, later, earlier)
    found = compare_agreement(
        measure,
        later,
        earlier,
        points,
        units=units,
        resamples=RESAMPLES,
        confidence=2 * confidence - 1,
    )
    alone = [
        _value(measure_agreement(measure, one[both], points[both], resamples=1))
        for one in (earlier, later)
    ]
    experts = expert_table(workspace, given)
    return JudgeComparison(
        agreement=NumberChange(f"{measure.words} of {score.title}", *alone),
        difference=to_estimate(found.value),
        f1=()
        if experts is None or not all(one.categories for one in counts)
        else _f1(experts, counts, cohort.case_ids, both),
    )


def _value(found: RatedAgreement) -> float | None:
    return found.value.estimate


def _f1(
    experts: ErrorTable,
    counts: list[JudgeCounts],
    case_ids: tuple[str, ...],
    both: NDArray[np.bool_],
) -> tuple[NumberChange, ...]:
    theirs = experts.rows([(case, "") for case in case_ids])
    changes = []
    for group in category_groups():
        median = median_given(theirs.totals(group.categories, all_errors=False))
        found = [
            count_f1(
                _total(one, group.categories)[both], median[both], resamples=1
            ).f1.value
            for one in counts
        ]
        changes.append(NumberChange(group.name, *found))
    return tuple(changes)


def _total(counts: JudgeCounts, categories: tuple[str, ...]) -> NDArray[np.float64]:
    """Return the significant errors of each pair in some categories."""
    asked = [place for place, one in enumerate(counts.categories) if one in categories]
    total = np.nansum(counts.significant[:, asked], axis=1)
    # Without an answer there is no zero.
    return np.where(np.isnan(counts.significant[:, 0]), np.nan, total)
