"""One prompt's way: an attempt, what its failure means, and when to try again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random

from loop.core.clock import utc_now
from loop.core.errors import EngineError
from loop.core.nouns import counted
from loop.core.records import Completion, Prompt
from loop.engines.openai.client import Endpoint, EndpointClient, LinkError, Reply
from loop.engines.openai.completions import (
    TOO_LONG,
    RequestPrefix,
    UnreadableAnswerError,
    one_line,
    read_answer,
    read_error,
)
from loop.engines.openai.concurrency import ConcurrencyLimit
from loop.engines.openai.probe import SameServer
from loop.engines.openai.retrying import (
    PUSH_BACK,
    OutageLimit,
    RateLimits,
    backoff_s,
    is_transient,
    retry_after_s,
    send_until_ready,
)
from loop.engines.openai.streaming import StreamedAnswer


class Account:
    """Counts requests: each is answered, sent again, or the last of a failed prompt.

    ``requests == answered + sum(retried) + sum(failed)`` whenever none is under way.
    The probe's requests are not counted.
    """

    def __init__(self) -> None:
        self.requests = 0
        self.answered = 0
        self.retried: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self._prompt_tokens = 0
        self._completion_tokens = 0
        self._cached_tokens = 0

    def add_answer(self, completion: Completion) -> None:
        """Count one answer and the tokens the server says it took."""
        self.answered += 1
        self._prompt_tokens += completion.prompt_tokens or 0
        self._completion_tokens += completion.completion_tokens or 0
        self._cached_tokens += completion.cached_tokens or 0

    def settle(self) -> None:
        """Count what was under way when everything stopped."""
        ended = self.answered + self.retried.total() + self.failed.total()
        if self.requests > ended:
            self.failed["stopped"] += self.requests - ended

    def as_data(self) -> dict[str, object]:
        """Return the counts as JSON data."""
        return {
            "requests": self.requests,
            "answered": self.answered,
            "retried": dict(sorted(self.retried.items())),
            "failed": dict(sorted(self.failed.items())),
            "prompt_tokens": self._prompt_tokens,
            "completion_tokens": self._completion_tokens,
            "cached_tokens": self._cached_tokens,
        }


class FrameChecks:
    """Asks for one token after a frame without any case, once per frame."""

    def __init__(self, client: EndpointClient, endpoint: Endpoint, rng: Random) -> None:
        self._client = client
        self._endpoint = endpoint
        self._rng = rng
        self._checks: dict[int, asyncio.Task[bool]] = {}

    async def check(self, prefix: RequestPrefix) -> None:
        """Return if the frame is accepted, or if that cannot be found out now.

        Raises
        ------
        EngineError
            The server refuses the frame, so no case can be answered.
        """
        known = self._checks.get(id(prefix))
        if known is None:
            known = asyncio.create_task(self._ask(prefix))
            known.add_done_callback(_take_error)
            self._checks[id(prefix)] = known
        if not await asyncio.shield(known):
            self._checks.pop(id(prefix), None)

    async def close(self) -> None:
        """End the checks under way."""
        for task in self._checks.values():
            task.cancel()
        await asyncio.gather(*self._checks.values(), return_exceptions=True)
        self._checks.clear()

    async def _ask(self, prefix: RequestPrefix) -> bool:
        """Return whether the frame is known to be accepted."""
        try:
            reply = await send_until_ready(
                lambda: self._client.ask(prefix.blank()),
                self._endpoint.serving.patience_s,
                self._rng,
            )
        except LinkError:
            return False
        if is_transient(reply.status):
            return False
        if reply.status == 200:
            return True
        said = read_error(reply.body)
        words = one_line(said.words, secret=self._endpoint.key) or "nothing else"
        advice = "Correct the prompt, the schema or extra_body in .ranloop/config.yaml"
        if said.too_long:
            advice = "Shorten the prompt, or serve the model with a longer context"
        raise EngineError(
            f"{self._endpoint.url} refuses the prompt without any case in it (HTTP "
            f"{reply.status}); it says: {words}\n{advice}, then run again."
        )


def _take_error(task: asyncio.Task[bool]) -> None:
    """Look at a task's error, so that nobody having waited for it is no warning."""
    if not task.cancelled():
        task.exception()


class Reviver:
    """Calls a blocking `revive` in a worker thread, once for all who wait."""

    def __init__(self, revive: Callable[[], bool]) -> None:
        self._revive = revive
        self._lock = asyncio.Lock()
        self._ready_at = float("-inf")

    async def revived(self, sent: float) -> bool:
        """Return whether the server is ready again for a request `sent` in vain.

        Raises
        ------
        EngineError
            It is gone for good.
        """
        loop = asyncio.get_running_loop()
        async with self._lock:
            if sent < self._ready_at:
                return True
            if not await loop.run_in_executor(None, self._revive):
                return False
            self._ready_at = loop.time()
            return True


_REFUSED_CAP_S = 5.0
"""Longest wait after a connection that was not made: the server may be back soon."""

_FATAL = {
    401: "it no longer accepts the API key (HTTP 401)",
    402: "the account has no credit (HTTP 402)",
    403: "it forbids the request (HTTP 403)",
    404: "it no longer knows the model or the path (HTTP 404)",
}


Hear = Callable[[int, StreamedAnswer], None]
"""Takes the index of a prompt, and its answer once there is more of it."""


class PendingPrompt:
    """One prompt on its way to its completion."""

    __slots__ = (
        "attempts",
        "index",
        "prefix",
        "prompt",
        "refused",
        "revived",
        "sends",
        "streamed",
    )

    def __init__(self, index: int, prompt: Prompt, prefix: RequestPrefix) -> None:
        self.index = index
        self.prompt = prompt
        self.prefix = prefix
        self.attempts = 0
        self.sends = 0
        self.revived = False
        self.streamed = True
        """Whether its answer may be asked for while it is written."""

        self.refused = False
        """Whether the server refused to answer it so."""


class Sender:
    """Sends jobs once at a time and decides what follows.

    Parameters
    ----------
    revive
        See `ChatEngine`; None when nobody supervises the server.
    """

    def __init__(
        self,
        client: EndpointClient,
        *,
        account: Account,
        concurrency: ConcurrencyLimit,
        rng: Random,
        same: SameServer,
        revive: Callable[[], bool] | None = None,
    ) -> None:
        self._client = client
        self._endpoint = endpoint = client.endpoint
        self._account = account
        self._concurrency = concurrency
        self._rng = rng
        self._same = same
        self._limits = RateLimits()
        self._patience = OutageLimit(endpoint.url, endpoint.serving.patience_s)
        self._frames = FrameChecks(client, endpoint, rng)
        self._reviver = Reviver(revive) if revive else None
        self._clock = asyncio.get_running_loop().time
        self.resume_at = 0.0
        """Time before which nothing is sent, on the loop's clock."""

    async def send(
        self, job: PendingPrompt, hear: Hear | None = None
    ) -> Completion | float:
        """Return the job's completion, or after how many seconds to send it again.

        Parameters
        ----------
        hear
            Told what the server writes of the answer; None to ask for it whole. Where
            streaming goes wrong in any way, the next attempt asks for the whole.

        Raises
        ------
        EngineError
            The engine as a whole cannot go on.
        """
        self._account.requests += 1
        job.sends += 1
        job.attempts += 1
        sent = self._clock()
        if hear is not None and job.sends > 1:
            # What was heard of the attempt before is no part of the answer.
            hear(job.index, StreamedAnswer())
        try:
            if self._same.doubtful:
                await self._same.check()
            if hear is not None and job.streamed and self._client.streams:
                return await self._send_streamed(job, hear, sent)
            body = job.prefix.body(job.prompt.tail)
            reply = await self._client.ask(body, fresh=job.sends > 1)
        except LinkError as error:
            return await self._after_failure(job, error, sent)
        if job.refused and reply.status == 200:
            self._client.streams = False
        return await self._after_reply(job, reply, sent)

    async def _send_streamed(
        self, job: PendingPrompt, hear: Hear, sent: float
    ) -> Completion | float:
        """Send the job as `send` does, and hear what is written.

        Raises
        ------
        LinkError
            There is no whole response.
        """
        answer = StreamedAnswer()

        def take(piece: bytes) -> bool:
            over = answer.take(piece)
            hear(job.index, answer)
            return over

        body = job.prefix.body(job.prompt.tail, streamed=True)
        try:
            head = await self._client.ask(body, fresh=job.sends > 1, take=take)
            reply = answer.reply(head) if head.status == 200 else head
        except LinkError as error:
            job.streamed = not error.heard or error.slow
            raise
        except UnreadableAnswerError as error:
            job.streamed = False
            self._patience.heard()
            return self._again(job, str(error))
        job.streamed = reply.status in PUSH_BACK
        if not _refuses_streaming(reply):
            return await self._after_reply(job, reply, sent)
        # It may be the prompt that is refused: asked for the whole, it is again.
        self._patience.heard()
        self._account.retried[f"HTTP {reply.status}"] += 1
        job.refused = True
        job.attempts -= 1
        hear(job.index, StreamedAnswer())
        return await self.send(job)

    async def _after_reply(
        self, job: PendingPrompt, reply: Reply, sent: float
    ) -> Completion | float:
        self._patience.heard()
        if reply.status == 200:
            return self._after_answer(job, reply, sent)
        return await self._after_refusal(job, reply, sent)

    async def close(self) -> None:
        """End what is under way beside the jobs."""
        await self._frames.close()

    def _after_answer(
        self, job: PendingPrompt, reply: Reply, sent: float
    ) -> Completion | float:
        now = self._clock()
        self._concurrency.answered(now)
        self._limits.answered()
        try:
            completion = read_answer(reply.body, now - sent)
        except UnreadableAnswerError as error:
            return self._again(job, str(error))
        self._account.add_answer(completion)
        return completion

    async def _after_failure(
        self, job: PendingPrompt, error: LinkError, sent: float
    ) -> Completion | float:
        reason = str(error)
        if error.heard:
            self._patience.heard()
            if error.slow:
                self._concurrency.pushed_back(sent, self._clock())
            return self._again(job, reason)
        if await self._revived(job, sent):
            self._patience.heard()
            self._account.retried[reason] += 1
            return 0.0
        self._patience.failed(sent, self._clock(), reason)
        if not error.refused:
            return self._again(job, reason)
        # The server has not seen the prompt: only the patience counts these.
        self._same.doubtful = True
        job.attempts -= 1
        self._account.retried[reason] += 1
        return backoff_s(job.sends, self._rng, cap_s=_REFUSED_CAP_S)

    async def _revived(self, job: PendingPrompt, sent: float) -> bool:
        """Whether the server had died and is there again: the attempt does not count.

        A dying server answers with errors before it breaks its connections. Once a
        prompt: one that kills its server must not do so for ever.
        """
        if self._reviver is None or job.revived:
            return False
        job.revived = await self._reviver.revived(sent)
        job.attempts -= job.revived
        return job.revived

    async def _after_refusal(
        self, job: PendingPrompt, reply: Reply, sent: float
    ) -> Completion | float:
        status = reply.status
        reason = f"HTTP {status}"
        if status >= 500 and await self._revived(job, sent):
            self._account.retried[reason] += 1
            return 0.0
        if is_transient(status):
            wait = retry_after_s(reply.headers, utc_now())
            if status in PUSH_BACK:
                now = self._clock()
                self._concurrency.pushed_back(sent, now)
                if self._limits.concerns_all(status, reply.headers):
                    self.resume_at = max(self.resume_at, now + (wait or 0.0))
            return self._again(job, reason, wait or 0.0)
        if status in _FATAL or status < 400:
            self._account.failed[reason] += 1
            raise self._fatal(status)
        await self._frames.check(job.prefix)
        return self._refused(reason, reply)

    def _again(
        self, job: PendingPrompt, reason: str, least_s: float = 0.0
    ) -> Completion | float:
        """Return when to send again, or the failure when that was the last attempt."""
        if job.attempts <= self._endpoint.serving.retries:
            self._account.retried[reason] += 1
            return least_s + backoff_s(job.attempts, self._rng)
        self._account.failed[reason] += 1
        times = counted(job.attempts, "attempt")
        return Completion("", "error", f"{reason} after {times}")

    def _refused(self, reason: str, reply: Reply) -> Completion:
        """Return the failure of a case whose frame is accepted without it."""
        said = read_error(reply.body)
        self._account.failed[reason] += 1
        if said.too_long or reply.status == 413:
            return Completion("", "error", TOO_LONG)
        code = f" ({said.code})" if said.code else ""
        return Completion("", "error", f"the server refused it: {reason}{code}")

    def _fatal(self, status: int) -> EngineError:
        what = _FATAL.get(status)
        if what is None and not 300 <= status < 400:
            what = f"it answers with HTTP {status}, which is no answer"
        if what is None:
            return EngineError(
                f"{self._endpoint.url} answers with a redirect (HTTP {status}), and "
                "case text is not sent after redirects. Correct the URL: see where the "
                "server really is."
            )
        return EngineError(
            f"{self._endpoint.url} refuses to go on: {what}. Correct it and run the "
            "same command again to go on: what was answered is kept."
        )


def _refuses_streaming(reply: Reply) -> bool:
    """Whether a server may be refusing how it is asked, rather than what."""
    status = reply.status
    if status != 501 and (is_transient(status) or not 400 <= status < 500):
        return False
    return (
        status not in _FATAL and status != 413 and not read_error(reply.body).too_long
    )
