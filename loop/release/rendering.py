"""What a release ships of its prompt: its files, its messages, its answer schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping

from loop.core.errors import DataError
from loop.prompts.catalog import read_folder
from loop.prompts.outputs.base import get_contract
from loop.prompts.render import Call, plan_prompts
from loop.prompts.version import CallPlan, PromptVersion
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

    Each input is written as ``{{ name }}`` where a case's text goes.

    Raises
    ------
    DataError
        A template or the contract cannot be used.
    """
    plan = plan_prompts(version, get_contract(version.contract).schema)
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
    return "".join(f"{{{{ {name} }}}}{after}" for name, after in call.pieces)
