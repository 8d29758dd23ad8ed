"""A corpus that was annotated: a folder of Parquet shards that can be resumed.

Each shard is of so many rows of the source, in its order, and is there whole or not at
all. Its own metadata say of which rows it is and by what they were read, so that a
second call asks only for shards that are missing, and none is taken for another's.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, ValidationError

from loop.core.digests import digest_json, framed
from loop.core.errors import DataError
from loop.core.files import make_folder, write_atomic
from loop.core.records import Field, Item, Outcome, Span, Status
from loop.core.safe_text import quoted
from loop.labels.importing.table_files import (
    ANNOTATION,
    COMPLETE,
    check_shard,
    digest_file,
    read_annotation,
)
from loop.labels.language import guess_language
from loop.labels.taxonomy import NO_FINDING, Taxonomy

NO_TEXT: Final = "no_text"
"""Status of a row without a word: nothing was asked about it."""

LOCK: Final = ".lock"
"""Held in the folder by the process that annotates into it."""

CASE_ID, STATUS, TEXT = "case_id", "status", "text"
_EVIDENCE, _REPAIRS, _PROBLEM = "evidence", "repairs", "problem"
_ABOUT: Final = b"ranloop"
_MODE: Final = 0o600
_EXAMPLES: Final = 20
"""Ids that a manifest names."""


_SPAN: Final = pa.struct(
    [("label", pa.string()), ("start", pa.int32()), ("end", pa.int32())]
)
"""Characters of the text that an answer rests on."""


class _ManifestPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AnnotationPlan(_ManifestPart):
    """What reads a corpus, and how it is cut: the same for every shard."""

    format: Literal["ranloop-annotation/1"] = "ranloop-annotation/1"
    prompt: str
    prompt_digest: str
    release: str
    """Name of the verified release; empty for a version that is none."""

    contract: str
    """Output contract and version of its parser."""

    engine: str
    parameters: dict[str, Any]
    engine_identity: dict[str, Any]
    taxonomy_digest: str
    no_finding: str
    """How "No Finding" is derived."""

    columns: tuple[str, ...]
    """Published names of the labels."""

    text: bool
    """Whether the texts are kept with the labels."""

    shard_rows: int
    """Rows of a shard; the last one may have fewer."""

    @property
    def digest(self) -> str:
        """Sha256 over all of it, 64 hex characters."""
        return digest_json(self.model_dump(mode="json"))


class RepeatedIds(_ManifestPart):
    """Ids that several rows have."""

    ids: int
    examples: tuple[str, ...]


class ShardFacts(_ManifestPart):
    """One shard."""

    file: str
    rows: int
    sha256: str


class AnnotationManifest(_ManifestPart):
    """The form of ``_annotation.json``."""

    plan: AnnotationPlan
    source: str
    """Name of what was read."""

    source_digest: str
    """Sha256 over id, given language and text of every row."""

    rows: int
    statuses: dict[str, int]
    """How rows ended; together they are all rows."""

    repaired: int
    """Rows with an answer in which something was put right."""

    problems: dict[str, int]
    """Why rows were not answered, to how many."""

    failed: tuple[str, ...]
    """Ids of the first rows that were not answered."""

    repeated: RepeatedIds
    labels: dict[str, dict[str, int]]
    """Label to how often it has each value; ``blank`` where nobody answered."""

    shards: tuple[ShardFacts, ...]
    ranloop: str


class CorpusRow(NamedTuple):
    """One report of a corpus."""

    case_id: str
    text: str
    language: str
    """ISO 639-1 code as given; empty where it is to be guessed from the text."""


def frame_row(row: CorpusRow) -> bytes:
    """Return id, given language and text of a row for a digest."""
    return framed((row.case_id, row.language, row.text))


def digest_rows(rows: Iterable[CorpusRow]) -> str:
    """Return a sha256 over id, given language and text of each row, in their order."""
    total = hashlib.sha256()
    for one in rows:
        total.update(frame_row(one))
    return total.hexdigest()


def shard_name(number: int) -> str:
    """Return the name of a shard's file, counted from 0.

    Examples
    --------
    >>> shard_name(7)
    'part-00007.parquet'
    """
    return f"part-{number:05d}.parquet"


def as_items(rows: Sequence[CorpusRow]) -> list[Item]:
    """Return rows as a prompt of one text is asked about them."""
    return [
        Item(
            id=one.case_id,
            variables={TEXT: one.text},
            language=one.language or guess_language(one.text),
        )
        for one in rows
    ]


def _schema(plan: AnnotationPlan) -> pa.Schema:
    word = pa.dictionary(pa.int8(), pa.string())
    return pa.schema(
        [
            (CASE_ID, pa.string()),
            (STATUS, word),
            *((name, word) for name in plan.columns),
            (_EVIDENCE, pa.list_(_SPAN)),
            (_REPAIRS, pa.list_(pa.string())),
            (_PROBLEM, pa.string()),
            *([(TEXT, pa.string())] if plan.text else []),
        ]
    )


def encode_shard(
    number: int,
    plan: AnnotationPlan,
    taxonomy: Taxonomy,
    rows: Sequence[CorpusRow],
    outcomes: Sequence[Outcome | None],
) -> bytes:
    """Return the content of one shard's file.

    Parameters
    ----------
    outcomes
        One a row; None where there was nothing to ask.

    Raises
    ------
    ValueError
        There is not one outcome a row.
    """
    if len(rows) != len(outcomes):
        raise ValueError(f"{len(outcomes)} outcomes for {len(rows)} rows")
    answers = [one.fields if one else {} for one in outcomes]
    labels = {
        one.id: [_value(fields.get(one.id)) for fields in answers]
        for one in taxonomy.labels
    }
    if taxonomy.derives:
        labels[NO_FINDING] = _find_no_finding(taxonomy, labels)
    cells: dict[str, Any] = {
        CASE_ID: [row.case_id for row in rows],
        STATUS: [one.status.value if one else NO_TEXT for one in outcomes],
        **{one.name: labels[one.id] for one in taxonomy.labels},
        _EVIDENCE: _encode_evidence(answers),
        _REPAIRS: [list(one.repairs) if one else [] for one in outcomes],
        _PROBLEM: [one.problem if one else "" for one in outcomes],
        **({TEXT: [row.text for row in rows]} if plan.text else {}),
    }
    about = {"plan": plan.digest, "shard": number, "rows": digest_rows(rows)}
    schema = _schema(plan).with_metadata({_ABOUT: json.dumps(about).encode()})
    shard = BytesIO()
    pq.write_table(pa.table(cells, schema=schema), shard, compression="zstd")
    return shard.getvalue()


def _value(answer: Field | None) -> Any:
    return answer.value if answer is not None else None


def _find_no_finding(
    taxonomy: Taxonomy, labels: Mapping[str, Sequence[Any]]
) -> list[Any]:
    """Return what each row says of "No Finding"; see `Taxonomy.find_no_finding`."""
    names = tuple(labels)
    return [
        # The words compare like the values they spell.
        taxonomy.find_no_finding(dict(zip(names, row, strict=True)))
        for row in zip(*labels.values(), strict=True)
    ]


def _encode_evidence(answers: Sequence[Mapping[str, Field]]) -> pa.ListArray:
    """Return label, start and end of every span, in a list a row."""
    cited: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    offsets = [0]
    for fields in answers:
        for name, one in fields.items():
            for span in one.spans:
                cited.append(name)
                starts.append(span.start)
                ends.append(span.end)
        offsets.append(len(cited))
    spans = pa.StructArray.from_arrays(
        [
            pa.array(cited, pa.string()),
            pa.array(starts, pa.int32()),
            pa.array(ends, pa.int32()),
        ],
        fields=list(_SPAN),
    )
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), spans)


def write_shard(folder: Path, number: int, content: bytes) -> None:
    """Write one shard, whole or not at all.

    Raises
    ------
    WriteError
        The disk is full, read-only, or permission is missing.
    """
    write_atomic(folder / shard_name(number), content, mode=_MODE)


def read_outcomes(path: Path, taxonomy: Taxonomy) -> list[Outcome | None]:
    """Return the outcomes that a shard was made of, as far as it holds them.

    Raises
    ------
    DataError
        It cannot be read.
    """
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path) from error
    labels = [(one.id, one.name) for one in taxonomy.labels]
    found: list[Outcome | None] = []
    for row in table.to_pylist():
        if row[STATUS] == NO_TEXT:
            found.append(None)
            continue
        spans: dict[str, list[Span]] = {}
        for one in row[_EVIDENCE]:
            spans.setdefault(one["label"], []).append(Span(one["start"], one["end"]))
        found.append(
            Outcome(
                item_id=row[CASE_ID],
                status=Status(row[STATUS]),
                fields={
                    label: Field(row[name], tuple(spans.get(label, ())))
                    for label, name in labels
                    if row[name] is not None
                },
                repairs=tuple(row[_REPAIRS]),
                problem=row[_PROBLEM],
            )
        )
    return found


def has_shard(folder: Path, number: int, plan: AnnotationPlan, rows: str) -> bool:
    """Whether a shard is there; it is of these rows, read by this plan.

    Parameters
    ----------
    rows
        Digest of its rows, see `digest_rows`.

    Raises
    ------
    DataError
        It is of other rows or of another plan, or cannot be read.
    """
    path = folder / shard_name(number)
    if not path.exists():
        return False
    told = _read_about(path)
    if told.get("plan") != plan.digest:
        raise DataError(
            f"{path} is of another annotation. Name a new folder with --out."
        )
    if told.get("rows") != rows:
        raise DataError(
            f"{path} was made of other rows than the source has there now: it was "
            "changed since. Annotate it into a new folder, or give the source as it "
            "was."
        )
    return True


def has_failed(folder: Path, number: int) -> bool:
    """Whether the engine failed to answer for some row of a shard that is there."""
    path = folder / shard_name(number)
    try:
        statuses = pq.read_table(path, columns=[STATUS])[STATUS]
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path) from error
    return Status.ENGINE_FAILED.value in _tally(statuses)


def check_finished(folder: Path) -> None:
    """Refuse a complete annotation that holds a shard with another digest than it had.

    A shard that is missing is not refused. Where the annotation is not complete, or its
    manifest cannot be read, nothing is refused: nothing is then known of earlier
    digests.

    Raises
    ------
    DataError
        A shard was changed.
    """
    try:
        shards = read_manifest_of(folder).shards
    except DataError:
        return
    for one in shards:
        if (folder / one.file).exists():
            check_shard(folder / one.file, one.sha256)


def _unreadable(path: Path) -> DataError:
    return DataError(
        f"{path} cannot be read as a shard. Remove it, and give the same command "
        "again: it is rebuilt."
    )


def _read_about(path: Path) -> Mapping[str, Any]:
    try:
        metadata = pq.read_schema(path).metadata or {}
        told = json.loads(metadata.get(_ABOUT, b"null"))
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _unreadable(path) from error
    return told if isinstance(told, dict) else {}


def make_annotation_folder(folder: Path) -> None:
    """Make the folder of an annotation, or check that it is empty or holds one.

    Raises
    ------
    DataError
        It holds something else.
    WriteError
        It cannot be made.
    """
    if (folder / ANNOTATION).is_file():
        return
    if folder.exists() and (
        not folder.is_dir()
        # Another process may hold the lock by now, and write its plan.
        or any(
            one.name != LOCK and not one.name.startswith(f".{ANNOTATION}.")
            for one in folder.iterdir()
        )
    ):
        raise DataError(
            f"{folder} is there and holds no annotation; it was left as it is. Name a "
            "new folder with --out."
        )
    make_folder(folder, mode=0o700)


_PLAN_WORDS: Final = {
    "prompt_digest": "prompt",
    "contract": "prompt",
    "parameters": "setting of the engine",
    "engine_identity": "identity of the engine",
    "taxonomy_digest": "list of labels",
    "no_finding": "list of labels",
    "columns": "list of labels",
    "text": "choice of --with-text",
    "shard_rows": "number of --rows",
}
"""Field of a plan to what a user calls it, where it is not its name."""


def begin_folder(folder: Path, plan: AnnotationPlan) -> None:
    """Write the plan of an annotation, or check that it is the one that is there.

    Only the process that holds the lock of the folder may call this: of two with
    different plans, the other one could replace what was written.

    Raises
    ------
    DataError
        The folder holds the annotation of another plan.
    WriteError
        The plan cannot be written.
    """
    path = folder / ANNOTATION
    if path.is_file():
        known = _read_plan(path)
        changed = dict.fromkeys(
            _PLAN_WORDS.get(name, name)
            for name in AnnotationPlan.model_fields
            if getattr(known, name) != getattr(plan, name)
        )
        if changed:
            texts = "with" if known.text else "without"
            raise DataError(
                f"{folder} holds an annotation with another {', '.join(changed)}: it "
                f"was made by {known.release or known.prompt} with {known.engine}, "
                f"--rows {known.shard_rows}, {texts} --with-text. Give the same again, "
                "or name a new folder with --out."
            )
        return
    write_atomic(path, _format({"plan": plan.model_dump(mode="json")}), mode=_MODE)


def _format(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, ensure_ascii=False, indent=2) + "\n").encode("utf-8")


def _read_plan(path: Path) -> AnnotationPlan:
    try:
        data = json.loads(path.read_bytes())
        return AnnotationPlan.model_validate(data["plan"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path} is not the manifest of an annotation. Name the folder of one."
        ) from error


def finish_folder(folder: Path, manifest: AnnotationManifest) -> None:
    """Write the manifest, and then that all is there.

    Raises
    ------
    WriteError
        They cannot be written.
    """
    raw = _format(manifest.model_dump(mode="json"))
    write_atomic(folder / ANNOTATION, raw, mode=_MODE)
    done = hashlib.sha256(raw).hexdigest() + "\n"
    write_atomic(folder / COMPLETE, done.encode("ascii"), mode=_MODE)


def read_manifest_of(folder: Path) -> AnnotationManifest:
    """Return the manifest of an annotation that is complete.

    Raises
    ------
    DataError
        There is none, it is not complete, or its manifest was changed.
    """
    raw = read_annotation(folder)
    try:
        return AnnotationManifest.model_validate_json(raw)
    except ValidationError as error:
        raise DataError(
            f"{folder / ANNOTATION} has not the form of a manifest. Restore it."
        ) from error


class ShardCounts:
    """What the shards of an annotation hold, added up."""

    def __init__(self, plan: AnnotationPlan) -> None:
        self._plan = plan
        self.rows = self.repaired = 0
        self.statuses = Counter[str]()
        self.problems = Counter[str]()
        self.failed: list[str] = []
        self.labels = {name: Counter[str]() for name in plan.columns}
        self.shards: list[ShardFacts] = []
        self._ids: list[pa.ChunkedArray] = []

    def add(self, path: Path) -> None:
        """Read a shard that was written.

        Raises
        ------
        DataError
            It cannot be read.
        """
        try:
            digest = digest_file(path)
            names = [CASE_ID, STATUS, *self._plan.columns, _REPAIRS, _PROBLEM]
            table = pq.read_table(path, columns=names)
        except (OSError, pa.ArrowException) as error:
            raise _unreadable(path) from error
        self.shards.append(
            ShardFacts(file=path.name, rows=table.num_rows, sha256=digest)
        )
        self.rows += table.num_rows
        self.statuses.update(_tally(table[STATUS]))
        self.problems.update(
            {name: n for name, n in _tally(table[_PROBLEM]).items() if name}
        )
        self.repaired += (
            pc.sum(pc.greater(pc.list_value_length(table[_REPAIRS]), 0)).as_py() or 0
        )
        for name, counts in self.labels.items():
            counts.update(_tally(table[name]))
        if len(self.failed) < _EXAMPLES:
            bad = pc.is_in(
                table[STATUS].cast(pa.string()),
                value_set=pa.array(["unparsed", "engine_failed"]),
            )
            self.failed += table.filter(bad)[CASE_ID].to_pylist()
            del self.failed[_EXAMPLES:]
        self._ids.append(table[CASE_ID])

    def repeated(self) -> RepeatedIds:
        """Return the ids that several rows have, the first ones by name."""
        if not self._ids:
            return RepeatedIds(ids=0, examples=())
        every = pa.chunked_array([part for one in self._ids for part in one.chunks])
        counted = pc.value_counts(every)
        twice = counted.filter(pc.greater(counted.field("counts"), 1)).field("values")
        names = sorted(twice.to_pylist())
        return RepeatedIds(ids=len(names), examples=tuple(names[:_EXAMPLES]))


def _tally(column: pa.ChunkedArray) -> dict[str, int]:
    counted = pc.value_counts(column.cast(pa.string()))
    return {
        "blank" if one["values"] is None else one["values"]: one["counts"]
        for one in counted.to_pylist()
    }


class LabelDifference(NamedTuple):
    """Rows in which two annotations say something else of a label."""

    label: str
    rows: int
    changes: Mapping[str, int]
    """``"present -> absent"`` to how many rows."""


class AnnotationComparison(NamedTuple):
    """Where two annotations of the same rows differ."""

    rows: int
    """That both have, by id and place."""

    differing: int
    """Rows with any difference."""

    labels: tuple[LabelDifference, ...]
    statuses: Mapping[str, int]
    """``"answered -> unparsed"`` to how many rows."""

    examples: tuple[str, ...]
    """Ids of the first rows that differ."""


def compare_annotations(first: Path, second: Path) -> AnnotationComparison:
    """Return where two complete annotations of the same rows differ.

    Raises
    ------
    DataError
        One is not complete, a shard was changed, or they are of other rows or labels.
    """
    one, two = read_manifest_of(first), read_manifest_of(second)
    if one.source_digest != two.source_digest:
        raise DataError(
            f"{first} and {second} are of other rows: their sources differ. Compare "
            "annotations of one source."
        )
    if one.plan.columns != two.plan.columns:
        raise DataError(f"{first} and {second} are of other labels.")
    changed = {name: Counter[str]() for name in one.plan.columns}
    statuses = Counter[str]()
    rows = differing = 0
    examples: list[str] = []
    for left, right in zip(
        read_labels(first, one), read_labels(second, two), strict=True
    ):
        rows += 1
        if left == right:
            continue
        differing += 1
        if len(examples) < _EXAMPLES:
            examples.append(str(left[0]))
        if left[1] != right[1]:
            statuses[f"{left[1]} -> {right[1]}"] += 1
        for name, before, after in zip(
            one.plan.columns, left[2:], right[2:], strict=True
        ):
            if before != after:
                changed[name][f"{before or 'blank'} -> {after or 'blank'}"] += 1
    return AnnotationComparison(
        rows=rows,
        differing=differing,
        labels=tuple(
            LabelDifference(name, counts.total(), dict(sorted(counts.items())))
            for name, counts in changed.items()
            if counts
        ),
        statuses=dict(sorted(statuses.items())),
        examples=tuple(examples),
    )


def read_labels(
    folder: Path, manifest: AnnotationManifest
) -> Iterator[tuple[str | None, ...]]:
    """Yield id, status and labels of every row of an annotation, in their order.

    Raises
    ------
    DataError
        A shard is missing or was changed.
    """
    names = [CASE_ID, STATUS, *manifest.plan.columns]
    for shard in manifest.shards:
        path = folder / shard.file
        check_shard(path, shard.sha256)
        table = pq.read_table(path, columns=names)
        yield from zip(*(table[name].to_pylist() for name in names), strict=True)


def check_label_names(taxonomy: Taxonomy) -> tuple[str, ...]:
    """Return the published names of all labels; refuse one that is a column already.

    Raises
    ------
    DataError
        A label is called like a column that is no label.
    """
    names = tuple(one.name for one in taxonomy.labels)
    taken = {CASE_ID, STATUS, _EVIDENCE, _REPAIRS, _PROBLEM, TEXT} & set(names)
    if taken:
        raise DataError(
            f"a label is called {quoted(min(taken))}, as a column of an annotation is. "
            "Give it another name in labels/labels.yaml."
        )
    return names
