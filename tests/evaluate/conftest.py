"""What several tests of this room need."""

import pytest

from tests.evaluate.tried_scenes import Trials


@pytest.fixture
def trials(workspace, tmp_path):
    """Make a workspace with a small cohort and no prompt of its own yet."""
    made = Trials(workspace, tmp_path)
    made.cohort()
    return made
