"""Request bodies and responses: what is sent, and completions from what comes back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from json.encoder import encode_basestring
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, NotRequired

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import from_json
from typing_extensions import TypedDict

from loop.core.records import Completion, PromptFrame
from loop.engines.base import Settings, with_thinking
from loop.engines.openai.client import Endpoint

_FINISH: Mapping[str, str] = MappingProxyType(
    {
        "stop": "stop",
        "eos_token": "stop",
        "stop_sequence": "stop",
        "end_turn": "stop",
        "tool_calls": "stop",
        "function_call": "stop",
        "length": "length",
        "max_tokens": "length",
        "content_filter": "refusal",
        "refusal": "refusal",
    }
)
"""Why servers say an answer ended, in our words; anything else is half an answer."""

_MOST_TOKENS = 2**40
"""A count above this is no count; it would not fit the store either."""

_CODE = re.compile(r"[a-z]+(?:_[a-z]+){1,8}|[A-Z][A-Za-z]{3,39}Error")

TOO_LONG = "the prompt does not fit the model's context"
"""Why a case has no answer whose server says so, in our words."""

_SAYS_TOO_LONG = re.compile(
    r"maximum context length|context[ _](?:length|size|window)"
    r"|exceed_context_size|longer than the (?:maximum )?model|\bn_ctx\b"
    r"|max_model_len|maximum model length",
    re.IGNORECASE,
)


class UnreadableAnswerError(ValueError):
    """A response that is no whole chat completion; says what is wrong with it."""


class _ReplyMessage(TypedDict, total=False):
    content: str | None
    refusal: str | None
    reasoning_content: str | None
    reasoning: Any


class _Choice(TypedDict):
    message: _ReplyMessage
    finish_reason: NotRequired[str | None]


class _Answer(TypedDict):
    choices: Annotated[list[_Choice], Field(min_length=1)]
    usage: NotRequired[Any]
    system_fingerprint: NotRequired[Any]


# Dictionaries take half the time of models, and there is one for every request.
_ANSWER = TypeAdapter(_Answer)


class ServerError(NamedTuple):
    """What a server says of a request it refused."""

    words: str
    """Its message: one line; it may quote the request."""

    code: str
    """Its code or type, such as ``"context_length_exceeded"``; empty without one."""

    too_long: bool
    """Whether it says that the prompt does not fit the model's context."""


def read_answer(body: bytes, latency_s: float = 0.0) -> Completion:
    """Return the completion in a response's body.

    Raises
    ------
    UnreadableAnswerError
        The body is not JSON in UTF-8, not a chat completion, or half of one.
    """
    answer = _parse(body)
    choice = answer["choices"][0]
    finish = _FINISH.get(choice.get("finish_reason") or "")
    if finish is None:
        raise UnreadableAnswerError("unfinished answer")
    message = choice["message"]
    text = message.get("content") or ""
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    thinking = reasoning if isinstance(reasoning, str) else ""
    if not text:
        if thinking:
            text, thinking = "<think>" + thinking, ""
        elif message.get("refusal"):
            finish = "refusal"
    prompt, completion, cached = _usage(answer.get("usage"))
    return Completion(text, finish, "", latency_s, prompt, completion, cached, thinking)


def read_fingerprint(body: bytes) -> str | None:
    """Return the ``system_fingerprint`` of a completion; None without one.

    Raises
    ------
    UnreadableAnswerError
        As for `read_answer`.
    """
    found = _parse(body).get("system_fingerprint")
    return found if isinstance(found, str) and found else None


def read_error(body: bytes) -> ServerError:
    """Return what the body of a refusal says; empty words when it says nothing.

    OpenAI and llama.cpp give ``{"error": {"message", "code", "type"}}``, older vLLM
    the inner object alone, FastAPI ``{"detail": ...}``.
    """
    data = _object(body)
    inner = data.get("error", data)
    if not isinstance(inner, dict):
        inner = {"message": inner}
    words = inner.get("message", inner.get("detail", ""))
    names = [inner.get("code"), inner.get("type")]
    codes = [one for one in names if isinstance(one, str) and _CODE.fullmatch(one)]
    said = words if isinstance(words, str) else str(words)
    return ServerError(
        words=said,
        code=codes[0] if codes else "",
        too_long=bool(_SAYS_TOO_LONG.search(" ".join([said[:2000], *codes]))),
    )


def one_line(words: str, *, most: int = 300, secret: str | None = None) -> str:
    """Return a server's own words so that they can stand in a message.

    Only for requests that held nothing of a case: servers quote what they were sent.
    """
    if secret:
        words = words.replace(secret, "***")
    printable = "".join(char if char.isprintable() else " " for char in words)
    line = " ".join(printable.split())
    return line if len(line) <= most else line[: most - 3] + "..."


def _parse(body: bytes) -> _Answer:
    try:
        return _ANSWER.validate_json(body)
    except ValidationError as error:
        kind = error.errors(include_url=False, include_input=False)[0]["type"]
        wrong = "not JSON" if kind == "json_invalid" else "not a chat completion"
        raise UnreadableAnswerError(wrong) from None


def _object(body: bytes) -> dict[str, Any]:
    try:
        data = from_json(body)
    except ValueError:
        return {"message": body[:1000].decode("utf-8", "replace")}
    return data if isinstance(data, dict) else {"message": data}


def _usage(usage: Any) -> tuple[int | None, int | None, int | None]:
    """Return prompt, completion and cached tokens; None for what is no count."""
    if type(usage) is not dict:
        return None, None, None
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if type(details) is dict else None
    return (
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
        _count(cached),
    )


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


_END = b'"}]}'
"""What closes the last message, the messages and the request."""

_STREAMED_END = _END[:-1] + b',"stream":true,"stream_options":{"include_usage":true}}'
"""The same of a request whose answer is wanted while it is written."""


class RequestPrefix:
    """The bytes of one frame's requests, except for the end of the last message."""

    __slots__ = ("_blank", "_head", "frame")

    def __init__(self, frame: PromptFrame, head: bytes, blank: bytes) -> None:
        self.frame = frame
        self._head = head
        self._blank = blank

    def body(self, tail: str, *, streamed: bool = False) -> bytes:
        """Return the request for a prompt of this frame that ends with `tail`.

        What is not text, such as half of a surrogate pair, is sent as ``?``.

        Parameters
        ----------
        streamed
            Whether the answer is wanted while it is written, tokens counted at its end.
        """
        escaped = encode_basestring(tail)[1:-1]
        end = _STREAMED_END if streamed else _END
        return b"".join((self._head, escaped.encode("utf-8", "replace"), end))

    def blank(self) -> bytes:
        """Return the request for one token after the frame: it holds no case text."""
        return self._blank


def make_prefix(
    frame: PromptFrame, endpoint: Endpoint, settings: Settings, *, constrained: bool
) -> RequestPrefix:
    """Return the prefix of `frame`.

    Parameters
    ----------
    constrained
        Whether to ask for an answer that follows the frame's schema, if it has one.
    """
    schema = frame.schema if constrained else None
    fields = request_fields(endpoint, settings, schema or None)
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
    fields.update(with_thinking(endpoint.extra_body, settings.thinking))
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
