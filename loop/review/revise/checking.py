"""A draft run against its parent on the same cases: the second step of a revision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from loop.core.clock import Clock, format_time, utc_now
from loop.core.errors import ConflictError, DataError
from loop.core.ledger import Actor, read_ledger
from loop.core.paths import Workspace
from loop.evaluate.inputs import Inputs, read_inputs
from loop.labels.cohort import CohortRole
from loop.prompts.lint import LintLevel
from loop.prompts.version import PromptVersion
from loop.review.revise.begin import require_dev
from loop.review.revise.changed import Changes, list_changes
from loop.review.revise.check import Check, check_draft
from loop.review.revise.checked import Checked, asking_data, keep_check
from loop.review.revise.copies import check_copies, new_wording
from loop.review.revise.draft import lint_draft
from loop.review.revise.draft_files import read_about
from loop.review.revise.inputs import (
    DraftLineage,
    read_ground,
    read_line,
    require_current,
)
from loop.review.revise.ready import object_to_unseen, require_measurable
from loop.review.revise.shares import NonInferiorityRule, PairedAnswers
from loop.review.submit import load_verdicts, read_anchors
from loop.review.verdict import Verdict
from loop.run.asking import EngineOptions, HeldEngine, hold_engine
from loop.run.store import Store
from loop.run.task import Watch, run_prompt


class CheckSide(StrEnum):
    """Which of the two runs of a check is under way."""

    PARENT = "parent"
    DRAFT = "draft"


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """How a draft is to be checked."""

    engine: str = "rules"
    asking: EngineOptions = field(default_factory=EngineOptions)
    """How the engine is asked, both for the parent and for the draft."""

    watch: Callable[[CheckSide], Watch] | None = None
    """Gives what wraps the items of each run, to show progress; None for none."""

    cohort: str = ""
    """Dev cohort; the one the draft was begun for when empty."""


class Subject(NamedTuple):
    """What is examined."""

    parent: PromptVersion
    draft: PromptVersion
    cohort: str
    verdicts: Sequence[Verdict]
    """Whose cases are to be put right."""

    skipped: Sequence[tuple[str, CohortRole]]
    """Cohorts that could not be looked at for copies."""


class Ask(NamedTuple):
    """Who examines, when, and with which engine."""

    engine: HeldEngine
    how: Examination
    actor: Actor
    now: Clock

    def run(
        self,
        workspace: Workspace,
        prompt: str,
        cohort: str,
        side: CheckSide | None = None,
    ) -> str:
        """Run `prompt` and return the run's id; only a side of a check is watched."""
        watch = self.how.watch(side) if self.how.watch and side else None
        summary = run_prompt(workspace, prompt, cohort, engine=self.engine, watch=watch)
        return summary.run_id


def check_draft_ref(
    workspace: Workspace,
    store: Store,
    ref: str,
    actor: Actor,
    how: Examination | None = None,
    *,
    now: Clock = utc_now,
) -> Checked:
    """Return the check of the draft `ref` against its parent, kept beside it.

    Killed and started again, it asks only for what is missing. The ledger is not
    touched: what becomes of the draft is decided later.

    Raises
    ------
    DataError
        There is no such draft, it says what its parent says, nothing names its
        cohort, or it cannot be measured.
    OverlapError
        Wording is copied from a case of a cohort that is not for development.
    ConflictError
        Another version was committed since the draft was made, or the draft was
        edited while it was checked.
    EngineError
        The engine does not exist or failed; what it answered is kept.
    """
    how = how or Examination()
    read_ledger(workspace.ledger)
    line = read_line(workspace, ref)
    require_current(line)
    _require_changed(line)
    draft = line.draft
    cohort = require_dev(workspace, how.cohort or read_about(workspace, draft).cohort)
    _, skipped = check_copies(workspace, new_wording(line.parent, draft), cohort)
    require_measurable(workspace, cohort, line.parent, how.engine)
    verdicts = load_verdicts(store, cohort.name, draft.verdicts)
    subject = Subject(line.parent, draft, cohort.name, verdicts, skipped)
    with hold_engine(workspace, how.engine, how.asking) as engine:
        return examine(workspace, store, subject, Ask(engine, how, actor, now))


def _require_changed(line: DraftLineage) -> None:
    if line.draft.digest == line.parent.digest:
        raise DataError(
            f"{line.draft.ref} says what {line.parent.ref} says: there is nothing to "
            "check. Edit a guide of it first."
        )


def examine(workspace: Workspace, store: Store, subject: Subject, ask: Ask) -> Checked:
    """Lint a draft and, if it can be run, measure it; keep what came of it.

    Raises
    ------
    LoopError
        As `check_draft_ref` does.
    """
    parent, draft, cohort, _, skipped = subject
    checked = Checked(
        draft=draft.ref,
        parent=parent.ref,
        ground=read_ground(workspace, store, draft, cohort),
        engine=ask.how.engine,
        asking=asking_data(ask.how.asking),
        lint=lint_draft(workspace, parent, draft),
        check=None,
        changes=Changes(),
        runs=(),
        objections=("lint found errors",),
        skipped=tuple(name for name, _ in skipped),
        by=ask.actor.name,
        time="",
    )
    if not any(found.level is LintLevel.ERROR for found in checked.lint):
        checked = _measure(workspace, store, subject, ask, checked)
    time = format_time(ask.now())
    checked = replace(checked, time=time)
    keep_check(workspace, draft, checked)
    return checked


def _measure(
    workspace: Workspace,
    store: Store,
    subject: Subject,
    ask: Ask,
    checked: Checked,
) -> Checked:
    """Return `checked` with both runs and what they showed."""
    parent, draft, cohort, verdicts, skipped = subject
    runs = (
        ask.run(workspace, parent.ref, cohort, CheckSide.PARENT),
        ask.run(workspace, draft.ref, cohort, CheckSide.DRAFT),
    )
    before, after = _read_both(workspace, runs)
    _require_same(draft, after)
    check = measure_draft(store, before, after, verdicts)
    if draft.contract != parent.contract:
        check = replace(check, gain_required=False)
    ground = replace(
        checked.ground,
        reference=before.cohort.reference,
        reference_digest=before.cohort.reference_digest,
        protocol_digest=before.protocol_digest,
    )
    return replace(
        checked,
        ground=ground,
        check=check,
        changes=list_changes(PairedAnswers(before.pairs, after.pairs)),
        runs=runs,
        objections=(*check.reasons, *object_to_unseen(skipped)),
    )


def _read_both(workspace: Workspace, runs: Sequence[str]) -> tuple[Inputs, Inputs]:
    """Return both runs beside the same reference, the newest one."""
    before = read_inputs(workspace, runs[0])
    return before, read_inputs(workspace, runs[1], reference=before.cohort.reference)


def _require_same(draft: PromptVersion, after: Inputs) -> None:
    if after.run.prompt_digest != draft.digest:
        raise ConflictError(
            f"{draft.ref} was edited while it was checked, so the check says nothing "
            "of it. Check it again."
        )


def measure_draft(
    store: Store, before: Inputs, after: Inputs, verdicts: Sequence[Verdict]
) -> Check:
    """Return the check of two runs, parent's first, against the same reference.

    Raises
    ------
    ValueError
        They do not hold the same cases.
    StoreError
        The pinned cases cannot be read.
    """
    protocol = before.protocol
    rule = NonInferiorityRule(
        accuracy=protocol.margins.accuracy,
        sensitivity=protocol.margins.sensitivity,
        confidence=protocol.confidence,
        max_unanswered=protocol.max_unanswered,
    )
    anchors = read_anchors(store, before.cohort.name)
    return check_draft(
        PairedAnswers(before.pairs, after.pairs), verdicts, anchors, rule
    )
