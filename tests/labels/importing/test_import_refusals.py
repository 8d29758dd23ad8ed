"""Bad sources: what is wrong, where, what to do; nothing is left behind."""

import errno
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from loop.core.errors import DataError, LoopError, UnknownLabelError, WriteError
from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths
from loop.labels.cohort import iter_items, list_cohorts, read_cohort
from loop.labels.importing.encodings import check_encoding, decode_text, find_encoding
from loop.labels.importing.mimic import open_folder
from loop.labels.importing.source import ImportOptions

SECRET = "Unmistakable wording"
GOOD = [["case_id", "text"], ["a1", f"{SECRET}."]]

Importer = Callable[..., object]
Writer = Callable[..., Path]


def _traces(workspace: WorkspacePaths) -> list[str]:
    """Return files that a failed import left behind; locks and the key may stay."""
    kept = ("locks", "keys", ".gitignore")
    private = [
        str(path)
        for path in workspace.private.rglob("*")
        if path.is_file() and not any(part in kept for part in path.parts)
    ]
    return private + [str(path) for path in workspace.cohorts.glob("**/*")]


def _refused(
    workspace: WorkspacePaths,
    take: Importer,
    source: Path,
    message: str,
    **options: object,
) -> None:
    """Check that `source` is refused with `message` and that nothing remains."""
    with pytest.raises(DataError, match=message) as caught:
        take(source, **options)
    assert SECRET not in str(caught.value)
    assert _traces(workspace) == []
    assert read_ledger(workspace.ledger) == ()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [["text"], ["One."]],
            r"no column with case ids \(found: 'text'\).*--id-column",
        ),
        ([["case_id", "body"], ["1", "One."]], "no column with the text.*--text-col"),
        (
            [["id", "text", "text"], ["1", "a", "b"]],
            "columns 2 and 3 have the same name",
        ),
        ([["id", "text", "Edema", "edema"], ["1", "a", 1, 1]], "both label edema"),
        ([["id", "text", "edema"], ["1", "a", "maybe"]], "line 2: column 'edema'"),
        ([["id", "text"], ["1", SECRET], ["1", "b"]], "line 3: case id '1' already"),
        ([["id", "text"], ["", SECRET]], "line 2: no case id"),
        ([["id", "text"], ["1\t2", SECRET]], "line 2: .*control character"),
        ([["id", "text"], ["1", SECRET, "x"]], "line 2: 3 cells, the header has 2"),
        ([["id", "text"], ["1", ""]], "no case to import .1 empty"),
        ([["id", "text"]], "no case to import .it holds none"),
        ([["id", "text", "language"], ["1", "a", "English"]], "not a language code"),
        ([["id", "text"], ["1", SECRET * 60_000]], "line 2: a text of 1,200,000"),
    ],
)
def test_a_wrong_table_is_refused(
    workspace: WorkspacePaths,
    take: Importer,
    write_csv: Writer,
    rows: Sequence[Sequence[object]],
    message: str,
) -> None:
    """The line and the way out are named; the text is not."""
    _refused(workspace, take, write_csv(rows), message)


def test_a_misspelt_label_column_is_not_dropped(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """A label that vanished from the reference would look never wrong."""
    path = write_csv([["id", "text", "Pneumothroax"], ["1", "a", 1]])
    with pytest.raises(UnknownLabelError, match=r"line 1: .*mean 'Pneumothorax'"):
        take(path)
    assert _traces(workspace) == []


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b'id,text\n1,"never closed', "begins on line 2.*quote"),
        (b"id,text\n1,a\0b\n", "line 2: holds a NUL byte"),
        ("id,text\n1,a\n".encode("utf-16"), "is UTF-16. Save it as UTF-8"),
        ("id,text\n1,Größe\n".encode("cp1252"), "line 2: neither UTF-8 nor GBK"),
        (b"id,text\n1,\xff\xff\n", "line 2: neither UTF-8 nor GBK"),
        (
            "id,text\n1,双肺清晰\n".encode() + "2,心影增大\n".encode("gbk"),
            "mixes encodings: line 2 is UTF-8, line 3 is not",
        ),
        (
            "id,text\n1,双肺清晰\n".encode("gbk") + "2,心影增大\n".encode(),
            "mixes encodings: line 3 is UTF-8, line 2 is not",
        ),
        # Lines are looked at in blocks, and named one by one.
        (b"id,text\n" + 1_500 * b"1,a\n" + b"1,a\0b\n", "line 1502: holds a NUL byte"),
        (
            b"id,text\n"
            + "1,双肺清晰\n".encode()
            + 2_500 * b"1,a\n"
            + "2,心影增大\n".encode("gbk"),
            "mixes encodings: line 2 is UTF-8, line 2503 is not",
        ),
    ],
)
def test_wrong_bytes_are_refused(
    workspace: WorkspacePaths, take: Importer, tmp_path: Path, raw: bytes, message: str
) -> None:
    """Nothing is decoded into nonsense."""
    path = tmp_path / "reports.csv"
    path.write_bytes(raw)
    _refused(workspace, take, path, message)


def test_an_encoding_may_be_named(
    workspace: WorkspacePaths, take: Importer, tmp_path: Path
) -> None:
    """The way out of the message about neither UTF-8 nor GBK."""
    path = tmp_path / "reports.csv"
    path.write_bytes("id,text\n1,Größe normal\n".encode("cp1252"))
    take(path, encoding="cp1252")
    (item,) = iter_items(workspace, read_cohort(workspace, "mine"))
    assert item.variables["text"] == "Größe normal"


def test_a_wrong_encoding_is_refused(
    workspace: WorkspacePaths, take: Importer, tmp_path: Path
) -> None:
    """Named wrongly, or unknown to Python."""
    path = tmp_path / "reports.csv"
    path.write_bytes("id,text\n1,Größe normal\n".encode("cp1252"))
    _refused(workspace, take, path, "is not utf-8 throughout", encoding="utf-8")
    with pytest.raises(DataError, match="unknown encoding 'klingon'"):
        ImportOptions(name="mine", role="dev", encoding="klingon")


@pytest.mark.parametrize(
    ("text", "common"), [("座座座亍亍", True), ("座肺座亍亍亍", False)]
)
def test_chinese_is_told_by_its_everyday_characters(text: str, common: bool) -> None:
    """Three of five are enough, the last everyday one counts, and half is too few."""
    raw = f"1,{text}\n".encode("gbk")
    if common:
        assert decode_text(raw, Path("x.csv")) == f"1,{text}\n"
    else:
        with pytest.raises(DataError, match=r"x\.csv, line 1: neither UTF-8 nor GBK"):
            decode_text(raw, Path("x.csv"))


@pytest.mark.parametrize("name", ["auto", "UTF8", "latin-1"])
def test_an_encoding_is_known_by_any_of_its_names(name: str) -> None:
    """And kept under one."""
    known = {"auto": "auto", "UTF8": "utf-8", "latin-1": "iso8859-1"}
    assert check_encoding(name) == known[name]


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b"", "utf-8-sig"),
        (b"plain\n", "utf-8-sig"),
        ("Größe\n".encode(), "utf-8-sig"),
        ("\ufeffplain\n".encode(), "utf-8-sig"),
        ("双肺清晰\n".encode("gbk"), "gb18030"),
        # One line is the other's by accident; which way round does not matter.
        ("双肺\n".encode("gbk") + "Größe\n".encode(), "gb18030"),
        ("Größe\n".encode() + "双肺\n".encode("gbk"), "gb18030"),
    ],
)
def test_an_encoding_is_told_with_the_digest_of_the_bytes(
    tmp_path: Path, raw: bytes, name: str
) -> None:
    """Found or named, the digest is of the whole file as it is."""
    path = tmp_path / "reports.csv"
    path.write_bytes(raw)
    digest = hashlib.sha256(raw).hexdigest()
    assert find_encoding(path) == (name, digest)
    assert find_encoding(path, "cp1252") == ("cp1252", digest)


def test_accidental_utf8_does_not_make_gbk_a_mixture(tmp_path: Path) -> None:
    """Some GBK words are valid two-byte UTF-8: the rest of the file decides."""
    path = tmp_path / "reports.csv"
    path.write_bytes("id,text\n1,联通\n2,双肺清晰\n".encode("gbk"))
    assert find_encoding(path).name == "gb18030"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["{"], "line 1, column 2: not valid JSON"),
        (["[1]"], "item 1: not a JSON object"),
        (['{"id": 1, "text": "a", "text": "b"}'], "line 1: a key appears twice"),
        (['{"id": 1, "text": "a"}', '{"id": 2, "text": ['], "line 2"),
        (['{"id": 1, "text": "a"}', '{"id": 2, "txt": "b"}'], "new: 'txt'"),
        (['{"id": 1, "text": "a"}', '{"text": "b"}'], "no case id"),
        (['{"id": 1, "text": ["a"]}'], "line 1: column 'text' holds list"),
        (['{"id": 1, "text": "a", "labels": {"edma": 1}}'], "mean 'Edema'"),
        (['{"id": 1, "text": "a", "labels": [1]}'], "labels is not an object"),
        (['{"id": 1, "text": "a\\ud800"}'], "case '1': .*unpaired surrogate"),
        (["[" * 100_000], "item 1"),
    ],
)
def test_a_wrong_json_line_is_refused(
    workspace: WorkspacePaths,
    take: Importer,
    tmp_path: Path,
    lines: Sequence[str],
    message: str,
) -> None:
    """The line is named, and which keys differ."""
    path = tmp_path / "reports.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    _refused(workspace, take, path, message)


@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        ("reports.parquet", b"PAR1 no", "cannot be read as Parquet"),
        ("reports.xlsx", b"PK", "cannot be read as Excel"),
        ("reports.docx", b"PK", "cannot tell its format"),
        ("nothing.csv", None, "does not exist"),
        ("folder/readme.md", b"x", "holds no .txt file"),
    ],
)
def test_a_wrong_source_is_refused(
    workspace: WorkspacePaths,
    take: Importer,
    tmp_path: Path,
    name: str,
    raw: bytes | None,
    message: str,
) -> None:
    """Before anything is read."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    if raw is not None:
        path.write_bytes(raw)
    source = path.parent if "/" in name else path
    _refused(workspace, take, source, message)


def test_two_files_of_one_name_are_refused(
    workspace: WorkspacePaths, take: Importer, tmp_path: Path
) -> None:
    """In a tree of folders, file names are case ids."""
    for folder in ("p1", "p2"):
        (tmp_path / "files" / folder).mkdir(parents=True)
        (tmp_path / "files" / folder / "s1.txt").write_text(f"FINDINGS: {SECRET}.")
    _refused(workspace, take, tmp_path / "files", r"p2.s1.txt: case id 's1'.*p1.s1.txt")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"role": "test"}, "no role 'test'. Use one of taxonomy, dev"),
        ({"name": "../x"}, "cannot be the name"),
        ({"format": "word"}, "no format 'word'"),
        ({"format": "openi"}, "no column uid, MeSH"),
        ({"exclude": ("zz",)}, "no case 'zz' to leave out"),
    ],
)
def test_a_wrong_option_is_refused(
    workspace: WorkspacePaths,
    take: Importer,
    write_csv: Writer,
    options: dict[str, object],
    message: str,
) -> None:
    """Each message lists what would be right."""
    _refused(workspace, take, write_csv(GOOD), message, **options)


def test_an_existing_cohort_is_not_overwritten(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """The old cohort is untouched; --replace is the way out."""
    take(write_csv(GOOD))
    with pytest.raises(DataError, match=r"already exists.*--replace"):
        take(write_csv([["id", "text"], ["b", "New."]]))
    assert read_cohort(workspace, "mine").case_ids == ("a1",)


def test_a_failed_replacement_leaves_the_old_cohort(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """Also when the failure comes after the files were moved."""
    take(write_csv(GOOD))
    with pytest.raises(DataError, match="have the same name"):
        take(write_csv([["id", "id", "text"], ["b", "c", "New."]]), replace=True)
    whole = workspace.ledger.read_bytes()
    workspace.ledger.write_bytes(whole + b"broken\n")
    with pytest.raises(LoopError, match="not a ledger entry"):
        take(write_csv([["id", "text"], ["b", "New."]]), replace=True)
    workspace.ledger.write_bytes(whole)
    (item,) = iter_items(workspace, read_cohort(workspace, "mine"))
    assert item.variables["text"] == f"{SECRET}."


def test_a_broken_ledger_stops_the_import(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """No cohort without its entry."""
    workspace.ledger.write_bytes(b"broken\n")
    with pytest.raises(LoopError, match="not a ledger entry"):
        take(write_csv(GOOD))
    assert _traces(workspace) == []


def test_a_full_disk_leaves_nothing_behind(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer, monkeypatch
) -> None:
    """The operating system's answer becomes a message with a way out."""

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    source = write_csv(GOOD)
    take(source, "first")
    before = list_cohorts(workspace)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError, match="disk is full"):
        take(source)
    assert list_cohorts(workspace) == before
    assert not list(workspace.cohorts.glob(".mine*"))
    assert not list((workspace.private / "cases").glob("*mine*"))


def test_a_killed_import_is_cleaned_up_by_the_next(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """What a kill left behind is hidden, and goes with the next import."""
    take(write_csv(GOOD), "other")
    leftover = workspace.cohorts / ".mine.importing-abc"
    leftover.mkdir()
    (leftover / "cohort.yaml").write_text("name: mine\n")
    assert list_cohorts(workspace) == ("other",)
    take(write_csv(GOOD))
    assert not leftover.exists()


def test_a_damaged_pseudonym_key_is_refused(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer
) -> None:
    """A new key would make patients of older cohorts strangers."""
    take(write_csv(GOOD))
    (workspace.private / "keys" / "pseudonym").write_text("short\n")
    with pytest.raises(DataError, match="pseudonym"):
        take(write_csv(GOOD), "other")


def test_a_huge_json_text_is_refused_by_name(
    workspace: WorkspacePaths, take: Importer, tmp_path: Path
) -> None:
    """Five megabytes are no report."""
    path = tmp_path / "reports.jsonl"
    path.write_text(json.dumps({"id": "a1", "text": SECRET[:10] * 500_000}))
    _refused(workspace, take, path, "line 1: a text of 5,000,000 characters")


def test_a_huge_text_file_is_refused_by_name(
    workspace: WorkspacePaths, take: Importer, tmp_path: Path
) -> None:
    """Before its sections are looked for."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "s1.txt").write_text("FINDINGS: " + "clear " * 900_000)
    _refused(workspace, take, tmp_path / "files", "s1.txt: a text of 5,400,010")


def test_hidden_files_and_folders_are_no_reports(
    workspace: WorkspacePaths, tmp_path: Path, take: Importer
) -> None:
    """Nor is another kind of file; the nearest folder of a patient is theirs."""
    folder = tmp_path / "files"
    for name in (
        "p10/p100000/p200000/s1.txt",
        "p12345/S2.TXT",
        ".git/s3.txt",
        "p200000/.s4.txt",
        "p200000/s5.text",
        "p200000/s6.txt",
        "xp300000/s7.txt",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"FINDINGS: Clear, {name}.")
    found = list(open_folder(folder, "auto").cases)
    assert [(one.where, one.case_id, one.patient) for one in found] == [
        ("p10/p100000/p200000/s1.txt", "s1", "p200000"),
        ("p12345/S2.TXT", "S2", ""),
        ("p200000/s6.txt", "s6", "p200000"),
        ("xp300000/s7.txt", "s7", ""),
    ]
    assert found[1].text == "FINDINGS:\nClear, p12345/S2.TXT."


def test_a_linked_folder_is_refused(tmp_path: Path, take: Importer) -> None:
    """Links are not followed: its reports would be missing without a count."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "s2.txt").write_text("Clear.")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "s1.txt").write_text("Clear.")
    (tmp_path / "files" / "more").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="more is a link to a folder"):
        take(tmp_path / "files")


@pytest.mark.parametrize("target", ["elsewhere.txt", "files/s1.txt", "nowhere.txt"])
def test_a_linked_file_is_refused(tmp_path: Path, take: Importer, target: str) -> None:
    """It may lead to any file of this machine; even inside it is a second copy."""
    (tmp_path / "elsewhere.txt").write_text(SECRET)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "s1.txt").write_text("Clear.")
    (tmp_path / "files" / "s2.txt").symlink_to(tmp_path / target)
    with pytest.raises(DataError, match=r"s2\.txt is a link, which is not followed"):
        take(tmp_path / "files")


def test_a_pipe_is_refused(tmp_path: Path, take: Importer) -> None:
    """Reading it would wait for ever."""
    (tmp_path / "files").mkdir()
    os.mkfifo(tmp_path / "files" / "s1.txt")
    with pytest.raises(DataError, match=r"s1\.txt is no file"):
        take(tmp_path / "files")


def test_a_label_given_twice_in_one_line_is_refused(
    tmp_path: Path, take: Importer
) -> None:
    """Which of the two holds is not for the importer to guess."""
    row = '{"id": "a", "text": "One.", "edema": 1, "labels": {"edema": 0}}'
    (tmp_path / "twice.jsonl").write_text(row + "\n")
    with pytest.raises(DataError, match="edema appears both in labels and as a column"):
        take(tmp_path / "twice.jsonl")


@pytest.mark.parametrize("encoding", ["base64", "rot13", "undefined"])
def test_what_encodes_no_text_is_no_encoding(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer, encoding: str
) -> None:
    """Python knows these names, and fails when a text is read with one."""
    _refused(workspace, take, write_csv(GOOD), "unknown encoding", encoding=encoding)


@pytest.mark.parametrize("name", ["reports.csv", "reports.jsonl"])
def test_utf16_without_its_mark_is_refused(
    workspace: WorkspacePaths, take: Importer, tmp_path: Path, name: str
) -> None:
    """Its error is not the one of a byte that cannot be read."""
    path = tmp_path / name
    path.write_bytes(b"id,text\na1,Clear.\n")
    _refused(workspace, take, path, "not utf-16", encoding="utf-16")


@pytest.mark.parametrize(
    ("data", "encoding", "byte"),
    [(b"Clear\xff", "utf-8", 5), (b"Clear", "utf-16", 4), (b"\x81", "cp1252", 0)],
)
def test_a_small_file_in_another_encoding_than_named_is_refused(
    data: bytes, encoding: str, byte: int
) -> None:
    """A folder of reports is read file by file, and each may be the wrong one."""
    with pytest.raises(DataError, match=rf"s1.txt is not {encoding} \(byte {byte}\)"):
        decode_text(data, Path("s1.txt"), encoding)


def test_a_disk_on_which_nothing_can_be_made_leaves_nothing_behind(
    workspace: WorkspacePaths, take: Importer, write_csv: Writer, monkeypatch
) -> None:
    """The file of the texts is the first that is opened; its refusal has a way out."""
    source, asked, opening = write_csv(GOOD), [], os.open

    def refuse(path: str | Path, flags: int, *more: int, **options: int) -> int:
        if flags & os.O_CREAT and "cases" in Path(path).parts:
            asked.append(path)
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return opening(path, flags, *more, **options)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(WriteError, match="cases"):
        take(source)
    assert len(asked) == 1
    assert _traces(workspace) == []
