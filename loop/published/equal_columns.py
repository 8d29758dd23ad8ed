"""Columns that hold the same numbers: one measurement, or a copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from loop.core.check_findings import Finding, FindingSeverity
from loop.published.result_table import (
    RATES,
    PublishedTable,
    TableColumn,
    table_finding,
)

_FEWEST_ROWS = 5
_FEWEST_VALUES = 4
"""Different numbers; below it two columns can be equal by chance."""


class Series(NamedTuple):
    """One column as row name to value."""

    table: PublishedTable
    column: TableColumn
    values: dict[str, float]

    @property
    def name(self) -> str:
        """Where the column stands."""
        return f"{self.table.name}, {self.column.header}"


def check_copies(tables: Sequence[PublishedTable]) -> Iterator[Finding]:
    """Yield the pairs of columns, in one table or two, that are equal in every row.

    Equal columns may be right: one run printed in two tables. What cannot be true at
    the same time is that they are different systems, versions or measures.
    """
    series = [
        one
        for table in tables
        for column in table.values()
        if column.measure in RATES and (one := _series(table, column)) is not None
    ]
    for first, second in combinations(series, 2):
        shared = first.values.keys() & second.values.keys()
        distinct = {first.values[name] for name in shared}
        if len(shared) < _FEWEST_ROWS or len(distinct) < _FEWEST_VALUES:
            continue
        if _equal(first, second) == len(shared):
            yield _finding(first, second, series, len(shared))


def _series(table: PublishedTable, column: TableColumn) -> Series | None:
    values = {
        row.name.casefold(): round(value.value, 9)
        for row in table.results
        if (value := row.cells[column.index].value) is not None
    }
    return Series(table, column, values) if len(values) >= _FEWEST_ROWS else None


def _equal(first: Series, second: Series) -> int:
    return sum(second.values.get(name) == value for name, value in first.values.items())


def _finding(
    first: Series, second: Series, series: Sequence[Series], rows: int
) -> Finding:
    siblings = {
        other.column.header: _equal(base, other)
        for base, twin in ((first, second), (second, first))
        for other in series
        if other.table is twin.table
        and other.column.measure == twin.column.measure
        and other.column.system == twin.column.system
        and other.column.time != twin.column.time
    }
    beside = "".join(
        f" It equals {header!r} of the same table in {count}."
        for header, count in siblings.items()
    )
    return table_finding(
        "equal columns", first.table.name, f"{first.column.header} = {second.name}",
        FindingSeverity.NOTE,
        f"The two columns hold the same numbers in {rows} of {rows} rows: they are one "
        f"measurement, or one was copied; they cannot be two.{beside}",
        {
            "first": [first.table.name, first.column.header],
            "second": [second.table.name, second.column.header],
            "rows": rows, "siblings": siblings,
        },
    )  # fmt: skip
