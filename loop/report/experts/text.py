"""A meta-evaluation as a Markdown document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loop import __version__
from loop.report.experts import words
from loop.report.experts.words import MetaDocument
from loop.report.templates import render_template, shipped_templates


def render_meta_markdown(
    document: MetaDocument, *, templates: Path | None = None
) -> str:
    """Return the meta-evaluation as Markdown.

    The document holds numbers, ids and digests, never the text of a case.

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
    folder = templates or shipped_templates()
    return render_template(folder, "meta_eval.md.jinja", variables(document))


def variables(document: MetaDocument) -> dict[str, Any]:
    """Return what both templates may use."""
    result = document.result
    return {
        "document": document,
        "result": result,
        "extent": words.extent(result),
        "headline": words.headline(result),
        "ceiling": words.ceiling(result),
        "remarks": {one.metric.name: words.remarks(one) for one in result.metrics},
        "titles": {one.metric.name: one.metric.title for one in result.metrics},
        "against_best": words.against_best(result),
        "left_out": words.left_out(result),
        "method": words.method(result),
        "p": words.optional_p,
        "version": __version__,
    }
