"""Files: atomic, locked, and YAML that does not guess."""

import errno
import os
import stat
from contextlib import ExitStack

import pytest
from pydantic import BaseModel, ConfigDict

from loop.core.errors import ConflictError, DataError, WriteError
from loop.core.files import (
    folder_beside,
    locked,
    make_folder,
    move_folder,
    read_text,
    replace_folder,
    write_atomic,
    write_error,
)
from loop.core.yaml_files import check_model, dump_yaml, parse_model, parse_yaml


class Form(BaseModel):
    """A model for these tests."""

    model_config = ConfigDict(extra="forbid")

    name: str


def test_no_is_a_word_and_a_date_is_text():
    """The cue `no` must not become False, nor a date a datetime."""
    got = parse_yaml("cues: [no, yes, on]\ndate: 2026-01-02\nn: 3\nb: true", "f")
    assert got == {
        "cues": ["no", "yes", "on"],
        "date": "2026-01-02",
        "n": 3,
        "b": True,
    }


@pytest.mark.parametrize("word", ["007", "012", "1_0", "12:30", "0x1F", "0b1", "1e3"])
def test_words_that_only_look_like_numbers_stay_words(word):
    """Case 007 must not become case 7, nor 012 case 10."""
    assert parse_yaml(f"case: {word}", "f") == {"case": word}


@pytest.mark.parametrize("number", [0, 7, -3, 1525, 0.95, -0.5])
def test_numbers_are_numbers(number):
    """Written as JSON writes them."""
    assert parse_yaml(f"n: {number}", "f") == {"n": number}


def test_written_yaml_reads_back():
    """Words that other YAML readers take for booleans survive."""
    data = {
        "words": ["no", "off", "~", "1.0", "007", "1_0", "12:30", "未见", "a: b"],
        "empty": [],
    }
    assert parse_yaml(dump_yaml(data), "f") == data


@pytest.mark.parametrize("text", ["{[a]: b}", "? {a: b}\n: c"])
def test_a_key_that_is_no_word_is_an_error(text):
    """Lists and mappings cannot be keys; that is no bug of ours."""
    with pytest.raises(DataError, match=r"f\.yaml, line 1: not valid YAML"):
        parse_yaml(text, "f.yaml")


def test_a_key_that_occurs_twice_is_an_error():
    """The second would silently win."""
    with pytest.raises(DataError, match=r"f\.yaml, line 2: key 'a' occurs twice"):
        parse_yaml("a: 1\na: 2\n", "f.yaml")


@pytest.mark.parametrize(
    "text", ["a: [1", "\t- x", "a: b: c", "&a [*a", "!!python/x y"]
)
def test_broken_yaml_names_the_file(text):
    """No traceback of a parser reaches the user."""
    with pytest.raises(DataError, match=r"f\.yaml.*not valid YAML"):
        parse_yaml(text, "f.yaml")


def test_every_wrong_field_is_listed_without_its_value():
    """The value could be case text."""
    with pytest.raises(DataError) as caught:
        check_model({"name": 3, "extra": "secret words"}, Form, "f.yaml")
    message = str(caught.value)
    assert "name:" in message and "extra:" in message and "secret" not in message


def test_text_that_is_not_utf8_names_the_byte(tmp_path):
    """The reader learns what to convert."""
    path = tmp_path / "x.yaml"
    path.write_bytes(b"abc\xff")
    with pytest.raises(DataError, match=r"not UTF-8 \(byte 3\)"):
        read_text(path)


class Fixed(BaseModel):
    """A form whose objects cannot change."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str


def test_equal_texts_are_one_object_that_cannot_change_and_errors_name_their_file():
    """A workspace is read again and again; what is wrong is said of the file asked."""
    first = parse_model("name: a", Fixed, "x.yaml")
    assert parse_model("name: a", Fixed, "y.yaml") is first
    assert parse_model("name: b", Fixed, "x.yaml").name == "b"
    assert parse_model("name: a", Form, "x") is not parse_model("name: a", Form, "x")
    for source in ("x.yaml", "y.yaml"):
        with pytest.raises(DataError, match=rf"^{source} does not have the .* form"):
            parse_model("nam: a", Fixed, source)
        with pytest.raises(DataError, match=rf"^{source}, line 2: not valid YAML"):
            parse_model("name: [", Fixed, source)


def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    """A full disk costs nothing that was there, and leaves no litter."""
    path = tmp_path / "x"
    write_atomic(path, "old")

    def full(_handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError, match="disk is full"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


def test_a_power_failure_leaves_the_old_file_or_the_new(tmp_path, monkeypatch):
    """All of the data is on the disk before the old file goes, then the name is."""
    path = tmp_path / "x"
    write_atomic(path, "old")
    synced = []

    def sync(handle):
        state = os.fstat(handle)
        size = "" if stat.S_ISDIR(state.st_mode) else state.st_size
        synced.append((size, path.read_text()))

    monkeypatch.setattr(os, "fsync", sync)
    write_atomic(path, "newer")
    assert synced == [(5, "old"), ("", "newer")]


@pytest.mark.parametrize(
    "move", [lambda *paths: move_folder(*paths, taken="taken"), replace_folder]
)
def test_a_folder_that_was_moved_outlasts_a_power_failure(tmp_path, monkeypatch, move):
    """What holds it is on the disk with its new name."""
    (tmp_path / "new").mkdir()
    synced = []

    def sync(handle):
        synced.append((os.fstat(handle).st_ino, (tmp_path / "made").is_dir()))

    monkeypatch.setattr(os, "fsync", sync)
    move(tmp_path / "new", tmp_path / "made")
    assert synced == [(tmp_path.stat().st_ino, True)]


def test_private_mode_is_kept(tmp_path):
    """A key file is readable by its owner only from its first byte."""
    path = tmp_path / "key"
    write_atomic(path, b"secret", mode=0o600)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("umask", "mode", "kept"),
    [
        (0o022, None, 0o644),
        (0o077, None, 0o600),
        (0o077, 0o644, 0o644),
        (0o022, 0o600, 0o600),
        (0o022, 0, 0),
    ],
)
def test_a_file_may_be_read_by_whom_the_machine_lets(tmp_path, umask, mode, kept):
    """Unless its mode is said; and the umask stays as it was."""
    before = os.umask(umask)
    try:
        write_atomic(tmp_path / "a", "x", mode=mode)
    finally:
        after = os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == kept
    assert after == umask


def test_held_lock_is_reported_when_not_waiting(tmp_path):
    """The second process learns why it cannot go on."""
    path = tmp_path / "lock"
    with (
        locked(path),
        pytest.raises(ConflictError, match="another ranloop process"),
        locked(path, wait=False),
    ):
        pass


@pytest.mark.parametrize("opening", ["[", "- ", "{a: "])
def test_a_text_nested_without_end_is_an_error_and_no_crash(opening):
    """The parser's own stack would end the process, and with it the run."""
    with pytest.raises(DataError, match=r"x.yaml: nested too deeply|x.yaml, line 1"):
        parse_yaml(opening * 200_000, "x.yaml")


def test_a_folder_is_whole_or_not_there(tmp_path):
    """Beside its place while it is written; gone if that ends with an error."""
    target = tmp_path / "made"
    with pytest.raises(ValueError, match="stop"), folder_beside(target) as folder:
        (folder / "a").write_text("1")
        raise ValueError("stop")
    assert list(tmp_path.iterdir()) == []
    with folder_beside(target) as folder:
        (folder / "a").write_text("1")
        assert not target.exists()
        move_folder(folder, target, taken="it is there")
    assert [path.name for path in tmp_path.iterdir()] == ["made"]
    with (
        folder_beside(target) as folder,
        pytest.raises(ConflictError, match="it is there"),
    ):
        move_folder(folder, target, taken="it is there")
    assert (target / "a").read_text() == "1"


def test_an_empty_folder_is_written_over_only_where_that_is_said(tmp_path):
    """A version whose folder is empty was there before, and is never written again."""
    target = tmp_path / "made"
    target.mkdir()
    with folder_beside(target) as folder:
        with pytest.raises(ConflictError, match="taken"):
            move_folder(folder, target, taken="taken")
        (folder / "a").write_text("1")
        move_folder(folder, target, taken="taken", over_empty=True)
    assert (target / "a").is_file()


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path):
    """Another process may be writing beside it, and so may another kind of work."""
    target = tmp_path / "made"
    for name in (".made.new-dead", ".made.other-dead", ".made2.new-dead"):
        (tmp_path / name).mkdir()
    with folder_beside(target) as living, folder_beside(target) as folder:
        left = {path.name for path in tmp_path.iterdir()}
        assert left == {".made.other-dead", ".made2.new-dead", living.name, folder.name}


def test_what_lives_keeps_nobody_from_removing_the_dead(tmp_path):
    """Whichever is come by first; links lead nowhere."""
    target, elsewhere = tmp_path / "made", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a").write_text("1")
    (tmp_path / ".made.new-link").symlink_to(elsewhere)
    (tmp_path / ".made.new-file").write_text("1")
    with ExitStack() as stack:
        living = {stack.enter_context(folder_beside(target)) for _ in range(3)}
        dead = [tmp_path / f".made.new-{name}" for name in "abcdefgh"]
        for path in dead:
            path.mkdir()
        living.add(stack.enter_context(folder_beside(target)))
        assert all(path.exists() for path in living)
        assert not any(path.exists() for path in dead)
    assert (elsewhere / "a").exists()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"elsewhere", ".made.new-link", ".made.new-file"}


def test_a_folder_that_cannot_replace_another_leaves_it_there(tmp_path):
    """The old documents are worth more than none."""
    target = tmp_path / "made"
    target.mkdir()
    (target / "old").write_text("1")
    with pytest.raises(WriteError):
        replace_folder(tmp_path / "never-made", target)
    assert (target / "old").is_file()
    with folder_beside(target) as folder:
        (folder / "new").write_text("1")
        replace_folder(folder, target)
    assert [path.name for path in target.iterdir()] == ["new"]
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_is_moved_to_a_place_whose_parents_are_not_there(tmp_path):
    """The first release of a workspace has no folder of releases to go to."""
    target = tmp_path / "none" / "yet" / "made"
    with folder_beside(tmp_path / "made") as folder:
        (folder / "a").write_text("1")
        move_folder(folder, target, taken="taken")
    assert (target / "a").read_text() == "1"


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (OSError(errno.ENOSPC, "a"), "a. The disk is full: free some space and run"),
        (OSError(errno.EDQUOT, "b"), "b. The disk quota is used up: free some space"),
        (OSError(errno.EROFS, "c"), "c. The file system is read-only: use a workspace"),
        (OSError(errno.EACCES, "d"), "d. Permission denied: use a workspace you can"),
        (OSError(errno.EPERM, "e"), "e. Operation not permitted: use a workspace you"),
        (OSError(errno.EIO, "f"), "f. Check the path and run the command again."),
        (OSError("g"), "g. Check the path and run the command again."),
        (OSError(), "OSError. Check the path and run the command again."),
    ],
)
def test_what_cannot_be_written_is_named_with_its_cause_and_a_way_out(
    tmp_path, cause, said
):
    """The hint is the one of the cause; and nothing was changed."""
    message = str(write_error(tmp_path / "x", cause))
    assert message.startswith(f"cannot write {tmp_path / 'x'}: {said}")
    assert message.endswith(" Nothing was changed.")


def test_what_cannot_be_read_is_named_with_its_cause(tmp_path):
    """A name that is none, and a folder where a file should be."""
    with pytest.raises(DataError) as refused:
        read_text(tmp_path / "x")
    assert str(refused.value) == f"{tmp_path / 'x'} does not exist. Check the name."
    with pytest.raises(DataError) as refused:
        read_text(tmp_path)
    assert str(refused.value) == f"cannot read {tmp_path}: Is a directory."
    (tmp_path / "x").write_bytes("é\r\n\n".encode())
    assert read_text(tmp_path / "x") == "é\r\n\n"


def test_where_a_file_lies_no_folder_is_made(tmp_path):
    """Whatever it was to be made for, the message is about what was to be written."""
    (tmp_path / "file").write_text("kept")
    below = tmp_path / "file" / "x"
    for act in (
        lambda: make_folder(tmp_path / "file"),
        lambda: write_atomic(tmp_path / "file" / "x", "y"),
        lambda: locked(below).__enter__(),
        lambda: folder_beside(below).__enter__(),
    ):
        with pytest.raises(WriteError, match=r"cannot write .*/file"):
            act()
    assert (tmp_path / "file").read_text() == "kept"


def test_a_folder_is_made_with_its_parents_and_only_the_last_is_closed(tmp_path):
    """One that is there stays as it is."""
    make_folder(tmp_path / "a" / "b", mode=0o700)
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) != 0o700
    (tmp_path / "a" / "b" / "c").write_text("1")
    make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b" / "c").read_text() == "1"


def test_a_folder_that_cannot_be_moved_says_whether_something_is_there(tmp_path):
    """Another process may have come first; where nobody has, it is another fault."""
    target, folder = tmp_path / "made", tmp_path / "new"
    target.mkdir()
    (target / "old").write_text("1")
    folder.mkdir()
    with pytest.raises(ConflictError, match=r"^taken$"):
        move_folder(folder, target, taken="taken", over_empty=True)
    assert (target / "old").is_file() and folder.is_dir()
    with pytest.raises(WriteError, match=r"cannot write .*/free: No such file"):
        move_folder(tmp_path / "never", tmp_path / "free", taken="taken")


def test_a_link_to_nowhere_is_in_the_way_of_a_folder(tmp_path):
    """Nothing is replaced, not even what leads to nothing."""
    (tmp_path / "made").symlink_to(tmp_path / "nowhere")
    (tmp_path / "new").mkdir()
    with pytest.raises(ConflictError, match=r"^taken$"):
        move_folder(tmp_path / "new", tmp_path / "made", taken="taken")


def test_a_folder_may_replace_none(tmp_path):
    """The first documents; and where that fails nothing is there, as before."""
    with pytest.raises(WriteError, match=r"cannot write .*/made: No such file"):
        replace_folder(tmp_path / "never-made", tmp_path / "made")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "new").mkdir()
    replace_folder(tmp_path / "new", tmp_path / "made")
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_a_lock_is_its_owner_s_and_is_free_again_after_an_error(tmp_path):
    """Else one failure would stop all that comes later."""
    path = tmp_path / "made" / "lock"
    with pytest.raises(ValueError, match="stop"), locked(path):
        raise ValueError("stop")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with locked(path, wait=False):
        pass
    with (
        locked(path),
        pytest.raises(ConflictError, match="lock is held by another ranloop process"),
        locked(path, wait=False),
    ):
        pass
    with locked(path, wait=False):
        pass


def test_only_the_owner_may_enter_a_folder_that_is_written(tmp_path):
    """It may hold case text before its place is known; the mark is in its name."""
    with folder_beside(tmp_path / "a" / "made", "export") as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert folder.name.startswith(".made.export-")
        assert folder.parent == tmp_path / "a"
