"""A draft run against its parent on the same cases: the second step of a revision.

An engine that repeats itself is asked each version once, or not at all where the store
has its answers. One with chance in it is asked both versions several times, in turns,
and more often while that leaves open whether the draft puts its targets right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from loop.core.clock import Clock, format_time, utc_now
from loop.core.errors import ConflictError, DataError, EngineError
from loop.core.ledger import Actor, read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.records import PromptTask
from loop.evaluate.compare import pair_answers
from loop.evaluate.inputs import Inputs, read_inputs
from loop.evaluate.protocol import Protocol, read_protocol
from loop.labels.cohort import Cohort, iter_items
from loop.prompts.catalog import read_version
from loop.prompts.lint import has_errors
from loop.prompts.version import PromptVersion
from loop.review.revise.begin import require_dev
from loop.review.revise.changes import Changes, list_changes
from loop.review.revise.check import Check, check_draft, check_draws
from loop.review.revise.check_record import (
    Checked,
    asking_data,
    find_check,
    keep_check,
    read_basis,
    read_ground,
)
from loop.review.revise.copies import check_copies, new_wording, object_to_unseen
from loop.review.revise.draft import lint_draft
from loop.review.revise.draft_files import (
    DraftLineage,
    read_about,
    read_line,
    require_current,
)
from loop.review.revise.draws import DrawnAnswers, take_majority
from loop.review.revise.machine_made import is_machine_made, refuse_copied
from loop.review.revise.tries import count_tries
from loop.review.submit import load_verdicts, read_anchors
from loop.review.verdict import Verdict
from loop.run.asking import EngineOptions, HeldEngine, has_chance, hold_engine
from loop.run.canary import require_same_model
from loop.run.store import Store
from loop.run.task import Watch, prepare_run, run_prompt
from loop.run.task_fields import task_of


class CheckSide(StrEnum):
    """Which of the two runs of a check is under way."""

    PARENT = "parent"
    DRAFT = "draft"


class CheckStep(NamedTuple):
    """One of the runs of a check."""

    side: CheckSide
    number: int
    """From 1."""

    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """How a draft is to be checked."""

    engine: str = "rules"
    asking: EngineOptions = field(default_factory=EngineOptions)
    """How the engine is asked, both for the parent and for the draft."""

    draws: int | None = None
    """How often each version is asked at first, of an engine with chance in it; None
    for what the protocol says."""

    max_draws: int | None = None
    """How often at most, while the check is undecided; None for what the protocol
    says. Never fewer than `draws`."""

    watch: Callable[[CheckStep], Watch] | None = None
    """Gives what wraps the items of each run, to show progress; None for none."""

    cohort: str = ""
    """Dev cohort; the one the draft was begun for when empty."""


def check_draft_ref(
    workspace: WorkspacePaths,
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
    wording = tuple(new_wording(parent, draft))
    copies, skipped = check_copies(workspace, wording, cohort)
    if is_machine_made(workspace, draft):
        refuse_copied(workspace, store, wording, cohort.name, copies)
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
            looks = _choose_looks(workspace, held, how)
            if has_chance(held):
                stored = tuple(range(1, looks[-1] + 1))
                require_same_model(
                    workspace, store, line.parent, cohort.name, held, stored, actor
                )
            seen = _find_looks(workspace, checked)
            runs = _Runs(chance=has_chance(held))
            for draws in looks:
                seen = seen if draws in seen else (*seen, draws)
                runs = _run_both(workspace, line, checked, held, draws, runs, how)
                checked = replace(checked, looks=seen if runs.chance else ())
                checked = _measure(workspace, store, line, verdicts, runs, checked)
                if checked.check is None or not checked.check.undecided:
                    break
        unseen = object_to_unseen(skipped)
        checked = replace(checked, objections=(*checked.objections, *unseen))
    tried = count_tries(workspace, draft)
    checked = replace(checked, time=format_time(now()), tried=tried)
    keep_check(workspace, draft, checked)
    return checked


def _require_changed(line: DraftLineage) -> None:
    if line.draft.digest == line.parent.digest:
        raise DataError(
            f"{line.draft.ref} says what {line.parent.ref} says: there is nothing to "
            "check. Edit a guide of it first."
        )


def choose_looks(
    protocol: Protocol, draws: int | None = None, max_draws: int | None = None
) -> tuple[int, ...]:
    """Return after how many draws a check looks whether it is decided, ascending.

    Parameters
    ----------
    draws, max_draws
        As in `Examination`.

    Examples
    --------
    >>> choose_looks(Protocol()), choose_looks(Protocol(), 4), choose_looks(
    ...     Protocol(), 2, 7
    ... )
    ((3, 6), (4,), (2, 4, 6))
    """
    first = draws or protocol.draws
    most = max(first, max_draws or protocol.max_draws)
    return tuple(range(first, most + 1, first))


def _choose_looks(
    workspace: WorkspacePaths, engine: HeldEngine, how: Examination
) -> tuple[int, ...]:
    if has_chance(engine):
        return choose_looks(read_protocol(workspace), how.draws, how.max_draws)
    if how.draws not in (None, 1) or how.max_draws not in (None, 1):
        raise EngineError(
            f"{engine.name} answers the same prompt in the same way each time, so more "
            "draws show nothing. Leave out --draws and --max-draws."
        )
    return (1,)


def _find_looks(workspace: WorkspacePaths, checked: Checked) -> tuple[int, ...]:
    """Return after how many draws this wording was looked at before."""
    kept = find_check(workspace, read_version(workspace, checked.draft))
    if kept is None or kept.engine != checked.engine:
        return ()
    then, now = kept.ground, checked.ground
    same = (then.draft_digest, then.cohort) == (now.draft_digest, now.cohort)
    return kept.looks if same else ()


class _Runs(NamedTuple):
    """Ids of the runs of a check, one a draw."""

    chance: bool
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


def _run_both(
    workspace: WorkspacePaths,
    line: DraftLineage,
    checked: Checked,
    engine: HeldEngine,
    draws: int,
    runs: _Runs,
    how: Examination,
) -> _Runs:
    """Run the parent and the draft until there are `draws` of each.

    Each draw of both comes before the next, and which of them comes first changes from
    draw to draw, so that an engine that drifts treats both alike. Draw 0 of an engine
    with chance is left out: the targeted cases were mostly chosen because the parent
    failed on them there.
    """
    versions = {CheckSide.PARENT: line.parent, CheckSide.DRAFT: line.draft}
    found = {CheckSide.PARENT: [*runs.before], CheckSide.DRAFT: [*runs.after]}
    for done in range(len(runs.before), draws):
        sides = tuple(versions)[:: -1 if done % 2 else 1]
        for place, side in enumerate(sides):
            step = CheckStep(side, 2 * done + place + 1, 2 * draws)
            summary = run_prompt(
                workspace,
                versions[side].ref,
                checked.ground.cohort,
                engine=engine,
                draw=done + 1 if runs.chance else 0,
                watch=how.watch(step) if how.watch else None,
                actor=checked.by,
            )
            found[side].append(summary.run_id)
    return runs._replace(
        before=tuple(found[CheckSide.PARENT]), after=tuple(found[CheckSide.DRAFT])
    )


def _measure(
    workspace: WorkspacePaths,
    store: Store,
    line: DraftLineage,
    verdicts: Sequence[Verdict],
    runs: _Runs,
    checked: Checked,
) -> Checked:
    """Return `checked` with the runs of both versions and what they showed."""
    if task_of(line.draft) is PromptTask.JUDGE:
        return _measure_judge(workspace, store, line, verdicts, runs, checked)
    before, after = _read_both(workspace, runs)
    for one in after:
        _require_same(line.draft, one.run.prompt_digest)
    check = measure_draft(
        store,
        before,
        after,
        verdicts,
        look=1 + checked.looks.index(len(before)) if runs.chance else None,
    )
    if line.draft.contract != line.parent.contract:
        check = replace(check, gain_required=False)
    first = before[0]
    ground = replace(
        checked.ground,
        reference=first.cohort.reference,
        reference_digest=first.cohort.reference_digest,
        protocol_digest=first.protocol_digest,
    )
    majority = (
        take_majority([one.judged_pairs for one in side]) for side in (before, after)
    )
    return replace(
        checked,
        ground=ground,
        check=check,
        changes=list_changes(pair_answers(*majority)),
        runs=(*runs.before, *runs.after),
        objections=check.reasons,
    )


def _read_both(
    workspace: WorkspacePaths, runs: _Runs
) -> tuple[tuple[Inputs, ...], tuple[Inputs, ...]]:
    """Return all runs beside the same reference, the newest one."""
    first = read_inputs(workspace, runs.before[0])

    def read(run: str) -> Inputs:
        return read_inputs(workspace, run, reference=first.cohort.reference)

    before = (first, *map(read, runs.before[1:]))
    return before, tuple(map(read, runs.after))


def _measure_judge(
    workspace: WorkspacePaths,
    store: Store,
    line: DraftLineage,
    verdicts: Sequence[Verdict],
    runs: _Runs,
    checked: Checked,
) -> Checked:
    """Return `checked` with what a judge's runs showed, against experts' counts."""
    # Heavy, and of no use where no judge is revised.
    from loop.review.revise.check_judge import JudgeRuns, measure_judge

    for one in store.find_runs(ids=runs.after):
        _require_same(line.draft, one.spec.prompt_digest)
    found = measure_judge(
        workspace,
        store,
        checked.ground.cohort,
        JudgeRuns(line.parent, runs.before),
        JudgeRuns(line.draft, runs.after),
        verdicts,
        read_anchors(store, checked.ground.cohort),
    )
    check = found.check
    if line.draft.contract != line.parent.contract:
        check = replace(check, gain_required=False)
    return replace(
        checked,
        check=check,
        changes=found.changes,
        runs=(*runs.before, *runs.after),
        objections=check.reasons,
    )


def _require_same(draft: PromptVersion, asked: str) -> None:
    if asked != draft.digest:
        raise ConflictError(
            f"{draft.ref} was edited while it was checked, so the check says nothing "
            "of it. Check it again."
        )


def measure_draft(
    store: Store,
    before: Sequence[Inputs],
    after: Sequence[Inputs],
    verdicts: Sequence[Verdict],
    *,
    look: int | None = None,
) -> Check:
    """Return the check of the draws of a parent and a draft, against one reference.

    Of a label that the reference cannot judge only a verdict says what is right.

    Parameters
    ----------
    look
        Which look at the draft it is, counted from 1, for an engine with chance in it;
        None for one that repeats itself, which has one draw.

    Raises
    ------
    ValueError
        They do not hold the same cases.
    StoreError
        The pinned cases cannot be read.
    """
    protocol = before[0].protocol
    anchors = read_anchors(store, before[0].cohort.name)
    drawn = DrawnAnswers(
        tuple(one.judged_pairs for one in before),
        tuple(one.judged_pairs for one in after),
    )
    if look is not None:
        check = check_draws(drawn, verdicts, anchors, protocol, look)
        return replace(check, every_target=protocol.every_target)
    (parent,), (draft,) = drawn
    return check_draft(parent, draft, verdicts, anchors, protocol=protocol)


def require_measurable(
    workspace: WorkspacePaths, cohort: Cohort, parent: PromptVersion, engine: str
) -> None:
    """Refuse what could not be measured: engine, texts, reference or protocol."""
    prepare_run(workspace, parent.ref, cohort.name, engine=engine)
    next(iter_items(workspace, cohort), None)
    read_basis(workspace, cohort)
    read_protocol(workspace)
