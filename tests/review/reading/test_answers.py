"""What a reader is given and says: the last word counts, silence is never absent."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import pytest

from loop.core.errors import DataError, SealedError, StoreError, UnknownLabelError
from loop.core.records import Value
from loop.labels.ballots import votes_path
from loop.labels.cohort import texts_path
from loop.review.reading.answers import (
    LONGEST,
    UNKNOWN,
    ReadingSheet,
    answer,
    answer_many,
    complete_case,
    keep_comment,
    name_contradiction,
    open_sheet,
    read_answers,
    read_comment,
    read_comments,
    read_guidelines,
)
from loop.review.reading.assignment import read_assignment
from loop.review.reading.publication import publish_readings
from loop.run.store import open_store
from tests.review.reading.conftest import CASES, EDITOR, READ_TWICE, at, import_texts


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
    from loop.review.reading.reader_progress import measure_progress

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


HOSTILE = "<script>alert(1)</script>\n{{ 7 * 7 }} \x00 \ud800 '; DROP TABLE readings"


def test_the_last_comment_counts_and_the_same_is_kept_once(store, assignment):
    """An empty one takes it back; earlier ones stay in the store."""
    assert keep_comment(store, assignment, "Dr. A", "c1", "image quality ")
    assert not keep_comment(store, assignment, "Dr. A", "c1", "image quality")
    keep_comment(store, assignment, "Dr. A", "c1", "rotated")
    assert read_comment(store, assignment, "Dr. A", "c1") == "rotated"
    assert read_comment(store, assignment, "Dr. B", "c1") == ""
    keep_comment(store, assignment, "Dr. A", "c1", "")
    assert read_comments(store, assignment) == ()
    assert store.read("SELECT count(*) FROM reading_comments") == [(3,)]


def test_a_reader_sees_the_own_comment_and_no_other(workspace, store, assignment):
    """Blind as for answers."""
    keep_comment(store, assignment, "Dr. A", "c1", "mine")
    keep_comment(store, assignment, "Dr. B", "c1", "theirs")
    assert open_sheet(workspace, store, assignment, "Dr. A", "c1").comment == "mine"
    assert [c.reader for c in read_comments(store, assignment, "c1")] == [
        "Dr. A", "Dr. B",
    ]  # fmt: skip


def test_a_hostile_comment_is_text(store, assignment):
    """Half of a character pair is no text, and the rest is kept as it is."""
    keep_comment(store, assignment, "Dr. A", "c1", HOSTILE)
    assert read_comment(store, assignment, "Dr. A", "c1") == HOSTILE.replace(
        "\ud800", "?"
    )


@pytest.mark.parametrize(
    ("case", "text", "message"),
    [("zz", "x", "has no case"), ("c1", "x" * (LONGEST + 1), "at most 1,000")],
)
def test_a_comment_that_cannot_be_kept_is_refused(
    store, assignment, case, text, message
):
    """And nothing is kept of it."""
    with pytest.raises(DataError, match=message):
        keep_comment(store, assignment, "Dr. A", case, text)
    assert read_comments(store, assignment) == ()


def test_a_comment_of_just_the_most_characters_is_kept(store, assignment):
    """The spaces around it do not count."""
    most = "x" * LONGEST
    keep_comment(store, assignment, "Dr. A", "c1", f" {most}\n")
    assert read_comment(store, assignment, "Dr. A", "c1") == most


def test_comments_are_in_no_vote_and_no_ledger(workspace, store, assignment):
    """They may hold clinical words."""
    complete_case(store, assignment, "Dr. A", "c1")
    keep_comment(store, assignment, "Dr. A", "c1", "zebra")
    publish_readings(workspace, store, assignment, READ_TWICE, EDITOR)
    assert b"zebra" not in votes_path(workspace, "read").read_bytes()
    assert b"zebra" not in workspace.ledger.read_bytes()


def test_comments_on_a_holdout_are_sealed(workspace, store, tmp_path):
    """In the store no word of them, not even how long they are."""
    import_texts(workspace, tmp_path, {"h1": "Held."}, name="held", role="holdout")
    held = read_assignment(workspace, "held")
    lengths = set()
    for text in ("zebra", "zebra " * 20):
        keep_comment(store, held, "Dr. A", "h1", text)
        assert read_comment(store, held, "Dr. A", "h1") == text.strip()
        (kept,) = store.read(
            "SELECT comment FROM reading_comments ORDER BY number DESC LIMIT 1"
        )[0]
        assert kept.startswith("sealed:")
        assert "zebra" not in kept
        lengths.add(len(kept))
    assert len(lengths) == 1
    with pytest.raises(SealedError, match="are sealed"):
        read_comments(store, held)
    with store.writing() as connection:
        connection.execute("UPDATE reading_comments SET reader = 'Dr. B'")
    with pytest.raises(StoreError, match="cannot be opened"):
        read_comment(store, held, "Dr. B", "h1")


def under(assignment, digest):
    """Return the same task beside another guideline."""
    taxonomy = dataclasses.replace(assignment.taxonomy, digest=digest * 64)
    return dataclasses.replace(assignment, taxonomy=taxonomy)


def test_a_sheet_is_whole(workspace, store, assignment):
    """Text, own answers, own comment, and what is open in the order of the labels."""
    answer(store, assignment, "Dr. A", "c2", {"edema": Value.PRESENT})
    answer(store, assignment, "Dr. A", "c2", {"fracture": Value.ABSENT})
    answer(store, assignment, "Dr. A", "c1", {"fracture": Value.PRESENT})
    keep_comment(store, assignment, " Dr. A", "c2", "blurred")
    assert open_sheet(workspace, store, assignment, "Dr. A ", "c2") == ReadingSheet(
        case_id="c2",
        text="Made-up text number 2.",
        answers={"edema": Value.PRESENT, "fracture": Value.ABSENT},
        comment="blurred",
        open_labels=tuple(
            one for one in assignment.labels if one not in ("edema", "fracture")
        ),
    )


def test_a_texts_file_that_cannot_be_opened_is_said(workspace, store, assignment):
    """It is there, and no file."""
    path = texts_path(workspace, "read")
    path.unlink()
    path.mkdir()
    with pytest.raises(DataError, match=f"cannot read {path}: "):
        open_sheet(workspace, store, assignment, "Dr. A", "c1")


def test_guidelines_are_those_of_the_answers_that_count(store, assignment):
    """Of the cases looked at; an answer given again is beside the one of then."""
    other = under(assignment, "a")
    answer(store, other, "Dr. A", "c1", {"edema": Value.PRESENT})
    answer(store, other, "Dr. A", "c2", {"edema": Value.PRESENT})
    answer(store, assignment, "Dr. A", "c1", {"fracture": Value.PRESENT})
    answer(store, under(assignment, "b"), "Dr. B", "c1", {"edema": Value.PRESENT})
    with store.writing() as connection:
        connection.execute(
            "INSERT INTO readings (cohort, reader, case_id, label, value, created) "
            "VALUES (?, 'Dr. A', 'c3', 'edema', 'present', '2026-01-05T09:00:00Z')",
            [assignment.key],
        )

    def told(*cases):
        return read_guidelines(store, assignment, "Dr. A ", cases)

    assert told("c1") == tuple(sorted(("a" * 12, assignment.guideline)))
    assert told("c2") == ("a" * 12,)
    assert told("c3") == (UNKNOWN,)
    assert told() == ()
    same = {"c2": {"edema": Value.PRESENT}}
    assert answer_many(store, assignment, "Dr. A", same) == 1
    assert answer_many(store, assignment, "Dr. A", same) == 0
    assert told("c2") == (assignment.guideline,)
    answer(store, assignment, "Dr. A", "c1", {"edema": None})
    assert told("c1") == (assignment.guideline,)
    gone = {"c1": {"edema": None}}
    assert answer_many(store, other, "Dr. A", gone) == 0


def test_comments_come_by_case_and_reader(store, assignment):
    """The last of each; one taken back is none."""
    for reader, case, text in (
        ("Dr. B", "c2", "x"),
        ("Dr. B", "c1", "old"),
        ("Dr. A", "c2", "y"),
        ("Dr. B", "c1", "new"),
        ("Dr. C", "c1", "gone"),
        ("Dr. C", "c1", " "),
    ):
        assert keep_comment(store, assignment, reader, case, text)
    every = (
        ("Dr. B", "c1", "new"),
        ("Dr. A", "c2", "y"),
        ("Dr. B", "c2", "x"),
    )
    assert read_comments(store, assignment) == every
    assert read_comments(store, assignment, "c2") == every[1:]
    assert not keep_comment(store, assignment, "Dr. D", "c1", "")


def test_up_to_five_labels_against_no_finding_are_named(assignment):
    """With their values, and how many more there are; what is absent is not."""
    asked = dataclasses.replace(assignment, no_finding_read=True)
    labels = [one for one in assignment.labels if one != "support_devices"][:6]
    for count, more in ((5, ""), (6, " and 1 more")):
        given = dict.fromkeys(labels[:count], Value.PRESENT)
        given |= {labels[0]: Value.UNCERTAIN, "no_finding": Value.PRESENT}
        names = [assignment.taxonomy.find(one).name for one in labels[:5]]
        told = ", ".join(
            f"{name} ({'present' if at else 'uncertain'})"
            for at, name in enumerate(names)
        )
        assert name_contradiction(asked, given) == (
            f"No Finding contradicts {told}{more}: correct one, or say in the comment "
            "why both hold"
        )
    fine = {labels[0]: Value.ABSENT, "no_finding": Value.PRESENT}
    assert name_contradiction(asked, fine) == ""
