"""Confusion counts and rates against scikit-learn, closed forms and symmetries."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import cohen_kappa_score, f1_score, multilabel_confusion_matrix

from loop.stats.confusion import (
    Confusion,
    average_f1,
    chance_agreement,
    count_confusions,
    effective_labels,
    f1_columns,
    kappa_note,
    kappas,
    mean_f1,
    micro_f1,
)


def codes(low):
    """Two arrays of codes from `low` to 1, alike in shape."""
    shape = st.tuples(st.integers(1, 25), st.integers(2, 5))
    table = shape.flatmap(
        lambda s: arrays(np.int8, (2, *s), elements=st.integers(low, 1))
    )
    return table.map(tuple)


@settings(deadline=None)
@given(codes(0))
def test_counts_and_averages_agree_with_scikit_learn(pair):
    """Another implementation, over random tables without excluded pairs."""
    reference, predicted = pair
    counts = count_confusions(reference, predicted)
    matrices = multilabel_confusion_matrix(reference, predicted)
    assert np.array_equal(counts, matrices[:, [1, 0, 1, 0], [1, 1, 0, 0]])
    for name, value in (("zero", 0), ("one", 1)):
        options = {"zero_division": value}
        macro = f1_score(reference, predicted, average="macro", **options)
        micro = f1_score(reference, predicted, average="micro", **options)
        assert average_f1(counts, zero_division=name) == pytest.approx(macro)
        assert micro_f1(counts, zero_division=name) == pytest.approx(micro)


@settings(deadline=None)
@given(codes(-1))
def test_an_excluded_code_on_either_side_leaves_the_pair_out(pair):
    """Dropping the pairs beforehand gives the same counts, label by label."""
    reference, predicted = pair
    counts = count_confusions(reference, predicted)
    for label in range(reference.shape[1]):
        kept = (reference[:, label] >= 0) & (predicted[:, label] >= 0)
        alone = count_confusions(
            reference[kept, label : label + 1], predicted[kept, label : label + 1]
        )
        assert np.array_equal(counts[label], alone[0])
        assert counts[label].sum() == kept.sum()


@settings(deadline=None)
@given(codes(-1))
def test_swapping_the_sides_swaps_the_errors(pair):
    """Kappa and F1 do not care which side is the reference."""
    reference, predicted = pair
    there = count_confusions(reference, predicted)
    back = count_confusions(predicted, reference)
    assert np.array_equal(there[:, [0, 2, 1, 3]], back)
    assert np.array_equal(kappas(there), kappas(back), equal_nan=True)


def test_rates_of_a_known_table():
    """Every rate by hand, for 22 TP, 3 FP, 5 FN, 270 TN."""
    table = Confusion(tp=22, fp=3, fn=5, tn=270)
    assert (table.n, table.positives, table.negatives, table.correct) == (
        300, 27, 273, 292,
    )  # fmt: skip
    assert table.accuracy == 292 / 300
    assert table.precision == 22 / 25
    assert table.recall == 22 / 27
    assert table.specificity == 270 / 273
    assert table.npv == 270 / 275
    assert table.f1 == 44 / 52
    assert table.prevalence == 27 / 300
    assert table.pabak == pytest.approx(2 * 292 / 300 - 1)


def test_gwet_ac1_stays_high_where_kappa_collapses():
    """By hand: share (123 + 120) / 250 = 0.972, chance 2 x 0.972 x 0.028 = 0.054432."""
    expected = (118 / 125 - 0.054432) / (1 - 0.054432)
    assert Confusion(118, 5, 2, 0).ac1 == pytest.approx(expected)
    assert float(kappas(np.array([118, 5, 2, 0]))) < 0


def test_a_rate_without_denominator_is_none_not_nan():
    """What cannot be known is said so, and never prints as NaN or 0."""
    empty = Confusion(0, 0, 0, 0)
    names = (
        *("accuracy", "precision", "recall", "specificity", "npv"),
        *("f1", "prevalence", "pabak", "ac1"),
    )
    assert {getattr(empty, name) for name in names} == {None}
    absent = Confusion(0, 0, 0, 300)
    assert (absent.accuracy, absent.recall, absent.f1) == (1.0, None, None)


@pytest.mark.parametrize(
    ("policy", "macro"), [("zero", 3 / 21), ("one", 1.0), ("skip", 1.0)]
)
def test_a_perfect_copy_scores_by_the_zero_division_policy(policy, macro):
    """Three cases with one finding each: 18 of 21 labels have no positive at all."""
    reference = np.zeros((3, 21), dtype=np.int8)
    reference[[0, 1, 2], [0, 1, 2]] = 1
    counts = count_confusions(reference, reference)
    assert average_f1(counts, zero_division=policy) == pytest.approx(macro)
    assert effective_labels(counts) == 3


def test_averages_work_over_leading_axes():
    """A stack of tables gives the same as one table at a time."""
    counts = np.random.default_rng(0).integers(0, 4, (5, 3, 7, 4))
    single = [[average_f1(table) for table in row] for row in counts]
    assert np.array_equal(average_f1(counts), np.array(single), equal_nan=True)


def test_an_average_of_nothing_is_undefined():
    """No label with a positive: skipping leaves no mean, and the array says NaN."""
    counts = np.array([[0, 0, 0, 9], [0, 0, 0, 9]])
    assert np.isnan(average_f1(counts)) and np.isnan(micro_f1(counts))
    assert micro_f1(counts, zero_division="zero") == 0


def test_kappa_agrees_with_scikit_learn():
    """Another implementation, on a table with all four cells filled."""
    truth, answer = (
        np.repeat([1, 0, 1, 0], [22, 3, 5, 270]),
        np.repeat([1, 1, 0, 0], [22, 3, 5, 270]),
    )
    found = float(kappas(np.array([22, 3, 5, 270])))
    assert found == pytest.approx(cohen_kappa_score(truth, answer))


def test_unknown_codes_and_shapes_are_refused():
    """A 2 is a code of another room that must be translated first."""
    good = np.zeros((2, 3), dtype=np.int8)
    with pytest.raises(ValueError, match="got 2"):
        count_confusions(good, good + np.int8(2))
    with pytest.raises(ValueError, match=r"\(2, 2\)"):
        count_confusions(good, good[:, :2])


@given(codes(-1))
def test_columns_hold_all_that_f1_needs(pair):
    """Their sums give the same F1 as the four counts do."""
    table = f1_columns(*pair).astype(np.int64)
    found, weight = np.split(table.sum(axis=0), 2)
    counts = count_confusions(*pair)
    assert np.array_equal(mean_f1(found, weight), average_f1(counts), equal_nan=True)


@given(codes(-1))
def test_columns_of_several_tables_are_those_of_each(pair):
    """Stacking changes nothing."""
    together = f1_columns(pair[0], np.stack(pair))
    alone = [f1_columns(pair[0], one) for one in pair]
    assert np.array_equal(together, alone)


@pytest.mark.parametrize(
    "table", [Confusion(*one) for one in product(range(3), repeat=4)]
)
def test_kappa_has_a_reason_exactly_where_a_side_is_constant(table):
    """Every table of up to two cases in each cell, told by its margins."""
    tp, fp, fn, tn = table
    sides = {"present": (tp + fp, tp + fn), "absent": (fn + tn, fp + tn)}
    never = [said for said, counts in sides.items() if 0 in counts]
    note = kappa_note(table)
    if not sum(table):
        assert note == "not estimable: no cases"
    elif sides["present"] == (0, 0):
        assert note == "not estimable: no positives"
    elif sides["absent"] == (0, 0):
        assert note == "not estimable: no negatives"
    elif never:
        assert note == f"interval not estimable: one side never says {never[0]}"
    else:
        assert note == ""
        expected = sum(a * b for a, b in sides.values()) / sum(table) ** 2
        assert chance_agreement(table) == pytest.approx(expected)
    assert np.isnan(kappas(np.array(table))) == note.startswith("not estimable")
