"""A made-up cohort that readers read, and what they say of it in short."""

import csv
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.records import Value
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.review.reading.answers import answer_many, complete_case
from loop.review.reading.assignment import Assignment, read_assignment
from loop.review.reading.publication import Publication, Published, publish_readings
from loop.run.store import Store, open_store

CASES = ("c1", "c2", "c3", "c4")
EDITOR = Actor(name="Dr. Editor")
READ_TWICE = Publication(reason="read twice")
WORDS = {"p": Value.PRESENT, "a": Value.ABSENT, "u": Value.UNCERTAIN}

Say = Callable[..., None]
Publish = Callable[..., Published]


def at(minute: int) -> Callable[[], datetime]:
    """Return a clock that stands at `minute` of a made-up morning."""
    return lambda: datetime(2026, 1, 5, 9, minute, tzinfo=UTC)


def import_texts(
    workspace: WorkspacePaths, folder: Path, texts: Mapping[str, str], **options: object
) -> None:
    """Import `texts` (case id to text) as cohort ``read``."""
    path = folder / "read.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([("case_id", "text"), *texts.items()])
    wanted = ImportOptions(**{"name": "read", "role": "dev", **options})  # type: ignore[arg-type]
    import_cohort(workspace, path, wanted, actor=EDITOR)


@pytest.fixture
def assignment(workspace: WorkspacePaths, tmp_path: Path) -> Assignment:
    """Import four cases without a reference and return what readers are asked."""
    texts = {case: f"Made-up text number {case[1]}." for case in CASES}
    import_texts(workspace, tmp_path, texts)
    return read_assignment(workspace, "read")


@pytest.fixture
def store(workspace: WorkspacePaths):
    """Return the open store."""
    with open_store(workspace) as opened:
        yield opened


@pytest.fixture
def say(store: Store, assignment: Assignment) -> Say:
    """Return a function by which a reader completes cases: edema p, a or u."""

    def run(reader: str, edema: str, label: str = "edema", minute: int = 0) -> None:
        answers = {
            case: {label: WORDS[word]}
            for case, word in zip(CASES, edema, strict=False)
            if word != "."
        }
        answer_many(store, assignment, reader, answers, at(minute))
        for case in answers:
            complete_case(store, assignment, reader, case, now=at(minute))

    return run


@pytest.fixture
def publish(workspace: WorkspacePaths, store: Store, assignment: Assignment) -> Publish:
    """Return a function that publishes readings."""

    def run(*readers: str, **options: object) -> Published:
        wanted = replace(READ_TWICE, readers=readers, **options)  # type: ignore[arg-type]
        return publish_readings(workspace, store, assignment, wanted, EDITOR)

    return run
