"""What a judge's answers count, and the scores that they have or that are made of it.

Which these are, the contract of the answers decides: see `scores_of`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError
from loop.core.numbered_phrases import PRECISION, RECALL
from loop.core.records import Status
from loop.judge.radfact import pair_f1
from loop.prompts.outputs.base import Contract
from loop.prompts.outputs.green_scored import GreenFormula, GreenFormulaText
from loop.prompts.outputs.judged import (
    INSIGNIFICANT,
    MATCHED,
    OWN_SCORE,
    SIGNIFICANT,
    error_field,
)
from loop.run.runner import ItemAnswer
from loop.score.experts.error_counts import Empty, share_matched
from loop.score.metrics.base import Direction


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCounts:
    """Errors and matched findings of pairs, as a judge counts them.

    A pair without a readable answer is NaN throughout: it is never without an error.
    """

    categories: tuple[str, ...]
    """Asked for, in order; none where the answers count no errors."""

    significant: NDArray[np.float64]
    """Shape ``(n_pairs, n_categories)``. Where a judge does not weigh errors, all of
    them."""

    insignificant: NDArray[np.float64]
    """The same shape; NaN where an answer says nothing of them, or the judge does not
    weigh errors."""

    matched: NDArray[np.float64]
    """Shape ``(n_pairs,)``; NaN where the answers count no matches."""

    statuses: tuple[Status | None, ...]
    """How each pair ended; None where nothing was asked."""

    weighs: bool = True
    """Whether the judge tells significant errors from others."""

    numbers: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """Other numbers of an answer by the name of their field, each of shape
    ``(n_pairs,)``; NaN where an answer gives none."""

    @property
    def own(self) -> NDArray[np.float64]:
        """Score that the judge gives itself, 0 to 1; NaN where it gives none."""
        return self.number(OWN_SCORE)

    def number(self, name: str) -> NDArray[np.float64]:
        """Return a number of each pair; NaN where the answers have no such field."""
        found = self.numbers.get(name)
        return np.full(len(self.statuses), np.nan) if found is None else found

    @property
    def by_weight(self) -> NDArray[np.float64]:
        """Significant and other errors, shape ``(n_pairs, n_categories, 2)``.

        Of a judge that does not weigh errors, none are others. What an answer says
        nothing of is NaN, and never 0.
        """
        others = self.insignificant if self.weighs else 0 * self.significant
        return np.stack([self.significant, others], axis=-1)

    @property
    def triples(self) -> NDArray[np.float64]:
        """Shape ``(n_pairs, 3)``: matched, significant and insignificant errors.

        NaN for what the answers do not count.
        """
        # A sum over no category is 0, and nothing says that there are no errors.
        unknown = 0.0 if self.categories else np.nan
        errors = [
            one.sum(axis=1) + unknown for one in (self.significant, self.insignificant)
        ]
        return np.column_stack([self.matched, *errors])

    def count(self, status: Status) -> int:
        """Return how many pairs ended so."""
        return sum(one is status for one in self.statuses)


def answer_fields(categories: Sequence[str], contract: Contract) -> tuple[str, ...]:
    """Return the fields of an answer that counts and numbers are read from.

    Parameters
    ----------
    contract
        Decides what is counted, and whether significant errors are told from others.
    """
    errors: list[str] = []
    if contract.counts_errors:
        weight = SIGNIFICANT if contract.weighs else ""
        errors = [error_field(name, weight) for name in categories]
        errors += [error_field(name, INSIGNIFICANT) for name in categories]
    return (*errors, *([MATCHED] if contract.counts_matches else ()), *contract.numbers)


def read_counts(
    answers: Sequence[ItemAnswer | None],
    categories: Sequence[str],
    contract: Contract,
) -> JudgeCounts:
    """Return the counts of answers.

    Parameters
    ----------
    answers
        One a pair, the values those of `answer_fields`; None where nothing was asked.
    contract
        Of the answers.
    """
    asked = tuple(categories) if contract.counts_errors else ()
    size = len(asked)
    table = np.full((len(answers), len(answer_fields(asked, contract))), np.nan)
    for row, one in enumerate(answers):
        if one is not None and one.status is Status.ANSWERED:
            table[row] = [_number(value) for value in one.values]
    rest = [*table[:, 2 * size :].T]
    unsaid = np.full(len(answers), np.nan)
    return JudgeCounts(
        categories=asked,
        significant=table[:, :size],
        insignificant=table[:, size : 2 * size],
        matched=rest.pop(0) if contract.counts_matches else unsaid,
        statuses=tuple(None if one is None else one.status for one in answers),
        weighs=contract.weighs,
        numbers=dict(zip(contract.numbers, rest, strict=True)),
    )


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else np.nan


class JudgeScore(NamedTuple):
    """One number that is made of a judge's counts, or that its answer has."""

    name: str
    """For example ``"green"``; behind the judge's name it names a metric."""

    title: str
    about: str
    weights: tuple[float, float, float] | None = None
    """Of matched findings, significant and insignificant errors: a, b, c in
    ``aM / (aM + bS + cI)``. None for a number of another form."""

    direction: Direction = Direction.HIGHER
    number: str = ""
    """Field of the answer that the score is, as it stands; empty for one of counts."""

    means: tuple[str, str] | None = None
    """Two fields of the answer, where the score is the harmonic mean of their means:
    over pairs, of the means over them."""

    low: float = 0.0
    """Least possible value."""

    high: float | None = 1.0
    """Largest possible value; None without a bound."""

    source: str = "Ostmeier S et al. Findings of EMNLP 2024:374-390"
    """Where it was published."""

    @property
    def best(self) -> float:
        """What a candidate equal to its reference scores."""
        if self.direction is Direction.LOWER or self.high is None:
            return self.low
        return self.high


GREEN: Final = JudgeScore(
    "green",
    "GREEN",
    "Matched findings, of these and significant errors: M / (M + S).",
    (1, 1, 0),
)
ERRORS: Final = JudgeScore(
    "errors",
    "GREEN-EC",
    "Significant errors, S.",
    direction=Direction.LOWER,
    high=None,
)
OWN: Final = JudgeScore(
    "own",
    "own score",
    "The score that the judge gives itself, 0 to 1.",
    number=OWN_SCORE,
)
_RADFACT: Final = "Bannur S et al. MAIRA-2. arXiv:2406.04449 (2024)"
_FINE: Final = "Huang A et al. FineRadScore. MLHC 2024"
SCORES: Final = (
    GREEN,
    JudgeScore(
        "green_f1",
        "GREEN-F1",
        "2M / (2M + S); orders candidates as GREEN does.",
        (2, 1, 0),
    ),
    JudgeScore(
        "formula",
        "Formula",
        "M / (M + 2S + 0.5I): insignificant errors count, too.",
        (1, 2, 0.5),
    ),
    ERRORS,
    OWN,
    JudgeScore(
        "line_sum",
        "FineRadScore (sum)",
        "Severity of the corrections, 0 to 4 each, summed over the lines.",
        direction=Direction.LOWER,
        number="line_sum",
        high=None,
        source=_FINE,
    ),
    JudgeScore(
        "line_max",
        "FineRadScore (max)",
        "Severity of the worst correction, 0 to 4.",
        direction=Direction.LOWER,
        number="line_max",
        high=4.0,
        source=_FINE,
    ),
    JudgeScore(
        "line_mean",
        "FineRadScore (mean)",
        "Severity of the corrections, 0 to 4 each, averaged over lines and insertions.",
        direction=Direction.LOWER,
        number="line_mean",
        high=4.0,
        source=_FINE,
    ),
    JudgeScore(
        "crimson",
        "CRIMSON",
        "Weight of matched findings less that of false ones, by that of the reference.",
        number="crimson",
        low=-1.0,
        source="As in the published implementation of CRIMSON",
    ),
    JudgeScore(
        "rating",
        "rating",
        "Points by the rubric, 1 to 5.",
        number="rating",
        low=1.0,
        high=5.0,
        source="Kim S et al. Prometheus 2. EMNLP 2024:4334-4353",
    ),
    JudgeScore(
        "f1",
        "RadFact F1",
        "Harmonic mean of mean precision and mean recall.",
        means=(PRECISION, RECALL),
        source=_RADFACT,
    ),
    JudgeScore(
        "precision",
        "RadFact precision",
        "Phrases of the candidate that the reference entails, of all of them.",
        number=PRECISION,
        source=_RADFACT,
    ),
    JudgeScore(
        "recall",
        "RadFact recall",
        "Phrases of the reference that the candidate entails, of all of them.",
        number=RECALL,
        source=_RADFACT,
    ),
)
"""Every score that a judge can have, GREEN first."""


def scores_of(contract: Contract) -> tuple[JudgeScore, ...]:
    """Return the scores that answers in a contract can have, in the order of `SCORES`.

    Examples
    --------
    >>> from loop.prompts.outputs.base import get_contract
    >>> [one.name for one in scores_of(get_contract("error_list_unweighted"))]
    ['green', 'green_f1', 'errors', 'own']
    """
    return tuple(one for one in SCORES if _has(contract, one))


def _has(contract: Contract, score: JudgeScore) -> bool:
    if score.number or score.means:
        return {*(score.means or (score.number,))} <= {*contract.numbers}
    if not contract.counts_errors:
        return False
    if score.weights is None:
        return True
    return contract.counts_matches and (contract.weighs or not score.weights[2])


def find_score(name: str) -> JudgeScore:
    """Return the score that the protocol calls `name`."""
    return next(one for one in SCORES if one.name == name)


def require_score(contract: Contract, name: str) -> JudgeScore:
    """Return the score that the protocol calls `name`, of answers in a contract.

    Raises
    ------
    DataError
        No such answer can have it.
    """
    found = find_score(name)
    scores = scores_of(contract)
    if found not in scores:
        raise DataError(
            f"the protocol holds the score {name} against the raters, and answers in "
            f"the contract {contract.name} have none. They have "
            f"{', '.join(one.name for one in scores) or 'no score at all'}: name one "
            "of these as `score` in the section judging of labels/protocol.yaml, or "
            "another judge."
        )
    return found


def weighted_score(weights: tuple[float, float, float]) -> JudgeScore:
    """Return the score ``aM / (aM + bS + cI)`` for other weights a, b, c.

    Raises
    ------
    ValueError
        A weight is negative or not finite, or that of matched findings is 0.
    """
    a, b, c = weights
    if not (0 < a < np.inf and 0 <= b < np.inf and 0 <= c < np.inf):
        raise ValueError(
            "weights must be numbers from 0 on, and that of matched findings more than "
            f"0, got {a:g}, {b:g}, {c:g}"
        )
    words = f"{a:g}M / ({a:g}M + {b:g}S + {c:g}I)"
    about = f"{words}: matched findings, significant and insignificant errors."
    return JudgeScore(f"form_{a:g}_{b:g}_{c:g}", words, about, weights)


def score_counts(
    counts: JudgeCounts, score: JudgeScore, empty: Empty
) -> NDArray[np.float64]:
    """Return one score of every pair.

    Parameters
    ----------
    empty
        What a pair without matches and errors scores where the form has weights.

    Returns
    -------
    NDArray[np.float64]
        Shape ``(n_pairs,)``; NaN for a pair without a readable answer, and where an
        answer does not say what the form needs.

    References
    ----------
    Ostmeier S, et al. GREEN. Findings of EMNLP 2024:374-390.

    Examples
    --------
    >>> counts = JudgeCounts(
    ...     categories=("omission",),
    ...     significant=np.array([[1.0], [0.0]]),
    ...     insignificant=np.array([[2.0], [0.0]]),
    ...     matched=np.array([3.0, 0.0]),
    ...     statuses=(Status.ANSWERED, Status.ANSWERED),
    ... )
    >>> score_counts(counts, GREEN, Empty.ONE).tolist()
    [0.75, 1.0]
    """
    if score.number:
        return counts.number(score.number)
    if score.means is not None:
        return pair_f1(*map(counts.number, score.means))
    if score.weights is None:
        return counts.triples[:, 1]
    a, b, c = score.weights
    triples = counts.triples
    if not c:
        triples[:, 2] = np.where(np.isnan(triples[:, 1]), np.nan, 0.0)
    values = share_matched(triples, significant=b / a, insignificant=c / a)
    if empty is Empty.SKIP:
        return values
    # What an answer does not say is NaN here, and never 0.
    return np.where((triples == 0).all(axis=1), float(empty.value), values)


class OwnAgainstCounts(NamedTuple):
    """How far the score that a judge gives itself is from the one of its counts."""

    form: JudgeScore
    """The score of its counts: GREEN, or the one that it was asked to compute."""

    pairs: int
    """That have both."""

    mean_difference: float | None
    """Mean absolute difference; None without a pair."""

    largest: float | None

    @property
    def words(self) -> str:
        """How far, as the end of a sentence; empty without a pair."""
        if self.mean_difference is None or self.largest is None:
            return ""
        return (
            f"own score and {self.form.title} of its counts differ by "
            f"{self.mean_difference:.3f} on average, by {self.largest:.3f} at most"
        )

    @property
    def data(self) -> dict[str, object]:
        """The same as JSON data."""
        return {**self._asdict(), "form": self.form.name}


def compare_own(
    counts: JudgeCounts, contract: Contract, empty: Empty
) -> OwnAgainstCounts:
    """Return how far own scores are from what the counts of the same answers give.

    That is GREEN, and the Formula where the answers' contract asks to compute it.
    """
    computed = contract.name in (GreenFormula.name, GreenFormulaText.name)
    form = find_score("formula") if computed else GREEN
    apart = np.abs(counts.own - score_counts(counts, form, empty))
    apart = apart[~np.isnan(apart)]
    if not apart.size:
        return OwnAgainstCounts(form, 0, None, None)
    return OwnAgainstCounts(form, apart.size, float(apart.mean()), float(apart.max()))
