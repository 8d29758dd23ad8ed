"""A workspace to search in."""

import pytest

from tests.optimize.scenes import Bench, learnable


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
