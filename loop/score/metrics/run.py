"""Running metrics: sides from joined and graded pairs, values, intervals, a sheet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from loop.labels.taxonomy import Taxonomy
from loop.score.counting import paired_rows
from loop.score.metric import Metric, MetricInput, MetricOptions, Scores, Unavailable
from loop.score.metrics.lexical import measure
from loop.score.metrics.overlap import KIND_OF
from loop.score.metrics.registry import ALL, find
from loop.score.metrics.sheet import MetricResult, ScoreSheet
from loop.score.records import Graded, Joined, PairSide
from loop.stats.confusion import divide
from loop.stats.resampling import Bootstrap, Resampling, bootstrap, to_estimate

Combine = Callable[[NDArray[np.float64]], NDArray[np.float64]]


class _SideRows(NamedTuple):
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
        As for `loop.score.metrics.registry.find`.
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
    metrics, options = find(names), options or MetricOptions()
    units = resampling.pop("units", graded.units)
    pairs = _count_words(_pair(joined, graded, taxonomy), metrics, options)
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


def _pair(joined: Joined, graded: Graded, taxonomy: Taxonomy) -> list[_SideRows]:
    systems = tuple(column.name for column in joined.systems)
    if (joined.case_ids, systems) != (graded.case_ids, graded.systems):
        raise ValueError("joined and graded must be of the same cases and systems")
    paired = paired_rows(graded, joined.coverage)
    return [
        _SideRows(_side(joined, graded, taxonomy, number, rows), rows)
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
    pairs: list[_SideRows], metrics: Sequence[Metric], options: MetricOptions
) -> list[_SideRows]:
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
