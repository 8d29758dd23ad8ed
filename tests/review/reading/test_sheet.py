"""What a reader is given of a case, and what not."""

import dataclasses

import pytest

from loop.core.errors import DataError
from loop.core.records import Value
from loop.labels.cohort import texts_path
from loop.review.reading.answers import answer
from loop.review.reading.assignment import read_assignment
from loop.review.reading.sheet import ReadingSheet, open_sheet
from tests.review.reading.conftest import CASES, import_texts


def test_a_reader_gets_text_and_own_answers_and_nothing_else(
    workspace, store, assignment
):
    """Blinding by construction: there is no field for anything more."""
    answer(store, assignment, "Dr. A", "c1", {"edema": Value.PRESENT})
    answer(store, assignment, "Dr. B", "c1", {"fracture": Value.PRESENT})
    sheet = open_sheet(workspace, store, assignment, "Dr. A", "c1")
    assert [field.name for field in dataclasses.fields(ReadingSheet)] == [
        "case_id", "text", "answers", "comment", "open_labels",
    ]  # fmt: skip
    assert sheet.answers == {"edema": Value.PRESENT}
    assert sheet.text == "Made-up text number 1."
    assert "edema" not in sheet.open_labels
    assert len(sheet.open_labels) == 19


def test_every_case_has_its_own_text(workspace, store, assignment):
    """Found by its place in the file, checked by its digest."""
    for case in CASES:
        sheet = open_sheet(workspace, store, assignment, "Dr. A", case)
        assert sheet.text.endswith(f"{case[1]}.")


def test_a_holdout_can_be_read(workspace, store, tmp_path):
    """Its reference is made this way; only the text is shown."""
    import_texts(workspace, tmp_path, {"h1": "Sealed text."}, role="holdout")
    sealed = read_assignment(workspace, "read")
    assert open_sheet(workspace, store, sealed, "Dr. A", "h1").text == "Sealed text."


def test_a_changed_text_is_refused_without_showing_it(workspace, store, assignment):
    """An answer must be to the text that was pinned."""
    path = texts_path(workspace, "read")
    path.write_bytes(path.read_bytes().replace(b"number 1", b"number 7"))
    with pytest.raises(DataError, match=r"line 1: not the text of case 'c1'") as error:
        open_sheet(workspace, store, assignment, "Dr. A", "c1")
    assert "Made-up" not in str(error.value)
    assert open_sheet(workspace, store, assignment, "Dr. A", "c2").text


@pytest.mark.parametrize(
    "content", [b"", b"\xff\n", b"[]\n[]\n[]\n[]\n", b'{"a": 1}\n']
)
def test_a_broken_texts_file_is_said_to_be_one(workspace, store, assignment, content):
    """Never another case's text."""
    texts_path(workspace, "read").write_bytes(content)
    with pytest.raises(DataError, match="not the text of case 'c3'"):
        open_sheet(workspace, store, assignment, "Dr. A", "c3")


def test_missing_texts_name_the_way_out(workspace, store, assignment):
    """Texts do not travel with a cohort."""
    texts_path(workspace, "read").unlink()
    with pytest.raises(DataError, match=r"not on this machine.*--replace"):
        open_sheet(workspace, store, assignment, "Dr. A", "c1")
    with pytest.raises(DataError, match="no case 'zz'"):
        open_sheet(workspace, store, assignment, "Dr. A", "zz")
