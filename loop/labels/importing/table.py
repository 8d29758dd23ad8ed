"""Tables: CSV, JSON Lines and Parquet with one case a row."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from loop.core.entries import RepeatedKeyError, unique_keys
from loop.core.errors import DataError
from loop.labels.importing.columns import Columns, find_columns, label_columns
from loop.labels.importing.encodings import FileEncoding, find_encoding
from loop.labels.importing.source import Source, SourceCase
from loop.labels.taxonomy import Taxonomy

MAX_CELL = 64_000_000
"""Characters the CSV reader takes into one cell before it gives up."""


class CsvRow(NamedTuple):
    """One row of a CSV file."""

    line: int
    cells: Mapping[str, str]


def open_csv(
    path: Path,
    encoding: str,
    taxonomy: Taxonomy,
    named: Mapping[str, str] | None = None,
) -> Source:
    """Return the cases of a CSV or TSV file; for `named` see `find_columns`.

    Raises
    ------
    DataError
        The encoding or the header is wrong; while reading, a row is.
    """
    found = find_encoding(path, encoding)
    header = read_header(path, found.name)
    columns = find_columns(header, taxonomy, f"{path.name}, line 1", named)
    return Source(
        cases=_csv_cases(path, found.name, columns),
        labels=tuple(columns.labels),
        files=((path.name, found.sha256),),
        unused=_unused(columns),
        format="csv",
    )


def open_jsonl(
    path: Path,
    encoding: str,
    taxonomy: Taxonomy,
    named: Mapping[str, str] | None = None,
) -> Source:
    """Return the cases of a JSON Lines file; for `named` see `find_columns`.

    The keys of the first line are the columns; ``labels`` may be an object of its own.

    Raises
    ------
    DataError
        The encoding or a line is wrong.
    """
    found = find_encoding(path, encoding)
    first = next(iter_jsonl(path, found), None)
    if first is None:
        raise DataError(f"{path.name} is empty. Give one JSON object a line.")
    where = f"{path.name}, line {first[0]}"
    columns = find_columns(list(first[1]), taxonomy, where, named)
    return Source(
        cases=_json_cases(path, found, columns, taxonomy),
        # One line may have null there and the next an object of labels.
        labels=taxonomy.ids if "labels" in columns.roles else tuple(columns.labels),
        files=((path.name, found.sha256),),
        unused=columns.unused,
        format="jsonl",
    )


def open_parquet(
    path: Path, taxonomy: Taxonomy, named: Mapping[str, str] | None = None
) -> Source:
    """Return the cases of a Parquet file, by batches; for `named` see `find_columns`.

    Raises
    ------
    DataError
        The file is not Parquet, or its columns are wrong.
    """
    header, digest = read_parquet_header(path)
    columns = find_columns(header, taxonomy, path.name, named)
    return Source(
        cases=_parquet_cases(path, columns),
        labels=tuple(columns.labels),
        files=((path.name, digest),),
        unused=_unused(columns),
        format="parquet",
    )


def read_parquet_header(path: Path) -> tuple[list[str], str]:
    """Return the column names of a Parquet file, and its sha256.

    Raises
    ------
    DataError
        It cannot be read, or is not Parquet.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return list(pq.read_schema(path).names), digest
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
            yield CsvRow(line, dict(zip(header, cells, strict=True)))


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
            f"{path} is not {encoding} throughout. Name the right encoding with "
            "--encoding, or convert it to UTF-8."
        ) from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error
    finally:
        csv.field_size_limit(limit)


def _numbered(stream: Iterator[str], path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield rows with the line they begin on."""
    first = next(stream, "")
    if not first.strip():
        raise DataError(f"{path} is empty. Give a header line and one case a line.")
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


def _csv_cases(path: Path, encoding: str, columns: Columns) -> Iterator[SourceCase]:
    for row in iter_csv(path, encoding):
        yield columns.case(row.cells, f"{path.name}, line {row.line}")


def iter_jsonl(
    path: Path, encoding: FileEncoding
) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield line number and object of each line; blank lines are skipped.

    Raises
    ------
    DataError
        A line cannot be decoded, or is not a JSON object.
    """
    number = 0
    try:
        with path.open(encoding=encoding.name, newline="\n") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield number, _json_object(line, f"{path.name}, line {number}")
    except UnicodeError as error:
        raise DataError(
            f"{path.name}, after line {number}: not {encoding.name}. Name the right "
            "encoding with --encoding, or convert it to UTF-8."
        ) from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error


def _json_object(line: str, where: str) -> Mapping[str, object]:
    try:
        data = json.loads(line, object_pairs_hook=unique_keys)
    except RepeatedKeyError as error:
        raise DataError(
            f"{where}: a key appears twice in one object. Keep one of the two."
        ) from error
    except (ValueError, RecursionError) as error:
        at = (
            f", column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        )
        raise DataError(
            f"{where}{at}: not valid JSON. Give one JSON object a line."
        ) from error
    if not isinstance(data, dict):
        raise DataError(f"{where}: not a JSON object. Give one object a line.")
    return data


def _json_cases(
    path: Path, encoding: FileEncoding, columns: Columns, taxonomy: Taxonomy
) -> Iterator[SourceCase]:
    known = {*columns.roles.values(), *columns.labels.values(), *columns.unused}
    for number, row in iter_jsonl(path, encoding):
        where = f"{path.name}, line {number}"
        extra = row.keys() - known
        if extra or columns.roles["case_id"] not in row:
            names = ", ".join(repr(name[:40]) for name in sorted(extra)[:5])
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
    spread = Columns(roles=columns.roles, labels={**columns.labels, **names}, unused=())
    return spread.case({**row, **nested}, where)


def _unused(columns: Columns) -> tuple[str, ...]:
    """Return the columns a flat table does not use: only JSON nests labels in one."""
    nested = columns.roles.get("labels")
    return (*columns.unused, *([nested] if nested else []))


def _parquet_cases(path: Path, columns: Columns) -> Iterator[SourceCase]:
    wanted = {*columns.roles.values(), *columns.labels.values()}
    for number, row in iter_parquet(path, wanted):
        yield columns.case(row, f"{path.name}, row {number}")


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
