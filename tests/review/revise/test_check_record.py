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
    now = replace(INPUTS, **{name: ("v2",) if name == "verdicts" else "other"})
    (line,) = name_changes(INPUTS, now)
    everything = replace(
        now, **{one.name: "x" for one in fields(INPUTS) if "digest" in one.name}
    )
    assert line in name_changes(INPUTS, everything)
    assert len({*name_changes(INPUTS, everything)}) >= 6
