"""Grades of generated reports: Ran Score, the report metrics, experts' ratings."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loop.score.api import RanScoreResult, ran_score
    from loop.score.extractor import Extractor
    from loop.score.reading.options import ReadingOptions
    from loop.score.reward import RanScoreMetric, RanScoreReward

__all__ = [
    "Extractor",
    "RanScoreMetric",
    "RanScoreResult",
    "RanScoreReward",
    "ReadingOptions",
    "ran_score",
]

_PLACES = {
    "Extractor": "loop.score.extractor",
    "RanScoreMetric": "loop.score.reward",
    "RanScoreResult": "loop.score.api",
    "RanScoreReward": "loop.score.reward",
    "ReadingOptions": "loop.score.reading.options",
    "ran_score": "loop.score.api",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is asked for: pandas and matplotlib are heavy."""
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(place), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
