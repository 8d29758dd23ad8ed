"""Whether systems that share a reference set imply one share of positives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from loop.core.findings import Finding, FindingSeverity
from loop.published.columns import TableColumn
from loop.published.table import (
    PublishedTable,
    TableRow,
    group_name,
    is_system_header,
    table_finding,
)
from loop.published.values import Number

_FEWEST = 3
"""Systems from which a swap of columns is suggested."""


class Implied(NamedTuple):
    """The share of positives one row of rates implies."""

    name: str
    value: float
    low: float
    high: float


def check_prevalence(table: PublishedTable) -> Iterator[Finding]:
    """Yield whether accuracy, precision and recall of all systems fit one reference.

    Of all cells a share ``p`` is positive, the same for every system. With precision
    P and recall R, ``1 - accuracy = p (R (1/P - 1) + 1 - R)``, which gives ``p``.
    Where the shares differ by more than rounding, the columns of precision and
    recall are exchanged to see whether that restores one share.
    """
    if not (table.rows_are_systems and table.shared):
        return
    for group, columns in table.groups().items():
        if group[2] in ("macro", "weighted") or not set(columns) >= _THREE:
            continue
        for shared, rows in _by_reference(table).items():
            found = _check(table, rows, columns)
            if found is not None:
                part = f"{group_name(group, columns)} {shared}".strip()
                yield replace(found, part=part)


_THREE = {"accuracy", "precision", "recall"}


def _by_reference(table: PublishedTable) -> dict[str, list[TableRow]]:
    """Group rows by everything but the system: they share their reference labels."""
    groups: dict[str, list[TableRow]] = {}
    for row in table.results:
        others = [
            key
            for header, key in zip(table.key_headers, row.keys, strict=True)
            if not is_system_header(header)
        ]
        groups.setdefault(" / ".join(others), []).append(row)
    return groups


def _check(
    table: PublishedTable, rows: Sequence[TableRow], columns: Mapping[str, TableColumn]
) -> Finding | None:
    printed = _implied(rows, columns)
    if len(printed) < 2:
        return None
    swapped = _implied(
        rows,
        {**columns, "precision": columns["recall"], "recall": columns["precision"]},
    )
    numbers = {
        "implied": {one.name: round(one.value, 4) for one in printed},
        "swapped": {one.name: round(one.value, 4) for one in swapped},
        "swap_restores": False,
    }
    shown = ", ".join(f"{one.name} {one.value:.4f}" for one in printed)
    if _agree(printed):
        text = f"All {len(printed)} systems imply one share of positives: {shown}."
        return _finding(table, FindingSeverity.OK, text, numbers)
    text = f"The systems imply different shares of positives: {shown}."
    if len(swapped) >= max(_FEWEST, len(printed)) and _agree(swapped):
        numbers["swap_restores"] = True
        again = ", ".join(f"{one.value:.4f}" for one in swapped)
        text += (
            f" With the columns {columns['precision'].header!r} and "
            f"{columns['recall'].header!r} exchanged they agree: {again}. So the two "
            "headers are swapped."
        )
    return _finding(table, FindingSeverity.BROKEN, text, numbers)


def _finding(
    table: PublishedTable,
    severity: FindingSeverity,
    text: str,
    numbers: Mapping[str, object],
) -> Finding:
    return table_finding("share of positives", table.name, "", severity, text, numbers)


def _implied(
    rows: Sequence[TableRow], columns: Mapping[str, TableColumn]
) -> list[Implied]:
    implied = []
    for row in rows:
        cells = [
            row.cells[columns[name].index].value
            for name in ("accuracy", "precision", "recall")
        ]
        numbers = [cell for cell in cells if cell is not None]
        if len(numbers) == 3 and all(_safe(one) for one in numbers):
            shares = [
                share_of_positives(*corner)
                for corner in product(*((one.low, one.high) for one in numbers))
            ]
            middle = share_of_positives(*(one.value for one in numbers))
            implied.append(Implied(row.name, middle, min(shares), max(shares)))
    return implied


def _safe(number: Number) -> bool:
    """Whether a rate is far enough from 0 and 1 to divide by what it leaves."""
    return number.low > 0 and number.high < 1


def share_of_positives(accuracy: float, precision: float, recall: float) -> float:
    """Return the share of positives that accuracy, precision and recall imply.

    It is monotone in each of them, so its ends over a box are at the corners.
    Precision must be above 0, and not both rates 1.

    Examples
    --------
    >>> round(share_of_positives(0.874, 0.512, 0.391), 4)
    0.1284
    """
    return (1 - accuracy) / (recall * (1 / precision - 1) + 1 - recall)


def _agree(implied: Sequence[Implied]) -> bool:
    return max(one.low for one in implied) <= min(one.high for one in implied)
