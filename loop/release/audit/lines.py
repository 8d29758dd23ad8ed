"""The ledger read line by line, going on where a line is broken."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from loop.core.errors import DataError
from loop.core.ledger import LedgerEntry, entry_hash, format_entry, make_entry
from loop.labels.recorded import CohortRecord, find_record


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
        """What can be read, in file order; a line that stands there twice, once."""
        found = {one.entry.hash: one.entry for one in reversed(self.lines) if one.entry}
        return tuple(reversed(found.values()))

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
    doubled = False

    def note_names(pairs: list[tuple[str, Any]]) -> None:
        nonlocal doubled
        names = [name for name, _ in pairs]
        doubled = doubled or len(set(names)) < len(names)

    json.loads(text, object_pairs_hook=note_names)
    return doubled


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
        if entry.action != "reference_revised"
        or type(entry.payload.get("number")) is int
    ]
    return find_record(sound, name)
