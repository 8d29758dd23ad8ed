"""The folder that a score writes: every file rendered first, then put in place."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from loop.core.digests import digest_bytes
from loop.core.errors import DataError
from loop.core.files import make_folder, sync_folder, write_atomic, write_error
from loop.score.documents.data import score_data
from loop.score.documents.document import ScoreDocument
from loop.score.documents.figures import figure_files
from loop.score.documents.html import render_score_html
from loop.score.documents.text import render_errors_csv, render_score_markdown
from loop.score.metrics.sheet import format_per_case

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
    make_folder(target.parent)
    try:
        building = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    except OSError as error:
        raise write_error(folder, error) from error
    try:
        for name, data in files.items():
            write_atomic(building / name, data)
        building.chmod(0o755)
        _put(building, target)
    except OSError as error:
        raise write_error(folder, error) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _put(building: Path, target: Path) -> None:
    """Move `building` to `target`, exchanging it with what an earlier score left."""
    if target.exists():
        aside = building.with_name(f"{building.name}.old")
        os.rename(target, aside)
        try:
            os.rename(building, target)
        except OSError:
            os.rename(aside, target)
            raise
        shutil.rmtree(aside, ignore_errors=True)
    else:
        os.rename(building, target)
    sync_folder(target.parent)
