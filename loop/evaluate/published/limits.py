"""Intervals for a proportion as articles compute them, for many counts at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

Floats = NDArray[np.float64]
Limits = tuple[Floats, Floats]


def exact_limits(k: NDArray[Any], n: NDArray[Any], level: float = 0.95) -> Limits:
    """Clopper-Pearson limits of counts `k` of `n`, arrays of one shape.

    References
    ----------
    Clopper CJ, Pearson ES. Biometrika 1934;26:404-413.
    """
    return _beta(k, n - k + 1, k + 1, n - k, level)


def jeffreys_limits(k: NDArray[Any], n: NDArray[Any], level: float = 0.95) -> Limits:
    """Limits from the Jeffreys prior, 0 and 1 at the ends.

    References
    ----------
    Brown LD, Cai TT, DasGupta A. Stat Sci 2001;16:101-133.
    """
    return _beta(k, n - k, k, n - k, level, prior=0.5)


def wilson_limits(k: NDArray[Any], n: NDArray[Any], level: float = 0.95) -> Limits:
    """Score limits.

    References
    ----------
    Wilson EB. J Am Stat Assoc 1927;22:209-212.
    """
    z = _z(level)
    p = k / n
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return centre - half, centre + half


def agresti_coull_limits(
    k: NDArray[Any], n: NDArray[Any], level: float = 0.95
) -> Limits:
    """Wald limits after adding z squared cases, half of them successes; cut at 0, 1.

    References
    ----------
    Agresti A, Coull BA. Am Stat 1998;52:119-126.
    """
    z = _z(level)
    more = n + z**2
    p = (k + z**2 / 2) / more
    return _cut(p, z * np.sqrt(p * (1 - p) / more))


def wald_limits(k: NDArray[Any], n: NDArray[Any], level: float = 0.95) -> Limits:
    """Wald (normal) limits, cut at 0 and 1.

    References
    ----------
    Brown LD, Cai TT, DasGupta A. Stat Sci 2001;16:101-133, section 2.
    """
    p = k / n
    return _cut(p, _z(level) * np.sqrt(p * (1 - p) / n))


METHODS: Mapping[str, Callable[[NDArray[Any], NDArray[Any], float], Limits]] = {
    "Clopper-Pearson": exact_limits,
    "Wilson": wilson_limits,
    "Agresti-Coull": agresti_coull_limits,
    "Jeffreys": jeffreys_limits,
    "Wald": wald_limits,
}


def _beta(
    low_a: NDArray[Any],
    low_b: NDArray[Any],
    high_a: NDArray[Any],
    high_b: NDArray[Any],
    level: float,
    *,
    prior: float = 0.0,
) -> Limits:
    """Return Beta quantiles; a lower limit without a success is 0, and so on."""
    tail = (1 - level) / 2
    none, full = low_a == 0, high_b == 0
    low = betaincinv(np.where(none, 1, low_a + prior), low_b + prior, tail)
    high = betaincinv(high_a + prior, np.where(full, 1, high_b + prior), 1 - tail)
    return np.where(none, 0.0, low), np.where(full, 1.0, high)


def _cut(centre: Floats, half: Floats) -> Limits:
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)


def _z(level: float) -> float:
    return float(ndtri(1 - (1 - level) / 2))
