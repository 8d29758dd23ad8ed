"""How vLLM is started: its arguments, and the environment it gets."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from loop.core.config import VllmSettings
from loop.core.errors import EngineError
from loop.engines.vllm.environment import Installed

_STRUCTURED = json.dumps({"backend": "xgrammar", "disable_any_whitespace": True})
"""White space between tokens can go on until the budget is spent."""

_QUIET: Mapping[str, str] = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_DO_NOT_TRACK": "1",
    "VLLM_HOST_IP": "127.0.0.1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",
    "PYTHONSAFEPATH": "1",
    "PYTHONUNBUFFERED": "1",
}
"""Nothing leaves this machine, no request stands in a log, and a folder that happens to
be called ``vllm`` where we were started is not taken for it."""

_OURS = frozenset(
    {
        "--host",
        "--port",
        "--uds",
        "--served-model-name",
        "--model",
        "--api-key",
        "--hf-token",
    }
)
"""Arguments that the way we reach the server depends on, or that hold secrets."""

_WITHHELD = ("VLLM_API_KEY", "RANLOOP_API_KEY", "OPENAI_API_KEY")
"""Keys of other servers; with the first one set ours would refuse us."""


class Command(NamedTuple):
    """A process to be started."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    """All of it, not an addition."""


def serve_command(
    installed: Installed, model: str, settings: VllmSettings, port: int
) -> Command:
    """Return the command of a server on this machine's loopback address."""
    where = model_location(model)
    if installed.distribution == "vllm":
        start = ["vllm.entrypoints.cli.main", "serve", where]
    else:
        # Its `vllm` command looks up a distribution called vllm and fails.
        start = ["vllm.entrypoints.openai.api_server", "--model", where]
    address = ("--host", "127.0.0.1", "--port", str(port))
    return Command(
        (installed.python, "-m", *start, *address, *_model_arguments(model, settings)),
        make_environment(settings),
    )


def batch_command(
    installed: Installed,
    model: str,
    settings: VllmSettings,
    files: tuple[Path, Path],
) -> Command:
    """Return the command that answers the JSONL `files` (requests, answers)."""
    requests, answers = files
    if installed.distribution == "vllm":
        start = ["vllm.entrypoints.cli.main", "run-batch"]
    else:
        start = ["vllm.entrypoints.openai.run_batch"]
    work = ("-i", str(requests), "-o", str(answers), "--model", model_location(model))
    return Command(
        (installed.python, "-m", *start, *work, *_model_arguments(model, settings)),
        make_environment(settings),
    )


def make_environment(
    settings: VllmSettings, environ: Mapping[str, str] = os.environ
) -> Mapping[str, str]:
    """Return the environment of the server: ours, kept off the network.

    What the config sets comes last, so that its owner has the last word.
    """
    withheld = {*_WITHHELD, settings.key_env}
    kept = {name: value for name, value in environ.items() if name not in withheld}
    invariant = {"VLLM_BATCH_INVARIANT": "1"} if settings.batch_invariant else {}
    return {**kept, **_QUIET, **invariant, **settings.environment}


def model_location(model: str) -> str:
    """Return the absolute path of `model` if it is one, else its name as it is.

    Raises
    ------
    EngineError
        vLLM would take it for an option.
    """
    if model.startswith("-"):
        raise EngineError(
            f"{model} cannot be a model: vLLM takes what begins with a dash for an "
            f"option. Give a folder of that name as ./{model}."
        )
    # Unlike those of `Path`, these two take any text for what it is: a name.
    path = os.path.expanduser(model)
    return os.path.realpath(path) if os.path.exists(path) else model


def _model_arguments(model: str, settings: VllmSettings) -> tuple[str, ...]:
    """Return what server and batch runner take alike."""
    return (
        "--served-model-name",
        model,
        "--structured-outputs-config",
        _STRUCTURED,
        "--no-enable-log-requests",
        "--enable-prompt-tokens-details",
        *_valued(settings),
        *_switched(settings),
        *_adapters(settings),
        *checked_extra(settings.extra_args),
    )


def checked_extra(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return further arguments of vLLM as they are, if they leave ours alone.

    Raises
    ------
    EngineError
        One of them is set by ranloop.
    """
    for argument in arguments:
        name = argument.partition("=")[0].replace("_", "-")
        if name in _OURS:
            raise EngineError(
                f"{name} may not stand among the further arguments of vLLM: ranloop "
                "sets it, or does without. Take it out; `ranloop serve` has --port."
            )
    return arguments


def _valued(settings: VllmSettings) -> Iterator[str]:
    """Yield the arguments that take a value."""
    thinking = settings.enable_thinking
    template = None if thinking is None else json.dumps({"enable_thinking": thinking})
    values = {
        "--default-chat-template-kwargs": template,
        "--seed": settings.seed,
        "--revision": settings.revision,
        "--tensor-parallel-size": settings.tensor_parallel_size,
        "--data-parallel-size": settings.data_parallel_size,
        "--quantization": settings.quantization,
        "--dtype": settings.dtype,
        "--max-model-len": settings.max_model_len,
        "--gpu-memory-utilization": settings.gpu_memory_utilization,
    }
    for name, value in values.items():
        if value is not None:
            yield from (name, str(value))


def _switched(settings: VllmSettings) -> Iterator[str]:
    """Yield the arguments that are on, off, or left to vLLM."""
    switches = {
        "enable-prefix-caching": settings.enable_prefix_caching,
        "enforce-eager": settings.enforce_eager,
    }
    for name, wanted in switches.items():
        if wanted is not None:
            yield f"--{name}" if wanted else f"--no-{name}"


def _adapters(settings: VllmSettings) -> Iterator[str]:
    """Yield the arguments that load LoRA adapters."""
    if settings.lora:
        yield from ("--enable-lora", "--lora-modules")
        for name, folder in settings.lora.items():
            yield f"{name}={model_location(folder)}"
