"""A proposal that was refused is remembered with its reason, until it is allowed."""

import json
import stat
from datetime import UTC, datetime

import pytest

from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.optimize.proposals import INSTRUCTIONS
from loop.optimize.refusals import (
    Refusal,
    allow_proposal,
    read_refusals,
    refuse_proposal,
)
from tests.optimize.scenes import EFFUSION

WHO = Actor(name="Dr A. Example")
TERM = f"{EFFUSION}:term:some: fluid"


def refuse(bench, proposal=TERM, reason=" no ", minute=1):
    """Refuse a proposal for the prompt ``tiny``."""
    return refuse_proposal(
        bench.workspace,
        "tiny",
        proposal,
        reason,
        WHO,
        now=lambda: datetime(2026, 1, 5, 9, minute, tzinfo=UTC),
    )


def test_a_refusal_is_kept_with_who_why_and_when(bench):
    """The later one of a proposal counts; others stay."""
    assert read_refusals(bench.workspace, "tiny") == {}
    first = refuse(bench)
    assert first == Refusal("no", "Dr A. Example", "2026-01-05T09:01:00Z")
    other = refuse(bench, f"{INSTRUCTIONS}:guide:0123", "other")
    again = refuse(bench, reason="still no", minute=2)
    assert read_refusals(bench.workspace, "tiny") == {
        TERM: again,
        f"{INSTRUCTIONS}:guide:0123": other,
    }
    assert again.time == "2026-01-05T09:02:00Z"
    assert read_refusals(bench.workspace, "other") == {}
    path = bench.workspace.private / "optimize" / "tiny.refused.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())[TERM] == list(again)


def test_what_is_allowed_again_is_no_longer_refused(bench):
    """Once; the second time there is nothing to forget."""
    refuse(bench)
    refuse(bench, f"{EFFUSION}:exclusion:bag")
    assert allow_proposal(bench.workspace, "tiny", TERM) is True
    assert [*read_refusals(bench.workspace, "tiny")] == [f"{EFFUSION}:exclusion:bag"]
    assert allow_proposal(bench.workspace, "tiny", TERM) is False
    assert [*read_refusals(bench.workspace, "tiny")] == [f"{EFFUSION}:exclusion:bag"]
    path = bench.workspace.private / "optimize" / "tiny.refused.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("proposal", "reason", "words"),
    [
        ("", "no", "names no proposal"),
        (EFFUSION, "no", "names no proposal"),
        (f"{EFFUSION}:term", "no", "names no proposal"),
        (f"{EFFUSION}:term: ", "no", "names no proposal"),
        (f"{EFFUSION}:word:fluid", "no", "names no proposal"),
        ("edema:term:fluid", "no", "has no guide for the label 'edema'"),
        (TERM, " ", "Give a reason with --why"),
    ],
)
def test_what_names_no_proposal_or_no_reason_is_not_kept(
    bench, proposal, reason, words
):
    """The message says how it is written; nothing is remembered."""
    with pytest.raises(DataError, match=words):
        refuse(bench, proposal, reason)
    assert read_refusals(bench.workspace, "tiny") == {}


@pytest.mark.parametrize("raw", ["{", "[]", '{"a": 1}', '{"a": ["x"]}'])
def test_a_file_that_was_changed_by_hand_is_not_read(bench, raw):
    """It is left as it is, and the way out is told."""
    refuse(bench)
    path = bench.workspace.private / "optimize" / "tiny.refused.json"
    path.write_text(raw)
    for call in (
        lambda: read_refusals(bench.workspace, "tiny"),
        lambda: refuse(bench),
        lambda: allow_proposal(bench.workspace, "tiny", TERM),
    ):
        with pytest.raises(DataError, match=r"tiny\.refused\.json is damaged.*Remove"):
            call()
    assert path.read_text() == raw
