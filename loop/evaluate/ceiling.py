"""The human ceiling: model and readers against the same panels on the same cases.

For every reader the panel is the strict majority of the other readers. The model is
held against that panel on the cases where the reader voted, the panel has a majority
and the model answered, so that both numbers count the same comparisons. An uncertain
answer counts as the protocol says, and so does an uncertain vote of the reader: whoever
hedges is judged alike. In a panel it is no vote for either side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.core.records import UncertainAnswers, ValueCode
from loop.evaluate.align import AlignedPairs, Codes, count_uncertain
from loop.evaluate.inputs import Inputs, read_inputs
from loop.evaluate.measure import resampling_units
from loop.labels.ballots import Votes, read_cohort_votes
from loop.labels.cohort import read_cohort
from loop.labels.reader_agreement import POOLED
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.stats.confusion import EXCLUDED, divide, kappas, pair_indicators
from loop.stats.intervals import Estimate
from loop.stats.resampling import bootstrap, to_estimate

_SIDES = ("reader", "model", "difference")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderModelMeasure:
    """One measure of the mean reader and of the model, over the same comparisons."""

    reader: Estimate
    """Mean over readers, with a bootstrap interval."""

    model: Estimate
    """Mean of the model over the same panels."""

    difference: Estimate
    """Model minus mean reader; both are resampled together."""

    @property
    def above(self) -> bool:
        """Whether the whole interval of the difference lies above 0."""
        return self.difference.low is not None and self.difference.low > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CeilingRow:
    """The ceiling for one label, or for all together."""

    label: str
    """Label id, or `POOLED`."""

    name: str
    comparisons: int
    """Case, label and reader compared: at most cases times readers a label."""

    ties: int
    """The reader's vote counts, and the others have no majority; left out."""

    unanswered: int
    """Reader and panel count, and the model has no answer that does."""

    accuracy: ReaderModelMeasure
    kappa: ReaderModelMeasure

    @property
    def above(self) -> bool:
        """Whether the model is above the mean reader by more than chance explains."""
        return self.accuracy.above or self.kappa.above


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """A model beside the readers of one cohort."""

    readers: tuple[str, ...]
    cases: int
    """Cases of the run that belong to the cohort of the votes."""

    policy: UncertainAnswers
    """What uncertain answers and votes count as, where the panel decides."""

    unit: str
    """What is resampled: ``"case"`` or ``"patient"``."""

    units: int
    resamples: int
    seed: int
    pooled: CeilingRow
    """All labels together, cases resampled as wholes."""

    labels: tuple[CeilingRow, ...]
    run: str = ""
    """Id of the run that answered; empty for answers of no run."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of these numbers must know, as sentences."""
        above = [row.name for row in (self.pooled, *self.labels) if row.above]
        found = []
        if above:
            found.append(
                f"Above the mean reader: {', '.join(above)}. That is a warning sign, "
                "not a success: look for a leak of the reference into the prompt, or "
                "readers who had seen the model's answers."
            )
        if len(self.readers) == 2:
            found.append(
                "With two readers the panel is one person: this is their agreement, "
                "not a consensus."
            )
        return tuple(found)


def read_ceiling(
    workspace: WorkspacePaths, cohort: str, run: str = "latest"
) -> Ceiling:
    """Return a run on `cohort` beside its readers, with 1,000 bootstrap resamples.

    Raises
    ------
    DataError
        There is no such run or it is on another cohort, or the cohort has votes of
        fewer than two readers.
    SealedError
        The cohort is a holdout.
    """
    inputs = read_inputs(workspace, run)
    if inputs.cohort.name != cohort:
        raise DataError(
            f"run {inputs.run.run_id} is on cohort {inputs.cohort.name!r}, not on "
            f"{cohort!r}. Name a run on {cohort!r}."
        )
    taxonomy = read_taxonomy(workspace.labels)
    votes = read_cohort_votes(workspace, read_cohort(workspace, cohort), taxonomy)
    return measure_run_ceiling(inputs, votes)


def measure_run_ceiling(inputs: Inputs, votes: Votes) -> Ceiling:
    """Return a run beside the readers of its cohort, as its protocol has it."""
    found = measure_ceiling(
        inputs.pairs,
        votes,
        inputs.taxonomy,
        policy=inputs.protocol.policy,
        patients=inputs.patients,
    )
    return replace(found, run=inputs.run.run_id)


def measure_ceiling(
    pairs: AlignedPairs,
    votes: Votes,
    taxonomy: Taxonomy,
    *,
    policy: UncertainAnswers,
    patients: Sequence[str] = (),
    resamples: int = 1000,
    seed: int = 0,
) -> Ceiling:
    """Return the mean reader and the model against the others' majority.

    Ties are left out and counted.

    Parameters
    ----------
    pairs
        The answers of the model; its reference is not looked at.
    votes
        The readers' votes on the same cohort.
    policy
        What an uncertain answer, and an uncertain vote of the reader who is held
        against the others, counts as; that of the protocol.
    patients
        Pseudonym of each case's patient, in the order of `pairs`; empty: unknown.
        Cases of one patient are resampled together.
    resamples
        Bootstrap resamples of the 95 % intervals.

    Raises
    ------
    DataError
        There is one reader only, or no case in common.

    References
    ----------
    Case bootstrap: Efron B, Tibshirani RJ. An Introduction to the Bootstrap. 1993,
    chapter 13.
    """
    _require_readers(votes)
    rows = _shared_cases(pairs, votes)
    clusters = resampling_units([*patients] or [""] * len(pairs.case_ids))
    table = _compare(pairs, votes, rows, policy)
    units = clusters.units[rows[:, 0]]
    names = (*votes.labels, POOLED)
    estimates = _estimate(table.cells, units, resamples, seed)
    measured = [
        CeilingRow(
            label=label,
            name="All labels" if label == POOLED else taxonomy.find(label).name,
            comparisons=int(table.cells[:, at, :, 0].sum(dtype=np.int64)),
            ties=int(table.ties[at]),
            unanswered=int(table.unanswered[at]),
            accuracy=ReaderModelMeasure(
                **dict(zip(_SIDES, estimates[at][:3], strict=True))
            ),
            kappa=ReaderModelMeasure(
                **dict(zip(_SIDES, estimates[at][3:], strict=True))
            ),
        )
        for at, label in enumerate(names)
    ]
    return Ceiling(
        readers=votes.readers,
        cases=len(rows),
        policy=policy,
        unit=clusters.unit,
        units=len(np.unique(units)),
        resamples=resamples,
        seed=seed,
        pooled=measured[-1],
        labels=tuple(measured[:-1]),
    )


class _ComparisonTable(NamedTuple):
    """Comparisons of each case; the last label is all labels together."""

    cells: NDArray[np.int16]
    """TP, FP, FN, TN against the panel: ``(cases, labels + 1, readers, 2, 4)``, with
    the reader before the model."""

    ties: NDArray[np.int64]
    unanswered: NDArray[np.int64]


def _require_readers(votes: Votes) -> None:
    if len(votes.readers) < 2:
        raise DataError(
            "there are votes of one reader only. The ceiling needs two: add the votes "
            "of another with `ranloop cohort votes COHORT FILE`."
        )


def _shared_cases(pairs: AlignedPairs, votes: Votes) -> NDArray[np.intp]:
    """Return rows of `pairs` and of `votes` that are the same case, ``(n, 2)``."""
    where = {case_id: row for row, case_id in enumerate(votes.case_ids)}
    shared = [(row, where[c]) for row, c in enumerate(pairs.case_ids) if c in where]
    if not shared:
        raise DataError(
            "the run holds none of the cases that were voted on. Name a run on the "
            "cohort of the votes."
        )
    return np.array(shared, dtype=np.intp)


def _compare(
    pairs: AlignedPairs,
    votes: Votes,
    rows: NDArray[np.intp],
    policy: UncertainAnswers,
) -> _ComparisonTable:
    values = votes.values[rows[:, 1]]
    decided = np.isin(values, (ValueCode.PRESENT, ValueCode.ABSENT))
    panels = _panel_majorities(np.where(decided, values, EXCLUDED).astype(np.int8))
    columns = [pairs.labels.index(label) for label in votes.labels]
    said = pairs.predicted[rows[:, 0]][:, columns, None]
    ratings, answers = (
        count_uncertain(side, panels, policy) for side in (values, said)
    )
    counted = ratings != EXCLUDED
    settled = counted & (panels != EXCLUDED)
    used = settled & (answers != EXCLUDED)
    sides = [
        _cells(panels, np.where(used, side, EXCLUDED).astype(np.int8))
        for side in (ratings, answers)
    ]
    cells = np.stack(sides, axis=3)
    return _ComparisonTable(
        np.concatenate([cells, cells.sum(axis=1, keepdims=True)], axis=1),
        _with_total((counted & (panels == EXCLUDED)).sum(axis=(0, 2))),
        _with_total((settled & ~used).sum(axis=(0, 2))),
    )


def _panel_majorities(ratings: Codes) -> Codes:
    """Return for each reader what over half of the others say, -1 without majority."""
    least = (ratings.shape[2] - 1) // 2 + 1
    said = [(ratings == code).astype(np.int16) for code in (1, 0)]
    present, absent = (votes.sum(axis=2, keepdims=True) - votes for votes in said)
    panels = np.where(present >= least, 1, np.where(absent >= least, 0, EXCLUDED))
    return panels.astype(np.int8)


def _cells(panels: Codes, side: Codes) -> NDArray[np.int16]:
    """Return the cell of every comparison, ``(cases, labels, readers, 4)``."""
    flat = panels.reshape(len(panels), -1), side.reshape(len(side), -1)
    return pair_indicators(*flat).reshape(*panels.shape, 4).astype(np.int16)


def _with_total(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.append(counts, counts.sum())


def _estimate(
    cells: NDArray[np.int16], units: NDArray[np.int64], resamples: int, seed: int
) -> list[list[Estimate]]:
    """Return six estimates per label: accuracy and kappa of `_SIDES`."""
    shape = cells.shape[1:]
    whole = _measures(cells.sum(axis=0, dtype=np.float64)[None])
    defined: list[NDArray[np.bool_]] = [
        np.logical_not(np.isnan(measure).any(axis=-1, keepdims=True))
        for measure in whole
    ]

    def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        found = []
        for measure, known in zip(
            _measures(sums.reshape(-1, *shape)), defined, strict=True
        ):
            kept = np.where(known, measure, 0.0).sum(axis=2)
            reader, model = np.moveaxis(divide(kept, known.sum(axis=2)), -1, 0)
            found += [reader, model, model - reader]
        return np.stack(found, axis=-1).reshape(len(sums), -1)

    results = iter(
        bootstrap(
            cells.reshape(len(cells), -1),
            statistic,
            units=units,
            resamples=resamples,
            seed=seed,
        )
    )
    return [
        [
            to_estimate(next(results), _note(known[0, label]))
            for known in defined
            for _ in _SIDES
        ]
        for label in range(shape[0])
    ]


def _measures(
    sums: NDArray[Any],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return accuracy and kappa, each ``(n, labels + 1, readers, 2)``."""
    accuracy = divide(sums[..., 0] + sums[..., 3], sums.sum(axis=-1))
    return accuracy, kappas(sums)


def _note(known: NDArray[np.bool_]) -> str:
    """Say how many readers the mean leaves out because a table has no value."""
    left_out = int((~known).sum())
    if left_out == known.size:
        return "not estimable: no reader's comparisons allow it"
    return f"{left_out} of {known.size} readers not estimable" if left_out else ""
