"""Synthetic sources: a few made-up reports, and what it takes to import them."""

import csv
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.labels.cohort import Cohort, read_cohort
from loop.labels.importing.importer import ImportReport, import_cohort
from loop.labels.importing.source import ImportOptions
from loop.labels.taxonomy import Taxonomy, read_taxonomy

ACTOR = Actor(name="Dr. Example")

Importer = Callable[..., ImportReport]
CohortMaker = Callable[..., Cohort]


@pytest.fixture
def taxonomy(labels_folder: Path) -> Taxonomy:
    """Return the shipped taxonomy."""
    return read_taxonomy(labels_folder)


@pytest.fixture
def workspace(tmp_path: Path, labels_folder: Path) -> WorkspacePaths:
    """Make a workspace without prompts, cohorts or history."""
    root = tmp_path / "ws"
    (root / "prompts").mkdir(parents=True)
    shutil.copytree(labels_folder / "crosswalks", root / "labels" / "crosswalks")
    shutil.copy(labels_folder / "taxonomy.yaml", root / "labels")
    return WorkspacePaths(root)


@pytest.fixture
def take(workspace: WorkspacePaths) -> Importer:
    """Return a function that imports a source under a name."""

    def run(path: Path, name: str = "mine", **options: object) -> ImportReport:
        wanted = ImportOptions(**{"name": name, "role": "dev", **options})  # type: ignore[arg-type]
        return import_cohort(workspace, path, wanted, actor=ACTOR)

    return run


@pytest.fixture
def write_csv(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes rows as a CSV file."""

    def write(
        rows: Sequence[Sequence[object]],
        name: str = "reports.csv",
        encoding: str = "utf-8",
    ) -> Path:
        path = tmp_path / name
        with path.open("w", encoding=encoding, newline="") as stream:
            csv.writer(stream).writerows(rows)
        return path

    return write


@pytest.fixture
def make_cohort(
    workspace: WorkspacePaths, take: Importer, write_csv: Callable[..., Path]
) -> CohortMaker:
    """Return a function that imports (case id, text[, patient]) rows as a cohort."""

    def make(
        rows: Sequence[Sequence[object]], name: str = "mine", **options: object
    ) -> Cohort:
        header = ["case_id", "text", "patient"][: len(rows[0])]
        take(write_csv([header, *rows], f"{name}.csv"), name, **options)
        return read_cohort(workspace, name)

    return make
