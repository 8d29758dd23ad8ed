"""How well raters agree with each other: the ceiling of every metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.score.experts.ratings import Ratings, mean_given
from loop.stats.correlation import Correlations, correlate
from loop.stats.intervals import Estimate
from loop.stats.reliability import icc_agreement, interval_alpha, ordinal_alpha
from loop.stats.resampling import Resampling


class RaterPair(NamedTuple):
    """Two raters on the candidates that both rated."""

    first: str
    second: str
    correlations: Correlations
    same: float | None
    """Share of the candidates to which both give the same points."""


class OneAgainstRest(NamedTuple):
    """One rater against the mean of the others, without themselves in it."""

    rater: str
    correlations: Correlations


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterAgreement:
    """Everything that raters agree on; a metric can hardly agree with them more."""

    pairs: tuple[RaterPair, ...]
    """Every two raters; empty for one rater."""

    rest: tuple[OneAgainstRest, ...]
    """Every rater; empty for one rater."""

    ordinal: Estimate
    """Krippendorff's alpha of ordered points."""

    interval: Estimate
    """Krippendorff's alpha of points with equal steps."""

    icc: Estimate
    """ICC(2,1), absolute agreement, over the candidates that all rated."""

    candidates: int
    complete: int
    """Candidates that every rater rated."""

    missing: int
    """Ratings that were not given, of candidates times raters."""

    @property
    def tau_b(self) -> float | None:
        """Mean tau-b of the pairs of raters; None where none is defined."""
        return _mean([pair.correlations.tau_b.value for pair in self.pairs])

    @property
    def tau_b_rest(self) -> float | None:
        """Mean tau-b of one rater with the mean of the others."""
        return _mean([one.correlations.tau_b.value for one in self.rest])


def rater_agreement(
    ratings: Ratings,
    *,
    patients: Mapping[str, str] | None = None,
    resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> RaterAgreement:
    """Return how well the raters agree, with bootstrap intervals over cases.

    Parameters
    ----------
    ratings
        Points of one rater or more; a missing rating drops the candidate from the
        pairs of that rater, never counts as a low one.
    patients
        Patient by case id: all their cases are drawn together; None: all candidates
        of a case are.
    resamples, seed, confidence
        Of the bootstrap.

    Returns
    -------
    RaterAgreement
        Undefined values are None, with the reason in their note.

    References
    ----------
    Krippendorff K. Content Analysis. 4th ed. 2019, chapter 12. Shrout PE, Fleiss JL.
    Psychol Bull 1979;86:420-428.
    """
    units = unit_codes(ratings.ids, patients)
    drawn = Resampling(
        units=units, resamples=resamples, seed=seed, confidence=confidence
    )
    given = ~np.isnan(ratings.scores)
    alone = len(ratings.raters) < 2
    nothing = Estimate(None, None, None, "not estimable: one rater")
    return RaterAgreement(
        pairs=tuple(_pairs(ratings, drawn)),
        rest=() if alone else tuple(_rest(ratings, drawn)),
        ordinal=nothing if alone else ordinal_alpha(ratings.scores, **drawn),
        interval=nothing if alone else interval_alpha(ratings.scores, **drawn),
        icc=nothing if alone else icc_agreement(ratings.scores, **drawn),
        candidates=len(ratings.ids),
        complete=int(given.all(axis=1).sum()),
        missing=int((~given).sum()),
    )


def unit_codes(
    ids: tuple[str, ...], patients: Mapping[str, str] | None
) -> NDArray[Any]:
    """Return the unit of each candidate: its patient where known, else its case.

    Raises
    ------
    ValueError
        `patients` is given and lacks a case.
    """
    if patients is None:
        return np.array(ids)
    lacking = next((case for case in ids if case not in patients), None)
    if lacking is not None:
        raise ValueError(f"no patient for case {lacking}")
    return np.array([patients[case] for case in ids])


def _pairs(ratings: Ratings, drawn: Resampling) -> list[RaterPair]:
    found = []
    for one, other in combinations(range(len(ratings.raters)), 2):
        first, second = ratings.scores[:, one], ratings.scores[:, other]
        both = ~np.isnan(first) & ~np.isnan(second)
        same = float((first == second)[both].mean()) if both.any() else None
        names = ratings.raters[one], ratings.raters[other]
        found.append(RaterPair(*names, correlate(first, second, **drawn), same))
    return found


def _rest(ratings: Ratings, drawn: Resampling) -> list[OneAgainstRest]:
    found = []
    for place, rater in enumerate(ratings.raters):
        others = mean_given(np.delete(ratings.scores, place, axis=1))
        own = ratings.scores[:, place]
        found.append(OneAgainstRest(rater, correlate(own, others, **drawn)))
    return found


def _mean(values: list[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return sum(defined) / len(defined) if defined else None
