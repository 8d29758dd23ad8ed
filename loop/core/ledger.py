"""The hash-chained log of everything that happened to prompts.

One JSON object a line: who did what, to what and why, hashed and signed. Each entry
names the hash of the one before, so an edit, a deletion in the middle or a reordering
breaks the chain at a line that can be named. A chain alone does not show that the end
was cut off: signed releases name its head, and each machine remembers the newest one
it has seen.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from loop.core.clock import Clock, format_time, utc_now
from loop.core.digests import digest_bytes, digest_json, unique_keys
from loop.core.errors import DataError, LedgerError, WriteError
from loop.core.files import locked, sync_folder, write_atomic, write_error
from loop.core.heads import record_head
from loop.core.signing import SIGNATURE_BYTES

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
        "judge_evaluated",
        "discrimination_measured",
        "model_changed",
        "holdout_sealed",
        "holdout_opened",
        "holdout_retired",
        "frozen",
        "withdrawn",
        "exported",
        "reference_revised",
        "sample_drawn",
        "searched",
        "ratings_added",
        "ensemble_fitted",
        "key_added",
        "key_revoked",
        "labels_upgraded",
        "taxonomy_revised",
        "ledger_repaired",
        "override",
    }
)


_HEX = frozenset("0123456789abcdef")


class Signer(Protocol):
    """Signs entries with the key of the person who acts."""

    @property
    def keyid(self) -> str:
        """Sha256 of the raw public key, 64 hex characters."""

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte Ed25519 signature of `message`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who acts, and in which role."""

    name: str
    """Name as it shall stand in the history."""

    role: str = "editor"
    """``reader``, ``reviewer``, ``editor``, ``approver``, ``admin`` or ``system``."""

    signer: Signer | None = field(default=None, compare=False, repr=False)
    """Signs what this actor adds to the ledger; None for one without a key."""


def acting_name(given: str | None = None) -> str:
    """Return who acts: as `given`, else ``$RANLOOP_ACTOR``, else the login name."""
    named = given or os.environ.get("RANLOOP_ACTOR") or os.environ.get("USER") or ""
    return named.strip() or f"uid {os.getuid()}"


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
class LedgerEntry:
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
    """Sha256 of the canonical JSON of this entry; see `entry_hash`."""

    keyid: str = ""
    """Whose key signed it; empty for an entry that is not signed."""

    signature: str = ""
    """Base64 of the Ed25519 signature over `signed_bytes` of ``hash``; or empty."""


def entry_hash(entry: Mapping[str, Any]) -> str:
    """Sha256 over the canonical JSON of `entry` without ``hash`` and ``signature``.

    An empty ``keyid`` is left out too: entries from before there were keys keep their
    hashes.
    """
    return digest_json(
        {
            key: value
            for key, value in entry.items()
            if key not in ("hash", "signature") and (key != "keyid" or value)
        }
    )


def signed_bytes(entry_hash: str) -> bytes:
    """Return what the signature of the entry with that hash is over.

    The word before the hash keeps it from being taken for a signature of anything else.
    """
    return b"ranloop-ledger/1 " + entry_hash.encode("ascii")


def format_entry(entry: LedgerEntry) -> bytes:
    """Return the line of an entry, with its line end."""
    data = {one.name: getattr(entry, one.name) for one in fields(entry)}
    if not entry.keyid:
        del data["keyid"], data["signature"]
    text = json.dumps(data, ensure_ascii=False, sort_keys=True) + "\n"
    return text.encode("utf-8")


def parse_entry(line: bytes) -> tuple[LedgerEntry, str]:
    """Return the entry that a line spells, and the hash its content has.

    Whether that is the hash it names, and whether it follows the line before, is for
    whoever reads the whole ledger.

    Raises
    ------
    ValueError
        The line is not an entry, or the form of its signature is wrong.
    """
    try:
        data = json.loads(line, object_pairs_hook=unique_keys)
        return make_entry(data), entry_hash(data)
    except (TypeError, RecursionError) as error:
        raise ValueError("not a ledger entry") from error


def make_entry(data: Mapping[str, Any]) -> LedgerEntry:
    """Return the entry with these fields, after checking the form of each.

    Raises
    ------
    ValueError
        A field is of another kind, or the form of the signature is wrong.
    TypeError
        A field is missing or unknown.
    """
    entry = LedgerEntry(**data)
    _check_form(entry, data)
    return entry


def _check_form(entry: LedgerEntry, data: Mapping[str, Any]) -> None:
    """Check that the fields hold what they should, signed or not signed at all."""
    words = [data[key] for key in data if key not in ("seq", "payload")]
    if type(entry.seq) is not int or not all(isinstance(one, str) for one in words):
        raise ValueError("a field has the wrong type")
    if not isinstance(entry.payload, dict):
        raise ValueError("payload is not an object")
    if "keyid" not in data and "signature" not in data:
        return
    if len(entry.keyid) != len(GENESIS) or not _HEX.issuperset(entry.keyid):
        raise ValueError("keyid is not 64 hex characters")
    signature = base64.b64decode(entry.signature, validate=True)
    # The last characters of base64 hold bits that mean nothing: only one spelling.
    spelled = base64.b64encode(signature).decode("ascii")
    if len(signature) != SIGNATURE_BYTES or spelled != entry.signature:
        raise ValueError("signature is not 64 bytes in base64")


def chain_event(
    event: Event, actor: Actor, time: str, last: LedgerEntry | None
) -> LedgerEntry:
    """Return `event` as the entry that follows `last`, signed if the actor has a key.

    Parameters
    ----------
    time
        UTC, ISO 8601 with seconds.
    last
        The entry before; None for the first one.
    """
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
    if actor.signer is None:
        return LedgerEntry(**content, hash=entry_hash(content))  # type: ignore[arg-type]
    content["keyid"] = actor.signer.keyid
    digest = entry_hash(content)
    signature = base64.b64encode(actor.signer.sign(signed_bytes(digest)))
    return LedgerEntry(**content, hash=digest, signature=signature.decode("ascii"))  # type: ignore[arg-type]


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
        The existing chain is broken, or this machine's clock is behind it: nothing is
        appended.
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
        The existing chain is broken, or this machine's clock is behind it: nothing is
        appended. A clock that is behind by at most ten seconds, as those of two
        machines may be, gives way: the entry has the time of the entry before.
    DataError
        A word of an event is not Unicode text; nothing is appended.
    WriteError
        The file cannot be written.
    """
    with locked(_lock(path)):
        known = _read_entries(_read_bytes(path), path)
        time = _entry_time(path, known, now())
        chain = list(known)
        for event in events:
            chain.append(_follow(event, actor, time, chain))
        added = tuple(chain[len(known) :])
        _append_lines(path, b"".join(map(format_entry, added)))
        _remember(path, chain)
    return added


_SKEW = timedelta(seconds=10)
"""How far apart the clocks of machines that share a workspace may be."""

_CLOCK = "clock"
"""Key of a repair's payload: the time of an entry whose clock was ahead."""


def is_clock_repair(entry: LedgerEntry) -> bool:
    """Whether `entry` says that the clock was ahead when an entry above was written."""
    return entry.action == "ledger_repaired" and _CLOCK in entry.payload


def _latest(chain: Sequence[LedgerEntry]) -> LedgerEntry | None:
    """Return the entry that no further one may be dated before: the newest by time.

    After a repair of the clock only what follows it counts.
    """
    repaired = (n for n in range(len(chain) - 1, -1, -1) if is_clock_repair(chain[n]))
    since = chain[next(repaired, 0) :]
    return max(since, key=lambda one: (one.time, one.seq), default=None)


def _entry_time(path: Path, chain: Sequence[LedgerEntry], now: datetime) -> str:
    """Return the time for a further entry, never before that of one above.

    An act that began before the newest entry was written has the time of that entry,
    and so has one of a machine whose clock is a little behind.
    """
    latest = _latest(chain)
    if latest is None or format_time(now) >= latest.time:
        return format_time(now)
    clock = max(now, utc_now())
    if format_time(clock + _SKEW) >= latest.time:
        return latest.time
    raise LedgerError(
        f"the clock of this machine says {format_time(clock)}, and entry {latest.seq} "
        f"of {path.name} is of {latest.time}. Nothing was recorded: history may not "
        "run backwards. Set the clock (`timedatectl set-ntp true`) and do it again, or "
        "wait until it has passed that time. If "
        f"the clock is right, and was wrong when entry {latest.seq} was made, run "
        "`ranloop audit --repair`: it records that."
    )


def record_wrong_clock(
    path: Path, actor: Actor, *, now: Clock = utc_now
) -> LedgerEntry | None:
    """Record that entries are of a clock that was ahead, and return the entry of that.

    From then on entries have the right time again. The audit shows the entry.

    Returns
    -------
    Entry | None
        None where no entry is later than the clock, ten seconds aside; nothing is
        changed then.

    Raises
    ------
    LedgerError
        The chain is broken: nothing is changed.
    WriteError
        The file cannot be written.
    """
    with locked(_lock(path)):
        known = _read_entries(_read_bytes(path), path)
        latest, time = _latest(known), now()
        if latest is None or format_time(time + _SKEW) >= latest.time:
            return None
        event = Event(
            action="ledger_repaired",
            subject=path.name,
            reason=f"the clock was ahead when entry {latest.seq} was written",
            payload={_CLOCK: latest.time, "line": latest.seq},
        )
        entry = chain_event(event, actor, format_time(time), known[-1])
        _append_lines(path, format_entry(entry))
        _remember(path, [*known, entry])
        return entry


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
