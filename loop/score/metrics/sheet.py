"""What the metrics said of every system and case: as a table, a file, correlations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

from loop.core.files import write_atomic
from loop.core.safe_text import format_csv, shielded
from loop.score.metric import Metric, Unavailable
from loop.stats.correlation import tie_equal
from loop.stats.intervals import Estimate


class MetricResult(NamedTuple):
    """One metric of one system."""

    metric: Metric
    system: str
    estimate: Estimate
    """Value of the system with its bootstrap interval over cases or patients."""

    n: int
    """Cases for which it is defined."""

    undefined: int
    """Cases for which it is not: they are in no mean."""

    per_case: NDArray[np.float64]
    """In the order of the system's case ids; NaN where undefined."""

    signature: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSheet:
    """Every metric that ran, for every system."""

    systems: tuple[str, ...]
    case_ids: Mapping[str, tuple[str, ...]]
    """Per system, the cases that have a candidate, sorted by id."""

    results: tuple[MetricResult, ...]
    """Metrics in the registry's order, within each the systems in theirs."""

    unavailable: tuple[Unavailable, ...] = ()

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that ran for at least one system."""
        named = {result.metric.name: result.metric for result in self.results}
        return tuple(named.values())

    def column(self, metric: str) -> NDArray[np.float64]:
        """Return a metric's scores of all candidates, systems one after another.

        NaN where it is undefined or did not run.
        """
        found = {r.system: r.per_case for r in self.results if r.metric.name == metric}
        return np.concatenate(
            [np.empty(0)]
            + [
                found.get(system, np.full(len(self.case_ids[system]), np.nan))
                for system in self.systems
            ]
        )


class MetricCorrelations(NamedTuple):
    """How alike metrics order the candidates."""

    metrics: tuple[str, ...]
    tau_b: NDArray[np.float64]
    """Kendall's tau-b of each two, over candidates where both are defined; NaN where
    one of them is constant. The sign is as the metrics are: not turned."""

    n: NDArray[np.int64]
    """Candidates each rests on."""


def format_per_case(sheet: ScoreSheet) -> bytes:
    """Return the scores of every candidate as CSV: ``id,system,<metric>...``.

    Ids and numbers only, no text of a case. An empty cell is undefined. Numbers read
    back as the same numbers. An id or system that a spreadsheet would run as a formula
    starts with an apostrophe.
    """
    names = [metric.name for metric in sheet.metrics]
    columns = [sheet.column(name) for name in names]
    keys = [(case, each) for each in sheet.systems for case in sheet.case_ids[each]]
    rows = (
        [*map(shielded, key), *(_cell(column[row]) for column in columns)]
        for row, key in enumerate(keys)
    )
    return format_csv(["id", "system", *names], rows).encode("utf-8")


def write_per_case(sheet: ScoreSheet, path: Path) -> None:
    """Write `format_per_case` to a file, whole or not at all.

    Raises
    ------
    WriteError
        The file cannot be written; what was there before is unchanged.
    """
    write_atomic(path, format_per_case(sheet))


def correlation_matrix(sheet: ScoreSheet) -> MetricCorrelations:
    """Return Kendall's tau-b between the metrics, over all candidates.

    Candidates of one case are not independent, so this describes and tests nothing.

    References
    ----------
    Kendall MG. The treatment of ties in ranking problems. Biometrika
    1945;33:239-251.
    """
    names = tuple(metric.name for metric in sheet.metrics)
    columns = [sheet.column(name) for name in names]
    size = len(names)
    tau, n = np.full((size, size), np.nan), np.zeros((size, size), np.int64)
    for one, other in combinations_with_replacement(range(size), 2):
        both = ~np.isnan(columns[one]) & ~np.isnan(columns[other])
        first, second = columns[one][both], columns[other][both]
        n[one, other] = n[other, one] = both.sum()
        tau[one, other] = tau[other, one] = _tau_b(first, second)
    return MetricCorrelations(names, tau, n)


def _tau_b(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(kendalltau(tie_equal(first), tie_equal(second)).statistic)


def _cell(value: np.float64) -> str:
    if np.isnan(value):
        return ""
    number = float(value)
    return str(int(number)) if number.is_integer() else repr(number)
