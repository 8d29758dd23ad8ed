"""What a release ships of its prompt: its files, its messages, its answer schemas.

An untrusted prompt is rendered in a subprocess with limits of time and memory. The
sandbox of the templates keeps one from reaching anything; it does not keep two nested
loops from running for a year, or one expression from taking all memory.
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
from loop.prompts.catalog import read_folder
from loop.prompts.outputs.base import get_contract
from loop.prompts.render import Call, plan_prompts
from loop.prompts.version import CallPlan, PromptVersion, with_masked_shots
from loop.release.folder import PROMPT, SCHEMA, unpacked


def read_prompt(files: Mapping[str, bytes]) -> PromptVersion:
    """Return the prompt version under ``prompt/`` of a release's files.

    Raises
    ------
    DataError
        A file is missing, malformed, or the digest in ``prompt.yaml`` is not its own.
    """
    with unpacked(files, *(f"prompt/{name}" for name in PROMPT)) as folder:
        try:
            version, header = read_folder(folder / "prompt")
        except DataError as error:
            raise DataError(str(error).replace(f"{folder}/", "")) from error
    if header.digest != version.digest:
        raise DataError(
            f"prompt/prompt.yaml names the digest {header.digest[:12]}, its files have "
            f"{version.digest[:12]}. Take the release anew from whoever made it."
        )
    return version


def render_files(version: PromptVersion) -> dict[str, bytes]:
    """Return ``schema.json`` and the files of ``rendered/``, name to bytes.

    Each input is written as ``{{ name }}`` where a case's text goes. Signs with their
    digests stand for the texts of shots: no text of a cohort is in a release.

    Raises
    ------
    DataError
        A template or the contract cannot be used.
    """
    plan = plan_prompts(
        with_masked_shots(version), get_contract(version.contract).schema
    )
    files: dict[str, bytes] = {}
    for call in plan.calls:
        alone = version.plan is CallPlan.JOINT
        stem = "rendered/" if alone else f"rendered/{call.frame.call}."
        system, user = call.frame.messages
        files[f"{stem}system.txt"] = system.content.encode()
        files[f"{stem}user.txt"] = (user.content + _after(call)).encode()
    schemas = {call.frame.call: call.frame.schema for call in plan.calls}
    files[SCHEMA] = (json.dumps(schemas, ensure_ascii=False, indent=2) + "\n").encode()
    return files


def _after(call: Call) -> str:
    """Return what follows the frame, with the inputs as places."""
    return "".join(
        f"{{{{ {name}{' | numbered' if name in call.numbered else ''} }}}}{after}"
        for name, after in call.pieces
    )


SECONDS = 20
"""Most processor time that rendering may take; an honest prompt takes a tenth of one.

On a busy machine that may be many more seconds of the clock: such a machine says
nothing of a release. The clock stops only what sleeps, after fifteen times as many.
"""

MEMORY = 2**30
"""Most bytes that rendering may take."""


def render_sandboxed(version: PromptVersion) -> Mapping[str, bytes]:
    """Return what `render_files` returns, or refuse what takes too much.

    Raises
    ------
    DataError
        The prompt cannot be rendered, or not within `SECONDS` and `MEMORY`.
    """
    same = replace(
        version, shown=(), parent=None, author="", time="", why="", verdicts=()
    )
    return _render(same)


@lru_cache(maxsize=8)
def _render(version: PromptVersion) -> Mapping[str, bytes]:
    # -P: a module that lies in the current folder is never imported.
    command = [sys.executable, "-P", "-m", "loop.release.rendering", str(SECONDS)]
    too_much = DataError(
        f"{version.ref} does not render within {SECONDS} s of processor time and "
        f"{MEMORY // 2**20} MiB. "
        "Do not use it; ask whoever released it."
    )
    try:
        done = subprocess.run(
            command,
            input=pickle.dumps(version),
            capture_output=True,
            timeout=15 * SECONDS,
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
    resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]),) * 2)
    sys.stdout.write(json.dumps(_answer(asked)))
