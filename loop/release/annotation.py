"""A corpus annotated by a version or a release: in shards, by several processes.

A study is kept in one SQLite file, which is right for a study and wrong for a corpus.
Here outcomes go into a folder of Parquet shards. What is asked, read and derived is the
same, by the same code, so that the values are those of a run.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from shutil import rmtree
from typing import Final, NamedTuple

from loop import __version__
from loop.core.errors import ConflictError, DataError
from loop.core.files import locked
from loop.core.paths import WorkspacePaths, material
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
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import read_known
from loop.prompts.version import PromptVersion
from loop.release.load import RunRequest
from loop.release.ray_makers import RayMakers
from loop.release.shard_makers import (
    AnnotationRequest,
    ShardMaker,
    ShardProcesses,
    ShardRows,
    keeping_answers,
    many_new_objects,
)
from loop.run.asking import EngineOptions
from loop.run.cost import DryRun, estimate_texts
from loop.run.execute import MAX_PROBLEMS
from loop.run.shards import (
    LOCK,
    AnnotationManifest,
    AnnotationPlan,
    CorpusRow,
    ShardCounts,
    as_items,
    begin_folder,
    check_finished,
    digest_rows,
    finish_folder,
    frame_row,
    has_failed,
    has_shard,
    make_annotation_folder,
    read_outcomes,
    shard_name,
    write_shard,
)
from loop.score.extractor import check_extractor

ROWS: Final = 5_000
"""Rows of a shard."""

MOST_WORKERS: Final = 256

SAMPLE: Final = "_sample.json"
"""File in the folder: which rows were drawn for readers, with which chance."""

_ANSWERS: Final = ".answers"
"""Folder of the answers of a model, until all rows are answered."""

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
    """How the engine is asked. Parameters of the request take precedence: those of its
    release, or what the command line names instead (--max-tokens, --thinking)."""

    workers: int | None = None
    """Processes, or actors of `ray`; None for one process, or as many actors as the
    cluster has room for. More than one process is for the engine ``rules`` only: the
    others ask many things at once from one process."""

    ray: str = ""
    """Address of the Ray cluster whose actors make the shards, or ``local`` for one on
    this machine; empty for processes without Ray."""

    rows: int = ROWS
    """Rows of a shard."""

    text: bool = False
    """Whether the texts are kept with the labels. Private."""

    def __post_init__(self) -> None:
        if self.workers is not None and not 1 <= self.workers <= MOST_WORKERS:
            raise ValueError(f"workers are from 1 to {MOST_WORKERS}: {self.workers}")
        if self.rows < 1:
            raise ValueError(f"a shard has at least 1 row, not {self.rows}")


class CorpusSize(NamedTuple):
    """What a source holds, before anything is asked."""

    rows: int
    shards: int
    digest: str
    """Over id, given language and text of every row."""

    parts: tuple[str, ...]
    """The same of each shard."""


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
    once for the rows of missing shards. An existing folder is resumed: shards of the
    same rows, read by the same version, engine and parameters, are not rebuilt, unless
    a model failed to answer some: these are asked for once more.

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
        folder holds something else, other rows, another annotation, or a sample that
        was drawn of other rows.
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
    if (how.workers or 1) > 1 and request.engine != "rules" and not how.ray:
        raise DataError(
            f"{request.engine} is asked many things at once by one process: leave out "
            "--workers. Several processes are for the engine rules."
        )
    asked = AnnotationRequest(
        version=version,
        release=request.release.name if request.release else "",
        engine=request.engine,
        asking=_asking(how, request),
        workspace=workspace,
        text=how.text,
        rows=how.rows,
    )
    with ExitStack() as stack:
        stack.enter_context(many_new_objects())
        processes = None
        if not how.ray and (how.workers or 1) > 1:
            # They start while the source is read.
            processes = stack.enter_context(ShardProcesses(asked, how.workers or 1))
        size = measure_source(source, workspace, how)
        made: Iterator[int]
        if how.ray:
            ray = stack.enter_context(RayMakers.open(how.ray, asked, how.workers))
            plan = ray.plan
        else:
            runner = stack.enter_context(asked.open())
            plan = asked.plan(runner)
        make_annotation_folder(out)
        _hold(out, stack)
        begin_folder(out, plan)
        _remove_torn(out, size.shards)
        missing = _find_missing(out, size, plan, again=asked.keeps)
        _check_sample(out, size)
        # Once the annotation is not complete, its digests are no longer read.
        check_finished(out)
        if missing:
            # Until these are there the annotation is not complete.
            (out / COMPLETE).unlink(missing_ok=True)
        tasks = partial(
            _read_shards, source, workspace, how.reading, out, size, how.rows, missing
        )
        if not missing:
            made = iter(())
        elif how.ray:
            made = ray.make(tasks, out)
        elif processes is not None:
            made = processes.make(plan, out, tasks())
        else:
            if asked.keeps:
                runner = stack.enter_context(keeping_answers(runner, out / _ANSWERS))
            maker = ShardMaker(asked, plan, runner, keep=asked.keeps)
            made = (_make_here(maker, out, task) for task in tasks())
        done = set(watch(len(missing))(made))
        manifest = _count_shards(source, out, size, plan)
        finish_folder(out, manifest)
        rmtree(out / _ANSWERS, ignore_errors=True)
    return AnnotatedCorpus(manifest, len(done), time.monotonic() - began)


def _count_shards(
    source: Path, out: Path, size: CorpusSize, plan: AnnotationPlan
) -> AnnotationManifest:
    counts = ShardCounts(plan)
    for number in range(size.shards):
        counts.add(out / shard_name(number))
    return AnnotationManifest(
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
            name: dict(sorted(values.items())) for name, values in counts.labels.items()
        },
        shards=tuple(counts.shards),
        ranloop=__version__,
    )


def _make_here(maker: ShardMaker, out: Path, task: ShardRows) -> int:
    write_shard(out, task.number, maker.make(task))
    return task.number


def _asking(options: AnnotationOptions, request: RunRequest) -> EngineOptions:
    return replace(options.asking, **dict(request.parameters))


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
    total, part, rows = hashlib.sha256(), hashlib.sha256(), 0
    parts = []
    for one in corpus_rows(source, workspace, options.reading):
        framed = frame_row(one)
        total.update(framed)
        part.update(framed)
        rows += 1
        if rows % options.rows == 0:
            parts.append(part.hexdigest())
            part = hashlib.sha256()
    if not rows:
        raise DataError(f"{source} holds no report. Name a file or folder with some.")
    if rows % options.rows:
        parts.append(part.hexdigest())
    return CorpusSize(rows, len(parts), total.hexdigest(), tuple(parts))


def corpus_rows(
    source: Path, workspace: WorkspacePaths | None, reading: ImportOptions
) -> Iterator[CorpusRow]:
    """Yield the rows of a source in its order.

    Raises
    ------
    DataError
        A row cannot be used: says which.
    """
    opened = open_source(source, reading, material(workspace).labels)
    if tuple(opened.inputs) != REPORT_INPUTS:
        raise DataError(
            f"{source} holds pairs of reports, and an extractor reads single ones. "
            "Give a table with columns id and text."
        )
    for case in opened.cases:
        yield _row(case, reading)


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


def _find_missing(
    out: Path, size: CorpusSize, plan: AnnotationPlan, *, again: bool
) -> tuple[int, ...]:
    """Return the numbers of the shards that are to be made.

    Parameters
    ----------
    again
        Whether those count, too, in which the engine failed to answer some row.
    """
    return tuple(
        number
        for number, part in enumerate(size.parts)
        if not has_shard(out, number, plan, part) or (again and has_failed(out, number))
    )


def _check_sample(out: Path, size: CorpusSize) -> None:
    """Refuse rows that were added since a sample was drawn: it would be of no use."""
    path = out / SAMPLE
    try:
        sample = json.loads(path.read_bytes())
    except FileNotFoundError:
        return
    except (OSError, ValueError):
        sample = None
    if not isinstance(sample, dict):
        raise DataError(
            f"{path} cannot be read as a sample that was drawn for readers. Restore "
            "it, or remove it if nobody reads the sample."
        )
    if sample.get("source_digest") != size.digest:
        raise DataError(
            f"{path} is of a sample that was drawn when the source had other "
            "rows. With these rows, --report could no longer use what readers say of "
            "it. Annotate them into a new folder, or remove the file if nobody reads "
            "the sample."
        )


def _read_shards(
    source: Path,
    workspace: WorkspacePaths | None,
    reading: ImportOptions,
    out: Path,
    size: CorpusSize,
    rows: int,
    missing: tuple[int, ...],
) -> Iterator[ShardRows]:
    """Yield the rows of the missing shards, as they were when they were measured."""
    taxonomy = read_taxonomy(material(workspace).labels)
    every = corpus_rows(source, workspace, reading)
    wanted = set(missing)
    for number in range(max(missing) + 1):
        block = tuple(islice(every, rows))
        if number not in wanted:
            continue
        if digest_rows(block) != size.parts[number]:
            raise DataError(
                f"{source} was changed while it was read. Give the same command again."
            )
        path = out / shard_name(number)
        known = read_outcomes(path, taxonomy) if path.exists() else ()
        yield ShardRows(number, block, tuple(known))


def _hold(out: Path, stack: ExitStack) -> None:
    try:
        stack.enter_context(locked(out / LOCK, wait=False))
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
        for row in corpus_rows(source, workspace, how.reading)
        if has_words(row.text)
        for item in as_items([row])
    )
    said = estimate_texts(
        place,
        version,
        source.name,
        items,
        engine=request.engine,
        asking=_asking(how, request),
    )
    return size, said
