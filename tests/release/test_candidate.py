"""What stands against a candidate: the order of things, and who approves."""

import pytest

from loop.core.ledger import Actor, Event, append_event
from loop.evaluate.protocol import protocol_digest, register_protocol
from loop.release.candidate import is_registered_late, order_objections
from tests.release.small_numbers import VERSION

WHO = Actor(name="Dr B", role="approver")
MEASURED = {"prompt_digest": VERSION.digest, "cohort": "dev"}


def note(workspace, action="evaluated", **payload):
    """Write into the ledger that the version was measured."""
    event = Event(
        action=action,
        subject=VERSION.ref,
        reason="-",
        payload=MEASURED | payload,
    )
    append_event(workspace.ledger, event, WHO)


@pytest.mark.parametrize("action", ["evaluated", "judge_evaluated"])
def test_a_claim_made_after_the_version_was_measured_is_late(workspace, action):
    """Whether or not it was measured again since."""
    assert not is_registered_late(workspace, VERSION, "dev")
    note(workspace, action)
    # Nothing is claimed by a protocol that was never registered.
    assert not is_registered_late(workspace, VERSION, "dev")
    register_protocol(workspace, WHO)
    assert is_registered_late(workspace, VERSION, "dev")
    note(workspace, action)
    assert is_registered_late(workspace, VERSION, "dev")


@pytest.mark.parametrize(
    "other",
    [
        {"cohort": "other"},
        {"prompt_digest": "f" * 64},
        {"action": "searched"},
    ],
)
def test_what_was_measured_elsewhere_makes_no_claim_late(workspace, other):
    """Another cohort, another version, another entry; nor what came after it."""
    note(workspace, **other)
    register_protocol(workspace, WHO)
    note(workspace)
    assert not is_registered_late(workspace, VERSION, "dev")


def test_the_first_registration_of_a_protocol_counts(workspace):
    """One that is registered again was known before."""
    register_protocol(workspace, WHO)
    note(workspace)
    digest = protocol_digest(workspace)
    event = Event(
        action="protocol_set",
        subject="labels/protocol.yaml",
        reason="-",
        payload={"digest": digest},
    )
    append_event(workspace.ledger, event, WHO)
    assert not is_registered_late(workspace, VERSION, "dev")


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_each_objection_stands_for_itself(late, own):
    """Neither a late claim nor one's own version hides the other."""
    actor = Actor(name=VERSION.author) if own else WHO
    found = list(order_objections(VERSION, "dev", actor, late=late))
    assert len(found) == late + own
    assert any("registered after tiny@v1 was measured on dev" in s for s in found) is (
        late
    )
    assert any("may not approve it alone" in one for one in found) is own
