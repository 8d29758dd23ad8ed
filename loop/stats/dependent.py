"""Which of two metrics goes better with the ratings: tests of the difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from loop.stats.correlation import (
    Rated,
    group_complete,
    keep_rated,
    normalise,
    quadratic,
    split_forms,
    sum_signs,
)
from loop.stats.paired import check_permutations, exact_p, sampled_p

_EXACT_UNITS = 18
"""Up to so many units all exchanges are counted, however few were asked for."""


class WilliamsTest(NamedTuple):
    """Two correlations with one variable in common."""

    t: float | None
    """Above 0 when the first correlation is higher; None where undefined."""

    df: int
    """Degrees of freedom, ``n - 3``."""

    p: float | None
    """Two-sided."""


class MetricTest(NamedTuple):
    """Two metrics against the same ratings."""

    difference: float | None
    """tau-b of the first metric minus that of the second; None where undefined."""

    p: float | None
    """Two-sided."""

    exact: bool
    """Whether every exchange was counted, not a sample of them."""

    n: int
    """Candidates with both scores and a rating."""

    n_units: int
    """Units (cases) that these candidates belong to."""


def williams(r12: float, r13: float, r23: float, n: int) -> WilliamsTest:
    """Return the test of whether two dependent Pearson correlations are equal.

    It takes candidates as independent and normal: with several per case, or ratings
    in few steps, `compare_metrics` is the one to trust.

    Parameters
    ----------
    r12, r13
        Correlations of metric 2 and of metric 3 with the ratings 1, in [-1, 1].
    r23
        Correlation of the two metrics with each other.
    n
        Candidates that all three rest on.

    Returns
    -------
    WilliamsTest
        ``t`` is 0 and ``p`` 1 for equal correlations; both are None where the
        variance is 0 or `n` is below 4.

    Raises
    ------
    ValueError
        A correlation is outside [-1, 1] or NaN.

    References
    ----------
    Williams EJ. J R Stat Soc B 1959;21:396-399; as recommended by Steiger JH. Psychol
    Bull 1980;87:245-251 (his equation 7).

    Examples
    --------
    >>> t, df, p = williams(0.80, 0.72, 0.89, 26)
    >>> f"t {t:.3f}, df {df}, p {p:.3f}"
    't 1.361, df 23, p 0.187'
    """
    for r in (r12, r13, r23):
        if not -1 <= r <= 1:
            raise ValueError(f"correlations must be in [-1, 1], got {r}")
    df = n - 3
    if df < 1:
        return WilliamsTest(None, df, None)
    if r12 == r13:
        return WilliamsTest(0.0, df, 1.0)
    determinant = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    mean = (r12 + r13) / 2
    spread = 2 * (n - 1) / df * max(determinant, 0.0) + mean**2 * (1 - r23) ** 3
    if spread <= 0:
        return WilliamsTest(None, df, None)
    t = (r12 - r13) * sqrt((n - 1) * (1 + r23) / spread)
    return WilliamsTest(t, df, 2 * float(stdtr(df, -abs(t))))


def compare_metrics(
    scores: NDArray[Any],
    ratings: NDArray[Any],
    units: NDArray[Any] | None = None,
    *,
    pairs: Sequence[tuple[int, int]] = ((0, 1),),
    permutations: int = 10_000,
    seed: int = 0,
) -> list[MetricTest]:
    """Return the difference of two metrics' tau-b with the ratings, and its test.

    The two metrics are put on one scale, the ranks of their own scores. The test
    exchanges the two ranks of a candidate, for all candidates of a unit together, and
    asks how often the difference becomes at least as large. Units on which both
    metrics have the same ranks cannot change it: with up to 18 others, or as many as
    `permutations` allows, every exchange is counted and the p-value is exact.

    Parameters
    ----------
    scores
        Higher is better (negate the others), NaN where missing, shape
        ``(n_candidates, n_metrics)``.
    ratings
        Ratings of the same candidates, NaN where missing, shape ``(n_candidates,)``.
    units
        Unit of each candidate, for example its case; None: each is its own.
    pairs
        Positions of the first and of the second metric of each pair in the columns.
    permutations
        Exchanges drawn where they are not all counted.
    seed
        Seed of the draws, which are the same for all pairs.

    Returns
    -------
    list[MetricTest]
        One per pair, on the candidates that have all three. An exchange after which a
        tau-b is undefined counts as large; a sampled p is
        ``(k + 1) / (permutations + 1)``.

    Raises
    ------
    ValueError
        The shapes differ, a value is infinite, or `permutations` is below 1.

    References
    ----------
    Kendall MG. Biometrika 1945;33:239-251 (tau-b). Noreen EW. Computer-Intensive
    Methods for Testing Hypotheses. 1989.

    Examples
    --------
    >>> rating = np.arange(6.0)
    >>> compare_metrics(np.stack([rating, -rating], axis=1), rating)
    [MetricTest(difference=2.0, p=0.03125, exact=True, n=6, n_units=6)]
    """
    check_permutations(permutations)
    if scores.ndim != 2 or len(scores) != len(ratings):
        raise ValueError(
            "need shapes (n_candidates, n_metrics) and (n_candidates,), got "
            f"{scores.shape} and {ratings.shape}"
        )
    table = np.column_stack([scores, ratings])
    last = table.shape[1] - 1
    n_units = len(table) if units is None else len(np.unique(units))
    found: dict[tuple[int, ...], MetricTest] = {}
    for group in group_complete(table, [(*pair, last) for pair in pairs]):
        for part in split_forms(group, n_units):
            columns = [*sorted({one for pair in part for one in pair[:2]}), last]
            kept = keep_rated(*table.T[columns], units=units)
            places = [(columns.index(one), columns.index(two)) for one, two, _ in part]
            tests = _compare(kept, places, permutations, seed)
            found |= zip(part, tests, strict=True)
    return [found[(*pair, last)] for pair in pairs]


def _compare(
    kept: Rated, pairs: Sequence[tuple[int, int]], permutations: int, seed: int
) -> list[MetricTest]:
    """Return the tests of arrays without missing values; the ratings are last."""
    tables = _tabulate(kept, pairs)
    nothing = np.zeros((1, kept.n_units), dtype=np.bool_)
    before = [float(table.differences(nothing)[0, 0]) for table in tables]
    found = [MetricTest(None, None, False, kept.n, kept.n_units)] * len(pairs)
    drawn = []
    for place, (table, difference) in enumerate(zip(tables, before, strict=True)):
        if np.isnan(difference):
            continue
        found[place] = found[place]._replace(difference=difference)
        few = len(table.differing)
        if few <= _EXACT_UNITS or few < permutations.bit_length():
            p = _exact(table, abs(difference))
            found[place] = found[place]._replace(p=p, exact=True)
        else:
            drawn.append(place)
    chosen = [tables[place] for place in drawn]
    sizes = np.abs([before[place] for place in drawn])
    ps = _sampled(chosen, sizes, permutations, seed)
    for place, p in zip(drawn, ps, strict=True):
        found[place] = found[place]._replace(p=p)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _QuadraticForm:
    """A sum over pairs of candidates, in which units are exchanged.

    With s 1 for exchanged units it is ``whole + linear s + s' square s``, once for
    what then is the first metric and once for the second.
    """

    whole: NDArray[np.float64]
    """Shape ``(2,)``."""

    linear: NDArray[Any]
    """Shape ``(n_units, 2)``."""

    square: NDArray[Any]
    """Shape ``(n_units, n_units)``; the same for both."""

    def values(self, swaps: NDArray[Any]) -> NDArray[np.float64]:
        """Return the sums, shape ``(n, 2)``."""
        swaps = swaps.astype(self.square.dtype, copy=False)
        both = quadratic(self.square, swaps)[:, None]
        return np.asarray(self.whole + swaps @ self.linear + both)

    def only(self, units: NDArray[np.intp]) -> _QuadraticForm:
        """Return the form in which only these units are ever exchanged."""
        return _QuadraticForm(
            whole=self.whole,
            linear=self.linear[units],
            square=self.square[np.ix_(units, units)],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Exchangeable:
    """What the tau-b of both metrics are made of."""

    ordered: _QuadraticForm
    untied: _QuadraticForm
    rating_untied: float
    differing: NDArray[np.intp]
    """Units in which the two metrics have different ranks."""

    def differences(self, swaps: NDArray[Any]) -> NDArray[np.float64]:
        """Return tau-b of the first minus that of the second, shape ``(n, 1)``."""
        taus = normalise(
            self.ordered.values(swaps),
            self.untied.values(swaps),
            np.asarray(self.rating_untied),
        )
        return np.asarray(taus[:, :1] - taus[:, 1:])


def _tabulate(kept: Rated, pairs: Sequence[tuple[int, int]]) -> list[_Exchangeable]:
    """Return what is exchanged of each pair of metrics; the ratings are last."""
    # Heavy, and not needed where nothing is compared.
    from scipy.stats import rankdata

    *metrics, rating = kept.values
    ranks = [rankdata(one) for one in metrics]
    ratings = (rating, rating)
    ordered = _forms(ranks, ratings, kept.position, pairs)
    untied = _forms(ranks, None, kept.position, pairs)
    rating_untied = float(sum_signs(ratings, None, kept.position).sum())
    return [
        _Exchangeable(
            ordered=ordered[place],
            untied=untied[place],
            rating_untied=rating_untied,
            differing=np.unique(kept.position[ranks[one] != ranks[two]]),
        )
        for place, (one, two) in enumerate(pairs)
    ]


def _forms(
    ranks: Sequence[NDArray[np.float64]],
    ratings: tuple[NDArray[np.float64], NDArray[np.float64]] | None,
    position: NDArray[np.intp],
    pairs: Sequence[tuple[int, int]],
) -> list[_QuadraticForm]:
    """Return the forms, multiplied out from ``e' A e + 2 e' M s + s' B s``, e = 1 - s.

    A pair of candidates counts with the ranks of one metric (A), of the other (B), or
    of either where only one of the two is exchanged (M).
    """
    # No sum of the cells of a form is larger, and so none is rounded.
    exact: type[Any] = np.float32 if 4 * len(position) ** 2 < 2**24 else np.float64
    alone: dict[int, NDArray[Any]] = {
        place: sum_signs((ranks[place], ranks[place]), ratings, position).astype(exact)
        for place in sorted({place for pair in pairs for place in pair})
    }
    forms = []
    for one, two in pairs:
        own, other = alone[one], alone[two]
        both = (ranks[one], ranks[two])
        mixed: NDArray[Any] = sum_signs(both, ratings, position).astype(exact)
        linear = [mixed.sum(0) - own.sum(0), mixed.sum(1) - other.sum(0)]
        form = _QuadraticForm(
            whole=np.array([own.sum(), other.sum()], dtype=np.float64),
            linear=2 * np.stack(linear, axis=1),
            square=own - 2 * mixed + other,
        )
        forms.append(form)
    return forms


def _exact(table: _Exchangeable, observed: float) -> float:
    """Return p from all exchanges of the units in which the metrics differ."""
    short = _Exchangeable(
        ordered=table.ordered.only(table.differing),
        untied=table.untied.only(table.differing),
        rating_untied=table.rating_untied,
        differing=table.differing,
    )
    few = len(table.differing)
    return float(exact_p(short.differences, np.array([observed]), few)[0])


def _sampled(
    tables: Sequence[_Exchangeable],
    observed: NDArray[np.float64],
    permutations: int,
    seed: int,
) -> list[float]:
    """Return p of every pair of metrics from the same sample of exchanges."""
    if not tables:
        return []
    kind = tables[0].ordered.square.dtype

    def differences(swaps: NDArray[np.bool_]) -> NDArray[np.float64]:
        exchanged = swaps.astype(kind)
        return np.hstack([table.differences(exchanged) for table in tables])

    n_units = len(tables[0].ordered.square)
    ps = sampled_p(differences, observed, n_units, permutations=permutations, seed=seed)
    return [float(p) for p in ps]
