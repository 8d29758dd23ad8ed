"""Several judges on the same rated pairs, side by side: prompts by engines.

A column is one prompt version with one engine. Every column is compared with the same
ratings, and every two columns with each other on the pairs that both score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from string import ascii_uppercase
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.config import read_config
from loop.core.errors import DataError, EngineError
from loop.core.paths import WorkspacePaths
from loop.core.records import PromptTask, Status
from loop.engines.base import DEFAULT_THINKING, find_model
from loop.evaluate.matrix.runs import EngineRun, MatrixRequest
from loop.evaluate.protocol import read_protocol
from loop.evaluate.stability import find_draws
from loop.judge.counts import (
    GREEN,
    JudgeCounts,
    JudgeScore,
    find_score,
    score_counts,
    scores_of,
)
from loop.judge.judge_evaluation import (
    EMPTY,
    RESAMPLES,
    ScoreAgreement,
    expert_table,
    rated_points,
    run_cost,
    run_counts,
    score_agreement,
    version_of,
)
from loop.judge.meta_evaluation import JudgeCost, mean_tau_b
from loop.judge.score_bins import ScoreBin, score_bins
from loop.labels.cohort import Cohort, read_cohort
from loop.labels.expert_ratings import read_ratings_of
from loop.prompts.catalog import read_version
from loop.prompts.outputs.base import get_contract
from loop.prompts.version import PromptVersion
from loop.run.execute import CUT_OFF
from loop.run.manifest import find_run
from loop.run.store import RunRecord, Store, count_problem, open_store
from loop.run.task import Task
from loop.run.task_fields import is_judge_run, task_of
from loop.score.experts.error_agreement import ErrorAgreement, agree_on_errors
from loop.score.experts.error_tables import ErrorTable
from loop.score.experts.ratings import Ratings
from loop.score.experts.strata import (
    Strata,
    StratumAgreement,
    agree_by_stratum,
    read_strata,
)
from loop.score.metrics.base import Direction
from loop.stats.correlation import correlate_columns
from loop.stats.dependent import MetricTest, compare_metrics
from loop.stats.intervals import Interval, clopper_pearson
from loop.stats.paired import holm

PERMUTATIONS = 10_000
"""Exchanges drawn to compare two columns, where not all are counted."""


class ColumnScore(NamedTuple):
    """One score of a judge, over the pairs that have it."""

    score: JudgeScore
    mean: float
    n: int
    agreement: ScoreAgreement | None
    """With the mean of the raters; None if fewer than two rated pairs have the score.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeColumn:
    """One judge with one engine."""

    key: str
    """Letter that stands for it where room is scarce."""

    prompt: str
    """Reference of the version, for example ``"green@v1"``."""

    engine: str
    run: str = ""
    failure: str = ""
    """Why there is no run; empty where there is one."""

    statuses: Mapping[Status, int]
    """Outcomes of the pairs, those of the first of several draws."""

    unparsed: Interval
    """Exact limits, 95 %, of the share of unreadable answers."""

    scores: tuple[ColumnScore, ...] = ()
    """Scores that at least one pair has, in the judge's order; empty without a
    readable answer."""

    chosen: str = ""
    """Name of the score that columns are compared by; empty without one."""

    bins: tuple[ScoreBin, ...] = ()
    """Distribution of that score."""

    errors: ErrorAgreement | None = None
    """Significant errors against the experts', with the bias curve; None where nobody
    marked errors, or no answer can be read."""

    cost: JudgeCost | None = None
    cut_off: int = 0
    """Answers that ended at the limit of tokens, which thoughts count towards."""

    strata: tuple[StratumAgreement, ...] = ()
    """Agreement of the chosen score within strata; empty where no file names any."""

    @property
    def pairs(self) -> int:
        """Pairs of the run."""
        return sum(self.statuses.values())

    @property
    def main(self) -> ColumnScore | None:
        """The score that columns are compared by."""
        return next((one for one in self.scores if one.score.name == self.chosen), None)


class ColumnComparison(NamedTuple):
    """Two columns on the pairs that both score."""

    first: str
    """Key of the column with the higher tau-b on these pairs."""

    second: str
    test: MetricTest
    """Difference of tau-b, first minus second, and its permutation test."""

    p_holm: float | None
    """Adjusted over all pairs of columns."""


class WithoutEffect(NamedTuple):
    """A judge with an engine for which levels of thinking change nothing."""

    prompt: str
    engine: str
    thinking: tuple[str, ...]
    """The levels; they have no separate column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeMatrix:
    """Judges side by side on one cohort of rated pairs."""

    cohort: str
    synthetic: bool
    pairs: int
    against: str
    """Version of the ratings, for example ``"rp:ratings1"``."""

    raters: int
    scale: str
    unit: str
    """What was resampled: ``"patient"`` or ``"reference"``."""

    units: int
    ceiling: float | None
    """Mean tau-b of two raters; None for one rater, or where one is undefined."""

    columns: tuple[JudgeColumn, ...]
    comparisons: tuple[ColumnComparison, ...]
    strata: str = ""
    """Name of the file of strata; empty without one."""

    without_effect: tuple[WithoutEffect, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether a column has no run."""
        return any(one.failure for one in self.columns)

    @property
    def score_names(self) -> tuple[tuple[str, str], ...]:
        """Name and title of every score that a column has, in order."""
        return tuple(
            dict.fromkeys(
                (one.score.name, one.score.title)
                for column in self.columns
                for one in column.scores
            )
        )


def judging_requests(
    workspace: WorkspacePaths, request: MatrixRequest
) -> tuple[MatrixRequest, ...]:
    """Return a request for each of the judges that a request names, split at commas.

    Empty if it names one prompt that is not a judge.

    Raises
    ------
    DataError
        A prompt does not exist, is named twice, or is one of several and not a judge.
    """
    names = [name.strip() for name in request.prompt.split(",") if name.strip()]
    versions = [read_version(workspace, name) for name in names]
    others = [one.ref for one in versions if task_of(one) is not PromptTask.JUDGE]
    if others and len(versions) == 1:
        return ()
    if others:
        raise DataError(
            f"{others[0]} is not a judge, and only judges are compared with each "
            "other. Leave it out, or name it alone."
        )
    refs = [one.ref for one in versions]
    twice = next((one for one in refs if refs.count(one) > 1), None)
    if twice is not None:
        raise DataError(f"{twice} is named twice. Name each judge once.")
    return tuple(request._replace(prompt=one) for one in refs)


def are_judge_runs(workspace: WorkspacePaths, asked: Sequence[EngineRun]) -> bool:
    """Whether the runs are of judges: all or none of them.

    Raises
    ------
    DataError
        Some are of judges and some are not.
    """
    found = [is_judge_run(find_run(workspace, one.run)) for one in asked if one.run]
    if any(found) and not all(found):
        raise DataError(
            "some of the runs are of judges and some of extractors. Compare them "
            "separately."
        )
    return any(found)


def check_judging(
    workspace: WorkspacePaths, task: Task, named: Sequence[EngineRun]
) -> None:
    """Refuse what could not be shown in one matrix, before anything is asked.

    Raises
    ------
    DataError
        Nobody rated the cohort, or a run has other pairs.
    SealedError
        The cohort is a holdout.
    """
    rated_points(read_ratings_of(workspace, task.spec.cohort))
    runs = [find_run(workspace, one.run) for one in named if one.run]
    for run in runs:
        theirs = (run.spec.cohort_digest, run.spec.limit)
        if theirs != (task.spec.cohort_digest, task.spec.limit):
            raise DataError(
                f"run {run.id} ({run.spec.prompt} on {run.spec.cohort}) has other "
                f"pairs than {task.spec.prompt} on {task.spec.cohort}. Leave it out, "
                "or run it again on the same pairs."
            )


class JudgeRun(NamedTuple):
    """How one judge with one engine ended: a run, or a failure."""

    prompt: str
    engine: str
    run: str | None
    failure: str = ""
    thinking: str = DEFAULT_THINKING
    no_effect: bool = False
    """Whether this level of thinking changes nothing, so that nothing was asked."""

    @property
    def asked(self) -> str:
        """Engine, with the level of thinking where one was named."""
        return asked_engine(self.engine, self.thinking)


def asked_engine(engine: str, thinking: str) -> str:
    """Return an engine with its level of thinking, as a column is headed.

    Examples
    --------
    >>> asked_engine("rules", "default"), asked_engine("vllm:m", "low")
    ('rules', 'vllm:m, thinking low')
    """
    return engine if thinking == DEFAULT_THINKING else f"{engine}, thinking {thinking}"


def sweep_thinking(
    requests: Sequence[MatrixRequest], levels: Sequence[str]
) -> tuple[MatrixRequest, ...]:
    """Return requests that ask each judge at every level of thinking, too.

    What is no language model is asked once. All are asked as the server does it by
    itself first: a level without an effect shares that column.

    Raises
    ------
    DataError
        Nothing is asked, or no engine is a language model.
    """
    if not requests:
        raise DataError(
            "--thinking is for engines that are asked, and runs were only named. Name "
            "an engine with --engine, or leave it out."
        )
    found = []
    for request in requests:
        models = [one for one in request.engines if find_model(one) is not None]
        if not models:
            raise DataError(
                "--thinking is for language models, and none is among the engines. "
                "Name one with --engine, or leave it out."
            )
        found.append(request)
        for level in dict.fromkeys(levels):
            if level != DEFAULT_THINKING:
                asking = replace(request.asking, thinking=level)
                found.append(request._replace(engines=models, asking=asking))
    return tuple(found)


def as_judge_runs(
    workspace: WorkspacePaths,
    requests: Sequence[MatrixRequest],
    asked: Sequence[EngineRun],
    named: Sequence[EngineRun] = (),
) -> list[JudgeRun]:
    """Return the runs, each with its judge.

    Parameters
    ----------
    asked
        Results of `requests`: every engine of the first, then of the second.
    named
        Further runs, finished before.
    """
    prompts = [each.prompt for each in requests for _ in each.engines]
    found = [JudgeRun(prompt, *one) for prompt, one in zip(prompts, asked, strict=True)]
    for one in named:
        record = find_run(workspace, one.run or "")
        found.append(JudgeRun(record.spec.prompt, one.engine, record.id))
    return found


def read_judge_matrix(
    workspace: WorkspacePaths,
    asked: Sequence[JudgeRun],
    *,
    strata: Path | None = None,
) -> JudgeMatrix:
    """Return judges' runs side by side, compared with the newest ratings.

    If a run has several draws, the first is used. Nothing is recorded.

    Parameters
    ----------
    asked
        One for each column, in order; one without a run keeps its column.
    strata
        File with columns ``id`` and, for example, ``modality``: agreement is shown
        within each stratum, too.

    Raises
    ------
    DataError
        A run does not exist or has other pairs, two are the same, a version was
        edited, nobody rated the cohort, or the strata cannot be read.
    SealedError
        The cohort is a holdout.
    EngineError
        No judge has a run.
    StoreError
        The store cannot be read.
    """
    without_effect = _without_effect(asked)
    asked = [one for one in asked if not one.no_effect]
    records = [
        find_draws(workspace, find_run(workspace, one.run))[0] if one.run else None
        for one in asked
    ]
    finished = [one for one in records if one is not None]
    if not finished:
        told = "; ".join(f"{one.prompt}, {one.engine}: {one.failure}" for one in asked)
        raise EngineError(f"no judge has a run. {told}")
    _check_same(finished)
    cohort = read_cohort(workspace, finished[0].spec.cohort)
    scene = _read_scene(workspace, cohort, finished[0].spec.limit, strata)
    columns, compared = [], []
    with open_store(workspace) as store:
        prices = read_config(workspace).prices
        pairs = zip(asked, records, strict=True)
        for key, (one, record) in zip(_keys(len(asked)), pairs, strict=True):
            if record is None:
                columns.append(_without_run(key, one))
                compared.append(np.full(len(scene.case_ids), np.nan))
                continue
            version = version_of(workspace, record)
            measured = _measure(store, record, version, scene)
            cost = run_cost(store, record, prices)
            column = _column(key, one, record, measured, cost)
            columns.append(
                replace(column, cut_off=count_problem(store, record, CUT_OFF["length"]))
            )
            compared.append(measured.directed)
    return JudgeMatrix(
        cohort=cohort.name,
        synthetic=cohort.synthetic,
        pairs=len(scene.case_ids),
        against=scene.against,
        raters=len(scene.points.raters),
        scale=scene.scale,
        unit="patient" if cohort.patients_known else "reference",
        units=len(np.unique(scene.units)),
        ceiling=_ceiling(scene),
        columns=tuple(columns),
        comparisons=_compare(columns, np.column_stack(compared), scene),
        strata="" if scene.strata is None else scene.strata.source,
        without_effect=without_effect,
    )


def _without_effect(
    asked: Sequence[JudgeRun],
) -> tuple[WithoutEffect, ...]:
    """Return the levels of thinking that change nothing, by judge and engine."""
    found: dict[tuple[str, str], list[str]] = {}
    for one in asked:
        if one.no_effect:
            found.setdefault((one.prompt, one.engine), []).append(one.thinking)
    return tuple(WithoutEffect(*key, tuple(levels)) for key, levels in found.items())


def _keys(number: int) -> list[str]:
    letters = [*ascii_uppercase, *(a + b for a in "AB" for b in ascii_uppercase)]
    if number > len(letters):
        raise DataError(
            f"a matrix shows {len(letters)} columns at most, and {number} were named. "
            "Name fewer judges or engines."
        )
    return letters[:number]


def _check_same(runs: Sequence[RunRecord]) -> None:
    first, ids = runs[0], [one.id for one in runs]
    for run in runs:
        if ids.count(run.id) > 1:
            raise DataError(
                f"run {run.id} fills two columns: it is named twice, or two runs are "
                "draws of it. Name it once."
            )
        if (run.spec.cohort_digest, run.spec.limit) != (
            first.spec.cohort_digest,
            first.spec.limit,
        ):
            raise DataError(
                f"runs {first.id} ({first.spec.cohort}) and {run.id} "
                f"({run.spec.cohort}) have different pairs. Compare runs of one "
                "cohort, all of it or the same part."
            )


class _Scene(NamedTuple):
    """What every column is compared with."""

    case_ids: tuple[str, ...]
    points: Ratings
    consensus: NDArray[np.float64]
    units: NDArray[np.intp]
    patients: dict[str, str] | None
    experts: ErrorTable | None
    strata: Strata | None
    against: str
    scale: str
    score: JudgeScore
    """The one that the protocol claims, else GREEN."""


def _read_scene(
    workspace: WorkspacePaths, cohort: Cohort, limit: int | None, strata: Path | None
) -> _Scene:
    given = read_ratings_of(workspace, cohort.name)
    all_points = rated_points(given)
    cases = cohort.cases[:limit]
    ids = tuple(one.case_id for one in cases)
    points = Ratings(
        ids=all_points.ids[:limit],
        systems=all_points.systems[:limit],
        raters=all_points.raters,
        scores=all_points.scores[:limit],
        scale=all_points.scale,
        against=all_points.against,
    )
    units = np.array([one.patient or one.reference_id for one in cases])
    experts = expert_table(workspace, given)
    rules = read_protocol(workspace).judging
    known = cohort.patients_known
    return _Scene(
        case_ids=ids,
        points=points,
        consensus=points.consensus,
        units=np.unique(units, return_inverse=True)[1],
        patients={one.case_id: one.patient for one in cases} if known else None,
        experts=None if experts is None else experts.rows([(one, "") for one in ids]),
        strata=None if strata is None else read_strata(strata, ids),
        against=given.ref,
        scale=given.points().scale.words,
        score=GREEN if rules is None else find_score(rules.score),
    )


def _ceiling(scene: _Scene) -> float | None:
    """Return the mean tau-b of two raters."""
    pairs = list(combinations(range(len(scene.points.raters)), 2))
    return mean_tau_b(correlate_columns(scene.points.scores, pairs, resamples=1))


class _ColumnMeasures(NamedTuple):
    statuses: dict[Status, int]
    scores: tuple[ColumnScore, ...]
    chosen: str
    directed: NDArray[np.float64]
    """The chosen score, turned so that more is better; NaN where there is none."""

    bins: tuple[ScoreBin, ...]
    errors: ErrorAgreement | None
    strata: tuple[StratumAgreement, ...]


def _measure(
    store: Store, run: RunRecord, version: PromptVersion, scene: _Scene
) -> _ColumnMeasures:
    counts = run_counts(store, run, version)
    own_scores = scores_of(get_contract(version.contract))
    known = {
        one.score.name: one
        for one in score_agreement(own_scores, counts, scene.points, scene.units)
    }
    scores, values = [], {}
    for score in own_scores:
        own = score_counts(counts, score, EMPTY)
        there = own[~np.isnan(own)]
        if there.size:
            values[score.name] = own
            agreement = known.get(score.name)
            scores.append(
                ColumnScore(score, float(there.mean()), there.size, agreement)
            )
    wanted = scene.score.name
    chosen = next((one for one in scores if one.score.name == wanted), None)
    chosen = chosen or next(iter(scores), None)
    directed = np.full(len(scene.case_ids), np.nan)
    bins: tuple[ScoreBin, ...] = ()
    if chosen is not None:
        own = values[chosen.score.name]
        bins = score_bins(own, chosen.score.low, chosen.score.high)
        directed = -own if chosen.score.direction is Direction.LOWER else own
    within: tuple[StratumAgreement, ...] = ()
    if scene.strata is not None:
        within = agree_by_stratum(
            directed,
            scene.consensus,
            scene.strata,
            units=scene.units,
            resamples=RESAMPLES,
        )
    return _ColumnMeasures(
        statuses={one: counts.count(one) for one in Status},
        scores=tuple(scores),
        chosen="" if chosen is None else chosen.score.name,
        directed=directed,
        bins=bins,
        errors=_errors(counts, version, scene),
        strata=within,
    )


def _errors(
    counts: JudgeCounts, version: PromptVersion, scene: _Scene
) -> ErrorAgreement | None:
    """Return significant errors against the experts'; None if either side has none."""
    answered = counts.count(Status.ANSWERED)
    if scene.experts is None or not (answered and counts.categories):
        return None
    table = ErrorTable(
        keys=tuple((case, "") for case in scene.case_ids),
        raters=(version.ref,),
        categories=counts.categories,
        counts=counts.by_weight[:, None],
    )
    there = ~np.isnan(scene.experts.counts[:, :, 0, 0]).all(axis=1)
    if not (there & ~np.isnan(counts.significant[:, 0])).any():
        return None
    owners = scene.patients or {
        case: f"{unit:012}"
        for case, unit in zip(scene.case_ids, scene.units, strict=True)
    }
    return agree_on_errors(
        table,
        scene.experts,
        name=version.ref,
        all_errors=False,
        patients=owners,
        resamples=RESAMPLES,
    )


def _column(
    key: str, one: JudgeRun, run: RunRecord, found: _ColumnMeasures, cost: JudgeCost
) -> JudgeColumn:
    unread = found.statuses[Status.UNPARSED]
    return JudgeColumn(
        key=key,
        prompt=run.spec.prompt,
        engine=asked_engine(
            one.engine, str(run.spec.parameters.get("thinking", DEFAULT_THINKING))
        ),
        run=run.id,
        statuses=found.statuses,
        unparsed=clopper_pearson(unread, sum(found.statuses.values())),
        scores=found.scores,
        chosen=found.chosen,
        bins=found.bins,
        errors=found.errors,
        cost=cost,
        strata=found.strata,
    )


def _without_run(key: str, one: JudgeRun) -> JudgeColumn:
    return JudgeColumn(
        key=key,
        prompt=one.prompt,
        engine=one.asked,
        failure=one.failure,
        statuses=dict.fromkeys(Status, 0),
        unparsed=clopper_pearson(0, 0),
    )


def _compare(
    columns: Sequence[JudgeColumn], table: NDArray[np.float64], scene: _Scene
) -> tuple[ColumnComparison, ...]:
    """Return the comparison of every two columns that have a score."""
    there = [place for place, one in enumerate(columns) if one.chosen]
    pairs = list(combinations(there, 2))
    if not pairs:
        return ()
    tests = compare_metrics(
        table,
        scene.consensus,
        scene.units,
        pairs=pairs,
        permutations=PERMUTATIONS,
    )
    tested = [one.p for one in tests if one.p is not None]
    adjusted = iter(holm(tested))
    found = []
    for (first, second), test in zip(pairs, tests, strict=True):
        p_holm = None if test.p is None else next(adjusted)
        if test.difference is not None and test.difference < 0:
            first, second = second, first
            test = test._replace(difference=-test.difference)
        found.append(
            ColumnComparison(columns[first].key, columns[second].key, test, p_holm)
        )
    return tuple(found)
