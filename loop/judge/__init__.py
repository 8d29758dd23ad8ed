"""Judges of generated reports: what they find in pairs, and how far they are right."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loop.judge.ensemble import MemberScores, evaluate_out_of_fold, fit_ensemble
    from loop.judge.ensemble_versions import apply_ensemble, read_ensemble
    from loop.judge.injection.inject import (
        Injection,
        InjectionOptions,
        inject_errors,
    )
    from loop.judge.judge import Judge
    from loop.judge.pairs import JudgeResult, judge_pairs
    from loop.judge.shots import ShotRequest, add_shots

__all__ = [
    "Injection",
    "InjectionOptions",
    "Judge",
    "JudgeResult",
    "MemberScores",
    "ShotRequest",
    "add_shots",
    "apply_ensemble",
    "evaluate_out_of_fold",
    "fit_ensemble",
    "inject_errors",
    "judge_pairs",
    "read_ensemble",
]

_PLACES = {
    "Injection": "loop.judge.injection.inject",
    "InjectionOptions": "loop.judge.injection.inject",
    "inject_errors": "loop.judge.injection.inject",
    "MemberScores": "loop.judge.ensemble",
    "evaluate_out_of_fold": "loop.judge.ensemble",
    "fit_ensemble": "loop.judge.ensemble",
    "apply_ensemble": "loop.judge.ensemble_versions",
    "read_ensemble": "loop.judge.ensemble_versions",
    "Judge": "loop.judge.judge",
    "JudgeResult": "loop.judge.pairs",
    "judge_pairs": "loop.judge.pairs",
    "ShotRequest": "loop.judge.shots",
    "add_shots": "loop.judge.shots",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is asked for: pandas is heavy."""
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(place), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
