"""A draft against its parent on the same cases: is it better, and did anything break.

An answer is right when it equals the reference, and of two wrong ones the nearer is
better (`loop.evaluate.distances`). Uncertain and unreadable answers are not right here,
so a draft cannot hide an error by hedging. Where the engine failed, there is no answer
of the prompt's, and nothing is concluded from it.

An engine that repeats itself is asked once; one with chance in it several times, see
`loop.review.revise.draws`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import isnan
from typing import NamedTuple

import numpy as np

from loop.core.records import Value, ValueCode
from loop.evaluate.align import AlignedPairs
from loop.evaluate.compare import PairedAnswers, pair_answers
from loop.evaluate.distances import value_distance
from loop.evaluate.protocol import Protocol
from loop.review.revise.changes import WORDS, LabelCheck, ShareCriterion, check_labels
from loop.review.revise.draws import (
    DrawEvidence,
    DrawnAnswers,
    Pair,
    TargetDraws,
    count_targets,
    take_majority,
    weigh_draws,
)
from loop.review.submit import Anchor
from loop.review.verdict import Verdict


class TargetOutcome(StrEnum):
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

    UNANSWERED = "unanswered"
    """The engine failed on it before or after: nothing can be said."""

    GONE = "gone"
    """The case is not in the cohort any more."""


_OPEN = {
    TargetOutcome.WORSE: "targeted cases got worse",
    TargetOutcome.UNCHANGED: "targeted cases did not change",
    TargetOutcome.UNDECIDED: (
        "nothing says what is right in targeted cases (give correct_value)"
    ),
    TargetOutcome.UNANSWERED: "the engine failed on targeted cases (run it again)",
}
"""What stands against a commit, as an objection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckTarget:
    """One case and label that a verdict wants put right."""

    case_id: str
    label: str
    expected: str
    """``present``, ``absent`` or ``uncertain``, or a judge's counts in words; empty
    when undecided."""

    before: str
    after: str
    progress: TargetOutcome


class Unanswered(NamedTuple):
    """Shares of cases without a readable answer."""

    before: float
    after: float
    most: float
    """What the protocol allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A draft measured against its parent."""

    cases: int
    targets: tuple[CheckTarget, ...]
    broken_anchors: tuple[Anchor, ...]
    unanswered_anchors: tuple[Anchor, ...]
    """Pinned cases that the engine failed on: whether they held is not known."""

    missing_anchors: tuple[Anchor, ...]
    """Pinned cases that are not in the cohort any more."""

    labels: tuple[LabelCheck, ...]
    unanswered: Unanswered

    gain_required: bool = True
    """Whether an answer must have changed to a right one, where no case is targeted.

    False for another output contract: it is made for its cost, and need only not lose.
    """

    over_draws: DrawEvidence | None = None
    """What several draws of both versions showed, for an engine with chance in it; None
    for one that repeats itself. Targets and anchors are then judged by the answer of
    most draws, and `labels` is empty."""

    every_target: bool = False
    """Over several draws: whether the protocol wants every targeted case right."""

    @property
    def passed(self) -> bool:
        """Whether the draft may be committed."""
        return not self.reasons

    @property
    def undecided(self) -> bool:
        """Whether more draws may decide it: only the surplus is not shown yet."""
        surplus = self.over_draws.surplus if self.over_draws else None
        if surplus is None or surplus.shown or surplus.value <= 0:
            return False
        return len(self.reasons) == 1

    def judged_by(self, basis: ShareCriterion) -> dict[str, list[str]]:
        """Return the labels that were judged by `basis`, for each share."""
        found: dict[str, list[str]] = {"accuracy": [], "sensitivity": []}
        for label in self.labels:
            for name, share in label.shares():
                if share.basis is basis:
                    found[name].append(label.label)
        return found

    def count(self, progress: TargetOutcome) -> int:
        """Return how many targets ended as `progress`."""
        return sum(target.progress is progress for target in self.targets)

    @property
    def lost(self) -> int:
        """Right answers lost, over all labels."""
        return sum(label.accuracy.difference.lost for label in self.labels)

    @property
    def gained(self) -> int:
        """Right answers gained, over all labels."""
        return sum(label.accuracy.difference.gained for label in self.labels)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the draft may not be committed; empty when it may."""
        found = (
            *(
                (self._no_gain(), *map(self._open, _OPEN))
                if self.over_draws is None
                else self._drawn_targets(self.over_draws)
            ),
            *self._anchors(),
            self._worse_labels(),
            self._too_few_answers(),
        )
        return tuple(reason for reason in found if reason)

    def _drawn_targets(self, evidence: DrawEvidence) -> Iterator[str]:
        if self.targets and evidence.surplus is None:
            yield "no targeted case could be judged in any draw"
        yield _describe_shortfall(evidence)
        for progress in (TargetOutcome.UNDECIDED, TargetOutcome.UNANSWERED):
            yield self._open(progress)
        if self.every_target:
            yield self._open(TargetOutcome.UNCHANGED)
            yield self._open(TargetOutcome.WORSE)

    def _no_gain(self) -> str:
        if self.count(TargetOutcome.FIXED) + self.count(TargetOutcome.IMPROVED):
            return ""
        if self.targets and self.count(TargetOutcome.ALREADY_RIGHT) < len(self.targets):
            return "no targeted case was fixed or improved"
        if not (self.targets or self.gain_required):
            return ""
        return "" if self.gained else "no answer changed to a right one"

    def _open(self, progress: TargetOutcome) -> str:
        names = [_name(one) for one in self.targets if one.progress is progress]
        return _listing(_OPEN[progress], names)

    def _anchors(self) -> tuple[str, str]:
        return (
            _listing("anchored cases broke", map(_name, self.broken_anchors)),
            _listing(
                "the engine failed on anchored cases (run it again)",
                map(_name, self.unanswered_anchors),
            ),
        )

    def _worse_labels(self) -> str:
        if self.over_draws is not None:
            return _listing("evidence of harm", self.over_draws.describe_harm())
        worse = [
            f"{label.label} (lost {share.difference.lost}, gained "
            f"{share.difference.gained} of {share.difference.n}, {name})"
            for label in self.labels
            for name, share in label.shares()
            if not share.passed
        ]
        return _listing("labels that may be worse than before", worse)

    def _too_few_answers(self) -> str:
        before, after, most = self.unanswered
        if max(before, after) <= most:
            return ""
        return (
            f"{before:.1%} of the cases have no readable answer from the parent and "
            f"{after:.1%} from the draft (at most {most:.1%})"
        )


def _describe_shortfall(evidence: DrawEvidence) -> str:
    """Say why the targeted cases do not stand for the draft; nothing if they do."""
    surplus = evidence.surplus
    if surplus is None or surplus.shown:
        return ""
    low, high = surplus.interval
    found = (
        "the draft is not shown to put targeted cases right: right in "
        f"{surplus.after} of {surplus.readings} readings, the parent asked again in "
        f"{surplus.before} (surplus {100 * surplus.value:+.0f} %, {100 * low:+.0f} to "
        f"{100 * high:+.0f} %)"
    )
    if surplus.least is None:
        return f"{found}; the parent leaves no room for one that could be shown"
    return (
        f"{found}; so many readings can show {100 * surplus.least:+.0f} % or more, and "
        "more draws (--draws) less"
    )


def _name(pair: CheckTarget | Anchor) -> str:
    return f"{pair.case_id} {pair.label}"


def _listing(what: str, found: Iterable[str]) -> str:
    names = list(found)
    if not names:
        return ""
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"{what}: {', '.join(names[:10])}{more}"


def check_draft(
    before: AlignedPairs,
    after: AlignedPairs,
    verdicts: Sequence[Verdict],
    anchors: Sequence[Anchor],
    *,
    protocol: Protocol,
) -> Check:
    """Return how the draft did against its parent.

    Both runs must hold the same cases in the same order, scored against the same
    reference.

    Raises
    ------
    ValueError
        They do not.
    """
    if before.case_ids != after.case_ids or before.labels != after.labels:
        raise ValueError("the two runs do not hold the same cases and labels")
    if not np.array_equal(before.reference, after.reference):
        raise ValueError("the two runs are not scored against the same reference")
    answers = pair_answers(before, after)
    table = _AnswerTable(answers)
    fates = [(one, table.anchor_outcome(one)) for one in anchors]
    return Check(
        cases=len(before.case_ids),
        targets=tuple(_targets(table, verdicts)),
        broken_anchors=anchors_with(fates, TargetOutcome.WORSE),
        unanswered_anchors=anchors_with(fates, TargetOutcome.UNANSWERED),
        missing_anchors=anchors_with(fates, TargetOutcome.GONE),
        labels=check_labels(answers.distances, protocol),
        unanswered=Unanswered(
            _unanswered(before), _unanswered(after), protocol.max_unanswered
        ),
    )


def anchors_with(
    fates: Sequence[tuple[Anchor, TargetOutcome]], wanted: TargetOutcome
) -> tuple[Anchor, ...]:
    """Return the pinned cases that ended so."""
    return tuple(anchor for anchor, fate in fates if fate is wanted)


def _unanswered(pairs: AlignedPairs) -> float:
    """Return the share of cases with an answer that is missing or unreadable."""
    if not pairs.case_ids:
        return 0.0
    without = np.isin(pairs.predicted, (ValueCode.UNPARSED, ValueCode.FAILED))
    return float(without.any(axis=1).mean())


class JudgedPairs(NamedTuple):
    """Some pairs, judged as a check judges them."""

    targets: tuple[CheckTarget, ...]
    anchors: tuple[CheckTarget, ...]
    counts: tuple[TargetDraws, ...]
    """How often each is right over the draws; those that nothing decides left out."""


def check_pairs(
    measured: DrawnAnswers, verdicts: Sequence[Verdict], anchors: Sequence[Anchor]
) -> JudgedPairs:
    """Return what becomes of targeted and pinned pairs, by the answer of most draws.

    Raises
    ------
    ValueError
        The runs do not hold the same cases and labels.
    """
    table = _AnswerTable(pair_answers(*map(take_majority, measured)))
    wanted = _wanted(verdicts)
    pinned = {(one.case_id, one.label): one.value for one in anchors}
    expected = {
        pair: right
        for pair, value in (pinned | wanted).items()
        if table.holds(*pair) and (right := table.expected(*pair, value)) is not None
    }
    return JudgedPairs(
        tuple(_target(table, *pair, value) for pair, value in wanted.items()),
        tuple(_target(table, *pair, value) for pair, value in pinned.items()),
        tuple(count_targets(measured, expected)),
    )


class _AnswerTable:
    """Answers and reference of both runs, looked up by case and label."""

    def __init__(self, answers: PairedAnswers) -> None:
        self._answers = answers
        self._rows = {case: row for row, case in enumerate(answers.case_ids)}
        self._columns = {label: c for c, label in enumerate(answers.labels)}

    def answers(self, case_id: str, label: str) -> tuple[ValueCode, ValueCode]:
        """Return the answers before and after."""
        at = self._rows[case_id], self._columns[label]
        before, after = self._answers.before[at], self._answers.after[at]
        return ValueCode(int(before)), ValueCode(int(after))

    def expected(
        self, case_id: str, label: str, value: Value | None
    ) -> ValueCode | None:
        """Return what is right: the clinician's value, else the reference."""
        if value is not None:
            return ValueCode[value.name]
        at = self._rows[case_id], self._columns[label]
        code = int(self._answers.reference[at])
        return ValueCode(code) if code >= 0 else None

    def holds(self, case_id: str, label: str) -> bool:
        """Whether both runs hold this case and label."""
        return case_id in self._rows and label in self._columns

    def anchor_outcome(self, anchor: Anchor) -> TargetOutcome:
        """Return `WORSE` for an anchored case that was right and is not any more."""
        case_id, label = anchor.case_id, anchor.label
        if not self.holds(case_id, label):
            return TargetOutcome.GONE
        expected = self.expected(case_id, label, anchor.value)
        before, after = self.answers(case_id, label)
        return hold_anchor(
            value_distance(expected, before),
            value_distance(expected, after),
            answered=ValueCode.FAILED not in (before, after),
        )


def _targets(table: _AnswerTable, verdicts: Sequence[Verdict]) -> list[CheckTarget]:
    return [_target(table, *pair, value) for pair, value in _wanted(verdicts).items()]


def _wanted(verdicts: Sequence[Verdict]) -> dict[Pair, Value | None]:
    """Return the targeted cases with what the verdicts call right in them."""
    wanted: dict[Pair, Value | None] = {}
    for verdict in verdicts:
        for pair in verdict.targets:
            wanted[pair] = verdict.correct_value or wanted.get(pair)
    return wanted


def _target(
    table: _AnswerTable, case_id: str, label: str, value: Value | None
) -> CheckTarget:
    if not table.holds(case_id, label):
        return CheckTarget(
            case_id=case_id,
            label=label,
            expected=value.value if value else "",
            before="",
            after="",
            progress=TargetOutcome.GONE,
        )
    expected = table.expected(case_id, label, value)
    before, after = table.answers(case_id, label)
    return CheckTarget(
        case_id=case_id,
        label=label,
        expected="" if expected is None else WORDS[expected],
        before=WORDS[before],
        after=WORDS[after],
        progress=find_progress(expected, before, after),
    )


def find_progress(
    expected: ValueCode | None, before: ValueCode, after: ValueCode
) -> TargetOutcome:
    """Return whether `after` is nearer to `expected` than `before` was.

    Examples
    --------
    >>> code = ValueCode
    >>> find_progress(code.PRESENT, code.ABSENT, code.UNCERTAIN).value
    'improved'
    """
    return compare_distances(
        value_distance(expected, before),
        value_distance(expected, after),
        answered=ValueCode.FAILED not in (before, after),
    )


def compare_distances(
    before: float, after: float, *, answered: bool = True
) -> TargetOutcome:
    """Return what became of a targeted case, by how far its answers are from right.

    Parameters
    ----------
    before, after
        Cells of a `DistanceTable`: 0 is right, NaN undecided.
    answered
        Whether the engine failed neither time.

    Examples
    --------
    >>> compare_distances(3, 1).value, compare_distances(1, 0).value
    ('improved', 'fixed')
    """
    if not answered:
        return TargetOutcome.UNANSWERED
    if isnan(before) or isnan(after):
        return TargetOutcome.UNDECIDED
    if after == 0:
        return TargetOutcome.FIXED if before else TargetOutcome.ALREADY_RIGHT
    if after < before:
        return TargetOutcome.IMPROVED
    return TargetOutcome.UNCHANGED if after == before else TargetOutcome.WORSE


def hold_anchor(before: float, after: float, *, answered: bool = True) -> TargetOutcome:
    """Return what became of a pinned case: `WORSE` where it was right and is not now.

    A right answer holds it even where the engine failed before.

    Parameters
    ----------
    before, after, answered
        As for `compare_distances`.

    Examples
    --------
    >>> hold_anchor(0, 1).value, hold_anchor(2, 3).value
    ('worse', 'unchanged')
    """
    if not answered and after != 0:
        return TargetOutcome.UNANSWERED
    broke = before == 0 and after > 0
    return TargetOutcome.WORSE if broke else TargetOutcome.UNCHANGED


def check_draws(
    measured: DrawnAnswers,
    verdicts: Sequence[Verdict],
    anchors: Sequence[Anchor],
    protocol: Protocol,
    look: int = 1,
) -> Check:
    """Return how the draft did against its parent over several draws of both.

    Parameters
    ----------
    look
        As for `loop.review.revise.draws.weigh_draws`.

    Raises
    ------
    ValueError
        The runs do not hold the same cases, labels and reference.
    """
    parent, draft = map(take_majority, measured)
    check = check_draft(parent, draft, verdicts, anchors, protocol=protocol)
    table = _AnswerTable(pair_answers(parent, draft))
    expected = {
        pair: right
        for pair, value in _wanted(verdicts).items()
        if table.holds(*pair) and (right := table.expected(*pair, value)) is not None
    }
    before, after = (sum(map(_unanswered, draws)) / len(draws) for draws in measured)
    return replace(
        check,
        labels=(),
        unanswered=Unanswered(before, after, protocol.max_unanswered),
        over_draws=weigh_draws(measured, expected, protocol, look),
    )
