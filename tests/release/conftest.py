"""A small release to check and to attack, and one of a judge."""

import shutil
from pathlib import Path

import pytest

from loop.core.paths import WorkspacePaths
from loop.release.freeze import Frozen
from tests.release.judge_ready import JudgeReady, make_judge_ready
from tests.release.small import Small, make_small
from tests.review.revise.conftest import wavering as wavering


@pytest.fixture
def small(tmp_path: Path) -> Small:
    """Make a release that two people signed."""
    return make_small(tmp_path)


@pytest.fixture(scope="session")
def judge_release(
    tmp_path_factory: pytest.TempPathFactory, first_version: WorkspacePaths
) -> tuple[JudgeReady, Frozen]:
    """Release a judge once, for all that only look at it."""
    root = tmp_path_factory.mktemp("judge").resolve() / "ws"
    shutil.copytree(first_version.root, root)
    ready = make_judge_ready(WorkspacePaths(root), root.parent)
    return ready, ready.freeze()
