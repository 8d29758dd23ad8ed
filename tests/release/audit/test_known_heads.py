"""A cut end, a rolled-back workspace and a chain made anew, against heads elsewhere."""

import shutil

import pytest

from loop.core.errors import DataError
from loop.release.audit.known_heads import KnownHead, parse_head
from tests.release.audit.scenes import make_history


@pytest.fixture
def history(tmp_path):
    """Return a history on a machine that remembers its head."""
    made = make_history(tmp_path / "ws")
    made.workspace.open_private()
    made.record("alias_moved", "tiny@v1", {"alias": "beta", "before": None})
    return made


def heads(history, **options):
    """Return what the audit says of heads, as (severity, what)."""
    found = history.audit(**options).findings
    return [(one.severity, one.what) for one in found if one.check == "heads"]


def test_a_workspace_rolled_back_to_yesterday_is_found(history, tmp_path):
    """The old copy is whole in itself; only this machine's memory tells."""
    shutil.copytree(history.workspace.root, tmp_path / "backup", symlinks=True)
    history.record("alias_moved", "tiny@v2", {"alias": "beta", "before": "v1"})
    shutil.rmtree(history.workspace.root)
    (tmp_path / "backup").rename(history.workspace.root)
    ((severity, what),) = heads(history)
    assert severity == "broken"
    assert what.startswith("the ledger ends at 7; this machine on ")
    assert what.endswith("has seen entry 8")


def test_a_truncated_ledger_is_found(history):
    """Whole lines cut off at the end leave a valid chain."""
    history.write(history.lines()[:-2])
    assert heads(history)[0][0] == "broken"
    history.write([])
    assert heads(history)[0][0] == "broken"


def test_a_head_on_paper_is_enough_without_any_memory(history, monkeypatch, tmp_path):
    """On another machine a head that was written down does the same."""
    head = history.audit().head
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    assert heads(history, heads=[parse_head(head)])[0][0] == "ok"
    history.write(history.lines()[:-1])
    assert heads(history)[0][0] == "note"
    assert heads(history, heads=[parse_head(head)])[0][0] == "broken"


def test_another_entry_at_that_place_is_found(history):
    """A chain written anew, or another workspace's, has another hash there."""
    ((severity, what),) = heads(history, heads=[KnownHead(3, "f" * 64, "paper")])
    assert severity == "broken"
    assert what == "entry 3 is not the one that paper has seen"


@pytest.mark.parametrize("text", ["", "7", "0:" + "a" * 64, "7:abc", "x:" + "a" * 64])
def test_a_head_in_another_form_is_refused(text):
    """A typing error must not pass for a check; the message shows the form."""
    with pytest.raises(DataError, match="Write SEQ:HASH"):
        parse_head(text)
