"""Repeated draws of a judge, and copies of the reference, by hand."""

import numpy as np
import pytest

from loop.judge.repeats import copy_test, self_consistency
from loop.stats.intervals import clopper_pearson
from loop.stats.reliability import icc_agreement

NA = np.nan


def test_repeats_are_told_by_pair():
    """Three draws of four pairs: standard deviations 0, 1, 0.5 and one pair lost."""
    scores = np.array([[1, 0, 0.0, 1], [1, 1, 0.5, NA], [1, 2, 1.0, 1]])
    counts = np.zeros((3, 4, 2))
    counts[2, 1, 0] = 1
    counts[1, 3] = NA
    found = self_consistency(scores, counts, resamples=200)
    assert (found.draws, found.pairs, found.incomplete) == (3, 3, 1)
    assert found.sd.value == pytest.approx((0 + 1 + 0.5) / 3)
    assert found.identical.value == pytest.approx(2 / 3)
    assert found.icc.value == pytest.approx(icc_agreement(scores[:, :3].T).value)


def test_counts_that_move_between_categories_are_not_identical():
    """The same total is not the same judgement."""
    counts = np.array([[[1.0, 0]] * 3, [[0, 1.0]] * 3])
    found = self_consistency(np.ones((2, 3)), counts)
    assert (found.identical.value, found.sd.value) == (0, 0)


def test_a_judge_that_always_says_the_same_has_an_exact_interval():
    """Twenty pairs of ten references: ten units, not twenty."""
    scores = np.tile(np.arange(20.0), (2, 1))
    found = self_consistency(scores, np.zeros((2, 20, 1)), units=np.arange(20) // 2)
    assert found.identical[:3] == (1, *clopper_pearson(10, 10))
    assert found.identical.note == "exact limits: no resample differs"
    assert (found.alpha.value, found.icc.value) == (1, 1)


def test_what_an_answer_does_not_say_is_the_same_in_both():
    """A judge that does not weigh errors leaves their significance out every time."""
    found = self_consistency(np.ones((2, 3)), np.full((2, 3, 1), NA))
    assert found.identical.value == 1


def test_without_a_complete_pair_nothing_is_estimated():
    """None, not a mean of nothing."""
    found = self_consistency(np.array([[1, NA], [NA, 1]]), np.zeros((2, 2, 1)))
    assert (found.pairs, found.incomplete) == (0, 2)
    assert found.sd.value is None and found.identical.value is None
    assert found.icc.value is None and found.alpha.value is None


@pytest.mark.parametrize(
    ("scores", "counts"), [((1, 3), (1, 3, 1)), ((2, 3), (2, 4, 1)), ((3,), (3, 1, 1))]
)
def test_what_is_no_repetition_is_refused(scores, counts):
    """The message gives both shapes."""
    with pytest.raises(ValueError, match="need scores"):
        self_consistency(np.ones(scores), np.ones(counts))


def test_copies_must_have_the_best_score():
    """White space is no difference; another word is no copy."""
    references = ["No effusion.", "Clear.", "Normal heart.", "Old fracture.", ""]
    candidates = ["No  effusion.\n", "Clear!", "Normal heart.", "Old fracture.", ""]
    scores = np.array([1.0, 0.2, 0.9, NA, 1 - 1e-12])
    found = copy_test(references, candidates, scores)
    assert (found.copies, found.unanswered, found.wrong) == (4, 1, (2,))
    assert found.passed is False
    assert copy_test(references[:1], candidates[:1], scores[:1]).passed is True
    assert copy_test(references[3:4], candidates[3:4], scores[3:4]).passed is False


def test_the_best_number_of_errors_is_none():
    """And without a copy there was no test."""
    texts = ["No effusion.", "Clear."]
    found = copy_test(texts, texts, np.array([0.0, 1.0]), best=0.0)
    assert found.wrong == (1,)
    assert copy_test(["Clear."], ["Opaque."], np.array([1.0])).passed is None
    with pytest.raises(ValueError, match="got 2, 2 and 1"):
        copy_test(texts, texts, np.ones(1))


def test_a_pair_that_no_draw_answers_is_not_incomplete():
    """It was asked as often as the others, and none of its draws stands alone."""
    scores = np.array([[0.5, NA, NA], [0.5, NA, 1.0]])
    found = self_consistency(scores, np.zeros((2, 3, 1)))
    assert (found.pairs, found.incomplete) == (1, 1)


def test_what_one_draw_leaves_out_and_another_counts_is_not_the_same():
    """Silence is no 0, in whichever draw it is."""
    for counts in ([[[NA]], [[0]]], [[[0]], [[NA]]]):
        found = self_consistency(np.ones((2, 1)), np.array(counts, dtype=float))
        assert found.identical.value == 0


def test_pairs_that_are_lost_take_their_units_with_them():
    """Of three units two have complete pairs, and limits are of these two."""
    scores = np.array([[NA, 1, 1, 1, 1], [1, 1, 1, 1, 1]])
    units = np.array(["a", "b", "b", "c", "c"])
    found = self_consistency(
        scores, np.zeros((2, 5, 1)), units=units, confidence=0.8, resamples=50
    )
    assert found.identical[:3] == (1, *clopper_pearson(2, 2, confidence=0.8))


def test_a_judge_that_never_says_the_same_has_an_exact_interval_too():
    """From 0 to what none of three units leaves open."""
    counts = np.array([[[0.0]] * 3, [[1.0]] * 3])
    found = self_consistency(np.ones((2, 3)), counts)
    assert found.identical[:3] == (0, *clopper_pearson(0, 3))
    assert found.identical.low == 0
    assert found.identical.high == pytest.approx(1 - 0.025 ** (1 / 3))


@pytest.mark.parametrize(
    ("score", "wrong"),
    [(1 - 1e-10, ()), (1 + 1e-10, ()), (1 - 1e-8, (0,)), (1 + 1e-8, (0,))],
)
def test_only_rounding_may_part_a_copy_from_the_best_score(score, wrong):
    """A score above the best possible one is not the best either."""
    assert copy_test(["Clear."], ["Clear."], np.array([score])).wrong == wrong
