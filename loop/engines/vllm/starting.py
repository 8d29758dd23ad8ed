"""What the engine and `ranloop serve` do alike to get a server of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from loop.core.config import VllmSettings
from loop.core.digests import digest_json
from loop.core.errors import EngineError
from loop.engines.vllm.command import (
    Command,
    make_environment,
    model_location,
    serve_command,
)
from loop.engines.vllm.environment import Installed
from loop.engines.vllm.facts import digest_adapters, read_facts
from loop.engines.vllm.running import Running
from loop.engines.vllm.server import Server
from loop.engines.vllm.weights import find_snapshot


def new_log(folder: Path, what: str) -> Path:
    """Return the path of a log for one process, in the private `folder`."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
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


def check_adapter(adapter: str | None, settings: VllmSettings) -> None:
    """Check that the config names the folder of `adapter`.

    Raises
    ------
    EngineError
        It does not.
    """
    if adapter is not None and adapter not in settings.lora:
        known = ", ".join(sorted(settings.lora)) or "none"
        raise EngineError(
            f"no adapter {adapter!r} is configured (known: {known}). Name its folder "
            "under engines: vllm: lora: in .ranloop/config.yaml."
        )


def with_adapter(
    served: Mapping[str, object], adapters: Mapping[str, str], adapter: str | None
) -> dict[str, object]:
    """Return the facts of what is asked: of the model, and of the adapter if any."""
    if adapter is None:
        return dict(served)
    return {**served, "adapter": adapters[adapter]}
