"""What may go, and what never goes."""

import fcntl
import json
import os
import tempfile
import time

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.errors import ConflictError, WorkspaceError
from loop.core.files import locked
from loop.core.heads import head_record
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.release.state import (
    PURPOSES,
    StatePart,
    list_demos,
    list_left,
    list_state,
    remove,
)
from loop.review.start import start_workspace
from loop.run.prune import ANSWER_FOLDERS, prune_completions
from loop.run.store import Store, open_store
from loop.run.task import run_prompt

WHO = Actor(name="Dr A")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a workspace with a cohort and a run, and a place of its own for demos."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    made = start_workspace(tmp_path / "ws", WHO).workspace
    cases = tmp_path / "cases.csv"
    cases.write_text("case_id,text,Edema\na,Wet lungs.,present\nb,Normal.,absent\n")
    import_cohort(made, cases, ImportOptions(name="dev", role="dev"), actor=WHO)
    run_prompt(made, "extractor", "dev")
    return made


def call(place, *arguments):
    """Run the verb and return what it says as JSON."""
    done = CliRunner().invoke(
        app, ["clean", *arguments, "--json", "-w", str(place.root)]
    )
    assert done.exit_code == 0, done.exception
    return json.loads(done.stdout)


def paths(found, place):
    """Return the paths that were named, from the workspace on."""
    return {os.path.relpath(one["path"], place.root) for one in found["files"]}


def age(path, days=2.0):
    """Make a file or folder, and all in it, as old."""
    when = time.time() - days * 24 * 3600
    for one in (path, *(path.rglob("*") if path.is_dir() else ())):
        os.utime(one, (when, when))


LEFT = (
    "trials/ab12",
    "uploads/s1/f",
    "freezing/x",
    ".store.backup-ab12cd34",
    ".tables.abcdefgh",
    "cases/.dev.jsonl.abc_1234",
)


def leave(place):
    """Leave what killed commands leave, and return the folders of it."""
    for name in LEFT:
        path = place.private / name
        path.mkdir(parents=True)
        (path / "file").write_text("x" * 10)
    (place.private / "serve").mkdir()
    (place.private / "serve" / "m.log").write_text("x" * 10)


def test_what_killed_commands_left_is_shown_and_then_removed(place):
    """A day old, held by nobody; without --yes nothing is touched."""
    before = set(place.private.rglob("*"))
    leave(place)
    assert call(place)["files"] == []
    for name in (*LEFT, "serve/m.log", "uploads/s1"):
        age(place.private / name)
    shown = call(place)
    want = {f".ranloop/{name.replace('s1/f', 's1')}" for name in LEFT}
    assert paths(shown, place) == want | {".ranloop/serve/m.log"}
    assert {one["bytes"] for one in shown["files"]} == {10}
    assert shown["removed"] is False
    assert (place.private / "trials/ab12/file").exists()
    assert call(place, "--yes")["removed"] is True
    rest = set(place.private.rglob("*")) - before
    assert {path.name for path in rest} == {"trials", "uploads", "freezing", "serve"}
    assert before <= set(place.private.rglob("*"))


def test_what_somebody_works_on_stays(place):
    """A folder whose lock is held, or in which something is new."""
    leave(place)
    for name in (*LEFT, "serve/m.log", "uploads/s1"):
        age(place.private / name)
    held = os.open(place.private / ".store.backup-ab12cd34", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    (place.private / "uploads/s1/f/new").write_text("x")
    server = place.private / "serve" / "7.json"
    with (
        locked(place.private / "trials" / ".ab12.lock"),
        locked(server),
    ):
        found = paths(call(place), place)
    os.close(held)
    assert ".ranloop/serve/m.log" not in found
    assert ".ranloop/serve/m.log" in paths(call(place), place)
    assert ".ranloop/trials/ab12" not in found
    assert ".ranloop/.store.backup-ab12cd34" not in found
    assert ".ranloop/uploads/s1" not in found
    assert ".ranloop/.tables.abcdefgh" in found


def test_nothing_of_a_person_is_ever_removed(place):
    """Every option together leaves texts, runs, verdicts, drafts, users and keys."""
    for name in ("drafts/d", "editing/e", "keys/k", "revising/r", "openings/o"):
        (place.private / name).parent.mkdir(exist_ok=True)
        (place.private / name).write_text("x")
    (place.private / "users.yaml").write_text("users: {}\n")
    age(place.private, 400)
    before = {
        path: path.read_bytes()
        for path in place.root.rglob("*")
        if path.is_file() and ".db" not in path.name
    }
    call(place, "--completions", "--replaced", "--demos", "--head", "--yes")
    for path, raw in before.items():
        assert path.read_bytes() == raw
    with open_store(place) as store:
        [run] = store.find_runs()
        assert [one.status.value for one in store.read_outcomes(run.id)] == [
            "answered",
            "answered",
        ]


def test_replaced_cohorts_go_only_when_they_are_asked_for(place):
    """They hold texts and votes."""
    old = place.private / "replaced" / "dev-2026"
    old.mkdir(parents=True)
    age(old, 400)
    assert call(place, "--yes")["files"] == []
    assert paths(call(place, "--replaced", "--yes"), place) == {
        ".ranloop/replaced/dev-2026"
    }
    assert not old.exists()


def test_the_remembered_head_goes_only_when_it_is_asked_for(place):
    """It is what notices a rollback."""
    record = head_record(place)
    assert record is not None and record.exists()
    assert call(place, "--yes")["files"] == []
    call(place, "--head", "--yes")
    assert not record.exists()


def test_demos_are_ones_own_and_no_links(place, tmp_path):
    """Others write into the folder of temporary files, too."""
    demo = tmp_path / "tmp" / "ranloop-demo-abc"
    (demo / "workspace").mkdir(parents=True)
    (demo / "workspace" / "f").write_text("x" * 7)
    target = tmp_path / "precious"
    target.mkdir()
    (tmp_path / "tmp" / "ranloop-demo-link").symlink_to(target)
    (tmp_path / "tmp" / "ranloop-demo-file").write_text("x")
    assert [(one.path, one.size) for one in list_demos()] == [(demo, 7)]
    call(place, "--demos", "--yes")
    assert not demo.exists()
    assert target.exists()


def test_without_a_workspace_only_demos_can_go(tmp_path, monkeypatch):
    """And it says so."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "ranloop-demo-x").mkdir()
    refused = CliRunner().invoke(app, ["clean"])
    assert isinstance(refused.exception, WorkspaceError)
    assert "--demos" in str(refused.exception)
    shown = CliRunner().invoke(app, ["clean", "--demos", "--json"])
    assert json.loads(shown.stdout)["completions"] == {"answers": 0, "bytes": 0}
    shown = CliRunner().invoke(app, ["clean", "--demos"])
    assert "ranloop-demo-x  (a demo)" in shown.stdout
    assert "would be removed: run it again with --yes" in shown.stdout
    CliRunner().invoke(app, ["clean", "--demos", "--yes"])
    assert "nothing to remove" in CliRunner().invoke(app, ["clean", "--demos"]).stdout


def completions(path):
    """Return the keys of the stored answers."""
    store = Store(path)
    rows = store.read("SELECT key FROM completions")
    store.close()
    return {key for (key,) in rows}


def add_answers(path, count):
    """Store answers that no run rests on."""
    path.parent.mkdir(exist_ok=True)
    store = Store(path)
    rows = [
        (b"%032d" % n, "ä" * 5, "stop", 0.1, 1, 1, None, None) for n in range(count)
    ]
    store.save(rows, [])
    store.close()


def test_answers_that_no_run_rests_on_can_go(place):
    """Those of runs stay, and a replay of them still works."""
    kept = completions(place.store)
    assert len(kept) == 2
    score = place.private / "score" / "store.db"
    add_answers(place.store, 700)
    add_answers(score, 3)
    assert prune_completions(place, dry_run=True) == (703, 7030)
    assert len(completions(place.store)) == 702
    shown = call(place, "--completions")
    assert shown["completions"] == {"answers": 703, "bytes": 7030}
    assert len(completions(place.store)) == 702
    before = place.store.stat().st_size
    call(place, "--completions", "--yes")
    assert completions(place.store) == kept
    assert completions(score) == set()
    assert place.store.stat().st_size <= before
    assert prune_completions(place) == (0, 0)
    assert run_prompt(place, "extractor", "dev", engine="replay:latest").answered == 2


def test_answers_of_a_run_that_is_under_way_are_not_touched(place):
    """They come before the outcomes that rest on them."""
    add_answers(place.store, 3)
    with open_store(place) as store:
        [run] = store.find_runs()
        with store.writing() as connection:
            connection.execute("UPDATE runs SET finished = NULL")
    lock = place.private / "runs" / run.id / "lock"
    with locked(lock), pytest.raises(ConflictError, match=f"run {run.id} is under way"):
        prune_completions(place)
    assert len(completions(place.store)) == 5
    assert prune_completions(place).answers == 3


def test_a_run_waits_while_answers_are_removed(place, monkeypatch):
    """Otherwise it could rest on an answer that is just going."""
    from loop.run import execute

    asked = []

    class Stop(Exception):
        pass

    def starting(folder):
        asked.append(folder)
        raise Stop

    monkeypatch.setattr(execute, "starting", starting)
    with pytest.raises(Stop):
        run_prompt(place, "extractor", "dev")
    assert asked == [place.private]


def test_every_private_file_has_a_purpose(place):
    """What a workspace keeps is told, and nothing is left out."""
    parts = {part.path.name: part for part in list_state(place)}
    here = {path.name for path in place.private.iterdir()} - {".gitignore"}
    assert {name.partition(".db")[0] for name in here} <= {
        name.partition(".db")[0] for name in PURPOSES
    }
    assert set(ANSWER_FOLDERS) <= PURPOSES.keys()
    assert parts["cases"].size > 0
    assert parts["store.db"].size >= place.store.stat().st_size
    assert any(not one.path.is_relative_to(place.root) for one in parts.values())
    assert list_state(WorkspacePaths(place.root / "labels")) == []


def leave_one(place, name):
    """Leave a folder with a file that is a minute newer, and return when that was."""
    path = place.private / name
    path.mkdir(parents=True)
    (path / "file").write_text("x" * 10)
    os.utime(path / "file", (1_000_060, 1_000_060))
    os.utime(path, (1_000_000, 1_000_000))
    return 1_000_060


def test_a_day_after_its_newest_file_something_is_left(tmp_path):
    """Not a second before."""
    place = WorkspacePaths(tmp_path)
    newest = leave_one(place, "trials/ab12")
    for seconds, left in ((-1, 0), (1, 1)):
        found = list_left(place, lambda now=newest + 86_400 + seconds: now)
        assert [(one.path.name, one.size) for one in found] == [("ab12", 10)] * left


@pytest.mark.parametrize(
    ("name", "left"),
    [
        (".tables.abcd_123", True),
        (".tables.backup-abcd_123", True),
        (".tables.abcd_12", False),
        (".tables.abcd_1234", False),
        (".tables.ABCD_123", False),
        ("tables.abcd_123", False),
        (".abcd_123", False),
        ("cases/.dev.jsonl.abcd_123", True),
    ],
)
def test_only_names_of_what_was_to_be_moved_are_left(tmp_path, name, left):
    """Anything else in a private folder is somebody's."""
    place = WorkspacePaths(tmp_path)
    leave_one(place, name)
    assert [one.path.name for one in list_left(place)] == (
        [name.rpartition("/")[2]] if left else []
    )


def test_a_link_is_removed_and_not_what_it_leads_to(tmp_path):
    """Nor is it an error that something is gone already."""
    target, link = tmp_path / "precious", tmp_path / "link"
    target.mkdir()
    link.symlink_to(target)
    parts = [StatePart(link, 3, ""), StatePart(tmp_path / "gone", 4, "")]
    assert remove(parts) == 7
    assert target.exists() and not link.is_symlink()
