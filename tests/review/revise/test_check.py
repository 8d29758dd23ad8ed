"""The decision rule, on hand-made answers."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from loop.core.records import Status, Value, ValueCode
from loop.evaluate.align import AlignedPairs
from loop.evaluate.protocol import Protocol
from loop.review.revise.changes import ShareCriterion
from loop.review.revise.check import (
    Check,
    TargetOutcome,
    check_draft,
    check_draws,
    check_pairs,
    find_progress,
)
from loop.review.revise.check_record import summarise
from loop.review.revise.draws import DrawnAnswers
from loop.review.submit import Anchor
from loop.review.verdict import Judgement, Verdict

RULE = Protocol()
P, A, U = ValueCode.PRESENT, ValueCode.ABSENT, ValueCode.UNCERTAIN
FAILED = ValueCode.FAILED


def pairs(reference, predicted):
    """Return the pairs of one label."""
    size = len(reference)
    return AlignedPairs(
        case_ids=tuple(f"c{n}" for n in range(size)),
        labels=("edema",),
        reference=np.array(reference, dtype=np.int8).reshape(size, 1),
        predicted=np.array(predicted, dtype=np.int8).reshape(size, 1),
        statuses=dict.fromkeys(Status, 0),
        not_run=0,
    )


def check(reference, before, after, targets=("c0",), anchors=()):
    """Check one label with verdicts on these cases."""
    verdict = Verdict(
        label="edema",
        judgement=Judgement.MODEL_WRONG,
        case_ids=targets,
        comment="general",
    )
    measured = (pairs(reference, before), pairs(reference, after))
    return check_draft(*measured, [verdict], anchors, protocol=RULE)


@pytest.mark.parametrize(
    ("expected", "before", "after", "progress"),
    [
        (P, A, P, TargetOutcome.FIXED),
        (P, A, U, TargetOutcome.IMPROVED),
        (P, U, A, TargetOutcome.WORSE),
        (P, A, A, TargetOutcome.UNCHANGED),
        (P, P, P, TargetOutcome.ALREADY_RIGHT),
        (P, P, U, TargetOutcome.WORSE),
        (A, ValueCode.UNPARSED, U, TargetOutcome.IMPROVED),
        (U, P, U, TargetOutcome.FIXED),
        (None, A, P, TargetOutcome.UNDECIDED),
        (P, P, FAILED, TargetOutcome.UNANSWERED),
        (P, FAILED, P, TargetOutcome.UNANSWERED),
    ],
)
def test_progress_is_measured_towards_what_is_right(expected, before, after, progress):
    """Uncertain lies between present and absent; no answer lies beyond both."""
    assert find_progress(expected, before, after) is progress


def test_the_clinicians_value_goes_before_the_reference():
    """A verdict may say uncertain where the reference is blunt."""
    verdict = Verdict(
        label="edema",
        judgement=Judgement.MODEL_WRONG,
        case_ids=("c0",),
        correct_value=Value.UNCERTAIN,
    )
    measured = (pairs([1], [P]), pairs([1], [U]))
    (target,) = check_draft(*measured, [verdict], (), protocol=RULE).targets
    assert target.progress is TargetOutcome.FIXED


@pytest.mark.parametrize(
    ("after", "progress"), [(A, TargetOutcome.FIXED), (P, TargetOutcome.UNCHANGED)]
)
def test_an_absent_reference_decides_as_a_present_one(after, progress):
    """Absent is a value like the others, and not a missing one."""
    (target,) = check([A], [P], [after]).targets
    assert target.progress is progress


@pytest.mark.parametrize(
    ("surplus", "reasons", "undecided"),
    [
        ((False, 0.2), 1, True),
        ((False, 0.0), 1, False),
        ((False, -0.1), 1, False),
        ((True, 0.2), 0, False),
        ((False, 0.2), 2, False),
        (None, 1, False),
    ],
)
def test_only_a_surplus_that_is_not_shown_yet_asks_for_more_draws(
    surplus, reasons, undecided
):
    """None at all, or another objection, is not helped by asking again."""
    seen = surplus and SimpleNamespace(shown=surplus[0], value=surplus[1])
    looked_at = SimpleNamespace(
        over_draws=SimpleNamespace(surplus=seen), reasons=["x"] * reasons
    )
    assert Check.undecided.fget(looked_at) is undecided


def test_hedging_a_right_answer_counts_as_losing_it():
    """Otherwise a draft could hide its errors behind uncertain."""
    result = check([1, 1, 1], [A, P, P], [P, U, U])
    assert result.labels[0].accuracy.difference[:2] == (2, 1)
    assert not result.passed


def test_too_few_cases_for_the_margin_are_judged_by_counts():
    """With 3 cases no limit could ever pass: the point rule applies and is marked."""
    result = check([1, 1, 1], [A, P, P], [P, P, P])
    assert result.labels[0].accuracy.basis is ShareCriterion.COUNTS
    assert result.labels[0].sensitivity.basis is ShareCriterion.COUNTS
    assert result.passed
    assert summarise(result)["judged_by_counts"] == {
        "accuracy": ["edema"],
        "sensitivity": ["edema"],
    }


@pytest.mark.parametrize(("lost", "passed"), [(1, True), (3, False)])
def test_with_enough_cases_the_margin_decides(lost, passed):
    """300 cases: Tango's one-sided limit for 3 lost, 1 gained is -0.0218."""
    before = [A] + [P] * 299
    after = [P] + [A] * lost + [P] * (299 - lost)
    result = check([1] * 300, before, after)
    assert result.labels[0].accuracy.basis is ShareCriterion.MARGIN
    assert result.passed is passed
    if lost == 3:
        assert result.labels[0].accuracy.bound == pytest.approx(-0.0218, abs=5e-5)


def test_a_broken_anchor_blocks_even_when_more_is_gained():
    """Anchors have zero tolerance."""
    anchor = Anchor("c1", "edema", None)
    result = check([1] * 5, [A, P, A, A, A], [P, A, P, P, P], anchors=[anchor])
    assert result.broken_anchors == (anchor,)
    assert "anchored cases broke: c1 edema" in result.reasons


def test_an_anchor_that_was_wrong_before_is_not_broken():
    """Only what held can break."""
    assert (
        check([1], [A], [A], anchors=[Anchor("c0", "edema", None)]).broken_anchors == ()
    )


def test_cases_the_reference_leaves_open_are_not_counted():
    """Uncertain, missing and undecided references are neither lost nor gained."""
    result = check([-1, -2, -3, 1], [P, P, P, A], [A, A, A, P], targets=("c3",))
    assert result.labels[0].accuracy.difference == (0, 1, 1)


def test_a_general_verdict_must_gain_somewhere():
    """Without a targeted case a change still has to do some good."""
    assert "no answer changed to a right one" in check([1], [P], [P], ()).reasons
    assert check([1, 1], [A, P], [P, P], ()).passed


def test_lost_sensitivity_blocks_where_accuracy_hides_it():
    """4 of 60 positives lost: accuracy barely moves over 1,000 cases, patients do."""
    truth = [1] * 60 + [0] * 940
    before = [P] * 60 + [P] * 10 + [A] * 930
    after = [A] * 4 + [P] * 56 + [A] * 940
    result = check(truth, before, after, targets=("c60",))
    (label,) = result.labels
    assert label.accuracy.passed
    assert label.sensitivity.basis is ShareCriterion.MARGIN
    assert label.sensitivity.difference == (4, 0, 60)
    assert any("lost 4, gained 0 of 60, sensitivity" in one for one in result.reasons)


def test_few_positives_are_judged_by_counts():
    """With 10 positives no limit could pass: one lost for nothing is one too many."""
    truth = [1] * 10 + [0] * 490
    before = [P] * 10 + [P] * 5 + [A] * 485
    lost = check(truth, before, [A] + [P] * 9 + [A] * 490, targets=("c10",))
    assert lost.labels[0].accuracy.passed
    assert lost.labels[0].sensitivity.basis is ShareCriterion.COUNTS
    assert not lost.passed
    swapped = [A, *before[1:]]
    assert check(truth, swapped, [P, A, *[P] * 8, *[A] * 490], ("c0",)).passed


def test_a_label_without_cases_is_not_judged_and_says_so():
    """Nothing measured is not the same as nothing lost."""
    result = check([-3, -3], [P, P], [A, A], targets=())
    assert result.labels[0].accuracy.basis is ShareCriterion.NOTHING
    assert summarise(result)["not_judged"] == {
        "accuracy": ["edema"],
        "sensitivity": ["edema"],
    }


def test_a_failed_answer_is_no_wrong_answer():
    """An engine that was down says nothing of the wording, before or after."""
    result = check([1, 1, 1], [A, P, FAILED], [P, FAILED, P])
    assert result.labels[0].accuracy.difference == (0, 1, 1)
    assert result.targets[0].progress is TargetOutcome.FIXED


def test_too_many_unanswered_cases_stand_against_a_commit():
    """A draft measured on what happened to be answered is not measured."""
    before = [A] + [P] * 199
    few = check([1] * 200, before, [P] * 198 + [FAILED] * 2)
    assert few.passed
    many = check([1] * 200, before, [P] * 197 + [FAILED] * 2 + [ValueCode.UNPARSED])
    assert "1.5% from the draft (at most 1.0%)" in many.reasons[-1]
    other = check([1] * 200, [A, *[P] * 196, *[FAILED] * 3], [P] * 200)
    assert "1.5% of the cases have no readable answer" in other.reasons[-1]


@pytest.mark.parametrize(
    ("reference", "before", "after", "words"),
    [
        (1, A, A, "did not change: c1 edema"),
        (1, U, A, "got worse: c1 edema"),
        (-2, A, P, r"what is right in targeted cases \(give correct_value\): c1"),
        (1, A, FAILED, r"engine failed on targeted cases \(run it again\): c1"),
    ],
)
def test_every_targeted_case_must_be_put_right(reference, before, after, words):
    """One that is fixed does not pay for another that is not."""
    size = 300
    result = check(
        [1, reference] + [1] * size,
        [A, before] + [P] * size,
        [P, after] + [P] * size,
        targets=("c0", "c1"),
    )
    assert len(result.reasons) == 1
    assert re.search(words, result.reasons[0])


def test_an_anchor_whose_case_is_gone_is_reported():
    """A pin that pins nothing must not look like one that held."""
    anchor = Anchor("gone", "edema", None)
    result = check([1], [A], [P], anchors=[anchor])
    assert result.missing_anchors == (anchor,)
    assert summarise(result)["anchors_missing"] == 1
    assert result.passed


def test_an_anchor_the_engine_failed_on_is_not_taken_as_held():
    """Zero tolerance needs an answer."""
    anchor = Anchor("c1", "edema", None)
    result = check([1, 1], [A, P], [P, FAILED], anchors=[anchor])
    assert result.unanswered_anchors == (anchor,)
    assert any("engine failed on anchored cases" in one for one in result.reasons)


def test_a_targeted_case_that_is_gone_is_named():
    """Verdicts outlive the cohort they were made on."""
    result = check([1, 1], [A, P], [P, P], targets=("c0", "z9"))
    assert result.targets[1].progress is TargetOutcome.GONE


def test_an_improved_case_is_a_gain():
    """Nearer to right is what a verdict may ask for."""
    result = check([1, 1], [A, P], [U, P])
    assert "no targeted case was fixed or improved" not in result.reasons


def test_a_contract_that_is_changed_for_its_cost_need_only_not_lose():
    """With targets, what was met earlier is no gain all the same."""
    without = check([1], [P], [P], ())
    assert without.reasons == ("no answer changed to a right one",)
    assert replace(without, gain_required=False).reasons == ()
    targeted = check([1], [P], [P], ("c0",))
    assert replace(targeted, gain_required=False).reasons == targeted.reasons


def test_an_anchor_that_is_right_now_has_held():
    """Whatever was answered before, or was not."""
    anchor = Anchor("c1", "edema", None)
    result = check([1, 1], [A, FAILED], [P, P], anchors=[anchor])
    assert (result.broken_anchors, result.unanswered_anchors) == ((), ())


def said(value, case_id="c0"):
    """Return a verdict that calls a value right."""
    return Verdict(
        label="edema",
        judgement=Judgement.MODEL_WRONG,
        case_ids=(case_id,),
        correct_value=value,
    )


def test_a_verdict_that_names_no_value_takes_none_back():
    """What another verdict on the pair calls right stays right."""
    measured = (pairs([1], [P]), pairs([1], [U]))
    for verdicts in (
        [said(Value.UNCERTAIN), said(None)],
        [said(None), said(Value.UNCERTAIN)],
        [said(Value.ABSENT), said(Value.UNCERTAIN)],
    ):
        (target,) = check_draft(*measured, verdicts, (), protocol=RULE).targets
        assert target.expected == "uncertain"


def test_ten_of_what_stands_against_a_draft_are_named():
    """And how many more there are."""
    for cases, more in ((10, ""), (11, " and 1 more")):
        result = check(
            [1] * cases, [A] * cases, [A] * cases, [f"c{n}" for n in range(cases)]
        )
        (line,) = (one for one in result.reasons if "did not change" in one)
        assert line.endswith(f"c9 edema{more}")


def test_draws_are_checked_by_their_mean_and_at_their_look():
    """A share of the cases, over the draws of either version."""
    before = (pairs([1, 1], [P, FAILED]), pairs([1, 1], [P, P]))
    after = (pairs([1, 1], [P, P]), pairs([1, 1], [P, P]))
    measured = DrawnAnswers(before, after)
    for look in (1, 2):
        found = check_draws(measured, [], (), RULE, look)
        assert (found.unanswered.before, found.unanswered.after) == (0.25, 0)
        assert (found.over_draws.look, found.labels) == (look, ())


def test_a_verdict_says_what_is_right_of_a_pinned_case():
    """It was given on the case itself, and may be newer than the pin."""
    one = pairs([1], [A])
    measured = DrawnAnswers((one,), (pairs([1], [U]),))
    pin = Anchor("c0", "edema", Value.ABSENT)
    found = check_pairs(measured, [said(Value.UNCERTAIN)], [pin])
    assert found.counts == (("c0", "edema", 0, 1, 1),)
    assert check_pairs(measured, [], [pin]).counts == (("c0", "edema", 1, 0, 1),)


def test_two_references_are_refused():
    """A difference between two standards is no difference between two prompts."""
    measured = (pairs([1], [P]), pairs([0], [P]))
    with pytest.raises(ValueError, match="same reference"):
        check_draft(*measured, [], (), protocol=RULE)


def test_targets_that_are_right_already_need_no_gain_of_their_own():
    """The verdict was met earlier; one target that is not met still stands open."""
    assert check([1, 1], [P, A], [P, P], ("c0",)).reasons == ()
    still = check([1, 1, 1], [P, A, A], [P, A, P], ("c0", "c1"))
    assert "no targeted case was fixed or improved" in still.reasons
