"""How far a label is from its gate, against counting answer by answer."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loop.evaluate.protocol import Protocol
from loop.review.queue.value import Nearness, measure_nearness
from loop.stats.confusion import Confusion
from loop.stats.intervals import lower_limit
from loop.stats.kappa import cohen_kappa

POINT = Protocol()
LOWER = Protocol(rule="lower", min_positives=14)
EASY = Protocol(accuracy=0.7, kappa=0.5)
COUNTS = st.builds(Confusion, *[st.integers(0, 5)] * 4)


def passes(counts, protocol=EASY):
    """Whether a label passes, by the kappa of the evaluation."""
    kappa = cohen_kappa(counts).value
    return counts.correct / counts.n >= protocol.accuracy and (
        kappa is not None and kappa >= protocol.kappa
    )


def turned(counts):
    """Yield every table that differs in so many answers, with that number."""
    tp, fp, fn, tn = counts
    for on_positives in range(-tp, fn + 1):
        for on_negatives in range(-tn, fp + 1):
            table = Confusion(
                tp + on_positives, fp - on_negatives, fn - on_positives,
                tn + on_negatives,
            )  # fmt: skip
            yield abs(on_positives) + abs(on_negatives), table


@pytest.mark.slow
@settings(max_examples=25)
@given(counts=COUNTS.filter(lambda counts: counts.n))
def test_no_smaller_number_of_answers_would_do(counts):
    """Every possible change of answers is tried."""
    found = measure_nearness(counts, EASY)
    before = passes(counts)
    enough = [n for n, table in turned(counts) if passes(table) != before]
    if found is None:
        assert not enough
    else:
        assert found.passing is before
        assert found.answers <= min(enough, default=found.answers)


@pytest.mark.parametrize(
    ("counts", "protocol", "expected"),
    [
        (Confusion(30, 4, 3, 63), POINT, Nearness(2, passing=False)),
        (Confusion(30, 2, 3, 65), POINT, Nearness(1, passing=True)),
        (Confusion(50, 0, 0, 50), POINT, Nearness(6, passing=True)),
        (Confusion(150, 5, 4, 141), LOWER, Nearness(1, passing=False)),
        (Confusion(150, 4, 4, 142), LOWER, Nearness(1, passing=True)),
    ],
)
def test_the_count_is_the_one_a_table_gives(counts, protocol, expected):
    """100 cases bear 5 errors at 0.95; 300 bear 8 by the lower limit (max_errors)."""
    assert measure_nearness(counts, protocol) == expected


def test_limits_that_no_answer_can_reach_are_far():
    """20 cases never certify 0.95: more cases are needed, not other answers."""
    assert measure_nearness(Confusion(10, 0, 0, 10), LOWER) is None
    # Six right answers would do for kappa, and for kappa alone.
    assert measure_nearness(Confusion(6, 4, 4, 6), LOWER) is None


@pytest.mark.parametrize(
    ("field", "part", "whole"), [("accuracy", 196, 200), ("sensitivity_floor", 60, 62)]
)
def test_a_lower_limit_exactly_at_its_threshold_passes(field, part, whole):
    """And one that is the least bit below does not."""
    low = lower_limit(part, whole, confidence=LOWER.confidence)
    for bound, passing in ((low, True), (math.nextafter(low, 1), False)):
        wanted = {"accuracy": 0.5, "sensitivity_floor": 0.5, "kappa": 0.5}
        protocol = LOWER.model_copy(update=wanted | {field: bound})
        found = measure_nearness(Confusion(60, 2, 2, 136), protocol)
        assert found.passing is passing


def test_without_cases_nothing_is_near():
    """No data, no distance."""
    assert measure_nearness(Confusion(0, 0, 0, 0), POINT) is None


@pytest.mark.parametrize(("kappa", "passing"), [(0.5, True), (0.5 + 1e-9, False)])
def test_a_kappa_exactly_at_its_threshold_passes(kappa, passing):
    """Three of four right on either side: kappa is 0.5 to the last bit."""
    counts = Confusion(tp=3, fp=1, fn=1, tn=3)
    found = measure_nearness(counts, Protocol(accuracy=0.75, kappa=kappa))
    assert found is not None
    assert found.passing is passing


def accurate(counts):
    """Whether accuracy reaches its threshold."""
    return counts.correct / counts.n >= EASY.accuracy


def agreeing(counts):
    """Whether kappa reaches its threshold."""
    kappa = cohen_kappa(counts).value
    return kappa is not None and kappa >= EASY.kappa


def fewest(counts, holds, *, right):
    """Count the answers to put right, or to turn wrong, by trying every number."""
    tp, fp, fn, tn = counts
    if right:
        tables = [
            (a + b, Confusion(tp + a, fp - b, fn - a, tn + b))
            for a in range(fn + 1)
            for b in range(fp + 1)
        ]
    else:
        tables = [
            (a + b, Confusion(tp - a, fp + b, fn + a, tn - b))
            for a in range(tp + 1)
            for b in range(tn + 1)
        ]
    return min((n for n, table in tables if holds(table) is right), default=None)


def test_the_number_of_answers_is_that_of_trying_them_all():
    """Of the threshold that is farthest, to pass; of the nearest one, to fail."""
    draw = random.Random(3)
    seen = set()
    for _ in range(120):
        counts = Confusion(*(draw.randrange(7) for _ in range(4)))
        failing = [one for one in (accurate, agreeing) if not one(counts)]
        if failing:
            known = [fewest(counts, one, right=True) for one in failing]
            expected = None if None in known else Nearness(max(known), passing=False)
        else:
            known = [fewest(counts, one, right=False) for one in (accurate, agreeing)]
            expected = Nearness(min(n for n in known if n is not None), passing=True)
        assert measure_nearness(counts, EASY) == expected
        seen.add(expected and expected.passing)
    assert seen == {True, False, None}
