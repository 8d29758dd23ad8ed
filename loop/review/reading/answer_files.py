"""Files of answers and of decisions: read as a whole, or refused with a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from loop.core.errors import DataError, UnknownLabelError
from loop.core.records import Mark, Value
from loop.core.safe_text import quoted
from loop.labels.importing.source import read_mark
from loop.labels.importing.table_files import SourceRow, open_table
from loop.review.reading.adjudication import DECIDABLE
from loop.review.reading.assignment import (
    Assignment,
    check_reader,
    require_cases,
    require_label,
)

COLUMNS = ("case_id", "label", "value")


def read_answer_file(
    path: Path, assignment: Assignment, reader: str
) -> dict[str, dict[str, Value | None]]:
    """Return the answers of a ``case_id,label,value`` file, case by case.

    An empty value takes an earlier answer back. A column ``reader`` may be there, and
    must then name `reader` in every line; so may a column ``guideline`` with the digest
    that stood on the guideline the reader had (8 or more of its digits).

    Raises
    ------
    DataError
        A column is missing, a case, label or value is unknown, a pair appears twice, a
        line is of another reader, or was answered beside another guideline than
        today's; names the line.
    """
    who = check_reader(reader)
    found: dict[str, dict[str, Value | None]] = {}
    for where, case_id, label, row in _iter_pairs(path, assignment, derived=False):
        named = row.text("reader")
        if "reader" in row.cells and (not named or check_reader(named) != who):
            raise DataError(
                f"{where}: an answer of reader {quoted(named)}, not of {who!r}. Give "
                "each reader's answers in a file of its own."
            )
        _require_guideline(row.text("guideline"), assignment, where)
        mark = read_mark(row.cells.get("value"), "value", where)
        if mark not in (*map(Mark, Value), Mark.MISSING):
            raise _wrong_value(where, "present, absent, uncertain or empty")
        value = None if mark is Mark.MISSING else Value(mark.value)
        found.setdefault(case_id, {})[label] = value
    if not found:
        raise DataError(f"{path} holds no answer. Give {','.join(COLUMNS)} lines.")
    return found


def _require_guideline(named: str, assignment: Assignment, where: str) -> None:
    digest = assignment.taxonomy.digest
    if named and not (len(named) >= 8 and digest.startswith(named.casefold())):
        raise DataError(
            f"{where}: answered beside guideline {quoted(named)}; labels/taxonomy.yaml "
            f"is now {assignment.guideline}. Look at these answers again beside the "
            "guideline of today (`ranloop guideline`) and name that one, or restore "
            "the taxonomy."
        )


def read_decisions(path: Path, assignment: Assignment) -> dict[tuple[str, str], Mark]:
    """Return the decisions of a ``case_id,label,value`` file.

    Raises
    ------
    DataError
        A column is missing, a case, label or value is unknown, or a pair appears twice;
        names the line.
    """
    found: dict[tuple[str, str], Mark] = {}
    for where, case_id, label, row in _iter_pairs(path, assignment, derived=True):
        word = row.text("value").casefold()
        open_ = word == Mark.NO_MAJORITY.value
        mark = Mark.NO_MAJORITY if open_ else read_mark(word, "value", where)
        if mark not in DECIDABLE:
            raise _wrong_value(where, ", ".join(mark.value for mark in DECIDABLE))
        found[case_id, label] = mark
    if not found:
        raise DataError(f"{path} holds no decision. Give {','.join(COLUMNS)} lines.")
    return found


def read_case_list(path: Path) -> tuple[str, ...]:
    """Return the case ids of a file, one a line; empty lines are left out.

    Raises
    ------
    DataError
        There is no such file, it is not UTF-8 text, or it holds no case id.
    """
    try:
        found = split_case_ids(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path} cannot be read as UTF-8 text. Check the path; give one case id a "
            "line."
        ) from error
    if not found:
        raise DataError(f"{path} holds no case id. Give one a line.")
    return found


def split_case_ids(text: str) -> tuple[str, ...]:
    """Return the case ids of a text, one a line; empty lines are left out."""
    return tuple(line.strip() for line in text.split("\n") if line.strip())


def _wrong_value(where: str, known: str) -> DataError:
    return DataError(f"{where}: the value must be {known}. Correct that cell.")


def _iter_pairs(
    path: Path, assignment: Assignment, *, derived: bool
) -> Iterator[tuple[str, str, str, SourceRow]]:
    """Yield place, case id, label id and row of each line, no pair twice."""
    places: dict[tuple[str, str], str] = {}
    for row in _rows(path):
        where, case_id, name = row.where, row.text(COLUMNS[0]), row.text(COLUMNS[1])
        try:
            require_cases(assignment, [case_id])
            label = (
                assignment.taxonomy.find(name).id
                if derived
                else require_label(assignment, name)
            )
        except UnknownLabelError as error:
            raise UnknownLabelError(f"{where}: {error}") from error
        except DataError as error:
            raise DataError(f"{where}: {error}") from error
        if (case_id, label) in places:
            raise DataError(
                f"{where}: {label} of case {quoted(case_id)} was already given at "
                f"{places[case_id, label]}. Keep one of the two."
            )
        places[case_id, label] = where
        yield where, case_id, label, row


def _rows(path: Path) -> Iterator[SourceRow]:
    if not path.is_file():
        raise DataError(f"{path} does not exist or is not a file. Check the path.")
    table = open_table(path, other=".csv")
    table.require(COLUMNS)
    also = set(table.header) & {"reader", "guideline"}
    yield from table.read((*COLUMNS, *also))
