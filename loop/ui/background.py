"""Work in a thread of the workbench, which ends with it; other work is a job."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Lock, Thread
from time import sleep
from typing import Any, TypeVar

from loop.core.errors import ConflictError, LoopError
from loop.run.aside import Heard
from loop.ui.error_log import log_bug

_LOG = logging.getLogger("loop.ui")

Row = TypeVar("Row")

_CALLS_HEARD = 4
"""Calls whose answers are kept while they are written."""

_AGAIN_S = 0.2
"""Seconds after which work that was stopped and goes on is stopped again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    """How far one piece of work is."""

    what: str
    """What is being done just now, in words."""

    done: int = 0
    total: int = 0
    """Items of the present step; 0 when it is not known."""

    finished: bool = False
    result: Any = None
    """What it returned, once finished without an error."""

    error: str = ""
    """Why it failed, for the person who started it."""

    by: str = ""
    """Who started it."""

    heard: tuple[Heard, ...] = field(default=(), repr=False)
    """What a server is writing, the calls that were heard last. Private."""


Work = Callable[["Job"], Any]


@dataclass(slots=True)
class Job:
    """One piece of work, seen from inside it and from outside."""

    progress: JobProgress
    lock: Lock = field(default_factory=Lock)
    on_stop: Callable[[], None] | None = None
    """Ends the work from another thread; None until there is something to end."""

    stopped: bool = False

    def step(self, what: str, total: int = 0) -> None:
        """Say what is done next."""
        self._set(what=what, done=0, total=total)

    def watch(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield `rows`, counting how many have passed."""
        for done, row in enumerate(rows, 1):
            yield row
            self._set(done=done)

    def hear(self, heard: Heard) -> None:
        """Keep what a server has written so far."""
        others = [one for one in self.progress.heard if one[:3] != heard[:3]]
        self._set(heard=(*others, heard)[-_CALLS_HEARD:])

    def finish(self, result: Any) -> None:
        """Leave the result."""
        self._set(result=result, finished=True)

    def fail(self, error: str) -> None:
        """Leave the reason why there is no result."""
        self._set(error=error, finished=True)

    def _set(self, **changes: Any) -> None:
        with self.lock:
            self.progress = replace(self.progress, **changes)


class Jobs:
    """The work under way and the last results, by key."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._jobs: dict[str, Job] = {}

    def start(self, key: str, by: str, work: Work) -> None:
        """Start `work` in a thread of its own.

        Raises
        ------
        ConflictError
            Work with this key is under way.
        """
        with self._lock:
            before = self._jobs.get(key)
            if before is not None and not before.progress.finished:
                raise ConflictError(
                    f"this is under way already, started by {before.progress.by}. "
                    "Wait for it to finish."
                )
            job = Job(JobProgress(what="starting", by=by))
            self._jobs[key] = job
        Thread(target=_run, args=(job, work), name=f"job {key}", daemon=True).start()

    def progress_of(self, key: str) -> JobProgress | None:
        """Return how far the work with this key is; None when there is none."""
        with self._lock:
            job = self._jobs.get(key)
        return job.progress if job else None

    def stop(self, prefix: str) -> None:
        """Stop the work under way whose key begins so; nobody waits until it has."""
        with self._lock:
            found = [job for key, job in self._jobs.items() if key.startswith(prefix)]
        for job in found:
            if not job.progress.finished and not job.stopped:
                job.stopped = True
                Thread(target=_stop, args=(job,), name="stop", daemon=True).start()

    def forget(self, key: str) -> None:
        """Drop the result of finished work."""
        with self._lock:
            job = self._jobs.get(key)
            if job is not None and job.progress.finished:
                del self._jobs[key]


def _stop(job: Job) -> None:
    """Stop work until it has ended: what it waits for may just begin."""
    while not job.progress.finished:
        if job.on_stop is not None:
            with suppress(LoopError, RuntimeError):
                job.on_stop()
        sleep(_AGAIN_S)


def _run(job: Job, work: Work) -> None:
    """Do the work and leave its result, or the reason why there is none."""
    error = "The job ended unexpectedly; see the server log."
    try:
        result = work(job)
        error = ""
        job.finish(result)
    except LoopError as refused:
        error = str(refused)
    except Exception as bug:  # noqa: BLE001  a thread would print it with its values
        if not job.stopped:
            log_bug(_LOG, bug)
    finally:
        if error:
            job.fail("Stopped." if job.stopped else error)
