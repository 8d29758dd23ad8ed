"""Pairs of systems: seen from the better one, on the cells of both."""

from dataclasses import replace

import numpy as np
import pytest

from loop.core.records import ValueCode
from loop.score.ran import score
from loop.score.records import Conventions
from tests.score.graded_tables import graded, systems

QUICK = {"resamples": 20, "permutations": 20}


def test_equal_systems_share_their_rank():
    """Two copies are first together; the next one is third."""
    table = systems(2)
    told = np.stack([table.candidates[1], table.candidates[0], table.candidates[0]])
    result = score(graded(table.reference, told), Conventions(), **QUICK)
    assert [(one.system, one.rank) for one in result.systems] == [
        ("B", 1),
        ("C", 1),
        ("A", 3),
    ]
    tied = next(d for d in result.differences if {d.better, d.worse} == {"B", "C"})
    assert (tied.better, tied.difference.value, tied.p) == ("B", 0.0, 1.0)


def test_differences_are_seen_from_the_better_system():
    """The value is never negative, and lies in its interval."""
    table = systems(4)
    table = replace(table, candidates=table.candidates[::-1])
    result = score(table, Conventions(), resamples=500, permutations=200)
    place = {one.system: one.rank for one in result.systems}
    assert len(result.differences) == 6
    for one in result.differences:
        low, high = one.difference.low, one.difference.high
        assert place[one.better] < place[one.worse]
        assert one.difference.value > 0
        assert low <= one.difference.value <= high
        assert 0 < one.p <= one.p_holm <= 1


def test_one_system_has_no_differences():
    """There is nothing to compare it with."""
    result = score(systems(1), Conventions(), **QUICK)
    assert result.differences == ()
    assert result.systems[0].best == 1.0


def test_a_difference_is_taken_on_the_cells_of_both():
    """A case that one of them lacks is no advantage for the other."""
    table = systems(2, missing=[(1, [3, 4])])
    kept = [row for row in range(60) if row not in (3, 4)]
    smaller = graded(table.reference[kept], table.candidates[:, kept])
    one = score(table, Conventions(), **QUICK).differences[0]
    two = score(smaller, Conventions(), **QUICK).differences[0]
    assert one.difference.value == pytest.approx(two.difference.value, abs=1e-12)


def test_five_cases_cannot_show_a_difference():
    """All better in all five: 2 of 32 exchanges, and every one was counted."""
    truth = np.ones((5, 2), dtype=np.int8)
    told = np.zeros((2, 5, 2), dtype=np.int8)
    told[0], told[1, :, 0] = 1, 1
    (one,) = score(graded(truth, told), Conventions(), resamples=20).differences
    assert (one.better, one.worse, one.exact) == ("A", "B", True)
    assert one.difference.value == 0.5
    assert one.p == one.p_holm == 2 / 32


def test_two_systems_without_a_common_cell_have_no_difference():
    """None with a reason; nothing is flipped or tested."""
    truth = np.ones((4, 2), dtype=np.int8)
    told = np.full((2, 4, 2), ValueCode.UNANSWERED, dtype=np.int8)
    told[0, :2], told[1, 2:] = 1, 1
    (one,) = score(graded(truth, told), Conventions(), **QUICK).differences
    assert (one.better, one.worse) == ("A", "B")
    assert one.difference[:3] == (None, None, None)
    assert (one.p, one.p_holm) == (None, None)
    assert one.difference.note
