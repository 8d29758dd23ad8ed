"""Step 3 of the page Revise: what a check found, and how far a running one is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from loop.evaluate.compare import judge_regression
from loop.evaluate.protocol import protocol_digest, read_protocol
from loop.review.revise.changes import (
    CaseChange,
    LabelCheck,
    ShareCheck,
    ShareCriterion,
)
from loop.review.revise.check import Check, CheckTarget, TargetOutcome
from loop.review.revise.check_record import Recalled
from loop.review.revise.draws import POWER
from loop.stats.intervals import Interval
from loop.ui.jobs import JobProgress
from loop.ui.pages.revise.state import ReviseState
from loop.ui.show import notice, show

CASES_SHOWN = 60
"""Cases of one kind and label that are listed; the others are counted."""

FATES = (
    (TargetOutcome.FIXED, "fixed"),
    (TargetOutcome.IMPROVED, "improved"),
    (TargetOutcome.ALREADY_RIGHT, "already right"),
    (TargetOutcome.UNCHANGED, "unchanged"),
    (TargetOutcome.WORSE, "worse"),
    (TargetOutcome.UNDECIDED, "undecided"),
    (TargetOutcome.UNANSWERED, "unanswered"),
    (TargetOutcome.GONE, "not in the cohort"),
)
"""What may become of a targeted case, good first."""

GOOD = frozenset(
    {TargetOutcome.FIXED, TargetOutcome.IMPROVED, TargetOutcome.ALREADY_RIGHT}
)


class Share(NamedTuple):
    """One share of right answers before and after."""

    check: ShareCheck
    interval: Interval | None
    """Two-sided, of the difference."""

    basis: str
    """What it was judged by, in words."""


class NonInferiorityRow(NamedTuple):
    """One label in the table of non-inferiority."""

    label: str
    name: str
    accuracy: Share
    sensitivity: Share
    passed: bool

    @property
    def moved(self) -> bool:
        """Whether any answer became right or wrong."""
        return any(self.accuracy.check.difference[:2])


class Cases(NamedTuple):
    """The cases of one label that changed alike."""

    label: str
    name: str
    rows: tuple[CaseChange, ...]


class TargetGroup(NamedTuple):
    """The targeted cases that ended alike."""

    word: str
    good: bool
    targets: tuple[CheckTarget, ...]


_BASIS = {
    ShareCriterion.MARGIN: "",
    ShareCriterion.COUNTS: "by counts",
    ShareCriterion.NOTHING: "no case",
}


def show_checked(scene: ReviseState) -> str:
    """Return the last check of the open draft as HTML."""
    recalled = scene.recalled
    if scene.info is None or scene.drafted is None:
        return ""
    if recalled is None:
        return notice(
            "The check runs the parent and the draft on the same cases and compares "
            "them label by label. Nothing can be committed without it.",
            title="Not checked yet",
        )
    desk = scene.desk
    key = (
        "revise check",
        scene.info.ref,
        *(recalled.checked.time, recalled.checked.ground.draft_digest, recalled.stale),
        protocol_digest(desk.workspace),
    )
    return str(desk.memo.get(key, lambda: _render(scene, recalled)))


def _render(scene: ReviseState, recalled: Recalled) -> str:
    checked = recalled.checked
    check = checked.check
    confidence = read_protocol(scene.desk.workspace).confidence
    changes = checked.changes
    return show(
        "revise_checked.html.jinja",
        checked=checked,
        stale=recalled.stale,
        check=check,
        evidence=check.over_draws if check else None,
        power=POWER,
        confidence=confidence,
        names=scene.names,
        rows=[_row(scene, one, confidence) for one in check.labels] if check else (),
        fates=_fates(check) if check else (),
        changes=changes,
        kinds=(
            ("Fixed", "wrong before, right now", _by_label(scene, changes.fixed)),
            ("Broken", "right before, wrong now", _by_label(scene, changes.broken)),
            ("Still wrong", "before and after", _by_label(scene, changes.unchanged)),
            (
                "Changed where the reference decides nothing",
                "neither right nor wrong",
                _by_label(scene, changes.unjudged),
            ),
        ),
        most=CASES_SHOWN,
    )


def _row(scene: ReviseState, one: LabelCheck, confidence: float) -> NonInferiorityRow:
    return NonInferiorityRow(
        one.label,
        scene.names.get(one.label, one.label),
        _share(one.accuracy, confidence),
        _share(one.sensitivity, confidence),
        one.passed,
    )


def _share(check: ShareCheck, confidence: float) -> Share:
    judged = judge_regression(check.difference, check.margin, confidence)
    return Share(check, judged.interval, _BASIS[check.basis])


def _fates(check: Check) -> Sequence[TargetGroup]:
    found = (
        TargetGroup(
            word, fate in GOOD, tuple(t for t in check.targets if t.progress is fate)
        )
        for fate, word in FATES
    )
    return [one for one in found if one.targets]


def _by_label(scene: ReviseState, rows: Iterable[CaseChange]) -> tuple[Cases, ...]:
    found: dict[str, list[CaseChange]] = {}
    for one in rows:
        found.setdefault(one.label, []).append(one)
    ordered = sorted(found.items(), key=lambda item: -len(item[1]))
    return tuple(
        Cases(label, scene.names.get(label, label), tuple(rows))
        for label, rows in ordered
    )


def show_progress(progress: JobProgress, title: str) -> str:
    """Return how far long work is, as HTML."""
    return show("revise_progress.html.jinja", progress=progress, title=title)


def show_failed(progress: JobProgress, title: str) -> str:
    """Return why long work came to nothing, as HTML."""
    return notice(progress.error, kind="error", title=f"{title} ({progress.by})")
