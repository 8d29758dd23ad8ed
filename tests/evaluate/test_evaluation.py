"""From outcomes to label results: every case is counted exactly once."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from loop.core.errors import DataError
from loop.core.records import Field, Outcome, Status, UncertainAnswers, ValueCode
from loop.evaluate.align import align
from loop.evaluate.evaluation import evaluate_inputs
from loop.evaluate.failures import find_failures
from loop.evaluate.gates import GateVerdict
from loop.evaluate.measure import resampling_units
from loop.evaluate.protocol import Protocol
from loop.evaluate.recording import counts_digest
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
