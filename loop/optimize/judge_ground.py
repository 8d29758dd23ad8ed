"""The ground of a search for a judge: its counts of errors beside those of readers.

What a count is worth is how far it is from the readers' counts, negated: the mean over
the readers of the difference in significant and in other errors, which nothing makes
smaller than the median of the readers. A count that is not that median is wrong, as in
the check of a draft (`loop.review.revise.check_judge`). How far scores agree with what
raters say of candidates is no mean over pairs: it is reported on the pooled estimate,
and no wording is chosen by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.core.records import Outcome, Status
from loop.evaluate.align import Codes
from loop.evaluate.measure import resampling_units
from loop.evaluate.protocol import read_protocol
from loop.judge.counts import JudgeScore, answer_fields, read_counts, score_counts
from loop.judge.judge_evaluation import (
    EMPTY,
    claimed_score,
    expert_median,
    expert_table,
    rated_points,
)
from loop.labels.cohort import Cohort, iter_items
from loop.labels.expert_ratings import read_ratings_of
from loop.optimize.ground import (
    AgreementGain,
    Answers,
    PooledScores,
    SearchGround,
    TotalScore,
)
from loop.optimize.splits import Rows
from loop.prompts.outputs.base import Contract, get_contract
from loop.prompts.outputs.judged import INPUTS
from loop.prompts.stages import given_texts
from loop.prompts.version import PromptVersion
from loop.run.runner import ItemAnswer
from loop.run.task import require_unseen
from loop.score.experts.error_tables import SIGNIFICANCES
from loop.score.experts.ratings import Ratings
from loop.score.metrics.base import Direction
from loop.stats.confusion import divide
from loop.stats.kappa import distance_columns, distance_kappas
from loop.stats.rated_agreement import (
    AgreementMeasure,
    compare_agreement,
    measure_agreement,
)
from loop.stats.resampling import Bootstrap, DrawResampling, bootstrap


@dataclass(frozen=True, slots=True, kw_only=True)
class CountGround(SearchGround):
    """The ground of a judge: errors by category and significance, nearer or further.

    Answers are significant and other errors of each category one after another, and
    last the score that is held against the raters, shape
    ``(n_cases, 2 * n_labels + 1)``: counts are infinite where an answer cannot be read,
    or says nothing of them, and all is NaN where the engine failed. Of a judge that
    does not weigh errors all of them are the first, also those of the readers.
    """

    score_name = "negative distance"
    cases_name = "pairs"
    best = 0.0
    answers_apart = False
    lists = True

    contract: Contract
    """Of the answers."""

    counts: NDArray[np.float64]
    """What each reader counts, shape ``(n_cases, n_readers, n_labels, 2)``; NaN where
    one did not look."""

    right: NDArray[np.float64]
    """The readers' median, shape ``(n_cases, n_labels, 2)``; NaN where it is no whole
    number, so that they do not decide."""

    score: JudgeScore
    """The one that is held against the raters."""

    measure: AgreementMeasure
    ratings: Ratings
    """What the raters say of each pair as a whole, in the order of the pairs."""

    @property
    def worst(self) -> float:
        """Points of an answer that cannot be read: no count is taken as further off.

        One error more than any reader counts in one category of a pair.
        """
        return -1.0 - float(np.nansum(self.counts, axis=-1).max())

    def read(self, outcomes: Sequence[Outcome]) -> Answers:
        """Return the counts of answers, and the score."""
        asked = self.version.labels
        names = answer_fields(asked, self.contract)
        answers = []
        for one in outcomes:
            said = [one.fields.get(name) for name in names]
            values = tuple(None if told is None else told.value for told in said)
            answers.append(ItemAnswer(one.status, values))
        found = read_counts(answers, asked, self.contract)
        columns = [asked.index(label) for label in self.labels]
        table = found.by_weight[:, columns].reshape(-1, 2 * len(columns))
        # An answer that says nothing of an error says nothing that is right of it.
        table = np.where(np.isnan(table), np.inf, table)
        table[[one.status is Status.ENGINE_FAILED for one in outcomes]] = np.nan
        return np.column_stack([table, score_counts(found, self.score, EMPTY)])

    def lost(self, answers: Answers) -> NDArray[np.bool_]:
        """Return on which pairs the engine failed."""
        return np.asarray(np.isnan(answers[:, 0]))

    def _own(self, answers: Answers) -> NDArray[np.float64]:
        """Return the counts by weight, shape ``(n_rows, n_labels, 2)``."""
        own: NDArray[np.float64] = answers[:, :-1].reshape(-1, len(self.labels), 2)
        return own

    def _apart(
        self, own: NDArray[np.float64], theirs: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return how far counts are apart, by weight in the last axis."""
        return np.asarray(np.minimum(np.abs(own - theirs).sum(axis=-1), -self.worst))

    def points(self, answers: Answers, rows: Rows) -> NDArray[np.float64]:
        """Return the negative mean distance from the readers who looked at the pair."""
        apart = self._apart(self._own(answers)[:, None], self.counts[rows])
        known = ~np.isnan(apart)
        total = np.where(known, apart, 0.0).sum(axis=1)
        return 0.0 - divide(total, known.sum(axis=1))

    def wrong(self, answers: Answers, rows: Rows) -> NDArray[np.bool_]:
        """Return where counts are not the readers' median, where that decides."""
        return np.asarray(self._apart(self._own(answers), self.right[rows]) > 0)

    def total(self, answers: Answers, rows: Rows) -> TotalScore:
        """Return the mean points: over labels that are scored, and of each label."""
        points = self.points(answers, rows)
        known = ~np.isnan(points)
        by_label = divide(np.where(known, points, 0.0).sum(axis=0), known.sum(axis=0))
        kept = by_label[self.scored & ~np.isnan(by_label)]
        return TotalScore(float(kept.mean()) if kept.size else None, by_label)

    def pool(
        self,
        before: Answers,
        after: Answers,
        rows: Rows,
        shown: Rows,
        **resampling: Unpack[DrawResampling],
    ) -> PooledScores:
        """Return the mean points of both; kappa is weighted by distance."""
        sides = [self.points(one, rows)[:, shown] for one in (before, after)]
        known = ~np.isnan(sides[0])
        columns = np.hstack([*(np.where(known, one, 0.0) for one in sides), known])

        def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
            parent, found, counted = np.split(sums, 3, axis=1)
            means = [divide(one, counted).mean(axis=1) for one in (parent, found)]
            return np.column_stack([*means, means[1] - means[0]])

        parent, found, gain = (
            _without_width(one) for one in bootstrap(columns, statistic, **resampling)
        )
        return PooledScores(
            parent,
            found,
            gain,
            self._kappa_gain(before, after, rows, shown, **resampling),
            self._agreement(before, after, rows, **resampling),
        )

    def _kappa_gain(
        self,
        before: Answers,
        after: Answers,
        rows: Rows,
        shown: Rows,
        **resampling: Unpack[DrawResampling],
    ) -> Bootstrap:
        """Return the gain in the mean kappa, of pairs that readers looked at."""
        theirs = self.counts[rows]
        looked = np.asarray(np.isfinite(theirs).any(axis=(1, 2, 3)))
        parts = [
            _LabelColumns.make(
                self._own(side)[:, label], theirs[:, :, label], -self.worst
            )
            for side in (before, after)
            for label in shown
        ]
        ends = np.cumsum([one.columns.shape[1] for one in parts])[:-1]
        columns = np.hstack([one.columns for one in parts])
        columns = np.where(looked[:, None], columns, 0.0)

        def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
            cut = np.split(sums, ends, axis=1)
            found = np.stack(
                [
                    distance_kappas(one, part.distances)
                    for one, part in zip(cut, parts, strict=True)
                ],
                axis=1,
            )
            parent, later = np.split(np.nan_to_num(found), 2, axis=1)
            return np.asarray(later.mean(axis=1) - parent.mean(axis=1))

        return bootstrap(columns, statistic, **resampling)[0]

    def _agreement(
        self,
        before: Answers,
        after: Answers,
        rows: Rows,
        **resampling: Unpack[DrawResampling],
    ) -> AgreementGain | None:
        """Return the agreement with the raters; None for fewer than two pairs."""
        ordered = self.measure is AgreementMeasure.TAU_B
        sign = -1 if ordered and self.score.direction is Direction.LOWER else 1
        theirs = self.ratings.consensus[rows]
        sides = [sign * one[:, -1] for one in (before, after)]
        both = ~np.isnan(np.column_stack([*sides, theirs])).any(axis=1)
        if both.sum() < 2:
            return None
        units = resampling.get("units")
        kept = resampling | {"units": None if units is None else units[both]}
        kept.pop("draws", None)
        sides = [one[both] for one in sides]
        parent, found = (
            measure_agreement(self.measure, one, theirs[both], **kept).value
            for one in sides
        )
        gain = compare_agreement(
            self.measure, sides[1], sides[0], theirs[both], **kept
        ).value
        several = len(self.ratings.raters) > 1
        raters = f"{len(self.ratings.raters)} raters'" if several else "one rater's"
        return AgreementGain(
            measure=self.measure.words,
            score=self.score.title,
            against=f"{raters} {self.ratings.against}",
            parent=_without_width(parent),
            found=_without_width(found),
            gain=_without_width(gain),
            cases=int(both.sum()),
        )

    def failing(self, answers: Answers) -> tuple[bool, ...]:
        """Return which categories are counted wrongly anywhere: none has a gate."""
        wrong = self.wrong(answers, np.arange(len(self.items)))
        return tuple(bool(one.any()) for one in wrong.T)

    def texts(self, row: int) -> dict[str, str]:
        """Return reference, candidate, and what else the prompt has of a pair."""
        given = self.items[row].variables
        names = [one for one in given_texts(self.version.inputs) if one in given]
        return {name.capitalize(): given[name] for name in names}

    def tell(self, answers: Answers, row: int, column: int) -> str:
        """Return ``"2 significant, 1 insignificant; right is 1 significant, ..."``."""
        own = answers[:-1].reshape(-1, 2)[column]
        return f"{self._words(own)}; right is {self._words(self.right[row, column])}"

    def _words(self, counts: NDArray[np.float64]) -> str:
        if not np.isfinite(counts).all():
            return "unparsed"
        said = list(zip(counts.astype(int).tolist(), SIGNIFICANCES, strict=True))
        if not self.contract.weighs:
            return counted(said[0][0], "error")
        return ", ".join(f"{count} {weight}" for count, weight in said)

    def listed(self, outcome: Outcome, label: str) -> tuple[str, ...]:
        """Return the errors of a category that an answer lists, with their weights."""
        return tuple(
            f"{entry.weight}: {entry.words}" if entry.weight else entry.words
            for field in outcome.fields.values()
            for entry in field.entries
            if entry.category == label
        )


class _LabelColumns(NamedTuple):
    """What the pairs add to the kappa of one category, see `distance_columns`."""

    columns: NDArray[np.float64]
    distances: NDArray[np.float64]

    @classmethod
    def make(
        cls, own: NDArray[np.float64], theirs: NDArray[np.float64], most: float
    ) -> _LabelColumns:
        """Return those of counts ``(n, 2)`` and of readers' counts ``(n, n_r, 2)``."""
        rows, place = np.unique(own, axis=0, return_inverse=True)
        looked = ~np.isnan(theirs).any(axis=-1)
        given, which = np.unique(theirs[looked], axis=0, return_inverse=True)
        shares = np.zeros((len(own), len(given)))
        np.add.at(shares, (np.nonzero(looked)[0], which.ravel()), 1.0)
        shares = np.nan_to_num(divide(shares, shares.sum(axis=1, keepdims=True)))
        apart = np.abs(rows[:, None] - given[None]).sum(axis=-1)
        distances = np.minimum(apart, most)
        return cls(distance_columns(place.ravel(), shares, distances), distances)


def _without_width(found: Bootstrap) -> Bootstrap:
    """Return it without limits where all resamples agree: that is no certainty."""
    return found._replace(low=None, high=None) if found.has_no_width else found


def read_count_ground(
    workspace: WorkspacePaths,
    version: PromptVersion,
    cohort: Cohort,
    number: int | None = None,
) -> CountGround:
    """Return what candidates of a judge are scored on; asks nothing.

    Parameters
    ----------
    number
        Version of the ratings; None for the newest.

    Raises
    ------
    DataError
        The version counts no errors of pairs or has no score that the protocol holds
        against raters, the cohort has no pairs, or nobody marked errors of what it
        asks for.
    OverlapError
        A pair shares its reference, patient or id with a shot.
    """
    contract = get_contract(version.contract)
    pairs = set(INPUTS) <= set(given_texts(version.inputs))
    if not pairs or not contract.counts_errors:
        raise DataError(
            f"{version.ref} counts no errors of a candidate by category, so nothing "
            "says which of its answers are right. Name a judge that does: `ranloop "
            "judge --list` shows them."
        )
    given = read_ratings_of(workspace, cohort.name, number)
    experts = expert_table(workspace, given)
    if experts is None:
        raise DataError(
            f"nobody marked errors in cohort {cohort.name}, so nothing says which "
            "counts are right. Add them with `ranloop cohort ratings NAME --errors "
            "FILE`."
        )
    labels = tuple(one for one in version.labels if one in experts.categories)
    if not labels:
        raise DataError(
            f"readers of cohort {cohort.name} marked errors of no category that "
            f"{version.ref} asks for. Name another cohort."
        )
    items = tuple(iter_items(workspace, cohort))
    require_unseen(workspace, version, cohort, iter(items), tell=lambda _: None)
    protocol = read_protocol(workspace)
    rules = protocol.judging
    columns = [experts.categories.index(one) for one in labels]
    counts = experts.counts[:, :, columns]
    weights = list(SIGNIFICANCES)
    if not contract.weighs:
        weights = [""]
        counts = np.stack([counts.sum(axis=-1), 0 * counts.sum(axis=-1)], axis=-1)
    medians = [
        [expert_median(experts, label, weight) for weight in weights]
        for label in labels
    ]
    if not contract.weighs:
        medians = [[one, 0 * one] for (one,) in medians]
    owners = {one.case_id: one.patient or one.reference_id for one in cohort.cases}
    clusters = resampling_units([owners[item.id] for item in items])
    known = cohort.patients_known
    return CountGround(
        version=version,
        cohort=cohort,
        reference=given,
        protocol=protocol,
        items=items,
        labels=labels,
        truth=_found_by_most(counts),
        clusters=clusters._replace(unit="patient" if known else "reference"),
        contract=contract,
        counts=counts,
        right=np.array(medians).transpose(2, 0, 1),
        score=claimed_score(version, None if rules is None else rules.score),
        measure=AgreementMeasure.TAU_B if rules is None else rules.measure,
        ratings=rated_points(given) if given.dimensions else experts.as_ratings(),
    )


def _found_by_most(counts: NDArray[np.float64]) -> Codes:
    """Return 1 where most readers count an error, 0 where not, -1 for as many."""
    looked = ~np.isnan(counts).any(axis=-1)
    found = (counts > 0).any(axis=-1) & looked
    more = 2 * found.sum(axis=1) - looked.sum(axis=1)
    return np.select([more > 0, more < 0], [1, 0], -1).astype(np.int8)
