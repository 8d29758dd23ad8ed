"""A draft run against its parent on the same cases: the second step of a revision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from enum import StrEnum

from loop.core.clock import Clock, format_time, utc_now
from loop.core.errors import ConflictError, DataError
from loop.core.ledger import Actor, read_ledger
from loop.core.paths import Workspace
from loop.evaluate.inputs import Inputs, read_inputs
from loop.prompts.lint import has_errors
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


def check_draft_ref(
    workspace: Workspace,
    store: Store,
    ref: str,
    actor: Actor,
    how: Examination | None = None,
    *,
    engine: HeldEngine | None = None,
    now: Clock = utc_now,
) -> Checked:
    """Return the check of the draft `ref` against its parent, kept beside it.

    Killed and started again, it asks only for what is missing. The ledger is not
    touched: what becomes of the draft is decided later.

    Parameters
    ----------
    engine
        The engine that `how` names, already open and left open; None opens one.

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
    draft, parent = line.draft, line.parent
    cohort = require_dev(workspace, how.cohort or read_about(workspace, draft).cohort)
    _, skipped = check_copies(workspace, new_wording(parent, draft), cohort)
    require_measurable(workspace, cohort, parent, how.engine)
    verdicts = load_verdicts(store, cohort.name, draft.verdicts)
    checked = Checked(
        draft=draft.ref,
        parent=parent.ref,
        ground=read_ground(workspace, store, draft, cohort.name),
        engine=how.engine,
        asking=asking_data(how.asking),
        lint=lint_draft(workspace, parent, draft),
        check=None,
        changes=Changes(),
        runs=(),
        objections=("lint found errors",),
        skipped=tuple(name for name, _ in skipped),
        by=actor.name,
        time="",
    )
    if not has_errors(checked.lint):
        named = hold_engine(workspace, how.engine, how.asking)
        with nullcontext(engine) if engine else named as held:
            runs = _run_both(workspace, line, cohort.name, held, how.watch)
        checked = _measure(workspace, store, line, verdicts, runs, checked)
        unseen = object_to_unseen(skipped)
        checked = replace(checked, objections=(*checked.objections, *unseen))
    checked = replace(checked, time=format_time(now()))
    keep_check(workspace, draft, checked)
    return checked


def _require_changed(line: DraftLineage) -> None:
    if line.draft.digest == line.parent.digest:
        raise DataError(
            f"{line.draft.ref} says what {line.parent.ref} says: there is nothing to "
            "check. Edit a guide of it first."
        )


def _run_both(
    workspace: Workspace,
    line: DraftLineage,
    cohort: str,
    engine: HeldEngine,
    watch: Callable[[CheckSide], Watch] | None,
) -> tuple[str, str]:
    """Run the parent and the draft; return the ids of their runs."""

    def run(version: PromptVersion, side: CheckSide) -> str:
        shown = watch(side) if watch else None
        summary = run_prompt(workspace, version.ref, cohort, engine=engine, watch=shown)
        return summary.run_id

    return run(line.parent, CheckSide.PARENT), run(line.draft, CheckSide.DRAFT)


def _measure(
    workspace: Workspace,
    store: Store,
    line: DraftLineage,
    verdicts: Sequence[Verdict],
    runs: tuple[str, str],
    checked: Checked,
) -> Checked:
    """Return `checked` with both runs and what they showed."""
    before, after = _read_both(workspace, runs)
    _require_same(line.draft, after)
    check = measure_draft(store, before, after, verdicts)
    if line.draft.contract != line.parent.contract:
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
        objections=check.reasons,
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
