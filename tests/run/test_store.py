"""The store file: damage, a full disk, other processes, and what survives them."""

import json
import multiprocessing
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.errors import DataError, StoreError, WorkspaceError
from loop.core.records import Completion, Entry, Field, Status
from loop.run import store as store_module
from loop.run.database import MIGRATIONS, FieldEncoder, connect
from loop.run.store import (
    Store,
    StoredVerdict,
    Writer,
    count_problem,
    open_store,
    read_outcomes,
    read_values,
    split_keys,
)


def row(number, text="{}"):
    """Return a completion row with its own key."""
    return (number.to_bytes(32, "big"), text, "stop", 0.5, 10, None, 7, None)


def test_completions_come_back_by_key(store):
    """Unknown keys are simply not there; more keys than one SELECT takes work."""
    store.save([row(number) for number in range(1200)], [])
    keys = [number.to_bytes(32, "big") for number in range(1300)]
    found = store.find_completions(keys)
    assert list(found) and len(found) == 1200
    assert found[keys[7]] == Completion("{}", "stop", "", 0.5, 10, None, 7)


def test_the_first_answer_stays(store):
    """Content-addressed: what a run was scored on cannot change under it."""
    store.save([row(1, "first")], [])
    store.save([row(1, "second")], [])
    key = (1).to_bytes(32, "big")
    assert store.find_completions([key])[key].text == "first"


def test_only_the_owner_can_read_the_file(store):
    """It holds quotes of clinical text."""
    store.save([row(1)], [])
    for name in os.listdir(store.path.parent):
        mode = stat.S_IMODE((store.path.parent / name).stat().st_mode)
        assert mode & 0o077 == 0, name
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "content", [b"not a database, not at all " * 40, b"\x00" * 9000]
)
def test_a_file_that_is_no_store_says_how_to_go_on(tmp_path, content):
    """Nothing is deleted; the message tells what is and is not in the file."""
    path = tmp_path / "store.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"damaged.*Move it aside.*verdicts"):
        Store(path)
    assert path.read_bytes() == content


def test_a_store_damaged_inside_is_an_error_not_an_answer(store, kit):
    """Pages overwritten by something else: whatever is read fails loudly."""
    items = kit.make_items(*(f"text {number}" for number in range(500)))
    summary = kit.run_items(store, kit.TableEngine(), items)
    store.close()
    size = store.path.stat().st_size
    with store.path.open("r+b") as stream:
        stream.seek(4096)
        stream.write(b"\xff" * (size - 4096))
    with pytest.raises(StoreError, match=r"damaged.*Move it aside"), ExitStack() as end:
        again = Store(store.path)
        end.callback(again.close)
        list(read_outcomes(again, summary.run_id))


def test_a_changed_row_is_reported_with_its_case(store, kit):
    """Someone edited the file with another program."""
    summary = kit.run_items(store, kit.TableEngine(), kit.make_items("a"))
    other = sqlite3.connect(store.path)
    other.execute("UPDATE outcomes SET fields = '{broken'")
    other.commit()
    other.close()
    with pytest.raises(StoreError, match="outcome of case c0 cannot be read"):
        list(read_outcomes(store, summary.run_id))


def test_a_newer_store_is_left_alone(store):
    """An older ranloop must not migrate backwards."""
    store.close()
    other = sqlite3.connect(store.path)
    other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(StoreError, match=r"newer ranloop.*Update"):
        Store(store.path)


def test_an_empty_file_becomes_a_store(tmp_path):
    """A kill between creating the file and its tables leaves an empty file."""
    (tmp_path / "store.db").touch()
    connection = connect(tmp_path / "store.db")
    assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    connection.close()


def test_a_full_disk_says_what_to_do_and_keeps_what_was_stored(store, kit):
    """The run stops; after space was freed the same command goes on."""
    kit.run_items(store, kit.TableEngine(), kit.make_items("kept"))
    connection = store._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 8}")
    items = kit.make_items("kept", *(f"text {n} " * 40 for n in range(600)))
    with pytest.raises(StoreError, match=r"disk is full.*Free some space"):
        kit.run_items(store, kit.TableEngine(), items)
    assert store.count_completions() >= 1
    connection.execute(f"PRAGMA max_page_count = {pages + 10_000}")
    summary = kit.run_items(store, kit.TableEngine(), items)
    assert summary.answered == 601
    assert summary.cached >= 1


def test_a_folder_that_cannot_be_made_is_a_write_error(tmp_path):
    """A file stands where the private folder should be."""
    (tmp_path / "private").write_text("")
    with pytest.raises(WorkspaceError, match="cannot write"):
        Store(tmp_path / "private" / "store.db")


def test_a_store_that_cannot_be_opened_says_so(tmp_path):
    """Here the path is a folder; permissions give the same message."""
    (tmp_path / "store.db").mkdir()
    with pytest.raises(StoreError, match=r"cannot .*Use a workspace you can"):
        Store(tmp_path / "store.db")


def test_a_read_only_store_says_so(store):
    """The file system turned read-only while the run went on."""
    store._connection.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError, match="read-only"):
        store.save([row(1)], [])


@pytest.mark.parametrize("replaced", [False, True])
def test_a_store_that_was_taken_away_is_not_written_on(store, replaced):
    """SQLite would go on in a file without a name, and the run would look complete."""
    store.save([row(1)], [])
    os.rename(store.path, store.path.with_suffix(".aside"))
    if replaced:
        store.path.write_bytes(b"")
    with pytest.raises(StoreError, match=r"removed or replaced.*run the same command"):
        store.save([row(2)], [])


def test_a_store_held_by_another_process_is_reported(store):
    """After the wait, with the advice to wait longer."""
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store._connection.execute("PRAGMA busy_timeout = 50")
    with pytest.raises(StoreError, match="held by another process"):
        store.save([row(1)], [])
    other.execute("ROLLBACK")
    other.close()
    store.save([row(1)], [])
    assert store.count_completions() == 1


def test_a_failed_transaction_changes_nothing(store):
    """Completions and outcomes of one save come together or not at all."""
    with pytest.raises(StoreError):
        store.save([row(1)], [(1, 0, None, "answered", "{}", "", "", b"")])
    assert store.count_completions() == 0


def _fill(path, start):
    store = Store(path)
    for number in range(start, start + 200):
        store.save([row(number)], [])
    store.close()


def test_two_processes_can_write_at_once(tmp_path):
    """Both keep all their answers, also while the file is being made."""
    path = tmp_path / "store.db"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_fill, args=(path, n * 1000)) for n in (1, 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    store = Store(path)
    assert store.count_completions() == 400
    store.close()


def test_unknown_runs_are_named(store):
    """The way out is the command that makes one."""
    with pytest.raises(DataError, match=r"no run 20990101-000000-ffffff.*ranloop run"):
        list(read_outcomes(store, "20990101-000000-ffffff"))


def test_verdicts_are_kept_in_order_and_never_overwritten(store):
    """They are the one thing in the store that cannot be made again."""
    first = StoredVerdict("v1", "2026-11-21T00:00:00Z", "dr. a", {"label": "edema"})
    store.add_verdicts(
        [first, StoredVerdict("v0", "2026-11-22T00:00:00Z", "dr. b", {})]
    )
    store.add_verdicts([StoredVerdict("v1", "2026-11-23T00:00:00Z", "dr. c", {"x": 1})])
    verdicts = store.list_verdicts()
    assert [verdict.id for verdict in verdicts] == ["v1", "v0"]
    assert verdicts[0] == first


def test_the_writer_commits_although_no_next_answer_comes(store):
    """While an engine thinks for minutes, what it answered before is safe."""
    other = sqlite3.connect(store.path)
    with Writer(store) as writer:
        writer.add_completion(row(1))
        for _ in range(200):
            if other.execute("SELECT count(*) FROM completions").fetchone() == (1,):
                break
            writer._stop.wait(0.02)
        else:
            pytest.fail("the row was not committed")
    other.close()


def test_a_failure_while_waiting_reaches_the_run(store):
    """The watching thread cannot raise into the run; the next row does."""
    with pytest.raises(StoreError, match="read-only"), Writer(store) as writer:
        store._connection.execute("PRAGMA query_only = ON")
        writer.add_completion(row(1))
        writer._thread.join(10)
        writer.flush()


def test_open_store_makes_the_private_folder(workspace):
    """Git must ignore it from the first file on."""
    with open_store(workspace) as store:
        assert store.path == workspace.store
    assert (workspace.private / ".gitignore").read_text() == "*\n"


def test_the_tables_are_plain(store, kit):
    """Anyone can read the store with sqlite3 and the schema's comments."""
    kit.run_items(store, kit.TableEngine(), kit.make_items("a"))
    other = sqlite3.connect(store.path)
    (fields,) = other.execute("SELECT fields FROM outcomes").fetchone()
    (schema,) = other.execute(
        "SELECT sql FROM sqlite_master WHERE name = 'completions'"
    ).fetchone()
    other.close()
    assert json.loads(fields) == {"edema": "absent", "fracture": "absent"}
    assert "-- what an engine answered" in schema


def test_a_store_of_the_first_version_is_brought_forward(tmp_path):
    """What was answered before the server's cache was counted stays."""
    path = tmp_path / "private" / "store.db"
    path.parent.mkdir()
    with sqlite3.connect(path) as old:
        for statement in MIGRATIONS[0].split(";\n"):
            old.execute(statement)
        old.execute(
            "INSERT INTO completions (key, text, finish_reason, latency_s) "
            "VALUES (?, '{}', 'stop', 0.5)",
            [(1).to_bytes(32, "big")],
        )
        old.execute("PRAGMA user_version = 1")
    old.close()
    opened = Store(path)
    key = (1).to_bytes(32, "big")
    assert opened.find_completions([key]) == {key: Completion("{}", "stop", "", 0.5)}
    opened.save([row(2)], [])
    opened.close()


def test_opening_the_store_again_keeps_the_locks_of_this_process(workspace):
    """A server holds the store open; a run in it opens the store once more.

    Any file handle on the same file that is closed drops all locks of the process: the
    next command would take the journal for abandoned and delete it under the server.
    """
    with open_store(workspace) as held:
        held.save([row(1)], [])
        with open_store(workspace) as again:
            again.count_completions()
        code = (
            "import sys; from pathlib import Path; "
            "from loop.run.database import connect; connect(Path(sys.argv[1])).close()"
        )
        subprocess.run([sys.executable, "-c", code, str(workspace.store)], check=True)
        assert workspace.store.with_name("store.db-wal").exists()
        held.save([row(2)], [])
    with open_store(workspace) as later:
        assert later.count_completions() == 2


def test_a_store_without_plans_and_comments_is_brought_forward(tmp_path):
    """Readings that were begun before stay, and new tables are there."""
    path = tmp_path / "private" / "store.db"
    path.parent.mkdir()
    with sqlite3.connect(path) as old:
        for script in MIGRATIONS[:3]:
            for statement in script.split(";\n"):
                old.execute(statement)
        old.execute(
            "INSERT INTO readings (cohort, reader, case_id, label, value, created) "
            "VALUES ('c@1', 'A', 'c1', 'edema', 'present', '2026-01-05T09:00:00Z')"
        )
        old.execute("PRAGMA user_version = 3")
    old.close()
    opened = Store(path)
    assert opened.read("SELECT reader, value, guideline FROM readings") == [
        ("A", "present", None)
    ]
    for table in ("reading_plans", "reading_comments"):
        assert opened.read(f"SELECT count(*) FROM {table}") == [(0,)]
    opened.close()


def test_plans_from_before_chances_were_kept_stay(tmp_path):
    """A reader's cases are as they were given; they are of no value sample."""
    path = tmp_path / "private" / "store.db"
    path.parent.mkdir()
    with sqlite3.connect(path) as old:
        for script in MIGRATIONS[:7]:
            for statement in script.split(";\n"):
                old.execute(statement)
        old.execute(
            "INSERT INTO reading_plans (cohort, reader, cases, actor, created) "
            "VALUES ('c@1', 'A', '[\"c1\"]', 'B', '2026-01-05T09:00:00Z')"
        )
        old.execute("PRAGMA user_version = 7")
    old.close()
    opened = Store(path)
    assert opened.read("SELECT reader, cases, chances FROM reading_plans") == [
        ("A", '["c1"]', None)
    ]
    opened.close()


def add_run(store, kit, base="20260101-000000-abcdef", created="2026", **changes):
    """Add a run and return its record."""
    return store.add_run(base, created, "m", kit.make_spec(**changes))


def outcome(run, number, status="answered", value="absent", problem=""):
    """Return the row of the item `number` of `run`."""
    fields = json.dumps({"edema": [value, [[0, 3]]], "fracture": value})
    keys = number.to_bytes(32, "big")
    item = f"c{number:02}"
    return (run.number, number, item, status, fields, '["r"]', problem, keys)


def test_values_of_a_judge_are_read_without_what_it_lists(store, kit):
    """Its words quote reports; a table of values needs only the numbers."""
    run = add_run(store, kit)
    fields = {"omission": Field(2, (), (Entry("edema"),)), "matched": Field(1)}
    row = outcome(run, 0)
    store.save([], [(*row[:4], FieldEncoder().encode(fields), *row[5:])])
    (short,), (whole,) = read_values(store, run), store.read_outcomes(run.id)
    assert short.values == {"omission": 2, "matched": 1}
    assert whole.fields == fields


@pytest.mark.parametrize("size", [0, 1, 6, 7, 8])
def test_outcomes_are_read_in_the_order_of_their_items(store, kit, monkeypatch, size):
    """Page by page, of one run alone, whichever way they are asked for."""
    monkeypatch.setattr(store_module, "_PAGE", 3)
    run, other = add_run(store, kit), add_run(store, kit)
    order = sorted(range(size), key=lambda number: (number * 5) % 7)
    rows = [
        outcome(run, number, "unparsed" if number % 3 == 1 else "answered", problem="p")
        for number in order
    ]
    strange = [outcome(other, number, value="present") for number in (1, 50)]
    store.save([], [*rows, *strange])
    names = [f"c{number:02}" for number in range(size)]
    read = list(store.read_outcomes(run.id))
    assert [one.item_id for one in read] == names
    keys = list(store.read_keys(run.id))
    assert keys == [(names[n], n.to_bytes(32, "big")) for n in range(size)]
    assert [store.find_outcome(run, name).outcome for name in names] == read
    assert [store.find_outcome(run, name).keys for name in names] == [
        k for _, k in keys
    ]
    assert store.find_outcome(run, "c50") is None
    values = list(read_values(store, run))
    assert [one.item_id for one in values] == names
    assert [one.status for one in values] == [one.status for one in read]
    for short, whole in zip(values, read, strict=True):
        assert short.values == {key: one.value for key, one in whole.fields.items()}
    missing = [(n, Status.UNPARSED, "p") for n in names[1::3]]
    assert store.list_unanswered(run) == missing


def test_an_outcome_is_replaced_and_no_other(store, kit):
    """A run that is resumed writes an item's outcome again."""
    run = add_run(store, kit)
    store.save([], [outcome(run, 1), outcome(run, 2)])
    store.save([], [outcome(run, 2, "engine_failed", problem="timeout")])
    first, second = store.read_outcomes(run.id)
    assert (first.status, second.status) == (Status.ANSWERED, Status.ENGINE_FAILED)
    assert second.problem == "timeout"


@given(st.integers(0, 700))
def test_any_number_of_rows_is_stored(number):
    """Few statements serve all of them."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a, b)")
    rows = [(one, str(one)) for one in range(number)]
    store_module._insert(connection, "INSERT INTO t", rows)
    assert connection.execute("SELECT a, b FROM t ORDER BY a").fetchall() == rows
    connection.close()


def test_runs_of_one_second_have_ids_of_their_own(store, kit):
    """Numbered from the second one on; of one time the later stands first."""
    made = [add_run(store, kit).id for _ in range(3)]
    base = "20260101-000000-abcdef"
    assert made == [base, f"{base}-2", f"{base}-3"]
    older = add_run(store, kit, "20250101-000000-abcdef", "2025").id
    assert [one.id for one in store.find_runs()] == [*made[::-1], older]


def test_runs_are_found_by_all_that_is_given(store, kit):
    """Each narrows what the others leave."""
    first, second = add_run(store, kit), add_run(store, kit, "b", "2027")
    third = store.add_run("bc", "2028", "other", kit.make_spec(), "Dr A")
    store.finish_run("b", "2027", {"items": 3})
    cases = [
        ({}, [third, second, first]),
        ({"finished": True}, [second]),
        ({"finished": False}, [third, first]),
        ({"ids": []}, []),
        ({"ids": [first.id, "b", "nowhere"]}, [second, first]),
        ({"prefix": "b"}, [third, second]),
        ({"prefix": "_"}, []),
        ({"match": "m"}, [second, first]),
        ({"match": "m", "finished": False}, [first]),
        ({"prefix": "b", "match": "other", "ids": ["b", "bc"]}, [third]),
    ]
    for asked, runs in cases:
        found = [one.id for one in store.find_runs(**asked)]
        assert found == [one.id for one in runs], asked
    (done,) = store.find_runs(finished=True)
    assert (done.finished, done.counts, done.actor) == ("2027", {"items": 3}, None)
    assert (third.actor, third.counts, third.finished) == ("Dr A", {}, None)


@pytest.mark.parametrize(
    ("limit", "counts", "part"),
    [
        (None, {"items": 3}, None),
        (3, {}, 3),
        (3, {"items": 3}, 3),
        (3, {"items": 3, "answered": 1, "unparsed": 1, "failed": 1}, 3),
        (3, {"items": 2, "asked": 9}, None),
        (1, {"items": 0}, 1),
    ],
)
def test_a_limit_makes_a_part_where_it_left_cases_out(store, kit, limit, counts, part):
    """A cohort with fewer cases was asked whole."""
    run = add_run(store, kit, limit=limit)
    store.finish_run(run.id, "2027", counts)
    (record,) = store.find_runs()
    assert record.part == part


def test_verdicts_of_one_time_are_in_the_order_of_their_ids(store):
    """So that everybody sees the same order."""
    store.add_verdicts([StoredVerdict(name, "2026", "a", {}) for name in "bca"])
    assert [one.id for one in store.list_verdicts()] == ["a", "b", "c"]


@pytest.mark.parametrize("fields", ["[", "[]", '{"a": []}', "null"])
def test_a_changed_answer_is_no_value(store, kit, fields):
    """Its case and run are named, however it is read."""
    run = add_run(store, kit)
    row = [*outcome(run, 1)]
    row[4] = fields
    store.save([], [tuple(row)])
    with pytest.raises(StoreError, match=f"case c01 in run {run.id} cannot be read"):
        list(read_values(store, run))
    with pytest.raises(StoreError, match="outcome of case c01 cannot be read"):
        list(store.read_outcomes(run.id))


@pytest.mark.parametrize("spec", ["[", "{}", '{"other": 1}', "[1]"])
def test_a_changed_run_is_named(store, kit, spec):
    """It keeps nobody from the others, once it is gone."""
    run = add_run(store, kit)
    with store.writing() as connection:
        connection.execute("UPDATE runs SET spec = ?", [spec])
    with pytest.raises(StoreError, match=f"run {run.id} cannot be read; something"):
        store.find_runs()


def test_a_writer_that_cannot_end_well_does_not_hide_why(store):
    """What went wrong first is what is told."""
    with pytest.raises(ValueError, match="first"), Writer(store) as writer:
        store._connection.execute("PRAGMA query_only = ON")
        writer.add_completion(row(1))
        raise ValueError("first")
    with pytest.raises(StoreError), Writer(store) as writer:
        writer.add_completion(row(1))


def test_rows_that_could_not_be_written_are_kept_for_the_next_attempt(store):
    """Those taken meanwhile as well; written once, they are not written again."""
    writer = Writer(store)
    writer.add_completion(row(1))
    store._connection.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError):
        writer.flush()
    writer.add_completion(row(2))
    assert store.count_completions() == 0
    store._connection.execute("PRAGMA query_only = OFF")
    writer.flush()
    assert store.count_completions() == 2
    assert not writer.due()
    saved = []
    store.save = lambda *rows: saved.append(rows)
    writer.flush()
    assert saved == []


def test_items_are_listed_from_a_place_on(store, kit):
    """So many at most, of one run alone."""
    run, other = add_run(store, kit), add_run(store, kit)
    rows = [outcome(run, n, "unparsed" if n == 3 else "answered") for n in range(5)]
    store.save([], [*rows, outcome(other, 2, "engine_failed")])
    answered = Status.ANSWERED
    assert store.list_items(run, 2, 2) == [("c02", answered), ("c03", Status.UNPARSED)]
    assert store.list_items(run, 4, 9) == [("c04", answered)]
    assert store.list_items(run, 0, 1) == [("c00", answered)]
    assert store.list_items(run, 5, 9) == store.list_items(run, 0, 0) == []


def test_items_with_a_problem_are_counted_by_its_words(store, kit):
    """Of one run alone; a sign of a pattern is a sign."""
    run, other = add_run(store, kit), add_run(store, kit)
    problems = ["raise max_tokens", "", "100% lost", "please raise max_tokens now"]
    rows = [outcome(run, n, problem=said) for n, said in enumerate(problems)]
    store.save([], [*rows, outcome(other, 0, problem="raise max_tokens")])
    for words, number in (("raise max_tokens", 2), ("0% l", 1), ("%", 1), ("x_y", 0)):
        assert count_problem(store, run, words) == number


def test_keys_are_taken_apart():
    """Thirty-two bytes each, in their order."""
    one, two = bytes(range(32)), bytes(range(32, 64))
    assert split_keys(one + two) == [one, two]
    assert split_keys(b"") == []
