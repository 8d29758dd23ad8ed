"""The bridge between the run's thread and the thread that holds the connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from itertools import islice
from threading import Thread
from typing import Any, TypeVar

import uvloop

from loop.core.errors import EngineError
from loop.core.records import Completion, Prompt
from loop.engines.openai.crew import Crew
from loop.engines.openai.pace import Pace
from loop.engines.openai.sending import PendingPrompt

T = TypeVar("T")

_AHEAD = 512
"""Prompts drawn beyond those under way, so that a busy run's thread starves nobody."""

_CHUNK = 64
"""Prompts drawn before looking for arrivals again."""


class LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._started: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = Thread(target=self._run, name="ranloop-chat", daemon=True)
        self._thread.start()
        self.loop = self._started.result()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what `work` returns in the loop; an interrupt here cancels it there.

        Raises
        ------
        BaseException
            What `work` raised.
        """
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        finally:
            future.cancel()

    def close(self) -> None:
        """Cancel what still runs and end the thread."""
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self._end.set)
            self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._wait())

    async def _wait(self) -> None:
        self._end = asyncio.Event()
        self._started.set_result(asyncio.get_running_loop())
        await self._end.wait()


class Exchange:
    """One stream of prompts: drawn and answered here, worked on by a crew there."""

    def __init__(
        self, thread: LoopThread, crew: Crew, pace: Pace, settle: Callable[[], None]
    ) -> None:
        self._thread = thread
        self._crew = crew
        self._pace = pace
        self._settle = settle
        self._open = 0
        self._stopped = False

    def drain(
        self,
        prompts: Iterable[Prompt],
        make_job: Callable[[int, Prompt], PendingPrompt],
    ) -> Iterator[tuple[int, Completion]]:
        """Yield completions as they arrive, drawing prompts as there is room.

        Raises
        ------
        EngineError
            The engine as a whole failed, or was closed meanwhile.
        """
        jobs = (make_job(index, prompt) for index, prompt in enumerate(prompts))
        more = True
        while more or self._open:
            room = self._pace.limit + _AHEAD - self._open if more else 0
            if room > 0:
                more = self._draw(jobs, min(room, _CHUNK))
            if not more or room <= _CHUNK or not self._crew.arrived.empty():
                yield from self._take()
        if self._stopped:
            raise _closed()

    def stop(self) -> None:
        """End the work on this stream."""
        if self._stopped:
            return
        self._stopped = True
        self._thread.call(self._crew.stop())
        self._settle()
        self._crew.arrived.put(_closed())

    def _draw(self, jobs: Iterator[PendingPrompt], most: int) -> bool:
        """Hand `most` prompts over; return whether there may be more."""
        if self._stopped:
            return False
        crew, drawn = self._crew, 0
        for job in islice(jobs, most):
            crew.jobs.append(job)
            drawn += 1
            self._open += 1
            if drawn == 1 and crew.idle:
                self._wake()
        if drawn:
            self._wake()
        return drawn == most

    def _take(self) -> Iterator[tuple[int, Completion]]:
        """Yield what has arrived; wait if that is nothing."""
        if not self._open:
            return
        batch = self._crew.arrived.get()
        if isinstance(batch, BaseException):
            raise batch
        self._open -= len(batch)
        yield from batch

    def _wake(self) -> None:
        self._thread.loop.call_soon_threadsafe(self._crew.wake)


def _closed() -> EngineError:
    return EngineError(
        "the engine was closed in mid-run. Run the same command again to go on: what "
        "was answered is kept."
    )
