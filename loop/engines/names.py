"""What stands behind the scheme in an engine's name: ``model[#adapter][@url]``."""

from __future__ import annotations

import re
from typing import NamedTuple

from loop.core.errors import EngineError

_URL = re.compile(r"@(?=https?://)", re.IGNORECASE)
_NO_SCHEME = re.compile(r"@(?P<place>[\w.-]+:[0-9]+(?:/[\w./-]*)?)$")
"""A host and a port: else the model's name would swallow where to ask."""

_SECRET = re.compile(
    r"(@https?://)(?:[^/?#]*@|[^?#]*[?#]).*", re.IGNORECASE | re.DOTALL
)


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
        There is no model, an empty adapter, or a host and port without http://.

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
    if not urls and (found := _NO_SCHEME.search(name)):
        raise EngineError(
            f"{found['place']} in the engine's name is not an address. Write "
            f"@http://{found['place']}, or @https:// where the server has it."
        )
    return ModelName(model, adapter if sharp else None, urls[0] if urls else None)


def masked(name: str) -> str:
    """Return an engine's name without what may be secret in its URL.

    Such a URL is refused; the refusal must not show it either.

    Examples
    --------
    >>> masked("openai:model@https://me:word@127.0.0.1/v1")
    'openai:model@https://***'
    >>> masked("openai:me@home/model@http://127.0.0.1/v1")
    'openai:me@home/model@http://127.0.0.1/v1'
    """
    return _SECRET.sub(r"\1***", name)
