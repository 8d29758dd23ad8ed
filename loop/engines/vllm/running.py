"""Servers that `ranloop serve` keeps running, as other commands find them."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import BaseModel, ConfigDict, ValidationError

from loop.core.errors import EngineError
from loop.core.files import make_folder, write_error
from loop.core.paths import WorkspacePaths
from loop.engines.vllm.environment import Command

_GUARD = Path(__file__).with_name("guard.py")
_GRACE_S = 10.0
"""How long a process may take to end by itself once it is asked to, seconds."""

_TAIL = 64 * 2**10
"""How much of a log's end is looked at, bytes."""

_MOST_CHARACTERS = 300


class GuardedProcess:
    """A command under a guard that kills it, and all it started, without us."""

    def __init__(
        self, command: Command, log: Path, *, grace_s: float = _GRACE_S
    ) -> None:
        """Start `command` with its output added to `log`.

        Raises
        ------
        WriteError
            The log cannot be written.
        """
        self._grace_s = grace_s
        watched, self._pipe = os.pipe()
        try:
            with open_log(log) as stream:
                guard = (sys.executable, "-I", str(_GUARD), str(watched), str(grace_s))
                self._guard = subprocess.Popen(
                    [*guard, *command.arguments],
                    env=dict(command.environment),
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=(watched,),
                )
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(watched)

    def status(self) -> int | None:
        """Return the exit status, 128 more than a signal; None while it runs."""
        return self._guard.poll()

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit status once it ended; None after `timeout_s` seconds."""
        try:
            return self._guard.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def stop(self) -> None:
        """End the process and everything it started, and wait until it has ended."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        if self.wait(self._grace_s + 5.0) is None:
            self._guard.kill()
            self._guard.wait()


def open_log(path: Path) -> BinaryIO:
    """Open `path` to add to it, readable by its owner alone.

    Raises
    ------
    WriteError
        It cannot be written.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise write_error(path, error) from error
    return os.fdopen(handle, "wb")


def last_words(log: Path, most: int = 4) -> str:
    """Return what a log says of an end: its last lines with an error, else its last.

    For logs of processes that were not yet asked anything: they may hold text of
    cases later.
    """
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - _TAIL))
            text = stream.read().decode("utf-8", "replace")
    except OSError:
        return ""
    lines = list(dict.fromkeys(_plain(line) for line in text.splitlines()))
    said = [line for line in lines if line]
    errors = [line for line in said if "error" in line.lower()]
    return "\n".join(f"  {line}" for line in (errors or said)[-most:])


def _plain(line: str) -> str:
    """Return one line without control characters, cut to a bearable length."""
    plain = "".join(char if char.isprintable() else " " for char in line).strip()
    return plain[:_MOST_CHARACTERS]


class Running(BaseModel):
    """One server that is ready."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pid: int
    """Process of `ranloop serve`."""

    model: str
    url: str
    adapters: Mapping[str, str] = {}
    """Name of each LoRA adapter to the digest of its folder."""

    served: Mapping[str, Any]
    """What can change its answers, for the identity of engines."""

    digest: str
    """Of `served`."""


def serve_folder(private: Path | None) -> Path:
    """Return the folder of logs and records, made if needed.

    Raises
    ------
    EngineError
        There is no workspace.
    WriteError
        It cannot be made.
    """
    if private is None:
        raise EngineError(
            "vLLM is started for a workspace only: its log needs a private place. Run "
            "this in a workspace; `ranloop init DIR` makes one."
        )
    WorkspacePaths(private.parent).open_private()
    folder = private / "serve"
    make_folder(folder, mode=0o700)
    return folder


@contextmanager
def announced(folder: Path, running: Running) -> Iterator[Path]:
    """Keep the record of `running` for the length of the block.

    The record is locked as long as this process lives, which is how others see
    whether it does: the kernel takes the lock away however a process ends.

    Raises
    ------
    WriteError
        The record cannot be written.
    """
    path = folder / f"{running.pid}.json"
    handle = _lock_record(path, running.model_dump_json())
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _lock_record(path: Path, text: str) -> int:
    """Write a record and return the handle that keeps it locked."""
    fresh = path.with_suffix(".new")
    try:
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
        os.write(handle, text.encode("utf-8"))
        # Under its name only once it is locked, so that nobody takes it for old.
        os.replace(fresh, path)
    except OSError as error:
        raise write_error(path, error) from error
    return handle


def find_running(folder: Path, model: str, adapter: str | None) -> Running | None:
    """Return a running server that serves `model` with `adapter`; None without one.

    Records of processes that are gone are removed.
    """
    for path in sorted(folder.glob("*.json")):
        found = _read(path)
        if found is None or found.model != model:
            continue
        if adapter is None or adapter in found.adapters:
            return found
    return None


def list_running(folder: Path) -> list[Path]:
    """Return the records in `folder` whose servers run."""
    held = []
    for path in sorted(folder.glob("*.json")):
        with suppress(OSError), path.open("rb") as stream:
            if _is_locked(stream.fileno()):
                held.append(path)
    return held


def _read(path: Path) -> Running | None:
    """Return the record in `path` if the process that holds it lives."""
    try:
        with path.open("rb") as stream:
            if not _is_locked(stream.fileno()):
                path.unlink(missing_ok=True)
                return None
            return Running.model_validate(json.loads(stream.read()))
    except (OSError, ValueError, ValidationError):
        return None


def _is_locked(handle: int) -> bool:
    """Return whether another open file holds the lock."""
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
