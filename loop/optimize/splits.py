"""Nested splits of a development cohort: search, select, estimate.

A search sees the cases of `search`, picks among what it found on those of `select`, and
is measured once on those of `estimate`. With a dozen positives of a label a single cut
leaves too few in any part, so the cut is repeated: each run of `FOLDS` splits has
every case exactly once in an estimate, and estimates are pooled over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.digests import digest_json
from loop.evaluate.align import Codes

Rows = NDArray[np.intp]

FOLDS: Final = 5
"""Parts that a cohort is cut into: one estimates, one selects, the others search."""


class SeenCases(NamedTuple):
    """Places of the cases that an optimizer may see."""

    search: Rows
    """Those that it may learn from."""

    select: Rows
    """Those that it may choose on."""

    @property
    def known(self) -> Rows:
        """All of them."""
        return np.union1d(self.search, self.select)


class NestedSplit(NamedTuple):
    """Places of cases in the cohort, ascending; no unit is in two parts."""

    search: Rows
    select: Rows
    estimate: Rows

    @property
    def seen(self) -> SeenCases:
        """What an optimizer is given: not the cases that it is estimated on."""
        return SeenCases(self.search, self.select)


def split_cases(
    truth: Codes, units: NDArray[np.int64], *, repeats: int = FOLDS, seed: int = 0
) -> tuple[NestedSplit, ...]:
    """Return nested splits by unit, stratified over labels.

    Units are dealt to `FOLDS` parts by iterative stratification: the label with the
    fewest positives left is dealt first, each of its units to the part that lacks it
    most. Each part is the estimate of one split; after `FOLDS` splits the cohort is
    dealt again.

    Parameters
    ----------
    truth
        The reference as 1, 0, or -1 where it leaves a case open, shape
        ``(n_cases, n_labels)``.
    units
        Unit of each case, for example its patient, numbered from 0, shape
        ``(n_cases,)``.
    repeats
        Number of splits, from 1. Below `FOLDS` some cases are in no estimate.

    Raises
    ------
    ValueError
        There are fewer units than parts, or shapes do not fit.

    References
    ----------
    Sechidis K, Tsoumakas G, Vlahavas I. On the stratification of multi-label data.
    ECML PKDD 2011:145-158.

    Examples
    --------
    >>> truth = np.array([[1], [1], [1], [1], [1], [0], [0], [0], [0], [0]], np.int8)
    >>> first = split_cases(truth, np.arange(10))[0]
    >>> [int(truth[part].sum()) for part in first]
    [3, 1, 1]
    """
    if truth.ndim != 2 or units.shape != (len(truth),):
        raise ValueError(
            "need a reference (n_cases, n_labels) and a unit per case, got "
            f"{truth.shape} and {units.shape}"
        )
    if repeats < 1:
        raise ValueError(f"repeats must be >= 1, got {repeats}")
    total = len(np.unique(units))
    if total < FOLDS:
        raise ValueError(
            f"need at least {FOLDS} units to split, got {total} in {len(units)} cases"
        )
    rng = np.random.default_rng(seed)
    splits: list[NestedSplit] = []
    while len(splits) < repeats:
        part = _deal(truth == 1, units, rng)
        for fold in range(min(FOLDS, repeats - len(splits))):
            estimate, select = part == fold, part == (fold + 1) % FOLDS
            kinds = (~(estimate | select), select, estimate)
            splits.append(NestedSplit(*(np.flatnonzero(kind) for kind in kinds)))
    return tuple(splits)


def digest_splits(splits: Sequence[NestedSplit], case_ids: Sequence[str]) -> str:
    """Return the sha256 of which case is in which part of which split."""
    return digest_json(
        [
            {
                name: [case_ids[row] for row in rows]
                for name, rows in one._asdict().items()
            }
            for one in splits
        ]
    )


def _deal(
    positive: NDArray[np.bool_], units: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return the part of each case, shape ``(n_cases,)``."""
    names, place = np.unique(units, return_inverse=True)
    counts = np.zeros((len(names), positive.shape[1] + 1), dtype=np.int64)
    # The last column is the number of cases, so that parts are of one size.
    np.add.at(counts, place, np.hstack([positive, np.ones((len(place), 1), bool)]))
    wanted = np.tile(counts.sum(axis=0) / FOLDS, (FOLDS, 1))
    part = np.full(len(names), -1)
    left = rng.permutation(len(names))
    while left.size:
        open_counts = counts[left].sum(axis=0)
        labels = np.flatnonzero(open_counts[:-1])
        column = int(labels[open_counts[labels].argmin()]) if labels.size else -1
        for unit in left[counts[left, column] > 0]:
            fold = _most_in_need(wanted, column, rng)
            part[unit] = fold
            wanted[fold] -= counts[unit]
        left = left[part[left] < 0]
    return part[place]


def _most_in_need(
    wanted: NDArray[np.float64], column: int, rng: np.random.Generator
) -> int:
    """Return the part that lacks a label most; of those the one with fewest cases."""
    lacking = np.flatnonzero(wanted[:, column] == wanted[:, column].max())
    smallest = lacking[wanted[lacking, -1] == wanted[lacking, -1].max()]
    return int(rng.choice(smallest))
