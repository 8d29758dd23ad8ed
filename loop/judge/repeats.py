"""Whether a judge says the same twice, and the best of a copy of the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from loop.stats.confusion import divide
from loop.stats.intervals import Estimate, clopper_pearson
from loop.stats.reliability import icc_agreement, interval_alpha
from loop.stats.resampling import Resampling, bootstrap, sum_by_unit, to_estimate

_SAME = 1e-9
"""Scores that differ by less are the same: the same fraction in another order."""


class SelfConsistency(NamedTuple):
    """A judge that was asked about the same pairs several times."""

    draws: int
    """How often each pair was asked."""

    pairs: int
    """Pairs with a score in every draw; only these are in the numbers below."""

    incomplete: int
    """Pairs with a score in some draws only; not answering is no consistency."""

    sd: Estimate
    """Mean over pairs of the standard deviation of the scores of one pair."""

    identical: Estimate
    """Share of the pairs whose error counts are the same in every draw."""

    alpha: Estimate
    """Krippendorff's alpha of the scores, draws as raters."""

    icc: Estimate
    """ICC(2,1) of the scores: absolute agreement of one draw with another."""


def self_consistency(
    scores: NDArray[Any],
    counts: NDArray[Any],
    **resampling: Unpack[Resampling],
) -> SelfConsistency:
    """Return how far repeated draws of a judge agree.

    Parameters
    ----------
    scores
        NaN where a draw was not answered, shape ``(n_draws, n_pairs)``, two draws or
        more.
    counts
        Errors by category in the same draws, shape ``(n_draws, n_pairs,
        n_categories)``; NaN in both draws is the same.
    **resampling
        ``units`` of the pairs, ``resamples`` (2,000), ``seed`` (0), ``confidence``
        (0.95).

    Returns
    -------
    SelfConsistency
        With intervals over units. Where all pairs or none are identical, the interval
        of the share is the exact one of Clopper and Pearson over units.

    Raises
    ------
    ValueError
        There are fewer than two draws, or the shapes do not fit.

    References
    ----------
    Krippendorff K. Content Analysis. 4th ed. 2019, chapter 12. Shrout PE, Fleiss JL.
    Psychol Bull 1979;86:420-428.
    """
    table = np.asarray(scores, dtype=np.float64)
    numbers = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2 or len(table) < 2 or numbers.shape[:2] != table.shape:
        raise ValueError(
            "need scores (2 or more draws, n_pairs) and counts (n_draws, n_pairs, "
            f"n_categories), got {table.shape} and {numbers.shape}"
        )
    answered = ~np.isnan(table)
    kept = answered.all(axis=0)
    own = table[:, kept]
    units = resampling.get("units")
    names = np.arange(table.shape[1]) if units is None else np.asarray(units)
    drawn = Resampling(**{**resampling, "units": names[kept]})
    first = numbers[:1, kept]
    alike = (numbers[:, kept] == first) | (np.isnan(numbers[:, kept]) & np.isnan(first))
    same = alike.all(axis=(0, 2))
    return SelfConsistency(
        draws=len(table),
        pairs=int(kept.sum()),
        incomplete=int((answered.any(axis=0) & ~kept).sum()),
        sd=_mean(own.std(axis=0, ddof=1), drawn),
        identical=_share(same, drawn),
        alpha=interval_alpha(own.T, **drawn),
        icc=icc_agreement(own.T, **drawn),
    )


def _mean(values: NDArray[Any], drawn: Resampling) -> Estimate:
    if not values.size:
        return Estimate(None, None, None, "not estimable: no pair in every draw")
    columns = np.stack([values, np.ones(len(values))], axis=1)
    [result] = bootstrap(columns, lambda s: divide(s[:, 0], s[:, 1]), **drawn)
    return to_estimate(result)


def _share(same: NDArray[np.bool_], drawn: Resampling) -> Estimate:
    found = _mean(same.astype(np.float64), drawn)
    if found.value not in (0.0, 1.0):
        return found
    n_units = len(sum_by_unit(same[:, None], drawn["units"]))
    hits = n_units if found.value == 1 else 0
    limits = clopper_pearson(hits, n_units, confidence=drawn.get("confidence", 0.95))
    return Estimate(found.value, *limits, "exact limits: no resample differs")


class CopyTest(NamedTuple):
    """What a judge says of candidates that are copies of their reference."""

    copies: int
    unanswered: int
    """Copies without a score; they are neither right nor wrong."""

    wrong: tuple[int, ...]
    """Positions of the copies without the best score, from 0."""

    @property
    def passed(self) -> bool | None:
        """Whether every copy has the best score; None without a copy."""
        return not self.wrong and not self.unanswered if self.copies else None


def copy_test(
    references: Sequence[str],
    candidates: Sequence[str],
    scores: NDArray[Any],
    *,
    best: float = 1.0,
) -> CopyTest:
    """Return which copies of the reference a judge does not call perfect.

    Parameters
    ----------
    references, candidates
        Texts of the pairs; equal but for white space is a copy.
    scores
        NaN where unanswered, shape ``(n_pairs,)``.
    best
        Best possible score: 0 for a number of errors.

    Raises
    ------
    ValueError
        The three differ in length.

    Examples
    --------
    >>> texts = ["No effusion.", "Clear lungs."]
    >>> copy_test(texts, ["No  effusion.", "Effusion."], np.array([0.5, 0.1]))
    CopyTest(copies=1, unanswered=0, wrong=(0,))
    """
    if not len(references) == len(candidates) == len(scores):
        raise ValueError(
            f"need texts and scores of the same pairs, got {len(references)}, "
            f"{len(candidates)} and {len(scores)}"
        )
    copies = [
        place
        for place, (one, other) in enumerate(zip(references, candidates, strict=True))
        if one.split() == other.split()
    ]
    answered = [place for place in copies if not np.isnan(scores[place])]
    wrong = tuple(place for place in answered if abs(scores[place] - best) > _SAME)
    return CopyTest(len(copies), len(copies) - len(answered), wrong)
