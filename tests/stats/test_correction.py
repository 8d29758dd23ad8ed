"""The correction against closed forms and a simulated truth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.stats.bootstrap import bootstrap_f1
from loop.stats.confusion import Confusion, count_confusions
from loop.stats.correction import (
    _Labeller,
    _with_note,
    corrected_macro_f1,
    rogan_gladen_f1,
)
from loop.stats.intervals import Estimate

PERFECT = Confusion(100, 0, 0, 100)


def observe(shares, sensitivity, specificity):
    """Return the cells that a labeller with these rates reads, in closed form."""
    matrix = np.array([[sensitivity, 1 - specificity], [1 - sensitivity, specificity]])
    return (matrix @ np.reshape(shares, (2, 2)) @ matrix.T).ravel()


def read(truth, sensitivity, specificity, rng):
    """Return what such a labeller says of the true labels."""
    chance = np.where(truth == 1, sensitivity, 1 - specificity)
    return (rng.random(truth.shape) < chance).astype(np.int8)


@given(
    st.lists(st.floats(0.01, 1), min_size=4, max_size=4),
    st.floats(0.6, 1),
    st.floats(0.6, 1),
)
def test_the_correction_undoes_the_errors(raw, sensitivity, specificity):
    """Whatever the truth and the rates, the true cells come back."""
    truth = np.array(raw) / sum(raw)
    seen = Confusion(*observe(truth, sensitivity, specificity))
    found = rogan_gladen_f1(seen, sensitivity, specificity)
    assert found.shares == pytest.approx(tuple(truth), abs=1e-12)
    tp, fp, fn, _ = truth
    assert found.f1 == pytest.approx(2 * tp / (2 * tp + fp + fn))
    assert not found.clipped


def test_the_margin_is_that_of_rogan_and_gladen():
    """Their estimator: (apparent prevalence + Sp - 1) / (Se + Sp - 1)."""
    counts = Confusion(60, 20, 30, 90)
    tp, fp, fn, _ = rogan_gladen_f1(counts, 0.85, 0.95).shares
    assert tp + fn == pytest.approx((90 / 200 + 0.95 - 1) / 0.8)
    assert tp + fp == pytest.approx((80 / 200 + 0.95 - 1) / 0.8)


def test_a_perfect_labeller_needs_no_correction():
    """Observed cells, observed F1."""
    counts = Confusion(5, 2, 3, 10)
    found = rogan_gladen_f1(counts, 1, 1)
    assert found.shares == pytest.approx((0.25, 0.1, 0.15, 0.5))
    assert found.f1 == pytest.approx(counts.f1)


def test_two_equal_texts_read_alike_are_no_evidence_of_errors():
    """More agreement than independent errors allow: clipped, and said so."""
    found = rogan_gladen_f1(Confusion(50, 0, 0, 50), 0.9, 0.9)
    assert found.clipped and found.f1 == 1


def test_chance_cannot_be_turned_back():
    """Near ``sensitivity + specificity = 1`` every reading fits every truth."""
    assert rogan_gladen_f1(Confusion(5, 2, 3, 10), 0.5, 0.55) is None
    assert rogan_gladen_f1(Confusion(0, 0, 0, 0), 1, 1) is None


@given(
    st.lists(st.integers(0, 60), min_size=4, max_size=4),
    st.floats(0.3, 1),
    st.floats(0.85, 1),
)
def test_shares_are_always_shares(cells, sensitivity, specificity):
    """Whatever is read, however unlikely: within [0, 1], adding up to 1."""
    found = rogan_gladen_f1(Confusion(*cells), sensitivity, specificity)
    if sum(cells):
        assert min(found.shares) >= 0 and sum(found.shares) == pytest.approx(1)
        assert found.f1 is None or 0 <= found.f1 <= 1


def test_positives_that_the_labeller_invents_are_no_agreement():
    """None was read at a specificity of 0.99: undefined, not two negatives' product."""
    found = rogan_gladen_f1(Confusion(0, 0, 0, 9), 0.9, 0.99)
    assert found == ((0, 0, 0, 1), None, True)


def test_impossible_rates_are_refused():
    """The message names the value."""
    with pytest.raises(ValueError, match=r"got 1\.2"):
        rogan_gladen_f1(PERFECT, 1.2, 0.5)
    with pytest.raises(ValueError, match="got nan"):
        rogan_gladen_f1(PERFECT, 0.5, float("nan"))


def truth_of(n, n_labels, seed):
    """Return true labels of references and candidates, and their macro F1."""
    rng = np.random.default_rng(seed)
    reference = (rng.random((n, n_labels)) < 0.3).astype(np.int8)
    candidate = np.where(rng.random((n, n_labels)) < 0.15, 1 - reference, reference)
    candidate = candidate.astype(np.int8)
    return reference, candidate, bootstrap_f1(reference, candidate, resamples=1)[0]


def test_a_known_truth_comes_back():
    """Read with a tenth of errors, F1 falls by 0.2; corrected it is the truth again."""
    reference, candidate, score = truth_of(20_000, 3, 0)
    rng = np.random.default_rng(1)
    seen = [read(side, 0.9, 0.93, rng) for side in (reference, candidate)]
    observed = bootstrap_f1(*seen, resamples=1).estimate
    errors = [Confusion(900, 70, 100, 930)] * 3
    [found] = corrected_macro_f1(seen[0], seen[1][None], errors, resamples=200)
    assert score - observed > 0.1
    assert found.estimate.value == pytest.approx(score, abs=0.02)
    assert found.estimate.low < score < found.estimate.high
    assert (found.corrected, found.clipped) == ((True,) * 3, 0)


def test_the_interval_covers_the_truth():
    """Cases and labeller measured anew each time: about 95 of 100 intervals hold it."""
    held = 0
    for seed in range(150):
        rng = np.random.default_rng([seed, 9])
        reference, candidate, _ = truth_of(300, 4, seed)
        seen = [read(side, 0.9, 0.95, rng) for side in (reference, candidate)]
        errors = []
        for _ in range(4):
            tp, tn = rng.binomial(100, 0.9), rng.binomial(200, 0.95)
            errors.append(Confusion(tp, 200 - tn, 100 - tp, tn))
        [found] = corrected_macro_f1(
            seen[0], seen[1][None], errors, resamples=200, seed=seed
        )
        expected = 2 * 0.3 * 0.85 / (2 * 0.3 * 0.85 + 0.15)
        held += found.estimate.low <= expected <= found.estimate.high
    assert 132 <= held <= 150


def test_without_known_errors_nothing_is_corrected():
    """As observed, with the interval of the plain bootstrap over the same cases."""
    reference, candidate, score = truth_of(200, 3, 0)
    unknown = [None, Confusion(0, 3, 0, 90), Confusion(5, 50, 5, 50)]
    [found] = corrected_macro_f1(reference, candidate[None], unknown, resamples=100)
    assert found.corrected == (False, False, False)
    plain = bootstrap_f1(reference, candidate, resamples=100)
    assert found.estimate[:3] == pytest.approx(plain[:3])
    assert found.estimate.value == pytest.approx(score)


def test_what_is_unknown_of_the_labeller_widens_the_interval():
    """The same rates from ten cases and from ten thousand."""
    reference, candidate, _ = truth_of(500, 3, 0)
    few, many = (
        corrected_macro_f1(
            reference, candidate[None], [Confusion(k * 9, 0, k, k * 10)] * 3,
            resamples=300,
        )[0].estimate
        for k in (1, 1000)
    )  # fmt: skip
    assert few.value == pytest.approx(many.value)
    assert few.high - few.low > 2 * (many.high - many.low)


def test_a_rare_label_can_be_all_error():
    """Four positives of a thousand are what a specificity of 0.99 gives anyway."""
    reference = np.zeros((1000, 2), dtype=np.int8)
    reference[:4, 0] = 1
    reference[:300, 1] = 1
    errors = [Confusion(9, 10, 1, 990), PERFECT]
    [found] = corrected_macro_f1(reference, reference[None], errors, resamples=50)
    assert found.labels == (None, 1) and found.clipped == 1


def test_an_estimate_outside_its_interval_says_so():
    """Rates of 30 of 30 are 1 as measured and hardly ever 1 in the posterior."""
    reference, candidate, _ = truth_of(2000, 40, 0)
    errors = [Confusion(30, 0, 0, 30)] * 40
    [found] = corrected_macro_f1(reference, candidate[None], errors, resamples=100)
    value, low, high, note = found.estimate
    assert not low <= value <= high
    assert note.startswith("outside its interval")


def test_systems_are_corrected_with_the_same_draws():
    """Two equal systems get equal intervals, and another seed others."""
    reference, candidate, _ = truth_of(100, 2, 0)
    errors = [Confusion(90, 10, 10, 90)] * 2
    both = np.stack([candidate, candidate])
    first, second = corrected_macro_f1(reference, both, errors, resamples=99)
    assert first == second
    [other] = corrected_macro_f1(
        reference, candidate[None], errors, resamples=99, seed=1
    )
    assert other.estimate[1:3] != first.estimate[1:3]


def test_patients_are_resampled_as_a_whole():
    """Copies of a case under one patient: the same score, no narrower interval."""
    reference, candidate, _ = truth_of(100, 2, 0)
    errors = [Confusion(90, 10, 10, 90)] * 2
    once, many = (
        corrected_macro_f1(
            np.repeat(reference, k, 0), np.repeat(candidate, k, 0)[None], errors,
            units=np.repeat(np.arange(100), k), resamples=200,
        )[0].estimate
        for k in (1, 9)
    )  # fmt: skip
    assert many[:3] == pytest.approx(once[:3])


def test_nothing_decided_is_none():
    """No case, no score; not 0."""
    nothing = np.full((5, 2), -1, dtype=np.int8)
    [found] = corrected_macro_f1(nothing, nothing[None], [PERFECT] * 2)
    assert found.estimate.value is None and found.labels == (None, None)


def test_wrong_input_is_refused():
    """Messages give what was expected."""
    reference, candidate, _ = truth_of(10, 2, 0)
    with pytest.raises(ValueError, match="errors of 2 labels, got 1"):
        corrected_macro_f1(reference, candidate[None], [PERFECT])
    with pytest.raises(ValueError, match="n_systems, n_cases, n_labels"):
        corrected_macro_f1(reference, candidate, [PERFECT] * 2)


def test_an_estimate_at_the_end_of_its_interval_is_inside():
    """A perfect score is the end of what there is, and no sign of too few cases."""
    reference = np.repeat(np.array([[1], [0]], dtype=np.int8), 30, axis=0)
    candidate = reference.copy()
    candidate[[0, -1]] = 1 - candidate[[0, -1]]
    errors = [Confusion(90, 10, 10, 90)]
    [found] = corrected_macro_f1(reference, candidate[None], errors, resamples=200)
    assert found.estimate.value == found.estimate.high == 1
    assert found.estimate.note == ""


@pytest.mark.parametrize(
    ("cells", "shares", "clipped"),
    [
        # What a perfect copy looks like after errors of a tenth on each side.
        ((41, 9, 9, 41), (0.5, 0, 0, 0.5), False),
        # The candidate says present more often than the labeller finds it: 1.125.
        ((50, 50, 0, 0), (0.5, 0.5, 0, 0), True),
        ((50, 0, 50, 0), (0.5, 0, 0.5, 0), True),
        # Less often than the labeller invents it: -0.125.
        ((0, 0, 50, 50), (0, 0, 0.5, 0.5), True),
        ((0, 50, 0, 50), (0, 0.5, 0, 0.5), True),
        # Never both, and never apart.
        ((0, 50, 50, 0), (0, 0.5, 0.5, 0), True),
        ((50, 0, 0, 50), (0.5, 0, 0, 0.5), True),
        ((0, 0, 0, 90), (0, 0, 0, 1), True),
        ((90, 0, 0, 0), (1, 0, 0, 0), True),
    ],
)
def test_what_no_truth_explains_is_moved_to_the_nearest_limit(cells, shares, clipped):
    """With sensitivity and specificity of 0.9, by hand."""
    found = rogan_gladen_f1(Confusion(*cells), 0.9, 0.9)
    assert found.shares == pytest.approx(shares, abs=1e-12)
    assert found.clipped == clipped


def test_a_labeller_just_better_than_chance_is_corrected():
    """A sum of 1.1 is enough, one of 1.09 is not."""
    assert rogan_gladen_f1(Confusion(5, 2, 3, 10), 0.6, 0.5) is not None
    assert rogan_gladen_f1(Confusion(5, 2, 3, 10), 0.59, 0.5) is None
    reference, candidate = (1 - one for one in truth_of(50, 2, 0)[:2])
    errors = [Confusion(60, 50, 40, 50), Confusion(59, 50, 41, 50)]
    [found] = corrected_macro_f1(reference, candidate[None], errors, resamples=20)
    assert found.corrected == (True, False)
    observed = bootstrap_f1(reference[:, 1:], candidate[:, 1:], resamples=1).estimate
    assert found.labels[1] == pytest.approx(observed)
    alone = rogan_gladen_f1(
        Confusion(*count_confusions(reference, candidate)[0].tolist()), 0.6, 0.5
    )
    assert found.labels[0] == pytest.approx(alone.f1)
    assert found.clipped == alone.clipped
    assert found.estimate.value == pytest.approx((alone.f1 + observed) / 2)


def test_rates_are_drawn_from_their_posterior_where_it_is_better_than_chance():
    """Jeffreys' prior adds half to each cell; a draw below 0.1 is drawn again."""
    errors = [Confusion(6, 4, 5, 5), None, Confusion(9, 1, 2, 30)]
    labeller = _Labeller.of(errors, 3)
    found = np.stack(labeller.draw(400, np.random.default_rng(2)))
    assert found.shape == (2, 400, 3) and (found[:, :, 1] == 1).all()
    rng, known = np.random.default_rng(2), [0, 2]
    first = np.stack(
        [
            rng.beta([6.5, 9.5], [5.5, 2.5], (400, 2)),
            rng.beta([5.5, 30.5], [4.5, 1.5], (400, 2)),
        ]
    )
    kept = first.sum(axis=0) - 1 >= 0.1
    assert np.array_equal(found[:, :, known][:, kept], first[:, kept])
    assert 0.1 < (~kept[:, 0]).mean() < 0.6
    assert (found.sum(axis=0) - 1 >= 0.1).all()
    # Of the same label, each rate from its own cells.
    label = np.nonzero(~kept)[1]
    right, missed = np.array([6.5, 9.5])[label], np.array([5.5, 2.5])[label]
    clear, invented = np.array([5.5, 30.5])[label], np.array([4.5, 1.5])[label]
    again = np.stack([rng.beta(right, missed), rng.beta(clear, invented)])
    enough = again.sum(axis=0) - 1 >= 0.1
    redrawn = found[:, :, known][:, ~kept]
    assert np.array_equal(redrawn[:, enough], again[:, enough])
    assert not enough.all()


OUTSIDE = "outside its interval: the labeller was measured on few cases"


@pytest.mark.parametrize(
    ("estimate", "note"),
    [
        ((0.5, 0.5, 0.6, ""), ""),
        ((0.6, 0.5, 0.6, "x"), "x"),
        ((0.4, 0.5, 0.6, ""), OUTSIDE),
        ((0.7, 0.5, 0.6, "x"), f"x; {OUTSIDE}"),
        ((0.7, None, None, "x"), "x"),
        ((None, None, None, "x"), "x"),
    ],
)
def test_only_an_estimate_beyond_a_limit_is_outside(estimate, note):
    """What was known before stands before it."""
    assert _with_note(Estimate(*estimate)) == (*estimate[:3], note)
