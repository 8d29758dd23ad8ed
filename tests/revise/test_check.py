"""The decision rule, on hand-made answers."""

import numpy as np
import pytest

from loop.core.records import Status, Value
from loop.evaluate.pairs import Answer, Pairs
from loop.review.record import Anchor
from loop.review.verdict import Judgement, Verdict
from loop.revise.check import Measured, Progress, Rule, check_draft, judge_progress

RULE = Rule(margin=0.02, confidence=0.95)
P, A, U = Answer.PRESENT, Answer.ABSENT, Answer.UNCERTAIN


def pairs(reference, predicted):
    """Return the pairs of one label."""
    size = len(reference)
    return Pairs(
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
    measured = Measured(pairs(reference, before), pairs(reference, after))
    return check_draft(measured, [verdict], anchors, RULE)


@pytest.mark.parametrize(
    ("expected", "before", "after", "progress"),
    [
        (P, A, P, Progress.FIXED),
        (P, A, U, Progress.IMPROVED),
        (P, U, A, Progress.WORSE),
        (P, A, A, Progress.UNCHANGED),
        (P, P, P, Progress.ALREADY_RIGHT),
        (P, P, U, Progress.WORSE),
        (A, Answer.UNPARSED, U, Progress.IMPROVED),
        (U, P, U, Progress.FIXED),
        (None, A, P, Progress.UNDECIDED),
    ],
)
def test_progress_is_measured_towards_what_is_right(expected, before, after, progress):
    """Uncertain lies between present and absent; no answer lies beyond both."""
    assert judge_progress(expected, before, after) is progress


def test_the_clinicians_value_goes_before_the_reference():
    """A verdict may say uncertain where the reference is blunt."""
    verdict = Verdict(
        label="edema",
        judgement=Judgement.MODEL_WRONG,
        case_ids=("c0",),
        correct_value=Value.UNCERTAIN,
    )
    measured = Measured(pairs([1], [P]), pairs([1], [U]))
    (target,) = check_draft(measured, [verdict], (), RULE).targets
    assert target.progress is Progress.FIXED


def test_hedging_a_right_answer_counts_as_losing_it():
    """Otherwise a draft could hide its errors behind uncertain."""
    result = check([1, 1, 1], [A, P, P], [P, U, U])
    assert result.labels[0].difference[:2] == (2, 1)
    assert not result.passed


def test_too_few_cases_for_the_margin_are_judged_by_counts():
    """With 3 cases no limit could ever pass: the point rule applies and is marked."""
    result = check([1, 1, 1], [A, P, P], [P, P, P])
    assert not result.labels[0].reachable
    assert result.passed


@pytest.mark.parametrize(("lost", "passed"), [(1, True), (3, False)])
def test_with_enough_cases_the_margin_decides(lost, passed):
    """300 cases: Tango's one-sided limit for 3 lost, 1 gained is -0.0218."""
    before = [A] + [P] * 299
    after = [P] + [A] * lost + [P] * (299 - lost)
    result = check([1] * 300, before, after)
    assert result.labels[0].reachable
    assert result.passed is passed
    if lost == 3:
        assert result.labels[0].bound == pytest.approx(-0.0218, abs=5e-5)


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
    assert result.labels[0].difference == (0, 1, 1)


def test_a_general_verdict_must_gain_somewhere():
    """Without a targeted case a change still has to do some good."""
    assert "no answer changed to a right one" in check([1], [P], [P], ()).reasons
    assert check([1, 1], [A, P], [P, P], ()).passed
