"""Files of requests: a new one where a target takes no more in one."""

from __future__ import annotations

import os
from pathlib import Path

from loop.core.files import write_error

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
