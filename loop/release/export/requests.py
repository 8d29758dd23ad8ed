r"""One request of a batch, and a rendered prompt as Jinja templates.

A request is a line of JSON that asks one call about one case. In a template everything
of ours is rendered already. What is left of Jinja's syntax in it, and what Jinja would
change (a carriage return, the line end at the end of a file), is written as an
expression, so that an environment with any white space settings gives the same text.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from loop.core.errors import DataError
from loop.core.files import write_error
from loop.core.records import Item
from loop.core.safe_text import quoted
from loop.prompts.render import Call, PromptPlan
from loop.prompts.version import CallPlan, PromptVersion
from loop.release.export.records import ExportTarget, RequestParameters

MAX_REQUESTS = 50_000
MAX_BYTES = 100_000_000
"""OpenAI takes so many requests and bytes in one file; more go into the next."""


def part_name(number: int) -> str:
    """Return the name of the file of requests `number`, from 1."""
    return f"requests-{number:04d}.jsonl"


class RequestFiles:
    """Files of requests, each as large as its target takes; 0600."""

    def __init__(self, folder: Path, *, bounded: bool) -> None:
        self._folder = folder
        self._bounded = bounded
        self._number = 0
        self._lines = self._bytes = 0

    def __enter__(self) -> RequestFiles:
        self._next()
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def write(self, line: bytes) -> None:
        """Write one request, into the next file where this one is full.

        Raises
        ------
        WriteError
            The disk is full, or the file cannot be written.
        """
        full = self._lines == MAX_REQUESTS or self._bytes + len(line) > MAX_BYTES
        if self._bounded and self._lines and full:
            self._close()
            self._next()
        try:
            self._stream.write(line)
        except OSError as error:
            raise write_error(self._path, error) from error
        self._lines += 1
        self._bytes += len(line)

    def _next(self) -> None:
        self._number += 1
        self._lines = self._bytes = 0
        self._path = self._folder / part_name(self._number)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            self._stream = os.fdopen(os.open(self._path, flags, 0o600), "wb")
        except OSError as error:
            raise write_error(self._path, error) from error

    def _close(self) -> None:
        try:
            with self._stream:
                self._stream.flush()
                os.fsync(self._stream.fileno())
        except OSError as error:
            raise write_error(self._path, error) from error


def _mark(name: str) -> str:
    """Return what stands for an input while a template of a request is made."""
    return f"\ue000{name}\ue001"


class RequestForm:
    """Writes the requests of one prompt version in the form one target takes."""

    def __init__(
        self,
        version: PromptVersion,
        plan: PromptPlan,
        asking: RequestParameters,
        target: ExportTarget,
    ) -> None:
        if any(not after for call in plan.calls for _, after in call.pieces[:-1]):
            raise DataError(
                f"{version.ref} puts its inputs ({', '.join(version.inputs)}) side by "
                "side, so that they could not be told apart in a request. Export it to "
                "jinja."
            )
        self.version = version
        self.calls = plan.calls
        self._asking = asking
        self._target = target
        self._fields = [self._call_fields(call) for call in plan.calls]

    def custom_id(self, case_id: str, call: Call) -> str:
        """Return the name of a request: the case id, with the label if one is asked."""
        if self.version.plan is CallPlan.JOINT:
            return case_id
        return f"{case_id}::{call.frame.call}"

    def line(self, number: int, item: Item) -> bytes:
        r"""Return the request of call `number` about `item`, with its line end.

        Raises
        ------
        DataError
            A text is not Unicode (half of a surrogate pair), or holds the words that
            the prompt puts between its inputs, so that they cannot be told apart.
        """
        line = self._line(number, item)
        if len(self.calls[number].pieces) == 1:
            return line
        found = self.read(line, number)
        if found is None or found.variables != item.variables:
            raise DataError(
                f"case {quoted(item.id)}: a text holds what the prompt puts between "
                "its inputs, so that a request could not be read back. Leave it out."
            )
        return line

    def _line(self, number: int, item: Item) -> bytes:
        call = self.calls[number]
        request = self._request(number, self.custom_id(item.id, call), item)
        try:
            return request.encode("utf-8") + b"\n"
        except UnicodeEncodeError as error:
            raise DataError(
                f"case {quoted(item.id)}: the text contains an unpaired "
                "surrogate. Export the source again as UTF-8."
            ) from error

    def template(self, number: int) -> str:
        """Return the request of a call as a template of ``custom_id`` and its inputs.

        Raises
        ------
        DataError
            The prompt itself holds the marks that this is done with.
        """
        names = [name for name, _ in self.calls[number].pieces]
        item = Item(id="", variables={name: _mark(name) for name in names})
        rest = self._request(number, _mark("custom_id"), item)
        parts: list[tuple[str | None, str]] = []
        expression = None
        for name in ("custom_id", *names):
            mark = _mark(name)
            before, found, rest = rest.partition(mark)
            if not found or mark in rest:
                raise DataError(
                    f"{self.version.ref}: the prompt holds the characters U+E000 and "
                    "U+E001, which mark the inputs. Take them out in a new version."
                )
            parts.append((expression, before))
            expression = f"{{{{ ({name} | tojson)[1:-1] }}}}"
        return template([*parts, (expression, rest)])

    def read(self, line: bytes, number: int) -> Item | None:
        """Return the case that a line asks call `number` about.

        None when the line is not what `line` writes for any case.
        """
        frame, pieces = self.calls[number].frame, self.calls[number].pieces
        before = frame.messages[-1].content
        ending = self.custom_id("", self.calls[number])
        try:
            data = json.loads(line)
            name, content = data["custom_id"], data["body"]["messages"][-1]["content"]
            item = Item(
                id=name.removesuffix(ending) if ending else name,
                variables=_inputs(content[len(before) :], pieces),
            )
            return item if self._line(number, item) == line else None
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None
        except DataError:
            return None

    def _request(self, number: int, name: str, item: Item) -> str:
        messages = self.calls[number].prompt(item).messages
        body = {
            **self._fields[number],
            "messages": [{"role": role, "content": said} for role, said in messages],
        }
        request = {
            "custom_id": name,
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": body,
        }
        return json.dumps(request, ensure_ascii=False, separators=(",", ":"))

    def _call_fields(self, call: Call) -> dict[str, Any]:
        """Return all fields of a request but its messages."""
        openai = self._target is ExportTarget.OPENAI_BATCH
        schema = accepted_schema(call.frame.schema) if openai else call.frame.schema
        limit = "max_completion_tokens" if openai else "max_tokens"
        fields = {
            "model": self._asking.model,
            limit: self._asking.max_tokens,
            "temperature": self._asking.temperature,
            "seed": self._asking.seed,
            "response_format": response_format(schema),
            **self._asking.extra,
        }
        kept = {name: value for name, value in fields.items() if value is not None}
        return kept | self._digest_field()

    def _digest_field(self) -> dict[str, Any]:
        """Return the field that carries the prompt's digest in every request.

        OpenAI refuses ``metadata`` unless it may store the conversation. What it has
        for telling requests with one prefix from others takes 64 characters.
        """
        if self._target is ExportTarget.OPENAI_BATCH:
            return {"prompt_cache_key": self.version.digest}
        return {"metadata": batch_metadata(self.version)}


def _inputs(content: str, pieces: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the inputs of what stands behind a frame: each ends where its words do."""
    found = {}
    *earlier, (last, ending) = pieces
    for name, after in earlier:
        found[name], _, content = content.partition(after)
    found[last] = content[: len(content) - len(ending)]
    return found


def batch_metadata(version: PromptVersion) -> dict[str, str]:
    """Return what says which prompt a batch was made from."""
    return {"ranloop_prompt": version.ref, "ranloop_digest": version.digest}


def response_format(schema: Mapping[str, object]) -> dict[str, object] | None:
    """Return the field of a request that asks for an answer of this schema.

    None for an empty one: the contract is answered in free text.
    """
    if not schema:
        return None
    answer = {"name": "answer", "schema": schema, "strict": True}
    return {"type": "json_schema", "json_schema": answer}


def accepted_schema(schema: Any) -> Any:
    """Return `schema` without the bounds that OpenAI's strict mode does not know.

    Only ``maxLength`` is left out: it bounds how long a quote may be and takes no
    answer away.
    """
    if isinstance(schema, Mapping):
        return {
            key: accepted_schema(value)
            for key, value in schema.items()
            if key != "maxLength" or isinstance(value, Mapping)
        }
    if isinstance(schema, list):
        return [accepted_schema(value) for value in schema]
    return schema


_SPECIAL = re.compile(r"\{(?=[{%#\r]|\n?\Z)|\r")


def call_files(call: Call, prefix: str) -> dict[str, bytes]:
    """Return the templates and the answer's schema of one call, by file name.

    Parameters
    ----------
    prefix
        Put before each file name: empty where there is one call.
    """
    system, user = call.frame.messages
    parts = [(None, user.content), *call.pieces]
    sources = {
        "system.jinja": template([(None, system.content)]),
        "user.jinja": template(
            [(name and f"{{{{ {name} }}}}", text) for name, text in parts]
        ),
        "schema.json": readable_json(call.frame.schema),
    }
    return {f"{prefix}{name}": text.encode("utf-8") for name, text in sources.items()}


def template(parts: Iterable[tuple[str | None, str]]) -> str:
    """Return a template from (expression before it, static text) pairs."""
    made = "".join((before or "") + escape(text) for before, text in parts)
    # Jinja drops a line end at the end of a file unless it is told to keep it.
    return made[:-1] + '{{ "\\n" }}' if made.endswith("\n") else made


def escape(text: str) -> str:
    """Return static text as template source that renders to it.

    Examples
    --------
    >>> escape("a {{ b }} {c}")
    'a {{ "{" }}{ b }} {c}'
    """
    return _SPECIAL.sub(lambda found: f"{{{{ {json.dumps(found[0])} }}}}", text)


def readable_json(value: object) -> str:
    """Return `value` as indented JSON, keys in their order: models answer in it."""
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
