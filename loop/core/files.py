"""Atomic files and folders, and locks: nothing half-written, nothing lost."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from loop.core.errors import ConflictError, DataError, WriteError

_HINTS = {
    errno.ENOSPC: "The disk is full: free some space and run the command again.",
    errno.EDQUOT: "The disk quota is used up: free some space and run it again.",
    errno.EROFS: "The file system is read-only: use a workspace you can write.",
    errno.EACCES: "Permission denied: use a workspace you can write, or chmod it.",
    errno.EPERM: "Operation not permitted: use a workspace you can write.",
}


def write_error(path: Path, cause: OSError) -> WriteError:
    """Return a `WriteError` that says what to do about `cause`."""
    hint = _HINTS.get(cause.errno or 0, "Check the path and run the command again.")
    reason = cause.strerror or str(cause) or type(cause).__name__
    return WriteError(f"cannot write {path}: {reason}. {hint} Nothing was changed.")


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file with its line ends as they are.

    Raises
    ------
    DataError
        The file is missing, unreadable or not UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist. Check the name.") from error
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not UTF-8 (byte {error.start}). Convert it to UTF-8."
        ) from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error


def write_atomic(path: Path, data: bytes | str, *, mode: int | None = None) -> None:
    """Write `data` to `path` so that a crash leaves the old file or the new one.

    Temporary file in the same folder, fsync, rename, fsync of the folder.

    Raises
    ------
    WriteError
        The disk is full, read-only, or permission is missing.
    """
    raw = data.encode("utf-8") if isinstance(data, str) else data
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as stream:
            stream.write(raw)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, mode if mode is not None else 0o644 & ~_umask())
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)
        raise write_error(path, error) from error


def make_folder(path: Path, *, mode: int = 0o755) -> None:
    """Create `path` and its parents, with `mode` on the last one.

    Raises
    ------
    WriteError
        It cannot be created.
    """
    try:
        path.mkdir(parents=True, exist_ok=True, mode=mode)
    except OSError as error:
        raise write_error(path, error) from error


def sync_folder(path: Path) -> None:
    """Make renames inside `path` survive a power loss."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def folder_beside(target: Path, mark: str = "new") -> Iterator[Path]:
    """Yield a new folder beside `target`, which only its owner may enter.

    Whatever is left of it at the end of the block is removed, and so is what a killed
    process left behind there under the same `mark`.

    Raises
    ------
    WriteError
        It cannot be created.
    """
    prefix = f".{target.name}.{mark}-"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(target.parent, prefix)
        folder = Path(tempfile.mkdtemp(dir=target.parent, prefix=prefix))
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise write_error(target, error) from error
    try:
        # Held until the process ends, however that is.
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def _remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove folders that nobody writes any more."""
    with os.scandir(parent) as entries:
        left = [
            entry.path
            for entry in entries
            if entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False)
        ]
    for path in left:
        with suppress(FileNotFoundError):
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            except BlockingIOError:
                continue
            finally:
                os.close(handle)


def move_folder(
    folder: Path, target: Path, *, taken: str, over_empty: bool = False
) -> None:
    """Move a finished folder into place by one rename; nothing is replaced.

    Parameters
    ----------
    taken
        The message where something is there.
    over_empty
        Whether an empty folder may be there.

    Raises
    ------
    ConflictError
        Something is there.
    WriteError
        It cannot be moved.
    """
    if not over_empty and os.path.lexists(target):
        raise ConflictError(taken)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        os.rename(folder, target)
        sync_folder(target.parent)
    except OSError as error:
        if os.path.lexists(target):
            raise ConflictError(taken) from error
        raise write_error(target, error) from error


def replace_folder(folder: Path, target: Path) -> None:
    """Move a finished folder into place; what is there goes, once that has worked.

    Killed in between, what was there lies beside it, its name beginning with a dot.

    Raises
    ------
    WriteError
        It cannot be moved; what was there is unchanged.
    """
    aside = folder.with_name(f"{folder.name}.old")
    try:
        there = target.exists()
        if there:
            os.rename(target, aside)
        try:
            os.rename(folder, target)
        except OSError:
            if there:
                os.rename(aside, target)
            raise
        sync_folder(target.parent)
    except OSError as error:
        raise write_error(target, error) from error
    shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the exclusive lock file `path` for the length of the block.

    Raises
    ------
    ConflictError
        `wait` is false and another process holds the lock.
    WriteError
        The lock file cannot be created.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise write_error(path, error) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            raise ConflictError(
                f"{path.name} is held by another ranloop process. "
                "Wait for it to finish and run the command again."
            ) from error
        yield
    finally:
        os.close(handle)


def _umask() -> int:
    """Return the umask of the process, which can only be read by setting it."""
    current = os.umask(0)
    os.umask(current)
    return current
