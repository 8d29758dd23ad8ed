"""Ensembles of judges and metrics: their mean, or a regression on experts' points.

Every member keeps its own direction. What an ensemble is worth is measured out of fold:
centres, scales, coefficients, and the member it is compared with all come from pairs
of other units than those that are scored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError
from loop.documents.numbers import listed
from loop.stats.correlation import Correlations, correlate_columns, tau_b
from loop.stats.dependent import compare_metrics
from loop.stats.intervals import Estimate
from loop.stats.rated_agreement import AgreementMeasure, compare_agreement
from loop.stats.resampling import to_estimate

_FLAT: Final = 1e-9
"""Spread, against the largest value, below which a member says the same everywhere."""

_ALPHA: Final = 0.05


class EnsembleMethod(StrEnum):
    """How members become one number."""

    MEAN = "mean"
    """Mean of the members in standard deviations, each turned so that more is better:
    nothing is learned from the raters."""

    REGRESSION = "regression"
    """Least squares on the mean points of the raters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberScores:
    """The scores of one member for pairs."""

    name: str
    """As it is named, for example ``"green.errors"`` or ``"rouge_1"``."""

    title: str
    lower: bool
    """Whether lower is better."""

    values: NDArray[np.float64]
    """In its own direction, shape ``(n_pairs,)``; NaN where it has no readable
    answer."""

    score: str = ""
    """Which score of a judge; empty for a metric."""

    @property
    def missing(self) -> int:
        """Pairs for which it has no value."""
        return int(np.isnan(self.values).sum())


class LinearEnsemble(NamedTuple):
    """A sum of members: ``intercept + sum of weight * (value - centre) / scale``."""

    centre: NDArray[np.float64]
    """Mean of each member over the pairs it was fitted on, shape ``(n_members,)``."""

    scale: NDArray[np.float64]
    """Standard deviation of each there; infinite where it was constant."""

    weights: NDArray[np.float64]
    """What one standard deviation adds, in the member's own direction."""

    intercept: float

    def score(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the score of each row of ``(n_pairs, n_members)``.

        NaN where a member is missing: nothing is filled in.
        """
        standard = (values - self.centre) / self.scale
        return np.asarray(self.intercept + standard @ self.weights)


def fit_linear(
    values: NDArray[np.float64],
    ratings: NDArray[np.float64],
    lower: NDArray[np.bool_],
    method: EnsembleMethod,
) -> LinearEnsemble:
    """Return the ensemble of members that have a value for every pair.

    Parameters
    ----------
    values
        Shape ``(n_pairs, n_members)``, without NaN.
    ratings
        Mean points of the raters, shape ``(n_pairs,)``; `EnsembleMethod.MEAN` ignores
        them.
    lower
        For which members lower is better, shape ``(n_members,)``.

    References
    ----------
    Least squares by scikit-learn: Pedregosa F, et al. J Mach Learn Res
    2011;12:2825-2830.

    Examples
    --------
    >>> values = np.array([[0.0, 3.0], [1.0, 1.0], [2.0, 2.0], [3.0, 0.0]])
    >>> ratings = 1 + 2 * values[:, 0] - values[:, 1]
    >>> lower = np.array([False, True])
    >>> found = fit_linear(values, ratings, lower, EnsembleMethod.REGRESSION)
    >>> np.round(found.weights / found.scale, 6).tolist()
    [2.0, -1.0]
    """
    # scikit-learn is heavy, and reading an ensemble needs none of it.
    from sklearn.linear_model import LinearRegression

    centre, spread = values.mean(axis=0), values.std(axis=0)
    flat = spread <= _FLAT * np.abs(values).max(axis=0, initial=0.0)
    scale = np.where(flat, np.inf, spread)
    if method is EnsembleMethod.MEAN:
        weights = np.where(lower, -1.0, 1.0) / values.shape[1]
        return LinearEnsemble(centre, scale, weights, 0.0)
    fitted = LinearRegression().fit((values - centre) / scale, ratings)
    return LinearEnsemble(centre, scale, fitted.coef_, float(fitted.intercept_))


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleFit:
    """An ensemble, and what it was fitted on."""

    members: tuple[MemberScores, ...]
    """Over all rated pairs, with what is missing."""

    method: EnsembleMethod
    linear: LinearEnsemble
    used: NDArray[np.bool_]
    """Rated pairs for which every member has a value; the others are left out."""

    ratings: NDArray[np.float64]
    """Mean points of the raters for the rated pairs."""

    units: NDArray[np.intp]
    """Unit of each rated pair: its patient if known, else its reference."""

    @property
    def values(self) -> NDArray[np.float64]:
        """Members on the pairs used, shape ``(n_used, n_members)``."""
        return np.column_stack([one.values[self.used] for one in self.members])

    @property
    def lower(self) -> NDArray[np.bool_]:
        """For which members lower is better."""
        return np.array([one.lower for one in self.members])

    @property
    def n_units(self) -> int:
        """Units of the pairs used."""
        return len(np.unique(self.units[self.used]))

    @property
    def against(self) -> tuple[str, ...]:
        """Members whose weight has the opposite sign of their direction.

        A regression gives such a weight to a member that adds little to the others.
        """
        signs = np.where(self.lower, -1.0, 1.0)
        wrong = signs * self.linear.weights < 0
        return tuple(
            one.name for one, is_so in zip(self.members, wrong, strict=True) if is_so
        )


def fit_ensemble(
    members: Sequence[MemberScores],
    ratings: NDArray[np.float64],
    units: NDArray[np.intp],
    method: EnsembleMethod = EnsembleMethod.REGRESSION,
) -> EnsembleFit:
    """Return the ensemble of members that fits best what raters say about pairs.

    Parameters
    ----------
    members
        Two or more, of the same pairs.
    ratings
        Mean points of the raters, more is better, shape ``(n_pairs,)``; pairs that
        nobody rated (NaN) are left out.
    units
        Unit of each pair, as numbers.

    Returns
    -------
    EnsembleFit
        On the pairs for which every member has a value.

    Raises
    ------
    DataError
        There are fewer than two members; one is named twice, has no value or the same
        value for every pair, or is a linear function of those before it; or there are
        too few pairs for the members.
    ValueError
        The shapes differ.

    Examples
    --------
    >>> one, other = np.array([0.0, 1, 2, 3, 4]), np.array([3.0, 1, 2, 0, 2])
    >>> members = [
    ...     MemberScores(name="one", title="One", lower=False, values=one),
    ...     MemberScores(name="other", title="Other", lower=True, values=other),
    ... ]
    >>> found = fit_ensemble(members, 1 + 2 * one - other, np.arange(5))
    >>> np.round(found.linear.score(found.values), 6).tolist()
    [-2.0, 2.0, 3.0, 7.0, 7.0]
    """
    if any(len(one.values) != len(ratings) for one in members) or (
        len(units) != len(ratings)
    ):
        raise ValueError(
            f"need a value of each member and a unit for each of {len(ratings)} pairs"
        )
    _require_members(members)
    rated = ~np.isnan(ratings)
    kept = tuple(
        MemberScores(
            name=one.name,
            title=one.title,
            lower=one.lower,
            values=one.values[rated],
            score=one.score,
        )
        for one in members
    )
    for one in kept:
        if one.missing == len(one.values):
            raise DataError(
                f"{one.title} ({one.name}) has no value for any of {len(one.values)} "
                "rated pairs. Leave it out of --members, or see why with `ranloop "
                "judge`."
            )
    used = ~np.any([np.isnan(one.values) for one in kept], axis=0)
    _require_enough(kept, int(used.sum()))
    table = np.column_stack([one.values[used] for one in kept])
    _require_telling(kept, table)
    lower = np.array([one.lower for one in kept])
    return EnsembleFit(
        members=kept,
        method=method,
        linear=fit_linear(table, ratings[rated][used], lower, method),
        used=used,
        ratings=ratings[rated],
        units=units[rated],
    )


def _require_members(members: Sequence[MemberScores]) -> None:
    names = [one.name for one in members]
    twice = next((one for one in names if names.count(one) > 1), None)
    if twice is not None:
        raise DataError(f"{twice} is named twice as a member. Name it once.")
    if len(names) < 2:
        raise DataError(
            f"an ensemble needs two members or more, and has only "
            f"{names[0] if names else 'none'}. Name more with --members, for example "
            "green,rouge_1, or green.all for every score of one judge."
        )


def _require_enough(members: Sequence[MemberScores], pairs: int) -> None:
    need = len(members) + 2
    if pairs < need:
        missing = listed([f"{one.name} {one.missing}" for one in members], 8)
        raise DataError(
            f"{pairs} rated pairs have a value of every member, but {len(members)} "
            f"members need {need} or more (pairs without a value: {missing}). Name "
            "fewer members, or leave out the one that lacks most."
        )


def _require_telling(members: Sequence[MemberScores], table: NDArray[Any]) -> None:
    """Refuse members that are constant, or linear functions of those before them."""
    spread = np.ptp(table, axis=0)
    flat = spread <= _FLAT * np.abs(table).max(axis=0)
    for place in np.flatnonzero(flat).tolist():
        one = members[place]
        raise DataError(
            f"{one.title} ({one.name}) has the same value for all {len(table)} pairs. "
            "Leave it out of --members."
        )
    standard = (table - table.mean(axis=0)) / table.std(axis=0)
    for place, one in enumerate(members):
        if np.linalg.matrix_rank(standard[:, : place + 1]) > place:
            continue
        alike = np.abs(standard[:, :place].T @ standard[:, place]) / len(table)
        same = [
            members[each].name for each in np.flatnonzero(alike > 1 - _FLAT).tolist()
        ]
        before = listed([each.name for each in members[:place]], 4)
        what = f"is a linear function of {before}"
        if same:
            what = f"is {same[0]} on another scale"
        raise DataError(
            f"{one.title} ({one.name}) {what} on these pairs, so its coefficient "
            "cannot be determined. Leave it out of --members; if .all included it, "
            "name the other scores one by one."
        )


class FoldScores(NamedTuple):
    """Scores of each pair by ensembles fitted on other units, in the pairs' order."""

    fold: NDArray[np.intp]
    """Fold of each pair, from 0, shape ``(n_pairs,)``."""

    mean: NDArray[np.float64]
    regression: NDArray[np.float64]
    best: NDArray[np.float64]
    """Scores of the member that agreed best with the raters on the other folds, turned
    so that more is better; its own values where all folds chose the same member, else
    in standard deviations over all pairs."""

    chosen: tuple[int, ...]
    """Position of that member, for each fold."""


def split_folds(units: NDArray[np.intp], folds: int, seed: int) -> NDArray[np.intp]:
    """Return the fold of each pair; all pairs of a unit are in one.

    Parameters
    ----------
    units
        Unit of each pair, as numbers.
    folds
        From 2 to the number of units.

    Raises
    ------
    DataError
        There are fewer units than folds.

    Examples
    --------
    >>> folds = split_folds(np.array([7, 7, 1, 1, 3]), 3, seed=0)
    >>> folds[0] == folds[1], folds[2] == folds[3], len(set(folds.tolist()))
    (np.True_, np.True_, 3)
    """
    from sklearn.model_selection import GroupKFold

    known = len(np.unique(units))
    if folds > known or folds < 2:
        raise DataError(
            f"{known} units cannot be divided into {folds} folds. Take --folds from 2 "
            f"to {known}."
            if known > 1
            else "all pairs belong to one unit, so nothing can be scored out of fold. "
            "Import more patients or references."
        )
    numbers = np.unique(units, return_inverse=True)[1]
    splitter = GroupKFold(n_splits=folds, shuffle=True, random_state=seed)
    found = np.empty(len(units), dtype=np.intp)
    parts = splitter.split(np.zeros((len(units), 1)), groups=numbers)
    for fold, (_, tested) in enumerate(parts):
        found[tested] = fold
    return found


def score_out_of_fold(
    values: NDArray[np.float64],
    ratings: NDArray[np.float64],
    lower: NDArray[np.bool_],
    fold: NDArray[np.intp],
) -> FoldScores:
    """Return the scores of each pair by ensembles that were fitted without its fold.

    Parameters
    ----------
    values, ratings, lower
        As for `fit_linear`.
    fold
        From `split_folds`.
    """
    directed = np.where(lower, -1.0, 1.0) * values
    mean, regression = np.empty(len(values)), np.empty(len(values))
    chosen = []
    for number in range(int(fold.max()) + 1):
        tested = fold == number
        seen = values[~tested], ratings[~tested]
        for into, method in (
            (mean, EnsembleMethod.MEAN),
            (regression, EnsembleMethod.REGRESSION),
        ):
            into[tested] = fit_linear(*seen, lower, method).score(values[tested])
        taus = [_tau_b(one, seen[1]) for one in directed[~tested].T]
        chosen.append(int(np.argmax(taus)))
    best = directed[np.arange(len(values)), np.array(chosen)[fold]]
    if len(set(chosen)) > 1:
        spread = directed.std(axis=0)
        standard = (directed - directed.mean(axis=0)) / spread
        best = standard[np.arange(len(values)), np.array(chosen)[fold]]
    return FoldScores(fold, mean, regression, best, tuple(chosen))


def _tau_b(scores: NDArray[np.float64], ratings: NDArray[np.float64]) -> float:
    """Return Kendall's tau-b; -2 where it is undefined, so that it is never chosen."""
    found = tau_b(scores, ratings)
    return -2.0 if np.isnan(found) else found


class AgainstBest(NamedTuple):
    """An ensemble compared with its best member, on the same pairs out of fold."""

    method: EnsembleMethod
    difference: Estimate
    """tau-b of the ensemble minus that of the member; interval over units."""

    p: float | None
    """Two-sided, by exchanging the two scores, all pairs of a unit together."""

    exact: bool
    """Whether every exchange was counted."""

    @property
    def beats(self) -> bool:
        """Whether it is better both by the test and by the interval."""
        value, low = self.difference.value, self.difference.low
        return (
            None not in (value, low, self.p)
            and float(value or 0) > 0
            and float(low or 0) > 0
            and float(1 if self.p is None else self.p) < _ALPHA
        )


class ScoreGroup(NamedTuple):
    """Ensembles of one score of several judges, as they are published."""

    score: str
    members: tuple[str, ...]
    mean: Correlations
    regression: Correlations


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfFold:
    """How well an ensemble and its members agree on pairs it was not fitted on."""

    folds: int
    seed: int
    resamples: int
    pairs: int
    units: int
    members: tuple[Correlations, ...]
    """Of each member with the raters, turned so that more is better. A member is not
    fitted, so all pairs are out of fold for it."""

    mean: Correlations
    regression: Correlations
    best: Correlations
    """Of the member that was best on the other folds."""

    chosen: tuple[str, ...]
    """That member, for each fold."""

    in_sample: Correlations
    """Of the regression on the very pairs it was fitted on: optimistic."""

    against: tuple[AgainstBest, ...]
    """Mean and regression beside `best`."""

    groups: tuple[ScoreGroup, ...]
    scores: FoldScores


def evaluate_out_of_fold(
    fit: EnsembleFit, *, folds: int = 5, seed: int = 0, resamples: int = 2000
) -> OutOfFold:
    """Return how well an ensemble agrees out of fold, compared with its members.

    Parameters
    ----------
    folds
        Number of folds that the units are divided into.
    seed
        Of the folds, of the bootstrap and of the permutations.
    resamples
        Of the bootstrap; five times as many exchanges are drawn for the tests.

    Raises
    ------
    DataError
        There are fewer units than folds, or too few pairs to fit on.

    References
    ----------
    Kendall MG. Biometrika 1945;33:239-251 (tau-b). Choosing within the training folds:
    Varma S, Simon R. BMC Bioinformatics 2006;7:91.
    """
    values, units = fit.values, fit.units[fit.used]
    ratings, lower = fit.ratings[fit.used], fit.lower
    fold = split_folds(units, folds, seed)
    least = len(fold) - int(np.bincount(fold).max())
    _require_enough(fit.members, least)
    scores = score_out_of_fold(values, ratings, lower, fold)
    groups = list(_score_groups(fit.members))
    grouped = [
        score_out_of_fold(values[:, places], ratings, lower[places], fold)
        for _, places in groups
    ]
    directed = np.where(lower, -1.0, 1.0) * values
    same = fit_linear(values, ratings, lower, EnsembleMethod.REGRESSION).score(values)
    made = [scores.mean, scores.regression, scores.best, same]
    made += [part for one in grouped for part in (one.mean, one.regression)]
    table = np.column_stack([directed, *made, ratings])
    last = table.shape[1] - 1
    found = correlate_columns(
        table,
        [(column, last) for column in range(last)],
        units=units,
        resamples=resamples,
        seed=seed,
    )
    size = len(fit.members)
    mean, regression, best, in_sample, *rest = found[size:]
    return OutOfFold(
        folds=folds,
        seed=seed,
        resamples=resamples,
        pairs=len(ratings),
        units=fit.n_units,
        members=tuple(found[:size]),
        mean=mean,
        regression=regression,
        best=best,
        chosen=tuple(fit.members[place].name for place in scores.chosen),
        in_sample=in_sample,
        against=tuple(
            _beside(method, made, (scores.best, ratings, units), resamples, seed)
            for method, made in (
                (EnsembleMethod.MEAN, scores.mean),
                (EnsembleMethod.REGRESSION, scores.regression),
            )
        ),
        groups=tuple(
            ScoreGroup(
                name,
                tuple(fit.members[place].name for place in places),
                rest[2 * number],
                rest[2 * number + 1],
            )
            for number, (name, places) in enumerate(groups)
        ),
        scores=scores,
    )


def _score_groups(members: Sequence[MemberScores]) -> Iterator[tuple[str, list[int]]]:
    """Yield each score that several judges share, where members have others, too."""
    by_score: dict[str, list[int]] = {}
    for place, one in enumerate(members):
        if one.score:
            by_score.setdefault(one.score, []).append(place)
    for name, places in by_score.items():
        if 1 < len(places) < len(members):
            yield name, places


def _beside(
    method: EnsembleMethod,
    made: NDArray[np.float64],
    held: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.intp]],
    resamples: int,
    seed: int,
) -> AgainstBest:
    best, ratings, units = held
    apart = compare_agreement(
        AgreementMeasure.TAU_B,
        made,
        best,
        ratings,
        units=units,
        resamples=resamples,
        seed=seed,
    )
    (test,) = compare_metrics(
        np.column_stack([made, best]),
        ratings,
        units,
        permutations=5 * resamples,
        seed=seed,
    )
    return AgainstBest(method, to_estimate(apart.value), test.p, test.exact)
