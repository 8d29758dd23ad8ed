"""The best of several versions is overrated; the correction takes most of it off."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from loop.stats.bootstrap import bootstrap_f1
from loop.stats.optimism import (
    accuracy_optimism,
    expected_excess,
    f1_optimism,
    optimism,
)
from loop.stats.resampling import resample_weights

TRUE = 0.93


def table(n=120, labels=5, versions=4, seed=0):
    """Return a reference and predictions that err in about 7 % of pairs."""
    rng = np.random.default_rng(seed)
    reference = (rng.random((n, labels)) < 0.3).astype(np.int8)
    wrong = rng.random((versions, n, labels)) > TRUE
    return reference, np.where(wrong, 1 - reference, reference).astype(np.int8)


@pytest.mark.parametrize(
    ("n", "points"),
    [
        (100, (2.8, 4.3, 5.1)),
        (200, (2.0, 3.2, 3.8)),
        (400, (1.5, 2.3, 2.8)),
    ],
)
def test_expected_excess_equals_the_simulated_table(n, points):
    """Best of 5, 20 and 60 versions at 0.93, simulated elsewhere to 0.1 points."""
    found = [100 * expected_excess(n, k, TRUE) for k in (5, 20, 60)]
    assert found == pytest.approx(points, abs=0.06)


def test_expected_excess_of_one_case_is_a_closed_form():
    """One case each: the best is right unless all are wrong."""
    assert expected_excess(1, 3, 0.5) == pytest.approx(1 - 0.5**3 - 0.5)
    assert expected_excess(50, 4, 1.0) == expected_excess(50, 4, 0.0) == 0


@pytest.mark.parametrize(("n", "k"), [(100, 5), (200, 20), (400, 20)])
def test_the_correction_takes_off_most_of_the_excess(n, k):
    """All versions are truly at 0.93: what looks better is chance.

    The apparent score is too high as the binomial maximum says; what remains after
    the correction is less than half of that, and on the low side.
    """
    rng = np.random.default_rng(n + k)
    truth = np.ones((n, 1), dtype=np.int8)
    scores = []
    for _ in range(300):
        answers = (rng.random((k, n, 1)) < TRUE).astype(np.int8)
        best = int(answers.sum(axis=(1, 2)).argmax())
        one = accuracy_optimism(truth, answers, chosen=best, resamples=100)
        scores.append((one.apparent, one.corrected))
    apparent, corrected = np.mean(scores, axis=0) - TRUE
    error = 4 * np.std(scores, axis=0).max() / np.sqrt(len(scores))
    excess = expected_excess(n, k, TRUE)
    assert apparent == pytest.approx(excess, abs=error)
    assert -0.5 * excess - error < corrected < error


def alike(n, versions, rng, rho=0.5):
    """Return which answers are right where versions err on the same hard cases.

    Behind every case lies a difficulty that all versions share, with correlation `rho`
    of the latent normal scores; each version is right in 93 % of cases.
    """
    hard = rng.standard_normal(n)
    chance = ndtr((ndtri(TRUE) - np.sqrt(rho) * hard) / np.sqrt(1 - rho))
    return rng.random((versions, n)) < chance


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "points"),
    [
        (100, (2.5, 3.9, 4.7)),
        (200, (1.9, 2.8, 3.4)),
        (300, (1.5, 2.3, 2.9)),
        (400, (1.3, 2.0, 2.5)),
    ],
)
def test_versions_that_err_alike_are_overrated_less(n, points):
    """Best of 5, 20 and 60 versions, latent correlation 0.5, simulated elsewhere.

    The independent formula, which documents print, is the upper bound.
    """
    rng = np.random.default_rng(n)
    best = [
        np.maximum.accumulate(alike(n, 60, rng).mean(axis=1))[[4, 19, 59]]
        for _ in range(2000)
    ]
    found = 100 * (np.mean(best, axis=0) - TRUE)
    assert found == pytest.approx(points, abs=0.15)
    bound = [100 * expected_excess(n, k, TRUE) for k in (5, 20, 60)]
    assert (found < np.array(bound) + 0.1).all()


@pytest.mark.slow
@pytest.mark.parametrize(("n", "k"), [(100, 20), (300, 20)])
def test_the_correction_holds_where_versions_err_alike(n, k):
    """Versions of one prompt do: most of the excess is taken off there as well."""
    rng = np.random.default_rng(n + k)
    truth = np.ones((n, 1), dtype=np.int8)
    scores = []
    for _ in range(300):
        answers = alike(n, k, rng).astype(np.int8)[:, :, None]
        best = int(answers.sum(axis=(1, 2)).argmax())
        one = accuracy_optimism(truth, answers, chosen=best, resamples=100)
        scores.append((one.apparent, one.corrected))
    apparent, corrected = np.mean(scores, axis=0) - TRUE
    error = 4 * np.std(scores, axis=0).max() / np.sqrt(len(scores))
    assert abs(corrected) < 0.5 * apparent + error
    assert corrected < error


def test_a_score_of_095_after_20_versions_fits_a_true_093():
    """300 cases, 20 versions: luck alone is worth more than two points."""
    assert TRUE + expected_excess(300, 20, TRUE) > 0.95


def test_a_version_that_is_truly_better_keeps_its_score():
    """Where the choice is not a matter of luck there is little to take off."""
    reference, answers = table(400)
    answers[2] = reference
    answers[2, :4] = 1 - answers[2, :4]
    one = f1_optimism(reference, answers, chosen=2)
    assert one.drop == pytest.approx(0, abs=0.005)


def test_a_version_that_is_not_the_best_gets_no_limits_of_another():
    """The limits are of the version that is selected; they would not hold its score."""
    reference, answers = table(400)
    answers[2] = reference
    one = f1_optimism(reference, answers, chosen=0, resamples=100)
    assert one.corrected is not None
    assert (one.low, one.high) == (None, None)
    assert "another version" in one.note


def test_one_version_was_not_chosen():
    """Nothing is taken off, and the note says why."""
    reference, answers = table(versions=1)
    one = f1_optimism(reference, answers, chosen=0, resamples=100)
    assert one.corrected == one.apparent and one.drop == 0
    assert one.low < one.apparent < one.high
    assert one.note == "nothing was selected: one version"


def test_the_apparent_score_is_the_plain_macro_f1():
    """The same convention for labels without positives as everywhere."""
    reference, answers = table()
    reference[:, 0] = 0
    answers[1, :, 0] = 0
    one = f1_optimism(reference, answers, chosen=1, resamples=20)
    plain = bootstrap_f1(reference, answers[1], resamples=20).estimate
    assert one.apparent == pytest.approx(plain)


def test_a_plain_loop_gives_the_same_numbers():
    """Selection inside and scoring outside, written out resample by resample."""
    reference, answers = table(40, 1, 3)
    right = (answers == reference)[:, :, 0]
    first = int(np.argmax(right.mean(axis=1)))
    one = accuracy_optimism(reference, answers, chosen=first, resamples=60, seed=5)
    gaps, outside = [], []
    for weights in np.concatenate(
        list(resample_weights(40, 63, np.random.default_rng(5)))
    )[:60]:
        inside = right @ weights / 40
        best = int(np.argmax(inside))
        left_out = right[best][weights == 0].mean()
        gaps.append(inside[best] - left_out)
        outside.append(left_out)
    assert one.corrected == pytest.approx(right[first].mean() - np.mean(gaps))
    assert one[3:5] == pytest.approx(tuple(np.quantile(outside, [0.025, 0.975])))


def test_copies_of_one_patient_change_nothing():
    """Nine cases of each patient are one unit, not nine."""
    reference, answers = table(60)
    once = f1_optimism(reference, answers, chosen=0, resamples=100)
    many = f1_optimism(
        np.repeat(reference, 9, axis=0),
        np.repeat(answers, 9, axis=1),
        chosen=0,
        units=np.repeat(np.arange(60), 9),
        resamples=100,
    )
    assert many.units == 60
    assert many[1:5] == pytest.approx(once[1:5])


def test_the_seed_decides():
    """A printed number can be made again."""
    reference, answers = table()
    first = f1_optimism(reference, answers, chosen=0, resamples=50, seed=3)
    assert first == f1_optimism(reference, answers, chosen=0, resamples=50, seed=3)
    assert first != f1_optimism(reference, answers, chosen=0, resamples=50, seed=4)


@pytest.mark.parametrize(
    ("cases", "note"),
    [
        (0, "not estimable: the score is undefined"),
        (1, "not estimable: fewer than two units"),
        (2, "not estimable: too many resamples leave the score undefined"),
    ],
)
def test_too_few_cases_give_no_correction(cases, note):
    """Of two units both are often drawn: then nothing is left to score on."""
    truth = np.ones((cases, 1), dtype=np.int8)
    one = f1_optimism(truth, np.stack([truth, truth]), chosen=0, resamples=50)
    assert (one.corrected, one.low, one.note) == (None, None, note)
    assert (one.versions, one.units, one.high) == (2, cases, None)
    assert one.resamples < 50 and (one.resamples == 0) == (cases < 2)
    assert one.drop is None


def test_a_version_without_a_score_is_not_selected():
    """A version that answered nothing cannot be the best, nor break the others."""
    reference, answers = table(versions=2)
    silent = np.full_like(reference, -1)
    both = np.stack([silent, *answers])
    with_it = f1_optimism(reference, both, chosen=1, resamples=100)
    without = f1_optimism(reference, answers, chosen=0, resamples=100)
    assert with_it[1:5] == without[1:5]
    alone = f1_optimism(reference, both, chosen=0, resamples=10)
    assert alone.apparent is None


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda r, a: f1_optimism(r, a, chosen=9), "chosen below"),
        (lambda r, a: f1_optimism(r, a[0], chosen=0), "n_versions, n_cases"),
        (lambda r, a: f1_optimism(r[:5], a, chosen=0), "equal shapes"),
        (lambda r, a: f1_optimism(r, a, chosen=0, resamples=0), "resamples"),
        (lambda r, a: f1_optimism(r, a, chosen=0, confidence=1), "confidence"),
        (lambda r, a: f1_optimism(r, a, chosen=0, units=np.arange(3)), "one unit"),
        (lambda r, a: optimism(a[0], np.sum, chosen=0), "n_columns"),
        (lambda r, a: expected_excess(0, 1, 0.5), "n >= 1"),
    ],
)
def test_wrong_arguments_are_named(call, words):
    """The message says what was wanted."""
    with pytest.raises(ValueError, match=words):
        call(*table(12))


@pytest.mark.parametrize(
    ("versions", "note"),
    [
        (1, "nothing was selected: one version"),
        (3, "no limits: every resample gives the same value"),
    ],
)
def test_versions_without_an_error_have_no_limits(versions, note):
    """Nothing is taken off, and one value in every resample is no certainty."""
    truth = np.tile(np.array([[1], [0]], dtype=np.int8), (20, 1))
    one = f1_optimism(truth, np.stack([truth] * versions), chosen=0, resamples=30)
    assert one == (versions, 1.0, 1.0, None, None, 40, 30, note)
    assert one.drop == 0


@pytest.mark.parametrize(
    ("resamples", "undefined", "enough"), [(20, 1, True), (20, 2, False)]
)
def test_up_to_a_twentieth_of_the_resamples_may_be_undefined(
    resamples, undefined, enough
):
    """Spare ones stand in for them; beyond that there is no correction."""
    columns = np.ones((2, 30, 1), dtype=np.int64)
    columns[0, 0] = 0
    calls = iter(range(100))

    def statistic(sums):
        values = sums[:, 0] / 30
        # The sums of all cases, then those drawn, then those left out.
        if next(calls) == 2:
            values[:undefined] = np.nan
        return values

    one = optimism(columns, statistic, chosen=1, resamples=resamples)
    assert (one.corrected is not None) == enough
    assert one.resamples == (20 if enough else 19)
    assert ("leave the score undefined" in one.note) != enough


def test_a_level_of_its_own_is_that_of_the_limits():
    """The percentiles of the plain loop, at 0.8."""
    reference, answers = table(40, 1, 2)
    first = int(np.argmax((answers == reference).mean(axis=(1, 2))))
    wide = accuracy_optimism(reference, answers, chosen=first, resamples=60)
    narrow = accuracy_optimism(
        reference, answers, chosen=first, resamples=60, confidence=0.8
    )
    assert wide.low <= narrow.low < narrow.high <= wide.high
    assert narrow.high - narrow.low < wide.high - wide.low
    assert narrow.corrected == wide.corrected


def test_five_hundred_resamples_are_made_unless_asked():
    """From seed 0 at 95 %."""
    reference, answers = table(20)
    found = accuracy_optimism(reference, answers, chosen=0)
    assert found.resamples == 500
    assert found == accuracy_optimism(
        reference, answers, chosen=0, resamples=500, seed=0, confidence=0.95
    )
