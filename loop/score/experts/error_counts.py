"""Metrics from the errors that the raters marked themselves: a check of the method.

A formula fed with a rater's own counts should agree with that rater's points about as
well as raters agree with each other; how it treats candidates without any finding or
error moves the agreement more than the formula does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.score.experts.ratings import (
    Ratings,
    candidate_pairs,
    mean_given,
    unit_codes,
)
from loop.stats.confusion import divide
from loop.stats.correlation import (
    Correlations,
    Preference,
    correlate_columns,
    preference_accuracy,
)
from loop.stats.resampling import Resampling

Counts = NDArray[np.float64]
"""Matched findings, significant and insignificant errors in the last axis."""


class Empty(StrEnum):
    """What a candidate without matches and errors scores."""

    ZERO = "0"
    """As the published implementation of GREEN."""

    ONE = "1"
    SKIP = "skip"
    """Nothing: it is left out, and counted."""


class CountAgreement(NamedTuple):
    """One formula on every rater's own counts, against the same rater's points."""

    name: str
    """For example ``"GREEN"``."""

    formula: str
    """In M matched, S significant and I insignificant errors."""

    empty: Empty | None
    """None where the formula has a value for every candidate."""

    raters: tuple[Correlations, ...]
    unanimous: Preference
    """Mean of the raters' values on the pairs where all prefer the same."""

    @property
    def tau_b(self) -> float | None:
        """Mean tau-b over the raters; None unless every one is defined."""
        values = [one.tau_b.value for one in self.raters]
        defined = [value for value in values if value is not None]
        return sum(defined) / len(values) if len(defined) == len(values) else None


class _Formula(NamedTuple):
    name: str
    words: str
    value: Callable[[Counts], NDArray[np.float64]]
    empty: tuple[Empty, ...]


def share_matched(
    counts: Counts, *, significant: float = 1.0, insignificant: float = 0.0
) -> NDArray[np.float64]:
    """Return ``M / (M + significant S + insignificant I)``.

    GREEN has weights 1 and 0; GREEN-F1 is ``2M / (2M + S)``, weights 0.5 and 0, and
    orders candidates as GREEN does; Formula has weights 2 and 0.5.

    Parameters
    ----------
    counts
        Shape ``(..., 3)``: M, S, I; NaN missing.
    significant, insignificant
        Weight of one error.

    Returns
    -------
    NDArray[np.float64]
        Shape ``(...)``, in [0, 1]; NaN where the denominator is 0.

    References
    ----------
    Ostmeier S, et al. GREEN. Findings of EMNLP 2024:374-390.

    Examples
    --------
    >>> share_matched(np.array([3.0, 1, 2])).tolist()
    0.75
    >>> share_matched(np.array([3.0, 1, 2]), significant=2, insignificant=0.5).tolist()
    0.5
    """
    matched, serious, minor = np.moveaxis(counts, -1, 0)
    return divide(matched, matched + significant * serious + insignificant * minor)


_POLICIES: Final = tuple(Empty)
_FORMULAS: Final = (
    _Formula("GREEN", "M / (M + S)", share_matched, _POLICIES),
    _Formula(
        "Formula",
        "M / (M + 2S + 0.5I)",
        lambda counts: share_matched(counts, significant=2, insignificant=0.5),
        _POLICIES,
    ),
    _Formula("significant errors", "-S", lambda counts: -counts[..., 1], ()),
    _Formula(
        "all errors", "-(S + I)", lambda counts: -counts[..., 1] - counts[..., 2], ()
    ),
    _Formula(
        "weighted errors",
        "-(S + 0.5I)",
        lambda counts: -counts[..., 1] - 0.5 * counts[..., 2],
        (),
    ),
)


def count_agreement(
    ratings: Ratings,
    counts: Counts,
    *,
    patients: Mapping[str, str] | None = None,
    resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> tuple[CountAgreement, ...]:
    """Return how well formulas on the raters' own counts agree with their points.

    Parameters
    ----------
    ratings
        The points.
    counts
        Errors each rater marked, shape ``(n_candidates, n_raters, 3)``; NaN missing.
    patients, resamples, seed, confidence
        As for `rater_agreement`.

    Returns
    -------
    tuple[CountAgreement, ...]
        One per formula and per policy for candidates without matches and errors.

    Raises
    ------
    ValueError
        `counts` does not fit `ratings`.
    """
    if counts.shape != (*ratings.scores.shape, 3):
        raise ValueError(
            f"need three counts per rating, {ratings.scores.shape}, got {counts.shape}"
        )
    units = unit_codes(ratings.ids, patients)
    pairs = candidate_pairs(ratings, units)
    drawn = Resampling(
        units=units, resamples=resamples, seed=seed, confidence=confidence
    )
    asked = [
        (formula, empty) for formula in _FORMULAS for empty in formula.empty or (None,)
    ]
    values = [_fill(one.value(counts), counts, empty) for one, empty in asked]
    n, every = len(ratings.raters), len(values) * len(ratings.raters)
    found = correlate_columns(
        np.column_stack([*values, ratings.scores]),
        [(column, every + column % n) for column in range(every)],
        **drawn,
    )
    chosen = pairs.unanimous
    some = Resampling(**{**drawn, "units": pairs.units[chosen]})
    return tuple(
        CountAgreement(
            name=formula.name,
            formula=formula.words,
            empty=empty,
            raters=tuple(found[place * n : (place + 1) * n]),
            unanimous=preference_accuracy(
                mean_given(values[place])[pairs.rows][chosen],
                pairs.consensus[chosen],
                **some,
            ),
        )
        for place, (formula, empty) in enumerate(asked)
    )


def _fill(
    values: NDArray[np.float64], counts: Counts, empty: Empty | None
) -> NDArray[np.float64]:
    """Return `values` with the policy where counts are given and there is no value."""
    if empty not in (Empty.ZERO, Empty.ONE):
        return values
    bare = np.isnan(values) & ~np.isnan(counts).any(axis=-1)
    return np.where(bare, float(empty), values)
