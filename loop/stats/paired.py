"""Two things on the same cases: exact and permutation tests, intervals, and Holm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import comb, gcd, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, ndtri

from loop.stats.intervals import Interval, check_confidence
from loop.stats.resampling import one_thread


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


def sign_flip_p(differences: Sequence[int] | NDArray[np.integer]) -> float:
    """One-sided exact p-value that paired differences tend to be below zero.

    The null hypothesis is that each unit's two values could as well have been
    exchanged: given how large the differences are, their signs are fair coins. With
    differences of -1, 0 and 1 this is the one-sided exact McNemar test.

    Parameters
    ----------
    differences
        After minus before, one whole number a unit; shape ``(n_units,)``. For a mean
        over draws, the sum over draws, so that units of more than one draw keep their
        exact size. Zeros say nothing and do not count.

    Returns
    -------
    float
        Share of the ``2 ** n`` ways to choose signs whose sum is not above the one
        observed, in (0, 1]; 1 when no difference is other than zero.

    Raises
    ------
    ValueError
        A difference is not a whole number.

    References
    ----------
    Pitman EJG. J R Stat Soc Suppl 1937;4:119-130. Fisher RA. The Design of
    Experiments, 1935, section 21.

    Examples
    --------
    >>> round(sign_flip_p([-1, -1, -1, -1, -1, 0, 0]), 5)
    0.03125
    >>> round(sign_flip_p([-3, -3, -2, 1]), 4)
    0.125
    """
    values = np.asarray(differences)
    if values.size and not np.issubdtype(values.dtype, np.integer):
        raise ValueError(f"differences must be whole numbers, got {values.dtype}")
    values = values[values != 0].astype(np.int64)
    if not values.size:
        return 1.0
    values = values // gcd(*np.abs(values).tolist())
    sizes, counts = np.unique(np.abs(values), return_counts=True)
    # The law of the sum of what is positive, one size of difference after another.
    law = np.ones(1)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        part = np.zeros(size * count + 1)
        part[::size] = [comb(count, one) / 2**count for one in range(count + 1)]
        law = np.convolve(law, part)
    gained = int(values[values > 0].sum())
    return min(1.0, float(law[: gained + 1].sum()))


def find_attainable(least: Sequence[float], alpha: float) -> list[bool]:
    """Return which hypotheses of a family could be rejected at all after correction.

    A discrete test has a smallest p-value that it can attain. Tarone's rule: let k be
    the smallest number such that at most k tests can attain ``alpha / k``; only these
    are tested, and the correction is over them alone. What a test can attain may rest
    only on what its null hypothesis conditions on, as the number of discordant cases.

    Parameters
    ----------
    least
        Smallest p-value that each test can attain.
    alpha
        Family-wise level in (0, 1).

    Returns
    -------
    list[bool]
        In the order given; empty for an empty family.

    References
    ----------
    Tarone RE. Biometrics 1990;46:515-522.

    Examples
    --------
    >>> find_attainable([0.5**3, 0.5**5, 0.5**9], 0.05)
    [False, False, True]
    """
    given = np.asarray(least, dtype=np.float64)
    for k in range(1, len(given) + 1):
        able = given <= alpha / k
        if able.sum() <= k:
            return [bool(one) for one in able]
    return []


def tango_interval(
    lost: float, gained: float, n: int, *, confidence: float = 0.95
) -> Interval:
    """Score interval for the difference of two paired proportions.

    It keeps its width when no case changed, where the Wald interval has none; the
    gate for "no worse than a margin" is its lower limit at confidence 0.90, which is
    a one-sided 95 % limit.

    Of means over several draws, give the sums of what each case lost and gained: parts
    of cases. The interval is then too wide rather than too narrow, since a difference
    of a part has less variance than as large a part of whole ones.

    Parameters
    ----------
    lost
        Cases right before and wrong after, or the sum of their parts.
    gained
        Cases wrong before and right after, or the sum of their parts.
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


def stratified_interval(
    before: Sequence[int],
    after: Sequence[int],
    trials: Sequence[int],
    *,
    confidence: float = 0.95,
) -> Interval:
    """Score interval for a difference of proportions that is the same in all strata.

    For cases that were each read several times before and after: a case is a stratum.
    It keeps its width where nothing varied, and its level where the strata are many
    and small.

    Parameters
    ----------
    before, after
        Successes per stratum, shape ``(n_strata,)``.
    trials
        Trials per stratum, as many before as after; a stratum weighs as much.
    confidence
        Two-sided confidence level in (0, 1).

    Returns
    -------
    Interval
        Limits of the weighted mean of after minus before, in [-1, 1]; ``(-1, 1)``
        without trials.

    Raises
    ------
    ValueError
        The shapes differ, successes are negative or exceed the trials, or
        `confidence` is not in (0, 1).

    References
    ----------
    Miettinen O, Nurminen M. Stat Med 1985;4:213-226, with the trials as weights.

    Examples
    --------
    >>> low, high = stratified_interval([0, 1, 0], [3, 3, 2], [3, 3, 3])
    >>> f"{low:.3f} to {high:.3f}"
    '0.362 to 0.944'
    """
    check_confidence(confidence)
    was, now, each = (
        np.asarray(one, dtype=np.float64) for one in (before, after, trials)
    )
    if not was.shape == now.shape == each.shape:
        raise ValueError(f"shapes differ: {was.shape}, {now.shape}, {each.shape}")
    if np.any(np.minimum(was, now) < 0) or np.any(np.maximum(was, now) > each):
        raise ValueError("need 0 <= successes <= trials in every stratum")
    was, now, each = was[each > 0], now[each > 0], each[each > 0]
    if not each.size:
        return Interval(-1.0, 1.0)
    z = float(ndtri((1 + confidence) / 2))
    return Interval(
        -_highest_difference(now, was, each, z), _highest_difference(was, now, each, z)
    )


_Strata = NDArray[np.float64]


def _highest_difference(was: _Strata, now: _Strata, each: _Strata, z: float) -> float:
    """Return the difference at which the score falls to -z, by bisection."""
    observed = float((now - was).sum() / each.sum())
    low, high = observed, 1.0
    while low < (middle := (low + high) / 2) < high:
        chance = _null_proportion(was, now, each, middle)
        spread = chance * (1 - chance) + (chance + middle) * (1 - chance - middle)
        # Weights are the trials n; the factor makes up for two estimated shares.
        variance = float((each * spread * 2 * each / (2 * each - 1)).sum())
        if (middle - observed) * float(each.sum()) < z * sqrt(max(variance, 0.0)):
            low = middle
        else:
            high = middle
    return high


def _null_proportion(
    was: _Strata, now: _Strata, each: _Strata, difference: float
) -> _Strata:
    """Return the likeliest share before if after is higher by `difference`.

    The closed form of Miettinen and Nurminen's appendix, for equal trials.
    """
    square = 3 * each * difference - 2 * each - was - now
    linear = (each * difference - 2 * each - 2 * was) * difference + was + now
    constant = was * difference * (1 - difference)
    third = square / (6 * each)
    q = third**3 - square * linear / (24 * each**2) + constant / (4 * each)
    root = np.sqrt(np.maximum(third**2 - linear / (6 * each), 0.0))
    p = np.where(q < 0, -root, root)
    cube = np.divide(q, p**3, out=np.ones_like(q), where=p != 0)
    angle = (np.pi + np.arccos(np.clip(cube, -1.0, 1.0))) / 3
    found = 2 * p * np.cos(angle) - third
    return np.asarray(np.clip(found, max(0.0, -difference), min(1.0, 1.0 - difference)))


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


def spend_alpha(alpha: float, look: int) -> float:
    """Level of the `look`-th test, from 1, of one question as its data grow.

    Each look spends two thirds of what the earlier ones left, so that all of them
    together, however many there will be, claim falsely with a chance of at most `alpha`
    (Bonferroni: 2/3 + 2/9 + 2/27 + ... is 1).

    Raises
    ------
    ValueError
        `alpha` is not in (0, 1), or `look` is below 1.

    References
    ----------
    Spending a level over looks: Lan KKG, DeMets DL. Biometrika 1983;70:659-663.

    Examples
    --------
    >>> [round(spend_alpha(0.05, look), 4) for look in (1, 2, 3)]
    [0.0333, 0.0111, 0.0037]
    """
    if not 0 < alpha < 1 or look < 1:
        raise ValueError(f"need 0 < alpha < 1 and look >= 1, got {alpha}, {look}")
    return 2 * alpha / 3.0**look


def _check_counts(lost: float, gained: float, n: int) -> None:
    if min(lost, gained) < 0 or lost + gained > n:
        raise ValueError(
            f"need counts >= 0 and lost + gained <= n, got {lost}, {gained} of {n}"
        )


def _upper_root(lost: float, gained: float, n: int, z: float) -> float:
    """Return the difference at which the score falls to -z, by bisection."""
    low, high = (gained - lost) / n, 1.0
    while low < (middle := (low + high) / 2) < high:
        if _score(lost, gained, n, middle) > -z:
            low = middle
        else:
            high = middle
    return high


def _score(lost: float, gained: float, n: int, difference: float) -> float:
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


Differences = Callable[[NDArray[np.bool_]], NDArray[np.float64]]
"""From which units are exchanged, ``(n, n_units)``, to differences ``(n, m)``; NaN
where undefined. Exchanging the other units instead must only change the sign."""

TIE = 1e-12
"""Values closer than this are equal: they differ by rounding alone."""

_BLOCK = 600_000
"""Exchanges of single units at once; fixed, because the draws depend on it."""

_MOST_ROWS = 256
"""Rows at once at most, so that what is made of them fits into the cache."""


def exact_p(
    differences: Differences, observed: NDArray[np.float64], n_units: int
) -> NDArray[np.float64]:
    """Return two-sided p-values from all ``2 ** n_units`` exchanges.

    Parameters
    ----------
    differences
        The statistic.
    observed
        Absolute differences without any exchange, shape ``(m,)``.
    n_units
        Units that are exchanged; time doubles with each.

    Returns
    -------
    NDArray[np.float64]
        Share of exchanges after which the absolute difference is as large or
        undefined, shape ``(m,)``; 1 without a unit.

    References
    ----------
    Pitman EJG. J R Stat Soc Suppl 1937;4:119-130.

    Examples
    --------
    >>> gains = np.array([1.0, 2.0, 3.0])
    >>> def total(swaps):
    ...     return np.where(swaps, -gains, gains).sum(axis=1, keepdims=True)
    >>> exact_p(total, np.array([6.0]), 3).tolist()
    [0.25]
    """
    # The last unit stays: the other half of all exchanges only has the other sign.
    free = max(n_units - 1, 0)
    larger = np.zeros(len(observed), dtype=np.int64)
    with one_thread():
        for start in range(0, 2**free, _MOST_ROWS):
            codes = np.arange(start, min(start + _MOST_ROWS, 2**free))
            swaps = (codes[:, None] >> np.arange(n_units)) & 1 == 1
            larger += _count_large(differences(swaps), observed)
    return np.asarray(larger / 2**free)


def sampled_p(
    differences: Differences,
    observed: NDArray[np.float64],
    n_units: int,
    *,
    permutations: int,
    seed: int,
) -> NDArray[np.float64]:
    """Return two-sided p-values from a sample of exchanges.

    Parameters
    ----------
    differences, observed, n_units
        As for `exact_p`.
    permutations
        Exchanges drawn, the same ones for all differences.
    seed
        Seed of the draws.

    Returns
    -------
    NDArray[np.float64]
        ``(k + 1) / (permutations + 1)`` with `k` differences as large or undefined,
        shape ``(m,)``; never 0.

    References
    ----------
    Phipson B, Smyth GK. Stat Appl Genet Mol Biol 2010;9:39.
    """
    larger = np.zeros(len(observed), dtype=np.int64)
    with one_thread():
        for swaps in _draw_swaps(n_units, permutations, seed):
            larger += _count_large(differences(swaps), observed)
    return np.asarray((larger + 1) / (permutations + 1))


def check_permutations(permutations: int) -> None:
    """Raise `ValueError` unless at least one exchange is asked for."""
    if permutations < 1:
        raise ValueError(f"permutations must be >= 1, got {permutations}")


def _count_large(
    after: NDArray[np.float64], observed: NDArray[np.float64]
) -> NDArray[Any]:
    return np.asarray((~(np.abs(after) < observed - TIE)).sum(axis=0))


def _draw_swaps(
    n_units: int, permutations: int, seed: int
) -> Iterator[NDArray[np.bool_]]:
    # Another stream than that of the resamples, which start from the bare seed.
    rng = np.random.default_rng([seed, 1])
    rows = max(16, min(_MOST_ROWS, _BLOCK // max(n_units, 1)))
    for start in range(0, permutations, rows):
        size = (min(rows, permutations - start), n_units)
        yield rng.integers(2, size=size, dtype=np.bool_)
