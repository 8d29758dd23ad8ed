"""The files in an export's folder: regular ones, of the names expected, of no size."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from loop.core.errors import DataError

IGNORE = ".gitignore"
"""Keeps texts of cases out of a repository."""

MAX_BYTES = 64_000_000
"""Largest file read as a whole; files of requests are read line by line."""


def list_files(folder: Path) -> tuple[str, ...]:
    """Return the names of all files below `folder`, ``/`` between folders, sorted.

    Raises
    ------
    DataError
        It is no folder, or holds a link or anything else that is not a regular file.
    """
    if folder.is_symlink() or not folder.is_dir():
        raise DataError(f"{folder} is not a folder. Name the folder of an export.")
    try:
        return tuple(sorted(_walk(folder, "")))
    except OSError as error:
        raise DataError(f"cannot read {folder}: {error.strerror}.") from error


def _walk(folder: Path, before: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        found = list(entries)
    for entry in found:
        name = f"{before}{entry.name}"
        if entry.is_dir(follow_symlinks=False) and not before:
            yield from _walk(folder / entry.name, f"{name}/")
        elif entry.is_file(follow_symlinks=False):
            yield name
        else:
            raise DataError(
                f"{folder}: {entry.name!r} is not a regular file, and an export holds "
                "nothing else. Export it again."
            )


def open_plain(path: Path) -> int:
    """Return a handle that reads the plain file `path`; links are not followed.

    Raises
    ------
    DataError
        There is no such file, or it is none.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise DataError(f"{path} is not a regular file. Export it again.")
    return handle


def read_plain(path: Path) -> bytes:
    """Return the bytes of a plain file of an export.

    Raises
    ------
    DataError
        It cannot be read or is larger than any file of ours.
    """
    with os.fdopen(open_plain(path), "rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise DataError(f"{path} is larger than any file of an export. Export again.")
    return data


def digest_files(folder: Path) -> dict[str, str]:
    """Return every file below `folder` with its sha256.

    Raises
    ------
    DataError
        As for `list_files`.
    """
    digests = {}
    for name in list_files(folder):
        with os.fdopen(open_plain(folder / name), "rb") as stream:
            digests[name] = hashlib.file_digest(stream, "sha256").hexdigest()
    return digests
