"""Notes on published tables: facts they do not state, and claims that are checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from loop.core.check_findings import Finding, FindingSeverity
from loop.core.errors import DataError
from loop.core.yaml_files import read_model
from loop.published.deltas import check_significance
from loop.published.means import bounds, mean_bounds
from loop.published.printed import Number, read_cell
from loop.published.result_table import (
    PublishedTable,
    TableColumn,
    TableRow,
    table_finding,
)

_STRICT = ConfigDict(extra="forbid", frozen=True)
Words = Annotated[str, Field(min_length=1, max_length=500)]


class TableNotes(BaseModel):
    """Facts about one table."""

    model_config = _STRICT
    n: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    """Cases every row rests on."""
    measure: (
        Literal["accuracy", "precision", "recall", "f1", "specificity", "kappa"] | None
    ) = None
    """What columns hold that name no measure."""
    comparable: tuple[Words, ...] = ()
    """Rows that an average may be restricted to."""
    shared_reference: bool = True
    """Whether results of one row, or systems in rows, share their reference labels."""


class CountClaim(BaseModel):
    """So many rows reach a value: 17 of 21 at or above 0.95."""

    model_config = _STRICT
    kind: Literal["count"]
    table: Words
    column: Words
    at_least: float
    count: int
    of: int | None = None


class HighestClaim(BaseModel):
    """One column is the best of those with its measure."""

    model_config = _STRICT
    kind: Literal["highest"]
    table: Words
    column: Words
    at_least: float = 0.95
    """Threshold at which rows are counted beside the means."""


class GainClaim(BaseModel):
    """One number exceeds another of the same row by so much."""

    model_config = _STRICT
    kind: Literal["gain"]
    table: Words
    row: Words
    start: Words
    to: Words
    gain: Words
    """As printed, for example ``"66.4%"`` or ``"0.664"``."""


class OrderClaim(BaseModel):
    """Rows follow each other in a ranking by a column, with none between."""

    model_config = _STRICT
    kind: Literal["order"]
    table: Words
    column: Words
    rows: Annotated[tuple[Words, ...], Field(min_length=2)]


class SignificanceClaim(BaseModel):
    """Every row's accuracy improved significantly."""

    model_config = _STRICT
    kind: Literal["significant"]
    table: Words
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05


Claim = Annotated[
    CountClaim | HighestClaim | GainClaim | OrderClaim | SignificanceClaim,
    Field(discriminator="kind"),
]


class Notes(BaseModel):
    """A notes file: facts by table name, and the claims to check."""

    model_config = _STRICT
    tables: dict[str, TableNotes] = {}
    claims: tuple[Claim, ...] = ()

    def of(self, name: str) -> TableNotes:
        """Return the facts about a table, whatever the case of its name."""
        folded = {key.casefold(): value for key, value in self.tables.items()}
        return folded.get(name.casefold(), TableNotes())


def read_notes(path: Path) -> Notes:
    """Return the notes of a YAML file.

    Raises
    ------
    DataError
        The file is missing, not YAML, or has a field that notes do not have.
    """
    return read_model(path, Notes)


def beside(path: Path) -> Path:
    """Return where the notes of a file of tables lie unless named: beside it."""
    return path.with_name(f"{path.stem}.notes.yaml")


_EQUAL = 1e-9
Named = TypeVar("Named")


def check_claims(tables: Sequence[PublishedTable], notes: Notes) -> Iterator[Finding]:
    """Yield for each claim of the notes whether its table bears it out.

    Raises
    ------
    DataError
        A claim names a table, row or column that is not there.
    """
    for claim in notes.claims:
        table = _table(tables, claim.table)
        if isinstance(claim, SignificanceClaim):
            yield from check_significance(table, alpha=claim.alpha, claimed=True)
        else:
            yield _check(table, claim)


def _check(table: PublishedTable, claim: Claim) -> Finding:
    if isinstance(claim, CountClaim):
        return _count(table, claim)
    if isinstance(claim, HighestClaim):
        return _highest(table, claim)
    if isinstance(claim, OrderClaim):
        return _order(table, claim)
    if isinstance(claim, GainClaim):
        return _gain(table, claim)
    raise ValueError(f"no check for a claim of kind {claim.kind!r}")


def _count(table: PublishedTable, claim: CountClaim) -> Finding:
    column = _column(table, claim.column)
    values = _values(table, column)
    reached = _reached(values, claim.at_least)
    wrong = reached != claim.count or claim.of not in (None, len(values))
    said = f"{claim.count}" + (f" of {claim.of}" if claim.of else "")
    return _claim(
        table, f"{column.header}: {said} at or above {claim.at_least:g}", not wrong,
        f"{reached} of {len(values)} are; the least is {min(values, default=0):g}.",
        {
            "claimed": claim.count, "reached": reached, "of": len(values),
            "least": min(values, default=None),
        },
    )  # fmt: skip


def _highest(table: PublishedTable, claim: HighestClaim) -> Finding:
    column = _column(table, claim.column)
    rivals = [c for c in table.values() if _comparable(c, column)]
    means = {c.header: _mean(table, c) for c in rivals}
    reached = {c.header: _reached(_values(table, c), claim.at_least) for c in rivals}
    best = _best_or_tied(table, rivals)
    above = [name for name, mean in means.items() if mean > means[column.header] + 1e-9]
    less = [name for name, k in reached.items() if k > reached[column.header]]
    won = best[column.header] == len(table.results)
    shown = "; ".join(
        f"{name}: mean {means[name]:.4f}, {reached[name]} at or above "
        f"{claim.at_least:g}, best or tied in {best[name]}"
        for name in means
    )
    higher = f" Higher on average: {', '.join(above)}." if above else ""
    return _claim(
        table, f"{column.header} is the highest", won or not (above or less),
        f"Of {len(table.results)} rows: {shown}.{higher}",
        {
            "means": {name: round(mean, 4) for name, mean in means.items()},
            "reached": reached, "best_or_tied": best, "higher": above,
        },
    )  # fmt: skip


def _comparable(column: TableColumn, other: TableColumn) -> bool:
    return (column.measure, column.average) == (other.measure, other.average)


def _mean(table: PublishedTable, column: TableColumn) -> float:
    mean = mean_bounds(table, table.results, column)
    return mean[1] if mean else 0.0


def _best_or_tied(
    table: PublishedTable, columns: Sequence[TableColumn]
) -> dict[str, int]:
    """Count the rows in which each column has the largest printed value."""
    best = dict.fromkeys((column.header for column in columns), 0)
    for row in table.results:
        values = {
            column.header: value.value
            for column in columns
            if (value := row.cells[column.index].value) is not None
        }
        most = max(values.values(), default=0.0)
        for name, printed in values.items():
            best[name] += printed >= most - _EQUAL
    return best


def _order(table: PublishedTable, claim: OrderClaim) -> Finding:
    column = _column(table, claim.column)
    values = {
        row.name: value.value
        for row in table.results
        if (value := row.cells[column.index].value) is not None
    }
    named = [_row(table, name).name for name in claim.rows]
    ranking = sorted(values, key=lambda name: -values[name])
    places = [ranking.index(name) for name in named if name in ranking]
    between = ranking[min(places) : max(places) + 1] if places else []
    skipped = [f"{name} {values[name]:g}" for name in between if name not in named]
    holds = len(places) == len(named) and places == sorted(places) and not skipped
    text = f"By {column.header}: {', '.join(f'{n} {values[n]:g}' for n in ranking)}."
    return _claim(
        table, f"{' then '.join(named)} by {column.header}", holds,
        text + (f" Left out: {', '.join(skipped)}." if skipped else ""),
        {"ranking": ranking, "skipped": skipped},
    )  # fmt: skip


def _gain(table: PublishedTable, claim: GainClaim) -> Finding:
    row = _row(table, claim.row)
    columns = _column(table, claim.start), _column(table, claim.to)
    start, to = (row.cells[column.index].value for column in columns)
    gain = read_cell(claim.gain).value
    subject = f"{row.name}: {columns[1].header} - {columns[0].header} is {claim.gain}"
    if start is None or to is None or gain is None:
        return table_finding(
            "claim",
            table.name,
            subject,
            FindingSeverity.NOTE,
            "A number is missing.",
            {},
        )
    real = to.value - start.value
    holds = bounds(to).minus(bounds(start)).meets(bounds(gain))
    same = [] if holds else _cells_equal(table, row, gain)
    copied = f" {claim.gain} is {', '.join(same)} itself." if same else ""
    return _claim(
        table, subject, holds,
        f"The table gives {real:.4g} ({to.shown()} - {start.shown()}).{copied}",
        {"claimed": gain.value, "difference": round(real, 6), "equal_to": same},
    )  # fmt: skip


def _cells_equal(table: PublishedTable, row: TableRow, number: Number) -> list[str]:
    """Return the columns of a row that hold a number as it is printed."""
    return [
        column.header
        for column in table.columns
        if (value := row.cells[column.index].value) is not None
        and abs(value.value - number.value) < 0.1 * number.unit
    ]


def _claim(
    table: PublishedTable, subject: str, holds: bool, text: str, numbers: dict[str, Any]
) -> Finding:
    severity = FindingSeverity.OK if holds else FindingSeverity.BROKEN
    return table_finding("claim", table.name, subject, severity, text, numbers)


def _values(table: PublishedTable, column: TableColumn) -> list[float]:
    return [v.value for row in table.results if (v := row.cells[column.index].value)]


def _reached(values: Sequence[float], least: float) -> int:
    return sum(value >= least - _EQUAL for value in values)


def _table(tables: Sequence[PublishedTable], name: str) -> PublishedTable:
    return _one(tables, name, lambda table: table.name, "table")


def _column(table: PublishedTable, name: str) -> TableColumn:
    return _one(
        table.columns, name, lambda column: column.header, f"{table.name}: column"
    )


def _row(table: PublishedTable, name: str) -> TableRow:
    return _one(table.rows, name, lambda row: row.name, f"{table.name}: row")


def _one(
    things: Sequence[Named], name: str, named: Callable[[Named], str], what: str
) -> Named:
    for thing in things:
        if named(thing).casefold() == name.casefold():
            return thing
    known = ", ".join(repr(named(thing)) for thing in things[:40])
    raise DataError(
        f"notes: there is no {what} {name!r}. There are: {known}. Correct the claim."
    )
