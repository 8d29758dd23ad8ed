"""Tables of cases and of anything in rows: CSV, JSON, Parquet, Excel, a DataFrame."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import date, time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from loop.core.digests import RepeatedKeyError, framed, unique_keys
from loop.core.errors import DataError
from loop.core.safe_text import quoted, unshielded
from loop.labels.importing.encodings import SAVE_AS_UTF8, FileEncoding, find_encoding
from loop.labels.importing.source import (
    Columns,
    ImportOptions,
    Source,
    SourceCase,
    cell_text,
    find_columns,
    label_columns,
    refuse_repeats,
)
from loop.labels.taxonomy import Taxonomy

if TYPE_CHECKING:
    from pandas import DataFrame

MAX_CELL = 64_000_000
"""Characters the CSV reader takes into one cell before it gives up."""


MAX_UNPACKED = 1_000_000_000
"""Bytes an Excel file may hold when its parts are unpacked."""

_NESTED = "labels"
"""Key of a JSON object whose value may be an object of labels."""


class CsvRow(NamedTuple):
    """One row of a CSV file."""

    line: int
    cells: Mapping[str, str]


def open_csv(
    path: Path,
    encoding: str,
    taxonomy: Taxonomy,
    options: ImportOptions | None = None,
) -> Source:
    """Return the cases of a CSV or TSV file; for `options` see `find_columns`.

    Raises
    ------
    DataError
        The encoding or the header is wrong; while reading, a row is.
    """
    table = _open_csv(path, encoding, path.name)
    columns = find_columns(table.header, taxonomy, f"{path.name}, line 1", options)
    return _flat_source(table, columns, "csv")


def open_jsonl(
    path: Path,
    encoding: str,
    taxonomy: Taxonomy,
    options: ImportOptions | None = None,
) -> Source:
    """Return the cases of JSON Lines or a JSON array; for `options` see `find_columns`.

    The keys of the first object are the columns; ``labels`` may be an object of its
    own.

    Raises
    ------
    DataError
        The encoding or a line is wrong.
    """
    found = find_encoding(path, encoding)
    first = next(iter_jsonl(path, found), None)
    if first is None:
        raise DataError(f"{path.name} is empty. Give one JSON object a line.")
    columns = find_columns(list(first[1]), taxonomy, first[0], options)
    return Source(
        cases=_json_cases(path, found, columns, taxonomy),
        inputs=columns.inputs,
        # One line may have null there and the next an object of labels.
        labels=taxonomy.ids if "labels" in columns.roles else tuple(columns.labels),
        files=((path.name, found.sha256),),
        columns=columns.taken,
        unused=columns.unused,
        format="jsonl",
    )


def open_parquet(
    path: Path, taxonomy: Taxonomy, options: ImportOptions | None = None
) -> Source:
    """Return the cases of a Parquet file, by batches; for `options` see `find_columns`.

    Raises
    ------
    DataError
        The file is not Parquet, or its columns are wrong.
    """
    table = _open_parquet(path, "", path.name)
    columns = find_columns(table.header, taxonomy, path.name, options)
    return _flat_source(table, columns, "parquet")


def open_excel(
    path: Path, taxonomy: Taxonomy, options: ImportOptions | None = None
) -> Source:
    """Return the cases of an Excel file, row by row; for `options` see `find_columns`.

    Raises
    ------
    DataError
        The file is not Excel's, has several sheets, or its columns are wrong.
    """
    table = _open_excel(path, "", path.name)
    columns = find_columns(table.header, taxonomy, f"{path.name}, row 1", options)
    return _flat_source(table, columns, "excel")


def open_frame(
    frame: DataFrame, taxonomy: Taxonomy, options: ImportOptions | None = None
) -> Source:
    """Return the cases of a pandas DataFrame; for `options` see `find_columns`.

    Raises
    ------
    DataError
        Its columns are wrong.
    """
    table = frame_table(frame)
    columns = find_columns(table.header, taxonomy, table.name, options)
    return _flat_source(table, columns, "dataframe")


def frame_table(frame: DataFrame) -> SourceTable:
    """Return a pandas DataFrame as a table.

    An index with a name is a column; one without is no id. What pandas calls missing
    is an empty cell, a time its words. The digest is over columns and cells in their
    order, so that the same content gives the same.
    """
    # Takes a third of a second; whoever has a frame has loaded it.
    import pandas as pd

    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    header = tuple(map(str, frame.columns))

    def read(columns: Collection[str]) -> Iterator[SourceRow]:
        for number, cells in enumerate(frame.itertuples(index=False, name=None), 1):
            plain = (_plain_cell(cell, pd.NA, pd.NaT) for cell in cells)
            where = f"DataFrame, row {number}"
            yield SourceRow(where, dict(zip(header, plain, strict=True)))

    digest = hashlib.sha256(framed(header))
    for row in read(header):
        digest.update(framed([repr(cell) for cell in row.cells.values()]))
    return SourceTable(
        name="DataFrame", header=header, read=read, sha256=digest.hexdigest()
    )


def _plain_cell(cell: object, *missing: object) -> object:
    """Return a cell of a frame as Python's own kind; a missing one as None."""
    if cell is None or any(cell is one for one in missing):
        return None
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, float) and cell != cell:
        return None
    return _plain(cell) if isinstance(cell, (bool, date, time)) else cell


class SourceRow(NamedTuple):
    """One row of a table."""

    where: str
    """Where it is, for messages: ``"model_a.csv, line 7"``."""

    cells: Mapping[str, object]

    def text(self, column: str) -> str:
        """Return a cell as trimmed text; empty where it is missing.

        Raises
        ------
        DataError
            The cell holds a list, an object or bytes.
        """
        return cell_text(self.cells.get(column), column, self.where).strip()


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

    def require(self, columns: Sequence[str]) -> None:
        """Refuse a table without one of `columns`.

        Raises
        ------
        DataError
            One is not there; names those and all that are needed.
        """
        missing = [name for name in columns if name not in self.header]
        if missing:
            raise DataError(
                f"{self.name}: no column {', '.join(missing)}. The columns must be "
                f"{','.join(columns)}."
            )


def open_table(
    path: Path, encoding: str = "auto", name: str = "", *, other: str = ""
) -> SourceTable:
    """Return a CSV, TSV, JSON, Parquet or Excel file as a table, by its suffix.

    A folder of shards that ``ranloop annotate`` made is one table, too.

    In messages it is called `name`, else by the name of the file. A file with another
    suffix is read as one with the suffix `other`, else refused.

    Raises
    ------
    DataError
        There is no such file, its format or encoding is unknown, or a column
        appears twice.
    """
    # Not `Path.exists`: it raises where a folder above may not be entered.
    if not os.path.exists(path):
        raise DataError(f"{path} does not exist. Check the path.")
    opened = _BY_SUFFIX.get(path.suffix.lower()) or _BY_SUFFIX.get(other)
    if os.path.isfile(path / ANNOTATION):
        opened = _open_shards
    elif opened is None or os.path.isdir(path):
        raise DataError(
            f"{path}: cannot be read as a table. Give a file whose name ends with one "
            f"of {', '.join(_BY_SUFFIX)}, or a folder that `ranloop annotate` made."
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
        for where, line in iter_jsonl(path, found, name):
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
            f"{where}: {quoted(min(twice))} appears both in {_NESTED} and beside it. "
            "Keep one of the two."
        )
    return {**{key: line[key] for key in line if key != _NESTED}, **nested}


def _open_parquet(path: Path, encoding: str, name: str) -> SourceTable:
    header, sha256 = _read_parquet_header(path), digest_file(path)

    def read(columns: Collection[str]) -> Iterator[SourceRow]:
        for number, cells in iter_parquet(path, columns):
            yield SourceRow(f"{name}, row {number}", cells)

    return SourceTable(name=name, header=tuple(header), read=read, sha256=sha256)


ANNOTATION: Final = "_annotation.json"
"""Manifest of a folder of shards; named so that readers of Parquet pass over it."""

COMPLETE: Final = "_SUCCESS"
"""There once every shard is; holds the sha256 of the manifest."""


def _open_shards(path: Path, encoding: str, name: str) -> SourceTable:
    raw = read_annotation(path)
    files = []
    header: list[str] = []
    for one in json.loads(raw)["shards"]:
        files.append(path / one["file"])
        check_shard(files[-1], one["sha256"])
        header = _read_parquet_header(files[-1])

    def read(columns: Collection[str]) -> Iterator[SourceRow]:
        for file in files:
            for number, cells in iter_parquet(file, columns):
                yield SourceRow(f"{name}, {file.name}, row {number}", cells)

    digest = hashlib.sha256(raw).hexdigest()
    return SourceTable(name=name, header=tuple(header), read=read, sha256=digest)


def read_annotation(folder: Path) -> bytes:
    """Return the manifest of an annotation that is complete and unchanged.

    Raises
    ------
    DataError
        There is none, it is not complete, or its manifest was changed.
    """
    path, success = folder / ANNOTATION, folder / COMPLETE
    if not path.is_file():
        raise DataError(
            f"{folder} holds no annotation. Name a folder that `ranloop annotate` made."
        )
    if not success.is_file():
        raise DataError(
            f"the annotation in {folder} is not complete. Give its command again: it "
            "goes on where it was."
        )
    raw = path.read_bytes()
    if success.read_text("ascii", "replace").strip() != hashlib.sha256(raw).hexdigest():
        raise DataError(f"{path} was changed. Restore it, or annotate again.")
    return raw


def check_shard(path: Path, sha256: str) -> None:
    """Refuse a shard that is not what the manifest says.

    Raises
    ------
    DataError
        It is missing or was changed.
    """
    try:
        found = digest_file(path)
    except OSError as error:
        raise DataError(
            f"{path} is missing. Give the command of the annotation again."
        ) from error
    if found != sha256:
        raise DataError(
            f"{path} was changed. Remove it, and give the command of the annotation "
            "again."
        )


def digest_file(path: Path) -> str:
    """Return the sha256 of a file, which may be larger than memory."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _open_excel(path: Path, encoding: str, name: str) -> SourceTable:
    try:
        digest = digest_file(path)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error
    header = next((row for _, row in _excel_rows(path)), [])
    while header and header[-1] is None:
        header.pop()
    if not header:
        raise DataError(f"{name} is empty. Give a header, then one case a row.")
    names = tuple("" if cell is None else str(cell).strip() for cell in header)

    def read(columns: Collection[str]) -> Iterator[SourceRow]:
        rows = _excel_rows(path)
        next(rows)
        for number, cells in rows:
            if any(cell is not None for cell in cells[len(names) :]):
                raise DataError(
                    f"{name}, row {number}: a cell right of the last column that has "
                    "a name. Name its column, or remove it."
                )
            if any(cell is not None for cell in cells):
                filled = [*cells, *[None] * len(names)]
                yield SourceRow(
                    f"{name}, row {number}", dict(zip(names, filled, strict=False))
                )

    return SourceTable(name=name, header=names, read=read, sha256=digest)


def _excel_rows(path: Path) -> Iterator[tuple[int, list[object]]]:
    """Yield number and cells of each row; of a formula its value, of a date its words.

    Raises
    ------
    DataError
        The file is damaged, is larger than `MAX_UNPACKED`, or has several sheets.
    """
    # Takes a sixth of a second, and few tables are Excel's.
    from openpyxl import load_workbook

    again = "Save it again as .xlsx, or give CSV."
    try:
        with zipfile.ZipFile(path) as parts:
            unpacked = sum(part.file_size for part in parts.infolist())
        if unpacked > MAX_UNPACKED:
            raise DataError(
                f"{path.name} unpacks to {unpacked:,} bytes, and at most "
                f"{MAX_UNPACKED:,} are read. Give CSV or Parquet."
            )
        with closing(load_workbook(path, read_only=True, data_only=True)) as book:
            sheets = book.worksheets
            if len(sheets) != 1:
                raise DataError(
                    f"{path.name} has {len(sheets)} sheets. Keep the one that is to "
                    "be read, or save it as CSV."
                )
            # What a file says of its own size may be wrong.
            sheets[0].reset_dimensions()
            for number, row in enumerate(sheets[0].iter_rows(values_only=True), 1):
                yield number, [_plain(cell) for cell in row]
    except DataError:
        raise
    # A damaged part ends in anything: zlib, XML, a missing key, an unknown method.
    except Exception as error:
        raise DataError(f"{path.name} cannot be read as Excel. {again}") from error


def _plain(cell: object) -> object:
    """Return a cell as text or a number; True and False as their words."""
    from openpyxl.utils.escape import unescape

    if isinstance(cell, str):
        return unescape(cell)
    if isinstance(cell, bool):
        return str(cell)
    return cell.isoformat() if isinstance(cell, (date, time)) else cell


_BY_SUFFIX: Mapping[str, Callable[[Path, str, str], SourceTable]] = {
    ".csv": _open_csv,
    ".tsv": _open_csv,
    ".json": _open_jsonl,
    ".jsonl": _open_jsonl,
    ".ndjson": _open_jsonl,
    ".parquet": _open_parquet,
    ".pq": _open_parquet,
    ".xlsx": _open_excel,
}


def _read_parquet_header(path: Path) -> list[str]:
    """Return the column names of a Parquet file.

    Raises
    ------
    DataError
        It cannot be read, or is not Parquet.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return list(pq.read_schema(path).names)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(
            f"{path} cannot be read as Parquet. Export it again, or give CSV."
        ) from error


def read_header(path: Path, encoding: str) -> list[str]:
    """Return the stripped column names of a CSV file.

    Raises
    ------
    DataError
        The file is empty.
    """
    with csv_rows(path, encoding) as rows:
        return [name.strip() for name in next(rows)[1]]


def iter_csv(path: Path, encoding: str) -> Iterator[CsvRow]:
    """Yield the rows of a CSV file; blank lines are skipped.

    An apostrophe that a cell got so that no spreadsheet runs it is taken away.

    Raises
    ------
    DataError
        A row has too many or too few cells, or a quote is never closed.
    """
    with csv_rows(path, encoding) as rows:
        header = [name.strip() for name in next(rows)[1]]
        for line, cells in rows:
            if not any(cells):
                continue
            if len(cells) != len(header):
                raise DataError(
                    f"{path.name}, line {line}: {len(cells)} cells, the header has "
                    f"{len(header)}. Put texts with commas or line breaks in quotes."
                )
            plain = map(unshielded, cells)
            yield CsvRow(line, dict(zip(header, plain, strict=True)))


@contextmanager
def csv_rows(path: Path, encoding: str) -> Iterator[Iterator[tuple[int, list[str]]]]:
    """Open a CSV file: ``(first line, cells)`` pairs, the header first.

    Raises
    ------
    DataError
        The file is empty, cannot be decoded or is not CSV.
    """
    limit = csv.field_size_limit(MAX_CELL)
    try:
        with path.open(encoding=encoding, newline="") as stream:
            yield _numbered(stream, path)
    except UnicodeError as error:
        raise DataError(
            f"{path} is not {encoding} throughout. {SAVE_AS_UTF8}"
        ) from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error
    finally:
        csv.field_size_limit(limit)


def _numbered(stream: Iterator[str], path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield rows with the line they begin on."""
    first = next(stream, "")
    if not first.strip():
        raise DataError(f"{path} is empty. Give a header, then one row a line.")
    delimiter = max(",\t;", key=first.count)
    rows = csv.reader(_chain(first, stream), delimiter=delimiter, strict=True)
    start = 1
    try:
        for cells in rows:
            yield start, cells
            start = rows.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{path.name}, the row that begins on line {start}: not CSV, or a quote "
            "is never closed. Double the quotes inside a quoted text."
        ) from error


def _chain(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def iter_jsonl(
    path: Path, encoding: FileEncoding, name: str = ""
) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield where it is and the object, for each line or each item of an array.

    Blank lines are skipped. A file that begins with a bracket is an array, which is
    read as a whole.

    Parameters
    ----------
    name
        What the file is called in messages, if otherwise than by its name.

    Raises
    ------
    DataError
        A line cannot be decoded, or a line or an item is not a JSON object.
    """
    number, name = 0, name or path.name
    try:
        with path.open(encoding=encoding.name, newline="\n") as stream:
            begun = False
            for number, line in enumerate(stream, 1):
                if not begun and line.lstrip()[:1] == "[":
                    yield from _array_items(line + stream.read(), name, number)
                    return
                if line.strip():
                    begun, where = True, f"{name}, line {number}"
                    yield where, _json_object(line, where)
    except UnicodeError as error:
        raise DataError(
            f"{path.name}, after line {number}: not {encoding.name}. {SAVE_AS_UTF8}"
        ) from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error


_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(object_pairs_hook=unique_keys)


def _array_items(
    text: str, name: str, line: int
) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield where it is and the object of each item of a JSON array.

    One item is taken apart at a time: of a large file the text is in memory and no
    second copy of it.
    """

    def skip(place: int) -> int:
        found = _SPACE.match(text, place)
        return found.end() if found else place

    def refuse(place: int) -> DataError:
        at = line + text.count("\n", 0, place)
        return DataError(
            f"{name}, line {at}: not a valid JSON array. Give objects between commas, "
            "in one pair of brackets, and nothing after it."
        )

    place, number = skip(skip(0) + 1), 0
    more = text[place : place + 1] != "]"
    while more:
        number += 1
        where = f"{name}, item {number}"
        data, place = _decode(text, place, where)
        yield where, _require_object(data, where)
        place = skip(place)
        more = text[place : place + 1] == ","
        if more:
            place = skip(place + 1)
    if text[place : place + 1] != "]":
        raise refuse(place)
    end = skip(place + 1)
    if end < len(text):
        raise refuse(end)


def _json_object(line: str, where: str) -> Mapping[str, object]:
    start = len(line) - len(line.lstrip(" \t\r\n"))
    data, end = _decode(line, start, where)
    if line[end:].strip():
        raise DataError(
            f"{where}, column {end + 1}: not valid JSON. Give one JSON object a line."
        )
    return _require_object(data, where)


def _decode(text: str, start: int, where: str) -> tuple[object, int]:
    """Return the JSON value that begins at `start`, and where it ends."""
    try:
        return _DECODER.raw_decode(text, start)
    except RepeatedKeyError as error:
        raise DataError(
            f"{where}: a key appears twice in one object. Keep one of the two."
        ) from error
    except (ValueError, RecursionError) as error:
        at = (
            f", column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        )
        raise DataError(
            f"{where}{at}: not valid JSON. Give one JSON object a line, or an array "
            "of objects."
        ) from error


def _require_object(data: object, where: str) -> Mapping[str, object]:
    if not isinstance(data, dict):
        raise DataError(f"{where}: not a JSON object. Give one object a line.")
    return data


def _json_cases(
    path: Path, encoding: FileEncoding, columns: Columns, taxonomy: Taxonomy
) -> Iterator[SourceCase]:
    known = {*columns.roles.values(), *columns.labels.values(), *columns.unused}
    for where, row in iter_jsonl(path, encoding):
        extra = row.keys() - known
        nameless = "case_id" in columns.roles and columns.roles["case_id"] not in row
        if extra or nameless:
            names = ", ".join(map(quoted, sorted(extra)[:5]))
            raise DataError(
                f"{where}: the keys differ from those of the first line"
                f"{' (new: ' + names + ')' if names else ' (no case id)'}. Give every "
                "line the same keys."
            )
        yield _with_nested(columns, row, where, taxonomy)


def _with_nested(
    columns: Columns, row: Mapping[str, object], where: str, taxonomy: Taxonomy
) -> SourceCase:
    """Return a row as a case, with the labels of a ``labels`` object spread out."""
    nested = row.get(columns.roles.get("labels", ""))
    if nested is None:
        return columns.case(row, where)
    if not isinstance(nested, dict):
        raise DataError(f"{where}: labels is not an object. Give label: value pairs.")
    names = label_columns(nested, taxonomy, where, all_of=True)
    twice = names.keys() & columns.labels.keys()
    if twice:
        raise DataError(
            f"{where}: label {min(twice)} appears both in labels and as a column. Keep "
            "one of the two."
        )
    spread = replace(columns, labels={**columns.labels, **names})
    return spread.case({**row, **nested}, where)


def _flat_source(table: SourceTable, columns: Columns, kind: str) -> Source:
    """Return the cases of a table in which no column nests labels: only JSON does."""
    nested = columns.roles.get(_NESTED)
    roles = {role: name for role, name in columns.roles.items() if role != _NESTED}
    columns = replace(columns, roles=roles)
    wanted = {*columns.roles.values(), *columns.labels.values()}
    return Source(
        cases=(columns.case(row.cells, row.where) for row in table.read(wanted)),
        inputs=columns.inputs,
        labels=tuple(columns.labels),
        files=((table.name, table.sha256),),
        columns=columns.taken,
        unused=(*columns.unused, *([nested] if nested else [])),
        format=kind,
    )


def iter_parquet(
    path: Path, columns: Collection[str]
) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield number and cells of each row, of these columns only.

    Raises
    ------
    DataError
        The file is damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=2048, columns=list(columns)):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{path.name}, after row {number}: the file is damaged. Export it again."
        ) from error
