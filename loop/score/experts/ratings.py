"""Experts' ratings of candidates: how many points, and which candidate they prefer."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratings:
    """Every rater's points for every candidate, sorted by case id and system.

    A candidate is one system's text for one case: entry i of `ids` and `systems`
    names the one whose points stand in row i of `scores`.
    """

    ids: tuple[str, ...]
    """Case id of each candidate; a case stands once for each of its systems."""

    systems: tuple[str, ...]
    """System of each candidate; empty text where the file names none."""

    raters: tuple[str, ...]
    scores: NDArray[np.float64]
    """Shape ``(n_candidates, n_raters)``; NaN where a rater did not rate."""

    scale: tuple[float, float]
    """Least and most points possible; as observed where nobody said."""

    repeated: int = 0
    """Rows that stood more than once with the same points; used once."""

    def __post_init__(self) -> None:
        if self.scores.shape != (len(self.ids), len(self.raters)):
            raise ValueError(
                f"need one row per candidate and one column per rater, "
                f"{len(self.ids)} x {len(self.raters)}, got {self.scores.shape}"
            )
        if len(self.systems) != len(self.ids):
            raise ValueError(
                f"need a system for each of {len(self.ids)} candidates, "
                f"got {len(self.systems)}"
            )

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """``(case id, system)`` of each candidate."""
        return tuple(zip(self.ids, self.systems, strict=True))

    @property
    def consensus(self) -> NDArray[np.float64]:
        """Mean points of each candidate over those who rated it; NaN without one."""
        return mean_given(self.scores)


def mean_given(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of each row over its defined cells; NaN where there is none.

    Examples
    --------
    >>> mean_given(np.array([[1.0, np.nan, 4.0], [np.nan] * 3])).tolist()
    [2.5, nan]
    """
    given = ~np.isnan(scores)
    total = np.where(given, scores, 0.0).sum(axis=1)
    counts = given.sum(axis=1)
    return np.where(counts > 0, total / np.maximum(counts, 1), np.nan)


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
