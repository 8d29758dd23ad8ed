"""A folder of text files, one report each, in the manner of MIMIC-CXR.

``files/p10/p10000032/s50414267.txt``: the case id is the file name, the patient the
nearest ``p`` folder with at least six digits; any other tree of ``.txt`` files works.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from loop.core.errors import DataError
from loop.labels.importing.encodings import decode_text
from loop.labels.importing.report_sections import split_sections
from loop.labels.importing.source import Source, SourceCase, check_length

_PATIENT = re.compile(r"p\d{6,}")


def open_folder(folder: Path, encoding: str) -> Source:
    """Return the cases of a folder of ``.txt`` files, subfolders included.

    Raises
    ------
    DataError
        There are none, or a file cannot be read.
    """
    files = sorted(_text_files(folder))
    if not files:
        raise DataError(
            f"{folder} holds no .txt file. Name the folder with the reports in it."
        )
    return Source(
        cases=(_read_case(path, folder, encoding) for path in files), format="mimic"
    )


def _text_files(folder: Path) -> Iterator[Path]:
    """Yield the text files below `folder`, without hidden ones."""

    def refuse(error: OSError) -> None:
        raise DataError(
            f"cannot read folder {error.filename}: {error.strerror}. Make it readable; "
            "its reports would be missing."
        ) from error

    for root, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        _refuse_links(Path(root), folders)
        for name in names:
            if name.lower().endswith(".txt") and not name.startswith("."):
                yield _require_file(Path(root) / name)


def _require_file(path: Path) -> Path:
    """Refuse what is no file of this folder: a linked one may be anybody's."""
    if path.is_symlink():
        raise DataError(
            f"{path} is a link, which is not followed: it may lead out of the folder. "
            "Put the file itself there, or remove the link."
        )
    if not path.is_file():
        raise DataError(f"{path} is no file that can be read. Remove it.")
    return path


def _refuse_links(root: Path, folders: list[str]) -> None:
    """Refuse linked folders: not followed, their reports would be missing."""
    for name in folders:
        if (root / name).is_symlink():
            raise DataError(
                f"{root / name} is a link to a folder, which is not followed: its "
                "reports would be missing. Put the folder itself there, or remove "
                "the link."
            )


def _read_case(path: Path, folder: Path, encoding: str) -> SourceCase:
    where = path.relative_to(folder)
    try:
        report = decode_text(path.read_bytes(), path, encoding)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error
    check_length(report, str(where))
    sections = split_sections(report)
    patients = [p.name for p in where.parents if _PATIENT.fullmatch(p.name)]
    return SourceCase(
        where=str(where),
        case_id=path.stem,
        text=sections.text,
        patient=patients[0] if patients else "",
        exam=sections.exam,
    )
