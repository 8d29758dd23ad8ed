"""What an uncertain answer counts as: hedging is no way out of the denominator."""

import csv
import io

import pytest

from loop.core.errors import DataError
from loop.core.records import Status, UncertainAnswers, ValueCode
from loop.core.yaml_files import check_model
from loop.evaluate.compare import compare_inputs
from loop.evaluate.documents import render_csv, render_html, render_markdown
from loop.evaluate.evaluation import evaluate_inputs
from loop.evaluate.evaluation_json import evaluation_data
from loop.evaluate.gates import GateVerdict
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

CASES = 300
POLICIES = tuple(UncertainAnswers)


def protocol(policy, **others):
    """Return a protocol that says what an uncertain answer counts as."""
    return Protocol(uncertain_answers=policy, **others)


def run_of(label, positives, hedged, *, negatives_hedged=0):
    """Return a run that is right but for uncertain answers, and its reference."""
    rows = {f"c{i}": {label: int(i < positives)} for i in range(CASES)}
    answers = {case: dict(row) for case, row in rows.items()}
    for i in (*range(hedged), *range(positives, positives + negatives_hedged)):
        answers[f"c{i}"] = {label: -1}
    outcomes = [outcome(case, row) for case, row in answers.items()]
    return outcomes, reference(rows)


def judged(scene, label, said):
    """Return one label, judged by a protocol."""
    evaluation = evaluate_inputs(inputs(*scene, protocol=said), resamples=50)
    return next(one for one in evaluation.labels if one.label == label)


def test_hedging_true_cases_fails_by_default_and_passed_before():
    """14 of 36 true cases of Cardiomegaly answered uncertain."""
    scene = run_of("cardiomegaly", 36, 14)
    before = judged(scene, "cardiomegaly", Protocol())
    assert before.gate.verdict is GateVerdict.PASS
    assert (before.confusion.accuracy, before.confusion.recall) == (1.0, 1.0)
    now = judged(scene, "cardiomegaly", protocol("wrong"))
    assert now.gate.verdict is GateVerdict.FAIL
    assert now.confusion == (22, 0, 14, 264)
    assert now.hedges == (14, 0)


def test_hedging_says_fail_and_not_insufficient():
    """40 of 42 true cases of Atelectasis: more cases would not help."""
    scene = run_of("atelectasis", 42, 40)
    before = judged(scene, "atelectasis", Protocol()).gate
    assert before.verdict is GateVerdict.INSUFFICIENT
    assert "needs about" in before.needs
    excluded = judged(scene, "atelectasis", protocol("excluded")).gate
    assert excluded.verdict is GateVerdict.FAIL
    assert "40 of 42 positives are answered uncertain" in excluded.reasons[1]
    assert "at most 5 % allowed" in excluded.reasons[0]
    assert not excluded.needs
    assert judged(scene, "atelectasis", protocol("wrong")).gate.verdict == "FAIL"


def test_too_few_positives_stay_insufficient_whoever_hedges():
    """Where no honest engine could pass, hedging is not the cause."""
    scene = run_of("fracture", 4, 2)
    gate = judged(scene, "fracture", protocol("excluded")).gate
    assert gate.verdict is GateVerdict.INSUFFICIENT


@pytest.mark.parametrize(("hedged", "verdict"), [(2, "PASS"), (3, "FAIL")])
def test_the_share_of_positives_may_reach_the_limit_and_no_more(hedged, verdict):
    """2 of 40 is 5 %, 3 of 40 is more."""
    scene = run_of("edema", 40, hedged)
    assert judged(scene, "edema", protocol("excluded")).gate.verdict == verdict


@pytest.mark.parametrize(("hedged", "verdict"), [(15, "PASS"), (16, "FAIL")])
def test_the_share_of_decided_cases_may_reach_the_limit_and_no_more(hedged, verdict):
    """Hedges of negatives count as well: 15 of 300 is 5 %."""
    scene = run_of("edema", 40, 0, negatives_hedged=hedged)
    assert judged(scene, "edema", protocol("excluded")).gate.verdict == verdict


def test_the_limit_is_the_protocols():
    """A protocol may allow more, or nothing."""
    scene = run_of("edema", 40, 3)
    generous = protocol("excluded", max_uncertain=0.1)
    assert judged(scene, "edema", generous).gate.verdict is GateVerdict.PASS
    strict = protocol("excluded", max_uncertain=0)
    assert judged(run_of("edema", 40, 1), "edema", strict).gate.verdict == "FAIL"
    assert judged(run_of("edema", 40, 0), "edema", strict).gate.verdict == "PASS"


@pytest.mark.parametrize("rule", ["point", "lower"])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_model_that_is_uncertain_of_everything_passes_nothing(rule, policy):
    """Nor does it under a protocol that says nothing."""
    rows = {f"c{i}": {label: int(i < 40) for label in TAXONOMY.ids} for i in range(120)}
    unsure = dict.fromkeys(TAXONOMY.extracted, -1)
    scene = [outcome(case, unsure) for case in rows], reference(rows)
    for said in (protocol(policy, rule=rule, min_positives=14), Protocol()):
        evaluation = evaluate_inputs(inputs(*scene, protocol=said), resamples=50)
        assert not evaluation.count(GateVerdict.PASS)
        if said.uncertain_answers in ("wrong", "excluded"):
            assert evaluation.count(GateVerdict.FAIL) == len(TAXONOMY.ids)


def test_a_model_that_hedges_only_its_errors_fails_as_one_that_errs():
    """Under the policy `wrong` the two cannot be told apart; before, hedging won."""
    rows = {f"c{i}": {"edema": int(i < 50)} for i in range(CASES)}
    wrong = {f"c{i}" for i in (*range(15), *range(60, 75))}
    found = {}
    for name, given in (("errs", None), ("hedges", -1)):
        outcomes = [
            outcome(
                case,
                {"edema": (1 - row["edema"] if given is None else given)}
                if case in wrong
                else row,
            )
            for case, row in rows.items()
        ]
        found[name] = outcomes, reference(rows)
    errs, hedges = (
        judged(found[name], "edema", protocol("wrong")) for name in ("errs", "hedges")
    )
    assert errs.confusion == hedges.confusion == (35, 15, 15, 235)
    assert errs.gate == hedges.gate
    assert errs.gate.verdict is GateVerdict.FAIL
    assert judged(found["hedges"], "edema", Protocol()).gate.verdict == "PASS"
    assert judged(found["hedges"], "edema", protocol("excluded")).gate.verdict == "FAIL"


@pytest.mark.parametrize("policy", POLICIES)
def test_every_case_is_counted_once_under_every_policy(policy):
    """An uncertain answer is scored or excluded, never both and never neither."""
    outcomes, standard = random_run(120)
    given_inputs = inputs(outcomes, standard, protocol=protocol(policy))
    for one in evaluate_inputs(given_inputs, resamples=50).labels:
        assert one.confusion.n + one.excluded.total == 120
        left_out = one.excluded.uncertain_predicted
        excluded = policy is UncertainAnswers.EXCLUDED
        assert left_out == (one.hedges.total if excluded else 0)


def test_an_unread_answer_is_no_answer_under_every_policy():
    """A missing answer is never absent, present or wrong."""
    rows = {f"c{i}": {"edema": int(i < 40)} for i in range(100)}
    outcomes = [outcome(case, row) for case, row in rows.items()]
    outcomes[0] = silent("c0")
    outcomes[1] = silent("c1", Status.ENGINE_FAILED)
    for policy in POLICIES:
        one = judged((outcomes, reference(rows)), "edema", protocol(policy))
        assert (one.confusion.n, one.excluded.unparsed, one.excluded.failed) == (
            *(98, 1, 1),
        )


def test_a_protocol_without_the_field_counts_as_before_and_says_so():
    """Counts, digest and signature of what was registered before do not change."""
    outcomes, standard = random_run(120)
    old, new = (
        evaluate_inputs(inputs(outcomes, standard, protocol=said), resamples=50)
        for said in (Protocol(), protocol("excluded", max_uncertain=1))
    )
    assert counts_digest(old) == counts_digest(new)
    assert "|unc:excl|" in old.signature
    assert [one.gate for one in old.labels] == [one.gate for one in new.labels]
    words = old.protocol.uncertain_words
    assert "left out of every rate" in words
    assert "written before it could say" in words
    assert "written before" not in new.protocol.uncertain_words
    for page in (render_markdown(old), render_html(old)):
        assert words in page


def test_the_policy_is_in_every_signature():
    """Two numbers with different policies are never comparable."""
    scene = random_run(60)
    signs = {
        evaluate_inputs(
            inputs(*scene, protocol=protocol(policy)), resamples=50
        ).signature.split("|")[4]
        for policy in POLICIES
    }
    assert signs == {"unc:wrong", "unc:neg", "unc:pos", "unc:excl"}


@pytest.mark.parametrize("policy", POLICIES)
def test_documents_show_the_chosen_policy_first_and_the_others_beside_it(policy):
    """What each of the four would say, in the terminal's order."""
    scene = run_of("cardiomegaly", 36, 14)
    evaluation = evaluate_inputs(
        inputs(*scene, protocol=protocol(policy)), resamples=50
    )
    assert evaluation.views[0].policy is policy
    assert {view.policy for view in evaluation.views} == set(POLICIES)
    alone = {
        other: evaluate_inputs(inputs(*scene, protocol=protocol(other)), resamples=50)
        for other in POLICIES
    }
    for view in evaluation.views:
        assert view.passed == alone[view.policy].count(GateVerdict.PASS)
        assert view.macro_f1 == pytest.approx(alone[view.policy].macro.score.estimate)
    data = evaluation_data(evaluation)
    assert data["uncertain_answers"]["policy"] == policy.value
    assert data["uncertain_read_as"][0]["reading"] == policy.value
    one = next(one for one in data["labels"] if one["label"] == "cardiomegaly")
    assert one["verdict_if_uncertain"]["wrong"] == "FAIL"
    assert one["answered_uncertain"] == {"positives": 14, "negatives": 0}
    (row,) = [
        row
        for row in csv.DictReader(io.StringIO(render_csv(evaluation)))
        if row["label"] == "cardiomegaly"
    ]
    assert row["uncertain_answers"] == policy.value
    assert row["verdict_if_wrong"] == "FAIL"
    assert row["uncertain_of_positives"] == "14"
    page = render_html(evaluation)
    assert f"uncertain answers: {policy.value}" in page
    assert f"{evaluation.views[0].words} (this protocol)" in page
    assert f"| {evaluation.views[0].words} (this protocol) |" in render_markdown(
        evaluation
    )


def test_cases_whose_reference_is_uncertain_are_shown_and_never_scored():
    """How the extractor answers them is counted apart, label by label."""
    rows = {f"c{i}": {"edema": int(i < 40)} for i in range(100)}
    answers = {case: dict(row) for case, row in rows.items()}
    for i, answer in enumerate((1, 1, 0, -1), 90):
        rows[f"c{i}"] = {"edema": ValueCode.UNCERTAIN}
        answers[f"c{i}"] = {"edema": answer}
    rows["x"] = {"edema": ValueCode.UNCERTAIN}
    outcomes = [outcome(case, row) for case, row in answers.items()] + [silent("x")]
    evaluation = evaluate_inputs(
        inputs(outcomes, reference(rows), protocol=protocol("wrong")), resamples=50
    )
    one = next(one for one in evaluation.labels if one.label == "edema")
    assert one.open_answers == (2, 1, 1, 1)
    assert one.confusion.n == 96
    assert one.excluded.uncertain_reference == 5
    data = next(d for d in evaluation_data(evaluation)["labels"] if d["n"] == 96)
    assert data["reference_uncertain"] == {
        "present": 2, "absent": 1, "uncertain": 1, "unanswered": 1,
    }  # fmt: skip
    assert "| Edema | 5 | 2 | 1 | 1 | 1 |" in render_markdown(evaluation)
    assert "Cases whose reference is uncertain" in render_html(evaluation)


def test_no_table_of_open_cases_where_there_is_none():
    """A reference that decides everything has nothing to show there."""
    scene = run_of("edema", 40, 3)
    evaluation = evaluate_inputs(inputs(*scene), resamples=50)
    assert "reference is uncertain" not in render_markdown(evaluation)
    assert "Cases whose reference is uncertain" not in render_html(evaluation)


def test_a_comparison_counts_uncertain_answers_as_the_protocol_says():
    """An answer that turned uncertain is broken where it is wrong."""
    rows = {f"c{i}": {"edema": int(i < 50)} for i in range(CASES)}
    right = [outcome(case, row) for case, row in rows.items()]
    unsure = [
        outcome(case, {"edema": -1} if case in ("c0", "c1") else row)
        for case, row in rows.items()
    ]
    found = {}
    for policy in (UncertainAnswers.WRONG, UncertainAnswers.EXCLUDED):
        before, after = (
            inputs(one, reference(rows), protocol=protocol(policy))
            for one in (right, unsure)
        )
        comparison = compare_inputs(before, after, resamples=50)
        edema = next(one for one in comparison.labels if one.label == "edema")
        assert edema.became_uncertain == ("c0", "c1")
        assert edema.accuracy.difference.lost == 2
        found[policy.value] = edema.broken
    assert found == {"wrong": ("c0", "c1"), "excluded": ()}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"uncertain_answers": None}, "wrong, absent, present, excluded"),
        ({"uncertain_answers": "hidden"}, "uncertain_answers"),
        ({"max_uncertain": 0.1}, "max_uncertain needs uncertain_answers"),
        ({"uncertain_answers": "excluded", "max_uncertain": 2}, "max_uncertain"),
    ],
)
def test_a_policy_that_is_half_said_is_refused(fields, words):
    """An old protocol with a new limit would promise what it does not keep."""
    with pytest.raises(DataError, match=words):
        check_model(fields, Protocol, "protocol.yaml")


def test_a_protocol_is_written_as_it_was_said():
    """What an early protocol did not say is in no document of it."""
    assert "uncertain_answers" not in Protocol().model_dump(mode="json")
    assert "max_uncertain" not in Protocol().model_dump(mode="json")
    said = protocol("excluded").model_dump(mode="json")
    assert (said["uncertain_answers"], said["max_uncertain"]) == ("excluded", 0.05)
    assert Protocol.model_validate(said) == protocol("excluded")
