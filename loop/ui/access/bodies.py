"""Request bodies that arrive in time, or are given up."""

from __future__ import annotations

import asyncio
import time
from enum import Enum
from typing import NamedTuple

from starlette.types import Message, Receive


class BodyLimits(NamedTuple):
    """How slowly a body may arrive."""

    whole_s: float = 30.0
    """Time for all of it, seconds; of an upload, time besides that for its bytes."""

    upload_rate: float = 32 * 1024
    """Slowest upload on the average, bytes per second."""


BODY_LIMITS = BodyLimits()


class Arrival(Enum):
    """How a body came in."""

    UNDERWAY = "underway"
    WHOLE = "whole"
    LATE = "late"
    CUT = "cut"
    """The other end closed the connection."""


class Body:
    """The body of one request: `receive` stands in for the server's own.

    Parameters
    ----------
    whole_s
        Time for all of it, seconds; None for a request that has none.
    rate
        Bytes per second that prolong the time; 0 when it is for all of them.
    """

    def __init__(
        self, receive: Receive, whole_s: float | None = None, rate: float = 0.0
    ) -> None:
        self.arrival = Arrival.WHOLE if whole_s is None else Arrival.UNDERWAY
        self._receive = receive
        self._rate = rate
        self._end = time.monotonic() + (whole_s or 0.0)
        self._read: bytes | None = None

    async def receive(self) -> Message:
        """Return the next message: of what was read, all of it once more.

        When it is late, the message says that nobody is there any more.
        """
        if self._read is not None:
            body, self._read = self._read, None
            return {"type": "http.request", "body": body, "more_body": False}
        if self.arrival is Arrival.WHOLE:
            return await self._receive()
        if self.arrival is not Arrival.UNDERWAY:
            return {"type": "http.disconnect"}
        try:
            async with asyncio.timeout(self._end - time.monotonic()):
                message = await self._receive()
        except TimeoutError:
            self.arrival = Arrival.LATE
            return {"type": "http.disconnect"}
        if message["type"] == "http.disconnect":
            self.arrival = Arrival.CUT
        elif not message.get("more_body", False):
            self.arrival = Arrival.WHOLE
        if self._rate:
            self._end += len(message.get("body", b"")) / self._rate
        return message

    async def read(self) -> bytes:
        """Return all of it; what has come of it when it is late or cut."""
        parts = []
        while self.arrival is Arrival.UNDERWAY:
            parts.append((await self.receive()).get("body", b""))
        self._read = b"".join(parts)
        return self._read
