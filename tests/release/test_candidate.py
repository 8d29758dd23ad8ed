"""What stands against a candidate: the order of things, and who approves."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.evaluate.gates import GateVerdict
from loop.evaluate.protocol import protocol_digest, register_protocol
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.release.candidate import (
    FreezeRequest,
    _asked,
    _gate_objections,
    claim_facts,
    claimant_of,
    engine_facts,
    is_registered_late,
    opening_facts,
    order_objections,
)
from loop.release.facts import ClaimedFacts, ClaimFacts, ListedOpening
from loop.run.spec import RunSpec
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


def test_an_opening_is_listed_as_the_ledger_has_it(workspace):
    """Every one of the holdout, in order, and of no other."""
    cohort = {"role": "holdout", "cohort_digest": "c"}
    told = [("cohort_added", "held", cohort)]
    told += [
        (
            "holdout_opened",
            name,
            {
                "cohort": name,
                "number": number,
                "budget": 3,
                "prompt": f"tiny@v{number}",
            },
        )
        for name, number in (("held", 1), ("other", 1), ("held", 2))
    ]
    for action, subject, payload in told:
        event = Event(action=action, subject=subject, reason="why", payload=payload)
        append_event(workspace.ledger, event, WHO)
    entries = read_ledger(workspace.ledger)
    assert opening_facts(workspace, "held") == [
        ListedOpening(
            number=number,
            budget=3,
            time=entries[seq - 1].time,
            actor="Dr B",
            why="why",
            prompt=f"tiny@v{number}",
        )
        for number, seq in ((1, 3), (2, 5))
    ]


@pytest.mark.parametrize(("kind", "told"), [("all", "all"), ("subset", "subset")])
def test_a_claim_is_told_label_by_label(kind, told):
    """With its cohort, its level and its verdict."""
    labels = tuple(
        SimpleNamespace(label=name, p=p, p_holm=p_holm, certified=certified)
        for name, p, p_holm, certified in (
            ("edema", 0.01, 0.02, True),
            ("mass", 0.5, 1.0, False),
            ("nodule", None, None, None),
        )
    )
    claim = SimpleNamespace(
        kind=kind, alpha=0.05, verdict=GateVerdict.FAIL, labels=labels
    )
    assert claim_facts(claim, "held") == ClaimFacts(
        kind=told,
        alpha=0.05,
        verdict=GateVerdict.FAIL,
        cohort="held",
        labels=[
            ClaimedFacts(label="edema", p=0.01, p_holm=0.02, certified=True),
            ClaimedFacts(label="mass", p=0.5, p_holm=1.0, certified=False),
            ClaimedFacts(label="nodule", p=None, p_holm=None, certified=None),
        ],
    )


def test_the_digest_of_an_engine_is_of_all_that_it_is():
    """Its name, its parameters and its identity."""
    manifest = {
        "spec": {"engine": "openai:m", "parameters": {"seed": 1}, "contract": "x/1"},
        "engine_identity": {"model": "m"},
    }
    found = engine_facts(manifest)
    told = {"name": "openai:m", "parameters": {"seed": 1}, "identity": {"model": "m"}}
    assert found.model_dump() == told | {"digest": digest_json(told)}


def test_an_early_run_of_the_same_question_is_asked_alike():
    """Whatever its draw and the labels it is scored with; else it is another."""
    spec = RunSpec(
        prompt="tiny@v1",
        prompt_digest="p",
        cohort="dev",
        cohort_digest="c",
        engine="rules",
        contract="label_values/1",
        parameters={"temperature": 0.5, "seed": 3},
        reference=1,
        reference_digest="r",
        protocol_digest="o",
        draw=0,
    )
    for changes in (
        # A draw is asked with a seed of its own.
        {"draw": 2, "parameters": {"temperature": 0.5, "seed": 5}},
        {"reference": None},
        {"reference_digest": "s"},
        {"protocol_digest": "q"},
    ):
        assert _asked(replace(spec, **changes)) == _asked(spec), changes
    for changes in (
        {"prompt_digest": "q"},
        {"cohort_digest": "d"},
        {"engine": "other"},
        {"contract": "label_values/2"},
        {"limit": 5},
        {"draw": 2},
        {"parameters": {"temperature": 0.6, "seed": 3}},
    ):
        assert _asked(replace(spec, **changes)) != _asked(spec), changes


@pytest.mark.parametrize("why", ["", "  "])
def test_a_release_needs_a_reason(why):
    """It is printed on every document."""
    with pytest.raises(ValueError, match="a release needs a reason"):
        FreezeRequest(prompt="tiny@v1", cohort="dev", why=why)


def test_a_claimant_needs_something_that_it_is_held_against(workspace):
    """Labels, or of pairs the ratings of experts; each is asked for by its verb."""
    candidate = SimpleNamespace(
        version=VERSION, engine=SimpleNamespace(digest="e"), protocol_digest="o"
    )
    text = workspace.root / "held.csv"
    text.write_text("case_id,text\nh1,Clear lungs.\n")
    options = ImportOptions(name="held", role="holdout", source="-", licence="-")
    import_cohort(workspace, text, options, actor=WHO)
    with pytest.raises(DataError, match=r"reference labels yet.*cohort votes held"):
        claimant_of(workspace, candidate, "held")
    text.write_text("id,reference,candidate\nh1,Clear lungs.,Effusion.\n")
    options = ImportOptions(name="pairs", role="holdout", source="-", licence="-")
    import_cohort(workspace, text, options, actor=WHO)
    with pytest.raises(DataError, match=r"experts' ratings yet.*cohort ratings pairs"):
        claimant_of(workspace, candidate, "pairs")


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        (GateVerdict.PASS, []),
        (
            GateVerdict.FAIL,
            ["the gate on dev says FAIL (1 PASS, 1 FAIL, 0 INSUFFICIENT)"],
        ),
        (
            GateVerdict.INSUFFICIENT,
            ["the gate on dev says INSUFFICIENT (1 PASS, 1 FAIL, 0 INSUFFICIENT)"],
        ),
    ],
)
def test_the_claim_decides_whether_a_gate_objects(verdict, said):
    """What stands against it is counted by label."""
    evaluation = SimpleNamespace(
        cohort=SimpleNamespace(name="dev"),
        labels=[
            SimpleNamespace(gate=SimpleNamespace(verdict=one))
            for one in (GateVerdict.PASS, GateVerdict.FAIL)
        ],
    )
    claim = SimpleNamespace(verdict=verdict)
    assert list(_gate_objections(evaluation, claim)) == said
