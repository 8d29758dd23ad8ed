"""Importers: every format gives the same cohort; what is left out is counted."""

import hashlib
import json
import os
import stat
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loop.core.errors import DataError, WriteError
from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.records import Item, Mark
from loop.labels.cohort import (
    cohort_folder,
    digest_cases_file,
    iter_items,
    read_cohort,
    read_cohort_file,
    recorded_fields,
    texts_path,
)
from loop.labels.importing import importer
from loop.labels.importing.importer import ImportReport, import_cohort
from loop.labels.importing.openi import LICENCE, ORIGIN, crosswalk_digest
from loop.labels.importing.source import ROLES, ImportOptions, describe_columns
from loop.labels.reference import read_reference, reference_path
from loop.labels.taxonomy import Taxonomy
from loop.release.audit.audit import audit_workspace
from tests.labels.conftest import ACTOR

RECORDS = [
    {"case_id": "a1", "text": 'He said "clear",\nlungs.', "patient": "P1", "Edema": 0},
    {"case_id": "a2", "text": "Edema, 肺水肿.", "patient": "P2", "Edema": 1},
    {"case_id": "a3", "text": "Maybe edema.", "patient": "P2", "Edema": -1},
]

Importer = Callable[..., ImportReport]
Writer = Callable[..., Path]


def _csv(folder: Path, write_csv: Writer) -> Path:
    return write_csv([list(RECORDS[0]), *([*r.values()] for r in RECORDS)])


def _jsonl(folder: Path, write_csv: Writer) -> Path:
    path = folder / "reports.jsonl"
    lines = [json.dumps(record, ensure_ascii=False) for record in RECORDS]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _nested(folder: Path, write_csv: Writer) -> Path:
    path = folder / "reports.jsonl"
    rows = [{**r, "labels": {"edema": r["Edema"]}} for r in RECORDS]
    lines = [json.dumps({k: v for k, v in r.items() if k != "Edema"}) for r in rows]
    path.write_text("\n\n".join(lines), encoding="utf-8")
    return path


def _parquet(folder: Path, write_csv: Writer) -> Path:
    path = folder / "reports.parquet"
    pq.write_table(pa.Table.from_pylist(RECORDS), path)
    return path


def _gbk(folder: Path, write_csv: Writer) -> Path:
    return write_csv(
        [list(RECORDS[0]), *([*r.values()] for r in RECORDS)], encoding="gbk"
    )


def _utf8_mark(folder: Path, write_csv: Writer) -> Path:
    return write_csv(
        [list(RECORDS[0]), *([*r.values()] for r in RECORDS)], encoding="utf-8-sig"
    )


def _semicolons(folder: Path, write_csv: Writer) -> Path:
    path = folder / "reports.csv"
    rows = ["case_id;text;patient;Edema", 'a1;"He said ""clear"",', 'lungs.";P1;0']
    rows += ["a2;Edema, 肺水肿.;P2;1", "a3;Maybe edema.;P2;-1.0", ""]
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "make", [_csv, _jsonl, _nested, _parquet, _gbk, _utf8_mark, _semicolons]
)
def test_every_format_gives_the_same_cohort(
    workspace: WorkspacePaths,
    take: Importer,
    write_csv: Writer,
    tmp_path: Path,
    make: Callable[[Path, Writer], Path],
) -> None:
    """Texts byte for byte, patients, marks: only the container differs."""
    report = take(make(tmp_path, write_csv))
    cohort = read_cohort(workspace, "mine")
    texts = [item.variables["text"] for item in iter_items(workspace, cohort)]
    assert texts == [record["text"] for record in RECORDS]
    assert (report.cases, report.patients, report.reference) == (3, 2, 1)
    reference = read_reference(workspace, "mine")
    marks = [reference.mark(case_id, "edema") for case_id in cohort.case_ids]
    assert marks == [Mark.ABSENT, Mark.PRESENT, Mark.UNCERTAIN]


def test_findings_and_impression_are_joined(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """One space between them; the indication stays out and is said to."""
    header = ["study_id", "findings", "impression", "indication"]
    rows = [["1", "Clear.", "Normal.", "Mass?"], ["2", "", "Stable.", ""]]
    report = take(write_csv([header, *rows]))
    cohort = read_cohort(workspace, "mine")
    texts = [item.variables["text"] for item in iter_items(workspace, cohort)]
    assert texts == ["Clear. Normal.", "Stable."]
    assert report.unused == ("indication",)
    assert report.reference is None


def test_what_is_left_out_is_counted_and_named(
    take: Importer, write_csv: Writer
) -> None:
    """Non-chest, empty and unwanted cases go; duplicates stay; all are counted."""
    header = ["case_id", "text", "exam"]
    rows = [
        ["a1", "Lungs are clear.", "CHEST"],
        ["a2", "No fracture.", "LEFT KNEE"],
        ["a3", "  ...  ", "CHEST"],
        ["a4", "LUNGS are  clear", "CHEST PA"],
        ["a5", "Unwanted.", "CHEST"],
    ]
    report = take(write_csv([header, *rows]), exclude=("a5",))
    assert (report.cases, report.non_chest, report.empty) == (2, 1, 1)
    assert report.unusable == {"on request": 1}
    assert report.duplicates == 1
    assert report.examples["non-chest"] == ("a2",)
    assert report.examples["duplicate text"] == ("a4",)


def test_an_empty_label_cell_is_missing_not_absent(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """Nobody said absent; the report counts such cells."""
    rows = [["id", "text", "Edema", "fracture"], ["1", "One.", "", "positive"]]
    report = take(write_csv(rows))
    reference = read_reference(workspace, "mine")
    assert report.missing_marks == 1
    assert reference.mark("1", "edema") is Mark.MISSING
    assert reference.mark("1", "fracture") is Mark.PRESENT


def test_openi_labels_come_from_its_coding(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """What was not coded is weaker than absent; unindexed reports are left out."""
    header = "uid,MeSH,Problems,image,indication,comparison,findings,impression"
    rows = [
        ["7", "Cardiomegaly/mild", "", "", "Mass?", "", "Big heart.", "Cardiomegaly."],
        ["8", "No Indexing", "", "", "", "", "Clear.", ""],
        ["9", "normal", "", "", "Mass?", "", "", ""],
    ]
    report = take(write_csv([header.split(","), *rows]))
    cohort = read_cohort(workspace, "mine")
    reference = read_reference(workspace, "mine")
    assert (report.format, report.cases, report.empty) == ("openi", 1, 1)
    assert report.unusable == {"not indexed": 1}
    assert "Demner-Fushman" in report.citation
    assert cohort.not_coded
    (added,) = (
        one for one in read_ledger(workspace.ledger) if one.action == "cohort_added"
    )
    assert added.payload["crosswalk_digest"] == crosswalk_digest(workspace.labels)
    said = audit_workspace(workspace).findings
    assert ("crosswalks", "ok") in [(one.check, one.severity) for one in said]
    path = workspace.labels / "crosswalks" / "openi_mesh.yaml"
    path.write_text(path.read_text("utf-8") + "\n# edited\n", "utf-8")
    (changed,) = (
        one for one in audit_workspace(workspace).findings if one.check == "crosswalks"
    )
    assert "was changed since 1 of 1 imports" in changed.what
    assert reference.mark("7", "cardiomegaly") is Mark.PRESENT
    assert reference.mark("7", "edema") is Mark.NOT_CODED


def test_a_folder_of_reports_gives_cases_and_patients(
    workspace: WorkspacePaths, take: Importer, tmp_path: Path
) -> None:
    """Case id from the file name, patient from the folder, sections taken apart."""
    root = tmp_path / "files"
    reports = {
        "p10/p10000001/s1.txt": b"FINDINGS: Clear.\nIMPRESSION: Normal.",
        "p10/p10000001/s2.txt": b"EXAMINATION: KNEE\nFINDINGS: No fracture.",
        "p10/p10000002/s3.txt": "影像所见：双肺清晰。".encode("gb18030"),
        "p10/p10000002/s4.txt": b"INDICATION: Mass?",
        "p10/p10000002/.hidden.txt": b"FINDINGS: Clear.",
        "p10/p10000002/notes.md": b"FINDINGS: Clear.",
    }
    for name, raw in reports.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(raw)
    report = take(root)
    cohort = read_cohort(workspace, "mine")
    items = list(iter_items(workspace, cohort))
    assert [(item.id, item.language) for item in items] == [("s1", "en"), ("s3", "zh")]
    assert items[0].variables["text"] == "FINDINGS:\nClear.\n\nIMPRESSION:\nNormal."
    assert (report.non_chest, report.empty, report.patients) == (1, 1, 2)
    assert cohort.language == "mixed"


def test_a_language_may_be_named(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """By option for all cases, by column for each, else by script."""
    rows = [["id", "text", "language"], ["1", "Klar.", "de-DE"], ["2", "正常", ""]]
    take(write_csv(rows))
    cohort = read_cohort(workspace, "mine")
    assert [i.language for i in iter_items(workspace, cohort)] == ["de", "zh"]
    take(write_csv(rows), "other", language="fr")
    assert read_cohort(workspace, "other").language == "fr"


def test_an_import_is_recorded(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """The ledger holds digests and counts, the cohort file where it came from."""
    rows = [["id", "text", "edema"], ["1", "One.", "1"]]
    take(write_csv(rows), source="Synthetic texts", licence="CC0", reason="try it")
    added, revised = read_ledger(workspace.ledger)[-2:]
    assert (added.action, added.subject, added.reason) == (
        "cohort_added",
        "mine",
        "try it",
    )
    assert added.payload["cohort_digest"] == read_cohort(workspace, "mine").digest
    assert revised.action == "reference_revised"
    about = read_cohort_file(workspace, "mine")
    assert about.licence == "CC0"
    assert about.files[0].name == "reports.csv"
    assert read_cohort(workspace, "mine").synthetic


def test_replacing_keeps_every_old_cohort(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """Replaced cohorts move to the private folder with their texts, one by one."""
    for text in ("First.", "Second.", "Third."):
        take(write_csv([["id", "text"], ["1", text]]), replace=True)
    (item,) = iter_items(workspace, read_cohort(workspace, "mine"))
    assert item.variables["text"] == "Third."
    kept = list((workspace.private / "replaced").glob("mine-*"))
    texts = [(folder / "texts.jsonl").read_text() for folder in kept]
    assert sorted(t.split('"')[7] for t in texts) == ["First.", "Second."]
    assert all((folder / "cohort" / "cases.csv").is_file() for folder in kept)


def test_labels_beside_and_in_an_object_are_all_read(
    tmp_path: Path, workspace: WorkspacePaths, take: Importer
) -> None:
    """Also when the first line has no labels: none is dropped without a word."""
    rows = [
        {"id": "a", "text": "One.", "fracture": 1, "labels": None},
        {"id": "b", "text": "Two.", "fracture": 0, "labels": {"edema": 1}},
    ]
    path = tmp_path / "mixed.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = take(path)
    reference = read_reference(workspace, "mine")
    assert reference.mark("a", "fracture") is Mark.PRESENT
    assert reference.mark("a", "edema") is Mark.MISSING
    assert reference.mark("b", "fracture") is Mark.ABSENT
    assert reference.mark("b", "edema") is Mark.PRESENT
    assert report.missing_marks == 2 * 21 - 3


def test_a_flat_column_called_labels_is_said_to_be_unused(
    take: Importer, write_csv: Writer
) -> None:
    """Only JSON nests labels in one; in a table the column is not read."""
    report = take(write_csv([["id", "text", "labels"], ["a", "One.", "edema"]]))
    assert report.unused == ("labels",)


def test_rows_without_ids_are_numbered_on_request(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """The same file gives the same ids, whatever is left out; and it is recorded."""
    rows = [["report", "id"], ["One.", "x"], ["", "x"], ["Three.", ""]]
    path = write_csv(rows)
    report = take(path, number_rows=True)
    assert report.numbered
    assert report.unused == ("id",)
    ids = ("row-000001", "row-000003")
    assert read_cohort(workspace, "mine").case_ids == ids
    assert read_cohort_file(workspace, "mine").counted["numbered_rows"] == 3
    assert read_ledger(workspace.ledger)[-1].payload["numbered_rows"] == 3
    take(path, "again", number_rows=True, exclude=("row-000001",), id_prefix="h-")
    assert read_cohort(workspace, "again").case_ids == ("h-row-000003",)
    lines = path.with_name("r.jsonl")
    lines.write_text('{"report": "One."}\n{"report": "Two."}\n')
    assert take(lines, "lines", number_rows=True).cases == 2
    take(write_csv([["id", "text"], ["1", "One."]]), "plain")
    assert "numbered_rows" not in read_ledger(workspace.ledger)[-1].payload


def test_ids_are_numbered_or_read_and_not_both(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """Nobody can tell which was meant; and the Open-i file has ids of its own."""
    with pytest.raises(DataError, match="either --number-rows or --id-column"):
        take(write_csv([["id", "text"]]), number_rows=True, columns={"case_id": "id"})
    path = write_csv(
        [["uid", "MeSH", "findings", "impression"], ["1", "normal", "", ""]]
    )
    with pytest.raises(DataError, match="--number-rows is for tables"):
        take(path, number_rows=True)
    with pytest.raises(DataError, match="number the rows with --number-rows"):
        take(write_csv([["text"], ["One."]]))


def test_exact_duplicates_are_dropped_on_request(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """The same text of another patient, or with another label, is another case."""
    rows = [
        ["id", "text", "patient", "edema"],
        ["a", "Clear.", "P1", "0"],
        ["a", "Clear.", "P1", "0"],
        ["b", "Clear.", "P1", "0"],
        ["c", "Clear.", "P2", "0"],
        ["d", "Clear.", "P1", "1"],
        ["e", "clear.", "P1", "0"],
    ]
    path = write_csv(rows)
    with pytest.raises(DataError, match="'a' already appears"):
        take(path)
    report = take(path, drop_duplicates=True)
    assert read_cohort(workspace, "mine").case_ids == ("a", "c", "d", "e")
    assert report.unusable == {"exact duplicate": 2}
    assert report.examples["exact duplicate"] == ("a", "b")
    assert report.duplicates == 3
    assert read_ledger(workspace.ledger)[-2].payload["excluded"] == {
        "exact duplicate": 2
    }


def test_an_id_with_two_contents_is_refused_though_duplicates_are_dropped(
    take: Importer, write_csv: Writer
) -> None:
    """Also where the first was left out; and the copy of an excluded case stays."""
    rows = [["id", "text"], ["a", "One."], ["b", "One."], ["b", "Two."]]
    with pytest.raises(DataError, match="'b' already appears"):
        take(write_csv(rows), drop_duplicates=True)
    rows = [["id", "text"], ["a", "One."], ["b", "One."]]
    report = take(write_csv(rows), "two", drop_duplicates=True, exclude=("a",))
    assert (report.cases, report.unusable) == (1, {"on request": 1})


def test_words_of_label_cells_mean_what_is_said(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """What is said goes before what a word usually means; else it is refused."""
    path = write_csv(
        [["id", "text", "edema"], ["a", "One.", "Ja"], ["b", "Two.", "no"]]
    )
    with pytest.raises(DataError, match="say what the value means"):
        take(path)
    take(path, values={"ja": "present", "No": "missing"})
    reference = read_reference(workspace, "mine")
    assert reference.mark("a", "edema") is Mark.PRESENT
    assert reference.mark("b", "edema") is Mark.MISSING
    with pytest.raises(DataError, match="'maybe' is none of present, absent"):
        take(path, "other", values={"ja": "maybe"})


@pytest.mark.parametrize(
    "first",
    [
        ["P0013", "No pneumothorax. Heart normal."],
        ["P0013", "Kein Erguss, keine Infiltrate und auch sonst nichts Neues"],
        ["4711", "Unauffaellig"],
        ["2024-05-01", "Unauffaellig"],
        ["P0013", "Small effusion"],
        ["P0013", "4711"],
    ],
)
def test_a_first_line_that_is_a_case_is_refused_and_not_shown(
    take: Importer, write_csv: Writer, first: list[str]
) -> None:
    """A table without header begins with a patient's report."""
    with pytest.raises(DataError) as caught:
        take(write_csv([first, ["P0014", "Edema."]]))
    assert not [cell for cell in first if cell in str(caught.value)]
    named = {"case_id": "nr", "text": "befund"}
    assert (
        take(write_csv([["nr", "Befund"], ["1", "Edema."]]), columns=named).cases == 1
    )


def test_every_known_header_is_described(taxonomy: Taxonomy) -> None:
    """The manual prints it; a header that is known and not described is of no use."""
    words = describe_columns(taxonomy)
    assert all(name in words for names in ROLES.values() for name in names)
    assert "Pleural Effusion" in words


def test_a_disk_that_is_full_is_told_with_the_file(tmp_path):
    """And not which case was written, which may be a name."""
    full = Path("/dev/full")
    item = Item(id="Doe", variables={"text": "Clear. " * 100_000})
    with (
        full.open("wb") as stream,
        pytest.raises(WriteError, match=r"/dev/full.*No space left") as caught,
    ):
        importer._write_line(stream, item, full)
    assert "Doe" not in str(caught.value)


MIXED = [
    ["case_id", "text", "patient", "exam", "Edema", "fracture", "remark"],
    ["1", "Lungs are clear.", "P1", "CHEST", "0", "", "x"],
    ["2", "LUNGS are  clear", "P1", "", "1", "-1", ""],
    ["3", "No fracture.", "P2", "LEFT KNEE", "1", "1", ""],
    ["4", " ... ", "P3", "CHEST", "1", "1", ""],
    ["5", "Unwanted.", "P4", "CHEST", "1", "1", ""],
    ["6", "双肺清晰。", "", "CHEST", "1", "0", ""],
]


def test_what_became_of_a_source_is_told_whole(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer, taxonomy: Taxonomy
) -> None:
    """Report, cohort file and ledger say the same of every case and column."""
    path = write_csv(MIXED)
    cues = workspace.labels / "cues"
    cues.mkdir()
    (cues / "en.yaml").touch()
    report = take(
        path, id_prefix="x-", exclude=("5",), licence="CC0", source="Synthetic"
    )
    cohort = read_cohort(workspace, "mine")
    assert report == ImportReport(
        cohort="mine",
        role="dev",
        format="csv",
        cases=3,
        digest=cohort.digest,
        non_chest=1,
        empty=1,
        unusable={"on request": 1},
        duplicates=1,
        examples={
            "duplicate text": ("x-2",),
            "non-chest": ("x-3",),
            "empty": ("x-4",),
            "on request": ("x-5",),
        },
        languages={"en": 2, "zh": 1},
        no_cues=("zh",),
        patients=1,
        inputs=("text",),
        references=0,
        systems={},
        silent=0,
        ratings=None,
        reference=1,
        unknown=tuple(one for one in taxonomy.ids if one not in ("edema", "fracture")),
        missing_marks=1,
        columns={
            "case_id": "case_id",
            "text": "text",
            "patient": "patient",
            "exam": "exam",
            "Edema": "edema",
            "fracture": "fracture",
        },
        unused=("remark",),
        numbered=False,
        licence="CC0",
        citation="",
    )
    excluded = {"empty": 1, "non-chest": 1, "on request": 1}
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    about = read_cohort_file(workspace, "mine")
    assert (about.excluded, about.counted) == (excluded, {"duplicate_texts": 1})
    assert (about.language, about.source, about.cases) == ("mixed", "Synthetic", 3)
    assert [(one.name, one.sha256) for one in about.files] == [("reports.csv", digest)]
    added, made = read_ledger(workspace.ledger)[-2:]
    folder = cohort_folder(workspace, "mine")
    assert added.reason == "imported from reports.csv"
    assert added.payload == {
        **recorded_fields(about),
        "cases_sha256": digest_cases_file(folder / "cases.csv"),
        "format": "csv",
        "files": {"reports.csv": digest},
        "excluded": excluded,
    }
    assert (made.subject, made.reason) == ("mine:ref1", "label columns of the source")
    assert made.payload == {
        "cohort": "mine",
        "cohort_digest": cohort.digest,
        "number": 1,
        "digest": hashlib.sha256(
            reference_path(workspace, "mine", 1).read_bytes()
        ).hexdigest(),
    }
    assert reference_path(workspace, "mine", 1).read_text("utf-8") == (
        "case_id,edema,fracture\n"
        "x-1,absent,missing\n"
        "x-2,present,uncertain\n"
        "x-6,present,absent\n"
    )
    known = [case.patient for case in cohort.cases]
    assert known[0] == known[1] != "" == known[2]


def test_what_nobody_states_is_said_to_be_not_stated(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """Source and licence stand on every document; what the format knows comes first."""
    take(write_csv([["id", "text"], ["1", "Clear."]]))
    about = read_cohort_file(workspace, "mine")
    assert (about.source, about.licence, about.not_coded) == (
        "not stated",
        "not stated",
        False,
    )
    openi = [["uid", "MeSH", "findings", "impression"], ["1", "normal", "Clear.", ""]]
    take(write_csv(openi), "coded", source="mine", licence="CC0")
    about = read_cohort_file(workspace, "coded")
    assert (about.source, about.licence, about.not_coded) == ("mine", "CC0", True)
    take(write_csv(openi), "known")
    assert read_cohort_file(workspace, "known").source == ORIGIN
    assert read_cohort_file(workspace, "known").licence == LICENCE
    marked = [["id", "text", "edema"], ["1", "Clear.", "not_coded"]]
    take(write_csv(marked), "marked")
    assert read_cohort_file(workspace, "marked").not_coded


def test_the_ledger_says_which_part_and_which_numbers_were_taken(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer, tmp_path: Path
) -> None:
    """And why; of a folder no file is named."""
    rows = [["text"], *([f"Text number {n}."] for n in range(6))]
    report = take(write_csv(rows), part="1/2", number_rows=True, reason="a half")
    entry = read_ledger(workspace.ledger)[-1]
    assert 0 < report.cases < 6
    assert (entry.reason, entry.payload["part"]) == ("a half", "1/2")
    assert entry.payload["numbered_rows"] == 6
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "s1.txt").write_text("Clear.")
    take(tmp_path / "files", "folder")
    entry = read_ledger(workspace.ledger)[-1]
    assert (entry.reason, entry.payload["files"]) == ("imported from a folder", {})
    assert not {"part", "numbered_rows"} & entry.payload.keys()


def test_texts_are_private_and_what_ships_is_not(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """What is replaced is kept as private, under the time in UTC."""
    path = write_csv([["id", "text"], ["1", "Clear."]])
    before = os.umask(0)
    try:
        take(path)
        zone = timezone(timedelta(hours=5))
        options = ImportOptions(name="mine", role="dev", replace=True)
        when = datetime(2026, 1, 2, 3, 4, 5, tzinfo=zone)
        import_cohort(workspace, path, options, actor=ACTOR, now=lambda: when)
    finally:
        os.umask(before)
    (kept,) = (workspace.private / "replaced").iterdir()
    assert kept.name.startswith("mine-20260101T220405Z-")
    assert sorted(one.name for one in kept.iterdir()) == ["cohort", "texts.jsonl"]
    texts = texts_path(workspace, "mine")
    for one, mode in (
        (texts, 0o600),
        (kept / "texts.jsonl", 0o600),
        (texts.parent, 0o700),
        (kept, 0o700),
        (kept.parent, 0o700),
        (cohort_folder(workspace, "mine"), 0o755),
    ):
        assert stat.S_IMODE(one.stat().st_mode) == mode, one


def test_options_of_tables_are_refused_where_there_is_none(
    take: Importer, tmp_path: Path
) -> None:
    """All that were given are named."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "s1.txt").write_text("Clear.")
    with pytest.raises(DataError) as refused:
        take(
            tmp_path / "files",
            columns={"text": "b", "patient": "c"},
            number_rows=True,
            values={"ja": "present"},
        )
    assert str(refused.value) == (
        f"{tmp_path / 'files'}: --text-column, --patient-column, --number-rows, "
        "--value is for tables, and this is read as mimic. Leave it out, or for a CSV "
        "file name --format csv."
    )
