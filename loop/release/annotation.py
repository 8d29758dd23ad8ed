"""A corpus annotated by a version or a release: in shards, by several processes.

A study is kept in one SQLite file, which is right for a study and wrong for a corpus.
Here outcomes go into a folder of Parquet shards. What is asked, read and derived is the
same, by the same code, so that the values are those of a run.
"""

from __future__ import annotations

import gc
import hashlib
import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import compress, islice
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from loop import __version__
from loop.core.digests import framed
from loop.core.errors import ConflictError, DataError, EngineError
from loop.core.files import locked
from loop.core.paths import WorkspacePaths, material
from loop.core.records import Status
from loop.engines.base import ignore_progress
from loop.labels.cohort import REPORT_INPUTS
from loop.labels.importing.importer import open_source
from loop.labels.importing.source import (
    ImportOptions,
    SourceCase,
    check_id,
    check_length,
    language_code,
)
from loop.labels.importing.table_files import COMPLETE
from loop.labels.language import has_words
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.prompts.catalog import read_known
from loop.prompts.version import PromptVersion
from loop.release.load import RunRequest
from loop.run.asking import EngineOptions
from loop.run.cost import DryRun, estimate_texts
from loop.run.execute import MAX_PROBLEMS
from loop.run.runner import PromptRunner
from loop.run.shards import (
    AnnotationManifest,
    AnnotationPlan,
    CorpusRow,
    ShardCounts,
    as_items,
    begin_folder,
    check_label_names,
    finish_folder,
    finished_shards,
    has_failed,
    has_shard,
    shard_name,
    write_shard,
)
from loop.run.store import Store
from loop.score.extractor import check_extractor

if TYPE_CHECKING:
    from hashlib import _Hash

ROWS: Final = 5_000
"""Rows of a shard."""

MOST_WORKERS: Final = 256

_ANSWERS: Final = ".answers"
"""Folder of the answers of a model, until all rows are answered."""

_LOOK_EVERY_S: Final = 1.0

_NEW_OBJECTS: Final = 20_000
"""Objects that are made before the garbage collector looks at them: those of a shard
live until it is written, so that looking often finds nothing, for a sixth of all time.
"""

Watch = Callable[[Iterable[int]], Iterable[int]]
"""Wraps the numbers of shards as they are finished, to show progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationOptions:
    """How a corpus is read and cut."""

    reading: ImportOptions = field(
        default_factory=lambda: ImportOptions(
            name="annotate", role="external", labels=False
        )
    )
    """How the source is read: columns, language, encoding; its name is not used."""

    asking: EngineOptions = field(default_factory=EngineOptions)
    """How the engine is asked; parameters of a release take precedence."""

    workers: int = 1
    """Processes; more than one for the engine ``rules`` only: the others ask many
    things at once from one process."""

    rows: int = ROWS
    """Rows of a shard."""

    text: bool = False
    """Whether the texts are kept with the labels. Private."""

    def __post_init__(self) -> None:
        if not 1 <= self.workers <= MOST_WORKERS:
            raise ValueError(f"workers are from 1 to {MOST_WORKERS}: {self.workers}")
        if self.rows < 1:
            raise ValueError(f"a shard has at least 1 row, not {self.rows}")


class CorpusSize(NamedTuple):
    """What a source holds, before anything is asked."""

    rows: int
    shards: int
    digest: str
    """Over id, given language and text of every row."""


class AnnotatedCorpus(NamedTuple):
    """What `annotate_corpus` did."""

    manifest: AnnotationManifest
    made: int
    """Shards that were made now; the others were there."""

    seconds: float


def annotate_corpus(
    source: Path,
    out: Path,
    request: RunRequest,
    *,
    workspace: WorkspacePaths | None = None,
    options: AnnotationOptions | None = None,
    watch: Callable[[int], Watch] = lambda shards: iter,
) -> AnnotatedCorpus:
    """Read labels out of every report of a source, into a folder of Parquet shards.

    The source is read twice, as a stream: once to see that all of it can be read, and
    once for its rows. A folder that is there is gone on with: shards of the same rows,
    read by the same version, engine and parameters, are not rebuilt, unless a model
    failed to answer some: these are asked for once more.

    Parameters
    ----------
    source
        File or folder, as `loop.labels.importing.importer.open_source` reads it.
    out
        Folder of the annotation; a new one, or one that was begun with the same.
    request
        Version or verified release, and engine, as
        `loop.release.load.find_request` or `loop.release.extractors.choose_extractor`
        gives it.
    workspace
        Where versions and settings are; None for those that ship with ranloop.
    options
        None for the defaults.
    watch
        Given the number of shards, returns what wraps them to show progress.

    Raises
    ------
    DataError
        The source or a row of it cannot be used, the version is no extractor, or the
        folder holds something else, other rows, or another annotation.
    ConflictError
        Another process annotates into the folder.
    EngineError
        The engine is not available or failed as a whole, or a worker was killed: the
        shards that were made stay.
    WriteError
        The folder cannot be written; no shard is there in part.
    """
    how = options or AnnotationOptions()
    began = time.monotonic()
    taxonomy = read_taxonomy(material(workspace).labels)
    version = _find_version(workspace, request)
    check_extractor(version, taxonomy)
    if how.workers > 1 and request.engine != "rules":
        raise DataError(
            f"{request.engine} is asked many things at once by one process: leave out "
            "--workers. Several processes are for the engine rules."
        )
    size = measure_source(source, workspace, how)
    asking = replace(how.asking, **dict(request.parameters))
    with ExitStack() as stack:
        stack.callback(gc.set_threshold, *gc.get_threshold())
        gc.set_threshold(_NEW_OBJECTS)
        runner = stack.enter_context(
            PromptRunner.open(workspace, version, request.engine, asking)
        )
        plan = _make_plan(runner, request, taxonomy, how)
        begin_folder(out, plan)
        _hold(out, stack)
        _remove_torn(out, size.shards)
        worker = _Worker(version, request.engine, asking, workspace, out, plan)
        finished = finished_shards(out)
        total = hashlib.sha256()
        tasks = _tasks(source, workspace, how, worker, total)
        made: Iterator[int]
        if how.workers == 1:
            keeping = stack.enter_context(_keeping(worker, runner))
            made = map(_ShardMaker(worker, keeping, taxonomy).make, tasks)
        else:
            made = _make_by_processes(worker, how.workers, tasks)
        done = set(watch(size.shards)(made))
        if total.hexdigest() != size.digest:
            raise DataError(
                f"{source} was changed while it was read. Give the same command again."
            )
        counts = ShardCounts(plan)
        for number in range(size.shards):
            counts.add(out / shard_name(number))
        manifest = AnnotationManifest(
            plan=plan,
            source=source.name,
            source_digest=size.digest,
            rows=counts.rows,
            statuses=dict(sorted(counts.statuses.items())),
            repaired=counts.repaired,
            problems=dict(counts.problems.most_common(MAX_PROBLEMS)),
            failed=tuple(counts.failed),
            repeated=counts.repeated(),
            labels={
                name: dict(sorted(values.items()))
                for name, values in counts.labels.items()
            },
            shards=tuple(counts.shards),
            ranloop=__version__,
        )
        for number, shard in enumerate(counts.shards):
            known = finished.get(shard.file, shard.sha256)
            if number not in done and known != shard.sha256:
                raise DataError(
                    f"{out / shard.file} was changed. Remove it, and give the same "
                    "command again: it is rebuilt."
                )
        finish_folder(out, manifest)
        if not manifest.statuses.get(Status.ENGINE_FAILED):
            rmtree(out / _ANSWERS, ignore_errors=True)
    return AnnotatedCorpus(manifest, len(done), time.monotonic() - began)


def _find_version(
    workspace: WorkspacePaths | None, request: RunRequest
) -> PromptVersion:
    if isinstance(request.prompt, PromptVersion):
        return request.prompt
    return read_known(material(workspace), request.prompt).version


def measure_source(
    source: Path, workspace: WorkspacePaths | None, options: AnnotationOptions
) -> CorpusSize:
    """Return how many rows a source has, having read every one of them.

    Raises
    ------
    DataError
        A row cannot be used, or there is none: says which.
    """
    total, rows = hashlib.sha256(), 0
    for one in corpus_rows(source, workspace, options):
        total.update(framed((one.case_id, one.language, one.text)))
        rows += 1
    if not rows:
        raise DataError(f"{source} holds no report. Name a file or folder with some.")
    return CorpusSize(rows, -(-rows // options.rows), total.hexdigest())


def corpus_rows(
    source: Path, workspace: WorkspacePaths | None, options: AnnotationOptions
) -> Iterator[CorpusRow]:
    """Yield the rows of a source in its order.

    Raises
    ------
    DataError
        A row cannot be used: says which.
    """
    opened = open_source(source, options.reading, material(workspace).labels)
    if tuple(opened.inputs) != REPORT_INPUTS:
        raise DataError(
            f"{source} holds pairs of reports, and an extractor reads single ones. "
            "Give a table with columns id and text."
        )
    for case in opened.cases:
        yield _row(case, options.reading)


def _row(case: SourceCase, reading: ImportOptions) -> CorpusRow:
    if not case.case_id:
        raise DataError(
            f"{case.where}: the row has no id. Give every report one, or number the "
            "rows with --number-rows."
        )
    case_id = _encodable(reading.id_prefix + case.case_id)
    check_id(case_id, case.where)
    check_length(case.text, case.where)
    language = case.language if reading.language == "auto" else reading.language
    if language:
        language = language_code(language, case.where)
    return CorpusRow(case_id, _encodable(case.text), language)


def _encodable(text: str) -> str:
    """Return a text with a question mark for an unpaired surrogate."""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


class _ShardRows(NamedTuple):
    """A shard that is to be made."""

    number: int
    rows: tuple[CorpusRow, ...]


def _tasks(
    source: Path,
    workspace: WorkspacePaths | None,
    options: AnnotationOptions,
    worker: _Worker,
    total: _Hash,
) -> Iterator[_ShardRows]:
    """Yield the shards that are to be made, and add all rows to a digest."""
    rows = corpus_rows(source, workspace, options)
    number, out = 0, worker.out
    while block := tuple(islice(rows, options.rows)):
        for one in block:
            total.update(framed((one.case_id, one.language, one.text)))
        there = has_shard(out, number, worker.plan, block)
        if not there or (worker.keeps and has_failed(out, number)):
            # Until this one is there, too, the annotation is not complete.
            (out / COMPLETE).unlink(missing_ok=True)
            yield _ShardRows(number, block)
        number += 1


class _Worker(NamedTuple):
    """What makes shards needs to know; it can be sent to another process."""

    version: PromptVersion
    engine: str
    asking: EngineOptions
    workspace: WorkspacePaths | None
    out: Path
    plan: AnnotationPlan

    @property
    def keeps(self) -> bool:
        """Whether answers are kept until all rows are answered.

        What `rules` says costs less to say again than to look up.
        """
        return self.engine != "rules"


def _make_plan(
    runner: PromptRunner,
    request: RunRequest,
    taxonomy: Taxonomy,
    how: AnnotationOptions,
) -> AnnotationPlan:
    """Return what every shard has in common; the engine is opened."""
    asker: dict[str, Any] = json.loads(runner.asker)
    return AnnotationPlan(
        prompt=runner.version.ref,
        prompt_digest=runner.version.digest,
        release=request.release.name if request.release else "",
        contract=f"{runner.contract.name}/{runner.contract.version}",
        engine=request.engine,
        parameters=asker["parameters"],
        engine_identity=asker["identity"],
        taxonomy_digest=taxonomy.digest,
        no_finding=taxonomy.no_finding_policy.value if taxonomy.derives else "",
        columns=check_label_names(taxonomy),
        text=how.text,
        shard_rows=how.rows,
    )


@contextmanager
def _keeping(worker: _Worker, runner: PromptRunner) -> Iterator[PromptRunner]:
    """Give a runner with the same engine, whose answers stay with the shards."""
    if not worker.keeps:
        yield runner
        return
    folder = worker.out / _ANSWERS
    folder.mkdir(mode=0o700, exist_ok=True)
    with closing(Store(folder / "store.db")) as store:
        yield runner.beside(runner.version, store=store)


class _ShardMaker:
    """Makes one shard after the other, with one engine."""

    def __init__(
        self, worker: _Worker, runner: PromptRunner, taxonomy: Taxonomy
    ) -> None:
        self._worker = worker
        self._runner = runner
        self._taxonomy = taxonomy

    def make(self, task: _ShardRows) -> int:
        """Make one shard, and return its number."""
        worker = self._worker
        spoken = [has_words(one.text) for one in task.rows]
        items = as_items(list(compress(task.rows, spoken)))
        outcomes = iter(self._runner.ask_block(items, keep=worker.keeps))
        write_shard(
            worker.out,
            task.number,
            worker.plan,
            self._taxonomy,
            task.rows,
            [next(outcomes) if speaks else None for speaks in spoken],
        )
        return task.number


def _hold(out: Path, stack: ExitStack) -> None:
    try:
        stack.enter_context(locked(out / ".lock", wait=False))
    except ConflictError as error:
        raise ConflictError(
            f"another process annotates into {out}. Wait for it, or stop it."
        ) from error


def _remove_torn(out: Path, shards: int) -> None:
    """Remove what a killed worker left of a shard: only who holds the lock may.

    Raises
    ------
    DataError
        There are more shards than the source has rows for.
    """
    for torn in out.glob(".part-*"):
        torn.unlink(missing_ok=True)
    wanted = {shard_name(number) for number in range(shards)}
    more = sorted(one.name for one in out.glob("part-*") if one.name not in wanted)
    if more:
        raise DataError(
            f"{out / more[0]} was made of rows that the source no longer has: it was "
            "changed since. Annotate it into a new folder, or give the source as it "
            "was."
        )


_maker: _ShardMaker | None = None
"""Of a process that makes shards."""


def _start(worker: _Worker, parent: int) -> None:
    """Prepare a process: it ends with its parent, which alone hears Ctrl-C."""
    global _maker
    gc.set_threshold(_NEW_OBJECTS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end_with_parent() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_EVERY_S)
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    runner = PromptRunner.open(
        worker.workspace, worker.version, worker.engine, worker.asking
    )
    taxonomy = read_taxonomy(material(worker.workspace).labels)
    _maker = _ShardMaker(worker, runner, taxonomy)


def _make_shard(task: _ShardRows) -> int:
    if _maker is None:
        raise ValueError("the process was not prepared")
    return _maker.make(task)


def _make_by_processes(
    worker: _Worker, workers: int, tasks: Iterator[_ShardRows]
) -> Iterator[int]:
    """Yield the numbers of shards as processes finish them, few rows in memory."""
    pool = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start,
        # What is said to a person, this process says.
        initargs=(
            worker._replace(asking=replace(worker.asking, tell=ignore_progress)),
            os.getpid(),
        ),
    )
    waiting: set[Future[int]] = set()
    try:
        for task in tasks:
            waiting.add(pool.submit(_make_shard, task))
            while len(waiting) > workers:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (one.result() for one in done)
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            yield from (one.result() for one in done)
    except BrokenProcessPool as error:
        raise EngineError(
            "a worker ended before its work: it was killed, or memory ran out. The "
            "shards that were made stay; give the same command again to go on, with "
            "fewer --workers if memory was short."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def estimate_annotation(
    source: Path,
    request: RunRequest,
    *,
    workspace: WorkspacePaths | None = None,
    options: AnnotationOptions | None = None,
) -> tuple[CorpusSize, DryRun]:
    """Return what annotating a source would take; nothing is asked.

    Raises
    ------
    DataError
        As of `annotate_corpus`.
    EngineError
        There is no such engine.
    """
    how = options or AnnotationOptions()
    place = material(workspace)
    version = _find_version(workspace, request)
    check_extractor(version, read_taxonomy(place.labels))
    size = measure_source(source, workspace, how)
    items = iter(
        item
        for row in corpus_rows(source, workspace, how)
        if has_words(row.text)
        for item in as_items([row])
    )
    said = estimate_texts(place, version, source.name, items, engine=request.engine)
    return size, said
