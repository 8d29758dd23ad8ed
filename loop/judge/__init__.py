"""Judges of generated reports: what they find in pairs, and how far they are right."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loop.judge.api import JudgeResult, judge_pairs
    from loop.judge.judge import Judge

__all__ = ["Judge", "JudgeResult", "judge_pairs"]

_PLACES = {
    "Judge": "loop.judge.judge",
    "JudgeResult": "loop.judge.api",
    "judge_pairs": "loop.judge.api",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is asked for: pandas is heavy."""
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(place), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
