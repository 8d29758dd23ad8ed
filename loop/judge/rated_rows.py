"""What a judge's agreement rests on, as rows that tell nothing of the cases.

Units are numbered by their values alone and rows stand in the order of these numbers,
so that neither ids nor the order of a cohort can be read from them. Whatever is
resampled takes the units in this order: who has the rows gets the same intervals.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.digests import digest_json


class RatedRow(NamedTuple):
    """One rated pair."""

    unit: int
    """Number of its patient, else of its reference, from 1."""

    score: float | None
    """Score that is claimed; None where the judge gives none."""

    points: float
    """Mean of the raters, counts of errors negated."""

    parent: float | None = None
    """Score of the parent version; None where it is not compared, or gives none."""


def number_units(
    units: NDArray[Any], points: NDArray[np.float64], *scores: NDArray[np.float64]
) -> NDArray[np.intp]:
    """Return a number for the unit of each pair, from 0, by the values of its pairs.

    Parameters
    ----------
    units
        Unit of each pair, shape ``(n_pairs,)``.
    points
        Of the same pairs; NaN where nobody rated. Such pairs have no part in the
        order, and units of no other pairs come last.
    *scores
        Of the same pairs; NaN where there is none.

    Examples
    --------
    >>> units = np.array(["p7", "p7", "p1", "p3"])
    >>> points = np.array([4.0, 2.0, 1.0, np.nan])
    >>> number_units(units, points, np.array([0.9, 0.4, 0.2, 0.5])).tolist()
    [1, 1, 0, 2]
    """
    names, position = np.unique(units, return_inverse=True)
    table = np.column_stack([points, *scores])
    # Nothing is ordered before everything.
    table = np.where(np.isnan(table), -np.inf, table)
    values: list[list[tuple[float, ...]]] = [[] for _ in names]
    for unit, row, rated in zip(position, table, ~np.isnan(points), strict=True):
        if rated:
            values[unit].append(tuple(row))
    order = sorted(
        range(len(names)), key=lambda unit: (not values[unit], sorted(values[unit]))
    )
    numbers = np.empty(len(names), dtype=np.intp)
    numbers[order] = np.arange(len(names))
    return numbers[position]


def rated_rows(
    units: NDArray[np.intp],
    points: NDArray[np.float64],
    scores: NDArray[np.float64],
    parent: NDArray[np.float64] | None = None,
) -> tuple[RatedRow, ...]:
    """Return a row for each rated pair, by unit, points and scores.

    Parameters
    ----------
    units
        From `number_units`, over the same values.
    points, scores, parent
        Of the same pairs, NaN where there is none.
    """
    before = np.full(len(units), np.nan) if parent is None else parent
    rows = [
        RatedRow(int(unit) + 1, _given(score), float(given), _given(other))
        for unit, given, score, other in zip(units, points, scores, before, strict=True)
        if not np.isnan(given)
    ]
    return in_row_order(rows)


def _given(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def in_row_order(rows: Sequence[RatedRow]) -> tuple[RatedRow, ...]:
    """Return rows in the one order in which they are written."""
    return tuple(sorted(rows, key=_place))


def _place(row: RatedRow) -> tuple[float, ...]:
    others = (-np.inf if one is None else one for one in (row.score, row.parent))
    return (row.unit, row.points, *others)


def digest_rows(rows: Sequence[RatedRow]) -> str:
    """Sha256 over the rows in their order, as the ledger records it."""
    return digest_json([list(one) for one in rows])


def digest_error_counts(
    rows: Iterable[tuple[Sequence[str], float, float, float]],
) -> str:
    """Sha256 over categories, and errors that agree, that the judge and raters count.

    As the ledger records it: two evaluations with this digest have the same F1.
    """
    return digest_json([[list(names), *counts] for names, *counts in rows])
