"""Ranking and paired tests of systems against scikit-learn, loops and enumeration."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from loop.stats.bootstrap import bootstrap_f1, bootstrap_f1_difference
from loop.stats.confusion import average_f1, count_confusions, f1_columns
from loop.stats.paired import holm
from loop.stats.resampling import draw_units
from loop.stats.systems import compare_systems, rank_systems

POLICIES = {"zero": 0, "one": 1, "skip": np.nan}


def table(n_systems=3, n_cases=60, n_labels=5, seed=1, excluded=0.0):
    """Return a reference and systems of which each is worse than the one before."""
    rng = np.random.default_rng(seed)
    reference = rng.random((n_cases, n_labels)) < np.linspace(0.1, 0.5, n_labels)
    wrong = rng.random((n_systems, n_cases, n_labels))
    share = np.linspace(0.05, 0.3, n_systems)[:, None, None]
    codes = [side.astype(np.int8) for side in (reference, reference ^ (wrong < share))]
    for side in codes:
        side[rng.random(side.shape) < excluded] = -1
    return codes


def columns_of(reference, candidates):
    """Return what `rank_systems` takes."""
    return np.stack([f1_columns(reference, one) for one in candidates])


def macro(reference, candidate, policy="skip"):
    """Return the macro F1 from counts of the codes themselves."""
    counts = count_confusions(reference, candidate)
    return float(average_f1(counts, zero_division=policy))


def exchange_all(reference, first, second, units, policy="skip"):
    """Return the exact p-value by scoring every exchange of every unit."""
    decided = (first != -1) & (second != -1)
    common = np.where(decided, reference, np.int8(-1))
    names = np.unique(units)

    def difference(swapped):
        where = np.isin(units, names[np.array(swapped, dtype=bool)])[:, None]
        one, other = np.where(where, second, first), np.where(where, first, second)
        return macro(common, one, policy) - macro(common, other, policy)

    observed = abs(difference([0] * len(names)))
    all_of_them = [difference(way) for way in product([0, 1], repeat=len(names))]
    return np.mean([not abs(one) < observed - 1e-12 for one in all_of_them])


@pytest.mark.parametrize("policy", POLICIES)
def test_ranking_equals_that_of_the_plain_loop(policy):
    """Same resamples, every system scored by scikit-learn one by one."""
    reference, candidates = table()
    drawn = np.concatenate(list(draw_units(60, 60, np.random.default_rng(3))))
    scores = np.array(
        [
            [
                f1_score(
                    reference[rows],
                    one[rows],
                    average="macro",
                    zero_division=POLICIES[policy],
                )
                for one in candidates
            ]
            for rows in drawn
        ]
    )
    found = rank_systems(
        columns_of(reference, candidates), zero_division=policy, resamples=60, seed=3
    )
    limits = np.quantile(scores, [0.025, 0.975], axis=0).T
    assert [one[1:3] for one in found] == [pytest.approx(tuple(x)) for x in limits]
    best = np.bincount(scores.argmax(axis=1), minlength=3) / 60
    assert [one.best for one in found] == pytest.approx(list(best))
    whole = [macro(reference, one, policy) for one in candidates]
    assert [one.estimate for one in found] == pytest.approx(whole)


def test_each_interval_is_that_of_the_system_alone():
    """The same seed gives the same resamples, so company changes nothing."""
    reference, candidates = table(excluded=0.1)
    found = rank_systems(columns_of(reference, candidates), resamples=200, seed=5)
    alone = [bootstrap_f1(reference, one, resamples=200, seed=5) for one in candidates]
    assert [one[:3] for one in found] == [pytest.approx(one[:3]) for one in alone]


def test_equal_systems_share_being_best():
    """Two copies of the best one win half of the resamples each."""
    reference, candidates = table(2, n_cases=400)
    three = np.stack([candidates[1], candidates[0], candidates[0]])
    found = rank_systems(columns_of(reference, three), resamples=200)
    assert [one.best for one in found] == [0, 0.5, 0.5]


def test_patients_are_resampled_as_a_whole():
    """Each case nine times over under one patient: the same ranking."""
    reference, candidates = table()
    once = columns_of(reference, candidates)
    many, patients = np.repeat(once, 9, axis=1), np.repeat(np.arange(60), 9)
    found = rank_systems(many, units=patients, resamples=200)
    for one, other in zip(found, rank_systems(once, resamples=200), strict=True):
        assert one == pytest.approx(other)


def test_a_system_without_a_score_is_never_best():
    """Nothing decided is None, not 0, and does not take part."""
    reference, candidates = table(2)
    candidates[1] = -1
    found = rank_systems(columns_of(reference, candidates), resamples=50)
    assert found[1] == (None, None, None, 0.0)
    assert found[0].best == 1 and found[0].low is not None


def test_one_case_or_none_has_no_interval():
    """A ranking of one case is a statement about that case."""
    reference, candidates = np.ones((1, 2), dtype=np.int8), np.ones((2, 1, 2), "int8")
    candidates[1] = 0
    found = rank_systems(columns_of(reference, candidates))
    assert found == [(1.0, None, None, 1.0), (0.0, None, None, 0.0)]
    assert (
        rank_systems(np.zeros((2, 0, 4), dtype=np.int16))
        == [(None, None, None, 0.0)] * 2
    )
    assert compare_systems(reference[:0], candidates[:, :0])[0].p is None


def test_shares_of_being_best_add_up_to_one():
    """Resamples where a system has no score are left out for all of them."""
    reference, candidates = table(4, n_cases=8, seed=2, excluded=0.6)
    found = rank_systems(columns_of(reference, candidates), resamples=400)
    assert sum(one.best for one in found) == pytest.approx(1)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(2, 7), st.sampled_from(list(POLICIES)))
def test_a_short_test_equals_the_enumeration(seed, n_cases, policy):
    """All 2^n exchanges, each scored from the exchanged codes themselves."""
    reference, candidates = table(3, n_cases, 3, seed, excluded=0.15)
    tests = compare_systems(
        reference, candidates, zero_division=policy, resamples=20, permutations=200
    )
    assert [(t.first, t.second) for t in tests] == list(combinations(range(3), 2))
    for test in tests:
        pair = candidates[test.first], candidates[test.second]
        if test.p is None:
            assert test.difference.estimate is None
            continue
        expected = exchange_all(reference, *pair, np.arange(n_cases), policy)
        assert test.exact and test.p == pytest.approx(expected)


def test_patients_are_exchanged_as_a_whole():
    """With 12 cases of 4 patients there are 2^4 exchanges, not 2^12."""
    reference, candidates = table(2, 12, 3, seed=4)
    patients = np.array(list("abcd") * 3)
    [test] = compare_systems(reference, candidates, units=patients, permutations=16)
    expected = exchange_all(reference, *candidates, patients)
    assert test.exact and test.p == pytest.approx(expected)


def test_equal_units_leave_the_test_exact():
    """A thousand cases of which seven differ have 2^7 exchanges that matter."""
    reference, candidates = table(2, 1000)
    other = candidates[0].copy()
    other[:7, 0] ^= 1
    pair = np.stack([candidates[0], other])
    [test] = compare_systems(reference, pair, resamples=20)
    short = compare_systems(reference, pair, resamples=20, permutations=100)[0]
    assert test.exact and not short.exact
    assert (test.p * 2**7).is_integer()
    assert short.p == pytest.approx(test.p, abs=0.15)


def test_a_sample_of_exchanges_comes_near_all_of_them():
    """Within four standard errors of the enumeration, and never 0."""
    reference, candidates = table(3, 14, 12, seed=8, excluded=0.1)
    candidates[:, :, 0] = [[1], [0], [1]]
    exact = compare_systems(reference, candidates, resamples=20, permutations=2**14)
    drawn = compare_systems(reference, candidates, resamples=20, permutations=500)
    for all_of_them, sample in zip(exact, drawn, strict=True):
        assert all_of_them.exact and not sample.exact
        error = np.sqrt(all_of_them.p * (1 - all_of_them.p) / 500)
        assert abs(sample.p - all_of_them.p) < 4 * error + 1 / 500
        assert (sample.p * 501) == pytest.approx(round(sample.p * 501))


@pytest.mark.parametrize("excluded", [0, 0.02, 0.4])
def test_each_difference_is_that_of_the_pair_alone(excluded):
    """Taking off what the other one leaves open is counting what both decide."""
    reference, candidates = table(4, 70, excluded=excluded)
    units = np.arange(70) % 31
    tests = compare_systems(
        reference, candidates, units=units, resamples=300, seed=6, permutations=50
    )
    for test in tests:
        alone = bootstrap_f1_difference(
            reference,
            candidates[test.second],
            candidates[test.first],
            units=units,
            resamples=300,
            seed=6,
        )
        assert test.difference == pytest.approx(alone)


def test_equal_systems_do_not_differ():
    """No exchange changes anything: exactly 1."""
    reference, candidates = table(2)
    [test] = compare_systems(reference, candidates[[0, 0]], resamples=50)
    assert test.difference[:3] == (0, 0, 0) and (test.p, test.exact) == (1, True)


def test_the_family_is_all_pairs():
    """Holm over every pair, in the order of the pairs."""
    reference, candidates = table(4, 40)
    tests = compare_systems(reference, candidates, resamples=20, permutations=500)
    assert [t.p_holm for t in tests] == holm([t.p for t in tests])


def test_an_undefined_pair_does_not_count_in_the_family():
    """A system without answers has no p-value, and costs the others nothing."""
    reference, candidates = table(3, 40)
    alone = compare_systems(reference, candidates[:2], resamples=20, permutations=500)
    candidates[2] = -1
    tests = compare_systems(reference, candidates, resamples=20, permutations=500)
    assert [t.p is None for t in tests] == [False, True, True]
    assert tests[1].difference.estimate is None and tests[1].p_holm is None
    assert tests[0].p_holm == tests[0].p == alone[0].p


def test_exchanges_under_the_null_are_uniform():
    """Systems of equal quality get p-values below 0.1 in about a tenth of tables."""
    small = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        codes = rng.random((3, 25, 3)) < 0.4
        reference, *pair = codes.astype(np.int8)
        [test] = compare_systems(
            reference, np.stack(pair), resamples=2, permutations=199, seed=seed
        )
        small += test.p <= 0.1
    assert abs(small - 20) < 4 * np.sqrt(200 * 0.1 * 0.9)


def test_the_seed_decides():
    """Both kinds of draws start from the recorded seed."""
    reference, candidates = table(2, 100)
    candidates[1] = np.where(np.arange(100)[:, None] % 9, candidates[0], candidates[1])
    first, again, other = (
        compare_systems(reference, candidates, resamples=99, permutations=99, seed=seed)
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first[0].difference[1:3] != other[0].difference[1:3]


def test_names_of_patients_decide_nothing():
    """Rows in another order, with their patients, give the very same result."""
    reference, candidates = table(3, 50, excluded=0.1)
    patients = np.array([f"p{i % 23}" for i in range(50)])
    order = np.random.default_rng(0).permutation(50)
    options = {"resamples": 50, "permutations": 50}
    assert compare_systems(
        reference, candidates, units=patients, **options
    ) == compare_systems(
        reference[order], candidates[:, order], units=patients[order], **options
    )


def test_one_system_has_nothing_to_be_compared_with():
    """Not an error: a family without a hypothesis."""
    reference, candidates = table(1)
    assert compare_systems(reference, candidates) == []


def test_wrong_input_is_refused():
    """Messages give the shape or the value."""
    reference, candidates = table(2)
    with pytest.raises(ValueError, match=r"n_systems, n_cases, 2 \* n_labels"):
        rank_systems(columns_of(reference, candidates)[0])
    with pytest.raises(ValueError, match="n_systems, n_cases, n_labels"):
        compare_systems(reference, candidates[0])
    with pytest.raises(ValueError, match="permutations must be >= 1, got 0"):
        compare_systems(reference, candidates, permutations=0)
    with pytest.raises(ValueError, match="codes must be 1, 0 or -1, got -2"):
        compare_systems(reference, np.where(candidates == 0, -2, candidates))
    with pytest.raises(ValueError, match="equal shapes"):
        compare_systems(reference[1:], candidates)


@pytest.mark.parametrize(("permutations", "exact"), [(31, False), (32, True)])
def test_as_many_exchanges_as_allowed_are_counted(permutations, exact):
    """Five units that differ have 32; with one fewer they are sampled."""
    reference, candidates = table(2, 60)
    other = candidates[0].copy()
    other[:5, 0] ^= 1
    pair = np.stack([candidates[0], other])
    [test] = compare_systems(reference, pair, resamples=5, permutations=permutations)
    assert test.exact == exact
    whole = test.p * (32 if exact else permutations + 1)
    assert whole == pytest.approx(round(whole))


@pytest.mark.parametrize("at_once", [1, 8_000_000])
def test_a_sampled_test_equals_the_plain_loop(at_once, monkeypatch):
    """The same exchanges, each scored from the exchanged codes; undefined is large."""
    monkeypatch.setattr("loop.stats.systems._AT_ONCE", at_once)
    reference, candidates = table(3, 40, 3, seed=2, excluded=0.2)
    units = np.arange(40) // 2
    tests = compare_systems(
        reference, candidates, units=units, resamples=5, permutations=70, seed=3
    )
    rng = np.random.default_rng([3, 1])
    swaps = rng.integers(2, size=(70, 20), dtype=np.bool_)[:, units, None]
    for test in tests:
        first, second = candidates[test.first], candidates[test.second]
        decided = (first != -1) & (second != -1)
        common = np.where(decided, reference, np.int8(-1))
        observed = abs(macro(common, first) - macro(common, second))
        larger = 0
        for swap in swaps:
            one, two = np.where(swap, second, first), np.where(swap, first, second)
            difference = abs(macro(common, one) - macro(common, two))
            larger += not difference < observed - 1e-12
        assert not test.exact and test.p == pytest.approx((larger + 1) / 71)


def test_resamples_in_which_a_system_has_no_score_do_not_count_for_the_best():
    """The others are counted as they are, whatever was drawn again."""
    columns = np.zeros((2, 6, 2), dtype=np.int64)
    columns[:, :, 1] = 2
    columns[0, :3, 0], columns[1, 3:5, 0] = 2, 2
    columns[1, 5] = 0
    found = rank_systems(columns, resamples=200, seed=1)
    drawn = np.concatenate(list(draw_units(6, 210, np.random.default_rng(1))))
    sums = columns[:, drawn].sum(axis=2)
    with np.errstate(invalid="ignore"):
        scores = sums[..., 0] / sums[..., 1]
    kept = scores[:, ~np.isnan(scores).any(axis=0)][:, :200]
    top = kept >= kept.max(axis=0) - 1e-12
    expected = (top / top.sum(axis=0)).mean(axis=1)
    assert [one.best for one in found] == pytest.approx(expected.tolist())
    assert [one.estimate for one in found] == pytest.approx([0.5, 0.4])


@pytest.mark.parametrize(("differing", "exact"), [(13, True), (14, False)])
def test_ten_thousand_resamples_and_exchanges_are_made_unless_asked(differing, exact):
    """2^13 exchanges are fewer, 2^14 are more."""
    truth = np.ones((20, 1), dtype=np.int8)
    other = truth.copy()
    other[:differing] = 0
    [test] = compare_systems(truth, np.stack([truth, other]))
    assert (test.difference.resamples, test.exact) == (10_000, exact)
    whole = test.p * (2**13 if exact else 10_001)
    assert whole == pytest.approx(round(whole))
    assert not exact or whole == pytest.approx(2)
