"""The chain of the ledger: every break by name, and what it implies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from loop.core.check_findings import (
    MOST_PROBLEMS,
    Finding,
    broken,
    note,
    ok,
    warning,
)
from loop.core.digests import RepeatedKeyError, digest_bytes, unique_keys
from loop.core.errors import DataError
from loop.core.ledger import (
    ACTIONS,
    GENESIS,
    LedgerEntry,
    entry_hash,
    format_entry,
    is_clock_repair,
    make_entry,
)
from loop.labels.cohort import CohortRecord, find_record


class Trouble(StrEnum):
    """What is wrong with a line by itself."""

    NONE = ""
    UNREADABLE = "unreadable"
    """Not an entry at all."""

    TORN = "torn"
    """The last line, without its end: as after a power loss."""

    EDITED = "edited"
    """An entry whose hash is not that of its content."""

    DOUBLED = "doubled"
    """A name stands in it twice: two readers may read two things."""


class LedgerLine(NamedTuple):
    """One line of the ledger."""

    number: int
    """From 1."""

    entry: LedgerEntry | None
    """What it says, true or not; None when it cannot be read."""

    content: str
    """Hash of what it says; empty when it cannot be read."""

    trouble: Trouble
    spelled: bool
    """Whether it is written as ranloop writes it, to the byte."""


class Ledger(NamedTuple):
    """The lines of a ledger, whole or broken."""

    path: Path
    lines: tuple[LedgerLine, ...]
    ended: bool
    """Whether the last line has its line end."""

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """What can be read, in file order; of a line that is there twice, the first."""
        found: dict[str, LedgerEntry] = {}
        for one in self.lines:
            if one.entry:
                found.setdefault(one.entry.hash, one.entry)
        return tuple(found.values())

    @property
    def last(self) -> LedgerEntry | None:
        """The last entry that can be read."""
        return next((one.entry for one in reversed(self.lines) if one.entry), None)


def read_lines(path: Path) -> Ledger:
    """Return every line of the ledger at `path`; none where there is no file.

    Raises
    ------
    DataError
        The file is there and cannot be read at all.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return Ledger(path, (), True)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}. Check it.") from error
    parts = raw.split(b"\n")
    rest = parts.pop()
    lines = [read_line(part, number) for number, part in enumerate(parts, 1)]
    if rest:
        lines.append(_read_last(rest, len(lines) + 1))
    return Ledger(path, tuple(lines), not rest)


def read_line(raw: bytes, number: int) -> LedgerLine:
    """Return one line, whatever is in it."""
    try:
        text = raw.decode("utf-8")
        data = json.loads(text)
        entry, content = make_entry(data), entry_hash(data)
        spelled = raw + b"\n" == format_entry(entry)
    except (ValueError, TypeError, RecursionError):
        return LedgerLine(number, None, "", Trouble.UNREADABLE, False)
    trouble = Trouble.NONE
    if not spelled and _is_doubled(text):
        trouble = Trouble.DOUBLED
    elif entry.hash != content:
        trouble = Trouble.EDITED
    return LedgerLine(number, entry, content, trouble, spelled)


def _read_last(raw: bytes, number: int) -> LedgerLine:
    """Return a last line without a line end: whole if an editor took it, else torn."""
    line = read_line(raw, number)
    torn = line.entry is None
    return line._replace(trouble=Trouble.TORN) if torn else line


def _is_doubled(text: str) -> bool:
    """Whether an object in the line names a field twice."""
    try:
        json.loads(text, object_pairs_hook=unique_keys)
    except RepeatedKeyError:
        return True
    return False


def subjects(
    entries: tuple[LedgerEntry, ...], action: str
) -> Iterator[tuple[str, LedgerEntry]]:
    """Yield subject and entry of every entry with `action`, in order."""
    return ((one.subject, one) for one in entries if one.action == action)


def find_cohort(entries: tuple[LedgerEntry, ...], name: str) -> CohortRecord | None:
    """Return what `entries` hold of a cohort, passing over entries made by hand."""
    sound = [
        entry
        for entry in entries
        if entry.action not in ("reference_revised", "ratings_added", "sample_drawn")
        or type(entry.payload.get("number")) is int
    ]
    return find_record(sound, name)


_REPAIRS = "repairs"


def check_repairs(ledger: Ledger) -> list[Finding]:
    """Return every repair of the ledger, and whether the torn bytes are kept."""
    every = [one for one in ledger.entries if one.action == "ledger_repaired"]
    repairs = [one for one in every if not is_clock_repair(one)]
    found = [_check_repair(ledger.path.parent, entry) for entry in repairs]
    known = {str(entry.payload.get("file")) for entry in repairs}
    for path in sorted(ledger.path.parent.glob(f"{ledger.path.stem}.torn-*.bin")):
        if path.name not in known:
            what = f"{path.name} is left from a repair that did not end"
            todo = "Run `ranloop audit --repair` again."
            found.append(note(_REPAIRS, what, where=str(path), todo=todo))
    return found


def _check_repair(folder: Path, entry: LedgerEntry) -> Finding:
    path = folder / Path(str(entry.payload.get("file"))).name
    what = f"a torn line was moved aside to {path.name}"
    try:
        kept = digest_bytes(path.read_bytes()) == entry.payload.get("sha256")
    except OSError:
        kept = False
    if kept:
        return note(_REPAIRS, f"{what}; its bytes are kept", where=f"entry {entry.seq}")
    return warning(
        _REPAIRS,
        f"{what}, and is not there as it was",
        where=f"entry {entry.seq}",
        implies="What the torn line began to say cannot be looked at any more.",
        todo="Restore the file from a backup.",
        seq=entry.seq,
    )


_CHECK = "chain"
_RESTORE = "Restore the ledger from a backup or version control, and compare the two."


class _Kind(NamedTuple):
    """What a kind of break means."""

    what: str
    implies: str
    todo: str = _RESTORE


_OWN: Mapping[Trouble, _Kind] = {
    Trouble.UNREADABLE: _Kind(
        "is not an entry of a ledger",
        "It was damaged or edited; what stood there cannot be known from this file.",
    ),
    Trouble.TORN: _Kind(
        "is incomplete: torn, as after a power loss",
        "Whoever wrote it was never told that it is recorded; all before it is intact.",
        "Move it aside with `ranloop audit --repair`: its bytes are kept, and recorded "
        "as a repair.",
    ),
    Trouble.EDITED: _Kind(
        "was edited after it was written: its hash is not that of its content",
        "What it says now is not what was recorded; the entries after it still follow "
        "the original.",
    ),
    Trouble.DOUBLED: _Kind(
        "names a field twice",
        "It was edited: a person and a program may read two different things in it.",
    ),
}


def check_chain(ledger: Ledger) -> list[Finding]:
    """Return every break of the chain in file order, or that it holds.

    That the end was cut off, or that everything from some line on was written anew with
    fitting hashes, a chain cannot show: see `loop.release.audit.known_heads` and
    `loop.release.audit.signatures`.
    """
    breaks = list(_breaks(ledger))
    spelled = list(_misspelled(ledger))
    if breaks or spelled or not ledger.lines:
        return [*breaks, *spelled]
    count, last = len(ledger.lines), ledger.last
    head = last.hash if last else GENESIS
    return [ok(_CHECK, f"{count} entries, one chain from the first to {head[:12]}")]


def _breaks(ledger: Ledger) -> Iterator[Finding]:
    places: dict[str, int] = {}
    for line in ledger.lines:
        if line.entry:
            places.setdefault(line.entry.hash, line.number)
    followers = {one.entry.prev: one.number for one in ledger.lines if one.entry}
    walk = _Walk(ledger, places, followers)
    before: LedgerLine | None = None
    for line in ledger.lines:
        if line.trouble:
            yield _finding(ledger, line, _OWN[line.trouble])
        if line.entry is None:
            continue
        kind = walk.find_break(before, line, line.entry)
        if kind is not None:
            yield _finding(ledger, line, kind)
        if places[line.entry.hash] == line.number:
            before = line


_FOREIGN = _Kind(
    "follows an entry that is not in this file",
    "It was put here from elsewhere, or what it follows was removed and the rest was "
    "written anew.",
)


class _Walk(NamedTuple):
    """The whole file, to say where a line that does not follow belongs."""

    ledger: Ledger
    places: Mapping[str, int]
    """Hash to the first line that has it."""

    followers: Mapping[str, int]
    """Hash to the last line that follows it."""

    def find_break(
        self, before: LedgerLine | None, line: LedgerLine, entry: LedgerEntry
    ) -> _Kind | None:
        """Return why `line` does not follow the readable line `before` it."""
        first = self.places[entry.hash]
        if first != line.number:
            return _duplicated(first)
        if before is None or before.entry is None:
            return self._first(line, entry)
        # Where only the stated hash was edited, that line is already reported.
        if entry.prev in (before.entry.hash, before.content):
            return self._numbered(before.entry, line, entry)
        known = self.places.get(entry.prev)
        if known is None:
            foreign = before.entry.hash in self.followers
            return _FOREIGN if foreign else _unknown(before, line, entry)
        return self._elsewhere(known, line)

    def _first(self, line: LedgerLine, entry: LedgerEntry) -> _Kind | None:
        if entry.prev == GENESIS and entry.seq == 1:
            return None
        if self.places.get(entry.prev):
            return _reordered(self.places[entry.prev])
        if line.number > 1 and entry.seq == line.number:
            # The lines before it cannot be read and were reported as such.
            return None
        return _removed(1, entry.seq - 1) if entry.seq > 1 else _FOREIGN

    def _numbered(
        self, before: LedgerEntry, line: LedgerLine, entry: LedgerEntry
    ) -> _Kind | None:
        gap = entry.seq - before.seq - 1
        if gap == 0:
            return None
        return _Kind(
            f"has number {entry.seq} after number {before.seq}, although its hash "
            "follows",
            "The chain was written anew with fitting hashes: nothing in it can be "
            "trusted from here on.",
        )

    def _elsewhere(self, known: int, line: LedgerLine) -> _Kind:
        """Say why a line follows another than the one before it."""
        if known > line.number:
            return _reordered(known)
        between = (self.ledger.lines[i] for i in range(known, line.number - 1))
        followed = any(
            one.entry and self.followers.get(one.entry.hash, 0) > line.number
            for one in between
        )
        return _reordered(known) if followed else _inserted(known, line.number)


def _unknown(before: LedgerLine, line: LedgerLine, entry: LedgerEntry) -> _Kind | None:
    """Say why a line follows an entry that is not in the file."""
    previous = before.entry
    if previous is None:
        return None
    unread = line.number - before.number - 1
    missing = entry.seq - previous.seq - 1
    if unread and missing == unread:
        # It follows lines that cannot be read and were reported as such.
        return None
    if missing > 0:
        return _removed(previous.seq + 1, entry.seq - 1)
    if missing == 0:
        return _Kind(
            f"does not follow line {before.number}, which was replaced and given a "
            "fitting hash",
            f"Line {before.number}, and perhaps lines before it, say something else "
            "than was recorded; this line still follows the original.",
        )
    return _FOREIGN


def _duplicated(first: int) -> _Kind:
    return _Kind(
        f"repeats line {first}",
        "A line was copied: nothing happened twice because it is listed twice.",
    )


def _reordered(known: int) -> _Kind:
    return _Kind(
        f"is out of order: it follows line {known}",
        "Lines were moved: what is listed first did not happen first.",
    )


def _inserted(known: int, number: int) -> _Kind:
    one = known + 2 == number
    between = (
        f"line {known + 1} was" if one else f"lines {known + 1} to {number - 1} were"
    )
    return _Kind(
        f"follows line {known}, not the line before it: {between} inserted",
        "The inserted entries were never part of this history.",
    )


def _removed(first: int, last: int) -> _Kind:
    entries = f"entry {first} is" if first == last else f"entries {first} to {last} are"
    return _Kind(
        f"does not follow the line before it: {entries} missing",
        "They were removed: what they recorded is not in this history any more.",
    )


def _finding(ledger: Ledger, line: LedgerLine, kind: _Kind) -> Finding:
    return broken(
        _CHECK,
        f"line {line.number} {kind.what}",
        where=f"{ledger.path.name}, line {line.number}",
        implies=kind.implies,
        todo=kind.todo,
        seq=line.entry.seq if line.entry else line.number,
    )


def _misspelled(ledger: Ledger) -> Iterator[Finding]:
    """Yield what is written otherwise than ranloop writes it, and means the same."""
    odd = [
        (line.number, line.entry.seq)
        for line in ledger.lines
        if line.entry and not line.spelled and line.trouble is Trouble.NONE
    ]
    shown = odd if len(odd) <= MOST_PROBLEMS else odd[:1]
    for number, seq in shown:
        what = f"line {number} is spelled otherwise than ranloop writes it"
        if len(shown) < len(odd):
            what += f", and {len(odd) - 1:,} more"
        yield warning(
            _CHECK,
            what,
            where=f"{ledger.path.name}, line {number}",
            implies="An editor, another program or a change of line ends wrote it; it "
            "says the same.",
            todo="Compare it with a backup, and find out who opened the file.",
            seq=seq,
        )
    if ledger.lines and not ledger.ended and ledger.lines[-1].entry:
        yield warning(
            _CHECK,
            "the last line has no line end",
            where=f"{ledger.path.name}, line {len(ledger.lines)}",
            implies="An editor took it, or the last write was cut short by one byte.",
            todo="Nothing: the next entry puts it back.",
            seq=len(ledger.lines),
        )


def check_entries(ledger: Ledger, now: str) -> list[Finding]:
    """Return what is odd about entries that the chain holds: times, actions, reasons.

    Parameters
    ----------
    now
        UTC, ISO 8601 with seconds; an entry after it is from a clock that was wrong.
    """
    found = [*_times(ledger, now), *_forms(ledger)]
    return found or [ok("entries", "times do not go back; every entry has a reason")]


def _times(ledger: Ledger, now: str) -> Iterator[Finding]:
    latest = ""
    for line in ledger.lines:
        entry = line.entry
        if entry is None:
            continue
        if is_clock_repair(entry):
            yield _odd(
                ledger,
                line,
                f"says that the clock was ahead until {entry.payload['clock']}",
            )
        elif entry.time < latest:
            yield _odd(ledger, line, f"is of {entry.time}, before the line above it")
        elif entry.time > now >= latest:
            yield note(
                "entries",
                f"line {line.number} has the time {entry.time}, which is in the future",
                where=f"{ledger.path.name}, line {line.number}",
                todo="Compare the clocks of the machines that write here.",
            )
        latest = entry.time if is_clock_repair(entry) else max(latest, entry.time)


def _forms(ledger: Ledger) -> Iterator[Finding]:
    for line in ledger.lines:
        entry = line.entry
        if entry and entry.action not in ACTIONS:
            yield _odd(ledger, line, "has an action that this ranloop does not know")
        elif entry and not (entry.reason.strip() and entry.actor.strip()):
            yield _odd(ledger, line, "does not say who, or why")


def _odd(ledger: Ledger, line: LedgerLine, what: str) -> Finding:
    return warning(
        "entries",
        f"line {line.number} {what}",
        where=f"{ledger.path.name}, line {line.number}",
        implies="A clock was wrong, another ranloop wrote it, or it was made by hand.",
        todo="Ask the person the entry names.",
        seq=line.entry.seq if line.entry else line.number,
    )
