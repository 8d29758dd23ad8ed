"""Bootstrap intervals of F1, of its change, and of kappa, by patient or by case."""

from __future__ import annotations

from typing import Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from loop.stats.confusion import (
    EXCLUDED,
    Confusion,
    ZeroDivision,
    check_codes,
    count_confusions,
    divide,
    f1_columns,
    kappa_note,
    kappas,
    mean_f1,
    pair_indicators,
)
from loop.stats.intervals import Estimate
from loop.stats.resampling import Bootstrap as Bootstrap
from loop.stats.resampling import Resampling, bootstrap, to_estimate
from loop.stats.resampling import resample_weights as resample_weights

Average = Literal["macro", "micro"]


def bootstrap_f1(
    reference: NDArray[np.int8],
    predicted: NDArray[np.int8],
    *,
    average: Average = "macro",
    zero_division: ZeroDivision = "skip",
    **resampling: Unpack[Resampling],
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
    **resampling
        ``units``, ``resamples`` (2,000), ``seed`` (0), ``confidence`` (0.95).

    Returns
    -------
    Bootstrap
        In [0, 1]; nothing but None where no label has a positive on either side.

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
    >>> bootstrap_f1(truth, truth, resamples=200)[:3]
    (1.0, 1.0, 1.0)
    """
    check_codes(reference, predicted)
    columns = _f1_columns(reference, predicted, average)

    def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return _f1_of(sums, zero_division)

    return bootstrap(columns, statistic, **resampling)[0]


def bootstrap_f1_difference(
    reference: NDArray[np.int8],
    before: NDArray[np.int8],
    after: NDArray[np.int8],
    *,
    average: Average = "macro",
    zero_division: ZeroDivision = "skip",
    **resampling: Unpack[Resampling],
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
        In [-1, 1]; above 0 is an improvement.

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

    return bootstrap(columns, statistic, **resampling)[0]


def bootstrap_kappa(
    reference: NDArray[np.int8],
    predicted: NDArray[np.int8],
    **resampling: Unpack[Resampling],
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
    return [
        to_estimate(result, kappa_note(Confusion(*table)))
        for result, table in zip(results, tables, strict=True)
    ]


def bootstrap_accuracy(
    reference: NDArray[np.int8],
    predicted: NDArray[np.int8],
    **resampling: Unpack[Resampling],
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
