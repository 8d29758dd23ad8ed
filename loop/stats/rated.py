"""Candidates that have both a score and a rating, and the units they belong to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_ROUNDING = 1e-14
"""Share of the largest value by which equal ones may differ: the last digits of the
same fraction, or of the same mean, computed in another order."""


class Rated(NamedTuple):
    """What is left when candidates without a value are dropped."""

    values: tuple[NDArray[np.float64], ...]
    """The arrays in the order given, each ``(n,)``, as `tie_equal` leaves them."""

    position: NDArray[np.intp]
    """Position of each candidate's unit, from 0, in the order of the units' names."""

    n_units: int

    @property
    def n(self) -> int:
        """Number of candidates."""
        return len(self.position)


def keep_rated(*values: NDArray[Any], units: NDArray[Any] | None) -> Rated:
    """Return the candidates that have all the values.

    Parameters
    ----------
    *values
        Scores, ratings and so on, NaN where missing, each ``(n_candidates,)``.
    units
        Unit of each candidate, for example its case; None: each is its own.

    Returns
    -------
    Rated
        Without the candidates that lack a value.

    Raises
    ------
    ValueError
        The shapes differ or a value is infinite.
    """
    arrays = [np.asarray(one, dtype=np.float64) for one in values]
    names = np.arange(arrays[0].size) if units is None else np.asarray(units)
    shapes = {one.shape for one in (*arrays, names)}
    if len(shapes) != 1 or arrays[0].ndim != 1:
        raise ValueError(f"need equal shapes (n_candidates,), got {sorted(shapes)}")
    if any(np.isinf(one).any() for one in arrays):
        raise ValueError(
            "scores and ratings must be finite or NaN, got an infinite one"
        )
    there = ~np.any([np.isnan(one) for one in arrays], axis=0)
    kept, position = np.unique(names[there], return_inverse=True)
    values_there = tuple(tie_equal(one[there]) for one in arrays)
    return Rated(values_there, position, len(kept))


def tie_equal(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values with those that differ by rounding alone made the same.

    An order that only the last digit of a float makes is no order: it would count for
    or against a metric, and change with the order of raters.

    Parameters
    ----------
    values
        Finite, shape ``(n,)``.

    Examples
    --------
    >>> tie_equal(np.array([0.3, 0.1 + 0.2, 0.5])).tolist()
    [0.3, 0.3, 0.5]
    """
    if not values.size:
        return values
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    apart = np.diff(ordered) > _ROUNDING * np.abs(values).max()
    first = np.concatenate([[0], np.flatnonzero(apart) + 1])
    tied = np.empty_like(values)
    tied[order] = np.repeat(ordered[first], np.diff(first, append=len(values)))
    return tied
