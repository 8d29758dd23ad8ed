"""Request bodies: the frame's bytes once, then only the case's own per request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from json.encoder import encode_basestring

from loop.core.records import PromptFrame
from loop.engines.base import Settings
from loop.engines.openai.endpoint import Endpoint

_END = b'"}]}'
"""What closes the last message, the messages and the request."""


class RequestPrefix:
    """The bytes of one frame's requests, except for the end of the last message."""

    __slots__ = ("_blank", "_head", "frame")

    def __init__(self, frame: PromptFrame, head: bytes, blank: bytes) -> None:
        self.frame = frame
        self._head = head
        self._blank = blank

    def body(self, tail: str) -> bytes:
        """Return the request for a prompt of this frame that ends with `tail`.

        What is not text, such as half of a surrogate pair, is sent as ``?``.
        """
        escaped = encode_basestring(tail)[1:-1]
        return b"".join((self._head, escaped.encode("utf-8", "replace"), _END))

    def blank(self) -> bytes:
        """Return the request for one token after the frame: it holds no case text."""
        return self._blank


def make_envelope(
    frame: PromptFrame, endpoint: Endpoint, settings: Settings, *, constrained: bool
) -> RequestPrefix:
    """Return the envelope of `frame`.

    Parameters
    ----------
    constrained
        Whether to ask for an answer that follows the frame's schema.
    """
    fields = request_fields(endpoint, settings, frame.schema if constrained else None)
    messages = [{"role": role, "content": content} for role, content in frame.messages]
    short = with_limit(fields, 1)
    return RequestPrefix(frame, _head(fields, messages), _head(short, messages) + _END)


def request_fields(
    endpoint: Endpoint, settings: Settings, schema: Mapping[str, object] | None
) -> dict[str, object]:
    """Return all fields of a request but its messages.

    Parameters
    ----------
    schema
        JSON schema of the answer; None to ask for free text.
    """
    fields: dict[str, object] = {
        "model": endpoint.model,
        "max_tokens": settings.max_tokens,
        "temperature": settings.temperature,
        "seed": settings.seed,
    }
    if schema is not None:
        answer = {"name": "answer", "schema": schema, "strict": True}
        fields["response_format"] = {"type": "json_schema", "json_schema": answer}
    fields.update(endpoint.extra_body)
    return {name: value for name, value in fields.items() if value is not None}


def with_limit(fields: Mapping[str, object], tokens: int) -> dict[str, object]:
    """Return `fields` with at most `tokens` output tokens, under the name in use."""
    names = {"max_tokens", "max_completion_tokens"}.intersection(fields)
    return {**fields, **dict.fromkeys(names or {"max_tokens"}, tokens)}


def chat_body(fields: Mapping[str, object], *contents: tuple[str, str]) -> bytes:
    """Return a whole request with messages given as (role, content)."""
    messages = [{"role": role, "content": content} for role, content in contents]
    return _head(fields, messages) + _END


def _head(fields: Mapping[str, object], messages: list[dict[str, str]]) -> bytes:
    """Return a request up to where the last message's content could go on."""
    start = _dump(fields)[:-1]
    comma = b"," if fields else b""
    return start + comma + b'"messages":' + _dump(messages)[: -len(b'"}]')]


def _dump(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")
