"""Whether results of one table can come from one set of reference labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import ceil
from typing import NamedTuple

import numpy as np

from loop.core.check_findings import Finding, FindingSeverity
from loop.published.confusions import (
    Rates,
    Solutions,
    at_size,
    candidates,
    solvable,
    solve,
)
from loop.published.printed import Number
from loop.published.result_table import (
    PublishedTable,
    TableColumn,
    TableRow,
    group_name,
    is_system_header,
    table_finding,
)

_FEWEST_SYSTEMS = 3
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
            found = _check_rows(table, rows, columns)
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


def _check_rows(
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
    if len(swapped) >= max(_FEWEST_SYSTEMS, len(printed)) and _agree(swapped):
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


_MOST_N = 20_000
"""Cases beyond which whole-number tables are too many to mean anything."""

_MOST_CANDIDATES = 20_000
"""Tables per row that are tried at each smaller number of cases."""

_FEWEST = 2 / 3
"""Smallest share of the stated cases that a row may rest on in the wider search."""


class Solved(NamedTuple):
    """The tables that fit one row of one set of results."""

    row: TableRow
    rates: Rates
    n: int
    found: Solutions | None

    @property
    def positives(self) -> set[int]:
        """Reference positives the row can rest on."""
        return set() if self.found is None else set(self.found.positives.tolist())


Group = tuple[str, str, str]


def check_counts(table: PublishedTable) -> Iterator[Finding]:
    """Yield which rows are possible at n, and which share their reference positives.

    Results side by side on one cohort have the same reference positives. Where no
    number of positives fits both, they were scored against different references, or
    a number is wrong.
    """
    solved = {
        group: _solve(table, columns) for group, columns in _groups(table).items()
    }
    solved = {group: rows for group, rows in solved.items() if rows}
    for group, rows in solved.items():
        yield _possible(table, group, rows)
    if table.shared and not table.rows_are_systems:
        if len(solved) > 1:
            yield _common(table, solved)
        if solved:
            yield from _attainable(table, solved)


def _groups(table: PublishedTable) -> dict[Group, dict[str, TableColumn]]:
    groups = table.groups()
    common = groups.get(("", "", ""), {})
    counted = {n: c for n, c in common.items() if n == "positives"}
    return {
        group: {**counted, **columns}
        for group, columns in groups.items()
        if group[2] not in ("macro", "weighted")
    }


def _solve(table: PublishedTable, columns: Mapping[str, TableColumn]) -> list[Solved]:
    solved = []
    for row in table.results:
        rates = _rates(row, columns)
        n = table.cases(row, next(iter(columns.values())))
        if n and n <= _MOST_N and solvable(rates):
            solved.append(Solved(row, rates, n, solve(rates, n)))
    return solved


def _rates(row: TableRow, columns: Mapping[str, TableColumn]) -> dict[str, Number]:
    return {
        name: value
        for name, column in columns.items()
        if (value := row.cells[column.index].value) is not None and name != "n"
    }


def _possible(table: PublishedTable, group: Group, rows: list[Solved]) -> Finding:
    name = group_name(group, dict(_groups(table)[group]))
    known = [one for one in rows if one.found is not None]
    none = [one.row.name for one in known if not one.positives]
    single = sum(one.found is not None and one.found.tp.size == 1 for one in rows)
    text = (
        f"{len(known) - len(none)} of {len(rows)} rows print as a table of whole "
        f"cases, {single} of them as exactly one"
    )
    if none:
        text += f"; no table fits: {', '.join(none)}"
    severity = FindingSeverity.BROKEN if none else FindingSeverity.OK
    return table_finding(
        "confusion tables", table.name, name,
        severity if known else FindingSeverity.NOTE, text + ".",
        {
            "rows": len(rows), "unique": single, "impossible": none,
            "solutions": {one.row.name: _listed(one.found) for one in known},
        },
    )  # fmt: skip


def _listed(found: Solutions | None) -> dict[str, object]:
    """Return the solutions of a row: all of a few, else how many."""
    if found is None or not found.tp.size:
        return {"count": 0, "positives": None}
    p = found.positives
    some = list(zip(*(x.tolist() for x in found), strict=True))[:10]
    return {
        "count": int(p.size), "positives": [int(p.min()), int(p.max())],
        "tp_fp_fn": [list(one) for one in some] if p.size <= 10 else [],
    }  # fmt: skip


def _common(table: PublishedTable, solved: Mapping[Group, list[Solved]]) -> Finding:
    by_row: dict[str, list[Solved]] = {}
    for rows in solved.values():
        for one in rows:
            by_row.setdefault(one.row.name, []).append(one)
    pairs = {
        name: ones
        for name, ones in by_row.items()
        if len(ones) > 1 and all(one.found is not None for one in ones)
    }
    differ = [name for name, ones in pairs.items() if not _shared(ones)]
    wider = [name for name in differ if not _shared_at_any_size(pairs[name])]
    empty = [n for n in differ if not all(one.positives for one in pairs[n])]
    text = (
        f"{len(pairs) - len(differ)} of {len(pairs)} rows can have one number of "
        "reference positives in all their results"
    )
    if differ:
        text += (
            f"; {len(differ)} cannot: "
            f"{'; '.join(_apart(name, pairs[name]) for name in differ)}. "
            f"{_wider_text(differ, wider)}"
        )
    fails = FindingSeverity.BROKEN if wider else FindingSeverity.NOTE
    return table_finding(
        "reference positives", table.name, "results of one row",
        fails if differ else FindingSeverity.OK, text.rstrip(". ") + ".",
        {
            "rows": len(pairs), "differ": differ, "at_any_size": wider,
            "impossible": empty,
            "positives": {name: [_span(one) for one in pairs[name]] for name in differ},
        },
    )  # fmt: skip


def _wider_text(differ: list[str], wider: list[str]) -> str:
    if len(wider) == len(differ):
        return "Fewer cases in a row, down to two thirds, do not explain any of them"
    left = [name for name in differ if name not in wider]
    return f"Fewer cases would explain {', '.join(left)}"


def _shared(ones: list[Solved]) -> bool:
    return bool(set.intersection(*(one.positives for one in ones)))


def _shared_at_any_size(ones: list[Solved]) -> bool:
    """Whether a smaller common number of cases gives common positives."""
    most = min(one.n for one in ones)
    least = ceil(_FEWEST * most)
    if "positives" in ones[0].rates or most > 1_500:
        return False
    found = [candidates(one.rates, most, least) for one in ones]
    if any(one is None or one.tp.size > _MOST_CANDIDATES for one in found):
        return True
    return any(
        set.intersection(*(
            set(at_size(some, one.rates, n).positives.tolist())
            for some, one in zip(found, ones, strict=True)
            if some is not None
        ))
        for n in range(most, least - 1, -1)
    )  # fmt: skip


def _span(one: Solved) -> list[int]:
    found = one.positives
    return [min(found), max(found)] if found else []


def _apart(name: str, ones: list[Solved]) -> str:
    spans = [_span(one) for one in ones]
    shown = [
        "none" if not s else str(s[0]) if s[0] == s[1] else f"{s[0]}-{s[1]}"
        for s in spans
    ]
    return f"{name} {' / '.join(shown)}"


def _attainable(
    table: PublishedTable, solved: Mapping[Group, list[Solved]]
) -> Iterator[Finding]:
    """Check columns of F1 alone against the positives the other results imply."""
    allowed, sizes = _allowed(solved)
    for group, columns in _groups(table).items():
        if group in solved or "f1" not in columns:
            continue
        cells = [
            (row.name, value)
            for row in table.results
            if allowed.get(row.name)
            and (value := row.cells[columns["f1"].index].value) is not None
        ]
        if cells:
            yield _attained(table, columns["f1"].header, cells, allowed, sizes)


def _allowed(
    solved: Mapping[Group, list[Solved]],
) -> tuple[dict[str, set[int]], dict[str, int]]:
    """Return the reference positives and the cases of each row.

    The positives that all its results share; where there are none, those of any.
    """
    every: dict[str, list[set[int]]] = {}
    sizes: dict[str, int] = {}
    for rows in solved.values():
        for one in rows:
            if one.positives:
                every.setdefault(one.row.name, []).append(one.positives)
                sizes[one.row.name] = one.n
    allowed = {
        name: set.intersection(*sets) or set.union(*sets)
        for name, sets in every.items()
    }
    return allowed, sizes


def _attained(
    table: PublishedTable,
    header: str,
    cells: list[tuple[str, Number]],
    allowed: Mapping[str, set[int]],
    sizes: Mapping[str, int],
) -> Finding:
    no = [
        f"{name} {value.shown()}"
        for name, value in cells
        if not any(_f1_possible(value, p, sizes[name]) for p in allowed[name])
    ]
    text = (
        f"{len(cells) - len(no)} of {len(cells)} F1 values are possible with the "
        "reference positives of the other results"
    )
    if no:
        text += (
            f"; not possible: {', '.join(no)}. So they were not measured on the same "
            "cases and reference labels"
        )
    return table_finding(
        "attainable F1", table.name, header,
        FindingSeverity.BROKEN if no else FindingSeverity.OK, text + ".",
        {"cells": len(cells), "impossible": no},
    )  # fmt: skip


def _f1_possible(f1: Number, positives: int, n: int) -> bool:
    """Return whether some hits and false alarms give this F1 with these positives.

    An F1 made from rounded rates, which are not printed here, can be off by up to
    twice their rounding on top of its own.
    """
    low, high = f1.value - 3 * f1.slack, f1.value + 3 * f1.slack
    if low <= 0:
        return True
    if positives == 0:
        return high >= 1
    tp = np.arange(positives + 1)
    most = np.floor(2 * tp / low + 1e-9) - tp - positives
    least = np.ceil(2 * tp / high - 1e-9) - tp - positives
    least = np.maximum(least, 0)
    return bool(((tp > 0) & (least <= most) & (least <= n - positives)).any())
