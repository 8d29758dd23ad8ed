"""How well scores separate two groups of pairs, with intervals over the units.

The area under the ROC curve is the chance that a pair of the second group scores
higher than one of the first; ties count half. Pairs of one unit, for example all
variants of one report, are resampled together.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from loop.stats.resampling import (
    Bootstrap,
    Draw,
    bootstrap,
    draw_values,
    resample_weights,
    split_rows,
    summarise,
)


class AucResampling(TypedDict, total=False):
    """Options of the bootstrap over units."""

    resamples: int
    """Number of resamples; default 2,000."""

    seed: int
    confidence: float


class GroupedAuc(NamedTuple):
    """Areas under the curve of each group against the same others."""

    whole: Bootstrap
    """All groups together."""

    groups: tuple[Bootstrap, ...]
    """Each group, in their order."""


def grouped_auc(
    scores: NDArray[np.float64],
    groups: NDArray[np.int64],
    units: NDArray[Any],
    n_groups: int,
    **options: Unpack[AucResampling],
) -> GroupedAuc:
    """Return how often the others score higher than the pairs of each group.

    Parameters
    ----------
    scores
        Higher is better, shape ``(n,)``; NaN where undefined: such a pair is left out.
    groups
        Group of each pair, 0 to ``n_groups - 1``; -1 for the others.
    units
        Unit of each pair: what is resampled.
    n_groups
        Number of groups.
    **options
        As for `loop.stats.resampling.bootstrap`.

    Returns
    -------
    GroupedAuc
        None where a group, or the others, have no pair.

    References
    ----------
    Hanley JA, McNeil BJ. Radiology 1982;143:29-36 (the area as a probability, ties
    one half). Resampling whole clusters: Field CA, Welsh AH. J R Stat Soc B
    2007;69:369-390.

    Examples
    --------
    >>> found = grouped_auc(
    ...     np.array([0.1, 0.5, 0.5, 0.9]),
    ...     np.array([0, 0, -1, -1]),
    ...     np.arange(4),
    ...     1,
    ...     resamples=10,
    ... )
    >>> found.whole.estimate
    0.875
    """
    given = ~np.isnan(scores)
    names, unit = np.unique(units[given], return_inverse=True)
    group, score = groups[given], scores[given]
    table = _WinTable(score, group, unit, n_groups)
    whole = np.ones((1, len(names)), dtype=np.float32)
    estimates = table.areas(whole)[0]
    draw = Draw(**options)

    def compute(size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        blocks = resample_weights(len(names), size, rng)
        return np.concatenate(
            [table.areas(rows) for block in blocks for rows in split_rows(block)]
        )

    values = draw_values(compute, estimates, len(names), draw)
    total, *parts = summarise(estimates, values, draw)
    return GroupedAuc(total, tuple(parts))


class _WinTable:
    """Which of the others score higher than each pair of a group."""

    def __init__(
        self,
        scores: NDArray[np.float64],
        groups: NDArray[np.int64],
        units: NDArray[np.intp],
        n_groups: int,
    ) -> None:
        others = groups < 0
        order = np.argsort(scores[others], kind="stable")
        ranked = scores[others][order]
        self._other_units = units[others][order]
        self._own_units = units[~others]
        own = scores[~others]
        self._above = np.searchsorted(ranked, own, side="right")
        self._not_below = np.searchsorted(ranked, own, side="left")
        kinds = groups[~others]
        columns = [np.ones(len(kinds), dtype=bool)]
        columns += [kinds == one for one in range(n_groups)]
        self._members = np.stack(columns, axis=1).astype(np.float64)

    def areas(self, weights: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the areas for weights of units, shape ``(rows, 1 + n_groups)``."""
        others = weights[:, self._other_units].astype(np.float64)
        below = np.zeros((len(weights), others.shape[1] + 1))
        np.cumsum(others, axis=1, out=below[:, 1:])
        total = below[:, -1:]
        higher = total - below[:, self._above]
        tied = below[:, self._above] - below[:, self._not_below]
        own = weights[:, self._own_units].astype(np.float64)
        won = (own * (higher + tied / 2)) @ self._members
        pairs = (own @ self._members) * total
        with np.errstate(divide="ignore", invalid="ignore"):
            found: NDArray[np.float64] = won / pairs
        return found


def within_units(
    scores: NDArray[np.float64],
    first: NDArray[np.bool_],
    units: NDArray[Any],
    **options: Unpack[AucResampling],
) -> tuple[Bootstrap, int]:
    """Return how often, of two pairs of one unit, the one of the first group is lower.

    Ties count half, and every unit with pairs of both groups counts the same.

    Parameters
    ----------
    scores
        Higher is better, shape ``(n,)``; NaN where undefined.
    first
        Whether a pair is of the first group.
    units
        Unit of each pair.
    **options
        As for `loop.stats.resampling.bootstrap`.

    Returns
    -------
    tuple[Bootstrap, int]
        The mean over units with its interval, and how many units it rests on.
    """
    given = ~np.isnan(scores)
    names, unit = np.unique(units[given], return_inverse=True)
    columns = np.zeros((len(names), 2))
    for one in range(len(names)):
        own = unit == one
        low, high = (
            scores[given][own & first[given]],
            scores[given][own & ~first[given]],
        )
        if len(low) and len(high):
            wins = (low[:, None] < high).sum() + (low[:, None] == high).sum() / 2
            columns[one] = wins / (len(low) * len(high)), 1

    def mean(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(divide="ignore", invalid="ignore"):
            found: NDArray[np.float64] = sums[:, 0] / sums[:, 1]
        return found

    (result,) = bootstrap(columns[columns[:, 1] > 0], mean, **options)
    return result, int(columns[:, 1].sum())
