"""The figures of a score: grids of labels and systems, rankings and differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isnan
from typing import NamedTuple

from loop.documents.charts import Grid, GridCell, IntervalRow, grid_svg, interval_rows
from loop.documents.numbers import NOT_ESTIMABLE, p_value, percent, share
from loop.documents.svg import as_file
from loop.score.metrics.score_sheet import MetricCorrelations
from loop.score.records import LabelScore
from loop.score.scoring import ScoreDocument
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
