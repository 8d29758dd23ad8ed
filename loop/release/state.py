"""What a workspace and this machine keep: where, how much, what for, what may go."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from loop.core.files import write_error
from loop.core.heads import head_record
from loop.core.paths import WorkspacePaths
from loop.engines.vllm.running import list_running

PURPOSES: Final[Mapping[str, str]] = {
    "cases": "the texts of the cohorts",
    "config.yaml": "settings of this machine",
    "drafts": "prompt versions that are not committed yet",
    "editing": "prompts that somebody edits",
    "inject": "errors that models wrote into reports, each asked once",
    "judge": "answers of judges about pairs of reports, each asked once",
    "findings": "words of the errors that experts marked",
    "keys": "private keys of people, and the vault's",
    "locks": "files that keep commands apart",
    "openings": "holdouts that a freeze opened",
    "replaced": "cohorts and votes that an import replaced",
    "revising": "what drafts were made of, and their checks",
    "runs": "how each run was made",
    "score": "answers about generated reports, each asked once",
    "serve": "logs of vLLM servers",
    "sign-ins.jsonl": "who signed in to the workbench",
    "store.db": "answers, runs, clinicians' verdicts and readings",
    "users.yaml": "who may sign in to the workbench",
    "workspace-id": "what this machine knows the workspace by",
}
"""What in ``.ranloop/`` is for; anything else there passes with its command."""

_OLD_S: Final = 24 * 3600.0
"""Age from which what a command left is of a killed one, seconds."""

_LEFT = re.compile(r"\..+\.(\w+-)?[a-z0-9_]{8}")
"""Names of files and folders that are moved into place, or removed, at the end."""

_PASSING: Final = ("trials", "freezing", "uploads")
"""Private folders whose content goes when its command ends."""


class StatePart(NamedTuple):
    """One thing that is kept."""

    path: Path
    size: int
    """Bytes, of everything in it."""

    purpose: str


def list_state(workspace: WorkspacePaths) -> list[StatePart]:
    """Return what is kept privately in `workspace`, and of it on this machine."""
    found: dict[str, list[Path]] = {}
    if workspace.private.is_dir():
        for path in sorted(workspace.private.iterdir()):
            name = path.name
            if name.startswith("store.db"):
                name = "store.db"
            elif name not in PURPOSES:
                name = ""
            found.setdefault(name, []).append(path)
    parts = [
        StatePart(workspace.private / name, sum(map(_size, found[name])), purpose)
        for name, purpose in PURPOSES.items()
        if name in found
    ]
    record = head_record(workspace)
    if record is not None:
        purpose = "the newest ledger entry that this machine has seen"
        parts.append(StatePart(record, _size(record), purpose))
    return parts


def list_demos() -> list[StatePart]:
    """Return the demo workspaces of whoever asks, in the folder of temporary files."""
    found = []
    for path in sorted(Path(tempfile.gettempdir()).glob("ranloop-demo-*")):
        with suppress(OSError):
            state = path.lstat()
            if stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid():
                found.append(StatePart(path, _size(path), "a demo"))
    return found


def list_left(
    workspace: WorkspacePaths, now: Callable[[], float] = time.time
) -> list[StatePart]:
    """Return what killed commands left a day ago or longer: nobody needs it."""
    edge = now() - _OLD_S
    paths = [
        *(one for name in _PASSING for one in _children(workspace.private / name)),
        *_unfinished(workspace.private),
    ]
    serve = workspace.private / "serve"
    if serve.is_dir() and not list_running(serve):
        paths += [one for one in _children(serve) if one.suffix == ".log"]
    parts = []
    for path in dict.fromkeys(paths):
        with suppress(OSError):
            if _newest(path) < edge and not _is_held(path):
                parts.append(StatePart(path, _size(path), "left by a killed command"))
    return parts


def list_replaced(workspace: WorkspacePaths) -> list[StatePart]:
    """Return cohorts and votes that an import replaced, with texts and labels."""
    return [
        StatePart(path, _size(path), "replaced by an import")
        for path in _children(workspace.private / "replaced")
    ]


def list_removable(
    workspace: WorkspacePaths, *, replaced: bool = False, head: bool = False
) -> list[StatePart]:
    """Return what killed commands left, and what else of `workspace` is asked for.

    Parameters
    ----------
    replaced
        Also the cohorts and votes that an import replaced.
    head
        Also what this machine remembers of the ledger.
    """
    parts = list_left(workspace)
    if replaced:
        parts += list_replaced(workspace)
    if head:
        parts += [
            part
            for part in list_state(workspace)
            if not part.path.is_relative_to(workspace.private)
        ]
    return parts


def remove(parts: Sequence[StatePart]) -> int:
    """Remove `parts`, and return how many bytes that freed.

    Raises
    ------
    WriteError
        One cannot be removed; those before it are gone.
    """
    freed = 0
    for part in parts:
        try:
            if part.path.is_dir() and not part.path.is_symlink():
                shutil.rmtree(part.path)
            else:
                part.path.unlink(missing_ok=True)
        except OSError as error:
            raise write_error(part.path, error) from error
        freed += part.size
    return freed


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _unfinished(private: Path) -> Iterator[Path]:
    """Yield files and folders that were to be moved into place, or removed."""
    for folder, folders, files in os.walk(private):
        if Path(folder) == private:
            folders[:] = [name for name in folders if name not in _PASSING]
        left = [name for name in (*folders, *files) if _LEFT.fullmatch(name)]
        folders[:] = [name for name in folders if name not in left]
        yield from (Path(folder) / name for name in sorted(left))


def _all_in(path: Path) -> Iterator[Path]:
    """Yield `path` and what is in it; links are not followed."""
    yield path
    for folder, folders, files in os.walk(path):
        yield from (Path(folder) / name for name in (*folders, *files))


def _size(path: Path) -> int:
    size = 0
    for one in _all_in(path):
        with suppress(OSError):
            state = one.lstat()
            size += state.st_size if stat.S_ISREG(state.st_mode) else 0
    return size


def _newest(path: Path) -> float:
    return max(one.lstat().st_mtime for one in _all_in(path))


def _is_held(path: Path) -> bool:
    """Whether a process holds the lock of a folder, its own or the one beside it."""
    beside = path.with_name(f".{path.name}.lock")
    for one in (path, beside):
        if os.path.lexists(one):
            handle = os.open(one, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            finally:
                os.close(handle)
    return False
