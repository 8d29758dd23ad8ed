"""What a draft changed: every answer fixed, broken or still wrong, and each label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.records import ValueCode
from loop.evaluate.align import AlignedPairs
from loop.evaluate.compare import ShareDifference, judge_regression
from loop.evaluate.protocol import Protocol


class NonInferiorityRule(NamedTuple):
    """What the protocol says of a new version against its parent."""

    accuracy: float
    """Accuracy a label may lose at most."""

    sensitivity: float
    """Sensitivity a label may lose at most."""

    confidence: float
    max_unanswered: float
    """Largest share of cases without a readable answer, in either run."""

    alpha: float = 0.05
    """Family-wise level of the tests for harm, over several draws."""

    @classmethod
    def of(cls, protocol: Protocol) -> NonInferiorityRule:
        """Return the rule of a protocol."""
        return cls(
            accuracy=protocol.margins.accuracy,
            sensitivity=protocol.margins.sensitivity,
            confidence=protocol.confidence,
            max_unanswered=protocol.max_unanswered,
            alpha=protocol.alpha,
        )


class PairedAnswers(NamedTuple):
    """Both versions on the same cases in the same order."""

    before: AlignedPairs
    after: AlignedPairs


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


def check_labels(
    measured: PairedAnswers, rule: NonInferiorityRule
) -> tuple[LabelCheck, ...]:
    """Return the check of every label.

    A pair that the engine failed on before or after is left out: it says nothing of
    the wording. Any other answer that is not the reference is wrong.
    """
    before, after = measured
    truth = before.binary_reference
    usable = (truth >= 0) & answered(measured)
    was = usable & (before.predicted == truth)
    now = usable & (after.predicted == truth)
    return tuple(
        LabelCheck(
            label=label,
            accuracy=judge_share(
                _difference(usable[:, column], was[:, column], now[:, column]),
                rule.accuracy,
                rule.confidence,
            ),
            sensitivity=judge_share(
                _difference(
                    usable[:, column] & (truth[:, column] == 1),
                    was[:, column],
                    now[:, column],
                ),
                rule.sensitivity,
                rule.confidence,
            ),
        )
        for column, label in enumerate(before.labels)
    )


def answered(measured: PairedAnswers) -> NDArray[np.bool_]:
    """Where the engine did not fail in either run, shape (cases, labels)."""
    before, after = measured
    failed = (before.predicted == ValueCode.FAILED) | (
        after.predicted == ValueCode.FAILED
    )
    return np.asarray(~failed)


def _difference(
    cases: NDArray[np.bool_], was: NDArray[np.bool_], now: NDArray[np.bool_]
) -> ShareDifference:
    return ShareDifference(
        lost=int((cases & was & ~now).sum()),
        gained=int((cases & now & ~was).sum()),
        n=int(cases.sum()),
    )


def judge_share(
    difference: ShareDifference, margin: float, confidence: float
) -> ShareCheck:
    """Judge a share by its margin, or by counts where no limit could ever pass.

    Examples
    --------
    >>> judge_share(ShareDifference(lost=0, gained=0, n=30), 0.05, 0.95).basis.value
    'counts'

    References
    ----------
    Tango T. Stat Med 1998;17:891-908.
    """
    judged = judge_regression(difference, margin, confidence)
    basis = ShareCriterion.MARGIN if judged.reachable else ShareCriterion.COUNTS
    return ShareCheck(
        difference=difference,
        bound=judged.bound,
        margin=margin,
        basis=basis if difference.n else ShareCriterion.NOTHING,
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
