"""Scores of candidates: what each metric says of each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError
from loop.core.safe_text import unshielded
from loop.labels.importing.encodings import find_encoding
from loop.labels.importing.table import iter_csv, read_header

Key = tuple[str, str]
"""Case id and system."""

_KEYS: Final = ("id", "system")


class ScoredMetric(NamedTuple):
    """One metric, as far as its agreement with raters goes."""

    name: str
    """Column in the file, for example ``"rouge_l"``."""

    title: str
    """Name as published."""

    lower: bool = False
    """Whether less is better: its values are negated before anything is compared."""

    note: str = ""
    """What else must be known of it, for example that it describes and does not
    grade."""

    signature: str = ""
    """Its conventions, where known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTable:
    """Values of several metrics for the same candidates, sorted by id and system."""

    keys: tuple[Key, ...]
    metrics: tuple[ScoredMetric, ...]
    values: NDArray[np.float64]
    """Shape ``(n_candidates, n_metrics)``, as the metrics print them; NaN where
    undefined."""

    unavailable: tuple[tuple[str, str], ...] = ()
    """Metrics that could not run, and why."""

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.keys), len(self.metrics)):
            raise ValueError(
                f"need {len(self.keys)} candidates x {len(self.metrics)} metrics, "
                f"got {self.values.shape}"
            )

    @property
    def directed(self) -> NDArray[np.float64]:
        """The same values with those of lower-is-better metrics negated."""
        signs = [-1.0 if metric.lower else 1.0 for metric in self.metrics]
        directed: NDArray[np.float64] = self.values * np.array(signs)
        return directed


class _ScoreCell(NamedTuple):
    where: str
    value: float


_Cells = dict[str, dict[Key, _ScoreCell]]
"""Cells by metric and candidate."""


def read_scores(
    paths: Sequence[Path],
    known: Mapping[str, ScoredMetric] | None = None,
    *,
    wanted: Sequence[str] = (),
) -> ScoreTable:
    """Return the scores in CSV files with columns id, system and one per metric.

    Files are joined by id and system, so one may hold more systems and another more
    metrics. Without a column ``system`` there is one. An empty cell is undefined.

    Parameters
    ----------
    paths
        One file or more, as ``ranloop score`` writes them.
    known
        Metrics by name; a column of another name is taken as higher is better.
    wanted
        Names of the columns to read; none: all.

    Returns
    -------
    ScoreTable
        Metrics in the order of the files' columns, candidates sorted.

    Raises
    ------
    DataError
        A column is missing, a cell is no number, or a candidate has two values of one
        metric.
    """
    cells: _Cells = {}
    for path in paths:
        for metric, key, cell in _read_file(path, wanted):
            before = cells.setdefault(metric, {}).setdefault(key, cell)
            if before is not cell:
                raise DataError(
                    f"{before.where} and {cell.where}: two values of {metric} for one "
                    f"candidate of case {key[0][:40]}. Keep one of them."
                )
    _check_wanted(wanted, cells, paths)
    return _assemble(cells, known or {})


def _read_file(
    path: Path, wanted: Sequence[str]
) -> Iterator[tuple[str, Key, _ScoreCell]]:
    encoding = find_encoding(path).name
    header = read_header(path, encoding)
    names = [name for name in header if name.casefold() not in _KEYS]
    _check_header(header, names, path)
    ours = {name.casefold(): name for name in header if name.casefold() in _KEYS}
    for row in iter_csv(path, encoding):
        where = f"{path.name}, line {row.line}"
        key = tuple(
            unshielded(row.cells[ours[one]].strip()) if one in ours else ""
            for one in _KEYS
        )
        if not key[0]:
            raise DataError(f"{where}: column id is empty. Fill it in.")
        for name in names:
            if not wanted or name in wanted:
                value = _number(row.cells[name].strip(), f"{where}, column {name}")
                yield name, (key[0], key[1]), _ScoreCell(where, value)


def _check_header(header: list[str], names: list[str], path: Path) -> None:
    where = f"{path.name}, line 1"
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{where}: column {twice} appears twice. Remove one.")
    keys = [name.casefold() for name in header if name.casefold() in _KEYS]
    if len(set(keys)) < len(keys):
        raise DataError(f"{where}: two columns are named id, or system. Rename one.")
    if "id" not in keys:
        raise DataError(
            f"{where}: no column id. Scores need the columns id, system and one per "
            "metric, as `ranloop score` writes them to per_case.csv."
        )
    if not names:
        raise DataError(f"{where}: no metric beside id and system. Add a column.")


def _number(text: str, where: str) -> float:
    if not text:
        return np.nan
    try:
        value = float(text)
    except ValueError:
        value = np.inf
    if not isfinite(value):
        # Not what it holds, which may be a clinical text.
        raise DataError(
            f"{where}: no number. Give a number, leave the cell empty where the metric "
            "is undefined, or name the columns to read with --metric."
        )
    return value


def _check_wanted(wanted: Sequence[str], cells: _Cells, paths: Sequence[Path]) -> None:
    absent = [name for name in wanted if name not in cells]
    if absent:
        files = ", ".join(path.name for path in paths)
        raise DataError(
            f"{files}: no column {', '.join(absent)}. There is "
            f"{', '.join(cells) or 'no other'}. Correct --metric."
        )


def _assemble(cells: _Cells, known: Mapping[str, ScoredMetric]) -> ScoreTable:
    keys = sorted({key for given in cells.values() for key in given})
    nothing = _ScoreCell("", np.nan)
    values = [
        [given.get(key, nothing).value for given in cells.values()] for key in keys
    ]
    unknown = "not in the registry: taken as higher is better"
    return ScoreTable(
        keys=tuple(keys),
        metrics=tuple(
            known.get(name, ScoredMetric(name, name, note=unknown)) for name in cells
        ),
        values=np.array(values, dtype=np.float64).reshape(len(keys), len(cells)),
    )
