"""Finds out whether a server refuses a prompt for its case or for everything else."""

from __future__ import annotations

import asyncio
from random import Random

from loop.core.errors import EngineError
from loop.engines.openai.answers import one_line, read_error
from loop.engines.openai.bodies import RequestPrefix
from loop.engines.openai.endpoint import Endpoint
from loop.engines.openai.patient import ask_patiently
from loop.engines.openai.retrying import is_transient
from loop.engines.openai.wire import EndpointClient, LinkError


class FrameChecks:
    """Asks for one token after a frame without any case, once per frame."""

    def __init__(self, wire: EndpointClient, endpoint: Endpoint, rng: Random) -> None:
        self._wire = wire
        self._endpoint = endpoint
        self._rng = rng
        self._checks: dict[int, asyncio.Task[bool]] = {}

    async def check(self, envelope: RequestPrefix) -> None:
        """Return if the frame is accepted, or if that cannot be found out now.

        Raises
        ------
        EngineError
            The server refuses the frame, so no case can be answered.
        """
        known = self._checks.get(id(envelope))
        if known is None:
            known = asyncio.create_task(self._ask(envelope))
            known.add_done_callback(_take_error)
            self._checks[id(envelope)] = known
        if not await asyncio.shield(known):
            self._checks.pop(id(envelope), None)

    async def close(self) -> None:
        """End the checks under way."""
        for task in self._checks.values():
            task.cancel()
        await asyncio.gather(*self._checks.values(), return_exceptions=True)
        self._checks.clear()

    async def _ask(self, envelope: RequestPrefix) -> bool:
        """Return whether the frame is known to be accepted."""
        try:
            reply = await ask_patiently(
                lambda: self._wire.ask(envelope.blank()),
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
