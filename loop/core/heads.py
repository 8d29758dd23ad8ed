"""The newest ledger head that this machine has seen, kept outside the workspace.

A ledger that is cut off, or a whole workspace rolled back to yesterday, is a valid
chain. What it lacks can only be noticed by something that was not rolled back with it.
This notices a restored backup and a careless hand; it is no defence against someone
who rules the whole machine: heads in signed releases are.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from loop.core.errors import LoopError
from loop.core.files import write_atomic
from loop.core.paths import WorkspacePaths

_ID = re.compile(r"[0-9a-f]{32}")


class HeadLink(Protocol):
    """What is remembered of a ledger entry."""

    @property
    def seq(self) -> int:
        """Line number from 1."""

    @property
    def hash(self) -> str:
        """Hash of the entry."""

    @property
    def time(self) -> str:
        """UTC, ISO 8601 with seconds."""


class Head(NamedTuple):
    """The last entry of a ledger as it was seen once."""

    seq: int
    hash: str
    time: str


class Rollback(NamedTuple):
    """A head that this machine has seen and that the ledger does not hold any more."""

    seq: int
    """Line number of the entry that is missing or another one."""

    hash: str
    time: str
    """When that entry was made."""

    found: int
    """Number of lines the ledger has now."""

    record: Path
    """The file in which this machine remembers it."""


def record_head(root: Path, chain: Sequence[HeadLink]) -> None:
    """Remember the end of `chain`, the ledger of the workspace at `root`.

    Only where the workspace has its private folder. A remembered head that is not in
    `chain` is kept beside the new one: going on after a rollback must not hide it.
    Nothing is raised if it cannot be written: it is a second look, not the record.
    """
    private = root / ".ranloop"
    if not chain or not private.is_dir():
        return
    try:
        path = _record_path(_open_id(private))
        if path is None:
            return
        last = chain[-1]
        lost = [head for head in _read_heads(path) if not _holds(chain, head)]
        data = {
            "seq": last.seq,
            "hash": last.hash,
            "time": last.time,
            "lost": [head._asdict() for head in lost],
        }
        write_atomic(path, json.dumps(data) + "\n", mode=0o600)
    except (OSError, LoopError):
        return


def _holds(chain: Sequence[HeadLink], head: Head) -> bool:
    return head.seq <= len(chain) and chain[head.seq - 1].hash == head.hash


def find_rollback(workspace: WorkspacePaths) -> Rollback | None:
    """Return the newest remembered head that the ledger lacks; None if it lacks none.

    The chain is not checked, so that this can be asked of a broken ledger too. A copy
    of a workspace whose original went on lacks the original's entries, and is named.
    """
    try:
        path = _record_path(_read_id(workspace.private))
        heads = _read_heads(path) if path else []
        raw = workspace.ledger.read_bytes() if workspace.ledger.exists() else b""
    except OSError:
        return None
    lines = [line for line in raw.split(b"\n") if line.strip()]
    missing = [head for head in heads if _hash_at(lines, head.seq) != head.hash]
    if path is None or not missing:
        return None
    newest = max(missing)
    return Rollback(*newest, found=len(lines), record=path)


def _hash_at(lines: Sequence[bytes], seq: int) -> str | None:
    """Return the hash that line `seq` gives for itself, if it can be read."""
    if not 0 < seq <= len(lines):
        return None
    data = _parse(lines[seq - 1])
    return str(data.get("hash"))


def _parse(raw: bytes) -> Mapping[str, Any]:
    """Return a JSON object; an empty one for anything else."""
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _read_heads(path: Path) -> list[Head]:
    """Return the head remembered last, and those that were lost before."""
    try:
        data = _parse(path.read_bytes())
    except FileNotFoundError:
        return []
    lost = data.get("lost", [])
    rows = [data, *lost] if isinstance(lost, list) else [data]
    return [
        Head(row["seq"], row["hash"], str(row.get("time", "")))
        for row in rows
        if isinstance(row, dict)
        and type(row.get("seq")) is int
        and isinstance(row.get("hash"), str)
    ]


def head_record(workspace: WorkspacePaths) -> Path | None:
    """Return the file in which this machine remembers the newest head, if it does."""
    path = _record_path(_read_id(workspace.private))
    return path if path is not None and path.is_file() else None


def _record_path(workspace_id: str) -> Path | None:
    """Return where this machine keeps the head; None where it has no such place."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        state = os.path.expanduser("~/.local/state")
    if not workspace_id or not os.path.isabs(state):
        return None
    return Path(state) / "ranloop" / "heads" / f"{workspace_id}.json"


def _read_id(private: Path) -> str:
    """Return the id of the workspace; empty if it has none yet, or a broken one."""
    try:
        text = (private / "workspace-id").read_text(encoding="ascii").strip()
    except (FileNotFoundError, ValueError):
        return ""
    return text if _ID.fullmatch(text) else ""


def _open_id(private: Path) -> str:
    """Return the id of the workspace, made on first use."""
    known = _read_id(private)
    if known:
        return known
    made = secrets.token_hex(16)
    write_atomic(private / "workspace-id", made + "\n", mode=0o600)
    return made
