"""Whether changes hold: differences against their columns, and their significance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from loop.core.check_findings import Finding, FindingSeverity
from loop.published.means import (
    Bounds,
    bounds,
    exact_bounds,
    mean_bounds,
    prints_as,
    subsets,
)
from loop.published.printed import Number
from loop.published.result_table import (
    RATES,
    PublishedTable,
    TableColumn,
    TableRow,
    counts_of,
    table_finding,
)
from loop.stats.paired import mcnemar_exact


class DifferenceColumn(NamedTuple):
    """A column of differences and the two columns it should come from."""

    column: TableColumn
    to: TableColumn
    start: TableColumn

    @property
    def formula(self) -> str:
        """The difference in words."""
        return f"{self.to.header} - {self.start.header}"


class Off(NamedTuple):
    """A row whose printed difference is not that of its columns."""

    row: TableRow
    printed: Number
    expected: float

    def shown(self) -> str:
        """Return the row with both numbers."""
        name, printed = self.row.name, self.printed.value
        return f"{name} {printed:+.3f} (columns give {self.expected:+.3f})"


def check_deltas(table: PublishedTable) -> Iterator[Finding]:
    """Yield whether differences hold per row and in averages, and what they imply.

    A difference may be off by one and a half units of the last digit, from three
    roundings. Where it is off by more, the value it implies is compared with that
    of other difference columns, and with the columns themselves: a difference equal
    to one of them is that number copied.
    """
    found = [one for column in table.columns if (one := _resolve(table, column))]
    for difference in found:
        yield from _check_rows(table, difference)
        for row in table.rows:
            if row.kind == "mean":
                yield from _check_average(table, row, difference)
    for first, second in combinations(found, 2):
        if first.to is second.to:
            yield from _implied(table, first, second)


def _resolve(table: PublishedTable, column: TableColumn) -> DifferenceColumn | None:
    """Find the two columns of a difference; None where it is not clear which."""
    if not column.delta or column.part:
        return None
    values = [c for c in table.values() if c.measure in RATES]
    same = [c for c in values if column.measure in ("", c.measure)]
    named = [c for c in same if c.system and _names(column.system, c)]
    if column.system and named:
        start = named[0]
        others = [
            c
            for c in same
            if c.measure == start.measure and c.system != start.system and not c.average
        ]
        to = [c for c in others if c.time == "after"] or others
        return DifferenceColumn(column, to[0], start) if len(to) == 1 else None
    pair = {c.time: c for c in same if c.time and c.system == column.system}
    unique = len({c.measure for c in same if c.time}) == 1
    if {"before", "after"} <= set(pair) and (column.measure or unique):
        return DifferenceColumn(column, pair["after"], pair["before"])
    return None


def _names(text: str, column: TableColumn) -> bool:
    """Whether a header of differences names the system of a column."""
    return column.system.casefold() == text.casefold()


def _off(table: PublishedTable, one: DifferenceColumn) -> tuple[list[Off], int]:
    """Return the rows whose difference does not hold, and how many were checked."""
    off, checked = [], 0
    for row in table.results:
        printed = row.cells[one.column.index].value
        to, start = (exact_bounds(table, row, c) for c in (one.to, one.start))
        if printed is None or to is None or start is None:
            continue
        checked += 1
        expected = _value(row, one.to) - _value(row, one.start)
        if not prints_as(printed, to.minus(start), expected):
            off.append(Off(row, printed, expected))
    return off, checked


def _value(row: TableRow, column: TableColumn) -> float:
    value = row.cells[column.index].value
    return value.value if value is not None else 0.0


def _check_rows(table: PublishedTable, one: DifferenceColumn) -> Iterator[Finding]:
    off, checked = _off(table, one)
    if not checked:
        return
    copied = {o.row.name: c.header for o in off if (c := _copied(o, one)) is not None}
    text = f"{checked - len(off)} of {checked} rows equal {one.formula} within rounding"
    if off:
        text += f"; not so: {'; '.join(o.shown() for o in off)}"
    if copied:
        several = "; ".join(f"{name} ({header})" for name, header in copied.items())
        text += f". Equal to one of the columns itself, not to a difference: {several}"
    yield table_finding(
        "difference", table.name, one.column.header,
        FindingSeverity.BROKEN if off else FindingSeverity.OK, text + ".",
        {
            "rows": checked, "off": [o.row.name for o in off], "copied": copied,
            "implied": {
                o.row.name: round(_value(o.row, one.start) + o.printed.value, 4)
                for o in off
            },
        },
    )  # fmt: skip


def _copied(off: Off, one: DifferenceColumn) -> TableColumn | None:
    """Return the column whose value a wrong difference repeats, if any."""
    if off.printed.value == 0:
        return None
    for column in (one.start, one.to):
        if abs(_value(off.row, column) - off.printed.value) < 0.1 * off.printed.unit:
            return column
    return None


def _check_average(
    table: PublishedTable, row: TableRow, one: DifferenceColumn
) -> Iterator[Finding]:
    """Check an averaged difference: of the averages, or the mean of differences."""
    printed = row.cells[one.column.index].value
    if printed is None:
        return
    ways = dict(_ways(table, row, one))
    fitting = [name for name, way in ways.items() if prints_as(printed, *way)]
    shown = "; ".join(f"{name} {value:.5f}" for name, (_, value) in ways.items())
    if not ways:
        return
    does = f"It is {fitting[0]}" if fitting else "No way of taking it gives that"
    yield table_finding(
        "averaged difference", table.name, f"{row.name}, {one.column.header}",
        FindingSeverity.OK if fitting else FindingSeverity.BROKEN,
        f"Printed {printed.value:.{printed.decimals}f}. {does}. Tried: {shown}.",
        {
            "printed": printed.value, "fits": fitting,
            "ways": {name: round(value, 5) for name, (_, value) in ways.items()},
        },
    )  # fmt: skip


def _ways(
    table: PublishedTable, row: TableRow, one: DifferenceColumn
) -> Iterator[tuple[str, tuple[Bounds, float]]]:
    """Yield the ways to average a difference, with the range and the plain value."""
    printed = [row.cells[c.index].value for c in (one.to, one.start)]
    to, start = (_settled(table, row, c) for c in (one.to, one.start))
    if to and start and printed[0] and printed[1]:
        value = printed[0].value - printed[1].value
        yield "the difference of the printed averages", (to.minus(start), value)
    over = {name: list(rows) for name, rows in subsets(table).items()}
    means = {
        name: (mean_bounds(table, rows, one.to), mean_bounds(table, rows, one.start))
        for name, rows in over.items()
    }
    for name, (a, b) in means.items():
        if a and b:
            yield (
                f"the difference of the means of {name}",
                (a[0].minus(b[0]), a[1] - b[1]),
            )
    whole = mean_bounds(table, table.results, one.column)
    if whole:
        yield "the mean of the printed differences", (whole[0], whole[1])


def _settled(
    table: PublishedTable, row: TableRow, column: TableColumn
) -> Bounds | None:
    """Return the range of a printed average, narrowed by the rows it is a mean of."""
    value = row.cells[column.index].value
    if value is None:
        return None
    span = bounds(value)
    for rows in subsets(table).values():
        mean = mean_bounds(table, rows, column)
        if mean and mean[0].meets(span):
            return span.within(mean[0])
    return span


def _implied(
    table: PublishedTable, first: DifferenceColumn, second: DifferenceColumn
) -> Iterator[Finding]:
    """Compare what two difference columns imply for the column both start from."""
    rows = [
        row
        for row in table.results
        if all(
            row.cells[c.index].value is not None
            for c in (first.column, first.start, second.column, second.start, first.to)
        )
    ]
    wrong = [row for row in rows if not _one_value(row, (first, second), first.to)]
    agree = [row for row in rows if _one_value(row, (first, second))]
    if not rows or not wrong:
        return
    together = [row for row in agree if row in wrong]
    if 2 * len(together) <= len(wrong) or len(wrong) < 3:
        return
    yield table_finding(
        "difference of another run", table.name,
        f"{first.column.header} and {second.column.header}", FindingSeverity.BROKEN,
        f"The values of {first.to.header} that both columns imply agree with "
        f"each other on {len(agree)} of {len(rows)} rows, and differ from the "
        f"printed ones on {len(together)} of these. So the differences come "
        "from other results than those printed.",
        {
            "rows": len(rows), "agree": len(agree),
            "agree_but_not_printed": [row.name for row in together],
        },
    )  # fmt: skip


def _one_value(
    row: TableRow,
    differences: Sequence[DifferenceColumn],
    printed: TableColumn | None = None,
) -> bool:
    """Whether start plus difference can be one value in all, and the printed one."""
    spans = []
    for one in differences:
        start, delta = (
            row.cells[one.start.index].value,
            row.cells[one.column.index].value,
        )
        if start is not None and delta is not None:
            spans.append(Bounds(start.low + delta.low, start.high + delta.high))
    value = row.cells[printed.index].value if printed else None
    if value is not None:
        spans.append(bounds(value))
    return max(s.low for s in spans) <= min(s.high for s in spans)


class Attainable(NamedTuple):
    """The smallest p-value a row can have."""

    row: str
    gained: int
    """Largest net number of cases gained that prints so; negative for a loss."""

    p: float


def check_significance(
    table: PublishedTable, *, alpha: float = 0.05, claimed: bool = False
) -> Iterator[Finding]:
    """Yield which rows' change of accuracy cannot reach significance, whatever moved.

    With a net gain of d cases the exact McNemar p-value is smallest when no case was
    lost, ``min(1, 2 * 0.5 ** d)``. The table does not say how many cases were lost,
    so a row that can reach `alpha` need not have done so.

    Parameters
    ----------
    claimed
        Somebody says that every row improved significantly.

    References
    ----------
    Exact form: Mosteller F. Biometrics 1952;8:220-226.
    """
    for before, after in _before_and_after(table):
        rows = _attainable(table, before, after)
        if not rows:
            continue
        cannot = [one for one in rows if one.gained <= 0 or one.p > alpha]
        text = (
            f"{len(rows) - len(cannot)} of {len(rows)} rows could have improved with "
            f"p <= {alpha:g}; {len(cannot)} could not, even if no case was lost: "
            f"{', '.join(_show_attainable(one) for one in cannot)}"
        )
        text = (
            text if cannot else f"Each of {len(rows)} rows could reach p <= {alpha:g}"
        )
        fails = claimed and bool(cannot)
        yield table_finding(
            "attainable significance", table.name,
            f"{before.header} to {after.header}",
            FindingSeverity.BROKEN if fails else FindingSeverity.NOTE,
            text + ".",
            {
                "alpha": alpha, "rows": len(rows), "cannot": [o.row for o in cannot],
                "best_p": {one.row: one.p for one in rows},
                "net_gain": {one.row: one.gained for one in rows},
            },
        )  # fmt: skip


def _before_and_after(
    table: PublishedTable,
) -> Iterator[tuple[TableColumn, TableColumn]]:
    accuracies = [c for c in table.values() if c.measure == "accuracy"]
    for before in accuracies:
        for after in accuracies:
            same = (before.system, before.average) == (after.system, after.average)
            if same and (before.time, after.time) == ("before", "after"):
                yield before, after


def _attainable(
    table: PublishedTable, before: TableColumn, after: TableColumn
) -> list[Attainable]:
    found = []
    for row in table.results:
        values = [row.cells[column.index].value for column in (before, after)]
        sizes = [table.cases(row, column) for column in (before, after)]
        if values[0] is None or values[1] is None or not sizes[0]:
            continue
        if sizes[0] != sizes[1]:
            continue
        first, last = counts_of(values[0], sizes[0]), counts_of(values[1], sizes[0])
        if first and last:
            gained = last[-1] - first[0]
            found.append(Attainable(row.name, gained, mcnemar_exact(0, max(gained, 0))))
    return found


def _show_attainable(one: Attainable) -> str:
    return f"{one.row} ({one.gained:+d}, p at best {one.p:.3g})"
