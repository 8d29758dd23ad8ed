"""The folder in which an export is made: it appears whole, or nothing of it stays."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loop.core.errors import ConflictError
from loop.core.files import sync_folder, write_error


@contextmanager
def staged(out: Path) -> Iterator[Path]:
    """Yield a new folder beside `out`, which only its owner may enter.

    Whatever is left of it at the end of the block is removed, and so is what a killed
    export to `out` left behind: it may hold texts of cases.

    Raises
    ------
    WriteError
        It cannot be created.
    """
    prefix = f".{out.name}.export-"
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        _remove_left_behind(out.parent, prefix)
        folder = Path(tempfile.mkdtemp(dir=out.parent, prefix=prefix))
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise write_error(out, error) from error
    try:
        # Held until the process ends, however that is.
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def publish(folder: Path, out: Path) -> None:
    """Move the finished folder into place; one that holds something is not replaced.

    Raises
    ------
    ConflictError
        Somebody was faster.
    WriteError
        It cannot be moved.
    """
    try:
        os.rename(folder, out)
        sync_folder(out.parent)
    except OSError as error:
        if os.path.lexists(out):
            raise ConflictError(
                f"{out} appeared while the export was written. Name another folder."
            ) from error
        raise write_error(out, error) from error


def _remove_left_behind(parent: Path, prefix: str) -> None:
    """Remove the folders of exports that nobody writes any more."""
    with os.scandir(parent) as entries:
        left = [
            entry.path
            for entry in entries
            if entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False)
        ]
    for path in left:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        except BlockingIOError:
            continue
        finally:
            os.close(handle)
