"""LoRA adapters: which are configured, whether they fit, and how vLLM loads them.

A server that cannot load an adapter starts for half a minute and dies. What its folder
tells is looked at before: the rank, features that vLLM does not have, and whether the
weights are shaped for the model. What is not on this machine is left to vLLM.
"""

from __future__ import annotations

import json
import math
import os
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from loop.core.config import VllmSettings
from loop.core.errors import EngineError
from loop.core.safe_text import quoted
from loop.engines.model_folders import digest_model, model_location

RANKS: Final = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""What vLLM 0.32 takes for ``--max-lora-rank``."""

_DEFAULT_RANK: Final = 16
_OPTION: Final = "--max-lora-rank"

_UNSUPPORTED: Final[Mapping[str, str]] = {
    "use_dora": "DoRA",
    "lora_bias": "a LoRA bias",
    "alora_invocation_tokens": "activated LoRA",
    "layer_replication": "replicated layers",
    "use_bdlora": "block-diagonal LoRA",
    "use_qalora": "QALoRA",
}
"""Fields of ``adapter_config.json`` that vLLM 0.32 refuses, and what they are."""

_READS_HIDDEN: Final = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")
"""Modules whose input is the hidden state, so that its size must be theirs."""

_SAVED: Final = ("classifier", "score")
"""Modules that may be trained as a whole."""

_STARTS: Final = ("gaussian", "eva", "orthogonal", "mica", "lora_ga")
"""Named ways to begin that leave the model as it is."""

_ON_HUB: Final = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
"""A name on the hub; a relative path to where it was trained says nothing."""

_MOST_HEADER: Final = 64 * 2**20
"""Bytes of the header of a file of weights that are read."""


def adapter_arguments(model: str, settings: VllmSettings) -> Iterator[str]:
    """Yield the arguments that load the configured adapters, with room for their rank.

    Raises
    ------
    EngineError
        An adapter on this machine cannot be loaded with `model`: says why.
    """
    if not settings.lora:
        return
    yield from ("--enable-lora", "--lora-modules")
    rank = 0
    for name, given in settings.lora.items():
        folder = model_location(given)
        if os.path.exists(folder):
            rank = max(rank, check_fit(name, Path(folder), model_location(model)))
        yield f"{name}={folder}"
    chosen = _chosen_rank(settings.extra_args)
    if chosen is not None and chosen < rank:
        raise EngineError(
            f"{_OPTION} {chosen} of the further arguments of vLLM leaves no room for "
            f"an adapter of rank {rank}. Take it out: ranloop sets it."
        )
    if rank > _DEFAULT_RANK and chosen is None:
        yield from (_OPTION, str(next(one for one in RANKS if one >= rank)))


def _chosen_rank(arguments: Sequence[str]) -> float | None:
    """Return the room for ranks that further arguments make; None where they do not.

    What is no number is left to vLLM: there is room for everything.
    """
    chosen = None
    for place, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name.replace("_", "-") == _OPTION:
            value = value if equals else "".join(arguments[place + 1 : place + 2])
            chosen = float(value) if value.isdecimal() else math.inf
    return chosen


def check_fit(name: str, folder: Path, model: str) -> int:
    """Return the rank of an adapter that vLLM can load with `model`.

    Parameters
    ----------
    name
        What it is called in the config.
    model
        Its folder, or its name where it is not on this machine: then only the name is
        compared with that of the model that the adapter was trained on.

    Raises
    ------
    EngineError
        It is no LoRA adapter, has something that vLLM does not have, a rank above
        the largest that it takes, or is of another model.
    """
    about = f"the adapter {name} in {folder}"
    config = _read_json(folder / "adapter_config.json", about)
    kind = config.get("peft_type", "LORA")
    if kind != "LORA":
        raise EngineError(f"{about} is {quoted(str(kind))}, and vLLM loads LoRA only.")
    for field, what in _UNSUPPORTED.items():
        if config.get(field):
            raise EngineError(
                f"{about} has {what} ({field}), which vLLM does not support. Train it "
                "without, or merge it into its model."
            )
    _check_training(config, about)
    rank = _largest_rank(config, about)
    if rank > RANKS[-1]:
        raise EngineError(
            f"{about} has rank {rank}, and vLLM takes {RANKS[-1]} at most. Merge it "
            "into its model, or train one of a lower rank."
        )
    _check_base(config, folder, model, about)
    return rank


def _check_training(config: Mapping[str, Any], about: str) -> None:
    """Refuse what vLLM cannot take over of how an adapter was trained."""
    missing = [one for one in ("lora_alpha", "target_modules") if one not in config]
    if missing:
        raise EngineError(f"{about} says nothing of {missing[0]}. Export it again.")
    saved = config.get("modules_to_save") or ()
    others = [one for one in saved if one not in _SAVED]
    if others:
        raise EngineError(
            f"{about} has trained {quoted(str(others[0]))} as a whole "
            "(modules_to_save), which vLLM does not support. Merge it into its model."
        )
    if config.get("bias", "none") != "none":
        raise EngineError(
            f"{about} has trained biases (bias), which vLLM does not support. Train "
            "it without, or merge it into its model."
        )
    start = config.get("init_lora_weights")
    if isinstance(start, str) and start.casefold() not in _STARTS:
        raise EngineError(
            f"{about} began with {quoted(start)} (init_lora_weights), which changes "
            "its model, too, and which vLLM does not support. Convert it to plain "
            "LoRA with PEFT's path_initial_model_for_weight_conversion."
        )


def _largest_rank(config: Mapping[str, Any], about: str) -> int:
    pattern = config.get("rank_pattern") or {}
    ranks = [config.get("r"), *(pattern.values() if isinstance(pattern, dict) else ())]
    if not all(type(one) is int and one > 0 for one in ranks):
        raise EngineError(
            f"{about}: its rank (r, or rank_pattern) is not a whole number above 0. "
            "Export it again."
        )
    return max(int(one) for one in ranks if one is not None)


def _check_base(
    config: Mapping[str, Any], folder: Path, model: str, about: str
) -> None:
    """Refuse an adapter of another model: by its weights, else by the name."""
    if os.path.exists(model):
        told = Path(model, "config.json")
        # Models of other forms, such as one file, are vLLM's to judge.
        if told.is_file():
            _check_shapes(_read_json(told, f"the model in {model}"), folder, about)
        return
    trained = config.get("base_model_name_or_path")
    if not isinstance(trained, str) or not _ON_HUB.fullmatch(trained):
        return
    if trained.casefold() != model.casefold():
        raise EngineError(
            f"{about} was trained on {quoted(trained)}, and the model is "
            f"{quoted(model)}. Name an adapter of this model, or serve that one. If "
            "they are one model in two forms, correct base_model_name_or_path in its "
            "adapter_config.json."
        )


def _check_shapes(base: Mapping[str, Any], folder: Path, about: str) -> None:
    inner = base.get("text_config")
    facts = inner if isinstance(inner, dict) else base
    hidden, layers = facts.get("hidden_size"), facts.get("num_hidden_layers")
    for key, shape in _weight_shapes(folder / "adapter_model.safetensors", about):
        parts = key.split(".")
        if any(one.startswith("vis") for one in parts):
            # An image encoder has other layers and sizes.
            continue
        if "layers" in parts and type(layers) is int:
            place = parts[parts.index("layers") + 1 :][:1]
            if place and place[0].isdecimal() and int(place[0]) >= layers:
                raise EngineError(
                    f"{about} is for a model of more than {layers} layers: it was "
                    "trained on another one. Name an adapter of this model."
                )
        reads = any(one in parts for one in _READS_HIDDEN) and "lora_A" in parts
        if reads and type(hidden) is int and shape[-1:] != [hidden]:
            raise EngineError(
                f"{about} is for a model with hidden states of {shape[-1]}, and those "
                f"of the model have {hidden}: it was trained on another one. Name an "
                "adapter of this model."
            )


def _weight_shapes(path: Path, about: str) -> Iterator[tuple[str, list[int]]]:
    """Yield names and shapes from the header of a safetensors file, if it is one.

    Nothing is yielded without such a file: weights in another form are left to vLLM.
    """
    try:
        with path.open("rb") as stream:
            (size,) = struct.unpack("<Q", stream.read(8))
            header = json.loads(stream.read(size)) if size <= _MOST_HEADER else None
    except FileNotFoundError:
        return
    except (OSError, ValueError, RecursionError, struct.error) as error:
        raise EngineError(
            f"{about}: {path.name} cannot be read. Export it again."
        ) from error
    if not isinstance(header, dict):
        raise EngineError(f"{about}: {path.name} has no header. Export it again.")
    for key, told in header.items():
        shape = told.get("shape") if isinstance(told, dict) else None
        if isinstance(shape, list) and shape:
            yield key, shape


def _read_json(path: Path, about: str) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise EngineError(
            f"{about} has no readable {path.name}. Name the folder that has it."
        ) from error
    if not isinstance(found, dict):
        raise EngineError(f"{about}: {path.name} is not a JSON object.")
    return found


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


def _digest_adapter(place: str) -> str:
    return digest_model(Path(place)) if os.path.exists(place) else place


def check_adapter(adapter: str | None, settings: VllmSettings) -> None:
    """Check that the config names the folder of `adapter`.

    Raises
    ------
    EngineError
        It does not.
    """
    if adapter is not None and adapter not in settings.lora:
        known = ", ".join(sorted(settings.lora)) or "none"
        raise EngineError(
            f"no adapter {adapter!r} is configured (known: {known}). Name its folder "
            "under engines: vllm: lora: in .ranloop/config.yaml."
        )


def with_adapter(
    served: Mapping[str, object], adapters: Mapping[str, str], adapter: str | None
) -> dict[str, object]:
    """Return the facts of what is asked: of the model, and of the adapter if any."""
    if adapter is None:
        return dict(served)
    return {**served, "adapter": adapters[adapter]}
