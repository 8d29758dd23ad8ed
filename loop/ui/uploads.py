"""Where uploaded files wait: private, each in a folder of its own, and not for long."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loop.core.errors import DataError, LoopError
from loop.core.files import make_folder, write_error
from loop.core.paths import Workspace

KEPT_S = 3600.0
"""How long a file that nobody imported or discarded is kept, seconds."""


def open_inbox(workspace: Workspace) -> Path:
    """Return the folder that browsers upload into, 0700 and empty.

    Called once, when the server starts: nothing that was uploaded outlives it.

    Raises
    ------
    WriteError
        The workspace cannot be written.
    """
    for folder in (_inbox(workspace), _waiting(workspace)):
        shutil.rmtree(folder, ignore_errors=True)
        make_folder(folder, mode=0o700)
    return _inbox(workspace)


def receive(workspace: Workspace, uploaded: str) -> Path:
    """Move an uploaded file to where no browser can fetch it, and return its path.

    Its name stays, so that messages can name it.

    Raises
    ------
    DataError
        It is not there any more, or does not lie where uploads lie.
    WriteError
        The workspace cannot be written.
    """
    source, inbox = Path(uploaded), _inbox(workspace)
    if not source.resolve().is_relative_to(inbox.resolve()) or not source.is_file():
        raise DataError("the uploaded file is not there any more. Upload it again.")
    folder = _waiting(workspace) / secrets.token_hex(16)
    make_folder(folder, mode=0o700)
    target = folder / source.name
    try:
        shutil.move(source, target)
        target.chmod(0o600)
    except OSError as error:
        raise write_error(target, error) from error
    shutil.rmtree(source.parent, ignore_errors=True)
    return target


def discard(path: Path) -> None:
    """Delete a file that `receive` returned; nothing happens when it is gone."""
    shutil.rmtree(path.parent, ignore_errors=True)


def sweep(workspace: Workspace, older_s: float = KEPT_S) -> None:
    """Delete what was uploaded more than `older_s` seconds ago and never used."""
    edge = time.time() - older_s
    for folder in (_inbox(workspace), _waiting(workspace)):
        for path in folder.iterdir() if folder.is_dir() else ():
            try:
                old = path.stat().st_mtime < edge
            except FileNotFoundError:
                continue
            if old and path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif old:
                path.unlink(missing_ok=True)


@contextmanager
def named_shortly(path: Path) -> Iterator[None]:
    """Name a received file by its name alone in errors, not by where it waits.

    Raises
    ------
    DataError
        In place of every `LoopError` of the block.
    """
    try:
        yield
    except LoopError as error:
        raise DataError(str(error).replace(f"{path.parent}/", "")) from error


def _inbox(workspace: Workspace) -> Path:
    return workspace.private / "uploads"


def _waiting(workspace: Workspace) -> Path:
    return workspace.private / "received"
