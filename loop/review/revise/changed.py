"""Which answers a draft changed: fixed, broken and still wrong, case by case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.records import ValueCode
from loop.review.revise.shares import PairedAnswers, answered

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


def list_changes(measured: PairedAnswers) -> Changes:
    """Return what became of every answer.

    Uncertain and unreadable answers are not right, as in the check itself.
    """
    before, after = measured
    truth = before.binary_reference
    there = answered(measured)
    judged = there & (truth >= 0)
    was, now = before.predicted == truth, after.predicted == truth
    moved = before.predicted != after.predicted
    return Changes(
        fixed=tuple(_rows(measured, judged & ~was & now)),
        broken=tuple(_rows(measured, judged & was & ~now)),
        unchanged=tuple(_rows(measured, judged & ~was & ~now)),
        unjudged=tuple(_rows(measured, there & (truth < 0) & moved)),
        kept=int((judged & was & now).sum()),
        unanswered=int((~there).sum()),
    )


def _rows(measured: PairedAnswers, where: NDArray[np.bool_]) -> Iterator[CaseChange]:
    before, after = measured
    truth = before.binary_reference
    for row, column in np.argwhere(where):
        code = int(truth[row, column])
        yield CaseChange(
            case_id=before.case_ids[row],
            label=before.labels[column],
            expected=WORDS[ValueCode(code)] if code >= 0 else "",
            before=WORDS[ValueCode(int(before.predicted[row, column]))],
            after=WORDS[ValueCode(int(after.predicted[row, column]))],
        )
