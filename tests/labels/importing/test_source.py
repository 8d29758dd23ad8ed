"""Columns as hospitals call them: used when the name is plain, else asked for."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from loop.core.errors import DataError, UnknownLabelError
from loop.core.paths import WorkspacePaths
from loop.core.records import Mark
from loop.labels.cohort import iter_items, read_cohort
from loop.labels.importing.importer import ImportReport
from loop.labels.importing.source import (
    ImportOptions,
    SourceCase,
    cell_text,
    find_columns,
    label_columns,
    language_code,
    parse_meanings,
    read_mark,
    read_meanings,
)
from loop.labels.overlap import quote_id
from loop.labels.taxonomy import Taxonomy

Importer = Callable[..., ImportReport]
Writer = Callable[..., Path]


def _texts(workspace: WorkspacePaths, name: str = "mine") -> list[tuple[str, str]]:
    items = iter_items(workspace, read_cohort(workspace, name))
    return [(item.id, item.variables["text"]) for item in items]


@pytest.mark.parametrize(
    "header",
    [
        ("AccessionNumber", "Report", "PatientID"),
        ("accession_number", "report_text", "patient_id"),
        ("exam_id", "ReportText", "subject_id"),
        ("Report ID", "REPORT TEXT", "MRN"),
        ("StudyInstanceUID", "Narrative", "Patient ID"),
        ("检查号", "报告", "病人ID"),
        ("报告号", "报告内容", "患者id"),
        ("检查编号", "报告文本", "病历号"),
    ],
)
def test_common_names_are_known(
    workspace: WorkspacePaths,
    take: Importer,
    write_csv: Writer,
    header: tuple[str, ...],
) -> None:
    """In any case, with or without separators, in English and Chinese."""
    report = take(write_csv([header, ("1", "One.", "P1"), ("2", "Two.", "P1")]))
    assert (report.cases, report.patients, report.unused) == (2, 1, ())
    assert _texts(workspace) == [("1", "One."), ("2", "Two.")]


@pytest.mark.parametrize(
    ("findings", "impression"),
    [
        ("Findings", "Impression"),
        ("FINDINGS", "Conclusion"),
        ("影像所见", "诊断意见"),
        ("检查所见", "印象"),
        ("影像表现", "结论"),
        ("影像学表现", "影像学诊断"),
    ],
)
def test_findings_and_impression_are_known(
    workspace: WorkspacePaths,
    take: Importer,
    write_csv: Writer,
    findings: str,
    impression: str,
) -> None:
    """Both make the text, in this order whatever theirs."""
    take(write_csv([("id", impression, findings), ("1", "Normal.", "Clear.")]))
    assert _texts(workspace) == [("1", "Clear. Normal.")]


def test_any_column_can_be_named(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """Also where a known name is there: the user knows better."""
    header = ("id", "text", "nr", "Wortlaut", "Fall")
    path = write_csv([header, ("x", "No.", "1", "One.", "P1")])
    columns = {"case_id": "NR", "text": "Wortlaut", "patient": "Fall"}
    report = take(path, columns=columns)
    assert _texts(workspace) == [("1", "One.")]
    assert (report.patients, report.unused) == (1, ("id", "text"))


def test_a_json_column_can_be_named(
    workspace: WorkspacePaths, take: Importer, tmp_path: Path
) -> None:
    """The keys of the first line are the columns."""
    path = tmp_path / "reports.jsonl"
    path.write_text(json.dumps({"nr": 1, "body": "One."}) + "\n")
    take(path, columns={"case_id": "nr", "text": "body"})
    assert _texts(workspace) == [("1", "One.")]


def test_one_column_can_be_case_and_patient(take: Importer, write_csv: Writer) -> None:
    """One report a patient: the patients stay known."""
    path = write_csv([("PatientID", "text"), ("P1", "One."), ("P2", "Two.")])
    assert take(path, columns={"case_id": "PatientID"}).patients == 2


def test_a_whole_text_is_not_joined_with_its_parts(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """And the parts are said to be unused."""
    header = ("id", "report", "findings", "impression")
    report = take(write_csv([header, ("1", "Whole.", "Clear.", "Normal.")]))
    assert _texts(workspace) == [("1", "Whole.")]
    assert report.unused == ("findings", "impression")


@pytest.mark.parametrize(
    ("role", "option"),
    [
        ("case_id", "--id-column"),
        ("text", "--text-column"),
        ("patient", "--patient-column"),
    ],
)
def test_a_named_column_that_is_not_there_is_refused(
    take: Importer, write_csv: Writer, role: str, option: str
) -> None:
    """The message lists what is there and names the option."""
    path = write_csv([("id", "text"), ("1", "One.")])
    message = rf"no column 'body' \(found: 'id', 'text'\)\. Correct {option}"
    with pytest.raises(DataError, match=message):
        take(path, columns={role: "body"})


def test_columns_of_a_folder_cannot_be_named(take: Importer, tmp_path: Path) -> None:
    """An option without effect would be taken for one that had it."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "s1.txt").write_text("Clear.")
    with pytest.raises(DataError, match="--text-column is for tables"):
        take(tmp_path / "files", columns={"text": "body"})


def test_languages_without_cues_are_reported(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """The engine `rules` refuses their cases: better known before the run."""
    (workspace.labels / "cues").mkdir()
    (workspace.labels / "cues" / "en.yaml").write_text("language: en\n")
    rows = [("id", "text"), ("1", "Clear."), ("2", "Без изменений"), ("3", "胸水なし")]
    report = take(write_csv(rows))
    assert report.languages == {"en": 1, "und": 1, "ja": 1}
    assert report.no_cues == ("und", "ja")


@pytest.mark.parametrize(
    ("case_id", "quoted"),
    [
        ("s50414267", "s50414267"),
        ("CXR/2024-01.7", "CXR/2024-01.7"),
        ("检查7", "检查7"),
        ("a, b", "'a, b'"),
        ("a b", "'a b'"),
        ("-x", "'-x'"),
        ("it's", "'it'\"'\"'s'"),
        ("a = b", "'a = b'"),
    ],
)
def test_ids_in_a_list_are_quoted_where_they_must_be(case_id: str, quoted: str) -> None:
    """One id with a comma reads as two, and a shell takes it apart at its spaces."""
    assert quote_id(case_id) == quoted


def test_nan_is_a_blank_cell_for_whoever_says_what_a_blank_means() -> None:
    """A Parquet column of numbers may have it in the place of null."""
    meant = read_meanings(parse_meanings(["chexpert"]))
    for blank in (None, "", float("nan")):
        assert read_mark(blank, "Edema", "row 1", meant) is Mark.ABSENT
        assert read_mark(blank, "Edema", "row 1") is Mark.MISSING
    own = read_meanings({"nan": "uncertain", "": "absent"})
    assert read_mark(float("nan"), "Edema", "row 1", own) is Mark.UNCERTAIN


@pytest.mark.parametrize(
    ("header", "a_case"),
    [
        (("p1", "Small effusion."), True),
        (("p1", "双肺 清晰。"), True),
        (("p1", "Small effusion"), False),
        (("p1", "a b c d e f g h"), True),
        (("p1", "a b c d e f g"), False),
        (("p1", "a" * 61), True),
        (("p1", "a" * 60), False),
        (("12", "clear"), True),
        (("(12) ", "clear"), True),
        (("1/2/26", "clear"), True),
        (("v12", "clear"), False),
        (("id", "Small effusion."), False),
        (("12", "Reports"), True),
        (("12", "report"), False),
    ],
)
def test_a_first_line_that_is_a_case_is_not_shown(
    taxonomy: Taxonomy, header: tuple[str, ...], a_case: bool
) -> None:
    """A sentence, a long cell or a number, unless a name is there that is known."""
    said = "the names of the columns are missing" if a_case else "no column with"
    with pytest.raises(DataError, match=said) as refused:
        find_columns(header, taxonomy, "x.csv")
    assert not a_case or header[1] not in str(refused.value)


def test_a_column_that_was_named_may_be_called_anything(taxonomy: Taxonomy) -> None:
    """Whoever names one knows that the first line holds names."""
    header = ("12", "Small effusion.", "7")
    columns = {"case_id": "12", "text": "small  EFFUSION."}
    options = ImportOptions(name="mine", role="dev", columns=columns)
    found = find_columns(header, taxonomy, "x.csv", options)
    assert found.roles == {"case_id": "12", "text": "Small effusion."}
    assert found.unused == ("7",)


@pytest.mark.parametrize(
    ("header", "named", "roles"),
    [
        ("id reference candidate", {}, "case_id reference candidate"),
        ("id text reference candidate", {}, "case_id text"),
        ("id findings reference candidate", {}, "case_id findings"),
        (
            "id text reference candidate",
            {"reference": "reference"},
            "case_id reference candidate",
        ),
        ("id text reference", {}, "case_id text"),
        ("id text findings impression", {}, "case_id text"),
        ("id impression", {}, "case_id impression"),
        ("id reference candidate system", {}, "case_id reference candidate system"),
        ("id text system", {}, "case_id text"),
    ],
)
def test_a_table_holds_pairs_or_reports_and_never_both(
    taxonomy: Taxonomy, header: str, named: dict[str, str], roles: str
) -> None:
    """A text of its own beside a reference is what a table is of, unless said."""
    options = ImportOptions(name="mine", role="dev", columns=named)
    found = find_columns(header.split(), taxonomy, "x.csv", options)
    assert {*found.roles} == {*roles.split()}
    assert {*found.unused} == {*header.split()} - {*found.roles.values()}


def test_one_column_cannot_be_both_texts_of_a_pair(taxonomy: Taxonomy) -> None:
    """Every candidate would be as its reference."""
    columns = {"reference": "a", "candidate": "a"}
    options = ImportOptions(name="mine", role="dev", columns=columns)
    with pytest.raises(DataError, match="'a' is named as reference and as candidate"):
        find_columns(("id", "a"), taxonomy, "x.csv", options)
    for lacking in ("reference", "candidate"):
        other = {"reference", "candidate"} - {lacking}
        options = ImportOptions(name="mine", role="dev", columns={other.pop(): "a"})
        with pytest.raises(DataError, match=f"no column with the {lacking} of a pair"):
            find_columns(("id", "a"), taxonomy, "x.csv", options)


def test_a_column_that_is_not_there_lists_what_is(taxonomy: Taxonomy) -> None:
    """Twelve names at most; none of a line that may be a case."""
    many = ["report", *(f"c{number}" for number in range(12))]
    shown = ", ".join(f"'{name}'" for name in many[:12])
    case = "; if that is a case already, put a line with the names of the columns"
    for header, said in (
        (many, f"(found: {shown})"),
        (["words"], f"(found: 1 column without a known name{case} before it)"),
        (["words", "y"], f"(found: 2 columns without a known name{case} before it)"),
        ([], "(found: nothing)"),
    ):
        with pytest.raises(DataError) as refused:
            find_columns(header, taxonomy, "x.csv")
        assert str(refused.value).startswith(
            f"x.csv: no column with case ids {said}. Say which it is with --id-column, "
        )


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("a ", "a "),
        (None, ""),
        (float("nan"), ""),
        (12.0, "12"),
        (12.5, "12.5"),
        (-3, "-3"),
        (0.0, "0"),
        (float("inf"), "inf"),
    ],
)
def test_a_cell_is_read_as_it_looks(cell: object, text: str) -> None:
    """A column of numbers may have ids, and their type is none of anybody's."""
    assert cell_text(cell, "id", "row 2") == text


@pytest.mark.parametrize("cell", [[1], {"a": 1}, b"x"])
def test_a_cell_that_is_no_text_is_refused(cell: object) -> None:
    """With its column, and without what is in it."""
    with pytest.raises(DataError) as refused:
        cell_text(cell, "id", "row 2")
    assert str(refused.value) == (
        f"row 2: column 'id' holds {type(cell).__name__}, not text. Export it as text."
    )


@pytest.mark.parametrize(
    ("cells", "mark"),
    [
        (("present", " Present ", "1", 1, 1.0, True, "YES", "positive"), Mark.PRESENT),
        (("absent", "0", 0, 0.0, False, "no", "negative"), Mark.ABSENT),
        (("uncertain", "-1", -1, -1.0, "possible"), Mark.UNCERTAIN),
        (("not_coded",), Mark.NOT_CODED),
        (("", " ", None, "NaN", "none", "null", "NA", float("nan")), Mark.MISSING),
    ],
)
def test_a_mark_has_many_spellings(cells: tuple[object, ...], mark: Mark) -> None:
    """An empty cell is none of them: nobody said so."""
    assert [read_mark(cell, "Edema", "row 2") for cell in cells] == [mark] * len(cells)


@pytest.mark.parametrize("cell", ["2", 2, 0.5, [1], "maybe", b"1"])
def test_what_is_no_mark_is_refused_without_being_shown(cell: object) -> None:
    """It may be a text."""
    with pytest.raises(DataError) as refused:
        read_mark(cell, "Edema", "row 2")
    assert str(refused.value) == (
        "row 2: column 'Edema' holds a value that is none of present, absent, "
        "uncertain (or 1, 0, -1). Correct that cell, or say what the value means, for "
        "example --value ja=present."
    )


def test_a_word_means_what_is_said_of_it() -> None:
    """Before what it usually means, in any case; one meaning each."""
    said = read_meanings({" Yes ": " Uncertain ", "ja": "present", "JA": "present"})
    assert said == {"yes": Mark.UNCERTAIN, "ja": Mark.PRESENT}
    assert read_mark("YES", "Edema", "row 2", said) is Mark.UNCERTAIN
    assert read_mark("no", "Edema", "row 2", said) is Mark.ABSENT
    for values, word, meaning in (
        ({"ja": "present", "Ja": "absent"}, "Ja", "absent"),
        ({"x" * 50: "y" * 50}, "x" * 40, "y" * 40),
        ({"ja": "not_coded"}, "ja", "not_coded"),
    ):
        with pytest.raises(DataError) as refused:
            read_meanings(values)
        assert str(refused.value) == (
            f"label value '{word}': '{meaning}' is none of present, absent, uncertain, "
            "missing, or it is given two meanings. Say for example yes=present."
        )


def test_meanings_are_taken_apart_at_their_last_sign() -> None:
    """A word may hold one; the convention of a labeler stands for its own."""
    words = ["a=b=present", " CheXpert ", "=absent", "a=b= present "]
    assert parse_meanings(words) == {"a=b": "present", "": "absent"}
    assert parse_meanings([]) == {}
    with pytest.raises(DataError, match="'ja': it is given two meanings"):
        parse_meanings(["ja=present", "ja=absent"])
    with pytest.raises(DataError, match="'ja': write WORD=VALUE"):
        parse_meanings(["ja"])


@pytest.mark.parametrize(
    ("given", "code"),
    [("en", "en"), ("ZH-hans", "zh"), ("pt_BR", "pt"), ("yue", "yue")],
)
def test_a_language_is_its_code_without_a_country(given: str, code: str) -> None:
    """Of two letters, or three."""
    assert language_code(given, "row 2") == code


@pytest.mark.parametrize("given", ["", "e", "engl", "1a", "_en", "中文"])
def test_what_is_no_code_of_a_language_is_refused(given: str) -> None:
    """With what would be one."""
    with pytest.raises(DataError, match=r"^row 2: .* is not a language code\. Use ISO"):
        language_code(given, "row 2")


def test_a_case_is_read_from_its_columns(taxonomy: Taxonomy) -> None:
    """Each cell by its role, spaces around it taken away where they mean nothing."""
    header = ("ID", "Impression", "Findings", "MRN", "lang", "body part", "Edema", "x")
    found = find_columns(header, taxonomy, "x.csv")
    assert found.taken == {
        "ID": "case_id",
        "Findings": "findings",
        "Impression": "impression",
        "MRN": "patient",
        "lang": "language",
        "body part": "exam",
        "Edema": "edema",
    }
    assert (found.inputs, found.unused) == (("text",), ("x",))
    cells = (" a1 ", "Normal. ", " Clear.", " 7 ", " en ", "knee", "-1", "y")
    assert found.case(dict(zip(header, cells, strict=True)), "row 2") == SourceCase(
        where="row 2",
        case_id="a1",
        text="Clear. Normal.",
        patient=" 7 ",
        language="en",
        exam="knee",
        marks={"edema": Mark.UNCERTAIN},
    )
    both = ImportOptions(name="m", role="dev", columns={"case_id": "MRN"})
    assert find_columns(header, taxonomy, "x.csv", both).taken["MRN"] == (
        "case_id, patient"
    )


def test_a_pair_is_read_from_its_columns(taxonomy: Taxonomy) -> None:
    """What is known of the patient is one text, from its parts or as it stands."""
    header = ("id", "gt", "pred", "age", "sex", "history", "model", "ref_id", "Edema")
    found = find_columns(header, taxonomy, "x.csv")
    assert found.inputs == ("reference", "candidate", "context")
    assert found.unused == ("Edema",)
    cells = ("p", " One. ", " Two. ", "72", " ", " Cough. ", " m1 ", " r1 ", "1")
    assert found.case(dict(zip(header, cells, strict=True)), "row 2") == SourceCase(
        where="row 2",
        case_id="p",
        text="",
        pair={
            "reference": "One.",
            "candidate": "Two.",
            "context": "Age: 72\nIndication: Cough.",
        },
        system="m1",
        reference_id="r1",
    )
    whole = (*header[:3], "context", "age")
    found = find_columns(whole, taxonomy, "x.csv")
    assert (found.inputs[-1], found.unused) == ("context", ("age",))
    plain = find_columns(header[:3], taxonomy, "x.csv")
    assert plain.inputs == ("reference", "candidate")


def test_options_that_exclude_each_other_are_refused() -> None:
    """Before anything is opened; each alone is taken."""
    ids = {"case_id": "nr"}
    for options, said in (
        (
            {"number_rows": True, "columns": ids},
            "rows are numbered, or a column holds their ids: give either --number-rows "
            "or --id-column.",
        ),
        (
            {"columns": {"text": "a", "candidate": "b"}},
            "a table holds single reports or pairs: give either --text-column, or "
            "--reference-column and --candidate-column.",
        ),
    ):
        with pytest.raises(DataError) as refused:
            ImportOptions(name="mine", role="dev", **options)  # type: ignore[arg-type]
        assert str(refused.value) == said
    for options in (
        {"number_rows": True, "columns": {"text": "a"}},
        {"columns": ids},
        {"columns": {"reference": "a", "candidate": "b"}},
    ):
        assert ImportOptions(name="mine", role="dev", **options)  # type: ignore[arg-type]


def test_labels_stand_in_the_order_of_the_taxonomy(taxonomy: Taxonomy) -> None:
    """Whatever the order of columns; with all of them asked for, none may be other."""
    first, second = taxonomy.ids[1], taxonomy.ids[0]
    found = label_columns([first, "x", second], taxonomy, "x.csv")
    assert list(found.items()) == [(second, second), (first, first)]
    with pytest.raises(UnknownLabelError, match=r"^x\.csv: .*'x'"):
        label_columns([first, "x"], taxonomy, "x.csv", all_of=True)
    assert label_columns(["edema_evidence"], taxonomy, "x.csv") == {}
