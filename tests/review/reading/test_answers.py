"""Answers are appended, the last one counts, and nothing becomes absent by silence."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from loop.core.errors import DataError, StoreError, UnknownLabelError
from loop.core.records import Value
from loop.review.reading.answers import (
    answer,
    answer_many,
    complete_case,
    read_answers,
)
from loop.run.store import open_store
from tests.review.reading.conftest import CASES, at, import_texts


def test_the_last_answer_counts_and_none_is_deleted(store, assignment):
    """A reader may change their mind; what they said before stays in the store."""
    for value in (Value.PRESENT, Value.UNCERTAIN, Value.ABSENT):
        answer(store, assignment, "Dr. A", "c1", {"edema": value}, at(1))
    assert read_answers(store, assignment, "Dr. A") == {"c1": {"edema": Value.ABSENT}}
    assert store.read("SELECT count(*) FROM readings") == [(3,)]


def test_an_answer_can_be_taken_back(store, assignment):
    """Taken back is open again, not absent."""
    answer(store, assignment, "Dr. A", "c1", {"Edema": Value.PRESENT}, at(1))
    answer(store, assignment, "Dr. A", "c1", {"Edema": None}, at(2))
    assert read_answers(store, assignment, "Dr. A") == {}


def test_saying_the_same_again_adds_nothing(store, assignment):
    """A form that saves on every change does not fill the store."""
    wanted = {"c1": {"edema": Value.PRESENT, "fracture": None}}
    saved = [answer_many(store, assignment, "Dr. A", wanted) for _ in range(3)]
    assert saved == [1, 0, 0]


def test_the_rest_becomes_absent_only_by_an_act(store, assignment):
    """Twenty labels are asked; marking one leaves nineteen open until told."""
    answer(store, assignment, "Dr. A", "c1", {"edema": Value.UNCERTAIN})
    assert len(read_answers(store, assignment, "Dr. A")["c1"]) == 1
    assert complete_case(store, assignment, "Dr. A", "c1") == 19
    said = read_answers(store, assignment, "Dr. A")["c1"]
    assert said["edema"] is Value.UNCERTAIN
    assert list(said.values()).count(Value.ABSENT) == 19
    assert "no_finding" not in said
    assert complete_case(store, assignment, "Dr. A", "c1") == 0


def test_readers_do_not_touch_each_other(store, assignment):
    """Names are told apart as written."""
    answer(store, assignment, "Dr. A", "c1", {"edema": Value.PRESENT})
    answer(store, assignment, " Dr. B ", "c1", {"edema": Value.ABSENT})
    assert read_answers(store, assignment, "Dr. A")["c1"]["edema"] is Value.PRESENT
    assert read_answers(store, assignment, "Dr. B")["c1"]["edema"] is Value.ABSENT


@pytest.mark.parametrize(
    ("answers", "error", "message"),
    [
        ({"zz": {"edema": Value.PRESENT}}, DataError, "'read' has no case 'zz'.*id"),
        ({"c1": {"edma": Value.PRESENT}}, UnknownLabelError, "mean 'Edema'"),
        ({"c1": {"no_finding": Value.PRESENT}}, DataError, "follows from the other"),
        (
            {"c1": {"edema": Value.PRESENT, "Edema": Value.ABSENT}},
            DataError,
            "'edema' appears twice",
        ),
    ],
)
def test_a_wrong_answer_saves_nothing(store, assignment, answers, error, message):
    """The right answer beside it is not saved either."""
    good = {"c2": {"edema": Value.PRESENT}}
    with pytest.raises(error, match=message):
        answer_many(store, assignment, "Dr. A", good | answers)
    assert read_answers(store, assignment, "Dr. A") == {}


@pytest.mark.parametrize("name", ["", "  ", "a\x00b", "x" * 65, "line\nbreak"])
def test_a_name_that_is_none_is_refused(store, assignment, name):
    """The message says what a name is and does not repeat it."""
    with pytest.raises(DataError, match="1 to 64 printable characters"):
        answer(store, assignment, name, "c1", {"edema": Value.PRESENT})


def test_answers_hold_for_the_text_that_was_read(
    workspace, store, assignment, tmp_path
):
    """Another text under the same case id is not answered by it, and this is said."""
    from loop.review.reading.assignment import read_assignment
    from loop.review.reading.progress import measure_progress

    answer(store, assignment, "Dr. A", "c1", {"edema": Value.PRESENT})
    import_texts(workspace, tmp_path, {"c1": "Another text."}, replace=True)
    again = read_assignment(workspace, "read")
    assert read_answers(store, again, "Dr. A") == {}
    assert measure_progress(store, again).earlier == 1
    assert read_answers(store, assignment, "Dr. A") != {}


def test_a_foreign_value_is_not_read_as_anything(store, assignment):
    """A row that ranloop did not write is an error, never a value."""
    answer(store, assignment, "Dr. A", "c1", {"edema": Value.PRESENT})
    with store.writing() as connection:
        connection.execute("UPDATE readings SET value = 'maybe'")
    with pytest.raises(StoreError, match="case c1 cannot be read"):
        read_answers(store, assignment, "Dr. A")


@pytest.mark.slow
def test_two_windows_and_two_people_at_once_lose_nothing(workspace, assignment):
    """Eight threads over two store connections: every answer is there afterwards."""
    labels = assignment.labels

    def work(reader: str, store):
        for case in CASES:
            for label in labels:
                value = {label: Value.PRESENT}
                answer(store, assignment, reader, case, value)

    with open_store(workspace) as one, open_store(workspace) as two:
        with ThreadPoolExecutor(8) as pool:
            jobs = [
                pool.submit(work, f"Dr. {n % 4}", (one, two)[n % 2]) for n in range(8)
            ]
            for job in jobs:
                job.result()
        for number in range(4):
            said = read_answers(one, assignment, f"Dr. {number}")
            assert sum(map(len, said.values())) == len(CASES) * len(labels)
