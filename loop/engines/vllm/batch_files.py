"""The JSONL that vLLM's batch runner reads and writes; everything read is untrusted."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic_core import from_json

from loop.core.files import write_error
from loop.core.records import Completion
from loop.engines.openai.answers import (
    TOO_LONG,
    ServerError,
    UnreadableAnswerError,
    read_answer,
    read_error,
)

_CHECK = "check-"
"""How the names of requests without a case begin."""


class BatchRequest(NamedTuple):
    """One request."""

    name: str
    """Index of its prompt, or the name of a check."""

    data: bytes

    @property
    def is_check(self) -> bool:
        """Whether it holds nothing of a case."""
        return self.name.startswith(_CHECK)


class BatchResponse(NamedTuple):
    """What became of one request."""

    name: str
    completion: Completion
    status: int
    """As over HTTP: 200 for an answer."""

    refusal: ServerError | None = None
    """What vLLM said of a request it refused; it may quote the request."""


def make_line(name: str, body: bytes) -> BatchRequest:
    """Return the line that asks the request `body`, which is JSON in one line."""
    head = b'{"custom_id":"%s","method":"POST","url":"/v1/chat/completions","body":'
    return BatchRequest(name, head % name.encode("ascii") + body + b"}\n")


def check_name(what: str) -> str:
    """Return the name of a request that holds nothing of a case."""
    return _CHECK + what


def write_lines(path: Path, lines: Iterable[BatchRequest]) -> int:
    """Write `lines` to a new file that only its owner may read; return how many.

    Raises
    ------
    WriteError
        The disk is full, or the file cannot be written.
    """
    count = 0
    try:
        with open(path, "xb", opener=_open_private) as stream:
            for line in lines:
                stream.write(line.data)
                count += 1
    except OSError as error:
        raise write_error(path, error) from error
    return count


def read_results(path: Path, *, checks: bool) -> Iterator[BatchResponse]:
    """Yield what became of the checks, or else of the prompts, in a file of answers.

    Lines that cannot be read are left out: who asked counts what is missing.
    """
    with path.open("rb") as stream:
        for raw in stream:
            data = _object(raw)
            name = data.get("custom_id")
            if isinstance(name, str) and name.startswith(_CHECK) is checks:
                yield _read(name, data)


def count_lines(path: Path) -> int:
    """Return how many lines a file has."""
    with path.open("rb") as stream:
        return sum(1 for _ in stream)


def _read(name: str, data: dict[str, object]) -> BatchResponse:
    """Return the result in one line of answers."""
    response = data.get("response")
    inner = response if isinstance(response, dict) else {}
    status = inner.get("status_code", 0)
    code = status if isinstance(status, int) else 0
    if code == 200 and not data.get("error"):
        body = json.dumps(inner.get("body")).encode("utf-8", "replace")
        try:
            return BatchResponse(name, read_answer(body), 200)
        except UnreadableAnswerError as error:
            return BatchResponse(name, Completion("", "error", str(error)), 0)
    said = read_error(json.dumps(data.get("error")).encode("utf-8", "replace"))
    return BatchResponse(name, Completion("", "error", _why(said, code)), code, said)


def _why(said: ServerError, status: int) -> str:
    """Return the reason of a refusal, without vLLM's words: they may quote the case."""
    if said.too_long:
        return TOO_LONG
    code = f" ({said.code})" if said.code else ""
    return f"vLLM refused it: HTTP {status}{code}"


def _object(raw: bytes) -> dict[str, object]:
    try:
        data = from_json(raw)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
