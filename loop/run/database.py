"""The SQLite file behind the store: opening, schema, and errors with a way out.

A field without evidence is its value, ``{"edema": "absent"}``; with evidence a list of
the value and the start and end of each span, ``{"edema": ["present", [[12, 20]]]}``.
What a judge lists follows, each with words, category, weight and spans, and a span of
another text than ``text`` names it:
``{"omission": [1, [], [["edema", "omission", "", [[4, 9, "reference"]]]]]}``.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from loop.core.errors import StoreError, WriteError
from loop.core.files import make_folder
from loop.core.records import Entry, Field, Span, Value

_WORDS: Mapping[object, Value] = {value.value: value for value in Value}
"""Values come back as the enum they were written from."""

_quote = encode_basestring
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class FieldEncoder:
    """Spells fields as JSON; remembers what most outcomes of a run have in common.

    Contracts hand out one shared `Field` for "absent, no evidence", which is most of
    what a run stores. Its spelling for each name is kept, and used wherever a field is
    that very object.
    """

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._usual: Field | None = None
        self._parts: list[str] = []

    def encode(self, fields: Mapping[str, Field]) -> str:
        """Return `fields` as one JSON object."""
        if tuple(fields) != self._names:
            self._learn(fields)
        parts, usual = self._parts.copy(), self._usual
        for place, answer in enumerate(fields.values()):
            if answer is not usual:
                parts[place] = _spell(self._names[place], answer)
        return "{" + ",".join(parts) + "}"

    def _learn(self, fields: Mapping[str, Field]) -> None:
        """Keep the spelling of the first field without evidence, for every name."""
        bare = [one for one in fields.values() if not one.spans and not one.entries]
        self._names = tuple(fields)
        self._usual = bare[0] if bare else None
        self._parts = [_spell(name, bare[0]) if bare else "" for name in fields]


def _spell(name: str, answer: Field) -> str:
    """Return one pair, without the set-up cost of a JSON encoder for words."""
    value, spans, entries = answer
    text = _quote(value) if isinstance(value, str) else _encode(value)
    if entries:
        rows = [(*entry[:3], _places(entry.spans)) for entry in entries]
        return f"{_quote(name)}:[{text},{_encode(_places(spans))},{_encode(rows)}]"
    if not spans:
        return f"{_quote(name)}:{text}"
    if len(spans) == 1:
        ((start, end, source),) = spans
        if source == "text":
            return f"{_quote(name)}:[{text},[[{start},{end}]]]"
    return f"{_quote(name)}:[{text},{_encode(_places(spans))}]"


def _places(spans: Sequence[Span]) -> list[list[int | str]]:
    return [span.data for span in spans]


def decode_fields(text: str) -> dict[str, Field]:
    """Return the fields that `FieldEncoder.encode` spelled.

    Raises
    ------
    ValueError
        `text` is not such a spelling: the store was changed by something else.
    """
    return {name: _decode(answer) for name, answer in from_json(text).items()}


def _decode(answer: object) -> Field:
    if not isinstance(answer, list):
        return Field(_value(answer))
    if len(answer) == 2:
        value, spans = answer
        return Field(_value(value), _spans(spans))
    value, spans, entries = answer
    return Field(_value(value), _spans(spans), tuple(map(_entry, entries)))


def _spans(places: Sequence[Sequence[Any]]) -> tuple[Span, ...]:
    try:
        return tuple([Span(start, end) for start, end in places])
    except ValueError:
        # One of them names its text: only judges' do.
        spans = tuple([Span(*place) for place in places])
    if any(not isinstance(span.input, str) for span in spans):
        raise ValueError("the input of a span is no name")
    return spans


def _entry(raw: Sequence[Any]) -> Entry:
    *said, places = raw
    words, category, weight = said
    if any(not isinstance(one, str) for one in said):
        raise ValueError("an entry says something that is not text")
    return Entry(words, category, weight, _spans(places))


def _value(raw: object) -> str | int | float:
    if isinstance(raw, str):
        return _WORDS.get(raw, raw)
    if isinstance(raw, int | float):
        return raw
    raise ValueError(f"a field value is {type(raw).__name__}")


BUSY_S = 30.0
"""How long a process waits for another one's transaction, seconds."""

MIGRATIONS = (
    """
    CREATE TABLE completions (
        -- what an engine answered, content-addressed; never a failed one
        number INTEGER PRIMARY KEY,
        key BLOB NOT NULL UNIQUE,        -- sha256 of what was asked of which engine
        text TEXT NOT NULL,
        finish_reason TEXT NOT NULL,     -- stop, length or refusal
        latency_s REAL NOT NULL,
        prompt_tokens INTEGER,
        completion_tokens INTEGER
    ) STRICT;
    CREATE TABLE runs (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,         -- 20261121-223301-ab12cd
        created TEXT NOT NULL,           -- UTC, ISO 8601
        finished TEXT,                   -- NULL while running or after a kill
        match TEXT NOT NULL,             -- sha256 of spec and engine identity
        spec TEXT NOT NULL,              -- JSON of the RunSpec
        counts TEXT                      -- JSON, once finished
    ) STRICT;
    CREATE TABLE outcomes (
        run INTEGER NOT NULL REFERENCES runs (number),
        seq INTEGER NOT NULL,            -- position of the item in the cohort, from 0
        item_id TEXT NOT NULL,
        status TEXT NOT NULL,            -- answered, unparsed or engine_failed
        fields TEXT NOT NULL,            -- JSON, see loop/run/database.py
        repairs TEXT NOT NULL,           -- JSON list, or empty for none
        problem TEXT NOT NULL,
        keys BLOB NOT NULL,              -- completion keys, 32 bytes each
        PRIMARY KEY (run, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE verdicts (
        id TEXT PRIMARY KEY,
        created TEXT NOT NULL,           -- UTC, ISO 8601
        actor TEXT NOT NULL,
        payload TEXT NOT NULL            -- JSON
    ) STRICT, WITHOUT ROWID;
    """,
    """
    -- prompt tokens that the server had in its prefix cache
    ALTER TABLE completions ADD COLUMN cached_tokens INTEGER;
    """,
    """
    CREATE TABLE withdrawals (
        -- verdicts that their author, or an editor, took back
        verdict TEXT PRIMARY KEY,        -- verdicts.id
        created TEXT NOT NULL,           -- UTC, ISO 8601
        actor TEXT NOT NULL,
        reason TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE reservations (
        -- who works on a case just now
        cohort TEXT NOT NULL,
        case_id TEXT NOT NULL,
        actor TEXT NOT NULL,
        until TEXT NOT NULL,             -- UTC, ISO 8601
        PRIMARY KEY (cohort, case_id)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE working (
        -- what a person has begun and not handed in: forms, the place in a queue
        actor TEXT NOT NULL,
        subject TEXT NOT NULL,
        saved TEXT NOT NULL,             -- UTC, ISO 8601
        payload TEXT NOT NULL,           -- JSON
        PRIMARY KEY (actor, subject)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE readings (
        -- blinded answers of readers; the last one on a case and label counts
        number INTEGER PRIMARY KEY,
        cohort TEXT NOT NULL,            -- name@digest
        reader TEXT NOT NULL,
        case_id TEXT NOT NULL,
        label TEXT NOT NULL,
        value TEXT NOT NULL,             -- present, absent, uncertain, empty (undone),
                                         -- or deferred with an empty label (put off)
        created TEXT NOT NULL            -- UTC, ISO 8601
    ) STRICT;
    CREATE INDEX readings_by_reader ON readings (cohort, reader, case_id, label);
    """,
    """
    CREATE TABLE reading_plans (
        -- which cases a reader was given, in order; the last one of a reader counts
        number INTEGER PRIMARY KEY,
        cohort TEXT NOT NULL,            -- name@digest
        reader TEXT NOT NULL,
        cases TEXT NOT NULL,             -- JSON list of case ids; [] means every case
        actor TEXT NOT NULL,
        created TEXT NOT NULL            -- UTC, ISO 8601
    ) STRICT;
    CREATE INDEX reading_plans_by_reader ON reading_plans (cohort, reader);
    CREATE TABLE reading_comments (
        -- what readers noted on a case; the last one on a case counts
        number INTEGER PRIMARY KEY,
        cohort TEXT NOT NULL,            -- name@digest
        reader TEXT NOT NULL,
        case_id TEXT NOT NULL,
        comment TEXT NOT NULL,           -- empty (taken back); sealed for a holdout
        created TEXT NOT NULL            -- UTC, ISO 8601
    ) STRICT;
    CREATE INDEX reading_comments_by_case ON reading_comments (cohort, case_id, reader);
    """,
    """
    -- the guideline that was beside the case, or in force when cases were given: 12
    -- digits of the taxonomy's digest; NULL from before this was kept
    ALTER TABLE readings ADD COLUMN guideline TEXT;
    ALTER TABLE reading_plans ADD COLUMN guideline TEXT;
    """,
    """
    -- reasoning that the server gave apart from the answer, NULL where there is none
    -- and from before it was kept
    ALTER TABLE completions ADD COLUMN thinking TEXT;
    CREATE INDEX outcomes_by_item ON outcomes (run, item_id);
    """,
    """
    -- who started the run; NULL from before this was kept
    ALTER TABLE runs ADD COLUMN actor TEXT;
    CREATE TABLE jobs (
        -- work that goes on in a separate process, see loop/run/jobs.py
        number INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,              -- run, evaluate, matrix or check
        parameters TEXT NOT NULL,        -- JSON of the JobRequest, keys in order
        actor TEXT NOT NULL,             -- who started it, or resumed it last
        role TEXT NOT NULL,              -- in which the ledger has them
        created TEXT NOT NULL,           -- UTC, ISO 8601, as started and ended
        started TEXT,
        ended TEXT,
        state TEXT NOT NULL,             -- queued, running, stopped, failed or done
        step TEXT NOT NULL,              -- what is done just now, in words
        done INTEGER NOT NULL,           -- cases of that step
        total INTEGER NOT NULL,          -- 0 when it is not known
        worker TEXT,                     -- lock that its process holds while it lives
        pid INTEGER,                     -- of that process
        message TEXT NOT NULL,           -- why it failed or was stopped; no case text
        log TEXT NOT NULL,               -- a line for each thing that happened
        runs TEXT NOT NULL               -- JSON list of the ids of its finished runs
    ) STRICT;
    -- nobody starts what is under way
    CREATE UNIQUE INDEX jobs_open ON jobs (kind, parameters)
        WHERE state IN ('queued', 'running');
    """,
    """
    -- JSON list: with which chance each case was drawn in a value sample, NULL for
    -- cases that are of none, and from before this was kept
    ALTER TABLE reading_plans ADD COLUMN chances TEXT;
    """,
)
"""Statements that bring the file from version i to i + 1 (``PRAGMA user_version``)."""

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_UNWRITABLE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}


def connect(path: Path) -> sqlite3.Connection:
    """Return a connection to the store at `path`, made or migrated if needed.

    The connection may be used from several threads if they take turns.

    Raises
    ------
    StoreError
        The file is damaged, locked, of a newer version, or cannot be opened.
    WriteError
        The folder cannot be written.
    """
    make_folder(path.parent, mode=0o700)
    connection = None
    try:
        with reported(path):
            _touch_private(path)
            connection = sqlite3.connect(
                path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
            _configure(connection)
            _migrate(connection, path)
    except (StoreError, WriteError):
        if connection is not None:
            connection.close()
        raise
    return connection


def _touch_private(path: Path) -> None:
    """Create the file as 0600: SQLite gives its side files the same mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        # Closing it would drop the locks of this process's other connections.
        return
    except OSError as error:
        raise StoreError(
            f"cannot open {path}: {error.strerror}. Use a workspace you can write, "
            "or correct the file's permissions."
        ) from error


def _configure(connection: sqlite3.Connection) -> None:
    """Set what speed and kill safety rest on.

    WAL with synchronous=NORMAL survives a kill of the process at any instant; a
    power loss may take the last transactions, never the file's consistency.
    """
    _use_wal(connection)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("PRAGMA cache_size = -65536")


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL, waiting for other processes that do the same.

    SQLite does not apply its busy timeout to this switch.
    """
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode not in _BUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise StoreError(
            f"{path} was written by a newer ranloop (store version {version}, this "
            f"one knows {len(MIGRATIONS)}). Update ranloop."
        )
    if version == len(MIGRATIONS):
        return
    with transaction(connection):
        # Another process may have migrated while this one waited for the lock.
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        for script in MIGRATIONS[version:]:
            for statement in script.split(";\n"):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def snapshot(path: Path, target: Path) -> None:
    """Copy the store at `path` to `target` as it is at one moment, in one file.

    Others may go on writing.

    Raises
    ------
    StoreError
        It is damaged, or held by another process for too long.
    """
    with reported(path), closing(sqlite3.connect(path, timeout=BUSY_S)) as source:
        with closing(sqlite3.connect(target)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            found = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            damage = sqlite3.DatabaseError("quick_check found damage")
            damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise damage


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit the block as a whole, or nothing of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def reported(path: Path) -> Iterator[None]:
    """Turn an SQLite error into a `StoreError` that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(_advice(path, error)) from error


def _advice(path: Path, error: sqlite3.Error) -> str:
    # Extended codes keep the primary code in their low byte.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _DAMAGED:
        return (
            f"{path} is damaged or not a ranloop store. Move it aside "
            f"(mv {path.name} {path.name}.damaged, with its -wal and -shm files) and "
            "run the command again: completions and runs are rebuilt by running. "
            "Case texts, prompts and the ledger are not in it. Clinicians' verdicts "
            "kept in it are: to rescue those, keep the moved file and use "
            f"`sqlite3 {path.name}.damaged .recover`."
        )
    if code == sqlite3.SQLITE_FULL:
        return (
            f"cannot write {path}: the disk is full. Free some space and run the same "
            "command again: it goes on where it was, nothing stored was lost."
        )
    if code in _BUSY:
        return (
            f"{path} is held by another process for more than {BUSY_S:.0f} s. "
            "Wait for it to finish and run the command again."
        )
    if code in _UNWRITABLE:
        return (
            f"cannot write {path}: read-only, or permission is missing. "
            "Use a workspace you can write."
        )
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return (
        f"cannot use {path} ({name}). Check that the disk is neither full nor failing "
        "and run the same command again. Keep the file: clinicians' verdicts are in it."
    )
