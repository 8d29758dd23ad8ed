"""A published table with its columns understood and its cells read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import Any, NamedTuple

from loop.core.findings import Finding, FindingSeverity
from loop.published.columns import (
    SHARES,
    TableColumn,
    measure_in,
    read_columns,
    stated_n,
)
from loop.published.reading import TextTable
from loop.published.values import (
    Number,
    PrintedCell,
    decimal_commas,
    read_cell,
)


def table_finding(
    check: str,
    table: str,
    part: str,
    severity: FindingSeverity,
    what: str,
    numbers: Mapping[str, Any],
) -> Finding:
    """Return one check of one table, column or claim, with the numbers behind it.

    A finding is OK where what the table says holds, BROKEN where it does not, and a
    NOTE where that cannot be decided.
    """
    return Finding(
        check=check,
        severity=severity,
        what=what,
        where=table,
        part=part,
        numbers=numbers,
    )


_MEAN_ROW = re.compile(
    r"(?:the )?(?:macro[- ]?)?(?:average|avg\.?|mean|macro)(?: (?:of|over) all\b.*)?",
    re.IGNORECASE,
)
_POOLED_ROW = re.compile(
    r"(?:micro|weighted|pooled|overall|total|all|sum|median|sd|std|standard deviation|"
    r"range|average|avg|mean|macro|samples avg|accuracy|f1|kappa)\b",
    re.IGNORECASE,
)
_SYSTEM_HEADER = re.compile(
    r"\b(?:models?|systems?|methods?|engines?|algorithms?|readers?|llms?|tools?)\b",
    re.IGNORECASE,
)


class TableRow(NamedTuple):
    """One row: its name and its cells by column index."""

    name: str
    keys: tuple[str, ...]
    cells: tuple[PrintedCell, ...]
    kind: str
    """``""`` for a row of results, ``"mean"`` or ``"pooled"`` for a summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """One table, ready to be checked."""

    name: str
    caption: str
    key_headers: tuple[str, ...]
    columns: tuple[TableColumn, ...]
    rows: tuple[TableRow, ...]
    n: int | None = None
    """Cases the table states for all its rows."""

    level: float = 0.95
    """Confidence of its intervals."""

    comparable: frozenset[str] = frozenset()
    """Folded names of rows that a summary may be restricted to."""

    shared: bool = True
    """Whether results side by side claim to share one set of reference labels."""

    remarks: tuple[str, ...] = ()
    """What was odd in the file."""

    @property
    def results(self) -> tuple[TableRow, ...]:
        """The rows that are no summary of others."""
        return tuple(row for row in self.rows if not row.kind)

    @property
    def rows_are_systems(self) -> bool:
        """Whether each row is a model, rather than a label."""
        return any(map(is_system_header, self.key_headers))

    def values(self) -> Iterator[TableColumn]:
        """Yield the columns that hold a measure or an unnamed number."""
        return (column for column in self.columns if column.is_value)

    def groups(self) -> dict[tuple[str, str, str], dict[str, TableColumn]]:
        """Return the sets of results in a row: measure to column of each."""
        groups: dict[tuple[str, str, str], dict[str, TableColumn]] = {}
        for column in self.values():
            if column.measure and column.measure != "other":
                groups.setdefault(column.group, {}).setdefault(column.measure, column)
        return groups

    def cases(self, row: TableRow, column: TableColumn) -> int | None:
        """Return the cases stated for a cell: by its row, its header, or the table."""
        counts = [c for c in self.columns if c.measure == "n" and c.is_value]
        best = next((c for c in counts if c.group == column.group), None)
        best = best or next((c for c in counts if not any(c.group)), None)
        number = row.cells[best.index].value if best else None
        if number is not None and 0 < number.value < 1e9:
            return round(number.value)
        return column.n or self.n


def is_system_header(header: str) -> bool:
    """Return whether a header of names says that they are models or the like."""
    return bool(_SYSTEM_HEADER.search(header))


def group_name(group: tuple[str, str, str], columns: dict[str, TableColumn]) -> str:
    """Return what to call a set of results in a sentence."""
    system = next(iter(columns.values())).system
    return " ".join(part for part in (group[2], system, group[1]) if part) or "results"


def counts_of(number: Number, n: int) -> range:
    """Return the whole numbers of `n` cases that print as `number`."""
    return range(max(0, ceil(n * number.low)), min(n, floor(n * number.high)) + 1)


def make_table(
    grid: TextTable, *, n: int | None = None, measure: str = ""
) -> PublishedTable:
    """Return a grid as a table.

    Parameters
    ----------
    n
        Cases of all rows, where the caption does not say or says something else.
    measure
        What columns hold that name no measure, such as columns of models.
    """
    grid = _upright(grid)
    keys = _count_keys(grid)
    comma = decimal_commas([cell for row in grid.rows for cell in row[keys:]])
    rows = _one_mean([_row(cells, keys, comma) for cells in grid.rows])
    named = measure or measure_in(grid.caption)
    columns = tuple(
        _finished(column, rows, named) for column in read_columns(grid.header, keys)
    )
    rows = tuple(_scaled(row, columns) for row in rows if row.name or row.cells)
    return PublishedTable(
        name=grid.name,
        caption=grid.caption,
        key_headers=grid.header[:keys],
        columns=columns,
        rows=rows,
        n=n or stated_n(grid.caption),
        level=_level(grid),
        remarks=_remarks(grid, rows),
    )


def _upright(grid: TextTable) -> TextTable:
    """Turn a table whose first column, not its header, names the measures."""
    across = sum(bool(measure_in(text)) for text in grid.header[1:])
    down = sum(bool(measure_in(row[0])) for row in grid.rows)
    if across or down < 2 or 2 * down < len(grid.rows):
        return grid
    whole = list(zip(grid.header, *grid.rows, strict=True))
    return grid._replace(header=whole[0], rows=tuple(whole[1:]))


def _count_keys(grid: TextTable) -> int:
    """Count the leading columns of words; at least one, unless all are numbers."""
    keys = 0
    for column in zip(*grid.rows, strict=True):
        filled = [cell for cell in column if cell]
        numbers = sum(read_cell(cell).numeric for cell in filled)
        if 2 * numbers >= len(filled) and keys:
            break
        keys += 1
    return min(keys, max(1, len(grid.header) - 1)) if keys < len(grid.header) else 1


def _row(cells: Sequence[str], keys: int, comma: bool) -> TableRow:
    name = " / ".join(cell for cell in cells[:keys] if cell)
    read = tuple(
        PrintedCell(cell) if index < keys else read_cell(cell, comma=comma)
        for index, cell in enumerate(cells)
    )
    kind = "pooled" if _POOLED_ROW.match(name) else ""
    kind = "mean" if keys == 1 and _MEAN_ROW.fullmatch(name.strip()) else kind
    return TableRow(name, tuple(cells[:keys]), read, kind)


def _one_mean(rows: list[TableRow]) -> tuple[TableRow, ...]:
    """Leave averages alone where there are several: each is over a part of the rows."""
    several = sum(row.kind == "mean" for row in rows) > 1
    return tuple(
        row._replace(kind="pooled") if several and row.kind else row for row in rows
    )


def _finished(column: TableColumn, rows: Sequence[TableRow], named: str) -> TableColumn:
    """Name the measure of an unnamed column of shares, and find percentages."""
    cells = [row.cells[column.index] for row in rows]
    values = [cell.value.value for cell in cells if cell.value is not None]
    values += [limit.value for cell in cells if cell.limits for limit in cell.limits]
    small = bool(values) and all(abs(value) <= 1.5 for value in values)
    if not (column.measure or column.mean or column.delta) and values:
        limits = any(cell.limits for cell in cells)
        known = named or ("share" if limits and small else "")
        column = replace(column, measure=known)
    hundred = bool(values) and not small and all(abs(v) <= 100 for v in values)
    rate = column.measure in SHARES or column.measure == "kappa"
    return replace(column, percent=(column.percent or rate) and hundred and rate)


def _scaled(row: TableRow, columns: Sequence[TableColumn]) -> TableRow:
    """Turn percentages without a sign into shares."""
    percent = {column.index for column in columns if column.percent}
    cells = tuple(
        _as_share(cell) if index in percent and "%" not in cell.text else cell
        for index, cell in enumerate(row.cells)
    )
    return row._replace(cells=cells)


def _as_share(cell: PrintedCell) -> PrintedCell:
    value = cell.value.scaled(0.01) if cell.value else None
    limits = (
        (cell.limits[0].scaled(0.01), cell.limits[1].scaled(0.01))
        if cell.limits
        else None
    )
    return cell._replace(value=value, limits=limits)


def _level(grid: TextTable) -> float:
    text = " ".join((grid.caption, *grid.header))
    found = re.search(r"\b(\d\d(?:\.\d)?)\s?%\s?(?:ci|confidence)", text, re.IGNORECASE)
    level = float(found[1]) / 100 if found else 0.95
    return level if 0.5 <= level < 1 else 0.95


def _remarks(grid: TextTable, rows: Sequence[TableRow]) -> tuple[str, ...]:
    remarks = []
    if grid.ragged:
        remarks.append(f"{grid.ragged} rows have more or fewer cells than the header")
    names = [row.name.casefold() for row in rows]
    twice = sorted({row.name for row in rows if names.count(row.name.casefold()) > 1})
    if twice:
        remarks.append(f"rows that occur twice: {', '.join(twice[:5])}")
    if apart := [row.name for row in rows if row.kind == "pooled"]:
        remarks.append(
            f"rows taken for summaries and not checked: {'; '.join(apart[:5])}"
        )
    return tuple(remarks)
