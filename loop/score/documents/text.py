"""A score as Markdown, and its errors as a table."""

from __future__ import annotations

from pathlib import Path

from loop.core.safe_text import format_csv
from loop.documents.tables import neutralise
from loop.documents.templates import render_template, shipped_templates
from loop.score.documents.document import ScoreDocument
from loop.score.documents.view import document_variables


def render_score_markdown(
    document: ScoreDocument, *, templates: Path | None = None
) -> str:
    """Return the score as a Markdown document.

    Raises
    ------
    DataError
        The template is missing or wrong.
    """
    folder = templates or shipped_templates()
    return render_template(folder, "score.md.jinja", document_variables(document))


def render_errors_csv(document: ScoreDocument) -> str:
    """Return one row per case, system and label that is missed or invented.

    Ids and labels only, safe to open in a spreadsheet.
    """
    rows = [
        [neutralise(cell) for cell in (case.case_id, case.system, label, error)]
        for case in document.score.cases
        for error, labels in (("missed", case.missed), ("invented", case.invented))
        for label in labels
    ]
    return format_csv(("id", "system", "label", "error"), rows)
