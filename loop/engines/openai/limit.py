"""One time limit for all requests: looked at now and then, not armed for each."""

from __future__ import annotations

import asyncio

_LOOKS = 20
"""How often the clock is looked at within one limit."""


class TimeLimit:
    """Cancels tasks that work on one request for too long.

    A timer for each request would cost a tenth of the request itself. A request ends
    at most a twentieth later than the limit says.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._began: dict[asyncio.Task[object], float] = {}
        self._late: set[asyncio.Task[object]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> asyncio.Task[object]:
        """Begin a request in the current task, and return the task."""
        task = asyncio.current_task()
        if task is None:
            raise ValueError("a request needs a task of its own")
        loop = task.get_loop()
        self._began[task] = loop.time()
        if self._timer is None:
            self._look_later(loop)
        return task

    def end(self, task: asyncio.Task[object]) -> None:
        """End the request of `task`."""
        self._began.pop(task, None)
        self._late.discard(task)

    def ended(self, task: asyncio.Task[object]) -> bool:
        """Whether only the limit has cancelled `task`; it then goes on."""
        return task in self._late and task.uncancel() == 0

    def close(self) -> None:
        """Stop looking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_later(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(self._limit_s / _LOOKS, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel what is too late; look again while there is anything."""
        latest = loop.time() - self._limit_s
        for task, began in self._began.items():
            if began <= latest and task not in self._late:
                self._late.add(task)
                task.cancel()
        if self._began:
            self._look_later(loop)
        else:
            self._timer = None
