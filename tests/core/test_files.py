"""Files: atomic, locked, and YAML that does not guess."""

import errno
import os

import pytest
from pydantic import BaseModel, ConfigDict

from loop.core.errors import ConflictError, DataError, WriteError
from loop.core.files import locked, read_text, write_atomic
from loop.core.yaml_files import check_model, dump_yaml, parse_yaml


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


def test_private_mode_is_kept(tmp_path):
    """A key file is readable by its owner only from its first byte."""
    path = tmp_path / "key"
    write_atomic(path, b"secret", mode=0o600)
    assert path.stat().st_mode & 0o777 == 0o600


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
