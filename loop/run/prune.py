"""Stored answers that no run rests on: what they take, and how to let them go."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from loop.core.errors import ConflictError
from loop.core.files import locked
from loop.core.paths import WorkspacePaths
from loop.run.database import reported
from loop.run.store import KEY_BYTES, Store

_ROWS = 1000

ANSWER_FOLDERS: Final = ("score", "judge", "inject")
"""Private folders with a store of their own, of answers about generated or changed
reports that are in no run of the workspace."""


class Pruned(NamedTuple):
    """Stored answers that no run rests on."""

    answers: int
    size: int
    """Bytes of their texts."""


def prune_completions(workspace: WorkspacePaths, *, dry_run: bool = False) -> Pruned:
    """Remove stored answers that no outcome of any run rests on.

    Such are answers of earlier attempts, of runs that were killed, and those about
    generated reports, which are kept so that each is asked once. Asked again, they are
    paid for again; nothing else is lost. Runs, verdicts and releases keep theirs.

    Raises
    ------
    ConflictError
        A run is under way; nothing was removed.
    StoreError
        A store is damaged, locked or cannot be written.
    """
    answers = size = 0
    own = [workspace.private / name / "store.db" for name in ANSWER_FOLDERS]
    for path in (workspace.store, *own):
        if path.exists():
            found = _prune(path, dry_run)
            answers, size = answers + found.answers, size + found.size
    return Pruned(answers, size)


@contextmanager
def starting(folder: Path) -> Iterator[None]:
    """Let a run of the store in `folder` begin only while nothing is removed there."""
    with locked(folder / "locks" / "prune.lock"):
        yield


def _prune(path: Path, dry_run: bool) -> Pruned:
    store = Store(path)
    with ExitStack() as stack:
        stack.callback(store.close)
        stack.enter_context(starting(path.parent))
        _refuse_running(store)
        with store.writing() as connection:
            found = _mark(connection)
            if not dry_run:
                connection.execute(f"DELETE FROM completions WHERE {_UNUSED}")
        if found.answers and not dry_run:
            with reported(path), sqlite3.connect(path, isolation_level=None) as own:
                stack.callback(own.close)
                own.execute("VACUUM")
    return found


_UNUSED = "key NOT IN (SELECT key FROM temp.used)"


def _mark(connection: sqlite3.Connection) -> Pruned:
    """List the answers that outcomes rest on, and count the others."""
    connection.execute(
        "CREATE TEMP TABLE used (key BLOB PRIMARY KEY) STRICT, WITHOUT ROWID"
    )
    rows = connection.execute("SELECT keys FROM outcomes")
    while block := rows.fetchmany(_ROWS):
        connection.executemany(
            "INSERT OR IGNORE INTO used VALUES (?)",
            (
                (keys[start : start + KEY_BYTES],)
                for (keys,) in block
                for start in range(0, len(keys), KEY_BYTES)
            ),
        )
    return Pruned(
        *connection.execute(
            "SELECT count(*), ifnull(sum(length(CAST(text AS BLOB)) "
            "+ ifnull(length(CAST(thinking AS BLOB)), 0)), 0) "
            f"FROM completions WHERE {_UNUSED}"
        ).fetchone()
    )


def _refuse_running(store: Store) -> None:
    """Refuse while a process works on a run: its answers come before its outcomes."""
    for run in store.find_runs(finished=False):
        lock = store.path.parent / "runs" / run.id / "lock"
        if not os.path.exists(lock):
            continue
        try:
            with locked(lock, wait=False):
                pass
        except ConflictError as error:
            raise ConflictError(
                f"run {run.id} is under way. Wait for it to end and run the same "
                "command again. No answer was removed."
            ) from error
