"""A matrix as JSON data, the shape of ``ranloop matrix --json``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from loop.evaluate.matrix.records import (
    EngineColumn,
    EngineRank,
    Matrix,
    MatrixCell,
    MatrixRow,
)
from loop.report.data import evaluation_data


def matrix_data(matrix: Matrix) -> dict[str, Any]:
    """Return `matrix` as JSON data; a number that has no meaning is null."""
    return {
        "prompt": matrix.prompt,
        "prompt_digest": matrix.prompt_digest,
        "cohort": asdict(matrix.cohort),
        "protocol": matrix.protocol.model_dump(mode="json"),
        "protocol_digest": matrix.protocol_digest,
        "cases": matrix.cases,
        "finding_nothing": {
            "mean_accuracy": matrix.floor.accuracy,
            "at_threshold": matrix.floor.at_threshold,
        },
        "notes": list(matrix.notes),
        "engines": [_column(matrix, column) for column in matrix.columns],
        "labels": [_row(matrix, row) for row in matrix.rows],
    }


def _column(matrix: Matrix, column: EngineColumn) -> dict[str, Any]:
    head = {
        "key": column.key,
        "engine": column.engine,
        "failure": column.failure or None,
        "run": None,
    }
    if column.evaluation is None:
        return head
    whole = evaluation_data(column.evaluation)
    kept = ("outcomes", "macro_f1", "macro_f1_supported", "uncertain_read_as")
    return {
        **head,
        **whole["run"],
        "engine": column.engine,
        "signature": whole["signature"],
        "cases_left_out": column.left_out,
        "uncertain_answers": matrix.uncertain(column),
        "at_threshold": matrix.at_threshold(column),
        "at_threshold_on_too_little_evidence": matrix.thin(column),
        "gates": {
            verdict.value: number for verdict, number in matrix.verdicts(column).items()
        },
        "standings": {
            standing.value: matrix.count(column, standing) for standing in EngineRank
        },
        "mean_accuracy": column.evaluation.views[0].accuracy,
        **{name: whole[name] for name in kept},
    }


def _row(matrix: Matrix, row: MatrixRow) -> dict[str, Any]:
    return {
        "label": row.label,
        "name": row.name,
        "positives": row.positives,
        "usable": row.usable,
        "finding_nothing": row.floor,
        "cells": [
            None if cell is None else {"engine": column.engine, **_cell(column, cell)}
            for column, cell in zip(matrix.columns, row.cells, strict=True)
        ],
    }


def _cell(column: EngineColumn, cell: MatrixCell) -> dict[str, Any]:
    result, counts = cell.result, cell.result.confusion
    return {
        "key": column.key,
        "n": counts.n,
        "positives": counts.positives,
        "correct": counts.correct,
        "accuracy": counts.accuracy,
        "accuracy_interval": list(result.accuracy) if counts.n else None,
        "f1": counts.f1,
        "verdict": result.gate.verdict.value,
        "enough_evidence": cell.enough,
        "standing": cell.standing.value,
        "rests_on_uncertain": cell.rests_on_uncertain,
        "against_best": None if cell.paired is None else cell.paired._asdict(),
        "excluded": asdict(result.excluded),
    }
