"""A workspace in one encrypted file, and back on an empty machine."""

import hashlib
import json
import os
import secrets
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from typer.testing import CliRunner

from loop.cli.console import megabytes
from loop.cli.main import app
from loop.core.errors import ConflictError, DataError, StoreError
from loop.core.heads import find_rollback
from loop.core.ledger import Actor, Event, append_event
from loop.core.paths import WorkspacePaths
from loop.core.people.passwords import Cost
from loop.labels.cohort import texts_path
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.labels.sealing import open_key
from loop.release import backup
from loop.release.audit.audit import audit_workspace
from loop.release.backup import BackedUp, restore_backup, write_backup
from loop.release.keys import make_key, signer_for
from loop.review.start import start_workspace
from loop.run.store import open_store
from loop.run.task import run_prompt

WORDS = "five quiet wards at night"
COST = backup._COST
WHO = Actor(name="Dr A")


@pytest.fixture(autouse=True)
def cheap(monkeypatch):
    """Let a passphrase cost nothing; what it costs is not tested here."""
    monkeypatch.setattr(backup, "_COST", Cost(n=2**4, r=8, p=1))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a workspace with a text, a run, and keys of a person and of the vault."""
    root = tmp_path_factory.mktemp("backup") / "ws"
    place = start_workspace(root, WHO).workspace
    cases = root.parent / "cases.csv"
    cases.write_text("case_id,text,Edema\na,Wet secret lungs.,present\n")
    import_cohort(place, cases, ImportOptions(name="dev", role="dev"), actor=WHO)
    run_prompt(place, "extractor", "dev")
    make_key(place, "Dr A", "approver", WHO)
    open_key(place)
    return place


@pytest.fixture
def file(made, tmp_path):
    """Return a backup of it."""
    write_backup(made, tmp_path / "b.ranloop", WORDS)
    return tmp_path / "b.ranloop"


def read_all(root):
    """Return the files of a workspace that a backup has, but for stores."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
        and not {"locks", "lock"} & set(path.relative_to(root).parts)
        and ".db" not in path.name
    }


def test_an_empty_machine_gets_a_workspace_that_works(made, file, tmp_path):
    """Texts, answers and keys are there, the audit holds, and work goes on."""
    restored = restore_backup(file, tmp_path / "new" / "ws", WORDS)
    place = WorkspacePaths(tmp_path / "new" / "ws")
    assert read_all(place.root) == read_all(made.root)
    assert restored.files == len(read_all(made.root)) + 1
    assert "Wet secret lungs." in texts_path(place, "dev").read_text()
    with open_store(place) as store, open_store(made) as first:
        assert store.find_runs()[0].id == first.find_runs()[0].id
    assert audit_workspace(place).holds
    assert signer_for(place, "Dr A").keyid == signer_for(made, "Dr A").keyid
    assert run_prompt(place, "extractor", "dev").answered == 1


def test_what_is_private_stays_private(file, tmp_path):
    """0600 and 0700, whatever the umask; and nothing of a text is in the file."""
    before = os.umask(0)
    try:
        restore_backup(file, tmp_path / "ws", WORDS)
    finally:
        os.umask(before)
    private = tmp_path / "ws" / ".ranloop"
    for path in (file, private, *private.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o600 if path.is_file() else 0o700), path
    for name, expected in (("v1", 0o777), ("v1/prompt.yaml", 0o666)):
        path = tmp_path / "ws" / "prompts" / "extractor" / name
        assert stat.S_IMODE(path.stat().st_mode) == expected
    raw = file.read_bytes()
    for word in (b"secret", b"PRIVATE KEY", b"taxonomy", b"SQLite"):
        assert word not in raw


def test_a_wrong_passphrase_is_told_from_a_damaged_file(file, tmp_path):
    """Each has its own way on."""
    with pytest.raises(DataError, match="the passphrase does not open"):
        restore_backup(file, tmp_path / "ws", WORDS + "s")
    raw = file.read_bytes()
    for damaged in (
        raw[:20],
        raw[:60],
        raw[:-1],
        raw + b"x",
        flipped(raw, 20),
        flipped(raw, 90),
        flipped(raw, 200),
        flipped(raw, len(raw) - 3),
    ):
        file.write_bytes(damaged)
        with pytest.raises(DataError, match="is damaged or cut off"):
            restore_backup(file, tmp_path / "ws", WORDS)
    for other in (b"", b"ranloop backup 2\n" + raw[17:], b"PK\x03\x04"):
        file.write_bytes(other)
        with pytest.raises(DataError, match="is no backup that this ranloop reads"):
            restore_backup(file, tmp_path / "ws", WORDS)
    with pytest.raises(DataError, match="Check the name"):
        restore_backup(tmp_path / "none", tmp_path / "ws", WORDS)
    assert [path.name for path in tmp_path.iterdir()] == ["b.ranloop"]


def flipped(raw, place):
    """Return `raw` with one bit changed."""
    return raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]


def test_parts_cannot_be_left_out_moved_or_cut_off(tmp_path, monkeypatch):
    """Each part knows its number, and whether it is the last."""
    monkeypatch.setattr(backup, "_PART", 64)
    raw = sealed(tmp_path / "b", [line("labels/a", 200), b"y" * 200, END])
    head, size = backup._HEAD, 64 + 16
    parts = [raw[at : at + size] for at in range(head, len(raw), size)]
    assert len(parts) > 3
    for wrong in (
        parts[:-1],
        [*parts[:1], *parts[2:]],
        [parts[1], parts[0], *parts[2:]],
        [*parts, parts[-1]],
    ):
        (tmp_path / "b").write_bytes(raw[:head] + b"".join(wrong))
        with pytest.raises(DataError, match="is damaged or cut off"):
            restore_backup(tmp_path / "b", tmp_path / "ws", WORDS)
    (tmp_path / "b").write_bytes(raw)
    restore_backup(tmp_path / "b", tmp_path / "ws", WORDS)
    assert (tmp_path / "ws/labels/a").read_bytes() == b"y" * 200


def test_a_backup_of_today_is_read_by_later_versions(tmp_path):
    """What the module says of the format, made here by hand: two whole parts."""
    assert Cost(n=131_072, r=8, p=1) == COST
    salt, size = bytes(range(16)), 2_097_101
    made = hashlib.scrypt(WORDS.encode(), salt=salt, n=16, r=8, p=1, dklen=64)
    head = b"ranloop backup 1\n" + salt + hashlib.sha256(made[32:]).digest()
    inside = line("labels/a", size) + b"y" * size + END
    assert len(inside) == 2 * 1_048_576
    cipher = AESGCM(made[:32])
    raw = (
        head
        + hashlib.sha256(head).digest()
        + cipher.encrypt(bytes(12), inside[:1_048_576], None)
        + cipher.encrypt(bytes(10) + b"\1\1", inside[1_048_576:], None)
    )
    (tmp_path / "b").write_bytes(raw)
    found = restore_backup(tmp_path / "b", tmp_path / "ws", WORDS)
    assert found == BackedUp(tmp_path / "ws", 1, size, hashlib.sha256(raw).hexdigest())
    assert (tmp_path / "ws" / "labels" / "a").read_bytes() == b"y" * size
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "token_bytes", lambda count: bytes(range(count)))
        assert sealed(tmp_path / "again", [inside]) == raw


def test_a_backup_has_what_lasts_public_first_and_stores_last(made, tmp_path):
    """The ledger names what a store has, so the store is copied after it."""
    place = WorkspacePaths(shutil.copytree(made.root, tmp_path / "copy"))
    shutil.rmtree(place.private)
    kept = (
        ".gitignore",
        "store.db-old",
        "cases/dev/.gitignore",
        "cases/dev/texts.jsonl",
        "keys/padlock",
        "locksmith/a",
        "cases.db",
        "store.db",
    )
    passing = (
        *("locks/a", "trials/a", "freezing/a", "uploads/a", "serve/a"),
        *("keys/.new", "cases/.dev.import-1/texts.jsonl", "score/lock"),
        *("store.db-wal", "store.db-shm", "store.db-journal", "score/.gitignored"),
    )
    for name in (*kept, *passing):
        path = place.private / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (place.labels / "old.db").write_text("x")
    (place.root / "notes.txt").write_text("x")
    (place.root / ".git").mkdir()
    (place.root / ".git" / "config").write_text("x")
    (place.root / ".gitattributes").write_text("x")
    names = [name for name, _ in backup._find_files(place)]
    public = [name for name in names if not name.startswith(".ranloop/")]
    assert names == [*public, *(f".ranloop/{name}" for name in kept)]
    assert list(dict.fromkeys(name.partition("/")[0] for name in public)) == [
        *("prompts", "labels", "reports", ".gitignore", ".gitattributes")
    ]
    assert "labels/old.db" in public and "prompts/ledger.jsonl" in public
    assert not {"notes.txt", ".git/config"} & set(names)


def test_a_file_that_became_shorter_is_told(tmp_path):
    """Its size stands in the backup already: what follows would be read as its end."""
    path = tmp_path / "a"
    path.write_bytes(b"12345")

    class Shortens:
        """Takes the line with the size, and cuts the file off then."""

        taken = b""

        def write(self, data):
            self.taken += data
            os.truncate(path, 3)

    parts = Shortens()
    with pytest.raises(ConflictError) as caught:
        backup._add(parts, "labels/a", os.open(path, os.O_RDONLY))
    assert str(caught.value) == (
        "labels/a was changed while it was copied. Run the same command again."
    )
    assert parts.taken == line("labels/a", 5) + b"123"


END = b'{"files": 1}\n'


def line(path, size, **more):
    """Return the line that names a file."""
    return json.dumps({"path": path, "size": size, **more}).encode() + b"\n"


def sealed(file, pieces):
    """Write a backup with these bytes inside, under the right passphrase."""
    with open(file, "wb") as stream:
        parts = backup._PartWriter(stream, WORDS)
        for piece in pieces:
            parts.write(piece)
        parts.finish()
    return file.read_bytes()


@pytest.mark.parametrize(
    "name",
    [
        "../outside",
        "labels/../../outside",
        "/outside",
        "labels//a",
        "labels/./a",
        "labels/",
        "loop/cli/main.py",
        ".git/hooks/post-checkout",
        "labels/a\0b",
        "",
        ".",
        "labels",
        ".ranloop",
        ".RANLOOP/keys/x",
    ],
)
def test_a_file_outside_a_workspace_is_refused(tmp_path, name):
    """Whoever knows the passphrase may still be hostile."""
    sealed(tmp_path / "b", [line(name, 1), b"x", END])
    with pytest.raises(DataError, match="no place in a workspace"):
        restore_backup(tmp_path / "b", tmp_path / "ws", WORDS)
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ([line("labels/a", 1), b"x", line("labels/a", 1), b"y", END], "twice"),
        ([line("labels/a", 1), b"x", line("labels/a/b", 1), b"y", END], "no place"),
        ([line("labels/a", 10**15), b"x", END], "damaged"),
        ([line("labels/a", -1), END], "damaged"),
        ([line("labels/a", True), b"x", END], "damaged"),
        ([line("labels/a", "1"), b"x", END], "damaged"),
        ([line(7, 1), b"x", END], "damaged"),
        ([b'{"size": ' + b"9" * 5000 + b"}\n"], "damaged"),
        ([b"[" * 60000 + b"\n"], "damaged"),
        ([b"x" * 70000 + b"\n"], "damaged"),
        ([b"[]\n"], "damaged"),
        ([line("labels/a", 1), b"x"], "damaged"),
        ([line("labels/a", 1), b"x", b'{"files": 2}\n'], "damaged"),
        ([line("labels/a", 1), b"x", END, b"more"], "damaged"),
        ([], "damaged"),
    ],
)
def test_hostile_content_leaves_nothing(tmp_path, pieces, message):
    """Twice the same name, sizes that are none, lines without end."""
    sealed(tmp_path / "b", pieces)
    with pytest.raises(DataError, match=message):
        restore_backup(tmp_path / "b", tmp_path / "ws", WORDS)
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_nothing_that_is_there_is_replaced(made, file, tmp_path):
    """Neither a file, nor a folder with something in it, nor private state."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    with pytest.raises(ConflictError, match="neither empty nor a workspace"):
        restore_backup(file, other, WORDS)
    for half in ("prompts", "labels"):
        (other / half).mkdir()
        with pytest.raises(ConflictError, match="neither empty nor a workspace"):
            restore_backup(file, other, WORDS)
        (other / half).rmdir()
    with pytest.raises(ConflictError, match="neither empty nor a workspace"):
        restore_backup(file, other / "notes.txt", WORDS)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConflictError, match="empty has no public part"):
        restore_backup(file, tmp_path / "empty", WORDS, private_only=True)
    restore_backup(file, tmp_path / "empty", WORDS)
    assert read_all(tmp_path / "empty") == read_all(made.root)
    before = read_all(made.root)
    with pytest.raises(ConflictError, match="has private state already"):
        restore_backup(file, made.root, WORDS)
    with pytest.raises(ConflictError, match="no public part"):
        restore_backup(file, tmp_path / "none", WORDS, private_only=True)
    with pytest.raises(ConflictError, match="a backup is never replaced"):
        write_backup(made, file, WORDS)
    assert read_all(made.root) == before
    assert (other / "notes.txt").read_text() == "mine"


def test_a_clone_gets_what_it_lacks(made, file, tmp_path):
    """Public files must be the same, unless only the private part is asked for."""
    clone = tmp_path / "clone"
    shutil.copytree(made.root, clone, ignore=shutil.ignore_patterns(".ranloop"))
    (clone / "labels" / "protocol.yaml").unlink()
    ledger = clone / "prompts" / "ledger.jsonl"
    kept = ledger.read_bytes()
    ledger.write_bytes(kept + b"{}\n")
    with pytest.raises(ConflictError, match=r"other files .*: prompts/ledger\.jsonl\."):
        restore_backup(file, clone, WORDS)
    assert not (clone / ".ranloop").exists()
    assert not (clone / "labels" / "protocol.yaml").exists()
    found = restore_backup(file, clone, WORDS, private_only=True)
    assert ledger.read_bytes() == kept + b"{}\n"
    assert found.files < len(read_all(made.root))
    shutil.rmtree(clone / ".ranloop")
    ledger.write_bytes(kept)
    (clone / ".ranloop" / "locks").mkdir(parents=True)
    restore_backup(file, clone, WORDS)
    assert read_all(clone) == read_all(made.root)


@pytest.mark.parametrize(("number", "more"), [(3, ""), (4, " and 1 more")])
def test_three_files_that_differ_are_named(made, file, tmp_path, number, more):
    """And how many more there are; nothing is changed."""
    clone = tmp_path / "clone"
    shutil.copytree(made.root, clone, ignore=shutil.ignore_patterns(".ranloop"))
    others = sorted((clone / "prompts" / "extractor" / "v1").iterdir())[:number]
    for path in others:
        path.write_text("other")
    names = ", ".join(str(path.relative_to(clone)) for path in others[:3])
    with pytest.raises(ConflictError) as caught:
        restore_backup(file, clone, WORDS)
    assert str(caught.value).startswith(
        f"{clone} has other files than the backup: {names}{more}. Nothing was changed."
    )


def test_what_every_command_leaves_is_no_private_state(made, file, tmp_path):
    """All of it together; anything else beside it is."""
    clone = tmp_path / "clone"
    shutil.copytree(made.root, clone, ignore=shutil.ignore_patterns(".ranloop"))
    private = clone / ".ranloop"
    (private / "locks").mkdir(parents=True)
    for name in (".gitignore", "workspace-id", "config.yaml"):
        (private / name).write_text("x")
    with pytest.raises(ConflictError, match="has private state already"):
        restore_backup(file, clone, WORDS)
    (private / "config.yaml").unlink()
    private.rename(tmp_path / "elsewhere")
    private.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConflictError, match="has private state already"):
        restore_backup(file, clone, WORDS)
    private.unlink()
    (tmp_path / "elsewhere").rename(private)
    restore_backup(file, clone, WORDS)
    assert read_all(clone) == read_all(made.root)


def test_a_link_in_the_place_of_a_public_file_is_another_file(made, file, tmp_path):
    """Also one that leads nowhere: what it stands for is not known."""
    clone = tmp_path / "clone"
    shutil.copytree(made.root, clone, ignore=shutil.ignore_patterns(".ranloop"))
    (clone / "labels" / "taxonomy.yaml").unlink()
    (clone / "labels" / "taxonomy.yaml").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ConflictError, match=r"the backup: labels/taxonomy\.yaml\."):
        restore_backup(file, clone, WORDS)


def test_a_file_without_content_is_a_file(made, tmp_path):
    """It is there again, and the next one whole."""
    copy = WorkspacePaths(shutil.copytree(made.root, tmp_path / "copy"))
    (copy.labels / "a.txt").touch()
    (copy.labels / "b.txt").write_text("b")
    write_backup(copy, tmp_path / "b.ranloop", WORDS)
    restore_backup(tmp_path / "b.ranloop", tmp_path / "again", WORDS)
    assert (tmp_path / "again" / "labels" / "a.txt").read_bytes() == b""
    assert (tmp_path / "again" / "labels" / "b.txt").read_text() == "b"


def test_a_store_is_copied_while_others_write(made, tmp_path):
    """As it was at one moment, whole."""
    stop, number = threading.Event(), 0

    def write():
        nonlocal number
        with open_store(made) as store:
            while not stop.is_set():
                number += 1
                row = (b"%032d" % number, "text", "stop", 0.1, 1, 1, None, None)
                store.save([row], [])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while number < 5:
            time.sleep(0.01)
        least = number - 1
        write_backup(made, tmp_path / "b", WORDS)
    finally:
        stop.set()
        writer.join()
    restore_backup(tmp_path / "b", tmp_path / "ws", WORDS)
    copy = sqlite3.connect(tmp_path / "ws/.ranloop/store.db")
    counted = copy.execute(
        "SELECT count(*) FROM completions WHERE text = 'text'"
    ).fetchone()[0]
    copy.close()
    assert least <= counted <= number


def test_a_damaged_store_is_told_when_it_is_backed_up(made, tmp_path):
    """Not on the day when it is needed."""
    place = WorkspacePaths(tmp_path / "ws")
    shutil.copytree(made.root, place.root)
    for name in ("store.db-wal", "store.db-shm"):
        (place.private / name).unlink(missing_ok=True)
    place.store.write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreError, match="is damaged"):
        write_backup(place, tmp_path / "b", WORDS)
    assert not (tmp_path / "b").exists()


def test_a_link_is_refused(made, tmp_path):
    """A backup that silently lacks a folder would be none."""
    place = WorkspacePaths(tmp_path / "ws")
    shutil.copytree(made.root, place.root)
    for name in ("file", "folder"):
        link = place.labels / name
        link.symlink_to("/etc/passwd" if name == "file" else "/etc")
        with pytest.raises(DataError, match=f"labels/{name} is a link"):
            write_backup(place, tmp_path / "b", WORDS)
        link.unlink()


@pytest.mark.parametrize("function", ["scandir", "open"])
def test_what_cannot_be_read_is_refused(made, tmp_path, monkeypatch, function):
    """A folder that is left out silently is missed on the day it is needed."""
    real, closed = getattr(os, function), made.private / "cases"

    def refuse(path, *arguments, **named):
        if str(path).startswith(str(closed)):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *arguments, **named)

    monkeypatch.setattr(os, function, refuse)
    with pytest.raises(DataError, match=r"cannot read .*/cases.*Permission denied"):
        write_backup(made, tmp_path / "b", WORDS)
    assert list(tmp_path.iterdir()) == []


def test_what_passes_meanwhile_is_left_out(made, tmp_path, monkeypatch):
    """Scoring makes runs and removes them while a backup is made."""
    passing = made.private / "score" / "runs" / "r"
    passing.mkdir(parents=True)
    (passing / "manifest.json").write_text("{}")
    first = backup._open

    def open_late(path):
        if path.parent == passing:
            path.unlink()
        return first(path)

    monkeypatch.setattr(backup, "_open", open_late)
    write_backup(made, tmp_path / "b", WORDS)
    restore_backup(tmp_path / "b", tmp_path / "ws", WORDS)
    assert not (tmp_path / "ws/.ranloop/score/runs/r/manifest.json").exists()
    shutil.rmtree(made.private / "score")


def test_a_passphrase_is_the_same_however_it_is_typed(made, tmp_path):
    """One machine composes an umlaut, and another does not."""
    write_backup(made, tmp_path / "b", "fünf stille Stationen")
    typed = "fu\u0308nf stille Stationen"
    assert restore_backup(tmp_path / "b", tmp_path / "ws", typed).files


def test_prompts_that_change_meanwhile_are_copied_anew(made, tmp_path, monkeypatch):
    """The ledger and what it names belong together."""
    place = WorkspacePaths(tmp_path / "ws")
    shutil.copytree(made.root, place.root)
    written, first = [], backup._write

    def write(*arguments):
        written.append(1)
        done = first(*arguments)
        if len(written) < changes:
            (place.prompts / f"{len(written)}.txt").write_text("new")
        return done

    monkeypatch.setattr(backup, "_write", write)
    changes = 2
    write_backup(place, tmp_path / "b", WORDS)
    assert len(written) == 2
    restore_backup(tmp_path / "b", tmp_path / "new", WORDS)
    assert (tmp_path / "new/prompts/1.txt").exists()
    written.clear()
    changes = 9
    with pytest.raises(ConflictError, match="changed each time"):
        write_backup(place, tmp_path / "c", WORDS)
    assert len(written) == 3
    assert not (tmp_path / "c").exists()


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["write", "restore"])
def test_killed_half_way_nothing_half_is_there(made, file, tmp_path, verb):
    """And the next command removes what is left."""
    target = tmp_path / "target"
    code = f"""
import os, signal
from pathlib import Path
from loop.core.paths import WorkspacePaths
from loop.core.people.passwords import Cost
from loop.release import backup
backup._COST = Cost(n=2**4, r=8, p=1)
backup.move_folder = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
ws, file, target = map(Path, {[str(made.root), str(file), str(target)]})
if {verb == "write"}:
    backup.write_backup(WorkspacePaths(ws), target, {WORDS!r})
else:
    backup.restore_backup(file, target, {WORDS!r})
"""
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not target.exists()
    assert len(list(tmp_path.iterdir())) == 2
    if verb == "write":
        write_backup(made, target, WORDS)
    else:
        restore_backup(file, target, WORDS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.ranloop", "target"]


def test_the_verbs(made, tmp_path, monkeypatch):
    """The passphrase comes from stdin for scripts; a weak one is refused."""
    monkeypatch.setattr(backup, "_COST", Cost(n=2**4, r=8, p=1))
    file = tmp_path / "b"
    command = ["backup", str(file), "--passphrase-stdin", "-w", str(made.root)]
    weak = CliRunner().invoke(app, command, input="short\n")
    assert isinstance(weak.exception, DataError)
    assert "a passphrase has 12 to 128 characters, not 5" in str(weak.exception)
    assert not file.exists()
    done = CliRunner().invoke(app, [*command, "--json"], input=f"{WORDS}\n")
    said = json.loads(done.stdout)
    back = ["restore", str(file), str(tmp_path / "ws"), "--passphrase-stdin", "--json"]
    again = json.loads(CliRunner().invoke(app, back, input=f"{WORDS}\r\n").stdout)
    assert again.pop("workspace") == str(tmp_path / "ws")
    assert said.pop("file") == str(file)
    assert again == said
    other = [command[0], str(tmp_path / "b2"), *command[2:]]
    done = CliRunner().invoke(app, other, input=f"{WORDS}\n")
    digest = hashlib.sha256((tmp_path / "b2").read_bytes()).hexdigest()
    told = f"{said['files']:,} files ({megabytes(said['bytes'])})"
    assert done.stdout == (
        f"{told} of {made.root} are in {tmp_path / 'b2'}\nsha256 {digest}\n"
    )
    target = tmp_path / "again"
    back = ["restore", str(tmp_path / "b2"), str(target), "--passphrase-stdin"]
    assert CliRunner().invoke(app, back, input=f"{WORDS}\n").stdout == (
        f"{told} are restored in {target}\nNext:\n"
        f"  ranloop doctor -w {target}\n  ranloop audit -w {target}\n"
    )
    inside = [command[0], str(made.labels / "b"), *command[2:]]
    refused = CliRunner().invoke(app, inside, input=WORDS)
    assert "lies in labels/" in str(refused.exception)
    asked = CliRunner().invoke(app, [*command[:2], "-w", str(made.root)])
    assert "--passphrase-stdin" in str(asked.exception)


def test_restored_where_it_was_made_a_workspace_lacks_what_came_after(made, tmp_path):
    """The machine remembers the newest entry, and the backup is older."""
    place = WorkspacePaths(tmp_path / "ws")
    write_backup(made, tmp_path / "b", WORDS)
    restore_backup(tmp_path / "b", place.root, WORDS)
    assert find_rollback(place) is None
    event = Event(action="evaluated", subject="extractor@v1", reason="later")
    later = append_event(place.ledger, event, WHO)
    restore_backup(tmp_path / "b", tmp_path / "again", WORDS)
    lost = find_rollback(WorkspacePaths(tmp_path / "again"))
    assert (lost.seq, lost.hash) == (later.seq, later.hash)
