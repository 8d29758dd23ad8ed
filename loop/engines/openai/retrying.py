"""Which failures are worth another attempt, when, and for how long altogether."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import Random

from loop.core.clock import utc_now
from loop.core.errors import EngineError
from loop.engines.base import ignore_progress
from loop.engines.openai.client import LinkError, Reply

_TRANSIENT = frozenset({408, 409, 425, 429})

PUSH_BACK = frozenset({429, 503})
"""Statuses by which a server asks for fewer requests."""

_BASE_S, _CAP_S = 0.5, 30.0

LONGEST_WAIT_S = 900.0
"""A server that asks to wait longer ends the run, which can be continued, seconds."""


def is_transient(status: int) -> bool:
    """Whether a request that got this HTTP status may succeed when sent again."""
    return status in _TRANSIENT or status >= 500


def backoff_s(attempt: int, rng: Random, *, cap_s: float = _CAP_S) -> float:
    """Seconds to wait after failed attempt number `attempt`, which counts from 1.

    Full jitter: uniform between 0 and a ceiling that doubles from half a second up
    to `cap_s`, so that clients that failed together do not come back together.

    References
    ----------
    Brooker M. Exponential backoff and jitter. AWS Architecture Blog, 2015.
    """
    return rng.uniform(0, min(cap_s, _BASE_S * 2.0 ** min(attempt - 1, 30)))


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds the server asks to wait; None when it does not say.

    A date is compared with the response's own date where there is one: the clocks of
    two machines differ.

    Raises
    ------
    EngineError
        The wait is longer than `LONGEST_WAIT_S`.
    """
    wait = _parse_wait(headers, now)
    if wait is not None and wait > LONGEST_WAIT_S:
        raise EngineError(
            f"the server asks to wait {wait:,.0f} seconds (Retry-After). Run the same "
            "command again then to go on: what was answered is kept."
        )
    return wait


def _parse_wait(headers: Mapping[str, str], now: datetime) -> float | None:
    said = headers.get("Retry-After", "").strip()
    if not said:
        return None
    try:
        seconds = float(said)
    except ValueError:
        until = _date(said)
        if until is None:
            return None
        seconds = (until - (_date(headers.get("Date", "")) or now)).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _date(said: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(said)
    except (ValueError, TypeError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


_MOST_FAILURES = 3
"""Connection failures in a row after which there is no server."""


async def send_until_ready(
    request: Callable[[], Awaitable[Reply]],
    patience_s: float,
    rng: Random,
    tell: Callable[[str], None] = ignore_progress,
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
            wait += retry_after_s(reply.headers, utc_now()) or 0.0
            if clock() + wait > until:
                return reply
            if not told:
                tell(f"the server is busy (HTTP {reply.status}): waiting for it")
                told = True
        await asyncio.sleep(wait)


_REFUSED_IN_A_ROW = 8
"""Refusals without an answer in between that mean everybody, whatever is said."""

_NOTHING_LEFT = re.compile(r"(?:^|[;,]\s*)r=0(?:$|[;,\s])")


class RateLimits:
    """Tells a limit on everything from a refusal of one request.

    A refusal with ``Retry-After`` speaks of the request that got it. It speaks of all
    when the server is unavailable (503), when it says that nothing remains of a limit,
    or when so many in a row were refused, with no answer in between, that the limit
    must be on all of them.

    References
    ----------
    RFC 9110, sections 10.2.3 and 15.6.4; RFC 6585, section 4; the header fields
    ``RateLimit`` of the IETF draft, ``RateLimit-Remaining`` and
    ``x-ratelimit-remaining-*``.
    """

    def __init__(self) -> None:
        self._in_a_row = 0

    def answered(self) -> None:
        """Learn that a request was answered."""
        self._in_a_row = 0

    def concerns_all(self, status: int, headers: Mapping[str, str]) -> bool:
        """Return whether nobody should ask until the time that a refusal names."""
        self._in_a_row += 1
        return (
            status == 503
            or self._in_a_row >= _REFUSED_IN_A_ROW
            or any(_is_used_up(*field) for field in headers.items())
        )


def _is_used_up(name: str, value: str) -> bool:
    """Return whether a header says that nothing remains of a limit."""
    name = name.lower()
    if name == "ratelimit":
        return _NOTHING_LEFT.search(value) is not None
    return "ratelimit" in name and "remaining" in name and value.strip() == "0"


class OutageLimit:
    """Ends a run against a server that gives no HTTP response at all.

    Times are seconds of one monotonic clock, given by the caller.
    """

    def __init__(self, url: str, patience_s: float) -> None:
        self._url = url
        self._patience_s = patience_s
        self._silent_since: float | None = None

    def heard(self) -> None:
        """Learn that the server is there."""
        self._silent_since = None

    def failed(self, sent: float, now: float, reason: str) -> None:
        """Learn that a connection failed.

        Raises
        ------
        EngineError
            Nothing but that has happened for too long.
        """
        if self._silent_since is None:
            self._silent_since = sent
        silent = now - self._silent_since
        if silent >= self._patience_s:
            raise EngineError(
                f"{self._url} has not answered for {silent:.0f} s ({reason}). See "
                "whether the server still runs, then run the same command again to go "
                "on: what was answered is kept."
            )
