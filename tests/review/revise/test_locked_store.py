"""A store that somebody else holds: said after a while, and nothing is half-done."""

import sqlite3

import pytest

from loop.core.errors import StoreError
from loop.prompts.catalog import list_drafts
from tests.review.revise.stepping import FLUID, begin


def test_a_locked_store_leaves_neither_verdict_nor_draft(setting, store):
    """The same call goes through once the other is done."""
    store.read("PRAGMA busy_timeout = 50")
    other = sqlite3.connect(setting.workspace.store, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="held by another process"):
        begin(setting, store, FLUID)
    assert list_drafts(setting.workspace, "tiny") == ()
    other.execute("ROLLBACK")
    other.close()
    assert begin(setting, store, FLUID).draft.verdicts == (FLUID.id,)
