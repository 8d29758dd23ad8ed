"""What identifies a served model: everything here can change an answer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue

from loop.core.config import VllmSettings
from loop.engines.vllm.command import model_location
from loop.engines.vllm.environment import Installed
from loop.engines.vllm.weights import digest_model, find_snapshot

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


def digest_adapters(settings: VllmSettings) -> dict[str, str]:
    """Return the name of each LoRA adapter with what identifies its weights.

    Raises
    ------
    EngineError
        An adapter's folder cannot be read.
    """
    return {
        name: _digest_adapter(model_location(place))
        for name, place in settings.lora.items()
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


def _digest_adapter(place: str) -> str:
    return digest_model(Path(place)) if os.path.exists(place) else place


def _switches(environment: Mapping[str, str]) -> list[tuple[str, JsonValue]]:
    """Return vLLM's own variables: others may hold secrets."""
    return [
        (name, value)
        for name, value in environment.items()
        if name.startswith("VLLM_") and not name.endswith(("KEY", "TOKEN"))
    ]
