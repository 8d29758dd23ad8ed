"""The private store: completions by content, runs, outcomes, verdicts.

Everything in it except clinicians' verdicts can be made again by running again.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from threading import Event, RLock, Thread
from types import TracebackType
from typing import Any, NamedTuple, TypeAlias

from pydantic_core import from_json

from loop.core.errors import DataError, LoopError, StoreError
from loop.core.paths import WorkspacePaths
from loop.core.records import Completion, Outcome, Status
from loop.run.database import connect, decode_fields, reported, transaction
from loop.run.spec import RunSpec, read_spec, spec_data

_PAGE = 1000
"""Outcomes read at a time, so that a reader never holds up a writer."""

_LOOKUP = 500
"""Keys in one SELECT."""

KEY_BYTES = 32
"""Bytes of one completion key."""

_INSERT = 256
"""Most rows in one INSERT."""


CompletionRow: TypeAlias = tuple[
    bytes, str, str, float, int | None, int | None, int | None, str | None
]
"""key, and a `Completion` without its error"""

OutcomeRow: TypeAlias = tuple[int, int, str, str, str, str, str, bytes]
"""run, seq, item_id, status, fields, repairs, problem, keys"""


class StoredVerdict(NamedTuple):
    """A clinician's verdict as kept in the store; its payload belongs to review."""

    id: str
    created: str
    """UTC, ISO 8601."""

    actor: str
    payload: Mapping[str, Any]


class StoredOutcome(NamedTuple):
    """How one item ended, and under which keys the answers to it are stored."""

    outcome: Outcome
    keys: bytes
    """Of its calls, in the order of the plan, `KEY_BYTES` each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One run as the store knows it."""

    number: int
    """Key inside the store file; use `id` everywhere else."""

    id: str
    created: str
    """UTC, ISO 8601."""

    finished: str | None
    """UTC, ISO 8601; None while running or after a kill."""

    spec: RunSpec
    counts: Mapping[str, int]
    """Items and how they ended; empty until finished."""

    actor: str | None = None
    """Who started it; None for a run from before this was kept."""

    @property
    def part(self) -> int | None:
        """Number of the first cases that it asked, with ``--limit``; None for all."""
        asked = self.counts.get("items", 0)
        limit = self.spec.limit
        # Of a cohort with fewer cases, all were asked.
        return None if limit is None or 0 < asked < limit else limit


class Store:
    """One open store file; its methods may be called from any thread."""

    def __init__(self, path: Path) -> None:
        """Open the store at `path`, made if needed; see `open_store` for errors."""
        self.path = path
        self._lock = RLock()
        self._connection = connect(path)
        self._file = _identify(path)

    def close(self) -> None:
        """Close the file; everything committed stays."""
        with self._lock, reported(self.path):
            self._connection.close()

    def find_completions(self, keys: Sequence[bytes]) -> dict[bytes, Completion]:
        """Return the stored completions among `keys`; unknown keys are left out."""
        found: dict[bytes, Completion] = {}
        for start in range(0, len(keys), _LOOKUP):
            part = keys[start : start + _LOOKUP]
            marks = ",".join("?" * len(part))
            rows = self.read(
                "SELECT key, text, finish_reason, latency_s, prompt_tokens, "
                "completion_tokens, cached_tokens, thinking FROM completions "
                f"WHERE key IN ({marks})",
                part,
            )
            for key, text, finish, latency, asked, given, cached, thinking in rows:
                measured = latency, asked, given, cached, thinking or ""
                found[key] = Completion(text, finish, "", *measured)
        return found

    def save(
        self, completions: Sequence[CompletionRow], outcomes: Sequence[OutcomeRow]
    ) -> None:
        """Commit completions and outcomes in one transaction.

        A completion that is already there stays; an outcome is replaced.

        Raises
        ------
        StoreError
            The disk is full or the file cannot be written; nothing was changed.
        """
        with self.writing() as connection:
            _insert(
                connection,
                "INSERT OR IGNORE INTO completions (key, text, finish_reason, "
                "latency_s, prompt_tokens, completion_tokens, cached_tokens, thinking)",
                completions,
            )
            _insert(connection, "INSERT OR REPLACE INTO outcomes", outcomes)

    def add_run(
        self,
        base: str,
        created: str,
        match: str,
        spec: RunSpec,
        actor: str | None = None,
    ) -> RunRecord:
        """Store a new, unfinished run that `actor` starts, and return it.

        Its id is `base`, or ``<base>-2`` and so on where that is taken.
        """
        text = json.dumps(spec_data(spec), ensure_ascii=False)
        with self.writing() as connection:
            run, attempt = base, 1
            while connection.execute("SELECT 1 FROM runs WHERE id=?", [run]).fetchone():
                attempt += 1
                run = f"{base}-{attempt}"
            connection.execute(
                "INSERT INTO runs (id, created, match, spec, actor) VALUES (?,?,?,?,?)",
                [run, created, match, text, actor],
            )
        return self.find_runs(ids=[run])[0]

    def finish_run(self, run: str, finished: str, counts: Mapping[str, int]) -> None:
        """Mark `run` as finished, with how its items ended."""
        with self.writing() as connection:
            connection.execute(
                "UPDATE runs SET finished = ?, counts = ? WHERE id = ?",
                [finished, json.dumps(dict(counts)), run],
            )

    def find_runs(
        self,
        *,
        finished: bool | None = None,
        ids: Sequence[str] | None = None,
        prefix: str = "",
        match: str | None = None,
    ) -> list[RunRecord]:
        """Return the runs that fit all that is given, newest first.

        Parameters
        ----------
        finished
            Whether they have ended; None: either.
        ids
            Their ids; None: any.
        prefix
            What their ids start with.
        match
            The digest of what they ask, as `add_run` was given it.
        """
        where: list[str] = []
        values: list[object] = []
        if finished is not None:
            where.append(f"finished IS {'NOT ' if finished else ''}NULL")
        if ids is not None:
            where.append(f"id IN ({', '.join('?' * len(ids))})")
            values += ids
        if prefix:
            where.append("substr(id, 1, ?) = ?")
            values += [len(prefix), prefix]
        if match is not None:
            where.append("match = ?")
            values.append(match)
        rows = self.read(
            "SELECT number, id, created, finished, spec, counts, actor FROM runs "
            f"WHERE {' AND '.join(where) or '1'} ORDER BY created DESC, number DESC",
            values,
        )
        return [self._record(row) for row in rows]

    def _record(self, row: Sequence[Any]) -> RunRecord:
        number, run, created, finished, spec, counts, actor = row
        try:
            return RunRecord(
                number=number,
                id=run,
                created=created,
                finished=finished,
                spec=read_spec(json.loads(spec)),
                counts=json.loads(counts) if counts else {},
                actor=actor,
            )
        except (ValueError, TypeError) as error:
            raise self._altered(f"run {run}") from error

    def read_outcomes(self, run: str) -> Iterator[Outcome]:
        """Yield the outcomes of `run` in cohort order.

        Raises
        ------
        DataError
            There is no such run.
        StoreError
            A row was changed by something other than ranloop.
        """
        numbers = self.read("SELECT number FROM runs WHERE id = ?", [run])
        if not numbers:
            raise DataError(f"there is no run {run}. Make one with `ranloop run`.")
        last = -1
        while rows := self.read(
            "SELECT seq, item_id, status, fields, repairs, problem FROM outcomes "
            "WHERE run = ? AND seq > ? ORDER BY seq LIMIT ?",
            [numbers[0][0], last, _PAGE],
        ):
            for row in rows:
                yield self._outcome(row)
            last = rows[-1][0]

    def read_keys(self, run: str) -> Iterator[tuple[str, bytes]]:
        """Yield item id and completion keys of `run`'s outcomes in cohort order."""
        last = -1
        while rows := self.read(
            "SELECT seq, item_id, keys FROM outcomes JOIN runs ON run = number "
            "WHERE id = ? AND seq > ? ORDER BY seq LIMIT ?",
            [run, last, _PAGE],
        ):
            for _, item_id, keys in rows:
                yield item_id, keys
            last = rows[-1][0]

    def find_outcome(self, run: RunRecord, item_id: str) -> StoredOutcome | None:
        """Return how one item ended in `run`; None for an item it did not ask.

        Raises
        ------
        StoreError
            The file is damaged or locked, or the row was changed by something other
            than ranloop.
        """
        rows = self.read(
            "SELECT seq, item_id, status, fields, repairs, problem, keys FROM outcomes "
            "INDEXED BY outcomes_by_item WHERE run = ? AND item_id = ?",
            [run.number, item_id],
        )
        if not rows:
            return None
        *row, keys = rows[0]
        return StoredOutcome(self._outcome(row), keys)

    def list_unanswered(self, run: RunRecord) -> list[tuple[str, Status, str]]:
        """Return item id, status and problem of each item without an answer."""
        rows = self.read(
            "SELECT item_id, status, problem FROM outcomes "
            "WHERE run = ? AND status <> ? ORDER BY seq",
            [run.number, Status.ANSWERED.value],
        )
        return [(item_id, Status(status), problem) for item_id, status, problem in rows]

    def list_items(
        self, run: RunRecord, start: int, most: int
    ) -> list[tuple[str, Status]]:
        """Return id and status of at most `most` items from place `start` on."""
        rows = self.read(
            "SELECT item_id, status FROM outcomes "
            "WHERE run = ? AND seq >= ? AND seq < ? ORDER BY seq",
            [run.number, start, start + most],
        )
        return [(item_id, Status(status)) for item_id, status in rows]

    def _outcome(self, row: Sequence[Any]) -> Outcome:
        _, item_id, status, fields, repairs, problem = row
        try:
            return Outcome(
                item_id=item_id,
                status=Status(status),
                fields=decode_fields(fields),
                repairs=tuple(json.loads(repairs)) if repairs else (),
                problem=problem,
            )
        except (ValueError, TypeError, AttributeError) as error:
            raise self._altered(f"the outcome of case {item_id}") from error

    def _altered(self, what: str) -> StoreError:
        return StoreError(
            f"{self.path}: {what} cannot be read; something other than ranloop "
            "changed it. Run the same `ranloop run` again to rebuild it."
        )

    def count_completions(self) -> int:
        """Return how many completions are stored."""
        (row,) = self.read("SELECT count(*) FROM completions")
        return int(row[0])

    def add_verdicts(self, verdicts: Iterable[StoredVerdict]) -> None:
        """Store verdicts; one with a known id is left as it was first stored."""
        rows = [
            (v.id, v.created, v.actor, json.dumps(dict(v.payload), ensure_ascii=False))
            for v in verdicts
        ]
        with self.writing() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO verdicts VALUES (?,?,?,?)", rows
            )

    def list_verdicts(self) -> list[StoredVerdict]:
        """Return all stored verdicts, oldest first."""
        rows = self.read(
            "SELECT id, created, actor, payload FROM verdicts ORDER BY created, id"
        )
        return [
            StoredVerdict(name, created, actor, json.loads(payload))
            for name, created, actor, payload in rows
        ]

    def read(self, query: str, values: Sequence[object] = ()) -> list[Any]:
        """Return all rows of a query, for the rooms whose tables these are.

        Raises
        ------
        StoreError
            The file is damaged or locked.
        """
        with self._lock, reported(self.path):
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Give the connection inside a transaction: all of the block or nothing.

        Raises
        ------
        StoreError
            The file is locked, read-only, or not the one that was opened.
        """
        # SQLite would go on, in a file that nobody finds again.
        if _identify(self.path) != self._file:
            raise StoreError(
                f"{self.path} was removed or replaced while it was in use. What was "
                "answered is in the file that was there; put it back if you have it, "
                "and run the same command again."
            )
        with self._lock, reported(self.path), transaction(self._connection):
            yield self._connection


def _identify(path: Path) -> tuple[int, int] | None:
    """Return what tells the file at `path` from another one; None without a file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _insert(
    connection: sqlite3.Connection, into: str, rows: Sequence[tuple[object, ...]]
) -> None:
    """Insert rows with few statements, in which other threads run undisturbed.

    Their sizes are powers of two, so that few different ones are prepared and kept.
    """
    start, size = 0, _INSERT
    while start < len(rows):
        while size > len(rows) - start:
            size //= 2
        marks = f"({','.join('?' * len(rows[0]))})"
        values = chain.from_iterable(rows[start : start + size])
        connection.execute(f"{into} VALUES {','.join([marks] * size)}", tuple(values))
        start += size


@contextmanager
def open_store(workspace: WorkspacePaths) -> Iterator[Store]:
    """Open the workspace's store for the length of the block.

    Raises
    ------
    StoreError
        The file is damaged, locked, of a newer version, or cannot be opened.
    WriteError
        The workspace cannot be written.
    """
    workspace.open_private()
    store = Store(workspace.store)
    try:
        yield store
    finally:
        store.close()


def split_keys(keys: bytes) -> list[bytes]:
    """Return the key of each call of an item; see `StoredOutcome`."""
    return [keys[start : start + KEY_BYTES] for start in range(0, len(keys), KEY_BYTES)]


def read_outcomes(store: Store, run_id: str) -> Iterator[Outcome]:
    """Yield the outcomes of a run in cohort order; see `Store.read_outcomes`."""
    return store.read_outcomes(run_id)


def count_problem(store: Store, run: RunRecord, words: str) -> int:
    """Return how many items of a run ended with a problem that has these words.

    Raises
    ------
    StoreError
        The store cannot be read.
    """
    rows = store.read(
        "SELECT count(*) FROM outcomes WHERE run = ? AND instr(problem, ?)",
        [run.number, words],
    )
    return int(rows[0][0])


class Values(NamedTuple):
    """The answers of one item."""

    item_id: str
    status: Status
    values: Mapping[str, object]
    """Field name to answer; a field that was not answered is missing."""


def read_values(store: Store, run: RunRecord) -> Iterator[Values]:
    """Yield the answers of a run in cohort order.

    The same as `Store.read_outcomes` less evidence, repairs and problems, in a third
    of the time.

    Raises
    ------
    StoreError
        The file is damaged or locked, or a row was changed by something other than
        ranloop.
    """
    last = -1
    while rows := store.read(
        "SELECT seq, item_id, status, fields FROM outcomes "
        "WHERE run = ? AND seq > ? ORDER BY seq LIMIT ?",
        [run.number, last, _PAGE],
    ):
        for _, item_id, status, fields in rows:
            try:
                values = {
                    name: answer[0] if isinstance(answer, list) else answer
                    for name, answer in from_json(fields).items()
                }
                yield Values(item_id, Status(status), values)
            except (ValueError, AttributeError, IndexError) as error:
                raise StoreError(
                    f"{store.path}: the outcome of case {item_id} in run {run.id} "
                    "cannot be read; something other than ranloop changed it. Run the "
                    "same `ranloop run` again to rebuild it."
                ) from error
        last = rows[-1][0]


MAX_AGE_S = 0.05
"""Age from which rows should be committed with the next answer, seconds."""

_IDLE_S = 0.1
"""Age at which rows are committed although no next row comes, seconds.

Longer than `MAX_AGE_S`, so that the watching thread never competes with a fast engine:
it acts only while the engine keeps everyone waiting.
"""


class Writer:
    """Collects rows of a run and commits them in batches; a context manager.

    Leaving the block commits what is left, also when the engine failed, so that an
    answer that was paid for is kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = RLock()
        self._completions: list[CompletionRow] = []
        self._outcomes: list[OutcomeRow] = []
        self._since = time.monotonic()
        self._stop = Event()
        self._failure: LoopError | None = None
        self._thread = Thread(target=self._watch, name="ranloop-writer", daemon=True)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        try:
            self.flush()
        except LoopError:
            if error is None:
                raise

    def add_completion(self, row: CompletionRow) -> None:
        """Take one completion; it is committed soon."""
        self._completions.append(row)

    def add_outcome(self, row: OutcomeRow) -> None:
        """Take one outcome; it is committed soon."""
        self._outcomes.append(row)

    def due(self) -> bool:
        """Whether the last commit is so long ago that `flush` should be called."""
        return time.monotonic() - self._since >= MAX_AGE_S

    def flush(self) -> None:
        """Commit everything taken so far.

        Raises
        ------
        StoreError
            The store cannot be written; the rows are kept for the next attempt.
        """
        with self._lock:
            if self._failure is not None:
                raise self._failure
            # Rows may arrive while this writes: only what was written is removed.
            completions, outcomes = tuple(self._completions), tuple(self._outcomes)
            if completions or outcomes:
                self._store.save(completions, outcomes)
                del self._completions[: len(completions)]
                del self._outcomes[: len(outcomes)]
            self._since = time.monotonic()

    def _watch(self) -> None:
        """Commit rows that wait for an engine which is busy with something long."""
        while not self._stop.wait(MAX_AGE_S):
            with self._lock:
                if time.monotonic() - self._since < _IDLE_S:
                    continue
                try:
                    self.flush()
                except LoopError as error:
                    # Raised to the run with its next row, in the run's own thread.
                    self._failure = error
                    return
