"""Small matrices: runs whose accuracies are given, label by label."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from loop.core.digests import digest_text
from loop.core.records import Status
from loop.evaluate.align import AlignedPairs
from loop.evaluate.inputs import Inputs
from loop.evaluate.matrix.matrix import MatrixEntry, build_matrix
from loop.evaluate.matrix.records import Matrix
from tests.evaluate.scenes import TAXONOMY, inputs, reference

POSITIVES = 30
"""Positives of every label: enough for the protocol."""


def run_of(
    correct: Mapping[str, int] | Sequence[int],
    cases: int = 300,
    *,
    engine: str = "rules",
    run: str = "",
    positives: int = POSITIVES,
) -> Inputs:
    """Return a run with so many right answers per label; the last cases are wrong."""
    wanted = list(correct.values()) if isinstance(correct, Mapping) else list(correct)
    wanted += [cases] * (len(TAXONOMY.ids) - len(wanted))
    ids = tuple(f"case-{number:04d}" for number in range(cases))
    truth = np.zeros((cases, len(TAXONOMY.ids)), dtype=np.int8)
    truth[:positives] = 1
    predicted = truth.copy()
    for column, right in enumerate(wanted):
        predicted[right:, column] ^= 1
    empty = inputs(
        [], reference({}), run=run or f"run-{digest_text(engine)[:6]}", cases=cases
    )
    pairs = AlignedPairs(
        case_ids=ids,
        labels=tuple(TAXONOMY.ids),
        reference=truth,
        predicted=predicted,
        statuses={**dict.fromkeys(Status, 0), Status.ANSWERED: cases},
        not_run=0,
    )
    return replace(
        empty,
        pairs=pairs,
        patients=("",) * cases,
        run=replace(empty.run, engine=engine),
    )


def answering(run: Inputs, label: str, answers: Mapping[int, int]) -> Inputs:
    """Return `run` with other codes for some cases of one label."""
    predicted = run.pairs.predicted.copy()
    for row, code in answers.items():
        predicted[row, TAXONOMY.ids.index(label)] = code
    return replace(run, pairs=replace(run.pairs, predicted=predicted))


def matrix_of(*runs: Inputs, failed: Mapping[str, str] | None = None) -> Matrix:
    """Return the matrix of `runs`, and of engines that failed with a reason."""
    entries = [MatrixEntry(run.run.engine, run) for run in runs]
    entries += [
        MatrixEntry(engine, None, why) for engine, why in (failed or {}).items()
    ]
    return build_matrix(entries, resamples=20)
