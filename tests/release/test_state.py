"""What is kept is told whole; only what a killed command left a day ago may go."""

import fcntl
import os
import tempfile

import pytest

from loop.core.errors import WriteError
from loop.core.paths import WorkspacePaths
from loop.release.state import (
    PURPOSES,
    StatePart,
    list_demos,
    list_left,
    list_removable,
    list_replaced,
    list_state,
    remove,
)

NOW = 2_000_000_000.0
DAY = 24 * 3600.0


@pytest.fixture
def place(tmp_path):
    """Return a workspace with a private folder and nothing in it."""
    made = WorkspacePaths(tmp_path / "ws")
    made.private.mkdir(parents=True)
    return made


def put(path, size=3, age=2 * DAY):
    """Write a file of a size and an age, in seconds, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    os.utime(path, (NOW - age, NOW - age))
    return path


def grown(path, age=2 * DAY):
    """Make a folder as old as what is in it."""
    os.utime(path, (NOW - age, NOW - age))
    return path


def left(place):
    """Return the names of what killed commands left, with their sizes."""
    found = list_left(place, lambda: NOW)
    assert {one.purpose for one in found} <= {"left by a killed command"}
    return [(one.path.relative_to(place.private).as_posix(), one.size) for one in found]


def test_everything_private_is_told_with_its_size(place):
    """In the order of purposes; a database with all its files; no other file."""
    put(place.private / "store.db", 5)
    put(place.private / "store.db-wal", 7)
    put(place.private / "keys" / "a.pem", 2)
    put(place.private / "keys" / "deep" / "b.pem", 4)
    (place.private / "keys" / "link").symlink_to(place.private / "store.db")
    put(place.private / "freezing" / "x", 90)
    put(place.private / "something else", 90)
    found = [one for one in list_state(place) if one.path.parent == place.private]
    assert found == [
        StatePart(place.private / "keys", 6, "private keys of people, and the vault's"),
        StatePart(
            place.private / "store.db",
            12,
            "answers, runs, clinicians' verdicts and readings",
        ),
    ]
    for name in PURPOSES:
        if not (place.private / name).exists():
            put(place.private / name)
    names = [one.path.name for one in list_state(place)]
    assert names[: len(PURPOSES)] == list(PURPOSES)
    assert list_state(WorkspacePaths(place.root / "none")) == []


@pytest.mark.parametrize("folder", ["trials", "freezing", "uploads"])
@pytest.mark.parametrize(("age", "goes"), [(DAY + 1, True), (DAY - 1, False)])
def test_what_passes_with_its_command_goes_after_a_day(place, folder, age, goes):
    """The newest thing in it counts; other folders stay."""
    for name in (folder, "drafts"):
        put(place.private / name / "old" / "a", 4, age)
        put(place.private / name / "old" / "b", 5, 9 * DAY)
        grown(place.private / name / "old", 9 * DAY)
    assert left(place) == ([(f"{folder}/old", 9)] if goes else [])


def test_just_a_day_is_not_longer_than_a_day(place):
    """What is as old as that may still be at work."""
    put(place.private / "uploads" / "a", age=DAY)
    assert left(place) == []


def test_unfinished_files_go_wherever_they_are(place):
    """By their form alone: a name of a file that was to be moved into place."""
    for name in (
        ".cases.jsonl.abcd_123",
        "runs/.r.json.removed-abcd_123",
        "runs/deep/.x.abcdefgh",
        "runs/deep/.x.abcdefg",
        "runs/deep/.x.ABCDEFGH",
        "runs/deep/x.abcdefgh",
        "runs/deep/.x.abcdefghi",
        "runs/deep/.x.a-b-abcdefgh",
    ):
        put(place.private / name, 2)
    # A folder goes whole, and what is in it is not told by itself.
    put(place.private / "cases" / ".old.abcd_123" / ".in.abcd_123", 3)
    grown(place.private / "cases" / ".old.abcd_123")
    # What passes with its command is told once.
    put(place.private / "uploads" / ".y.abcd_123", 1)
    assert sorted(left(place)) == [
        (".cases.jsonl.abcd_123", 2),
        ("cases/.old.abcd_123", 3),
        ("runs/.r.json.removed-abcd_123", 2),
        ("runs/deep/.x.abcdefgh", 2),
        ("uploads/.y.abcd_123", 1),
    ]


def test_logs_of_servers_go_when_no_server_runs(place):
    """Logs alone."""
    put(place.private / "serve" / "a.log", 4)
    put(place.private / "serve" / "a.txt", 4)
    assert left(place) == [("serve/a.log", 4)]


@pytest.mark.parametrize("beside", [False, True])
def test_what_a_process_holds_stays(place, beside):
    """By a lock of its own, or the one beside it; the others go."""
    held = put(place.private / "freezing" / "held" / "a").parent
    free = put(place.private / "freezing" / "other" / "a").parent
    for one in (held, free):
        grown(one)
    lock = put(held.with_name(".held.lock")) if beside else held
    handle = os.open(lock, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        assert ("freezing/held", 3) not in left(place)
        assert ("freezing/other", 3) in left(place)
    finally:
        os.close(handle)
    assert ("freezing/held", 3) in left(place)


def test_what_an_import_replaced_goes_only_when_it_is_asked_for(place, monkeypatch):
    """So does what this machine remembers of the ledger."""
    kept = put(place.private / "replaced" / "dev-1" / "cases.csv", 6).parent
    other = put(place.private / "replaced" / "alpha", 2)
    replaced = [
        StatePart(other, 2, "replaced by an import"),
        StatePart(kept, 6, "replaced by an import"),
    ]
    assert list_replaced(place) == replaced
    old = put(place.private / "uploads" / "a", 1, 1e9)
    gone = StatePart(old, 1, "left by a killed command")
    assert list_removable(place) == [gone]
    assert list_removable(place, replaced=True) == [gone, *replaced]
    memory = put(place.root / "memory.json", 8)
    monkeypatch.setattr("loop.release.state.head_record", lambda _: memory)
    purpose = "the newest ledger entry that this machine has seen"
    head = StatePart(memory, 8, purpose)
    assert list_state(place)[-1] == head
    assert list_removable(place, head=True) == [gone, head]
    assert list_removable(place, replaced=True, head=True) == [gone, *replaced, head]


def test_removing_frees_what_it_says(place, tmp_path):
    """Files, folders and links, not what links lead to; what is gone is no error."""
    target = put(tmp_path / "target" / "kept", 5)
    folder = put(place.private / "a" / "x", 4).parent
    file = put(place.private / "b", 3)
    link = place.private / "link"
    link.symlink_to(target.parent)
    parts = [
        StatePart(folder, 4, ""),
        StatePart(file, 3, ""),
        StatePart(link, 0, ""),
        StatePart(place.private / "none", 2, ""),
    ]
    assert remove(parts) == 9
    assert list(place.private.iterdir()) == []
    assert target.is_file()
    assert remove([]) == 0


def test_what_cannot_be_removed_is_named(place, monkeypatch):
    """What stood before it is gone all the same."""
    first, second = put(place.private / "a"), put(place.private / "b")

    def refuse(path, missing_ok=False):
        if path == second:
            raise PermissionError(13, "Permission denied")
        os.unlink(path)

    monkeypatch.setattr(type(first), "unlink", refuse)
    with pytest.raises(WriteError, match="Permission denied"):
        remove([StatePart(first, 3, ""), StatePart(second, 3, "")])
    assert (first.exists(), second.exists()) == (False, True)


def test_demos_are_folders_of_whoever_asks(tmp_path, monkeypatch):
    """By their name; a file and a link are none."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    put(tmp_path / "ranloop-demo-b" / "x", 3)
    put(tmp_path / "ranloop-demo-a" / "x", 4)
    put(tmp_path / "other-demo" / "x")
    put(tmp_path / "ranloop-demo-file")
    (tmp_path / "ranloop-demo-link").symlink_to(tmp_path / "other-demo")
    assert list_demos() == [
        StatePart(tmp_path / "ranloop-demo-a", 4, "a demo"),
        StatePart(tmp_path / "ranloop-demo-b", 3, "a demo"),
    ]
    own = os.getuid()
    monkeypatch.setattr("loop.release.state.os.getuid", lambda: own + 1)
    assert list_demos() == []
