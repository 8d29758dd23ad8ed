"""Servers that `ranloop serve` keeps running, as other commands find them."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from loop.core.errors import EngineError
from loop.core.files import make_folder, write_error
from loop.core.paths import Workspace


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
    Workspace(private.parent).open_private()
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
