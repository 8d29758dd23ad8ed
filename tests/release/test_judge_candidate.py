"""What stands against a judge: a late claim, and less agreement than before."""

from types import SimpleNamespace

import pytest

from loop.core.errors import DataError
from loop.core.ledger import Actor, Event, append_event
from loop.core.paths import WorkspacePaths, bundled
from loop.evaluate.gates import GateVerdict
from loop.evaluate.protocol import JudgingRules, Protocol
from loop.judge.judge_comparison import JudgeComparison, NumberChange
from loop.judge.judge_gates import JudgeAspect, JudgeCheck, JudgeGate
from loop.prompts.catalog import read_version
from loop.release.change import Base
from loop.release.judge_candidate import (
    _claim,
    _gate_objections,
    _losses,
    _require_claim,
    _require_points,
    holdout_objections,
)
from loop.release.judge_provenance import is_late
from loop.stats.intervals import Estimate
from tests.release.small_numbers import VERSION


@pytest.mark.parametrize(
    ("low", "margin", "lost"),
    [
        (-0.09, 0.1, False),
        (-0.1, 0.1, True),
        (-0.11, 0.1, True),
        (0.02, 0.1, False),
        (None, 0.1, True),
        # Without a margin nothing is asked.
        (-0.9, None, False),
        (None, None, False),
    ],
)
def test_a_limit_must_lie_above_the_margin(low, margin, lost):
    """Where no limit is known, that it is no worse was not shown."""
    comparison = JudgeComparison(
        agreement=NumberChange("tau-b", 0.6, 0.6),
        difference=Estimate(0.0, low, None if low is None else 0.2),
        f1=(),
    )
    rules = JudgingRules(threshold=0.5, margin=margin)
    found = list(_losses(comparison, Base(None, VERSION), rules))
    said = "tau-b: may be below that of tiny@v1 by more than the protocol's margin"
    assert found == ([said] if lost else [])
    assert list(_losses(None, Base(None, VERSION), rules)) == []
    assert list(_losses(comparison, Base(None, None), rules)) == []


@pytest.mark.parametrize(
    ("registered", "late"),
    [
        ("", True),
        ("2026-03-01T09:59:59Z", False),
        ("2026-03-01T10:00:00Z", False),
        ("2026-03-01T10:00:01Z", True),
    ],
)
def test_a_claim_is_fixed_when_the_run_begins(registered, late):
    """In the same second it is; one that was never registered is not."""
    run = SimpleNamespace(created="2026-03-01T10:00:00.731+00:00")
    assert is_late(registered, SimpleNamespace(run=run)) is late


def gate(*checks):
    """Return a gate of checks, each a verdict and what is suspicious of it."""
    return JudgeGate(
        checks=tuple(
            JudgeCheck(
                aspect=JudgeAspect.AGREEMENT,
                what="tau-b",
                verdict=verdict,
                observed=0.5,
                limit=None,
                threshold=0.4,
                reason="",
                needs="",
                suspicious=suspicious,
            )
            for verdict, suspicious in checks
        ),
        pairs=8,
        used=8,
        units=8,
        raters=2,
    )


PASS, FAIL, FEW = GateVerdict.PASS, GateVerdict.FAIL, GateVerdict.INSUFFICIENT


@pytest.mark.parametrize(
    ("checks", "verdict", "said"),
    [
        ([(PASS, "")], PASS, []),
        (
            [(PASS, ""), (FAIL, ""), (FEW, "")],
            FAIL,
            ["the gate on rp says FAIL (1 PASS, 1 FAIL, 1 INSUFFICIENT)"],
        ),
        (
            [(PASS, ""), (FEW, "")],
            FEW,
            ["the gate on rp says INSUFFICIENT (1 PASS, 0 FAIL, 1 INSUFFICIENT)"],
        ),
        # What is too good stands against it, whatever the gate says.
        (
            [(PASS, "odd"), (PASS, ""), (PASS, "odder")],
            PASS,
            ["suspicious on rp: odd", "suspicious on rp: odder"],
        ),
    ],
)
def test_a_gate_stands_against_a_judge_on_either_cohort(checks, verdict, said):
    """Before the holdout is opened, and by what it showed."""
    found = SimpleNamespace(cohort="rp", gate=gate(*checks))
    assert found.gate.verdict is verdict
    assert list(_gate_objections(found)) == said
    claim = _claim(found)
    assert (claim.kind, claim.verdict, claim.cohort) == ("judging", verdict, "rp")
    kept = SimpleNamespace(
        cohort="rp",
        verdict=verdict,
        gate=[SimpleNamespace(verdict=one) for one, _ in checks],
        suspicious=[words for _, words in checks if words],
    )
    shown = SimpleNamespace(evaluation=kept)
    assert list(holdout_objections(shown)) == said


def test_without_a_gate_nothing_is_claimed_and_nothing_objects():
    """The protocol said nothing, or nobody gave points."""
    found = SimpleNamespace(cohort="rp", gate=None)
    assert list(_gate_objections(found)) == []
    assert _claim(found).verdict is FEW


def test_what_is_claimed_must_be_in_the_protocol(workspace):
    """With a score that the answers of the judge can have."""
    version = read_version(workspace, "extractor@v1")
    with pytest.raises(DataError, match=r"of extractor@v1: labels/protocol\.yaml has"):
        _require_claim(Protocol(), version)
    rules = JudgingRules(threshold=0.5)
    with pytest.raises(DataError):
        _require_claim(Protocol(judging=rules), version)
    judge = read_version(WorkspacePaths(bundled()), "green@v1")
    assert _require_claim(Protocol(judging=rules), judge) == rules


def test_the_newest_ratings_must_have_points(workspace):
    """Marks alone, or points of an earlier version only, are none."""
    refused = "cohort pairs has no points of raters.*cohort ratings pairs --ratings"

    def add(action, payload):
        event = Event(action=action, subject="pairs", reason="-", payload=payload)
        append_event(workspace.ledger, event, Actor(name="Dr. Example"))

    add("cohort_added", {"role": "dev", "cohort_digest": "c"})
    with pytest.raises(DataError, match=refused):
        _require_points(workspace, "pairs")
    add("ratings_added", {"cohort": "pairs", "number": 1, "ratings": "a"})
    _require_points(workspace, "pairs")
    add("ratings_added", {"cohort": "pairs", "number": 2, "errors": "b"})
    with pytest.raises(DataError, match=refused):
        _require_points(workspace, "pairs")
