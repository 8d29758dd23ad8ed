"""Exact confidence intervals for proportions, and limits that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
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
    successes: int, trials: int, *, confidence: float = 0.95, draws: int = 1
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
    draws
        Answers of each case that the counts hold, from several draws of a model with
        chance: the mean of a case is one trial, so counts are divided by it. A mean
        varies no more than a single answer, so the limits are rather too wide.

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
    right, n = _per_case(successes, trials, confidence, draws)
    tail = (1 - confidence) / 2
    return Interval(_low(right, n, tail), _high(right, n, tail))


def lower_limit(
    successes: int, trials: int, *, confidence: float = 0.95, draws: int = 1
) -> float:
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
    draws
        As for `clopper_pearson`.

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
    right, n = _per_case(successes, trials, confidence, draws)
    return _low(right, n, 1 - confidence)


def clustered_interval(
    successes: Sequence[int], trials: Sequence[int], *, confidence: float = 0.95
) -> Interval:
    """Return the exact interval of a proportion whose trials come in units.

    The interval of `clopper_pearson` for the effective number of trials: their number
    divided by the design effect, and never more than their number. Where every trial
    succeeds, or none does, the data do not show how alike the trials of a unit are, and
    each unit counts as one trial.

    Parameters
    ----------
    successes, trials
        Of each unit; a unit without a trial is ignored.
    confidence
        Two-sided confidence level in (0, 1).

    Returns
    -------
    Interval
        Lower and upper limit. ``(0, 1)`` without a trial.

    Raises
    ------
    ValueError
        The two differ in length, or an argument is impossible.

    References
    ----------
    Korn EL, Graubard BI. Survey Methodology 1998;24:193-201. Variance of a share over
    units: Cochran WG. Sampling Techniques, 3rd ed., 1977, section 3.12.

    Examples
    --------
    >>> clustered_interval([1] * 59, [1] * 59) == clopper_pearson(59, 59)
    True
    >>> low, high = clustered_interval([3] * 59, [3] * 59)
    >>> f"{low:.4f}"
    '0.9394'
    """
    check_confidence(confidence)
    if len(successes) != len(trials):
        raise ValueError(
            f"need successes and trials of each unit, got {len(successes)} and "
            f"{len(trials)}"
        )
    for right, one in zip(successes, trials, strict=True):
        check_counts(right, one)
    total, units = sum(trials), sum(one > 0 for one in trials)
    if not total:
        return Interval(0.0, 1.0)
    share = sum(successes) / total
    worth = float(units)
    if 0 < share < 1 and units > 1:
        spread = sum(
            (right - share * one) ** 2
            for right, one in zip(successes, trials, strict=True)
        )
        variance = units / (units - 1) * spread / total**2
        alone = share * (1 - share) / (total - 1)
        worth = float(total) if variance <= alone else total * alone / variance
    tail = (1 - confidence) / 2
    return Interval(_low(share * worth, worth, tail), _high(share * worth, worth, tail))


def f1_limits(
    right: Sequence[int], found: Sequence[int], *, confidence: float = 0.95
) -> Interval:
    """Return limits of the mean F1 over labels, for when no error varies it.

    A bootstrap of answers without an error, or without a hit, gives the same value in
    every resample and so an interval without width. Here the F1 of each label follows
    from a proportion: of the units with a positive on either side, those without an
    error, J; F1 is 2 J / (1 + J), which rises with J, so that exact limits of J are
    exact limits of F1. The limits of all labels hold together (Bonferroni), and with
    them those of the mean, which are therefore wide.

    Parameters
    ----------
    right
        Per label, the units with a positive on either side and no error: none of
        them, or all.
    found
        Per label, the units with a positive on either side, from 1.
    confidence
        Two-sided level in (0, 1), for all labels together.

    Returns
    -------
    Interval
        In [0, 1]; ``(0, 1)`` without a label.

    Raises
    ------
    ValueError
        An argument is outside its range.

    References
    ----------
    Clopper CJ, Pearson ES. Biometrika 1934;26:404-413. F1 and the proportion J
    (Jaccard) of one table: van Rijsbergen CJ. Information Retrieval, 2nd ed. 1979,
    chapter 7. Limits that hold together: Dunn OJ. J Am Stat Assoc 1961;56:52-64.

    Examples
    --------
    >>> low, high = f1_limits([5], [5])
    >>> f"{low:.3f} to {high:.3f}"
    '0.647 to 1.000'
    """
    if not found:
        return Interval(0.0, 1.0)
    level = 1 - (1 - confidence) / len(found)
    shares = [
        clopper_pearson(hits, units, confidence=level)
        for hits, units in zip(right, found, strict=True)
    ]
    lows, highs = zip(*shares, strict=True)
    return Interval(_mean_of_f1(lows), _mean_of_f1(highs))


def kappa_limits(
    right: int, units: int, chance: float, *, confidence: float = 0.95
) -> Interval:
    """Return limits of kappa, for when no error, or no hit, varies it.

    The exact limits of the share of agreement, with the agreement by chance held at
    what was observed.

    Parameters
    ----------
    right, units
        Units without an error, and all units.
    chance
        Agreement expected by chance, in [0, 1).
    confidence
        Two-sided level in (0, 1).

    Returns
    -------
    Interval
        In [-1, 1].

    Raises
    ------
    ValueError
        An argument is outside its range.

    References
    ----------
    Cohen J. Educ Psychol Meas 1960;20:37-46; Clopper CJ, Pearson ES. Biometrika
    1934;26:404-413.

    Examples
    --------
    >>> low, high = kappa_limits(59, 59, 0.5)
    >>> f"{low:.3f} to {high:.3f}"
    '0.879 to 1.000'
    """
    if not 0 <= chance < 1:
        raise ValueError(f"chance must be in [0, 1), got {chance}")
    limits = clopper_pearson(right, units, confidence=confidence)
    low, high = ((share - chance) / (1 - chance) for share in limits)
    return Interval(max(low, -1.0), max(high, -1.0))


def check_confidence(confidence: float) -> None:
    """Raise `ValueError` unless `confidence` lies strictly between 0 and 1."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be in (0, 1), got {confidence}")


def check_counts(successes: int, trials: int, draws: int = 1) -> None:
    """Raise `ValueError` unless so many successes of so many trials can be."""
    if not 0 <= successes <= trials:
        raise ValueError(f"need 0 <= successes <= trials, got {successes} of {trials}")
    if draws < 1:
        raise ValueError(f"need one draw or more, got {draws}")


def _per_case(
    successes: int, trials: int, confidence: float, draws: int
) -> tuple[float, float]:
    """Return successes and trials of the means over draws."""
    check_counts(successes, trials, draws)
    check_confidence(confidence)
    return successes / draws, trials / draws


def _low(successes: float, trials: float, tail: float) -> float:
    if successes == 0:
        return 0.0
    return float(betaincinv(successes, trials - successes + 1, tail))


def _high(successes: float, trials: float, tail: float) -> float:
    if successes == trials:
        return 1.0
    return float(betaincinv(successes + 1, trials - successes, 1 - tail))


def _mean_of_f1(shares: Sequence[float]) -> float:
    return sum(2 * share / (1 + share) for share in shares) / len(shares)
