"""Codes as counts: nothing unanswered becomes absent, and every pair is accounted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.records import ValueCode
from loop.score.counting import (
    GRADED_CODES,
    apply,
    count_left_out,
    paired_rows,
)
from loop.score.records import Uncertain
from loop.stats.confusion import count_confusions
from tests.score.graded_tables import coverage, graded, tables


@pytest.mark.parametrize("policy", list(Uncertain))
def test_what_has_no_value_is_excluded_under_every_policy(policy):
    """A silent negative is the bug this field is known for."""
    codes = np.array([[ValueCode.UNANSWERED, ValueCode.MISSING]], dtype=np.int8)
    assert apply(codes, policy).tolist() == [[-1, -1]]


@pytest.mark.parametrize(("policy", "code"), [("pos", 1), ("neg", 0), ("excl", -1)])
def test_uncertain_counts_as_the_policy_says(policy, code):
    """The three conventions of public code, by name."""
    codes = np.array([[-1, 1, 0]], dtype=np.int8)
    assert apply(codes, Uncertain(policy)).tolist() == [[code, 1, 0]]
    assert codes.tolist() == [[-1, 1, 0]]


@pytest.mark.parametrize("code", [2, -4])
def test_an_unknown_code_is_refused(code):
    """Anything else is a mistake of whoever made the table."""
    with pytest.raises(ValueError, match=f"got {code}"):
        apply(np.array([[0, code]], dtype=np.int8), Uncertain.EXCLUDED)


@given(tables(GRADED_CODES), st.sampled_from(list(Uncertain)))
def test_counts_and_what_is_left_out_sum_to_the_pairs(pair, policy):
    """No pair is lost and none counts twice, label by label."""
    table = graded(*pair)
    paired = paired_rows(table)
    left = count_left_out(table.reference, table.candidates, policy, paired)
    candidate = np.where(paired[0][:, None], apply(pair[1], policy), np.int8(-1))
    counts = count_confusions(apply(pair[0], policy), candidate).sum(axis=1)
    total = counts + left.uncertain[0] + left.unanswered[0]
    assert (total == paired[0].sum()).all()


def test_a_pair_both_uncertain_and_unanswered_is_unanswered():
    """No value at all is the graver of the two."""
    table = graded([[-1, 0]], [[ValueCode.UNANSWERED, -1]])
    left = count_left_out(
        table.reference, table.candidates, Uncertain.EXCLUDED, paired_rows(table)
    )
    assert left.unanswered.tolist() == [[1, 0]]
    assert left.uncertain.tolist() == [[0, 1]]


def test_without_coverage_a_row_of_nothing_is_no_pair():
    """So a lost row is not counted as 21 unanswered labels."""
    table = graded(
        [[1, 0], [1, 0]],
        [
            [ValueCode.MISSING, ValueCode.MISSING],
            [ValueCode.UNANSWERED, ValueCode.MISSING],
        ],
    )
    assert paired_rows(table).tolist() == [[False, True]]


def test_with_coverage_a_row_of_blanks_is_a_pair():
    """A label file that has the case, with every cell blank, did answer for it."""
    table = graded(
        [[1, 0], [1, 0]],
        [
            [ValueCode.MISSING, ValueCode.MISSING],
            [ValueCode.MISSING, ValueCode.MISSING],
        ],
    )
    told = [coverage("A", 1, missing=("c0001",))]
    assert paired_rows(table, told).tolist() == [[True, False]]


def test_coverage_of_other_systems_is_refused():
    """Else the missing cases of one system would be taken from another."""
    with pytest.raises(ValueError, match="coverage is of"):
        paired_rows(graded([[1]], [[1]]), [coverage("B", 1)])
