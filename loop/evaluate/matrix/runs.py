"""Asks several engines one prompt version, one after the other, and reads the runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from loop.core.errors import (
    DataError,
    EngineError,
    NoEffectError,
    UnknownEngineError,
)
from loop.core.paths import WorkspacePaths
from loop.engines.base import DEFAULT_THINKING, masked
from loop.evaluate.matrix.matrix import MatrixEntry, build_matrix
from loop.evaluate.matrix.records import Matrix
from loop.evaluate.protocol import find_registration
from loop.evaluate.stability import read_draws
from loop.labels.reference import read_reference, require_random
from loop.run.asking import EngineOptions
from loop.run.execute import RunSummary
from loop.run.manifest import find_run, say_part
from loop.run.task import Task, Watch, prepare_run, run_task


class EngineRun(NamedTuple):
    """How one engine ended: a run, or a failure."""

    engine: str
    run: str | None
    failure: str = ""
    thinking: str = DEFAULT_THINKING
    """Level of thinking that it was asked with."""

    no_effect: bool = False
    """Whether the level changes nothing, so that nothing was asked."""


class MatrixRequest(NamedTuple):
    """What several engines are asked."""

    prompt: str
    cohort: str
    engines: Sequence[str]
    limit: int | None = None
    asking: EngineOptions = EngineOptions()
    actor: str | None = None
    """Who asks."""


def ask_engines(
    workspace: WorkspacePaths,
    request: MatrixRequest,
    *,
    ready: Callable[[Task], None] = lambda task: None,
    watch: Callable[[Task], Watch | None] = lambda task: None,
    done: Callable[[str, RunSummary], None] = lambda engine, summary: None,
) -> list[EngineRun]:
    """Run the engines one after the other; one that fails does not stop the others.

    Answers that are stored are not asked again, so the same call goes on where it was.
    Options and errors are those of `ask_requests`.
    """
    return ask_requests(workspace, [request], ready=ready, watch=watch, done=done)


def ask_requests(
    workspace: WorkspacePaths,
    requests: Sequence[MatrixRequest],
    *,
    ready: Callable[[Task], None] = lambda task: None,
    watch: Callable[[Task], Watch | None] = lambda task: None,
    done: Callable[[str, RunSummary], None] = lambda engine, summary: None,
) -> list[EngineRun]:
    """Run the engines of each request, all prepared before the first is asked.

    Parameters
    ----------
    requests
        For example one a prompt version.
    ready
        Called with each task before the first one starts; may raise to stop it all.
    watch
        Returns what shows the progress of a task.
    done
        Called when an engine has finished its run.

    Raises
    ------
    DataError
        The version, the cohort or its contract cannot be used.
    UnknownEngineError
        An engine does not exist; nothing has been asked.
    """
    wanted = [(each, engine) for each in requests for engine in each.engines]
    prepared = [_prepare(workspace, each, engine) for each, engine in wanted]
    for task in prepared:
        if isinstance(task, Task):
            ready(task)
    asked = []
    for (request, engine), task in zip(wanted, prepared, strict=True):
        level = request.asking.thinking
        if isinstance(task, EngineError):
            asked.append(EngineRun(masked(engine), None, str(task), level))
            continue
        try:
            summary = run_task(workspace, task, watch=watch(task), actor=request.actor)
        except NoEffectError as error:
            asked.append(EngineRun(engine, None, str(error), level, True))
        except EngineError as error:
            asked.append(EngineRun(engine, None, str(error), level))
        else:
            done(engine, summary)
            asked.append(EngineRun(engine, summary.run_id, "", level))
    return asked


def _prepare(
    workspace: WorkspacePaths, request: MatrixRequest, engine: str
) -> Task | EngineError:
    try:
        return prepare_run(
            workspace,
            request.prompt,
            request.cohort,
            engine=engine,
            limit=request.limit,
            asking=request.asking,
        )
    except UnknownEngineError:
        raise
    except EngineError as error:
        return error


def name_runs(workspace: WorkspacePaths, refs: Sequence[str]) -> list[EngineRun]:
    """Return the finished runs that `refs` name.

    Raises
    ------
    DataError
        There is no such run, or it did not finish.
    """
    records = [find_run(workspace, ref) for ref in refs]
    if len({record.part for record in records}) > 1:
        told = " ".join(filter(None, map(say_part, records)))
        raise DataError(f"{told} Leave it out: a matrix is of the same cases.")
    return [EngineRun(record.spec.engine, record.id) for record in records]


def check_before(
    workspace: WorkspacePaths,
    task: Task,
    runs: Sequence[EngineRun],
    reference: int | None,
) -> None:
    """Refuse what could not be shown in one matrix, before anything is asked.

    Raises
    ------
    DataError
        The cohort has no such reference, or one of `runs` is of another prompt
        version or cohort than `task`.
    """
    require_random(read_reference(workspace, task.spec.cohort, reference))
    for asked in runs:
        spec = find_run(workspace, asked.run or "").spec
        for what, theirs, ours in (
            ("prompt version", spec.prompt_digest, task.spec.prompt_digest),
            ("cohort", spec.cohort_digest, task.spec.cohort_digest),
            ("number of cases", spec.limit, task.spec.limit),
        ):
            if theirs != ours:
                raise DataError(
                    f"run {asked.run} is of another {what} ({spec.prompt} on "
                    f"{spec.cohort}) than {task.spec.prompt} on {task.spec.cohort}. "
                    "Leave it out, or run its engine again with --engine."
                )


def read_matrix(
    workspace: WorkspacePaths,
    asked: Sequence[EngineRun],
    *,
    reference: int | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> Matrix:
    """Return the matrix of runs that have ended.

    Nothing is recorded: a matrix shows gates, it does not decide them.

    Parameters
    ----------
    reference
        Number of the reference version; None for the newest, the same for all.

    Raises
    ------
    DataError
        A run cannot be read or scored, or the runs do not belong together.
    EngineError
        No engine has a run.
    """
    entries = []
    for one in asked:
        inputs = None
        if one.run is not None:
            inputs = read_draws(workspace, one.run, reference=reference)
        entries.append(MatrixEntry(one.engine, inputs, one.failure))
    digests = [entry.inputs.protocol_digest for entry in entries if entry.inputs]
    entry = find_registration(workspace, digests[0]) if digests else None
    return build_matrix(
        entries,
        registered=entry.time if entry else "",
        resamples=resamples,
        seed=seed,
    )
