"""From runs of one prompt version to a matrix: the same cases, measured and ranked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from string import ascii_uppercase
from typing import NamedTuple

import numpy as np

from loop.core.errors import DataError, EngineError
from loop.core.records import Status, Value
from loop.evaluate.evaluation import evaluate_inputs
from loop.evaluate.inputs import Inputs
from loop.evaluate.matrix.notes import matrix_notes
from loop.evaluate.matrix.rank import rank_label
from loop.evaluate.matrix.records import EngineColumn, Floor, Matrix, MatrixRow
from loop.evaluate.pairs import Answer, Codes
from loop.labels.taxonomy import Taxonomy


class MatrixEntry(NamedTuple):
    """One engine on its way into a matrix."""

    engine: str
    inputs: Inputs | None
    """Its run as read; None when the engine failed as a whole."""

    failure: str = ""
    """Why there is no run."""


def build_matrix(
    entries: Sequence[MatrixEntry],
    *,
    registered: str = "",
    resamples: int = 2000,
    seed: int = 0,
) -> Matrix:
    """Return the label x engine table of `entries`, in their order.

    All columns are measured on the same cases: those that every run holds. What is
    left out of a run is counted and said.

    Parameters
    ----------
    registered
        When the ledger first saw the protocol, UTC; empty when it has not.

    Raises
    ------
    DataError
        The runs are of different prompt versions, cohorts or references, a run is
        named twice, or the runs share no case.
    EngineError
        No engine has a run.
    """
    runs = [entry.inputs for entry in entries if entry.inputs is not None]
    if not runs:
        raise EngineError(
            "no engine has a run: "
            + "; ".join(f"{entry.engine}: {entry.failure}" for entry in entries)
        )
    check_alike(runs)
    shared = {run.run.run_id: run for run in _on_shared_cases(runs)}
    columns = tuple(
        _column(number, entry, shared, registered, resamples, seed)
        for number, entry in enumerate(entries)
    )
    first = next(iter(shared.values()))
    rows = _rows(columns, shared, first)
    return Matrix(
        prompt=first.run.prompt,
        prompt_digest=first.run.prompt_digest,
        cohort=first.cohort,
        protocol=first.protocol,
        protocol_digest=first.protocol_digest,
        cases=len(first.pairs.case_ids),
        columns=columns,
        rows=rows,
        floor=_floor(rows, first.protocol.accuracy),
        notes=tuple(matrix_notes(columns, rows, len(first.pairs.case_ids))),
    )


def check_alike(runs: Sequence[Inputs]) -> None:
    """Refuse runs that do not belong into one matrix.

    Raises
    ------
    DataError
        Another prompt version, cohort or reference, or the same run twice.
    """
    first = runs[0]
    for run in runs[1:]:
        for what, ours, theirs in (
            ("prompt version", _prompt(first), _prompt(run)),
            ("cohort", first.cohort.digest, run.cohort.digest),
            ("reference", first.cohort.reference_digest, run.cohort.reference_digest),
        ):
            if ours != theirs:
                raise DataError(
                    f"runs {first.run.run_id} and {run.run.run_id} are not of the same "
                    f"{what} ({ours[:12]} and {theirs[:12]}). A matrix holds one "
                    "prompt version on one cohort; see `ranloop compare` for two "
                    "versions."
                )
    ids = [run.run.run_id for run in runs]
    twice = next((one for one in ids if ids.count(one) > 1), None)
    if twice is not None:
        raise DataError(f"run {twice} is named twice. Name each run once.")


def _prompt(run: Inputs) -> str:
    return run.run.prompt_digest


def _on_shared_cases(runs: Sequence[Inputs]) -> list[Inputs]:
    """Return `runs` with the cases that all of them hold, in one order."""
    common = set.intersection(*(set(run.pairs.case_ids) for run in runs))
    order = [case for case in runs[0].pairs.case_ids if case in common]
    if not order:
        ids = ", ".join(run.run.run_id for run in runs)
        raise DataError(
            f"runs {ids} have no case in common. Run each engine on the same cases."
        )
    return [_restrict(run, order) for run in runs]


def _restrict(run: Inputs, case_ids: Sequence[str]) -> Inputs:
    """Return `run` with only `case_ids`, in that order."""
    pairs = run.pairs
    if pairs.case_ids == tuple(case_ids):
        return run
    where = {case: row for row, case in enumerate(pairs.case_ids)}
    rows = np.array([where[case] for case in case_ids], dtype=np.int64)
    predicted = pairs.predicted[rows]
    kept = replace(
        pairs,
        case_ids=tuple(case_ids),
        reference=pairs.reference[rows],
        predicted=predicted,
        statuses=_statuses(predicted),
        not_run=pairs.not_run + len(pairs.case_ids) - len(case_ids),
    )
    patients = tuple(run.patients[row] for row in rows)
    return replace(run, pairs=kept, patients=patients)


def _statuses(predicted: Codes) -> dict[Status, int]:
    """Count how cases ended: an answer that is missing says why."""
    failed = (predicted == Answer.FAILED).any(axis=1)
    unparsed = (predicted == Answer.UNPARSED).any(axis=1) & ~failed
    return {
        Status.ANSWERED: int((~failed & ~unparsed).sum()),
        Status.UNPARSED: int(unparsed.sum()),
        Status.ENGINE_FAILED: int(failed.sum()),
    }


def _column(
    number: int,
    entry: MatrixEntry,
    shared: Mapping[str, Inputs],
    registered: str,
    resamples: int,
    seed: int,
) -> EngineColumn:
    key = _key(number)
    if entry.inputs is None:
        return EngineColumn(
            key=key, engine=entry.engine, failure=" ".join(entry.failure.split())
        )
    run = shared[entry.inputs.run.run_id]
    evaluation = evaluate_inputs(run, resamples=resamples, seed=seed)
    return EngineColumn(
        key=key,
        engine=entry.engine,
        evaluation=replace(evaluation, registered=registered),
        left_out=len(entry.inputs.pairs.case_ids) - len(run.pairs.case_ids),
    )


def _key(number: int) -> str:
    """Return A to Z, then A2 to Z2, and so on."""
    turn, letter = divmod(number, len(ascii_uppercase))
    return ascii_uppercase[letter] + (str(turn + 1) if turn else "")


def _rows(
    columns: Sequence[EngineColumn], shared: Mapping[str, Inputs], first: Inputs
) -> tuple[MatrixRow, ...]:
    """Return every label, in published order, with its engines ranked."""
    finding_nothing = _answers_without_finding(first.taxonomy)
    truth = first.pairs.binary_reference
    rows = []
    for place, label in enumerate(first.pairs.labels):
        results = [
            None if column.evaluation is None else column.evaluation.labels[place]
            for column in columns
        ]
        answers = [
            None
            if column.evaluation is None
            else shared[column.evaluation.run.run_id].pairs.predicted[:, place]
            for column in columns
        ]
        marks = truth[:, place]
        usable = int((marks >= 0).sum())
        right = int((marks == finding_nothing[label]).sum())
        rows.append(
            MatrixRow(
                label=label,
                name=first.taxonomy.find(label).name,
                positives=int((marks == 1).sum()),
                usable=usable,
                floor=right / usable if usable else None,
                cells=rank_label(results, marks, answers, first.protocol),
            )
        )
    return tuple(rows)


def _answers_without_finding(taxonomy: Taxonomy) -> dict[str, int]:
    """Return the code per label of an engine that finds nothing in any case."""
    absent = dict.fromkeys(taxonomy.extracted, Value.ABSENT)
    derived = taxonomy.derive_no_finding(absent)
    codes = dict.fromkeys(taxonomy.ids, int(derived is Value.PRESENT))
    return codes | dict.fromkeys(absent, 0)


def _floor(rows: Sequence[MatrixRow], threshold: float) -> Floor:
    floors = [row.floor for row in rows if row.floor is not None]
    mean = sum(floors) / len(floors) if floors else None
    return Floor(mean, sum(share >= threshold for share in floors))
