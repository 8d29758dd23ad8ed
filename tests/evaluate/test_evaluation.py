"""From outcomes to label results: every case is counted exactly once."""

from dataclasses import replace
from inspect import signature

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import f1_score

from loop.core.errors import DataError
from loop.core.records import Field, Outcome, Status, UncertainAnswers, ValueCode
from loop.evaluate.align import align
from loop.evaluate.ceiling import measure_ceiling
from loop.evaluate.compare import compare_inputs, compare_runs, measure_regression
from loop.evaluate.evaluation import evaluate_inputs, evaluate_run
from loop.evaluate.failures import find_failures
from loop.evaluate.flips import count_flips
from loop.evaluate.gates import GateVerdict
from loop.evaluate.matrix.matrix import build_matrix
from loop.evaluate.matrix.runs import read_matrix
from loop.evaluate.measure import resampling_units
from loop.evaluate.protocol import Protocol
from loop.evaluate.recording import counts_digest
from loop.evaluate.results import Exclusions, Method
from loop.evaluate.sampled import evaluate_sample
from loop.evaluate.tried import correct_optimism
from tests.evaluate.scenes import (
    TAXONOMY,
    inputs,
    outcome,
    random_run,
    reference,
    silent,
)

EDEMA = TAXONOMY.ids.index("edema")
NO_FINDING = TAXONOMY.ids.index("no_finding")


def result_of(evaluation, label):
    """Return one label of an evaluation."""
    return next(row for row in evaluation.labels if row.label == label)


def evaluate(outcomes, standard, **others):
    """Evaluate with few resamples."""
    return evaluate_inputs(inputs(outcomes, standard, **others), resamples=200)


def test_joined_by_case_id_not_by_row():
    """The same outcomes in reverse order give the same counts."""
    outcomes, standard = random_run(60)
    forward = evaluate(outcomes, standard)
    backward = evaluate(outcomes[::-1], standard)
    assert [row.confusion for row in forward.labels] == [
        row.confusion for row in backward.labels
    ]


def test_every_reason_for_exclusion_is_counted_apart():
    """One case per reason; none of them becomes a value."""
    codes = [
        ValueCode.PRESENT,
        ValueCode.ABSENT,
        ValueCode.NOT_CODED,
        ValueCode.UNCERTAIN,
        ValueCode.NO_MAJORITY,
        ValueCode.MISSING,
    ]
    rows = {f"r{code}": {"edema": code} for code in codes}
    rows |= {
        "u": {"edema": ValueCode.PRESENT},
        "x": {"edema": ValueCode.PRESENT},
        "f": {"edema": ValueCode.ABSENT},
    }
    outcomes = [outcome(case_id, {"edema": 1}) for case_id in list(rows)[:6]]
    outcomes += [outcome("u", {"edema": -1}), silent("x")]
    outcomes += [silent("f", Status.ENGINE_FAILED)]
    row = result_of(evaluate(outcomes, reference(rows)), "edema")
    assert row.confusion == (1, 2, 0, 0)
    assert row.not_coded == 1
    out = row.excluded
    assert (out.uncertain_reference, out.no_majority, out.missing) == (1, 1, 1)
    assert (out.uncertain_predicted, out.unparsed, out.failed) == (1, 1, 1)
    assert row.confusion.n + out.total == len(rows)


def test_a_label_the_prompt_does_not_ask_is_not_absent():
    """An answered case without the field is counted as not asked."""
    case = outcome("a", {})
    fields = {name: field for name, field in case.fields.items() if name != "edema"}
    evaluation = evaluate([replace(case, fields=fields)], reference({"a": {}}))
    row = result_of(evaluation, "edema")
    assert row.confusion.n == 0
    assert row.excluded.not_asked == 1
    assert "not asked for: the prompt version lacks it" in row.gate.reasons[0]


def test_no_finding_is_derived_and_never_guessed():
    """All absent: present. One present: absent. One missing: as the outcome ended."""
    full, one = outcome("a", {}), outcome("b", {"edema": 1})
    part = Outcome(
        item_id="c",
        status=Status.UNPARSED,
        fields={"edema": Field("absent")},
    )
    standard = reference({"a": {}, "b": {}, "c": {}})
    pairs = align([full, one, part], standard, TAXONOMY)
    assert pairs.predicted[:, NO_FINDING].tolist() == [
        ValueCode.PRESENT,
        ValueCode.ABSENT,
        ValueCode.UNPARSED,
    ]
    assert pairs.predicted[2, EDEMA] == ValueCode.ABSENT


def test_cases_missing_on_either_side_are_counted():
    """A case without reference is missing; a reference without case is not run."""
    standard = reference({"a": {}, "b": {}, "c": {}})
    evaluation = evaluate([outcome("a", {}), outcome("z", {})], standard)
    assert evaluation.not_run == 2
    assert result_of(evaluation, "edema").excluded.missing == 1
    assert any("2 cases of the cohort" in text for text in evaluation.notes)


def test_a_reference_without_a_label_leaves_it_missing():
    """A cohort with one coded label does not make the others absent."""
    standard = reference({"a": {"edema": 1}}, labels=["edema"])
    evaluation = evaluate([outcome("a", {"edema": 1})], standard)
    assert result_of(evaluation, "edema").confusion == (1, 0, 0, 0)
    assert result_of(evaluation, "fracture").excluded.missing == 1


def test_a_label_that_came_later_is_unknown_and_said_so():
    """Not one answer on it is held against a mark that nobody gave."""
    standard = reference({"a": {"edema": 1}, "b": {}}, ["edema", "fracture"])
    outcomes = [outcome("a", {"edema": 1, "lung_lesion": 1}), outcome("b", {})]
    result = evaluate(outcomes, standard)
    lesion = result_of(result, "lung_lesion")
    assert (lesion.confusion.n, lesion.excluded.missing) == (0, 2)
    assert lesion.gate.verdict is GateVerdict.INSUFFICIENT
    assert lesion.gate.reasons == ("no case has a usable reference label",)
    noted = [note for note in result.notes if "says nothing of" in note]
    assert len(noted) == 1
    assert "Lung Lesion" in noted[0]
    assert "Fracture" not in noted[0]
    whole = evaluate(outcomes, reference({"a": {"edema": 1}, "b": {}}))
    assert not [note for note in whole.notes if "says nothing of" in note]
    assert [*find_failures(iter(outcomes), standard, TAXONOMY)] == []


def test_columns_of_labels_that_are_gone_are_named():
    """After a change of name, marks lie under the old one and count for nothing."""
    standard = reference({"a": {}}, ["edema", "hydrops"])
    given = replace(inputs([outcome("a", {})], standard), not_labels=("hydrops",))
    notes = evaluate_inputs(given, resamples=20).notes
    assert [note for note in notes if note.startswith("Not scored: hydrops.")]


def test_averages_agree_with_scikit_learn():
    """Macro and micro F1 over decided pairs, labels without positives left out."""
    outcomes, standard = random_run(200)
    evaluation = evaluate(outcomes, standard)
    given_inputs = inputs(outcomes, standard)
    truth = given_inputs.pairs.binary_reference
    answer = given_inputs.pairs.answers_as(UncertainAnswers.EXCLUDED)
    scores, all_truth, all_answers = [], [], []
    for column in range(truth.shape[1]):
        both = (truth[:, column] >= 0) & (answer[:, column] >= 0)
        left, right = truth[both, column], answer[both, column]
        all_truth.append(left)
        all_answers.append(right)
        if left.any() or right.any():
            scores.append(f1_score(left, right, zero_division=0))
    assert evaluation.macro.labels == len(scores)
    assert evaluation.macro.score.estimate == pytest.approx(np.mean(scores))
    assert evaluation.micro.score.estimate == pytest.approx(
        f1_score(np.concatenate(all_truth), np.concatenate(all_answers))
    )


def test_hedging_every_hard_case_shows_in_the_other_readings():
    """Errors turned into "uncertain" pass the gate, and the evaluation says so."""
    rows = {f"c{i}": {"edema": int(i < 60)} for i in range(300)}
    answers = {case: {"edema": row["edema"]} for case, row in rows.items()}
    for i in range(30):
        answers[f"c{i}"] = {"edema": -1}
    outcomes = [outcome(case, row) for case, row in answers.items()]
    evaluation = evaluate(outcomes, reference(rows))
    row = result_of(evaluation, "edema")
    assert row.gate.verdict is GateVerdict.PASS
    assert row.hedges == (30, 0)
    assert evaluation.resting == (row.name,)
    assert any("only because uncertain" in text for text in evaluation.notes)
    excluded, wrong, absent, present = evaluation.views
    assert {one.scored for one in (wrong, absent, present)} == {excluded.scored + 30}
    assert wrong.macro_f1 == absent.macro_f1 < excluded.macro_f1
    assert wrong.passed == excluded.passed - 1


def test_a_case_without_patient_is_a_unit_of_its_own():
    """One unknown patient does not make the other cases independent."""
    outcomes, standard = random_run(40)
    known = [f"p{i // 2}" for i in range(40)]

    def method(patients):
        found = evaluate(outcomes, standard, patients=patients).method
        return found.unit, found.units, found.known

    assert method(known) == ("patient", 20, 40)
    assert method(["", "", *known[2:]]) == ("patient", 21, 38)
    assert method([""] * 40) == ("case", 40, 0)


def test_units_are_numbered_as_they_first_appear():
    """Pseudonyms differ between workspaces; an interval must not."""
    found = resampling_units(["b", "", "a", "b", "", "a"])
    assert found.units.tolist() == [0, 1, 2, 0, 3, 2]
    assert (found.unit, found.total, found.known) == ("patient", 4, 4)
    empty = resampling_units([])
    assert (empty.unit, empty.total, empty.known) == ("case", 0, 0)


LOWER = Protocol(rule="lower", min_positives=14)


def repeated(n_patients, each, wrong=()):
    """Return a run over patients with `each` equal cases; `wrong` patients are missed.

    Every second patient has edema.
    """
    rows, outcomes, patients = {}, [], []
    for patient in range(n_patients):
        for number in range(each):
            case_id = f"p{patient}-{number}"
            truth = patient % 2
            rows[case_id] = {"edema": truth}
            answer = 1 - truth if patient in wrong else truth
            outcomes.append(outcome(case_id, {"edema": answer}))
            patients.append(f"patient {patient}")
    return outcomes, reference(rows), patients


def edema_gate(n_patients, each, wrong=(), protocol=LOWER, *, known=True):
    """Return the gate of edema and the evaluation."""
    outcomes, standard, patients = repeated(n_patients, each, wrong)
    if not known:
        patients = [""] * len(patients)
    evaluation = evaluate(outcomes, standard, patients=patients, protocol=protocol)
    return result_of(evaluation, "edema").gate, evaluation


def test_copies_of_few_patients_certify_nothing():
    """Ten patients thirty times are not 300 cases, however right they all are."""
    assert edema_gate(10, 30, known=False)[0].verdict is GateVerdict.PASS
    gate, evaluation = edema_gate(10, 30)
    assert gate.verdict is GateVerdict.INSUFFICIENT
    # With no error the limit over ten patients is 0.05 to the power 1/10.
    assert "accuracy: lower limit 0.741 over 10 patients" in gate.reasons[0]
    assert any("sensitivity" in text and "5 patients" in text for text in gate.reasons)
    assert "needs more patients" in gate.needs
    (note,) = [one for one in evaluation.notes if "300 cases are of 10 patients" in one]
    assert "gates also ask for the limit from resampling patients" in note


def test_errors_in_one_patient_widen_the_limit():
    """Eight errors of 300 certify 0.95 as cases, not as one patient of 38."""
    assert edema_gate(38, 8, {0}, known=False)[0].verdict is GateVerdict.PASS
    gate, _ = edema_gate(38, 8, {0})
    assert gate.verdict is GateVerdict.INSUFFICIENT
    assert "over 38 patients does not reach 0.95" in gate.reasons[0]


def test_many_patients_with_two_cases_each_still_pass():
    """200 patients without an error are enough by themselves."""
    assert edema_gate(200, 2)[0].verdict is GateVerdict.PASS


def test_patients_that_do_not_repeat_change_nothing():
    """With one case each, patients are cases, and no note is needed."""
    gate, evaluation = edema_gate(300, 1)
    assert gate == edema_gate(300, 1, known=False)[0]
    assert not any("Patients repeat" in text for text in evaluation.notes)


def test_the_point_rule_says_that_intervals_assume_independence():
    """The observed value stands; its interval is too narrow, and that is said."""
    gate, evaluation = edema_gate(10, 30, protocol=Protocol())
    assert gate.verdict is GateVerdict.PASS
    (note,) = [one for one in evaluation.notes if "assume independent cases" in one]
    assert note.endswith("so they are too narrow.")


def full_run(n=210):
    """Return a perfect run in which every label has enough positives."""
    rows = {
        f"c{i}": {label: int((i + k) % 7 == 0) for k, label in enumerate(TAXONOMY.ids)}
        for i in range(n)
    }
    for row in rows.values():
        row["no_finding"] = 0
    rows |= {f"n{i}": {"no_finding": 1} for i in range(20)}
    outcomes = [
        outcome(case, {k: v for k, v in row.items() if k != "no_finding"})
        for case, row in rows.items()
    ]
    return outcomes, reference(rows)


@pytest.mark.parametrize("in_reference", [True, False])
def test_a_limited_run_never_passes(in_reference):
    """All labels pass on the cases that were run; the others may be the hard ones."""
    outcomes, standard = full_run()
    if in_reference:
        found = evaluate(outcomes[1:], standard)
    else:
        found = evaluate(outcomes, standard, cases=len(outcomes) + 1)
    assert found.count(GateVerdict.PASS) == 21
    assert (found.verdict, found.not_run) == (GateVerdict.INSUFFICIENT, 1)
    assert found.notes[0].startswith("Not all cases were run")


def test_a_limited_run_can_still_fail():
    """What failed on some of the cases is not saved by leaving out others."""
    wrong = [outcome(one.item_id, {}) for one in full_run()[0][1:]]
    assert evaluate(wrong, full_run()[1]).verdict is GateVerdict.FAIL


@pytest.mark.parametrize("code", [ValueCode.NOT_CODED, ValueCode.ABSENT])
def test_coding_is_noted_only_where_the_reference_holds_it(code):
    """Readers' votes on a coded cohort make a reference without that weakness."""
    standard = reference({"a": {"edema": code}, "b": {"edema": 1}})
    found = evaluate([outcome("a", {}), outcome("b", {"edema": 1})], standard)
    assert any("comes from coding" in text for text in found.notes) is (
        code == ValueCode.NOT_CODED
    )


def test_the_counts_digest_tells_runs_apart():
    """A limited run, and one other answer, give another digest; order does not."""
    outcomes, standard = random_run(40)
    full = counts_digest(evaluate(outcomes, standard))
    assert counts_digest(evaluate(outcomes[::-1], standard)) == full
    assert counts_digest(evaluate(outcomes[:-1], standard)) != full
    hedged = [*outcomes[:-1], outcome(outcomes[-1].item_id, {"edema": -1})]
    assert counts_digest(evaluate(hedged, standard)) != full


def test_an_empty_run_is_insufficient_not_an_error():
    """No case at all: no rate, no NaN, no pass."""
    evaluation = evaluate([], reference({"a": {}}))
    assert evaluation.verdict is GateVerdict.INSUFFICIENT
    assert evaluation.macro.score.estimate is None
    assert evaluation.views[0].macro_f1 is None


def test_a_perfect_run_passes_every_label():
    """Every label with enough positives, everything right: PASS overall."""
    evaluation = evaluate(*full_run())
    assert evaluation.verdict is GateVerdict.PASS
    assert evaluation.macro.score.estimate == 1.0


def test_two_outcomes_of_one_case_are_refused():
    """A duplicate would count a case twice."""
    with pytest.raises(DataError, match="case a has two outcomes"):
        align([outcome("a", {}), outcome("a", {})], reference({"a": {}}), TAXONOMY)


def test_answers_that_are_not_label_values_are_refused():
    """A judge's scores cannot be evaluated as labels."""
    judged = Outcome(item_id="a", status=Status.ANSWERED, fields={"edema": Field(4)})
    with pytest.raises(DataError, match="label_values"):
        align([judged], reference({"a": {}}), TAXONOMY)


def test_signature_names_every_convention():
    """Two numbers may be compared only if their signatures agree."""
    outcomes, standard = random_run(30)
    signature = evaluate(outcomes, standard).signature
    for part in ("extractor@v1:3f2a1b", "rules", "made_up:ref1", "unc:excl", "n:30"):
        assert part in signature.split("|")


CODES = st.sampled_from(
    [
        ValueCode.PRESENT,
        ValueCode.ABSENT,
        ValueCode.UNCERTAIN,
        ValueCode.NO_MAJORITY,
        ValueCode.MISSING,
        ValueCode.NOT_CODED,
    ]
)
ENDS = st.sampled_from(["present", "absent", "uncertain", "silent", "failed"])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(CODES, ENDS), max_size=30))
def test_scored_and_excluded_always_add_up(cases):
    """Whatever a run and a reference hold, no case is lost or counted twice."""
    outcomes, rows = [], {}
    for number, (code, end) in enumerate(cases):
        case_id = f"c{number}"
        rows[case_id] = {"edema": code}
        if end in ("silent", "failed"):
            status = Status.UNPARSED if end == "silent" else Status.ENGINE_FAILED
            outcomes.append(silent(case_id, status))
        else:
            word = {"present": 1, "absent": 0, "uncertain": -1}[end]
            outcomes.append(outcome(case_id, {"edema": word}))
    evaluation = evaluate_inputs(inputs(outcomes, reference(rows)), resamples=5)
    for row in evaluation.labels:
        assert row.confusion.n + row.excluded.total == len(cases)


def test_a_label_that_the_reference_cannot_judge_is_named_with_the_reason():
    """Whoever reads its numbers knows that they are not the prompt's."""
    outcomes, standard = random_run(40)
    read = inputs(outcomes, standard)
    told = replace(read, not_comparable={"no_finding": "scoliosis is coded normal"})
    notes = evaluate_inputs(told, resamples=100).notes
    said = "cannot judge No Finding (scoliosis is coded normal)"
    assert [one for one in notes if said in one]
    before = evaluate_inputs(read, resamples=100).notes
    assert not [one for one in before if "cannot judge" in one]


def counted_by_hand(policy=None):
    """Return a run of one label: 8 TP, 2 FP, 1 FN and 50 TN, and every kind of gap."""
    ends = [
        *[(1, 1)] * 8,
        *[(0, 1)] * 2,
        (1, 0),
        *[(0, 0)] * 49,
        (ValueCode.NOT_CODED, 0),
        *[(1, -1)] * 3,
        (0, -1),
        *[(ValueCode.UNCERTAIN, 1)] * 4,
        *[(ValueCode.UNCERTAIN, 0)] * 3,
        *[(ValueCode.UNCERTAIN, -1)] * 2,
        (ValueCode.UNCERTAIN, None),
        *[(ValueCode.NO_MAJORITY, 1)] * 2,
        (ValueCode.MISSING, 1),
        (1, None),
        (0, None),
    ]
    rows, outcomes = {}, []
    for number, (truth, answer) in enumerate(ends):
        case_id = f"c{number}"
        rows[case_id] = {"edema": truth}
        status = Status.ENGINE_FAILED if number == len(ends) - 1 else Status.UNPARSED
        outcomes.append(
            silent(case_id, status)
            if answer is None
            else outcome(case_id, {"edema": answer})
        )
    protocol = Protocol(uncertain_answers=policy) if policy else Protocol()
    return inputs(outcomes, reference(rows, ["edema"]), protocol=protocol)


@pytest.mark.parametrize(
    ("policy", "counts", "out"),
    [
        (None, (8, 2, 1, 50), 4),
        ("excluded", (8, 2, 1, 50), 4),
        ("wrong", (8, 3, 4, 50), 0),
        ("absent", (8, 2, 4, 51), 0),
        ("present", (11, 3, 1, 50), 0),
    ],
)
def test_one_label_is_counted_by_hand_under_every_policy(policy, counts, out):
    """3 positives and 1 negative are answered uncertain; nothing else depends on it."""
    given = counted_by_hand(policy)
    found = evaluate_inputs(given, resamples=50)
    (row,) = (one for one in found.labels if one.label == "edema")
    n = sum(counts)
    assert row.confusion == counts
    assert row.excluded == Exclusions(
        uncertain_reference=10,
        no_majority=2,
        missing=1,
        uncertain_predicted=out,
        unparsed=1,
        failed=1,
        not_asked=0,
    )
    assert (row.excluded.by_reference, row.excluded.by_answer) == (13, 2 + out)
    assert n + row.excluded.total == len(given.pairs.case_ids)
    assert row.hedges == (3, 1) and row.hedges.total == 4
    assert row.open_answers == (4, 3, 2, 1)
    assert (row.not_coded, row.draws, row.flips) == (1, 1, None)
    exact = binomtest(counts[0] + counts[3], n).proportion_ci(0.95, "exact")
    assert list(row.accuracy) == pytest.approx([exact.low, exact.high])
    assert row.gate.verdict is GateVerdict.INSUFFICIENT
    assert row.gate.reasons == (
        "2 of 67 cases have no readable answer (at most 1 % allowed)",
    )
    assert row.gate.needs == (
        "run the same command with --again unparsed, or look at these cases"
    )
    assert dict(found.statuses) == {
        Status.ANSWERED: len(given.pairs.case_ids) - 3,
        Status.UNPARSED: 2,
        Status.ENGINE_FAILED: 1,
    }
    assert found.macro.labels == found.micro.labels == 1
    tp, fp, fn, _ = counts
    f1 = 2 * tp / (2 * tp + fp + fn)
    assert found.macro.score.estimate == pytest.approx(f1)
    assert found.micro.score.estimate == pytest.approx(f1)
    assert found.notes[-1] == (
        "3 of 80 cases have no readable answer. They are left out and counted, never "
        "read as absent."
    )


def test_every_policy_gives_its_own_view_of_one_label():
    """F1, mean accuracy and scored pairs by hand; the protocol's own comes first."""
    found = evaluate_inputs(counted_by_hand("absent"), resamples=50)
    by_hand = {
        UncertainAnswers.ABSENT: (8, 2, 4, 51),
        UncertainAnswers.WRONG: (8, 3, 4, 50),
        UncertainAnswers.PRESENT: (11, 3, 1, 50),
        UncertainAnswers.EXCLUDED: (8, 2, 1, 50),
    }
    assert found.views[0].policy is UncertainAnswers.ABSENT
    assert {one.policy for one in found.views} == set(by_hand)
    for view in found.views:
        tp, fp, fn, tn = by_hand[view.policy]
        f1 = 2 * tp / (2 * tp + fp + fn)
        assert view.macro_f1 == pytest.approx(f1), view.policy
        assert view.micro_f1 == pytest.approx(f1), view.policy
        assert view.accuracy == pytest.approx((tp + tn) / (tp + fp + fn + tn))
        assert view.scored == tp + fp + fn + tn
        assert view.passed == 0
    assert found.resting == ()


def test_views_leave_out_what_the_reference_cannot_judge():
    """Its verdict is shown, and none of its pairs is counted."""
    rows = {f"c{i}": {"edema": int(i < 20), "fracture": 1} for i in range(60)}
    answers = {case: {"edema": row["edema"]} for case, row in rows.items()}
    answers["c0"] = {"edema": -1}
    outcomes = [outcome(case, row) for case, row in answers.items()]
    given = inputs(
        outcomes,
        reference(rows, ["edema", "fracture"]),
        protocol=Protocol(uncertain_answers="wrong"),
    )
    given = replace(given, not_comparable={"fracture": "nobody read it"})
    found = evaluate_inputs(given, resamples=50)
    scored = [(one.policy.value, one.scored, one.accuracy) for one in found.views]
    assert dict((name, n) for name, n, _ in scored) == {
        "wrong": 60,
        "absent": 60,
        "present": 60,
        "excluded": 59,
    }
    assert dict((name, share) for name, _, share in scored) == {
        "wrong": 59 / 60,
        "absent": 59 / 60,
        "present": 1.0,
        "excluded": 1.0,
    }
    at = given.pairs.labels.index("fracture")
    for view in found.views:
        assert view.verdicts[at] is GateVerdict.NOT_COMPARABLE
    assert [one.label for one in found.not_comparable] == ["fracture"]
    assert "without:fracture" in found.signature.split("|")
    assert found.macro.labels == 1


def test_supported_labels_are_those_with_the_least_positives():
    """Exactly as many are enough, one less is not; a label without any is in none."""
    rows = {
        f"c{i}": {"edema": int(i < 10), "fracture": int(i < 9), "lung_lesion": 0}
        for i in range(60)
    }
    answers = {case: dict(row) for case, row in rows.items()}
    for case in ("c0", "c1"):
        answers[case] = {"edema": 0, "fracture": 0, "lung_lesion": 1}
    outcomes = [outcome(case, row) for case, row in answers.items()]
    names = ["edema", "fracture", "lung_lesion"]
    found = evaluate(outcomes, reference(rows, names))
    f1 = {"edema": 16 / 18, "fracture": 14 / 16, "lung_lesion": 0.0}
    assert found.macro.score.estimate == pytest.approx(sum(f1.values()) / 3)
    assert found.supported.score.estimate == pytest.approx(f1["edema"])
    assert found.micro.score.estimate == pytest.approx(30 / (30 + 2 + 4))
    assert [one.labels for one in (found.macro, found.supported, found.micro)] == [
        3, 1, 3,
    ]  # fmt: skip
    assert [one.name for one in (found.macro, found.supported, found.micro)] == [
        "macro-F1",
        "macro-F1, supported labels",
        "micro-F1",
    ]


WEIGHTS = {"model": "m", "server": {"weights": "sha256:1"}}
NAME_ONLY = (
    "The engine names its model and not the weights: nothing but a changed answer "
    "would show that others took their place."
)


@pytest.mark.parametrize(
    ("identity", "notes"),
    [
        ({"engine": "rules"}, []),
        (WEIGHTS, []),
        (WEIGHTS | {"constrained": True}, []),
        ({"model": "m"}, [NAME_ONLY]),
        ({"model": "m", "server": {"url": "u"}}, [NAME_ONLY]),
        ({"model": "m", "server": {"weights": ""}}, [NAME_ONLY]),
        ({"model": "m", "server": "u"}, [NAME_ONLY]),
        (
            WEIGHTS | {"constrained": False},
            [
                "The server did not enforce the JSON schema: the tolerant parser read "
                "the answers, and may have repaired them."
            ],
        ),
        (
            {"source": {"engine": "rules"}, "run": "earlier"},
            ["The answers were given to run earlier and were replayed."],
        ),
        ("unreadable", []),
    ],
)
def test_what_the_engine_tells_of_itself_is_noted(identity, notes):
    """Nothing is said of an engine that names its weights and keeps to the schema."""
    given = inputs(*full_run(), protocol=LOWER, role="check")
    run = replace(given.run, manifest={"engine_identity": identity})
    found = evaluate_inputs(replace(given, run=run), resamples=20)
    assert list(found.notes) == notes


def test_all_caveats_come_in_the_order_of_their_weight():
    """Each of them once, and whole."""
    outcomes, standard = full_run(60)
    outcomes[0] = silent(outcomes[0].item_id)
    labels = [*TAXONOMY.ids[:-1], "hydrops"]
    last = TAXONOMY.find(TAXONOMY.ids[-1]).name
    rows = {
        case: dict(zip(standard.labels, map(int, marks), strict=True))
        for case, marks in zip(standard.case_ids, standard.marks, strict=True)
    }
    given = inputs(
        outcomes,
        reference(rows, labels),
        cases=len(outcomes) + 2,
        patients=["p", "p", *[""] * (len(outcomes) - 2)],
    )
    given = replace(
        given,
        not_comparable={"edema": "nobody read it", "fracture": "coded otherwise"},
        not_labels=("hydrops",),
        protocol_changed=True,
        further=(given.pairs,),
        runs=("a", "b"),
    )
    found = evaluate_inputs(given, resamples=20)
    assert found.notes == (
        "Not all cases were run: this run lacks 2 cases of the cohort, so it cannot "
        "pass.",
        "Point rule: observed values are held against the thresholds. This is not a "
        "certification.",
        "Patients repeat: 80 cases are of 79 patients. Exact intervals assume "
        "independent cases, so they are too narrow.",
        "Development cohort: prompts are revised on these cases, so these numbers are "
        "optimistic.",
        "The reference cannot judge Edema (nobody read it); Fracture (coded "
        "otherwise). Shown, and in no gate, average or claim.",
        f"The reference says nothing of {last}: unknown in every case, never absent. A "
        "label that was added to the taxonomy later needs its own marks: import the "
        "cohort again with its column, or add readers' votes on it.",
        "Not scored: hydrops. The reference has these columns, and the taxonomy has no "
        "such labels. After a change of name, import the cohort again with the new "
        "one.",
        "The protocol was changed after the run began.",
        "Counts are of answers over all 2 draws, shares are means over them; an exact "
        "interval takes the mean of a case as one answer, the bootstrap resamples "
        "patients and draws.",
        "2 of 160 answers cannot be read. They are left out and counted, never read as "
        "absent.",
    )
    nothing = replace(given, not_comparable=dict.fromkeys(TAXONOMY.ids, "unread"))
    assert (
        "The reference can judge no label at all, so nothing passes and nothing is "
        "claimed."
    ) in evaluate_inputs(nothing, resamples=20).notes


def test_the_signature_is_whole():
    """Part by part, in this order; what does not apply is not in it."""
    outcomes, standard = random_run(30)
    given = inputs(outcomes, standard)
    plain = evaluate_inputs(given, resamples=20)
    base = "acc+f1|extractor@v1:3f2a1b|rules|made_up:ref1|unc:excl|nc:absent"
    assert plain.signature == (
        f"{base}|nf:{plain.policy}|zd:skip|L:{plain.macro.labels}|n:30"
    )
    full = replace(
        given,
        not_comparable={"no_finding": "a", "edema": "b"},
        further=(given.pairs, given.pairs),
        runs=("a", "b", "c"),
    )
    found = evaluate_inputs(full, resamples=20)
    assert found.signature == (
        f"{base}|nf:{plain.policy}|zd:skip|without:edema,no_finding|"
        f"L:{found.macro.labels}|n:30|draws:3"
    )
    assert replace(plain, policy="").signature == (
        f"{base}|zd:skip|L:{plain.macro.labels}|n:30"
    )


@pytest.mark.parametrize(
    ("registered", "changed", "late"),
    [
        ("2026-01-05T09:00:00Z", False, False),
        ("2026-01-05T09:00:01Z", False, True),
        ("2026-01-05T08:59:59Z", False, False),
        ("2026-01-05T08:59:59Z", True, True),
        ("", False, True),
    ],
)
def test_a_claim_is_early_until_the_second_that_the_run_began(
    registered, changed, late
):
    """Fractions of a second in the run's time do not count."""
    plain = evaluate(*random_run(10))
    run = replace(plain.run, created="2026-01-05T09:00:00.250000Z")
    found = replace(plain, run=run, registered=registered, protocol_changed=changed)
    assert found.registered_late is late


@pytest.mark.parametrize(
    ("manifest", "limit"),
    [
        ({}, None),
        ({"spec": "gone"}, None),
        ({"spec": {}}, None),
        ({"spec": {"limit": None}}, None),
        ({"spec": {"limit": "5"}}, None),
        ({"spec": {"limit": 5}}, 5),
    ],
)
def test_a_limit_is_read_from_the_manifest(manifest, limit):
    """None where it has none, or none that can be meant."""
    run = replace(inputs(*random_run(10)).run, manifest=manifest)
    assert run.limit == limit


@pytest.mark.parametrize(
    ("measure", "usual"),
    [
        (evaluate_run, {"resamples": 2000, "seed": 0}),
        (evaluate_inputs, {"resamples": 2000, "seed": 0}),
        (evaluate_sample, {"resamples": 2000, "seed": 0}),
        (compare_runs, {"resamples": 2000, "seed": 0}),
        (compare_inputs, {"resamples": 2000, "seed": 0}),
        (build_matrix, {"resamples": 2000, "seed": 0}),
        (read_matrix, {"resamples": 2000, "seed": 0}),
        (Method, {"resamples": 2000, "seed": 0}),
        (correct_optimism, {"resamples": 500, "seed": 0}),
        (measure_ceiling, {"resamples": 1000, "seed": 0}),
        (measure_regression, {"confidence": 0.95}),
        (count_flips, {"confidence": 0.95}),
    ],
)
def test_limits_are_resampled_alike_wherever_nobody_says_how(measure, usual):
    """A page, a script and the command line show the same limits of one run."""
    taken = signature(measure).parameters
    assert {name: taken[name].default for name in usual} == usual


def test_a_single_case_without_an_answer_is_told():
    """And none where every case has one."""
    outcomes, standard = random_run(60)
    answered = [one for one in outcomes if one.status is Status.ANSWERED]
    said = "have no readable answer. They are left out and counted, never read as"
    assert not [note for note in evaluate(answered, standard).notes if said in note]
    lost = evaluate([silent(answered[0].item_id), *answered[1:]], standard)
    (note,) = [note for note in lost.notes if said in note]
    assert note.startswith(f"1 of {len(answered)} cases ")
