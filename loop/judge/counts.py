"""What a judge's answers count, and the scores that are made of the counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.records import Status
from loop.prompts.outputs.base import Contract
from loop.prompts.outputs.error_list import UnweightedErrorList
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
    """Asked for, in order."""

    significant: NDArray[np.float64]
    """Shape ``(n_pairs, n_categories)``. Where a judge does not weigh errors, all of
    them."""

    insignificant: NDArray[np.float64]
    """The same shape; NaN where an answer says nothing of them, or the judge does not
    weigh errors."""

    matched: NDArray[np.float64]
    """Shape ``(n_pairs,)``."""

    own: NDArray[np.float64]
    """Score that the judge gives itself, 0 to 1; NaN where it gives none."""

    statuses: tuple[Status | None, ...]
    """How each pair ended; None where nothing was asked."""

    weighs: bool = True
    """Whether the judge tells significant errors from others."""

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
        """Shape ``(n_pairs, 3)``: matched, significant and insignificant errors."""
        return np.column_stack(
            [self.matched, self.significant.sum(axis=1), self.insignificant.sum(axis=1)]
        )

    def count(self, status: Status) -> int:
        """Return how many pairs ended so."""
        return sum(one is status for one in self.statuses)


def weighs_errors(contract: Contract) -> bool:
    """Whether answers tell significant errors from others."""
    return contract.name != UnweightedErrorList.name


def answer_fields(categories: Sequence[str], contract: Contract) -> tuple[str, ...]:
    """Return the fields of an answer that counts are read from.

    Parameters
    ----------
    contract
        Decides whether significant errors are told from others.
    """
    weight = SIGNIFICANT if weighs_errors(contract) else ""
    serious = [error_field(name, weight) for name in categories]
    minor = [error_field(name, INSIGNIFICANT) for name in categories]
    return (*serious, *minor, MATCHED, OWN_SCORE)


def read_counts(
    answers: Sequence[ItemAnswer | None],
    categories: Sequence[str],
    *,
    weighs: bool = True,
) -> JudgeCounts:
    """Return the counts of answers.

    Parameters
    ----------
    answers
        One a pair, the values those of `answer_fields`; None where nothing was asked.
    weighs
        Whether they tell significant errors from others; see `weighs_errors`.
    """
    size = len(categories)
    table = np.full((len(answers), 2 * size + 2), np.nan)
    for row, one in enumerate(answers):
        if one is not None and one.status is Status.ANSWERED:
            table[row] = [_number(value) for value in one.values]
    return JudgeCounts(
        categories=tuple(categories),
        significant=table[:, :size],
        insignificant=table[:, size : 2 * size],
        matched=table[:, -2],
        own=table[:, -1],
        statuses=tuple(None if one is None else one.status for one in answers),
        weighs=weighs,
    )


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else np.nan


class JudgeScore(NamedTuple):
    """One number that is made of a judge's counts, or that it gives itself."""

    name: str
    """For example ``"green"``; behind the judge's name it names a metric."""

    title: str
    about: str
    weights: tuple[float, float, float] | None = None
    """Of matched findings, significant and insignificant errors: a, b, c in
    ``aM / (aM + bS + cI)``. None for a number of another form."""

    direction: Direction = Direction.HIGHER


GREEN: Final = JudgeScore(
    "green",
    "GREEN",
    "Matched findings, of these and significant errors: M / (M + S).",
    (1, 1, 0),
)
ERRORS: Final = JudgeScore(
    "errors", "GREEN-EC", "Significant errors, S.", direction=Direction.LOWER
)
OWN: Final = JudgeScore(
    "own", "own score", "The score that the judge gives itself, 0 to 1."
)
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
)
"""Every score of a judge, GREEN first."""


def find_score(name: str) -> JudgeScore:
    """Return the score that the protocol calls `name`."""
    return next(one for one in SCORES if one.name == name)


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
    ...     own=np.full(2, np.nan),
    ...     statuses=(Status.ANSWERED, Status.ANSWERED),
    ... )
    >>> score_counts(counts, GREEN, Empty.ONE).tolist()
    [0.75, 1.0]
    """
    if score.weights is None:
        return counts.own if score.name == OWN.name else counts.triples[:, 1]
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

    pairs: int
    """That have both."""

    mean_difference: float | None
    """Mean absolute difference from GREEN; None without a pair."""

    largest: float | None


def compare_own(counts: JudgeCounts, empty: Empty) -> OwnAgainstCounts:
    """Return how far own scores are from GREEN of the same answers."""
    apart = np.abs(counts.own - score_counts(counts, GREEN, empty))
    apart = apart[~np.isnan(apart)]
    if not apart.size:
        return OwnAgainstCounts(0, None, None)
    return OwnAgainstCounts(apart.size, float(apart.mean()), float(apart.max()))
