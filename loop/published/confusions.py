"""The whole-number confusion tables that print as one row of rates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.published.printed import Number

Counts = NDArray[np.int64]

_MOST = 1_000_000
"""Candidates held at once; a row that leaves more says too little."""

_TINY = 1e-9


class Solutions(NamedTuple):
    """Confusion tables that fit a row, as arrays of one length."""

    tp: Counts
    fp: Counts
    fn: Counts

    @property
    def positives(self) -> Counts:
        """Reference positives of each solution."""
        return self.tp + self.fn

    def where(self, chosen: NDArray[np.bool_]) -> Solutions:
        """Return the chosen solutions."""
        return Solutions(self.tp[chosen], self.fp[chosen], self.fn[chosen])


Rates = Mapping[str, Number]
"""Measure to its printed value."""


def solvable(rates: Rates) -> bool:
    """Return whether a row says enough about its confusion table to look for it."""
    known = set(rates) & {"accuracy", "precision", "recall", "f1", "specificity"}
    return len(known) >= 2 and bool(known & {"precision", "recall", "f1"})


def candidates(rates: Rates, n: int, least: int | None = None) -> Solutions | None:
    """Return what fits precision, recall and F1 with at most `n` cases.

    Parameters
    ----------
    least
        Smallest number of cases that will be asked about; default `n`.

    Returns
    -------
    Solutions or None
        None when the row leaves more than can be listed. A rate without a
        denominator may print as 0 or as 1, as programs differ.
    """
    pairs = _positives(rates, n)
    if pairs is None:
        return None
    tp, fn = pairs
    low, high = _false_positives(rates, tp, fn, (least or n, n))
    many = np.maximum(0, high - low + 1)
    if many.sum() > _MOST:
        return None
    owner = np.repeat(np.arange(tp.size), many)
    start = np.repeat(np.cumsum(many) - many, many)
    found = Solutions(tp[owner], low[owner] + np.arange(owner.size) - start, fn[owner])
    tp, fp, fn = found
    keep = _fits(rates, "precision", tp, tp + fp) & _fits(rates, "recall", tp, tp + fn)
    if not _follows(rates):
        keep &= _fits(rates, "f1", 2 * tp, 2 * tp + fp + fn)
    return found.where(keep)


def at_size(found: Solutions, rates: Rates, n: int) -> Solutions:
    """Return the solutions that fit every other printed rate and count at `n` cases."""
    tp, fp, fn = found
    tn = n - tp - fp - fn
    keep = (tn >= 0) & _fits(rates, "accuracy", tp + tn, np.full(tp.shape, n))
    keep &= _fits(rates, "specificity", tn, tn + fp) & _fits(rates, "npv", tn, tn + fn)
    for name, counts in (("tp", tp), ("fp", fp), ("fn", fn), ("tn", tn)):
        if name in rates:
            keep &= counts == round(rates[name].value)
    if "positives" in rates:
        keep &= tp + fn == round(rates["positives"].value)
    if "prevalence" in rates:
        keep &= _fits(rates, "prevalence", tp + fn, np.full(tp.shape, n))
    if "kappa" in rates:
        keep &= _kappa_fits(rates["kappa"], found, n)
    return found.where(keep)


def solve(rates: Rates, n: int) -> Solutions | None:
    """Return every confusion table of `n` cases that prints as the row.

    Tolerance is half a unit of the last printed digit, and a twentieth of a unit for
    a value that was rounded twice. None: too many to list.

    Examples
    --------
    >>> half = {name: Number(0.5, 0.001) for name in ("precision", "recall")}
    >>> len(solve(half | {"accuracy": Number(0.8, 0.001)}, 10).tp)
    1
    """
    found = candidates(rates, n)
    return None if found is None else at_size(found, rates, n)


def _positives(rates: Rates, n: int) -> tuple[Counts, Counts] | None:
    """Return true positives and misses that fit recall, for every number of them."""
    every = np.arange(n + 1)
    low, high = np.zeros_like(every), every
    if "recall" in rates:
        recall = rates["recall"]
        low = np.maximum(0, np.ceil(every * recall.low)).astype(np.int64)
        high = np.minimum(every, np.floor(every * recall.high)).astype(np.int64)
    many = np.maximum(0, high - low + 1)
    # Without positives recall has no denominator.
    many[0] = int(_undefined_fits(rates, "recall"))
    if many.sum() > _MOST:
        return None
    positives = np.repeat(every, many)
    start = np.repeat(np.cumsum(many) - many, many)
    tp = np.where(positives == 0, 0, low[positives] + np.arange(positives.size) - start)
    return tp, positives - tp


def _false_positives(
    rates: Rates, tp: Counts, fn: Counts, sizes: tuple[int, int]
) -> tuple[Counts, Counts]:
    """Return the least and the most false positives that can fit; a wide net."""
    low = np.zeros(tp.shape)
    high = (sizes[1] - tp - fn).astype(float)
    if "precision" in rates:
        p = rates["precision"]
        low = np.maximum(low, np.where(tp > 0, tp / max(p.high, _TINY) - tp, 0))
        if p.low > 0:
            some = np.where(tp > 0, tp / p.low - tp, 0)
            high = np.minimum(high, some)
    if "f1" in rates and not _follows(rates):
        f1 = rates["f1"]
        low = np.maximum(low, np.where(tp > 0, 2 * tp / max(f1.high, _TINY), 0)
                         - 2 * tp - fn)  # fmt: skip
        if f1.low > 0:
            high = np.minimum(high, np.where(tp > 0, 2 * tp / f1.low - 2 * tp - fn, 0))
    if "accuracy" in rates:
        accuracy = rates["accuracy"]
        low = np.maximum(low, (1 - accuracy.high) * sizes[0] - fn)
        high = np.minimum(high, (1 - accuracy.low) * sizes[1] - fn)
    if "fp" in rates:
        low = np.maximum(low, rates["fp"].value)
        high = np.minimum(high, rates["fp"].value)
    first = np.maximum(0, np.ceil(low - _TINY)).astype(np.int64)
    return first, np.floor(high + _TINY).astype(np.int64)


def _fits(rates: Rates, name: str, part: Counts, whole: Counts) -> NDArray[np.bool_]:
    """Whether shares print as the rate; without a denominator, as 0 or 1."""
    if name not in rates:
        return np.ones(part.shape, dtype=bool)
    number = rates[name]
    share = part / np.maximum(whole, 1)
    inside = (share >= number.low) & (share <= number.high)
    return np.where(whole == 0, _undefined_fits(rates, name), inside)


def _undefined_fits(rates: Rates, name: str) -> bool:
    number = rates.get(name)
    return number is None or number.low <= 0 or number.high >= 1


def _follows(rates: Rates) -> bool:
    """Whether F1 follows from the printed precision and recall, rounded as they are."""
    if not {"precision", "recall", "f1"} <= set(rates):
        return False
    p, r = rates["precision"].value, rates["recall"].value
    return p + r > 0 and rates["f1"].low <= 2 * p * r / (p + r) <= rates["f1"].high


def _kappa_fits(kappa: Number, found: Solutions, n: int) -> NDArray[np.bool_]:
    tp, fp, fn = found
    tn = n - tp - fp - fn
    apart = (tp + fp) * (fp + tn) + (tp + fn) * (fn + tn)
    value = 2 * (tp * tn - fp * fn) / np.maximum(apart, 1)
    inside: NDArray[np.bool_] = (value >= kappa.low) & (value <= kappa.high)
    return np.where(apart == 0, True, inside)
