"""The requests under way: workers that take jobs until there are none."""

from __future__ import annotations

import asyncio
from collections import deque
from queue import SimpleQueue

from loop.core.errors import EngineError
from loop.core.records import Completion
from loop.engines.openai.concurrency import ConcurrencyLimit
from loop.engines.openai.sending import PendingPrompt, Sender

Arrivals = list[tuple[int, Completion]]

_GATHER_S = 0.03
"""How long completions are gathered before they are handed over, seconds.

Each turn between the two threads holds up both, so there should be few; at full speed
the prompts drawn ahead still last longer than this.
"""


class WorkerPool:
    """Works in the event loop's thread on jobs that another thread puts in.

    `jobs` is filled from outside, followed by a call of `wake` in the loop's thread;
    `arrived` is emptied from outside. An exception in `arrived` is the last thing
    there.
    """

    def __init__(
        self, sender: Sender, pace: ConcurrencyLimit, deadline_s: float | None
    ) -> None:
        self.jobs: deque[PendingPrompt] = deque()
        self.arrived: SimpleQueue[Arrivals | BaseException] = SimpleQueue()
        self._sender = sender
        self._pace = pace
        self._loop = asyncio.get_running_loop()
        self._workers: set[asyncio.Task[None]] = set()
        self._batch: Arrivals = []
        self._flushing: asyncio.TimerHandle | None = None
        self._stopped = False
        self._late: asyncio.TimerHandle | None = None
        if deadline_s is not None:
            self._late = self._loop.call_later(deadline_s, self._end, deadline_s)

    @property
    def idle(self) -> bool:
        """Whether nobody takes jobs without being woken; any thread may ask."""
        return not self._workers

    def wake(self) -> None:
        """Put as many to work as there are jobs and the pace allows."""
        if self._stopped:
            return
        free = self._pace.limit - len(self._workers)
        for _ in range(min(free, len(self.jobs))):
            worker = self._loop.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._left)

    async def stop(self) -> None:
        """End all work; what has arrived until now stays to be taken."""
        self._halt()
        await asyncio.gather(*self._workers, return_exceptions=True)
        await self._sender.close()
        self._flush()

    async def _work(self) -> None:
        """Take jobs until there are none, or more workers than the pace allows."""
        pace, jobs, send, clock = (
            self._pace,
            self.jobs,
            self._sender.send,
            self._loop.time,
        )
        while len(self._workers) <= pace.limit:
            wait = self._sender.resume_at - clock()
            if wait > 0:
                await asyncio.sleep(wait)
                continue
            if not jobs:
                pace.starved()
                self._flush()
                return
            job = jobs.popleft()
            result = await send(job)
            if isinstance(result, float):
                self._loop.call_later(result, self._put_back, job)
            else:
                self._deliver(job.index, result)
            if len(self._workers) < pace.limit and jobs:
                self.wake()

    def _put_back(self, job: PendingPrompt) -> None:
        self.jobs.appendleft(job)
        self.wake()

    def _deliver(self, index: int, completion: Completion) -> None:
        self._batch.append((index, completion))
        if self._flushing is None:
            enough = len(self.jobs) > len(self._workers)
            wait = _GATHER_S if enough else 0
            self._flushing = self._loop.call_later(wait, self._flush)

    def _flush(self) -> None:
        """Hand over what has arrived; whoever runs out of jobs does not wait for it."""
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        if self._batch:
            self.arrived.put(self._batch)
            self._batch = []

    def _left(self, worker: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        error = None if worker.cancelled() else worker.exception()
        if error is not None:
            self._fail(error)
        elif self.jobs:
            self.wake()

    def _fail(self, error: BaseException) -> None:
        """Hand over what arrived, then the error that ends everything."""
        if not self._stopped:
            self._halt()
            self._flush()
            self.arrived.put(error)

    def _end(self, deadline_s: float) -> None:
        self._fail(
            EngineError(
                f"the deadline of {deadline_s:g} s is over. Run the same command again "
                "to go on: what was answered is kept."
            )
        )

    def _halt(self) -> None:
        self._stopped = True
        if self._late is not None:
            self._late.cancel()
        for worker in self._workers:
            worker.cancel()
