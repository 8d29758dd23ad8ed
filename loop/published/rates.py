"""Whether F1 is the harmonic mean of the precision and recall printed beside it."""

from __future__ import annotations

from collections.abc import Iterator

from loop.published.columns import TableColumn
from loop.published.finding import Consistency, TableFinding
from loop.published.table import PublishedTable, TableRow, group_name
from loop.published.values import Number


def check_f1(table: PublishedTable) -> Iterator[TableFinding]:
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
        yield TableFinding(
            "F1 from P and R", table.name, group_name(group, columns),
            Consistency.FAILS if wrong else Consistency.HOLDS,
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
