"""Prompts as saved DSPy programs: their state as DSPy saves it, the messages inside."""

from __future__ import annotations

import inspect
import json
import tempfile
from pathlib import Path
from typing import Any

from loop.prompts.render import Call
from loop.prompts.version import PromptVersion
from loop.release.export.records import RequestParameters
from loop.release.export.requests import readable_json, response_format

CODE = "program.py"
"""Loads the saved programs without ranloop; copied as it stands here."""


def program_code() -> bytes:
    """Return the code that is exported with the programs."""
    return Path(__file__).with_name(CODE).read_bytes()


def save_program(
    version: PromptVersion, contract: str, call: Call, asking: RequestParameters
) -> bytes:
    """Return one call as DSPy saves a program's state, in JSON.

    Plain ``dspy.Predict("text -> answer").load(...)`` takes it. DSPy's metadata holds
    besides what its signature cannot: the exact messages and the prompt's digest.
    """
    import dspy

    from loop.release.export.program import make_signature

    exported = _exported(version, contract, call, asking)
    program = dspy.Predict(make_signature(exported))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.json")
        program.save(str(path))
        state = json.loads(path.read_bytes())
    state["metadata"]["ranloop"] = exported
    return readable_json(state).encode("utf-8")


def with_versions_of(made: bytes, stored: bytes) -> bytes:
    """Return `made` with the package versions that `stored` was saved with.

    They are no part of the prompt, and differ from machine to machine.
    """
    state = json.loads(made)
    try:
        versions = json.loads(stored)["metadata"]["dependency_versions"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return made
    if not isinstance(versions, dict) or versions.keys() != _versions(state).keys():
        return made
    if all(isinstance(value, str) and len(value) < 40 for value in versions.values()):
        _versions(state).update(versions)
    return readable_json(state).encode("utf-8")


def _versions(state: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = state["metadata"]["dependency_versions"]
    return found


def _exported(
    version: PromptVersion, contract: str, call: Call, asking: RequestParameters
) -> dict[str, Any]:
    """Return everything of one call that DSPy does not keep itself."""
    system, user = call.frame.messages
    return {
        "prompt": version.ref,
        "digest": version.digest,
        "contract": contract,
        "call": call.frame.call,
        "labels": list(call.frame.fields),
        # As DSPy keeps them: without the spaces and line ends around.
        "instructions": inspect.cleandoc(system.content) or "Answer about the case.",
        "system": system.content,
        "before": user.content,
        "inputs": [list(piece) for piece in call.pieces],
        "asking": _asking(call, asking),
    }


def _asking(call: Call, asking: RequestParameters) -> dict[str, Any]:
    """Return the settings of each request, as DSPy takes them."""
    fields: dict[str, Any] = {
        "temperature": asking.temperature,
        "max_tokens": asking.max_tokens,
        "seed": asking.seed,
        "response_format": response_format(call.frame.schema),
    }
    fields |= {name: asking.extra[name] for name in fields.keys() & asking.extra.keys()}
    others = {name: value for name, value in asking.extra.items() if name not in fields}
    kept = {name: value for name, value in fields.items() if value is not None}
    return kept | ({"extra_body": others} if others else {})
