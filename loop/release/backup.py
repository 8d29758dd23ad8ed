"""Backups: a whole workspace in one file, encrypted with a passphrase.

The file begins with a line that names the format, 16 bytes of salt, 32 bytes that tell
a wrong passphrase, and the sha256 of these. scrypt makes 64 bytes of passphrase and
salt: a key, and what the 32 bytes are the sha256 of. Parts follow, each 1 MiB before
it is sealed with AES-256-GCM, the last one shorter. The nonce of a part is its number
and whether it is the last, so that no part can be changed, moved, left out or cut off
unseen. Inside, each file is a line of JSON with its path and size, and then its bytes;
links, devices, modes and compressed bytes cannot be said there. The last line says how
many files there were.

References
----------
V. T. Hoang, R. Reyhanitabar, P. Rogaway, D. Vizár, Online Authenticated-Encryption and
its Nonce-Reuse Misuse-Resistance, CRYPTO 2015 (STREAM). C. Percival, S. Josefsson, RFC
7914, 2016 (scrypt).
"""

from __future__ import annotations

import filecmp
import hashlib
import hmac
import json
import os
import secrets
import shutil
from collections import deque
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final, NamedTuple
from unicodedata import normalize

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from loop.core.errors import ConflictError, DataError
from loop.core.files import folder_beside, make_folder, move_folder, write_error
from loop.core.paths import WorkspacePaths
from loop.core.people.passwords import Cost, check_password
from loop.run.database import snapshot

_FORMAT: Final = b"ranloop backup 1\n"
_SALT: Final = 16
_CHECK: Final = 32
_HEAD: Final = len(_FORMAT) + _SALT + 2 * _CHECK
_PART: Final = 2**20
_TAG: Final = 16
_LINE: Final = 2**16
"""Most bytes of a line that names a file."""

_COST = Cost(n=2**17, r=8, p=1)
"""128 MiB and about half a second for each guess of a passphrase."""

_TRIES: Final = 3
_PUBLIC: Final = ("prompts", "labels", "reports", ".gitignore", ".gitattributes")
_PRIVATE: Final = ".ranloop"
_PASSING: Final = ("locks", "trials", "freezing", "uploads", "serve")
"""Private folders of commands that run, empty or worthless when they have ended."""

_STEADY: Final = (*_PUBLIC, *(f"{_PRIVATE}/{name}" for name in ("cases", "keys")))
"""What must not change while it is copied: a ledger, digests, and what they are of."""


class BackedUp(NamedTuple):
    """A backup as it was written, or restored."""

    path: Path
    """The file, or the workspace that was made of it."""

    files: int
    size: int
    """Bytes of these files."""

    digest: str
    """Sha256 of the backup's file."""


def write_backup(workspace: WorkspacePaths, target: Path, passphrase: str) -> BackedUp:
    """Write `workspace` to the file `target`, private state and keys included.

    Others may go on working: the store is copied as it is at one moment. What git
    holds (``.git``) and other folders beside the workspace's own are not in it.

    Raises
    ------
    DataError
        The passphrase is easy to guess, `target` lies among the workspace's own files,
        or the workspace holds a link, or something that cannot be read.
    ConflictError
        `target` is there, or prompts, labels or texts changed all the time.
    StoreError
        The store is damaged or locked.
    WriteError
        It cannot be written; there is no new file.
    """
    _check_passphrase(passphrase)
    workspace.require_outside(target)
    taken = f"{target} is there already: a backup is never replaced. Name a new file."
    if os.path.lexists(target):
        raise ConflictError(taken)
    for _ in range(_TRIES):
        with (
            folder_beside(target, "backup") as folder,
            folder_beside(workspace.open_private() / "store", "backup") as mine,
        ):
            before, file = _states(workspace), folder / "backup"
            made = _write(workspace, file, mine, passphrase)
            if _states(workspace) == before:
                move_folder(file, target, taken=taken)
                return made._replace(path=target)
    raise ConflictError(
        f"{workspace.root} changed each time while it was copied. Wait for imports and "
        "freezes to end, and run the same command again. Nothing was written."
    )


def restore_backup(
    file: Path, target: Path, passphrase: str, *, private_only: bool = False
) -> BackedUp:
    """Make the workspace `target` of the backup `file`: all of it, or nothing.

    `target` is missing or empty, or has the public part only, as a clone of a
    repository has. Nothing that is there is replaced: public files that are there must
    be the same as in the backup, unless only the private part is asked for.

    Parameters
    ----------
    private_only
        Restore ``.ranloop/`` alone, beside the public part that is there.

    Raises
    ------
    DataError
        The passphrase is wrong, the file is damaged, cut off or no backup, or it names
        a file outside a workspace.
    ConflictError
        `target` has private state, other public files, or is no workspace.
    WriteError
        It cannot be written; `target` is unchanged.
    """
    there = _look_at(target, private_only)
    with folder_beside(target, "restore") as folder:
        made = folder / "workspace"
        found = _read(file, made, passphrase, private_only)
        os.sync()
        if not there:
            taken = f"{target} is not empty any more. Name another folder."
            move_folder(made, target, taken=taken, over_empty=True)
        else:
            _join(made, target, private_only)
    return found._replace(path=target)


def _write(
    workspace: WorkspacePaths, file: Path, mine: Path, passphrase: str
) -> BackedUp:
    """Write the file; a store is copied into `mine` first: elsewhere it is sealed."""
    files = size = 0
    try:
        with open(file, "xb", opener=_only_mine) as stream:
            parts = _PartWriter(stream, passphrase)
            for name, path in _find_files(workspace):
                source = path
                if _is_store(name):
                    source = mine / "store.db"
                    source.unlink(missing_ok=True)
                    snapshot(path, source)
                if (handle := _open(source)) is not None:
                    size += _add(parts, name, handle)
                    files += 1
            parts.write(json.dumps({"files": files}).encode() + b"\n")
            parts.finish()
            stream.flush()
            os.fsync(stream.fileno())
        with open(file, "rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise write_error(file, error) from error
    return BackedUp(file, files, size, digest)


def _only_mine(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _add(parts: _PartWriter, name: str, handle: int) -> int:
    """Add an open file as it is now, close it, and return its size."""
    with os.fdopen(handle, "rb") as stream:
        size = left = os.fstat(handle).st_size
        parts.write(json.dumps({"path": name, "size": size}).encode() + b"\n")
        while left and (block := stream.read(min(left, _PART))):
            parts.write(block)
            left -= len(block)
    if left:
        raise ConflictError(
            f"{name} was changed while it was copied. Run the same command again."
        )
    return size


def _open(path: Path) -> int | None:
    """Open a file; None for one that is gone: what must stay is compared later."""
    try:
        return os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unread(error) from error


def _find_files(workspace: WorkspacePaths) -> Iterator[tuple[str, Path]]:
    """Yield what belongs into a backup: public first, stores last.

    What the ledger names is then in a store that is copied later.
    """
    public = [one for top in _PUBLIC for one in _walk(workspace.root, top)]
    private = [
        (name, path)
        for name, path in _walk(workspace.root, _PRIVATE)
        if not _passes(PurePosixPath(name))
    ]
    yield from public
    yield from sorted(private, key=lambda one: _is_store(one[0]))


def _is_store(name: str) -> bool:
    return name.startswith(f"{_PRIVATE}/") and name.endswith(".db")


def _passes(name: PurePosixPath) -> bool:
    """Whether a private file is of a command that runs, and of no use afterwards."""
    first, last = name.parts[1], name.name
    return (
        first in _PASSING
        or any(part.startswith(".") for part in name.parts[1:] if part != ".gitignore")
        or last == "lock"
        or last.endswith((".db-wal", ".db-shm", ".db-journal"))
    )


def _walk(root: Path, top: str) -> Iterator[tuple[str, Path]]:
    """Yield the files of `root` under `top`, by name, in a fixed order."""
    if (root / top).is_file():
        yield top, root / top
        return
    for folder, folders, files in os.walk(root / top, onerror=_refuse_unread):
        folders.sort()
        here = Path(folder)
        for name in (*folders, *files):
            if (here / name).is_symlink():
                shown = (here / name).relative_to(root)
                raise DataError(
                    f"{shown} is a link: a backup would lack what it points to. Put "
                    "the file or folder itself in its place, and run it again."
                )
        for name in sorted(files):
            path = here / name
            if path.is_file():
                yield path.relative_to(root).as_posix(), path


def _refuse_unread(error: OSError) -> None:
    """Refuse a folder that cannot be read: a backup that lacks it would be none."""
    if not isinstance(error, FileNotFoundError):
        raise _unread(error) from error


def _unread(error: OSError) -> DataError:
    return DataError(
        f"cannot read {error.filename}: {error.strerror}. Correct its permissions or "
        "owner, and run the same command again. Nothing was written."
    )


def _states(workspace: WorkspacePaths) -> Mapping[str, tuple[int, int, int]]:
    """Return what of each file changes with its content."""
    found = {}
    for top in _STEADY:
        for name, path in _walk(workspace.root, top):
            try:
                state = path.stat()
            except FileNotFoundError:
                continue
            found[name] = (state.st_size, state.st_mtime_ns, state.st_ino)
    return found


def _read(file: Path, target: Path, passphrase: str, private_only: bool) -> BackedUp:
    """Write the files of a backup, or the private ones, into the folder `target`."""
    files = size = 0
    names: set[str] = set()
    for top in ("prompts", "labels"):
        make_folder(target / top)
    make_folder(target / _PRIVATE, mode=0o700)
    try:
        with open(file, "rb") as stream:
            opened = _PartReader(stream, passphrase, file)
            while "files" not in (line := opened.read_line()):
                name, more = _check_line(line, names, file)
                if private_only and name.parts[0] != _PRIVATE:
                    deque(opened.read_blocks(more), maxlen=0)
                    continue
                size += _take(opened, name, more, target)
                files += 1
            if line["files"] != len(names) or opened.read(1):
                raise _damaged(file)
            stream.seek(0)
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except (FileNotFoundError, IsADirectoryError) as error:
        raise DataError(f"{file} is no file. Check the name.") from error
    except OSError as error:
        raise write_error(target, error) from error
    return BackedUp(target, files, size, digest)


def _take(opened: _PartReader, name: PurePosixPath, size: int, target: Path) -> int:
    """Write one file; what is private, for its owner alone."""
    private = name.parts[0] == _PRIVATE
    try:
        for parent in reversed(name.parents):
            mode = 0o700 if private else 0o777
            (target / parent).mkdir(exist_ok=True, mode=mode)
        with open(
            target / name, "xb", opener=_only_mine if private else None
        ) as stream:
            for block in opened.read_blocks(size):
                stream.write(block)
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise _displaced(opened.file, str(name)) from error
    return size


def _check_line(
    line: Mapping[str, object], names: set[str], file: Path
) -> tuple[PurePosixPath, int]:
    """Return the path and size that a line gives, if it lies in a workspace."""
    name, size = line.get("path"), line.get("size")
    if not isinstance(name, str) or type(size) is not int or size < 0:
        raise _damaged(file)
    path = PurePosixPath(name)
    inside = path.parts[:1] and path.parts[0] in (*_PUBLIC, _PRIVATE)
    plain = str(path) == name and ".." not in path.parts and "\0" not in name
    if not inside or not plain or name in names:
        raise _displaced(file, name)
    names.add(name)
    return path, size


def _displaced(file: Path, name: str) -> DataError:
    return DataError(
        f"{file} names a file that has no place in a workspace, or names it twice: "
        f"{name[:80]!a}. Nothing was restored. Ask whoever made the backup."
    )


def _damaged(file: Path) -> DataError:
    return DataError(
        f"{file} is damaged or cut off: it does not hold what was written. Nothing "
        "was restored. Fetch it again, and compare its sha256 with the one that "
        "`ranloop backup` printed."
    )


def _look_at(target: Path, private_only: bool) -> bool:
    """Return whether the public part is at `target`; refuse what is in the way."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        if private_only:
            raise ConflictError(
                f"{target} has no public part to put the private one beside. Leave "
                "--private-only out, or fetch the workspace's repository first."
            )
        return False
    place = WorkspacePaths(target)
    if not (place.prompts.is_dir() and place.labels.is_dir()):
        raise ConflictError(
            f"{target} is neither empty nor a workspace. Name a new folder."
        )
    _refuse_private(place)
    return True


def _refuse_private(place: WorkspacePaths) -> None:
    """Refuse a workspace with private state; what every command leaves is none."""
    harmless = {".gitignore", "locks", "workspace-id"}
    if place.private.is_symlink() or (
        place.private.exists()
        and {one.name for one in place.private.iterdir()} - harmless
    ):
        raise ConflictError(
            f"{place.private} has private state already: texts, answers or keys. "
            "Nothing was replaced. Restore into a new folder, or move that one aside."
        )


def _join(made: Path, target: Path, private_only: bool) -> None:
    """Put what is missing at `target` into place, the private part last."""
    missing = []
    if not private_only:
        tops = (one for top in _PUBLIC for one in _walk(made, top))
        public = [PurePosixPath(name) for name, _ in tops]
        missing = [name for name in public if not os.path.lexists(target / name)]
        others = [
            str(name)
            for name in public
            if name not in missing and not _is_same(made / name, target / name)
        ]
        if others:
            more = f" and {len(others) - 3} more" if len(others) > 3 else ""
            raise ConflictError(
                f"{target} has other files than the backup: {', '.join(others[:3])}"
                f"{more}. Nothing was changed. Restore into a new folder; or, if the "
                "public part there is the right one, use --private-only."
            )
    place = WorkspacePaths(target)
    try:
        for name in missing:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            os.rename(made / name, target / name)
        _refuse_private(place)
        shutil.rmtree(place.private, ignore_errors=True)
    except OSError as error:
        raise write_error(target, error) from error
    taken = f"{place.private} was made by another command meanwhile. Run it again."
    move_folder(made / _PRIVATE, place.private, taken=taken)


def _is_same(one: Path, other: Path) -> bool:
    return other.is_file() and filecmp.cmp(one, other, shallow=False)


def _check_passphrase(passphrase: str) -> None:
    try:
        check_password(passphrase, "")
    except ValueError as error:
        text = str(error).replace("a password", "a passphrase")
        raise DataError(f"{text}. Nothing was written.") from error


def _derive(passphrase: str, salt: bytes) -> tuple[bytes, bytes]:
    """Return the key of a backup, and what tells whether the passphrase is right."""
    made = hashlib.scrypt(
        normalize("NFC", passphrase).encode("utf-8", "surrogatepass"),
        salt=salt,
        n=_COST.n,
        r=_COST.r,
        p=_COST.p,
        maxmem=256 * _COST.n * _COST.r,
        dklen=64,
    )
    return made[:32], hashlib.sha256(made[32:]).digest()


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])


class _PartWriter:
    """Writes bytes as sealed parts."""

    def __init__(self, stream: BinaryIO, passphrase: str) -> None:
        salt = secrets.token_bytes(_SALT)
        key, check = _derive(passphrase, salt)
        head = _FORMAT + salt + check
        stream.write(head + hashlib.sha256(head).digest())
        self._stream, self._cipher = stream, AESGCM(key)
        self._waiting, self._parts = bytearray(), 0

    def write(self, data: bytes) -> None:
        """Take bytes; a part is written when more than it holds is there."""
        self._waiting += data
        while len(self._waiting) > _PART:
            self._seal(self._waiting[:_PART], last=False)
            del self._waiting[:_PART]

    def finish(self) -> None:
        """Write what is left as the last part."""
        self._seal(self._waiting, last=True)

    def _seal(self, part: bytearray, *, last: bool) -> None:
        nonce = _nonce(self._parts, last)
        self._stream.write(self._cipher.encrypt(nonce, bytes(part), None))
        self._parts += 1


class _PartReader:
    """Reads what `_PartWriter` wrote; nothing of it is given before it was checked."""

    def __init__(self, stream: BinaryIO, passphrase: str, file: Path) -> None:
        head = stream.read(_HEAD)
        if not head.startswith(_FORMAT):
            raise DataError(
                f"{file} is no backup that this ranloop reads. Name the file that "
                "`ranloop backup` wrote; for one of a newer ranloop, update."
            )
        digest = hashlib.sha256(head[:-_CHECK]).digest()
        if len(head) < _HEAD or not hmac.compare_digest(digest, head[-_CHECK:]):
            raise _damaged(file)
        salt = head[len(_FORMAT) : len(_FORMAT) + _SALT]
        key, check = _derive(passphrase, salt)
        if not hmac.compare_digest(check, head[-2 * _CHECK : -_CHECK]):
            raise DataError(
                f"the passphrase does not open {file}. Nothing was restored. Give the "
                "one that was chosen when the backup was made."
            )
        self._stream, self._cipher, self.file = stream, AESGCM(key), file
        self._next, self._parts = stream.read(_PART + _TAG), 0
        self._ready = BytesIO()

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes; none at the end."""
        given = self._ready.read(size)
        if not given and size and self._open_part():
            given = self._ready.read(size)
        return given

    def read_blocks(self, size: int) -> Iterator[bytes]:
        """Yield exactly `size` bytes."""
        while size:
            block = self.read(size)
            if not block:
                raise _damaged(self.file)
            size -= len(block)
            yield block

    def read_line(self) -> dict[str, object]:
        """Return the next line's JSON object."""
        line = b""
        while not line.endswith(b"\n"):
            more = self._ready.readline(_LINE)
            if len(line) > _LINE or not (more or self._open_part()):
                raise _damaged(self.file)
            line += more
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _damaged(self.file) from error
        if not isinstance(found, dict):
            raise _damaged(self.file)
        return found

    def _open_part(self) -> bool:
        """Make the next part ready, and return whether there was one."""
        part, self._next = self._next, self._stream.read(_PART + _TAG)
        if not part:
            return False
        try:
            nonce = _nonce(self._parts, not self._next)
            self._ready = BytesIO(self._cipher.decrypt(nonce, part, None))
        except (InvalidTag, ValueError) as error:
            raise _damaged(self.file) from error
        self._parts += 1
        return True
