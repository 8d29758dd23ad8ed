"""Rows of one side: whose, of which case, and what they say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from loop.core.errors import DataError
from loop.core.records import ValueCode
from loop.labels.importing.source import MAX_GENERATED, MAX_ID, cell_text
from loop.labels.importing.table_files import SourceRow, SourceTable
from loop.labels.taxonomy import Taxonomy
from loop.score.reading.options import LabelCells, ReadingOptions, read_language
from loop.score.reading.roles import SideColumns


class Content(NamedTuple):
    """What a row says of its case; two rows with equal content are the same twice."""

    text: str | None
    """Without spaces around it; None for labels."""

    codes: tuple[int, ...] | None
    """One per label of the taxonomy; None for a text."""

    patient: str
    language: str


class SideRow(NamedTuple):
    """One row of one side."""

    where: str
    system: str
    """As its column says; empty without one."""

    case_id: str
    content: Content

    def with_patient(self, patient: str) -> SideRow:
        """Return the same row of another patient."""
        return self._replace(content=self.content._replace(patient=patient))


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """All rows of one side, one per case."""

    by_id: Mapping[str, SideRow]
    rows: int
    repeated: tuple[str, ...]
    """Sorted ids that stood more than once, with the same content."""

    conflicting: tuple[str, ...]
    """Sorted ids that stood with different contents, of which one was chosen."""


def read_entries(
    table: SourceTable,
    columns: SideColumns,
    taxonomy: Taxonomy,
    options: ReadingOptions,
) -> list[SideRow]:
    """Return the rows of `table` for one side.

    Raises
    ------
    DataError
        The table has no row, or one without a usable id, with a text that is too long
        or none, or with a label cell without a meaning; names where it stands.
    """
    cells = LabelCells(options.values)
    found = [
        read_entry(row, columns, taxonomy, cells) for row in table.read(columns.used)
    ]
    if not found:
        raise DataError(
            f"{table.name} holds no case. Give a header and one case a row."
        )
    return found


def read_entry(
    row: SourceRow, columns: SideColumns, taxonomy: Taxonomy, cells: LabelCells
) -> SideRow:
    """Return one row of one side; raises as `read_entries`."""

    def words(column: str) -> str:
        return cell_text(row.cells.get(column), column, row.where) if column else ""

    _require_keys(row, columns)
    content = Content(
        text=_read_text(row, columns.texts) if columns.texts else None,
        codes=_read_codes(row, columns, taxonomy, cells) if columns.labels else None,
        patient=words(columns.patient).strip(),
        language=read_language(words(columns.language), row.where),
    )
    system = check_name(words(columns.system), "system", row) if columns.system else ""
    return SideRow(
        row.where, system, check_name(words(columns.case_id), "id", row), content
    )


def check_name(name: str, kind: str, row: SourceRow) -> str:
    """Return an id or the name of a system without spaces around it.

    Raises
    ------
    DataError
        It is empty, too long or not printable.
    """
    short = name.strip()
    if not short:
        raise DataError(f"{row.where}: no {kind}. Give every row its {kind}.")
    if len(short) > MAX_ID or not short.isprintable():
        raise DataError(
            f"{row.where}: the {kind} is longer than {MAX_ID} characters or holds a "
            f"control character. Check that the column is the one with the {kind}."
        )
    return short


def unite(entries: Iterable[SideRow], duplicates: str) -> Entries:
    """Return one entry per case.

    Rows with the same content count once. Of rows with different content the first or
    last is used, as `duplicates` says.

    Raises
    ------
    DataError
        Contents of one case differ and `duplicates` is ``"refuse"``; names both rows.
    """
    grouped: dict[str, list[SideRow]] = defaultdict(list)
    for entry in entries:
        grouped[entry.case_id].append(entry)
    conflicting = dict(_conflicts(grouped))
    if conflicting and duplicates == "refuse":
        case_id, (one, other) = min(conflicting.items())
        raise DataError(
            f"{other.where}: id {case_id[:40]!r} was already given at {one.where}, "
            f"with different content{_and_more(len(conflicting) - 1)}. Remove one of "
            "the two, choose with --duplicates first or last, or name another column "
            "with --id-column."
        )
    place = -1 if duplicates == "last" else 0
    return Entries(
        by_id={case_id: rows[place] for case_id, rows in sorted(grouped.items())},
        rows=sum(map(len, grouped.values())),
        repeated=tuple(
            sorted(i for i in grouped if len(grouped[i]) > 1 and i not in conflicting)
        ),
        conflicting=tuple(sorted(conflicting)),
    )


def _conflicts(
    grouped: Mapping[str, list[SideRow]],
) -> Iterator[tuple[str, tuple[SideRow, SideRow]]]:
    """Yield each case with different contents, and two rows that differ."""
    for case_id, rows in grouped.items():
        other = next((row for row in rows if row.content != rows[0].content), None)
        if other is not None:
            yield case_id, (rows[0], other)


def _and_more(number: int) -> str:
    return f" (and so do {number:,} more ids)" if number else ""


def _require_keys(row: SourceRow, columns: SideColumns) -> None:
    """Refuse a JSON line without the key of its text: it was not said to be empty."""
    for column in columns.texts:
        if column not in row.cells:
            raise DataError(
                f"{row.where}: no {column[:60]!r}. Give every line the same keys; an "
                "empty text is null."
            )


def _read_text(row: SourceRow, columns: Sequence[str]) -> str:
    for column in columns:
        cell = row.cells.get(column)
        # Not NaN, which is how pandas writes a blank cell.
        if isinstance(cell, (int, float)) and cell == cell:
            raise DataError(
                f"{row.where}: column {column[:60]!r} holds a number, not text. Say "
                "which column holds the text with --text-column."
            )
    parts = (cell_text(row.cells.get(name), name, row.where) for name in columns)
    text = " ".join(parts).strip()
    if "\0" in text or _is_broken(text):
        raise DataError(
            f"{row.where}: the text contains a NUL or an unpaired "
            "surrogate. Export it again as UTF-8."
        )
    if len(text) > MAX_GENERATED:
        raise DataError(
            f"{row.where}: a text of {len(text):,} characters, and at most "
            f"{MAX_GENERATED:,} are read. Look for a quote that is never closed."
        )
    return text


def _is_broken(text: str) -> bool:
    """Whether `text` cannot be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _read_codes(
    row: SourceRow, columns: SideColumns, taxonomy: Taxonomy, cells: LabelCells
) -> tuple[int, ...]:
    codes: list[int] = [ValueCode.MISSING] * len(taxonomy.ids)
    for place, label in enumerate(taxonomy.ids):
        column = columns.labels.get(label)
        if column is not None:
            codes[place] = cells.read(row.cells.get(column), column, row.where)
    return tuple(codes)
