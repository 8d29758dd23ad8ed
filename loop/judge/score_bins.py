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
    """Not in the bin, except in the last one; the same as `low` for a whole number, and
    infinite where a bin holds all larger ones."""

    n: int
    share: float
    """Of the pairs that have a score."""

    @property
    def label(self) -> str:
        """For example ``"0.2-0.3"``, ``"-1 to -0.8"``, ``"3"`` or ``"11+"``."""
        if self.low == self.high:
            return f"{self.low:g}"
        if np.isinf(self.high):
            return f"{self.low:g}+"
        between = " to " if self.low < 0 else "-"
        return f"{self.low:g}{between}{self.high:g}"


def score_bins(
    values: NDArray[np.float64], low: float = 0.0, high: float | None = 1.0
) -> tuple[ScoreBin, ...]:
    """Return the spread of scores over their range; without a score there is no bin.

    Whole numbers, such as errors or points, have a bin each: from `low` to `high`, or
    without a bound up to the largest, and from 11 on in one bin. Others have ten bins
    of one width over the range; so has every score that reaches from 0 to 1.

    Parameters
    ----------
    values
        Shape ``(n_pairs,)``; NaN where a judge gives none, which is in no bin.
    low, high
        Least and largest possible value; None without a bound. Where a value is
        outside, the range is taken from the values.

    Examples
    --------
    >>> found = score_bins(np.array([0.0, 0.05, 1.0, np.nan]))
    >>> [(one.label, one.n) for one in found if one.n]
    [('0-0.1', 2), ('0.9-1', 1)]
    >>> [one.label for one in score_bins(np.array([0.0, 2.0, 14.0]), high=None)][-2:]
    ['10', '11+']
    """
    there = np.sort(values[~np.isnan(values)])
    if not there.size:
        return ()
    least, most = float(there[0]), float(there[-1])
    whole = bool((there == np.floor(there)).all()) and least >= low >= 0
    if whole and (high is None or (1 < high <= _MOST_COUNT and most <= high)):
        return _count_bins(there, int(low), most if high is None else high)
    if high is None or least < low or most > high:
        low, high = least, most
    if low == high:
        return (ScoreBin(low, high, there.size, 1.0),)
    width = (high - low) / _BINS
    # 0.3 is not in the bin below it, whichever way the fraction was computed.
    places = np.floor(np.round((there - low) / width, 6)).astype(int)
    counts = np.bincount(np.minimum(places, _BINS - 1), minlength=_BINS)
    edges = [low + width * place for place in range(_BINS)] + [high]
    return tuple(
        ScoreBin(round(one, 9), round(other, 9), int(n), int(n) / there.size)
        for one, other, n in zip(edges, edges[1:], counts, strict=False)
    )


def _count_bins(
    there: NDArray[np.float64], low: int, high: float
) -> tuple[ScoreBin, ...]:
    last = int(min(high, _MOST_COUNT))
    numbers = range(low, last + 1)
    found = [(float(n), float(n), int((there == n).sum())) for n in numbers]
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
