"""A single request sent until the server is ready for it, outside a run's account."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from random import Random

from loop.engines.base import tell_nobody
from loop.engines.openai.retrying import backoff_s, is_transient, retry_after_s
from loop.engines.openai.wire import LinkError, Reply

_MOST_FAILURES = 3
"""Connection failures in a row after which there is no server."""


async def ask_patiently(
    request: Callable[[], Awaitable[Reply]],
    patience_s: float,
    rng: Random,
    tell: Callable[[str], None] = tell_nobody,
) -> Reply:
    """Return the response to `request`, sent again while the server is busy.

    The last response is returned, busy or not, once `patience_s` seconds are over;
    `tell` is told once that somebody waits.

    Raises
    ------
    LinkError
        The connection failed three times in a row, or the time was over.
    """
    clock = asyncio.get_running_loop().time
    until = clock() + patience_s
    attempt = failures = 0
    told = False
    while True:
        attempt += 1
        wait = backoff_s(attempt, rng, cap_s=5.0)
        try:
            reply = await request()
        except LinkError as error:
            failures += 1
            if error.slow or failures >= _MOST_FAILURES or clock() + wait > until:
                raise
        else:
            failures = 0
            if not is_transient(reply.status):
                return reply
            wait += retry_after_s(reply.headers, datetime.now(UTC)) or 0.0
            if clock() + wait > until:
                return reply
            if not told:
                tell(f"the server is busy (HTTP {reply.status}): waiting for it")
                told = True
        await asyncio.sleep(wait)
