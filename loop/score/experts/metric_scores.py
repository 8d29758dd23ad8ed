"""Scores of candidates: what each metric says of each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError
from loop.core.safe_text import quoted
from loop.labels.importing.table_files import (
    SourceTable,
    open_table,
)
from loop.score.metrics.base import Direction, Metric
from loop.score.metrics.registry import METRICS
from loop.score.metrics.score_sheet import ScoreSheet

Key = tuple[str, str]
"""Case id and system."""

_KEYS: Final = ("id", "system")

_DESCRIBES: Final = "describes and does not grade; taken as higher is better"
_DESCRIBES_LOWER: Final = "describes and does not grade; lower by --lower"


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
    """Return the scores in tables with columns id, system and one per metric.

    Files are joined by id and system, so one may hold more systems and another more
    metrics. Without a column ``system`` there is one. An empty cell is undefined.

    Parameters
    ----------
    paths
        One file or more, as ``ranloop score`` and ``ranloop judge`` write them.
    known
        Metrics by name; a column of another name is taken as higher is better, or as
        lower if it ends in ``_errors``.
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
                    f"candidate of case {quoted(key[0])}. Keep one of them."
                )
    _check_wanted(wanted, cells, paths)
    return _assemble(cells, known or {})


def _read_file(
    path: Path, wanted: Sequence[str]
) -> Iterator[tuple[str, Key, _ScoreCell]]:
    table = open_table(path, other=".csv")
    names = [name for name in table.header if name.casefold() not in _KEYS]
    _check_header(table, names)
    ours = {name.casefold(): name for name in table.header if name.casefold() in _KEYS}
    for row in table.read(table.header):
        where = row.where
        key = tuple(row.text(ours[one]) if one in ours else "" for one in _KEYS)
        if not key[0]:
            raise DataError(f"{where}: column id is empty. Fill it in.")
        for name in names:
            if not wanted or name in wanted:
                value = _number(row.text(name), f"{where}, column {name}")
                yield name, (key[0], key[1]), _ScoreCell(where, value)


def _check_header(table: SourceTable, names: list[str]) -> None:
    where = table.name
    keys = [name.casefold() for name in table.header if name.casefold() in _KEYS]
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
            f"{where}: not a number. Give a number, leave the cell empty where the "
            "metric is undefined, or name the columns to read with --metric."
        )
    return value


def _check_wanted(wanted: Sequence[str], cells: _Cells, paths: Sequence[Path]) -> None:
    absent = [name for name in wanted if name not in cells]
    if absent:
        files = ", ".join(path.name for path in paths)
        raise DataError(
            f"{files}: no column {', '.join(map(quoted, absent))}. There is "
            f"{', '.join(map(quoted, cells)) or 'no other'}. Correct --metric."
        )


def _assemble(cells: _Cells, known: Mapping[str, ScoredMetric]) -> ScoreTable:
    keys = sorted({key for given in cells.values() for key in given})
    nothing = _ScoreCell("", np.nan)
    values = [
        [given.get(key, nothing).value for given in cells.values()] for key in keys
    ]
    return ScoreTable(
        keys=tuple(keys),
        metrics=tuple(known.get(name) or _unknown(name) for name in cells),
        values=np.array(values, dtype=np.float64).reshape(len(keys), len(cells)),
    )


def _unknown(name: str) -> ScoredMetric:
    """Return a metric that ranloop does not know, by its name alone."""
    if name.endswith("_errors"):
        counts = "counts errors by its name: taken as lower is better"
        return ScoredMetric(name, name, lower=True, note=counts)
    higher = "not in the registry: taken as higher is better"
    return ScoredMetric(name, name, note=higher)


def tabulate(sheet: ScoreSheet) -> ScoreTable:
    """Return the per-case values of a sheet."""
    keys = tuple(
        sorted((case, each) for each in sheet.systems for case in sheet.case_ids[each])
    )
    places = {key: place for place, key in enumerate(keys)}
    metrics: dict[str, ScoredMetric] = {}
    # Those of the systems, each once: n and labels that count may differ.
    signatures: dict[str, dict[str, None]] = {}
    columns: dict[str, list[float]] = {}
    for one in sheet.results:
        name = one.metric.name
        signed = signatures.setdefault(name, {})
        signed[one.signature] = None
        metrics[name] = ScoredMetric(
            name, one.metric.title, signature=" and ".join(signed)
        )
        column = columns.setdefault(name, [np.nan] * len(keys))
        cases = sheet.case_ids[one.system]
        for case, value in zip(cases, one.per_case.tolist(), strict=True):
            column[places[case, one.system]] = value
    return ScoreTable(
        keys=keys,
        metrics=tuple(metrics.values()),
        values=np.array(list(columns.values())).T.reshape(len(keys), len(metrics)),
        unavailable=tuple((one.metric, one.reason) for one in sheet.unavailable),
    )


def read_metric_scores(
    paths: Sequence[Path], metrics: Sequence[str] = (), lower: Sequence[str] = ()
) -> ScoreTable:
    """Return scores from files, with what ranloop knows of the metrics.

    Parameters
    ----------
    paths
        Tables with columns ``id``, ``system`` and one per metric.
    metrics
        Those that are wanted; default all that are there.
    lower
        Metrics of which less is better, where ranloop does not know it.

    Raises
    ------
    DataError
        A file is wrong, a metric is not there, or `lower` says against what is known.
    """
    known = {name: known_metric(metric, lower) for name, metric in METRICS.items()}
    known |= {
        name: ScoredMetric(name, name, lower=True, note="lower by --lower")
        for name in lower
        if name not in METRICS
    }
    table = read_scores(paths, known, wanted=metrics)
    _check_lower(table, lower)
    return table


def describe_scores(table: ScoreTable, lower: Sequence[str] = ()) -> ScoreTable:
    """Return scores of ranloop's own metrics, with what is known of these.

    Raises
    ------
    DataError
        A metric of `lower` is not there, or is known to be higher or lower.
    """
    metrics = tuple(
        known_metric(METRICS[one.name], lower, one.signature) for one in table.metrics
    )
    table = replace(table, metrics=metrics)
    _check_lower(table, lower)
    return table


def drop_descriptions(
    table: ScoreTable, named: Sequence[str] = ()
) -> tuple[ScoreTable, str]:
    """Leave out metrics that describe and do not grade, unless `named`.

    Returns
    -------
    tuple
        The others, all where no other is there; and a sentence about what was left
        out, else ``""``.
    """
    kept = [
        place
        for place, metric in enumerate(table.metrics)
        if metric.note not in (_DESCRIBES, _DESCRIBES_LOWER) or metric.name in named
    ]
    if not kept or len(kept) == len(table.metrics):
        return table, ""
    dropped = [one.name for place, one in enumerate(table.metrics) if place not in kept]
    grading = ScoreTable(
        keys=table.keys,
        metrics=tuple(table.metrics[place] for place in kept),
        values=table.values[:, kept],
        unavailable=table.unavailable,
    )
    return grading, (
        f"Left out, because they describe and do not grade: {', '.join(dropped)}. "
        "Name one with --metric to see it."
    )


def known_metric(
    metric: Metric, lower: Sequence[str], signature: str = ""
) -> ScoredMetric:
    """Return a metric of the registry as the comparison with raters needs it."""
    neither = metric.direction is Direction.NEITHER
    less = metric.direction is Direction.LOWER
    turned = neither and metric.name in lower
    described = _DESCRIBES_LOWER if turned else _DESCRIBES
    return ScoredMetric(
        metric.name,
        metric.title,
        lower=less or turned,
        note=described if neither else "",
        signature=signature,
    )


def _check_lower(table: ScoreTable, lower: Sequence[str]) -> None:
    """Refuse a direction for what is not there, or against what is known."""
    for name in lower:
        known = METRICS.get(name)
        if name not in [metric.name for metric in table.metrics]:
            raise DataError(f"--lower {name}: there is no such metric. Correct it.")
        if known is not None and known.direction is not Direction.NEITHER:
            raise DataError(
                f"--lower {name}: ranloop knows that {known.direction.value} is better "
                "there. Leave it out."
            )
