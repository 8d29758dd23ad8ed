"""The documents of a score, and the folder that they are written to as one."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from markupsafe import Markup

from loop.core.digests import digest_bytes
from loop.core.errors import DataError
from loop.core.files import (
    folder_beside,
    replace_folder,
    write_atomic,
    write_error,
)
from loop.core.safe_text import format_csv
from loop.documents.charts import Grid, GridCell, tint_colour, tint_percent
from loop.documents.svg import DARK, LIGHT
from loop.documents.tables import neutralise
from loop.documents.templates import render_template, shipped_templates
from loop.score.documents.data import score_data
from loop.score.documents.view import (
    differences_figure,
    document_variables,
    figure_files,
    ranking_figure,
)
from loop.score.metrics.score_sheet import format_per_case
from loop.score.scoring import ScoreDocument


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


FIGURES = "figures"
_OWN = ("score.html", "score.md", "scores.json", "per_case.csv", "errors.csv", FIGURES)


def render_files(
    document: ScoreDocument, *, templates: Path | None = None
) -> Mapping[str, bytes]:
    """Return the content of every file by its path within the folder.

    Raises
    ------
    DataError
        A template is missing or wrong.
    """
    texts = {
        "score.html": render_score_html(document, templates=templates),
        "score.md": render_score_markdown(document, templates=templates),
        "errors.csv": render_errors_csv(document),
        **{f"{FIGURES}/{name}": one for name, one in figure_files(document).items()},
    }
    files = {name: text.encode("utf-8") for name, text in texts.items()}
    files["per_case.csv"] = format_per_case(document.sheet)
    beside = [
        {"name": name, "sha256": digest_bytes(files[name])} for name in sorted(files)
    ]
    data = {**score_data(document), "written_beside": beside}
    text = json.dumps(data, ensure_ascii=False, indent=2) + "\n"
    return {**files, "scores.json": text.encode("utf-8")}


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be made, or holds what no earlier score left there.

    Raises
    ------
    DataError
        It is a file, or holds files of someone else.
    WriteError
        Nothing can be written where it is to lie.
    """
    if not folder.exists():
        _try_to_write(folder)
        return
    if not folder.is_dir():
        raise DataError(f"{folder} is a file. Name a folder for the documents.")
    strange = sorted(one.name for one in folder.iterdir() if one.name not in _OWN)
    if strange:
        raise DataError(
            f"{folder} holds other files, for example {strange[0]!r}, which are not "
            "touched. Name a new folder, or one with the documents of a score."
        )
    _try_to_write(folder)


def _try_to_write(folder: Path) -> None:
    """Make and remove a folder beside `folder`: permissions tell too little."""
    target = folder.resolve()
    beside = next(one for one in target.parents if one.exists())
    try:
        os.rmdir(tempfile.mkdtemp(dir=beside, prefix=f".{target.name}."))
    except OSError as error:
        raise write_error(folder, error) from error


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write `files` as the folder `folder`: all of them, or none.

    The documents of an earlier score there are replaced as a whole; killed in between,
    they lie beside it under a name that begins with a dot.

    Raises
    ------
    DataError
        The folder holds files of someone else.
    WriteError
        It cannot be written; what was there before is unchanged.
    """
    check_folder(folder)
    target = folder.resolve()
    with folder_beside(target) as building:
        for name, data in files.items():
            write_atomic(building / name, data)
        building.chmod(0o755)
        replace_folder(building, target)
