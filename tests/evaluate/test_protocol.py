"""The protocol is read strictly, identified by its file, and registered once."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from loop.core.errors import DataError
from loop.core.files import write_atomic
from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import UncertainAnswers
from loop.core.yaml_files import check_model, parse_yaml
from loop.evaluate.protocol import (
    F1Floors,
    JudgingRules,
    Protocol,
    find_registration,
    list_policies,
    protocol_digest,
    read_protocol,
    register_protocol,
)
from loop.labels.error_categories import ErrorGroup, read_errors

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


SECTION = """
judging:
  threshold: 0.6
  rule: lower
  f1_floors:
    omission: 0.8
"""


def test_without_its_section_a_protocol_says_nothing_of_judges(workspace):
    """Its data is what it was before judges could be claimed, field for field."""
    said = read_protocol(workspace)
    assert said.judging is None
    assert "judging" not in said.model_dump(mode="json")
    assert "judging" not in register_protocol(workspace, ME).payload
    # The shipped file, whose digest is in ledgers.
    shipped = protocol_digest(WorkspacePaths(bundled()))
    assert shipped.startswith("bc4af084bbb3")


def test_a_claim_of_judges_is_read_kept_and_registered(workspace):
    """What is not said has its default; what was written is read as the same again."""
    write_atomic(workspace.protocol, workspace.protocol.read_text() + SECTION)
    said = read_protocol(workspace)
    rules = said.judging
    assert (rules.measure, rules.threshold, rules.rule) == ("tau_b", 0.6, "lower")
    assert (rules.min_units, rules.max_unanswered) == (20, 0.01)
    assert (rules.copy_test, rules.margin) == (True, None)
    assert dict(rules.f1_floors.items()) == {ErrorGroup.OMISSION: 0.8}
    assert Protocol.model_validate(said.model_dump(mode="json")) == said
    payload = register_protocol(workspace, ME).payload
    assert payload["judging"] == "tau_b 0.6 (lower)"


def test_every_group_of_errors_may_have_a_floor():
    """No category of clinical content is out of reach of a claim."""
    assert tuple(F1Floors.model_fields) == tuple(ErrorGroup)
    known = read_errors(bundled() / "labels")
    named = [known.of_group(group) for group in ErrorGroup]
    assert named == [
        ("false_finding", "comparison"),
        ("omission", "omitted_change"),
        ("location", "severity"),
    ]
    assert {one for group in named for one in group} == set(known.clinical)


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("judging:", "give at least its threshold, or remove the section"),
        ("judging: {}", "judging.threshold: missing"),
        ("judging: {threshold: 60}", "judging.threshold"),
        ("judging: {threshold: .6, measure: kappa}", "judging.measure"),
        ("judging: {threshold: 0.6, rule: upper}", "judging.rule"),
        ("judging: {threshold: 0.6, min_units: 0}", "judging.min_units"),
        ("judging: {threshold: 0.6, margin: 0}", "judging.margin"),
        ("judging: {threshold: 0.6, max_unanswered: 2}", "judging.max_unanswered"),
        (
            "judging: {threshold: 0.6, f1_floors: {severity: 0.4}}",
            "judging.f1_floors.severity: there is no such field",
        ),
    ],
)
def test_a_wrong_claim_of_judges_is_refused(workspace, section, problem):
    """Each wrong field is named with its place; nothing is replaced by a default."""
    write_atomic(workspace.protocol, f"{section}\n")
    with pytest.raises(DataError, match=re.escape(problem)):
        read_protocol(workspace)


def test_the_section_that_the_manual_shows_is_one():
    """Whoever copies it has a protocol."""
    page = Path(__file__).parents[2] / "docs" / "explanation" / "gates.md"
    shown = page.read_text("utf-8").split("```yaml\n")[1].split("```")[0]
    rules = check_model(parse_yaml(shown, page), Protocol, page).judging
    assert len(dict(rules.f1_floors.items())) == len(ErrorGroup)
    # Every field is in it.
    assert rules.model_fields_set == set(JudgingRules.model_fields)


def test_a_claim_is_registered_in_words(workspace):
    """Agreement first, then what marked pairs must reach, if anything is said of it."""
    said = workspace.protocol.read_text()
    assert register_protocol(workspace, ME, now=now).payload == {
        "digest": protocol_digest(workspace),
        "rule": "point",
        "accuracy": "0.95",
        "kappa": "0.8",
        "uncertain_answers": "wrong",
    }
    more = """  discrimination: {lower_limit: 0.7}
  robustness: {lower_limit: 0.9}
"""
    write_atomic(workspace.protocol, said + SECTION + more)
    entry = register_protocol(workspace, ME, now=now)
    assert entry.payload["judging"] == (
        "tau_b 0.6 (lower), D 0.7 (lower limit), R 0.9 (lower limit)"
    )
    assert (entry.subject, entry.actor, entry.time) == (
        "labels/protocol.yaml",
        "Dr A",
        "2026-01-05T09:00:00Z",
    )


@pytest.mark.parametrize(
    ("floors", "holds"),
    [
        ({}, False),
        ({"discrimination": {"lower_limit": 0.7}}, True),
        ({"robustness": {"lower_limit": 0.7}}, True),
    ],
)
def test_a_claim_on_marked_pairs_is_either_of_two(floors, holds):
    """Keys that are not said are not written either."""
    rules = JudgingRules.model_validate({"threshold": 0.5, **floors})
    assert rules.holds_marked_pairs is holds
    written = rules.model_dump(mode="json")
    assert {"discrimination", "robustness"} & set(written) == set(floors)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (
            "wrong",
            "are wrong: where the reference decides, a false negative or a false "
            "positive",
        ),
        ("absent", "count as absent"),
        ("present", "count as present"),
        (
            "excluded",
            "are left out of every rate, and counted; more than 2.5 % of the decided "
            "cases or of the positives fail a label",
        ),
        (
            None,
            "are left out of every rate, and counted, however many there are: the "
            "protocol was written before it could say otherwise (uncertain_answers)",
        ),
    ],
)
def test_what_an_uncertain_answer_counts_as_is_one_sentence(policy, words):
    """And the limit to how many is said only where there is one."""
    if policy is None:
        rules = Protocol()
    else:
        rules = Protocol(uncertain_answers=policy, max_uncertain=0.025)
    assert rules.uncertain_words == f"Uncertain answers {words}."
    assert rules.limits_uncertain is (policy == "excluded")
    assert rules.under(rules.policy) is rules
    other = rules.under(UncertainAnswers.PRESENT)
    assert other.policy is UncertainAnswers.PRESENT


def test_a_registration_that_cannot_be_understood_has_no_policy(workspace):
    """The others are listed; another action is none."""
    for action, payload in (
        ("protocol_set", {"digest": "a", "uncertain_answers": "maybe"}),
        ("protocol_set", {"digest": "b", "uncertain_answers": "absent"}),
        ("protocol_set", {"digest": "c"}),
        ("evaluated", {"digest": "d", "uncertain_answers": "absent"}),
    ):
        event = Event(action=action, subject="x", reason="why", payload=payload)
        append_event(workspace.ledger, event, ME)
    assert list_policies(workspace) == {
        "b": UncertainAnswers.ABSENT,
        "c": UncertainAnswers.EXCLUDED,
    }
    assert find_registration(workspace, "c").payload == {"digest": "c"}
    assert find_registration(workspace, "d") is None


def test_fourteen_positives_are_the_least_that_limits_can_be_taken_of():
    """0.8^14 is below 0.05 and 0.8^13 is not."""
    assert 0.8**14 < 0.05 < 0.8**13
    assert Protocol(rule="lower", min_positives=14).min_positives == 14
    assert Protocol(rule="point", min_positives=1).min_positives == 1
    with pytest.raises(ValueError, match="needs min_positives of 14 or more"):
        Protocol(rule="lower", min_positives=13)
    with pytest.raises(ValueError, match="max_uncertain needs uncertain_answers"):
        Protocol(max_uncertain=0.1)
