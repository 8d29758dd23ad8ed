"""What ``agreement --against`` says of a model beside the readers."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from loop.cli.console import print_table, say

if TYPE_CHECKING:
    from loop.evaluate.ceiling import Ceiling, CeilingRow, ReaderModelMeasure
    from loop.stats.intervals import Estimate


def say_ceiling(ceiling: Ceiling, run_id: str) -> None:
    """Print the mean reader, the model and the difference, label by label."""
    print_table(
        [
            f"run {run_id}",
            "n",
            "ties",
            "no answer",
            "accuracy: reader",
            "model",
            "difference",
            "kappa: reader",
            "model",
            "difference",
        ],
        [_cells(row) for row in (*ceiling.labels, ceiling.pooled)],
    )
    say()
    say(
        "Each reader, and the model, against the strict majority of the other readers, "
        f"on the same comparisons; {ceiling.resamples} resamples of {ceiling.units} "
        f"{ceiling.unit}s. ! : the model is above the mean reader."
    )
    for text in ceiling.warnings:
        say(f"note: {text}")


def _cells(row: CeilingRow) -> list[str]:
    counts = [str(n) for n in (row.comparisons, row.ties, row.unanswered)]
    return [row.name, *counts, *_beside(row.accuracy), *_beside(row.kappa)]


def _beside(measure: ReaderModelMeasure) -> list[str]:
    sign = "!" if measure.above else ""
    return [
        _number(measure.reader.value),
        _number(measure.model.value),
        sign + _signed(measure.difference),
    ]


def _number(value: float | None) -> str:
    return "--" if value is None else f"{value:.3f}"


def _signed(estimate: Estimate) -> str:
    if estimate.value is None:
        return "--"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:+.3f}"
    return f"{estimate.value:+.3f} ({estimate.low:+.3f} to {estimate.high:+.3f})"


def ceiling_data(ceiling: Ceiling, run_id: str) -> dict[str, Any]:
    """Return `ceiling` for ``--json``."""
    return {
        **asdict(ceiling),
        "run": run_id,
        "pooled": _row_data(ceiling.pooled),
        "labels": [_row_data(row) for row in ceiling.labels],
        "warnings": list(ceiling.warnings),
    }


def _row_data(row: CeilingRow) -> dict[str, Any]:
    return {
        "label": row.label,
        "comparisons": row.comparisons,
        "no_majority": row.ties,
        "unanswered": row.unanswered,
        "above": row.above,
        "accuracy": _beside_data(row.accuracy),
        "kappa": _beside_data(row.kappa),
    }


def _beside_data(measure: ReaderModelMeasure) -> dict[str, Any]:
    return {
        "mean_reader": measure.reader._asdict(),
        "model": measure.model._asdict(),
        "difference": measure.difference._asdict(),
    }
