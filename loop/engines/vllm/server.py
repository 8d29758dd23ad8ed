"""Starts a vLLM server, waits until it is ready, restarts it once, and stops it."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

from loop.core.clock import utc_now
from loop.core.config import VllmSettings
from loop.core.digests import digest_json
from loop.core.errors import EngineError
from loop.engines.model_folders import find_snapshot, model_location
from loop.engines.vllm.adapters import digest_adapters
from loop.engines.vllm.environment import (
    Command,
    Installed,
    make_environment,
    read_facts,
    serve_command,
)
from loop.engines.vllm.running import GuardedProcess, Running, last_words

_LOOK_EVERY_S = 0.2
_ANSWER_WITHIN_S = 5.0
"""Longest wait for an answer to the question whether the server is ready, seconds."""

_DYING_S = 10.0
"""How long a server that no longer answers is given to end, seconds."""


def hold_port(port: int | None = None) -> socket.socket:
    """Return a socket that keeps `port` for us until it is closed; None for any.

    It is bound and never listens, so a server of ours can still be started on it,
    again and again, while nobody else is given it.

    Raises
    ------
    EngineError
        The port is in use, or may not be used.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        # Alone first: a port can be shared with a server that is willing to, and each
        # would then get some of the other's requests.
        if port is not None:
            with socket.socket() as alone:
                alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                alone.bind(("127.0.0.1", port))
        if hasattr(socket, "SO_REUSEPORT"):
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(("127.0.0.1", port or 0))
    except OSError as error:
        held.close()
        raise EngineError(
            f"port {port} of this machine cannot be used: {error.strerror}. Give "
            "another one with --port, or none to take a free one."
        ) from error
    return held


def is_healthy(url: str) -> bool:
    """Return whether the server with the base `url` says it can answer."""
    # A proxy of the environment has no business between us and this machine.
    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(
            url.removesuffix("/v1") + "/health", timeout=_ANSWER_WITHIN_S
        ) as reply:
            return bool(reply.status == 200)
    except (OSError, HTTPException):
        return False


class Server:
    """One vLLM server on the loopback address, for as long as we want it."""

    def __init__(
        self,
        make_command: Callable[[int], Command],
        log: Path,
        *,
        port: int | None = None,
        start_timeout_s: float = 900.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Hold a port; nothing is started yet.

        Parameters
        ----------
        make_command
            Returns the command of a server on the port it is given.
        start_timeout_s
            Longest wait until the server is ready, seconds.
        """
        self.log = log
        self.restarts = 0
        self._held = hold_port(port)
        self.port: int = self._held.getsockname()[1]
        self._command = make_command(self.port)
        self._timeout_s = start_timeout_s
        self._clock = clock
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._process: GuardedProcess | None = None

    @property
    def url(self) -> str:
        """Base of its requests."""
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        """Start the server and return once it is ready.

        Raises
        ------
        EngineError
            It ended, was not ready in time, or `stop` was called.
        """
        with self._lock:
            try:
                self._launch()
            except EngineError as error:
                words = last_words(self.log)
                if not words:
                    raise
                raise EngineError(f"{error} Its last words:\n{words}") from error

    def revive(self) -> bool:
        """Return whether a server that had died is ready again; see `ChatEngine`.

        False when it is alive: then a broken connection has another reason.

        Raises
        ------
        EngineError
            It has died a second time, or does not come back.
        """
        with self._lock:
            if not self._has_died():
                return False
            if self._stopping.is_set():
                raise EngineError("the vLLM server is stopped")
            if self.restarts:
                raise EngineError(
                    f"the vLLM server died again after a restart; see {self.log}. What "
                    "was answered is kept: run the same command again to go on."
                )
            self.restarts += 1
            self._launch()
            return True

    def is_running(self) -> bool:
        """Return whether the server's process runs, ready or not."""
        return self._process is not None and self._process.status() is None

    def interrupt(self) -> None:
        """Make whoever waits in `start` or `revive` give up; from any thread."""
        self._stopping.set()

    def stop(self) -> None:
        """Stop the server and free its port; the log is kept if it had died."""
        self.interrupt()
        with self._lock:
            died = self._process is None or self._process.status() is not None
            if self._process is not None:
                self._process.stop()
            self._held.close()
            if not died and not self.restarts:
                self.log.unlink(missing_ok=True)

    def _launch(self) -> None:
        """Start the process and wait until it is ready."""
        if self._process is not None:
            self._process.stop()
        self._process = GuardedProcess(self._command, self.log)
        until = self._clock() + self._timeout_s
        while not self._is_healthy():
            status = self._process.status()
            if status is not None:
                raise EngineError(
                    f"vLLM ended before it was ready (exit status {status}); its log "
                    f"is {self.log}. Correct what it says and run the command again."
                )
            if self._clock() > until:
                self._process.stop()
                raise EngineError(
                    f"vLLM was not ready after {self._timeout_s:g} s; its log is "
                    f"{self.log}. If it only needs longer, raise "
                    "engines.vllm.start_timeout_s in .ranloop/config.yaml."
                )
            if self._stopping.wait(_LOOK_EVERY_S):
                raise EngineError("the vLLM server is stopped")

    def _has_died(self) -> bool:
        """Return whether the process ended, once that is clear."""
        until = self._clock() + _DYING_S
        while self.is_running():
            if self._is_healthy() or self._clock() > until:
                return False
            if self._stopping.wait(_LOOK_EVERY_S):
                return True
        return True

    def _is_healthy(self) -> bool:
        return is_healthy(self.url) and self.is_running()


def new_log(folder: Path, what: str) -> Path:
    """Return the path of a log for one process, in the private `folder`."""
    stamp = utc_now().strftime("%Y%m%dT%H%M%S")
    return folder / f"{what}-{stamp}-{os.getpid()}.log"


def make_server(
    installed: Installed,
    model: str,
    settings: VllmSettings,
    folder: Path,
    *,
    port: int | None = None,
) -> Server:
    """Return a server of `model`, not yet started.

    Raises
    ------
    EngineError
        The port is in use, or a setting cannot be used.
    """

    def make_command(port: int) -> Command:
        return serve_command(installed, model, settings, port)

    make_command(0)
    return Server(
        make_command,
        new_log(folder, "server"),
        port=port,
        start_timeout_s=settings.start_timeout_s,
    )


def start_server(server: Server, model: str, settings: VllmSettings) -> None:
    """Start `server` and return once it is ready.

    Raises
    ------
    EngineError
        It does not start; says so where the model is not on this machine.
    """
    try:
        server.start()
    except EngineError as error:
        environment = make_environment(settings)
        offline = environment.get("HF_HUB_OFFLINE") not in (None, "", "0")
        there = os.path.exists(model_location(model)) or find_snapshot(
            model, settings.revision, environment
        )
        if there or not offline:
            raise
        raise EngineError(
            f"{error}\nThere is no {model} on this machine: no such folder, and not in "
            "the Hugging Face cache. Download it first, or let vLLM fetch it with "
            'engines: vllm: environment: {HF_HUB_OFFLINE: "0"} in '
            ".ranloop/config.yaml."
        ) from error


def describe(
    installed: Installed, model: str, settings: VllmSettings, url: str
) -> Running:
    """Return the record of a server of this process.

    Raises
    ------
    EngineError
        The folder of the model or of an adapter cannot be read.
    """
    served = read_facts(installed, model, settings, runner="server")
    return Running(
        pid=os.getpid(),
        model=model,
        url=url,
        adapters=digest_adapters(settings),
        served=served,
        digest=digest_json(served),
    )
