"""What readers say of a holdout is sealed from the first answer on."""

import sqlite3
from contextlib import closing

import pytest

from loop.core.errors import SealedError, StoreError
from loop.core.records import Value
from loop.labels.ballots import read_cohort_votes
from loop.labels.holdout import retire_holdout
from loop.labels.sealing import WordSeal
from loop.review.reading.answers import answer, complete_case, open_sheet, read_answers
from loop.review.reading.assignment import read_assignment
from loop.review.reading.disputes import read_disputes
from loop.review.reading.publication import publish_readings
from tests.review.reading.conftest import EDITOR, READ_TWICE, import_texts


@pytest.fixture
def assignment(workspace, tmp_path):
    """Import two cases as a holdout, and return what readers are asked."""
    import_texts(workspace, tmp_path, {"c1": "One.", "c2": "Two."}, role="holdout")
    return read_assignment(workspace, "read")


def read_all(store, assignment, *readers, value=Value.PRESENT):
    """Let readers complete both cases."""
    for reader in readers:
        for case in assignment.cohort.case_ids:
            answer(store, assignment, reader, case, {"edema": value})
            complete_case(store, assignment, reader, case)


def values(workspace):
    """Return the values of all rows as they lie in the file."""
    with closing(sqlite3.connect(workspace.store)) as database:
        return [row[0] for row in database.execute("SELECT value FROM readings")]


def test_the_store_holds_no_word_of_a_holdout(workspace, store, assignment):
    """Nor its length: all rows look alike."""
    read_all(store, assignment, "Dr A")
    found = values(workspace)
    assert all(value.startswith("sealed:") for value in found)
    assert len({len(value) for value in found}) == 1
    assert len(set(found)) == len(found)
    said = read_answers(store, assignment, "Dr A")["c1"]
    assert (said["edema"], said["fracture"]) == (Value.PRESENT, Value.ABSENT)


def test_the_same_answer_again_adds_nothing(workspace, store, assignment):
    """Although it would be sealed otherwise."""
    for _ in range(2):
        answer(store, assignment, "Dr A", "c1", {"edema": Value.PRESENT})
    assert len(values(workspace)) == 1


def test_an_answer_taken_back_is_none(store, assignment):
    """Nothing stays nothing, also for counting."""
    answer(store, assignment, "Dr A", "c1", {"edema": Value.PRESENT})
    answer(store, assignment, "Dr A", "c1", {"edema": None})
    assert read_answers(store, assignment, "Dr A") == {}


def test_a_row_moved_to_another_case_is_refused(workspace, store, assignment):
    """Its place is sealed with it."""
    answer(store, assignment, "Dr A", "c1", {"edema": Value.PRESENT})
    with closing(sqlite3.connect(workspace.store)) as database, database:
        database.execute("UPDATE readings SET case_id = 'c2'")
    with pytest.raises(StoreError, match="cannot be opened"):
        read_answers(store, assignment, "Dr A")


def test_published_readings_are_sealed_votes(workspace, store, assignment):
    """From then on nobody sees them: neither the reader, nor a panel."""
    read_all(store, assignment, "Dr A", "Dr B")
    assert open_sheet(workspace, store, assignment, "Dr A", "c1").answers
    made = publish_readings(workspace, store, assignment, READ_TWICE, EDITOR)
    assert (made.votes.sealed, made.votes.marks) == (True, {})
    with pytest.raises(SealedError, match="are votes now, and sealed"):
        open_sheet(workspace, store, assignment, "Dr A", "c1")
    assert open_sheet(workspace, store, assignment, "Dr C", "c1").answers == {}
    with pytest.raises(SealedError):
        read_disputes(workspace, assignment)


def test_another_reader_can_publish_later(workspace, store, assignment):
    """The new votes join those that are sealed."""
    read_all(store, assignment, "Dr A")
    publish_readings(workspace, store, assignment, READ_TWICE, EDITOR)
    read_all(store, assignment, "Dr B", value=Value.ABSENT)
    made = publish_readings(workspace, store, assignment, READ_TWICE, EDITOR)
    assert made.votes.readers == ("Dr A", "Dr B")


def test_readings_of_a_retired_holdout_can_be_read(workspace, store, assignment):
    """They stay sealed in the store, and what they say is open."""
    read_all(store, assignment, "Dr A")
    publish_readings(workspace, store, assignment, READ_TWICE, EDITOR)
    retire_holdout(workspace, "read", EDITOR, "given up")
    again = read_assignment(workspace, "read")
    assert read_answers(store, again, "Dr A")["c1"]["edema"] is Value.PRESENT
    assert open_sheet(workspace, store, again, "Dr A", "c1").answers
    assert read_cohort_votes(workspace, again.cohort, again.taxonomy).readers


def test_words_kept_in_plain_before_are_read_as_they_are():
    """An earlier ranloop sealed none."""
    seal = WordSeal(b"k" * 32)
    assert seal.open("present", ("x",)) == "present"
    assert seal.open(seal.close("uncertain", ("x",)), ("x",)) == "uncertain"
