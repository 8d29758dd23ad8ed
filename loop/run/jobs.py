"""Work that goes on in a separate process: asked for once, watched, stopped, resumed.

A job is a row of the store; its process, the worker, belongs to no terminal and to no
workbench. A worker holds a lock file from its first moment on, which the system lets go
of with the process: whoever finds a running job whose lock is free knows that its
worker is gone, whatever process has its number now and whatever the clock says.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path
from secrets import token_hex
from threading import Thread
from typing import Any

from loop.core.clock import Clock, format_time, utc_now
from loop.core.errors import ConflictError, DataError, StoreError
from loop.core.files import write_error
from loop.core.paths import WorkspacePaths
from loop.engines.base import LEVELS, check_thinking, masked
from loop.run.store import Store

_MOST = 1000
"""Characters of a name, and most draws or engines of one job."""

_LOG_LINES = 500
"""Lines that the log of a job keeps, the newest."""


class JobKind(StrEnum):
    """What a job does."""

    RUN = "run"
    EVALUATION = "evaluate"
    MATRIX = "matrix"
    CHECK = "check"


class JobState(StrEnum):
    """How a job stands."""

    QUEUED = "queued"
    RUNNING = "running"
    STOPPED = "stopped"
    """By a person, or because its worker is gone; it can be resumed."""

    FAILED = "failed"
    DONE = "done"

    @property
    def open(self) -> bool:
        """Whether it waits or goes on."""
        return self in (JobState.QUEUED, JobState.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """What a job is to do; two that are equal are the same work.

    Raises
    ------
    DataError
        A part is missing, of the wrong type, or does not belong to this kind of work.
    """

    kind: JobKind
    prompt: str = ""
    cohort: str = ""
    engines: tuple[str, ...] = ()
    """One; of a matrix one or more; of an evaluation none."""

    run: str = ""
    """Run to evaluate."""

    reference: int | None = None
    draft: str = ""
    """Draft to check."""

    limit: int | None = None
    draws: int | None = None
    max_draws: int | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    thinking: str = ""
    """How much a model thinks; empty for as much as its server says."""

    allow_unconstrained: bool = False

    def __post_init__(self) -> None:
        needed, allowed = _PARTS[self.kind]
        given = set(self.data)
        for name in (one for one in needed if one not in given):
            raise DataError(f"a job of kind {self.kind} needs {name}. Name it.")
        for name in sorted(given - {*needed, *allowed}):
            raise DataError(f"a job of kind {self.kind} takes no {name}. Leave it out.")
        for name in ("prompt", "cohort", "run", "draft"):
            _require_name(name, getattr(self, name))
        for engine in self.engines:
            _require_name("engine", engine)
        if len(set(self.engines)) < len(self.engines):
            raise DataError("an engine is named twice in one job. Name each once.")
        if self.kind is not JobKind.MATRIX and len(self.engines) > 1:
            raise DataError(
                f"a job of kind {self.kind} asks one engine. Start a matrix for more."
            )
        self._require_numbers()

    def _require_numbers(self) -> None:
        for name in ("reference", "limit", "draws", "max_draws", "max_tokens"):
            _require_number(name, getattr(self, name))
        if self.seed is not None and type(self.seed) is not int:
            raise DataError("the seed of a job must be a whole number.")
        heat = self.temperature
        if heat is not None and not (
            type(heat) in (int, float) and 0 <= heat < float("inf")
        ):
            raise DataError("the temperature of a job must be a number >= 0.")
        self._require_thinking()
        if type(self.allow_unconstrained) is not bool:
            raise DataError("allow_unconstrained of a job must be true or false.")

    def _require_thinking(self) -> None:
        known = self.thinking == ""
        if isinstance(self.thinking, str) and not known:
            with suppress(ValueError):
                known = check_thinking(self.thinking) == self.thinking
        if not known:
            raise DataError(
                f"the thinking of a job must be {', '.join(LEVELS)} or a number of "
                "tokens."
            )

    @property
    def data(self) -> dict[str, Any]:
        """What is given, as JSON data, without the kind."""
        given = {**asdict(self), "engines": list(self.engines)}
        return {
            name: value
            for name, value in given.items()
            if name != "kind" and value not in ("", [], None) and value is not False
        }

    @property
    def title(self) -> str:
        """What is done, in a few words; without secrets of an engine's address."""
        engines = ", ".join(map(masked, self.engines))
        if self.kind is JobKind.EVALUATION:
            return f"evaluation of run {self.run}"
        if self.kind is JobKind.CHECK:
            return f"check of {self.draft} with {engines}"
        draws = f", {self.draws} draws" if (self.draws or 1) > 1 else ""
        part = f", first {self.limit} cases" if self.limit else ""
        return (
            f"{self.kind} of {self.prompt} on {self.cohort} with {engines}{part}{draws}"
        )


_ASKING = ("temperature", "max_tokens", "seed", "thinking", "allow_unconstrained")
_PARTS: Mapping[JobKind, tuple[Sequence[str], Sequence[str]]] = {
    JobKind.RUN: (("prompt", "cohort", "engines"), ("limit", "draws", *_ASKING)),
    JobKind.EVALUATION: (("run",), ("reference",)),
    JobKind.MATRIX: (("prompt", "cohort", "engines"), ("limit", *_ASKING[-1:])),
    JobKind.CHECK: (
        ("draft", "engines"),
        ("cohort", "draws", "max_draws", "allow_unconstrained"),
    ),
}
"""What each kind of job needs, and what it takes besides."""


def _require_name(what: str, value: object) -> None:
    if not isinstance(value, str) or len(value) > _MOST or not value.isprintable():
        raise DataError(f"the {what} of a job must be a name on one line.")


def _require_number(what: str, value: object) -> None:
    most = 100 if "draws" in what else 2**31
    if value is not None and not (type(value) is int and 1 <= value <= most):
        raise DataError(
            f"{what.replace('_', ' ')} of a job must be a number from 1 to {most}."
        )


def read_request(kind: str, data: Mapping[str, Any]) -> JobRequest:
    """Return the request that `kind` and `JobRequest.data` describe.

    Raises
    ------
    DataError
        It is none, whoever wrote it.
    """
    known = {one.name for one in fields(JobRequest)} - {"kind"}
    engines = data.get("engines", [])
    if kind not in list(JobKind) or not known.issuperset(data):
        raise DataError(
            f"a job is one of {', '.join(JobKind)}, with parameters that it knows."
        )
    if not isinstance(engines, list | tuple):
        raise DataError("the engines of a job must be a list of names.")
    return JobRequest(kind=JobKind(kind), **{**data, "engines": tuple(engines)})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """One job as the store knows it."""

    number: int
    request: JobRequest
    actor: str
    """Who started it, or resumed it last."""

    role: str
    created: str
    """UTC, ISO 8601, as the other times."""

    started: str | None
    ended: str | None
    state: JobState
    step: str
    """What is done just now, in words."""

    done: int
    """Cases of that step."""

    total: int
    """0 when it is not known."""

    pid: int | None
    message: str
    """Why it failed or was stopped; never text of a case."""

    log: tuple[str, ...]
    runs: tuple[str, ...]
    """Ids of the runs that it finished."""

    @property
    def step_begun(self) -> str | None:
        """When the present step began, UTC, ISO 8601; None where the log lacks it."""
        step = " ".join(self.step.split())
        lines = (line.partition(" ") for line in reversed(self.log))
        return next((time for time, _, said in lines if step and said == step), None)


_COLUMNS = (
    "number, kind, parameters, actor, role, created, started, ended, state, step, "
    "done, total, pid, message, log, runs"
)


def list_jobs(
    store: Store,
    *,
    states: Sequence[JobState] = (),
    ended_from: str = "",
    draft: str = "",
    most: int = 100,
) -> list[JobRecord]:
    """Return the newest jobs first, of all states or of those named.

    Parameters
    ----------
    ended_from
        Only those that ended then or later, UTC, ISO 8601; empty for any.
    draft
        Only the checks of this draft; empty for any job.

    Raises
    ------
    StoreError
        The store cannot be read, or a row was changed by something else.
    """
    where: list[str] = []
    values: list[object] = []
    if states:
        where.append(f"state IN ({','.join('?' * len(states))})")
        values += states
    if ended_from:
        where.append("ended >= ?")
        values.append(ended_from)
    if draft:
        where.append(
            "kind = ? AND CASE WHEN json_valid(parameters) "
            "THEN json_extract(parameters, '$.draft') = ? END"
        )
        values += [JobKind.CHECK, draft]
    rows = store.read(
        f"SELECT {_COLUMNS} FROM jobs WHERE {' AND '.join(where) or '1'} "
        "ORDER BY number DESC LIMIT ?",
        [*values, most],
    )
    return [_record(store, row) for row in rows]


def find_job(store: Store, number: int) -> JobRecord:
    """Return one job.

    Raises
    ------
    DataError
        There is none of this number.
    """
    # A larger number than SQLite has is none of a job.
    known = 0 < number < 2**63
    query = f"SELECT {_COLUMNS} FROM jobs WHERE number = ?"
    rows = store.read(query, [number]) if known else []
    if not rows:
        raise DataError(f"there is no job {number}. `ranloop jobs` lists them.")
    return _record(store, rows[0])


def _record(store: Store, row: Sequence[Any]) -> JobRecord:
    number, kind, parameters, actor, role, created, started, ended, state, *rest = row
    step, done, total, pid, message, log, runs = rest
    try:
        return JobRecord(
            number=number,
            request=read_request(kind, json.loads(parameters)),
            actor=actor,
            role=role,
            created=created,
            started=started,
            ended=ended,
            state=JobState(state),
            step=step,
            done=done,
            total=total,
            pid=pid,
            message=message,
            log=tuple(log.splitlines()),
            runs=tuple(json.loads(runs)),
        )
    except (ValueError, TypeError, DataError) as error:
        raise StoreError(
            f"{store.path}: job {number} cannot be read; something other than ranloop "
            f"changed it. Remove it: sqlite3 {store.path.name} "
            f"'DELETE FROM jobs WHERE number = {number}'."
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class JobQueue:
    """The jobs of one workspace: whoever may start work starts, stops, resumes it.

    Rights are asked for by whoever calls.
    """

    workspace: WorkspacePaths
    store: Store
    now: Clock = utc_now

    def start(self, request: JobRequest, actor: str, role: str) -> JobRecord:
        """Put a job into the queue and see to it that somebody works on it.

        Raises
        ------
        ConflictError
            The same work waits or goes on; says as which job and who started it.
        """
        text = json.dumps(request.data, sort_keys=True, ensure_ascii=False)
        self.dispatch()
        try:
            with self.store.writing() as connection:
                _refuse_twice(connection, request, text)
                number = connection.execute(
                    "INSERT INTO jobs (kind, parameters, actor, role, created, state, "
                    "step, done, total, message, log, runs) "
                    "VALUES (?,?,?,?,?,'queued','',0,0,'',?,'[]')",
                    [
                        request.kind,
                        text,
                        actor,
                        role,
                        self._time(),
                        self._line(f"started by {actor}"),
                    ],
                ).lastrowid
        except UnicodeEncodeError as error:
            raise DataError("the parameters of a job must be text.") from error
        self.dispatch()
        return find_job(self.store, int(number or 0))

    def resume(self, number: int, actor: str, role: str) -> JobRecord:
        """Put a job that was stopped or failed into the queue again.

        It goes on where it was: what is answered already is not asked again.

        Raises
        ------
        ConflictError
            It is done, waits or goes on, or the same work does as another job.
        """
        self.dispatch()
        job = find_job(self.store, number)
        text = json.dumps(job.request.data, sort_keys=True, ensure_ascii=False)
        with self.store.writing() as connection:
            _refuse_twice(connection, job.request, text)
            changed = connection.execute(
                "UPDATE jobs SET state='queued', actor=?, role=?, started=NULL, "
                "ended=NULL, worker=NULL, pid=NULL, message='', step='', log=log||? "
                "WHERE number=? AND state IN ('stopped','failed')",
                [actor, role, self._line(f"resumed by {actor}"), number],
            ).rowcount
        if not changed:
            raise ConflictError(
                f"job {number} is {find_job(self.store, number).state} and cannot be "
                "resumed. Only one that was stopped or that failed can."
            )
        self.dispatch()
        return find_job(self.store, number)

    def stop(self, number: int, actor: str, *, at_once: bool = False) -> JobRecord:
        """Take a job out of the queue, or have its worker stop.

        Parameters
        ----------
        at_once
            Kill a worker that does not stop by itself; at most the requests in flight
            are lost.

        Raises
        ------
        ConflictError
            It has ended already, or its process belongs to another user of the machine.
        """
        self.dispatch()
        said = f"stopped by {actor}; it can be resumed"
        with self.store.writing() as connection:
            row = connection.execute(
                "SELECT state, pid, worker FROM jobs WHERE number=?", [number]
            ).fetchone()
            if row is not None and JobState(row[0]).open:
                connection.execute(
                    "UPDATE jobs SET message=?, log=log||? WHERE number=?",
                    [said, self._line(f"stop asked by {actor}"), number],
                )
                if row[0] == JobState.QUEUED:
                    _end(connection, number, JobState.STOPPED, self._time())
                elif row[1] and self._lives(row[2]):
                    # Its worker cannot end this job and take another one meanwhile:
                    # that takes another transaction.
                    self._signal(number, row[1], at_once)
        job = find_job(self.store, number)
        if row is None or not JobState(row[0]).open:
            raise ConflictError(
                f"job {number} is {job.state}: there is nothing to stop."
            )
        return job

    def _signal(self, number: int, pid: int, at_once: bool) -> None:
        try:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL if at_once else signal.SIGTERM)
        except PermissionError as error:
            raise ConflictError(
                f"job {number} goes on: its process {pid} belongs to another user of "
                "this machine. Ask them, or whoever administers it, to stop it."
            ) from error

    def dispatch(self) -> None:
        """Find jobs whose worker is gone, and start a worker for one that waits.

        Whoever looks at jobs calls it, so that nothing needs to run all the time.
        """
        rows = self.store.read(_OPEN_JOBS)
        workers = {row[-1] for row in rows if row[-1] is not None}
        if _next(rows) is None and all(map(self._lives, workers)):
            return
        with self.store.writing() as connection:
            self._settle(connection)
            number = _next(connection.execute(_OPEN_JOBS).fetchall())
            if number is not None:
                self._launch(connection, number)

    def _settle(self, connection: sqlite3.Connection) -> None:
        """Mark what nobody works on any more."""
        rows = connection.execute(
            "SELECT number, state, worker, message FROM jobs "
            "WHERE worker IS NOT NULL AND state IN ('queued','running')"
        ).fetchall()
        for number, state, worker, message in rows:
            if self._lives(worker):
                continue
            ran = state == JobState.RUNNING
            said = message or (
                "its process ended before the work did (killed, or the machine was "
                "restarted). Nothing that was answered is lost: resume it."
                if ran
                else "its process ended before the work began. Run `ranloop doctor`, "
                "then resume it."
            )
            connection.execute(
                "UPDATE jobs SET message=?, log=log||? WHERE number=?",
                [said, self._line("its process is gone"), number],
            )
            how = JobState.STOPPED if ran else JobState.FAILED
            _end(connection, number, how, self._time())
            self._lock_path(worker).unlink(missing_ok=True)

    def _launch(self, connection: sqlite3.Connection, number: int) -> None:
        """Start a worker that holds its lock from its first moment on."""
        worker = token_hex(8)
        handle = _take_lock(self._lock_path(worker))
        root = str(self.workspace.root)
        command = [sys.executable, "-m", "loop", "jobs", "work", worker, "-w", root]
        try:
            process = subprocess.Popen(
                [*command, "--lock", str(handle)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[handle],
                start_new_session=True,
                env=_with_package(os.environ),
            )
        except OSError as error:
            raise StoreError(
                f"cannot start a process for job {number}: {error.strerror}. The job "
                "waits; look again with `ranloop jobs` once there is room."
            ) from error
        finally:
            os.close(handle)
        # Else it would stay in the table of processes for as long as this one lives.
        Thread(target=process.wait, daemon=True).start()
        connection.execute(
            "UPDATE jobs SET worker=?, pid=? WHERE number=?",
            [worker, process.pid, number],
        )

    def claim(self, worker: str) -> JobRecord | None:
        """Take the next job for `worker`; None when nothing is left for it to do."""
        with self.store.writing() as connection:
            self._settle(connection)
            number = _next(connection.execute(_OPEN_JOBS).fetchall(), worker)
            if number is not None:
                connection.execute(
                    "UPDATE jobs SET state='running', started=?, worker=?, pid=?, "
                    "log=log||? WHERE number=?",
                    [self._time(), worker, os.getpid(), self._line("begun"), number],
                )
        return None if number is None else find_job(self.store, number)

    def note(
        self, number: int, step: str, done: int, total: int, line: str = ""
    ) -> None:
        """Say how far a job is; `line` goes into its log."""
        with self.store.writing() as connection:
            connection.execute(
                "UPDATE jobs SET step=?, done=?, total=?, log=log||? WHERE number=?",
                [step, done, total, self._line(line) if line else "", number],
            )

    def end(
        self, number: int, state: JobState, message: str, runs: Sequence[str]
    ) -> None:
        """Say how a job ended; who asked it to stop is kept where nothing else is."""
        with self.store.writing() as connection:
            ((log, before),) = connection.execute(
                "SELECT log, message FROM jobs WHERE number=?", [number]
            )
            # Asked to stop too late, it was not stopped.
            said = message or (before if state is JobState.STOPPED else "")
            lines = [*log.splitlines(), self._line(f"{state}. {said}").rstrip()]
            connection.execute(
                "UPDATE jobs SET message=?, log=?, runs=? WHERE number=?",
                [
                    said,
                    "\n".join(lines[-_LOG_LINES:]) + "\n",
                    json.dumps(list(runs)),
                    number,
                ],
            )
            _end(connection, number, state, self._time())

    def forget(self, worker: str) -> None:
        """Remove the lock file of a worker that has nothing more to do."""
        self._lock_path(worker).unlink(missing_ok=True)

    def _lives(self, worker: str) -> bool:
        """Return whether somebody holds the lock of `worker`."""
        try:
            handle = os.open(self._lock_path(worker), os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False

    def _lock_path(self, worker: str) -> Path:
        name = worker if worker.isalnum() else "unknown"
        return self.workspace.private / "locks" / f"worker-{name}.lock"

    def _time(self) -> str:
        return format_time(self.now())

    def _line(self, text: str) -> str:
        return f"{self._time()} {' '.join(text.split())}\n"


def _refuse_twice(
    connection: sqlite3.Connection, request: JobRequest, parameters: str
) -> None:
    row = connection.execute(
        "SELECT number, actor, state FROM jobs WHERE kind=? AND parameters=? "
        "AND state IN ('queued','running')",
        [request.kind, parameters],
    ).fetchone()
    if row is not None:
        raise ConflictError(
            f"this is job {row[0]} already ({row[2]}), started by {row[1]}. Wait for "
            f"it, or see how far it is: `ranloop jobs show {row[0]}`."
        )


_OPEN_JOBS = (
    "SELECT number, state, kind, parameters, worker FROM jobs "
    "WHERE state IN ('queued','running') ORDER BY state DESC, number"
)
"""Those that go on, then those that wait, in their order."""


def _next(rows: Sequence[Sequence[Any]], worker: str | None = None) -> int | None:
    """Return the first of `_OPEN_JOBS` that waits and whose engines nobody asks.

    An engine that an earlier job waits for is kept for it. One that another worker is
    on its way to is left to that one.
    """
    taken: set[str] = set()
    for number, state, kind, parameters, owner in rows:
        wanted = set(json.loads(parameters).get("engines") or [f"({kind})"])
        free = taken.isdisjoint(wanted)
        taken |= wanted
        waits = state == JobState.QUEUED and free
        if waits and (owner is None or owner == worker):
            return int(number)
    return None


def _end(
    connection: sqlite3.Connection, number: int, state: JobState, time: str
) -> None:
    connection.execute(
        "UPDATE jobs SET state=?, ended=?, worker=NULL, pid=NULL WHERE number=?",
        [state, time, number],
    )


def _take_lock(path: Path) -> int:
    """Return a handle that holds the lock file `path`; whoever inherits it holds it."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise write_error(path, error) from error
    fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def _with_package(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which a process finds this very package."""
    package = str(Path(__file__).parents[2])
    before = environment.get("PYTHONPATH")
    return {
        **environment,
        "PYTHONPATH": package if not before else f"{package}{os.pathsep}{before}",
    }
