"""What the process of a job does: runs, evaluations, matrices and checks in turn."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from loop.core.errors import LoopError
from loop.core.ledger import Actor, Signer
from loop.core.paths import WorkspacePaths
from loop.engines.base import masked
from loop.evaluate.evaluation import evaluate_run
from loop.evaluate.matrix.runs import MatrixRequest, ask_engines
from loop.evaluate.protocol import read_protocol, register_protocol
from loop.evaluate.recording import record_evaluation
from loop.labels.cohort import read_cohort
from loop.prompts.version import PromptVersion
from loop.review.revise.begin import require_dev
from loop.review.revise.draft_files import read_about, read_line
from loop.review.revise.run_check import (
    CheckStep,
    Examination,
    check_draft_ref,
    choose_looks,
)
from loop.run.asking import EngineOptions, check_engine
from loop.run.cost import DryRun, asked_model, estimate_run
from loop.run.jobs import JobKind, JobQueue, JobRecord, JobRequest, JobState
from loop.run.manifest import find_run
from loop.run.task import Task, Watch, prepare_run, require_answers, run_draws

NOTE_S = 0.5
"""How often a job says how far it is, seconds."""

Row = TypeVar("Row")


def start_job(queue: JobQueue, request: JobRequest, actor: str, role: str) -> JobRecord:
    """Start work that can be done; names in it that may move are settled first.

    Raises
    ------
    DataError
        The version, cohort, run or draft cannot be used; a holdout never can.
    EngineError
        There is no such engine, or it cannot be asked this.
    ConflictError
        The same work is under way; says as which job and who started it.
    """
    return queue.start(_settled(queue.workspace, request), actor, role)


def _settled(workspace: WorkspacePaths, request: JobRequest) -> JobRequest:
    """Return `request` with versions and runs by their own names, if it can be done."""
    if request.kind is JobKind.EVALUATION:
        return replace(request, run=find_run(workspace, request.run).id)
    if request.kind is JobKind.CHECK:
        check_engine(request.engines[0])
        draft = read_line(workspace, request.draft).draft
        about = read_about(workspace, draft).cohort
        cohort = require_dev(workspace, request.cohort or about)
        return replace(request, draft=draft.ref, cohort=cohort.name)
    tasks = [
        prepare_run(
            workspace,
            request.prompt,
            request.cohort,
            engine=engine,
            limit=request.limit,
            asking=_asking(request),
        )
        for engine in request.engines
    ]
    return replace(request, prompt=tasks[0].spec.prompt)


class JobPart(NamedTuple):
    """What a job asks one engine of one wording."""

    estimate: DryRun
    """Of asking once."""

    draws: int
    """How often at most."""


def estimate_job(workspace: WorkspacePaths, request: JobRequest) -> tuple[JobPart, ...]:
    """Return what a job would ask, without sending anything; nothing of an evaluation.

    Answers that are stored already are not asked again, and not known here. The check
    of a draft asks its parent as often; undecided, up to as often as it may.

    Raises
    ------
    DataError
        The version, cohort or draft cannot be used; a holdout never can.
    EngineError
        There is no such engine.
    """
    if request.kind is JobKind.EVALUATION:
        return ()
    wordings: Sequence[str | PromptVersion] = (request.prompt,)
    draws, cohort = request.draws or 1, request.cohort
    if request.kind is JobKind.CHECK:
        line = read_line(workspace, request.draft)
        wordings = (line.parent, line.draft)
        about = read_about(workspace, line.draft).cohort
        cohort = require_dev(workspace, cohort or about).name
        protocol = read_protocol(workspace)
        draws = choose_looks(protocol, request.draws, request.max_draws)[-1]
    return tuple(
        JobPart(
            estimate_run(
                workspace, wording, cohort, engine=engine, limit=request.limit
            ),
            # What is no model repeats itself, so that a check asks it once.
            draws if request.kind is JobKind.RUN or asked_model(engine) else 1,
        )
        for engine in request.engines
        for wording in wordings
    )


def _asking(request: JobRequest, **more: Any) -> EngineOptions:
    given = {
        name: value
        for name in ("temperature", "max_tokens", "seed", "thinking")
        if (value := getattr(request, name)) not in (None, "")
    }
    return EngineOptions(
        **given, allow_unconstrained=request.allow_unconstrained, **more
    )


def work_through(
    queue: JobQueue, worker: str, signer: Callable[[str], Signer | None]
) -> None:
    """Do what waits, one job after the other, until nothing is left for `worker`.

    Asked to stop by SIGTERM or SIGINT, it ends the present job and goes on with the
    next.

    Parameters
    ----------
    worker
        Name of the lock that the present process holds.
    signer
        Returns what signs the ledger entries of a person; None for nobody.

    Raises
    ------
    StoreError
        The store cannot be read or written.
    """
    stop = _StopSignal()
    signal.signal(signal.SIGTERM, stop.interrupt)
    signal.signal(signal.SIGINT, stop.interrupt)
    try:
        while (job := stop.claim(queue, worker)) is not None:
            _do(queue, job, signer, stop)
    finally:
        queue.forget(worker)


@dataclass(slots=True)
class _StopSignal:
    """Turns a signal into an interrupt while there is something to interrupt.

    One that comes after a job is claimed and before it is begun is kept until then: as
    soon as the job is seen to be running, somebody may ask to stop it.
    """

    working: bool = False
    asked: bool = False

    def claim(self, queue: JobQueue, worker: str) -> JobRecord | None:
        """Take the next job; what was asked about the one before is forgotten."""
        self.asked = False
        return queue.claim(worker)

    def begin(self) -> None:
        """Let signals interrupt from now on; one that was kept does at once."""
        self.working = True
        if self.asked:
            self.interrupt(signal.SIGTERM, None)

    def interrupt(self, number: int, frame: object) -> None:
        if self.working:
            self.working = False
            raise KeyboardInterrupt
        self.asked = True


def _do(
    queue: JobQueue,
    job: JobRecord,
    signer: Callable[[str], Signer | None],
    stop: _StopSignal,
) -> None:
    """Do one job and say how it ended."""
    report = _Report(queue, job.number)
    state, message = JobState.DONE, ""
    try:
        stop.begin()
        actor = Actor(name=job.actor, role=job.role, signer=signer(job.actor))
        message = _WORK[job.request.kind](queue, job.request, actor, report)
        stop.working = False
        state = JobState.FAILED if message else JobState.DONE
    except KeyboardInterrupt:
        state = JobState.STOPPED
    except LoopError as error:
        state, message = JobState.FAILED, str(error)
    except Exception as bug:  # noqa: BLE001  its values may be clinical text
        last = bug.__traceback__
        while last is not None and last.tb_next is not None:
            last = last.tb_next
        code = last.tb_frame.f_code.co_name if last else "?"
        state = JobState.FAILED
        message = (
            f"a fault in ranloop: {type(bug).__name__} in {code}, line "
            f"{last.tb_lineno if last else 0}. What was answered is kept. Send this "
            "message to whoever runs ranloop here."
        )
    finally:
        stop.working = False
    queue.end(job.number, state, message, report.runs)


@dataclass(slots=True)
class _Report:
    """Says how far a job is, not more often than somebody looks."""

    queue: JobQueue
    number: int
    runs: list[str] = field(default_factory=list)
    _step: str = ""
    _total: int = 0
    _said: float = 0.0

    def step(self, what: str, total: int = 0) -> None:
        """Say what is done next."""
        self._step, self._total, self._said = what, total, time.monotonic()
        self.queue.note(self.number, what, 0, total, what)

    def tell(self, text: str) -> None:
        """Put a remark of the engine's into the log."""
        self.queue.note(self.number, self._step, 0, self._total, text)

    def watch(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield `rows`, and say now and then how many have passed."""
        done = 0
        for done, row in enumerate(rows, 1):
            yield row
            if time.monotonic() - self._said >= NOTE_S:
                self._said = time.monotonic()
                self.queue.note(self.number, self._step, done, self._total)
        self.queue.note(self.number, self._step, done, self._total)


def _run(queue: JobQueue, request: JobRequest, actor: Actor, report: _Report) -> str:
    task = prepare_run(
        queue.workspace,
        request.prompt,
        request.cohort,
        engine=request.engines[0],
        limit=request.limit,
        asking=_asking(request, tell=report.tell),
    )
    register_protocol(queue.workspace, actor)
    draws = request.draws or 1
    watched = _counted(report, task, draws)
    found = run_draws(
        queue.workspace, task, range(draws), watch=watched, actor=actor.name
    )
    for summary in found:
        report.runs.append(summary.run_id)
        require_answers(summary)
    return ""


def _counted(report: _Report, task: Task, draws: int) -> Watch:
    """Return what names each draw as it begins, and counts its cases."""
    numbers = iter(range(1, draws + 1))

    def watch(rows: Iterable[Any]) -> Iterator[Any]:
        draw = f", draw {next(numbers)} of {draws}" if draws > 1 else ""
        engine = masked(task.spec.engine)
        report.step(
            f"{task.spec.prompt} on {task.spec.cohort} with {engine}{draw}", task.total
        )
        yield from report.watch(rows)

    return watch


def _evaluate(
    queue: JobQueue, request: JobRequest, actor: Actor, report: _Report
) -> str:
    report.step(f"evaluating run {request.run}")
    result = evaluate_run(queue.workspace, request.run, reference=request.reference)
    record_evaluation(queue.workspace, result, actor)
    report.runs.append(request.run)
    return ""


def _matrix(queue: JobQueue, request: JobRequest, actor: Actor, report: _Report) -> str:
    wanted = MatrixRequest(
        request.prompt,
        request.cohort,
        request.engines,
        request.limit,
        _asking(request, tell=report.tell),
        actor.name,
    )
    register_protocol(queue.workspace, actor)
    asked = ask_engines(
        queue.workspace,
        wanted,
        watch=lambda task: _counted(report, task, 1),
    )
    report.runs += [one.run for one in asked if one.run is not None]
    failed = [f"{one.engine}: {one.failure}" for one in asked if one.run is None]
    return " ".join(failed)


def _check(queue: JobQueue, request: JobRequest, actor: Actor, report: _Report) -> str:
    total = len(read_cohort(queue.workspace, request.cohort).cases)

    def watch(step: CheckStep) -> Watch:
        of = f"run {step.number} of {step.of}"
        report.step(f"{of}: the {step.side} on {request.cohort}", total)
        return report.watch

    how = Examination(
        engine=request.engines[0],
        asking=_asking(request, tell=report.tell),
        draws=request.draws,
        max_draws=request.max_draws,
        watch=watch,
        cohort=request.cohort,
    )
    checked = check_draft_ref(queue.workspace, queue.store, request.draft, actor, how)
    report.runs += checked.runs
    return ""


_WORK: dict[JobKind, Callable[[JobQueue, JobRequest, Actor, _Report], str]] = {
    JobKind.RUN: _run,
    JobKind.EVALUATION: _evaluate,
    JobKind.MATRIX: _matrix,
    JobKind.CHECK: _check,
}
"""What does each kind of job; what it returns says why not all of it was done."""
