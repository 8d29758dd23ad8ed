"""Samples of fixed size with unequal chances: the draw, the estimate and its limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from loop.stats.bootstrap import bootstrap_f1
from loop.stats.intervals import Estimate, clopper_pearson
from loop.stats.weighted import (
    design_share,
    draw_systematic,
    effective_size,
    inclusion_chances,
    weighted_share,
    weighted_sum,
)


def draw(chances, rng):
    """Draw a sample as callers do: in a random order, from a random start."""
    return draw_systematic(chances, rng.permutation(len(chances)), rng.random())


@given(
    sizes=st.lists(st.floats(0, 1e6), min_size=1, max_size=40),
    share=st.floats(0.01, 1),
    even=st.floats(0.01, 1),
    seed=st.integers(0, 99),
)
def test_chances_add_up_and_exactly_so_many_are_drawn(sizes, share, even, seed):
    """Whatever the sizes: a floor for each, none above 1, nobody drawn twice."""
    n = max(1, round(share * len(sizes)))
    chances = inclusion_chances(np.array(sizes), n, even=even)
    assert chances.sum() == pytest.approx(n)
    assert (chances <= 1).all()
    assert chances.min() >= even * n / len(sizes) * (1 - 1e-9)
    drawn = draw(chances, np.random.default_rng(seed))
    assert len(set(drawn.tolist())) == len(drawn) == n
    assert set(np.flatnonzero(chances == 1)) <= set(drawn.tolist())


def test_all_of_them_are_drawn_for_certain():
    """Then the sample is the population, and no weight says otherwise."""
    chances = inclusion_chances(np.array([0.0, 3.0, 5.0]), 3, even=0.2)
    assert chances.tolist() == [1, 1, 1]
    assert draw_systematic(chances, np.arange(3), 0.99).tolist() == [0, 1, 2]


def test_each_is_drawn_as_often_as_its_chance_says():
    """20,000 draws: within four standard errors of a proportion."""
    rng = np.random.default_rng(1)
    chances = inclusion_chances(rng.gamma(0.5, size=60), 12, even=0.25)
    times = np.zeros(60)
    for _ in range(20_000):
        times[draw(chances, rng)] += 1
    error = np.sqrt(chances * (1 - chances) / 20_000)
    assert (np.abs(times / 20_000 - chances) <= 4 * error + 1e-12).all()


def test_members_with_equal_chances_are_a_simple_random_sample():
    """Pairs come together with n (n - 1) / N (N - 1), as in one without replacement."""
    rng, together = np.random.default_rng(2), 0
    chances = inclusion_chances(np.ones(10), 4, even=1)
    for _ in range(20_000):
        together += {0, 1} <= set(draw(chances, rng).tolist())
    expected = 4 * 3 / (10 * 9)
    assert together / 20_000 == pytest.approx(expected, abs=0.015)


@pytest.mark.parametrize(
    ("sizes", "n", "even", "words"),
    [
        ([1.0, 2.0], 0, 0.5, "0 of 2 members cannot be drawn"),
        ([1.0, 2.0], 3, 0.5, "3 of 2 members cannot be drawn"),
        ([], 1, 0.5, "1 of 0 members cannot be drawn"),
        ([1.0, 2.0], 1, 0.0, "the even part is in"),
        ([1.0, 2.0], 1, 1.5, "the even part is in"),
        ([1.0, -2.0], 1, 0.5, "a size is a number of at least 0"),
        ([1.0, np.nan], 1, 0.5, "a size is a number of at least 0"),
        ([1.0, np.inf], 1, 0.5, "a size is a number of at least 0"),
    ],
)
def test_what_cannot_be_drawn_is_refused(sizes, n, even, words):
    """With the offending number."""
    with pytest.raises(ValueError, match=words):
        inclusion_chances(np.array(sizes), n, even=even)


@pytest.mark.parametrize(
    ("chances", "start"), [([0.5, 0.4], 0.1), ([0.5, 0.5], 1.0), ([1.5, 0.5], 0.1)]
)
def test_chances_that_are_none_are_refused(chances, start):
    """They must add up to a whole number, each in (0, 1]."""
    with pytest.raises(ValueError, match="chance"):
        draw_systematic(np.array(chances), np.arange(2), start)


def population():
    """Return 1,500 members of which 9 % are hit, and sizes that go with it."""
    rng = np.random.default_rng(3)
    likely = rng.beta(0.6, 6, size=1500)
    return rng.random(1500) < likely, likely**2


def test_the_estimate_is_unbiased_and_its_limits_hold():
    """Known population, 2,000 draws: bias within error, coverage as promised."""
    hits, sizes = population()
    chances = inclusion_chances(sizes, 150, even=0.25)
    rng, found = np.random.default_rng(4), []
    for _ in range(2000):
        rows = draw(chances, rng)
        found.append(design_share(hits[rows], chances[rows]))
    values = np.array([one.value for one in found])
    truth = hits.mean()
    assert abs(values.mean() - truth) < 4 * values.std() / np.sqrt(2000) + 0.001
    covered = np.mean([one.low <= truth <= one.high for one in found])
    assert 0.93 <= covered <= 0.995
    naive = np.mean([hits[draw(chances, rng)].mean() for _ in range(200)])
    assert naive > 1.5 * truth, "unweighted, the share is far from the truth"


def test_a_group_of_the_sample_is_estimated_too():
    """Share among a domain, the rest of the sample counting for its variance."""
    hits, sizes = population()
    group = np.arange(1500) % 3 == 0
    chances = inclusion_chances(sizes, 300, even=0.25)
    rng, found = np.random.default_rng(5), []
    for _ in range(1000):
        rows = draw(chances, rng)
        inside = group[rows]
        found.append(design_share(hits[rows] & inside, chances[rows], among=inside))
    truth = hits[group].mean()
    assert np.mean([one.value for one in found]) == pytest.approx(truth, abs=0.003)
    assert np.mean([one.low <= truth <= one.high for one in found]) >= 0.93


def test_equal_chances_give_the_plain_share_and_its_exact_limits():
    """Then the design has the variance of independent draws, n / (n - 1) apart."""
    hits = np.arange(50) < 10
    found = design_share(hits, np.full(50, 0.1))
    low, high = clopper_pearson(10, 50)
    assert found.value == pytest.approx(0.2)
    assert found.low == pytest.approx(low, abs=0.003)
    assert found.high == pytest.approx(high, abs=0.003)


@pytest.mark.parametrize("hit", [True, False])
def test_without_any_variance_the_effective_number_bounds_it(hit):
    """None hit, or all: limits as of independent draws of the effective number."""
    chances = np.repeat([0.5, 0.1], 15)
    hits = np.full(30, hit)
    assert design_share(hits, chances) == weighted_share(hits, chances)


def test_members_of_one_unit_are_not_independent():
    """The same answers of half as many patients have wider limits."""
    hits, chances = np.repeat(np.arange(20) < 8, 2), np.full(40, 0.2)
    apart = design_share(hits, chances)
    units = design_share(hits, chances, units=np.repeat(np.arange(20), 2))
    assert units.high - units.low > 1.2 * (apart.high - apart.low)
    assert units.value == apart.value


def test_several_answers_of_a_member_are_a_mean():
    """Two of two, one of two, none of two: half of the answers."""
    found = design_share(
        np.array([2, 1, 0]), np.full(3, 0.5), among=np.array([2, 2, 2])
    )
    assert found.value == pytest.approx(0.5)


def test_of_nobody_nothing_is_known():
    """An empty group has no share, and no whole range that looks like one."""
    found = design_share(np.zeros(3, bool), np.full(3, 0.5), among=np.zeros(3, bool))
    assert (found.value, found.low, found.high) == (None, None, None)
    assert found.note == "not estimable: none was drawn"


@pytest.mark.parametrize(
    ("hits", "chances", "among"),
    [
        ([True], [0.0], None),
        ([True], [1.2], None),
        ([True, False], [0.5], None),
        ([True], [0.5], [False]),
        ([2], [0.5], [1]),
    ],
)
def test_chances_and_groups_that_do_not_fit_are_refused(hits, chances, among):
    """A hit outside of its group would make a share above 1."""
    group = None if among is None else np.array(among)
    with pytest.raises(ValueError, match=r"chance|group"):
        design_share(np.array(hits), np.array(chances), among=group)


def test_effective_size_has_a_closed_form():
    """Kish: equal weights count in full; half with weight w are worth less."""
    assert effective_size(np.full(80, 0.3)) == pytest.approx(80)
    chances = np.repeat([1.0, 0.25], 50)
    assert effective_size(chances) == pytest.approx(100 * 2.5**2 / (0.5 + 8))
    assert effective_size(np.array([])) == 0


def test_a_weight_of_two_is_a_case_counted_twice():
    """Weighted F1 is that of the cases repeated; without weights it is as before."""
    rng = np.random.default_rng(6)
    truth = (rng.random((60, 3)) < 0.4).astype(np.int8)
    said = np.where(rng.random((60, 3)) < 0.2, 1 - truth, truth).astype(np.int8)
    times = rng.integers(1, 4, size=60)
    weighted = bootstrap_f1(truth, said, weights=times.astype(float), resamples=50)
    repeated = bootstrap_f1(
        np.repeat(truth, times, axis=0), np.repeat(said, times, axis=0), resamples=50
    )
    assert weighted.estimate == pytest.approx(repeated.estimate)
    plain = bootstrap_f1(truth, said, resamples=50)
    assert bootstrap_f1(truth, said, weights=np.ones(60), resamples=50) == plain


def test_weighted_f1_without_an_error_has_no_limits():
    """Exact limits would be those of cases that count alike."""
    truth = np.ones((20, 1), dtype=np.int8)
    found = bootstrap_f1(truth, truth, weights=np.full(20, 3.0), resamples=50)
    assert found[:3] == (1.0, None, None)


def test_equal_chances_have_the_exact_limits_of_so_many_members():
    """Whatever the chance; only a population that is wholly there has no limits."""
    hits = np.arange(10) < 3
    exact = (0.3, *clopper_pearson(3, 10, confidence=0.9))
    for chance, complete in ((0.5, True), (0.5, False), (1.0, False)):
        found = weighted_share(
            hits, np.full(10, chance), complete=complete, confidence=0.9
        )
        assert found[:3] == pytest.approx(exact)
    assert weighted_share(hits, np.ones(10))[:3] == (0.3, 0.3, 0.3)
    nearly = np.array([*[1.0] * 9, 0.99])
    assert weighted_share(hits, nearly).low < 0.2


def test_no_member_has_no_share():
    """Neither 0 nor the whole range."""
    found = weighted_share(np.zeros(0, bool), np.zeros(0))
    assert found == (None, None, None, "not estimable: none was drawn")


@pytest.mark.parametrize(
    ("hits", "chances"), [([True], [0.0]), ([True], [1.1]), ([True], [0.5, 0.5])]
)
def test_a_share_needs_a_chance_for_each_member(hits, chances):
    """In (0, 1], as for a design."""
    with pytest.raises(ValueError, match="a chance in"):
        weighted_share(np.array(hits), np.array(chances))


def test_distances_of_a_sum_from_its_limits_add_up_as_squares():
    """Half of 0.8 (0.6 to 0.9) and half of 0.4 (0.2 to 0.7), by hand."""
    one, other = Estimate(0.8, 0.6, 0.9), Estimate(0.4, 0.2, 0.7)
    found = weighted_sum([(0.5, one), (0.5, other)])
    low, high = 0.6 - np.sqrt(0.1**2 + 0.1**2), 0.6 + np.sqrt(0.05**2 + 0.15**2)
    assert found[:3] == pytest.approx((0.6, low, high))
    assert weighted_sum([(1.0, one)])[:3] == pytest.approx(one[:3])
    assert weighted_sum([(0.25, one)])[:3] == pytest.approx((0.2, 0.15, 0.225))


def test_a_part_of_which_nothing_is_known_leaves_no_sum():
    """Unless its share is 0: then it is no part."""
    known, unknown = Estimate(0.8, 0.6, 0.9), Estimate(None, None, None, "none")
    assert weighted_sum([(0.9, known), (0.1, unknown)]) == unknown
    assert weighted_sum([(1.0, known), (0.0, unknown)])[:3] == pytest.approx(known[:3])


def test_patients_without_variance_and_single_ones_have_limits():
    """One unit has no variance between units: the effective number bounds it."""
    hits, chances = np.array([1, 0, 0, 0]), np.full(4, 0.5)
    alone = design_share(hits, chances, units=np.zeros(4))
    assert alone[:3] == pytest.approx((0.25, *clopper_pearson(1, 4)))


def test_a_weighted_share_is_that_of_the_population():
    """By hand: two of weight 2 and 4, of which the first is hit."""
    found = weighted_share(np.array([True, False]), np.array([0.5, 0.25]))
    n = 6**2 / (2**2 + 4**2)
    x = n / 3
    assert found[:3] == pytest.approx(
        (1 / 3, beta.ppf(0.025, x, n - x + 1), beta.ppf(0.975, x + 1, n - x))
    )


def test_the_variance_of_a_design_is_that_of_its_linearised_ratio():
    """Written out for six members of two chances, alone and as three patients."""
    hits = np.array([1, 0, 1, 0, 0, 1])
    chances = np.array([0.5, 0.5, 0.2, 0.2, 0.5, 0.2])
    weights = 1 / chances
    share = (weights * hits).sum() / weights.sum()
    parts = weights * (hits - share) / weights.sum()
    for units in (np.arange(6), np.array([0, 0, 1, 1, 2, 2])):
        sums = np.bincount(units, parts)
        count = len(sums)
        variance = (sums**2).sum() * count / (count - 1)
        n = min(6, share * (1 - share) / variance)
        x = share * n
        found = design_share(hits, chances, units=units, confidence=0.9)
        assert found[:3] == pytest.approx(
            (share, beta.ppf(0.05, x, n - x + 1), beta.ppf(0.95, x + 1, n - x))
        )


def test_sizes_that_are_all_nought_are_all_equal():
    """And what would exceed 1 is drawn for certain, the rest in proportion."""
    assert inclusion_chances(np.zeros(4), 2, even=0.5).tolist() == [0.5] * 4
    found = inclusion_chances(np.array([0.0, 1.0, 1.0, 98.0]), 2, even=0.4)
    # Shares 0.4, 0.424, 0.424, 2.752 of 4; the last one is certain, 1 is left.
    rest = np.array([0.4, 0.424, 0.424])
    assert found == pytest.approx([*(rest / rest.sum()), 1.0])
