"""What metrics say of every system and case: run, as a table, a file, correlations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from pathlib import Path
from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from loop.core.files import write_atomic
from loop.core.safe_text import format_csv, shielded
from loop.labels.taxonomy import Taxonomy
from loop.score.counting import paired_rows
from loop.score.metrics.base import (
    Metric,
    MetricInput,
    MetricOptions,
    Scores,
    Unavailable,
)
from loop.score.metrics.lexical import KIND_OF
from loop.score.metrics.registry import ALL, find
from loop.score.metrics.word_counts import measure
from loop.score.records import Graded, Joined, PairSide
from loop.stats.confusion import divide
from loop.stats.correlation import tau_b
from loop.stats.intervals import Estimate
from loop.stats.resampling import Bootstrap, Resampling, bootstrap, to_estimate


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


Combine = Callable[[NDArray[np.float64]], NDArray[np.float64]]


class SideRows(NamedTuple):
    """A side, and which of all cases it is of."""

    side: MetricInput
    rows: NDArray[np.intp]


def run_metrics(
    joined: Joined,
    graded: Graded,
    taxonomy: Taxonomy,
    names: Sequence[str] = (ALL,),
    options: MetricOptions | None = None,
    **resampling: Unpack[Resampling],
) -> ScoreSheet:
    """Return what the metrics say of every system.

    A metric that cannot run is among `ScoreSheet.unavailable` with its reason; the
    others go on. A case without a candidate of a system is not scored for it.

    Parameters
    ----------
    joined
        Texts or given labels of both sides.
    graded
        The same cases as codes.
    taxonomy
        Says which labels compare with CheXpert's.
    names
        As for `loop.score.metrics.registry.find`. Metrics of CheXpert's labels must
        be named where the taxonomy compares with none of them.
    options
        Default: `MetricOptions()`.
    **resampling
        ``resamples`` (2,000), ``seed`` (0), ``confidence`` (0.95); all metrics of a
        system share their resamples. ``units``: default the patients of `graded`.

    Raises
    ------
    DataError
        No metric is called so.
    ValueError
        `joined` and `graded` are not of the same cases and systems, or an option is
        out of range.
    """
    metrics, options = _pick(names, taxonomy), options or MetricOptions()
    units = resampling.pop("units", graded.units)
    pairs = _count_words(_pair(joined, graded, taxonomy), metrics, options)
    return _run(pairs, metrics, options, {**resampling, "units": units})


def measure_texts(
    joined: Joined,
    metrics: Sequence[Metric],
    options: MetricOptions | None = None,
    **resampling: Unpack[Resampling],
) -> ScoreSheet:
    """Return what `metrics` that need no labels say of every system.

    Parameters
    ----------
    joined
        Texts of both sides.
    metrics
        The metrics themselves, of the registry or not.
    options, **resampling
        As for `run_metrics`; ``units``: default the patients of `joined`, else cases.
    """
    known = joined.patients
    units = resampling.pop("units", None if known is None else np.asarray(known))
    chosen = options or MetricOptions()
    return _run(text_sides(joined), metrics, chosen, {**resampling, "units": units})


def text_sides(joined: Joined) -> list[SideRows]:
    """Return the pairs of texts of every system: cases that have a candidate."""
    pairs = []
    for column in joined.systems:
        texts = column.texts or (None,) * len(joined.case_ids)
        rows = np.flatnonzero([text is not None for text in texts])
        side = MetricInput(
            system=column.name,
            case_ids=tuple(joined.case_ids[row] for row in rows),
            references=_texts(joined.reference, rows),
            candidates=_texts(column, rows),
            languages=tuple(joined.languages[row] for row in rows if joined.languages),
            contexts=tuple(joined.contexts[row] for row in rows if joined.contexts),
            labels=(),
            reference_codes=_NO_CODES,
            candidate_codes=_NO_CODES,
            comparable=(),
        )
        pairs.append(SideRows(side, rows))
    return pairs


_NO_CODES = np.zeros((0, 0), dtype=np.int8)


def _run(
    pairs: Sequence[SideRows],
    metrics: Sequence[Metric],
    options: MetricOptions,
    resampling: Resampling,
) -> ScoreSheet:
    """Return what the metrics say of every side."""
    units = resampling.pop("units", None)
    results: dict[tuple[str, str], MetricResult] = {}
    refused: dict[Unavailable, None] = {}
    for side, rows in pairs:
        told = {metric: metric.score(side, options) for metric in metrics}
        refused.update(dict.fromkeys(_refusals(told)))
        scores = {m: s for m, s in told.items() if isinstance(s, Scores)}
        drawn = units[rows] if units is not None else None
        for result in _resample(side, scores, {**resampling, "units": drawn}):
            results[result.metric.name, side.system] = result
    systems = tuple(side.system for side, _ in pairs)
    keys = [(metric.name, system) for metric in metrics for system in systems]
    return ScoreSheet(
        systems=systems,
        case_ids={side.system: side.case_ids for side, _ in pairs},
        results=tuple(results[key] for key in keys if key in results),
        unavailable=tuple(refused),
    )


def _pick(names: Sequence[str], taxonomy: Taxonomy) -> tuple[Metric, ...]:
    """Return the metrics asked for; those of CheXpert's labels where there are any."""
    found = find(names)
    if taxonomy.comparable:
        return found
    return tuple(
        metric
        for metric in found
        if metric.name in names or not metric.name.startswith("chexpert")
    )


def _pair(joined: Joined, graded: Graded, taxonomy: Taxonomy) -> list[SideRows]:
    systems = tuple(column.name for column in joined.systems)
    if (joined.case_ids, systems) != (graded.case_ids, graded.systems):
        raise ValueError("joined and graded must be of the same cases and systems")
    paired = paired_rows(graded, joined.coverage)
    return [
        SideRows(_side(joined, graded, taxonomy, number, rows), rows)
        for number, rows in enumerate(map(np.flatnonzero, paired))
    ]


def _side(
    joined: Joined,
    graded: Graded,
    taxonomy: Taxonomy,
    number: int,
    rows: NDArray[np.intp],
) -> MetricInput:
    column = joined.systems[number]
    return MetricInput(
        system=column.name,
        case_ids=tuple(joined.case_ids[row] for row in rows),
        references=_texts(joined.reference, rows),
        candidates=_texts(column, rows),
        languages=tuple(joined.languages[row] for row in rows if joined.languages),
        labels=graded.labels,
        reference_codes=graded.reference[rows],
        candidate_codes=graded.candidates[number][rows],
        comparable=taxonomy.comparable,
        extractor=graded.extractor,
        no_finding=graded.no_finding,
    )


def _texts(column: PairSide, rows: NDArray[np.intp]) -> tuple[str, ...] | None:
    if column.texts is None:
        return None
    return tuple(column.texts[row] or "" for row in rows)


def _count_words(
    pairs: list[SideRows], metrics: Sequence[Metric], options: MetricOptions
) -> list[SideRows]:
    """Count what the lexical metrics share for all systems at once."""
    kinds = {KIND_OF[metric.name] for metric in metrics if metric.name in KIND_OF}
    texts = [
        (pair.side.references, pair.side.candidates)
        if pair.side.references is not None and pair.side.candidates is not None
        else ((), ())
        for pair in pairs
    ]
    counts = measure(
        kinds,
        [text for references, _ in texts for text in references],
        [text for _, candidates in texts for text in candidates],
        workers=options.workers,
    )
    ends = np.cumsum([len(references) for references, _ in texts])[:-1]
    split = {kind: np.split(rows, ends) for kind, rows in counts.items()}
    return [
        pair._replace(side=replace(pair.side, measured=_of(split, number)))
        if references
        else pair
        for number, (pair, (references, _)) in enumerate(zip(pairs, texts, strict=True))
    ]


def _of(
    split: dict[str, list[NDArray[np.float64]]], number: int
) -> dict[str, NDArray[np.float64]]:
    return {kind: parts[number] for kind, parts in split.items()}


def _refusals(told: dict[Metric, Scores | Unavailable]) -> list[Unavailable]:
    return [answer for answer in told.values() if isinstance(answer, Unavailable)]


def _resample(
    side: MetricInput, scores: dict[Metric, Scores], resampling: Resampling
) -> list[MetricResult]:
    """Return results with intervals: all metrics of a system on the same resamples."""
    if not scores:
        return []
    tables, combines = zip(*map(_columns, scores.values()), strict=True)
    ends = np.cumsum([table.shape[1] for table in tables])[:-1]

    def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        parts = np.split(sums, ends, axis=1)
        made = [make(part) for make, part in zip(combines, parts, strict=True)]
        return np.column_stack(made)

    intervals = bootstrap(np.hstack(tables), statistic, **resampling)
    return [
        _result(metric, side, answer, interval)
        for (metric, answer), interval in zip(scores.items(), intervals, strict=True)
    ]


def _columns(scores: Scores) -> tuple[NDArray[np.float64], Combine]:
    """Return what each case adds, and how sums make the value of the system."""
    if scores.parts is not None and scores.combine is not None:
        return scores.parts, scores.combine
    defined = ~np.isnan(scores.per_case)
    filled = np.where(defined, scores.per_case, 0.0)
    return np.column_stack([filled, defined]), _mean


def _mean(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    return divide(sums[:, 0], sums[:, 1])


def _result(
    metric: Metric, side: MetricInput, scores: Scores, interval: Bootstrap
) -> MetricResult:
    undefined = int(np.isnan(scores.per_case).sum())
    return MetricResult(
        metric=metric,
        system=side.system,
        estimate=to_estimate(interval)._replace(value=scores.value),
        n=len(scores.per_case) - undefined,
        undefined=undefined,
        per_case=scores.per_case,
        signature=scores.signature,
        notes=scores.notes,
    )


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
        tau[one, other] = tau[other, one] = tau_b(first, second)
    return MetricCorrelations(names, tau, n)


def _cell(value: np.float64) -> str:
    if np.isnan(value):
        return ""
    number = float(value)
    return str(int(number)) if number.is_integer() else repr(number)
