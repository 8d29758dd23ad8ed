"""Tables in any form are read alike; damaged or hostile ones are refused."""

import csv
import hashlib
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
from loop.labels.importing.table_files import (
    csv_rows,
    digest_file,
    frame_table,
    open_table,
    read_annotation,
)
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


def _table(path: Path) -> tuple[tuple[str, ...], list[tuple[str, dict[str, object]]]]:
    """Return the header of a table, and where each row is with its cells."""
    opened = open_table(path)
    rows = opened.read(opened.header)
    return opened.header, [(row.where, dict(row.cells)) for row in rows]


@pytest.mark.parametrize("sign", [",", "\t", ";"])
def test_rows_of_csv_are_told_by_the_line_they_begin_on(tmp_path, sign):
    """Blank lines and line breaks in a text count; names and guards are trimmed."""
    rows = [
        ' id , text ,"more"',
        '1,"Two\nlines.",x',
        "",
        ",,",
        "2,'=sure,",
    ]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(rows).replace(",", sign) + "\n", "utf-8")
    header, found = _table(path)
    assert header == ("id", "text", "more")
    assert found == [
        ("t.csv, line 2", {"id": "1", "text": "Two\nlines.", "more": "x"}),
        ("t.csv, line 6", {"id": "2", "text": "=sure", "more": ""}),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"t\.csv is empty\. Give a header, then one row a line\."),
        (" \n1,2\n", r"t\.csv is empty"),
        ("a,b\n1,2\n1\n", r"t\.csv, line 3: 1 cells, the header has 2\. Put texts"),
        ("a,b\n1,2,3\n", r"t\.csv, line 2: 3 cells, the header has 2"),
        ('a,b\n1,"2\n3\n', r"the row that begins on line 2: not CSV, or a quote"),
        ('a,b\n1,2\n1,"2"x\n', r"the row that begins on line 3: not CSV"),
    ],
)
def test_a_table_of_text_that_is_wrong_is_refused_with_its_line(
    tmp_path, content, message
):
    """Half a table is never read as all of it."""
    path = tmp_path / "t.csv"
    path.write_text(content, "utf-8")
    with pytest.raises(DataError, match=message):
        _table(path)


def test_lines_of_json_may_have_other_keys_and_nested_labels(tmp_path):
    """The columns are those of all lines, in the order of their first appearance."""
    lines = [
        {"id": 1, "labels": {"edema": 1}},
        {"text": "x", "id": 2},
        {"id": 3, "labels": None},
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("\n\n".join(map(json.dumps, lines)), "utf-8")
    assert _table(path) == (
        ("id", "edema", "text", "labels"),
        [
            ("t.jsonl, line 1", {"id": 1, "edema": 1}),
            ("t.jsonl, line 3", {"text": "x", "id": 2}),
            ("t.jsonl, line 5", {"id": 3, "labels": None}),
        ],
    )
    path.write_text('{"id": 1, "edema": 0, "labels": {"edema": 1}}', "utf-8")
    with pytest.raises(DataError, match="line 1: 'edema' appears both in labels and"):
        _table(path)
    path.write_text(" \n\n", "utf-8")
    with pytest.raises(DataError, match=r"t\.jsonl is empty\. Give one JSON object"):
        _table(path)


def test_parquet_is_read_by_row_and_column(tmp_path):
    """Rows are numbered from 1; a file that is none says so."""
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame({"id": ["a", "b"], "n": [1, None], "text": ["x", "y"]})
    frame.to_parquet(path)
    opened = open_table(path)
    assert opened.header == ("id", "n", "text")
    assert [(row.where, dict(row.cells)) for row in opened.read(["text", "id"])] == [
        ("t.parquet, row 1", {"text": "x", "id": "a"}),
        ("t.parquet, row 2", {"text": "y", "id": "b"}),
    ]
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match=r"t\.parquet cannot be read as Parquet"):
        open_table(path)


def test_rows_of_excel_are_told_by_their_number(tmp_path):
    """Empty columns without a name are no columns; a short row has empty cells."""
    rows = [["id", " text ", None], [], ["a", "x"], ["b"]]
    assert _table(_write(tmp_path / "t.xlsx", rows)) == (
        ("id", "text"),
        [
            ("t.xlsx, row 3", {"id": "a", "text": "x"}),
            ("t.xlsx, row 4", {"id": "b", "text": None}),
        ],
    )


def test_what_is_no_table_names_the_forms_that_are(tmp_path):
    """Nor is a folder, whatever it is called; a file that is not there is not one."""
    gone = tmp_path / "gone.csv"
    with pytest.raises(DataError) as told:
        open_table(gone)
    assert str(told.value) == f"{gone} does not exist. Check the path."
    other = tmp_path / "t.docx"
    other.write_text("id,text\n1,x\n")
    folder = tmp_path / "t.csv"
    folder.mkdir()
    for path in (other, folder):
        with pytest.raises(DataError, match=r"cannot be read as a table\. Give a file"):
            open_table(path)
    assert open_table(other, other=".csv").header == ("id", "text")


def _annotation(folder: Path) -> Path:
    """Write an annotation of two shards by hand."""
    folder.mkdir()
    shards = []
    for number, ids in enumerate((["a", "b"], ["c"])):
        path = folder / f"part-{number}.parquet"
        pd.DataFrame({"id": ids, "edema": [1] * len(ids)}).to_parquet(path)
        shards.append({"file": path.name, "sha256": digest_file(path)})
    raw = json.dumps({"shards": shards}).encode()
    (folder / "_annotation.json").write_bytes(raw)
    (folder / "_SUCCESS").write_text(hashlib.sha256(raw).hexdigest() + "\n")
    return folder


def test_an_annotation_is_read_shard_by_shard(tmp_path):
    """One table in the order of its manifest, which is its digest."""
    folder = _annotation(tmp_path / "out")
    assert _table(folder) == (
        ("id", "edema"),
        [
            ("out, part-0.parquet, row 1", {"id": "a", "edema": 1}),
            ("out, part-0.parquet, row 2", {"id": "b", "edema": 1}),
            ("out, part-1.parquet, row 1", {"id": "c", "edema": 1}),
        ],
    )
    manifest = folder / "_annotation.json"
    assert open_table(folder).sha256 == digest_file(manifest)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("_SUCCESS", None, "is not complete. Give its command again"),
        ("_SUCCESS", b"0" * 64, r"_annotation\.json was changed\. Restore it, or"),
        ("_SUCCESS", b"\xff", r"_annotation\.json was changed"),
        ("_annotation.json", b"{}", r"_annotation\.json was changed"),
        ("part-1.parquet", None, r"part-1\.parquet is missing\. Give the command of"),
        ("part-1.parquet", b"x", r"part-1\.parquet was changed\. Remove it, and give"),
    ],
)
def test_an_annotation_that_is_not_whole_is_refused(tmp_path, file, content, message):
    """A part of it would be read as all."""
    folder = _annotation(tmp_path / "out")
    (folder / file).unlink()
    if content is not None:
        (folder / file).write_bytes(content)
    with pytest.raises(DataError, match=message):
        open_table(folder)
    with pytest.raises(DataError, match=r"holds no annotation\. Name a folder that"):
        read_annotation(tmp_path)


def test_text_that_ends_in_another_encoding_is_refused(tmp_path):
    """The file is named, and how to save it; none of its words are."""
    path = tmp_path / "t.csv"
    path.write_bytes(b"id,text\n1,clear\n" * 3000 + b"2,\xff\xfe\n")
    with pytest.raises(DataError, match=r"t\.csv"), csv_rows(path, "utf-8") as rows:
        list(rows)
    with pytest.raises(DataError, match="cannot read"), csv_rows(tmp_path, "utf-8"):
        pass


def test_what_unpacks_to_just_as_much_as_is_read_is_read(tmp_path, monkeypatch):
    """A byte more is not, and both numbers are told."""
    path = _write(tmp_path / "t.xlsx", REPORTS)
    with zipfile.ZipFile(path) as parts:
        size = sum(part.file_size for part in parts.infolist())
    monkeypatch.setattr(table_files, "MAX_UNPACKED", size)
    assert len(_read(path)) == 2
    monkeypatch.setattr(table_files, "MAX_UNPACKED", size - 1)
    with pytest.raises(DataError) as refused:
        open_table(path)
    assert str(refused.value) == (
        f"t.xlsx unpacks to {size:,} bytes, and at most {size - 1:,} are read. Give "
        "CSV or Parquet."
    )


def test_a_column_of_excel_without_a_name_is_one_where_others_follow(tmp_path):
    """Only what is empty at the end of the header is no column."""
    rows = [[None, "id", None, "text", None, None], ["w", "a", None, "x"]]
    path = _write(tmp_path / "t.xlsx", [rows[0], rows[1]])
    with pytest.raises(DataError, match="columns 1 and 3 have the same name"):
        open_table(path)
    header, found = _table(_write(tmp_path / "u.xlsx", [rows[0][:2], rows[1][:2]]))
    assert header == ("", "id")
    assert found == [("u.xlsx, row 2", {"": "w", "id": "a"})]


def test_rows_of_a_frame_are_told_by_their_number():
    """An index with a name is a column; one without is none, whatever it counts."""
    frame = pd.DataFrame({"id": ["a", "b"], "on": [True, None]}, index=[7, 9])
    table = frame_table(frame)
    assert (table.name, table.header) == ("DataFrame", ("id", "on"))
    assert [(row.where, dict(row.cells)) for row in table.read(())] == [
        ("DataFrame, row 1", {"id": "a", "on": "True"}),
        ("DataFrame, row 2", {"id": "b", "on": None}),
    ]
    named = frame_table(frame.rename_axis("n"))
    assert named.header == ("n", "id", "on")
    assert [row.cells["n"] for row in named.read(())] == [7, 9]


@pytest.mark.parametrize(
    ("line", "header"),
    [
        ("id", ("id",)),
        ("id,a;b", ("id", "a;b")),
        ("id,a\tb", ("id", "a\tb")),
        ("id\ta;b", ("id", "a;b")),
        ("id;a;b,c", ("id", "a", "b,c")),
    ],
)
def test_the_sign_that_stands_most_often_parts_columns(tmp_path, line, header):
    """Of as many, a comma before a tab, and a tab before a semicolon."""
    path = tmp_path / "t.csv"
    path.write_text(f"{line}\n", "utf-8")
    assert open_table(path).header == header


def test_five_of_the_keys_that_are_new_are_named(take, tmp_path):
    """A line with other keys may be of another file."""
    path = tmp_path / "t.jsonl"
    more = {f"k{number}": 1 for number in range(6)}
    lines = [{"id": 1, "text": "Clear."}, {"id": 2, "text": "Wet.", **more}]
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    with pytest.raises(DataError) as refused:
        take(path)
    assert str(refused.value) == (
        "t.jsonl, line 2: the keys differ from those of the first line (new: 'k0', "
        "'k1', 'k2', 'k3', 'k4'). Give every line the same keys."
    )


def test_a_reader_of_tables_leaves_the_limit_of_others_as_it_was(tmp_path):
    """It is one for the whole process."""
    path = tmp_path / "t.csv"
    path.write_text("id,text\n1,x\n", "utf-8")
    before = csv.field_size_limit(1000)
    try:
        with csv_rows(path, "utf-8") as rows:
            assert csv.field_size_limit() == table_files.MAX_CELL
            assert len(list(rows)) == 2
        assert csv.field_size_limit() == 1000
    finally:
        csv.field_size_limit(before)
