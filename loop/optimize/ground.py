"""What candidates are scored on, and how: the ground of a search, for each task.

Everything else of a search is the same for an extractor and a judge. What an answer is
worth, which answers are wrong and what is reported depends on what a prompt is for,
and stands here: `SearchGround` says what is asked of a ground, and `LabelGround` is
that of an extractor. That of a judge is in `loop.optimize.judge_ground`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from loop.core.records import Item, Outcome, Status, ValueCode
from loop.evaluate.align import AlignedPairs, Codes, count_uncertain, read_answers
from loop.evaluate.gates import GateVerdict
from loop.evaluate.measure import Clusters, measure_labels
from loop.evaluate.protocol import Protocol
from loop.evaluate.results import Method
from loop.labels.cohort import Cohort
from loop.labels.expert_ratings import ExpertRatings
from loop.labels.reference import Reference
from loop.labels.taxonomy import Taxonomy
from loop.optimize.splits import Rows
from loop.prompts.version import PromptVersion
from loop.stats.bootstrap import bootstrap_f1, bootstrap_f1_difference
from loop.stats.confusion import count_confusions, kappas, mean_f1, pair_indicators
from loop.stats.resampling import Bootstrap, DrawResampling, bootstrap

Answers = NDArray[Any]
"""What a candidate answers, one row a case; `SearchGround.read` says in which form."""


class TotalScore(NamedTuple):
    """How some answers did."""

    value: float | None
    """Over the labels that are scored; None where nothing is defined."""

    by_label: NDArray[np.float64]
    """Of each label, NaN where undefined, shape ``(n_labels,)``."""


class AgreementGain(NamedTuple):
    """Agreement of a judge's score with the raters, which no search chooses by."""

    measure: str
    """``"tau-b"``, or as the protocol says."""

    score: str
    """Title of the judge's score that is held against the raters."""

    against: str
    """What the raters said, for example ``"3 raters' points"``."""

    parent: Bootstrap
    found: Bootstrap
    gain: Bootstrap
    """The difference, on the same resamples."""

    cases: int
    """Pooled pairs with a rating and both scores; a pair may be there several times."""


class PooledScores(NamedTuple):
    """Two candidates on the same cases, with intervals over units."""

    parent: Bootstrap
    found: Bootstrap
    gain: Bootstrap
    """The difference, on the same resamples."""

    kappa_gain: Bootstrap
    """The same of the mean over labels of a kappa, 0 where it is undefined."""

    agreement: AgreementGain | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchGround(ABC):
    """What candidates are scored on, and how."""

    score_name: ClassVar[str]
    """The score that a search improves; higher is better: ``"macro-F1"``."""

    cases_name: ClassVar[str]
    """What a case is, for the reflecting engine: ``"reports"``."""

    best: ClassVar[float]
    """Points of an answer that agrees with every reader."""

    answers_apart: ClassVar[bool]
    """Whether each label is a column of the answers, so that one asked by itself can
    be put in place."""

    lists: ClassVar[bool]
    """Whether answers list what they count, see `listed`."""

    version: PromptVersion
    """What the search began with: the parent of every candidate."""

    cohort: Cohort
    reference: Reference | ExpertRatings
    """What says what is right."""

    protocol: Protocol
    items: tuple[Item, ...]
    """The cases with their texts: private."""

    labels: tuple[str, ...]
    """Labels that the version asks for and the reference can judge; of a judge,
    categories of errors."""

    truth: Codes
    """Whether there is something to find, as 1, 0, or -1 where the reference leaves it
    open, shape ``(n_cases, n_labels)``."""

    clusters: Clusters
    """Unit of each case: its patient, or else itself, or its reference text."""

    @property
    def case_ids(self) -> tuple[str, ...]:
        """Ids of the cases, in the order of every array here."""
        return tuple(item.id for item in self.items)

    @property
    def positives(self) -> NDArray[np.int64]:
        """Decided positives of each label, shape ``(n_labels,)``."""
        return np.asarray((self.truth == 1).sum(axis=0))

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Which labels have the protocol's minimum of positives, ``(n_labels,)``.

        The others are not estimable: no search may claim to improve them, and they
        are in no mean.
        """
        return self.positives >= self.protocol.min_positives

    @property
    @abstractmethod
    def worst(self) -> float:
        """Points of an answer that cannot be read."""

    @abstractmethod
    def read(self, outcomes: Sequence[Outcome]) -> Answers:
        """Return what outcomes say of the labels, one row each, in their order."""

    @abstractmethod
    def lost(self, answers: Answers) -> NDArray[np.bool_]:
        """Return on which cases the engine failed, shape ``(n_cases,)``."""

    @abstractmethod
    def points(self, answers: Answers, rows: Rows) -> NDArray[np.float64]:
        """Return what each answer is worth, from `worst` to `best`.

        Parameters
        ----------
        answers
            Of the cases at `rows`.

        Returns
        -------
        NDArray[np.float64]
            Shape ``(n_rows, n_labels)``; NaN where nothing decides, or the engine
            failed.
        """

    @abstractmethod
    def wrong(self, answers: Answers, rows: Rows) -> NDArray[np.bool_]:
        """Return where answers are not what the reference decides.

        What the engine failed on is not wrong. The same shapes as of `points`.
        """

    @abstractmethod
    def total(self, answers: Answers, rows: Rows) -> TotalScore:
        """Return the score of answers, of cases on which the engine did not fail."""

    @abstractmethod
    def pool(
        self,
        before: Answers,
        after: Answers,
        rows: Rows,
        shown: Rows,
        **resampling: Unpack[DrawResampling],
    ) -> PooledScores:
        """Return the scores of two candidates on cases that both were asked about.

        Parameters
        ----------
        rows
            A case may be there several times.
        shown
            Places of the labels that are estimable; at least one.
        """

    @abstractmethod
    def failing(self, answers: Answers) -> tuple[bool, ...]:
        """Return which labels fail their gate, by answers to all cases.

        Of a judge, which categories are miscounted.
        """

    @abstractmethod
    def texts(self, row: int) -> dict[str, str]:
        """Return what a reflecting engine is shown of a case, by heading: private."""

    @abstractmethod
    def tell(self, answers: Answers, row: int, column: int) -> str:
        """Return one answer about a case beside what is right, in words.

        Parameters
        ----------
        answers
            Of the one case, shape as of a row of `read`.
        row, column
            Place of the case and of the label.
        """

    @abstractmethod
    def listed(self, outcome: Outcome, label: str) -> tuple[str, ...]:
        """Return what an answer lists of a label; private, as it may quote a case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelGround(SearchGround):
    """The ground of an extractor: values of labels, right or wrong.

    Answers are codes of `ValueCode`, shape ``(n_cases, n_labels)``.
    """

    score_name = "macro-F1"
    cases_name = "reports"
    best = 1.0
    answers_apart = True
    lists = False

    taxonomy: Taxonomy

    @property
    def worst(self) -> float:
        """Points of a wrong answer."""
        return 0.0

    def read(self, outcomes: Sequence[Outcome]) -> Answers:
        """Return codes of `ValueCode`."""
        told = read_answers(outcomes, self.taxonomy)
        columns = [self.taxonomy.ids.index(label) for label in self.labels]
        found = np.array([told[one.item_id] for one in outcomes], dtype=np.int8)
        return found.reshape(-1, len(self.taxonomy.ids))[:, columns]

    def lost(self, answers: Answers) -> NDArray[np.bool_]:
        """Return on which cases the engine failed for any label."""
        return np.asarray((answers == ValueCode.FAILED).any(axis=1))

    def decided(self, answers: Codes, truth: Codes) -> Codes:
        """Return answers as 1, 0, or -1 for none, by the protocol's policy.

        What could not be read, or was not answered, is wrong where the reference
        decides; what the engine failed on is no answer.

        Parameters
        ----------
        answers
            Codes of `ValueCode`.
        truth
            The reference of the same cases and labels as 1, 0 or -1.
        """
        decided = count_uncertain(answers, truth, self.protocol.policy)
        unread = np.isin(answers, (ValueCode.UNPARSED, ValueCode.NOT_ASKED))
        return np.where(unread & (truth >= 0), 1 - truth, decided).astype(np.int8)

    def points(self, answers: Answers, rows: Rows) -> NDArray[np.float64]:
        """Return 1 for a right answer and 0 for a wrong one.

        An answer that the protocol leaves out is neither, and NaN.
        """
        truth = self.truth[rows]
        given = self.decided(answers, truth)
        known = (truth >= 0) & (given >= 0) & (answers != ValueCode.FAILED)
        return np.where(known, given == truth, np.nan)

    def wrong(self, answers: Answers, rows: Rows) -> NDArray[np.bool_]:
        """Return where answers are not what the reference decides, hedges included."""
        truth = self.truth[rows]
        given = self.decided(answers, truth)
        lost = answers == ValueCode.FAILED
        return np.asarray((truth >= 0) & (given != truth) & ~lost)

    def total(self, answers: Answers, rows: Rows) -> TotalScore:
        """Return F1: the mean over labels that are scored, and of each label."""
        truth = self.truth[rows]
        counts = count_confusions(truth, self.decided(answers, truth))
        found, weight = 2 * counts[:, 0], 2 * counts[:, 0] + counts[:, 1] + counts[:, 2]
        macro = mean_f1(found[self.scored], weight[self.scored])
        with np.errstate(invalid="ignore"):
            f1 = found / weight
        return TotalScore(None if np.isnan(macro) else float(macro), f1)

    def pool(
        self,
        before: Answers,
        after: Answers,
        rows: Rows,
        shown: Rows,
        **resampling: Unpack[DrawResampling],
    ) -> PooledScores:
        """Return macro-F1 of both; kappa is Cohen's."""
        truth = self.truth[rows]
        sides = [self.decided(one, truth)[:, shown] for one in (before, after)]
        truth = truth[:, shown]
        parent, found = (bootstrap_f1(truth, one, **resampling) for one in sides)
        gain = bootstrap_f1_difference(truth, *sides, **resampling)
        cells = [
            pair_indicators(truth, one).reshape(len(truth), -1).astype(np.int8)
            for one in sides
        ]

        def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
            tables = sums.reshape(len(sums), 2, -1, 4)
            mean = np.nan_to_num(kappas(tables)).mean(axis=2)
            return np.asarray(mean[:, 1] - mean[:, 0])

        (kappa_gain,) = bootstrap(np.hstack(cells), statistic, **resampling)
        return PooledScores(parent, found, gain, kappa_gain)

    def failing(self, answers: Answers) -> tuple[bool, ...]:
        """Return which labels fail their gate."""
        pairs = AlignedPairs(
            case_ids=self.case_ids,
            labels=self.labels,
            # 1, 0 and -1 are the codes of present, absent and uncertain.
            reference=self.truth,
            predicted=answers,
            statuses={Status.ANSWERED: len(answers)},
            not_run=0,
        )
        results = measure_labels(
            pairs,
            self.taxonomy,
            self.protocol,
            Method(units=self.clusters.total),
            self.clusters.units,
        )
        return tuple(one.gate.verdict is GateVerdict.FAIL for one in results)

    def texts(self, row: int) -> dict[str, str]:
        """Return the report."""
        return {"Report": "\n\n".join(self.items[row].variables.values())}

    def tell(self, answers: Answers, row: int, column: int) -> str:
        """Return ``"absent; right is present"``."""
        right = "present" if self.truth[row, column] == 1 else "absent"
        return f"{ValueCode(int(answers[column])).words}; right is {right}"

    def listed(self, outcome: Outcome, label: str) -> tuple[str, ...]:
        """Return nothing: a value is all that an extractor says of a label."""
        return ()
