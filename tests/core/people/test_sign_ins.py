"""The log of sign-ins is private, complete and bounded."""

import json
from datetime import UTC, datetime

import pytest

from loop.core.errors import WriteError
from loop.core.people.sign_ins import (
    SignIn,
    SignInResult,
    record_sign_in,
    sign_ins_path,
)


def noon():
    """Return one instant."""
    return datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_a_line_says_when_who_from_where_and_how_it_ended(workspace):
    """And only its owner may read it."""
    entry = SignIn(name="ann", address="1.1.1.1", result=SignInResult.WRONG)
    record_sign_in(workspace, entry, now=noon)
    path = sign_ins_path(workspace)
    assert json.loads(path.read_text("utf-8")) == {
        "time": "2026-01-01T12:00:00Z",
        "name": "ann",
        "address": "1.1.1.1",
        "result": "wrong",
    }
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_log_turns_over_at_its_limit(workspace):
    """A flood of tries does not fill the disk."""
    entry = SignIn(name="ann", address="1.1.1.1", result=SignInResult.WRONG)
    for _ in range(30):
        record_sign_in(workspace, entry, now=noon, longest=500)
    path = sign_ins_path(workspace)
    before = path.with_name("sign-ins.jsonl.1")
    assert path.stat().st_size <= 500
    assert before.stat().st_size <= 500
    assert not path.with_name("sign-ins.jsonl.2").exists()


def test_a_log_that_cannot_be_written_says_so(workspace):
    """The caller decides what that means."""
    sign_ins_path(workspace).mkdir()
    entry = SignIn(name="ann", address="1.1.1.1", result=SignInResult.WRONG)
    with pytest.raises(WriteError, match=r"cannot write .*sign-ins\.jsonl"):
        record_sign_in(workspace, entry)
