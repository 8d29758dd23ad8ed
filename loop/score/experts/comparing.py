"""Which of two metrics agrees better with the raters, and whether that is chance."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.stats.dependent import (
    MetricTest,
    WilliamsTest,
    compare_metrics,
    williams,
)
from loop.stats.paired import holm

_LEAST = 4
"""Candidates without which Williams' test has no degree of freedom."""


class MetricComparison(NamedTuple):
    """Two metrics on the candidates that both say something about."""

    better: str
    """Name of the one with the higher tau-b on these candidates."""

    worse: str
    tau_b: MetricTest
    """Difference of their tau-b with the mean of the raters, by permutation."""

    p_tau_b: float | None
    """The same, Holm-adjusted for all pairs of metrics."""

    pearson: float | None
    """Difference of their Pearson correlations."""

    williams: WilliamsTest
    p_williams: float | None
    """Of Williams' test, Holm-adjusted for all pairs of metrics."""


def compare_all(
    names: Sequence[str],
    scores: NDArray[np.float64],
    consensus: NDArray[np.float64],
    units: NDArray[Any],
    *,
    permutations: int = 10_000,
    seed: int = 0,
) -> tuple[MetricComparison, ...]:
    """Return every two metrics compared on the candidates that both define.

    Parameters
    ----------
    names
        Metrics, in the order of the columns of `scores`.
    scores
        Higher is better, NaN undefined, shape ``(n_candidates, n_metrics)``.
    consensus
        Mean points of the raters, shape ``(n_candidates,)``.
    units
        Case or patient of each candidate; a permutation exchanges whole ones.
    permutations, seed
        Of the permutation tests.

    Returns
    -------
    tuple[MetricComparison, ...]
        Pairs in the order of `names`, p-values adjusted for all of them. Williams'
        test takes candidates for independent, and is None where Pearson's
        correlation is undefined or there are fewer than four candidates.

    References
    ----------
    Williams EJ. J R Stat Soc B 1959;21:396-399; Steiger JH. Psychol Bull
    1980;87:245-251. Holm S. Scand J Stat 1979;6:65-70.
    """
    found = []
    for one, other in combinations(range(len(names)), 2):
        first, second = scores[:, one], scores[:, other]
        test = compare_metrics(
            first, second, consensus, units, permutations=permutations, seed=seed
        )
        pearson, tested = _williams(first, second, consensus)
        both = MetricComparison(
            names[one], names[other], test, None, pearson, tested, None
        )
        found.append(_better_first(both))
    taus = _holm([one.tau_b.p for one in found])
    pearsons = _holm([one.williams.p for one in found])
    return tuple(
        one._replace(p_tau_b=tau, p_williams=pearson)
        for one, tau, pearson in zip(found, taus, pearsons, strict=True)
    )


def _williams(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    consensus: NDArray[np.float64],
) -> tuple[float | None, WilliamsTest]:
    """Return the difference of the Pearson correlations, and its test."""
    table = np.stack([consensus, first, second])
    table = table[:, (~np.isnan(table)).sum(axis=0) == len(table)]
    n = table.shape[1]
    if n < _LEAST or (table == table[:, :1]).all(axis=1).any():
        return None, WilliamsTest(None, max(n - 3, 0), None)
    r: NDArray[np.float64] = np.asarray(np.corrcoef(table))
    tested = williams(float(r[0, 1]), float(r[0, 2]), float(r[1, 2]), n)
    return float(r[0, 1] - r[0, 2]), tested


def _better_first(pair: MetricComparison) -> MetricComparison:
    """Return the pair with the metric of higher tau-b first."""
    difference, t = pair.tau_b.difference, pair.williams.t
    if difference is None or difference >= 0:
        return pair
    return pair._replace(
        better=pair.worse,
        worse=pair.better,
        tau_b=pair.tau_b._replace(difference=-difference),
        pearson=None if pair.pearson is None else -pair.pearson,
        williams=pair.williams._replace(t=None if t is None else -t),
    )


def _holm(ps: Sequence[float | None]) -> list[float | None]:
    """Return the defined ones adjusted, the others as they are."""
    adjusted = iter(holm([p for p in ps if p is not None]))
    return [None if p is None else next(adjusted) for p in ps]
