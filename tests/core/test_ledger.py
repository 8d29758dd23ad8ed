"""The ledger's chain: what it proves, and what it says when it is broken."""

import json
import multiprocessing
from datetime import UTC, datetime

import pytest

from loop.core.errors import LedgerError, WriteError
from loop.core.ledger import (
    Actor,
    Event,
    append_event,
    append_events,
    entry_hash,
    read_ledger,
)

ACTOR = Actor(name="Dr A", role="reviewer")


def event(subject="extractor@v1", **more):
    """Return an event."""
    return Event(action="draft_committed", subject=subject, reason="because", **more)


def test_hash_agrees_with_a_published_vector():
    """Two entries worked out by hand elsewhere give the same hashes."""
    first = {
        "seq": 1,
        "ts_utc": "2026-01-05T09:00:00Z",
        "actor_id": "dr_a",
        "actor_name": "A. Example",
        "role": "reviewer",
        "action": "protocol.freeze",
        "object_hash": "sha256:" + 64 * "a",
        "before": None,
        "after": None,
        "reason": "first protocol",
        "meaning": "approval",
        "prev_hash": 64 * "0",
    }
    one = "85a7dfa13cfd0845e265ced007390b6c31aa98b8b747b1b12b46aa3a3cc1fe4c"
    assert entry_hash(first) == one
    second = first | {
        "seq": 2,
        "ts_utc": "2026-01-05T09:05:00Z",
        "actor_id": "dr_b",
        "actor_name": "B. Example",
        "role": "approver",
        "action": "release.sign",
        "object_hash": "sha256:" + 64 * "b",
        "reason": "gates passed",
        "prev_hash": one,
    }
    two = "586f65b6a6b57613c06297fae9dc7ae279d41f6b867ebbbac9a82c366466211f"
    assert entry_hash(second) == two


def test_entries_come_back_as_they_were_written(tmp_path):
    """Nothing is lost between append and read, non-ASCII included."""
    path = tmp_path / "ledger.jsonl"
    clock = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    written = [
        append_event(
            path, event(payload={"n": n, "name": "é"}), ACTOR, now=lambda: clock
        )
        for n in range(3)
    ]
    assert read_ledger(path) == tuple(written)
    assert [entry.seq for entry in written] == [1, 2, 3]
    assert written[0].time == "2026-01-02T03:04:05Z"


def _edit(lines):
    lines[1] = lines[1].replace("because", "otherwise")


def _remove(lines):
    del lines[1]


def _swap(lines):
    lines[0], lines[1] = lines[1], lines[0]


def _garble(lines):
    lines[1] = lines[1][:20]


@pytest.mark.parametrize(
    ("tamper", "line", "message"),
    [
        (_edit, 2, "was edited after it was written"),
        (_remove, 2, "does not follow the line before it"),
        (_swap, 1, "does not follow the line before it"),
        (_garble, 2, "not a ledger entry"),
    ],
)
def test_tampering_is_named_by_line(tmp_path, tamper, line, message):
    """An auditor learns where the chain breaks and what to do."""
    path = tmp_path / "ledger.jsonl"
    for number in range(3):
        append_event(path, event(f"extractor@v{number}"), ACTOR)
    lines = path.read_text(encoding="utf-8").splitlines()
    tamper(lines)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(LedgerError, match=f"line {line}: .*{message}") as caught:
        read_ledger(path)
    assert "Restore" in str(caught.value)


def test_torn_last_line_is_reported_and_nothing_is_appended(tmp_path):
    """A power loss mid-write must not be built upon, nor silently dropped."""
    path = tmp_path / "ledger.jsonl"
    append_event(path, event(), ACTOR)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"seq": 2, "tim')
    with pytest.raises(LedgerError, match="line 2: the last line is incomplete"):
        append_event(path, event(), ACTOR)
    assert path.read_bytes().startswith(whole)


def test_missing_line_end_after_a_whole_entry_is_no_damage(tmp_path):
    """Some editors take the last line end; nothing is lost by that."""
    path = tmp_path / "ledger.jsonl"
    append_event(path, event(), ACTOR)
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    append_event(path, event("extractor@v2"), ACTOR)
    assert [entry.seq for entry in read_ledger(path)] == [1, 2]


def _append_many(path, name):
    for number in range(10):
        append_event(path, event(f"{name}@v{number}"), Actor(name=name))


@pytest.mark.slow
def test_concurrent_writers_keep_one_chain(tmp_path):
    """Four processes at once: every entry is there and the chain holds."""
    path = tmp_path / "ledger.jsonl"
    spawn = multiprocessing.get_context("spawn")
    workers = [
        spawn.Process(target=_append_many, args=(path, f"p{n}")) for n in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    subjects = {entry.subject for entry in read_ledger(path)}
    assert subjects == {f"p{n}@v{m}" for n in range(4) for m in range(10)}


def test_event_without_a_reason_is_refused():
    """Every act has a why."""
    with pytest.raises(ValueError, match="needs a reason"):
        Event(action="override", subject="extractor@v1", reason="  ")


def test_unknown_action_is_refused():
    """The set of actions is closed."""
    with pytest.raises(ValueError, match="unknown ledger action 'edit'"):
        Event(action="edit", subject="x", reason="y")


def test_lines_are_plain_json(tmp_path):
    """Anyone can read the ledger without ranloop."""
    path = tmp_path / "ledger.jsonl"
    append_event(path, event(), ACTOR)
    [line] = path.read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["actor"] == "Dr A"


def test_several_events_are_appended_together_or_not_at_all(tmp_path, monkeypatch):
    """An act that takes two entries leaves none behind when it fails."""
    path = tmp_path / "ledger.jsonl"
    append_event(path, event(), ACTOR)
    both = append_events(path, [event("a@v1"), event("a@v2")], ACTOR)
    assert read_ledger(path)[1:] == both
    whole = path.read_bytes()

    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(WriteError):
        append_events(path, [event("a@v3"), event("a@v4")], ACTOR)
    assert path.read_bytes() == whole


def test_an_edit_between_two_reads_is_noticed(tmp_path):
    """Reading twice is cheap, not blind: the bytes are compared, not the time."""
    path = tmp_path / "ledger.jsonl"
    append_event(path, event(), ACTOR)
    read_ledger(path)
    path.write_bytes(path.read_bytes().replace(b"because", b"despite"))
    with pytest.raises(LedgerError, match="was edited"):
        read_ledger(path)
