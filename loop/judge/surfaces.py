"""GREEN, GREEN-F1 and Formula for every number of matched findings and errors."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.records import Status
from loop.documents.charts import Grid, GridCell, grid_svg
from loop.documents.numbers import NOT_ESTIMABLE, share
from loop.documents.svg import figure, text
from loop.judge.counts import JudgeCounts, JudgeScore, find_score, score_counts
from loop.score.experts.error_counts import Empty

MATCHED: Final = range(11)
SIGNIFICANT: Final = range(7)

_GAP = 46.0


class Surface(NamedTuple):
    """One score, by matched findings and significant errors."""

    score: JudgeScore
    insignificant: int
    """Insignificant errors, the same in every cell."""

    values: NDArray[np.float64]
    """Shape ``(7, 11)``: significant errors from 0 to 6, matches from 0 to 10; NaN
    where it is not defined."""


def score_surface(
    score: JudgeScore, insignificant: int, empty: Empty = Empty.SKIP
) -> Surface:
    """Return a score for every number of matched findings and significant errors.

    Parameters
    ----------
    score
        Of a form with weights.
    insignificant
        Insignificant errors of every cell.
    empty
        What no match and no error scores.

    Examples
    --------
    >>> found = score_surface(find_score("formula"), 2)
    >>> round(float(found.values[1, 3]), 4)
    0.5
    """
    pairs = [(m, s) for s in SIGNIFICANT for m in MATCHED]
    size = len(pairs)
    counts = JudgeCounts(
        categories=("error",),
        significant=np.array([[s] for _, s in pairs], dtype=np.float64),
        insignificant=np.full((size, 1), float(insignificant)),
        matched=np.array([m for m, _ in pairs], dtype=np.float64),
        statuses=(Status.ANSWERED,) * size,
    )
    values = score_counts(counts, score, empty)
    shape = (len(SIGNIFICANT), len(MATCHED))
    return Surface(score, insignificant, values.reshape(shape))


def surfaces_svg(empty: Empty = Empty.SKIP) -> str:
    """Return the surfaces of GREEN, GREEN-F1, and Formula with 0 and 2, as a figure.

    Parameters
    ----------
    empty
        What no match and no error scores.
    """
    shown = [
        score_surface(find_score(name), insignificant, empty)
        for name, insignificant in (
            ("green", 0),
            ("green_f1", 0),
            ("formula", 0),
            ("formula", 2),
        )
    ]
    parts, top, wide = [], 0.0, 0.0
    for one in shown:
        grid = grid_svg(_grid(one))
        width, height = _size(grid)
        parts.append(text(0, top + 18, _title(one), weight=600))
        # One figure in another: it keeps its own coordinates.
        parts.append(grid.replace("<svg ", f'<svg y="{top + 24:g}" ', 1))
        top += height + _GAP
        wide = max(wide, width)
    foot = "columns: matched findings; rows: significant errors"
    parts.append(text(0, top, foot, colour="soft"))
    about = ". ".join(map(_title, shown))
    return figure((wide, top + 8), "Scores by matches and errors", about, *parts)


def _title(one: Surface) -> str:
    matched, *errors = one.score.weights or (1, 1, 0)
    terms = [
        f"{'' if weight == 1 else f'{weight:g}'}{name}"
        for weight, name in zip((matched, *errors), "MSI", strict=True)
        if weight
    ]
    form = f"{one.score.title} = {terms[0]} / ({' + '.join(terms)})"
    return f"{form}, I = {one.insignificant}" if errors[-1] else f"{form}, whatever I"


def _grid(one: Surface) -> Grid:
    return Grid(
        title=_title(one),
        rows=tuple(f"S = {s}" for s in SIGNIFICANT),
        columns=tuple(str(m) for m in MATCHED),
        cells=tuple(
            tuple(_cell(one, m, s, float(one.values[s, m])) for m in MATCHED)
            for s in SIGNIFICANT
        ),
    )


def _cell(one: Surface, matched: int, significant: int, value: float) -> GridCell:
    where = f"M {matched}, S {significant}, I {one.insignificant}"
    if np.isnan(value):
        return GridCell(NOT_ESTIMABLE, f"{where}: not defined")
    return GridCell(share(value, 2), f"{where}: {share(value)}", value)


def _size(grid: str) -> tuple[float, float]:
    """Return width and height of a figure of this package."""
    inside = grid.split('viewBox="0 0 ', 1)[1].split('"', 1)[0]
    width, height = inside.split()
    return float(width), float(height)
