"""The figures of a score, for the page and as files."""

from __future__ import annotations

from collections.abc import Mapping

from loop.documents.charts import Grid, IntervalRow, grid_svg, interval_rows
from loop.documents.numbers import NOT_ESTIMABLE, p_value, percent
from loop.documents.svg import as_file
from loop.score.documents.document import ScoreDocument
from loop.score.documents.grids import (
    correlation_grid,
    f1_grid,
    invented_grid,
    missed_grid,
)


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
