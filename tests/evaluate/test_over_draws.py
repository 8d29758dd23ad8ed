"""An engine with chance was asked several times: every draw counts alike."""

from dataclasses import replace

import numpy as np
import pytest

from loop.core.records import Status
from loop.evaluate.align import join_draws
from loop.evaluate.evaluation import evaluate_inputs
from loop.evaluate.gates import GateVerdict
from loop.evaluate.matrix.matrix import MatrixEntry, build_matrix, rank_label
from loop.evaluate.protocol import Protocol
from loop.evaluate.recording import counts_digest
from loop.stats.intervals import clopper_pearson
from tests.evaluate.scenes import TAXONOMY, inputs, outcome, random_run, reference

LABEL = "edema"


def over_draws(*draws, protocol=None, **cohort):
    """Return the inputs of several draws, each a mapping of case to answer.

    The reference has every case with an id from ``p`` present.
    """
    cases = list(draws[0])
    truth = reference({case: {LABEL: int(case[0] == "p")} for case in cases})
    read = [
        inputs(
            [outcome(case, {LABEL: answer}) for case, answer in draw.items()],
            truth,
            protocol=protocol,
            **cohort,
        )
        for draw in draws
    ]
    return replace(
        read[0],
        further=tuple(one.pairs for one in read[1:]),
        runs=tuple(f"run-{number}" for number in range(len(draws))),
    )


def edema(evaluation):
    """Return the result of the label that these draws are about."""
    return next(one for one in evaluation.labels if one.label == LABEL)


def steady(positives=20, negatives=80, wrong=()):
    """Return the answers of one draw, right but for `wrong`."""
    cases = [f"p{n}" for n in range(positives)] + [f"n{n}" for n in range(negatives)]
    return {case: int((case[0] == "p") != (case in wrong)) for case in cases}


def test_counts_are_added_up_and_shares_are_means():
    """One case is wrong in one of three draws: a third of an error."""
    found = evaluate_inputs(over_draws(steady(), steady(), steady(wrong={"p0"})))
    one = edema(found)
    assert (found.cases, found.draws, one.draws) == (100, 3, 3)
    assert (one.confusion.tp, one.confusion.fn, one.confusion.n) == (59, 1, 300)
    assert one.confusion.accuracy == pytest.approx(1 - 1 / 300)
    assert found.statuses[Status.ANSWERED] == 300
    assert found.signature.endswith("|n:100|draws:3")
    assert found.runs == ("run-0", "run-1", "run-2")
    assert any("over all 3 draws" in text for text in found.notes)


def test_a_case_is_one_trial_however_often_it_was_asked():
    """Draws that agree give the interval of one, and no other verdict."""
    wrong = {"p0", "n0", "n1"}
    rule = Protocol(rule="lower", min_positives=14)
    alone = edema(evaluate_inputs(over_draws(steady(wrong=wrong), protocol=rule)))
    draws = [steady(wrong=wrong)] * 5
    many = edema(evaluate_inputs(over_draws(*draws, protocol=rule)))
    assert many.accuracy == pytest.approx(alone.accuracy)
    assert many.kappa[:3] == pytest.approx(alone.kappa[:3])
    assert many.gate == alone.gate
    # Draws are resampled besides, which cannot make the interval narrower here.
    assert many.kappa_bootstrap.low == pytest.approx(
        alone.kappa_bootstrap.low, abs=0.05
    )


def test_draws_do_not_make_up_for_cases():
    """Ten draws of nine positives are nine positives."""
    found = evaluate_inputs(over_draws(*[steady(positives=9)] * 10))
    gate = edema(found).gate
    assert gate.verdict is GateVerdict.INSUFFICIENT
    assert gate.reasons == ("9 of at least 10 positives",)
    assert edema(evaluate_inputs(over_draws(*[steady(positives=10)] * 10))).gate == (
        edema(evaluate_inputs(over_draws(steady(positives=10)))).gate
    )


def test_unreadable_answers_are_a_share_of_all_answers():
    """2 % in one of two draws are 1 % of all: what the protocol allows."""
    truth = reference({f"n{n}": {} for n in range(100)} | {"p": {LABEL: 1}})
    ids = truth.case_ids

    def draw(silent):
        return inputs(
            [
                outcome(case, {}, status="unparsed" if n < silent else "answered")
                for n, case in enumerate(ids)
            ],
            truth,
        )

    both = replace(draw(2), further=(draw(0).pairs,), runs=("a", "b"))
    found = evaluate_inputs(both)
    assert sum(found.statuses.values()) == 202
    assert any("of 202 answers cannot be read" in text for text in found.notes)


def test_limits_hold_the_truth_where_draws_vary():
    """Exact intervals of cases' means cover at least as often as they say."""
    rng = np.random.default_rng(7)
    covered, rounds, n, draws = 0, 400, 80, 5
    for _ in range(rounds):
        shares = rng.choice([1.0, 0.6, 0.05], n, p=[0.85, 0.1, 0.05])
        right = int(rng.binomial(draws, shares).sum())
        low, high = clopper_pearson(right, n * draws, draws=draws)
        covered += low <= 0.85 + 0.06 + 0.0025 <= high
    assert covered / rounds >= 0.95


def test_a_gate_that_is_clear_of_its_threshold_never_flips():
    """Ten repetitions of five draws of a borderline model; one draw flips."""
    rng = np.random.default_rng(3)
    positives, negatives = 60, 240
    hard = {f"n{n}" for n in range(12)} | {f"p{n}" for n in range(5)}

    def verdict(draws, share):
        asked = [
            steady(positives, negatives, {one for one in hard if rng.random() < share})
            for _ in range(draws)
        ]
        found = evaluate_inputs(over_draws(*asked), resamples=20)
        return edema(found).gate.verdict

    # The truth is 0.98 and 0.92 for accuracy by number of hard cases.
    assert {verdict(5, 6 / 17) for _ in range(10)} == {GateVerdict.PASS}
    hard |= {f"n{n}" for n in range(12, 40)}
    assert {verdict(5, 0.5) for _ in range(10)} == {GateVerdict.FAIL}
    # A truth at the threshold itself flips, however often it is asked.
    assert len({verdict(1, 15 / 45) for _ in range(20)}) > 1


def test_other_cases_or_labels_are_no_draw():
    """Draws are of one question."""
    one, two = over_draws(steady()), over_draws(steady(positives=21))
    with pytest.raises(ValueError, match="the same cases and labels"):
        join_draws([one.pairs, two.pairs])
    assert join_draws([one.pairs]) is one.pairs


def test_patients_who_repeat_count_once_over_all_draws():
    """The rule ``lower`` asks for the limit over patients, with the draws apart."""
    rule = Protocol(rule="lower", min_positives=14)
    patients = [f"patient-{n // 2}" for n in range(100)]
    wrong = {"n0", "n1", "n2"}
    made = over_draws(*[steady(wrong=wrong)] * 3, protocol=rule, patients=patients)
    found = evaluate_inputs(made)
    assert (found.method.unit, found.method.units) == ("patient", 50)
    assert any("Patients repeat: 100 cases are of 50" in one for one in found.notes)


def test_the_digest_of_counts_tells_draws_apart():
    """More draws are other numbers."""
    one, two = (over_draws(*[steady()] * draws) for draws in (1, 2))
    assert counts_digest(evaluate_inputs(one)) != counts_digest(evaluate_inputs(two))


def test_engines_are_ranked_by_their_means():
    """One engine with draws beside one without; sign-flip in place of McNemar."""
    truth = np.array([1] * 10 + [0] * 90, dtype=np.int8)
    good = truth.copy()
    shaky = np.stack([truth.copy() for _ in range(3)])
    shaky[:, 10:22] = 1
    shaky[0, 10:16] = 0
    made = over_draws(*[steady(positives=10, negatives=90)] * 3)
    steady_result = edema(evaluate_inputs(over_draws(steady(10, 90))))
    wrong = [{f"n{n}" for n in range(12)}] * 2 + [{f"n{n}" for n in range(6, 12)}]
    shaky_result = edema(
        evaluate_inputs(over_draws(*[steady(10, 90, one) for one in wrong]))
    )
    cells = rank_label([steady_result, shaky_result], truth, [good, shaky], Protocol())
    assert cells[0].standing == "best"
    assert (cells[1].paired.lost, cells[1].paired.gained) == (12, 0)
    assert cells[1].paired.p == pytest.approx(2 * 0.5**12)
    assert cells[1].standing == "worse"
    assert made.further


def test_a_matrix_holds_an_engine_over_all_its_draws():
    """Beside an engine with one; each on the shared cases."""
    outcomes, standard = random_run(60)
    other, _ = random_run(60, noise=0.2)
    once = inputs(outcomes, standard, run="20260105-090000-aaaaaa")
    first = inputs(other, standard, run="20260105-090000-bbbbbb")
    twice = replace(first, further=(once.pairs,), runs=("b", "c"))
    found = build_matrix([MatrixEntry("rules", once), MatrixEntry("model", twice)])
    by_draws = [column.evaluation.draws for column in found.columns]
    assert by_draws == [1, 2]
    assert found.columns[1].evaluation.cases == 60
    assert len(found.rows) == len(TAXONOMY.ids)
