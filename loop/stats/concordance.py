"""Kendall's tau-b as a ratio of quadratic forms in how often each unit is taken.

Whether two candidates are ordered alike by scores and ratings does not change between
resamples; only how often the pair occurs does, the product of two weights. So the
signs of all pairs are added up once, by unit, and a resample is a matrix product.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_PIECE = 2**22
"""Pairs of candidates whose signs are held at once."""


class Concordance(NamedTuple):
    """Pairs of candidates added up by the units they belong to, ``(n_units, n_units)``.

    Every pair is in there twice, once from either side.
    """

    ordered: NDArray[Any]
    """Pairs in the same order on both sides, minus those in opposite order."""

    x_untied: NDArray[Any]
    y_untied: NDArray[Any]

    def taus(self, weights: NDArray[Any]) -> NDArray[np.float64]:
        """Return tau-b with each unit taken so many times.

        Parameters
        ----------
        weights
            Whole numbers, shape ``(n, n_units)``.

        Returns
        -------
        NDArray[np.float64]
            Shape ``(n,)``, in [-1, 1]; NaN where all of one side are tied.
        """
        forms = [quadratic(form, weights) for form in self]
        return normalise(*forms)


def tabulate_concordance(
    x: NDArray[Any], y: NDArray[Any], position: NDArray[np.intp]
) -> Concordance:
    """Return the pairs of candidates by the units they belong to.

    Parameters
    ----------
    x, y
        Scores and ratings of each candidate, finite, shape ``(n,)``.
    position
        Position of each candidate's unit, from 0, shape ``(n,)``.

    Returns
    -------
    Concordance
        Exact, in the narrowest float that holds every sum. Memory grows with the
        square of the units, time with the square of the candidates.
    """
    return Concordance(
        ordered=sum_signs((x, x), (y, y), position),
        x_untied=sum_signs((x, x), None, position),
        y_untied=sum_signs((y, y), None, position),
    )


def sum_signs(
    x: tuple[NDArray[Any], NDArray[Any]],
    y: tuple[NDArray[Any], NDArray[Any]] | None,
    position: NDArray[np.intp],
) -> NDArray[Any]:
    """Return the signs of all pairs of candidates, added up by unit.

    Parameters
    ----------
    x
        Values of the one and of the other candidate of a pair, each ``(n,)``.
    y
        The same for the other side: its signs are multiplied with those of `x`. None
        for the number of pairs that are not tied in `x`.
    position
        Position of each candidate's unit, from 0, shape ``(n,)``.

    Returns
    -------
    NDArray
        Shape ``(n_units, n_units)``.
    """
    order = np.argsort(position, kind="stable")
    starts = np.flatnonzero(np.diff(position[order], prepend=-1))
    # No resample holds more candidates than its largest unit over and over again.
    most = len(starts) * int(np.diff(starts, append=len(order)).max(initial=0))
    kind = np.float32 if most**2 < 2**24 else np.float64
    total = np.zeros((len(starts), len(starts)), dtype=kind)
    rows = max(1, _PIECE // max(len(order), 1))
    for first in range(0, len(order), rows):
        piece = order[first : first + rows]
        signs = _signs(x, piece, order)
        signs = abs(signs) if y is None else signs * _signs(y, piece, order)
        by_unit = np.add.reduceat(signs, starts, axis=1, dtype=kind)
        np.add.at(total, position[piece], by_unit)
    return total


def quadratic(form: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
    """Return the value of a form for every row of weights, shape ``(n,)``."""
    weights = weights.astype(form.dtype, copy=False)
    values = np.einsum("ru,ru->r", weights @ form, weights)
    return np.asarray(values, dtype=np.float64)


def normalise(
    product: NDArray[Any], x_square: NDArray[Any], y_square: NDArray[Any]
) -> NDArray[np.float64]:
    """Return ``product / sqrt(x_square y_square)``, NaN where one side is flat."""
    spread = np.sqrt(x_square * y_square)
    out = np.full(np.shape(product), np.nan)
    np.divide(product, spread, out=out, where=spread > 0)
    return np.asarray(np.clip(out, -1, 1))


def _signs(
    values: tuple[NDArray[Any], NDArray[Any]],
    piece: NDArray[np.intp],
    order: NDArray[np.intp],
) -> NDArray[np.int8]:
    one, other = values[0][piece][:, None], values[1][order]
    return (one > other).astype(np.int8) - (one < other).astype(np.int8)
