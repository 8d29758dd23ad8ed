"""What a release says of its change: which labels are better, worse or as before."""

import pytest

from loop.evaluate.compare import compare_inputs
from loop.release.change import Base, Compared, change_facts
from tests.evaluate.scenes import inputs, outcome, reference
from tests.release.small_numbers import VERSION

BETTER, SAME, WORSE = "edema", "fracture", "pneumothorax"


def test_labels_are_sorted_by_what_was_gained_and_lost():
    """One case more or less is a change, and one gained for one lost is none."""
    said = {
        "c0": ({BETTER: 0, SAME: 0, WORSE: 1}, {BETTER: 1, SAME: 1, WORSE: 0}),
        "c1": ({BETTER: 1, SAME: 1, WORSE: 1}, {BETTER: 1, SAME: 0, WORSE: 1}),
    }
    standard = reference({c: dict.fromkeys((BETTER, SAME, WORSE), 1) for c in said})
    before, after = (
        inputs([outcome(case, both[at]) for case, both in said.items()], standard)
        for at in (0, 1)
    )
    comparison = compare_inputs(before, after, resamples=20)
    facts = change_facts(VERSION, Compared(Base(None, None), comparison))
    assert facts.improved == [BETTER]
    assert SAME in facts.unchanged
    assert not {BETTER, WORSE} & set(facts.unchanged)
    assert [(one.label, one.lost, one.gained) for one in facts.worse] == [(WORSE, 1, 0)]
    (worse,) = facts.worse
    assert (worse.before, worse.after) == (1.0, pytest.approx(2 / 3))
    (lost,) = Compared(Base(None, VERSION), comparison).losses
    assert lost.startswith("Pneumothorax: may be worse than in tiny@v1")
