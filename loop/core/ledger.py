"""The hash-chained log of everything that happened to prompts.

One JSON object a line. Each entry names the hash of the one before, so an edit, a
deletion in the middle or a reordering breaks the chain at a line that can be named.
A chain alone does not show that the end was cut off: signed releases name its head.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from loop.core.digests import digest_json
from loop.core.errors import LedgerError
from loop.core.files import locked, write_error

GENESIS = "0" * 64
ACTIONS = frozenset(
    {
        "protocol_set",
        "cohort_added",
        "draft_committed",
        "draft_rejected",
        "alias_moved",
        "evaluated",
        "gate_decided",
        "holdout_opened",
        "frozen",
        "reference_revised",
        "override",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who acts, and in which role."""

    name: str
    """Name as it shall stand in the history."""

    role: str = "editor"
    """``reader``, ``reviewer``, ``editor``, ``approver``, ``admin`` or ``system``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something to be recorded."""

    action: str
    """One of `ACTIONS`."""

    subject: str
    """What it happened to, for example ``"extractor@v3"``."""

    reason: str
    """Why, in the actor's words; never empty."""

    meaning: str = ""
    """For signed acts: authorship, review, approval or responsibility."""

    payload: Mapping[str, Any] = field(default_factory=dict)
    """Digests and small values; never case text."""

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise ValueError(f"unknown ledger action {self.action!r}")
        if not self.reason.strip():
            raise ValueError(f"{self.action} of {self.subject} needs a reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the ledger."""

    seq: int
    """Line number from 1, without gaps."""

    time: str
    """UTC, ISO 8601 with seconds."""

    actor: str
    role: str
    action: str
    subject: str
    reason: str
    meaning: str
    payload: Mapping[str, Any]
    prev: str
    """Hash of the entry before; 64 zeros for the first."""

    hash: str
    """Sha256 of the canonical JSON of this entry without ``hash``."""


def entry_hash(entry: Mapping[str, Any]) -> str:
    """Sha256 over the canonical JSON of `entry` without its ``hash`` field."""
    return digest_json({key: entry[key] for key in entry if key != "hash"})


def read_ledger(path: Path) -> tuple[Entry, ...]:
    """Return all entries after checking the chain; empty when there is no file.

    A command may ask as often as it likes: the same bytes are checked only once.

    Raises
    ------
    LedgerError
        A line cannot be read or the chain is broken; names the first such line.
    """
    if not path.exists():
        return ()
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise LedgerError(f"cannot read {path}: {error.strerror}.") from error
    return _read_entries(raw, path)


@lru_cache(maxsize=2)
def _read_entries(raw: bytes, path: Path) -> tuple[Entry, ...]:
    """Return the entries of a ledger's bytes; `path` is named in errors."""
    lines = raw.split(b"\n")
    last = lines.pop()
    entries: list[Entry] = []
    for number, line in enumerate(lines, 1):
        entries.append(_read_line(line, number, path, entries))
    if last:
        entries.append(_read_last(last, path, entries))
    return tuple(entries)


def _read_last(line: bytes, path: Path, before: Sequence[Entry]) -> Entry:
    """Read a last line without a line end: whole if an editor took it, else torn."""
    number = len(before) + 1
    try:
        return _read_line(line, number, path, before)
    except LedgerError as error:
        raise LedgerError(
            f"{path}, line {number}: the last line is incomplete, as after a power "
            "loss. Move that line to another file and run the command again; "
            "everything before it is intact."
        ) from error


def _read_line(line: bytes, number: int, path: Path, before: Sequence[Entry]) -> Entry:
    """Parse one line and check its place in the chain."""
    restore = f"Restore {path.name} from your backup or version control."
    try:
        data = json.loads(line)
        entry = Entry(**data)
        expected = entry_hash(data)
    except (ValueError, TypeError) as error:
        raise LedgerError(
            f"{path}, line {number}: not a ledger entry. {restore}"
        ) from error
    prev = before[-1].hash if before else GENESIS
    if entry.seq != number or entry.prev != prev:
        raise LedgerError(
            f"{path}, line {number}: does not follow the line before it (an entry was "
            f"removed, inserted or reordered). {restore}"
        )
    if entry.hash != expected:
        raise LedgerError(
            f"{path}, line {number}: was edited after it was written (hash "
            f"{entry.hash[:12]}, content {expected[:12]}). {restore}"
        )
    return entry


def append_event(
    path: Path,
    event: Event,
    actor: Actor,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Entry:
    """Append `event` under a lock, fsynced, and return its entry.

    Raises
    ------
    LedgerError
        The existing chain is broken: nothing is appended to it.
    WriteError
        The file cannot be written.
    """
    (entry,) = append_events(path, (event,), actor, now=now)
    return entry


def append_events(
    path: Path,
    events: Sequence[Event],
    actor: Actor,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> tuple[Entry, ...]:
    """Append `events` in one write under one lock: all of them or none.

    Raises
    ------
    LedgerError
        The existing chain is broken: nothing is appended to it.
    WriteError
        The file cannot be written.
    """
    with locked(path.with_name(f".{path.name}.lock")):
        known = read_ledger(path)
        time = now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        entries: list[Entry] = []
        for event in events:
            last = entries[-1:] or known[-1:]
            entries.append(_chain(event, actor, time, last[0] if last else None))
        lines = (
            json.dumps(asdict(entry), ensure_ascii=False, sort_keys=True) + "\n"
            for entry in entries
        )
        _append_lines(path, "".join(lines).encode("utf-8"))
    return tuple(entries)


def _chain(event: Event, actor: Actor, time: str, last: Entry | None) -> Entry:
    """Return `event` as the entry that follows `last`."""
    content = {
        "seq": last.seq + 1 if last else 1,
        "time": time,
        "actor": actor.name,
        "role": actor.role,
        "action": event.action,
        "subject": event.subject,
        "reason": event.reason,
        "meaning": event.meaning,
        "payload": dict(event.payload),
        "prev": last.hash if last else GENESIS,
    }
    return Entry(**content, hash=entry_hash(content))  # type: ignore[arg-type]


def _append_lines(path: Path, lines: bytes) -> None:
    """Append and fsync; a write that fails half-way is taken back."""
    size = path.stat().st_size if path.exists() else 0
    if size and not path.read_bytes().endswith(b"\n"):
        lines = b"\n" + lines
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError as error:
        raise write_error(path, error) from error
    try:
        written = os.write(handle, lines)
        if written != len(lines):
            raise OSError(28, "No space left on device")
        os.fsync(handle)
    except OSError as error:
        os.ftruncate(handle, size)
        raise write_error(path, error) from error
    finally:
        os.close(handle)
