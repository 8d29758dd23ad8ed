"""A draft against its parent on the same cases: is it better, and did anything break.

An answer is right when it equals the reference. Uncertain and missing answers are
not right here, so a draft cannot hide an error by hedging.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.records import Value
from loop.evaluate.gates import Verdict as GateVerdict
from loop.evaluate.pairs import Answer, Pairs
from loop.evaluate.regression import Difference, judge_regression
from loop.review.record import Anchor
from loop.review.verdict import Verdict
from loop.stats.paired import tango_interval

_CODES = {
    Value.PRESENT: Answer.PRESENT,
    Value.ABSENT: Answer.ABSENT,
    Value.UNCERTAIN: Answer.UNCERTAIN,
}
_WORDS = {
    Answer.PRESENT: "present",
    Answer.ABSENT: "absent",
    Answer.UNCERTAIN: "uncertain",
    Answer.UNPARSED: "unparsed",
    Answer.FAILED: "engine failed",
    Answer.NOT_ASKED: "not asked",
}
# Steps from right: uncertain lies between present and absent, no answer beyond both.
_RANK = {Answer.ABSENT: 0, Answer.UNCERTAIN: 1, Answer.PRESENT: 2}
_NO_ANSWER = 3


class Progress(StrEnum):
    """What became of one targeted case."""

    FIXED = "fixed"
    IMPROVED = "improved"
    """Nearer to right, for example from absent to uncertain."""

    UNCHANGED = "unchanged"
    WORSE = "worse"
    ALREADY_RIGHT = "already_right"
    """Right before and after: the verdict was met earlier."""

    UNDECIDED = "undecided"
    """Neither the reference nor the verdict says what is right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One case and label that a verdict wants put right."""

    case_id: str
    label: str
    expected: str
    """``present``, ``absent`` or ``uncertain``; empty when undecided."""

    before: str
    after: str
    progress: Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelCheck:
    """Whether one label got worse."""

    label: str
    difference: Difference
    """Right answers lost and gained over the cases the reference decides."""

    bound: float | None
    """One-sided lower limit of the change; None without cases."""

    margin: float
    reachable: bool
    """Whether the limit could pass with this many cases if nothing changed.

    If not, the label passes as long as it loses no more than it gains.
    """

    passed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A draft measured against its parent."""

    cases: int
    targets: tuple[Target, ...]
    broken_anchors: tuple[Anchor, ...]
    labels: tuple[LabelCheck, ...]

    @property
    def passed(self) -> bool:
        """Whether the draft may be committed."""
        return not self.reasons

    def count(self, progress: Progress) -> int:
        """Return how many targets ended as `progress`."""
        return sum(target.progress is progress for target in self.targets)

    @property
    def lost(self) -> int:
        """Right answers lost, over all labels."""
        return sum(label.difference.lost for label in self.labels)

    @property
    def gained(self) -> int:
        """Right answers gained, over all labels."""
        return sum(label.difference.gained for label in self.labels)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the draft may not be committed; empty when it may."""
        return tuple(
            reason
            for reason in (
                self._no_gain(),
                self._worse_targets(),
                self._broken_anchors(),
                self._worse_labels(),
            )
            if reason
        )

    def _no_gain(self) -> str:
        if self.count(Progress.FIXED) + self.count(Progress.IMPROVED):
            return ""
        if self.targets and self.count(Progress.ALREADY_RIGHT) < len(self.targets):
            return "no targeted case was fixed or improved"
        return "" if self.gained else "no answer changed to a right one"

    def _worse_targets(self) -> str:
        worse = [t for t in self.targets if t.progress is Progress.WORSE]
        return _listing("targeted cases got worse", [_name(t) for t in worse])

    def _broken_anchors(self) -> str:
        names = [_name(anchor) for anchor in self.broken_anchors]
        return _listing("anchored cases broke", names)

    def _worse_labels(self) -> str:
        worse = [
            f"{one.label} (lost {one.difference.lost}, gained {one.difference.gained})"
            for one in self.labels
            if not one.passed
        ]
        return _listing("labels that may be worse than before", worse)


def _name(pair: Target | Anchor) -> str:
    return f"{pair.case_id} {pair.label}"


def _listing(what: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"{what}: {', '.join(names[:10])}{more}"


class Rule(NamedTuple):
    """What the protocol says of a new version against its parent."""

    margin: float
    """Accuracy a label may lose at most."""

    confidence: float


class Measured(NamedTuple):
    """Both versions on the same cases in the same order."""

    before: Pairs
    after: Pairs


def check_draft(
    measured: Measured,
    verdicts: Sequence[Verdict],
    anchors: Sequence[Anchor],
    rule: Rule,
) -> Check:
    """Return how the draft did against its parent.

    Both runs must hold the same cases in the same order, scored against the same
    reference.

    Raises
    ------
    ValueError
        They do not.
    """
    before, after = measured
    if before.case_ids != after.case_ids or before.labels != after.labels:
        raise ValueError("the two runs do not hold the same cases and labels")
    table = _Table(measured)
    return Check(
        cases=len(before.case_ids),
        targets=tuple(_targets(table, verdicts)),
        broken_anchors=tuple(one for one in anchors if table.breaks(one)),
        labels=tuple(
            _check_label(measured, column, rule) for column in range(len(before.labels))
        ),
    )


class _Table:
    """Answers and reference of both runs, looked up by case and label."""

    def __init__(self, measured: Measured) -> None:
        self._before, self._after = measured
        self._rows = {case: row for row, case in enumerate(self._before.case_ids)}
        self._columns = {label: c for c, label in enumerate(self._before.labels)}
        self._truth: NDArray[np.int8] = self._before.binary_reference

    def answers(self, case_id: str, label: str) -> tuple[Answer, Answer]:
        """Return the answers before and after."""
        at = self._rows[case_id], self._columns[label]
        before, after = self._before.predicted[at], self._after.predicted[at]
        return Answer(int(before)), Answer(int(after))

    def expected(self, case_id: str, label: str, value: Value | None) -> Answer | None:
        """Return what is right: the clinician's value, else the reference."""
        if value is not None:
            return _CODES[value]
        code = int(self._truth[self._rows[case_id], self._columns[label]])
        return Answer(code) if code >= 0 else None

    def breaks(self, anchor: Anchor) -> bool:
        """Whether an anchored case was right before and is not any more."""
        case_id, label, value = anchor
        if case_id not in self._rows or label not in self._columns:
            return False
        expected = self.expected(case_id, label, value)
        before, after = self.answers(case_id, label)
        return before == expected and after != expected


def _targets(table: _Table, verdicts: Sequence[Verdict]) -> list[Target]:
    wanted: dict[tuple[str, str], Value | None] = {}
    for verdict in verdicts:
        for pair in verdict.targets:
            wanted[pair] = verdict.correct_value or wanted.get(pair)
    return [_target(table, *pair, value) for pair, value in wanted.items()]


def _target(table: _Table, case_id: str, label: str, value: Value | None) -> Target:
    expected = table.expected(case_id, label, value)
    before, after = table.answers(case_id, label)
    return Target(
        case_id=case_id,
        label=label,
        expected="" if expected is None else _WORDS[expected],
        before=_WORDS[before],
        after=_WORDS[after],
        progress=judge_progress(expected, before, after),
    )


def judge_progress(expected: Answer | None, before: Answer, after: Answer) -> Progress:
    """Return whether `after` is nearer to `expected` than `before` was.

    Examples
    --------
    >>> judge_progress(Answer.PRESENT, Answer.ABSENT, Answer.UNCERTAIN).value
    'improved'
    """
    if expected is None:
        return Progress.UNDECIDED
    far, near = _distance(expected, before), _distance(expected, after)
    if near == 0:
        return Progress.FIXED if far else Progress.ALREADY_RIGHT
    if near < far:
        return Progress.IMPROVED
    return Progress.UNCHANGED if near == far else Progress.WORSE


def _distance(expected: Answer, answer: Answer) -> int:
    if answer not in _RANK:
        return _NO_ANSWER
    return abs(_RANK[expected] - _RANK[answer])


def _check_label(measured: Measured, column: int, rule: Rule) -> LabelCheck:
    """Judge one label by its non-inferiority margin, or by counts if too few cases."""
    truth = measured.before.binary_reference[:, column]
    usable = truth >= 0
    was = usable & (measured.before.predicted[:, column] == truth)
    now = usable & (measured.after.predicted[:, column] == truth)
    difference = Difference(
        lost=int((was & ~now).sum()),
        gained=int((now & ~was).sum()),
        n=int(usable.sum()),
    )
    judged = judge_regression(difference, rule.margin, rule.confidence)
    still = tango_interval(0, 0, difference.n, confidence=2 * rule.confidence - 1)
    reachable = difference.n > 0 and still.low > -rule.margin
    return LabelCheck(
        label=measured.before.labels[column],
        difference=difference,
        bound=judged.bound,
        margin=rule.margin,
        reachable=reachable,
        passed=(
            judged.verdict is GateVerdict.PASS
            if reachable
            else difference.lost <= difference.gained
        ),
    )


def summarise(check: Check) -> dict[str, object]:
    """Return the counts of a check for the ledger: no case ids, no text."""
    return {
        "cases": check.cases,
        "targets": {p.value: check.count(p) for p in Progress if check.count(p)},
        "anchors_broken": len(check.broken_anchors),
        "lost": check.lost,
        "gained": check.gained,
        "labels_worse": [one.label for one in check.labels if not one.passed],
    }
