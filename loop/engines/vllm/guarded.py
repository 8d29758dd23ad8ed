"""A process that ends with ours, however ours ends, and writes to a private log."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

from loop.core.files import write_error
from loop.engines.vllm.command import Command

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
