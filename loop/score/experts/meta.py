"""How well each metric agrees with the raters, and which of two agrees better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.digests import digest_bytes
from loop.core.errors import DataError
from loop.core.safe_text import quoted
from loop.score.experts.error_agreement import ErrorAgreement, agree_with_and_without
from loop.score.experts.error_counts import CountAgreement, count_agreement
from loop.score.experts.error_tables import ErrorTable
from loop.score.experts.metric_scores import (
    Key,
    ScoredMetric,
    ScoreTable,
    drop_descriptions,
)
from loop.score.experts.radpref import RadPref
from loop.score.experts.ratings import (
    CandidatePairs,
    RaterAgreement,
    Ratings,
    candidate_pairs,
    rater_agreement,
    unit_codes,
)
from loop.score.experts.strata import (
    StratumAgreement,
    agree_by_stratum,
    read_strata,
)
from loop.stats.correlation import (
    Correlations,
    Preference,
    correlate_columns,
    is_shown,
    kendall_p,
    preference_accuracies,
)
from loop.stats.dependent import (
    MetricTest,
    WilliamsTest,
    compare_metrics,
    williams,
)
from loop.stats.paired import holm
from loop.stats.resampling import Resampling

CONFIDENCE = 0.95
"""Level of every interval."""


class MetricAgreement(NamedTuple):
    """One metric against the raters."""

    metric: ScoredMetric
    same: tuple[ScoredMetric, ...]
    """Metrics with the same value for every candidate; they are not listed again."""

    undefined: int
    """Candidates it says nothing about; they are in none of its numbers."""

    consensus: Correlations
    """With the mean of the raters."""

    raters: tuple[Correlations, ...]
    """With each rater alone, in the order of `MetaEvaluation.raters`."""

    preference: Preference
    """Which of two candidates of a case is better, by the mean of the raters."""

    unanimous: Preference
    """The same on the pairs where all raters prefer the same one."""

    p: float | None = None
    """Of Kendall's test that tau-b with the mean is 0; see
    `loop.stats.correlation.kendall_p`."""

    @property
    def shown(self) -> bool:
        """Whether tau-b is shown to differ from 0, by its test and its interval."""
        return is_shown(self.consensus, self.p)

    @property
    def tau_b_each(self) -> float | None:
        """Mean tau-b with one rater; None unless it is defined for every one."""
        values = [one.tau_b.value for one in self.raters]
        defined = [value for value in values if value is not None]
        return sum(defined) / len(defined) if len(defined) == len(values) > 0 else None

    def is_suspicious(self, agreement: RaterAgreement) -> bool:
        """Return whether it agrees with one rater more than another rater does.

        A metric can hardly do that: it may have seen the ratings, or the raters it.
        """
        own, ceiling = self.tau_b_each, agreement.tau_b
        return own is not None and ceiling is not None and own > ceiling


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaEvaluation:
    """The result of `meta_evaluate`."""

    metrics: tuple[MetricAgreement, ...]
    """By tau-b with the mean of the raters, highest first; undefined ones last. Of
    metrics with the same values only the first is here."""

    comparisons: tuple[MetricComparison, ...]
    """Every two metrics, in the order of `metrics`."""

    agreement: RaterAgreement
    """Of the raters with each other, on all candidates they rated."""

    raters: tuple[str, ...]
    systems: tuple[str, ...]
    scale: tuple[float, float]
    candidates: int
    """Candidates with scores and ratings."""

    cases: int
    patients: int | None
    """Patients that were resampled; None: cases were."""

    pairs: int
    """Pairs of candidates of one case."""

    unanimous: int
    """Pairs of which all raters prefer the same."""

    tied: int
    """Pairs to which every rater gives the same points twice."""

    unscored: tuple[Key, ...]
    """Candidates that are rated and have no row of scores."""

    unrated: tuple[Key, ...]
    """Candidates with scores that nobody rated."""

    unavailable: tuple[tuple[str, str], ...]
    """Metrics that could not run, and why."""

    resamples: int
    permutations: int
    seed: int
    confidence: float = CONFIDENCE
    against: str = "points"
    """What the metrics were held against: points, or error counts, negated."""


class _Aligned(NamedTuple):
    """Scores and ratings of the same candidates, row by row."""

    scores: NDArray[np.float64]
    """Shape ``(n_candidates, n_metrics)``; higher is better."""

    ratings: Ratings
    units: NDArray[Any]
    unscored: tuple[Key, ...]
    unrated: tuple[Key, ...]


def meta_evaluate(
    scores: ScoreTable,
    ratings: Ratings,
    *,
    patients: Mapping[str, str] | None = None,
    resamples: int = 2000,
    permutations: int = 10_000,
    seed: int = 0,
) -> MetaEvaluation:
    """Return how well every metric agrees with the raters.

    A candidate is used where it has scores and a rating. What a metric leaves
    undefined is left out of its own numbers and counted; two metrics are compared on
    the candidates that both define.

    Metrics with the same value for every candidate count as one.

    Parameters
    ----------
    scores
        Values of the metrics; those of lower-is-better metrics are negated first.
    ratings
        Points of one rater or more. Without systems, those of the scores are taken if
        there is only one.
    patients
        Patient by case id: all their candidates are resampled together; None: those
        of a case are.
    resamples, permutations, seed
        Of the bootstrap and of the permutation tests.

    Returns
    -------
    MetaEvaluation
        Undefined numbers are None, with the reason in their note.

    Raises
    ------
    DataError
        No candidate has both scores and a rating; names one of each.

    References
    ----------
    Kendall MG. Biometrika 1945;33:239-251 (tau-b). Williams EJ. J R Stat Soc B
    1959;21:396-399. Holm S. Scand J Stat 1979;6:65-70. Resampling whole cases: Field
    CA, Welsh AH. J R Stat Soc B 2007;69:369-390.
    """
    same = _align(scores, ratings, patients)
    drawn = Resampling(
        units=same.units, resamples=resamples, seed=seed, confidence=CONFIDENCE
    )
    pairs = candidate_pairs(same.ratings, same.units)
    distinct = _distinct(same.scores)
    agreed = {
        places[0]: one
        for places, one in zip(
            distinct,
            _agreements(scores.metrics, distinct, same, pairs, drawn),
            strict=True,
        )
    }
    order = sorted(agreed, key=lambda place: _rank(agreed[place]))
    return MetaEvaluation(
        metrics=tuple(agreed[place] for place in order),
        comparisons=compare_all(
            [scores.metrics[place].name for place in order],
            same.scores[:, order],
            same.ratings.consensus,
            same.units,
            permutations=permutations,
            seed=seed,
        ),
        agreement=rater_agreement(
            ratings, patients=patients, resamples=resamples, seed=seed
        ),
        raters=ratings.raters,
        systems=tuple(sorted(set(same.ratings.systems))),
        scale=ratings.scale,
        candidates=len(same.ratings.ids),
        cases=len(set(same.ratings.ids)),
        patients=None if patients is None else len(np.unique(same.units)),
        pairs=len(pairs.rows),
        unanimous=int(pairs.unanimous.sum()),
        tied=int(pairs.tied.sum()),
        unscored=same.unscored,
        unrated=same.unrated,
        unavailable=scores.unavailable,
        resamples=resamples,
        permutations=permutations,
        seed=seed,
        against=ratings.against,
    )


def _align(
    scores: ScoreTable, ratings: Ratings, patients: Mapping[str, str] | None
) -> _Aligned:
    """Return the rows that both have, in the order of the ratings."""
    keys = _named(scores.keys, ratings.keys)
    rated = _named(ratings.keys, scores.keys)
    places = {key: place for place, key in enumerate(keys)}
    anyone = (~np.isnan(ratings.scores)).sum(axis=1) > 0
    both = [row for row, key in enumerate(rated) if key in places and anyone[row]]
    if not both:
        raise DataError(
            f"no candidate has both scores and a rating: scores are of {_shown(keys)}, "
            f"ratings of {_shown(rated)}. Give both files the same ids and systems."
        )
    wanted = {rated[row] for row, one in enumerate(anyone) if one}
    kept = Ratings(
        ids=tuple(rated[row][0] for row in both),
        systems=tuple(rated[row][1] for row in both),
        raters=ratings.raters,
        scores=ratings.scores[both],
        scale=ratings.scale,
        against=ratings.against,
    )
    return _Aligned(
        scores=scores.directed[[places[rated[row]] for row in both]],
        ratings=kept,
        units=unit_codes(kept.ids, patients),
        unscored=tuple(sorted(wanted - set(keys))),
        unrated=tuple(sorted(set(keys) - wanted)),
    )


def _named(keys: tuple[Key, ...], others: tuple[Key, ...]) -> tuple[Key, ...]:
    """Return `keys`; without systems, with the only system of the others."""
    names = sorted({system for _, system in others})
    if {system for _, system in keys} != {""} or len(names) != 1:
        return keys
    return tuple((case, names[0]) for case, _ in keys)


def _shown(keys: tuple[Key, ...]) -> str:
    case, system = keys[0]
    return f"case {quoted(case)}, system {quoted(system)}"


def _distinct(values: NDArray[np.float64]) -> list[list[int]]:
    """Return the columns, those with the same value in every row together."""
    found: dict[bytes, list[int]] = {}
    for place, column in enumerate(values.T):
        # Adding 0 makes one zero of both; every NaN gets the same bits.
        plain = np.where(np.isnan(column), np.nan, column.round(12) + 0.0)
        found.setdefault(plain.tobytes(), []).append(place)
    return list(found.values())


def _agreements(
    metrics: Sequence[ScoredMetric],
    distinct: Sequence[Sequence[int]],
    same: _Aligned,
    pairs: CandidatePairs,
    drawn: Resampling,
) -> list[MetricAgreement]:
    """Return the agreement of each distinct metric, all on the same resamples."""
    values = same.scores[:, [places[0] for places in distinct]]
    n = len(distinct)
    table = np.column_stack([values, same.ratings.consensus, same.ratings.scores])
    against = range(n, table.shape[1])
    found = correlate_columns(
        table, [(one, other) for one in range(n) for other in against], **drawn
    )
    both, chosen = values[pairs.rows], pairs.unanimous
    every = Resampling(**{**drawn, "units": pairs.units})
    some = Resampling(**{**drawn, "units": pairs.units[chosen]})
    preferred = preference_accuracies(both, pairs.consensus, **every)
    unanimous = preference_accuracies(both[chosen], pairs.consensus[chosen], **some)
    return [
        MetricAgreement(
            metric=metrics[places[0]],
            same=tuple(metrics[place] for place in places[1:]),
            undefined=int(np.isnan(values[:, row]).sum()),
            consensus=found[row * len(against)],
            raters=tuple(found[row * len(against) + 1 : (row + 1) * len(against)]),
            preference=preferred[row],
            unanimous=unanimous[row],
            p=kendall_p(values[:, row], same.ratings.consensus),
        )
        for row, places in enumerate(distinct)
    ]


def _rank(one: MetricAgreement) -> tuple[float, str]:
    value = one.consensus.tau_b.value
    return (np.inf if value is None else -value, one.metric.name)


class MetricStratum(NamedTuple):
    """One metric in one stratum."""

    metric: ScoredMetric
    agreement: StratumAgreement


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaDocument:
    """A meta-evaluation and where it comes from."""

    source: str
    """What was rated, for example ``"RadPref"`` or the name of a file."""

    result: MetaEvaluation
    counts: tuple[CountAgreement, ...] = ()
    """Of formulas on the raters' own counts; empty where there are none."""

    errors: tuple[ErrorAgreement, ...] = ()
    """A judge's error counts against the experts'; empty where there are none."""

    strata: tuple[MetricStratum, ...] = ()
    """Agreement with the mean of the raters within strata, metric by metric; empty
    where no file names any."""

    files: tuple[tuple[str, str], ...] = ()
    """Name and sha256 of each file that was read."""

    notes: tuple[str, ...] = ()
    """What else must be known, as sentences."""


def evaluate_metrics(
    scores: ScoreTable,
    rated: Ratings | RadPref,
    *,
    metrics: Sequence[str] = (),
    source: str = "",
    files: Sequence[Path] = (),
    resamples: int = 2000,
    permutations: int = 10_000,
    seed: int = 0,
) -> MetaDocument:
    """Return all that the verb ``meta-eval`` tells of metrics and experts.

    Parameters
    ----------
    scores
        As of `read_metric_scores` or `describe_scores`.
    rated
        Ratings; or RadPref, which also brings the errors that the raters marked, its
        patients and its files.
    metrics
        Metrics to show although they describe and do not grade.
    source
        What was rated; default ``"RadPref"`` or ``"ratings"``.
    files
        Files that were read, besides RadPref's own, to be named with their digests.
    resamples, permutations, seed
        Of the bootstrap and of the permutation tests.

    Raises
    ------
    DataError
        Scores and ratings have no candidate in common.
    """
    radpref = rated if isinstance(rated, RadPref) else None
    ratings = rated.ratings if isinstance(rated, RadPref) else rated
    patients = radpref.patients if radpref else None
    table, dropped = drop_descriptions(scores, metrics)
    result = meta_evaluate(
        table,
        ratings,
        patients=patients,
        resamples=resamples,
        permutations=permutations,
        seed=seed,
    )
    counts = radpref and count_agreement(
        ratings, radpref.counts, patients=patients, resamples=resamples, seed=seed
    )
    notes = [dropped] if dropped else []
    if ratings.repeated:
        notes.append(f"{ratings.repeated} repeated ratings were used once.")
    return MetaDocument(
        source=source or ("RadPref" if radpref else "ratings"),
        result=result,
        counts=counts or (),
        files=(
            *(radpref.files if radpref else ()),
            *((path.name, digest_bytes(path.read_bytes())) for path in files),
        ),
        notes=tuple(notes),
    )


def divide_strata(
    document: MetaDocument, scores: ScoreTable, rated: Ratings | RadPref, path: Path
) -> MetaDocument:
    """Return the document with the agreement of each metric within strata.

    Uses the document's number of resamples and seed.

    Parameters
    ----------
    document
        Result of `evaluate_metrics` for the same scores and ratings.
    path
        As for `read_strata`.

    Raises
    ------
    DataError
        The strata cannot be read, or name other cases.
    """
    if isinstance(rated, RadPref):
        same = _align(scores, rated.ratings, rated.patients)
    else:
        same = _align(scores, rated, None)
    strata = read_strata(path, same.ratings.ids)
    places = {one.name: place for place, one in enumerate(scores.metrics)}
    result = document.result
    found = tuple(
        MetricStratum(one.metric, within)
        for one in result.metrics
        for within in agree_by_stratum(
            same.scores[:, places[one.metric.name]],
            same.ratings.consensus,
            strata,
            units=same.units,
            resamples=result.resamples,
            seed=result.seed,
        )
    )
    file = (path.name, digest_bytes(path.read_bytes()))
    return replace(document, strata=found, files=(*document.files, file))


def hold_errors(
    document: MetaDocument,
    judge: ErrorTable,
    experts: ErrorTable,
    *,
    name: str,
    patients: Mapping[str, str] | None = None,
) -> MetaDocument:
    """Return the document with a judge's error counts held against the experts'.

    They are compared without, then with insignificant errors (where both sides say
    something about these), with the document's number of resamples and seed.

    Parameters
    ----------
    document
        As of `evaluate_metrics`.
    judge, experts, name, patients
        As of `agree_on_errors`.

    Raises
    ------
    DataError
        The two tables have no candidate in common.
    """
    result = document.result
    errors = agree_with_and_without(
        judge,
        experts,
        name=name,
        patients=patients,
        resamples=result.resamples,
        seed=result.seed,
    )
    return replace(document, errors=(*document.errors, *errors))


_LEAST = 4
"""Candidates without which Williams' test has no degree of freedom."""


class MetricComparison(NamedTuple):
    """Two metrics on the candidates that both say something about."""

    better: str
    """Name of the one with the higher tau-b on these candidates."""

    worse: str
    tau_b: MetricTest
    """Difference of their tau-b with the mean of the raters, by permutation."""

    p_tau_b: float | None
    """The same, Holm-adjusted for all pairs of metrics."""

    pearson: float | None
    """Difference of their Pearson correlations."""

    williams: WilliamsTest
    p_williams: float | None
    """Of Williams' test, Holm-adjusted for all pairs of metrics."""


def compare_all(
    names: Sequence[str],
    scores: NDArray[np.float64],
    consensus: NDArray[np.float64],
    units: NDArray[Any],
    *,
    permutations: int = 10_000,
    seed: int = 0,
) -> tuple[MetricComparison, ...]:
    """Return every two metrics compared on the candidates that both define.

    Parameters
    ----------
    names
        Metrics, in the order of the columns of `scores`.
    scores
        Higher is better, NaN undefined, shape ``(n_candidates, n_metrics)``.
    consensus
        Mean points of the raters, shape ``(n_candidates,)``.
    units
        Case or patient of each candidate; a permutation exchanges whole ones.
    permutations, seed
        Of the permutation tests.

    Returns
    -------
    tuple[MetricComparison, ...]
        Pairs in the order of `names`, p-values adjusted for all of them. Williams'
        test takes candidates for independent, and is None where Pearson's
        correlation is undefined or there are fewer than four candidates.

    References
    ----------
    Williams EJ. J R Stat Soc B 1959;21:396-399; Steiger JH. Psychol Bull
    1980;87:245-251. Holm S. Scand J Stat 1979;6:65-70.
    """
    pairs = list(combinations(range(len(names)), 2))
    tests = compare_metrics(
        scores, consensus, units, pairs=pairs, permutations=permutations, seed=seed
    )
    found = []
    for (one, other), test in zip(pairs, tests, strict=True):
        pearson, tested = _williams(scores[:, one], scores[:, other], consensus)
        both = MetricComparison(
            names[one], names[other], test, None, pearson, tested, None
        )
        found.append(_better_first(both))
    taus = _holm([one.tau_b.p for one in found])
    pearsons = _holm([one.williams.p for one in found])
    return tuple(
        one._replace(p_tau_b=tau, p_williams=pearson)
        for one, tau, pearson in zip(found, taus, pearsons, strict=True)
    )


def _williams(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    consensus: NDArray[np.float64],
) -> tuple[float | None, WilliamsTest]:
    """Return the difference of the Pearson correlations, and its test."""
    table = np.stack([consensus, first, second])
    table = table[:, (~np.isnan(table)).sum(axis=0) == len(table)]
    n = table.shape[1]
    if n < _LEAST or (table == table[:, :1]).all(axis=1).any():
        return None, WilliamsTest(None, max(n - 3, 0), None)
    r: NDArray[np.float64] = np.asarray(np.corrcoef(table))
    tested = williams(float(r[0, 1]), float(r[0, 2]), float(r[1, 2]), n)
    return float(r[0, 1] - r[0, 2]), tested


def _better_first(pair: MetricComparison) -> MetricComparison:
    """Return the pair with the metric of higher tau-b first."""
    difference, t = pair.tau_b.difference, pair.williams.t
    if difference is None or difference >= 0:
        return pair
    return pair._replace(
        better=pair.worse,
        worse=pair.better,
        tau_b=pair.tau_b._replace(difference=-difference),
        pearson=None if pair.pearson is None else -pair.pearson,
        williams=pair.williams._replace(t=None if t is None else -t),
    )


def _holm(ps: Sequence[float | None]) -> list[float | None]:
    """Return the defined ones adjusted, the others as they are."""
    adjusted = iter(holm([p for p in ps if p is not None]))
    return [None if p is None else next(adjusted) for p in ps]
