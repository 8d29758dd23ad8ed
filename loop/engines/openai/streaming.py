"""A streamed answer: text while it is written, and then the body of an unstreamed one.

The last event says how the answer ended, as the one object does without streaming: an
answer that lacks it is no whole one.

References
----------
HTML Living Standard, section 9.2, Server-sent events; OpenAI API reference, Chat
completions, streaming.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NotRequired

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json
from typing_extensions import TypedDict

from loop.engines.openai.client import MOST_BYTES, HalfError, Reply, too_large
from loop.engines.openai.completions import UnreadableAnswerError

_FIELDS = frozenset({b"data", b"event", b"id", b"retry", b"error"})
"""Fields of an event; ``error`` is llama.cpp's own, of its older versions."""

_BOM = b"\xef\xbb\xbf"
_SPACE = b" \t\r\n"


class _Delta(TypedDict, total=False):
    content: str | None
    refusal: str | None
    reasoning_content: str | None
    reasoning: Any


class _ChunkChoice(TypedDict):
    index: NotRequired[int]
    delta: _Delta | None
    finish_reason: NotRequired[str | None]


class _Chunk(TypedDict):
    choices: list[_ChunkChoice]
    usage: NotRequired[Any]
    error: NotRequired[Any]


_CHUNK = TypeAdapter(_Chunk)


class StreamedAnswer:
    """One answer as it comes in, in pieces that are cut anywhere.

    A server that does not stream sends a JSON object instead: it is kept as it is.
    """

    def __init__(self) -> None:
        self._object: list[bytes] | None = None
        self._begun = False
        self._size = 0
        self._line: list[bytes] = []
        self._after_cr = False
        self._first = True
        self._name = b""
        self._data: list[bytes] = []
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._refusal: list[str] = []
        self._finish: str | None = None
        self._usage: Any = None
        self._error: tuple[int, bytes] | None = None

    @property
    def text(self) -> str:
        """What is written so far, reasoning left out; any thread may ask."""
        return "".join(self._text)

    def take(self, piece: bytes) -> bool:
        """Take the next bytes; return whether the answer is over before they are.

        Raises
        ------
        UnreadableAnswerError
            They are no events of a chat completion.
        HalfError
            The answer is too long.
        """
        if not self._begun:
            piece = piece.lstrip(_SPACE)
            if not piece:
                return False
            self._begun = True
            if piece.startswith(b"{"):
                self._object = []
        if self._object is not None:
            self._grow(len(piece))
            self._object.append(piece)
            return False
        return self._take_lines(piece)

    def reply(self, head: Reply) -> Reply:
        """Return what was taken as a response that was read whole.

        Parameters
        ----------
        head
            The response, its body taken. Where that is an error after all, the status
            is the one that the error names.

        Raises
        ------
        UnreadableAnswerError
            It is no chat completion.
        HalfError
            The answer ended with an error that has no status.
        """
        if self._object is not None:
            return head._replace(body=b"".join(self._object))
        if self._line:
            # Whoever says no more ends the last line, too.
            self._end_line(b"".join(self._line))
        self._end_event()
        if self._error is not None:
            status, body = self._error
            return Reply(status, head.headers, body)
        message = {
            "content": self.text,
            "reasoning_content": "".join(self._thinking),
            "refusal": "".join(self._refusal),
        }
        answer = {
            "choices": [{"message": message, "finish_reason": self._finish}],
            "usage": self._usage,
        }
        return head._replace(body=json.dumps(answer).encode())

    def _take_lines(self, piece: bytes) -> bool:
        """Take whole lines, which end with CR, LF or both; keep the rest."""
        if self._after_cr:
            piece = piece.removeprefix(b"\n")
        self._after_cr = piece.endswith(b"\r")
        for line in piece.splitlines(keepends=True):
            self._line.append(line)
            if not line.endswith((b"\r", b"\n")):
                self._grow(len(line))
            else:
                whole = b"".join(self._line).rstrip(b"\r\n")
                self._size -= sum(map(len, self._line[:-1]))
                self._line.clear()
                if self._end_line(whole):
                    return True
        return False

    def _end_line(self, line: bytes) -> bool:
        """Read one line; return whether the answer is over."""
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        if not line:
            return self._end_event()
        name, _, value = line.partition(b":")
        if name and name not in _FIELDS:
            raise UnreadableAnswerError("not a stream of events")
        value = value.removeprefix(b" ")
        if name == b"error":
            return self._fail(value)
        if name == b"event":
            self._name = value
        elif name == b"data":
            self._grow(len(value) + 1)
            self._data.append(value)
        return False

    def _end_event(self) -> bool:
        """Read the event whose lines were taken; return whether the answer is over."""
        name, data = self._name, b"\n".join(self._data)
        self._name = b""
        self._size -= sum(len(line) + 1 for line in self._data)
        self._data.clear()
        if not data.strip() or name == b"ping":
            return False
        if data.strip() == b"[DONE]":
            return True
        if name == b"error":
            return self._fail(data)
        try:
            chunk = _CHUNK.validate_json(data)
        except ValidationError as problem:
            return self._fail(data, problem)
        if chunk.get("error"):
            return self._fail(data)
        self._add(chunk)
        return False

    def _add(self, chunk: _Chunk) -> None:
        self._usage = chunk.get("usage") or self._usage
        for choice in chunk["choices"]:
            if choice.get("index", 0):
                continue
            delta = choice["delta"] or {}
            self._keep(self._text, delta.get("content"))
            self._keep(self._refusal, delta.get("refusal"))
            reasoning = delta.get("reasoning_content") or delta.get("reasoning")
            self._keep(self._thinking, reasoning)
            self._finish = choice.get("finish_reason") or self._finish

    def _keep(self, pieces: list[str], piece: object) -> None:
        if isinstance(piece, str) and piece:
            self._grow(len(piece))
            pieces.append(piece)

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > MOST_BYTES:
            raise too_large()

    def _fail(self, data: bytes, problem: ValidationError | None = None) -> bool:
        """Keep an error that a server reports in mid-answer.

        Raises
        ------
        UnreadableAnswerError
            It is no error of a server's, but no event either.
        HalfError
            The error has no status.
        """
        said = _object(data)
        inner = said.get("error") or said
        if problem and inner is said and said.get("object") != "error":
            kind = problem.errors(include_url=False, include_input=False)[0]["type"]
            wrong = "not JSON" if kind == "json_invalid" else "not a chat completion"
            raise UnreadableAnswerError(wrong)
        status = inner.get("code") if isinstance(inner, dict) else None
        if type(status) is not int or not 400 <= status < 600:
            raise HalfError("error in mid-answer")
        self._error = status, data
        return True


def _object(data: bytes) -> Mapping[str, Any]:
    try:
        said = from_json(data)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
