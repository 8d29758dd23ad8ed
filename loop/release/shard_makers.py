"""Shards of an annotation made in this process, or by several on this machine."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import compress
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from loop.core.errors import EngineError
from loop.core.paths import WorkspacePaths, material
from loop.core.records import Outcome, Status
from loop.engines.base import ignore_progress
from loop.labels.language import has_words
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.version import PromptVersion
from loop.run.asking import EngineOptions, name_no_finding
from loop.run.runner import PromptRunner
from loop.run.shards import (
    AnnotationPlan,
    CorpusRow,
    as_items,
    check_label_names,
    encode_shard,
    write_shard,
)
from loop.run.store import Store

_LOOK_EVERY_S: Final = 1.0

_NEW_OBJECTS: Final = 20_000
"""Objects that are made before the garbage collector looks at them: those of a shard
live until it is written, so that looking often finds nothing, for a sixth of all time.
"""


class ShardRows(NamedTuple):
    """A shard that is to be made."""

    number: int
    rows: tuple[CorpusRow, ...]
    known: tuple[Outcome | None, ...] = ()
    """What an earlier call made of each row; only where the engine failed it is asked
    once more. Empty where the shard was not there."""


class AnnotationRequest(NamedTuple):
    """What is asked about every row, and which engine; processes can be sent it."""

    version: PromptVersion
    release: str
    """Name of the verified release; empty for a version that is none."""

    engine: str
    asking: EngineOptions
    workspace: WorkspacePaths | None
    text: bool
    """Whether the texts are kept with the labels."""

    rows: int
    """Rows of a shard."""

    @property
    def keeps(self) -> bool:
        """Whether answers are worth keeping until a shard is there.

        What `rules` says costs less to say again than to look up.
        """
        return self.engine != "rules"

    def open(self) -> PromptRunner:
        """Return what asks, with its engine; see `PromptRunner.open` for errors."""
        return PromptRunner.open(self.workspace, self.version, self.engine, self.asking)

    def plan(self, runner: PromptRunner) -> AnnotationPlan:
        """Return what every shard has in common; opens the engine.

        Raises
        ------
        DataError
            A label is called like a column that is no label.
        EngineError
            The engine is not available.
        """
        taxonomy = read_taxonomy(material(self.workspace).labels)
        asker: dict[str, Any] = json.loads(runner.asker)
        return AnnotationPlan(
            prompt=self.version.ref,
            prompt_digest=self.version.digest,
            release=self.release,
            contract=f"{runner.contract.name}/{runner.contract.version}",
            engine=self.engine,
            parameters=asker["parameters"],
            engine_identity=asker["identity"],
            taxonomy_digest=taxonomy.digest,
            no_finding=name_no_finding(taxonomy, self.engine),
            columns=check_label_names(taxonomy),
            text=self.text,
            shard_rows=self.rows,
        )

    @property
    def silent(self) -> AnnotationRequest:
        """The same for another process: what is said to a person, this one says."""
        return self._replace(asking=replace(self.asking, tell=ignore_progress))


class ShardMaker:
    """Makes one shard after the other, with one engine."""

    def __init__(
        self,
        request: AnnotationRequest,
        plan: AnnotationPlan,
        runner: PromptRunner,
        *,
        keep: bool = False,
    ) -> None:
        """Prepare to make shards.

        Parameters
        ----------
        keep
            Whether answers are kept in the runner's store.
        """
        self._plan = plan
        self._runner = runner
        self._keep = keep
        self._taxonomy = read_taxonomy(material(request.workspace).labels)

    def make(self, task: ShardRows) -> bytes:
        """Return the content of one shard.

        Raises
        ------
        EngineError
            The engine as a whole failed.
        """
        known = task.known or (None,) * len(task.rows)
        asked = [
            has_words(row.text)
            and (before is None or before.status is Status.ENGINE_FAILED)
            for row, before in zip(task.rows, known, strict=True)
        ]
        items = as_items(list(compress(task.rows, asked)))
        outcomes = iter(self._runner.ask_block(items, keep=self._keep))
        return encode_shard(
            task.number,
            self._plan,
            self._taxonomy,
            task.rows,
            [
                next(outcomes) if asks else before
                for asks, before in zip(asked, known, strict=True)
            ],
        )


@contextmanager
def keeping_answers(runner: PromptRunner, folder: Path) -> Iterator[PromptRunner]:
    """Give a runner with the same engine, whose answers are kept in a folder.

    Raises
    ------
    StoreError
        The store cannot be opened.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    with closing(Store(folder / "store.db")) as store:
        yield runner.beside(runner.version, store=store)


@contextmanager
def many_new_objects() -> Iterator[None]:
    """Let the garbage collector look less often within the block."""
    before = gc.get_threshold()
    gc.set_threshold(_NEW_OBJECTS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


_runner: PromptRunner | None = None
_maker: ShardMaker | None = None
"""Of a process that makes shards."""


def _start(request: AnnotationRequest, parent: int) -> None:
    """Prepare a process: it ends with its parent, which alone hears Ctrl-C."""
    global _runner
    gc.set_threshold(_NEW_OBJECTS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    runner = _runner = request.open()
    # Such a process runs no other exit handlers, and its store lies in a folder.
    Finalize(runner, runner.close, exitpriority=0)

    def end_with_parent() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_EVERY_S)
        with suppress(Exception):
            runner.close()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


def _start_method() -> Literal["fork", "spawn"]:
    """Return how processes start: as copies of this one, or each from nothing.

    A copy has all modules at once, which takes seconds otherwise. But it has no other
    thread, and would wait for ever for a lock that one of them held.
    """
    alone = threading.active_count() == 1
    return "fork" if sys.platform == "linux" and alone else "spawn"


def _open_engine() -> None:
    """Open the engine of a process before there is a shard to make."""
    if _runner is not None:
        _ = _runner.asker


def _make_shard(
    request: AnnotationRequest, plan: AnnotationPlan, out: Path, task: ShardRows
) -> int:
    global _maker
    if _runner is None:
        raise ValueError("the process was not prepared")
    if _maker is None:
        _maker = ShardMaker(request, plan, _runner)
    write_shard(out, task.number, _maker.make(task))
    return task.number


class ShardProcesses:
    """Processes on this machine that make shards; they start while others read.

    As a context manager it ends them.
    """

    def __init__(self, request: AnnotationRequest, workers: int) -> None:
        """Start so many processes; each holds an engine."""
        self._request = request.silent
        self._workers = workers
        self._pool = ProcessPoolExecutor(
            workers,
            mp_context=multiprocessing.get_context(_start_method()),
            initializer=_start,
            initargs=(self._request, os.getpid()),
        )
        self._ready = [self._pool.submit(_open_engine) for _ in range(workers)]

    def __enter__(self) -> ShardProcesses:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def make(
        self, plan: AnnotationPlan, out: Path, tasks: Iterable[ShardRows]
    ) -> Iterator[int]:
        """Yield the numbers of shards as processes finish them, few rows in memory.

        Raises
        ------
        EngineError
            A process was killed, or its engine failed.
        WriteError
            A shard cannot be written.
        """
        make = partial(_make_shard, self._request, plan, out)
        waiting: set[Future[int]] = set()
        try:
            for task in tasks:
                waiting.add(self._pool.submit(make, task))
                while len(waiting) > self._workers:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (one.result() for one in done)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (one.result() for one in done)
        except BrokenProcessPool as error:
            raise EngineError(
                "a worker ended before its work: it was killed, or memory ran out. The "
                "shards that were made stay; give the same command again to go on, "
                "with fewer --workers if memory was short."
            ) from error
