"""Tables of any format: a header, and rows that know where they stand."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from loop.core.errors import DataError
from loop.labels.importing.columns import refuse_repeats
from loop.labels.importing.encodings import find_encoding
from loop.labels.importing.table import (
    iter_csv,
    iter_jsonl,
    iter_parquet,
    read_header,
    read_parquet_header,
)

_NESTED = "labels"
"""Key of a JSON object whose value may be an object of labels."""


class SourceRow(NamedTuple):
    """One row of a table."""

    where: str
    """Where it stands, for messages: ``"model_a.csv, line 7"``."""

    cells: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable:
    """A table that was opened: its header is known, its rows are read on demand."""

    name: str
    """For messages, for example ``"model_a.csv"``."""

    header: tuple[str, ...]
    read: Callable[[Collection[str]], Iterator[SourceRow]]
    """Yields every row with at least these columns; raises `DataError` where the file
    is wrong."""

    sha256: str = ""
    """Digest of the file; empty for a table in memory."""


def open_table(path: Path, encoding: str = "auto", name: str = "") -> SourceTable:
    """Return a CSV, TSV, JSON Lines or Parquet file as a table, by its suffix.

    In messages it is called `name`, else by the name of the file.

    Raises
    ------
    DataError
        There is no such file, its format or encoding is unknown, or a column stands
        twice.
    """
    # Not `Path.exists`: it raises where a folder above may not be entered.
    if not os.path.exists(path):
        raise DataError(f"{path} does not exist. Check the path.")
    opened = _BY_SUFFIX.get(path.suffix.lower())
    if opened is None or os.path.isdir(path):
        raise DataError(
            f"{path}: cannot be read as a table. Give a file whose name ends with one "
            f"of {', '.join(_BY_SUFFIX)}."
        )
    table = opened(path, encoding, name or path.name)
    refuse_repeats(table.header, table.name)
    return table


def _open_csv(path: Path, encoding: str, name: str) -> SourceTable:
    found = find_encoding(path, encoding)

    def read(columns: Collection[str]) -> Iterator[SourceRow]:
        for row in iter_csv(path, found.name):
            yield SourceRow(f"{name}, line {row.line}", row.cells)

    header = tuple(read_header(path, found.name))
    return SourceTable(name=name, header=header, read=read, sha256=found.sha256)


def _open_jsonl(path: Path, encoding: str, name: str) -> SourceTable:
    """Open JSON Lines; a key of any line is a column, and so is a nested label."""
    found = find_encoding(path, encoding)

    def read(columns: Collection[str]) -> Iterator[SourceRow]:
        for number, line in iter_jsonl(path, found):
            where = f"{name}, line {number}"
            yield SourceRow(where, _flat(line, where))

    header = tuple(dict.fromkeys(key for row in read(()) for key in row.cells))
    if not header:
        raise DataError(f"{name} is empty. Give one JSON object a line.")
    return SourceTable(name=name, header=header, read=read, sha256=found.sha256)


def _flat(line: Mapping[str, object], where: str) -> Mapping[str, object]:
    """Return a line with the labels of a ``labels`` object spread out."""
    nested = line.get(_NESTED)
    if not isinstance(nested, dict):
        return line
    twice = nested.keys() & line.keys()
    if twice:
        raise DataError(
            f"{where}: {min(twice)[:60]!r} appears both in {_NESTED} and beside it. "
            "Keep one of the two."
        )
    return {**{key: line[key] for key in line if key != _NESTED}, **nested}


def _open_parquet(path: Path, encoding: str, name: str) -> SourceTable:
    header, sha256 = read_parquet_header(path)

    def read(columns: Collection[str]) -> Iterator[SourceRow]:
        for number, cells in iter_parquet(path, columns):
            yield SourceRow(f"{name}, row {number}", cells)

    return SourceTable(name=name, header=tuple(header), read=read, sha256=sha256)


_BY_SUFFIX: Mapping[str, Callable[[Path, str, str], SourceTable]] = {
    ".csv": _open_csv,
    ".tsv": _open_csv,
    ".jsonl": _open_jsonl,
    ".ndjson": _open_jsonl,
    ".parquet": _open_parquet,
    ".pq": _open_parquet,
}
