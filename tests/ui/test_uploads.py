"""What is uploaded waits where no browser can fetch it, and not for long."""

import os
import time

import pytest

from loop.core.errors import DataError
from loop.ui.uploads import discard, named_shortly, open_inbox, receive, sweep

HOUR = 3600


def upload(workspace, name="site.csv"):
    """Put a file where the front end puts it; return its path."""
    folder = workspace.private / "uploads" / "0a1b"
    folder.mkdir(parents=True)
    (folder / name).write_text("case_id,text\n")
    return folder / name


def test_a_received_file_leaves_the_folder_that_is_served(workspace):
    """Gradio hands out everything that lies where uploads arrive."""
    inbox = open_inbox(workspace)
    path = receive(workspace, str(upload(workspace)))
    assert not any(inbox.iterdir())
    assert path.name == "site.csv"
    assert not path.is_relative_to(inbox)
    assert os.stat(path).st_mode & 0o777 == 0o600
    discard(path)
    assert not path.parent.exists()


@pytest.mark.parametrize("name", ["../store.db", "nothing.csv"])
def test_nothing_else_is_taken_for_an_upload(workspace, name):
    """The path comes from the browser."""
    inbox = open_inbox(workspace)
    (workspace.private / "store.db").write_text("private")
    with pytest.raises(DataError, match="not there any more"):
        receive(workspace, str(inbox / name))
    assert (workspace.private / "store.db").exists()


def test_a_link_out_of_the_folder_is_not_followed(workspace, tmp_path):
    """A link in the inbox is no upload."""
    inbox = open_inbox(workspace)
    (tmp_path / "secret").write_text("x")
    (inbox / "a.csv").symlink_to(tmp_path / "secret")
    with pytest.raises(DataError):
        receive(workspace, str(inbox / "a.csv"))


def test_a_new_start_finds_both_folders_empty(workspace):
    """Nothing that was uploaded outlives the server."""
    open_inbox(workspace)
    receive(workspace, str(upload(workspace)))
    upload(workspace, "more.csv")
    inbox = open_inbox(workspace)
    assert not any(inbox.iterdir())
    assert not any((workspace.private / "received").iterdir())
    assert os.stat(inbox).st_mode & 0o777 == 0o700


def test_only_what_nobody_used_for_long_is_swept_away(workspace):
    """A file that someone is about to confirm stays."""
    open_inbox(workspace)
    old = receive(workspace, str(upload(workspace)))
    new = receive(workspace, str(upload(workspace)))
    past = time.time() - 2 * HOUR
    os.utime(old.parent, (past, past))
    sweep(workspace)
    assert (old.exists(), new.exists()) == (False, True)


def test_an_error_names_the_file_and_not_where_it_waits(workspace):
    """A visitor knows the file by its name."""
    open_inbox(workspace)
    path = receive(workspace, str(upload(workspace)))
    with pytest.raises(DataError) as refusal, named_shortly(path):
        raise DataError(f"{path} is UTF-16. Save it as UTF-8.")
    assert str(refusal.value) == "site.csv is UTF-16. Save it as UTF-8."
