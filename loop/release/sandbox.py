"""Render an untrusted prompt in a subprocess with limits of time and memory.

The sandbox keeps a template from reaching anything; it does not keep two nested loops
from running for a year, or one expression from taking all memory.
"""

from __future__ import annotations

import base64
import json
import pickle
import resource
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from loop.core.errors import DataError
from loop.prompts.version import PromptVersion
from loop.release.rendering import render_files

SECONDS = 20
"""Longest that rendering may take; an honest prompt takes a tenth of one."""

MEMORY = 2**30
"""Most bytes that rendering may take."""


def render_sandboxed(version: PromptVersion) -> Mapping[str, bytes]:
    """Return what `render_files` returns, or refuse what takes too much.

    Raises
    ------
    DataError
        The prompt cannot be rendered, or not within `SECONDS` and `MEMORY`.
    """
    same = replace(version, parent=None, author="", time="", why="", verdicts=())
    return _render(same)


@lru_cache(maxsize=8)
def _render(version: PromptVersion) -> Mapping[str, bytes]:
    # -P: a module that lies in the current folder is never imported.
    command = [sys.executable, "-P", "-m", "loop.release.sandbox"]
    too_much = DataError(
        f"{version.ref} does not render within {SECONDS} s and {MEMORY // 2**20} MiB. "
        "Do not use it; ask whoever released it."
    )
    try:
        done = subprocess.run(
            command,
            input=pickle.dumps(version),
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise too_much from error
    if done.returncode:
        raise too_much
    answer = json.loads(done.stdout)
    if "problem" in answer:
        raise DataError(answer["problem"])
    return {name: base64.b64decode(text) for name, text in answer.items()}


def _answer(version: PromptVersion) -> dict[str, str]:
    """Return the rendered files for the process that asked, or what is wrong."""
    try:
        files = render_files(version)
    except DataError as error:
        return {"problem": str(error)}
    return {name: base64.b64encode(raw).decode() for name, raw in files.items()}


if __name__ == "__main__":
    asked = pickle.load(sys.stdin.buffer)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    sys.stdout.write(json.dumps(_answer(asked)))
