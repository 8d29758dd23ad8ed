"""Intervals for a proportion as articles compute them, for many counts at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Limits = tuple[Floats, Floats]


def confidence_limits(
    k: NDArray[Any], n: NDArray[Any], level: float = 0.95, *, method: str
) -> Limits:
    """Return the limits of counts `k` of `n`, arrays of one shape, within 0 and 1.

    Without a success the lower limit is 0, without a failure the upper limit is 1,
    also with the Jeffreys prior.

    Parameters
    ----------
    method
        As in statsmodels: ``"beta"`` (Clopper-Pearson), ``"wilson"``,
        ``"agresti_coull"``, ``"jeffreys"`` or ``"normal"`` (Wald).

    References
    ----------
    Brown LD, Cai TT, DasGupta A. Stat Sci 2001;16:101-133.
    """
    # Large, and only who audits tables needs it.
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(k, n, alpha=1 - level, method=method)
    return (
        np.where(k == 0, 0.0, np.clip(low, 0, 1)),
        np.where(k == n, 1.0, np.clip(high, 0, 1)),
    )


def exact_limits(k: NDArray[Any], n: NDArray[Any], level: float = 0.95) -> Limits:
    """Return the Clopper-Pearson limits of counts `k` of `n`, arrays of one shape."""
    return confidence_limits(k, n, level, method="beta")


def _method(name: str) -> Callable[[NDArray[Any], NDArray[Any], float], Limits]:
    return lambda k, n, level: confidence_limits(k, n, level, method=name)


METHODS: Mapping[str, Callable[[NDArray[Any], NDArray[Any], float], Limits]] = {
    "Clopper-Pearson": exact_limits,
    "Wilson": _method("wilson"),
    "Agresti-Coull": _method("agresti_coull"),
    "Jeffreys": _method("jeffreys"),
    "Wald": _method("normal"),
}
