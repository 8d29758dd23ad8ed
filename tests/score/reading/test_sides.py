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
from loop.score.reading.options import LabelCells, ReadingOptions
from loop.score.reading.sides import (
    Content,
    SideColumns,
    SideKind,
    SideRow,
    agree_on_ids,
    check_name,
    find_ids,
    find_side,
    read_entry,
    require_named,
    unite,
)

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
    ignored = "no matching label for 2 columns, ignored ('Sex', 'AP/PA')"
    assert ignored in found.notes[0]


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


def side_row(case_id, text, line, patient=""):
    """Return one row of a side."""
    return SideRow(f"t.csv, line {line}", "", case_id, Content(text, None, patient, ""))


def test_rows_of_a_case_are_one_entry():
    """Alike they count once; unlike the first or the last is taken, and named."""
    rows = [
        side_row("b", "x", 2),
        side_row("a", "x", 3),
        side_row("b", "x", 4),
        side_row("a", "x", 5),
        side_row("a", "y", 6),
        side_row("c", "z", 7),
        side_row("d", "z", 8),
        side_row("d", "z", 9, patient="p"),
    ]
    with pytest.raises(DataError) as told:
        unite(rows, "refuse")
    assert str(told.value).startswith(
        "t.csv, line 6: id 'a' was already given at t.csv, line 3, with different "
        "content (and so do 1 more ids). Remove one"
    )
    for choice, lines in (("first", "2378"), ("last", "4679")):
        found = unite(rows, choice)
        assert [*found.by_id] == ["a", "b", "c", "d"]
        by_line = {case: one.where[-1] for case, one in found.by_id.items()}
        assert sorted(by_line.values()) == sorted(lines)
        assert (found.rows, found.repeated) == (8, ("b",))
        assert found.conflicting == ("a", "d")
    alone = unite(rows[:3], "refuse")
    assert (alone.rows, alone.repeated, alone.conflicting) == (3, ("b",), ())
    with pytest.raises(DataError, match=r"with different content\. Remove one"):
        unite(rows[:6], "refuse")


def test_every_column_of_a_side_is_used_once(taxonomy):
    """Patients and contexts of references, systems of candidates; no other."""
    header = ("id", "Patient_ID", "system", "lang", "context", "report", "note")
    reference, candidate = (
        find_side(_table(*header), kind, taxonomy, ReadingOptions())
        for kind in SideKind
    )
    assert (reference.patient, reference.system) == ("Patient_ID", "")
    assert (candidate.patient, candidate.system) == ("", "system")
    assert (reference.context, candidate.context) == ("context", "")
    assert reference.used == ("id", "Patient_ID", "lang", "context", "report")
    assert candidate.used == ("id", "system", "lang", "report")
    assert reference.notes == candidate.notes == ()


def test_the_id_is_the_best_of_those_that_are_there():
    """A count of rows comes last; a named one goes before all."""
    plain = ReadingOptions()
    assert find_ids(("id", "study_id"), plain) == "study_id"
    assert find_ids(("Sample ID", "id"), plain) == "Sample ID"
    assert find_ids(("text",), plain) == ""
    named = ReadingOptions(id_column="key")
    assert find_ids(("study_id", "Key"), named) == "Key"
    assert find_ids(("study_id",), named) == "study_id"


def test_tables_agree_on_the_first_kind_of_id_that_all_have():
    """Without one each is read by its own; what is named is not changed."""
    both, only = _table("id", "study_id"), _table("id")
    plain = ReadingOptions()
    assert agree_on_ids([both, both], plain).id_column == "study_id"
    assert agree_on_ids([both, only], plain).id_column == "id"
    assert agree_on_ids([_table("study_id"), only], plain).id_column is None
    named = ReadingOptions(id_column="key")
    assert agree_on_ids([both, both], named) is named


@pytest.mark.parametrize(
    ("option", "inside", "outside"),
    [
        ("id_column", ("ref.csv", "cand.csv"), ()),
        ("text_column", ("ref.csv", "cand.csv"), ()),
        ("system_column", ("cand.csv",), ("ref.csv",)),
        ("patient_column", ("ref.csv",), ("cand.csv",)),
    ],
)
def test_a_named_column_must_be_in_a_table_that_it_is_for(option, inside, outside):
    """One is enough; spelling may differ as for any column."""
    options = ReadingOptions(**{option: "Mine"})
    names = ("ref.csv", "cand.csv")

    def tables(*having):
        return [
            SourceTable(
                name=name,
                header=("id", *(["mine"] if name in having else [])),
                read=lambda columns: iter(()),
            )
            for name in names
        ]

    for name in inside:
        reference, candidate = tables(name)
        require_named(reference, [candidate], options)
    for having in ((), outside):
        reference, candidate = tables(*having)
        with pytest.raises(DataError) as refused:
            require_named(reference, [candidate, candidate], options)
        where = ", ".join(inside)
        assert str(refused.value).startswith(
            f"--{option.replace('_', '-')}: no column 'Mine' in {where} (columns: 'id'"
        )
    require_named(*tables()[:1], [], ReadingOptions())


def test_where_a_named_column_is_lacking_another_one_is_named(taxonomy):
    """One of two files may have it; what is used of the other is told."""
    options = ReadingOptions(id_column="key", text_column="words")
    found = find_side(_table("id", "text"), SideKind.REFERENCE, taxonomy, options)
    assert (found.case_id, found.texts) == ("id", ("text",))
    assert found.notes == (
        "t.csv has no column 'key'; 'id' is used there.",
        "t.csv has no column 'words'; 'text' is used there.",
    )
    own = find_side(_table("Key", "id", "Words"), SideKind.CANDIDATE, taxonomy, options)
    assert (own.case_id, own.texts, own.notes) == ("Key", ("Words",), ())


def test_labels_that_are_all_there_need_no_note(taxonomy):
    """Fewer are counted; a column that is none is named."""
    names = [one.name for one in taxonomy.labels]
    whole = find_side(
        _table("id", *names), SideKind.REFERENCE, taxonomy, ReadingOptions()
    )
    assert (len(whole.labels), whole.notes) == (21, ())
    assert [*whole.labels] == [*taxonomy.ids]
    fewer = find_side(
        _table("id", *names[1:], "Sex"), SideKind.REFERENCE, taxonomy, ReadingOptions()
    )
    assert fewer.notes == (
        "t.csv: no matching label for 1 column, ignored ('Sex').",
        "t.csv has 20 of the 21 labels; the others are missing there, not absent.",
    )
    beside = find_side(
        _table("id", "text", *names[:2]), SideKind.REFERENCE, taxonomy, ReadingOptions()
    )
    (note,) = beside.notes
    assert note.startswith("t.csv holds texts and 2 labels: the texts are scored.")


def test_a_row_says_its_text_its_labels_and_whose_they_are(taxonomy):
    """Parts of a text are joined; spaces around are cut; labels have their order."""
    columns = SideColumns(
        case_id="id",
        texts=("a", "b"),
        system="s",
        patient="p",
        language="l",
        context="c",
        labels={},
    )
    cells = {
        "id": " 7 ",
        "a": " One. ",
        "b": "Two. ",
        "s": " m ",
        "p": " q ",
        "l": "de-AT",
        "c": " k ",
    }
    row = SourceRow("t.csv, line 2", cells)
    found = read_entry(row, columns, taxonomy, LabelCells())
    assert found == (
        "t.csv, line 2",
        "m",
        "7",
        Content("One.  Two.", None, "q", "de", "k"),
    )
    assert found.with_patient("r").content.patient == "r"
    lacking = SourceRow("t.csv, line 3", {"id": "7", "a": "One."})
    with pytest.raises(DataError, match=r"line 3: no 'b'\. Give every line"):
        read_entry(lacking, columns, taxonomy, LabelCells())
    coded = SideColumns(case_id="id", labels={"edema": "E", "fracture": "F"})
    row = SourceRow("t.csv, line 4", {"id": "8", "E": 1, "F": "-1"})
    codes = read_entry(row, coded, taxonomy, LabelCells()).content.codes
    told = {
        name: code for name, code in zip(taxonomy.ids, codes, strict=True) if code != -3
    }
    assert told == {"edema": 1, "fracture": -1}


@pytest.mark.parametrize("cell", [7, 0, 1.5, True])
def test_a_number_is_no_text(taxonomy, cell):
    """Though NaN is how a table writes a blank cell."""
    columns = SideColumns(case_id="id", texts=("a",), labels={})
    row = SourceRow("t.csv, line 2", {"id": "7", "a": cell})
    with pytest.raises(DataError, match="line 2: column 'a' holds a number, not text"):
        read_entry(row, columns, taxonomy, LabelCells())
    blank = SourceRow("t.csv, line 2", {"id": "7", "a": float("nan")})
    assert read_entry(blank, columns, taxonomy, LabelCells()).content.text == ""


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_a_text_that_cannot_be_written_is_refused(taxonomy, text):
    """A NUL, and half of a pair."""
    columns = SideColumns(case_id="id", texts=("a",), labels={})
    row = SourceRow("t.csv, line 2", {"id": "7", "a": text})
    with pytest.raises(DataError, match=r"line 2: .*NUL"):
        read_entry(row, columns, taxonomy, LabelCells())
