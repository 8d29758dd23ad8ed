"""Workspaces to search and to sample in, and the stub that reflects."""

import shutil
from pathlib import Path

import pytest

from loop.core.paths import WorkspacePaths
from loop.engines import base
from tests.optimize.made_task import StubReflector, improvable_cases, make_task
from tests.optimize.sampling import WORDS, add_cohort, run, write_tiny
from tests.optimize.scenes import Bench, learnable


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


@pytest.fixture
def bench(workspace, tmp_path):
    """Give a workspace with the prompt ``tiny`` and no cohort yet."""
    made = Bench(workspace, tmp_path)
    made.version()
    return made


@pytest.fixture
def taught(bench):
    """Give one with a cohort on which a better wording can be found."""
    bench.cohort(learnable())
    return bench


@pytest.fixture
def stub(monkeypatch):
    """Register the engine ``stub`` for one test, and return what it was asked."""
    monkeypatch.setitem(base._FACTORIES, "stub", StubReflector)
    monkeypatch.setattr(StubReflector, "asked", ())
    monkeypatch.setattr(StubReflector, "said", "")
    monkeypatch.setattr(StubReflector, "broken", None)
    return StubReflector


@pytest.fixture
def improvable(workspace, tmp_path):
    """Return a workspace where most effusions go by a name that v1 does not know."""
    return make_task(workspace, tmp_path, improvable_cases(100))
