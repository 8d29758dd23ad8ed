"""A workspace with a made task, and the stub that reflects."""

import pytest

from loop.engines import base
from tests.optimize.made_task import StubReflector, improvable_cases, make_task


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
    return make_task(workspace, tmp_path, improvable_cases())
