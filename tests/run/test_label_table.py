"""A run's labels as a table: nothing invented, nothing lost, nothing run by Excel."""

import csv
import errno
import gc
import json
import os
import random
import resource
import stat
import tracemalloc
import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openpyxl import load_workbook

from loop.core.errors import DataError, WriteError
from loop.core.ledger import Actor
from loop.core.records import Completion, Status
from loop.engines import base
from loop.labels.cohort import cohort_folder
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.labels.importing.table_files import open_table
from loop.labels.taxonomy import read_taxonomy
from loop.run import label_table
from loop.run.label_table import (
    CellValues,
    LabelNames,
    check_target,
    manifest_path,
    write_labels,
)
from loop.run.manifest import find_run, read_manifest
from loop.run.task import run_prompt

TEXTS = {
    "=c0": "Small left pleural effusion. No pneumothorax.",
    "007": "=1+1 possible pneumonia",
    "lost": "The server fails here.",
    "odd": "The answer here is no JSON.",
    "c,4": 'Clear lungs, "normal"\r\nheart. _x000D_ 气胸\x07?',
}
SUFFIXES = (".csv", ".parquet", ".xlsx")


class Uneven:
    """Fails at one case, cannot be read at another; knows two findings."""

    retry_unreadable = 0

    def __init__(self, name, settings):
        """Take what a factory is given."""

    def identity(self):
        """Return a name."""
        return {"engine": "uneven", "model": "m"}

    def complete(self, prompts):
        """Yield an answer to each prompt."""
        for index, prompt in enumerate(prompts):
            text = prompt.item.variables["text"]
            if "fails" in text:
                yield index, Completion("", "error", "HTTP 500")
                continue
            if "no JSON" in text:
                yield index, Completion("I would rather not.", "stop")
                continue
            answer = dict.fromkeys(prompt.frame.fields, "absent")
            if "effusion" in text:
                answer["pleural_effusion"] = "present"
            if "pneumonia" in text:
                answer["pneumonia"] = "uncertain"
            yield index, Completion(json.dumps(answer), "stop")


def ask(workspace, folder, engine, cases=TEXTS, role="dev"):
    """Import `cases`, ask `engine` about them, and return the run's id."""
    source = folder / "cases.csv"
    with source.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("case_id", "text"), *cases.items()])
    options = ImportOptions(name="small", role=role, source="test", licence="none")
    import_cohort(workspace, source, options, actor=Actor(name="t"))
    return run_prompt(workspace, "extractor", "small", engine=engine).run_id


@pytest.fixture
def uneven(workspace, tmp_path, monkeypatch):
    """Run the uneven engine over five cases."""
    monkeypatch.setitem(base._FACTORIES, "uneven", Uneven)
    return ask(
        workspace,
        tmp_path,
        "uneven:m",
        {key: text.replace("\x07", "") for key, text in TEXTS.items()},
    )


def rows_of(path):
    """Return a table's rows, by case, as `score` would read them."""
    opened = open_table(path)
    rows = [dict(row.cells) for row in opened.read(opened.header)]
    return {row["case_id"]: {k: v or None for k, v in row.items()} for row in rows}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_value_is_where_it_belongs(workspace, uneven, tmp_path, suffix):
    """What was not answered is blank with its status, never absent."""
    out = tmp_path / f"labels{suffix}"
    write_labels(workspace, out, uneven)
    labels = read_taxonomy(workspace.labels)
    assert list(open_table(out).header) == [
        *("case_id", "status"),
        *(label.name for label in labels.labels),
    ]
    rows = rows_of(out)
    assert list(rows) == list(TEXTS)
    names = [label.name for label in labels.labels]
    for key, status in (("lost", "engine_failed"), ("odd", "unparsed")):
        assert rows[key].pop("status") == status
        assert {rows[key][name] for name in names} == {None}
    effusion, pneumonia, clear = rows["=c0"], rows["007"], rows["c,4"]
    assert effusion["status"] == pneumonia["status"] == clear["status"] == "answered"
    assert effusion["Pleural Effusion"] == "present"
    assert effusion["No Finding"] == "absent"
    assert pneumonia["Pneumonia"] == "uncertain" and clear["Pneumonia"] == "absent"
    assert clear["No Finding"] == "present"
    others = [name for name in names if name not in ("Pleural Effusion", "No Finding")]
    assert {effusion[name] for name in others} == {"absent"}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_numbers_are_those_of_the_chexpert_labeler(workspace, uneven, tmp_path, suffix):
    """1, 0 and -1, as numbers where the format has them; the manifest says so."""
    out = tmp_path / f"labels{suffix}"
    written = write_labels(
        workspace, out, uneven, names=LabelNames.IDS, values=CellValues.NUMBERS
    )
    opened = open_table(out)
    rows = {one.cells["case_id"]: one.cells for one in opened.read(opened.header)}
    kind = str if suffix == ".csv" else int
    assert rows["=c0"]["pleural_effusion"] == kind(1)
    assert rows["007"]["pneumonia"] == kind(-1)
    assert rows["c,4"]["pneumonia"] == kind(0)
    assert rows["lost"]["pneumonia"] in ("", None)
    assert written.manifest["values"] == {
        "present": 1,
        "absent": 0,
        "uncertain": -1,
        "not answered": "",
    }


def test_the_manifest_vouches_for_the_bytes(workspace, uneven, tmp_path):
    """Counts, run, prompt, engine and digests; both files are their owner's only."""
    import hashlib

    out = tmp_path / "labels.csv"
    written = write_labels(workspace, out, uneven)
    manifest = json.loads(manifest_path(out).read_text("utf-8"))
    assert manifest == json.loads(json.dumps(written.manifest))
    assert manifest["sha256"] == hashlib.sha256(out.read_bytes()).hexdigest()
    assert manifest["run"] == uneven and manifest["draw"] == 0
    assert manifest["engine_identity"]["model"] == "m"
    assert manifest["statuses"] == {"answered": 3, "engine_failed": 1, "unparsed": 1}
    assert manifest["labels"]["pneumonia"] == {
        "present": 0,
        "absent": 2,
        "uncertain": 1,
        "blank": 2,
    }
    assert manifest["taxonomy_digest"] == read_taxonomy(workspace.labels).digest
    assert manifest["private"] == []
    for path in (out, manifest_path(out)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_parquet_and_excel_say_themselves_what_they_are_of(workspace, uneven, tmp_path):
    """A file that lost its manifest is not an orphan."""
    for suffix in (".parquet", ".xlsx"):
        out = tmp_path / f"labels{suffix}"
        written = write_labels(workspace, out, uneven)
        if suffix == ".parquet":
            said = pq.read_schema(out).metadata[b"ranloop"]
        else:
            said = load_workbook(out).properties.description
        about = json.loads(said)
        assert about == {key: written.manifest[key] for key in about}
        assert {"run", "prompt_digest", "engine_identity", "values"} <= set(about)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_evidence_and_text_are_there_on_request_only(workspace, tmp_path, suffix):
    """The words each answer rests on; the manifest says that they are private."""
    run = ask(workspace, tmp_path, "rules", {"a": TEXTS["=c0"], "b": TEXTS["007"]})
    plain, full = tmp_path / f"plain{suffix}", tmp_path / f"full{suffix}"
    write_labels(workspace, plain, run)
    written = write_labels(workspace, full, run, evidence=True, text=True)
    assert not {"text", "Pneumonia evidence"} & set(open_table(plain).header)
    row = rows_of(full)["a"]
    assert "effusion" in row["Pleural Effusion evidence"]
    assert row["text"] == TEXTS["=c0"]
    assert rows_of(full)["b"]["text"] == TEXTS["007"]
    assert written.manifest["private"] == ["evidence", "text"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_table_with_texts_is_imported_to_the_same_cohort(
    workspace, uneven, tmp_path, suffix
):
    """Byte for byte, ids and texts that a spreadsheet would run among them."""
    out = tmp_path / f"labels{suffix}"
    write_labels(workspace, out, uneven, text=True)
    options = ImportOptions(name="back", role="dev", source="test", licence="none")
    import_cohort(workspace, out, options, actor=Actor(name="t"))
    one, two = (
        (cohort_folder(workspace, name) / "cases.csv").read_bytes()
        for name in ("small", "back")
    )
    assert one == two


def test_nothing_in_it_is_run_by_a_spreadsheet(workspace, uneven, tmp_path):
    """Neither an id nor a text that begins like a formula."""
    for suffix in (".csv", ".xlsx"):
        write_labels(workspace, tmp_path / f"labels{suffix}", uneven, text=True)
    with (tmp_path / "labels.csv").open(encoding="utf-8", newline="") as stream:
        cells = [cell for row in csv.reader(stream) for cell in row]
    assert not [cell for cell in cells if cell[:1] in ("=", "+", "-", "@", "\t")]
    book = load_workbook(tmp_path / "labels.xlsx")
    kinds = {cell.data_type for row in book["labels"] for cell in row}
    assert "f" not in kinds


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("labels.txt", "ends with one of .csv, .parquet, .xlsx"),
        ("labels", "ends with one of"),
        ("there.csv", "already exists and was left as it is"),
        ("beside.csv", "beside.csv.json already exists"),
        ("folder.csv", "is a folder"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused(
    workspace, uneven, tmp_path, name, message
):
    """And what is there is left as it was."""
    (tmp_path / "there.csv").write_text("mine")
    (tmp_path / "beside.csv.json").write_text("mine")
    (tmp_path / "folder.csv").mkdir()
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises((DataError, WriteError), match=message):
        write_labels(workspace, tmp_path / name, uneven)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert (tmp_path / "there.csv").read_text() == "mine"


def test_replace_writes_over_a_table_and_its_manifest(workspace, uneven, tmp_path):
    """Only when it is asked for."""
    out = tmp_path / "labels.csv"
    write_labels(workspace, out, uneven)
    first = out.read_bytes()
    with pytest.raises(DataError, match="--replace"):
        check_target(out)
    written = write_labels(
        workspace, out, uneven, names=LabelNames.IDS, replace=True
    ).manifest
    assert out.read_bytes() != first
    assert json.loads(manifest_path(out).read_text("utf-8"))["names"] == "ids"
    assert written["names"] == "ids"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_full_disk_leaves_nothing_behind(
    workspace, uneven, tmp_path, monkeypatch, suffix
):
    """Neither half a table nor a manifest of one; an older table stays."""
    out = tmp_path / "out" / f"labels{suffix}"
    out.parent.mkdir()
    write_labels(workspace, out, uneven)
    before = {path.name: path.read_bytes() for path in out.parent.iterdir()}

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError, match="disk is full"):
        write_labels(workspace, out, uneven, values=CellValues.NUMBERS, replace=True)
    after = {path.name: path.read_bytes() for path in out.parent.iterdir()}
    assert after == before


def import_again(workspace, folder, role):
    """Import other texts under the name of the cohort that was asked."""
    path = folder / "again.csv"
    path.write_text("case_id,text\na,Normal heart.\n")
    options = ImportOptions(
        name="small",
        role=role,
        source="test",
        licence="none",
        replace=True,
        reason="test",
    )
    import_cohort(workspace, path, options, actor=Actor(name="t"))


@pytest.mark.parametrize(
    "suffix, free", [(".csv", 0), (".csv", 1_000), *((one, 100) for one in SUFFIXES)]
)
def test_a_disk_that_fills_while_rows_are_written(
    workspace, uneven, tmp_path, monkeypatch, suffix, free
):
    """As above, for what fails within a library."""
    out = tmp_path / "out" / f"labels{suffix}"
    out.parent.mkdir()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    real = label_table._read_cases

    def full(*given):
        yield from real(*given)
        resource.setrlimit(resource.RLIMIT_FSIZE, (free, limit[1]))

    monkeypatch.setattr(label_table, "_read_cases", full)
    try:
        with pytest.raises(WriteError):
            write_labels(workspace, out, uneven, text=True, evidence=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        with warnings.catch_warnings():
            # XlsxWriter leaves its own file to the garbage collector then.
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
    assert list(out.parent.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_table_of_the_same_run_is_the_same_bytes(workspace, uneven, tmp_path, suffix):
    """So that its digest can be checked by whoever has the workspace."""
    one, two = (
        write_labels(workspace, tmp_path / name, uneven, text=True).manifest["sha256"]
        for name in (f"a{suffix}", f"b{suffix}")
    )
    assert one == two


def test_answers_on_a_holdout_stay_with_their_release(workspace, uneven, tmp_path):
    """Else anyone could score the holdout at home."""
    import_again(workspace, tmp_path, "holdout")
    with pytest.raises(DataError, match="a holdout: its answers stay"):
        write_labels(workspace, tmp_path / "labels.csv", uneven)
    assert not (tmp_path / "labels.csv").exists()


def test_texts_of_another_cohort_are_not_put_beside_answers(
    workspace, uneven, tmp_path
):
    """A cohort that was imported anew keeps its name, not its digest."""
    import_again(workspace, tmp_path, "dev")
    write_labels(workspace, tmp_path / "labels.csv", uneven)
    with pytest.raises(DataError, match="holds other cases than run"):
        write_labels(workspace, tmp_path / "texts.csv", uneven, text=True)


@pytest.mark.parametrize(
    ("limit", "message"),
    [("_EXCEL_CELL", "a cell of Excel holds"), ("_EXCEL_ROWS", "a sheet of Excel")],
)
def test_what_excel_cannot_hold_is_refused(
    workspace, uneven, tmp_path, monkeypatch, limit, message
):
    """It would be cut without a word otherwise; the text is not told."""
    monkeypatch.setattr(label_table, limit, 4)
    with pytest.raises(DataError, match=message) as caught:
        write_labels(workspace, tmp_path / "labels.xlsx", uneven, text=True)
    assert "effusion" not in str(caught.value)
    assert not (tmp_path / "labels.xlsx").exists()


def test_a_sheet_of_excel_may_be_full(workspace, uneven, tmp_path, monkeypatch):
    """The heading is one of its rows; one row or one character more is refused."""
    longest = max(map(len, TEXTS.values()))
    for cell, rows, name in (
        (longest, len(TEXTS) + 1, "full"),
        (longest - 1, len(TEXTS) + 1, "text"),
        (longest, len(TEXTS), "rows"),
    ):
        monkeypatch.setattr(label_table, "_EXCEL_CELL", cell)
        monkeypatch.setattr(label_table, "_EXCEL_ROWS", rows)
        out = tmp_path / f"{name}.xlsx"
        if name == "full":
            write_labels(workspace, out, uneven, text=True)
            assert list(rows_of(out)) == list(TEXTS)
            continue
        with pytest.raises(DataError, match="of Excel holds"):
            write_labels(workspace, out, uneven, text=True)


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_parquet_is_written_in_groups_that_lose_no_row(
    workspace, uneven, tmp_path, monkeypatch, batch
):
    """Five cases: in groups of one, with one left over, and in one group."""
    monkeypatch.setattr(label_table, "_BATCH", batch)
    out = tmp_path / "labels.parquet"
    write_labels(workspace, out, uneven)
    assert list(rows_of(out)) == list(TEXTS)
    assert pq.ParquetFile(out).num_row_groups == -(-len(TEXTS) // batch)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_large_run_is_written_in_little_memory(
    workspace, uneven, tmp_path, monkeypatch, suffix
):
    """Rows are written as they are read: ten times the cases take no more memory."""
    chance = random.Random(1)
    labels = read_taxonomy(workspace.labels).extracted

    def many(size):
        for number in range(size):
            values = {name: chance.choice(("present", "absent")) for name in labels}
            yield label_table.Values(f"c{number}", real[0].status, values)

    with label_table.open_store(workspace) as store:
        record = label_table.find_run(workspace, uneven)
        real = list(label_table.read_values(store, record))

    def peak(size):
        out = tmp_path / f"labels{size}{suffix}"
        monkeypatch.setattr(label_table, "read_values", lambda *given: many(size))
        tracemalloc.start()
        try:
            written = write_labels(workspace, out, uneven)
            return written.manifest["rows"], tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    monkeypatch.setattr(label_table, "_BATCH", 200)
    peak(10)
    small, large = peak(400), peak(4_000)
    assert (small[0], large[0]) == (400, 4_000)
    assert large[1] < 1.5 * small[1] + 200_000


def test_the_manifest_tells_all_that_a_reader_must_know(workspace, uneven, tmp_path):
    """Whole, as other programs read it."""
    out = tmp_path / "labels.csv"
    written = write_labels(workspace, out, uneven, names=LabelNames.IDS, text=True)
    record, labels = find_run(workspace, uneven), read_taxonomy(workspace.labels)
    named = {"pleural_effusion": (1, 2, 0), "pneumonia": (0, 2, 1)}
    named["no_finding"] = (1, 2, 0)
    counts = {name: named.get(name, (0, 3, 0)) for name in labels.ids}
    assert written.path == out
    assert dict(written.manifest) == {
        "file": "labels.csv",
        "sha256": written.manifest["sha256"],
        "format": "ranloop-labels/1",
        "run": uneven,
        "created": record.created,
        "draw": 0,
        "prompt": "extractor@v1",
        "prompt_digest": record.spec.prompt_digest,
        "contract": record.spec.contract,
        "engine": "uneven:m",
        "parameters": {"temperature": 0.0, "max_tokens": 2048, "seed": 0},
        "engine_identity": read_manifest(workspace, uneven)["engine_identity"],
        "cohort": "small",
        "cohort_digest": record.spec.cohort_digest,
        "taxonomy_digest": labels.digest,
        "no_finding": "ran",
        "names": "ids",
        "values": {
            "present": "present",
            "absent": "absent",
            "uncertain": "uncertain",
            "not answered": "",
        },
        "private": ["text"],
        "rows": 5,
        "statuses": {"answered": 3, "engine_failed": 1, "unparsed": 1},
        "labels": {
            name: dict(
                zip(
                    ("present", "absent", "uncertain", "blank"),
                    (*numbers, 2),
                    strict=True,
                )
            )
            for name, numbers in counts.items()
        },
    }


def table_of(workspace, **options):
    """Return the columns of a table, and how a row of it is made."""
    chosen = {
        "names": LabelNames.PUBLISHED,
        "values": CellValues.WORDS,
        "evidence": False,
        "text": False,
    }
    taxonomy = read_taxonomy(workspace.labels)
    return label_table._Table(taxonomy, **{**chosen, **options})


def labelled(values, quotes=None, text="", status=Status.ANSWERED):
    """Return one case of a run."""
    answers = label_table.Values("c1", status, values)
    return label_table._Labelled(answers, quotes or {}, text)


@pytest.mark.parametrize(
    ("names", "space", "label"),
    [
        (LabelNames.PUBLISHED, " ", "Pleural Effusion"),
        (LabelNames.IDS, "_", "pleural_effusion"),
    ],
)
def test_columns_stand_in_their_order(workspace, names, space, label):
    """Id and status, labels, what they rest on, and the text at the end."""
    labels = read_taxonomy(workspace.labels).labels
    called = [one.name if space == " " else one.id for one in labels]
    assert label in called
    quotes = [f"{name}{space}evidence" for name in called]
    whole = table_of(workspace, names=names, evidence=True, text=True)
    assert whole.columns == ("case_id", "status", *called, *quotes, "text")
    assert [*whole.numbered] == []
    table = table_of(workspace, names=names, values=CellValues.NUMBERS, text=True)
    assert table.columns == ("case_id", "status", *called, "text")
    assert [*table.numbered] == [*range(2, 2 + len(labels))]


def test_a_row_has_a_cell_for_each_column(workspace):
    """In words or numbers; what nobody said, or has no words to rest on, is blank."""
    taxonomy = read_taxonomy(workspace.labels)
    values = {"edema": "present", "fracture": "uncertain", "pneumonia": "absent"}
    quotes = {"edema": "wet", "fracture": ""}
    # Nobody said enough of the others for "No Finding" to follow.
    said = values
    table = table_of(workspace, evidence=True, text=True)
    (row,) = table.rows([labelled(values, quotes, "T.")])
    assert row == [
        *("c1", "answered"),
        *(said.get(name) for name in taxonomy.ids),
        *("wet" if name == "edema" else None for name in taxonomy.ids),
        "T.",
    ]
    table = table_of(workspace, values=CellValues.NUMBERS)
    (row,) = table.rows([labelled(values)])
    numbers = {"present": 1, "absent": 0, "uncertain": -1, None: None}
    cells = [numbers[said.get(name)] for name in taxonomy.ids]
    assert row == ["c1", "answered", *cells]
    assert table.counts["edema"] == {"present": 1}
    assert table.counts["pleural_effusion"] == {"blank": 1}
    assert table.statuses == {"answered": 1}


def test_what_is_no_label_value_is_never_written_as_one(workspace):
    """Points of a judge, for example; its case is named."""
    table = table_of(workspace)
    for wrong in ("maybe", 2, None):
        with pytest.raises(DataError, match=r"case c1: an answer is not present, abs"):
            list(table.rows([labelled({"edema": wrong})]))


def test_the_words_an_answer_rests_on_are_joined(workspace, tmp_path):
    """Of several places all, in their order; of a run with a limit the first cases."""
    cases = {"a": "Edema seen here.", "b": "Wet lungs again.", "c": "Third case now."}
    ask(workspace, tmp_path, "rules", cases)
    run = run_prompt(workspace, "extractor", "small", engine="rules", limit=2).run_id
    with label_table.open_store(workspace) as store, store.writing() as connection:
        connection.execute(
            "UPDATE outcomes SET fields = json_set(fields, '$.edema', "
            "json('[\"present\",[[0,5],[11,15]]]'))"
        )
    out = tmp_path / "labels.csv"
    write_labels(workspace, out, run, evidence=True, text=True)
    found = {
        key: (row["Edema evidence"], row["Fracture evidence"], row["text"])
        for key, row in rows_of(out).items()
    }
    assert found == {
        "a": ("Edema … here", None, cases["a"]),
        "b": ("Wet l … gain", None, cases["b"]),
    }


@pytest.mark.parametrize("suffix", [".CSV", ".Parquet", ".XLSX"])
def test_a_suffix_may_be_written_in_capitals(workspace, uneven, tmp_path, suffix):
    """It is the same kind of file; without one it is none."""
    out = tmp_path / f"labels{suffix}"
    check_target(out)
    write_labels(workspace, out, uneven)
    assert out.stat().st_size and manifest_path(out).name == f"labels{suffix}.json"
    with pytest.raises(DataError, match=r"labels\.json: labels are written to a file"):
        check_target(tmp_path / "labels.json", replace=True)


def test_a_csv_is_these_bytes(workspace, uneven, tmp_path):
    """RFC 4180, in UTF-8: numbers bare, blanks empty, a formula shielded."""
    out = tmp_path / "labels.csv"
    write_labels(
        workspace, out, uneven, names=LabelNames.IDS, values=CellValues.NUMBERS
    )
    ids = read_taxonomy(workspace.labels).ids
    said = {
        "'=c0": {"pleural_effusion": 1},
        "007": {"pneumonia": -1},
        '"c,4"': {"no_finding": 1},
    }
    rows = [",".join(("case_id", "status", *ids))]
    for case in ("'=c0", "007", "lost", "odd", '"c,4"'):
        status = {"lost": "engine_failed", "odd": "unparsed"}.get(case, "answered")
        cells = [str(said[case].get(name, 0)) if case in said else "" for name in ids]
        rows.append(",".join((case, status, *cells)))
    assert out.read_bytes().decode("utf-8") == "\r\n".join(rows) + "\r\n"


@pytest.mark.parametrize("values", CellValues)
def test_a_column_of_parquet_has_its_type(workspace, uneven, tmp_path, values):
    """Eight bits for a number; everything else is text, also what looks like one."""
    out = tmp_path / "labels.parquet"
    write_labels(workspace, out, uneven, names=LabelNames.IDS, values=values, text=True)
    table = pq.read_table(out)
    number = pa.int8() if values is CellValues.NUMBERS else pa.string()
    ids = read_taxonomy(workspace.labels).ids
    assert {one.name: one.type for one in table.schema} == {
        "case_id": pa.string(),
        "status": pa.string(),
        **dict.fromkeys(ids, number),
        "text": pa.string(),
    }
    assert table["case_id"].to_pylist() == list(TEXTS)
    uncertain = -1 if values is CellValues.NUMBERS else "uncertain"
    assert table["pneumonia"].to_pylist()[1:4] == [uncertain, None, None]
