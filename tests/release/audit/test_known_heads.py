"""A cut end, a rolled-back workspace and a chain made anew, against heads elsewhere."""

import shutil

import pytest

from loop.core.check_findings import broken, note, ok
from loop.core.errors import DataError
from loop.release.audit.known_heads import KnownHead, check_heads, parse_head
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


def test_each_head_is_told_with_what_it_shows(history):
    """The last entry still counts; the first after it does not."""
    hashes = {one.seq: one.hash for one in history.entries()}
    entries = tuple(history.entries())
    given = [
        KnownHead(7, hashes[7][:12], "paper"),
        KnownHead(8, "f" * 64, "a mail"),
        KnownHead(9, "f" * 64, "a mail"),
        KnownHead(7, "f" * 64, "a mail"),
    ]
    cut = {
        "implies": "The end was cut off, or the workspace was rolled back, or this is "
        "a copy from before.",
        "todo": "Restore the newer ledger with its versions; nothing that was "
        "recorded since is in this one.",
        "seq": 7,
    }
    assert check_heads(history.workspace, entries, given) == [
        ok("heads", "entry 7 is the one that paper names"),
        broken(
            "heads",
            "the ledger ends at 7; a mail has seen entry 8",
            where="entries 8 to 8",
            **cut,
        ),
        broken(
            "heads",
            "the ledger ends at 7; a mail has seen entry 9",
            where="entries 8 to 9",
            **cut,
        ),
        broken(
            "heads",
            "entry 7 is not the one that a mail has seen",
            where="entry 7",
            implies="The ledger was written anew from that entry or an earlier one on, "
            "with fitting hashes; or it is another workspace's.",
            todo="Compare it with a backup, entry by entry.",
            seq=7,
        ),
    ]
    assert check_heads(history.workspace, entries, []) == [
        note(
            "heads",
            "no head known from elsewhere was given: that the end was not cut off "
            "rests on this machine's own memory",
            todo="Give --release FOLDER or --head SEQ:HASH from another place.",
        )
    ]


@pytest.mark.parametrize(
    ("text", "head"),
    [
        (f" 7:{'A' * 12}\n", (7, "a" * 12, f"head 7:{'a' * 12}")),
        (f"123456789:{'b' * 64}", (123456789, "b" * 64, f"head 123456789:{'b' * 12}")),
    ],
)
def test_a_head_is_read_as_a_person_copies_it(text, head):
    """With spaces around it, and in capitals; of its hash twelve are shown."""
    assert parse_head(text) == head


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "0:" + "a" * 64,
        "7:abc",
        "7:" + "a" * 11,
        "7:" + "a" * 65,
        "x:" + "a" * 64,
    ],
)
def test_a_head_in_another_form_is_refused(text):
    """A typing error must not pass for a check; the message shows the form."""
    with pytest.raises(DataError, match="Write SEQ:HASH"):
        parse_head(text)
