"""What can be learnt about a server without asking its model anything."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from pydantic_core import from_json

from loop.core.digests import digest_json, digest_text
from loop.core.errors import EngineError
from loop.engines.openai.bodies import one_line
from loop.engines.openai.client import EndpointClient, LinkError, Reply
from loop.engines.openai.endpoint import Endpoint

_STABLE = ("id", "root", "parent", "owned_by", "max_model_len", "meta")
"""Fields of a listed model that do not change when the server starts again."""

_SHOWN = 8
"""How many served models a message names."""


class Listed(NamedTuple):
    """One entry of a server's model list."""

    facts: Mapping[str, Any]
    """The fields that identify the model; empty when the server has no list."""

    @property
    def max_model_len(self) -> int | None:
        """Longest prompt and answer together, tokens; None when it is not said."""
        length = self.facts.get("max_model_len")
        return length if type(length) is int and length > 0 else None


def find_model(reply: Reply, endpoint: Endpoint) -> Listed:
    """Return the entry of the endpoint's model in the response to ``GET /models``.

    Raises
    ------
    EngineError
        The server has a list and the model is not in it.
    """
    data = _json(reply)
    listed = data.get("data") if isinstance(data, dict) else None
    if not isinstance(listed, list):
        return Listed({})
    entries = [one for one in listed if isinstance(one, dict)]
    for entry in entries:
        if entry.get("id") == endpoint.model:
            return Listed({name: entry[name] for name in _STABLE if entry.get(name)})
    names = [name for entry in entries if isinstance(name := entry.get("id"), str)]
    raise EngineError(
        f"{endpoint.url} does not serve {endpoint.model!r}; it serves "
        f"{_name_some(endpoint.model, names)}. Name one of these after the scheme of "
        "the engine, or start the server with the model you want."
    )


async def read_server(wire: EndpointClient, endpoint: Endpoint) -> dict[str, object]:
    """Return what the server tells of itself: its version, llama.cpp's properties.

    A server that offers neither gives an empty answer.
    """
    facts: dict[str, object] = {}
    version = await _fetch(wire, endpoint.root + "/version")
    if isinstance(found := version.get("version"), str):
        facts["version"] = found
    props = await _fetch(wire, endpoint.root + "/props")
    for name in ("build_info", "model_path"):
        if isinstance(found := props.get(name), str):
            facts[name] = found
    if isinstance(found := props.get("chat_template"), str):
        facts["chat_template"] = digest_text(found)
    if isinstance(found := props.get("default_generation_settings"), dict):
        facts["n_ctx"] = found.get("n_ctx")
    return facts


async def _fetch(wire: EndpointClient, url: str) -> Mapping[str, Any]:
    """Return a JSON object; empty when there is none."""
    try:
        data = _json(await wire.get(url))
    except LinkError:
        return {}
    return data if isinstance(data, dict) else {}


def _json(reply: Reply) -> object:
    if reply.status != 200:
        return None
    try:
        data: object = from_json(reply.body, allow_inf_nan=False)
        digest_json(data)
    except ValueError:
        return None
    return data


def _name_some(model: str, names: list[str]) -> str:
    """Return the served names, those like `model` first."""
    if not names:
        return "nothing"
    like = get_close_matches(model, names, n=_SHOWN, cutoff=0.3)
    first = [*like, *(name for name in names if name not in like)][:_SHOWN]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(one_line(name, most=100) for name in first) + more
