"""Files from browsers: the one way in, private, owned by a session, and not for long.

A browser sends a file as the body of a request and gets a random id for it. Paths never
come from a browser: an event names the id, and only the session that sent the file
finds it again.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response
from starlette.requests import ClientDisconnect

from loop.core.errors import DataError, LoopError
from loop.core.files import make_folder
from loop.core.paths import WorkspacePaths
from loop.core.people.users import PermissionRefused, Right
from loop.ui.access.access import Access
from loop.ui.access.gate import SIZES
from loop.ui.access.rules import UPLOAD
from loop.ui.context import AppContext

KEPT_S = 3600.0
"""How long a file that nobody imported or discarded is kept, seconds."""

MOST = 8
"""Files of one session that wait; one more takes the place of the oldest."""

SWEEP_S = 5.0
"""How often it is looked for files whose session has ended, seconds."""

_NO_ROOM = (
    "the file could not be kept: the server has no room for it, or may not write. Tell "
    "whoever runs ranloop here."
)
_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_LONGEST_NAME = 200
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BUFFER = 1 << 20


def open_inbox(workspace: WorkspacePaths) -> Path:
    """Return the folder in which uploads wait, 0700 and empty.

    Called once, when the server starts: nothing that was uploaded outlives it.

    Raises
    ------
    WriteError
        The workspace cannot be written.
    """
    shutil.rmtree(_inbox(workspace), ignore_errors=True)
    make_folder(_inbox(workspace), mode=0o700)
    return _inbox(workspace)


def add_uploads(app: FastAPI, context: AppContext) -> None:
    """Take files at ``POST /upload?name=...``, the file as the body.

    Takes the right to import. Answers ``{"id": ..., "name": ...}``, or why it was
    refused, as ``{"detail": ...}``.
    """

    async def upload(request: Request) -> Response:
        name = request.query_params.get("name", "")
        try:
            context.access.require(request, Right.IMPORT)
            owner = context.access.session_id(request)
            found = await _take(context.workspace, owner, name, request.stream())
        except PermissionRefused as error:
            return JSONResponse({"detail": str(error)}, status_code=403)
        except LoopError as error:
            return JSONResponse({"detail": str(error)}, status_code=422)
        except ClientDisconnect:
            return Response(status_code=400)
        return JSONResponse({"id": found.parent.name, "name": found.name})

    app.post(UPLOAD, include_in_schema=False)(upload)


async def _take(
    workspace: WorkspacePaths, owner: str, name: str, body: AsyncIterator[bytes]
) -> Path:
    """Write a body into a folder of its own; nothing stays of one that breaks off."""
    try:
        path = await run_in_threadpool(_prepare, workspace, owner, name)
    except OSError as error:
        raise DataError(_NO_ROOM) from error
    try:
        handle = os.open(path, _NEW, 0o600)
        with os.fdopen(handle, "wb", buffering=_BUFFER) as file:
            size = 0
            async for piece in body:
                size += len(piece)
                if size > SIZES.upload:
                    raise DataError(f"the file is longer than {SIZES.upload:,} bytes.")
                await run_in_threadpool(file.write, piece)
                # A slow file is none that was forgotten.
                await run_in_threadpool(os.utime, path.parent)
            await run_in_threadpool(file.flush)
        if not path.exists():
            raise DataError("your session ended before the file was whole. Sign in.")
    except BaseException as error:
        with anyio.CancelScope(shield=True):
            await run_in_threadpool(discard, path)
        if isinstance(error, OSError):
            raise DataError(_NO_ROOM) from error
        raise
    return path


def _prepare(workspace: WorkspacePaths, owner: str, name: str) -> Path:
    """Return where a file of that name shall be written; its folder is there."""
    fine = name.isprintable() and "/" not in name and name not in ("", ".", "..")
    if not fine or len(name.encode()) > _LONGEST_NAME:
        raise DataError(
            "the name of the file cannot be used here. Give it a shorter name of plain "
            "letters and upload it again."
        )
    own = _inbox(workspace) / owner
    if own.is_dir():
        waiting = sorted(own.iterdir(), key=lambda one: one.stat().st_mtime)
        for folder in waiting[: max(len(waiting) - MOST + 1, 0)]:
            shutil.rmtree(folder, ignore_errors=True)
    folder = own / secrets.token_hex(16)
    make_folder(own, mode=0o700)
    make_folder(folder, mode=0o700)
    return folder / name


def find_upload(workspace: WorkspacePaths, owner: str, upload: str | None) -> Path:
    """Return the file that a session has uploaded under an id.

    Raises
    ------
    DataError
        This session has none under it, or not any more, or it is no file as uploads are
        written: a link, a device, another person's, or too long.
    """
    gone = DataError("the uploaded file is not there any more. Upload it again.")
    if not isinstance(upload, str) or not _ID.fullmatch(upload):
        raise gone
    folder = _inbox(workspace) / owner / upload
    try:
        (path,) = folder.iterdir()
        seen = path.lstat()
    except (OSError, ValueError):
        raise gone from None
    ours = stat.S_ISREG(seen.st_mode) and seen.st_uid == os.getuid()
    if folder.is_symlink() or not ours or seen.st_nlink != 1:
        raise gone
    if seen.st_size > SIZES.upload:
        raise gone
    return path


def discard(path: Path) -> None:
    """Delete an uploaded file; nothing happens when it is gone."""
    shutil.rmtree(path.parent, ignore_errors=True)


def sweep(
    workspace: WorkspacePaths,
    open_sessions: Callable[[], Iterable[str]],
    older_s: float = KEPT_S,
) -> None:
    """Delete what waits for no open session, or for more than `older_s` seconds.

    Parameters
    ----------
    open_sessions
        Returns the sessions that are open, as `Access.session_id` names them.
    """
    edge, inbox = time.time() - older_s, _inbox(workspace)
    # Listed first: a session that begins meanwhile keeps its first file.
    found = list(inbox.iterdir()) if inbox.is_dir() else []
    known = frozenset(open_sessions()) if found else frozenset()
    for own in found:
        if own.name not in known:
            shutil.rmtree(own, ignore_errors=True)
            continue
        for folder in own.iterdir():
            with suppress(FileNotFoundError):
                if folder.stat().st_mtime < edge:
                    shutil.rmtree(folder, ignore_errors=True)


async def keep_swept(workspace: WorkspacePaths, access: Access) -> None:
    """Sweep every few seconds, until cancelled."""
    while True:
        await anyio.sleep(SWEEP_S)
        with suppress(LoopError, OSError):
            await run_in_threadpool(sweep, workspace, access.open_sessions)


@contextmanager
def named_shortly(path: Path) -> Iterator[None]:
    """Name an uploaded file by its name alone in errors, not by where it waits.

    Raises
    ------
    DataError
        In place of every `LoopError` of the block.
    """
    try:
        yield
    except LoopError as error:
        raise DataError(str(error).replace(f"{path.parent}/", "")) from error


def _inbox(workspace: WorkspacePaths) -> Path:
    return workspace.private / "uploads"
