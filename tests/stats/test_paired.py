"""Paired tests and intervals against published values and closed forms."""

import gc
from itertools import product
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import binom, hypergeom
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from loop.stats.paired import (
    can_be_significant,
    check_permutations,
    exact_p,
    find_attainable,
    holm,
    mcnemar_exact,
    sampled_p,
    sign_flip_p,
    spend_alpha,
    stratified_interval,
    tango_interval,
)


@pytest.mark.parametrize(
    ("lost", "gained", "p"),
    [
        (0, 0, 1), (0, 1, 1), (0, 5, 0.0625), (0, 6, 0.03125),
        (1, 8, 0.0391), (2, 10, 0.0386), (5, 5, 1),
    ],
)  # fmt: skip
def test_mcnemar_matches_the_reference_values(lost, gained, p):
    """Values recomputed independently; none discordant is 1, not an error."""
    assert mcnemar_exact(lost, gained) == pytest.approx(p, abs=5e-5)


@settings(deadline=None)
@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_agrees_with_statsmodels(lost, gained):
    """Another implementation of the same test, and its symmetry."""
    expected = mcnemar([[9, lost], [gained, 9]], exact=True).pvalue
    assert mcnemar_exact(lost, gained) == pytest.approx(float(expected))
    assert mcnemar_exact(lost, gained) == mcnemar_exact(gained, lost)


@pytest.mark.parametrize(
    ("discordant", "alpha", "able"),
    [
        (0, 0.05, False),
        (5, 0.05, False),
        (6, 0.05, True),
        (6, 0.05 / 21, False),
        (6, 2 / 2**6, True),
        (5, 2 / 2**6, False),
    ],
)
def test_too_few_discordant_cases_can_never_be_significant(discordant, alpha, able):
    """Below six at 0.05 the test says nothing, so nothing must be claimed."""
    assert can_be_significant(discordant, alpha) is able


@pytest.mark.parametrize(
    ("lost", "gained", "n", "confidence", "low", "high"),
    [
        (0, 0, 300, 0.95, -0.0126, 0.0126),
        (0, 0, 300, 0.90, -0.0089, 0.0089),
        (2, 10, 300, 0.95, 0.0048, 0.0545),
        (2, 10, 300, 0.90, 0.0087, 0.0492),
        (3, 1, 300, 0.95, -0.0261, 0.0096),
        (3, 1, 300, 0.90, -0.0218, 0.0059),
        (4, 0, 300, 0.95, -0.0338, -0.0005),
        (4, 0, 300, 0.90, -0.0294, -0.0043),
        (0, 5, 300, 0.95, 0.0038, 0.0384),
        (0, 5, 300, 0.90, 0.0076, 0.0338),
    ],
)
def test_tango_matches_the_reference_values(lost, gained, n, confidence, low, high):
    """Values recomputed independently from the published score equation."""
    found = tango_interval(lost, gained, n, confidence=confidence)
    assert found == pytest.approx((low, high), abs=5.1e-5)


@pytest.mark.parametrize("n", [1, 30, 100_000])
def test_tango_without_change_has_a_closed_form(n):
    """With no discordant case the limits are plus and minus z^2 / (n + z^2)."""
    square = 1.959963984540054**2
    limit = square / (n + square)
    assert tango_interval(0, 0, n) == pytest.approx((-limit, limit))


@settings(deadline=None)
@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 300))
def test_tango_mirrors_when_the_versions_swap(lost, gained, unchanged):
    """Exchanging before and after changes the sign, and the estimate lies inside."""
    n = max(lost + gained + unchanged, 1)
    low, high = tango_interval(lost, gained, n)
    back = tango_interval(gained, lost, n)
    assert back == pytest.approx((-high, -low), abs=1e-12)
    assert -1 <= low <= (gained - lost) / n <= high <= 1


def test_tango_survives_the_corners():
    """All cases changed one way, or no case at all."""
    assert tango_interval(0, 10, 10).high == pytest.approx(1)
    assert tango_interval(10, 0, 10).low == pytest.approx(-1)
    assert tango_interval(0, 0, 0) == (-1, 1)


def test_holm_matches_the_reference_values():
    """The textbook family of four."""
    assert holm([0.01, 0.02, 0.03, 0.04]) == pytest.approx([0.04, 0.06, 0.06, 0.06])


@pytest.fixture(scope="module")
def no_old_garbage():
    """Let `multipletests`, which collects garbage in each call, find little to do."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("no_old_garbage")
@settings(max_examples=50)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=25))
def test_holm_agrees_with_statsmodels_in_the_order_given(pvalues):
    """Another implementation, with ties and any order."""
    expected = multipletests(pvalues, method="holm")[1]
    assert holm(pvalues) == pytest.approx(list(expected))


def test_holm_of_no_hypothesis_is_empty():
    """A comparison without labels is not an error."""
    assert holm([]) == []


def test_impossible_input_is_refused():
    """Messages name the offending values."""
    with pytest.raises(ValueError, match="-1, 0"):
        mcnemar_exact(-1, 0)
    with pytest.raises(ValueError, match="3, 4 of 6"):
        tango_interval(3, 4, 6)
    with pytest.raises(ValueError, match="got nan"):
        holm([0.1, float("nan")])


@given(st.lists(st.integers(-5, 5), max_size=9))
def test_sign_flips_are_all_counted(differences):
    """The p-value is the share of all sign choices with a sum as low."""
    sizes = [abs(one) for one in differences if one]
    signs = product((-1, 1), repeat=len(sizes))
    sums = [
        sum(s * size for s, size in zip(sign, sizes, strict=True)) for sign in signs
    ]
    share = sum(one <= sum(differences) for one in sums) / len(sums)
    assert sign_flip_p(differences) == pytest.approx(share)


@given(st.integers(0, 400), st.integers(0, 400))
def test_sign_flips_of_single_steps_are_mcnemar_one_sided(lost, gained):
    """Exact however many: nothing is drawn at random."""
    differences = [-1] * lost + [1] * gained + [0] * 5
    expected = binom.cdf(gained, lost + gained, 0.5) if lost + gained else 1.0
    assert sign_flip_p(differences) == pytest.approx(expected)


def test_a_common_unit_of_the_differences_does_not_matter():
    """Three draws that always agree say what one draw says."""
    steps = np.array([-1, -1, -1, 1, -1, 0])
    assert sign_flip_p(3 * steps) == sign_flip_p(steps)


def test_sign_flips_need_whole_numbers():
    """A mean over draws is given as a sum."""
    with pytest.raises(ValueError, match="whole numbers, got float64"):
        sign_flip_p(np.array([0.5, -0.5]))


def test_only_what_could_be_found_is_tested():
    """Tarone: the smallest k such that at most k tests attain alpha / k."""
    assert find_attainable([], 0.05) == []
    assert find_attainable([1.0, 1.0], 0.05) == [False, False]
    # Three attain 0.05, two 0.025: two are tested.
    assert find_attainable([0.04, 0.02, 0.001], 0.05) == [False, True, True]
    assert find_attainable([0.05], 0.05) == [True]


def test_a_level_that_is_spent_over_looks_is_never_spent_twice():
    """However many looks there are, they add up to less than the level."""
    spent = [spend_alpha(0.05, look) for look in range(1, 40)]
    assert sum(spent) == pytest.approx(0.05)
    assert spent == sorted(spent, reverse=True)
    for alpha, look in ((0.0, 1), (1.0, 1), (0.05, 0)):
        with pytest.raises(ValueError, match="look >= 1"):
            spend_alpha(alpha, look)


def test_the_family_keeps_its_level_over_what_could_be_found():
    """Many tests, most of them with hardly a discordant case."""
    rng, false_claims, rounds = np.random.default_rng(5), 0, 2000
    for _ in range(rounds):
        sizes = rng.poisson(rng.choice([1, 3, 8], 40))
        found = [rng.integers(0, 2, size) * 2 - 1 for size in sizes]
        able = find_attainable([0.5 ** len(one) for one in found], 0.05)
        tested = [sign_flip_p(one) for one, can in zip(found, able, strict=True) if can]
        false_claims += any(p <= 0.05 for p in holm(tested))
    assert false_claims <= binom.ppf(0.999, rounds, 0.05)


def score(before, after, trials, difference):
    """Miettinen and Nurminen's statistic, its null shares found by search."""
    variance = 0.0
    for was, now, n in zip(before, after, trials, strict=True):

        def unlikely(p, was=was, now=now, n=n):
            counts = (was, n - was, now, n - now)
            shares = (p, 1 - p, p + difference, 1 - p - difference)
            pairs = zip(counts, shares, strict=True)
            return -sum(k * np.log(max(q, 1e-300)) for k, q in pairs if k)

        low, high = max(0.0, -difference), min(1.0, 1 - difference)
        found = minimize_scalar(
            unlikely, bounds=(low, high), method="bounded", options={"xatol": 1e-11}
        )
        p = min((low, found.x, high), key=unlikely)
        spread = p * (1 - p) + (p + difference) * (1 - p - difference)
        variance += n * spread * 2 * n / (2 * n - 1)
    observed = (sum(after) - sum(before)) / sum(trials)
    return (observed - difference) * sum(trials) / sqrt(variance)


@pytest.mark.parametrize(
    ("before", "after", "trials"),
    [
        ([31], [54], [57]),
        ([0, 1, 0], [3, 3, 2], [3, 3, 3]),
        ([2, 0, 1, 3], [1, 1, 0, 2], [3, 2, 3, 5]),
        ([0] * 6, [3] * 4 + [0] * 2, [3] * 6),
    ],
)
def test_the_limits_are_where_the_score_is(before, after, trials):
    """Against null shares that a search found, not the closed form."""
    low, high = stratified_interval(before, after, trials)
    assert score(before, after, trials, low) == pytest.approx(1.959964, abs=1e-4)
    assert score(before, after, trials, high) == pytest.approx(-1.959964, abs=1e-4)


def test_nothing_read_says_nothing():
    """And a stratum without trials is none."""
    assert stratified_interval([], [], []) == (-1, 1)
    assert stratified_interval([0], [0], [0]) == (-1, 1)
    alone = stratified_interval([1], [3], [3])
    assert stratified_interval([1, 0], [3, 0], [3, 0]) == alone


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=6)
)
def test_the_stratified_interval_mirrors(counts):
    """Before and after exchanged, the limits change sign and place."""
    before, after = zip(*counts, strict=True)
    trials = [4] * len(counts)
    low, high = stratified_interval(before, after, trials)
    swapped = stratified_interval(after, before, trials)
    assert swapped == pytest.approx((-high, -low))
    assert -1 <= low <= (sum(after) - sum(before)) / sum(trials) <= high <= 1


def test_the_stratified_interval_covers_no_difference_as_often_as_it_says():
    """Many cases read three times, each with a chance of its own to be right."""
    rng, missed, rounds = np.random.default_rng(7), 0, 600
    for _ in range(rounds):
        chances = rng.beta(0.6, 0.9, 26)
        before, after = rng.binomial(3, chances), rng.binomial(3, chances)
        low, high = stratified_interval(before, after, [3] * 26)
        missed += not low <= 0 <= high
    assert missed <= binom.ppf(0.999, rounds, 0.05)


def test_one_case_read_three_times_is_enough_where_all_changed():
    """The exact test of the one table says about the same."""
    assert stratified_interval([0], [3], [3]).low > 0
    assert hypergeom.sf(2, 6, 3, 3) == pytest.approx(0.05)
    assert stratified_interval([0], [2], [3]).low < 0


@pytest.mark.parametrize(
    ("before", "after", "trials", "message"),
    [
        ([1], [1, 2], [3, 3], "shapes differ"),
        ([4], [1], [3], "successes <= trials"),
        ([1], [-1], [3], "successes <= trials"),
    ],
)
def test_impossible_strata_are_refused(before, after, trials, message):
    """Counts, not rates, one of each a stratum."""
    with pytest.raises(ValueError, match=message):
        stratified_interval(before, after, trials)


# Darwin's Zea mays, crossed minus self-fertilised, eighths of an inch (Fisher RA. The
# Design of Experiments. 1935, section 21).
DARWIN = np.array([49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48.0])


def total(values):
    """Return the sum of paired differences after each exchange."""
    return lambda swaps: np.where(swaps, -values, values).sum(axis=1, keepdims=True)


def test_fishers_own_example_comes_out():
    """He counted 863 of 2^14 with a sum as large, on one side: 0.02634 of 2^15."""
    p = exact_p(total(DARWIN), np.array([abs(DARWIN.sum())]), 15)
    assert p[0] == pytest.approx(2 * 863 / 2**15)


def test_a_sample_comes_near_fishers_number():
    """Within four standard errors."""
    [p] = sampled_p(
        total(DARWIN), np.array([DARWIN.sum()]), 15, permutations=20_000, seed=0
    )
    assert abs(p - 2 * 863 / 2**15) < 4 * np.sqrt(0.05 / 20_000)


def test_a_sample_is_never_certain():
    """A hundred units all one way: one in permutations + 1, the observed one."""
    gains = np.ones(100)
    [p] = sampled_p(total(gains), np.array([100.0]), 100, permutations=999, seed=0)
    assert p == pytest.approx(1 / 1000)


def test_nothing_to_exchange_is_no_evidence():
    """The observed difference is the only one there is."""
    assert exact_p(total(np.zeros(0)), np.zeros(1), 0).tolist() == [1]


def test_an_undefined_difference_counts_as_large():
    """It must not make the p-value smaller."""

    def undefined(swaps):
        return np.where(swaps[:, :1], np.nan, 1.0)

    assert exact_p(undefined, np.array([5.0]), 3).tolist() == [0.5]


def test_rounding_does_not_break_ties():
    """Sums of tenths in another order differ in their last bit, and are equal."""
    gains = np.array([0.1, 0.2, 0.3, 0.0])
    [p] = exact_p(total(gains), np.array([0.6000000000000001]), 4)
    assert p == 4 / 16


def test_at_least_one_exchange_is_needed():
    """The message names the value."""
    with pytest.raises(ValueError, match="got 0"):
        check_permutations(0)


@pytest.mark.parametrize(
    ("n_units", "permutations", "rows"),
    [
        (3, 600, [256, 256, 88]),
        (3, 256, [256]),
        (0, 300, [256, 44]),
        (3000, 450, [200, 200, 50]),
        (100_000, 20, [16, 4]),
    ],
)
def test_exchanges_are_drawn_in_blocks_that_depend_on_the_units_alone(
    n_units, permutations, rows
):
    """A recorded seed gives the same numbers on every machine."""
    drawn = []

    def difference(swaps):
        drawn.append(swaps)
        return np.zeros((len(swaps), 1))

    [p] = sampled_p(difference, np.ones(1), n_units, permutations=permutations, seed=4)
    assert p == 1 / (permutations + 1)
    rng = np.random.default_rng([4, 1])
    assert [len(one) for one in drawn] == rows
    for one in drawn:
        expected = rng.integers(2, size=(len(one), n_units), dtype=np.bool_)
        assert np.array_equal(one, expected)


def test_every_exchange_is_counted_once():
    """Of ten units, all ways but for which of the two is called first."""
    seen = []

    def difference(swaps):
        seen.extend(map(tuple, swaps.tolist()))
        return np.zeros((len(swaps), 1))

    assert exact_p(difference, np.ones(1), 10).tolist() == [0]
    assert len(seen) == len(set(seen)) == 2**9
    assert {one[-1] for one in seen} == {False}


def test_differences_within_rounding_of_the_observed_one_are_as_large():
    """A billionth of a thousandth below it; more is smaller, on either side of 0."""
    observed = np.array([1e-6])
    for after, share in (
        (1e-6, 1.0), (1e-6 - 9e-13, 1.0), (1e-6 - 1.1e-12, 0.0), (-1e-6, 1.0),
        (-1e-6 + 1.1e-12, 0.0), (np.nan, 1.0), (0.0, 0.0),
    ):  # fmt: skip

        def difference(swaps, value=after):
            return np.full((len(swaps), 1), value)

        assert exact_p(difference, observed, 3).tolist() == [share]
        [p] = sampled_p(difference, observed, 3, permutations=9, seed=0)
        assert p == pytest.approx((9 * share + 1) / 10)
