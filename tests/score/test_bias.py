"""How a score rests on its extractor: without its error, and beside another's."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kendalltau

from loop.core.records import ValueCode
from loop.score.bias import ASSUMPTIONS, correct, panel
from loop.score.ran import score
from loop.score.records import Conventions, ExtractorFacts, Uncertain
from loop.stats.confusion import Confusion, average_f1, count_confusions
from tests.score.graded_tables import graded

LABELS = ("edema", "fracture")
MEASURED = Confusion(tp=8000, fp=500, fn=2000, tn=9500)
"""Sensitivity 0.80, specificity 0.95, on so many cases that they are known."""

QUICK = {"resamples": 50}


def truth(rng, n=20_000, labels=2):
    """Return what references and candidates really say, F1 about 0.73."""
    reference = rng.random((n, labels)) < 0.3
    candidate = np.where(rng.random((n, labels)) < 0.15, ~reference, reference)
    return reference.astype(np.int8), candidate.astype(np.int8)


def read(rng, codes):
    """Return the codes as an extractor with the measured errors reads them."""
    chance = rng.random(codes.shape)
    return np.where(codes == 1, chance < 0.80, chance < 0.05).astype(np.int8)


def test_the_true_score_is_found_behind_independent_errors():
    """What is read says 0.55 or so; the correction finds what the texts say."""
    rng = np.random.default_rng(3)
    sides = truth(rng)
    seen = tuple(read(rng, side) for side in sides)
    real = float(average_f1(count_confusions(*sides)))
    found = correct(
        (seen[0], seen[1][None]), LABELS, dict.fromkeys(LABELS, MEASURED), **QUICK
    )
    (estimate,) = found.estimates
    assert float(average_f1(count_confusions(*seen))) < real - 0.1
    assert estimate.value == pytest.approx(real, abs=0.02)
    assert estimate.low < real < estimate.high
    assert found.assumptions[:-1] == ASSUMPTIONS
    assert "here as there" in found.assumptions[-1]


def test_an_extractor_without_errors_changes_nothing():
    """There is nothing to take out."""
    rng = np.random.default_rng(0)
    reference, candidate = truth(rng, n=300)
    sure = Confusion(tp=10**7, fp=0, fn=0, tn=10**7)
    found = correct(
        (reference, candidate[None]), LABELS, dict.fromkeys(LABELS, sure), **QUICK
    )
    observed = float(average_f1(count_confusions(reference, candidate)))
    assert found.estimates[0].value == pytest.approx(observed, abs=1e-4)


def test_labels_that_stay_as_read_are_named():
    """One was not measured; the other is read no better than by chance."""
    rng = np.random.default_rng(0)
    reference, candidate = truth(rng, n=300)
    chance = Confusion(tp=50, fp=50, fn=50, tn=50)
    found = correct((reference, candidate[None]), LABELS, {"fracture": chance}, **QUICK)
    observed = float(average_f1(count_confusions(reference, candidate)))
    assert found.estimates[0].value == pytest.approx(observed)
    _, named = found.assumptions[len(ASSUMPTIONS) :]
    assert named.startswith("0 of 2 labels are corrected")
    assert named.endswith("edema, fracture.")


def test_an_impossible_share_is_said():
    """A perfect copy holds less disagreement than the errors would make."""
    rng = np.random.default_rng(0)
    reference, _ = truth(rng, n=300)
    errors = dict.fromkeys(LABELS, MEASURED)
    found = correct((reference, reference[None]), LABELS, errors, **QUICK)
    assert found.estimates[0].value == pytest.approx(1)
    assert found.assumptions[-1].startswith("In 2 of 2 corrected labels")


@pytest.mark.parametrize(
    ("policy", "told"),
    [("excl", "pairs are left out"), ("pos", "count as present"), ("neg", "as absent")],
)
def test_the_policy_for_uncertain_values_is_among_the_assumptions(policy, told):
    """The errors were measured without uncertain values, whatever is scored here."""
    codes = np.array([[1, -1], [0, 1]], dtype=np.int8)
    result = score(
        graded(codes, codes, labels=LABELS),
        Conventions(uncertain=Uncertain(policy)),
        errors=dict.fromkeys(LABELS, MEASURED),
        **QUICK,
    )
    (sentence,) = [one for one in result.assumptions if one.startswith("Uncertain")]
    assert told in sentence
    assert ("left out" in sentence) == (policy == "excl")


def test_a_label_that_the_correction_empties_is_said():
    """One invented positive in a hundred is what such an extractor invents anyway."""
    reference = np.zeros((100, 2), dtype=np.int8)
    reference[:40, 0] = 1
    candidate = reference.copy()
    candidate[0, 1] = 1
    errors = dict.fromkeys(LABELS, MEASURED)
    found = correct((reference, candidate[None]), LABELS, errors, **QUICK)
    (sentence,) = [one for one in found.assumptions if "none when corrected" in one]
    assert sentence.startswith("1 labels")


def test_errors_of_a_label_that_is_not_scored_are_refused():
    """A misspelled label would silently stay uncorrected."""
    codes = np.zeros((2, 2), dtype=np.int8)
    with pytest.raises(ValueError, match=r"not scored: \['oedema'\]"):
        correct((codes, codes[None]), LABELS, {"oedema": MEASURED})


def test_a_corrected_score_stands_beside_the_score_and_says_what_it_assumes():
    """It is an addition: ranking and score stay as read."""
    rng = np.random.default_rng(1)
    reference, one = truth(rng, n=200)
    _, other = truth(rng, n=200)
    table = graded(reference, [one, other], labels=LABELS)
    plain = score(table, Conventions(), resamples=50, permutations=20)
    errors = dict.fromkeys(LABELS, MEASURED)
    found = score(table, Conventions(), errors=errors, resamples=50, permutations=20)
    assert found.assumptions[: len(ASSUMPTIONS)] == ASSUMPTIONS
    assert plain.assumptions == ()
    for with_it, without in zip(found.systems, plain.systems, strict=True):
        assert without.corrected is None
        assert with_it.corrected.value > with_it.ran_score.value
        assert with_it.ran_score == without.ran_score
    assert found.differences == plain.differences


@pytest.mark.parametrize("policy", ["skip", "zero", "one"])
def test_without_measured_errors_the_corrected_score_is_the_score(policy):
    """Under every zero division: the second label never occurs."""
    rng = np.random.default_rng(2)
    reference, candidate = truth(rng, n=100)
    reference[:, 1] = candidate[:, 1] = 0
    table = graded(reference, candidate, labels=LABELS)
    (one,) = score(
        table, Conventions(zero_division=policy), errors={}, resamples=20
    ).systems
    assert one.corrected.value == pytest.approx(one.ran_score.value)


FEW = {"resamples": 20, "permutations": 20}


def result(rates, seed=0, ref="one", **facts):
    """Score systems that err at the given rates."""
    rng = np.random.default_rng(seed)
    truth = (rng.random((40, 6)) < 0.4).astype(np.int8)
    told = [np.where(rng.random((40, 6)) < r, 1 - truth, truth) for r in rates]
    extractor = ExtractorFacts(ref=ref, digest="ab" * 32, engine="rules")
    table = graded(truth, told, extractor=extractor, **facts)
    return score(table, Conventions(), **FEW)


def test_a_result_beside_itself_changes_nothing():
    """Every case equal, no gap, the same order."""
    one = result([0.05, 0.2, 0.4])
    found = panel(one, one)
    assert (found.tau, found.swapped) == (pytest.approx(1), ())
    for row in found.systems:
        assert (row.cases, row.equal, row.gap) == (40, 1.0, 0.0)
        assert row.tau == pytest.approx(1)
        assert (row.first, row.first_rank) == (row.second, row.second_rank)


def test_systems_that_change_places_are_named():
    """In the order of the first ranking, with both ranks."""
    found = panel(result([0.02, 0.1, 0.5]), result([0.5, 0.1, 0.02], ref="two"))
    assert [row.system for row in found.systems] == ["A", "B", "C"]
    assert [row.second_rank for row in found.systems] == [3, 2, 1]
    assert found.swapped == (("A", "B"), ("A", "C"), ("B", "C"))
    assert found.tau == pytest.approx(-1)
    assert (found.first.ref, found.second.ref) == ("one", "two")


def test_a_tie_on_one_side_is_no_change_of_places():
    """One extractor sees no difference; that is not the opposite order."""
    one = result([0.02, 0.5])
    tied = replace(
        one, systems=tuple(replace(system, rank=1) for system in one.systems)
    )
    assert panel(one, tied).swapped == ()


def test_the_cases_agree_as_scipy_says():
    """Tau and gap over the cases of one system, joined by id."""
    first, second = result([0.2]), result([0.2], seed=1)
    row = panel(first, second).systems[0]
    a, b = ([case.f1 for case in one.cases] for one in (first, second))
    assert row.tau == pytest.approx(kendalltau(a, b).statistic)
    assert row.gap == pytest.approx(np.abs(np.subtract(a, b)).mean())
    assert row.equal == pytest.approx(np.equal(a, b).mean())
    turned = replace(second, cases=second.cases[::-1])
    assert panel(first, turned).systems[0] == row


def test_cases_without_a_score_under_one_extractor_are_left_out_and_counted():
    """Nothing is compared with an answer that does not exist."""
    truth = np.array([[1, 0], [0, 1]], dtype=np.int8)
    silent = np.array(
        [[1, 0], [ValueCode.UNANSWERED, ValueCode.UNANSWERED]], dtype=np.int8
    )
    whole = score(graded(truth, truth), Conventions(), **FEW)
    half = score(graded(truth, silent), Conventions(), **FEW)
    row = panel(whole, half).systems[0]
    assert (row.cases, row.equal, row.gap, row.tau) == (1, 1.0, 0.0, None)


def test_one_system_has_no_order_to_agree_on():
    """None, not 1."""
    one = result([0.1])
    assert panel(one, one).tau is None


def test_other_systems_are_refused():
    """By name, not by position."""
    one = result([0.1, 0.2])
    with pytest.raises(ValueError, match="need the same systems"):
        panel(one, result([0.1, 0.2], systems=("A", "C")))


def test_other_labels_are_refused():
    """A mean over other labels is another score."""
    one = result([0.1])
    with pytest.raises(ValueError, match="need the same labels"):
        panel(one, result([0.1], labels=tuple("uvwxyz")))


def test_other_conventions_are_refused():
    """Then the extractor is not the only difference."""
    one = result([0.1])
    other = replace(one, conventions=Conventions(uncertain=Uncertain.ABSENT))
    with pytest.raises(ValueError, match="need the same conventions"):
        panel(one, other)
