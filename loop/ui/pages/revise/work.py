"""The long work of the page Revise: checking and committing, in the background."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loop.labels.cohort import read_cohort
from loop.review.revise.commit import CommitDecision, commit_checked
from loop.review.revise.draft_files import read_line
from loop.review.revise.run_check import (
    CheckSide,
    CheckStep,
    Examination,
    check_draft_ref,
)
from loop.run.asking import EngineOptions
from loop.run.manifest import read_manifest
from loop.run.task import Watch
from loop.ui.desk import Desk
from loop.ui.jobs import Job, JobProgress
from loop.ui.pages.revise.state import DEFAULT_ENGINE
from loop.ui.wiring import Visit


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """A check that somebody wants."""

    draft: str
    cohort: str
    """Dev cohort of the draft."""

    engine: str = DEFAULT_ENGINE


def check_key(draft: str) -> str:
    """Return the name under which the check of a draft runs."""
    return f"check {draft}"


def commit_key(draft: str) -> str:
    """Return the name under which a draft is committed."""
    return f"commit {draft}"


def start_check(visit: Visit, wanted: CheckRequest) -> None:
    """Check a draft in the background; the result is kept beside it.

    Raises
    ------
    ConflictError
        It is being checked already; says by whom.
    """
    desk, actor = visit.desk, visit.actor

    def work(job: Job) -> str:
        how = Examination(
            engine=wanted.engine,
            asking=EngineOptions(
                allow_unconstrained=_answered_freely(desk, wanted),
                tell=lambda text: _tell(job, text),
            ),
            watch=_watch(desk, wanted, job),
            cohort=wanted.cohort,
        )
        check_draft_ref(
            desk.workspace, desk.store, wanted.draft, actor, how, now=desk.now
        )
        return wanted.draft

    desk.jobs.forget(commit_key(wanted.draft))
    desk.jobs.start(check_key(wanted.draft), actor.name, work)


def _answered_freely(desk: Desk, wanted: CheckRequest) -> bool:
    """Whether the engine's last run on the cohort was let answer without a schema.

    Who started that run, on the command line, has accepted it; the page cannot ask.
    """
    for run in desk.store.find_runs(finished=True):
        if (run.spec.engine, run.spec.cohort) == (wanted.engine, wanted.cohort):
            identity = read_manifest(desk.workspace, run.id).get("engine_identity", {})
            return identity.get("constrained") is False
    return False


def _tell(job: Job, text: str) -> None:
    """Show a remark of the engine's while nothing is counted, as when it starts."""
    if not job.progress.total:
        job.step(text)


def _watch(desk: Desk, wanted: CheckRequest, job: Job) -> Callable[[CheckStep], Watch]:
    """Return what names each run and counts its cases."""
    total = len(read_cohort(desk.workspace, wanted.cohort).cases)
    line = read_line(desk.workspace, wanted.draft)
    names = {
        CheckSide.PARENT: f"parent {line.parent.ref}",
        CheckSide.DRAFT: "the draft",
    }

    def watch(step: CheckStep) -> Watch:
        where = f"run {step.number} of {step.of}"
        job.step(f"{where}: {names[step.side]} on {wanted.cohort}", total)
        return job.watch

    return watch


def start_commit(visit: Visit, draft: str, decision: CommitDecision) -> None:
    """Commit a checked draft in the background, and run the version it becomes.

    Raises
    ------
    ConflictError
        It is being committed already; says by whom.
    """
    desk, actor = visit.desk, visit.actor

    def work(job: Job) -> str:
        job.step("committing, then running the new version")
        committed = commit_checked(
            desk.workspace, desk.store, draft, actor, decision, now=desk.now
        )
        return committed.version.ref

    desk.jobs.start(commit_key(draft), actor.name, work)


def is_running(desk: Desk, draft: str) -> bool:
    """Return whether a draft is being checked or committed."""
    looked = (desk.jobs.look(key(draft)) for key in (check_key, commit_key))
    return any(one is not None and not one.finished for one in looked)


def find_failed(desk: Desk, key: str) -> JobProgress | None:
    """Return the work with this key if it came to nothing."""
    progress = desk.jobs.look(key)
    return progress if progress and progress.finished and progress.error else None


def find_running(desk: Desk, key: str) -> JobProgress | None:
    """Return the work with this key while it goes on."""
    progress = desk.jobs.look(key)
    return progress if progress and not progress.finished else None
