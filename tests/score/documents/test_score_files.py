"""The folder of a score: everything in it, or nothing; and nobody else's files."""

import json
import os
from xml.etree import ElementTree

import pytest

from loop.core.digests import digest_bytes
from loop.core.errors import DataError, WriteError
from loop.score.documents import files as module
from loop.score.documents.files import check_folder, render_files, write_folder
from tests.score.documents.score_scenes import document_of

EVERY = {"score.html", "score.md", "scores.json", "per_case.csv", "errors.csv"}


def tree(folder):
    """Return every file of a folder with its bytes."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def made():
    """Return the files of three systems."""
    return render_files(document_of("a", "b", "c"))


def test_all_files_are_there_and_readable(made, tmp_path):
    """Page, text, data, tables and every figure."""
    write_folder(tmp_path / "out", made)
    found = tree(tmp_path / "out")
    assert found == dict(made)
    assert set(found) >= EVERY and sum(name.endswith(".svg") for name in found) == 6
    data = json.loads(found.pop("scores.json"))
    named = {one["name"]: one["sha256"] for one in data["written_beside"]}
    assert named == {name: digest_bytes(one) for name, one in found.items()}
    for name, data in found.items():
        if name.endswith(".svg"):
            ElementTree.fromstring(data)
    assert os.listdir(tmp_path) == ["out"]


def test_an_earlier_score_is_replaced_as_a_whole(made, tmp_path):
    """A figure of three systems does not stay beside the page of one."""
    out = tmp_path / "out"
    write_folder(out, made)
    write_folder(out, render_files(document_of("only")))
    assert "figures/differences.svg" not in tree(out)
    assert b"only on 300 cases" in tree(out)["score.html"]
    assert os.listdir(tmp_path) == ["out"]


def test_files_of_someone_else_are_not_touched(made, tmp_path):
    """A folder that is mistyped keeps what it holds."""
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(DataError, match=r"'thesis.tex', which are not touched\. Name"):
        write_folder(tmp_path, made)
    assert tree(tmp_path) == {"thesis.tex": b"years of work"}


def test_a_file_in_place_of_the_folder_is_refused(made, tmp_path):
    """The message says what it is."""
    (tmp_path / "out").write_text("a file")
    with pytest.raises(DataError, match=r"is a file\. Name a folder"):
        check_folder(tmp_path / "out")


def test_a_failure_in_the_middle_leaves_what_was_there(made, tmp_path, monkeypatch):
    """A full disk while the fourth file is written loses no earlier score."""
    out = tmp_path / "out"
    write_folder(out, made)
    before = tree(out)
    real, calls = module.write_atomic, []

    def failing(path, data):
        calls.append(path)
        if len(calls) == 4:
            raise WriteError("the disk is full")
        real(path, data)

    monkeypatch.setattr(module, "write_atomic", failing)
    with pytest.raises(WriteError):
        write_folder(out, render_files(document_of("other")))
    assert tree(out) == before
    assert os.listdir(tmp_path) == ["out"]


def test_a_folder_that_cannot_be_written_says_so(made, tmp_path):
    """The parent is a file: nothing is made anywhere."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(WriteError, match="cannot write"):
        write_folder(tmp_path / "file" / "out", made)


def test_a_folder_that_cannot_be_made_is_refused_before_the_work(tmp_path):
    """Texts are read for hours; that their page has no place is known at once."""
    (tmp_path / "ref.csv").write_text("id,text")
    with pytest.raises(WriteError, match="Not a directory"):
        check_folder(tmp_path / "ref.csv" / "out")
    check_folder(tmp_path / "new" / "deeper" / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["ref.csv"]
