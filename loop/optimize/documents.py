"""A search as a page: its curve, its three scores side by side, and what it found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from loop import __version__
from loop.documents import svg
from loop.documents.templates import render_template, shipped_templates
from loop.optimize.estimate import PARTS, PartScores
from loop.optimize.nested_search import AcceptedScore
from loop.optimize.search_report import Optimizer, SearchReport
from loop.review.status import KeptVerdict, VerdictState
from loop.review.submit import VerdictContext
from loop.review.verdict import VerdictForm
from loop.review.verdict_files import verdicts_file

_PLOT = (520.0, 200.0)
_MARGIN = (46.0, 26.0, 150.0, 40.0)
"""Left, top, right and bottom of the plot, pixels."""


class PartRow(NamedTuple):
    """The mean scores of one part over all splits, and how far they are off."""

    part: str
    scores: PartScores
    excess: float | None
    """Found less what was found on the estimate part."""


def render_search(report: SearchReport, *, templates: Path | None = None) -> str:
    """Return a search as one HTML page: counts, ids and wordings, no case text.

    Parameters
    ----------
    templates
        Folder of templates; default: the shipped ones.

    Raises
    ------
    DataError
        The template is missing or wrong.
    """
    variables = {
        "report": report,
        "estimate": report.findings.estimate,
        "curve": draw_curve(report.findings.curve),
        "parts": part_rows(report),
        "terms": report.spec.optimizer == Optimizer.TERMS,
        "version": __version__,
    }
    folder = templates or shipped_templates()
    return render_template(folder, "search.html.jinja", variables)


def render_verdicts(report: SearchReport) -> str:
    """Return the proposals as a verdict file, for a clinician to go through.

    Each is a verdict on the cases that speak for it, without a reviewer: what is left
    in the file is accepted by whoever submits it (``ranloop verdict add``), and stands
    in the history under their name, edits included. Deleted is refused.
    """
    spec = report.spec
    context = VerdictContext(cohort=spec.cohort, prompt=spec.prompt, source="")
    verdicts = [
        VerdictForm.model_validate(one.form()).as_verdict("")
        for one in report.findings.proposals
    ]
    kept = [
        KeptVerdict(
            id=one.id,
            verdict=one,
            circumstances=context,
            created="",
            state=VerdictState.OPEN,
        )
        for one in verdicts
    ]
    return verdicts_file(kept, notes=True)


def part_rows(report: SearchReport) -> tuple[PartRow, ...]:
    """Return search, select and estimate side by side."""
    estimate = report.findings.estimate
    honest = estimate.mean("estimate").found

    def excess(found: float | None) -> float | None:
        return None if found is None or honest is None else found - honest

    means = [(part, estimate.mean(part)) for part in PARTS]
    return tuple(PartRow(part, scores, excess(scores.found)) for part, scores in means)


def draw_curve(points: Sequence[AcceptedScore]) -> str:
    """Return macro-F1 against the proposals accepted, as a figure."""
    left, top, right, bottom = _MARGIN
    wide, high = _PLOT
    size = (left + wide + right, top + high + bottom)
    values = [one for point in points for one in point[1:] if one is not None]
    title = "Macro-F1 by the number of proposals accepted"
    if not values or len(points) < 2:
        return svg.figure(
            size, title, "There is no curve.", svg.text(left, top, "nothing was found")
        )
    up = svg.fit_axis(values, 0.0, high)
    last = max(point.accepted for point in points)
    across = svg.Axis(0.0, float(last), (), left, wide)

    def place(accepted: int, value: float) -> tuple[float, float]:
        return across.x(accepted), round(top + high - up.x(value), 2)

    parts = list(_frame(points, up, across))
    for words, colour, column in (
        ("on the cases searched", "soft", 1),
        ("on cases not searched", "accent", 2),
    ):
        known = [
            place(point.accepted, value)
            for point in points
            if isinstance(value := point[column], float)
        ]
        if known:
            route = "M" + "L".join(f"{x:g} {y:g}" for x, y in known)
            parts.append(svg.path(route, colour=colour, width=2))
            x, y = known[-1]
            parts.append(svg.text(x + 8, y + 4, words, colour=colour))
    foot = svg.text(
        left + wide / 2, top + high + 34, "proposals", anchor="middle", colour="soft"
    )
    told = ". ".join(
        f"{point.accepted}: {point.search:.3f} searched, {point.estimate:.3f} not"
        for point in points
        if point.search is not None and point.estimate is not None
    )
    return svg.figure(size, title, told, *parts, foot)


def _frame(
    points: Sequence[AcceptedScore], up: svg.Axis, across: svg.Axis
) -> Iterator[str]:
    """Yield the grid with its numbers."""
    left, top, _, _ = _MARGIN
    wide, high = _PLOT
    for tick, label in zip(up.ticks, svg.tick_labels(up.ticks), strict=True):
        y = round(top + high - up.x(tick), 2)
        yield svg.line((left, y), (left + wide, y), colour="grid")
        yield svg.text(left - 6, y + 4, label, anchor="end", colour="soft")
    for point in points:
        x = across.x(point.accepted)
        yield svg.text(
            x, top + high + 17, point.accepted, anchor="middle", colour="soft"
        )
