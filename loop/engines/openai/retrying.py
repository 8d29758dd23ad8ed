"""Which failures are worth another attempt, when, and for how long altogether."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import Random

from loop.core.errors import EngineError

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
