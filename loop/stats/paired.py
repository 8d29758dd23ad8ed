"""Two prompt versions on the same cases: tests and intervals for the change."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from scipy.special import bdtr, ndtri

from loop.stats.intervals import Interval, check_confidence


def mcnemar_exact(lost: int, gained: int) -> float:
    """Two-sided exact McNemar p-value for a change in the share of right cases.

    Parameters
    ----------
    lost
        Cases right before and wrong after.
    gained
        Cases wrong before and right after.

    Returns
    -------
    float
        ``min(1, 2 P(X <= min(lost, gained)))`` with X binomial over the discordant
        cases with probability one half; 1 when there is none.

    Raises
    ------
    ValueError
        A count is negative.

    References
    ----------
    McNemar Q. Psychometrika 1947;12:153-157. Exact form: Mosteller F. Biometrics
    1952;8:220-226.

    Examples
    --------
    >>> mcnemar_exact(0, 6)
    0.03125
    """
    _check_counts(lost, gained, lost + gained)
    if lost + gained == 0:
        return 1.0
    return min(1.0, 2 * float(bdtr(min(lost, gained), lost + gained, 0.5)))


def can_be_significant(discordant: int, alpha: float) -> bool:
    """Return whether any split of the discordant cases could reach `alpha`.

    Parameters
    ----------
    discordant
        Cases where exactly one of the two versions is right.
    alpha
        Two-sided significance level in (0, 1).

    Returns
    -------
    bool
        False means that the test says nothing, whatever the split: at 0.05 that is
        so for fewer than 6 discordant cases.

    References
    ----------
    The attainable p-values of the test in `mcnemar_exact`.

    Examples
    --------
    >>> can_be_significant(5, 0.05), can_be_significant(6, 0.05)
    (False, True)
    """
    return mcnemar_exact(0, discordant) <= alpha


def tango_interval(
    lost: int, gained: int, n: int, *, confidence: float = 0.95
) -> Interval:
    """Score interval for the difference of two paired proportions.

    It keeps its width when no case changed, where the Wald interval has none; the
    gate for "no worse than a margin" is its lower limit at confidence 0.90, which is
    a one-sided 95 % limit.

    Parameters
    ----------
    lost
        Cases right before and wrong after.
    gained
        Cases wrong before and right after.
    n
        All cases compared, changed or not.
    confidence
        Two-sided confidence level in (0, 1).

    Returns
    -------
    Interval
        Limits of ``(gained - lost) / n``, in [-1, 1]; ``(-1, 1)`` when `n` is 0.

    Raises
    ------
    ValueError
        ``lost + gained`` exceeds `n`, a count is negative, or `confidence` is not
        in (0, 1).

    References
    ----------
    Tango T. Stat Med 1998;17:891-908.

    Examples
    --------
    >>> low, high = tango_interval(2, 10, 300)
    >>> f"{low:.4f} to {high:.4f}"
    '0.0048 to 0.0545'
    """
    _check_counts(lost, gained, n)
    check_confidence(confidence)
    if n == 0:
        return Interval(-1.0, 1.0)
    z = float(ndtri((1 + confidence) / 2))
    return Interval(
        -_upper_root(gained, lost, n, z),
        _upper_root(lost, gained, n, z),
    )


def holm(pvalues: Sequence[float]) -> list[float]:
    """Return Holm-adjusted p-values, in the order given.

    Parameters
    ----------
    pvalues
        One p-value per hypothesis of the family.

    Returns
    -------
    list[float]
        Adjusted values in [0, 1]; comparing them with alpha controls the chance of
        any false claim in the family. Empty for an empty family.

    Raises
    ------
    ValueError
        A p-value is outside [0, 1] or NaN.

    References
    ----------
    Holm S. Scand J Stat 1979;6:65-70.

    Examples
    --------
    >>> [round(p, 4) for p in holm([0.01, 0.02, 0.03, 0.04])]
    [0.04, 0.06, 0.06, 0.06]
    """
    for p in pvalues:
        if not 0 <= p <= 1:
            raise ValueError(f"p-values must be in [0, 1], got {p}")
    given = np.asarray(pvalues, dtype=np.float64)
    order = np.argsort(given, kind="stable")
    scaled = given[order] * np.arange(given.size, 0, -1)
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return [float(p) for p in adjusted]


def _check_counts(lost: int, gained: int, n: int) -> None:
    if min(lost, gained) < 0 or lost + gained > n:
        raise ValueError(
            f"need counts >= 0 and lost + gained <= n, got {lost}, {gained} of {n}"
        )


def _upper_root(lost: int, gained: int, n: int, z: float) -> float:
    """Return the difference at which the score falls to -z, by bisection."""
    low, high = (gained - lost) / n, 1.0
    while low < (middle := (low + high) / 2) < high:
        if _score(lost, gained, n, middle) > -z:
            low = middle
        else:
            high = middle
    return high


def _score(lost: int, gained: int, n: int, difference: float) -> float:
    """Tango's score statistic; its sign times infinity where the variance is 0."""
    a = 2 * n
    b = -lost - gained + (2 * n - gained + lost) * difference
    c = -lost * difference * (1 - difference)
    q = (sqrt(max(b * b - 4 * a * c, 0.0)) - b) / (2 * a)
    variance = n * (2 * q + difference * (1 - difference))
    numerator = gained - lost - n * difference
    if variance <= 0:
        return float("-inf") if numerator < 0 else 0.0
    return numerator / sqrt(variance)
