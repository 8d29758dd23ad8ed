"""The engine ``vllm``: asks a vLLM server, and starts one where none is running."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType

from loop.core.errors import EngineError
from loop.core.records import Completion, Prompt
from loop.engines.base import Engine, ModelName, Settings, register, split_name
from loop.engines.openai.client import Endpoint, checked_url, read_key
from loop.engines.openai.engine import ChatEngine
from loop.engines.vllm.adapters import check_adapter, with_adapter
from loop.engines.vllm.batch import BatchEngine
from loop.engines.vllm.environment import find_vllm, request_extras
from loop.engines.vllm.running import Running, find_running, serve_folder
from loop.engines.vllm.server import (
    Server,
    describe,
    is_healthy,
    make_server,
    start_server,
)

_LOOK_EVERY_S = 0.3


class VllmEngine:
    """One model on a vLLM server: the one named, a running one, or one of its own."""

    def __init__(self, name: ModelName, settings: Settings) -> None:
        self._name = name
        self._settings = settings
        self._serving = settings.config.engines.vllm
        self._open = ExitStack()
        self._chat: ChatEngine | None = None
        self._server: Server | None = None
        self._closing = threading.Event()

    def __enter__(self) -> VllmEngine:
        """Find or start the server, and probe it.

        Raises
        ------
        EngineError
            There is no vLLM, it does not start, or it cannot be used.
        """
        with ExitStack() as stack:
            self._chat = stack.enter_context(self._find(stack))
            self._open = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The chat engine's threads may wait for a restart that nobody wants.
        self._closing.set()
        if self._server is not None:
            self._server.interrupt()
        self._open.close()

    def identity(self) -> Mapping[str, object]:
        """Return what can change an answer: the model, its server, the asking."""
        return self._opened().identity()

    def complete(self, prompts: Iterable[Prompt]) -> Iterator[tuple[int, Completion]]:
        """Yield ``(index, completion)`` as they arrive; see `Engine.complete`."""
        return self._opened().complete(prompts)

    def stream(
        self, prompts: Iterable[Prompt], tell: Callable[[int, str], None]
    ) -> Iterator[tuple[int, Completion]]:
        """Yield as `complete` does, and tell what is written; see `Streaming`."""
        return self._opened().stream(prompts, tell)

    @property
    def retry_unreadable(self) -> int:
        """How often to ask a prompt again whose answer cannot be read."""
        return self._serving.retry_unreadable

    def redraw(self, draw: int) -> Engine:
        """Return this engine, as open as it is, with `draw` added to its seed."""
        return self._opened().redraw(draw)

    def account(self) -> Mapping[str, object]:
        """Return the counts of all requests so far, and vLLM's restarts."""
        restarts = 0 if self._server is None else self._server.restarts
        return {**self._opened().account(), "restarts": restarts}

    def _opened(self) -> ChatEngine:
        if self._chat is None:
            raise ValueError("the engine is not open: use it in a `with` block")
        return self._chat

    def _find(self, stack: ExitStack) -> ChatEngine:
        """Return the engine that asks the right server, not yet entered."""
        if self._name.url is not None:
            return self._make_chat(self._name.url)
        folder = serve_folder(self._settings.private)
        running = find_running(folder, self._name.model, self._name.adapter)
        if running is None:
            return self._start(folder, stack)
        return self._use(running, folder)

    def _use(self, running: Running, folder: Path) -> ChatEngine:
        self._settings.tell(
            f"asking the vLLM server at {running.url} that `ranloop serve` keeps "
            f"running (process {running.pid})"
        )
        revive = partial(self._await_other, running, folder)
        return self._make_chat(running.url, running=running, revive=revive)

    def _start(self, folder: Path, stack: ExitStack) -> ChatEngine:
        """Start a server that is stopped when `stack` is closed."""
        model, serving, tell = self._name.model, self._serving, self._settings.tell
        check_adapter(self._name.adapter, serving)
        installed = find_vllm(serving.python, config=folder.parent / "config.yaml")
        server = make_server(installed, model, serving, folder)
        stack.callback(server.stop)
        running = describe(installed, model, serving, server.url)
        tell(
            f"starting vLLM {installed.version} with {model}; this can take minutes. "
            f"Its log is {server.log}"
        )
        start_server(server, model, serving)
        self._server = server
        return self._make_chat(server.url, running=running, revive=self._revive)

    def _await_other(self, running: Running, folder: Path) -> bool:
        """Return whether a server that `ranloop serve` keeps has been started again.

        Raises
        ------
        EngineError
            `ranloop serve` has ended.
        """
        if is_healthy(running.url):
            return False
        until = time.monotonic() + self._serving.start_timeout_s
        while time.monotonic() < until and not self._closing.wait(_LOOK_EVERY_S):
            if find_running(folder, running.model, self._name.adapter) is None:
                raise EngineError(
                    f"the vLLM server at {running.url} is gone: `ranloop serve` has "
                    "ended. What was answered is kept: run the same command again to "
                    "go on."
                )
            if is_healthy(running.url):
                return True
        return False

    def _revive(self) -> bool:
        """Restart our server if it died, and say so."""
        if self._server is None or not self._server.revive():
            return False
        self._settings.tell("the vLLM server had died and was started again")
        return True

    def _make_chat(
        self,
        url: str,
        *,
        running: Running | None = None,
        revive: Callable[[], bool] | None = None,
    ) -> ChatEngine:
        adapter = self._name.adapter
        served = None
        if running is not None:
            served = with_adapter(running.served, running.adapters, adapter)
        endpoint = Endpoint(
            url=url,
            model=adapter or self._name.model,
            serving=self._serving,
            key=read_key(self._serving),
            extra_body=request_extras(self._serving),
        )
        return ChatEngine(
            "vllm", endpoint, self._settings, served=served, revive=revive
        )


@register("vllm")
def _make(rest: str, settings: Settings) -> Engine:
    name = split_name(rest)
    if name.url is not None:
        # Before a run prints the name: a URL may hold a password.
        checked_url(name.url)
    if not settings.batch:
        return VllmEngine(name, settings)
    if name.url is not None:
        raise EngineError(
            "the batch runner starts vLLM itself and asks no server. Leave the URL out "
            "of the engine's name, or leave out --batch."
        )
    return BatchEngine(name, settings)
