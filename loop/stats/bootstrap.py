"""Bootstrap intervals of F1, of its change, and of kappa, by patient or by case."""

from __future__ import annotations

from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from loop.stats.confusion import (
    EXCLUDED,
    Confusion,
    ZeroDivision,
    chance_agreement,
    check_codes,
    count_confusions,
    divide,
    f1_columns,
    kappa_note,
    kappas,
    mean_f1,
    pair_indicators,
)
from loop.stats.intervals import Estimate, f1_limits, kappa_limits
from loop.stats.resampling import Bootstrap as Bootstrap
from loop.stats.resampling import (
    Draw,
    DrawResampling,
    bootstrap,
    sum_by_unit,
    to_estimate,
)
from loop.stats.resampling import resample_weights as resample_weights

Average = Literal["macro", "micro"]


def bootstrap_f1(
    reference: NDArray[np.int8],
    predicted: NDArray[np.int8],
    *,
    average: Average = "macro",
    zero_division: ZeroDivision = "skip",
    weights: NDArray[np.float64] | None = None,
    **resampling: Unpack[DrawResampling],
) -> Bootstrap:
    """Return the macro or micro F1 with a percentile bootstrap interval.

    Parameters
    ----------
    reference, predicted
        Codes 1 present, 0 absent, -1 excluded, shape ``(n_cases, n_labels)``.
    average
        ``"macro"``: mean over labels; ``"micro"``: all cells together.
    zero_division
        As for `average_f1`. With ``"skip"`` the number of labels in the mean varies
        between resamples, as it would between samples.
    weights
        For how many cases of a population each stands, shape ``(n_cases,)``: one over
        the chance with which it was drawn. None: for itself.
    **resampling
        ``units``, ``draws``, ``resamples`` (2,000), ``seed`` (0), ``confidence``
        (0.95).

    Returns
    -------
    Bootstrap
        In [0, 1]; nothing but None where no label has a positive on either side. Where
        no error, or no hit, varies the resamples, the limits are those of `f1_limits`,
        and with weights there are none.

    Raises
    ------
    ValueError
        Shapes or codes are wrong, or an option is out of range.

    References
    ----------
    Efron B, Tibshirani RJ. An Introduction to the Bootstrap. 1993, chapter 13.

    Examples
    --------
    >>> truth = np.tile(np.array([[1, 0], [0, 1]], dtype=np.int8), (50, 1))
    >>> [round(one, 3) for one in bootstrap_f1(truth, truth, resamples=200)[:3]]
    [1.0, 0.956, 1.0]
    """
    check_codes(reference, predicted)
    columns: NDArray[Any] = _f1_columns(reference, predicted, average)
    if weights is not None:
        columns = columns * weights[:, None]

    def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return _f1_of(sums, zero_division)

    result = bootstrap(columns, statistic, **resampling)[0]
    if not result.has_no_width:
        return result
    if weights is not None:
        return result._replace(low=None, high=None)
    low, high = _f1_without_width(columns, zero_division, Draw(**resampling))
    return result._replace(low=low, high=high)


def _f1_without_width(
    columns: NDArray[Any], zero_division: ZeroDivision, draw: Draw
) -> tuple[float | None, float | None]:
    """Return exact limits where each label has no error or no hit, else none."""
    hits, weight = np.split(sum_by_unit(columns, draw.units), 2, axis=1)
    found = (weight > 0).sum(axis=0)
    right = ((weight > 0) & (hits == weight)).sum(axis=0)
    wrong = ((weight > 0) & (hits == 0)).sum(axis=0)
    if ((right < found) & (wrong < found)).any():
        return None, None
    known = found > 0
    limits = f1_limits(
        right[known].tolist(), found[known].tolist(), confidence=draw.confidence
    )
    if zero_division == "skip":
        return limits
    share, rest = known.mean(), float(zero_division == "one")
    low, high = (float(share * limit + (1 - share) * rest) for limit in limits)
    return low, high


def bootstrap_f1_difference(
    reference: NDArray[np.int8],
    before: NDArray[np.int8],
    after: NDArray[np.int8],
    *,
    average: Average = "macro",
    zero_division: ZeroDivision = "skip",
    **resampling: Unpack[DrawResampling],
) -> Bootstrap:
    """Return F1 after minus F1 before, with a paired percentile interval.

    Both versions are scored on the same cells, those where the reference and both
    versions are decided, and on the same resamples.

    Parameters
    ----------
    reference, before, after
        Codes 1 present, 0 absent, -1 excluded, shape ``(n_cases, n_labels)``.
    average, zero_division, **resampling
        As for `bootstrap_f1`.

    Returns
    -------
    Bootstrap
        In [-1, 1]; above 0 is an improvement. No limits where every resample gives the
        same difference, as for two versions with the same answers.

    Raises
    ------
    ValueError
        Shapes or codes are wrong, or an option is out of range.

    References
    ----------
    Efron B, Tibshirani RJ. An Introduction to the Bootstrap. 1993, chapter 13.
    """
    check_codes(reference, before, after)
    decided = (before != EXCLUDED) & (after != EXCLUDED)
    common = np.where(decided, reference, np.int8(EXCLUDED))
    columns = np.hstack(
        [_f1_columns(common, version, average) for version in (before, after)]
    )

    def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        earlier, later = np.split(sums, 2, axis=1)
        return _f1_of(later, zero_division) - _f1_of(earlier, zero_division)

    result = bootstrap(columns, statistic, **resampling)[0]
    return result._replace(low=None, high=None) if result.has_no_width else result


def bootstrap_kappa(
    reference: NDArray[np.int8],
    predicted: NDArray[np.int8],
    **resampling: Unpack[DrawResampling],
) -> list[Estimate]:
    """Return Cohen's kappa of every label with a percentile bootstrap interval.

    Parameters
    ----------
    reference, predicted
        Codes 1 present, 0 absent, -1 excluded, shape ``(n_cases, n_labels)``.
    **resampling
        As for `bootstrap_f1`.

    Returns
    -------
    list[Estimate]
        One per label, in [-1, 1]. Value None where kappa is 0/0; interval None where
        one side is constant or too many resamples are undefined. The note says why.
        Where no unit holds an error, or none is without, the limits are those of
        `kappa_limits`.

    Raises
    ------
    ValueError
        Shapes or codes are wrong, or an option is out of range.

    References
    ----------
    Cohen J. Educ Psychol Meas 1960;20:37-46. Efron B, Tibshirani RJ. An Introduction
    to the Bootstrap. 1993, chapter 13.
    """
    cells = pair_indicators(reference, predicted)
    n_cases, n_labels, _ = cells.shape

    def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return kappas(sums.reshape(-1, n_labels, 4))

    columns = cells.reshape(n_cases, n_labels * 4)
    results = bootstrap(columns, statistic, **resampling)
    tables = count_confusions(reference, predicted).tolist()
    per_unit = sum_by_unit(columns, resampling.get("units")).reshape(-1, n_labels, 4)
    return [
        _kappa_estimate(
            result, Confusion(*table), per_unit[:, place], Draw(**resampling).confidence
        )
        for place, (result, table) in enumerate(zip(results, tables, strict=True))
    ]


def _kappa_estimate(
    result: Bootstrap, table: Confusion, per_unit: NDArray[Any], confidence: float
) -> Estimate:
    """Return kappa, with exact limits where every unit is right or every one wrong."""
    note = kappa_note(table)
    estimate = to_estimate(result, note)
    if note or not result.has_no_width:
        return estimate
    n = per_unit.sum(axis=1)
    agreeing = per_unit[:, 0] + per_unit[:, 3]
    units, right = int((n > 0).sum()), int(((n > 0) & (agreeing == n)).sum())
    if right < units and (agreeing > 0).any():
        return estimate
    limits = kappa_limits(right, units, chance_agreement(table), confidence=confidence)
    return Estimate(estimate.value, *limits, "exact limits: no resample differs")


def bootstrap_accuracy(
    reference: NDArray[np.int8],
    predicted: NDArray[np.int8],
    **resampling: Unpack[DrawResampling],
) -> list[Estimate]:
    """Return the accuracy of every label with a percentile bootstrap interval.

    For cases that come in clusters, for example of one patient: pass them as
    ``units``. Where no case is wrong the interval has no width, which is no certainty.

    Parameters
    ----------
    reference, predicted
        Codes 1 present, 0 absent, -1 excluded, shape ``(n_cases, n_labels)``. To get
        the sensitivity, exclude every case whose reference is not present.
    **resampling
        As for `bootstrap_f1`.

    Returns
    -------
    list[Estimate]
        One per label, in [0, 1]; None without a case.

    Raises
    ------
    ValueError
        Shapes or codes are wrong, or an option is out of range.

    References
    ----------
    Resampling whole clusters: Field CA, Welsh AH. J R Stat Soc B 2007;69:369-390.
    """
    cells = pair_indicators(reference, predicted)
    right = cells[..., 0] | cells[..., 3]

    def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        correct, n = np.split(sums, 2, axis=1)
        return divide(correct, n)

    columns = np.hstack([right, cells.any(axis=-1)])
    return [to_estimate(one) for one in bootstrap(columns, statistic, **resampling)]


def _f1_columns(
    reference: NDArray[np.int8], predicted: NDArray[np.int8], average: Average
) -> NDArray[np.int8] | NDArray[np.int16]:
    """Return `f1_columns`; with ``"micro"`` the labels of each case added up."""
    columns = f1_columns(reference, predicted)
    if average == "macro":
        return columns
    parts = np.split(columns, 2, axis=1)
    return np.hstack([p.sum(axis=1, dtype=np.int16, keepdims=True) for p in parts])


def _f1_of(
    sums: NDArray[np.float64], zero_division: ZeroDivision
) -> NDArray[np.float64]:
    found, weight = np.split(sums, 2, axis=1)
    return mean_f1(found, weight, zero_division=zero_division)
