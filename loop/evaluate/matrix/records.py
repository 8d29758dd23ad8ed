"""Many engines, one prompt version, the same cases: the records of a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from loop.evaluate.gates import GateVerdict, count_verdicts
from loop.evaluate.protocol import Protocol
from loop.evaluate.results import CohortFacts, Evaluation, LabelResult


class EngineRank(StrEnum):
    """Where an engine stands among the others on one label."""

    BEST = "best"
    """Highest observed accuracy; engines that tie all have it. Not a test."""

    LEVEL = "level"
    """Lower, but not shown to be worse than the best."""

    WORSE = "worse"
    """Shown to be worse than the best: exact McNemar, Holm within the label."""

    UNRANKED = "unranked"
    """Too little evidence, or no other engine to be ranked against."""


class Paired(NamedTuple):
    """An engine against the best one, on the cases that both decide."""

    lost: int
    """Cases the best has right and this one wrong; over draws, more often right."""

    gained: int
    """Cases the best has wrong and this one right."""

    p: float
    """Exact McNemar, or over draws the exact sign-flip test, two-sided; against the
    nearest of several best."""

    p_holm: float
    """Holm-adjusted over the engines ranked on this label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCell:
    """One label of one engine."""

    result: LabelResult
    enough: bool
    """Whether there is the protocol's minimum evidence; without it nothing ranks."""

    standing: EngineRank = EngineRank.UNRANKED
    paired: Paired | None = None
    """None for the best and for what is not ranked."""

    rests_on_uncertain: bool = False
    """Best only while uncertain answers are left out: not if they counted as wrong."""

    def reaches(self, threshold: float) -> bool:
        """Whether the observed accuracy is at or above `threshold`.

        Never where the reference cannot judge the label.
        """
        share = self.result.confusion.accuracy
        return self.result.comparable and share is not None and share >= threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """One label over all engines."""

    label: str
    name: str
    """Name as published."""

    positives: int
    """Cases whose reference is present."""

    usable: int
    """Cases whose reference is present or absent."""

    floor: float | None
    """Accuracy of an engine that finds nothing in any case; None without cases."""

    cells: tuple[MatrixCell | None, ...]
    """One per column; None where the engine has no run."""

    @property
    def comparable(self) -> bool:
        """Whether the reference can judge the label."""
        return all(cell is None or cell.result.comparable for cell in self.cells)

    @property
    def ranked(self) -> bool:
        """Whether engines were ranked on this label."""
        return any(
            cell is not None and cell.standing is EngineRank.BEST for cell in self.cells
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineColumn:
    """One engine."""

    key: str
    """Letter that stands for the engine where room is scarce."""

    engine: str
    evaluation: Evaluation | None = None
    """None when the engine failed as a whole."""

    failure: str = ""
    """Why there is no run, on one line."""

    left_out: int = 0
    """Cases of the run that another run does not hold."""


class Floor(NamedTuple):
    """What an engine that finds nothing in any case would reach."""

    accuracy: float | None
    """Mean over the labels that the reference can judge."""

    at_threshold: int
    """Those of them at or above the accuracy threshold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """One prompt version over several engines, all on the same cases."""

    prompt: str
    prompt_digest: str
    cohort: CohortFacts
    protocol: Protocol
    protocol_digest: str
    cases: int
    """Cases that every run holds."""

    columns: tuple[EngineColumn, ...]
    rows: tuple[MatrixRow, ...]
    floor: Floor
    notes: tuple[str, ...] = ()
    """Caveats a reader of the numbers must know, as sentences."""

    @property
    def failed(self) -> tuple[EngineColumn, ...]:
        """Engines without a run."""
        return tuple(column for column in self.columns if column.evaluation is None)

    @property
    def comparable(self) -> tuple[MatrixRow, ...]:
        """Labels that the reference can judge."""
        return tuple(row for row in self.rows if row.comparable)

    @property
    def unranked(self) -> int:
        """Labels on which no engine was ranked."""
        return sum(not row.ranked for row in self.rows)

    def cells(self, column: EngineColumn) -> tuple[MatrixCell, ...]:
        """Return the cells of one engine, without those it does not have."""
        place = self.columns.index(column)
        return tuple(cell for row in self.rows if (cell := row.cells[place]))

    def count(self, column: EngineColumn, standing: EngineRank) -> int:
        """Return on how many labels an engine stands so."""
        return sum(cell.standing == standing for cell in self.cells(column))

    def at_threshold(self, column: EngineColumn) -> int:
        """Return how many labels reach the protocol's accuracy, as observed."""
        return sum(cell.reaches(self.protocol.accuracy) for cell in self.cells(column))

    def thin(self, column: EngineColumn) -> int:
        """Return how many labels at the threshold lack the minimum evidence."""
        return sum(
            cell.reaches(self.protocol.accuracy) and not cell.enough
            for cell in self.cells(column)
        )

    def verdicts(self, column: EngineColumn) -> dict[GateVerdict, int]:
        """Return how many labels have each verdict of the protocol."""
        found = [cell.result.gate.verdict for cell in self.cells(column)]
        return count_verdicts(found)

    def uncertain(self, column: EngineColumn) -> int:
        """Return how many answers are uncertain where the reference decides."""
        return sum(cell.result.hedges.total for cell in self.cells(column))
