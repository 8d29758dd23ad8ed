"""A meta-evaluation as one self-contained page: no network, no script."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from loop.report.experts.figure import agreement_svg
from loop.report.experts.text import variables
from loop.report.experts.words import MetaDocument
from loop.report.figures.palette import DARK, LIGHT
from loop.report.templates import render_template, shipped_templates


def render_meta_html(document: MetaDocument, *, templates: Path | None = None) -> str:
    """Return the meta-evaluation as one HTML page.

    The page holds numbers, ids and digests, never the text of a case.

    Parameters
    ----------
    document
        What to show.
    templates
        Folder of templates; default: the shipped ones.

    Raises
    ------
    DataError
        The template is missing or wrong.
    """
    shown = {
        **variables(document),
        "light": dict(LIGHT),
        "dark": dict(DARK),
        # The figure escapes every text it is given.
        "figure": Markup(agreement_svg(document.result)),
    }
    folder = templates or shipped_templates()
    return render_template(folder, "meta_eval.html.jinja", shown)
