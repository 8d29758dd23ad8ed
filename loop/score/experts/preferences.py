"""Which candidate of a case raters prefer, and whether a metric prefers it too."""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.score.experts.ratings import Ratings, mean_given


class CandidatePairs(NamedTuple):
    """Every two candidates of one case, and what the raters say of them."""

    rows: NDArray[np.intp]
    """Rows of both candidates, shape ``(n_pairs, 2)``."""

    consensus: NDArray[np.float64]
    """Mean points of both over the raters who rated both, shape ``(n_pairs, 2)``;
    NaN without one."""

    unanimous: NDArray[np.bool_]
    """Whether all raters, two or more, strictly prefer the same one."""

    tied: NDArray[np.bool_]
    """Whether all raters, two or more, give both the same points."""

    units: NDArray[Any]
    """Unit of each pair."""


def candidate_pairs(ratings: Ratings, units: NDArray[Any]) -> CandidatePairs:
    """Return the pairs of candidates of every case, in the order of their rows.

    Parameters
    ----------
    ratings
        Points; a case with one candidate has no pair.
    units
        Unit of each candidate, its case or patient.

    Returns
    -------
    CandidatePairs
        Arrays of length 0 where every case has one candidate.
    """
    places: dict[str, list[int]] = {}
    for row, case in enumerate(ratings.ids):
        places.setdefault(case, []).append(row)
    found = [pair for rows in places.values() for pair in combinations(rows, 2)]
    rows = np.array(found, dtype=np.intp).reshape(-1, 2)
    points = ratings.scores[rows]
    both = (~np.isnan(points)).sum(axis=1, keepdims=True) == 2
    kept = np.where(both, points, np.nan)
    consensus = np.stack([mean_given(kept[:, 0]), mean_given(kept[:, 1])], axis=1)
    signs = np.sign(kept[:, 0] - kept[:, 1])
    enough = (both[:, 0].sum(axis=1) == len(ratings.raters)) & (len(ratings.raters) > 1)
    alike = enough & (signs == signs[:, :1]).all(axis=1)
    preferred = alike & (signs[:, 0] != 0)
    return CandidatePairs(
        rows, consensus, preferred, alike & ~preferred, units[rows[:, 0]]
    )
