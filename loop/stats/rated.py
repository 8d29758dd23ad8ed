"""Candidates that have both a score and a rating, and the units they belong to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Rated(NamedTuple):
    """What is left when candidates without a value are dropped."""

    values: tuple[NDArray[np.float64], ...]
    """The arrays in the order given, each ``(n,)``."""

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
    return Rated(tuple(one[there] for one in arrays), position, len(kept))
