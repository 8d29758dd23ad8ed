"""What metrics of texts share: the two sides, means, signatures."""

from __future__ import annotations

from importlib.metadata import version
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.score.metric import MetricInput, Scores, Unavailable


class PairTexts(NamedTuple):
    """Both sides of every pair."""

    references: tuple[str, ...]
    candidates: tuple[str, ...]


def both_texts(side: MetricInput, metric: str) -> PairTexts | Unavailable:
    """Return the texts of a side, or that labels were given instead."""
    if side.references is None:
        return Unavailable(metric, _lacking("references"))
    if side.candidates is None:
        return Unavailable(metric, _lacking("candidates"))
    return PairTexts(side.references, side.candidates)


def sign(metric: str, *fields: str, library: str = "", n: int) -> str:
    """Return a signature: name, conventions, library with its version, cases.

    Examples
    --------
    >>> sign("length_ratio", "tok:words", n=3)
    'length_ratio|tok:words|n:3'
    """
    used = [f"{library}:{version(library)}"] if library else []
    return "|".join([metric, *fields, *used, f"n:{n}"])


def count_defined(values: NDArray[np.float64]) -> int:
    """Return how many values are defined."""
    return int((~np.isnan(values)).sum())


def mean_scores(
    values: NDArray[np.float64], signature: str, notes: tuple[str, ...] = ()
) -> Scores:
    """Return scores whose system value is the mean over the defined cases."""
    defined = values[~np.isnan(values)]
    value = float(defined.mean()) if defined.size else None
    return Scores(per_case=values, value=value, signature=signature, notes=notes)


def _lacking(what: str) -> str:
    return (
        f"the {what} of this system are labels, not texts. Give files with a text "
        "column to have it."
    )
