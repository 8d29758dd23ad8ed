"""Marks as small integers, and the file that holds a table of them."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError
from loop.core.records import Mark, ValueCode
from loop.core.safe_text import format_csv

CODES: Mapping[Mark, ValueCode] = {mark: ValueCode[mark.name] for mark in Mark}
MARKS: Mapping[int, Mark] = {code: mark for mark, code in CODES.items()}
_BY_WORD = {mark.value: code for mark, code in CODES.items()}

Marks = NDArray[np.int8]


def format_reference(
    case_ids: Sequence[str], labels: Sequence[str], marks: Marks
) -> bytes:
    """Return the file of a reference version: values spelled out, LF line ends."""
    words = {code: mark.value for code, mark in MARKS.items()}
    rows = (
        [case_id, *(words[code] for code in row)]
        for case_id, row in zip(case_ids, marks.tolist(), strict=True)
    )
    return format_csv(["case_id", *labels], rows, end="\n").encode("utf-8")


def parse_reference(
    raw: bytes, path: Path
) -> tuple[tuple[str, ...], tuple[str, ...], Marks]:
    """Return labels, case ids and codes of a reference file; `path` is for messages.

    Raises
    ------
    DataError
        It is not such a file; names the line.
    """
    case_ids: list[str] = []
    codes = array("b")
    try:
        rows = csv.reader(io.StringIO(raw.decode("utf-8"), newline=""), strict=True)
        header = next(rows, [])
        _check_header(header, path)
        for row in rows:
            if len(row) != len(header):
                raise DataError(
                    f"{path}, line {rows.line_num}: {len(row)} cells, the header has "
                    f"{len(header)}. Restore the file."
                )
            case_ids.append(row[0])
            codes.extend(map(_BY_WORD.__getitem__, row[1:]))
    except KeyError as error:
        known = ", ".join(_BY_WORD)
        raise DataError(
            f"{path}, line {rows.line_num}: a cell holds none of {known}. "
            "Restore the file."
        ) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is not a UTF-8 CSV file. Restore it.") from error
    marks = np.frombuffer(codes, dtype=np.int8) if codes else np.empty(0, np.int8)
    return (
        tuple(header[1:]),
        tuple(case_ids),
        marks.reshape(len(case_ids), len(header) - 1),
    )


def _check_header(header: list[str], path: Path) -> None:
    if header[:1] != ["case_id"] or len(set(header)) != len(header):
        raise DataError(
            f"{path}, line 1: the first column must be case_id and no column may stand "
            "twice. Restore the file."
        )
