"""The store's file: fields exact both ways, errors, copies and transactions."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.errors import StoreError
from loop.core.records import Entry, Field, Span, Value
from loop.run import database
from loop.run.database import (
    BUSY_S,
    MIGRATIONS,
    FieldEncoder,
    _use_wal,
    connect,
    decode_fields,
    reported,
    snapshot,
    transaction,
)

words = st.text(st.characters(exclude_categories=["Cs"]))
spans = st.lists(
    st.builds(
        Span,
        st.integers(0, 10**6),
        st.integers(0, 10**6),
        st.sampled_from(["text", "reference", "candidate"]) | words,
    ),
    max_size=3,
).map(tuple)
entries = st.lists(st.builds(Entry, words, words, words, spans), max_size=3).map(tuple)
values = (
    st.sampled_from(Value)
    | words
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
)
fields = st.dictionaries(
    words,
    st.builds(Field, values, spans, entries),
    max_size=6,
)


@given(st.lists(fields, max_size=4))
def test_what_is_encoded_is_decoded(many):
    """Also with one encoder for all, which remembers spellings."""
    encoder = FieldEncoder()
    shared = Field(Value.ABSENT)
    for one in many:
        one = {**one, "shared": shared}
        text = encoder.encode(one)
        assert decode_fields(text) == one
        json.loads(text)


def test_values_become_the_enum_again():
    """Judges' words stay words."""
    encoder = FieldEncoder()
    text = encoder.encode(
        {"a": Field(Value.PRESENT), "b": Field("good"), "c": Field(3)}
    )
    assert text == '{"a":"present","b":"good","c":3}'
    decoded = decode_fields(text)
    assert decoded["a"].value is Value.PRESENT
    assert decoded["b"].value == "good"


def test_a_remembered_spelling_is_not_used_for_another_field():
    """Spellings are remembered by identity."""
    encoder = FieldEncoder()
    assert encoder.encode({"a": Field(Value.ABSENT)}) == '{"a":"absent"}'
    assert encoder.encode({"a": Field(Value.PRESENT)}) == '{"a":"present"}'
    spans = (Span(1, 2),)
    assert (
        encoder.encode({"a": Field(Value.ABSENT, spans)}) == '{"a":["absent",[[1,2]]]}'
    )


def test_what_a_judge_lists_follows_value_and_spans():
    """A row without entries is written as it always was: nothing stored changes."""
    encoder = FieldEncoder()
    here = Span(4, 9, "reference")
    listed = Entry("no \u2264 edema", "omission", "significant", (here, Span(0, 2)))
    judged = {
        "omission": Field(1, (), (listed,)),
        "wording": Field(0),
        "matched": Field(2, (here,)),
    }
    text = encoder.encode(judged)
    assert text == (
        '{"omission":[1,[],[["no \u2264 edema","omission","significant",'
        '[[4,9,"reference"],[0,2]]]]],"wording":0,"matched":[2,[[4,9,"reference"]]]}'
    )
    assert decode_fields(text) == judged
    plain = Field(Value.PRESENT, (Span(1, 2), Span(3, 4)))
    assert encoder.encode({"a": plain}) == '{"a":["present",[[1,2],[3,4]]]}'


def test_a_field_with_entries_is_not_spelled_as_one_without():
    """Both have the same value and no span."""
    encoder = FieldEncoder()
    bare, listed = Field(1), Field(1, (), (Entry("edema"),))
    for one in (listed, bare, listed):
        text = encoder.encode({"a": one, "b": bare})
        assert decode_fields(text) == {"a": one, "b": bare}


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (sqlite3.SQLITE_CORRUPT, "is damaged or not a ranloop store. Move it aside"),
        (sqlite3.SQLITE_NOTADB, "is damaged or not a ranloop store. Move it aside"),
        (sqlite3.SQLITE_FULL, "the disk is full"),
        (sqlite3.SQLITE_BUSY, "is held by another process for more than"),
        (sqlite3.SQLITE_LOCKED, "is held by another process for more than"),
        (sqlite3.SQLITE_READONLY, "read-only, or permission is missing"),
        (sqlite3.SQLITE_CANTOPEN, "read-only, or permission is missing"),
        (sqlite3.SQLITE_IOERR, "(Error). Check that the disk is neither full"),
        (None, "cannot use store.db (Error)"),
    ],
)
@pytest.mark.parametrize("extended", [0, 0x100, 0x500])
def test_what_the_file_suffers_from_is_told_with_a_way_out(code, said, extended):
    """Whatever SQLite adds to the kind of error."""
    error = sqlite3.Error("no such thing")
    if code is not None:
        error.sqlite_errorcode = code | extended
    with pytest.raises(StoreError) as told, reported(Path("store.db")):
        raise error
    assert said in str(told.value)
    assert "store.db" in str(told.value)


def test_a_copy_is_one_file_as_of_one_moment(tmp_path):
    """Nobody who opens it needs the files beside it, and it is no writer's."""
    path, target = tmp_path / "store.db", tmp_path / "copy.db"
    with closing(connect(path)) as connection:
        snapshot(path, target)
        with transaction(connection):
            connection.execute(
                "INSERT INTO verdicts VALUES ('later', '2026', 'Dr A', '{}')"
            )
    assert sorted(one.name for one in tmp_path.glob("copy*")) == ["copy.db"]
    with closing(sqlite3.connect(target)) as copy:
        assert copy.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert copy.execute("SELECT count(*) FROM verdicts").fetchone() == (0,)
        assert copy.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)


def test_a_block_is_written_whole_or_not_at_all(tmp_path):
    """Also where it is left by what is no error."""
    with closing(connect(tmp_path / "store.db")) as connection:
        for stop in (ValueError, KeyboardInterrupt):
            with pytest.raises(stop), transaction(connection):
                connection.execute("INSERT INTO verdicts VALUES ('a','b','c','{}')")
                raise stop
            assert not connection.in_transaction
        assert connection.execute("SELECT count(*) FROM verdicts").fetchone() == (0,)


class _Refusing:
    """A connection that fails with these codes, one a time, before it does not."""

    def __init__(self, *codes):
        self.codes, self.asked = list(codes), 0

    def execute(self, statement):
        """Fail with the next code."""
        self.asked += 1
        if self.codes:
            error = sqlite3.OperationalError("no")
            error.sqlite_errorcode = self.codes.pop(0)
            raise error


def _at(monkeypatch, *times):
    """Let the clock show these times, and nobody sleep."""
    clock = SimpleNamespace(monotonic=iter(times).__next__, sleep=lambda _: None)
    monkeypatch.setattr(database, "time", clock)


def test_a_process_that_opens_the_store_too_is_waited_for(monkeypatch):
    """Both switch to the log that is written ahead, and SQLite lets neither wait."""
    _at(monkeypatch, 0, BUSY_S - 1, BUSY_S)
    connection = _Refusing(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    _use_wal(connection)
    assert connection.asked == 3


def test_a_process_that_holds_the_store_too_long_is_an_error(monkeypatch):
    """The time is that of a transaction."""
    _at(monkeypatch, 0, BUSY_S - 1, BUSY_S + 1)
    with pytest.raises(sqlite3.OperationalError):
        _use_wal(_Refusing(*[sqlite3.SQLITE_BUSY] * 9))


def test_an_error_that_does_not_pass_is_not_waited_for(monkeypatch):
    """A damaged file is told at once."""
    _at(monkeypatch, 0, 0)
    connection = _Refusing(sqlite3.SQLITE_NOTADB)
    with pytest.raises(sqlite3.OperationalError):
        _use_wal(connection)
    assert connection.asked == 1


def test_a_name_that_no_file_can_have_is_told_with_a_way_out(tmp_path):
    """Before SQLite is asked, which would only say that it cannot open it."""
    path = tmp_path / ("x" * 300)
    with pytest.raises(StoreError) as told:
        connect(path)
    assert str(told.value) == (
        f"cannot open {path}: File name too long. Use a workspace you can write, or "
        "correct the file's permissions."
    )


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "1", "{", '{"a": null}', '{"a": {}}', '{"a": []}', '{"a": ["x"]}'),
        *('{"a": ["x", [[1]]]}', '{"a": [null, []]}', '{"a": ["x", [], 1]}'),
        *('{"a": ["x", [], [["w"]]]}', '{"a": ["x", [], [[1, "", "", []]]]}'),
        *('{"a": ["x", [[1, 2, 3, 4]]]}', '{"a": ["x", [[1, 2, 3]]]}'),
        *('{"a": ["x", [], [], []]}', '{"a": ["x", [], [["w", "", 1, []]]]}'),
    ],
)
def test_fields_that_were_not_spelled_here_are_refused(text):
    """Not taken for an answer, whatever they are."""
    with pytest.raises((ValueError, TypeError, AttributeError)):
        decode_fields(text)
