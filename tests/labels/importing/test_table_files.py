"""Tables in any form are read alike; damaged or hostile ones are refused."""

import json
import random
import zipfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from openpyxl import Workbook

from loop.core.errors import DataError
from loop.core.records import Mark
from loop.labels.cohort import iter_items
from loop.labels.importing import table_files
from loop.labels.importing.table_files import frame_table, open_table
from loop.labels.reference import read_reference

Rows = Sequence[Sequence[object]]

REPORTS: Rows = [
    ["case_id", "text", "patient"],
    ["007", "Small effusion.\nNo pneumothorax.", "P1"],
    ["2", "-5 mmHg; '=sure', \"quoted\", 气胸", "P2"],
]


def _write(path: Path, rows: Rows, sheets: int = 1) -> Path:
    book = Workbook(write_only=True)
    for number in range(sheets):
        sheet = book.create_sheet(f"sheet {number}")
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def _read(path: Path) -> list[dict[str, object]]:
    opened = open_table(path)
    return [dict(row.cells) for row in opened.read(opened.header)]


def test_reports_in_excel_are_imported(take, workspace, tmp_path):
    """Line breaks, quotes and leading zeros stay as they are."""
    from loop.labels.cohort import read_cohort

    take(_write(tmp_path / "reports.xlsx", REPORTS))
    items = list(iter_items(workspace, read_cohort(workspace, "mine")))
    assert [(one.id, one.variables["text"]) for one in items] == [
        (row[0], row[1]) for row in REPORTS[1:]
    ]


def test_cells_that_are_no_text_are_read_as_they_look(tmp_path):
    """Numbers, dates and switches; an empty row in between is no row."""
    rows = [["id", "n", "day", "on"], [7, 1.5, date(2026, 1, 2), True], [], [8]]
    first, second = _read(_write(tmp_path / "t.xlsx", rows))
    assert first == {"id": 7, "n": 1.5, "day": "2026-01-02T00:00:00", "on": "True"}
    assert second["id"] == 8 and second["n"] is None


def test_a_formula_without_a_value_is_blank(tmp_path):
    """Nothing is computed, so nothing that a formula does can happen."""
    rows = [["id", "text"], ["1", '=WEBSERVICE("x")']]
    assert _read(_write(tmp_path / "t.xlsx", rows)) == [{"id": "1", "text": None}]


@pytest.mark.parametrize(
    ("rows", "sheets", "message"),
    [
        (REPORTS, 2, "has 2 sheets"),
        ([], 1, "is empty"),
        ([["id", "id"], ["1", "2"]], 1, "columns 1 and 2 have the same name"),
        ([["id", "text"], ["1", "a", "b"]], 1, "row 2: a cell right of the last"),
    ],
)
def test_what_cannot_be_one_table_is_refused(tmp_path, rows, sheets, message):
    """The message says what to do with the file."""
    with pytest.raises(DataError, match=message):
        _read(_write(tmp_path / "t.xlsx", rows, sheets))


def test_what_unpacks_to_too_much_is_not_unpacked(tmp_path, monkeypatch):
    """A small file can hold a terabyte of zeros."""
    path = _write(tmp_path / "t.xlsx", REPORTS)
    monkeypatch.setattr(table_files, "MAX_UNPACKED", 1_000)
    with pytest.raises(DataError, match="at most 1,000 are read"):
        open_table(path)


def test_an_entity_that_grows_is_refused(tmp_path):
    """XML that names itself a billion times ends as a refusal."""
    made, hostile = _write(tmp_path / "a.xlsx", REPORTS), tmp_path / "t.xlsx"
    names = [f'<!ENTITY e{n} "{f"&e{n - 1};" * 50}">' for n in range(1, 9)]
    sheet = (
        f'<!DOCTYPE w [<!ENTITY e0 "{"x" * 50}">{"".join(names)}]>'
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        '<sheetData><row><c t="inlineStr"><is><t>&e8;</t></is></c></row></sheetData>'
        "</worksheet>"
    )
    with zipfile.ZipFile(made) as source, zipfile.ZipFile(hostile, "w") as target:
        for part in source.namelist():
            is_sheet = part.startswith("xl/worksheets/")
            target.writestr(part, sheet if is_sheet else source.read(part))
    with pytest.raises(DataError, match="cannot be read as Excel"):
        open_table(hostile)


@pytest.mark.parametrize("seed", range(150))
def test_a_damaged_file_is_read_or_refused(tmp_path, seed):
    """Whatever a disk or a mail server made of it."""
    path = _write(tmp_path / "t.xlsx", REPORTS)
    raw, chance = bytearray(path.read_bytes()), random.Random(seed)
    if seed % 3 == 0:
        del raw[chance.randrange(len(raw)) :]
    for _ in range(chance.randrange(1, 12)):
        if raw:
            raw[chance.randrange(len(raw))] = chance.randrange(256)
    path.write_bytes(raw)
    try:
        _read(path)
    except DataError as error:
        assert "effusion" not in str(error)


CASES = [
    {"id": "a1", "text": "Edema [1].", "edema": 1},
    {"id": "a2", "text": "Clear.", "edema": None},
]


@pytest.mark.parametrize("name", ["t.json", "t.jsonl"])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_array_is_read_like_lines(take, workspace, tmp_path, name, indent):
    """What most programs export; blank lines before it do not matter."""
    path = tmp_path / name
    path.write_text("\n \n" + json.dumps(CASES, indent=indent) + "\n\n", "utf-8")
    assert [dict(row.cells) for row in open_table(path).read(())] == CASES
    report = take(path)
    assert (report.cases, report.reference, report.missing_marks) == (2, 1, 1)
    assert report.columns == {"id": "case_id", "text": "text", "edema": "edema"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "is empty"),
        ("[", "item 1"),
        ('[{"id": 1}', "not a valid JSON array"),
        ('[{"id": 1},]', "item 2, column 12: not valid JSON"),
        ('[{"id": 1} {"id": 2}]', "not a valid JSON array"),
        ('[{"id": 1}]\n[{"id": 2}]', "line 2: not a valid JSON array"),
        ('[{"id": 1}, 5]', "item 2: not a JSON object"),
        ('[{"id": 1}, {"id": 2, "id": 3}]', "item 2: a key appears twice"),
        ('{"id": 1}\n[{"id": 2}]', "line 2: not a JSON object"),
        ('{"id": 1} {"id": 2}', "line 1, column 10: not valid JSON"),
    ],
)
def test_an_array_that_is_wrong_is_refused_with_its_place(tmp_path, text, message):
    """Nothing after its end is passed over, and half of it is not read as all."""
    path = tmp_path / "t.json"
    path.write_text(text, "utf-8")
    with pytest.raises(DataError, match=message):
        list(open_table(path).read(()))


def test_a_frame_is_imported_like_a_file(take, workspace):
    """Missing cells of every kind are empty, and its digest is that of its content."""
    frame = pd.DataFrame(
        {
            "study_id": [7, 8, 9],
            "report": ["Edema.", "Clear.", pd.NA],
            "Edema": [1.0, np.nan, None],
            "when": pd.to_datetime(["2026-01-02", None, None]),
        }
    )
    report = take(frame)
    assert (report.cases, report.empty, report.format) == (2, 1, "dataframe")
    assert report.unused == ("when",)
    reference = read_reference(workspace, "mine")
    assert reference.case_ids == ("7", "8")
    assert reference.mark("8", "edema") is Mark.MISSING
    again = frame.set_index("study_id")
    assert frame_table(frame).sha256 == frame_table(again).sha256
    other = frame.assign(report=["Edema.", "Clear", pd.NA])
    assert frame_table(frame).sha256 != frame_table(other).sha256
    with pytest.raises(DataError, match="the names of the columns are missing"):
        take(pd.DataFrame([["p1", "Small effusion."]]), "other")
