"""What several rooms' tests need: a workspace, and the optional data folder."""

import os
from pathlib import Path

import pytest

from loop.core.paths import Workspace, bundled, init_workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Make a fresh workspace from the shipped material."""
    return init_workspace(tmp_path / "ws")


@pytest.fixture
def data_folder() -> Path:
    """Return the folder of real reports, which the project may not ship."""
    named = os.environ.get("RANLOOP_DATA")
    if not named:
        pytest.skip("RANLOOP_DATA is not set: these reports do not ship with ranloop")
    return Path(named)


@pytest.fixture
def labels_folder() -> Path:
    """Return the shipped ``labels/`` folder."""
    return bundled() / "labels"
