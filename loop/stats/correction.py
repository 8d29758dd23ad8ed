"""What F1 would be if the labeller that read both sides made no errors.

Where one labeller reads references and candidates, its errors stand on both sides of
the comparison. If they are independent between the two, the observed shares of the
four cells are the true ones times a matrix of its sensitivity and specificity, which
can be inverted: the correction of a prevalence by Rogan and Gladen, in two dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from loop.stats.confusion import (
    Confusion,
    ZeroDivision,
    check_codes,
    divide,
    mean_f1,
    pair_indicators,
)
from loop.stats.intervals import Estimate
from loop.stats.resampling import (
    Draw,
    Drawing,
    Resampling,
    draw_values,
    exact_float,
    resample_weights,
    split_rows,
    sum_by_unit,
    summarise,
    to_estimate,
)

LEAST_YOUDEN = 0.1
"""A labeller with a smaller ``sensitivity + specificity - 1`` is close to chance: what
it says cannot be turned back into what was there."""


_ROUNDING = 1e-12


class CorrectedRates(NamedTuple):
    """The four cells of one label without the labeller's errors."""

    shares: tuple[float, float, float, float]
    """Of cases, in the order TP, FP, FN, TN; they add up to 1."""

    f1: float | None
    """None where nothing is positive on either side."""

    clipped: bool
    """Whether a share came out where none can be, and was moved to the limit."""


class CorrectedF1(NamedTuple):
    """The macro F1 of one system without the labeller's errors."""

    estimate: Estimate
    """With an interval over cases and over what is known of the labeller's errors."""

    labels: tuple[float | None, ...]
    """F1 of each label; as observed where it is not corrected."""

    corrected: tuple[bool, ...]
    """Which labels are corrected: those whose sensitivity and specificity are known
    and better than chance."""

    clipped: int
    """Labels where a share came out where none can be, and was moved to the limit."""


def rogan_gladen_f1(
    counts: Confusion, sensitivity: float, specificity: float
) -> CorrectedRates | None:
    """Return the cells and the F1 of one label without the labeller's errors.

    Parameters
    ----------
    counts
        The candidate's label against the reference's, both as read by the labeller.
    sensitivity, specificity
        Of the labeller, on either side, in [0, 1].

    Returns
    -------
    Corrected or None
        None without a case, or where ``sensitivity + specificity - 1`` is below 0.1.
        What no truth explains is moved to the nearest limit: first the share of
        positives on each side to [0, 1], then the share positive on both to what
        these two allow. Fewer positives than a labeller of this specificity invents
        count as none.

    Raises
    ------
    ValueError
        A rate is outside [0, 1] or NaN.

    References
    ----------
    Rogan WJ, Gladen B. Am J Epidemiol 1978;107:71-76. Two error-prone readings:
    Barron BA. Biometrics 1977;33:414-418 (matrix method).

    Examples
    --------
    >>> found = rogan_gladen_f1(Confusion(426, 154, 154, 266), 0.9, 0.9)
    >>> [round(share, 4) for share in found.shares], round(found.f1, 4)
    ([0.5, 0.1, 0.1, 0.3], 0.8333)
    """
    for rate in (sensitivity, specificity):
        if not 0 <= rate <= 1:
            raise ValueError(f"rates must be in [0, 1], got {rate}")
    if counts.n == 0 or sensitivity + specificity - 1 < LEAST_YOUDEN:
        return None
    observed = np.asarray(counts, dtype=np.float64)
    shares, clipped = _invert(
        observed, np.asarray(sensitivity), np.asarray(specificity)
    )
    tp, fp, fn, tn = shares.tolist()
    [f1] = _or_none(divide(*_parts(shares[None])))
    return CorrectedRates((tp, fp, fn, tn), f1, bool(clipped))


def corrected_macro_f1(
    reference: NDArray[np.int8],
    candidates: NDArray[np.int8],
    errors: Sequence[Confusion | None],
    *,
    zero_division: ZeroDivision = "skip",
    **resampling: Unpack[Resampling],
) -> list[CorrectedF1]:
    """Return the macro F1 of every system without the labeller's errors.

    It assumes that the labeller errs on a candidate as often as on a reference, on
    one independently of the other, and in these cases as often as in those where it
    was measured. The interval is over both: each resample of cases goes with one draw
    of the labeller's rates from their posterior under Jeffreys' prior, restricted to
    a labeller better than chance.

    Parameters
    ----------
    reference
        Codes 1 present, 0 absent, -1 excluded, shape ``(n_cases, n_labels)``.
    candidates
        The same codes, shape ``(n_systems, n_cases, n_labels)``.
    errors
        Of each label: the labeller against a reference standard, elsewhere. A label
        with None, without a positive or a negative there, or where the labeller is
        hardly better than chance, stays as observed.
    zero_division
        As for `average_f1`, by the corrected shares.
    **resampling
        ``units``, ``resamples`` (10,000), ``seed`` (0), ``confidence`` (0.95).

    Returns
    -------
    list[CorrectedF1]
        In the order given; all systems share the draws. The estimate uses the rates
        as measured. Where the labeller was measured on few cases it may lie outside
        its interval, and the note of the estimate says so: a sensitivity of 3 of 3 is
        1, and is hardly ever 1 in the posterior.

    Raises
    ------
    ValueError
        Shapes or codes are wrong, there is not one entry of `errors` per label, or an
        option is out of range.

    References
    ----------
    Rogan WJ, Gladen B. Am J Epidemiol 1978;107:71-76. Uncertainty of both rates in
    the interval: Lang Z, Reiczigel J. Prev Vet Med 2014;113:13-22. Jeffreys' prior:
    Brown LD, Cai TT, DasGupta A. Stat Sci 2001;16:101-133.
    """
    options: Resampling = {"resamples": 10_000, **resampling}
    draw = Draw(**options)
    if candidates.ndim != 3:
        raise ValueError(
            f"need the shape (n_systems, n_cases, n_labels), got {candidates.shape}"
        )
    check_codes(reference, *candidates)
    labeller = _Labeller.of(errors, reference.shape[1])
    cells = [pair_indicators(reference, one) for one in candidates]
    counts = np.array([one.sum(axis=0, dtype=np.int64) for one in cells])
    rates = np.where(labeller.known, _rates(labeller.counts), 1.0)
    shares, clipped = _invert(counts.astype(np.float64), *rates)
    estimates = mean_f1(*_parts(shares), zero_division=zero_division)
    flat = np.hstack([one.reshape(len(reference), -1) for one in cells])
    per_unit = sum_by_unit(flat, draw.units)
    compute = _corrected_draws(per_unit, counts.shape, labeller, zero_division)
    values = draw_values(compute, estimates, len(per_unit), draw)
    results = summarise(estimates, values, draw)
    return [
        CorrectedF1(
            estimate=_with_note(to_estimate(result)),
            labels=_or_none(divide(*_parts(one))),
            corrected=tuple(labeller.known.tolist()),
            clipped=int(limited.sum()),
        )
        for result, one, limited in zip(results, shares, clipped, strict=True)
    ]


class _Labeller(NamedTuple):
    counts: NDArray[np.float64]
    """Shape ``(n_labels, 4)``."""

    known: NDArray[np.bool_]
    """Labels that can be corrected."""

    @classmethod
    def of(cls, errors: Sequence[Confusion | None], n_labels: int) -> _Labeller:
        if len(errors) != n_labels:
            raise ValueError(f"need errors of {n_labels} labels, got {len(errors)}")
        counts = np.array([one or (0, 0, 0, 0) for one in errors], dtype=np.float64)
        sensitivity, specificity = _rates(counts.reshape(-1, 4))
        return cls(counts, sensitivity + specificity - 1 >= LEAST_YOUDEN)

    def draw(
        self, size: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return rates from their posterior, ``(size, n_labels)``; 1 where unknown."""
        tp, fp, fn, tn = self.counts[self.known].T + 0.5
        shape = (size, len(tp))
        drawn = np.stack([rng.beta(tp, fn, shape), rng.beta(tn, fp, shape)])
        low = drawn.sum(axis=0) - 1 < LEAST_YOUDEN
        while low.any():
            label = np.nonzero(low)[1]
            again = rng.beta(tp[label], fn[label]), rng.beta(tn[label], fp[label])
            drawn[:, low] = again
            low[low] = np.sum(again, axis=0) - 1 < LEAST_YOUDEN
        rates = np.ones((2, size, len(self.known)))
        rates[:, :, self.known] = drawn
        return rates[0], rates[1]


def _corrected_draws(
    per_unit: NDArray[Any],
    shape: tuple[int, ...],
    labeller: _Labeller,
    zero_division: ZeroDivision,
) -> Drawing:
    """Return what draws cases and rates together, the same ones for all systems."""
    table: NDArray[Any] = per_unit.astype(exact_float(per_unit))

    def compute(size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        values = []
        for weights in resample_weights(len(table), size, rng):
            for part in split_rows(weights):
                sums = (part @ table).reshape(-1, *shape).astype(np.float64)
                rates = (one[:, None] for one in labeller.draw(len(part), rng))
                shares, _ = _invert(sums, *rates)
                values.append(mean_f1(*_parts(shares), zero_division=zero_division))
        return np.concatenate(values)

    return compute


def _with_note(estimate: Estimate) -> Estimate:
    value, low, high, note = estimate
    if value is None or low is None or high is None or low <= value <= high:
        return estimate
    outside = "outside its interval: the labeller was measured on few cases"
    return Estimate(value, low, high, f"{note}; {outside}" if note else outside)


def _rates(counts: NDArray[np.float64]) -> tuple[Any, Any]:
    """Return sensitivity and specificity of each label, NaN without a case."""
    tp, fp, fn, tn = counts.T
    return divide(tp, tp + fn), divide(tn, tn + fp)


def _invert(
    counts: NDArray[np.float64],
    sensitivity: NDArray[np.float64],
    specificity: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the true shares ``(..., 4)``, and whether a limit was applied.

    Both margins first; then the share of both, which they bound. All are 0 without a
    case.
    """
    tp, fp, fn, _ = np.moveaxis(counts, -1, 0)
    n = counts.sum(axis=-1)
    whole = np.maximum(n, 1)
    youden, invented = sensitivity + specificity - 1, 1 - specificity
    seen = [(tp + fp) / whole, (tp + fn) / whole]
    raw = [(one - invented) / youden for one in seen]
    candidate, reference = (_within(one, 0.0, 1.0) for one in raw)
    product = (tp / whole - invented * sum(seen) + invented**2) / youden**2
    both = _within(
        product,
        np.maximum(candidate + reference - 1, 0.0),
        np.minimum(candidate, reference),
    )
    limited = (
        (np.abs(candidate - raw[0]) > _ROUNDING)
        | (np.abs(reference - raw[1]) > _ROUNDING)
        | (np.abs(both - product) > _ROUNDING)
    )
    neither = np.maximum(1 - candidate - reference + both, 0.0)
    shares = [both, candidate - both, reference - both, neither]
    there = n > 0
    return np.stack(shares, axis=-1) * there[..., None], limited & there


def _within(shares: NDArray[np.float64], low: Any, high: Any) -> NDArray[np.float64]:
    """Return the shares within their limits, on a limit where only rounding is off."""
    found = np.clip(shares, low, high)
    found = np.where(found - low < _ROUNDING, low, found)
    return np.where(high - found < _ROUNDING, high, found)


def _or_none(values: NDArray[np.float64]) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(one) else float(one) for one in values)


def _parts(
    shares: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    found = 2 * shares[..., 0]
    return found, found + shares[..., 1] + shares[..., 2]
