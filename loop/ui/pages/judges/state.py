"""What the page Judges knows: the pairs, who rated them, and what a judge says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from loop.core.errors import DataError
from loop.core.people.users import Right
from loop.core.records import PromptTask
from loop.labels.cohort import CohortRole, read_record
from loop.prompts.catalog import latest_version, read_version
from loop.prompts.outputs.base import get_contract
from loop.prompts.version import PromptVersion
from loop.review.reading.pair_ratings import (
    PairRating,
    RatingTask,
    agreed_pairs,
    read_own_ratings,
    read_rating_task,
    shown_pairs,
)
from loop.review.status import KeptVerdict, VerdictState
from loop.run.store import RunRecord
from loop.run.task_fields import task_of
from loop.ui.context import AppContext
from loop.ui.wiring import Visit


class PairStage(StrEnum):
    """How far a visitor is with a pair."""

    OPEN = "open"
    RATED = "rated"
    SHOWN = "shown"
    """The judge's errors were shown, and no verdict was given yet."""

    JUDGED = "judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What one visitor works on: a cohort of pairs, and a judge's run on it."""

    task: RatingTask
    person: str
    rates: bool
    """Whether the visitor may rate pairs."""

    judges: bool
    """Whether the visitor may give verdicts."""

    run: RunRecord | None
    """None where there is none, or where it must stay unseen."""

    version: PromptVersion | None
    """The judge that was run."""

    why: str
    """Why there is no run to see; empty where there is one."""

    ratings: Mapping[str, PairRating]
    """The visitor's own, by case id."""

    shown: frozenset[str]
    """Pairs of which the visitor was shown what a judge says."""

    agreed: frozenset[str]
    """Pairs whose answer without an error the visitor found right."""

    unread: frozenset[str]
    """Pairs of which the run has no readable answer."""

    verdicts: Mapping[str, tuple[KeptVerdict, ...]]
    """Open verdicts on this prompt, by case id, everybody's."""

    def own_verdicts(self, case_id: str) -> tuple[KeptVerdict, ...]:
        """Return the visitor's open verdicts on a pair."""
        return tuple(
            one
            for one in self.verdicts.get(case_id, ())
            if one.verdict.reviewer == self.person
        )

    def stage(self, case_id: str) -> PairStage:
        """Return how far the visitor is with a pair."""
        if case_id in self.agreed or self.own_verdicts(case_id):
            return PairStage.JUDGED
        if case_id in self.shown:
            return PairStage.SHOWN
        return PairStage.RATED if case_id in self.ratings else PairStage.OPEN

    def is_revealed(self, case_id: str) -> bool:
        """Whether the visitor may see what the judge says of a pair."""
        if self.run is None:
            return False
        return case_id in self.shown or not self.rates

    def waits(self, case_id: str) -> bool:
        """Whether there is something left to do with a pair."""
        stage = self.stage(case_id)
        if self.judges and self.run is not None:
            done = stage is PairStage.SHOWN and case_id in self.unread
            return not done and stage is not PairStage.JUDGED
        return self.rates and stage is PairStage.OPEN


def open_desk(visit: Visit, prompt: str | None, cohort: str | None) -> Desk:
    """Return what a visitor works on.

    Raises
    ------
    DataError
        No cohort is chosen, or it holds single reports.
    """
    if not cohort:
        raise DataError("choose a cohort of pairs at the top.")
    context, user = visit.context, visit.user
    task = read_rating_task(context.workspace, cohort)
    judges = user.may(Right.JUDGE)
    rates = judges or user.may(Right.READ)
    run, why = _find_run(visit, prompt, task)
    store, person = context.store, user.name
    return Desk(
        task=task,
        person=person,
        rates=rates,
        judges=judges,
        run=run,
        version=read_version(context.workspace, run.spec.prompt) if run else None,
        why=why,
        ratings=read_own_ratings(store, task, person) if rates else {},
        shown=shown_pairs(store, task, person) if rates else frozenset(),
        agreed=agreed_pairs(store, task, person, run.id) if run else frozenset(),
        unread=_unread(context, run) if run else frozenset(),
        verdicts=_verdicts(context, prompt, task) if user.may(Right.SEE) else {},
    )


def _unread(context: AppContext, run: RunRecord) -> frozenset[str]:
    """Return the pairs of which a run has no readable answer."""

    def find() -> frozenset[str]:
        rows = context.store.read(
            "SELECT item_id FROM outcomes WHERE run = ? AND status <> 'answered'",
            [run.number],
        )
        return frozenset(case_id for (case_id,) in rows)

    found: frozenset[str] = context.cache.get(("unread", run.id), find)
    return found


def _find_run(
    visit: Visit, prompt: str | None, task: RatingTask
) -> tuple[RunRecord | None, str]:
    """Return the newest run of the chosen judge, or why there is none to see."""
    context, name = visit.context, task.cohort.name
    if not visit.user.may(Right.SEE):
        return None, ""
    if task.cohort.role is CohortRole.HOLDOUT:
        return None, "This is a holdout: what a judge says of it stays unseen."
    version = latest_version(context.workspace, prompt) if prompt else None
    if version is None or task_of(version) is not PromptTask.JUDGE:
        return None, (
            "The prompt at the top is not a judge. Choose one to see its errors."
        )
    if not get_contract(version.contract).counts_errors:
        return None, (
            f"{version.name} names no errors by category, so nothing of it is shown "
            "here. `ranloop evaluate` shows how it agrees with the readers."
        )
    again = f"start a run on the page Runs, or with `ranloop run {version.name} "
    try:
        run = context.latest_run(version.name, name)
    except DataError:
        why = f"{version.name} has not judged {name} yet: {again}--cohort {name}`."
        return None, why
    if run.spec.cohort_digest != task.cohort.digest:
        return None, (
            f"{version.name} judged other texts of {name}, which was imported anew "
            f"since: {again}--cohort {name}`."
        )
    return run, ""


def _verdicts(
    context: AppContext, prompt: str | None, task: RatingTask
) -> dict[str, tuple[KeptVerdict, ...]]:
    """Return the open verdicts on a prompt, but those on other texts of the cohort."""
    kept = [
        one
        for one in context.kept_verdicts(task.cohort.name)
        if one.state is VerdictState.OPEN
    ]
    runs = {one.circumstances.run for one in kept} - {""}
    other = {
        run.id
        for run in context.store.find_runs(ids=tuple(runs))
        if run.spec.cohort_digest != task.cohort.digest
    }
    found: dict[str, list[KeptVerdict]] = {}
    for one in kept:
        named = one.circumstances.prompt.partition("@")[0] in ("", prompt or "")
        if named and one.circumstances.run not in other:
            for case_id in dict.fromkeys(case for case, _ in one.pairs):
                found.setdefault(case_id, []).append(one)
    return {case_id: tuple(verdicts) for case_id, verdicts in found.items()}


class PairRow(NamedTuple):
    """One pair of the list."""

    case_id: str
    stage: PairStage
    waits: bool
    apart: float | None
    """Errors by which the judge differs from the readers; None where it is not known,
    or the visitor was not shown the judge's errors."""


def list_pairs(visit: Visit, desk: Desk) -> list[PairRow]:
    """Return all pairs: those first on which the judge is furthest from the readers.

    Where that is not known, or must not be, in the visitor's own order.
    """
    apart = _apart(visit.context, desk)
    own = desk.task.order(desk.person)
    ordered = sorted(own, key=lambda case: -apart.get(case, 0.0))
    return [
        PairRow(
            case,
            desk.stage(case),
            desk.waits(case),
            apart.get(case) if desk.is_revealed(case) else None,
        )
        for case in ordered
    ]


def _apart(context: AppContext, desk: Desk) -> Mapping[str, float]:
    """Return by how many errors the judge differs from the readers' median counts."""
    run = desk.run
    if run is None or not desk.judges:
        return {}
    record = read_record(context.workspace, desk.task.cohort.name)
    if not record.ratings:
        return {}
    newest = max(record.ratings)
    key = ("apart", run.id, newest, str(record.ratings[newest]["digest"]))
    found: Mapping[str, float] = context.cache.get(
        key, lambda: _measure_apart(context, run)
    )
    return found


def _measure_apart(context: AppContext, run: RunRecord) -> dict[str, float]:
    # Heavy, and of no use to a workbench without judges.
    from loop.judge.count_failures import find_count_failures

    apart: dict[str, float] = {}
    try:
        found = find_count_failures(context.workspace, context.store, run.id)
    except DataError:
        # Nobody marked errors: no pair goes before another.
        return {}
    for one in found.rows:
        apart[one.case_id] = apart.get(one.case_id, 0.0) + one.apart
    return {case: apart.get(case, 0.0) for case in found.cases}
