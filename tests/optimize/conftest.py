"""What several tests of this room need."""

import shutil
from pathlib import Path

import pytest

from loop.core.paths import WorkspacePaths
from tests.optimize.sampling import WORDS, add_cohort, run, write_tiny


@pytest.fixture(scope="session")
def sampled_once(first_version, tmp_path_factory):
    """Make a workspace with a development cohort, and one without a reference."""
    folder = tmp_path_factory.mktemp("sampled")
    workspace = WorkspacePaths(Path(shutil.copytree(first_version.root, folder / "ws")))
    write_tiny(workspace, 1, {**WORDS, "edema": "swelling"})
    write_tiny(workspace, 2, WORDS)
    add_cohort(workspace, folder, "dev", 150, 1)
    right = add_cohort(workspace, folder, "pool", 240, 2, labels=False, role="external")
    for cohort in ("dev", "pool"):
        for ref in ("tiny@v1", "tiny@v2"):
            run(workspace, ref, cohort)
    return workspace, right


@pytest.fixture
def pool(sampled_once, tmp_path):
    """Return a copy of that workspace."""
    root = shutil.copytree(sampled_once[0].root, tmp_path.resolve() / "ws")
    return WorkspacePaths(Path(root))


@pytest.fixture
def right(sampled_once):
    """Return what is right of every case of ``pool``, which no file there says."""
    return sampled_once[1]
