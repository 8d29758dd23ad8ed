"""A judge's run held against experts: errors, ratings, biases, repeats and cost.

Error counts are held against error counts and scores against ratings; each record says
what it was held against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.nouns import counted
from loop.judge.document import JudgeDocument
from loop.judge.repeats import (
    CopyTest,
    SelfConsistency,
    copy_test,
    self_consistency,
)
from loop.score.experts.error_agreement import ErrorAgreement, agree_with_and_without
from loop.score.experts.error_tables import ErrorTable
from loop.score.experts.ratings import Ratings, mean_given, unit_codes
from loop.score.metrics.base import Direction, Metric
from loop.stats.correlation import (
    Correlations,
    PartialTau,
    correlate_columns,
    partial_tau,
)
from loop.stats.resampling import Resampling


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCost:
    """What a judge's answers took in all; None where it is not known."""

    pairs: int
    """Of which every answer is known."""

    calls: int
    seconds: float | None = None
    """Of waiting for answers, added up over calls; of each call the answer that is
    kept."""

    tokens: int | None = None
    """Of these answers and their prompts."""

    price: float | None = None
    """Of every answer, also of an unreadable one that was asked for again."""

    currency: str = ""

    @property
    def seconds_per_pair(self) -> float | None:
        """Mean latency of a pair."""
        return self._per_pair(self.seconds)

    @property
    def tokens_per_pair(self) -> float | None:
        """Mean tokens of a pair, of prompts and answers."""
        return self._per_pair(self.tokens)

    @property
    def price_per_pair(self) -> float | None:
        """Mean price of a pair, in `currency`."""
        return self._per_pair(self.price)

    def _per_pair(self, total: float | None) -> float | None:
        return None if total is None or not self.pairs else total / self.pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTexts:
    """What a judge said of pairs of texts, in the order in which they were given."""

    keys: tuple[tuple[str, str], ...]
    """``(case id, system)`` of each pair, none twice."""

    references: Sequence[str]
    candidates: Sequence[str]
    scores: NDArray[np.float64]
    """Shape ``(n_draws, n_pairs)``; NaN where unanswered."""

    counts: NDArray[np.float64]
    """Significant and insignificant errors by category, shape ``(n_draws, n_pairs,
    n_categories, 2)``; NaN where unanswered."""

    categories: tuple[str, ...]
    lower: bool = False
    """Whether fewer is better."""

    best: float | None = None
    """Best possible score; None for 0 where fewer is better, else 1."""

    name: str = "judge"
    signature: str = ""

    def __post_init__(self) -> None:
        pairs = len(self.keys)
        if len(set(self.keys)) != pairs:
            raise ValueError("a pair of case id and system appears twice")
        if not len(self.references) == len(self.candidates) == pairs:
            raise ValueError(
                f"need texts of {pairs} pairs, got {len(self.references)} and "
                f"{len(self.candidates)}"
            )
        shape = (len(self.scores), pairs, len(self.categories), 2)
        if self.scores.shape != shape[:2] or self.counts.shape != shape:
            raise ValueError(
                f"need scores (n_draws, {pairs}) and counts (n_draws, {pairs}, "
                f"{len(self.categories)}, 2), got {self.scores.shape} and "
                f"{self.counts.shape}"
            )

    @property
    def directed(self) -> NDArray[np.float64]:
        """Scores of the first draw, higher better, shape ``(n_pairs,)``."""
        first: NDArray[np.float64] = self.scores[0]
        return -first if self.lower else first

    @property
    def table(self) -> ErrorTable:
        """Error counts of the first draw."""
        order = sorted(range(len(self.keys)), key=lambda place: self.keys[place])
        return ErrorTable(
            keys=tuple(self.keys[place] for place in order),
            raters=(self.name,),
            categories=self.categories,
            counts=self.counts[0][order][:, None],
            signature=self.signature,
        )


def judged_texts(
    draws: Sequence[JudgeDocument],
    references: Mapping[str, str],
    candidates: Mapping[str, Mapping[str, str]],
    *,
    score: str,
) -> JudgedTexts:
    """Return what a judge said of pairs of texts, as `evaluate_judge` needs it.

    Pairs are in the order of their case ids, the systems of a case together.

    Parameters
    ----------
    draws
        What the same judge said of the same pairs, once or repeatedly.
    references
        Text by case id.
    candidates
        Text by system and case id.
    score
        Name of one of the judge's scores, for example ``"green_green"``.

    Raises
    ------
    ValueError
        There is no draw, no such score, or the draws are not of the same pairs.
    """
    tables = [_pairs_of(document, score) for document in draws]
    if not tables or any(one.keys != tables[0].keys for one in tables):
        raise ValueError("need one draw or more, all of the same pairs")
    metric = tables[0].metric
    # By case: were a system after another, its place would be that of its quality.
    order = sorted(range(len(tables[0].keys)), key=lambda row: tables[0].keys[row])
    keys = tuple(tables[0].keys[row] for row in order)
    return JudgedTexts(
        keys=keys,
        references=[references[case] for case, _ in keys],
        candidates=[candidates[system][case] for case, system in keys],
        scores=np.stack([one.scores[order] for one in tables]),
        counts=np.stack([one.counts[order] for one in tables]),
        categories=draws[0].categories,
        lower=metric.direction is Direction.LOWER,
        best=metric.low if metric.direction is Direction.LOWER else metric.high,
        name=f"{draws[0].facts.ref} ({score})",
        signature=tables[0].signature,
    )


class _JudgedDraw(NamedTuple):
    keys: tuple[tuple[str, str], ...]
    scores: NDArray[np.float64]
    counts: NDArray[np.float64]
    metric: Metric
    signature: str


def _pairs_of(document: JudgeDocument, score: str) -> _JudgedDraw:
    """Return one draw, the systems one after another."""
    found = {
        one.system: one for one in document.sheet.results if one.metric.name == score
    }
    if not found:
        names = ", ".join(metric.name for metric in document.sheet.metrics)
        raise ValueError(f"there is no score {score!r}: name one of {names}")
    first = next(iter(found.values()))
    return _JudgedDraw(
        keys=tuple(
            (case, one.system) for one in document.systems for case in one.case_ids
        ),
        scores=np.concatenate(
            [
                # A score that could not be made for one system is undefined there.
                found[one.system].per_case
                if one.system in found
                else np.full(len(one.case_ids), np.nan)
                for one in document.systems
            ]
        ),
        counts=np.concatenate(
            [one.answers.counts.by_weight for one in document.systems]
        ),
        metric=first.metric,
        signature=first.signature,
    )


class RatingAgreement(NamedTuple):
    """A judge's scores against experts' ratings."""

    against: str
    """What the scores were held against."""

    consensus: Correlations
    """With the mean of the raters."""

    each: tuple[Correlations, ...]
    """With each rater alone."""

    pairs: tuple[Correlations, ...]
    """Every two raters; empty for one rater."""

    unanswered: int
    """Rated pairs without a score of the judge; in no number."""

    @property
    def suspicious(self) -> bool:
        """Whether the judge agrees with one rater more than another rater does."""
        own, ceiling = mean_tau_b(self.each), mean_tau_b(self.pairs)
        return own is not None and ceiling is not None and own > ceiling


def mean_tau_b(found: Sequence[Correlations]) -> float | None:
    """Return the mean tau-b; None where there is none, or one is undefined."""
    values = [one.tau_b.value for one in found]
    defined = [value for value in values if value is not None]
    return sum(defined) / len(defined) if len(defined) == len(values) > 0 else None


class ScoreBias(NamedTuple):
    """How far scores go with what should not matter."""

    by: str
    """``"length"`` of the candidate in words, or ``"position"`` among the pairs."""

    against: str
    """Ratings that are held constant; empty where there are none."""

    scores: Correlations
    """Of the scores with it, over all scored pairs; read its tau-b and Spearman."""

    beside: PartialTau | None
    """The same beside the ratings, over the rated pairs; None without ratings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeMetaEvaluation:
    """Everything that is known of how far a judge is right."""

    judge: str
    signature: str
    pairs: int
    unanswered: int
    """Pairs without a score in the first draw."""

    unit: str
    """What was resampled: ``"patient"`` or ``"reference"``."""

    units: int
    errors: tuple[ErrorAgreement, ...]
    """Without and with insignificant errors; empty without experts' counts."""

    ratings: RatingAgreement | None
    length: ScoreBias
    position: ScoreBias
    consistency: SelfConsistency | None
    """None for one draw."""

    copies: CopyTest
    cost: JudgeCost | None


def evaluate_judge(
    judged: JudgedTexts,
    *,
    experts: ErrorTable | None = None,
    ratings: Ratings | None = None,
    patients: Mapping[str, str] | None = None,
    units: NDArray[np.intp] | None = None,
    cost: JudgeCost | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> JudgeMetaEvaluation:
    """Return how far a judge's scores and error counts can be relied on.

    Scores of the first draw are used throughout; the others are for the consistency.

    Parameters
    ----------
    judged
        What the judge said.
    experts
        Experts' error counts, which the judge's are held against.
    ratings
        Experts' points, which the scores are held against.
    patients
        Patient by case id: units of the resampling; None: pairs with the same
        reference are drawn together.
    units
        The same units as numbers, one a pair, where the caller has an order of them;
        None: in the order of their names.
    cost
        What the run took, shown with the numbers.
    resamples, seed
        Of every bootstrap; intervals are of 95 %.

    Raises
    ------
    DataError
        `experts` have no pair in common with the judge.
    ValueError
        `patients` is given and lacks a case.
    """
    if units is None:
        units = _units(judged, patients)
    drawn = Resampling(units=units, resamples=resamples, seed=seed)
    rated = None if ratings is None else _rated(judged, ratings)
    several = len(judged.scores) > 1
    counts = judged.counts.reshape(*judged.scores.shape, -1)
    lengths = np.array([len(text.split()) for text in judged.candidates])
    places = np.arange(len(judged.keys))
    errors = () if experts is None else _errors(judged, experts, units, drawn)
    return JudgeMetaEvaluation(
        judge=judged.name,
        signature=judged.signature,
        pairs=len(judged.keys),
        unanswered=int(np.isnan(judged.directed).sum()),
        unit="reference" if patients is None else "patient",
        units=len(np.unique(units)),
        errors=tuple(replace(one, by_patient=patients is not None) for one in errors),
        ratings=None if rated is None else _agree(judged, rated, drawn),
        length=_bias("length", lengths, judged, rated, drawn),
        position=_bias("position", places, judged, rated, drawn),
        consistency=(
            self_consistency(judged.scores, counts, **drawn) if several else None
        ),
        copies=copy_test(
            judged.references,
            judged.candidates,
            judged.scores[0],
            best=float(not judged.lower) if judged.best is None else judged.best,
        ),
        cost=cost,
    )


def _units(judged: JudgedTexts, patients: Mapping[str, str] | None) -> NDArray[np.intp]:
    """Return the unit of each pair: its patient where known, else its reference."""
    if patients is not None:
        names = unit_codes(tuple(case for case, _ in judged.keys), patients)
    else:
        names = np.array([" ".join(text.split()) for text in judged.references])
    # Numbers instead of texts: a unit may be named in an error.
    return np.unique(names, return_inverse=True)[1]


class _RatedPairs(NamedTuple):
    points: NDArray[np.float64]
    """Shape ``(n_pairs, n_raters)``; NaN where somebody did not rate."""

    against: str


def _rated(judged: JudgedTexts, ratings: Ratings) -> _RatedPairs:
    """Return the points of each pair in the judge's order."""
    places = {key: place for place, key in enumerate(ratings.keys)}
    points = np.full((len(judged.keys), len(ratings.raters)), np.nan)
    for row, key in enumerate(judged.keys):
        if key in places:
            points[row] = ratings.scores[places[key]]
    return _RatedPairs(points, ratings.against)


def _errors(
    judged: JudgedTexts,
    experts: ErrorTable,
    units: NDArray[np.intp],
    drawn: Resampling,
) -> tuple[ErrorAgreement, ...]:
    """Return the agreement without and with insignificant errors."""
    names = {
        case: f"{unit:012}" for (case, _), unit in zip(judged.keys, units, strict=True)
    }
    # What the judge was not asked about is not unanswered by it.
    asked = set(judged.keys)
    known = experts.rows([key for key in experts.keys if key in asked])
    return agree_with_and_without(
        judged.table,
        known,
        name=judged.name,
        patients=names,
        resamples=drawn["resamples"],
        seed=drawn["seed"],
    )


def _agree(
    judged: JudgedTexts, rated: _RatedPairs, drawn: Resampling
) -> RatingAgreement:
    n = rated.points.shape[1]
    columns = [judged.directed, mean_given(rated.points), rated.points]
    table = np.column_stack(columns)
    pairs = [(2 + one, 2 + two) for one, two in combinations(range(n), 2)]
    held = [(0, column) for column in range(1, n + 2)]
    found = correlate_columns(table, [*held, *pairs], **drawn)
    asked = ~np.isnan(rated.points).all(axis=1)
    return RatingAgreement(
        against=f"{rated.against} of {counted(n, 'rater')}",
        consensus=found[0],
        each=tuple(found[1 : n + 1]),
        pairs=tuple(found[n + 1 :]),
        unanswered=int((asked & np.isnan(judged.directed)).sum()),
    )


def _bias(
    by: str,
    other: NDArray[Any],
    judged: JudgedTexts,
    rated: _RatedPairs | None,
    drawn: Resampling,
) -> ScoreBias:
    """Return how far scores go with `other`, and beside the mean rating."""
    scores = judged.directed
    beside = None
    if rated is not None:
        mean = mean_given(rated.points)
        beside = partial_tau(scores, other, mean, **drawn)
    return ScoreBias(
        by=by,
        against="" if rated is None else f"mean of the raters' {rated.against}",
        scores=correlate_columns(np.column_stack([scores, other]), [(0, 1)], **drawn)[
            0
        ],
        beside=beside,
    )
