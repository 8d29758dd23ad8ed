"""What a reader sees of a case and says of it: text, answers, a comment; no more.

Answers and comments are appended to the private store, and the last one counts. Those
on a holdout are sealed one by one: they are what its reference is made of. A comment is
a free note, "cannot be decided from the text"; whoever adjudicates sees it beside a
dispute, and it is in no vote, no export of votes and no prompt.
"""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from loop.core.clock import Clock, format_time, utc_now
from loop.core.digests import digest_text
from loop.core.errors import DataError, SealedError, StoreError
from loop.core.paths import WorkspacePaths
from loop.core.records import Value
from loop.core.safe_text import quoted
from loop.labels.ballots import read_turnout
from loop.labels.cohort import Cohort, CohortRole, texts_path
from loop.labels.taxonomy import NO_FINDING
from loop.review.reading.assignment import (
    Assignment,
    check_reader,
    positions,
    require_cases,
    require_label,
    voted_cases,
)
from loop.run.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingSheet:
    """What a reader is given of a case. Blinding rests on what is not in it."""

    case_id: str
    text: str
    """The case text; private, for display only."""

    answers: Mapping[str, Value]
    """The reader's own answers, by label id; labels not answered are left out."""

    comment: str
    """The reader's own comment; empty without one."""

    open_labels: tuple[str, ...]
    """Label ids still without a value; none: the case is complete."""


def open_sheet(
    workspace: WorkspacePaths,
    store: Store,
    assignment: Assignment,
    reader: str,
    case_id: str,
) -> ReadingSheet:
    """Return a case as `reader` may see it; nothing is kept by looking.

    Raises
    ------
    SealedError
        The case is of a holdout, and the reader's answers are votes already.
    DataError
        The case is unknown, its text is not on this machine or not the pinned one.
    StoreError
        The store cannot be read.
    """
    require_cases(assignment, [case_id])
    text = _read_text(workspace, assignment.cohort, case_id)
    answers = read_answers(store, assignment, reader, case_id).get(case_id, {})
    open_labels = tuple(n for n in assignment.labels if n not in answers)
    if assignment.cohort.role is CohortRole.HOLDOUT and not open_labels:
        _refuse_published(workspace, assignment, reader, case_id)
    return ReadingSheet(
        case_id=case_id,
        text=text,
        answers=answers,
        comment=read_comment(store, assignment, check_reader(reader), case_id),
        open_labels=open_labels,
    )


def _refuse_published(
    workspace: WorkspacePaths, assignment: Assignment, reader: str, case_id: str
) -> None:
    """Refuse a case whose votes are sealed: nobody looks at them again."""
    turnout = read_turnout(workspace, assignment.cohort)
    if case_id in voted_cases(workspace, turnout, reader):
        raise SealedError(
            f"the answers of {reader!r} on case {quoted(case_id)} of holdout "
            f"{assignment.cohort.name!r} are votes now, and sealed. Go on with the "
            "next case."
        )


def _read_text(workspace: WorkspacePaths, cohort: Cohort, case_id: str) -> str:
    """Return the text of one case, from its own line of the texts file."""
    path, number = texts_path(workspace, cohort.name), positions(cohort)[case_id]
    try:
        found = path.stat()
        starts = _line_starts(path, found.st_mtime_ns, found.st_size)
        with path.open("rb") as stream:
            stream.seek(starts[number])
            text = json.loads(stream.readline())["text"]
        if digest_text(text) == cohort.cases[number].sha256:
            return str(text)
    except FileNotFoundError as error:
        raise DataError(
            f"the texts of cohort {cohort.name!r} are not on this machine: {path} does "
            "not exist (texts are private and do not travel with the cohort). Import "
            "the cohort again from its source with --replace."
        ) from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        pass
    raise DataError(
        f"{path}, line {number + 1}: not the text of case {quoted(case_id)} that was "
        "imported. Import the cohort again from its source with --replace."
    )


@lru_cache(maxsize=8)
def _line_starts(path: Path, changed: int, size: int) -> array[int]:
    """Return where each line begins; `changed` and `size` tell one file from the next.

    Lines stand in the order of the cohort, so that one seek finds a case.
    """
    starts = array("q")
    with path.open("rb") as stream:
        place = 0
        for line in stream:
            starts.append(place)
            place += len(line)
    return starts


Answers = Mapping[str, Value | None]
"""Label name or id to its value; None takes an earlier answer back."""

DEFERRED = "deferred"
"""Value of a row without a label: the reader put the case off."""

UNKNOWN = "not recorded"
"""Guideline of answers from before it was kept."""

LATEST = (
    "SELECT reader, case_id, label, value, created, guideline, max(number) AS number "
    "FROM readings WHERE cohort = ? {where} GROUP BY reader, case_id, label"
)
"""The rows that count; ``{where}`` narrows them. SQLite takes the other columns from
the row with the highest number."""

_INSERT = (
    "INSERT INTO readings (cohort, reader, case_id, label, value, created, guideline) "
    "VALUES (?,?,?,?,?,?,?)"
)


def answer(
    store: Store,
    assignment: Assignment,
    reader: str,
    case_id: str,
    answers: Answers,
    now: Clock = utc_now,
) -> None:
    """Save what `reader` says of some labels of one case, at once.

    Earlier answers stay in the store and no longer count. Saving what already counts
    adds nothing, unless it was given beside another guideline.

    Raises
    ------
    DataError
        The case or a label is unknown, or the label is derived; nothing was saved.
    StoreError
        The store cannot be written; nothing was saved.
    """
    answer_many(store, assignment, reader, {case_id: answers}, now)


def answer_many(
    store: Store,
    assignment: Assignment,
    reader: str,
    answers: Mapping[str, Answers],
    now: Clock = utc_now,
) -> int:
    """Save answers on several cases, all or none; return how many were new or changed.

    Raises
    ------
    DataError
        A case or label is unknown, or the label is derived; nothing was saved.
    StoreError
        The store cannot be written; nothing was saved.
    """
    who = check_reader(reader)
    require_cases(assignment, answers)
    wanted = {case: _by_id(assignment, said) for case, said in answers.items()}
    with store.writing() as connection:
        rows = [
            _row(assignment, (who, case_id, label), value, now)
            for case_id, values in wanted.items()
            for label, value in _changes(connection, assignment, who, case_id, values)
        ]
        connection.executemany(_INSERT, rows)
    return len(rows)


def complete_case(
    store: Store,
    assignment: Assignment,
    reader: str,
    case_id: str,
    rest: Value = Value.ABSENT,
    now: Clock = utc_now,
) -> int:
    """Give every label of a case without an answer the value `rest`; return how many.

    This is an act of the reader ("the rest is absent"): without it a label that was
    not answered stays open, and the case incomplete. "No Finding" is none of the rest:
    where readers label it, it stays open until they do.

    Raises
    ------
    DataError
        The case is unknown; nothing was saved.
    StoreError
        The store cannot be written; nothing was saved.
    """
    who = check_reader(reader)
    require_cases(assignment, [case_id])
    with store.writing() as connection:
        known = _standing(connection, assignment, who, case_id)
        rows = [
            _row(assignment, (who, case_id, label), rest, now)
            for label in assignment.labels
            if label != NO_FINDING and not known.get(label, ("", ""))[0]
        ]
        connection.executemany(_INSERT, rows)
    return len(rows)


def defer_case(
    store: Store,
    assignment: Assignment,
    reader: str,
    case_id: str,
    now: Clock = utc_now,
) -> None:
    """Put a case off: `next_case` comes back to it after all others.

    Cases put off come back in the order in which they were put off last. Nothing that
    was answered on the case is lost.

    Raises
    ------
    DataError
        The case is unknown.
    StoreError
        The store cannot be written.
    """
    who = check_reader(reader)
    require_cases(assignment, [case_id])
    with store.writing() as connection:
        connection.execute(
            _INSERT,
            [
                assignment.key,
                who,
                case_id,
                "",
                DEFERRED,
                format_time(now()),
                assignment.guideline,
            ],
        )


def read_answers(
    store: Store, assignment: Assignment, reader: str, case_id: str | None = None
) -> dict[str, dict[str, Value]]:
    """Return case id to label id to the value that counts now.

    Parameters
    ----------
    case_id
        Only this case; None for all. A case without an answer is left out.

    Raises
    ------
    StoreError
        The store cannot be read, or a row was changed by something else.
    """
    who = check_reader(reader)
    where, values = "AND reader = ?", [assignment.key, who]
    if case_id is not None:
        where, values = f"{where} AND case_id = ?", [*values, case_id]
    asked = frozenset(assignment.labels)
    found: dict[str, dict[str, Value]] = {}
    for _, case, label, value, *_ in store.read(LATEST.format(where=where), values):
        if value and label in asked:
            word = _open(assignment, (who, case, label), value)
            found.setdefault(case, {})[label] = _value(word, case)
    return found


NAMED = 5
"""Labels that are named one by one where many contradict each other."""


def name_contradiction(assignment: Assignment, given: Mapping[str, Value]) -> str:
    """Return what one reader gave against their own "No Finding", in words.

    Empty where nothing contradicts it, and where readers do not label it. It is said
    and never refused: a report may be written so.

    Parameters
    ----------
    given
        Label id to value, of one case.
    """
    against = assignment.taxonomy.contradict_no_finding(given)
    if not against:
        return ""
    said = [
        f"{assignment.taxonomy.find(label).name} ({given[label].value})"
        for label in against[:NAMED]
    ]
    more = len(against) - len(said)
    others = f" and {more} more" if more else ""
    return (
        f"No Finding contradicts {', '.join(said)}{others}: correct one, or say in the "
        "comment why both hold"
    )


def read_guidelines(
    store: Store, assignment: Assignment, reader: str, case_ids: Collection[str]
) -> tuple[str, ...]:
    """Return the guidelines beside which `reader` gave the answers that count now.

    As `Assignment.guideline` writes them, sorted; `UNKNOWN` stands for answers from
    before this was kept.

    Parameters
    ----------
    case_ids
        The cases that are looked at.

    Raises
    ------
    StoreError
        The store cannot be read.
    """
    asked = ",".join("?" * len(assignment.labels))
    rows = store.read(
        "SELECT DISTINCT case_id, guideline FROM "
        f"({LATEST.format(where='AND reader = ?')}) "
        f"WHERE value <> '' AND label IN ({asked})",
        [assignment.key, check_reader(reader), *assignment.labels],
    )
    chosen = frozenset(case_ids)
    return tuple(sorted({named or UNKNOWN for case, named in rows if case in chosen}))


def _value(word: str, case_id: str) -> Value:
    try:
        return Value(word)
    except ValueError as error:
        raise StoreError(
            f"an answer on case {case_id} cannot be read; something other than ranloop "
            "changed the store. Restore it from a backup."
        ) from error


def _by_id(assignment: Assignment, answers: Answers) -> dict[str, Value | None]:
    found: dict[str, Value | None] = {}
    for name, value in answers.items():
        label = require_label(assignment, name)
        if label in found:
            raise DataError(f"label {label!r} appears twice. Keep one of the two.")
        found[label] = None if value is None else Value(value)
    return found


def _changes(
    connection: sqlite3.Connection,
    assignment: Assignment,
    reader: str,
    case_id: str,
    values: Mapping[str, Value | None],
) -> list[tuple[str, Value | None]]:
    """Return the answers that differ from what counts now."""
    known = _standing(connection, assignment, reader, case_id)
    now = assignment.guideline
    return [
        (label, value)
        for label, value in values.items()
        if (value or "", now if value else "") != known.get(label, ("", ""))
    ]


def _standing(
    connection: sqlite3.Connection, assignment: Assignment, reader: str, case_id: str
) -> dict[str, tuple[str, str]]:
    """Return label id to value and guideline of one case, inside a transaction.

    Both are empty of an answer that was taken back.
    """
    rows = connection.execute(
        LATEST.format(where="AND reader = ? AND case_id = ?"),
        [assignment.key, reader, case_id],
    )
    opened = {
        label: (_open(assignment, (reader, case_id, label), value), guideline or "")
        for _, _, label, value, _, guideline, _ in rows
        if label
    }
    return {label: said if said[0] else ("", "") for label, said in opened.items()}


def _row(
    assignment: Assignment, pair: tuple[str, str, str], value: Value | None, now: Clock
) -> tuple[str, ...]:
    """Return the row of an answer; `pair` is reader, case and label."""
    word = value.value if value else ""
    if assignment.words:
        word = assignment.words.close(word, (assignment.key, *pair))
    return assignment.key, *pair, word, format_time(now()), assignment.guideline


def _open(assignment: Assignment, pair: tuple[str, str, str], kept: str) -> str:
    """Return the word of a row, sealed or not."""
    if not assignment.words:
        return kept
    return assignment.words.open(kept, (assignment.key, *pair))


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
        before = _open_comment(assignment, who, case_id, rows[0][0]) if rows else ""
        if before == text:
            return False
        connection.execute(
            "INSERT INTO reading_comments (cohort, reader, case_id, comment, created) "
            "VALUES (?,?,?,?,?)",
            [
                assignment.key,
                who,
                case_id,
                _close_comment(assignment, who, case_id, text),
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
    found = _select_comments(
        store, assignment, "AND reader = ? AND case_id = ?", reader, case_id
    )
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
        return _select_comments(store, assignment, "")
    return _select_comments(store, assignment, "AND case_id = ?", case_id)


def _select_comments(
    store: Store, assignment: Assignment, where: str, *values: str
) -> tuple[ReaderComment, ...]:
    rows = store.read(
        "SELECT reader, case_id, comment, max(number) FROM reading_comments "
        f"WHERE cohort = ? {where} GROUP BY reader, case_id ORDER BY case_id, reader",
        [assignment.key, *values],
    )
    return tuple(
        ReaderComment(reader, case, _open_comment(assignment, reader, case, kept))
        for reader, case, kept, _ in rows
        if kept
    )


def _close_comment(assignment: Assignment, reader: str, case_id: str, text: str) -> str:
    if assignment.words is None or not text:
        return text
    filled = text + " " * (-len(text.encode("utf-8")) % _BLOCK)
    return assignment.words.close(filled, _comment_place(assignment, reader, case_id))


def _open_comment(assignment: Assignment, reader: str, case_id: str, kept: str) -> str:
    if assignment.words is None:
        return kept
    return assignment.words.open(kept, _comment_place(assignment, reader, case_id))


def _comment_place(
    assignment: Assignment, reader: str, case_id: str
) -> tuple[str, ...]:
    return "comment", assignment.key, reader, case_id
