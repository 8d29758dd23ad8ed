"""How connections are served: HTTP/1.1, what it says itself, and never for ever."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol


class TimedProtocol(H11Protocol):
    """HTTP/1.1 that waits for the other end so long and no longer.

    The server underneath waits for ever: for the headers of a request, for what remains
    of a body after it was answered, for somebody who does not read the answer.
    """

    patience_s = 30.0
    """Time for each of these, seconds; of an answer, for about 64 KiB at a time."""

    _waiting: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Go on to the next request."""
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        """Begin to wait for somebody who reads the answer."""
        super().pause_writing()
        self._unread = self.loop.call_later(self.patience_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on with the answer."""
        super().resume_writing()
        self._stop_waiting_for_reader()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        self._stop_waiting()
        self._stop_waiting_for_reader()

    def _watch(self) -> None:
        """Begin to wait, or stop, as the connection stands now."""
        theirs, ours = self.conn.their_state, self.conn.our_state
        unread = theirs is h11.SEND_BODY and ours is h11.DONE
        if theirs is not h11.IDLE and not unread:
            self._stop_waiting()
        elif self._waiting is None and not self.transport.is_closing():
            self._waiting = self.loop.call_later(self.patience_s, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _stop_waiting_for_reader(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _give_up(self) -> None:
        self._waiting = None
        self.transport.close()


def server_config(
    app: ASGIApp,
    *,
    certificate: Path | None = None,
    key: Path | None = None,
    **options: Any,
) -> uvicorn.Config:
    """Return how `app` is served; `options` are further ones of uvicorn's.

    Who asks is what the connection says: the gate knows whether a proxy is trusted.
    """
    settings: dict[str, Any] = {
        "http": TimedProtocol,
        "ws": "none",
        "proxy_headers": False,
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": 3,
        "ssl_certfile": certificate,
        "ssl_keyfile": key,
    }
    return uvicorn.Config(app, **(settings | options))
