"""Agreement against published examples, statsmodels and degenerate tables."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import ndtri
from statsmodels.stats import inter_rater

from loop.stats.confusion import Confusion
from loop.stats.kappa import (
    bounded_kappa,
    cohen_kappa,
    distance_columns,
    distance_kappas,
    leave_one_out,
    mean_pairwise_kappa,
    pairwise_kappas,
)
from loop.stats.reliability import fleiss_kappa, krippendorff_alpha

FEW = {"resamples": 200}

# Krippendorff's worked example: 4 observers, 12 units, "." is a missing rating.
ALPHA_EXAMPLE = np.array(
    [
        [-1 if mark == "." else int(mark) for mark in row.split()]
        for row in (
            "1 2 3 3 2 1 4 1 2 . . .",
            "1 2 3 3 2 2 4 1 2 5 . 3",
            ". 3 3 3 2 3 4 2 2 5 1 .",
            "1 2 3 3 2 4 4 1 2 5 1 .",
        )
    ],
    dtype=np.int8,
).T


@pytest.mark.parametrize(
    ("table", "value", "low", "high"),
    [
        (Confusion(tp=6, fp=2, fn=2, tn=290), 0.7432, 0.5007, 0.9856),
        (Confusion(tp=22, fp=3, fn=5, tn=270), 0.8316, 0.7176, 0.9455),
        (Confusion(tp=22, fp=5, fn=3, tn=270), 0.8316, 0.7176, 0.9455),
    ],
)
def test_kappa_matches_the_reference_values(table, value, low, high):
    """Values recomputed independently; the sides can be exchanged."""
    assert cohen_kappa(table)[:3] == pytest.approx((value, low, high), abs=5.1e-5)


@settings(deadline=None)
@given(st.tuples(*[st.integers(1, 400)] * 4))
def test_kappa_limits_equal_those_of_statsmodels(cells):
    """To the last digit: published limits were made with its formula."""
    found = cohen_kappa(Confusion(*cells))
    tp, fp, fn, tn = cells
    theirs = inter_rater.cohens_kappa(np.array([[tn, fp], [fn, tp]]))
    assert found.value == float(theirs.kappa)
    reach = float(ndtri(0.975)) * sqrt(max(float(theirs.var_kappa), 0.0))
    assert found.low == max(found.value - reach, -1.0)
    assert found.high == min(found.value + reach, 1.0)


def test_kappa_is_low_where_accuracy_looks_high():
    """One true positive among 15 alarms and misses: accuracy 0.953, kappa 0.101."""
    table = Confusion(tp=1, fp=7, fn=7, tn=285)
    assert table.accuracy == pytest.approx(0.953, abs=5e-4)
    assert cohen_kappa(table).value == pytest.approx(0.101, abs=5e-4)


@pytest.mark.parametrize(
    ("table", "value", "note"),
    [
        (Confusion(0, 0, 0, 300), None, "not estimable: no positives"),
        (Confusion(9, 0, 0, 0), None, "not estimable: no negatives"),
        (Confusion(0, 0, 0, 0), None, "not estimable: no cases"),
        (Confusion(0, 0, 6, 294), 0.0, "interval not estimable"),
        (Confusion(0, 6, 0, 294), 0.0, "interval not estimable"),
        (Confusion(6, 294, 0, 0), 0.0, "interval not estimable"),
    ],
)
def test_a_degenerate_table_has_a_reason_instead_of_nan(table, value, note):
    """0/0 has no kappa; a constant side has kappa 0 and no interval."""
    found = cohen_kappa(table)
    assert found[:3] == (value, None, None)
    assert found.note.startswith(note)


def test_perfect_agreement_says_that_its_interval_has_no_width():
    """The asymptotic error is 0 there, which must not read as certainty."""
    found = cohen_kappa(Confusion(5, 0, 0, 5))
    assert found[:3] == pytest.approx((1, 1, 1))
    assert "no width" in found.note


def test_readers_who_never_differ_get_exact_limits():
    """Five of five agreeing: (0.478 - chance) / (1 - chance), and 0.478 itself."""
    found = bounded_kappa(Confusion(5, 0, 0, 5))
    assert found[:3] == pytest.approx((1, 2 * 0.025 ** (1 / 10) - 1, 1))
    plain = Confusion(tp=6, fp=2, fn=2, tn=290)
    assert bounded_kappa(plain) == cohen_kappa(plain)
    ratings = np.array([[1, 1, 1], [0, 0, 0], [1, 1, 1], [0, 0, 0], [1, 1, 1]])
    among = leave_one_out(ratings.astype(np.int8), **FEW)
    assert among.accuracy[:3] == pytest.approx((1, 0.025 ** (1 / 5), 1))
    assert among.kappa[:3] == (1.0, None, None)


@settings(deadline=None)
@given(st.tuples(*[st.integers(1, 200)] * 4), st.sampled_from([0.8, 0.95]))
def test_kappa_limits_stay_in_range_and_narrow_with_confidence(cells, confidence):
    """Limits are clipped to [-1, 1] and hold the value."""
    found = cohen_kappa(Confusion(*cells), confidence=confidence)
    assert -1 <= found.low <= found.value <= found.high <= 1
    wide = cohen_kappa(Confusion(*cells), confidence=0.99)
    assert wide.low <= found.low and found.high <= wide.high


def test_fleiss_matches_the_classic_example():
    """Ten subjects, fourteen raters, five categories: kappa 0.210."""
    counts = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1], [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
    ratings = np.array([np.repeat(range(5), row) for row in counts], dtype=np.int8)
    assert fleiss_kappa(ratings, **FEW).value == pytest.approx(0.210, abs=5e-4)


@settings(max_examples=30, deadline=None)
@given(arrays(np.int8, (12, 4), elements=st.integers(0, 2)))
def test_fleiss_agrees_with_statsmodels(ratings):
    """Another implementation, over random complete ratings."""
    found = fleiss_kappa(ratings, resamples=20)
    if len(np.unique(ratings)) == 1:
        assert found.value is None
        return
    table, _ = inter_rater.aggregate_raters(ratings)
    assert found.value == pytest.approx(inter_rater.fleiss_kappa(table))


def test_fleiss_uses_the_complete_cases_and_says_how_many():
    """A missing rating takes the case out; the value is that of the rest."""
    complete = np.array([[0, 0, 0], [1, 1, 1], [0, 0, 1]], dtype=np.int8)
    gap = np.array([[0, -1, 1]], dtype=np.int8)
    found = fleiss_kappa(np.vstack([complete, gap]), **FEW)
    assert found.value == pytest.approx(0.55)
    assert "3 of 4 cases used" in found.note


def test_alpha_matches_its_author_s_example():
    """Nominal alpha 0.743 with missing ratings (Krippendorff, Content Analysis)."""
    found = krippendorff_alpha(ALPHA_EXAMPLE, **FEW)
    assert found.value == pytest.approx(0.743, abs=5e-4)
    assert "11 of 12 cases used" in found.note


def test_alpha_matches_its_author_s_binary_example():
    """Two observers, ten units: nominal alpha 0.095 (Krippendorff 2011)."""
    ratings = np.array(
        [[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]], dtype=np.int8
    ).T
    assert krippendorff_alpha(ratings, **FEW).value == pytest.approx(0.095, abs=5e-4)


@pytest.mark.parametrize("function", [fleiss_kappa, krippendorff_alpha])
def test_unanimous_ratings_are_not_estimable(function):
    """All readers always absent: 0/0, not perfect agreement and not NaN."""
    found = function(np.zeros((20, 3), dtype=np.int8), **FEW)
    assert found == (None, None, None, "not estimable: every rating is the same")
    nobody = function(np.full((4, 3), -1, dtype=np.int8), **FEW)
    assert nobody.note == "not estimable: no case with enough ratings"


@pytest.mark.parametrize("function", [fleiss_kappa, krippendorff_alpha])
def test_readers_that_toss_coins_agree_by_chance_only(function):
    """Chance-corrected agreement is near 0 and its interval holds 0."""
    ratings = np.random.default_rng(3).integers(0, 2, (400, 5)).astype(np.int8)
    found = function(ratings, **FEW)
    assert found.low < 0.02 and found.high > -0.02
    assert found.low <= found.value <= found.high


def readers(n_cases=300, n_readers=6, wrong=0.1, seed=0):
    """Return readers who each flip a share of a common truth."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n_cases, 1)) < 0.3
    return (truth ^ (rng.random((n_cases, n_readers)) < wrong)).astype(np.int8)


def test_six_readers_make_fifteen_pairs():
    """Pairs come in column order, each with its own number of cases."""
    ratings = readers()
    ratings[:10, 5] = -1
    pairs = pairwise_kappas(ratings)
    assert len(pairs) == 15
    assert [(p.first, p.second) for p in pairs[:6]] == [
        (0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 2),
    ]  # fmt: skip
    assert {p.n for p in pairs if p.second == 5} == {290}
    first = pairs[0].kappa
    table = np.histogram2d(ratings[:, 0], ratings[:, 1], bins=2)[0]
    assert first.value == pytest.approx(inter_rater.cohens_kappa(table).kappa)


def test_the_mean_of_the_pairs_has_an_interval():
    """The point value is the plain mean; the interval is a bootstrap over cases."""
    ratings = readers()
    found = mean_pairwise_kappa(ratings, **FEW)
    plain = np.mean([pair.kappa.value for pair in pairwise_kappas(ratings)])
    assert found.value == pytest.approx(plain)
    assert found.low < found.value < found.high


def test_a_reader_is_compared_with_the_others_only():
    """By hand: reader 0 differs on the last case, where the other two agree."""
    ratings = np.array([[1, 1, 1], [0, 0, 0], [1, 0, 0]], dtype=np.int8)
    first, second, third = leave_one_out(ratings, **FEW).readers
    assert (first.n, first.ties, first.accuracy.value) == (3, 0, pytest.approx(2 / 3))
    assert (second.n, second.ties, second.accuracy.value) == (2, 1, 1.0)
    assert (third.n, third.ties) == (2, 1)


def test_a_missing_vote_never_counts_as_absent():
    """Two of three others vote present and one did not look: it is present."""
    ratings = np.array([[1, 1, 1, -1], [0, 0, 0, 0], [0, 1, 1, -1]], dtype=np.int8)
    found = leave_one_out(ratings, **FEW).readers
    assert (found[0].n, found[0].accuracy.value) == (3, pytest.approx(2 / 3))
    assert (found[3].n, found[3].ties) == (1, 0)
    strict = leave_one_out(ratings, need=3, **FEW).readers
    assert (strict[0].n, strict[0].ties) == (1, 2)


@pytest.mark.parametrize(
    ("others", "n"),
    [
        ((1, 1, 1, 0, 0), 1),
        ((1, 1, 1, -1, -1), 1),
        ((1, 1, 0, -1, -1), 0),
        ((1, 1, -1, -1, -1), 0),
        ((1, -1, -1, -1, -1), 0),
        ((0, 0, 0, 1, -1), 1),
    ],
)
def test_the_consensus_needs_a_strict_majority_of_the_panel(others, n):
    """Three of five others, not two of three votes: silence is no agreement."""
    ratings = np.array([[1, *others]], dtype=np.int8)
    first = leave_one_out(ratings, **FEW).readers[0]
    assert (first.n, first.ties) == (n, 1 - n)


def test_an_even_panel_needs_more_than_its_half():
    """Three of four others; two against two and two alone are no consensus."""
    rows = [[1, 1, 1, 0, 0], [1, 1, 1, -1, -1], [1, 1, 1, 1, 0]]
    first = leave_one_out(np.array(rows, dtype=np.int8), **FEW).readers[0]
    assert (first.n, first.ties) == (1, 2)


def test_the_ceiling_is_near_the_readers_true_accuracy():
    """Readers who err in 10 % of cases agree with five others in nearly 90 %."""
    found = leave_one_out(readers(3000), resamples=200)
    assert found.accuracy.low < 0.9 < found.accuracy.high + 0.02
    plain = np.mean([reader.accuracy.value for reader in found.readers])
    assert found.accuracy.value == pytest.approx(plain)
    assert found.kappa.low < found.kappa.value < found.kappa.high


@pytest.mark.parametrize("need", [2, 6])
def test_an_ambiguous_or_unreachable_majority_is_refused(need):
    """Two of five could be reached by both sides; six of five by nobody."""
    with pytest.raises(ValueError, match=f"5 votes, got {need}"):
        leave_one_out(readers(), need=need)


def test_one_reader_is_refused():
    """Agreement needs two."""
    with pytest.raises(ValueError, match=r"\(300, 1\)"):
        fleiss_kappa(readers()[:, :1])
    with pytest.raises(ValueError, match="got -2"):
        krippendorff_alpha(np.full((3, 2), -2, dtype=np.int8))


@pytest.mark.parametrize("kind", [None, "linear"])
def test_kappa_by_distance_is_cohens_of_equal_values_and_of_steps(kind):
    """Where distances are 0 and 1, Cohen's kappa; where they are steps, the linear."""
    rng = np.random.default_rng(5)
    one = rng.integers(0, 4, 80)
    two = np.clip(one + rng.integers(-1, 2, 80), 0, 3)
    steps = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    distances = np.minimum(steps, 1) if kind is None else steps
    sums = distance_columns(one, np.eye(4)[two], distances).sum(axis=0, keepdims=True)
    table = np.zeros((4, 4))
    np.add.at(table, (one, two), 1)
    known = inter_rater.cohens_kappa(table, wt=kind, return_results=False)
    assert distance_kappas(sums, distances)[0] == pytest.approx(known)


def test_kappa_by_distance_of_a_constant_is_zero_or_undefined():
    """Who always says the same agrees by chance alone, however near it is."""
    others = np.eye(2)[[0, 0, 0, 1]]
    for distances, expected in (
        (np.array([[0.0, 1.0]]), 0.0),
        (np.zeros((1, 2)), np.nan),
    ):
        columns = distance_columns(np.zeros(4, dtype=np.intp), others, distances)
        found = distance_kappas(columns.sum(axis=0, keepdims=True), distances)
        assert found == pytest.approx([expected], nan_ok=True)


def test_readers_who_never_agree_get_exact_limits():
    """None of ten: kappa is -1, and at most as for the limit 1 - 0.025^(1/10)."""
    found = bounded_kappa(Confusion(0, 5, 5, 0))
    limit = 1 - 0.025 ** (1 / 10)
    assert found == (
        pytest.approx(-1), -1, pytest.approx(2 * limit - 1),
        "exact limits: no pair agrees",
    )  # fmt: skip
    narrow = bounded_kappa(Confusion(0, 5, 5, 0), confidence=0.8)
    assert narrow.high == pytest.approx(1 - 2 * 0.1 ** (1 / 10))
    assert (
        bounded_kappa(Confusion(3, 0, 0, 3)).note == "exact limits: every pair agrees"
    )


def test_several_draws_of_a_model_widen_kappa_by_their_root():
    """Three answers of a case are one; the value stays."""
    table = Confusion(tp=60, fp=20, fn=20, tn=290)
    one, three = cohen_kappa(table), cohen_kappa(table, draws=3)
    assert three.value == one.value
    assert three.high - three.value == pytest.approx(3**0.5 * (one.high - one.value))


@pytest.mark.parametrize(("units", "worth"), [(None, 4), ([0, 0, 1, 1], 2)])
@pytest.mark.parametrize("agree", [True, False])
def test_readers_who_never_vary_have_exact_limits_over_units(units, worth, agree):
    """All right or none: of as many cases, or patients, as hold a comparison."""
    first = np.array([1, 0, 1, 0], dtype=np.int8)
    ratings = np.stack([first, first if agree else 1 - first], axis=1)
    options = {} if units is None else {"units": np.array(units)}
    found = leave_one_out(ratings, resamples=50, confidence=0.8, **options)
    tail = 0.1 ** (1 / worth)
    limits = (1.0, tail, 1.0) if agree else (0.0, 0.0, 1 - tail)
    assert found.accuracy == (*map(pytest.approx, limits), "exact limits")
    # Each reader for itself is held to cases.
    alone = 0.1 ** (1 / 4)
    limits = (1.0, alone, 1.0) if agree else (0.0, 0.0, 1 - alone)
    for reader in found.readers:
        assert reader.accuracy == (*map(pytest.approx, limits), "")


def test_readers_without_a_common_case_are_counted_in_the_note():
    """The mean is over the others."""
    ratings = readers(60, 3)
    ratings[:30, 2], ratings[30:, 0] = -1, -1
    found = mean_pairwise_kappa(ratings, **FEW)
    pairs = pairwise_kappas(ratings)
    assert [pair.n for pair in pairs] == [30, 0, 30]
    assert pairs[1].kappa == (None, None, None, "not estimable: no cases")
    known = [pair.kappa.value for pair in pairs if pair.n]
    assert found.value == pytest.approx(np.mean(known))
    assert found.note == "1 of 3 pairs not estimable"
    nobody = np.array([[1, -1, -1], [-1, 0, -1]], dtype=np.int8)
    among = leave_one_out(nobody, **FEW)
    assert among.readers[0] == (
        0, 0, 1, (None, None, None, "not estimable: no cases"),
        (None, None, None, "not estimable: no cases"),
    )  # fmt: skip
    assert among.accuracy.value is None


def test_pairs_of_readers_have_the_confidence_that_is_asked_for():
    """Narrower at 0.8."""
    for wide, narrow in zip(
        pairwise_kappas(readers()),
        pairwise_kappas(readers(), confidence=0.8),
        strict=True,
    ):
        ratio = float(ndtri(0.9) / ndtri(0.975))
        reach = wide.kappa.high - wide.kappa.value
        assert narrow.kappa.high - narrow.kappa.value == pytest.approx(ratio * reach)


def test_readers_who_are_right_in_part_in_every_case_have_no_exact_limits():
    """Three of four agree in each case: no resample differs, and nobody never errs."""
    ratings = np.array([[1, 1, 1, 0], [0, 0, 0, 1]] * 4, dtype=np.int8)
    found = leave_one_out(ratings, **FEW)
    assert [reader.accuracy.value for reader in found.readers] == [1, 1, 1, 0]
    assert found.accuracy == (
        0.75,
        None,
        None,
        "interval not estimable: every resample gives the same value",
    )
