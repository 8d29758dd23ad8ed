"""Codes as counts: nothing unanswered becomes absent, and every pair is accounted."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from loop.core.records import ValueCode
from loop.score.counting import (
    GRADED_CODES,
    apply,
    apply_to_pairs,
    case_errors,
    case_f1,
    confusions,
    count_left_out,
    paired_rows,
    score_cases,
)
from loop.score.records import Conventions, Uncertain
from loop.stats.confusion import count_confusions
from tests.score.graded_tables import BINARY, VALUES, coverage, graded, tables


@pytest.mark.parametrize("policy", list(Uncertain))
def test_what_has_no_value_is_excluded_under_every_policy(policy):
    """A silent negative is the bug this field is known for."""
    codes = np.array([[ValueCode.UNANSWERED, ValueCode.MISSING]], dtype=np.int8)
    for truth in (codes, np.array([[1, 0]], dtype=np.int8)):
        sides = apply_to_pairs(truth, codes, policy)
        assert sides.candidates.tolist() == [[-1, -1]]


def test_a_hedge_is_wrong_where_the_reference_decides_and_only_there():
    """Missed or invented; an uncertain reference leaves the pair out."""
    truth = np.array([[1, 0, -1, -1, ValueCode.MISSING]], dtype=np.int8)
    told = np.array([[-1, -1, 1, -1, -1]], dtype=np.int8)
    reference, candidates = apply_to_pairs(truth, told, Uncertain.WRONG)
    decided = (reference >= 0) & (candidates >= 0)
    assert decided.tolist() == [[True, True, False, False, False]]
    assert candidates[decided].tolist() == [0, 1]
    with pytest.raises(ValueError, match="only beside its reference"):
        apply(told, Uncertain.WRONG)


def test_a_perfect_copy_of_hedged_references_is_perfect_under_every_policy():
    """What the reference hedges costs nobody anything."""
    codes = np.array([[1, 0, -1], [0, 1, 1]], dtype=np.int8)
    for policy in Uncertain:
        sides = apply_to_pairs(codes, codes, policy)
        counts = count_confusions(*sides)
        assert not counts[:, 1:3].any()


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
    truth, told = apply_to_pairs(*pair, policy)
    candidate = np.where(paired[0][:, None], told, np.int8(-1))
    counts = count_confusions(truth, candidate).sum(axis=1)
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
    rules = Conventions(uncertain=Uncertain.EXCLUDED)
    there = score_cases(graded(*pair), rules)
    back = score_cases(graded(*pair[::-1]), rules)
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


def test_errors_are_missed_and_invented_labels_and_no_others():
    """Found, missed, invented, rightly absent, and two that are left out."""
    truth = np.array([[1, 1, 0, 0, 0, -1, 1], [1, 1, 0, 0, 0, 0, 0]], dtype=np.int8)
    told = np.array([[1, 0, 1, 0, 0, 1, -1], [1, 1, 0, 0, 0, 0, 0]], dtype=np.int8)
    assert case_errors(truth, told).tolist() == [2, 0]
    assert case_errors(truth, 1 - np.abs(truth)).tolist() == [6, 7]


def test_several_systems_at_once_are_each_alone():
    """The arrays may have systems in front."""
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 2, size=(4, 30, 6), dtype=np.int8)
    for measure in (case_f1, case_errors):
        alone = [measure(codes[0], one) for one in codes[1:]]
        assert np.array_equal(measure(codes[0], codes[1:]), alone, equal_nan=True)


@given(tables(VALUES))
def test_confusions_are_those_of_a_loop(pair):
    """Counting case by case, label by label."""
    table = graded(*pair)
    counted, missed = Counter(), Counter()
    for truth, told in zip(*pair, strict=True):
        lost = [i for i, t in enumerate(truth) if t == 1 and told[i] in (0, -1)]
        made = [i for i, t in enumerate(truth) if t == 0 and told[i] in (1, -1)]
        missed.update(lost)
        for i in lost:
            counted.update((i, j) for j in made)
    found = confusions(table, Conventions(), most=1000)
    names = table.labels
    assert {(c.missed, c.invented): c.n for c in found} == {
        (names[i], names[j]): n for (i, j), n in counted.items()
    }
    assert all(c.of_missed == missed[names.index(c.missed)] for c in found)


def test_the_most_common_comes_first_with_its_first_cases():
    """Effusion is called pneumonia twice, edema once."""
    labels = ("effusion", "pneumonia", "edema")
    truth = [[1, 0, 0]] * 4
    told = [[0, 0, 1], [0, 1, 0], [0, 1, 0], [0, 0, 0]]
    table = graded(truth, told, labels=labels)
    first, second = confusions(table, Conventions(), examples=1)
    assert first == ("A", "effusion", "pneumonia", 2, 4, 2, ("c0001",))
    assert second == ("A", "effusion", "edema", 1, 4, 1, ("c0000",))


def test_each_system_has_its_own():
    """Systems in the order given, as many of each as asked for."""
    truth = [[1, 0, 0]]
    table = graded(truth, [[[0, 1, 1]], [[0, 0, 1]], [[1, 0, 0]]])
    found = confusions(table, Conventions(), most=1)
    assert [(c.system, c.invented) for c in found] == [
        ("A", "label_1"),
        ("B", "label_2"),
    ]


def test_ten_confusions_of_a_system_with_five_cases_each_unless_said():
    """Twelve are there, each in six cases: the most are shown, and not all."""
    truth = [[1, 1, 1, *[0] * 4]] * 6
    table = graded(truth, [[0, 0, 0, *[1] * 4]] * 6)
    found = confusions(table, Conventions())
    assert [len(one.case_ids) for one in found] == [5] * 10
    assert {one.n for one in found} == {6}
    every = confusions(table, Conventions(), most=12, examples=6)
    assert [len(one.case_ids) for one in every] == [6] * 12
    assert confusions(table, Conventions(), most=99, examples=99) == every


def test_a_case_without_a_candidate_confuses_nothing():
    """Whatever its row holds, when joining says there is none."""
    table = graded([[1, 0], [1, 0]], [[0, 1], [ValueCode.MISSING, ValueCode.MISSING]])
    told = [coverage("A", 1, missing=("c0000",))]
    assert confusions(table, Conventions(), coverage=told) == ()
