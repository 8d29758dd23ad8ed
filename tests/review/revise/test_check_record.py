"""What a check rests on: each part that changed is named, and only that."""

from dataclasses import fields, replace

import pytest

from loop.review.revise.check_record import CheckInputs, name_changes

INPUTS = CheckInputs(
    draft_digest="a",
    parent_digest="b",
    cohort="dev",
    cohort_digest="c",
    reference=1,
    reference_digest="d",
    protocol_digest="e",
    verdicts=("v1",),
    anchors_digest="f",
    not_comparable=(),
)

NAMES = {"cohort", "reference"}
"""What only says which: their digests decide."""


def test_a_check_holds_while_nothing_changed():
    """The same values are no change."""
    assert list(name_changes(INPUTS, replace(INPUTS))) == []


@pytest.mark.parametrize(
    "name", sorted({one.name for one in fields(CheckInputs)} - NAMES)
)
def test_each_part_that_changed_is_named_alone(name):
    """Who has to check anew reads why; a part nobody compares would hide it."""
    several = name in ("verdicts", "not_comparable")
    now = replace(INPUTS, **{name: ("v2",) if several else "other"})
    (line,) = name_changes(INPUTS, now)
    everything = replace(
        now, **{one.name: "x" for one in fields(INPUTS) if "digest" in one.name}
    )
    assert line in name_changes(INPUTS, everything)
    assert len({*name_changes(INPUTS, everything)}) >= 6


def test_a_check_of_before_the_labels_were_noted_holds():
    """What was not written down then cannot have changed."""
    then = replace(INPUTS, not_comparable=None)
    assert list(name_changes(then, replace(INPUTS, not_comparable=("edema",)))) == []
    now = replace(INPUTS, not_comparable=("edema", "fracture"))
    (line,) = name_changes(INPUTS, now)
    assert line.endswith(": edema, fracture")
    (line,) = name_changes(now, INPUTS)
    assert line.endswith(": none")
