"""Which importer reads a source."""

from __future__ import annotations

import os
from pathlib import Path

from loop.core.errors import DataError
from loop.labels.importing.columns import NAMED_BY
from loop.labels.importing.encodings import find_encoding
from loop.labels.importing.mimic import open_folder
from loop.labels.importing.openi import is_openi, open_openi, read_mesh_crosswalk
from loop.labels.importing.source import ImportOptions, Source
from loop.labels.importing.table import (
    open_csv,
    open_excel,
    open_jsonl,
    open_parquet,
    read_header,
)
from loop.labels.taxonomy import read_taxonomy

FORMATS = ("csv", "jsonl", "parquet", "excel", "openi", "mimic")
_BY_SUFFIX = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".xlsx": "excel",
}


def open_source(path: Path, options: ImportOptions, labels_folder: Path) -> Source:
    """Return `path` opened with the importer that `options` names, or that fits.

    Raises
    ------
    DataError
        There is no such file, its format is unknown, or its header is wrong.
    """
    # Not `Path.exists`: it raises where a folder above may not be entered.
    if not os.path.exists(path):
        raise DataError(
            f"{path} does not exist, or a folder above it may not be entered. Check "
            "the path."
        )
    taxonomy = read_taxonomy(labels_folder)
    kind = options.format if options.format != "auto" else _guess(path, options)
    if options.columns and kind in ("mimic", "openi"):
        asked = ", ".join(NAMED_BY[role] for role in options.columns)
        raise DataError(
            f"{path}: {asked} is for tables, and this is read as {kind}. Leave it out, "
            "or for a CSV file name --format csv."
        )
    if kind == "mimic":
        return open_folder(path, options.encoding)
    if kind == "openi":
        crosswalk = read_mesh_crosswalk(labels_folder, taxonomy)
        return open_openi(path, options.encoding, taxonomy, crosswalk)
    if kind == "parquet":
        return open_parquet(path, taxonomy, options.columns)
    if kind == "excel":
        return open_excel(path, taxonomy, options.columns)
    if kind == "jsonl":
        return open_jsonl(path, options.encoding, taxonomy, options.columns)
    if kind == "csv":
        return open_csv(path, options.encoding, taxonomy, options.columns)
    raise DataError(f"no format {kind[:40]!r}. Use one of auto, {', '.join(FORMATS)}.")


def _guess(path: Path, options: ImportOptions) -> str:
    if path.is_dir():
        return "mimic"
    kind = _BY_SUFFIX.get(path.suffix.lower(), "")
    if not kind:
        raise DataError(
            f"{path}: cannot tell its format from its name. Name it with --format "
            f"({', '.join(FORMATS)}), or give a folder of .txt files."
        )
    if kind == "csv":
        encoding = find_encoding(path, options.encoding).name
        return "openi" if is_openi(read_header(path, encoding)) else "csv"
    return kind
