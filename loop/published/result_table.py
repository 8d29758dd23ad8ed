"""A published table as results: what its columns mean, what its rows and cells hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import Any, NamedTuple

from loop.core.check_findings import Finding, FindingSeverity
from loop.published.printed import (
    Number,
    PrintedCell,
    TextTable,
    decimal_commas,
    read_cell,
)

SHARES = (
    "accuracy", "precision", "recall", "f1", "specificity", "npv", "prevalence",
    "share",
)  # fmt: skip
"""Measures in [0, 1]; ``share`` is a proportion that the table does not name."""

RATES = (*SHARES, "kappa")

_PHRASES = (
    (r"positive predictive value", "ppv"),
    (r"negative predictive value", "npv"),
    # Rates before the counts, whose names they begin with.
    (r"(?:true positive rate|tpr)", "recall"),
    (r"(?:true negative rate|tnr)", "specificity"),
    (r"false positive rate", "fpr"),
    (r"false negative rate", "fnr"),
    (r"true positives?", "tp"),
    (r"false positives?", "fp"),
    (r"false negatives?", "fn"),
    (r"true negatives?", "tn"),
    (r"confidence intervals?", "ci"),
    (r"p[ -]?values?", "pvalue"),
    (r"(?:no\.?|number) of (?:cases|reports|patients|images|samples)", "n"),
    (r"(?:no\.?|number) of positives?", "positives"),
    (r"(?:ran|macro)[ -]score", "f1 macro"),
)
_MEASURES = {
    "accuracy": r"acc(?:uracy|uracies)?",
    "precision": r"precision|prec|ppv",
    "recall": r"recall|rec|sensitivity|sens|se",
    "f1": r"f-?1(?:-?scores?)?|dice|f-scores?|f-measure",
    "specificity": r"specificity|spec|sp",
    "npv": r"npv",
    "kappa": r"kappa|κ",
    "prevalence": r"prevalence",
    "tp": r"tps?", "fp": r"fps?", "fn": r"fns?", "tn": r"tns?",
    "n": r"n|cases|total_n",
    "positives": r"positives?|pos|support",
    "other": r"pvalue|p|fpr|fnr|auc|auroc|auprc|bleu\S*|rouge\S*|flips?|time|tokens?|"
    r"seed",
}  # fmt: skip
_PARTS = {
    "low": r"low|lower|lcl|ci_low|lo",
    "high": r"high|upper|ucl|ci_high|hi|up",
    "limits": r"ci|cis|interval|intervals",
}
_TIMES = {
    "before": r"pre|before|pre-?\w*opt\w*|baseline|initial|original|unoptimi[sz]ed",
    "after": r"post|after|post-?\w*opt\w*|optimi[sz]ed|final|revised",
}
_AVERAGES = {"macro": r"macro", "micro": r"micro", "weighted": r"weighted"}
_DELTA = r"delta|δ|∆|Δ|change|difference|diff|gain|gains|improvement|gap"
_MEAN = r"mean|average|avg"
_FILLER = (
    r"of|the|to|vs\.?|versus|over|in|and|for|score|scores|prompt|optimi[sz]ation|"
    r"limit|bound|percent|%|-|–|=|points?|against|(?:90|95|99)(?:\.0)?%?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """One column of numbers."""

    index: int
    header: str
    measure: str
    """Name of a measure, a count (``tp``), ``n``, ``other``, or empty: not named."""

    part: str = ""
    """``"low"``, ``"high"`` or ``"limits"`` of an interval; empty for the value."""

    system: str = ""
    """What the header says beside the measure: usually a model."""

    time: str = ""
    """``"before"``, ``"after"`` or empty."""

    average: str = ""
    """``"micro"``, ``"macro"``, ``"weighted"`` or empty."""

    delta: bool = False
    """Whether the column is a difference of two others."""

    mean: bool = False
    """Whether the column is a mean over others."""

    percent: bool = False
    n: int | None = None
    """Cases the header states: ``(n = 300)``."""

    @property
    def group(self) -> tuple[str, str, str]:
        """What the columns of one set of results share."""
        return (self.system.casefold(), self.time, self.average)

    @property
    def is_value(self) -> bool:
        """Whether it holds a measure itself, not a limit, a difference or a mean."""
        return not (self.part or self.delta or self.mean)


def read_columns(header: Sequence[str], keys: int) -> tuple[TableColumn, ...]:
    """Return the meaning of the columns after the first `keys` ones.

    An interval column without a measure belongs to the value column to its left.

    Examples
    --------
    >>> read_columns(["Label", "F1 (post)"], 1)[0].time
    'after'
    """
    columns: list[TableColumn] = []
    for index in range(keys, len(header)):
        column = _read_header(header[index], index)
        left = next((c for c in reversed(columns) if c.is_value), None)
        if column.part and not column.measure and left is not None:
            bare = not (column.system or column.time)
            source = left if bare else column
            column = TableColumn(
                index=index, header=column.header, measure=left.measure,
                part=column.part, system=source.system, time=source.time,
                average=source.average, percent=column.percent or left.percent,
                n=column.n or left.n,
            )  # fmt: skip
        columns.append(column)
    return tuple(columns)


def measure_in(text: str) -> str:
    """Return the one measure a caption names, else an empty string."""
    found = {_match(_MEASURES, token) for token in _tokens(text)} & set(RATES)
    return found.pop() if len(found) == 1 else ""


def stated_n(text: str) -> int | None:
    """Return the cases a caption or header states as ``n = 300``, else None."""
    found = re.search(r"\bn\s*=\s*(\d{1,3}(?:,\d{3})+|\d{1,9})\b", text, re.IGNORECASE)
    return int(found[1].replace(",", "")) or None if found else None


def _read_header(header: str, index: int) -> TableColumn:
    n = stated_n(header)
    rest = re.sub(r"\bn\s*=\s*[\d,]+", " ", header, flags=re.IGNORECASE)
    measure = part = time = average = ""
    delta = mean = False
    words: list[str] = []
    for token in _tokens(rest):
        low = token.casefold()
        if not measure and (found := _match(_MEASURES, token)):
            measure = found
        elif found := _match(_PARTS, token):
            part = found if part in ("", "limits") else part
        elif not time and (found := _match(_TIMES, token)):
            time = found
        elif not average and (found := _match(_AVERAGES, token)):
            average = found
        elif re.fullmatch(_DELTA, low):
            delta = True
        elif re.fullmatch(_MEAN, low):
            mean = True
        elif not re.fullmatch(_FILLER, low):
            words.append(token)
    value_too = part == "limits" and measure and not _only_limits(rest)
    return TableColumn(
        index=index, header=header, measure=measure, part="" if value_too else part,
        system=" ".join(words), time=time, average=average, delta=delta,
        mean=mean and not words, percent="%" in re.sub(r"\d+\s?%", "", rest), n=n,
    )  # fmt: skip


def _only_limits(header: str) -> bool:
    """Whether an interval is all a header promises: ``95% CI of accuracy``."""
    return bool(re.match(r"\s*(?:\d\d\s?%\s*)?(?:ci|confidence)\b", header, re.I))


def _tokens(text: str) -> list[str]:
    plain = text.replace("_", " ")
    for pattern, word in _PHRASES:
        plain = re.sub(rf"\b{pattern}\b", word, plain, flags=re.IGNORECASE)
    plain = re.sub(r"([Δ∆δ])", r" \1 ", plain)
    return [token for token in re.split(r"[\s,;:()\[\]/|→]+", plain) if token]


def _match(patterns: dict[str, str], token: str) -> str:
    low = token.casefold().strip("-.")
    return next((n for n, rx in patterns.items() if re.fullmatch(rx, low)), "")


def table_finding(
    check: str,
    table: str,
    part: str,
    severity: FindingSeverity,
    what: str,
    numbers: Mapping[str, Any],
) -> Finding:
    """Return one check of one table, column or claim, with the numbers behind it.

    A finding is OK where what the table says holds, BROKEN where it does not, and a
    NOTE where that cannot be decided.
    """
    return Finding(
        check=check,
        severity=severity,
        what=what,
        where=table,
        part=part,
        numbers=numbers,
    )


_MEAN_ROW = re.compile(
    r"(?:the )?(?:macro[- ]?)?(?:average|avg\.?|mean|macro)(?: (?:of|over) all\b.*)?",
    re.IGNORECASE,
)
_POOLED_ROW = re.compile(
    r"(?:micro|weighted|pooled|overall|total|all|sum|median|sd|std|standard deviation|"
    r"range|average|avg|mean|macro|samples avg|accuracy|f1|kappa)\b",
    re.IGNORECASE,
)
_SYSTEM_HEADER = re.compile(
    r"\b(?:models?|systems?|methods?|engines?|algorithms?|readers?|llms?|tools?)\b",
    re.IGNORECASE,
)


class TableRow(NamedTuple):
    """One row: its name and its cells by column index."""

    name: str
    keys: tuple[str, ...]
    cells: tuple[PrintedCell, ...]
    kind: str
    """``""`` for a row of results, ``"mean"`` or ``"pooled"`` for a summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """One table, ready to be checked."""

    name: str
    caption: str
    key_headers: tuple[str, ...]
    columns: tuple[TableColumn, ...]
    rows: tuple[TableRow, ...]
    n: int | None = None
    """Cases the table states for all its rows."""

    level: float = 0.95
    """Confidence of its intervals."""

    comparable: frozenset[str] = frozenset()
    """Folded names of rows that a summary may be restricted to."""

    shared: bool = True
    """Whether results side by side claim to share one set of reference labels."""

    remarks: tuple[str, ...] = ()
    """What was odd in the file."""

    @property
    def results(self) -> tuple[TableRow, ...]:
        """The rows that are no summary of others."""
        return tuple(row for row in self.rows if not row.kind)

    @property
    def rows_are_systems(self) -> bool:
        """Whether each row is a model, rather than a label."""
        return any(map(is_system_header, self.key_headers))

    def values(self) -> Iterator[TableColumn]:
        """Yield the columns that hold a measure or an unnamed number."""
        return (column for column in self.columns if column.is_value)

    def groups(self) -> dict[tuple[str, str, str], dict[str, TableColumn]]:
        """Return the sets of results in a row: measure to column of each."""
        groups: dict[tuple[str, str, str], dict[str, TableColumn]] = {}
        for column in self.values():
            if column.measure and column.measure != "other":
                groups.setdefault(column.group, {}).setdefault(column.measure, column)
        return groups

    def cases(self, row: TableRow, column: TableColumn) -> int | None:
        """Return the cases stated for a cell: by its row, its header, or the table."""
        counts = [c for c in self.columns if c.measure == "n" and c.is_value]
        best = next((c for c in counts if c.group == column.group), None)
        best = best or next((c for c in counts if not any(c.group)), None)
        number = row.cells[best.index].value if best else None
        if number is not None and 0 < number.value < 1e9:
            return round(number.value)
        return column.n or self.n


def is_system_header(header: str) -> bool:
    """Return whether a header of names says that they are models or the like."""
    return bool(_SYSTEM_HEADER.search(header))


def group_name(group: tuple[str, str, str], columns: dict[str, TableColumn]) -> str:
    """Return what to call a set of results in a sentence."""
    system = next(iter(columns.values())).system
    return " ".join(part for part in (group[2], system, group[1]) if part) or "results"


def counts_of(number: Number, n: int) -> range:
    """Return the whole numbers of `n` cases that print as `number`."""
    return range(max(0, ceil(n * number.low)), min(n, floor(n * number.high)) + 1)


def make_table(
    grid: TextTable, *, n: int | None = None, measure: str = ""
) -> PublishedTable:
    """Return a grid as a table.

    Parameters
    ----------
    n
        Cases of all rows, where the caption does not say or says something else.
    measure
        What columns hold that name no measure, such as columns of models.
    """
    grid = _upright(grid)
    keys = _count_keys(grid)
    comma = decimal_commas([cell for row in grid.rows for cell in row[keys:]])
    rows = _one_mean([_row(cells, keys, comma) for cells in grid.rows])
    named = measure or measure_in(grid.caption)
    columns = tuple(
        _finished(column, rows, named) for column in read_columns(grid.header, keys)
    )
    rows = tuple(_scaled(row, columns) for row in rows if row.name or row.cells)
    return PublishedTable(
        name=grid.name,
        caption=grid.caption,
        key_headers=grid.header[:keys],
        columns=columns,
        rows=rows,
        n=n or stated_n(grid.caption),
        level=_level(grid),
        remarks=_remarks(grid, rows),
    )


def _upright(grid: TextTable) -> TextTable:
    """Turn a table whose first column, not its header, names the measures."""
    across = sum(bool(measure_in(text)) for text in grid.header[1:])
    down = sum(bool(measure_in(row[0])) for row in grid.rows)
    if across or down < 2 or 2 * down < len(grid.rows):
        return grid
    whole = list(zip(grid.header, *grid.rows, strict=True))
    return grid._replace(header=whole[0], rows=tuple(whole[1:]))


def _count_keys(grid: TextTable) -> int:
    """Count the leading columns of words; at least one, unless all are numbers."""
    keys = 0
    for column in zip(*grid.rows, strict=True):
        filled = [cell for cell in column if cell]
        numbers = sum(read_cell(cell).numeric for cell in filled)
        if 2 * numbers >= len(filled) and keys:
            break
        keys += 1
    return keys if keys < len(grid.header) else 1


def _row(cells: Sequence[str], keys: int, comma: bool) -> TableRow:
    name = " / ".join(cell for cell in cells[:keys] if cell)
    read = tuple(
        PrintedCell(cell) if index < keys else read_cell(cell, comma=comma)
        for index, cell in enumerate(cells)
    )
    kind = "pooled" if _POOLED_ROW.match(name) else ""
    kind = "mean" if keys == 1 and _MEAN_ROW.fullmatch(name.strip()) else kind
    return TableRow(name, tuple(cells[:keys]), read, kind)


def _one_mean(rows: list[TableRow]) -> tuple[TableRow, ...]:
    """Leave averages alone where there are several: each is over a part of the rows."""
    several = sum(row.kind == "mean" for row in rows) > 1
    return tuple(
        row._replace(kind="pooled") if several and row.kind else row for row in rows
    )


def _finished(column: TableColumn, rows: Sequence[TableRow], named: str) -> TableColumn:
    """Name the measure of an unnamed column of shares, and find percentages."""
    cells = [row.cells[column.index] for row in rows]
    values = [cell.value.value for cell in cells if cell.value is not None]
    values += [limit.value for cell in cells if cell.limits for limit in cell.limits]
    small = bool(values) and all(abs(value) <= 1.5 for value in values)
    if not (column.measure or column.mean or column.delta) and values:
        limits = any(cell.limits for cell in cells)
        known = named or ("share" if limits and small else "")
        column = replace(column, measure=known)
    hundred = bool(values) and not small and all(abs(v) <= 100 for v in values)
    rate = column.measure in SHARES or column.measure == "kappa"
    return replace(column, percent=(column.percent or rate) and hundred and rate)


def _scaled(row: TableRow, columns: Sequence[TableColumn]) -> TableRow:
    """Turn percentages without a sign into shares."""
    percent = {column.index for column in columns if column.percent}
    cells = tuple(
        _as_share(cell) if index in percent and "%" not in cell.text else cell
        for index, cell in enumerate(row.cells)
    )
    return row._replace(cells=cells)


def _as_share(cell: PrintedCell) -> PrintedCell:
    value = cell.value.scaled(0.01) if cell.value else None
    limits = (
        (cell.limits[0].scaled(0.01), cell.limits[1].scaled(0.01))
        if cell.limits
        else None
    )
    return cell._replace(value=value, limits=limits)


def _level(grid: TextTable) -> float:
    text = " ".join((grid.caption, *grid.header))
    found = re.search(r"\b(\d\d(?:\.\d)?)\s?%\s?(?:ci|confidence)", text, re.IGNORECASE)
    level = float(found[1]) / 100 if found else 0.95
    return level if 0.5 <= level < 1 else 0.95


def _remarks(grid: TextTable, rows: Sequence[TableRow]) -> tuple[str, ...]:
    remarks = []
    if grid.ragged:
        remarks.append(f"{grid.ragged} rows have more or fewer cells than the header")
    names = [row.name.casefold() for row in rows]
    twice = sorted({row.name for row in rows if names.count(row.name.casefold()) > 1})
    if twice:
        remarks.append(f"rows that occur twice: {', '.join(twice[:5])}")
    if apart := [row.name for row in rows if row.kind == "pooled"]:
        remarks.append(
            f"rows taken for summaries and not checked: {'; '.join(apart[:5])}"
        )
    return tuple(remarks)
