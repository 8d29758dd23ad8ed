"""From outcomes to label results: every case is counted exactly once."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from loop.core.errors import DataError
from loop.core.records import Field, Outcome, Status
from loop.evaluate.evaluation import evaluate_inputs
from loop.evaluate.gates import Verdict
from loop.evaluate.pairs import Answer, align
from loop.labels.reference import (
    ABSENT,
    MISSING,
    NO_MAJORITY,
    NOT_CODED,
    PRESENT,
    UNCERTAIN,
)
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
    codes = [PRESENT, ABSENT, NOT_CODED, UNCERTAIN, NO_MAJORITY, MISSING]
    rows = {f"r{code}": {"edema": code} for code in codes}
    rows |= {"u": {"edema": PRESENT}, "x": {"edema": PRESENT}, "f": {"edema": ABSENT}}
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
    assert "does not ask" in row.gate.reasons[0]


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
        Answer.PRESENT,
        Answer.ABSENT,
        Answer.UNPARSED,
    ]
    assert pairs.predicted[2, EDEMA] == Answer.ABSENT


def test_cases_missing_on_either_side_are_counted():
    """A case without reference is missing; a reference without case is not run."""
    standard = reference({"a": {}, "b": {}, "c": {}})
    evaluation = evaluate([outcome("a", {}), outcome("z", {})], standard)
    assert evaluation.not_run == 2
    assert result_of(evaluation, "edema").excluded.missing == 1
    assert any("2 cases of the reference" in text for text in evaluation.notes)


def test_a_reference_without_a_label_leaves_it_missing():
    """A cohort with one coded label does not make the others absent."""
    standard = reference({"a": {"edema": 1}}, labels=["edema"])
    evaluation = evaluate([outcome("a", {"edema": 1})], standard)
    assert result_of(evaluation, "edema").confusion == (1, 0, 0, 0)
    assert result_of(evaluation, "fracture").excluded.missing == 1


def test_averages_agree_with_scikit_learn():
    """Macro and micro F1 over decided pairs, labels without positives left out."""
    outcomes, standard = random_run(200)
    evaluation = evaluate(outcomes, standard)
    given_inputs = inputs(outcomes, standard)
    truth = given_inputs.pairs.binary_reference
    answer = given_inputs.pairs.binary_predicted
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
    assert row.gate.verdict is Verdict.PASS
    assert row.as_absent.fn == 30
    assert row.rests_on_uncertain(0.95)
    assert any("only because uncertain" in text for text in evaluation.notes)
    excluded, absent, present = evaluation.views
    # 30 for the label itself, 30 for "No Finding" derived from it.
    assert (absent.scored, present.scored) == (excluded.scored + 60,) * 2
    assert absent.macro_f1 < excluded.macro_f1


def test_patients_are_resampled_only_if_all_are_known():
    """One case without patient makes the unit a case, and the document says so."""
    outcomes, standard = random_run(40)
    known = [f"p{i // 2}" for i in range(40)]
    by_patient = evaluate(outcomes, standard, patients=known)
    by_case = evaluate(outcomes, standard, patients=[*known[:-1], ""])
    assert (by_patient.method.unit, by_patient.method.units) == ("patient", 20)
    assert (by_case.method.unit, by_case.method.units) == ("case", 40)


def test_an_empty_run_is_insufficient_not_an_error():
    """No case at all: no rate, no NaN, no pass."""
    evaluation = evaluate([], reference({"a": {}}))
    assert evaluation.verdict is Verdict.INSUFFICIENT
    assert evaluation.macro.score.estimate is None
    assert evaluation.views[0].macro_f1 is None


def test_a_perfect_run_passes_every_label():
    """Every label with enough positives, everything right: PASS overall."""
    rows = {
        f"c{i}": {label: int((i + k) % 7 == 0) for k, label in enumerate(TAXONOMY.ids)}
        for i in range(210)
    }
    for row in rows.values():
        row["no_finding"] = 0
    for i in range(20):
        rows[f"n{i}"] = {"no_finding": 1}
    outcomes = [
        outcome(case, {k: v for k, v in row.items() if k != "no_finding"})
        for case, row in rows.items()
    ]
    evaluation = evaluate(outcomes, reference(rows))
    assert evaluation.verdict is Verdict.PASS
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


CODES = st.sampled_from([PRESENT, ABSENT, UNCERTAIN, NO_MAJORITY, MISSING, NOT_CODED])
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
