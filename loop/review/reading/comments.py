"""Readers' comments: one free note per case and reader, kept as answers are.

"Image quality", "cannot be decided from the text". Whoever adjudicates sees them beside
a dispute; they are in no vote, no export of votes and no prompt.
"""

from __future__ import annotations

from typing import NamedTuple

from loop.core.clock import Clock, format_time, utc_now
from loop.core.errors import DataError, SealedError
from loop.labels.cohort import CohortRole
from loop.review.reading.assignment import (
    Assignment,
    check_reader,
    require_cases,
)
from loop.run.store import Store

LONGEST = 1000
"""Characters of a comment."""

_BLOCK = 256
"""Sealed comments are filled up to a multiple of this, in bytes: nothing is told by
their length."""


class ReaderComment(NamedTuple):
    """What one reader noted on one case."""

    reader: str
    case_id: str
    comment: str
    """Private text, for display only."""


def keep_comment(
    store: Store,
    assignment: Assignment,
    reader: str,
    case_id: str,
    comment: str,
    now: Clock = utc_now,
) -> bool:
    """Keep a reader's comment on a case; return whether it is another one than before.

    An empty one takes the earlier one back. Earlier ones stay in the store and no
    longer count.

    Raises
    ------
    DataError
        The case is unknown, or the comment too long; nothing was kept.
    StoreError
        The store cannot be written; nothing was kept.
    """
    who = check_reader(reader)
    require_cases(assignment, [case_id])
    # A browser may send an unpaired surrogate, which is no text.
    text = comment.encode("utf-8", "replace").decode("utf-8").strip()
    if len(text) > LONGEST:
        raise DataError(
            f"a comment has at most {LONGEST:,} characters, this one has "
            f"{len(text):,}. Shorten it."
        )
    with store.writing() as connection:
        rows = connection.execute(
            "SELECT comment FROM reading_comments WHERE cohort = ? AND reader = ? "
            "AND case_id = ? ORDER BY number DESC LIMIT 1",
            [assignment.key, who, case_id],
        ).fetchall()
        before = _open(assignment, who, case_id, rows[0][0]) if rows else ""
        if before == text:
            return False
        connection.execute(
            "INSERT INTO reading_comments (cohort, reader, case_id, comment, created) "
            "VALUES (?,?,?,?,?)",
            [
                assignment.key,
                who,
                case_id,
                _close(assignment, who, case_id, text),
                format_time(now()),
            ],
        )
    return True


def read_comment(
    store: Store, assignment: Assignment, reader: str, case_id: str
) -> str:
    """Return the reader's own comment on a case; empty without one.

    Raises
    ------
    StoreError
        The store cannot be read, or a comment was changed by something else.
    """
    found = _read(store, assignment, "AND reader = ? AND case_id = ?", reader, case_id)
    return found[0].comment if found else ""


def read_comments(
    store: Store, assignment: Assignment, case_id: str | None = None
) -> tuple[ReaderComment, ...]:
    """Return every reader's comment, by case and reader; those taken back left out.

    Parameters
    ----------
    case_id
        Only on this case; None for all.

    Raises
    ------
    SealedError
        The cohort is a holdout: comments are sealed as the answers are.
    StoreError
        The store cannot be read, or a comment was changed by something else.
    """
    if assignment.cohort.role is CohortRole.HOLDOUT:
        raise SealedError(
            f"cohort {assignment.cohort.name!r} is a holdout: its readers' comments "
            "are sealed, as their answers are. Nobody reads them before it is retired."
        )
    if case_id is None:
        return _read(store, assignment, "")
    return _read(store, assignment, "AND case_id = ?", case_id)


def _read(
    store: Store, assignment: Assignment, where: str, *values: str
) -> tuple[ReaderComment, ...]:
    rows = store.read(
        "SELECT reader, case_id, comment, max(number) FROM reading_comments "
        f"WHERE cohort = ? {where} GROUP BY reader, case_id ORDER BY case_id, reader",
        [assignment.key, *values],
    )
    return tuple(
        ReaderComment(reader, case, _open(assignment, reader, case, kept))
        for reader, case, kept, _ in rows
        if kept
    )


def _close(assignment: Assignment, reader: str, case_id: str, text: str) -> str:
    if assignment.words is None or not text:
        return text
    filled = text + " " * (-len(text.encode("utf-8")) % _BLOCK)
    return assignment.words.close(filled, _place(assignment, reader, case_id))


def _open(assignment: Assignment, reader: str, case_id: str, kept: str) -> str:
    if assignment.words is None:
        return kept
    return assignment.words.open(kept, _place(assignment, reader, case_id))


def _place(assignment: Assignment, reader: str, case_id: str) -> tuple[str, ...]:
    return "comment", assignment.key, reader, case_id
