"""The engine: one model on one OpenAI-compatible server, asked many things at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import Future, wait
from copy import copy
from dataclasses import replace
from itertools import islice
from queue import SimpleQueue
from random import Random
from threading import Thread
from types import TracebackType
from typing import Any, TypeVar

import uvloop

from loop.core.errors import EngineError
from loop.core.records import Completion, Prompt, PromptFrame
from loop.engines.base import Settings, register, split_name
from loop.engines.openai.client import Endpoint, EndpointClient, read_key
from loop.engines.openai.completions import RequestPrefix, make_prefix
from loop.engines.openai.concurrency import ConcurrencyLimit
from loop.engines.openai.probe import Probe, Probed, SameServer
from loop.engines.openai.sending import Account, PendingPrompt, Sender
from loop.engines.openai.streaming import StreamedAnswer

Arrivals = list[tuple[int, Completion]]
Tell = Callable[[int, str], None]

_GATHER_S = 0.03
"""How long completions are gathered before they are handed over, seconds.

Each turn between the two threads holds up both, so there should be few; at full speed
the prompts drawn ahead still last longer than this.
"""


class WorkerPool:
    """Works in the event loop's thread on jobs that another thread puts in.

    `jobs` is filled from outside, followed by a call of `wake` in the loop's thread;
    `arrived` is emptied from outside. An exception in `arrived` is the last thing
    there. A number in it is that of a prompt of whose answer there is more to read, in
    `written`, unless it was read meanwhile.

    Parameters
    ----------
    streamed
        Whether to ask for answers while they are written.
    """

    def __init__(
        self,
        sender: Sender,
        concurrency: ConcurrencyLimit,
        deadline_s: float | None,
        *,
        streamed: bool = False,
    ) -> None:
        self.jobs: deque[PendingPrompt] = deque()
        self.arrived: SimpleQueue[Arrivals | int | BaseException] = SimpleQueue()
        self.written: dict[int, StreamedAnswer] = {}
        self._hear = self._more if streamed else None
        self._sender = sender
        self._concurrency = concurrency
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
        """Put as many to work as there are jobs and the limit allows."""
        if self._stopped:
            return
        free = self._concurrency.limit - len(self._workers)
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
        """Take jobs until there are none, or more workers than the limit allows."""
        concurrency, jobs, send, hear, clock = (
            self._concurrency,
            self.jobs,
            self._sender.send,
            self._hear,
            self._loop.time,
        )
        while len(self._workers) <= concurrency.limit:
            wait = self._sender.resume_at - clock()
            if wait > 0:
                await asyncio.sleep(wait)
                continue
            if not jobs:
                concurrency.starved()
                self._flush()
                return
            job = jobs.popleft()
            result = await send(job, hear)
            if isinstance(result, float):
                self._loop.call_later(result, self._put_back, job)
            else:
                self._deliver(job.index, result)
            if len(self._workers) < concurrency.limit and jobs:
                self.wake()

    def _put_back(self, job: PendingPrompt) -> None:
        self.jobs.appendleft(job)
        self.wake()

    def _more(self, index: int, answer: StreamedAnswer) -> None:
        """Say that more is written; whoever reads slowly reads the newest only."""
        self.written[index] = answer
        self.arrived.put(index)

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


T = TypeVar("T")

_AHEAD = 512
"""Prompts drawn beyond those under way, so that a busy run's thread starves nobody."""

_LOOK_S = 1.0
"""Seconds after which somebody who waits looks whether there is still a loop."""

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
            while not wait((future,), _LOOK_S).done:
                # A loop that another thread ends may drop what was handed to it.
                if not self._thread.is_alive():
                    raise _closed()
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
    """One stream of prompts: drawn and given back here, worked on in the pool."""

    def __init__(
        self,
        thread: LoopThread,
        pool: WorkerPool,
        concurrency: ConcurrencyLimit,
        settle: Callable[[], None],
    ) -> None:
        self._thread = thread
        self._pool = pool
        self._concurrency = concurrency
        self._settle = settle
        self._open = 0
        self._stopped = False

    def drain(
        self,
        prompts: Iterable[Prompt],
        make_job: Callable[[int, Prompt], PendingPrompt],
        tell: Tell | None = None,
    ) -> Iterator[tuple[int, Completion]]:
        """Yield completions as they arrive, drawing prompts as there is room.

        Parameters
        ----------
        tell
            Told what is written of an answer meanwhile; see `Streaming`.

        Raises
        ------
        EngineError
            The engine as a whole failed, or was closed meanwhile.
        """
        jobs = (make_job(index, prompt) for index, prompt in enumerate(prompts))
        more = True
        while more or self._open:
            room = self._concurrency.limit + _AHEAD - self._open if more else 0
            if room > 0:
                more = self._draw(jobs, min(room, _CHUNK))
            if not more or room <= _CHUNK or not self._pool.arrived.empty():
                yield from self._take(tell)
        if self._stopped:
            raise _closed()

    def stop(self) -> None:
        """End the work on this stream."""
        if self._stopped:
            return
        self._stopped = True
        self._thread.call(self._pool.stop())
        self._settle()
        self._pool.arrived.put(_closed())

    def _draw(self, jobs: Iterator[PendingPrompt], most: int) -> bool:
        """Hand `most` prompts over; return whether there may be more."""
        if self._stopped:
            return False
        pool, drawn = self._pool, 0
        for job in islice(jobs, most):
            pool.jobs.append(job)
            drawn += 1
            self._open += 1
            if drawn == 1 and pool.idle:
                self._wake()
        if drawn:
            self._wake()
        return drawn == most

    def _take(self, tell: Tell | None) -> Iterator[tuple[int, Completion]]:
        """Yield what has arrived, or tell what is written; wait if that is nothing."""
        if not self._open:
            return
        batch = self._pool.arrived.get()
        if isinstance(batch, BaseException):
            raise batch
        if isinstance(batch, int):
            answer = self._pool.written.pop(batch, None)
            if tell is not None and answer is not None:
                tell(batch, answer.text)
            return
        self._open -= len(batch)
        yield from batch

    def _wake(self) -> None:
        self._thread.loop.call_soon_threadsafe(self._pool.wake)


def _closed() -> EngineError:
    return EngineError(
        "the engine was closed in mid-run. Run the same command again to go on: what "
        "was answered is kept."
    )


class ChatEngine:
    """Asks a server's chat completions; enter it before anything else.

    Parameters
    ----------
    scheme
        The engine's name before the colon.
    served
        What identifies a server that was started for this run, such as the digest of
        its model: it then stands in the identity in place of the URL and of what the
        server tells of itself.
    revive
        Called in a worker thread, one call at a time, after a connection that broke or
        was refused. True: the server is ready again, and the request is sent once more
        without counting as an attempt. False: nobody supervises the server. Raises
        `EngineError` when it is gone for good.
    rng
        Source of jitter and of the probe's secrets; None for a fresh one.
    """

    def __init__(
        self,
        scheme: str,
        endpoint: Endpoint,
        settings: Settings,
        *,
        served: Mapping[str, object] | None = None,
        revive: Callable[[], bool] | None = None,
        rng: Random | None = None,
    ) -> None:
        self._scheme = scheme
        self._endpoint = endpoint
        self._settings = settings
        self._served = served
        self._revive = revive
        self._rng = rng or Random()
        self._concurrency = ConcurrencyLimit(endpoint.serving)
        self._account = Account()
        self._client = EndpointClient(endpoint, settings.config.hosts)
        self._thread: LoopThread | None = None
        self._probed: Probed | None = None
        self._exchange: Exchange | None = None
        self._prefixes: dict[int, RequestPrefix] = {}

    def __enter__(self) -> ChatEngine:
        """Connect and probe.

        Raises
        ------
        EngineError
            The server cannot be used; says what to do.
        """
        self._thread = LoopThread()
        try:
            self._probed = self._thread.call(self._open())
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def identity(self) -> Mapping[str, object]:
        """Return what can change an answer: the model, the server and extra fields."""
        probed = self._opened()
        server = {"url": self._endpoint.url, "server": dict(probed.server)}
        if self._served is not None:
            server = {"server": dict(self._served)}
        return {
            "engine": self._scheme,
            "model": self._endpoint.model,
            **server,
            "revision": self._endpoint.serving.revision,
            "constrained": probed.constrained,
            "extra_body": dict(self._endpoint.extra_body),
        }

    def complete(self, prompts: Iterable[Prompt]) -> Iterator[tuple[int, Completion]]:
        """Yield ``(index, completion)`` as they arrive; see `Engine.complete`."""
        return self._exchanged(prompts, None)

    def stream(
        self, prompts: Iterable[Prompt], tell: Tell
    ) -> Iterator[tuple[int, Completion]]:
        """Yield as `complete` does, and tell what is written; see `Streaming`.

        A server that does not stream tells nothing until its answer is whole.
        """
        return self._exchanged(prompts, tell)

    def _exchanged(
        self, prompts: Iterable[Prompt], tell: Tell | None
    ) -> Iterator[tuple[int, Completion]]:
        probed = self._opened()
        exchange = self._begin(probed, streamed=tell is not None)

        def make_job(index: int, prompt: Prompt) -> PendingPrompt:
            return PendingPrompt(
                index, prompt, self._prefix(prompt.frame, probed.constrained)
            )

        try:
            yield from exchange.drain(prompts, make_job, tell)
        finally:
            exchange.stop()

    @property
    def retry_unreadable(self) -> int:
        """How often to ask a prompt again whose answer cannot be read."""
        return self._endpoint.serving.retry_unreadable

    def redraw(self, draw: int) -> ChatEngine:
        """Return this engine, as open as it is, with `draw` added to its seed."""
        other = copy(self)
        seed = self._settings.seed + draw
        other._settings = replace(self._settings, seed=seed)
        other._prefixes = {}
        other._exchange = None
        return other

    def account(self) -> Mapping[str, object]:
        """Return the counts of all requests so far, the probe's not among them."""
        concurrency = {
            "now": self._concurrency.limit,
            "highest": self._concurrency.highest,
        }
        return {**self._account.as_data(), "concurrency": concurrency}

    async def _open(self) -> Probed:
        await self._client.open()
        return await Probe(
            self._client, self._endpoint, self._settings, self._rng
        ).run()

    def _opened(self) -> Probed:
        if self._probed is None:
            raise ValueError("the engine is not open: use it in a `with` block")
        return self._probed

    def _begin(self, probed: Probed, *, streamed: bool) -> Exchange:
        """Begin a new stream; one that was left unfinished ends."""
        if self._exchange is not None:
            self._exchange.stop()
        thread = self._thread
        if thread is None:
            raise EngineError("the engine was closed.")

        async def gather() -> WorkerPool:
            # Between two streams nobody looks: another draw may come hours later.
            asked = self._account.requests > 0
            same = SameServer(self._client, probed.server, doubtful=asked)
            sender = Sender(
                self._client,
                account=self._account,
                concurrency=self._concurrency,
                rng=self._rng,
                same=same,
                revive=self._revive,
            )
            return WorkerPool(
                sender,
                self._concurrency,
                self._endpoint.serving.deadline_s,
                streamed=streamed,
            )

        pool = thread.call(gather())
        self._exchange = Exchange(thread, pool, self._concurrency, self._account.settle)
        return self._exchange

    def _prefix(self, frame: PromptFrame, constrained: bool) -> RequestPrefix:
        """Return the prefix of a frame, kept as long as the frame is."""
        known = self._prefixes.get(id(frame))
        if known is None or known.frame is not frame:
            known = make_prefix(
                frame, self._endpoint, self._settings, constrained=constrained
            )
            self._prefixes[id(frame)] = known
        return known

    def _close(self) -> None:
        """End everything that is open; calling it again does nothing."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        try:
            if self._exchange is not None:
                self._exchange.stop()
            thread.call(self._client.close())
        finally:
            self._exchange = self._probed = None
            thread.close()


@register("openai")
def _make(rest: str, settings: Settings) -> ChatEngine:
    name = split_name(rest)
    if name.adapter is not None:
        raise EngineError(
            f"openai: knows no adapters, so #{name.adapter} means nothing. Name the "
            "adapter as the server lists it, in place of the model."
        )
    serving = settings.config.engines.openai
    endpoint = Endpoint(
        url=name.url or serving.url,
        model=name.model,
        serving=serving,
        key=read_key(serving),
        extra_body=serving.extra_body,
    )
    return ChatEngine("openai", endpoint, settings)
