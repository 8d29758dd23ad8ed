"""Experts' ratings of candidates: who gave which candidate how many points."""

from __future__ import annotations

from dataclasses import dataclass

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
