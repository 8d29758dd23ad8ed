"""Whoever reads the ledger's releases reads the same: there is one replay."""

import pytest

from loop.core.errors import DataError
from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.release.audit.audit import audit_workspace
from loop.release.facts import HeadFacts
from loop.release.load import load_release
from loop.release.released import (
    current_release,
    find_release,
    holds_head,
    name_in,
    release_folder,
    replay_releases,
)
from tests.release.small import NAME, VERSION, freeze_small

ACTOR = Actor(name="C. Other")


@pytest.fixture
def frozen(workspace):
    """Freeze the small release in a workspace."""
    freeze_small(workspace)
    return workspace


def record(workspace, action, payload):
    """Append an entry about the small version."""
    event = Event(action=action, subject=VERSION.ref, reason="why", payload=payload)
    return append_event(workspace.ledger, event, ACTOR)


def test_a_release_frozen_again_by_hand_stays_what_it_was(frozen):
    """The first entry counts, so that a second one cannot undo a withdrawal."""
    first = find_release(frozen, NAME)
    withdrawal = record(frozen, "withdrawn", {"release": NAME})
    record(frozen, "frozen", {"release": NAME, "digest": "0" * 64})
    found = find_release(frozen, NAME)
    assert (found.entry, found.withdrawal) == (first.entry, withdrawal)
    assert current_release(frozen, VERSION.name) is None
    with pytest.raises(DataError, match=r"was withdrawn by C\. Other"):
        load_release(frozen, NAME)
    assert "frozen again" in str(audit_workspace(frozen).findings)


def test_an_entry_that_says_little_is_still_read(frozen):
    """A ledger written by hand is for the audit to judge, not to fall over."""
    entry = record(frozen, "frozen", {})
    assert name_in(entry) == NAME
    (alone,) = replay_releases([entry])
    assert (alone.name, alone.digest, alone.statement) == (NAME, "", "")


@pytest.mark.parametrize(
    "name", ["", "tiny", "../tiny-v1", "tiny-v0", "tiny-v1/", "T-v1"]
)
def test_no_path_is_made_of_what_is_no_name(workspace, name):
    """A name that came from outside reaches no file."""
    with pytest.raises(DataError, match="not the name of a release"):
        release_folder(workspace, name)


def test_a_head_is_held_at_its_own_place_only(frozen):
    """A hash further on is not the head that was named."""
    entries = read_ledger(frozen.ledger)
    named = HeadFacts(seq=2, head=entries[1].hash)
    assert holds_head(entries, named)
    assert not holds_head(entries[:1], named)
    assert not holds_head(entries, HeadFacts(seq=1, head=entries[1].hash))
