"""Writes a run's rows in batches, early enough that a kill loses nothing answered."""

from __future__ import annotations

import time
from threading import Event, RLock, Thread
from types import TracebackType

from loop.core.errors import LoopError
from loop.run.store import CompletionRow, OutcomeRow, Store

MAX_AGE_S = 0.05
"""Age from which rows should be committed with the next answer, seconds."""

_IDLE_S = 0.1
"""Age at which rows are committed although no next row comes, seconds.

Longer than `MAX_AGE_S`, so that the watching thread never competes with a fast engine:
it acts only while the engine keeps everyone waiting.
"""


class Writer:
    """Collects rows and commits them; use it as a context manager.

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
