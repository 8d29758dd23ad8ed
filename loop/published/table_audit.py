"""All checks of published tables, in one go."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from loop.core.check_findings import Finding, FindingSeverity
from loop.core.errors import DataError
from loop.core.safe_text import quoted
from loop.published.claims import Notes, SignificanceClaim, check_claims
from loop.published.confusions import solvable
from loop.published.deltas import check_deltas, check_significance
from loop.published.equal_columns import check_copies
from loop.published.means import check_f1, check_means
from loop.published.positives import check_counts, check_prevalence
from loop.published.printed import read_grids
from loop.published.proportions import check_intervals, check_shares
from loop.published.result_table import (
    PublishedTable,
    TableColumn,
    make_table,
    table_finding,
)


class TableAudit(NamedTuple):
    """The tables as they were understood, and what came of every check."""

    tables: tuple[PublishedTable, ...]
    findings: tuple[Finding, ...]

    def count(self, severity: FindingSeverity) -> int:
        """Return how many findings came to `severity`."""
        return sum(finding.severity is severity for finding in self.findings)

    def about(self, check: str, table: str = "", part: str = "") -> list[Finding]:
        """Return the findings of a check, of one table or part of it if named."""
        return [
            one
            for one in self.findings
            if one.check == check
            and table in ("", one.where)
            and part in ("", one.part)
        ]


_CHECKS: tuple[Callable[[PublishedTable], Iterator[Finding]], ...] = (
    check_intervals,
    check_shares,
    check_f1,
    check_counts,
    check_prevalence,
    check_means,
    check_deltas,
)


def read_tables(
    paths: Sequence[Path], notes: Notes, *, n: int | None = None, measure: str = ""
) -> list[PublishedTable]:
    """Return the tables of all files, with what the notes add.

    Parameters
    ----------
    n, measure
        Cases, and the measure of columns that name none, of tables for which the
        notes have nothing.

    Raises
    ------
    DataError
        A file cannot be read, two tables have one name, or the notes name a table
        that is not there.
    """
    tables = [
        _noted(
            make_table(grid, n=about.n or n, measure=about.measure or measure), notes
        )
        for path in paths
        for grid in read_grids(path)
        for about in [notes.of(grid.name)]
    ]
    names = [table.name.casefold() for table in tables]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(
            f"two tables are called {quoted(twice[0])}. Give each a caption with a "
            "number of its own, or put them in files of different names."
        )
    if strange := sorted(set(map(str.casefold, notes.tables)) - set(names)):
        raise DataError(
            f"notes: there is no table {quoted(strange[0])}. There are: "
            f"{', '.join(names)}. Correct the name."
        )
    return tables


def audit_tables(
    tables: Sequence[PublishedTable], notes: Notes | None = None
) -> TableAudit:
    """Return what every check says about the tables, and about claims of the notes.

    Raises
    ------
    DataError
        A claim names a table, row or column that is not there.
    """
    notes = notes or Notes()
    claimed = {
        claim.table.casefold()
        for claim in notes.claims
        if isinstance(claim, SignificanceClaim)
    }
    findings: list[Finding] = []
    for table in tables:
        findings += _read_finding(table)
        findings += [finding for check in _CHECKS for finding in check(table)]
        if table.name.casefold() not in claimed:
            findings += check_significance(table)
    findings += check_copies(tables)
    findings += check_claims(tables, notes)
    return TableAudit(tuple(tables), tuple(findings))


def _noted(table: PublishedTable, notes: Notes) -> PublishedTable:
    about = notes.of(table.name)
    names = frozenset(name.casefold() for name in about.comparable)
    known = {row.name.casefold() for row in table.rows}
    if missing := sorted(names - known):
        raise DataError(
            f"notes: {table.name} has no row {quoted(missing[0])}. Correct the list of "
            "comparable rows."
        )
    return replace(table, comparable=names, shared=about.shared_reference)


def _read_finding(table: PublishedTable) -> Iterator[Finding]:
    """Yield what was not understood, so that silence is not mistaken for a pass."""
    unnamed = [c.header for c in table.values() if not c.measure and _numeric(table, c)]
    if unnamed:
        yield table_finding(
            "columns", table.name, ", ".join(unnamed), FindingSeverity.NOTE,
            "No measure is named for these columns, so they were only compared with "
            "others. Name it with --measure or in the notes.",
            {"columns": unnamed},
        )  # fmt: skip
    if table.remarks:
        yield table_finding(
            "file",
            table.name,
            "rows",
            FindingSeverity.NOTE,
            "; ".join(table.remarks) + ".",
            {},
        )
    if _needs_n(table):
        yield table_finding(
            "cases", table.name, "n", FindingSeverity.NOTE,
            "No number of cases is stated, so confusion tables and whole cases were "
            "not checked. State it with --n, in the caption (n = 300) or in the notes.",
            {},
        )  # fmt: skip


def _numeric(table: PublishedTable, column: TableColumn) -> bool:
    cells = [row.cells[column.index] for row in table.rows]
    return any(cell.numeric and cell.cases is None for cell in cells)


def _needs_n(table: PublishedTable) -> bool:
    """Whether results could be checked against n, and it is stated nowhere."""
    for columns in table.groups().values():
        rates = {
            name: value
            for row in table.results[:1]
            for name, column in columns.items()
            if (value := row.cells[column.index].value) is not None
        }
        first = next(iter(columns.values()))
        sized = any(table.cases(row, first) for row in table.results)
        if solvable(rates) and not sized:
            return True
    return False
