"""Readers' comments: kept as answers are, sealed as answers are, and in no vote."""

import pytest

from loop.core.errors import DataError, SealedError, StoreError
from loop.labels.ballots import votes_path
from loop.review.reading.answers import complete_case
from loop.review.reading.assignment import read_assignment
from loop.review.reading.comments import (
    LONGEST,
    keep_comment,
    read_comment,
    read_comments,
)
from loop.review.reading.publication import publish_readings
from loop.review.reading.sheet import open_sheet
from tests.review.reading.conftest import EDITOR, READ_TWICE, import_texts

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
