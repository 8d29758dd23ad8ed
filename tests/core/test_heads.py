"""The newest head this machine has seen: what going back to yesterday leaves behind."""

import json
import os
import shutil
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from loop.core.heads import find_rollback, head_record
from loop.core.ledger import (
    Actor,
    Event,
    append_event,
    append_events,
    quarantine_torn_line,
    record_wrong_clock,
)
from loop.core.paths import WorkspacePaths

ACTOR = Actor(name="Dr A")
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a workspace with two entries, and a place for what the machine keeps."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = WorkspacePaths(tmp_path / "ws")
    made.prompts.mkdir(parents=True)
    made.open_private()
    append(made, 2)
    return made


def append(place, count=1):
    """Append so many entries."""
    events = [Event(action="evaluated", subject="x@v1", reason="r")] * count
    return append_events(place.ledger, events, ACTOR, now=lambda: NOON)


def record(tmp_path):
    """Return the one file that the machine keeps."""
    [path] = (tmp_path / "state" / "ranloop" / "heads").iterdir()
    return path


def test_a_ledger_that_only_grew_is_no_rollback(place, tmp_path):
    """Every append is remembered, in one private file outside the workspace."""
    assert find_rollback(place) is None
    last = append(place)[-1]
    assert find_rollback(place) is None
    data = json.loads(record(tmp_path).read_text())
    assert (data["seq"], data["hash"], data["time"]) == (3, last.hash, last.time)
    assert stat.S_IMODE(record(tmp_path).stat().st_mode) == 0o600


def test_yesterday_s_workspace_is_noticed(place, tmp_path):
    """Everything rolled back at once is a valid chain; only its end is missing."""
    shutil.copytree(place.root, tmp_path / "yesterday")
    last = append(place)[-1]
    shutil.rmtree(place.root)
    shutil.copytree(tmp_path / "yesterday", place.root)
    found = find_rollback(place)
    assert (found.seq, found.hash, found.found) == (3, last.hash, 2)
    assert found.time == "2026-01-02T12:00:00Z"
    assert found.record == record(tmp_path)


def test_going_on_after_a_rollback_does_not_hide_it(place):
    """The lost head stays remembered beside the new ones."""
    before = place.ledger.read_bytes()
    lost = append(place)[-1]
    place.ledger.write_bytes(before)
    events = [Event(action="evaluated", subject="y@v1", reason="r")] * 3
    for event in events:
        append_event(place.ledger, event, ACTOR)
        assert find_rollback(place).hash == lost.hash


def test_the_newest_of_several_lost_heads_is_named(place):
    """What was lost first is part of it."""
    before = place.ledger.read_bytes()
    append(place)
    place.ledger.write_bytes(before)
    for subject in "yz":
        event = Event(action="evaluated", subject=f"{subject}@v1", reason="r")
        newest = append_event(place.ledger, event, ACTOR, now=lambda: NOON)
    place.ledger.write_bytes(before)
    found = find_rollback(place)
    assert (found.seq, found.hash) == (4, newest.hash)


def test_bringing_back_what_was_lost_ends_it(place):
    """A restore by mistake, taken back."""
    before = place.ledger.read_bytes()
    append(place)
    after = place.ledger.read_bytes()
    place.ledger.write_bytes(before)
    assert find_rollback(place)
    place.ledger.write_bytes(after)
    assert find_rollback(place) is None
    append(place)
    assert find_rollback(place) is None


def test_a_chain_written_anew_is_noticed(place):
    """As long as before and valid, but of other hashes."""
    place.ledger.unlink()
    event = Event(action="frozen", subject="x@v1", reason="r")
    append_event(place.ledger, event, ACTOR, now=lambda: NOON)
    append(place)
    assert find_rollback(place).seq == 2


def test_a_removed_ledger_is_noticed(place):
    """Nothing left is a rollback to before the first day."""
    place.ledger.unlink()
    assert find_rollback(place).found == 0


def test_a_broken_ledger_can_be_asked_too(place):
    """An audit wants every finding, not the first."""
    place.ledger.write_bytes(b"[1]\n{\n")
    assert find_rollback(place).seq == 2


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", "7", '{"seq": "2"}', '{"lost": 1}'),
        *('{"seq": "2", "hash": "a"}', '{"seq": true, "hash": "a"}'),
        *('{"seq": 9, "hash": 7}', "[" * 100_000),
    ],
)
def test_what_was_garbled_is_nothing_remembered(place, tmp_path, content):
    """A damaged second look must not stop the work."""
    record(tmp_path).write_text(content)
    assert find_rollback(place) is None
    append(place)
    assert json.loads(record(tmp_path).read_text())["seq"] == 3


def test_without_a_private_folder_nothing_is_remembered(tmp_path, monkeypatch):
    """A ledger alone, as in a release, is nobody's workspace."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    place = WorkspacePaths(tmp_path / "ws")
    place.prompts.mkdir(parents=True)
    append(place)
    assert find_rollback(place) is None
    assert not (tmp_path / "state").exists()
    assert not place.private.exists()


def test_a_place_that_is_none_is_not_used(place, tmp_path, monkeypatch):
    """The XDG specification: a relative path there is to be ignored."""
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    append(place)
    kept = tmp_path / ".local" / "state" / "ranloop" / "heads"
    assert len(list(kept.iterdir())) == 1


@pytest.mark.parametrize("home", ["/proc/nowhere", "relative"])
@pytest.mark.parametrize("state", ["/proc/nowhere", "relative", ""])
def test_nowhere_to_remember_is_no_error(tmp_path, monkeypatch, state, home):
    """A read-only home, or none: the ledger is written all the same."""
    monkeypatch.setenv("XDG_STATE_HOME", state)
    monkeypatch.setenv("HOME", home)
    monkeypatch.chdir(tmp_path)
    place = WorkspacePaths(tmp_path / "ws")
    place.prompts.mkdir(parents=True)
    place.open_private()
    assert append(place)[0].seq == 1
    assert find_rollback(place) is None
    assert os.listdir() == ["ws"]


@pytest.mark.parametrize("name", ["../../x", "short", "", "é" * 32])
def test_an_id_that_is_none_is_made_anew(place, tmp_path, name):
    """Nothing in a workspace decides where on the machine a file goes."""
    path = place.private / "workspace-id"
    path.write_text(name)
    append(place)
    assert len(path.read_text().strip()) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(list((tmp_path / "state" / "ranloop" / "heads").iterdir())) == 2


def test_a_workspace_without_an_id_has_no_head(place, tmp_path):
    """What lies where the file of an empty id would be is nobody's."""
    kept = record(tmp_path)
    kept.rename(kept.with_name(".json"))
    (place.private / "workspace-id").write_text("")
    place.ledger.unlink()
    assert find_rollback(place) is None


def test_a_ledger_that_cannot_be_read_is_no_rollback(place):
    """A second look that fails must not end what asked for it."""
    place.ledger.unlink()
    place.ledger.mkdir()
    assert find_rollback(place) is None


def test_where_a_head_is_remembered(place, tmp_path):
    """The file, as long as it is there; none for a workspace without an id."""
    assert head_record(place) == record(tmp_path)
    record(tmp_path).unlink()
    assert head_record(place) is None
    (place.private / "workspace-id").unlink()
    assert head_record(place) is None


def test_what_is_remembered_after_a_rollback(place, tmp_path):
    """The new head, and each that was lost, with all that was known of it."""
    before = place.ledger.read_bytes()
    lost = append(place)[-1]
    place.ledger.write_bytes(before)
    event = Event(action="evaluated", subject="y@v1", reason="r")
    last = append_event(place.ledger, event, ACTOR, now=lambda: NOON)
    assert json.loads(record(tmp_path).read_text()) == {
        "seq": 3,
        "hash": last.hash,
        "time": last.time,
        "lost": [{"seq": 3, "hash": lost.hash, "time": lost.time}],
    }


@pytest.mark.parametrize("seq", [0, -1, 4])
def test_a_head_of_no_line_is_in_no_ledger(place, tmp_path, seq):
    """Neither the last line, counted from behind, nor one that is still to come."""
    last = append(place)[-1]
    head = {"seq": seq, "hash": last.hash}
    record(tmp_path).write_text(json.dumps(head))
    found = find_rollback(place)
    assert (found.seq, found.hash, found.time, found.found) == (seq, last.hash, "", 3)


def test_garbled_rows_of_lost_heads_are_left_out(place, tmp_path):
    """Those that can be read count."""
    kept = json.loads(record(tmp_path).read_text())
    rows = [7, {"seq": "9", "hash": "a"}, {"seq": 5, "hash": "b"}, {"seq": 6}, {}]
    record(tmp_path).write_text(json.dumps({**kept, "lost": rows}))
    assert find_rollback(place)[:3] == (5, "b", "")


def test_a_lost_head_may_be_newer_than_the_one_remembered_last(place, tmp_path):
    """The highest line is named, wherever it stands."""
    heads = [{"seq": seq, "hash": f"{seq}", "time": f"at {seq}"} for seq in (9, 12, 10)]
    record(tmp_path).write_text(json.dumps({**heads[0], "lost": heads[1:]}))
    assert find_rollback(place)[:4] == (12, "12", "at 12", 2)


def test_a_record_that_cannot_be_read_keeps_nobody_from_acting(place, tmp_path):
    """It is a second look, and not the record."""
    path = record(tmp_path)
    path.unlink()
    path.mkdir()
    append(place)
    assert len(place.ledger.read_bytes().splitlines()) == 3
    assert find_rollback(place) is None
    assert head_record(place) is None


def test_a_repair_is_a_head_as_every_entry_is(place, tmp_path):
    """Whoever rolls back to before it is noticed."""
    before = place.ledger.read_bytes()
    with place.ledger.open("ab") as stream:
        stream.write(b"{")
    torn = quarantine_torn_line(place.ledger, ACTOR, now=lambda: NOON)
    assert json.loads(record(tmp_path).read_text())["hash"] == torn.hash
    earlier = NOON - timedelta(hours=1)
    clock = record_wrong_clock(place.ledger, ACTOR, now=lambda: earlier)
    assert json.loads(record(tmp_path).read_text())["hash"] == clock.hash
    assert find_rollback(place) is None
    place.ledger.write_bytes(before)
    assert find_rollback(place).seq == clock.seq == 4


def test_a_ledger_named_from_beside_it_is_that_of_its_workspace(
    place, tmp_path, monkeypatch
):
    """The head is remembered for the folder above."""
    monkeypatch.chdir(place.prompts)
    event = Event(action="evaluated", subject="x@v1", reason="r")
    last = append_event(Path("ledger.jsonl"), event, ACTOR, now=lambda: NOON)
    assert json.loads(record(tmp_path).read_text())["hash"] == last.hash
