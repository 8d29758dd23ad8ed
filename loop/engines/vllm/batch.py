"""The engine ``vllm`` for large offline work: files in, files out, no server."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path
from random import Random
from types import TracebackType
from typing import NamedTuple

from pydantic_core import from_json

from loop.core.errors import EngineError
from loop.core.files import write_error
from loop.core.records import Completion, Prompt, PromptFrame
from loop.engines.base import DEFAULT_THINKING, ModelName, Settings
from loop.engines.openai.client import Endpoint
from loop.engines.openai.completions import (
    TOO_LONG,
    RequestPrefix,
    ServerError,
    UnreadableAnswerError,
    chat_body,
    make_prefix,
    one_line,
    read_answer,
    read_error,
    request_fields,
    with_limit,
)
from loop.engines.openai.probe import Contradiction
from loop.engines.openai.sending import Account
from loop.engines.vllm.adapters import (
    check_adapter,
    digest_adapters,
    with_adapter,
)
from loop.engines.vllm.environment import (
    Installed,
    batch_command,
    find_vllm,
    read_facts,
    request_extras,
)
from loop.engines.vllm.running import GuardedProcess, serve_folder
from loop.engines.vllm.server import new_log

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


_YES, _SCHEMA = check_name("yes"), check_name("schema")
_SCHEMA_TOKENS = 160


class BatchChecks:
    """The probe's two requests, and one for each frame, for one batch runner."""

    def __init__(self, endpoint: Endpoint, settings: Settings, rng: Random) -> None:
        self._endpoint = endpoint
        self._settings = settings
        self._question = Contradiction(rng)
        self._awaited: set[str] = set()

    def lines(self) -> Iterator[BatchRequest]:
        """Yield the probe: two tokens, then a schema that contradicts the prompt."""
        endpoint, settings = self._endpoint, self._settings
        plain = with_limit(request_fields(endpoint, settings, None), 2)
        yield make_line(_YES, chat_body(plain, ("user", "Say yes.")))
        schema = self._question.schema
        bound = with_limit(request_fields(endpoint, settings, schema), _SCHEMA_TOKENS)
        yield make_line(_SCHEMA, chat_body(bound, self._question.message))

    def frame_line(self, number: int, prefix: RequestPrefix) -> BatchRequest:
        """Return the request for one token after a frame without any case."""
        return make_line(check_name(f"frame-{number}"), prefix.blank())

    def await_line(self, line: BatchRequest) -> None:
        """Learn that `line` is handed over: if it is a check, it must come back."""
        if line.is_check:
            self._awaited.add(line.name)

    def settle(self, results: Iterable[BatchResponse]) -> None:
        """Check what came back.

        Raises
        ------
        EngineError
            vLLM refuses a check or leaves one out, or does not enforce the schema.
        """
        found = {result.name: result for result in results}
        lost = self._awaited - found.keys()
        self._awaited.clear()
        if lost:
            raise EngineError(
                f"vLLM's batch runner returned nothing for {', '.join(sorted(lost))}, "
                "so nobody knows whether it enforces the schema; no answer is taken. "
                "Run the same command again, or leave out --batch."
            )
        for name, result in found.items():
            if result.status != 200:
                said = one_line(result.refusal.words if result.refusal else "")
                raise EngineError(
                    f"vLLM's batch runner refuses a request without any case in it "
                    f"({name}, HTTP {result.status}); it says: {said or 'nothing'}\n"
                    "Correct the prompt, the schema or extra_body in "
                    ".ranloop/config.yaml, then run again."
                )
        schema = found.get(_SCHEMA)
        if schema is not None and not self._question.schema_won(*schema.completion[:2]):
            raise EngineError(
                "vLLM's batch runner does not enforce the JSON schema of an answer. "
                "Use the server instead: leave out --batch; with "
                "--allow-unconstrained it is asked without a schema."
            )


CHUNK_BYTES = 256 * 2**20
"""Most bytes of requests handed over at a time; vLLM reads them all into memory."""

_LOOK_EVERY_S = 1.0


class BatchEngine:
    """One model behind vLLM's batch runner, which is started for each chunk."""

    def __init__(
        self,
        name: ModelName,
        settings: Settings,
        *,
        chunk_bytes: int = CHUNK_BYTES,
        rng: Random | None = None,
    ) -> None:
        self._name = name
        self._settings = settings
        self._serving = settings.config.engines.vllm
        self._chunk_bytes = chunk_bytes
        self._account = Account()
        # Nothing is connected to: the runner reads the path, not the host.
        self._endpoint = Endpoint(
            url="http://127.0.0.1/v1",
            model=name.adapter or name.model,
            serving=self._serving,
            extra_body=request_extras(self._serving),
        )
        self._checks = BatchChecks(self._endpoint, settings, rng or Random())
        self._prefixes: dict[int, RequestPrefix] = {}
        self._installed: Installed | None = None
        self._served: Mapping[str, object] = {}
        self._folder = Path()

    def __enter__(self) -> BatchEngine:
        """Find vLLM and read which model it is; nothing is started yet.

        Raises
        ------
        EngineError
            There is no vLLM, or the model cannot be read.
        """
        check_adapter(self._name.adapter, self._serving)
        if self._settings.thinking != DEFAULT_THINKING:
            raise EngineError(
                "vLLM's batch runner cannot be asked whether a level of thinking "
                "changes anything. Leave out --batch, or --thinking."
            )
        self._folder = serve_folder(self._settings.private)
        _remove_left_behind(self._folder)
        config = self._folder.parent / "config.yaml"
        self._installed = find_vllm(self._serving.python, config=config)
        facts = read_facts(
            self._installed, self._name.model, self._serving, runner="batch"
        )
        adapters = digest_adapters(self._serving)
        self._served = with_adapter(facts, adapters, self._name.adapter)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._installed = None

    def identity(self) -> Mapping[str, object]:
        """Return what can change an answer: the model, its vLLM, the asking."""
        self._opened()
        return {
            "engine": "vllm",
            "model": self._endpoint.model,
            "server": dict(self._served),
            "revision": self._serving.revision,
            "constrained": True,
            "extra_body": dict(self._endpoint.extra_body),
        }

    @property
    def retry_unreadable(self) -> int:
        """How often to ask a prompt again whose answer cannot be read."""
        return self._serving.retry_unreadable

    def redraw(self, draw: int) -> BatchEngine:
        """Return this engine, as open as it is, with `draw` added to its seed."""
        other = copy(self)
        seed = self._settings.seed + draw
        other._settings = replace(self._settings, seed=seed)
        other._prefixes = {}
        return other

    def account(self) -> Mapping[str, object]:
        """Return the counts of all requests so far, the checks not among them."""
        return self._account.as_data()

    def complete(self, prompts: Iterable[Prompt]) -> Iterator[tuple[int, Completion]]:
        """Yield ``(index, completion)``, a chunk of prompts at a time.

        Raises
        ------
        EngineError
            The runner does not do its work, or the deadline is over.
        """
        deadline_s = self._serving.deadline_s
        until = None if deadline_s is None else time.monotonic() + deadline_s
        start = 0
        for lines in self._chunks(prompts):
            name = f"batch-{os.getpid()}-"
            with tempfile.TemporaryDirectory(prefix=name, dir=self._folder) as work:
                files = (Path(work, "requests.jsonl"), Path(work, "answers.jsonl"))
                asked = self._run(files, lines, until)
                yield from self._read(files[1], range(start, start + asked))
            start += asked

    def _opened(self) -> Installed:
        if self._installed is None:
            raise ValueError("the engine is not open: use it in a `with` block")
        return self._installed

    def _chunks(self, prompts: Iterable[Prompt]) -> Iterator[Iterator[BatchRequest]]:
        """Yield the lines of one chunk after the other; each is drawn to its end.

        A prompt is drawn when its line is written: none is held but the one that
        begins the next chunk.
        """
        lines = self._lines(prompts)
        waiting = next(lines, None)

        def fill(first: BatchRequest) -> Iterator[BatchRequest]:
            nonlocal waiting
            line: BatchRequest | None = first
            size = 0
            while line is not None and (not size or size + len(line.data) <= limit):
                size += len(line.data)
                yield line
                line = next(lines, None)
            waiting = line

        limit = self._chunk_bytes
        while waiting is not None:
            yield fill(waiting)

    def _lines(self, prompts: Iterable[Prompt]) -> Iterator[BatchRequest]:
        """Yield all lines: the probe, then each prompt, its frame checked first."""
        for index, prompt in enumerate(prompts):
            if not index:
                yield from self._checks.lines()
            known = len(self._prefixes)
            prefix = self._prefix(prompt.frame)
            if len(self._prefixes) > known:
                yield self._checks.frame_line(known, prefix)
            yield make_line(str(index), prefix.body(prompt.tail))

    def _prefix(self, frame: PromptFrame) -> RequestPrefix:
        found = self._prefixes.get(id(frame))
        if found is None or found.frame is not frame:
            found = make_prefix(frame, self._endpoint, self._settings, constrained=True)
            self._prefixes[id(frame)] = found
        return found

    def _run(
        self,
        files: tuple[Path, Path],
        lines: Iterable[BatchRequest],
        until: float | None,
    ) -> int:
        """Have the runner answer one chunk and return the number of its prompts."""
        requests, answers = files
        asked = 0

        def counted() -> Iterator[BatchRequest]:
            nonlocal asked
            for line in lines:
                asked += not line.is_check
                self._checks.await_line(line)
                yield line

        sent = write_lines(requests, counted())
        write_lines(answers, ())
        log = new_log(self._folder, "batch")
        self._settings.tell(
            f"vLLM's batch runner answers {asked} prompts with {self._name.model}; its "
            f"log is {log}"
        )
        status = self._wait(files, log, until)
        if status and count_lines(answers) < sent:
            raise EngineError(
                f"vLLM's batch runner ended without answering (exit status {status}). "
                f"Its log is {log}; it may hold text of cases. Correct what it says "
                "and run the same command again: what was answered is kept."
            )
        log.unlink(missing_ok=True)
        return asked

    def _wait(self, files: tuple[Path, Path], log: Path, until: float | None) -> int:
        """Start the runner and return its exit status."""
        command = batch_command(self._opened(), self._name.model, self._serving, files)
        process = GuardedProcess(command, log)
        try:
            while (status := process.wait(_LOOK_EVERY_S)) is None:
                if until is not None and time.monotonic() > until:
                    raise EngineError(
                        f"the deadline of {self._serving.deadline_s:g} s is over. Run "
                        "the same command again to go on: what was answered is kept."
                    )
            return status
        finally:
            process.stop()

    def _read(self, answers: Path, indices: range) -> Iterator[tuple[int, Completion]]:
        """Yield what became of each prompt, once the checks are passed."""
        self._checks.settle(read_results(answers, checks=True))
        missing = set(map(str, indices))
        for result in read_results(answers, checks=False):
            if result.name in missing:
                missing.remove(result.name)
                self._count(result)
                yield int(result.name), result.completion
        for name in sorted(missing, key=int):
            lost = Completion("", "error", "the batch runner returned nothing")
            self._count(BatchResponse(name, lost, 0))
            yield int(name), lost

    def _count(self, result: BatchResponse) -> None:
        self._account.requests += 1
        if result.status == 200:
            self._account.add_answer(result.completion)
        else:
            why = f"HTTP {result.status}" if result.status else "unreadable or missing"
            self._account.failed[why] += 1


def _remove_left_behind(folder: Path) -> None:
    """Remove files of runs that were killed: they hold text of cases."""
    for left in folder.glob("batch-*-*"):
        pid = left.name.split("-")[1]
        if left.is_dir() and pid.isdigit() and not _is_alive(int(pid)):
            shutil.rmtree(left, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
