"""Exact confidence intervals for proportions."""

from __future__ import annotations

from typing import NamedTuple

from scipy.special import betaincinv


class Interval(NamedTuple):
    """A closed interval: within [0, 1] for a proportion, [-1, 1] for a difference."""

    low: float
    high: float


class Estimate(NamedTuple):
    """A statistic with its interval; None, never NaN, where it cannot be estimated."""

    value: float | None
    low: float | None
    high: float | None
    note: str = ""
    """Why a number is missing or rests on fewer cases; empty when nothing is wrong."""


def clopper_pearson(
    successes: int, trials: int, *, confidence: float = 0.95
) -> Interval:
    """Exact (Clopper-Pearson) two-sided interval for a binomial proportion.

    Coverage is at least `confidence` for every true proportion, so the interval is
    conservative. It assumes independent trials: with several cases per patient, use
    the bootstrap over patients beside it.

    Parameters
    ----------
    successes
        Number of successes, ``0 <= successes <= trials``.
    trials
        Number of independent trials, in whatever unit was sampled.
    confidence
        Two-sided confidence level in (0, 1).

    Returns
    -------
    Interval
        Lower and upper limit. ``(0, 1)`` when `trials` is 0: no data, no claim.

    Raises
    ------
    ValueError
        An argument is outside the range above.

    References
    ----------
    Clopper CJ, Pearson ES. Biometrika 1934;26:404-413.
    Limits as Beta quantiles: Brown LD, Cai TT, DasGupta A. Stat Sci
    2001;16:101-133.

    Examples
    --------
    >>> low, high = clopper_pearson(298, 300)
    >>> f"{low:.5f} to {high:.5f}"
    '0.97613 to 0.99919'
    """
    _check(successes, trials, confidence)
    tail = (1 - confidence) / 2
    return Interval(_low(successes, trials, tail), _high(successes, trials, tail))


def lower_limit(successes: int, trials: int, *, confidence: float = 0.95) -> float:
    """Exact one-sided lower limit for a binomial proportion.

    Parameters
    ----------
    successes
        Number of successes, ``0 <= successes <= trials``.
    trials
        Number of independent trials.
    confidence
        One-sided confidence level in (0, 1); 0.975 gives the lower limit of the
        two-sided 95 % interval.

    Returns
    -------
    float
        The limit in [0, 1]; 0 when there is no success or no trial.

    Raises
    ------
    ValueError
        An argument is outside the range above.

    References
    ----------
    Clopper CJ, Pearson ES. Biometrika 1934;26:404-413.

    Examples
    --------
    >>> lower_limit(59, 59) > 0.95 > lower_limit(58, 58)
    True
    """
    _check(successes, trials, confidence)
    return _low(successes, trials, 1 - confidence)


def check_confidence(confidence: float) -> None:
    """Raise `ValueError` unless `confidence` lies strictly between 0 and 1."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be in (0, 1), got {confidence}")


def _check(successes: int, trials: int, confidence: float) -> None:
    if not 0 <= successes <= trials:
        raise ValueError(f"need 0 <= successes <= trials, got {successes} of {trials}")
    check_confidence(confidence)


def _low(successes: int, trials: int, tail: float) -> float:
    if successes == 0:
        return 0.0
    return float(betaincinv(successes, trials - successes + 1, tail))


def _high(successes: int, trials: int, tail: float) -> float:
    if successes == trials:
        return 1.0
    return float(betaincinv(successes + 1, trials - successes, 1 - tail))
