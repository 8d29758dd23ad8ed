"""Experts' points beside the scores: per system, among raters, and against metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError
from loop.score.experts.agreement import RaterAgreement, rater_agreement
from loop.score.experts.ratings import Ratings
from loop.score.metric import Direction
from loop.score.metrics.sheet import MetricResult, ScoreSheet
from loop.stats.correlation import Correlations, correlate

RESAMPLES = 2_000
"""Of every interval here; `ranloop meta-eval` goes deeper."""

_LEAST = 2
"""Candidates that a correlation needs."""


class MeanPoints(NamedTuple):
    """What experts gave one system."""

    system: str
    mean: float | None
    """Mean over candidates of the mean of their raters; None where none is rated."""

    n: int
    """Candidates that somebody rated."""


class MetricAgainstExperts(NamedTuple):
    """One metric against the mean of the raters."""

    name: str
    title: str
    negated: bool
    """Whether lower is better, so that its values were negated first."""

    found: Correlations


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """Ratings joined with the scores."""

    points: tuple[MeanPoints, ...]
    agreement: RaterAgreement
    metrics: tuple[MetricAgainstExperts, ...]
    raters: tuple[str, ...]
    scale: tuple[float, float]
    rated: int
    """Candidates with scores and a rating."""

    unrated: int
    """Candidates with scores that nobody rated."""

    unscored: int
    """Rated candidates that have no scores; they count only in the agreement."""


def describe_experts(
    sheet: ScoreSheet,
    ratings: Ratings,
    *,
    patients: Mapping[str, str] | None = None,
    seed: int = 0,
) -> Experts:
    """Return what experts say of the systems, of each other and of the metrics.

    Parameters
    ----------
    sheet
        Scores of every candidate.
    ratings
        Points by case id and system; without systems they are of the only one there.
    patients
        Patient by case id, whose candidates are resampled together; None: those of a
        case are.
    seed
        Of the bootstrap.

    Raises
    ------
    DataError
        No rated candidate is among those that were scored.
    """
    rated = _with_system(ratings, sheet)
    keys = [(case, name) for name in sheet.systems for case in sheet.case_ids[name]]
    consensus = dict(zip(rated.keys, rated.consensus.tolist(), strict=True))
    points = np.array([consensus.get(key, np.nan) for key in keys])
    if np.isnan(points).all():
        raise DataError(
            f"no rated candidate is among those that were scored: ratings are of "
            f"{_shown(rated.keys)}, scores of {_shown(keys)}. Give the ratings the "
            "ids and system names of the candidates."
        )
    owners = patients if patients and set(rated.ids) <= set(patients) else None
    units = np.array([owners[case] if owners else case for case, _ in keys])
    given = set(keys)
    return Experts(
        points=tuple(_mean(name, keys, points) for name in sheet.systems),
        agreement=rater_agreement(
            rated, patients=owners, resamples=RESAMPLES, seed=seed
        ),
        metrics=tuple(_agreements(sheet, points, units, seed)),
        raters=rated.raters,
        scale=rated.scale,
        rated=int((~np.isnan(points)).sum()),
        unrated=int(np.isnan(points).sum()),
        unscored=sum(key not in given for key in rated.keys),
    )


def _with_system(ratings: Ratings, sheet: ScoreSheet) -> Ratings:
    if any(ratings.systems) or len(sheet.systems) != 1:
        return ratings
    return replace(ratings, systems=sheet.systems * len(ratings.ids))


def _shown(keys: Sequence[tuple[str, str]]) -> str:
    case, system = keys[0]
    return f"{case!r} of {system!r}"


def _mean(
    name: str, keys: Sequence[tuple[str, str]], points: NDArray[np.float64]
) -> MeanPoints:
    mine = np.array([system == name for _, system in keys])
    given = points[mine & ~np.isnan(points)]
    return MeanPoints(name, float(given.mean()) if given.size else None, given.size)


def _agreements(
    sheet: ScoreSheet, points: NDArray[np.float64], units: NDArray[np.str_], seed: int
) -> list[MetricAgainstExperts]:
    """Return every metric that grades against the mean of the raters, best first."""
    by_metric: dict[str, list[MetricResult]] = {}
    for one in sheet.results:
        if one.metric.direction is not Direction.NEITHER:
            by_metric.setdefault(one.metric.name, []).append(one)
    found = [
        agreed
        for results in by_metric.values()
        if len(results) == len(sheet.systems)
        and (agreed := _agreement(results, points, units, seed))
    ]
    return sorted(found, key=_order)


def _agreement(
    results: Sequence[MetricResult],
    points: NDArray[np.float64],
    units: NDArray[np.str_],
    seed: int,
) -> MetricAgainstExperts | None:
    """Return how one metric agrees; None where fewer than two candidates have both."""
    metric = results[0].metric
    lower = metric.direction is Direction.LOWER
    values = np.concatenate([one.per_case for one in results]) * (-1 if lower else 1)
    both = ~np.isnan(values) & ~np.isnan(points)
    if both.sum() < _LEAST:
        return None
    found = correlate(
        values[both], points[both], units[both], resamples=RESAMPLES, seed=seed
    )
    return MetricAgainstExperts(metric.name, metric.title, lower, found)


def _order(one: MetricAgainstExperts) -> tuple[float, str]:
    tau = one.found.tau_b.value
    return (inf if tau is None else -tau, one.name)
