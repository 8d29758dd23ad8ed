"""Which rows of which tables belong to which system."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from loop.core.errors import DataError
from loop.score.reading.entries import MAX_ID, SideRow
from loop.score.reading.tables import SourceTable


class CandidateTable(NamedTuple):
    """A table of candidates, and whose it is."""

    table: SourceTable
    system: str
    """Name that was given; empty: that of its system column, else `fallback`."""

    fallback: str


def group_systems(
    read: Iterable[tuple[CandidateTable, Sequence[SideRow]]],
) -> dict[str, list[SideRow]]:
    """Return the rows of each system, systems in the order of their tables.

    Those of one table are sorted by name, so that the order of rows changes nothing.

    Raises
    ------
    DataError
        A table that was given one name holds several systems, a table without a name
        is called like another system, one names in its column what another was named,
        or a name is too long or not printable.
    """
    groups: dict[str, list[SideRow]] = {}
    owners: dict[str, CandidateTable] = {}
    for part, entries in read:
        names = sorted({entry.system for entry in entries})
        _require_single(part, names)
        for name in names:
            system = part.system or name or part.fallback
            _require_readable(system, part)
            mine = [entry for entry in entries if entry.system == name]
            unasked = not part.system and not name
            other = owners.setdefault(system, part)
            # One file may not add rows to a system that was named for another.
            mixed = bool(other.system) != bool(part.system)
            if other is not part and (
                unasked or mixed or _is_unnamed(other, groups[system])
            ):
                raise DataError(
                    f"{other.table.name} and {part.table.name} would both be system "
                    f"{system!r}. Give each a name of its own, as NAME=FILE, or in "
                    "its system column."
                )
            groups.setdefault(system, []).extend(mine)
    return groups


def _require_readable(system: str, part: CandidateTable) -> None:
    """Refuse a name that would spoil a line of a terminal or a document."""
    if len(system) > MAX_ID or not system.isprintable():
        raise DataError(
            f"{part.table.name[:60]!r}: the name of its system is longer than {MAX_ID} "
            "characters or holds a control character. Give it another name."
        )


def _is_unnamed(part: CandidateTable, entries: Sequence[SideRow]) -> bool:
    """Whether a system is called after its file only."""
    return not part.system and not entries[0].system


def _require_single(part: CandidateTable, names: Sequence[str]) -> None:
    if part.system and len(names) > 1:
        raise DataError(
            f"{part.table.name} was named {part.system[:60]!r} and holds {len(names)} "
            f"systems ({', '.join(repr(name[:40]) for name in names[:3])}). Give it "
            "without a name."
        )
