"""Uploads: one way in, owned by a session, no path from a browser, not for long."""

import asyncio
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from loop.core.errors import DataError
from loop.ui import uploads
from loop.ui.uploads import (
    MOST,
    _take,
    discard,
    find_upload,
    named_shortly,
    open_inbox,
    sweep,
)
from tests.ui.conftest import awaited
from tests.ui.hostile import sign_in
from tests.ui.visits import SESSION, until

HOUR = 3600
ID = "a" * 32


def upload(workspace, name="site.csv", session=SESSION, upload_id=ID):
    """Put a file where uploads of a session lie; return its path."""
    folder = workspace.private / "uploads" / session / upload_id
    folder.mkdir(parents=True)
    (folder / name).write_text("case_id,text\n")
    return folder / name


def test_a_session_finds_what_it_has_uploaded(workspace):
    """By the id it was given."""
    open_inbox(workspace)
    path = upload(workspace)
    assert find_upload(workspace, SESSION, ID) == path
    discard(path)
    assert not path.parent.exists()


@pytest.mark.parametrize(
    "named",
    ["", None, "..", "../store.db", "b" * 32, f"../{SESSION}/{ID}", "A" * 32, "\0"],
)
def test_nothing_but_the_id_of_an_upload_finds_a_file(workspace, named):
    """What comes from a browser is never part of a path."""
    open_inbox(workspace)
    upload(workspace)
    with pytest.raises(DataError, match="not there any more"):
        find_upload(workspace, SESSION, named)


def test_another_session_does_not_find_it(workspace):
    """Also not with the right id."""
    open_inbox(workspace)
    upload(workspace)
    with pytest.raises(DataError):
        find_upload(workspace, "1" * 32, ID)


@pytest.mark.parametrize("kind", ["link", "pipe", "hard link", "two files", "folder"])
def test_what_is_no_file_of_an_upload_is_refused(workspace, tmp_path, kind):
    """Nothing is opened to find out."""
    open_inbox(workspace)
    path = upload(workspace)
    secret = tmp_path / "secret.csv"
    secret.write_text("x")
    if kind == "two files":
        (path.parent / "more.csv").write_text("x")
    else:
        path.unlink()
        make = {
            "link": lambda: path.symlink_to(secret),
            "pipe": lambda: os.mkfifo(path),
            "hard link": lambda: path.hardlink_to(secret),
            "folder": path.mkdir,
        }
        make[kind]()
    with pytest.raises(DataError):
        find_upload(workspace, SESSION, ID)


def test_a_folder_that_is_a_link_is_refused(workspace, tmp_path):
    """A file outside would be taken for an upload."""
    open_inbox(workspace)
    path = upload(workspace)
    (tmp_path / "out").mkdir()
    path.rename(tmp_path / "out" / path.name)
    path.parent.rmdir()
    path.parent.symlink_to(tmp_path / "out")
    with pytest.raises(DataError):
        find_upload(workspace, SESSION, ID)


def test_a_new_start_finds_the_folder_empty(workspace):
    """Nothing that was uploaded outlives the server."""
    open_inbox(workspace)
    upload(workspace)
    inbox = open_inbox(workspace)
    assert not any(inbox.iterdir())
    assert os.stat(inbox).st_mode & 0o777 == 0o700


def test_the_files_of_a_session_end_with_it(workspace):
    """Those of open sessions stay."""
    open_inbox(workspace)
    kept, gone = upload(workspace), upload(workspace, session="1" * 32)
    sweep(workspace, lambda: {SESSION})
    assert kept.exists()
    assert not gone.exists()


def test_what_nobody_imports_is_deleted_after_an_hour(workspace):
    """A forgotten file holds clinical text."""
    open_inbox(workspace)
    old, new = upload(workspace), upload(workspace, upload_id="b" * 32)
    past = time.time() - HOUR - 1
    os.utime(old.parent, (past, past))
    sweep(workspace, lambda: {SESSION})
    assert not old.exists()
    assert new.exists()


def test_messages_name_a_file_and_not_where_it_waits(workspace):
    """The folder says nothing to whoever sent the file."""
    open_inbox(workspace)
    path = upload(workspace)
    with pytest.raises(DataError, match=r"^site\.csv, line 2"), named_shortly(path):
        raise DataError(f"{path}, line 2: wrong")


@pytest.mark.slow
def test_a_file_goes_when_its_sender_signs_out(served, demo, monkeypatch):
    """Within seconds, without another request."""
    client = sign_in(served, "Dr Editor")
    with closing(client):
        sent = client.post("/upload", params={"name": "a.csv"}, content=b"words")
        assert sent.json()["name"] == "a.csv"
        inbox = demo.private / "uploads"
        (path,) = inbox.rglob("a.csv")
        assert path.read_bytes() == b"words"
        assert path.stat().st_mode & 0o777 == 0o600
        client.post("/sign-out")
    until(lambda: not any(inbox.iterdir()), limit_s=10 * uploads.SWEEP_S)


@pytest.mark.slow
def test_files_are_taken_by_name_and_number(served, demo):
    """A name is no path, and one session cannot fill the disk with files."""
    inbox = demo.private / "uploads"
    with closing(sign_in(served, "Dr Editor")) as client:
        for name in ("../a.csv", "a/b.csv", "", "..", "a\nb.csv", "x" * 300):
            answer = client.post("/upload", params={"name": name}, content=b"x")
            assert answer.status_code == 422, name
            assert "name of the file" in answer.json()["detail"]
        assert not any(path.is_file() for path in inbox.rglob("*"))
        for number in range(MOST + 3):
            client.post("/upload", params={"name": f"{number}.csv"}, content=b"x")
        assert sum(path.is_file() for path in inbox.rglob("*")) == MOST


@pytest.mark.slow
def test_of_an_upload_that_breaks_off_nothing_stays(served, demo):
    """The browser was closed in the middle."""
    inbox = demo.private / "uploads"
    with closing(sign_in(served, "Dr Editor")) as client:
        cookie = "; ".join(f"{k}={v}" for k, v in client.cookies.items())
    where = urlsplit(served)
    head = (
        f"POST /upload?name=a.csv HTTP/1.1\r\nHost: {where.netloc}\r\n"
        f"Origin: {served}\r\nCookie: {cookie}\r\nContent-Length: 1000000\r\n\r\n"
    )
    with socket.create_connection((where.hostname, where.port)) as line:
        line.sendall(head.encode() + b"x" * 1000)
        until(lambda: list(inbox.rglob("a.csv")))
    until(lambda: not list(inbox.rglob("a.csv")))


def test_nothing_that_lies_there_is_written_over(workspace, tmp_path, monkeypatch):
    """A link where an upload is to be written would lead out of the inbox."""
    monkeypatch.setattr(uploads, "secrets", SimpleNamespace(token_hex=lambda _: ID))

    async def body():
        yield b"new"

    def take():
        # A loop may run in this thread already: a browser's tests leave theirs open.
        with ThreadPoolExecutor(1) as pool:
            taken = _take(workspace, SESSION, "a.csv", body())
            return pool.submit(asyncio.run, taken).result()

    open_inbox(workspace)
    outside = tmp_path / "outside.csv"
    outside.write_bytes(b"old")
    path = take()
    assert path.read_bytes() == b"new"
    path.unlink()
    path.symlink_to(outside)
    with pytest.raises(DataError, match="could not be kept"):
        take()
    assert outside.read_bytes() == b"old"


def begin(workspace, name="a.csv"):
    """Return where a file of the session shall be written, and write it."""
    path = uploads._prepare(workspace, SESSION, name)
    path.write_text("case_id,text\n")
    return path


def test_one_more_file_takes_the_place_of_the_oldest(workspace):
    """By the time at which it was last written to, not by its id."""
    open_inbox(workspace)
    made = [begin(workspace).parent for _ in range(MOST)]
    for age, folder in enumerate(made[3:] + made[:3]):
        os.utime(folder, (1000 + age, 1000 + age))
    assert all(folder.exists() for folder in made)
    begin(workspace)
    assert [folder for folder in made if not folder.exists()] == [made[3]]


@pytest.mark.parametrize(
    ("name", "fine"),
    [
        ("a" * 200, True),
        ("a" * 201, False),
        ("é" * 100, True),
        ("é" * 101, False),
        (".a", True),
        ("...", True),
        (".", False),
        ("..", False),
        ("", False),
        ("a/b", False),
        ("a\tb", False),
    ],
)
def test_a_name_is_one_that_a_file_can_have(workspace, name, fine):
    """In bytes, as the file system counts it."""
    open_inbox(workspace)
    if fine:
        assert begin(workspace, name).name == name
    else:
        with pytest.raises(DataError, match="name of the file cannot be used"):
            begin(workspace, name)


def take(workspace, *pieces):
    """Take a file that comes in pieces."""

    async def body():
        """Yield the pieces."""
        for piece in pieces:
            yield piece

    async def whole():
        """Take the file."""
        return await _take(workspace, SESSION, "a.csv", body())

    return awaited(whole)


def test_a_file_may_be_just_as_long_as_is_allowed(workspace, monkeypatch):
    """A byte more and nothing of it stays."""
    inbox = open_inbox(workspace)
    monkeypatch.setattr(uploads, "SIZES", uploads.SIZES._replace(upload=6))
    assert take(workspace, b"abc", b"def").read_bytes() == b"abcdef"
    assert find_upload(workspace, SESSION, next(inbox.glob("*/*")).name)
    with pytest.raises(DataError, match="longer than 6 bytes"):
        take(workspace, b"abc", b"defg")
    assert len(list(inbox.glob("*/*"))) == 1


def test_a_slow_file_is_not_forgotten(workspace):
    """As long as anything of it comes, it is as young as its last piece."""
    open_inbox(workspace)
    old = time.time() - 2 * HOUR

    async def body():
        """Yield two pieces, before the second of which the folder has become old."""
        yield b"a"
        for folder in (workspace.private / "uploads" / SESSION).iterdir():
            os.utime(folder, (old, old))
        yield b"b"

    async def whole():
        """Take the file."""
        return await _take(workspace, SESSION, "a.csv", body())

    path = awaited(whole)
    sweep(workspace, lambda: {SESSION})
    assert path.read_bytes() == b"ab"


def test_a_file_goes_once_it_is_older_than_is_kept(workspace, monkeypatch):
    """Not at the very second."""
    open_inbox(workspace)
    path = begin(workspace)
    monkeypatch.setattr(uploads.time, "time", lambda: 10_000.0)
    for age, stays in ((3600, True), (3601, False)):
        os.utime(path.parent, (10_000 - age, 10_000 - age))
        sweep(workspace, lambda: {SESSION})
        assert path.exists() is stays
