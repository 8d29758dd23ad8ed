"""One case: F1 over its labels, errors, and which labels they are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from loop.core.records import ValueCode
from loop.score.counting import GRADED_CODES, case_errors, case_f1, score_cases
from loop.score.records import Conventions, Uncertain
from tests.score.graded_tables import BINARY, VALUES, coverage, graded, tables


@given(tables(BINARY))
def test_case_f1_agrees_with_scikit_learn(pair):
    """F1 of every case, where nothing positive on both sides counts 1."""
    # Cases as its labels; twice, because it takes a single one for a binary problem.
    truth, told = (np.vstack([side, side]).T for side in pair)
    theirs = f1_score(truth, told, average=None, zero_division=1)
    assert case_f1(*pair) == pytest.approx(theirs[: pair.shape[1]])


@given(tables(GRADED_CODES), st.sampled_from(list(Uncertain)))
def test_the_parts_of_a_case_agree(pair, policy):
    """Errors are missed plus invented; an undecided case has no F1."""
    for case in score_cases(graded(*pair), Conventions(uncertain=policy)):
        assert case.errors == len(case.missed) + len(case.invented)
        assert (case.f1 is None) == (case.decided == 0)
        assert not set(case.missed) & set(case.invented)
        if case.f1 is not None:
            assert (case.f1 == 1) == (case.errors == 0)


@given(tables(VALUES))
def test_swapping_the_sides_swaps_missed_and_invented(pair):
    """F1 and the number of errors do not care which side is the reference."""
    there = score_cases(graded(*pair), Conventions())
    back = score_cases(graded(*pair[::-1]), Conventions())
    both_ways = {case.case_id: case for case in back}
    for case in there:
        other = both_ways[case.case_id]
        assert (case.f1, case.missed) == (other.f1, other.invented)


def test_a_case_by_hand():
    """Two found, one missed, one invented, one left out: 4 / 6."""
    table = graded([[1, 1, 1, 0, -1]], [[1, 1, 0, 1, 1]])
    (case,) = score_cases(table, Conventions())
    assert case == ("A", "c0000", 4 / 6, 2, ("label_2",), ("label_3",), 4)


def test_a_case_without_a_candidate_has_no_score():
    """It is counted as missing, not scored as wrong."""
    table = graded(
        [[1, 0], [0, 1]],
        [[[ValueCode.MISSING, ValueCode.MISSING], [0, 1]], [[1, 0], [0, 1]]],
    )
    told = [coverage("A", 1, missing=("c0000",)), coverage("B", 2)]
    for given_coverage in ((), told):
        cases = score_cases(table, Conventions(), coverage=given_coverage)
        names = [(case.system, case.case_id) for case in cases]
        assert names == [("A", "c0001"), ("B", "c0000"), ("B", "c0001")]


def test_an_unanswered_case_is_listed_without_a_number():
    """Leaving it out would hide it; 0 would blame the system for the engine."""
    table = graded([[1, 0]], [[ValueCode.UNANSWERED, ValueCode.UNANSWERED]])
    (case,) = score_cases(table, Conventions())
    assert (case.f1, case.errors, case.decided) == (None, 0, 0)


def test_errors_are_undefined_where_nothing_is_decided():
    """A case that nobody answered has not 0 errors."""
    truth = np.array([[1, -1], [-1, -1]], dtype=np.int8)
    told = np.array([[0, 1], [1, 1]], dtype=np.int8)
    assert np.array_equal(case_errors(truth, told), [1.0, np.nan], equal_nan=True)


def test_several_systems_at_once_are_each_alone():
    """The arrays may have systems in front."""
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 2, size=(4, 30, 6), dtype=np.int8)
    for measure in (case_f1, case_errors):
        alone = [measure(codes[0], one) for one in codes[1:]]
        assert np.array_equal(measure(codes[0], codes[1:]), alone, equal_nan=True)
