"""What a draft changed: every answer fixed, broken or still wrong, and each label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from loop.core.records import ValueCode
from loop.evaluate.compare import (
    PairedAnswers,
    Regression,
    ShareDifference,
    measure_field_losses,
    sort_answers,
)
from loop.evaluate.distances import DistanceTable, Mask
from loop.evaluate.protocol import Protocol


class ShareCriterion(StrEnum):
    """What a share is judged by."""

    MARGIN = "margin"
    """The lower limit of the change must lie above the margin."""

    COUNTS = "counts"
    """Too few cases for the margin: no more may be lost than gained."""

    NOTHING = "nothing"
    """No case: not judged, and said so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareCheck:
    """Whether one share of right answers got worse."""

    difference: ShareDifference
    """Right answers lost and gained."""

    bound: float | None
    """One-sided lower limit of the change; None without cases."""

    margin: float
    basis: ShareCriterion

    @property
    def passed(self) -> bool:
        """Whether it did not get worse; true also if there was nothing to judge."""
        if self.basis is ShareCriterion.MARGIN:
            return self.bound is not None and self.bound > -self.margin
        return self.difference.lost <= self.difference.gained


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelCheck:
    """Whether one label got worse."""

    label: str
    accuracy: ShareCheck
    """Over the cases that the reference decides and the engine answered twice."""

    sensitivity: ShareCheck
    """Over those of them whose reference is present."""

    @property
    def passed(self) -> bool:
        """Whether neither share got worse."""
        return self.accuracy.passed and self.sensitivity.passed

    def shares(self) -> Iterator[tuple[str, ShareCheck]]:
        """Yield each share with its name."""
        yield "accuracy", self.accuracy
        yield "sensitivity", self.sensitivity


def check_labels(table: DistanceTable, protocol: Protocol) -> tuple[LabelCheck, ...]:
    """Return the check of every label, or of every field of a judge.

    A pair that the engine failed on before or after is left out: it says nothing of
    the wording. Any other answer that is not the reference is wrong.
    """
    losses = measure_field_losses(table, table.judged, protocol)
    return tuple(
        LabelCheck(
            label=label,
            accuracy=check_share(measured.accuracy),
            sensitivity=check_share(measured.sensitivity),
        )
        for label, measured in zip(table.fields, losses, strict=True)
    )


def check_share(measured: Regression) -> ShareCheck:
    """Check a share by its margin, or by counts where no limit could ever pass.

    Examples
    --------
    >>> from loop.evaluate.compare import measure_regression
    >>> few = ShareDifference(lost=0, gained=0, n=30)
    >>> check_share(measure_regression(few, 0.05)).basis.value
    'counts'
    """
    basis = ShareCriterion.MARGIN if measured.reachable else ShareCriterion.COUNTS
    return ShareCheck(
        difference=measured.difference,
        bound=measured.bound,
        margin=measured.margin,
        basis=basis if measured.difference.n else ShareCriterion.NOTHING,
    )


WORDS = {
    ValueCode.PRESENT: "present",
    ValueCode.ABSENT: "absent",
    ValueCode.UNCERTAIN: "uncertain",
    ValueCode.UNPARSED: "unparsed",
    ValueCode.FAILED: "engine failed",
    ValueCode.NOT_ASKED: "not asked",
}
"""Each answer as people read it."""


class CaseChange(NamedTuple):
    """One case and label before and after; never its text."""

    case_id: str
    label: str
    expected: str
    """``present`` or ``absent``, by the reference; empty where it decides neither."""

    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Every answer that is, or was, not the reference, in the order of the cohort."""

    fixed: tuple[CaseChange, ...] = ()
    """Wrong before, right after."""

    broken: tuple[CaseChange, ...] = ()
    """Right before, wrong after."""

    unchanged: tuple[CaseChange, ...] = ()
    """Wrong before and after; the answer may be another wrong one."""

    unjudged: tuple[CaseChange, ...] = ()
    """Answered otherwise where the reference decides nothing."""

    kept: int = 0
    """Answers that were right and are."""

    unanswered: int = 0
    """Pairs the engine failed on before or after: nothing can be said of them."""


def list_changes(answers: PairedAnswers) -> Changes:
    """Return what became of every answer.

    Uncertain and unreadable answers are not right, as in the check itself.
    """
    found = sort_answers(answers, answers.judged)
    moved = answers.before != answers.after
    open_ones = answers.answered & (answers.reference < 0)
    return Changes(
        fixed=tuple(_rows(answers, found.fixed)),
        broken=tuple(_rows(answers, found.broken)),
        unchanged=tuple(_rows(answers, found.still_wrong)),
        unjudged=tuple(_rows(answers, open_ones & moved)),
        kept=int(found.still_right.sum()),
        unanswered=int((~answers.answered).sum()),
    )


def _rows(answers: PairedAnswers, where: Mask) -> Iterator[CaseChange]:
    for row, column in np.argwhere(where):
        code = int(answers.reference[row, column])
        yield CaseChange(
            case_id=answers.case_ids[row],
            label=answers.labels[column],
            expected=WORDS[ValueCode(code)] if code >= 0 else "",
            before=WORDS[ValueCode(int(answers.before[row, column]))],
            after=WORDS[ValueCode(int(answers.after[row, column]))],
        )
