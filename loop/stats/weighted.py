"""Samples drawn with known, unequal chances, and shares of a population from them.

`inclusion_chances` makes chances of sizes, `draw_systematic` draws as many members as
they add up to, each with exactly its own chance. `design_share` is for such a sample;
`weighted_share` is for one whose members were drawn each for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from loop.stats.intervals import Estimate
from loop.stats.resampling import sum_by_unit

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
    _check_chances(chances, hits)
    if not len(hits):
        return Estimate(None, None, None, NONE_DRAWN)
    weights = 1 / chances
    share = float((weights * hits).sum() / weights.sum())
    if complete and (chances == 1).all():
        return Estimate(share, share, share)
    return _limit(share, effective_size(chances), confidence)


def _limit(share: float, n: float, confidence: float) -> Estimate:
    """Return `share` with the Clopper-Pearson limits of `n` members, not whole."""
    x, tail = share * n, (1 - confidence) / 2
    low = float(betaincinv(x, n - x + 1, tail)) if x > 0 else 0.0
    high = float(betaincinv(x + 1, n - x, 1 - tail)) if x < n else 1.0
    return Estimate(share, min(low, share), max(high, share))


def _check_chances(chances: NDArray[np.float64], *others: NDArray[Any]) -> None:
    if (
        any(one.shape != chances.shape for one in others)
        or not ((chances > 0) & (chances <= 1)).all()
    ):
        raise ValueError("need a chance in (0, 1] for each member")


def effective_size(chances: NDArray[np.float64]) -> float:
    """Return how many equally weighted members say as much: ``(sum w)^2 / sum w^2``.

    Each member has the weight 1 / chance; 0 for none.

    Raises
    ------
    ValueError
        A chance is not in (0, 1].

    References
    ----------
    Kish L. Survey Sampling, 1965, section 11.7.

    Examples
    --------
    >>> round(effective_size(np.array([0.5, 0.5, 0.1])), 2)
    1.81
    """
    _check_chances(chances)
    if not len(chances):
        return 0.0
    weights = 1 / chances
    return float(weights.sum() ** 2 / (weights**2).sum())


def design_share(
    hits: NDArray[Any],
    chances: NDArray[np.float64],
    *,
    among: NDArray[Any] | None = None,
    units: NDArray[Any] | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """Return a share of a population from a sample of fixed size; Hajek's estimator.

    Each drawn member counts 1 / chance. The variance is that of the linearised ratio
    between units, as if they were drawn with replacement: a little too large where the
    sample is a good part of the population. The limits are those of Clopper and Pearson
    for the number of members that a simple random sample of that variance has, at most
    as many as there are; without any variance, for `effective_size`.

    Parameters
    ----------
    hits
        Whether each drawn member has what is counted, shape ``(n,)``; or how often, of
        several answers.
    chances
        With which each was drawn, in (0, 1].
    among
        Whether each is of the group whose share it is, or how many of its answers are,
        at least its `hits`; None: one of each member.
    units
        Unit of each member, for example its patient; None: each is its own.

    Raises
    ------
    ValueError
        The shapes differ, or a chance is not in (0, 1].

    References
    ----------
    Hajek J, in: Godambe VP, Sprott DA (eds). Foundations of Statistical Inference,
    1971, page 236. Linearisation: Saerndal CE, Swensson B, Wretman J. Model Assisted
    Survey Sampling, 1992, section 5.7. Limits: Korn EL, Graubard BI. Survey Methodology
    1998;24:193-201, without their factor for few degrees of freedom.

    Examples
    --------
    >>> found = design_share(np.arange(40) < 10, np.repeat([0.5, 0.1], 20))
    >>> round(found.value, 4), round(found.low, 4), round(found.high, 4)
    (0.0833, 0.0196, 0.215)
    """
    group = np.ones(len(hits)) if among is None else among.astype(float)
    _check_chances(chances, hits, group)
    if not ((hits >= 0) & (hits <= group)).all():
        raise ValueError("what is counted is of the group whose share it is")
    members = int((group > 0).sum())
    if not members:
        return Estimate(None, None, None, NONE_DRAWN)
    weights = 1 / chances
    total = float((weights * group).sum())
    share = float((weights * hits).sum()) / total
    parts = sum_by_unit((weights * (hits - share * group) / total)[:, None], units)
    count = len(parts)
    variance = float((parts**2).sum()) * count / (count - 1) if count > 1 else 0.0
    if 0 < share < 1 and variance > 0:
        n = min(float(members), share * (1 - share) / variance)
    else:
        n = effective_size(chances[group > 0])
    return _limit(share, n, confidence)


def inclusion_chances(
    sizes: NDArray[np.float64], n: int, *, even: float
) -> NDArray[np.float64]:
    """Return the chance of each member to be among the `n` that are drawn.

    They add up to `n`. A part of the sample is spread evenly, so that no chance is
    below ``even n / N``, the rest goes in proportion to the sizes. What would exceed 1
    is drawn for certain, and the others share the rest.

    Parameters
    ----------
    sizes
        At least 0, shape ``(N,)``; all 0 is as if all were equal.
    n
        From 1 to N.
    even
        Part of the sample that is spread evenly, in (0, 1].

    Raises
    ------
    ValueError
        `n` or `even` is out of range, or a size is negative or no number.

    References
    ----------
    Saerndal CE, Swensson B, Wretman J. Model Assisted Survey Sampling, 1992, section
    3.6.2, for the chances in proportion to size. The even part is the defensive mixture
    of Hesterberg T. Technometrics 1995;37:185-194.

    Examples
    --------
    >>> inclusion_chances(np.array([0.0, 1.0, 2.0, 20.0]), 2, even=0.2).round(2)
    array([0.2 , 0.33, 0.47, 1.  ])
    """
    if not (1 <= n <= len(sizes)):
        raise ValueError(f"{n} of {len(sizes)} members cannot be drawn")
    if not 0 < even <= 1:
        raise ValueError(f"the even part is in (0, 1], got {even}")
    if not (np.isfinite(sizes) & (sizes >= 0)).all():
        raise ValueError("a size is a number of at least 0")
    if n == len(sizes):
        return np.ones(n)
    mean = float(sizes.mean())
    shares = even + (1 - even) * (sizes / mean if mean > 0 else np.ones(len(sizes)))
    certain = np.zeros(len(sizes), dtype=bool)
    while True:
        left = n - int(certain.sum())
        rest = np.where(certain, 0.0, shares)
        chances = np.where(certain, 1.0, rest * (left / rest.sum()))
        over = ~certain & (chances >= 1)
        if not over.any():
            return chances
        certain |= over


def draw_systematic(
    chances: NDArray[np.float64], order: NDArray[np.int64], start: float
) -> NDArray[np.int64]:
    """Return the members of a randomised systematic sample, ascending.

    The chances are laid end to end in `order`, and whoever holds one of the points
    ``start, start + 1, ...`` is drawn: exactly as many as the chances add up to, each
    with its own chance, whatever the order. A random order keeps the chances of pairs
    near their product.

    Parameters
    ----------
    chances
        In (0, 1], adding up to a whole number.
    order
        A random permutation of the members.
    start
        Drawn evenly from [0, 1).

    Raises
    ------
    ValueError
        A chance is not in (0, 1], they do not add up to a whole number, or `start` is
        not in [0, 1).

    References
    ----------
    Madow WG. Annals of Mathematical Statistics 1949;20:333-354. Random order, and
    chances of pairs: Hartley HO, Rao JNK. Annals of Mathematical Statistics
    1962;33:350-374.

    Examples
    --------
    >>> draw_systematic(np.array([0.5, 1.0, 0.25, 0.25]), np.array([3, 0, 1, 2]), 0.6)
    array([0, 1])
    """
    _check_chances(chances)
    n = round(float(chances.sum()))
    if abs(float(chances.sum()) - n) > 1e-6 or not 0 <= start < 1:
        raise ValueError(
            f"chances of {n} members add up to it, and the start is in [0, 1); got "
            f"{float(chances.sum())} and {start}"
        )
    # Apart, so that rounding cannot draw them twice or not at all.
    certain = np.flatnonzero(chances == 1)
    others = order[chances[order] < 1]
    points = start + np.arange(n - len(certain))
    ends = np.cumsum(chances[others])
    found = np.searchsorted(ends[:-1], points, side="right")
    return np.sort(np.concatenate([certain, others[found]]))


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
