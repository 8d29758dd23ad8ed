"""How often the same question, asked again, gets another answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.records import ValueCode
from loop.evaluate.align import Codes
from loop.stats.intervals import Interval, clopper_pearson


class Flips(NamedTuple):
    """How stable the answers to one label are."""

    n: int
    """Cases answered in every draw."""

    flipped: int
    """Cases among them whose answers are not all the same."""

    interval: Interval
    """Clopper-Pearson interval of `flipped` of `n`; (0, 1) without cases."""

    disagreement: float | None
    """Chance that two draws differ on a case, mean over cases; None without cases."""

    @property
    def rate(self) -> float | None:
        """Share of cases that flipped; None without cases."""
        return self.flipped / self.n if self.n else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """The draws of one run that have finished."""

    runs: tuple[str, ...]
    """Run ids, in the order of their draws."""

    labels: tuple[Flips, ...]
    """One per label, in published order."""

    partly: int
    """Cases answered in some draws and not in others."""

    same_words: int
    """Cases whose raw answers are the same to the letter in all draws."""

    temperature: float
    """Sampling temperature of all draws."""

    chance: bool
    """Whether the answers were left to chance: temperature above 0, and a model."""

    spaced: bool = False
    """Whether the further draws spaced the prompt's paragraphs otherwise."""

    @property
    def draws(self) -> int:
        """How often every case was asked."""
        return len(self.runs)


def count_flips(tables: Sequence[Codes], confidence: float = 0.95) -> tuple[Flips, ...]:
    """Return the flips of every label.

    Parameters
    ----------
    tables
        One table per draw, each of shape (cases, labels), values as `ValueCode`.
    confidence
        Level of the intervals.

    Notes
    -----
    Only cases that every draw answered are counted: a missing answer is not another
    value. With K draws of which n_v gave value v, two draws differ with the chance
    1 - sum n_v (n_v - 1) / (K (K - 1)); unlike the share of flipped cases it does not
    grow with the number of draws.

    Raises
    ------
    ValueError
        There are fewer than two tables.

    Examples
    --------
    >>> draws = [np.array([[1], [0]], dtype=np.int8) for _ in range(3)]
    >>> draws[2][0] = -1
    >>> (flips,) = count_flips(draws)
    >>> flips.flipped, flips.n, round(flips.disagreement, 3)
    (1, 2, 0.333)
    """
    if len(tables) < 2:
        raise ValueError(f"flips need two draws or more, got {len(tables)}")
    answers = np.stack(tables)
    complete = np.asarray(np.all(answers >= ValueCode.UNCERTAIN, axis=0))
    flipped = complete & np.any(answers != answers[0], axis=0)
    differing = _differing(answers)
    return tuple(
        _flips(complete[:, i], flipped[:, i], differing[:, i], confidence)
        for i in range(answers.shape[2])
    )


def _differing(answers: NDArray[np.int8]) -> NDArray[np.float64]:
    """Return per case and label the share of pairs of draws that differ."""
    draws = len(answers)
    counts = np.stack([(answers == value).sum(axis=0) for value in (1, 0, -1)])
    same = (counts * (counts - 1)).sum(axis=0)
    return np.asarray(1.0 - same / (draws * (draws - 1)), dtype=np.float64)


def _flips(
    complete: NDArray[np.bool_],
    flipped: NDArray[np.bool_],
    differing: NDArray[np.float64],
    confidence: float,
) -> Flips:
    n, k = int(complete.sum()), int(flipped.sum())
    return Flips(
        n=n,
        flipped=k,
        interval=clopper_pearson(k, n, confidence=confidence),
        disagreement=float(differing[complete].mean()) if n else None,
    )
