"""Whether printed shares are whole cases, and how their intervals were computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.check_findings import Finding, FindingSeverity
from loop.published.printed import Number
from loop.published.result_table import (
    RATES,
    PublishedTable,
    TableColumn,
    TableRow,
    counts_of,
    table_finding,
)

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
            yield from _check_whole_cases(table, column)
        yield from _check_counted(table, column)
    yield from _check_totals(table)


def _check_whole_cases(table: PublishedTable, column: TableColumn) -> Iterator[Finding]:
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


def _check_counted(table: PublishedTable, column: TableColumn) -> Iterator[Finding]:
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


def _check_totals(table: PublishedTable) -> Iterator[Finding]:
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


Floats = NDArray[np.float64]
Limits = tuple[Floats, Floats]


def confidence_limits(
    k: NDArray[Any], n: NDArray[Any], level: float = 0.95, *, method: str
) -> Limits:
    """Return the limits of counts `k` of `n`, arrays of one shape, within 0 and 1.

    Without a success the lower limit is 0, without a failure the upper limit is 1,
    also with the Jeffreys prior.

    Parameters
    ----------
    method
        As in statsmodels: ``"beta"`` (Clopper-Pearson), ``"wilson"``,
        ``"agresti_coull"``, ``"jeffreys"`` or ``"normal"`` (Wald).

    References
    ----------
    Brown LD, Cai TT, DasGupta A. Stat Sci 2001;16:101-133.
    """
    # Large, and only who audits tables needs it.
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(k, n, alpha=1 - level, method=method)
    return (
        np.where(k == 0, 0.0, np.clip(low, 0, 1)),
        np.where(k == n, 1.0, np.clip(high, 0, 1)),
    )


def exact_limits(k: NDArray[Any], n: NDArray[Any], level: float = 0.95) -> Limits:
    """Return the Clopper-Pearson limits of counts `k` of `n`, arrays of one shape."""
    return confidence_limits(k, n, level, method="beta")


def _limits_by(name: str) -> Callable[[NDArray[Any], NDArray[Any], float], Limits]:
    return lambda k, n, level: confidence_limits(k, n, level, method=name)


METHODS: Mapping[str, Callable[[NDArray[Any], NDArray[Any], float], Limits]] = {
    "Clopper-Pearson": exact_limits,
    "Wilson": _limits_by("wilson"),
    "Agresti-Coull": _limits_by("agresti_coull"),
    "Jeffreys": _limits_by("jeffreys"),
    "Wald": _limits_by("normal"),
}


_MOST_N = 5_000
"""Largest number of cases searched when none is stated or the stated one fails."""

_ENOUGH = 4
"""Different cells from which an unstated number of cases may be concluded."""

_MANY = 8
"""Cells from which the odd ones out among fitting ones are called wrong."""

_MOST_COUNTS = 200_000
"""Counts tried at once, over all numbers of cases."""

_LOOSE = 2_000
"""Counts that print as one cell, beyond which it says too little about its count."""


class Printed(NamedTuple):
    """One cell with an interval."""

    row: str
    column: str
    value: Number
    low: Number
    high: Number
    n: int | None


class Fit(NamedTuple):
    """How many cells one method at given numbers of cases reproduces."""

    method: str
    matched: NDArray[np.bool_]
    """Per cell, with either rounding."""

    single: int
    """Cells that fit when limits are rounded once."""


def check_intervals(table: PublishedTable) -> Iterator[Finding]:
    """Yield what the intervals of a table imply: order, method, number of cases.

    The method is looked for among the shares of all cases (accuracies, or columns
    that name no measure); an interval of another measure rests on a denominator that
    the table does not state, so only its order is checked.
    """
    every = list(_printed(table, RATES))
    if every:
        yield _check_order(table, every)
    cells = [cell for cell in _printed(table, ("accuracy", "share")) if _in_unit(cell)]
    if cells:
        yield _find_method(table, cells)
    others = len(every) - len(cells)
    if others:
        text = (
            f"{others} intervals belong to measures whose denominator the table does "
            "not state, or to values outside 0 to 1: their method cannot be found."
        )
        yield table_finding(
            "interval method", table.name, "other measures", FindingSeverity.NOTE, text,
            {"cells": others},
        )  # fmt: skip


def _printed(table: PublishedTable, measures: Sequence[str]) -> Iterator[Printed]:
    for column in table.values():
        if column.measure in measures:
            for row in table.rows:
                limits = _printed_limits(table, row, column)
                value = row.cells[column.index].value
                if limits and value is not None and (not row.kind or len(measures) > 2):
                    n = table.cases(row, column)
                    yield Printed(row.name, column.header, value, *limits, n)


def _printed_limits(
    table: PublishedTable, row: TableRow, column: TableColumn
) -> tuple[Number, Number] | None:
    """Return the interval of a cell: its own, or that of columns of limits beside."""
    own = row.cells[column.index].limits
    if own is not None:
        return own
    beside = {
        other.part: row.cells[other.index]
        for other in table.columns
        if other.part and (other.measure, other.group) == (column.measure, column.group)
    }
    if "limits" in beside:
        return beside["limits"].limits
    low = beside["low"].value if "low" in beside else None
    high = beside["high"].value if "high" in beside else None
    return (low, high) if low is not None and high is not None else None


def _in_unit(cell: Printed) -> bool:
    return all(
        -0.001 <= one.value <= 1.001 for one in (cell.value, cell.low, cell.high)
    )


def _check_order(table: PublishedTable, cells: Sequence[Printed]) -> Finding:
    wrong = [
        f"{cell.row}, {cell.column}"
        for cell in cells
        if cell.low.low > cell.value.high or cell.value.low > cell.high.high
    ]
    text = (
        f"{len(cells) - len(wrong)} of {len(cells)} values lie within their interval."
    )
    return table_finding(
        "interval order", table.name, "all intervals",
        FindingSeverity.BROKEN if wrong else FindingSeverity.OK,
        text + (f" Outside: {'; '.join(wrong[:10])}." if wrong else ""),
        {"cells": len(cells), "outside": wrong},
    )  # fmt: skip


def _find_method(table: PublishedTable, cells: Sequence[Printed]) -> Finding:
    """Find the method at the stated number of cases, else the number that fits."""
    total = len(cells)
    stated = [cell.n for cell in cells]
    fits = _fits(cells, [n or 0 for n in stated], table.level) if all(stated) else []
    best = max(fits, key=lambda fit: int(fit.matched.sum()), default=None)
    numbers: dict[str, Any] = {
        "cells": total,
        "level": table.level,
        "stated_n": sorted({n for n in stated if n}),
        "matched": {fit.method: int(fit.matched.sum()) for fit in fits},
        "single_rounding": {fit.method: fit.single for fit in fits},
    }
    make = _maker(table, numbers)
    if best and best.matched.all():
        rival = [
            f"{fit.method} {int(fit.matched.sum())}" for fit in fits if fit != best
        ]
        numbers |= {"method": best.method, "n": numbers["stated_n"]}
        once = (
            f" Rounded once, {best.single} of {total} fit: the others were rounded to "
            "one digit more first."
            if best.single < total
            else ""
        )
        return make(
            FindingSeverity.OK,
            f"{total} of {total} intervals are {best.method} at the stated number of "
            f"cases ({_listed(numbers['stated_n'])}).{once} Other methods fit "
            f"{', '.join(rival)}.",
        )
    return _without_stated(table, cells, best, numbers)


def _maker(
    table: PublishedTable, numbers: dict[str, Any]
) -> Callable[[FindingSeverity, str], Finding]:
    def make(severity: FindingSeverity, text: str) -> Finding:
        return table_finding(
            "interval method",
            table.name,
            "intervals of shares",
            severity,
            text,
            numbers,
        )

    return make


def _without_stated(
    table: PublishedTable,
    cells: Sequence[Printed],
    best: Fit | None,
    numbers: dict[str, Any],
) -> Finding:
    """Judge intervals that no method gives at the stated number, or without one."""
    make = _maker(table, numbers)
    total = len(cells)
    found = _search(cells, table.level)
    numbers["fitting"] = [{"method": name, "n": n} for name, n in found[:20]]
    stated = numbers["stated_n"]
    distinct = len({(cell.value, cell.low, cell.high) for cell in cells})
    sizes = {n for _, n in found}
    if found and distinct >= _ENOUGH and len(sizes) <= 5:
        method, n = found[0]
        numbers |= {"method": method, "n": [n]}
        if best is None:
            return make(
                FindingSeverity.OK,
                f"{'Not every row states its' if stated else 'No'} number of cases"
                f"{'' if stated else ' is stated'}; {total} of {total} intervals are "
                f"{method} at n = {_listed(sorted(sizes))}.",
            )
        if all(abs(n - one) > 0.1 * one for one in stated):
            return make(
                FindingSeverity.BROKEN, _other_n(cells, best, method, n, numbers)
            )
    odd = _odd_ones(cells, best, table.level) if best else []
    if best and odd:
        numbers |= {"method": best.method, "n": stated, "odd": odd}
        return make(
            FindingSeverity.BROKEN,
            f"{int(best.matched.sum())} of {total} intervals are {best.method} at the "
            f"stated number of cases; not so: {'; '.join(odd[:10])}.",
        )
    most = (
        f" The nearest, {best.method}, fits {int(best.matched.sum())}." if best else ""
    )
    several = f" {len(sizes)} numbers of cases would fit." if sizes else ""
    return make(
        FindingSeverity.NOTE,
        f"None of {len(METHODS)} methods gives all {total} intervals at "
        f"{'the stated' if best else 'one'} number of cases.{most}{several} They may "
        "be bootstrap intervals, or rest on fewer cases per row.",
    )


def _other_n(
    cells: Sequence[Printed],
    best: Fit,
    method: str,
    n: int,
    numbers: dict[str, Any],
) -> str:
    """Say that another number of cases fits, and what it would mean."""
    (stated, *more) = numbers["stated_n"]
    total, fits = len(cells), int(best.matched.sum())
    text = (
        f"{total} of {total} intervals are {method} at n = {n}; at the stated "
        f"n = {_listed([stated, *more])} {fits} of {total} fit any of the methods."
    )
    if more:
        return text
    counts = [list(counts_of(cell.value, n)) for cell in cells]
    known = [options[0] for options in counts if len(options) == 1]
    ratio = n / stated
    numbers["width_ratio"] = ratio**0.5
    if ratio == round(ratio) and ratio > 1 and len(known) == total:
        times = int(ratio)
        even = sum(k % times == 0 for k in known)
        numbers |= {"counts_that_divide": even, "divisor": times}
        text += (
            f" Of the counts at {n}, {even} of {total} are multiples of {times}, as "
            f"shares of {stated} cases are."
        )
    numbers["correct"] = _correct(cells, stated, method, numbers["level"])
    wider = "narrow" if ratio > 1 else "wide"
    return (
        f"{text} So the printed intervals are too {wider}, by about {ratio**0.5:.2f}."
    )


def _correct(
    cells: Sequence[Printed], n: int, method: str, level: float
) -> list[dict[str, Any]]:
    """Return each interval as it should be at `n`, where the count is certain."""
    correct = []
    for cell in cells:
        options = list(counts_of(cell.value, n))
        if len(options) == 1:
            low, high = METHODS[method](np.array(options), np.array([n]), level)
            correct.append({
                "row": cell.row, "column": cell.column, "k": options[0], "n": n,
                "low": round(float(low[0]), 6), "high": round(float(high[0]), 6),
            })  # fmt: skip
    return correct


def _odd_ones(cells: Sequence[Printed], best: Fit, level: float) -> list[str]:
    """Return cells far off a method that gives nearly all; none where it is unclear."""
    matched = int(best.matched.sum())
    if matched < max(_MANY, 0.8 * len(cells)):
        return []
    odd = [cell for cell, fit in zip(cells, best.matched, strict=True) if not fit]
    far = [cell for cell in odd if _misfit(cell, best.method, level) > 2]
    return (
        [f"{cell.row}, {cell.column}" for cell in far] if len(far) == len(odd) else []
    )


def _misfit(cell: Printed, method: str, level: float) -> float:
    """Return how many printed units the nearest computed interval is away."""
    k = np.array(list(counts_of(cell.value, cell.n or 0)))
    if not k.size:
        return float("inf")
    low, high = METHODS[method](k, np.full(k.shape, cell.n), level)
    away = np.maximum(
        np.abs(low - cell.low.value) / cell.low.unit,
        np.abs(high - cell.high.value) / cell.high.unit,
    )
    return float(away.min())


def _fits(cells: Sequence[Printed], n: Sequence[int], level: float) -> list[Fit]:
    """Compare every cell with every method at its own number of cases."""
    fits = []
    for method in METHODS:
        both = [
            _matches(cell, np.array([size]), method, level)
            for cell, size in zip(cells, n, strict=True)
        ]
        matched = np.array([bool(either[0]) for either, _ in both])
        fits.append(Fit(method, matched, sum(bool(single[0]) for _, single in both)))
    return fits


def _search(cells: Sequence[Printed], level: float) -> list[tuple[str, int]]:
    """Return the methods and numbers of cases that give every interval."""
    distinct = {(cell.value, cell.low, cell.high): cell for cell in cells}
    narrow = sorted(
        distinct.values(), key=lambda cell: -cell.high.value + cell.low.value
    )
    found = []
    for method in METHODS:
        sizes = np.arange(2, _MOST_N + 1)
        for cell in narrow:
            if sizes.size:
                sizes = sizes[_matches(cell, sizes, method, level)[0]]
        found += [(method, int(n)) for n in sizes]
    return sorted(found, key=lambda one: one[1])


def _matches(
    cell: Printed, sizes: NDArray[Any], method: str, level: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return at which sizes a method gives the cell: either rounding, and single."""
    first = np.maximum(0, np.ceil(sizes * cell.value.low)).astype(np.int64)
    last = np.minimum(sizes, np.floor(sizes * cell.value.high)).astype(np.int64)
    many = np.maximum(0, last - first + 1)
    none = np.zeros(sizes.shape, dtype=bool)
    if not 0 < many.sum() <= _MOST_COUNTS or many.max() > _LOOSE:
        return none, none
    owner = np.repeat(np.arange(len(sizes)), many)
    k = first[owner] + np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
    low, high = METHODS[method](k, sizes[owner], level)
    twice = _twice(low, cell.low) & _twice(high, cell.high)
    once = _once(low, cell.low) & _once(high, cell.high)
    either, single = none.copy(), none.copy()
    np.logical_or.at(either, owner, twice | once)
    np.logical_or.at(single, owner, once)
    return either, single


def _once(limit: NDArray[np.float64], printed: Number) -> NDArray[np.bool_]:
    return np.abs(limit - printed.value) <= 0.5 * printed.unit + 1e-9


def _twice(limit: NDArray[np.float64], printed: Number) -> NDArray[np.bool_]:
    """Whether a limit prints so after rounding half-up to one digit more first."""
    more = np.floor(limit / printed.unit * 10 + 0.5 + 1e-7) / 10
    rounded = np.floor(more + 0.5 + 1e-7) * printed.unit
    return np.abs(rounded - printed.value) <= 0.1 * printed.unit


def _listed(values: Sequence[int]) -> str:
    shown = ", ".join(map(str, values[:6]))
    return shown + (", ..." if len(values) > 6 else "")
