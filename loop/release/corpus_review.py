"""What readers say of a sample of a corpus, and what that says of all of it.

Rows are drawn with known chances: half of the sample evenly among all rows with a text,
and half so that every label has rows that were called present. What the readers find
among the drawn rows then gives, for each label, which share of those called present is,
which share of the others is present all the same, and with both how many of all rows
are: the prevalence without the annotation's errors, with its limits.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from loop.core.digests import digest_bytes
from loop.core.errors import DataError
from loop.core.files import write_atomic
from loop.core.paths import WorkspacePaths
from loop.core.records import Status, ValueCode
from loop.core.safe_text import format_csv, shielded
from loop.labels.cohort import iter_items, read_cohort
from loop.labels.reference import read_reference
from loop.labels.taxonomy import read_taxonomy
from loop.release.annotation import SAMPLE, AnnotationOptions, corpus_rows
from loop.run.shards import (
    NO_TEXT,
    TEXT,
    AnnotationManifest,
    CorpusRow,
    digest_rows,
    read_labels,
    read_manifest_of,
)
from loop.stats.intervals import Estimate
from loop.stats.weighted import weighted_share, weighted_sum

_PRESENT: Final = "present"
_MODE: Final = 0o600


class _DrawnRow(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    row: int
    """Place in the source, from 0."""

    case_id: str
    """As in the table of texts."""

    chance: float = Field(gt=0, le=1)
    text_digest: str
    """Sha256 of its words."""


class _Sample(BaseModel):
    """The form of ``_sample.json``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["ranloop-sample/1"] = "ranloop-sample/1"
    seed: int
    size: int
    source_digest: str
    plan_digest: str
    rows: tuple[_DrawnRow, ...]


class LabelPrevalence(NamedTuple):
    """How often a label is present in a corpus."""

    label: str
    called: int
    """Rows that the annotation calls present."""

    among_called: Estimate
    """Share of these that readers call present (positive predictive value)."""

    among_others: Estimate
    """Share of the other rows that readers call present (false omission rate)."""

    prevalence: Estimate
    """Share of all rows with a text, by both of these."""

    reviewed: tuple[int, int]
    """Drawn rows among those called present, and among the others, that were read."""

    undecided: int
    """Drawn rows about which readers did not decide, in no number."""

    not_coded: int
    """Drawn rows for which the reference has no code; they count as absent."""


class CorpusReport(NamedTuple):
    """A corpus, corrected by what readers say of a sample of it."""

    rows: int
    """With a text."""

    reference: str
    drawn: int
    missing: int
    """Drawn rows that the cohort does not have."""

    changed: int
    """Drawn rows that have another text in the cohort, and are not read."""

    unanswered: int
    """Rows with a text but no answer; they count among those not called present."""

    left_out: tuple[str, ...]
    """Labels that the reference does not have."""

    labels: tuple[LabelPrevalence, ...]


def draw_sample(
    folder: Path,
    source: Path,
    target: Path,
    size: int,
    *,
    seed: int = 0,
    workspace: WorkspacePaths | None = None,
    options: AnnotationOptions | None = None,
) -> int:
    """Draw rows of an annotated corpus for readers, and return how many.

    Their texts are written to `target`, a table that ``cohort import`` reads; which
    rows they are, and with which chance each was drawn, stays in the folder. About
    `size` rows are drawn: each for itself, so that the chance of each is known.

    Parameters
    ----------
    source, options
        What was annotated, read as then.
    target
        CSV file with ``case_id``, ``text`` and ``language``. Private.

    Raises
    ------
    DataError
        The annotation is not complete, the source is another one, no row has a text,
        `target` is there, or another sample was drawn.
    ValueError
        `size` is below 2.
    WriteError
        A file cannot be written.
    """
    if size < 2:
        raise ValueError(f"a sample has at least 2 rows, not {size}")
    if target.exists():
        raise DataError(f"{target} is there and was left as it is. Name a new file.")
    manifest = read_manifest_of(folder)
    drawn: dict[int, float] = {}
    for place, chance in enumerate(_chances(folder, manifest, size)):
        if chance and _number(seed, manifest.source_digest, place) < chance:
            drawn[place] = chance
    if not drawn:
        raise DataError(_none_drawn(folder, manifest, size))
    rows = _texts(source, manifest, drawn, workspace, options)
    names = _names([one for _, one in rows])
    sample = _Sample(
        seed=seed,
        size=size,
        source_digest=manifest.source_digest,
        plan_digest=manifest.plan.digest,
        rows=tuple(
            _DrawnRow(
                row=place,
                case_id=name,
                chance=drawn[place],
                text_digest=_digest_words(row.text),
            )
            for (place, row), name in zip(rows, names, strict=True)
        ),
    )
    _refuse_other(folder / SAMPLE, sample)
    table = format_csv(
        ("case_id", "text", "language"),
        (
            (shielded(name), shielded(row.text), row.language)
            for (_, row), name in zip(rows, names, strict=True)
        ),
    )
    write_atomic(target, table.encode("utf-8"), mode=_MODE)
    told = json.dumps(sample.model_dump(mode="json"), ensure_ascii=False, indent=1)
    write_atomic(folder / SAMPLE, f"{told}\n".encode(), mode=_MODE)
    return len(rows)


def _none_drawn(folder: Path, manifest: AnnotationManifest, size: int) -> str:
    if manifest.rows == manifest.statuses.get(NO_TEXT, 0):
        return (
            f"no row of {folder} can be drawn: none has a text. Look whether the right "
            "column was read; name it with --text-column, and a new --out."
        )
    return (
        f"no row of {folder} was drawn: with --size {size} that can happen by chance. "
        "Give a larger --size, or another --seed."
    )


def _chances(folder: Path, manifest: AnnotationManifest, size: int) -> Iterator[float]:
    """Yield with which chance each row is drawn; 0 for one without a text."""
    columns = manifest.plan.columns
    spoken = manifest.rows - manifest.statuses.get(NO_TEXT, 0)
    called = {name: manifest.labels[name].get(_PRESENT, 0) for name in columns}
    there = [name for name, n in called.items() if n]
    even = size / 2 / max(1, spoken)
    share = {name: size / 2 / len(there) / called[name] for name in there}
    for _, status, *labels in read_labels(folder, manifest):
        if status == NO_TEXT:
            yield 0.0
            continue
        more = [
            share[name]
            for name, value in zip(columns, labels, strict=True)
            if value == _PRESENT
        ]
        yield min(1.0, even + max(more, default=0.0))


def _number(seed: int, digest: str, place: int) -> float:
    """Return a number in [0, 1) that only these three decide."""
    raw = hashlib.sha256(f"{seed}\0{digest}\0{place}".encode()).digest()
    return int.from_bytes(raw[:8], "big") / 2**64


def _texts(
    source: Path,
    manifest: AnnotationManifest,
    drawn: dict[int, float],
    workspace: WorkspacePaths | None,
    options: AnnotationOptions | None,
) -> list[tuple[int, CorpusRow]]:
    found: list[tuple[int, CorpusRow]] = []

    def watched() -> Iterator[CorpusRow]:
        rows = corpus_rows(source, workspace, (options or AnnotationOptions()).reading)
        for place, row in enumerate(islice(rows, manifest.rows + 1)):
            if place in drawn:
                found.append((place, row))
            yield row

    if digest_rows(watched()) != manifest.source_digest:
        raise DataError(
            f"{source} is not what was annotated, or is read in another way: its rows "
            "differ. Name the source, and the options, of the annotation."
        )
    return found


def _names(rows: list[CorpusRow]) -> list[str]:
    """Return a unique id for each row: that of the source where it is one."""
    seen = Counter(row.case_id for row in rows)
    numbers = {name: count(1) for name in seen}
    names = []
    for row in rows:
        name = row.case_id
        if seen[name] > 1:
            numbered = (f"{name}#{number}" for number in numbers[name])
            name = next(one for one in numbered if one not in seen)
        names.append(name)
    return names


def _refuse_other(path: Path, sample: _Sample) -> None:
    """Refuse to draw where another sample was: readers may have begun with it."""
    try:
        same = _Sample.model_validate_json(path.read_bytes()) == sample
    except FileNotFoundError:
        return
    except (OSError, ValidationError):
        same = False
    if not same:
        raise DataError(
            f"{path} is of a sample that was drawn before, and what readers say of it "
            "is of no use without it. Remove it first to draw another one, or give the "
            "same --size and --seed again."
        )


def report_corpus(
    workspace: WorkspacePaths, folder: Path, cohort: str, *, number: int | None = None
) -> CorpusReport:
    """Return the prevalence of each label in a corpus, corrected by a read sample.

    Parameters
    ----------
    folder
        An annotation of which a sample was drawn.
    cohort
        Cohort of the sample's texts, with a reference by readers.
    number
        Version of the reference; None for the newest.

    Raises
    ------
    DataError
        There is no sample, or it is of another annotation; the cohort has no reference,
        or none of the drawn rows, or other texts under their ids.
    """
    manifest = read_manifest_of(folder)
    sample = _read_sample(folder, manifest)
    taxonomy = read_taxonomy(workspace.labels)
    reference = read_reference(workspace, cohort, number)
    places = {name: place for place, name in enumerate(reference.case_ids)}
    there = [one for one in sample.rows if one.case_id in places]
    if not there:
        raise DataError(
            f"cohort {cohort} has none of the rows that were drawn from {folder}. "
            "Import the table of the sample with its ids as they are."
        )
    changed = _find_changed(workspace, cohort, there)
    read = [one for one in there if one.case_id not in changed]
    if not read:
        raise DataError(
            f"cohort {cohort} has other texts than were drawn from {folder}, under the "
            "same ids. Name the cohort of the sample."
        )
    wanted = {one.row for one in read}
    called = {
        place: labels
        for place, (_, _, *labels) in enumerate(read_labels(folder, manifest))
        if place in wanted
    }
    chances = np.array([one.chance for one in read])
    spoken = manifest.rows - manifest.statuses.get(NO_TEXT, 0)
    found, left_out = [], []
    for column, name in enumerate(manifest.plan.columns):
        label = taxonomy.find(name).id if taxonomy.knows(name) else ""
        if label not in reference.labels:
            left_out.append(name)
            continue
        marks = reference.marks[
            [places[one.case_id] for one in read], reference.labels.index(label)
        ]
        here = np.array([called[one.row][column] == _PRESENT for one in read])
        n = manifest.labels[name].get(_PRESENT, 0)
        whole = len(read) == len(sample.rows)
        found.append(_prevalence(name, n, spoken, marks, here, chances, whole=whole))
    return CorpusReport(
        rows=spoken,
        reference=reference.ref,
        drawn=len(sample.rows),
        missing=len(sample.rows) - len(there),
        changed=len(changed),
        unanswered=spoken - manifest.statuses.get(Status.ANSWERED.value, 0),
        left_out=tuple(left_out),
        labels=tuple(found),
    )


def _digest_words(text: str) -> str:
    return digest_bytes(" ".join(text.split()).encode("utf-8"))


def _find_changed(
    workspace: WorkspacePaths, cohort: str, there: list[_DrawnRow]
) -> set[str]:
    """Return the ids of drawn rows that have another text in the cohort."""
    drawn = {one.case_id: one.text_digest for one in there}
    items = iter_items(workspace, read_cohort(workspace, cohort))
    return {
        one.id
        for one in items
        if one.id in drawn and drawn[one.id] != _digest_words(one.variables[TEXT])
    }


def _prevalence(
    name: str,
    called: int,
    rows: int,
    marks: NDArray[Any],
    here: NDArray[np.bool_],
    chances: NDArray[np.float64],
    *,
    whole: bool,
) -> LabelPrevalence:
    absent = (ValueCode.ABSENT, ValueCode.NOT_CODED)
    decided = np.isin(marks, [ValueCode.PRESENT, *absent])
    present = marks == ValueCode.PRESENT
    among, others = decided & here, decided & ~here
    right, missed = (
        weighted_share(
            present[decided & group],
            chances[decided & group],
            complete=whole and bool(decided[group].all()),
        )
        for group in (here, ~here)
    )
    return LabelPrevalence(
        label=name,
        called=called,
        among_called=right,
        among_others=missed,
        prevalence=weighted_sum(
            [(called / rows, right), ((rows - called) / rows, missed)]
        ),
        reviewed=(int(among.sum()), int(others.sum())),
        undecided=int((~decided).sum()),
        not_coded=int((marks == ValueCode.NOT_CODED).sum()),
    )


def _read_sample(folder: Path, manifest: AnnotationManifest) -> _Sample:
    path = folder / SAMPLE
    try:
        sample = _Sample.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise DataError(
            f"no sample of {folder} was drawn. Draw one with `ranloop annotate SOURCE "
            f"--out {folder} --sample FILE`, and let readers label it."
        ) from error
    except (OSError, ValidationError) as error:
        raise DataError(f"{path} cannot be read. Restore it.") from error
    theirs = (sample.source_digest, sample.plan_digest)
    if theirs != (manifest.source_digest, manifest.plan.digest):
        raise DataError(
            f"{path} is of another annotation than {folder} holds. Draw a new sample."
        )
    return sample
