"""The verb ``serve``: keep a vLLM server running for the other commands."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from loop.cli.console import (
    JsonOption,
    WorkspaceOption,
    note,
    open_workspace,
    print_json,
    say,
)
from loop.core.config import VllmSettings, read_config, with_changes
from loop.core.paths import WorkspacePaths
from loop.engines.vllm.environment import find_vllm
from loop.engines.vllm.running import announced, serve_folder
from loop.engines.vllm.server import Server, describe, make_server, start_server

_LOOK_EVERY_S = 1.0


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("serve")(serve)


def serve(
    model: Annotated[str, typer.Argument(help="Folder of a model, or its name.")],
    extra: Annotated[
        list[str] | None, typer.Argument(help="After --: more arguments of vLLM.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=1, max=65535, help="Port; default: a free one."),
    ] = None,
    python: Annotated[
        str | None, typer.Option("--python", help="Python interpreter with vLLM.")
    ] = None,
    tensor_parallel_size: Annotated[
        int | None, typer.Option("--tensor-parallel-size", help="GPUs for one model.")
    ] = None,
    data_parallel_size: Annotated[
        int | None,
        typer.Option("--data-parallel-size", help="Copies of the model to run."),
    ] = None,
    quantization: Annotated[
        str | None, typer.Option("--quantization", help="How weights are quantised.")
    ] = None,
    dtype: Annotated[
        str | None, typer.Option("--dtype", help="Number format, e.g. bfloat16.")
    ] = None,
    max_model_len: Annotated[
        int | None,
        typer.Option("--max-model-len", help="Maximum tokens, prompt and answer."),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Server's seed.")] = None,
    lora: Annotated[
        list[str] | None,
        typer.Option(
            "--lora", metavar="NAME=PATH", help="LoRA adapter; may be repeated."
        ),
    ] = None,
    batch_invariant: Annotated[
        bool | None,
        typer.Option(
            "--batch-invariant/--no-batch-invariant",
            help="Answers that do not depend on other requests; slower.",
        ),
    ] = None,
    prefix_caching: Annotated[
        bool | None,
        typer.Option(
            "--prefix-caching/--no-prefix-caching", help="Cache common prompt prefixes."
        ),
    ] = None,
    enable_thinking: Annotated[
        bool | None,
        typer.Option(
            "--enable-thinking/--no-enable-thinking", help="For the chat template."
        ),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start a vLLM server and keep it running until Ctrl-C.

    The engine `vllm:MODEL` in the same workspace finds it. Options override the
    settings under engines: vllm: in .ranloop/config.yaml. If the server dies, it is
    restarted once.
    """
    changes = {
        "python": python,
        "tensor_parallel_size": tensor_parallel_size,
        "data_parallel_size": data_parallel_size,
        "quantization": quantization,
        "dtype": dtype,
        "max_model_len": max_model_len,
        "seed": seed,
        "lora": _read_adapters(lora or []),
        "batch_invariant": batch_invariant,
        "enable_prefix_caching": prefix_caching,
        "enable_thinking": enable_thinking,
    }
    place = open_workspace(workspace)
    settings = _change(place, changes, tuple(extra or ()))
    # A request to end is what this verb waits for: both kinds end it the same way.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with suppress(KeyboardInterrupt):
            _serve(place, model, settings, port=port, as_json=as_json)
    finally:
        signal.signal(signal.SIGTERM, before)


def _read_adapters(given: list[str]) -> dict[str, str] | None:
    """Return name and folder of each ``NAME=PATH``; None where there are none."""
    pairs = [one.partition("=") for one in given]
    for name, _, folder in pairs:
        if not name or not folder:
            raise typer.BadParameter("give --lora as NAME=PATH")
    return {name: folder for name, _, folder in pairs} or None


def _change(
    workspace: WorkspacePaths, changes: Mapping[str, Any], extra: tuple[str, ...]
) -> VllmSettings:
    """Return the config's settings with the options that were given."""
    configured = read_config(workspace).engines.vllm
    given = {name: value for name, value in changes.items() if value is not None}
    if extra:
        given["extra_args"] = (*configured.extra_args, *extra)
    try:
        return with_changes(configured, given)
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        option = ".".join(map(str, wrong["loc"])).replace("_", "-")
        raise typer.BadParameter(f"--{option}: {wrong['msg']}") from error


def _serve(
    workspace: WorkspacePaths,
    model: str,
    settings: VllmSettings,
    *,
    port: int | None,
    as_json: bool,
) -> None:
    """Start the server, announce it, and stay until interrupted."""
    folder = serve_folder(workspace.private)
    installed = find_vllm(settings.python, config=workspace.config)
    server = make_server(installed, model, settings, folder, port=port)
    try:
        running = describe(installed, model, settings, server.url)
        note(f"starting vLLM {installed.version} with {model}; its log is {server.log}")
        start_server(server, model, settings)
        with announced(folder, running):
            _show(model, list(running.adapters), server, as_json=as_json)
            _watch(server)
    finally:
        server.stop()


def _show(model: str, adapters: list[str], server: Server, *, as_json: bool) -> None:
    """Say how the server is asked."""
    engines = [f"vllm:{model}", *(f"vllm:{model}#{name}" for name in adapters)]
    if as_json:
        print_json({"engines": engines, "url": server.url, "log": str(server.log)})
        return
    say(f"serving {model}")
    for engine in engines:
        say(f"  engine  {engine}")
    say(f"  url     {server.url}")
    say(f"  log     {server.log}")
    say("Stop it with Ctrl-C.")


def _watch(server: Server) -> None:
    """Start the server again once if it dies; does not return.

    Raises
    ------
    EngineError
        It died a second time.
    """
    while True:
        time.sleep(_LOOK_EVERY_S)
        if not server.is_running() and server.revive():
            note("the server had died and was started again")
