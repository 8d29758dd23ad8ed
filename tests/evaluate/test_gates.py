"""The gate against the tables of the domain notes and the published thresholds."""

import re
from dataclasses import replace
from math import ceil, nextafter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.evaluate.gates import (
    Gate,
    GateVerdict,
    Hedges,
    LabelEvidence,
    PatientLimit,
    combine_verdicts,
    decide_gate,
    show_below,
)
from loop.evaluate.protocol import Protocol
from loop.stats.bootstrap import bootstrap_kappa
from loop.stats.confusion import Confusion
from loop.stats.intervals import Estimate, clopper_pearson, lower_limit
from loop.stats.kappa import cohen_kappa
from loop.stats.planning import cases_needed

POINT = Protocol()
LOWER = Protocol(rule="lower", min_positives=14)


def evidence(tp, fp, fn, tn, *, unanswered=0, asked=True):
    """Return the evidence of one label with these counts."""
    counts = Confusion(tp, fp, fn, tn)
    truth = np.repeat([[1], [0], [1], [0]], counts, axis=0).astype(np.int8)
    answer = np.repeat([[1], [1], [0], [0]], counts, axis=0).astype(np.int8)
    return LabelEvidence(
        confusion=counts,
        kappa=cohen_kappa(counts),
        kappa_bootstrap=bootstrap_kappa(truth, answer, resamples=500)[0],
        unanswered=unanswered,
        usable=counts.n + unanswered,
        asked=asked,
    )


def with_kappa(given_evidence, kappa):
    """Return the same evidence with another kappa."""
    return replace(given_evidence, kappa=kappa, kappa_bootstrap=kappa)


@pytest.mark.parametrize(
    ("counts", "accuracy_passes", "kappa_passes"),
    [
        ((3, 3, 7, 287), True, False),
        ((20, 8, 3, 269), True, False),
        ((11, 5, 1, 283), True, False),
        ((98, 16, 8, 178), False, True),
    ],
)
def test_published_failing_labels_fail_for_the_published_reason(
    counts, accuracy_passes, kappa_passes
):
    """Rows of the published table with ten or more positives and one gate missed."""
    gate = decide_gate(evidence(*counts), POINT)
    assert gate.verdict is GateVerdict.FAIL
    reasons = " ".join(gate.reasons)
    assert ("accuracy" not in reasons) is accuracy_passes
    assert ("kappa" not in reasons) is kappa_passes


@pytest.mark.parametrize("counts", [(1, 7, 7, 285), (2, 0, 5, 293), (2, 0, 2, 296)])
def test_few_positives_are_insufficient_whatever_the_accuracy(counts):
    """Published labels with 4 to 8 positives of 300 decide nothing."""
    gate = decide_gate(evidence(*counts), POINT)
    assert gate.verdict is GateVerdict.INSUFFICIENT
    assert f"{counts[0] + counts[2]} of at least 10 positives" in gate.reasons[0]


def test_never_saying_present_does_not_pass():
    """At 5 % prevalence always-absent has accuracy 0.95 and kappa 0."""
    gate = decide_gate(evidence(0, 0, 15, 285), POINT)
    assert gate.verdict is GateVerdict.FAIL
    assert gate.reasons == ("kappa 0.000 < 0.8",)


def test_a_label_without_positives_is_insufficient_and_says_what_to_add():
    """Without a positive no prevalence is known, so no number of cases is named."""
    gate = decide_gate(evidence(0, 0, 0, 300), POINT)
    assert gate.verdict is GateVerdict.INSUFFICIENT
    assert gate.needs == "needs 10 positives; none has been seen, so add such cases"


def test_more_cases_are_counted_at_the_prevalence_seen():
    """6 positives of 300: 4 more need 200 cases at the same prevalence."""
    gate = decide_gate(evidence(5, 0, 1, 294), POINT)
    assert gate.needs == "needs about 200 more cases (4 positives)"


def test_an_observed_value_exactly_at_the_threshold_passes():
    """285 of 300 is 0.95: the comparison must not lose it to rounding."""
    assert decide_gate(evidence(60, 7, 8, 225), POINT).verdict is GateVerdict.PASS


def test_a_near_miss_is_not_printed_as_reached():
    """0.9497 rounds to 0.950; the reason must still read as below 0.95."""
    gate = decide_gate(evidence(300, 25, 25, 645), POINT)
    assert decide_gate(evidence(300, 25, 25, 644), POINT).verdict is GateVerdict.FAIL
    assert "accuracy 0.9497 < 0.95" in gate.reasons[0]


@pytest.mark.parametrize(("errors", "verdict"), [(8, "PASS"), (9, "INSUFFICIENT")])
def test_lower_rule_allows_eight_errors_of_300(errors, verdict):
    """Table of the domain notes: one-sided 95 %, n = 300, at most 8 errors."""
    gate = decide_gate(evidence(100, errors, 0, 200 - errors), LOWER)
    assert gate.verdict.value == verdict


def test_lower_rule_fails_only_when_the_upper_limit_is_below():
    """Accuracy 0.90 of 300 is shown to be below 0.95; 0.94 is not."""
    assert decide_gate(evidence(100, 30, 0, 170), LOWER).verdict is GateVerdict.FAIL
    gate = decide_gate(evidence(100, 18, 0, 182), LOWER)
    assert gate.verdict is GateVerdict.INSUFFICIENT
    assert "more cases alone will not do" in gate.needs


def test_lower_rule_asks_for_sensitivity_on_few_positives():
    """14 positives with one miss cannot show a sensitivity above 0.80."""
    gate = decide_gate(evidence(13, 0, 1, 286), LOWER)
    assert gate.verdict is GateVerdict.INSUFFICIENT
    assert any(reason.startswith("sensitivity") for reason in gate.reasons)
    assert "needs about" in gate.needs


def test_a_wide_kappa_says_how_many_more_cases_it_needs():
    """Kappa 0.85 with lower limit 0.5 and floor 0.6: (0.35 / 0.25)^2 - 1 of 300."""
    wide = Estimate(0.85, 0.5, 0.95)
    given_evidence = evidence(60, 0, 0, 240)
    gate = decide_gate(with_kappa(given_evidence, wide), LOWER)
    assert gate.verdict is GateVerdict.INSUFFICIENT
    assert gate.needs == "needs about 288 more cases (58 positives)"


@pytest.mark.parametrize(
    ("kappa", "floor", "needs"),
    [
        (Estimate(0.78, 0.5, 0.95), 0.6, "more cases alone will not do"),
        (Estimate(0.85, None, None), 0.6, "cannot be told"),
        (Estimate(None, None, None), 0.6, "cannot be told"),
        (Estimate(0.85, 0.5, 0.95), 0.9, "cannot be told"),
    ],
)
def test_an_undecided_kappa_always_says_what_is_needed(kappa, floor, needs):
    """A number where there is one, else that there is none; never silence."""
    protocol = LOWER.model_copy(update={"kappa_floor": floor})
    gate = decide_gate(with_kappa(evidence(60, 0, 0, 240), kappa), protocol)
    assert gate.verdict is GateVerdict.INSUFFICIENT
    assert needs in gate.needs


def test_unanswered_cases_stop_the_gate_before_any_rate():
    """4 of 300 without an answer are more than 1 %, however good the others."""
    good = (60, 0, 0, 236)
    assert decide_gate(evidence(*good, unanswered=4), POINT).verdict.value == (
        "INSUFFICIENT"
    )
    assert decide_gate(evidence(*good, unanswered=2), POINT).verdict is GateVerdict.PASS


def test_a_label_that_is_not_asked_is_said_to_be_so():
    """A prompt without a guide for the label has not failed at it."""
    gate = decide_gate(evidence(0, 0, 0, 0, asked=False), POINT)
    assert gate.verdict is GateVerdict.INSUFFICIENT
    assert "not asked for: the prompt version lacks it" in gate.reasons[0]


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        (["PASS", "PASS"], "PASS"),
        (["PASS", "INSUFFICIENT"], "INSUFFICIENT"),
        (["PASS", "NOT COMPARABLE"], "PASS"),
        (["FAIL", "NOT COMPARABLE"], "FAIL"),
        (["NOT COMPARABLE"], "INSUFFICIENT"),
        (["FAIL", "INSUFFICIENT", "PASS"], "FAIL"),
        ([], "INSUFFICIENT"),
    ],
)
def test_overall_passes_only_if_every_label_passes(parts, whole):
    """Intersection-union; an empty list is no evidence."""
    assert combine_verdicts(GateVerdict(part) for part in parts).value == whole


@given(st.tuples(*[st.integers(0, 400)] * 4), st.booleans())
def test_any_counts_give_a_verdict_and_a_reason(counts, lower):
    """No table of counts breaks the gate, and only a pass comes without reason."""
    table = Confusion(*counts)
    kappa = cohen_kappa(table)
    gate = decide_gate(
        LabelEvidence(
            confusion=table,
            kappa=kappa,
            kappa_bootstrap=kappa,
            unanswered=0,
            usable=table.n,
        ),
        LOWER if lower else POINT,
    )
    assert bool(gate.reasons) is (gate.verdict is not GateVerdict.PASS)
    assert "nan" not in " ".join((*gate.reasons, gate.needs)).lower()


def test_how_many_answers_may_be_missing_is_said_in_percent():
    """A share of the usable cases, as the protocol has it."""
    found = evidence(20, 0, 0, 76, unanswered=24)
    gate = decide_gate(found, Protocol(max_unanswered=0.125))
    assert gate.verdict is GateVerdict.INSUFFICIENT
    assert (
        "24 of 120 cases have no readable answer (at most 12.5 % allowed)"
        in (gate.reasons[0])
    )


@pytest.mark.parametrize(("patients", "said"), [(1, "1 patient "), (2, "2 patients ")])
def test_the_patients_of_a_limit_are_counted(patients, said):
    """A limit over one patient is not estimable, and says over how many."""
    found = replace(
        evidence(100, 0, 0, 200), accuracy_by_patient=PatientLimit(None, patients)
    )
    gate = decide_gate(found, LOWER)
    assert f"its limit over {said}is not estimable" in " ".join(gate.reasons)


@pytest.mark.parametrize(("unanswered", "verdict"), [(3, "PASS"), (4, "INSUFFICIENT")])
def test_as_many_answers_may_be_missing_as_the_protocol_says(unanswered, verdict):
    """3 of 300 are 1 %, and at most 1 % is allowed."""
    found = evidence(60, 0, 0, 240 - unanswered, unanswered=unanswered)
    assert decide_gate(found, POINT).verdict.value == verdict


@pytest.mark.parametrize(
    ("counts", "needs"),
    [
        ((30, 0, 0, 25), "needs about 4 more cases (2 positives)"),
        ((50, 0, 0, 6), "needs about 38 more cases (34 positives)"),
    ],
)
def test_only_what_is_lacking_is_asked_for(counts, needs):
    """55 of 59 cases lack 4. 6 of 10 negatives among 56 lack 4: 4 x 56 / 6 cases."""
    gate = decide_gate(evidence(*counts), POINT)
    assert (gate.verdict, gate.needs) == (GateVerdict.INSUFFICIENT, needs)


@pytest.mark.parametrize(
    ("positives", "draws", "verdict"),
    [(9, 1, "FAIL"), (8, 1, "INSUFFICIENT"), (19, 2, "FAIL"), (18, 2, "INSUFFICIENT")],
)
def test_hedges_fail_a_label_from_the_least_evidence_on(positives, draws, verdict):
    """One more positive is hedged: 10 in each draw are judged, fewer are too few."""
    found = evidence(positives, 0, 0, 290 * draws)
    found = replace(found, hedges=Hedges(positives=1), draws=draws)
    rules = Protocol(uncertain_answers="excluded", max_uncertain=0.01)
    assert decide_gate(found, rules).verdict.value == verdict


def ruled(**thresholds):
    """Return the rule of limits with other thresholds; the rest are as good as none."""
    low = {"accuracy": 0.01, "kappa": 0.01, "kappa_floor": 0, "sensitivity_floor": 0.01}
    return LOWER.model_copy(update={**low, **thresholds})


def test_a_limit_exactly_at_its_threshold_reaches_it():
    """And the next number above it is not reached: of accuracy, sensitivity, kappa."""
    found = evidence(90, 6, 4, 200)
    found = with_kappa(found, Estimate(0.8, 0.6, 0.9))
    reached = {
        "accuracy": lower_limit(290, 300, confidence=0.95),
        "sensitivity_floor": lower_limit(90, 94, confidence=0.95),
        "kappa": 0.8,
        "kappa_floor": 0.6,
    }
    for name, limit in reached.items():
        at, above = (
            decide_gate(found, ruled(**{name: value}))
            for value in (limit, np.nextafter(limit, 1))
        )
        assert at.verdict is GateVerdict.PASS, name
        assert above.verdict is GateVerdict.INSUFFICIENT, name


def test_an_upper_limit_exactly_at_the_threshold_is_not_below_it():
    """It has failed only where the whole interval is below."""
    found = evidence(90, 6, 4, 200)
    found = with_kappa(found, Estimate(0.8, 0.6, 0.9))
    highest = {
        "accuracy": clopper_pearson(290, 300, confidence=0.95).high,
        "sensitivity_floor": clopper_pearson(90, 94, confidence=0.95).high,
        "kappa": 0.9,
    }
    for name, limit in highest.items():
        at, above = (
            decide_gate(found, ruled(**{name: value}))
            for value in (limit, np.nextafter(limit, 1))
        )
        assert at.verdict is GateVerdict.INSUFFICIENT, name
        assert above.verdict is GateVerdict.FAIL, name


@pytest.mark.parametrize("what", ["accuracy", "sensitivity"])
def test_the_limit_over_patients_reaches_the_threshold_as_well(what):
    """Of the share that it belongs to: exactly at it passes, the next below does not.

    300 of 300 and 100 of 100 reach 0.9 if cases are independent: 0.990 and 0.970.
    """
    rules = ruled(accuracy=0.9, sensitivity_floor=0.9)
    for low, verdict in ((0.9, "PASS"), (nextafter(0.9, 0), "INSUFFICIENT")):
        limit = {f"{what}_by_patient": PatientLimit(low, 40)}
        gate = decide_gate(replace(evidence(100, 0, 0, 200), **limit), rules)
        assert gate.verdict.value == verdict
    (reason,) = gate.reasons
    assert reason.startswith(f"{what}: lower limit 0.8999")
    assert "over 40 patients does not reach 0.9" in reason
    assert gate.needs.startswith("needs more patients")


def test_patients_do_not_excuse_a_share_below_its_exact_limit():
    """The limit over patients is asked for beside the exact one, not in its place."""
    high = PatientLimit(0.99, 40)
    found = replace(
        evidence(100, 9, 0, 191), accuracy_by_patient=high, sensitivity_by_patient=high
    )
    assert decide_gate(found, LOWER).verdict is GateVerdict.INSUFFICIENT


@pytest.mark.parametrize("draws", [1, 2])
@pytest.mark.parametrize(
    ("counts", "short"),
    [
        ((10, 0, 0, 49), ""),
        ((49, 0, 0, 10), ""),
        ((30, 0, 0, 28), "58 of at least 59 cases"),
        ((9, 0, 0, 50), "9 of at least 10 positives"),
        ((50, 0, 0, 9), "9 of at least 10 negatives"),
    ],
)
def test_the_least_evidence_is_enough_and_one_case_less_is_not(counts, short, draws):
    """A case counts once, however often it was asked."""
    found = evidence(*(draws * count for count in counts))
    gate = decide_gate(replace(found, draws=draws), POINT)
    assert gate.reasons == ((short,) if short else ())


def test_half_a_case_is_missing_where_one_draw_lacks_it():
    """19 answers in two draws are not 10 positives."""
    found = replace(evidence(19, 0, 0, 99), draws=2)
    assert decide_gate(found, POINT).reasons == ("9.5 of at least 10 positives",)


@pytest.mark.parametrize(
    ("counts", "needs"),
    [
        ((60, 0, 0, 0), "needs 10 negatives; none has been seen, so add such cases"),
        ((0, 0, 0, 9), "needs 10 positives; none has been seen, so add such cases"),
    ],
)
def test_what_was_never_seen_is_asked_for_by_number(counts, needs):
    """No share is known of it, so no number of cases would say when it comes."""
    assert decide_gate(evidence(*counts), POINT).needs == needs


def test_limits_take_a_case_once_however_often_it_was_asked():
    """The same answers in three draws leave every limit where one draw has it."""
    once = with_kappa(evidence(90, 6, 4, 200), Estimate(0.8, 0.6, 0.9))
    thrice = with_kappa(evidence(270, 18, 12, 600), Estimate(0.8, 0.6, 0.9))
    thrice = replace(thrice, draws=3)
    limits = {
        "accuracy": (290, 300),
        "sensitivity_floor": (90, 94),
    }
    for name, (right, n) in limits.items():
        low = lower_limit(right, n, confidence=0.95)
        high = clopper_pearson(right, n, confidence=0.95).high
        for value in (low - 1e-6, low + 1e-6, high - 1e-6, high + 1e-6):
            rules = ruled(**{name: value})
            assert decide_gate(thrice, rules) == decide_gate(once, rules), (name, value)


@pytest.mark.parametrize(
    ("tp", "fn", "verdict", "told"),
    [
        (15, 5, "INSUFFICIENT", "more cases alone will not do: the observed sens"),
        (10, 10, "FAIL", "sensitivity is below 0.8 (upper limit 0.728)"),
    ],
)
def test_an_observed_sensitivity_below_the_floor_needs_no_cases(tp, fn, verdict, told):
    """15 of 20 may still be 0.8; 10 of 20 is shown to be less, 0.272 to 0.728."""
    gate = decide_gate(evidence(tp, 0, fn, 280), ruled(sensitivity_floor=0.8))
    assert gate.verdict.value == verdict
    assert told in " ".join((*gate.reasons, gate.needs))


@pytest.mark.parametrize(
    ("kappa", "verdict"), [(0.8, "PASS"), (nextafter(0.8, 0), "FAIL")]
)
def test_an_observed_kappa_exactly_at_its_threshold_passes(kappa, verdict):
    """By the point rule its limits decide nothing, however wide they are."""
    found = with_kappa(evidence(60, 0, 0, 240), Estimate(kappa, None, None))
    gate = decide_gate(found, POINT)
    assert gate.verdict.value == verdict


@pytest.mark.parametrize(
    ("negatives", "draws", "verdict"),
    [
        (28, 1, "FAIL"),
        (27, 1, "INSUFFICIENT"),
        (57, 2, "FAIL"),
        (56, 2, "INSUFFICIENT"),
    ],
)
def test_hedges_of_negatives_fail_a_label_from_the_least_cases_on(
    negatives, draws, verdict
):
    """One more negative is hedged: 59 cases in each draw are judged, fewer are few."""
    found = evidence(30 * draws, 0, 0, negatives)
    found = replace(found, hedges=Hedges(negatives=1), draws=draws)
    rules = Protocol(uncertain_answers="excluded", max_uncertain=0.001)
    assert decide_gate(found, rules).verdict.value == verdict


def test_a_label_without_a_usable_reference_says_so():
    """No share of unanswered cases is taken of nothing."""
    (reason,) = decide_gate(evidence(0, 0, 0, 0), POINT).reasons
    assert reason == "no case has a usable reference label"


def test_more_positives_are_counted_as_cases_at_their_prevalence():
    """Each positive that sensitivity lacks takes 300 / 14 cases."""
    gate = decide_gate(evidence(13, 0, 1, 286), ruled(sensitivity_floor=0.8))
    told = re.fullmatch(r"needs about (\d+) more cases \((\d+) positives\)", gate.needs)
    cases, positives = map(int, told.groups())
    assert positives > 0 and cases == ceil(positives * 300 / 14)


def test_a_label_without_a_judge_is_not_comparable_whatever_was_counted():
    """The reason is all that is said of it."""
    found = replace(evidence(60, 0, 0, 240), not_comparable="nobody read it")
    assert decide_gate(found, POINT) == Gate(
        verdict=GateVerdict.NOT_COMPARABLE,
        reasons=("the reference cannot judge it: nobody read it",),
    )


def test_too_many_uncertain_answers_are_said_of_cases_and_of_positives():
    """15 of 115 decided cases and 5 of 45 positives; 10 % of either are allowed."""
    rules = Protocol(uncertain_answers="excluded", max_uncertain=0.1)
    found = replace(evidence(40, 0, 0, 60), hedges=Hedges(5, 10))
    assert decide_gate(found, rules) == Gate(
        verdict=GateVerdict.FAIL,
        reasons=(
            "15 of 115 decided cases are answered uncertain (at most 10 % allowed)",
            "5 of 45 positives are answered uncertain (at most 10 % allowed)",
        ),
    )
    at_most = replace(evidence(45, 0, 0, 54), hedges=Hedges(5, 6))
    assert decide_gate(at_most, rules).verdict is GateVerdict.PASS
    # A protocol that never said what they count as has no limit to them.
    assert decide_gate(found, Protocol()).verdict is GateVerdict.PASS


def test_what_lacks_evidence_is_told_share_by_share():
    """Accuracy, kappa and sensitivity: each with its limit, and what it needs."""
    found = with_kappa(evidence(17, 8, 1, 274), Estimate(0.85, 0.5, 0.95))
    gate = decide_gate(found, LOWER)
    low = lower_limit(291, 300, confidence=0.95)
    least = lower_limit(17, 18, confidence=0.95)
    assert gate.verdict is GateVerdict.INSUFFICIENT
    assert gate.reasons == (
        f"accuracy: lower limit {low:.3f} does not reach 0.95",
        "kappa 0.850 with lower limit 0.500; wanted 0.8 with 0.6",
        f"sensitivity: lower limit {least:.3f} does not reach 0.8",
    )
    more = cases_needed(9, 300, threshold=0.95, confidence=0.95)
    misses = cases_needed(1, 18, threshold=0.8, confidence=0.95)
    assert gate.needs == "; ".join(
        f"needs about {cases} more cases ({positives} positives)"
        for cases, positives in (
            (more, round(more * 18 / 300)),
            # The distance of kappa to its limit shrinks with the root of the cases.
            (288, 17),
            (ceil(misses * 300 / 18), misses),
        )
    )


def test_what_a_failed_label_lacks_besides_is_not_asked_for():
    """More cases would not help; every reason is told all the same."""
    found = with_kappa(evidence(100, 30, 0, 170), Estimate(0.85, None, None))
    gate = decide_gate(found, LOWER)
    high = clopper_pearson(270, 300, confidence=0.95).high
    assert gate == Gate(
        verdict=GateVerdict.FAIL,
        reasons=(
            f"accuracy is below 0.95 (upper limit {high:.3f})",
            "kappa: its bootstrap interval is not estimable",
        ),
    )


def test_a_kappa_that_is_shown_to_be_low_fails():
    """Its whole interval is below the threshold."""
    found = with_kappa(evidence(60, 0, 0, 240), Estimate(0.7, 0.6, 0.79))
    assert decide_gate(found, LOWER) == Gate(
        verdict=GateVerdict.FAIL, reasons=("kappa is below 0.8 (upper limit 0.790)",)
    )


def test_a_kappa_without_a_value_says_why():
    """The same need of two shares is told once."""
    found = with_kappa(
        evidence(60, 0, 0, 240), Estimate(None, None, None, "not estimable: all alike")
    )
    assert decide_gate(found, POINT) == Gate(
        verdict=GateVerdict.INSUFFICIENT,
        reasons=("kappa not estimable: all alike",),
        needs="how many more cases it needs cannot be told",
    )
    few = PatientLimit(None, 2)
    both = replace(
        evidence(100, 0, 0, 200), accuracy_by_patient=few, sensitivity_by_patient=few
    )
    gate = decide_gate(both, LOWER)
    assert gate.needs == (
        "needs more patients; how many cannot be told from repeated cases"
    )
    assert [reason.split(":")[0] for reason in gate.reasons] == [
        "accuracy",
        "sensitivity",
    ]


def test_kappa_over_several_draws_counts_a_case_once():
    """(0.35 / 0.25)^2 - 1 of 300 cases, however often each was asked."""
    found = with_kappa(evidence(180, 0, 0, 720), Estimate(0.85, 0.5, 0.95))
    gate = decide_gate(replace(found, draws=3), LOWER)
    assert gate.needs == "needs about 288 more cases (58 positives)"


def test_a_value_that_no_seven_digits_tell_from_its_threshold_is_written_out():
    """Else it would read as reached."""
    assert show_below(0.95 - 1e-9, 0.95) == repr(0.95 - 1e-9)
    assert show_below(0.9499999, 0.95) == "0.9499999"
    assert show_below(0.94996, 0.95) == "0.94996"
