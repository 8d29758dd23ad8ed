"""Shares of a population from a sample drawn with known, unequal chances."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from loop.stats.intervals import Estimate

NONE_DRAWN = "not estimable: none was drawn"
"""Note of a share of which nothing is known."""


def weighted_share(
    hits: NDArray[np.bool_],
    chances: NDArray[np.float64],
    *,
    complete: bool = True,
    confidence: float = 0.95,
) -> Estimate:
    """Return a share of a population, each drawn member counting 1 / chance.

    The limits are those of Clopper and Pearson for the effective number of members,
    ``(sum w)^2 / sum w^2``, as for surveys (Korn and Graubard); where every member was
    drawn for certain and is there, the share is known and has no width.

    Parameters
    ----------
    hits
        Whether each drawn member has what is counted, shape ``(n,)``.
    chances
        With which each was drawn, in (0, 1].
    complete
        Whether all that were drawn are there; False where of some nothing is known.

    Raises
    ------
    ValueError
        The shapes differ, or a chance is not in (0, 1].

    References
    ----------
    Korn EL, Graubard BI. Survey Methodology 1998;24:193-201. Effective number: Kish L.
    Survey Sampling, 1965.

    Examples
    --------
    >>> weighted_share(np.array([True, False]), np.array([0.5, 0.25])).value
    0.3333333333333333
    """
    if hits.shape != chances.shape or not ((chances > 0) & (chances <= 1)).all():
        raise ValueError("need a chance in (0, 1] for each member")
    if not len(hits):
        return Estimate(None, None, None, NONE_DRAWN)
    weights = 1 / chances
    share = float((weights * hits).sum() / weights.sum())
    if complete and (chances == 1).all():
        return Estimate(share, share, share)
    n = float(weights.sum() ** 2 / (weights**2).sum())
    x, tail = share * n, (1 - confidence) / 2
    low = float(betaincinv(x, n - x + 1, tail)) if x > 0 else 0.0
    high = float(betaincinv(x + 1, n - x, 1 - tail)) if x < n else 1.0
    return Estimate(share, min(low, share), max(high, share))


def weighted_sum(
    parts: Sequence[tuple[float, Estimate]],
) -> Estimate:
    """Return a sum of independent estimates, each times a known share.

    Its limits are recovered from theirs: their distances from the estimates add up as
    squares (the method of variance estimates recovery).

    Parameters
    ----------
    parts
        Share, at least 0, and estimate; one with a share of 0 is left out.

    References
    ----------
    Zou GY, Donner A. Statistics in Medicine 2008;27:1693-1702.

    Examples
    --------
    >>> found = weighted_sum([(0.5, Estimate(0.8, 0.6, 0.9)), (0.5, Estimate(0, 0, 0))])
    >>> found.value, round(found.low, 3), round(found.high, 3)
    (0.4, 0.3, 0.45)
    """
    used = [(share, one) for share, one in parts if share > 0]
    unknown = next((one for _, one in used if one.value is None), None)
    if unknown is not None:
        return unknown
    value = sum(share * float(one.value or 0.0) for share, one in used)
    below = [
        share * (float(one.value or 0) - float(one.low or 0)) for share, one in used
    ]
    above = [
        share * (float(one.high or 0) - float(one.value or 0)) for share, one in used
    ]
    return Estimate(
        value, max(0.0, value - hypot(*below)), min(1.0, value + hypot(*above))
    )
