"""Exact power of a lower limit, and the number of cases that reaches it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, betainc, gammaincinv, ndtri

from loop.stats.intervals import check_confidence, check_counts

MOST = 100_000
"""A plan beyond this many cases is no plan."""

_NEGLIGIBLE = 1e-9
"""A chance as small as this is taken as none."""

_Counts = NDArray[np.int64]


class Bar(NamedTuple):
    """What an exact one-sided lower limit must reach."""

    threshold: float
    """Share in (0, 1)."""

    confidence: float = 0.95
    """One-sided level; 0.975 gives the two-sided 95 % interval."""


class Rates(NamedTuple):
    """Supposed true shares of right answers."""

    sensitivity: float
    specificity: float

    def accuracy(self, prevalence: float) -> float:
        """Share of right answers among all cases."""
        return prevalence * self.sensitivity + (1 - prevalence) * self.specificity


class Size(NamedTuple):
    """Numbers of cases that reach a power; None beyond `MOST` or never."""

    first: int | None
    """The first number with the power."""

    safe: int | None
    """From this number on the power never falls below: the one to plan with."""


def exact_p(successes: int, trials: int, threshold: float, *, draws: int = 1) -> float:
    """Return the exact one-sided p-value against a share of at most `threshold`.

    Parameters
    ----------
    successes
        Number of successes, ``0 <= successes <= trials``.
    trials
        Number of independent trials.
    threshold
        Share in (0, 1) under the null hypothesis.
    draws
        As for `loop.stats.intervals.clopper_pearson`.

    Returns
    -------
    float
        ``P(X >= successes)`` for X binomial with `threshold`; 1 without trials. It is
        at most alpha where the one-sided lower limit at 1 - alpha reaches `threshold`.

    Raises
    ------
    ValueError
        An argument is outside the range above.

    References
    ----------
    Clopper CJ, Pearson ES. Biometrika 1934;26:404-413 (the test behind the limit).

    Examples
    --------
    >>> exact_p(59, 59, 0.95) <= 0.05 < exact_p(58, 58, 0.95)
    True
    """
    check_counts(successes, trials, draws)
    _check_share(threshold)
    if successes == 0:
        return 1.0
    right, wrong = successes / draws, (trials - successes) / draws
    return float(betainc(right, wrong + 1, threshold))


def flawless_cases(bar: Bar) -> int:
    """Return the fewest cases that certify `bar` without an error.

    Raises
    ------
    ValueError
        A level is outside (0, 1).

    References
    ----------
    ``threshold ** n <= 1 - confidence``: the exact limit of n of n in closed form.

    Examples
    --------
    >>> flawless_cases(Bar(0.95)), flawless_cases(Bar(0.80)), flawless_cases(Bar(0.90))
    (59, 14, 29)
    """
    _check_bar(bar)
    return max(ceil(log(1 - bar.confidence) / log(bar.threshold) - 1e-9), 1)


def least_cases(bar: Bar, most: int) -> _Counts:
    """Return the fewest cases with which 0, 1, 2 ... errors still certify `bar`.

    Parameters
    ----------
    most
        Largest number of cases of interest, at least 1.

    Returns
    -------
    NDArray[np.int64]
        Strictly increasing, every entry up to `most`; empty when even a flawless
        result on `most` cases certifies nothing.

    Raises
    ------
    ValueError
        `most` is below 1, or a level is outside (0, 1).

    References
    ----------
    Clopper CJ, Pearson ES. Biometrika 1934;26:404-413, inverted over the trials.

    Examples
    --------
    >>> least_cases(Bar(0.95), 130).tolist()
    [59, 93, 124]
    """
    _check_bar(bar)
    if most < 1:
        raise ValueError(f"need at least one case, got {most}")
    table = _least(bar, 1 << (most - 1).bit_length())
    return table[: int(np.searchsorted(table, most, side="right"))]


def size_for_power(share: float, bar: Bar, *, power: float) -> Size:
    """Return how many cases certify `bar` with a power, if `share` is true.

    Parameters
    ----------
    share
        Supposed true accuracy or sensitivity in [0, 1].
    power
        Chance in (0, 1) that the lower limit reaches the threshold.

    Returns
    -------
    Size
        Both None when `share` is not above the threshold, or when `MOST` cases would
        not be enough.

    Raises
    ------
    ValueError
        An argument is outside the range above.

    References
    ----------
    Chernick MR, Liu CY. Am Stat 2002;56:149-155: power is saw-toothed in the number
    of cases. It rises where one more error becomes bearable and falls in between, so
    that these places decide.

    Examples
    --------
    >>> size_for_power(0.99, Bar(0.95), power=0.9)
    Size(first=153, safe=181)
    """
    _check_bar(bar)
    check_confidence(power)
    if not 0 <= share <= 1:
        raise ValueError(f"a share must be in [0, 1], got {share}")
    return _size(share, bar, power)


def sizes_for_both(
    rates: Rates,
    prevalence: float,
    accuracy: Bar,
    sensitivity: Bar,
    powers: Sequence[float],
) -> tuple[Size, ...]:
    """Return how many cases certify accuracy and sensitivity together.

    Every case counts for the accuracy; of `n` cases ``floor(n prevalence)`` are taken
    as positives, as a random sample has them on average.

    Parameters
    ----------
    rates
        Supposed true sensitivity and specificity.
    prevalence
        Share of positives in (0, 1).
    accuracy, sensitivity
        What the two lower limits must reach.
    powers
        Chances in [0.5, 1) that both do.

    Returns
    -------
    tuple[Size, ...]
        One per power; None where a rate is not above its threshold or `MOST` cases
        would not be enough.

    Raises
    ------
    ValueError
        An argument is outside the range above.

    References
    ----------
    Misses and false alarms are independent binomials; the sum over the misses that
    the sensitivity can bear is exact. Beyond the sizes at ``(1 + power) / 2`` of each
    alone both hold by Bonferroni's inequality; for the accuracy, whose errors have
    two rates, by Hoeffding W. Ann Math Stat 1956;27:713-721: the binomial with their
    mean is the worse case. Where so many cases bring so many positives that the
    sensitivity is certain, that binomial alone decides.
    """
    if not 0 < prevalence < 1:
        raise ValueError(f"prevalence must be in (0, 1), got {prevalence}")
    for power in powers:
        if not 0.5 <= power < 1:
            raise ValueError(f"power must be in [0.5, 1), got {power}")
    return tuple(
        _both(rates, prevalence, accuracy, sensitivity, power) for power in powers
    )


@lru_cache(maxsize=1024)
def _both(
    rates: Rates, prevalence: float, accuracy: Bar, sensitivity: Bar, power: float
) -> Size:
    share, enough = rates.accuracy(prevalence), (1 + power) / 2
    cases = size_for_power(share, accuracy, power=enough).safe
    positives = size_for_power(rates.sensitivity, sensitivity, power=enough).safe
    if cases is None or positives is None:
        return Size(None, None)
    least = _least_even(share, accuracy, cases)
    if _is_certain(rates.sensitivity, sensitivity, int(least * prevalence)):
        return size_for_power(share, accuracy, power=power)
    most = max(cases, ceil((positives + 1) / prevalence))
    if most > MOST:
        return Size(None, None)
    starts = _joint_starts(prevalence, accuracy, sensitivity, most)
    starts = starts[starts >= least]
    # Beyond the last place nothing is searched: there both hold by their own sizes.
    ends = np.append(starts[1:], most + 1) - 1
    design = (rates, prevalence, accuracy, sensitivity)
    peaks, troughs = (_joint_power(n, *design) for n in (starts, ends))
    return _decide(starts, peaks, troughs, power)


def _least_even(share: float, bar: Bar, most: int) -> int:
    """Return the first number of cases that certifies as often as not, or before.

    A sum of independent errors has its median within one of its mean.
    """
    starts = least_cases(bar, most)
    even = np.arange(len(starts)) >= starts * (1 - share) - 1
    return int(starts[even.argmax()])


def _is_certain(share: float, bar: Bar, n: int) -> bool:
    """Return whether `n` cases or more certify `bar` all but surely."""
    safe = size_for_power(share, bar, power=1 - _NEGLIGIBLE).safe
    return safe is not None and n >= safe


def _joint_starts(
    prevalence: float, accuracy: Bar, sensitivity: Bar, most: int
) -> _Counts:
    """Return where one more error, miss or positive comes in, up to `most`."""
    bearable = least_cases(accuracy, most)
    positives = np.arange(1, int(most * prevalence) + 2)
    arrivals = np.ceil(positives / prevalence - 1e-9).astype(np.int64)
    starts = np.union1d(bearable, arrivals)
    fewest = least_cases(sensitivity, most)[:1] / prevalence
    least = max([*bearable[:1], *np.ceil(fewest - 1e-9)], default=most)
    return starts[(starts >= least) & (starts <= most)]


def _joint_power(
    n: _Counts, rates: Rates, prevalence: float, accuracy: Bar, sensitivity: Bar
) -> NDArray[np.float64]:
    """Return the chance that both limits hold at each of the `n`."""
    positives = np.floor(n * prevalence + 1e-9).astype(np.int64)
    largest = int(n.max(initial=1))
    errors = _bearable(n, least_cases(accuracy, largest))
    misses = _bearable(positives, least_cases(sensitivity, largest))
    power = np.zeros(n.shape)
    before = np.zeros(n.shape)
    for miss in range(int(misses.max(initial=-1)) + 1):
        up_to = bdtr(np.minimum(miss, positives), positives, 1 - rates.sensitivity)
        held = bdtr(
            np.clip(errors - miss, 0, n - positives),
            n - positives,
            1 - rates.specificity,
        )
        counted = (miss <= misses) & (miss <= errors)
        power += np.where(counted, (up_to - before) * held, 0.0)
        before = up_to
        if (1 - up_to < _NEGLIGIBLE).all():
            break
    return power


def _bearable(n: _Counts, least: _Counts) -> _Counts:
    """Return the most errors that `n` cases bear; -1 where they certify nothing."""
    return np.searchsorted(least, n, side="right") - 1


@lru_cache(maxsize=1024)
def _size(share: float, bar: Bar, power: float) -> Size:
    most = _reach(share, bar, power)
    if most is None:
        return Size(None, None)
    starts = least_cases(bar, most)
    errors = np.arange(len(starts))
    ends = starts[1:] - 1
    peaks = bdtr(errors, starts, 1 - share)
    troughs = bdtr(errors[:-1], ends, 1 - share)
    return _decide(starts[:-1], peaks[:-1], troughs, power)


def _decide(
    starts: _Counts,
    peaks: NDArray[np.floating],
    troughs: NDArray[np.floating],
    power: float,
) -> Size:
    """Return the first start whose peak has the power, and where troughs end."""
    reached = np.flatnonzero(peaks >= power)
    short = np.flatnonzero(troughs < power)
    first = int(starts[reached[0]]) if reached.size else None
    after = int(short[-1]) + 1 if short.size else 0
    safe = int(starts[after]) if after < len(starts) else None
    return Size(first, safe)


def _reach(share: float, bar: Bar, power: float) -> int | None:
    """Return a number of cases beyond which the power is above `power` for good.

    Twice the normal approximation and twenty teeth: power grows with the root of the
    cases, a tooth shrinks with it.
    """
    gap = share - bar.threshold
    if gap <= 0:
        return None
    spread = float(ndtri(bar.confidence)) * sqrt(bar.threshold * (1 - bar.threshold))
    spread += max(float(ndtri(power)), 0.0) * sqrt(share * (1 - share))
    cases = (spread / gap) ** 2
    if cases > MOST:
        return None
    return ceil(2 * (cases + flawless_cases(bar)) + 20 / gap)


@lru_cache(maxsize=64)
def _least(bar: Bar, most: int) -> _Counts:
    """Return `least_cases` up to `most`, by bisection over all errors at once."""
    alpha, wrong = 1 - bar.confidence, 1 - bar.threshold
    errors = np.arange(int(most * wrong) + 1)
    low = errors.astype(np.int64)
    # Small counts are rarer under the binomial than under the Poisson distribution.
    high = np.ceil(gammaincinv(errors + 1.0, bar.confidence) / wrong).astype(np.int64)
    high = np.maximum(high, low) + 1
    while (bdtr(errors, high, wrong) > alpha).any():
        high = 2 * high
    while (high - low > 1).any():
        middle = (low + high) // 2
        holds = bdtr(errors, middle, wrong) <= alpha
        low, high = np.where(holds, low, middle), np.where(holds, middle, high)
    found = np.asarray(high[high <= most], dtype=np.int64)
    found.setflags(write=False)
    return found


def _check_bar(bar: Bar) -> None:
    _check_share(bar.threshold)
    check_confidence(bar.confidence)


def _check_share(threshold: float) -> None:
    if not 0 < threshold < 1:
        raise ValueError(f"threshold must be in (0, 1), got {threshold}")
