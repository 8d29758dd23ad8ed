"""Whether printed averages are the means of what they stand under or beside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from loop.core.check_findings import Finding, FindingSeverity
from loop.published.printed import Number
from loop.published.result_table import (
    RATES,
    PublishedTable,
    TableColumn,
    TableRow,
    counts_of,
    group_name,
    table_finding,
)


def check_f1(table: PublishedTable) -> Iterator[Finding]:
    """Yield for each set of results whether F1 equals ``2PR / (P + R)``.

    Averages are left out: a mean of F1 values is not the F1 of mean rates.
    """
    for group, columns in table.groups().items():
        if group[2] in ("macro", "weighted") or not set(columns) >= _THREE:
            continue
        rows = [
            (row, rates) for row in table.results if (rates := _rates(row, columns))
        ]
        if not rows:
            continue
        wrong = [
            f"{row.name}: printed {f1.shown()}, "
            f"from P and R {harmonic(p.value, r.value):.4f}"
            for row, (p, r, f1) in rows
            if not f1_agrees(p, r, f1)
        ]
        text = f"{len(rows) - len(wrong)} of {len(rows)} F1 values equal 2PR / (P + R)"
        yield table_finding(
            "F1 from P and R", table.name, group_name(group, columns),
            FindingSeverity.BROKEN if wrong else FindingSeverity.OK,
            text + (f"; not so: {'; '.join(wrong[:8])}" if wrong else "") + ".",
            {"cells": len(rows), "wrong": wrong},
        )  # fmt: skip


_THREE = {"precision", "recall", "f1"}


def harmonic(p: float, r: float) -> float:
    """Return ``2PR / (P + R)``, 0 where both are 0."""
    return 2 * p * r / (p + r) if p + r > 0 else 0.0


def f1_agrees(p: Number, r: Number, f1: Number) -> bool:
    """Return whether some exact values behind the three printed ones agree.

    The harmonic mean grows with both rates, so its ends are at theirs. Where both
    rates are 0, F1 has no denominator and may print as 0 or 1.
    """
    if p.low <= 0 and r.low <= 0 and f1.high >= 1:
        return True
    low = harmonic(max(0.0, p.low), max(0.0, r.low))
    high = harmonic(min(1.0, p.high), min(1.0, r.high))
    return f1.low <= high and low <= f1.high


def _rates(
    row: TableRow, columns: dict[str, TableColumn]
) -> tuple[Number, Number, Number] | None:
    cells = [
        row.cells[columns[name].index].value for name in ("precision", "recall", "f1")
    ]
    p, r, f1 = cells
    return (p, r, f1) if p is not None and r is not None and f1 is not None else None


_FEWEST = 3
"""Rows a subset must have to be offered as what an average was taken over."""


class Bounds(NamedTuple):
    """The range of an exact value behind what is printed."""

    low: float
    high: float

    def meets(self, other: Bounds) -> bool:
        """Return whether the two ranges share a value."""
        return self.low <= other.high and other.low <= self.high

    def within(self, other: Bounds) -> Bounds:
        """Return the part both share; itself where they share none."""
        if not self.meets(other):
            return self
        return Bounds(max(self.low, other.low), min(self.high, other.high))

    def minus(self, other: Bounds) -> Bounds:
        """Return the range of the difference."""
        return Bounds(self.low - other.high, self.high - other.low)


def bounds(number: Number) -> Bounds:
    """Return what can print as `number`."""
    return Bounds(number.low, number.high)


def exact_bounds(
    table: PublishedTable, row: TableRow, column: TableColumn
) -> Bounds | None:
    """Return the range of a cell; a share of n cases lies on a whole count."""
    value = row.cells[column.index].value
    if value is None:
        return None
    n = table.cases(row, column) if column.measure == "accuracy" else None
    counts = counts_of(value, n) if n and not row.kind else range(0)
    if n and counts:
        return Bounds(counts[0] / n, counts[-1] / n)
    return bounds(value)


def prints_as(printed: Number, span: Bounds, plain: float) -> bool:
    """Return whether a result prints so, made from exact or from printed values."""
    return span.meets(bounds(printed)) or printed.low <= plain <= printed.high


def mean_bounds(
    table: PublishedTable, rows: Sequence[TableRow], column: TableColumn
) -> tuple[Bounds, float, int] | None:
    """Return the range of a column's mean, the mean as printed, and over how many."""
    cells = [cell for row in rows if (cell := exact_bounds(table, row, column))]
    values = [v.value for row in rows if (v := row.cells[column.index].value)]
    if not cells:
        return None
    count = len(cells)
    low, high = (sum(ends) / count for ends in zip(*cells, strict=True))
    return Bounds(low, high), sum(values) / count, count


def subsets(table: PublishedTable) -> dict[str, tuple[TableRow, ...]]:
    """Return sets of rows an average may have been taken over, the whole first.

    Named ones (``comparable`` in the notes), and rows in which a column that is not
    filled everywhere has a value.
    """
    rows = table.results
    found = {"all rows": rows}
    named = tuple(row for row in rows if row.name.casefold() in table.comparable)
    if named:
        found["the comparable rows"] = named
    for column in table.columns:
        filled = tuple(row for row in rows if row.cells[column.index].numeric)
        if _FEWEST <= len(filled) < len(rows) and filled not in found.values():
            found[f"the rows with {column.header}"] = filled
    return found


def check_means(table: PublishedTable) -> Iterator[Finding]:
    """Yield whether each printed average is the mean of its column, or of a part.

    The range of the mean follows from the rounding of every cell, and from n where
    the cells are shares of n cases, so an average made from unrounded values passes.
    """
    for row in table.rows:
        if row.kind == "mean":
            for column in table.columns:
                value = row.cells[column.index].value
                if value is not None and _averaged(column):
                    yield from _column_mean(table, row, column, value)
    yield from _row_means(table)


def _averaged(column: TableColumn) -> bool:
    """Whether an average is one of its rows; differences have a check of their own."""
    return not (column.part or column.delta) and column.measure in (*RATES, "", "other")


def _column_mean(
    table: PublishedTable, row: TableRow, column: TableColumn, value: Number
) -> Iterator[Finding]:
    over = {
        name: mean
        for name, rows in subsets(table).items()
        if (mean := mean_bounds(table, rows, column)) is not None
    }
    if not over or over["all rows"][2] < 2:
        return
    fitting = [name for name, mean in over.items() if prints_as(value, *mean[:2])]
    _, plain, count = over["all rows"]
    numbers = {
        "printed": value.value, "recomputed": round(plain, 5), "rows": count,
        "fits": fitting,
        "means": {name: [round(mean[1], 5), mean[2]] for name, mean in over.items()},
    }  # fmt: skip
    text = f"Printed {value.shown()}; the mean of {count} rows is {plain:.5f}"
    severity = FindingSeverity.OK if "all rows" in fitting else FindingSeverity.BROKEN
    if severity is FindingSeverity.BROKEN:
        others = [f"{name} ({over[name][2]}): {over[name][1]:.5f}" for name in fitting]
        text += f"; it is the mean of {'; '.join(others)}" if others else ""
        severity, more = _other_average(table, row, column, value, severity)
        text += more
    yield table_finding(
        "column mean", table.name, f"{row.name}, {column.header}", severity,
        text + ".", numbers,
    )  # fmt: skip


def _other_average(
    table: PublishedTable,
    row: TableRow,
    column: TableColumn,
    value: Number,
    severity: FindingSeverity,
) -> tuple[FindingSeverity, str]:
    """Try averages that are no plain mean: blanks as 0, F1 of mean rates."""
    filled = mean_bounds(table, table.results, column)
    rows = len(table.results)
    if filled and filled[2] < rows:
        share = filled[2] / rows
        zeros = Bounds(filled[0].low * share, filled[0].high * share)
        if zeros.meets(bounds(value)):
            return FindingSeverity.NOTE, "; it fits if empty cells count as 0"
    if column.measure == "f1" and _harmonic(table, row, column):
        others = [c for c in table.values() if c.measure == "f1" and c is not column]
        if False not in [_harmonic(table, row, other) for other in others]:
            return (
                FindingSeverity.NOTE,
                "; it is 2PR / (P + R) of the averages beside it",
            )
    return severity, ""


def _harmonic(table: PublishedTable, row: TableRow, column: TableColumn) -> bool | None:
    """Whether an averaged F1 is that of the averaged rates; None without them."""
    group = table.groups().get(column.group, {})
    cells = [
        row.cells[group[name].index].value
        for name in ("precision", "recall")
        if name in group
    ]
    numbers = [cell for cell in (*cells, row.cells[column.index].value) if cell]
    return f1_agrees(*numbers) if len(numbers) == 3 else None


def _row_means(table: PublishedTable) -> Iterator[Finding]:
    """Check a column called Average against the columns of systems beside it."""
    sources = [c for c in table.values() if c.measure in RATES]
    for column in table.columns:
        beside = [c for c in sources if column.measure in ("", c.measure)]
        if not column.mean or len(beside) < 2 or len({c.measure for c in beside}) > 1:
            continue
        wrong, checked = [], 0
        for row in table.results:
            value = row.cells[column.index].value
            cells = [exact_bounds(table, row, c) for c in beside]
            known = [cell for cell in cells if cell is not None]
            if value is None or len(known) < 2:
                continue
            checked += 1
            low, high = (sum(ends) / len(known) for ends in zip(*known, strict=True))
            if not prints_as(value, Bounds(low, high), _plain_mean(row, beside)):
                wrong.append(f"{row.name}: {(low + high) / 2:.4f}")
        if checked:
            yield table_finding(
                "row mean", table.name, column.header,
                FindingSeverity.BROKEN if wrong else FindingSeverity.OK,
                f"{checked - len(wrong)} of {checked} rows are the mean of their "
                f"{len(beside)} values"
                + (f"; not so: {'; '.join(wrong[:8])}" if wrong else "") + ".",
                {"rows": checked, "wrong": wrong},
            )  # fmt: skip


def _plain_mean(row: TableRow, columns: Sequence[TableColumn]) -> float:
    values = [v.value for column in columns if (v := row.cells[column.index].value)]
    return sum(values) / len(values)
