"""How the scores of a judge are spread: the share of pairs in each bin."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

_BINS: Final = 10
_MOST_COUNT: Final = 10
"""Count up to which each number has a bin of its own."""


class ScoreBin(NamedTuple):
    """Pairs whose score is in a bin."""

    low: float
    high: float
    """Not in the bin, but in the last one; the same as `low` for a whole number, and
    infinite where a bin holds all larger ones."""

    n: int
    share: float
    """Of the pairs that have a score."""

    @property
    def label(self) -> str:
        """For example ``"0.2-0.3"``, ``"3"`` or ``"11+"``."""
        if self.low == self.high:
            return f"{self.low:g}"
        return (
            f"{self.low:g}+" if np.isinf(self.high) else f"{self.low:g}-{self.high:g}"
        )


def score_bins(values: NDArray[np.float64]) -> tuple[ScoreBin, ...]:
    """Return the spread of scores; without a score there is no bin.

    Scores from 0 to 1 have ten bins of one width. Whole numbers beyond that, such as
    errors or points, have a bin each up to 10, and one for all above. Others have ten
    bins of one width from the least to the largest.

    Parameters
    ----------
    values
        Shape ``(n_pairs,)``; NaN where a judge gives none, which is in no bin.

    Examples
    --------
    >>> found = score_bins(np.array([0.0, 0.05, 1.0, np.nan]))
    >>> [(one.label, one.n) for one in found if one.n]
    [('0-0.1', 2), ('0.9-1', 1)]
    >>> [one.label for one in score_bins(np.array([0.0, 2.0, 14.0]))][-2:]
    ['10', '11+']
    """
    there = np.sort(values[~np.isnan(values)])
    if not there.size:
        return ()
    whole = bool((there == np.floor(there)).all())
    if whole and there[0] >= 0 and there[-1] > 1:
        return _count_bins(there)
    low, high = float(there[0]), float(there[-1])
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    elif low == high:
        return (ScoreBin(low, high, there.size, 1.0),)
    edges = np.round(np.linspace(low, high, _BINS + 1), 6)
    edges[0], edges[-1] = low, high
    # 0.3 is not in the bin below it, whichever way the fraction was computed.
    counts = np.histogram(np.clip(np.round(there, 9), low, high), edges)[0]
    return tuple(
        ScoreBin(float(one), float(other), int(n), int(n) / there.size)
        for one, other, n in zip(edges, edges[1:], counts, strict=False)
    )


def _count_bins(there: NDArray[np.float64]) -> tuple[ScoreBin, ...]:
    last = min(int(there[-1]), _MOST_COUNT)
    found = [(float(n), float(n), int((there == n).sum())) for n in range(last + 1)]
    if above := int((there > _MOST_COUNT).sum()):
        found.append((_MOST_COUNT + 1.0, np.inf, above))
    return tuple(ScoreBin(*one, one[2] / there.size) for one in found)


def bins_data(found: tuple[ScoreBin, ...]) -> list[dict[str, Any]]:
    """Return bins as JSON data; a bin without an end has the end null."""
    return [
        {
            "low": one.low,
            "high": None if np.isinf(one.high) else one.high,
            "n": one.n,
            "share": one.share,
        }
        for one in found
    ]
