"""Certifying is more than passing: Holm for some labels, all or nothing for all."""

from dataclasses import replace

import pytest
from scipy.stats import binom, binomtest
from statsmodels.stats.multitest import multipletests

from loop.evaluate.evaluation import evaluate_inputs
from loop.evaluate.gates import Gate, GateVerdict, Hedges
from loop.evaluate.protocol import Protocol
from loop.evaluate.results import (
    NOT_ALL_RUN,
    POINT_RULE,
    REPEATED,
    Exclusions,
    LabelResult,
    OpenAnswers,
    certify,
    certify_evaluation,
)
from loop.stats.confusion import Confusion
from loop.stats.intervals import Estimate, Interval
from tests.evaluate.scenes import inputs, random_run

LOWER = Protocol(rule="lower", min_positives=14)
SUBSET = LOWER.model_copy(update={"claim": "subset"})
NOTHING = Estimate(None, None, None)


def result(errors, n=300, verdict="PASS", label="a"):
    """Return a label with so many false alarms."""
    counts = Confusion(n // 5, errors, 0, n - n // 5 - errors)
    return LabelResult(
        label=label,
        name=label.title(),
        confusion=counts,
        accuracy=Interval(0, 1),
        kappa=NOTHING,
        kappa_bootstrap=NOTHING,
        excluded=Exclusions(),
        not_coded=0,
        hedges=Hedges(),
        open_answers=OpenAnswers(),
        gate=Gate(verdict=GateVerdict(verdict)),
    )


def certified(claim):
    """Return what is certified, label by label."""
    return [one.certified for one in claim.labels]


def test_holm_over_exact_p_values_equals_statsmodels():
    """Two libraries that share no code with this one."""
    errors = [0, 2, 4, 6, 8, 10]
    claim = certify([result(e) for e in errors], SUBSET)
    p = [binomtest(300 - e, 300, 0.95, "greater").pvalue for e in errors]
    reject, adjusted, *_ = multipletests(p, alpha=0.05, method="holm")
    assert [one.p for one in claim.labels] == pytest.approx(p)
    assert [one.p_holm for one in claim.labels] == pytest.approx(list(adjusted))
    assert certified(claim) == list(reject)
    assert claim.verdict is GateVerdict.PASS and claim.alpha == 0.05


def test_a_label_that_passes_alone_may_not_be_certified_among_many():
    """8 errors of 300 pass at 0.05; picked out of 21 labels they do not."""
    assert certified(certify([result(8)], SUBSET)) == [True]
    among = certify([result(8), *[result(40, verdict="FAIL")] * 20], SUBSET)
    assert certified(among) == [False] * 21
    assert among.verdict is GateVerdict.INSUFFICIENT


@pytest.mark.parametrize(("errors", "holds"), [(5, True), (6, False)])
def test_the_first_of_21_labels_needs_the_family_level(errors, holds):
    """At alpha / 21 and 300 cases, 5 errors still certify 0.95 and 6 do not."""
    family = [result(errors), *[result(40, verdict="FAIL")] * 20]
    assert certified(certify(family, SUBSET))[0] is holds


@pytest.mark.parametrize("verdict", ["FAIL", "INSUFFICIENT"])
def test_the_rest_of_the_gate_still_decides(verdict):
    """An accuracy beyond doubt does not certify a label whose kappa fails."""
    claim = certify([result(0, verdict=verdict), result(0)], SUBSET)
    assert certified(claim) == [False, True]
    assert claim.certified[0].p < 1e-6


def test_all_labels_need_no_correction_and_stand_or_fall_together():
    """Intersection-union: 21 labels at the level of one."""
    assert certified(certify([result(8)] * 21, LOWER)) == [True] * 21
    one_lost = certify([*[result(8)] * 20, result(9, verdict="INSUFFICIENT")], LOWER)
    assert certified(one_lost) == [False] * 21
    assert one_lost.verdict is GateVerdict.INSUFFICIENT and one_lost.alpha == 0.05


@pytest.mark.parametrize("kind", ["all", "subset"])
def test_the_point_rule_certifies_nothing(kind):
    """Whatever was observed; and it says so."""
    claim = certify([result(0)] * 3, Protocol(claim=kind))
    assert certified(claim) == [False] * 3
    assert claim.note == POINT_RULE
    expected = GateVerdict.PASS if kind == "all" else GateVerdict.INSUFFICIENT
    assert claim.verdict is expected


def test_a_label_without_cases_counts_in_the_family():
    """It has p = 1 and makes the others no easier."""
    claim = certify([result(5), result(0, n=0, verdict="INSUFFICIENT")], SUBSET)
    assert [one.p for one in claim.labels][1] == 1.0
    assert claim.labels[0].p_holm == pytest.approx(2 * claim.labels[0].p)


@pytest.mark.parametrize("protocol", [LOWER, SUBSET])
def test_nothing_to_judge_is_no_evidence(protocol):
    """An empty evaluation neither passes nor fails."""
    assert certify([], protocol).verdict is GateVerdict.INSUFFICIENT


def test_a_subset_fails_only_where_every_label_fails():
    """As long as one is undecided more cases may help."""
    lost = result(60, verdict="FAIL")
    assert certify([lost, lost], SUBSET).verdict is GateVerdict.FAIL
    undecided = result(9, verdict="INSUFFICIENT")
    assert certify([lost, undecided], SUBSET).verdict is GateVerdict.INSUFFICIENT


@pytest.mark.parametrize("n", [118, 200, 300, 1000])
def test_false_claims_stay_below_alpha(n):
    """21 labels exactly at the threshold: some label is certified in at most 5 %.

    Some label is certified as soon as the best of them is, so the chance is a closed
    form of the errors that the best one may have.
    """
    others = [result(n // 5, n, verdict="FAIL")] * 20
    bearable = max(e for e in range(n // 10) if any_kept([result(e, n), *others]))
    assert 1 - (1 - binom.cdf(bearable, n, 0.05)) ** 21 <= 0.05
    assert 1 - (1 - binom.cdf(bearable + 1, n, 0.05)) ** 21 > 0.05


def any_kept(labels):
    """Return whether some label is certified."""
    return any(certified(certify(labels, SUBSET)))


@pytest.fixture(scope="module")
def evaluation():
    """Return an evaluation of 300 cases under a claim on a subset."""
    outcomes, standard = random_run(300, noise=0.0)
    return evaluate_inputs(inputs(outcomes, standard, protocol=SUBSET), resamples=50)


def test_a_part_of_the_cohort_certifies_nothing(evaluation):
    """Cases that were left out may be the hard ones."""
    whole = certify_evaluation(evaluation)
    part = certify_evaluation(replace(evaluation, not_run=1))
    assert whole.certified and whole.verdict is GateVerdict.PASS
    assert not part.certified and part.verdict is GateVerdict.INSUFFICIENT
    assert part.note == NOT_ALL_RUN


def test_repeated_patients_are_said_to_weaken_the_p_values(evaluation):
    """The exact test takes cases as independent."""
    assert certify_evaluation(evaluation).note == ""
    method = replace(evaluation.method, unit="patient", units=200)
    assert certify_evaluation(replace(evaluation, method=method)).note == REPEATED


def test_a_claim_is_whole():
    """Kind, level, verdict, and of each label p, the adjusted p and what follows."""
    family = [result(0, label="a"), result(8, label="b"), result(40, label="c")]
    gone = replace(result(0, label="d"), gate=Gate(verdict=GateVerdict.NOT_COMPARABLE))
    p = [binom.sf(300 - errors - 1, 300, 0.95) for errors in (0, 8, 40)]
    claim = certify([*family, gone], SUBSET)
    assert [one.p for one in claim.labels] == pytest.approx(p)
    assert [one.p_holm for one in claim.labels] == pytest.approx(
        [3 * p[0], 2 * p[1], 1.0]
    )
    assert [(one.label, one.name) for one in claim.labels] == [
        ("a", "A"),
        ("b", "B"),
        ("c", "C"),
    ]
    assert (claim.kind, claim.alpha, claim.note) == ("subset", 0.05, "")
    assert certified(claim) == [True, False, False]
    assert claim.certified == claim.labels[:1]
    assert claim.verdict is GateVerdict.PASS


@pytest.mark.parametrize("claim", ["all", "subset"])
@pytest.mark.parametrize("gate", ["PASS", "FAIL", "INSUFFICIENT"])
def test_a_part_of_the_cases_certifies_nothing_and_may_fail(claim, gate):
    """What passed is open then; what failed has failed."""
    rules = LOWER.model_copy(update={"claim": claim})
    found = certify([result(0, verdict=gate)], rules, whole=False)
    assert certified(found) == [False]
    expected = {"PASS": "INSUFFICIENT"}.get(gate, gate)
    assert found.verdict.value == expected


def test_the_level_of_a_claim_is_written_as_it_was_said():
    """One minus 0.95 is 0.05 and not 0.050000000000000044."""
    rules = LOWER.model_copy(update={"confidence": 0.95, "alpha": 0.01})
    assert certify([result(0)], rules).alpha == 0.05
    some = rules.model_copy(update={"claim": "subset"})
    assert certify([result(0)], some).alpha == 0.01


@pytest.mark.parametrize(
    ("kappa", "bootstrap", "shown"),
    [
        (Estimate(0.9, 0.8, 1.0), Estimate(0.9, 0.7, 1.0), 0),
        (Estimate(1.0, 1.0, 1.0), Estimate(1.0, 0.95, 1.0), 1),
        (Estimate(None, None, None), Estimate(None, None, None, "none"), 0),
        (Estimate(0.9, None, None), Estimate(0.9, 0.7, 1.0), 0),
    ],
)
def test_a_kappa_whose_interval_has_no_width_shows_the_limits_beside(
    kappa, bootstrap, shown
):
    """Perfect agreement in a sample is no certainty; a missing limit is no width."""
    one = replace(result(0), kappa=kappa, kappa_bootstrap=bootstrap)
    assert one.kappa_interval is (kappa, bootstrap)[shown]


@pytest.mark.parametrize(
    ("rule", "missing", "patients", "note"),
    [
        ("point", 0, False, POINT_RULE),
        ("point", 3, True, POINT_RULE),
        ("lower", 3, True, NOT_ALL_RUN),
        ("lower", 3, False, NOT_ALL_RUN),
        ("lower", 0, True, REPEATED),
        ("lower", 0, False, ""),
    ],
)
def test_the_weightiest_caveat_of_a_claim_is_given(rule, missing, patients, note):
    """No rule to certify by, then not all cases, then patients that repeat."""
    outcomes, standard = random_run(40)
    given = inputs(
        outcomes,
        standard,
        protocol=Protocol(rule=rule, min_positives=14),
        cases=40 + missing,
        patients=[f"p{i // 2}" if patients else "" for i in range(40)],
    )
    claim = certify_evaluation(evaluate_inputs(given, resamples=20))
    assert claim.note == note
    assert claim.certified == ()
