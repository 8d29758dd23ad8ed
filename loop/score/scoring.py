"""From joined and graded pairs to every number that is reported of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from string import ascii_uppercase
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError
from loop.core.safe_text import quoted
from loop.labels.taxonomy import NO_FINDING, Taxonomy
from loop.run.execute import Problem
from loop.score.bias import SensitivityPanel, panel
from loop.score.counting import Confused, confusions
from loop.score.experts.ratings import RaterAgreement, Ratings, rater_agreement
from loop.score.metrics.base import Direction, Metric, MetricOptions
from loop.score.metrics.score_sheet import (
    MetricCorrelations,
    MetricResult,
    ScoreSheet,
    correlation_matrix,
    run_metrics,
)
from loop.score.ran import score
from loop.score.records import (
    CaseScore,
    Conventions,
    Graded,
    Joined,
    RanScore,
    SystemDifference,
    SystemScore,
)
from loop.stats.confusion import Confusion
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
    return f"{quoted(case)} of {quoted(system)}"


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


WORST = 5
"""Most cases named as examples of one system."""


class Sources(NamedTuple):
    """Where the pairs come from."""

    files: tuple[tuple[str, str], ...]
    """Name and sha256 of each file."""

    empty_references: tuple[str, ...]
    languages: Mapping[str, int]
    """Cases by language, the commonest first."""

    repeated_references: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What was remarkable when they were joined, as sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreDocument:
    """A score with everything that is told beside it."""

    score: RanScore
    names: Mapping[str, str]
    """Published name of every label id."""

    sheet: ScoreSheet
    sources: Sources
    confused: tuple[Confused, ...] = ()
    """Most common confusions of each system."""

    correlations: MetricCorrelations | None = None
    """Between metrics of `sheet`; None for fewer than two different ones."""

    twins: Mapping[str, str] = field(default_factory=dict)
    """Metrics that are not among `correlations`: every candidate has the same value
    of the one they are mapped to."""

    outcomes: Mapping[str, int] | None = None
    """What became of the distinct texts; None for given labels."""

    panel: SensitivityPanel | None = None
    """The same pairs read by a second extractor."""

    experts: Experts | None = None
    """Ratings of some of the candidates."""

    problems: tuple[Problem, ...] = ()
    """Why texts have no answer; the examples are case ids."""

    remarks: tuple[str, ...] = ()
    """What a reader must know besides, as sentences."""

    @property
    def keys(self) -> Mapping[str, str]:
        """A letter for every system, best first."""
        return {one.system: key(n) for n, one in enumerate(self.score.systems)}

    @property
    def differences(self) -> tuple[SystemDifference, ...]:
        """Every pair of systems, in the order of the ranking."""
        place = {one.system: n for n, one in enumerate(self.score.systems)}
        pairs = self.score.differences
        return tuple(sorted(pairs, key=lambda d: (place[d.better], place[d.worse])))


def describe_sources(joined: Joined) -> Sources:
    """Return where `joined` comes from, without its texts."""
    return Sources(
        joined.files,
        joined.empty_references,
        dict(Counter(joined.languages).most_common()),
        joined.repeated_references,
        joined.notes,
    )


def key(number: int) -> str:
    """Return the letter of system `number`, from 0: A to Z, then A2 to Z2.

    Examples
    --------
    >>> key(0), key(25), key(26)
    ('A', 'Z', 'A2')
    """
    turn, letter = divmod(number, len(ascii_uppercase))
    return ascii_uppercase[letter] + (str(turn + 1) if turn else "")


def worst_cases(score: RanScore, system: SystemScore) -> tuple[CaseScore, ...]:
    """Return the cases of one system with the most errors; none without an error."""
    wrong = [
        case for case in score.cases if case.system == system.system and case.errors
    ]
    wrong.sort(key=lambda case: (-case.errors, case.f1 or 0.0, case.case_id))
    return tuple(wrong[:WORST])


def metric_rows(
    document: ScoreDocument,
) -> Iterator[tuple[Metric, tuple[MetricResult | None, ...]]]:
    """Yield every metric with its result for each system, best system first."""
    sheet = document.sheet
    found = {(one.metric.name, one.system): one for one in sheet.results}
    metrics = {one.metric.name: one.metric for one in sheet.results}
    for name, metric in metrics.items():
        yield (
            metric,
            tuple(found.get((name, one.system)) for one in document.score.systems),
        )


LABEL_SCORES = ("ran_score", "ran_errors")
"""Metrics that are there whatever was asked for: they come with the labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """How pairs are counted."""

    conventions: Conventions = field(default_factory=Conventions)
    metrics: tuple[str, ...] = ("all",)
    """Names or families; empty for the label scores alone."""

    bertscore_model: Path | None = None
    """Folder of a local encoder, for BERTScore."""

    resamples: int = 10_000
    permutations: int = 10_000
    seed: int = 0
    confidence: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPairs:
    """What was read of the pairs."""

    joined: Joined
    graded: Graded
    second: Graded | None = None
    """The same pairs read by a second extractor."""

    errors: Mapping[str, Confusion] | None = None
    """The extractor's own errors by label; None for no correction."""

    ratings: Ratings | None = None
    """Experts' points for some of the candidates."""

    remarks: tuple[str, ...] = ()


def build_document(
    read: ReadPairs, taxonomy: Taxonomy, counting: Counting
) -> ScoreDocument:
    """Return everything that is told of the pairs.

    Raises
    ------
    DataError
        A metric is unknown, or the ratings are of no candidate here.
    """
    joined, graded = read.joined, read.graded
    found = _rank(graded, joined, counting, read.errors)
    sheet = _with_interval(_measure(read, taxonomy, counting), found)
    second = None if read.second is None else _rank(read.second, joined, counting)
    twins = find_twins(sheet)
    between = _without(correlation_matrix(sheet), twins)
    return ScoreDocument(
        score=found,
        names={label.id: label.name for label in taxonomy.labels},
        sheet=sheet,
        sources=describe_sources(joined),
        confused=confusions(
            findings_of(graded), counting.conventions, coverage=joined.coverage
        ),
        correlations=between if len(between.metrics) > 1 else None,
        twins=twins,
        outcomes=graded.outcomes,
        panel=None if second is None else panel(found, second),
        experts=_experts(sheet, read, counting.seed),
        problems=graded.problems,
        remarks=read.remarks,
    )


def findings_of(graded: Graded) -> Graded:
    """Return `graded` without "No Finding".

    It is missed wherever something is invented in a clear case, and invented wherever
    everything is missed: that says nothing of what is taken for what.
    """
    kept = [place for place, name in enumerate(graded.labels) if name != NO_FINDING]
    return replace(
        graded,
        labels=tuple(graded.labels[place] for place in kept),
        reference=graded.reference[:, kept],
        candidates=graded.candidates[:, :, kept],
    )


def _experts(sheet: ScoreSheet, read: ReadPairs, seed: int) -> Experts | None:
    if read.ratings is None:
        return None
    ids, patients = read.joined.case_ids, read.joined.patients
    owners = None if patients is None else dict(zip(ids, patients, strict=True))
    return describe_experts(sheet, read.ratings, patients=owners, seed=seed)


def find_twins(sheet: ScoreSheet) -> dict[str, str]:
    """Return the metrics whose every value is that of an earlier one, mapped to it.

    Macro and micro averages of one thing differ for systems, not for single cases.
    """
    values: dict[str, list[NDArray[np.float64]]] = {}
    for one in sheet.results:
        values.setdefault(one.metric.name, []).append(one.per_case)
    first: dict[bytes, str] = {}
    twins = {}
    for name, columns in values.items():
        seen = first.setdefault(np.concatenate(columns).tobytes(), name)
        if seen != name:
            twins[name] = seen
    return twins


def _with_interval(sheet: ScoreSheet, found: RanScore) -> ScoreSheet:
    """Return `sheet` with the Ran Scores of the ranking: one number, one interval.

    The ranking draws the same cases for all systems, a metric those of each.
    """
    ranked = {one.system: one.ran_score for one in found.systems}
    results = tuple(
        one._replace(estimate=ranked[one.system])
        if one.metric.name == LABEL_SCORES[0]
        else one
        for one in sheet.results
    )
    return replace(sheet, results=results)


def _without(found: MetricCorrelations, twins: Mapping[str, str]) -> MetricCorrelations:
    kept = [place for place, name in enumerate(found.metrics) if name not in twins]
    return MetricCorrelations(
        tuple(found.metrics[place] for place in kept),
        found.tau_b[np.ix_(kept, kept)],
        found.n[np.ix_(kept, kept)],
    )


def _rank(
    graded: Graded,
    joined: Joined,
    counting: Counting,
    errors: Mapping[str, Confusion] | None = None,
) -> RanScore:
    return score(
        graded,
        counting.conventions,
        coverage=joined.coverage,
        errors=errors,
        resamples=counting.resamples,
        permutations=counting.permutations,
        seed=counting.seed,
        confidence=counting.confidence,
    )


def _measure(read: ReadPairs, taxonomy: Taxonomy, counting: Counting) -> ScoreSheet:
    conventions = counting.conventions
    options = MetricOptions(
        bertscore_model=counting.bertscore_model,
        uncertain=conventions.uncertain,
        zero_division=conventions.zero_division,
        reading=conventions.reading,
    )
    return run_metrics(
        read.joined,
        read.graded,
        taxonomy,
        (*LABEL_SCORES, *counting.metrics),
        options,
        resamples=counting.resamples,
        seed=counting.seed,
        confidence=counting.confidence,
    )
