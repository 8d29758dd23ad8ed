"""What stands behind the scheme in an engine's name: ``model[#adapter][@url]``."""

from __future__ import annotations

import re
from typing import NamedTuple

from loop.core.errors import EngineError

_URL = re.compile(r"@(?=https?://)", re.IGNORECASE)


class ModelName(NamedTuple):
    """The parts of an engine's name after its scheme."""

    model: str
    """Name of the model as the server knows it; it may hold ``/``, ``:`` and ``@``."""

    adapter: str | None = None
    """Name of a LoRA adapter; None for the model alone."""

    url: str | None = None
    """Where to ask; None for the configured place."""


def split_name(rest: str) -> ModelName:
    """Return the parts of an engine's name without its scheme.

    A URL begins at the first ``@http://`` or ``@https://``, an adapter at the last
    ``#`` before it.

    Raises
    ------
    EngineError
        There is no model, or an empty adapter.

    Examples
    --------
    >>> split_name("Qwen/Qwen3-14B@http://127.0.0.1:8000/v1").url
    'http://127.0.0.1:8000/v1'
    >>> split_name("me@home/model#chest")
    ModelName(model='me@home/model', adapter='chest', url=None)
    """
    name, *urls = _URL.split(rest, maxsplit=1)
    model, sharp, adapter = name.rpartition("#")
    if not sharp:
        model = name
    if not model or (sharp and not adapter):
        raise EngineError(
            f"the engine's name has no {'adapter after #' if model else 'model'}. Name "
            "it as scheme:model[#adapter][@url], for example "
            "openai:Qwen/Qwen3-14B@http://127.0.0.1:8000/v1."
        )
    return ModelName(model, adapter if sharp else None, urls[0] if urls else None)
