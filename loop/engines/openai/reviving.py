"""Asks a server's supervisor, one request at a time, whether it is there again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


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
