"""The protocol is read strictly, identified by its file, and registered once."""

from datetime import UTC, datetime

import pytest

from loop.core.errors import DataError
from loop.core.files import write_atomic
from loop.core.ledger import Actor, read_ledger
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import UncertainAnswers
from loop.evaluate.protocol import (
    Protocol,
    find_registration,
    list_policies,
    protocol_digest,
    read_protocol,
    register_protocol,
)

ME = Actor(name="Dr A")


def now():
    """Return a fixed time."""
    return datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


def test_shipped_protocol_is_the_default(workspace):
    """The shipped file and the defaults in code say the same, but for the policy."""
    shipped = read_protocol(WorkspacePaths(bundled()))
    assert shipped == read_protocol(workspace) == Protocol(uncertain_answers="wrong")


def test_the_policy_is_registered_where_it_is_said(workspace):
    """An early protocol's entry says nothing of it, as it always did."""
    payload = register_protocol(workspace, ME, now=now).payload
    assert payload["uncertain_answers"] == "wrong"
    write_atomic(workspace.protocol, "rule: point\n")
    early = register_protocol(workspace, ME, now=now).payload
    assert "uncertain_answers" not in early
    # What a run records is the digest, by which its policy is found again.
    assert list_policies(workspace) == {
        payload["digest"]: UncertainAnswers.WRONG,
        early["digest"]: UncertainAnswers.EXCLUDED,
    }


def test_who_says_no_finding_is_registered_where_it_is_said(workspace):
    """An entry of a protocol without the field is what it always was."""
    assert "no_finding" not in register_protocol(workspace, ME).payload
    said = workspace.protocol.read_text() + "\nno_finding: read\n"
    workspace.protocol.write_text(said)
    assert register_protocol(workspace, ME).payload["no_finding"] == "read"


def test_registered_once_and_found_again(workspace):
    """The claim is in the ledger from its first use; a second use adds nothing."""
    first = register_protocol(workspace, ME, now=now)
    assert register_protocol(workspace, ME, now=now) == first
    assert find_registration(workspace, protocol_digest(workspace)) == first
    actions = [entry.action for entry in read_ledger(workspace.ledger)]
    assert actions.count("protocol_set") == 1


def test_an_edit_is_another_protocol(workspace):
    """Whatever changes in the file, the earlier registration does not cover it."""
    register_protocol(workspace, ME, now=now)
    text = workspace.protocol.read_text()
    write_atomic(workspace.protocol, text.replace("kappa: 0.80", "kappa: 0.70"))
    assert find_registration(workspace, protocol_digest(workspace)) is None
    assert read_protocol(workspace).kappa == 0.70


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("accuracy: 95", "accuracy"),
        ("rule: best", "rule"),
        ("kapa: 0.8", "kapa"),
        ("rule: lower", "min_positives"),
        ("min_cases: 0", "min_cases"),
        ("min_positives: 0", "min_positives"),
        ("min_negatives: 0", "min_negatives"),
        ("confidence: 0.5", "confidence"),
        ("confidence: .nan", "confidence"),
    ],
)
def test_wrong_fields_are_named(workspace, line, field):
    """A typo or an impossible value is refused, never replaced by a default."""
    write_atomic(workspace.protocol, f"{line}\n")
    with pytest.raises(DataError, match=field):
        read_protocol(workspace)


def test_a_missing_file_is_named(workspace):
    """Without a protocol there is no gate."""
    workspace.protocol.unlink()
    with pytest.raises(DataError, match=r"protocol\.yaml"):
        read_protocol(workspace)
