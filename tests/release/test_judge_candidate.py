"""What stands against a judge: a late claim, and less agreement than before."""

from types import SimpleNamespace

import pytest

from loop.evaluate.protocol import JudgingRules
from loop.judge.judge_comparison import JudgeComparison, NumberChange
from loop.release.change import Base
from loop.release.judge_candidate import _losses
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
