"""Ensembles find what is there, and out of fold nothing that is not."""

import numpy as np
import pytest
from scipy.stats import kendalltau

from loop.core.errors import DataError
from loop.judge.ensemble import (
    EnsembleMethod,
    MemberScores,
    evaluate_out_of_fold,
    fit_ensemble,
    fit_linear,
    score_out_of_fold,
    split_folds,
)
from loop.stats.dependent import compare_metrics


def member(name, values, lower=False, score=""):
    """Return a member with these values."""
    return MemberScores(
        name=name,
        title=name.title(),
        lower=lower,
        values=np.asarray(values, float),
        score=score,
    )


def drawn(seed, pairs, size):
    """Return independent values of some members."""
    return np.random.default_rng(seed).normal(size=(pairs, size))


def members_of(table, lower=()):
    """Return the columns of a table as members m0, m1, ..."""
    return [
        member(f"m{place}", column, place in lower)
        for place, column in enumerate(table.T)
    ]


def test_the_regression_finds_known_coefficients():
    """2 + 3a - b - 0.5c without noise, c in other units, is found exactly."""
    table = drawn(1, 40, 3) * [1, 1, 100]
    points = 2 + table @ [3, -1, -0.5]
    found = fit_ensemble(members_of(table, lower=(1, 2)), points, np.arange(40))
    linear = found.linear
    assert linear.weights / linear.scale == pytest.approx([3, -1, -0.5])
    zero = linear.intercept - (linear.weights / linear.scale) @ linear.centre
    assert zero == pytest.approx(2)
    assert linear.score(table) == pytest.approx(points)
    assert found.against == ()


def test_the_mean_turns_what_is_better_low_and_ignores_ratings():
    """A member and the same one turned are the same ensemble; ratings have no part."""
    table = drawn(2, 30, 2)
    turned = [member("m0", table[:, 0]), member("m1", -table[:, 1], lower=True)]
    made = []
    for members, points in (
        (members_of(table), np.arange(30.0)),
        (turned, np.arange(30.0)[::-1]),
    ):
        found = fit_ensemble(members, points, np.arange(30), EnsembleMethod.MEAN)
        made.append(found.linear.score(found.values))
    standard = (table - table.mean(axis=0)) / table.std(axis=0)
    assert made[0] == pytest.approx(standard.mean(axis=1))
    assert made[1] == pytest.approx(made[0])


def test_a_coefficient_against_its_direction_is_named():
    """A member that is said to be better low, and goes with the points."""
    table = drawn(3, 50, 2)
    found = fit_ensemble(
        members_of(table, lower=(1,)), table @ [1.0, 1.0], np.arange(50)
    )
    assert found.against == ("m1",)


def test_pairs_without_an_answer_are_left_out_and_counted_by_member():
    """Nothing is filled in: what the others say of these pairs is not used, either."""
    table = drawn(4, 30, 2)
    points = table @ [1.0, 2.0]
    gaps = table.copy()
    gaps[:3, 0] = np.nan
    gaps[2:5, 1] = np.nan
    points[10] = np.nan
    found = fit_ensemble(members_of(gaps), points, np.arange(30))
    assert [one.missing for one in found.members] == [3, 3]
    assert found.used.sum() == 24
    assert len(found.ratings) == 29
    assert found.linear.weights / found.linear.scale == pytest.approx([1, 2])
    scores = found.linear.score(gaps)
    assert np.isnan(scores).nonzero()[0].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (np.full(20, np.nan), "M1 (m1) has no value for any of 20 rated pairs"),
        (np.full(20, 0.3), "M1 (m1) has the same value for all 20 pairs"),
        (np.arange(20) * 2 - 7, "is m0 on another scale on these pairs"),
        ([np.nan] * 18 + [1, 2], "2 rated pairs have a value of every member"),
    ],
)
def test_a_member_that_tells_nothing_is_refused_by_name(column, words):
    """Constant, missing, the same as another, or too often missing."""
    members = [member("m0", np.arange(20)), member("m1", column)]
    with pytest.raises(DataError) as error:
        fit_ensemble(members, np.arange(20.0) ** 2, np.arange(20))
    assert words in str(error.value)


@pytest.mark.parametrize(("values", "units"), [(19, 20), (20, 19)])
def test_values_and_units_are_of_the_rated_pairs(values, units):
    """Rows that do not belong together would be weighed all the same."""
    members = members_of(drawn(1, values, 2))
    with pytest.raises(ValueError, match="and a unit for each of 20 pairs"):
        fit_ensemble(members, np.arange(20.0), np.arange(units))


def test_a_sum_of_two_members_is_refused_as_a_third():
    """No coefficient of three such members means anything."""
    table = drawn(5, 20, 2)
    both = np.column_stack([table, table.sum(axis=1)])
    with pytest.raises(DataError, match=r"M2 \(m2\) is a linear function of m0, m1"):
        fit_ensemble(members_of(both), np.arange(20.0), np.arange(20))


def test_one_member_and_the_same_twice_are_no_ensemble():
    """Each error says what to do."""
    one = member("m0", np.arange(9))
    with pytest.raises(DataError, match="two members or more, and has only m0"):
        fit_ensemble([one], np.arange(9.0), np.arange(9))
    with pytest.raises(DataError, match="m0 is named twice as a member"):
        fit_ensemble([one, one], np.arange(9.0), np.arange(9))


def test_a_unit_is_never_in_two_folds_and_folds_are_reproducible():
    """All pairs of a patient are scored by what never saw the patient."""
    units = np.random.default_rng(6).integers(0, 23, size=100)
    fold = split_folds(units, 5, seed=3)
    for unit in np.unique(units):
        assert len(set(fold[units == unit])) == 1
    assert set(fold) == set(range(5))
    assert np.array_equal(fold, split_folds(units * 7 + 2, 5, seed=3))
    assert not np.array_equal(fold, split_folds(units, 5, seed=4))


def test_more_folds_than_units_are_refused():
    """The message says how many can be."""
    with pytest.raises(DataError, match="Take --folds from 2 to 3"):
        split_folds(np.array([0, 1, 1, 2]), 4, 0)
    with pytest.raises(DataError, match="all pairs belong to one unit"):
        split_folds(np.zeros(5, int), 2, 0)


def test_a_pair_does_not_touch_its_own_score_out_of_fold():
    """Its rating may be anything; no score of its own fold changes, others' do."""
    table = drawn(7, 40, 3)
    points = table @ [1.0, 0.5, 0.2]
    lower, fold = np.zeros(3, bool), split_folds(np.arange(40), 5, 0)
    before = score_out_of_fold(table, points, lower, fold)
    changed = points.copy()
    changed[fold == 2] += np.linspace(-900, 900, (fold == 2).sum())
    after = score_out_of_fold(table, changed, lower, fold)
    same = before.regression == after.regression
    assert same[fold == 2].all()
    assert not same[fold != 2].any()


def test_chance_is_worth_nothing_out_of_fold_and_much_in_sample():
    """Thirty members of noise on 60 pairs of noise: a fit is no finding."""
    table = drawn(8, 60, 30)
    points = np.random.default_rng(9).normal(size=60)
    fit = fit_ensemble(members_of(table), points, np.arange(60))
    found = evaluate_out_of_fold(fit, folds=10, resamples=200)
    assert found.in_sample.tau_b.value > 0.4
    assert abs(found.regression.tau_b.value) < 0.2
    assert not any(one.beats for one in found.against)


def test_the_best_member_is_chosen_without_the_fold_it_is_scored_on():
    """Of thirty members of noise the best looks good in hindsight, and is not."""
    hindsight, chosen = [], []
    lower, fold = np.zeros(30, bool), split_folds(np.arange(60), 10, 0)
    for seed in range(10):
        table = drawn(100 + seed, 60, 30)
        points = np.random.default_rng(seed).normal(size=60)
        taus = [kendalltau(column, points)[0] for column in table.T]
        found = score_out_of_fold(table, points, lower, fold)
        hindsight.append(max(taus))
        chosen.append(kendalltau(found.best, points)[0])
        for number, place in enumerate(found.chosen):
            seen = fold != number
            taus = [kendalltau(column[seen], points[seen])[0] for column in table.T]
            assert place == int(np.argmax(taus))
    assert np.mean(hindsight) > 0.15
    assert np.mean(chosen) < 0.1


def test_two_independent_halves_beat_the_better_one():
    """Each member tells one half of the quality: together they tell more."""
    halves = drawn(12, 200, 2)
    noise = np.random.default_rng(13).normal(size=200)
    points = halves.sum(axis=1) + 0.3 * noise
    turned = np.column_stack([halves[:, 0], -5 * halves[:, 1]])
    fit = fit_ensemble(members_of(turned, lower=(1,)), points, np.arange(200) // 2)
    found = evaluate_out_of_fold(fit, resamples=300)
    assert found.units == 100
    for one, made in zip(
        found.against, (found.scores.mean, found.scores.regression), strict=True
    ):
        both = np.column_stack([made, found.scores.best])
        (test,) = compare_metrics(
            both, fit.ratings, fit.units, permutations=1500, seed=0
        )
        assert (one.p, one.exact) == (test.p, test.exact)
        assert one.difference.value == pytest.approx(test.difference)
        assert one.beats, one.method
        assert one.difference.low > 0.1
    assert found.best.tau_b.value < 0.6 < found.regression.tau_b.value


def test_a_good_member_beside_noise_is_not_beaten():
    """The regression cannot add what is not there; the mean is worse."""
    table = drawn(14, 200, 3)
    points = table[:, 0] + 0.3 * np.random.default_rng(15).normal(size=200)
    fit = fit_ensemble(members_of(table), points, np.arange(200))
    found = evaluate_out_of_fold(fit, resamples=300)
    assert found.chosen == ("m0",) * 5
    assert not any(one.beats for one in found.against)
    assert found.mean.tau_b.value < found.best.tau_b.value - 0.2
    assert found.regression.tau_b.value == pytest.approx(
        found.best.tau_b.value, abs=0.02
    )


def test_one_chosen_member_keeps_its_own_values():
    """Where all folds choose the same one, nothing of it is rescaled."""
    table = drawn(16, 50, 2)
    fit = fit_ensemble(members_of(-table, lower=(0,)), table[:, 0], np.arange(50))
    found = evaluate_out_of_fold(fit, resamples=50)
    assert set(found.chosen) == {"m0"}
    assert np.array_equal(found.scores.best, table[:, 0])


def test_each_score_that_judges_share_is_an_ensemble_of_its_own():
    """Two judges with two scores each: per score, and over all."""
    table = drawn(17, 60, 4)
    names = ("green", "errors") * 2
    members = [
        member(f"j{place // 2}.{name}", table[:, place], name == "errors", name)
        for place, name in enumerate(names)
    ]
    points = table @ [1, -1, 1, -1]
    fit = fit_ensemble(members, points, np.arange(60))
    found = evaluate_out_of_fold(fit, resamples=50)
    assert [one.score for one in found.groups] == ["green", "errors"]
    assert found.groups[1].members == ("j0.errors", "j1.errors")
    alone = fit_ensemble([members[1], members[3]], points, np.arange(60))
    again = evaluate_out_of_fold(alone, resamples=50)
    assert found.groups[1].regression == again.regression
    assert found.regression.tau_b.value == pytest.approx(1)
    assert again.groups == ()


def test_a_member_that_is_constant_in_some_folds_only_is_no_crash():
    """One pair differs: without its fold the member adds nothing."""
    table = drawn(18, 20, 2)
    table[:, 1] = 0.0
    table[3, 1] = 1.0
    lower, fold = np.zeros(2, bool), split_folds(np.arange(20), 5, 0)
    found = score_out_of_fold(table, table[:, 0], lower, fold)
    own = fold == fold[3]
    assert np.isfinite(found.regression).all()
    assert found.regression[own] == pytest.approx(table[own, 0])
    linear = fit_linear(table[~own], table[~own, 0], lower, EnsembleMethod.MEAN)
    assert np.isinf(linear.scale[1])
