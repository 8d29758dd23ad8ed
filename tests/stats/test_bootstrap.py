"""The vectorised bootstrap against plain loops, symmetries and known distributions."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from loop.stats.bootstrap import (
    bootstrap_accuracy,
    bootstrap_f1,
    bootstrap_f1_difference,
    bootstrap_kappa,
)
from loop.stats.confusion import count_confusions, kappas, pair_indicators
from loop.stats.resampling import (
    Bootstrap,
    bootstrap,
    draw_units,
    resample_sums,
    resample_weights,
    to_estimate,
)


def table(n_cases=200, n_labels=6, seed=1, excluded=0.0):
    """Return reference and prediction with rare to common labels, 10 % wrong."""
    rng = np.random.default_rng(seed)
    reference = rng.random((n_cases, n_labels)) < np.linspace(0.05, 0.5, n_labels)
    predicted = reference ^ (rng.random((n_cases, n_labels)) < 0.1)
    pair = reference.astype(np.int8), predicted.astype(np.int8)
    for side in pair:
        side[rng.random(side.shape) < excluded] = -1
    return pair


def test_counts_equal_those_of_the_resampled_rows():
    """The matrix product gives the very integers that counting the rows gives."""
    reference, predicted = table(excluded=0.1)
    cells = pair_indicators(reference, predicted).reshape(len(reference), -1)
    sums = resample_sums(cells, 50, np.random.default_rng(5))
    drawn = np.concatenate(list(draw_units(200, 50, np.random.default_rng(5))))
    for rows, found in zip(drawn, sums, strict=True):
        plain = count_confusions(reference[rows], predicted[rows])
        assert np.array_equal(found.reshape(-1, 4), plain)


@pytest.mark.parametrize("average", ["macro", "micro"])
@pytest.mark.parametrize(
    ("policy", "value"), [("zero", 0), ("one", 1), ("skip", np.nan)]
)
def test_interval_equals_that_of_the_plain_loop(average, policy, value):
    """Same resamples, scored by scikit-learn one by one."""
    reference, predicted = table(60)
    drawn = np.concatenate(list(draw_units(60, 200, np.random.default_rng(7))))
    scores = [
        f1_score(reference[i], predicted[i], average=average, zero_division=value)
        for i in drawn
    ]
    found = bootstrap_f1(
        reference,
        predicted,
        average=average,
        zero_division=policy,
        resamples=200,
        seed=7,
    )
    whole = f1_score(reference, predicted, average=average, zero_division=value)
    assert found.estimate == pytest.approx(whole)
    limits = np.quantile(scores, [0.025, 0.975])
    assert found[1:3] == pytest.approx(tuple(limits))
    assert found[3:] == (200, 0)


def test_blocks_are_whole_draws_in_bounds():
    """Every resample draws as many units as there are, none outside."""
    blocks = list(resample_weights(7000, 100, np.random.default_rng(0)))
    assert len(blocks) > 1 and sum(map(len, blocks)) == 100
    weights = np.concatenate(blocks)
    assert weights.shape == (100, 7000)
    assert (weights.sum(axis=1) == 7000).all() and weights.min() == 0


def test_every_unit_is_drawn_equally_often():
    """Chi-squared of the draw counts over units is near its degrees of freedom."""
    total = sum(
        w.sum(axis=0) for w in resample_weights(500, 4000, np.random.default_rng(0))
    )
    chi_squared = ((total - 4000) ** 2 / 4000).sum()
    assert abs(chi_squared - 499) < 5 * np.sqrt(2 * 499)


def test_the_seed_decides_the_interval():
    """The recorded seed reproduces a printed interval; another moves it."""
    pair = table()
    first = bootstrap_f1(*pair, resamples=300, seed=4)
    assert first == bootstrap_f1(*pair, resamples=300, seed=4)
    assert first[1:3] != bootstrap_f1(*pair, resamples=300, seed=5)[1:3]


def test_standard_error_of_a_mean_is_the_textbook_one():
    """For a plain mean the interval is plus and minus 1.96 standard errors."""
    values = (np.arange(400) % 5 == 0).astype(np.int64)[:, None]
    columns = np.hstack([values, np.ones_like(values)])
    [found] = bootstrap(columns, lambda s: s[:, 0] / s[:, 1], resamples=4000)
    error = 1.96 * np.sqrt(0.2 * 0.8 / 400)
    assert found[:3] == pytest.approx((0.2, 0.2 - error, 0.2 + error), abs=4e-3)


def test_copies_of_one_patient_do_not_narrow_the_interval():
    """Each case repeated nine times with its patient as unit: the same interval."""
    reference, predicted = table()
    once = bootstrap_f1(reference, predicted, resamples=300)
    many = np.repeat(reference, 9, axis=0), np.repeat(predicted, 9, axis=0)
    patients = np.repeat(np.arange(200), 9)
    assert bootstrap_f1(*many, units=patients, resamples=300) == pytest.approx(once)
    naive = bootstrap_f1(*many, resamples=300)
    assert naive.high - naive.low < (once.high - once.low) / 2


def test_units_may_have_any_names_and_sizes():
    """Patient pseudonyms are strings; the order of the cases does not matter."""
    reference, predicted = table(30)
    names = np.array([f"p{i % 11}" for i in range(30)])
    found = bootstrap_f1(reference, predicted, units=names, resamples=100)
    order = np.random.default_rng(0).permutation(30)
    shuffled = bootstrap_f1(
        reference[order], predicted[order], units=names[order], resamples=100
    )
    assert found == shuffled


def test_the_difference_is_paired():
    """Two equal versions do not differ; on how many cases they agree is no interval."""
    reference, predicted = table()
    same = bootstrap_f1_difference(reference, predicted, predicted, resamples=200)
    assert same[:3] == (0.0, None, None)
    better = predicted.copy()
    better[:100] = reference[:100]
    up = bootstrap_f1_difference(reference, predicted, better, resamples=200)
    down = bootstrap_f1_difference(reference, better, predicted, resamples=200)
    assert 0 < up.low < up.estimate < up.high
    assert down[:3] == pytest.approx((-up.estimate, -up.high, -up.low))


def test_the_difference_uses_the_cells_that_both_versions_decided():
    """Answering uncertain on hard cells must not look like an improvement."""
    reference, before = table()
    after = before.copy()
    after[before != reference] = -1
    found = bootstrap_f1_difference(reference, before, after, resamples=100)
    assert found.estimate == 0


def test_undefined_resamples_are_redrawn_and_counted():
    """Four positives in all: about exp(-4) = 1.8 % of resamples hold none of them."""
    reference = np.zeros((400, 1), dtype=np.int8)
    reference[:4] = 1
    found = bootstrap_f1(reference, reference, resamples=2000)
    assert (found.estimate, found.resamples) == (1.0, 2000)
    assert 10 < found.redrawn < 80
    [kappa] = bootstrap_kappa(reference, reference, resamples=2000)
    assert kappa.note == "exact limits: no resample differs"


def test_five_of_five_right_is_no_certainty():
    """No resample holds an error, so none varies: 1 - 0.478 may still be wrong."""
    reference = np.array([[1], [1], [1], [1], [1]], dtype=np.int8)
    share = 0.025 ** (1 / 5)
    assert share == pytest.approx(0.478, abs=5e-4)
    found = bootstrap_f1(reference, reference)
    assert found.high == 1.0
    assert found.low == pytest.approx(2 * share / (1 + share))
    wrong = bootstrap_f1(reference, 1 - reference)
    assert wrong.low == 0.0
    assert wrong.high == pytest.approx(2 * (1 - share) / (2 - share))


def test_patients_not_cases_bound_a_perfect_score():
    """Ten cases of five patients tell of five, and two labels share the level."""
    reference = np.ones((10, 2), dtype=np.int8)
    found = bootstrap_f1(reference, reference, units=np.arange(10) // 2)
    share = 0.0125 ** (1 / 5)
    assert found.low == pytest.approx(2 * share / (1 + share))
    micro = bootstrap_f1(
        reference, reference, average="micro", units=np.arange(10) // 2
    )
    share = 0.025 ** (1 / 5)
    assert micro.low == pytest.approx(2 * share / (1 + share))


def test_kappa_of_readers_who_never_differ_has_exact_limits():
    """Agreement of 12 of 12 with agreement by chance of one half."""
    reference = np.tile(np.array([[1], [0]], dtype=np.int8), (6, 1))
    [kappa] = bootstrap_kappa(reference, reference)
    share = 0.025 ** (1 / 12)
    assert kappa[:3] == pytest.approx((1.0, (share - 0.5) / 0.5, 1.0))


def test_where_no_exact_limit_is_known_there_is_none():
    """One value in every resample is said to be that, and is no interval."""
    column = np.ones((6, 1))
    [found] = bootstrap(column, lambda sums: sums[:, 0] / 6)
    assert found.has_no_width
    estimate = to_estimate(found)
    assert estimate[:3] == (1.0, None, None)
    assert "every resample gives the same value" in estimate.note


def test_too_many_undefined_resamples_make_it_not_estimable():
    """One positive is missing from 37 % of resamples: a value, but no interval."""
    reference = np.zeros((400, 1), dtype=np.int8)
    reference[0] = 1
    found = bootstrap_f1(reference, reference, resamples=1000)
    assert found[:3] == (1.0, None, None)
    assert found.redrawn > 50
    [kappa] = bootstrap_kappa(reference, reference, resamples=1000)
    assert kappa[:3] == (1.0, None, None)
    assert kappa.note.startswith("interval not estimable")


@pytest.mark.parametrize("n_cases", [0, 30])
def test_nothing_positive_gives_none(n_cases):
    """No case, or no positive on either side: nothing to estimate, never NaN."""
    empty = np.zeros((n_cases, 3), dtype=np.int8)
    assert bootstrap_f1(empty, empty) == Bootstrap(None, None, None, 0, 0)
    for kappa in bootstrap_kappa(empty, empty):
        assert kappa[:3] == (None, None, None)
        assert kappa.note.startswith("not estimable: no ")


def test_a_single_unit_has_no_interval():
    """All cases of one patient: every resample is the same, which is not certainty."""
    reference, predicted = table(20)
    found = bootstrap_f1(reference, predicted, units=np.zeros(20))
    assert found.estimate is not None
    assert found[1:] == (None, None, 0, 0)


def test_kappa_intervals_equal_those_of_the_plain_loop():
    """Same resamples, one table at a time, per label."""
    reference, predicted = table(excluded=0.05)
    drawn = np.concatenate(list(draw_units(200, 300, np.random.default_rng(2))))
    plain = np.array(
        [kappas(count_confusions(reference[i], predicted[i])) for i in drawn]
    )
    found = bootstrap_kappa(reference, predicted, resamples=300, seed=2)
    limits = np.quantile(plain, [0.025, 0.975], axis=0).T
    assert np.array([k[1:3] for k in found]) == pytest.approx(limits)
    assert [k.value for k in found] == pytest.approx(
        kappas(count_confusions(reference, predicted)).tolist()
    )


def test_accuracy_of_clustered_cases_is_as_sure_as_its_patients():
    """Each case nine times with its patient as unit: the interval of the patients."""
    reference, predicted = table(n_labels=2)
    once = bootstrap_accuracy(reference, predicted, resamples=400)
    many = np.repeat(reference, 9, axis=0), np.repeat(predicted, 9, axis=0)
    patients = np.repeat(np.arange(200), 9)
    assert bootstrap_accuracy(*many, units=patients, resamples=400) == once
    share = (reference == predicted).mean(axis=0)
    error = 1.96 * np.sqrt(share * (1 - share) / 200)
    for found, value, reach in zip(once, share, error, strict=True):
        expected = (value, value - reach, value + reach)
        assert found[:3] == pytest.approx(expected, abs=1e-2)


def test_accuracy_without_a_case_is_not_estimable():
    """A label that nobody decided has no rate, and its neighbour keeps its own."""
    reference, predicted = table(n_labels=2)
    reference[:, 0] = -1
    nothing, one = bootstrap_accuracy(reference, predicted, resamples=100)
    assert nothing[:3] == (None, None, None)
    assert one.low < one.value < one.high


def test_a_constant_predictor_has_kappa_zero_without_interval():
    """Every resample gives 0, which would print as a certain 0."""
    reference, _ = table(n_labels=1)
    [found] = bootstrap_kappa(reference, np.zeros_like(reference), resamples=50)
    assert found[:3] == (0.0, None, None)
    assert "never says present" in found.note


def test_wrong_options_are_refused():
    """Messages name the offending value."""
    pair = table(10)
    with pytest.raises(ValueError, match="got 0"):
        bootstrap_f1(*pair, resamples=0)
    with pytest.raises(ValueError, match="got 95"):
        bootstrap_f1(*pair, confidence=95)
    with pytest.raises(ValueError, match=r"\(3,\) for 10"):
        bootstrap_f1(*pair, units=np.arange(3))
    with pytest.raises(ValueError, match="got 2"):
        bootstrap_f1(pair[0], pair[1] + np.int8(2))


@pytest.mark.parametrize(
    ("n_units", "resamples", "rows", "kind"),
    [
        (1000, 1300, [600, 600, 100], np.uint16),
        (100_000, 20, [16, 4], np.uint32),
        (2**16, 3, [3], np.uint16),
        (2**16 + 1, 3, [3], np.uint32),
    ],
)
def test_units_are_drawn_in_blocks_that_depend_on_their_number_alone(
    n_units, resamples, rows, kind
):
    """A recorded seed gives the same resamples on every machine."""
    blocks = list(draw_units(n_units, resamples, np.random.default_rng(1)))
    rng = np.random.default_rng(1)
    assert [len(one) for one in blocks] == rows
    for one in blocks:
        expected = rng.integers(n_units, size=one.shape, dtype=kind)
        assert one.dtype == kind and np.array_equal(one, expected)


@pytest.mark.parametrize("n_units", [2, 5, 100, 20_000])
def test_weights_count_the_units_that_are_drawn(n_units):
    """Row by row, whatever is counted at once."""
    drawn = np.concatenate(list(draw_units(n_units, 40, np.random.default_rng(3))))
    weights = np.concatenate(
        list(resample_weights(n_units, 40, np.random.default_rng(3)))
    )
    counted = [np.bincount(row, minlength=n_units) for row in drawn]
    assert np.array_equal(weights, counted)


@pytest.mark.parametrize(
    ("result", "note", "expected"),
    [
        ((None, None, None, 0, 0), "", (None, None, None, "not estimable")),
        ((None, None, None, 0, 0), "why", (None, None, None, "why")),
        (
            (0.5, 0.4, 0.6, 9, 0), "interval not estimable: x",
            (0.5, None, None, "interval not estimable: x"),
        ),
        (
            (0.5, None, None, 3, 9), "",
            (0.5, None, None,
             "interval not estimable: too few units or defined resamples"),
        ),
        (
            (0.5, None, None, 3, 9), "x",
            (0.5, None, None,
             "interval not estimable: too few units or defined resamples; x"),
        ),
        (
            (0.5, 0.5, 0.5, 9, 0), "",
            (0.5, None, None,
             "interval not estimable: every resample gives the same value"),
        ),
        (
            (0.5, 0.5, 0.5 + 1e-13, 9, 2), "x",
            (0.5, None, None,
             "interval not estimable: every resample gives the same value; x"),
        ),
        ((0.5, 0.5, 0.5 + 1e-11, 9, 0), "", (0.5, 0.5, 0.5 + 1e-11, "")),
        ((0.5, 0.4, 0.6, 9, 2), "", (0.5, 0.4, 0.6, "2 undefined resamples redrawn")),
        ((0.5, 0.4, 0.6, 9, 2), "x", (0.5, 0.4, 0.6, "x")),
        ((0.5, 0.4, 0.6, 9, 0), "", (0.5, 0.4, 0.6, "")),
    ],
)  # fmt: skip
def test_a_result_is_told_with_what_limits_it(result, note, expected):
    """Why a limit is missing stands before what else is known."""
    assert to_estimate(Bootstrap(*result), note) == expected


@pytest.mark.parametrize(("undefined", "limits"), [(0, True), (5, True), (6, False)])
def test_up_to_a_twentieth_of_the_resamples_is_drawn_again(undefined, limits):
    """Five of a hundred: the spare ones take their place, and are counted."""
    calls = iter(range(9))

    def statistic(sums):
        values = sums[:, 0] / 30
        if next(calls) == 1:
            values[:undefined] = np.nan
        return values

    rng = np.random.default_rng(0)
    [found] = bootstrap(rng.random((30, 1)), statistic, resamples=100)
    assert (found.low is not None) == limits
    assert found.redrawn == undefined
    assert found.resamples == (100 if limits else 99)


def test_what_is_not_asked_for_is_as_documented():
    """2,000 resamples from seed 0 at 95 %."""
    column = np.random.default_rng(0).random((20, 1))

    def mean(sums):
        return sums[:, 0] / 20

    [found] = bootstrap(column, mean)
    assert found.resamples == 2000
    assert [found] == bootstrap(column, mean, resamples=2000, seed=0, confidence=0.95)


@pytest.mark.parametrize(
    ("units", "rest"), [([0, 0], (None, None, 0, 0)), ([0, 1], (0.0, 1.0, 50, 0))]
)
def test_two_units_have_an_interval_and_one_has_none(units, rest):
    """Both, or one of them twice: 0, a half and 1."""
    columns = np.array([[0.0], [1.0]])
    [found] = bootstrap(
        columns, lambda sums: sums[:, 0] / 2, units=np.array(units), resamples=50
    )
    assert found == (0.5, *rest)


@pytest.mark.parametrize(
    ("draws", "confidence", "low", "high"),
    [
        ("ab", 0.6, 0.0, 1.0),
        ("ab", 0.4, 0.5, 0.5),
        ("abc", 0.98, 0.0, 1.0),
        ("abc", 0.9, 0.0, 2 / 3),
        ("abc", 0.3, 1 / 3, 1 / 3),
    ],
)
def test_draws_are_resampled_as_often_as_there_are(draws, confidence, low, high):
    """Units agree and one draw is 1: its share is binomial over the draws.

    Of two draws it is 0, 1/2 and 1 in a quarter, a half and a quarter of the resamples;
    of three it is 0 in 8 of 27, 1/3 in 12, 2/3 in 6 and 1 in one.
    """
    names = np.array([*draws] * 3)
    ones = (names == "a").astype(np.int64)
    [found] = bootstrap(
        np.column_stack([ones, np.ones_like(ones)]),
        lambda sums: sums[:, 0] / sums[:, 1],
        units=np.arange(3).repeat(len(draws)),
        draws=names,
        confidence=confidence,
    )
    assert found[:3] == pytest.approx((1 / len(draws), low, high))


@pytest.mark.parametrize("right", [True, False])
def test_cases_without_the_label_leave_exact_limits_as_they_are(right):
    """They are on neither side of F1, whether all else is right or all is wrong."""
    reference = np.ones((5, 1), dtype=np.int8)
    predicted = reference if right else 1 - reference
    nothing = np.zeros((4, 1), dtype=np.int8)
    found = bootstrap_f1(
        np.vstack([reference, nothing]), np.vstack([predicted, nothing])
    )
    assert found[:3] == bootstrap_f1(reference, predicted)[:3]
    assert found.low < found.high


def test_right_and_wrong_alike_in_every_case_has_no_exact_limits():
    """Each case holds a hit and an error, or nothing: neither is without exception."""
    reference = np.repeat([[1, 0], [0, 0]], 5, axis=0).astype(np.int8)
    predicted = np.repeat([[1, 1], [0, 0]], 5, axis=0).astype(np.int8)
    found = bootstrap_f1(reference, predicted, average="micro")
    assert found[:3] == (pytest.approx(2 / 3), None, None)


@pytest.mark.parametrize(
    ("policy", "rest"), [("skip", None), ("zero", 0.0), ("one", 1.0)]
)
def test_a_label_without_a_positive_takes_its_part_of_the_exact_limits(policy, rest):
    """Four of four right, a third label that nobody has: by hand, at 90 %."""
    reference = np.array([[1, 1, 0]] * 4, dtype=np.int8)
    found = bootstrap_f1(reference, reference, zero_division=policy, confidence=0.9)
    # Two labels share the error of a tenth, on one side of two.
    share = (0.1 / 2 / 2) ** (1 / 4)
    low, high = 2 * share / (1 + share), 1.0
    if rest is not None:
        low, high = (2 * low + rest) / 3, (2 * high + rest) / 3
    value = high
    assert found[:3] == pytest.approx((value, low, high))


def test_kappa_of_sides_that_never_agree_has_exact_limits_over_units():
    """None of three patients of whom something is known, at 80 %; chance is a half."""
    reference = np.array([[1], [0], [1], [0], [1], [0], [-1]], dtype=np.int8)
    predicted = np.where(reference < 0, 1, 1 - reference).astype(np.int8)
    units = np.array([0, 0, 1, 1, 2, 2, 3])
    [kappa] = bootstrap_kappa(reference, predicted, units=units, confidence=0.8)
    limit = 1 - 0.1 ** (1 / 3)
    assert kappa == (
        pytest.approx(-1),
        -1,
        pytest.approx((limit - 0.5) / 0.5),
        "exact limits: no resample differs",
    )


def test_kappa_of_patients_who_are_each_half_right_has_no_exact_limits():
    """No resample differs, and yet none of them is right or wrong without exception."""
    reference = np.tile(np.array([[1], [0], [1], [0]], dtype=np.int8), (3, 1))
    predicted = np.tile(np.array([[1], [0], [0], [1]], dtype=np.int8), (3, 1))
    units = np.repeat(np.arange(3), 4)
    [kappa] = bootstrap_kappa(reference, predicted, units=units, resamples=50)
    assert kappa == (
        0.0,
        None,
        None,
        "interval not estimable: every resample gives the same value",
    )
