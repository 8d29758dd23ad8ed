"""Ratings from a plain table: one rater's points for one candidate a row."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from loop.core.errors import DataError
from loop.labels.importing.table_files import SourceRow, SourceTable, open_table
from loop.score.experts.ratings import Ratings

_COLUMNS: Final = ("id", "system", "rater", "score")
_OPTIONAL: Final = frozenset({"system"})


class _RatingCell(NamedTuple):
    """Where and how many points."""

    where: str
    points: float


def read_ratings(path: Path, *, scale: tuple[float, float] | None = None) -> Ratings:
    """Return the ratings in a table with columns id, system, rater, score.

    Columns may be in any order and others are ignored; without a column ``system``
    every case has one candidate. An empty score is a missing rating. Ids are trimmed
    and otherwise taken as they are.

    Parameters
    ----------
    path
        One row per rating: CSV, TSV, JSON Lines or Parquet.
    scale
        Least and most points possible; None: as observed.

    Returns
    -------
    Ratings
        Sorted by case id and system, raters by name.

    Raises
    ------
    DataError
        A column is missing, a score is not a number or off the scale, an id or rater is
        empty, a rater gives one candidate two different scores, or nobody rates.
    """
    table = open_table(path, other=".csv")
    named = _find_columns(table)
    cells: dict[tuple[str, str], dict[str, _RatingCell]] = {}
    repeated = 0
    for row in table.read(named.values()):
        key, rater, cell = _read(row, named, scale)
        before = cells.setdefault(key, {}).get(rater)
        if before is not None and not _same(before.points, cell.points):
            raise DataError(
                f"{before.where} and {row.where}: rater {rater[:40]} gives one "
                f"candidate of case {key[0][:40]} two scores. Keep one."
            )
        repeated += before is not None
        cells[key][rater] = before or cell
    return _assemble(cells, path, scale, repeated)


def _find_columns(table: SourceTable) -> dict[str, str]:
    """Return the column of each of ours; case and spaces around do not matter."""
    found: dict[str, str] = {}
    for column in table.header:
        name = column.strip().casefold()
        if name in _COLUMNS and found.setdefault(name, column) != column:
            raise DataError(f"{table.name}: two columns are named {name}. Rename one.")
    missing = [one for one in _COLUMNS if one not in found and one not in _OPTIONAL]
    if missing:
        raise DataError(
            f"{table.name}: no column {', '.join(missing)}. Ratings need the "
            f"columns {', '.join(_COLUMNS)}, in any order."
        )
    return found


def _read(
    row: SourceRow,
    named: Mapping[str, str],
    scale: tuple[float, float] | None,
) -> tuple[tuple[str, str], str, _RatingCell]:
    where = row.where
    given = {name: row.text(column) for name, column in named.items()}
    for name in ("id", "rater"):
        if not given[name]:
            raise DataError(f"{where}: column {name} is empty. Fill it in.")
    points = _points(given["score"], where, scale)
    return (
        (given["id"], given.get("system", "")),
        given["rater"],
        _RatingCell(where, points),
    )


def _points(text: str, where: str, scale: tuple[float, float] | None) -> float:
    if not text:
        return np.nan
    try:
        points = float(text)
    except ValueError:
        points = np.inf
    if not isfinite(points):
        # Not what it holds, which may be a clinical text.
        raise DataError(
            f"{where}: the score is not a number. Give a number, or leave the cell "
            "empty where nobody rated."
        )
    if scale is not None and not scale[0] <= points <= scale[1]:
        raise DataError(
            f"{where}: the score {text[:20]!r} is off the scale of {scale[0]:g} to "
            f"{scale[1]:g}. Correct it, or name the right scale."
        )
    return points


def _same(one: float, other: float) -> bool:
    return one == other or (np.isnan(one) and np.isnan(other))


def _assemble(
    cells: Mapping[tuple[str, str], Mapping[str, _RatingCell]],
    path: Path,
    scale: tuple[float, float] | None,
    repeated: int,
) -> Ratings:
    raters = tuple(sorted({rater for given in cells.values() for rater in given}))
    keys = sorted(cells)
    blank = _RatingCell("", np.nan)
    scores = np.array(
        [[cells[key].get(rater, blank).points for rater in raters] for key in keys]
    ).reshape(len(keys), len(raters))
    if np.isnan(scores).all():
        raise DataError(f"{path.name}: no row has a score. Give at least one.")
    return Ratings(
        ids=tuple(case for case, _ in keys),
        systems=tuple(system for _, system in keys),
        raters=raters,
        scores=scores,
        scale=scale or (float(np.nanmin(scores)), float(np.nanmax(scores))),
        repeated=repeated,
    )
