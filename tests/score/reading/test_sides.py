"""Any table is read or refused, with the place and the way out; never half."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loop.core.errors import DataError, UnknownLabelError
from loop.labels.importing.source import MAX_ID
from loop.labels.importing.table_files import SourceRow, SourceTable, open_table
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.score.joining import CandidateFile, join_files
from loop.score.reading.options import ReadingOptions
from loop.score.reading.sides import SideKind, check_name, find_side

SECRET = "Unmistakable wording"


@pytest.fixture(scope="module")
def taxonomy(labels_folder: Path) -> Taxonomy:
    """Read the shipped labels once."""
    return read_taxonomy(labels_folder)


def _table(*header: str) -> SourceTable:
    return SourceTable(name="t.csv", header=header, read=lambda columns: iter(()))


def _refused(path: Path, taxonomy: Taxonomy, message: str, **options: object) -> None:
    chosen = ReadingOptions(**options)
    with pytest.raises(DataError, match=message) as caught:
        join_files(path, [CandidateFile(path)], taxonomy, options=chosen)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "is empty"),
        (b"id,text\n", "holds no case"),
        (b"id,text\n1,a\x00b\n", "line 2: holds a NUL byte"),
        (b"\xff\xfei\x00d\x00", "is UTF-16"),
        (b"id,text\n1,caf\xe9\n", "neither UTF-8 nor GBK"),
        (b"id,text\n1,a,b\n", "line 2: 3 cells"),
        (b'id,text\n1,"a\n', "line 2: not CSV"),
        (b"id,id,text\n1,2,a\n", "columns 1 and 2 have the same name"),
        (b"id,text\n ,Unmistakable wording\n", "line 2: no id"),
        (b"id,text\n1\xe2\x80\x8b,a\n", "line 2: the id .*control character"),
        (
            b"id,text,lang\n1,a,english please\n",
            "line 2: .14 characters, not shown. is not a lang",
        ),
        (b"text\na\n", "no column with case ids.*--id-column.*never by position"),
        (b"id,note\n1,a\n", "no column with a text and none with a label.*--text-col"),
        (b"id,system,text\n1,,a\n", "line 2: no system"),
        (b"id,edema,Oedema\n1,1,1\n", "are both label edema"),
    ],
)
def test_bad_csv_is_refused_where_it_is_bad(tmp_path, taxonomy, raw, message):
    """One test per message, with the way out."""
    path = tmp_path / "t.csv"
    path.write_bytes(raw)
    _refused(path, taxonomy, message)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("", "is empty"),
        ("[1]", "item 1: not a JSON object"),
        ('{"id": 1, "text": "a"', "line 1, column .*not valid JSON"),
        ('{"id": 1, "text": "a"}\n\n{"id": 2}', "line 3: no 'text'.*null"),
        ('{"id": 1, "text": ["a"]}', "line 1: column 'text' holds list"),
        ('{"id": 1, "edema": 1, "labels": {"edema": 0}}', "both in labels and beside"),
        ('{"id": 1, "labels": {"edema": "yes"}}', "line 1: column 'edema' holds 'yes'"),
        ('{"id": null, "text": "a"}', "line 1: no id"),
    ],
)
def test_bad_json_lines_are_refused_where_they_are_bad(
    tmp_path, taxonomy, lines, message
):
    """A missing key is not an empty text: nobody said that it is empty."""
    path = tmp_path / "t.jsonl"
    path.write_text(lines, encoding="utf-8")
    _refused(path, taxonomy, message)


def test_a_label_that_a_line_lacks_is_missing(tmp_path, taxonomy):
    """Writers leave out what is null; a key of a later line is a column too."""
    path = tmp_path / "t.jsonl"
    path.write_text('{"id": 1, "edema": 1}\n{"id": 2, "fracture": 0}\n')
    joined = join_files(path, [CandidateFile(path)], taxonomy)
    places = [taxonomy.ids.index(label) for label in ("edema", "fracture")]
    assert joined.reference.codes is not None
    assert joined.reference.codes[:, places].tolist() == [[1, -3], [-3, 0]]


def test_files_of_other_kinds_are_refused(tmp_path, taxonomy):
    """The message says what can be read."""
    for name in ("t.docx", "t"):
        path = tmp_path / name
        path.write_text("{}")
        _refused(path, taxonomy, r"one of \.csv, \.tsv, \.json, \.jsonl")
    _refused(tmp_path, taxonomy, "cannot be read as a table")
    _refused(tmp_path / "none.csv", taxonomy, "does not exist")
    (tmp_path / "t.parquet").write_text("no")
    _refused(tmp_path / "t.parquet", taxonomy, "cannot be read as Parquet")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030"])
def test_chinese_files_are_read_in_any_usual_encoding(tmp_path, taxonomy, encoding):
    """With a byte order mark, the first column would else not be found."""
    path = tmp_path / "t.csv"
    path.write_bytes(
        "检查号,报告内容\n007,左侧少量胸腔积液，右侧未见异常。\n".encode(encoding)
    )
    joined = join_files(path, [CandidateFile(path)], taxonomy)
    assert joined.case_ids == ("007",)
    assert joined.languages == ("zh",)
    assert joined.reference.texts == ("左侧少量胸腔积液，右侧未见异常。",)


def test_a_named_encoding_is_believed(tmp_path, taxonomy):
    """Western files cannot be told apart by their bytes."""
    path = tmp_path / "t.csv"
    path.write_bytes(b"id,text\n1,Kein Erguss, gro\xdfes Herz\n".replace(b"s,", b"s"))
    joined = join_files(
        path, [CandidateFile(path)], taxonomy, options=ReadingOptions(encoding="cp1252")
    )
    assert joined.reference.texts == ("Kein Erguss großes Herz",)


def test_parquet_is_read_without_the_columns_that_are_not_used(tmp_path, taxonomy):
    """Pictures beside texts would fill the memory, and lists cannot be compared."""
    path = tmp_path / "t.parquet"
    table = {"study_id": [7, 8], "report": ["a", None], "image": [[b"0"], [b"1"]]}
    pq.write_table(pa.table(table), path)
    joined = join_files(path, [CandidateFile(path)], taxonomy)
    assert joined.case_ids == ("7",)
    assert joined.empty_references == ("8",)
    rows = list(open_table(path).read(["report"]))
    assert [row.cells.keys() for row in rows] == [{"report"}, {"report"}]


@pytest.mark.parametrize(
    ("header", "kind", "texts"),
    [
        (("id", "report"), SideKind.CANDIDATE, ("report",)),
        (("id", "report", "prediction"), SideKind.CANDIDATE, ("prediction",)),
        (("id", "report", "prediction"), SideKind.REFERENCE, ("report",)),
        (("id", "reference", "candidate"), SideKind.REFERENCE, ("reference",)),
        (("id", "reference", "candidate"), SideKind.CANDIDATE, ("candidate",)),
        (
            ("id", "Impression", "Findings"),
            SideKind.CANDIDATE,
            ("Findings", "Impression"),
        ),
        (("id", "impression", "text"), SideKind.REFERENCE, ("text",)),
    ],
)
def test_the_text_of_a_side_is_found_by_its_name(taxonomy, header, kind, texts):
    """A file with both sides gives each side its own."""
    found = find_side(_table(*header), kind, taxonomy, ReadingOptions())
    assert found.texts == texts


def test_a_chexpert_file_is_read_by_its_ids_and_labels(taxonomy):
    """What is neither is named, so that no label is lost by its spelling."""
    header = ("Path", "Sex", "AP/PA", "subject_id", "No Finding", "Lung Opacity")
    options = ReadingOptions(id_column="path")
    found = find_side(_table(*header), SideKind.CANDIDATE, taxonomy, options)
    assert found.case_id == "Path"
    assert set(found.labels) == {"no_finding", "lung_opacity"}
    assert (
        "2 columns not used, as no label has that name ('Sex', 'AP/PA')"
        in found.notes[0]
    )


def test_a_misspelt_label_is_refused_only_where_labels_are_read(taxonomy):
    """Beside a text it is of no use anyway."""
    with pytest.raises(UnknownLabelError, match="Did you mean 'Pneumothorax'"):
        find_side(
            _table("id", "Pneumothroax"), SideKind.REFERENCE, taxonomy, ReadingOptions()
        )
    beside = _table("id", "text", "Pneumothroax")
    found = find_side(beside, SideKind.REFERENCE, taxonomy, ReadingOptions())
    assert found.labels == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"duplicates": "any"}, "'any' must be one of refuse, first, last"),
        ({"encoding": "utf-99"}, "unknown encoding"),
        ({"values": {"yes": "1"}}, "'1' is not a value"),
    ],
)
def test_options_are_checked_before_anything_is_read(options, message):
    """A policy that cannot be followed is not found out after an hour."""
    with pytest.raises(DataError, match=message):
        ReadingOptions(**options)


def test_a_text_longer_than_any_generator_writes_is_refused(tmp_path, taxonomy):
    """A quote that is never closed swallows the rest of the file."""
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"id": 1, "text": "x" * 10_000_001}))
    _refused(path, taxonomy, "line 1: a text of 10,000,001 characters")


@pytest.mark.parametrize("kind", ["id", "system"])
def test_a_name_is_as_long_as_it_may_be_and_no_longer(kind):
    """Without the spaces around it; one character more is a wrong column."""
    row = SourceRow("t.csv, line 2", {})
    assert check_name(f" {'n' * MAX_ID}\t", kind, row) == "n" * MAX_ID
    with pytest.raises(DataError, match=f"line 2: the {kind} is longer than {MAX_ID}"):
        check_name("n" * (MAX_ID + 1), kind, row)
