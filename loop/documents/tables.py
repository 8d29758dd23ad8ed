"""Tables as CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loop.core.safe_text import format_csv, printable, shielded


def format_rows(rows: Sequence[Mapping[str, object]], names: Sequence[str] = ()) -> str:
    """Return rows as CSV that no spreadsheet runs, under one header.

    Parameters
    ----------
    names
        The columns; default: every name of the rows, in order. A cell that a row lacks
        is empty, and the header stands even without a row if it is given here.
    """
    header = names or list(dict.fromkeys(name for row in rows for name in row))
    return format_csv(
        [neutralise(name) for name in header],
        ([neutralise(row.get(name)) for name in header] for row in rows),
    )


def neutralise(cell: object) -> str:
    """Return `cell` as text that no spreadsheet takes for a formula.

    Examples
    --------
    >>> neutralise("=1+1"), neutralise(-0.25), neutralise(None)
    ("'=1+1", '-0.25', '')
    """
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.6g}"
    return printable(shielded(cell) if isinstance(cell, str) else str(cell))
