"""Whether printed shares are whole numbers of cases."""

from __future__ import annotations

from collections.abc import Iterator

from loop.core.findings import Finding, FindingSeverity
from loop.published.columns import TableColumn
from loop.published.table import PublishedTable, TableRow, counts_of, table_finding
from loop.published.values import Number

_NEAR = 0.9
"""How far below the stated number of cases another is looked for, as a share of it."""

_WHOLE = ("total", "all", "overall")


def check_shares(table: PublishedTable) -> Iterator[Finding]:
    """Yield for each column of accuracies whether ``k / n`` can print so.

    With ``n`` above one in a unit of the last digit every value is possible and
    nothing can be said. Cells that print a count beside a share are checked as such.
    """
    for column in table.values():
        if column.measure in ("accuracy", "share"):
            yield from _whole_cases(table, column)
        yield from _counted(table, column)
    yield from _totals(table)


def _whole_cases(table: PublishedTable, column: TableColumn) -> Iterator[Finding]:
    sized = [
        (row, value, n)
        for row in table.results
        if (value := row.cells[column.index].value) is not None
        and row.cells[column.index].cases is None
        and (n := table.cases(row, column))
    ]
    telling = [(r, v, n) for r, v, n in sized if n * 2 * v.slack < 1]
    if not sized:
        return
    if not telling:
        text = "With so many cases every printed value is possible."
        yield table_finding(
            "whole cases", table.name, column.header, FindingSeverity.NOTE, text,
            {"cells": len(sized)},
        )  # fmt: skip
        return
    wrong = [(r, v, n) for r, v, n in telling if not counts_of(v, n)]
    text = f"{len(telling) - len(wrong)} of {len(telling)} values are whole cases"
    if wrong:
        text += f"; not possible: {'; '.join(_impossible(*one) for one in wrong[:8])}"
    yield table_finding(
        "whole cases", table.name, column.header,
        FindingSeverity.BROKEN if wrong else FindingSeverity.OK, text + ".",
        {"cells": len(telling), "impossible": [row.name for row, _, _ in wrong]},
    )  # fmt: skip


def _impossible(row: TableRow, value: Number, n: int) -> str:
    near = (m for m in range(n - 1, int(_NEAR * n), -1) if counts_of(value, m))
    other = next(near, None)
    hint = f" (would be possible with {other})" if other else ""
    return f"{row.name} {value.shown()} of {n} cases{hint}"


def _counted(table: PublishedTable, column: TableColumn) -> Iterator[Finding]:
    """Check cells such as ``74/150 (49.3%)``, and ``74 (49.3%)`` where n is stated."""
    checked, wrong = 0, []
    for row in table.rows:
        cell = row.cells[column.index]
        of = cell.of or table.cases(row, column)
        if cell.cases is None or cell.value is None or not of:
            continue
        checked += 1
        if not cell.value.low <= cell.cases / of <= cell.value.high:
            wrong.append(f"{row.name}: {cell.cases}/{of} is {cell.cases / of:.4f}")
    if checked:
        yield table_finding(
            "count and share", table.name, column.header,
            FindingSeverity.BROKEN if wrong else FindingSeverity.OK,
            f"{checked - len(wrong)} of {checked} shares are their count over n"
            + (f"; not so: {'; '.join(wrong[:8])}" if wrong else "") + ".",
            {"cells": checked, "wrong": wrong},
        )  # fmt: skip


def _totals(table: PublishedTable) -> Iterator[Finding]:
    """Check a column of totals where the stated cases say what it is the total of."""
    sized = [column for column in table.values() if column.n]
    whole = [column for column in sized if column.system.casefold() in _WHOLE]
    parts = [column for column in sized if column not in whole]
    if len(whole) != 1 or whole[0].n != sum(column.n or 0 for column in parts):
        return
    checked, wrong = 0, []
    for row in table.results:
        counts = [row.cells[column.index].cases for column in (*parts, whole[0])]
        known = [count for count in counts if count is not None]
        if len(known) == len(counts):
            checked += 1
            if sum(known[:-1]) != known[-1]:
                wrong.append(f"{row.name}: {sum(known[:-1])}, printed {known[-1]}")
    text = (
        f"The cases add up to {whole[0].n}, and the counts of {checked - len(wrong)} "
    )
    yield table_finding(
        "total", table.name, whole[0].header,
        FindingSeverity.BROKEN if wrong else FindingSeverity.OK,
        f"{text}of {checked} rows with them"
        + (f"; not so: {'; '.join(wrong[:8])}" if wrong else "") + ".",
        {"n": whole[0].n, "rows": checked, "wrong": wrong},
    )  # fmt: skip
