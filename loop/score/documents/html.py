"""A score as one self-contained page: no network, no script."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from loop.documents.charts import Grid, GridCell, tint_colour, tint_percent
from loop.documents.svg import DARK, LIGHT
from loop.documents.templates import render_template, shipped_templates
from loop.score.documents.document import ScoreDocument
from loop.score.documents.figures import differences_figure, ranking_figure
from loop.score.documents.view import document_variables


def render_score_html(document: ScoreDocument, *, templates: Path | None = None) -> str:
    """Return the score as one HTML page.

    The page holds counts, ids and digests, never a text of a case.

    Parameters
    ----------
    templates
        Folder of templates; default: the shipped ones.

    Raises
    ------
    DataError
        The template is missing or wrong.
    """
    differences = differences_figure(document)
    variables = {
        **document_variables(document),
        # Figures escape all text in them themselves.
        "ranking": Markup(ranking_figure(document)),
        "differences": None if differences is None else Markup(differences),
        "tint": _tint,
        "light": LIGHT,
        "dark": DARK,
    }
    folder = templates or shipped_templates()
    return render_template(folder, "score.html.jinja", variables)


def _tint(grid: Grid, cell: GridCell) -> str:
    """Return the style of a cell: its colour mixed with nothing."""
    share = tint_percent(cell)
    if not share:
        return ""
    colour = f"var(--{tint_colour(grid, cell)})"
    return f"background: color-mix(in srgb, {colour} {share}%, transparent)"
