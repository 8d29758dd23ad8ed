"""Stored answers that no run rests on are told from those that one does."""

import pytest

from loop.core.errors import ConflictError
from loop.core.files import locked
from loop.run import prune
from loop.run.prune import Pruned, prune_completions
from loop.run.store import Store, open_store


def key(number):
    """Return the key of one answer."""
    return number.to_bytes(32, "big")


def answer(number, text="", thinking=None):
    """Return the row of one answer."""
    return (key(number), text, "stop", 0.1, None, None, None, thinking)


@pytest.fixture
def run(workspace, kit):
    """Make a finished run of three cases, the first of which took three calls."""
    with open_store(workspace) as store:
        record = store.add_run("20260101-000000-abcdef", "2026", "m", kit.make_spec())
        cases = (key(1) + key(2) + key(3), key(4), b"")
        rows = [
            (record.number, place, f"c{place}", "answered", "{}", "", "", keys)
            for place, keys in enumerate(cases)
        ]
        store.save([answer(number, "kept") for number in (1, 2, 3, 4)], rows)
        store.finish_run(record.id, "2026", {})
    return record


def stored(workspace):
    """Return the keys of all stored answers."""
    with open_store(workspace) as store:
        return {row[0] for row in store.read("SELECT key FROM completions")}


@pytest.mark.parametrize("page", [1, 2, 1000])
def test_every_answer_of_an_outcome_stays(workspace, run, monkeypatch, page):
    """The first, one in between and the last; whatever else is there goes."""
    monkeypatch.setattr(prune, "_ROWS", page)
    with open_store(workspace) as store:
        store.save([answer(9, "x" * 7), answer(10, "肺", "because")], [])
    assert prune_completions(workspace, dry_run=True) == Pruned(2, 7 + 3 + 7)
    assert len(stored(workspace)) == 6
    assert prune_completions(workspace) == Pruned(2, 17)
    assert stored(workspace) == {key(number) for number in (1, 2, 3, 4)}
    assert prune_completions(workspace) == Pruned(0, 0)


def test_where_nothing_is_stored_nothing_goes(workspace):
    """And no store is made by looking."""
    assert prune_completions(workspace) == Pruned(0, 0)
    assert not workspace.store.exists()


def test_a_run_that_was_killed_holds_nothing_back(workspace, run):
    """Nobody has its lock; a run under way keeps all answers of its store."""
    with open_store(workspace) as store, store.writing() as connection:
        connection.execute("UPDATE runs SET finished = NULL")
    with open_store(workspace) as store:
        store.save([answer(9)], [])
    lock = workspace.private / "runs" / run.id / "lock"
    with locked(lock), pytest.raises(ConflictError, match=f"run {run.id} is under way"):
        prune_completions(workspace, dry_run=True)
    assert prune_completions(workspace, dry_run=True).answers == 1
    lock.unlink()
    assert prune_completions(workspace).answers == 1
    assert not lock.exists()


def test_answers_in_stores_of_their_own_go_too(workspace, run):
    """Those about generated and changed reports; all of them are counted together."""
    for place, name in enumerate(("score", "judge", "inject"), 1):
        store = Store(workspace.private / name / "store.db")
        store.save([answer(n, "x" * place) for n in range(place)], [])
        store.close()
    with open_store(workspace) as store:
        store.save([answer(9, "x" * 100)], [])
    assert prune_completions(workspace, dry_run=True) == Pruned(7, 1 + 4 + 9 + 100)
    assert prune_completions(workspace) == Pruned(7, 114)
    assert prune_completions(workspace) == Pruned(0, 0)
    assert len(stored(workspace)) == 4


def test_what_was_removed_takes_no_room_any_more(workspace, run):
    """The file gets smaller; a look alone changes nothing."""
    with open_store(workspace) as store:
        store.save([answer(9, "x" * 1_000_000)], [])
    before = workspace.store.stat().st_size
    prune_completions(workspace, dry_run=True)
    assert workspace.store.stat().st_size == before > 1_000_000
    prune_completions(workspace)
    assert workspace.store.stat().st_size < before - 900_000


def test_a_run_that_did_not_end_keeps_nobody_from_another(workspace, run, kit):
    """Whether it has a lock or none; the one under way is found behind them."""
    with open_store(workspace) as store:
        ids = [store.add_run("2027", f"202{n}", "m", kit.make_spec()).id for n in "789"]
    runs = workspace.private / "runs"
    for name in ids[:2]:
        (runs / name).mkdir(parents=True)
    (runs / ids[1] / "lock").touch()
    with (
        locked(runs / ids[0] / "lock"),
        pytest.raises(ConflictError, match=f"run {ids[0]} is under way"),
    ):
        prune_completions(workspace)
    assert prune_completions(workspace) == Pruned(0, 0)
