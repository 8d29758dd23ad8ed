"""Workspaces to search in, and the stub that reflects."""

import pytest

from loop.engines import base
from tests.optimize.made_task import StubReflector, improvable_cases, make_task
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
