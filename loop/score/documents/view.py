"""What the documents of a score show: tables, figures, variables of the templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isnan
from typing import Any, NamedTuple

from loop import __version__
from loop.documents.charts import Grid, GridCell, IntervalRow, grid_svg, interval_rows
from loop.documents.numbers import NOT_ESTIMABLE, p_value, percent, share
from loop.documents.svg import as_file
from loop.score.counting import Confused
from loop.score.documents.words import (
    COMPARABLE,
    WAYS,
    Cells,
    agreement_line,
    caution_sentences,
    comparison_sentence,
    convention_sentences,
    count_cells,
    coverage_lines,
    extractor_name,
    left_out_line,
    outcome_line,
    perfect_sentence,
    problem_line,
    range_words,
    rated_line,
    scored_words,
    verdict_words,
)
from loop.score.metrics.base import Metric
from loop.score.metrics.score_sheet import MetricCorrelations, MetricResult
from loop.score.records import CaseScore, LabelScore, SystemScore
from loop.score.scoring import ScoreDocument, metric_rows, worst_cases
from loop.stats.confusion import Confusion

_FAINTEST = 0.05
"""Highest rate of a table, at least: a table of tiny rates stays pale."""


def f1_grid(document: ScoreDocument) -> Grid:
    """Return F1 of every label and system, with found, invented and missed below."""
    return _label_grid(document, "F1 of every label and system", _f1_cell)


def missed_grid(document: ScoreDocument) -> Grid:
    """Return the false negative rate: of the findings there, the share not told."""
    top = _highest(document, _missed)
    return _label_grid(
        document,
        "Missed: share of the reference's findings that the candidate lacks",
        lambda name, one: _rate_cell(name, _missed(one.counts), top),
        colour="fail",
    )


def invented_grid(document: ScoreDocument) -> Grid:
    """Return the false positive rate: of the cases without, the share told to have."""
    top = _highest(document, _invented)
    return _label_grid(
        document,
        "Invented: share of the cases without the finding that are said to have it",
        lambda name, one: _rate_cell(name, _invented(one.counts), top),
        colour="unsure",
    )


def left_out_grid(document: ScoreDocument) -> Grid | None:
    """Return the pairs left out, by label and system; None where there is none."""
    systems = document.score.systems
    if not any(one.uncertain or one.unanswered for s in systems for one in s.labels):
        return None
    return _label_grid(document, "Pairs left out", _left_out_cell)


def correlation_grid(found: MetricCorrelations) -> Grid:
    """Return Kendall's tau-b of every two metrics; columns are numbered as rows are."""
    cells = []
    for row, name in enumerate(found.metrics):
        line = []
        for column, other in enumerate(found.metrics):
            line.append(
                _tau_cell(
                    f"{name} and {other}",
                    float(found.tau_b[row, column]),
                    int(found.n[row, column]),
                )
                if row != column
                else GridCell("", name)
            )
        cells.append(tuple(line))
    return Grid(
        title="Kendall's tau-b between metrics, over candidates",
        rows=tuple(f"{n} {name}" for n, name in enumerate(found.metrics, 1)),
        columns=tuple(str(n) for n, _ in enumerate(found.metrics, 1)),
        cells=tuple(cells),
    )


def _label_grid(
    document: ScoreDocument,
    title: str,
    cell: Callable[[str, LabelScore], GridCell],
    *,
    colour: str = "accent",
) -> Grid:
    """Return a grid with a row per label and a column per system, best first."""
    score, names = document.score, document.names
    return Grid(
        title=title,
        rows=tuple(names[label] for label in score.labels),
        columns=tuple(f"{key} {name}" for name, key in document.keys.items()),
        cells=tuple(
            tuple(
                cell(f"{names[label]}, {one.system}", one.labels[place])
                for one in score.systems
            )
            for place, label in enumerate(score.labels)
        ),
        colour=colour,
    )


def _f1_cell(name: str, one: LabelScore) -> GridCell:
    counts = one.counts
    if one.f1 is None:
        why = "no case has it on either side" if counts.n else "no pair is decided"
        return GridCell(NOT_ESTIMABLE, f"{name}: F1 not defined, {why}")
    said = (
        f"{name}: F1 {share(one.f1)}, found {counts.tp}, invented {counts.fp}, "
        f"missed {counts.fn}, of {counts.n} pairs"
    )
    below = f"{counts.tp} · {counts.fp} · {counts.fn}"
    return GridCell(share(one.f1, 2), said, one.f1, below)


class _CountedRate(NamedTuple):
    """A rate with its counts."""

    part: int
    whole: int
    what: str
    """What the whole is."""


def _missed(counts: Confusion) -> _CountedRate:
    return _CountedRate(counts.fn, counts.positives, "present in the reference")


def _invented(counts: Confusion) -> _CountedRate:
    return _CountedRate(counts.fp, counts.negatives, "absent in the reference")


def _highest(
    document: ScoreDocument, rate: Callable[[Confusion], _CountedRate]
) -> float:
    """Return the rate that takes the full tint."""
    rates = [rate(one.counts) for each in document.score.systems for one in each.labels]
    return max([one.part / one.whole for one in rates if one.whole] + [_FAINTEST])


def _rate_cell(name: str, rate: _CountedRate, top: float) -> GridCell:
    part, whole, what = rate
    if not whole:
        return GridCell(NOT_ESTIMABLE, f"{name}: no case {what}", None, "0 of 0")
    value = part / whole
    said = f"{name}: {share(value)}, {part} of {whole} {what}"
    return GridCell(share(value), said, value / top, f"{part} of {whole}")


def _left_out_cell(name: str, one: LabelScore) -> GridCell:
    total = one.uncertain + one.unanswered
    said = f"{name}: {one.uncertain} uncertain, {one.unanswered} without a value"
    whole = total + one.counts.n
    below = f"{one.uncertain} · {one.unanswered}" if total else ""
    return GridCell(str(total), said, total / whole if whole else None, below)


def _tau_cell(name: str, tau: float, n: int) -> GridCell:
    if isnan(tau):
        return GridCell(NOT_ESTIMABLE, f"{name}: not estimable, {n} candidates")
    return GridCell(share(tau, 2), f"{name}: tau-b {share(tau)}, {n} candidates", tau)


def ranking_figure(document: ScoreDocument) -> str:
    """Return the Ran Score of every system with its interval, best first."""
    rows = [
        IntervalRow(
            f"{one.rank}. {document.keys[one.system]} {one.system}",
            one.ran_score,
            percent(one.best, 0),
        )
        for one in document.score.systems
    ]
    return interval_rows(
        "Ran Score of every system", rows, heads=("Ran Score", "best in")
    )


def differences_figure(document: ScoreDocument) -> str | None:
    """Return the difference of every pair with its interval; None for one system."""
    keys = document.keys
    rows = [
        IntervalRow(
            f"{keys[one.better]} over {keys[one.worse]}: {one.better}, {one.worse}",
            one.difference,
            NOT_ESTIMABLE if one.p_holm is None else p_value(one.p_holm),
        )
        for one in document.differences
    ]
    if not rows:
        return None
    heads = ("difference", "Holm p")
    title = "Differences between systems, paired"
    return interval_rows(title, rows, heads=heads, signed_axis=True)


def metrics_grid(document: ScoreDocument) -> Grid | None:
    """Return the correlations between metrics; None for fewer than two."""
    found = document.correlations
    return None if found is None else correlation_grid(found)


def figure_files(document: ScoreDocument) -> Mapping[str, str]:
    """Return the name and content of every figure as an SVG file."""
    between = metrics_grid(document)
    drawn = {
        "ranking.svg": ranking_figure(document),
        "differences.svg": differences_figure(document),
        "f1_by_label.svg": grid_svg(f1_grid(document)),
        "missed_by_label.svg": grid_svg(missed_grid(document)),
        "invented_by_label.svg": grid_svg(invented_grid(document)),
        "metric_correlations.svg": None if between is None else grid_svg(between),
    }
    return {name: as_file(one) for name, one in drawn.items() if one is not None}


class SystemView(NamedTuple):
    """One system as it is shown."""

    key: str
    """Its letter."""

    score: SystemScore
    cells: Cells
    left_out: str
    """How many cells are decided, and why others are not."""

    confused: tuple[Confused, ...]
    worst: tuple[CaseScore, ...]


class MetricView(NamedTuple):
    """One metric as it is shown."""

    metric: Metric
    range: str
    way: str
    results: tuple[MetricResult | None, ...]
    """One per system, best first."""

    signatures: tuple[str, ...]
    """Different ones only: usually one for all systems."""

    notes: tuple[str, ...]


def document_variables(document: ScoreDocument) -> dict[str, Any]:
    """Return the variables of both templates."""
    score = document.score
    perfect = {
        perfect_sentence(one, score): one.perfect is not None and one.perfect >= 1
        for one in score.systems
    }
    return {
        "document": document,
        "score": score,
        "names": document.names,
        "systems": [_system(document, one) for one in score.systems],
        "title": title_of(document),
        "extractor": extractor_name(score.extractor),
        "perfect": perfect,
        "uneven": caution_sentences(score),
        "scored_words": scored_words,
        "comparable": COMPARABLE,
        "comparison": comparison_sentence(score),
        "verdicts": [verdict_words(one) for one in document.differences],
        "grids": {
            "f1": f1_grid(document),
            "missed": missed_grid(document),
            "invented": invented_grid(document),
            "left_out": left_out_grid(document),
            "metrics": metrics_grid(document),
        },
        "metrics": metric_views(document),
        "coverage": coverage_lines(document),
        "outcomes": outcome_line(document.outcomes) if document.outcomes else "",
        "problems": [problem_line(one) for one in document.problems],
        "experts": _expert_lines(document),
        "conventions": convention_sentences(score),
        "version": __version__,
    }


def title_of(document: ScoreDocument) -> str:
    """Return what was scored, for example ``"3 systems on 300 cases"``."""
    systems, cases = len(document.score.systems), document.score.n_cases
    first = document.score.systems[0].system if systems == 1 else f"{systems} systems"
    return f"{first} on {cases} case{'' if cases == 1 else 's'}"


def _system(document: ScoreDocument, one: SystemScore) -> SystemView:
    mine = tuple(each for each in document.confused if each.system == one.system)
    key, worst = document.keys[one.system], worst_cases(document.score, one)
    score = document.score
    cells, told = count_cells(one, score), left_out_line(one, score)
    return SystemView(key, one, cells, told, mine, worst)


def metric_views(document: ScoreDocument) -> list[MetricView]:
    """Return every metric that ran, as it is shown."""
    return [
        MetricView(
            metric,
            range_words(metric),
            WAYS[metric.direction],
            results,
            _once(tuple(one.signature for one in results if one)),
            _once(tuple(text for one in results if one for text in one.notes)),
        )
        for metric, results in metric_rows(document)
    ]


def _expert_lines(document: ScoreDocument) -> tuple[str, ...]:
    experts = document.experts
    return (agreement_line(experts), rated_line(experts)) if experts else ()


def _once(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
