"""The hash-chained log of everything that happened to prompts.

One JSON object a line. Each entry names the hash of the one before, so an edit, a
deletion in the middle or a reordering breaks the chain at a line that can be named.
A chain alone does not show that the end was cut off: signed releases name its head,
and each machine remembers the newest one it has seen.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from loop.core.clock import Clock, format_time, utc_now
from loop.core.digests import digest_bytes
from loop.core.entries import (
    ACTIONS,
    GENESIS,
    Actor,
    Event,
    LedgerEntry,
    Signer,
    chain_event,
    entry_hash,
    format_entry,
    make_entry,
    parse_entry,
    signed_bytes,
)
from loop.core.errors import DataError, LedgerError, WriteError
from loop.core.files import locked, sync_folder, write_atomic, write_error
from loop.core.heads import record_head

__all__ = [
    "ACTIONS",
    "GENESIS",
    "Actor",
    "Event",
    "LedgerEntry",
    "Signer",
    "TornLedgerError",
    "append_event",
    "append_events",
    "entry_hash",
    "format_entry",
    "make_entry",
    "quarantine_torn_line",
    "read_ledger",
    "signed_bytes",
]


_MOST_CHECKED = 2
"""Ledgers whose entries are remembered."""


class TornLedgerError(LedgerError):
    """The last line is incomplete, as after a power loss; all before it is intact."""


def read_ledger(path: Path) -> tuple[LedgerEntry, ...]:
    """Return all entries after checking the chain; empty when there is no file.

    A command may ask as often as it likes: the same line is checked only once.
    Whether a signature has the right form is checked, not whose it is: keys are
    recorded in the ledger itself, and revoked there.

    Raises
    ------
    LedgerError
        A line cannot be read or the chain is broken; names the first such line.
    TornLedgerError
        Only the last line is incomplete.
    """
    try:
        return _read_entries(_read_bytes(path), path)
    except TornLedgerError:
        # Another process may be writing that line just now: look when it is done.
        return _read_settled(path)


def _read_settled(path: Path) -> tuple[LedgerEntry, ...]:
    """Read the ledger while nobody writes it, if it can be locked at all."""
    try:
        with locked(_lock(path)):
            return _read_entries(_read_bytes(path), path)
    except WriteError:
        return _read_entries(_read_bytes(path), path)


def _lock(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")


def _read_bytes(path: Path) -> bytes:
    """Return the bytes of the ledger; none where there is no file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise LedgerError(
            f"cannot read {path}: {error.strerror}. Correct its permissions or owner."
        ) from error


_checked: dict[Path, tuple[bytes, tuple[LedgerEntry, ...]]] = {}
"""The whole lines of the ledgers read last, and their entries."""


def _read_entries(raw: bytes, path: Path) -> tuple[LedgerEntry, ...]:
    """Return the entries of a ledger's bytes; `path` is named in errors.

    Lines that were checked before, byte for byte, are not checked again.
    """
    before, known = _checked.get(path, (b"", ()))
    if not raw.startswith(before):
        before, known = b"", ()
    *lines, last = raw[len(before) :].split(b"\n")
    if lines:
        entries = list(known)
        for number, line in enumerate(lines, len(known) + 1):
            entries.append(_read_line(line, number, path, entries))
        known = tuple(entries)
        _checked.pop(path, None)
        _checked[path] = (raw[: len(raw) - len(last)], known)
        if len(_checked) > _MOST_CHECKED:
            _checked.pop(next(iter(_checked)), None)
    return (*known, _read_last(last, path, known)) if last else known


def _read_last(line: bytes, path: Path, before: Sequence[LedgerEntry]) -> LedgerEntry:
    """Read a last line without a line end: whole if an editor took it, else torn."""
    number = len(before) + 1
    try:
        return _read_line(line, number, path, before)
    except LedgerError as error:
        raise TornLedgerError(
            f"{path}, line {number}: the last line is incomplete, as after a power "
            "loss; everything before it is intact. Run `ranloop audit --repair`: it "
            "moves that line to a file of its own and records that it did."
        ) from error


def _read_line(
    line: bytes, number: int, path: Path, before: Sequence[LedgerEntry]
) -> LedgerEntry:
    """Parse one line and check its place in the chain."""
    restore = f"Restore {path.name} from your backup or version control."
    try:
        entry, expected = parse_entry(line)
    except ValueError as error:
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
    now: Clock = utc_now,
) -> LedgerEntry:
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
    now: Clock = utc_now,
) -> tuple[LedgerEntry, ...]:
    """Append `events` in one write under one lock: all of them or none.

    Raises
    ------
    LedgerError
        The existing chain is broken: nothing is appended to it.
    DataError
        A word of an event is not Unicode text; nothing is appended.
    WriteError
        The file cannot be written.
    """
    with locked(_lock(path)):
        known = _read_entries(_read_bytes(path), path)
        time = format_time(now())
        chain = list(known)
        for event in events:
            chain.append(_follow(event, actor, time, chain))
        added = tuple(chain[len(known) :])
        _append_lines(path, b"".join(map(format_entry, added)))
        _remember(path, chain)
    return added


def _follow(
    event: Event, actor: Actor, time: str, chain: Sequence[LedgerEntry]
) -> LedgerEntry:
    """Return the entry that follows `chain`."""
    try:
        return chain_event(event, actor, time, chain[-1] if chain else None)
    except UnicodeEncodeError as error:
        raise DataError(
            f"{event.action} of {event.subject!a}: a word contains an unpaired "
            "surrogate or bytes that are not UTF-8. Type it again; nothing was "
            "recorded."
        ) from error


def _remember(path: Path, chain: Sequence[LedgerEntry]) -> None:
    """Note the new head on this machine; the ledger lies in a folder of the root."""
    record_head(path.absolute().parent.parent, chain)


def quarantine_torn_line(
    path: Path,
    actor: Actor,
    *,
    now: Clock = utc_now,
) -> LedgerEntry | None:
    """Move a torn last line to a file beside the ledger, and return the entry of that.

    The bytes go to ``ledger.torn-<line>-<sha256, 8 characters>.bin``; then one atomic
    write takes them out of the ledger and puts an entry with their digest and length in
    their place. Killed in between, the next call does the same again.

    Returns
    -------
    Entry | None
        None where no line is torn; nothing is changed then.

    Raises
    ------
    LedgerError
        The chain is broken before the last line: nothing is changed.
    WriteError
        A file cannot be written: the ledger is as it was.
    """
    with locked(_lock(path)):
        raw = _read_bytes(path)
        try:
            _read_entries(raw, path)
        except TornLedgerError:
            return _quarantine(path, raw, actor, format_time(now()))
    return None


def _quarantine(path: Path, raw: bytes, actor: Actor, time: str) -> LedgerEntry:
    """Write the torn bytes to their own file, then the ledger without them."""
    end = raw.rfind(b"\n") + 1
    whole, torn = raw[:end], raw[end:]
    known = _read_entries(whole, path)
    digest, line = digest_bytes(torn), len(known) + 1
    aside = path.with_name(f"{path.stem}.torn-{line}-{digest[:8]}.bin")
    write_atomic(aside, torn)
    event = Event(
        action="ledger_repaired",
        subject=path.name,
        reason="the last line was incomplete, as after a power loss",
        payload={
            "line": line,
            "sha256": digest,
            "bytes": len(torn),
            "file": aside.name,
        },
    )
    entry = chain_event(event, actor, time, known[-1] if known else None)
    write_atomic(path, whole + format_entry(entry), mode=path.stat().st_mode & 0o777)
    _remember(path, [*known, entry])
    return entry


def _append_lines(path: Path, lines: bytes) -> None:
    """Append and fsync; a write that fails half-way is taken back."""
    there = path.exists()
    size = path.stat().st_size if there else 0
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
        if not there:
            sync_folder(path.parent)
    except OSError as error:
        os.ftruncate(handle, size)
        raise write_error(path, error) from error
    finally:
        os.close(handle)
