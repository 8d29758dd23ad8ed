"""The documents of ``score``: checked before anything is asked, written at the end."""

from __future__ import annotations

from pathlib import Path

from loop.cli.console import note, own_output
from loop.core.paths import Workspace
from loop.report.score.document import ScoreDocument
from loop.report.score.files import check_folder, render_files, write_folder
from loop.report.templates import shipped_templates, template_folder


def check_out(out: Path, place: Workspace | None) -> None:
    """Refuse a folder that documents must not be written to.

    Raises
    ------
    DataError
        It is the workspace's own, or holds files of someone else.
    """
    if place is not None:
        own_output(out, place)
    check_folder(out)


def write_documents(
    document: ScoreDocument, out: Path, place: Workspace | None
) -> None:
    """Write all documents, figures and tables, or none of them, and say so.

    Raises
    ------
    WriteError
        The folder cannot be written.
    """
    templates = template_folder(place) if place else shipped_templates()
    if not (templates / "score.html.jinja").is_file():
        # A workspace whose own templates are older than this document.
        templates = shipped_templates()
    files = render_files(document, templates=templates)
    write_folder(out, files)
    note(f"wrote {len(files)} files to {out}, first of all {out / 'score.html'}")
