"""Which changes of accuracy could be significant at all, from rounded numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from loop.core.findings import Finding, FindingSeverity
from loop.published.columns import TableColumn
from loop.published.table import PublishedTable, counts_of, table_finding
from loop.stats.paired import mcnemar_exact


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
    for before, after in _pairs(table):
        rows = _attainable(table, before, after)
        if not rows:
            continue
        cannot = [one for one in rows if one.gained <= 0 or one.p > alpha]
        text = (
            f"{len(rows) - len(cannot)} of {len(rows)} rows could have improved with "
            f"p <= {alpha:g}; {len(cannot)} could not, even if no case was lost: "
            f"{', '.join(_shown(one) for one in cannot)}"
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


def _pairs(table: PublishedTable) -> Iterator[tuple[TableColumn, TableColumn]]:
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


def _shown(one: Attainable) -> str:
    return f"{one.row} ({one.gained:+d}, p at best {one.p:.3g})"
