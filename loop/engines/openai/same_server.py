"""Whether a server that was out of sight is still the one that was probed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from loop.core.errors import EngineError
from loop.engines.openai.client import EndpointClient, RefusedError
from loop.engines.openai.fingerprint import find_model, read_server
from loop.engines.openai.retrying import is_transient


class SameServer:
    """Looks again at what a server tells of itself, once nobody can be sure of it.

    While a run waits for a server that is gone, another model may be started in its
    place. Its answers would be stored as those of the first.

    Parameters
    ----------
    known
        What the probe learnt.
    doubtful
        Whether the server was out of sight already.
    """

    def __init__(
        self, wire: EndpointClient, known: Mapping[str, object], *, doubtful: bool
    ) -> None:
        self.doubtful = doubtful
        self._wire = wire
        self._known = known
        self._lock = asyncio.Lock()

    async def check(self) -> None:
        """Return once the server is known to be the same.

        Raises
        ------
        LinkError
            It is not there, or not ready.
        EngineError
            It is another one, or serves another model.
        """
        async with self._lock:
            if not self.doubtful:
                return
            endpoint = self._wire.endpoint
            reply = await self._wire.get(endpoint.url + "/models")
            if is_transient(reply.status):
                raise RefusedError("server not ready")
            listed = find_model(reply, endpoint).facts
            told = {**listed, **await read_server(self._wire, endpoint)}
            # What it does not tell now, as while it loads, says nothing.
            changed = [
                name
                for name in told.keys() & self._known.keys()
                if told[name] != self._known[name]
            ]
            if changed:
                raise EngineError(
                    f"{endpoint.url} is no longer the server that was probed: it "
                    f"reports another {', '.join(sorted(changed))}. Run the same "
                    "command again to ask it as it is now; what was answered is kept "
                    "under what it was."
                )
            self.doubtful = False
