"""How much too good the best of several versions looks where it was chosen."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from loop.stats.confusion import check_codes, f1_columns, mean_f1
from loop.stats.intervals import check_confidence
from loop.stats.resampling import Resampling, Statistic, resample_weights

RESAMPLES = 500
"""Default number of resamples."""

_UNDEFINED = 0.05
"""Beyond this share of undefined resamples the correction is not estimable."""

_EXACT = 2**23
"""Sums below it are exact in single precision, with room for resampling."""


_NO_WIDTH = "no limits: every resample gives the same value"
_NOT_THE_BEST = "no limits: another version that was tried scores better"


class Optimism(NamedTuple):
    """A score of the version that was chosen, and what is left of it."""

    versions: int
    """Versions that were compared, the chosen one included."""

    apparent: float | None
    """Score of the chosen version on all cases; None where it is undefined."""

    corrected: float | None
    """Apparent score less the mean optimism; None when not estimable."""

    low: float | None
    """Lower limit of the score on cases that did not take part in choosing."""

    high: float | None
    units: int
    """Units that were resampled: patients or cases."""

    resamples: int
    note: str = ""
    """Why a number is missing, or why nothing was corrected."""

    @property
    def drop(self) -> float | None:
        """Mean optimism: apparent less corrected; None when not estimable."""
        if self.apparent is None or self.corrected is None:
            return None
        return self.apparent - self.corrected


def optimism(
    columns: NDArray[Any],
    statistic: Statistic,
    *,
    chosen: int,
    **resampling: Unpack[Resampling],
) -> Optimism:
    """Return the score of version `chosen`, corrected for having been chosen.

    In every resample of units the version with the best score is selected again; how
    much better it is there than on the units left out is its optimism. Of versions
    that score the same the first is selected. With one version nothing was selected
    and nothing is taken off.

    It corrects for the choice among these versions, not for exemplars taken from the
    cases and not for another population. Where all versions are in truth equally good
    it takes off 1.3 to 1.4 times the excess, so it errs to the low side: the score in a
    resample carries the luck of the cases and that of the resample.

    Parameters
    ----------
    columns
        What each case adds to the counts of each version, shape
        ``(n_versions, n_cases, n_columns)``, whole numbers.
    statistic
        From sums of shape ``(n, n_columns)`` to scores ``(n,)``, higher is better; NaN
        where undefined. A version without a score is not selected.
    chosen
        Place of the version whose score is corrected.
    **resampling
        ``units``, ``resamples`` (500), ``seed`` (0), ``confidence`` (0.95).

    Returns
    -------
    Optimism
        Limits are percentiles of the score on the units left out, of the version that
        is selected: None where that is another one than `chosen`. An undefined
        resample is drawn again; with more than 5 % of them, or fewer than two units,
        `corrected` and the limits are None.

    Raises
    ------
    ValueError
        Shapes do not fit or an option is out of range.

    References
    ----------
    Efron B, Tibshirani RJ. An Introduction to the Bootstrap. 1993, chapter 17
    (optimism and the units left out). Selection among many versions: Tibshirani RJ,
    Tibshirani R. Ann Appl Stat 2009;3:822-829.
    """
    confidence = resampling.get("confidence", 0.95)
    resamples = resampling.get("resamples", RESAMPLES)
    _check(columns, chosen, resamples, confidence)
    table = _sum_by_unit(columns, resampling.get("units"))
    versions, units, _ = table.shape
    scores = statistic(table.sum(axis=1, dtype=np.float64))
    apparent = None if np.isnan(scores[chosen]) else float(scores[chosen])
    start = Optimism(versions, apparent, None, None, None, units, 0)
    if apparent is None:
        return start._replace(note="not estimable: the score is undefined")
    if units < 2:
        return start._replace(note="not estimable: fewer than two units")
    rng = np.random.default_rng(resampling.get("seed", 0))
    drawn = _draw(table, statistic, resamples, rng)
    result = _summarise(start, drawn, resamples, confidence)
    if result.corrected is None or scores[chosen] >= np.nanmax(scores):
        return result
    # The limits are of the version that is selected, which is another one.
    return result._replace(low=None, high=None, note=_NOT_THE_BEST)


def f1_optimism(
    reference: NDArray[np.int8],
    predicted: NDArray[np.int8],
    *,
    chosen: int,
    **resampling: Unpack[Resampling],
) -> Optimism:
    """Return the macro F1 of version `chosen`, corrected for having been chosen.

    A label without any positive on either side is left out of the mean, as in
    `average_f1`.

    Parameters
    ----------
    reference
        Codes 1 present, 0 absent, -1 excluded, shape ``(n_cases, n_labels)``.
    predicted
        The same codes for every version, shape ``(n_versions, n_cases, n_labels)``.
    chosen, **resampling
        As for `optimism`.

    Raises
    ------
    ValueError
        Shapes or codes are wrong, or an option is out of range.

    References
    ----------
    As for `optimism`.

    Examples
    --------
    >>> truth = np.tile(np.array([[1, 0], [0, 1]], dtype=np.int8), (50, 1))
    >>> one = f1_optimism(truth, truth[None], chosen=0, resamples=50)
    >>> one.apparent, one.corrected, one.note
    (1.0, 1.0, 'nothing was selected: one version')
    """
    _check_versions(reference, predicted)
    columns = f1_columns(reference, predicted)
    return optimism(columns, score_f1, chosen=chosen, **resampling)


def accuracy_optimism(
    reference: NDArray[np.int8],
    predicted: NDArray[np.int8],
    *,
    chosen: int,
    **resampling: Unpack[Resampling],
) -> Optimism:
    """Return the mean accuracy over labels of version `chosen`, corrected.

    Give one column for the accuracy of one label.

    Parameters
    ----------
    reference, predicted, chosen, **resampling
        As for `f1_optimism`; a pair with an excluded side is in no denominator.

    Raises
    ------
    ValueError
        Shapes or codes are wrong, or an option is out of range.

    References
    ----------
    As for `optimism`.
    """
    _check_versions(reference, predicted)
    decided = (reference >= 0) & (predicted >= 0)
    right = decided & (reference == predicted)

    def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        correct, n = np.split(sums, 2, axis=1)
        return mean_f1(correct, n)

    columns = np.concatenate([right, decided], axis=2)
    return optimism(columns, statistic, chosen=chosen, **resampling)


def score_f1(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the macro F1 of sums of `f1_columns`; NaN where no label has one."""
    found, weight = np.split(sums, 2, axis=1)
    return mean_f1(found, weight)


def expected_excess(n: int, k: int, p: float) -> float:
    """Return by how much the best of `k` equally good versions is overrated.

    The expectation of the largest of `k` independent binomial shares, less `p`.
    Versions of one prompt err on the same cases, so theirs is smaller: of 20 versions
    on 300 cases at 0.93, simulated with a latent correlation of 0.5, it is 2.3 points
    in place of 2.6.

    Parameters
    ----------
    n
        Cases every version was scored on, from 1.
    k
        Versions, from 1; one version is not overrated.
    p
        True share of right answers of each, in [0, 1].

    Returns
    -------
    float
        In [0, 1 - p], as a share.

    Raises
    ------
    ValueError
        An argument is outside the range above.

    References
    ----------
    David HA, Nagaraja HN. Order Statistics, 3rd ed. Wiley 2003, section 3.1
    (expectation of the maximum of discrete variables).

    Examples
    --------
    >>> round(expected_excess(100, 20, 0.93), 3), expected_excess(100, 1, 0.93)
    (0.043, 0.0)
    """
    if n < 1 or k < 1 or not 0 <= p <= 1:
        raise ValueError(f"need n >= 1, k >= 1 and p in [0, 1], got {n}, {k}, {p}")
    if k == 1:
        return 0.0
    below = bdtr(np.arange(n), n, p)
    return max(float((1 - below**k).sum()) / n - p, 0.0)


class _Drawn(NamedTuple):
    """Scores of the version selected in each resample; NaN where undefined."""

    inside: NDArray[np.float64]
    outside: NDArray[np.float64]


def _draw(
    table: NDArray[Any], statistic: Statistic, resamples: int, rng: np.random.Generator
) -> _Drawn:
    """Select the best version in every resample, with spare ones for undefined ones."""
    versions, units, width = table.shape
    exact = int(np.abs(table).max(initial=0)) * units < _EXACT
    flat = table.transpose(1, 0, 2).reshape(units, versions * width)
    flat = flat.astype(np.float32 if exact else np.float64)
    inside, outside = [], []
    wanted = resamples + int(np.ceil(_UNDEFINED * resamples))
    for weights in resample_weights(units, wanted, rng):
        drawn = (weights @ flat).astype(np.float64)
        left_out = (weights == 0).astype(flat.dtype) @ flat
        scores = statistic(drawn.reshape(-1, width)).reshape(-1, versions)
        best = np.where(np.isnan(scores), -np.inf, scores).argmax(axis=1)
        rows = np.arange(len(best))
        inside.append(scores[rows, best])
        sums = left_out.reshape(-1, versions, width)[rows, best]
        outside.append(statistic(sums.astype(np.float64)))
    return _Drawn(np.concatenate(inside), np.concatenate(outside))


def _summarise(
    start: Optimism, drawn: _Drawn, resamples: int, confidence: float
) -> Optimism:
    gaps = drawn.inside - drawn.outside
    defined = np.flatnonzero(~np.isnan(gaps))[:resamples]
    if len(defined) < resamples:
        return start._replace(
            resamples=len(defined),
            note="not estimable: too many resamples leave the score undefined",
        )
    tail = (1 - confidence) / 2
    low, high = np.quantile(drawn.outside[defined], [tail, 1 - tail])
    alone, varied = start.versions == 1, low < high
    drop = 0.0 if alone else float(gaps[defined].mean())
    note = "nothing was selected: one version" if alone else ""
    return start._replace(
        corrected=(start.apparent or 0.0) - drop,
        low=float(low) if varied else None,
        high=float(high) if varied else None,
        resamples=resamples,
        note=note if varied or alone else _NO_WIDTH,
    )


def _sum_by_unit(columns: NDArray[Any], units: NDArray[Any] | None) -> NDArray[Any]:
    """Return what each unit adds, shape ``(n_versions, n_units, n_columns)``."""
    versions, cases, width = columns.shape
    if units is None:
        return columns
    if np.shape(units) != (cases,):
        raise ValueError(
            f"need one unit per case, got shape {np.shape(units)} for {cases} cases"
        )
    names, position = np.unique(units, return_inverse=True)
    if len(names) == cases:
        return columns
    table = np.zeros((versions, len(names), width), dtype=np.int64)
    for sums, version in zip(table, columns, strict=True):
        np.add.at(sums, position, version)
    return table


def _check(
    columns: NDArray[Any], chosen: int, resamples: int, confidence: float
) -> None:
    check_confidence(confidence)
    if columns.ndim != 3 or not 0 <= chosen < len(columns):
        raise ValueError(
            "need columns of shape (n_versions, n_cases, n_columns) and chosen below "
            f"n_versions, got {columns.shape} and {chosen}"
        )
    if resamples < 1:
        raise ValueError(f"resamples must be >= 1, got {resamples}")


def _check_versions(reference: NDArray[np.int8], predicted: NDArray[np.int8]) -> None:
    if predicted.ndim != 3 or not len(predicted):
        raise ValueError(
            "need predictions of shape (n_versions, n_cases, n_labels) with a version, "
            f"got {predicted.shape}"
        )
    check_codes(reference, *predicted)
