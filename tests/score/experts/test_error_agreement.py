"""A judge's error counts against experts', against sums done by hand."""

import numpy as np
import pytest

from loop.core.errors import DataError
from loop.score.experts.documents import errors_said
from loop.score.experts.error_agreement import (
    agree_on_errors,
    agree_with_and_without,
    bias_curve,
    category_groups,
    count_f1,
    mean_difference,
    median_given,
)
from loop.score.experts.error_tables import ErrorTable, read_error_counts
from loop.score.experts.radpref import read_radpref
from loop.score.metrics.embedded_judge import count_errors
from loop.stats.correlation import correlate

NA = np.nan
CATEGORIES = ("false_finding", "omission", "location")


def table(rows, raters=("r",), *, minor=None):
    """Return a table of cases a, b and so on; `rows`: case x rater x category."""
    serious = np.array(rows, dtype=float).reshape(-1, len(raters), len(CATEGORIES))
    light = np.zeros_like(serious) if minor is None else np.full_like(serious, minor)
    light[np.isnan(serious)] = NA
    return ErrorTable(
        keys=tuple((chr(97 + row), "x") for row in range(len(serious))),
        raters=raters,
        categories=CATEGORIES,
        counts=np.stack([serious, light], axis=3),
    )


def test_groups_are_those_of_the_categories():
    """(a, e), (b, f), (c, d): a false comparison is a false prediction."""
    found = {group.name: group.categories for group in category_groups()}
    assert found == {
        "false predictions": ("false_finding", "comparison"),
        "omissions": ("omission", "omitted_change"),
        "attributes": ("location", "severity"),
    }


def test_the_published_example_of_f1_of_counts():
    """(h, m) = (1, 0), (2, 3), (0, 1): TP 2, FP 2, FN 1."""
    found = count_f1(np.array([0, 3, 1]), np.array([1, 2, 0]), resamples=50)
    assert found[:3] == (2, 4, 3)
    assert (found.precision, found.recall) == (0.5, pytest.approx(2 / 3))
    assert found.f1.value == pytest.approx(4 / 7)


def test_f1_is_the_same_from_both_sides():
    """Which of the two raters is the judge changes precision and recall alone."""
    rng = np.random.default_rng(1)
    one, other = rng.integers(0, 4, (2, 30))
    there, back = count_f1(one, other), count_f1(other, one)
    assert there.f1 == back.f1
    assert (there.precision, there.recall) == (back.recall, back.precision)


def test_who_was_not_judged_is_in_no_sum():
    """NaN on either side drops the candidate; it is no zero."""
    found = count_f1(np.array([NA, 2, 1]), np.array([3, NA, 1]), resamples=9)
    assert (found[:3], found.n, found.f1.value) == ((1, 1, 1), 1, 1)


def test_no_error_on_either_side_has_no_f1():
    """0 of 0 is not estimable; errors that are all missed have an F1 of 0."""
    none = count_f1(np.zeros(4), np.zeros(4))
    assert (none.precision, none.recall, none.f1.value) == (None, None, None)
    assert none.f1.note == "not estimable: no error on either side"
    missed = count_f1(np.zeros(4), np.array([1, 0, 2, 0]))
    assert (missed.precision, missed.recall, missed.f1.value) == (None, 0, 0)


def test_insignificant_errors_that_an_answer_leaves_out_are_not_none():
    """Such a candidate is in the numbers of significant errors alone."""
    experts = table([[1, 0, 0], [1, 0, 0]], minor=1)
    told = table([[1, 0, 0], [1, 0, 0]], minor=1)
    told.counts[0, ..., 1] = NA
    options = {"name": "j", "patients": None, "resamples": 9, "seed": 0}
    serious, every = agree_with_and_without(told, experts, **options)
    assert (serious.candidates, serious.unanswered) == (2, 0)
    assert (every.candidates, every.unanswered) == (1, 1)
    assert every.total.judge[:3] == (4, 4, 4)
    assert every.total.difference.value == 0
    told.counts[..., 1] = NA
    (alone,) = agree_with_and_without(told, experts, **options)
    assert not alone.all_errors and alone.candidates == 2


def test_the_interval_is_that_of_the_plain_loop():
    """Cases drawn with all their candidates, F1 from the sums of each resample."""
    rng = np.random.default_rng(2)
    one, other = rng.integers(0, 4, (2, 40))
    units = np.arange(40) // 2
    found = count_f1(one, other, units=units, resamples=200, seed=3)
    drawn = np.random.default_rng(3).integers(20, size=(200, 20), dtype=np.uint16)
    values = []
    for cases in drawn:
        rows = np.concatenate([np.flatnonzero(units == case) for case in cases])
        true = np.minimum(one[rows], other[rows]).sum()
        values.append(2 * true / (one[rows].sum() + other[rows].sum()))
    limits = tuple(np.quantile(values, [0.025, 0.975]))
    assert (found.f1.low, found.f1.high) == pytest.approx(limits)


def test_the_bias_is_told_for_each_number_of_true_errors():
    """Means by hand; a half of an even number of raters goes up to its bin."""
    expected = np.array([1, 1, 2, 2.5, 0, 13, NA])
    found = np.array([3, 2, 1, 3, 4, 2, 1])
    bins = bias_curve(found, expected, resamples=100)
    assert [one.errors for one in bins] == list(range(1, 13))
    told = [(one.n, one.difference.value) for one in bins[:4]]
    assert told == [(2, 1.5), (1, -1), (1, 0.5), (0, None)]
    assert bins[1].difference.low is None
    assert (bins[0].difference.low, bins[0].difference.high) == (1, 2)


def test_cases_of_one_bin_are_resampled_together():
    """Two candidates of one case are one unit, which has no interval."""
    bins = bias_curve(np.array([1, 3]), np.array([1, 1]), np.array(["a", "a"]))
    assert (bins[0].n, bins[0].difference[:3]) == (2, (1, None, None))


def test_without_a_candidate_there_is_no_mean():
    """None, not a mean of nothing."""
    found = mean_difference(np.array([NA]), np.array(["a"]))
    assert found == (None, None, None, "not estimable: no candidate")


def test_the_median_is_over_those_who_judged():
    """Of two the mean; of none nothing, and no warning."""
    rows = np.array([[1, 2, 9], [1, NA, 2], [NA, NA, NA]])
    np.testing.assert_array_equal(median_given(rows), [2, 1.5, NA])


def test_a_judge_is_held_against_the_median():
    """Three raters, by hand: medians 1, 0 of false findings, 2, 1 of omissions."""
    experts = table(
        [
            [[1, 2, 0], [1, 3, 0], [0, 1, 0]],
            [[0, 1, 0], [2, 1, 0], [0, 0, 1]],
        ],
        ("ann", "ben", "cat"),
    )
    judge = table([[1, 1, 0], [1, 1, 0]])
    found = agree_on_errors(judge, experts, name="J", all_errors=False, resamples=20)
    false, omitted, wrong = found.groups
    assert false.judge[:3] == (1, 2, 1) and omitted.judge[:3] == (2, 2, 3)
    assert wrong.judge.f1.value is None
    assert [one[:3] for one in false.each] == [(1, 2, 1), (2, 2, 3), (0, 2, 0)]
    assert [one[:3] for one in false.pairs] == [(1, 1, 3), (0, 1, 0), (0, 3, 0)]
    # Medians of the two others: ann 0.5, 1; ben 0.5, 0; cat 1, 1.
    assert [one[:3] for one in false.rest] == [(0.5, 1, 1.5), (0.5, 3, 0.5), (0, 0, 2)]
    assert found.total.judge[:3] == (3, 4, 4)
    assert found.total.difference.value == 0
    assert found.against == "the median of 3 experts' counts of significant errors"
    told = {(one.errors, one.n): one.difference.value for one in found.bias if one.n}
    assert told == {(3, 1): -1, (1, 1): 1}
    assert (found.without, found.above, found.units) == (0, 0, 2)


def test_insignificant_errors_are_held_apart():
    """Once with and once without them."""
    experts = table([[[1, 0, 0]], [[0, 2, 0]]], minor=1)
    judge = table([[1, 0, 0], [0, 2, 0]])
    serious, every = (
        agree_on_errors(judge, experts, name="J", all_errors=one, resamples=9)
        for one in (False, True)
    )
    assert serious.total.judge.f1.value == 1
    assert every.total.judge[:3] == (3, 3, 9)
    assert every.against == "one expert's counts of errors of either significance"


def test_a_candidate_without_an_answer_is_counted_apart():
    """It is no candidate without an error."""
    experts = table([[[1, 0, 0]], [[0, 2, 0]], [[NA, NA, NA]]])
    judge = table([[1, 0, 0], [NA, NA, NA], [5, 5, 5]])
    found = agree_on_errors(judge, experts, name="J", all_errors=False, resamples=9)
    assert (found.candidates, found.unanswered) == (1, 1)
    assert found.total.judge[:3] == (1, 1, 1)


def test_more_agreement_than_two_raters_have_is_suspicious():
    """The judge with one rater against two raters; a single rater cannot tell."""
    raters = ("ann", "ben")
    experts = table([[[1, 2, 0], [1, 1, 0]], [[0, 1, 0], [2, 1, 0]]], raters)
    judge = table([[1, 1, 0], [1, 1, 0]])
    found = agree_on_errors(judge, experts, name="J", all_errors=False, resamples=9)
    false, omitted, _ = found.groups
    assert (false.f1_pairs, false.f1_each) == (0.5, pytest.approx((2 / 3 + 4 / 5) / 2))
    assert (omitted.f1_pairs, omitted.f1_each) == (0.8, pytest.approx(0.9))
    assert false.suspicious and omitted.suspicious and false.f1_rest == 0.5
    opposite = table([[0, 0, 0], [0, 9, 0]])
    other = agree_on_errors(opposite, experts, name="J", all_errors=False, resamples=9)
    assert not other.groups[1].suspicious
    alone = table([[[1, 2, 0]], [[0, 1, 0]]])
    single = agree_on_errors(judge, alone, name="J", all_errors=False, resamples=9)
    assert single.total.f1_pairs is None and not single.total.suspicious


def test_nothing_in_common_is_refused():
    """With an example of each side."""
    experts = table([[[1, 0, 0]]])
    judge = ErrorTable(
        keys=(("z", "y"),),
        raters=("r",),
        categories=("omission",),
        counts=np.zeros((1, 1, 1, 2)),
    )
    with pytest.raises(DataError, match="'z', system 'y', the experts' of case 'a'"):
        agree_on_errors(judge, experts, name="J", all_errors=False)


@pytest.mark.data
def test_radiologists_among_themselves_reach_what_is_published(data_folder):
    """F1 of pairs on errors of either significance: 0.89, 0.93 and 0.46."""
    radpref = read_radpref(data_folder / "radpref")
    judge = count_errors(radpref.references, radpref.candidates)
    found = agree_on_errors(
        judge,
        radpref.errors,
        name="J",
        all_errors=True,
        patients=radpref.patients,
        resamples=20,
    )
    told = [group.f1_pairs for group in found.groups]
    assert told == pytest.approx([0.89, 0.93, 0.46], abs=0.005)
    assert (found.candidates, found.units, found.unanswered) == (100, 43, 0)


@pytest.mark.data
def test_categories_add_up_to_the_counts_of_green(data_folder):
    """Every marked error is in exactly one category, with the same significance."""
    radpref = read_radpref(data_folder / "radpref")
    by_category = radpref.errors.counts.sum(axis=2)
    np.testing.assert_array_equal(by_category, radpref.counts[:, :, 1:])


def test_errors_of_wording_stand_apart(tmp_path):
    """They change no number of clinical content, and are said with their number."""
    lines = ["a,a,significant,2", "b,b,significant,1", "c,a,significant,0"]
    header = "id,rater,category,significance,count"

    def read(name, more):
        path = tmp_path / name
        rows = [f"{case},ann,{rest}" for case, rest in (o.split(",", 1) for o in more)]
        path.write_text("\n".join([header, *rows]))
        return read_error_counts(path)

    plain = read("plain.csv", lines)
    with_g = read("g.csv", [*lines, "a,g,significant,4", "c,g,insignificant,1"])
    judge = ErrorTable(
        keys=plain.keys,
        raters=("j",),
        categories=CATEGORIES,
        counts=np.ones((3, 1, 3, 2)),
    )
    named = {"name": "j", "all_errors": False, "resamples": 20}
    one, other = (agree_on_errors(judge, each, **named) for each in (plain, with_g))
    assert other.total == one.total and other.bias == one.bias
    assert other.tau_b == one.tau_b and other.categories == one.categories
    assert one.wording is None
    assert other.wording == (4, 1, None)
    said = " ".join(errors_said(other))
    assert "Errors of wording (category g): the experts count 4 in 1 candidate." in said
    every = agree_on_errors(judge, with_g, **{**named, "all_errors": True})
    assert every.wording == (5, 2, None)


def test_errors_of_wording_that_a_judge_counts_are_of_all_candidates():
    """Its number is not one of the candidates in which the experts count any."""
    names = ("omission", "wording")

    def counted(*rows):
        serious = np.array(rows, dtype=float)[:, None, :]
        return ErrorTable(
            keys=(("a", "x"), ("b", "x")),
            raters=("r",),
            categories=names,
            counts=np.stack([serious, 0 * serious], axis=3),
        )

    found = agree_on_errors(
        counted((1, 0), (0, 3)),
        counted((1, 2), (0, 0)),
        name="j",
        all_errors=False,
        resamples=9,
    )
    assert found.wording == (2, 1, 3)
    said = " ".join(errors_said(found))
    assert "count 2 in 1 candidate; the judge counts 3 in all candidates." in said


def test_true_errors_beyond_the_bins_are_counted_and_halves_go_up():
    """None, a half, twelve and a half, thirteen: two raters, and their median."""
    pairs = [(0, 0), (0, 1), (1, 1), (12, 12), (12, 13), (13, 13)]
    rows = [[[one, 0, 0], [other, 0, 0]] for one, other in pairs]
    experts = table(rows, ("ann", "ben"))
    judge = table([[sum(pair), 0, 0] for pair in pairs])
    found = agree_on_errors(judge, experts, name="J", all_errors=False, resamples=9)
    assert (found.without, found.above, found.candidates) == (1, 2, 6)
    told = {one.errors: (one.n, one.difference.value) for one in found.bias if one.n}
    assert told == {1: (2, (0.5 + 1) / 2), 12: (1, 12.0)}
    assert found.total.judge.n == 6
    assert found.total.difference.value == np.mean(
        [a + b - (a + b) / 2 for a, b in pairs]
    )


def test_each_category_that_somebody_counts_is_told_alone():
    """One that nobody counts, or only as insignificant, is left out without these."""
    experts = table([[[1, 0, 0]], [[0, 0, 0]]])
    judge = table([[0, 0, 0], [0, 0, 1]])
    plain = agree_on_errors(judge, experts, name="J", all_errors=False, resamples=9)
    assert [one.group.name for one in plain.categories] == ["false_finding", "location"]
    assert plain.categories[0].judge[:3] == (0, 0, 1)
    assert plain.categories[1].judge[:3] == (0, 1, 0)
    light = table([[[1, 0, 0]], [[0, 0, 0]]], minor=1)
    every = agree_on_errors(judge, light, name="J", all_errors=True, resamples=9)
    assert [one.group.name for one in every.categories] == list(CATEGORIES)
    assert (plain.judge, plain.by_patient, plain.units) == ("J", False, 2)


def test_candidates_of_a_patient_are_one_unit():
    """Two cases of one patient: no interval, and it is said what was resampled."""
    experts = table([[[1, 0, 0]], [[2, 0, 0]], [[3, 0, 0]]])
    judge = table([[2, 0, 0], [2, 0, 0], [1, 0, 0]])
    patients = {"a": "p", "b": "p", "c": "p"}
    found = agree_on_errors(
        judge, experts, name="J", all_errors=False, patients=patients, resamples=9
    )
    assert (found.units, found.by_patient) == (1, True)
    assert found.total.judge.f1[1:3] == found.total.difference[1:3] == (None, None)
    apart = agree_on_errors(judge, experts, name="J", all_errors=False, resamples=9)
    assert apart.units == 3 and apart.total.judge.f1.low is not None
    counts = np.array([2.0, 2, 1]), np.array([1.0, 2, 3])
    assert (
        apart.tau_b == correlate(*counts, np.array(["a", "b", "c"]), resamples=9).tau_b
    )


def test_the_mean_over_raters_is_known_only_if_each_has_one():
    """One of two counts nothing, as the judge does: no mean of the other alone."""
    experts = table([[[1, 0, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]]], ("ann", "ben"))
    judge = table([[0, 0, 0], [0, 0, 0]])
    found = agree_on_errors(judge, experts, name="J", all_errors=False, resamples=9)
    false = found.groups[0]
    assert [one.f1.value for one in false.each] == [0, None]
    assert (false.f1_each, false.suspicious) == (None, False)
    assert false.f1_pairs == 0
    assert (found.groups[1].f1_pairs, found.groups[1].f1_rest) == (None, None)


def test_as_much_agreement_as_two_raters_have_is_not_suspicious():
    """Only more is."""
    experts = table([[[1, 0, 0], [1, 0, 0]], [[2, 0, 0], [2, 0, 0]]], ("ann", "ben"))
    judge = table([[1, 0, 0], [2, 0, 0]])
    found = agree_on_errors(judge, experts, name="J", all_errors=False, resamples=9)
    assert (found.total.f1_each, found.total.f1_pairs) == (1, 1)
    assert not found.total.suspicious


def test_a_rater_who_did_not_judge_is_in_no_median():
    """The others say what is expected; without any the candidate is left out."""
    rows = [
        [[1, 0, 0], [NA, NA, NA], [3, 0, 0]],
        [[NA, NA, NA], [2, 0, 0], [NA, NA, NA]],
        [[NA, NA, NA]] * 3,
    ]
    experts = table(rows, ("ann", "ben", "cat"))
    judge = table([[2, 0, 0], [2, 0, 0], [9, 0, 0]])
    found = agree_on_errors(judge, experts, name="J", all_errors=False, resamples=9)
    assert (found.candidates, found.unanswered) == (2, 0)
    assert found.total.judge[:3] == (4, 4, 4)
    assert [one.n for one in found.total.each] == [1, 1, 1]
    assert [one.n for one in found.total.pairs] == [0, 1, 0]
    assert [one[:3] for one in found.total.rest] == [(1, 1, 3), (0, 0, 0), (1, 3, 1)]
