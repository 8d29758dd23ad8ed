"""Which right answers are drawn, how many, and where they stand."""

from itertools import pairwise

import numpy as np
import pytest

from loop.core.records import Field, Outcome, Span, Status, Value, ValueCode
from loop.evaluate.align import AlignedPairs
from loop.labels.taxonomy import NO_FINDING
from loop.review.queue.value import draw_right, spread

P, A, U = ValueCode.PRESENT, ValueCode.ABSENT, ValueCode.UNCERTAIN
WORDS = {P: Value.PRESENT, A: Value.ABSENT, U: Value.UNCERTAIN}
LABELS = ("edema", NO_FINDING)


def table(rows):
    """Return pairs and outcomes of rows of (reference, answer) of edema."""
    ids = tuple(f"c{number}" for number in range(len(rows)))
    pairs = AlignedPairs(
        case_ids=ids,
        labels=LABELS,
        reference=np.array(
            [[mark, ValueCode.PRESENT] for mark, _ in rows], dtype=np.int8
        ),
        predicted=np.array([[answer, P] for _, answer in rows], dtype=np.int8),
        statuses=dict.fromkeys(Status, 0),
        not_run=0,
    )
    outcomes = [outcome(*one) for one in zip(ids, (a for _, a in rows), strict=True)]
    return pairs, outcomes


def outcome(case_id, answer):
    """Return what a run said of edema in one case."""
    said = {"edema": Field(WORDS[answer], (Span(0, 4),))} if answer in WORDS else {}
    status = Status.ANSWERED if said else Status.UNPARSED
    return Outcome(item_id=case_id, status=status, fields=said)


MANY = [
    (ValueCode.PRESENT, P) if number % 2 else (ValueCode.ABSENT, A)
    for number in range(300)
]


def test_only_decided_answers_that_agree_are_drawn_from():
    """Neither what nobody answered or decided, nor what follows from the others."""
    rows = [
        (ValueCode.PRESENT, P),
        (ValueCode.ABSENT, A),
        (ValueCode.NOT_CODED, A),
        (ValueCode.PRESENT, A),
        (ValueCode.ABSENT, U),
        (ValueCode.MISSING, P),
        (ValueCode.PRESENT, ValueCode.UNPARSED),
    ]
    drawn = draw_right("run-1", *table(rows), failing=60, every=20)
    assert drawn.total == 3
    assert sorted(one.case_id for one in drawn.answers) == ["c0", "c1", "c2"]
    assert {one.label for one in drawn.answers} == {"edema"}
    by_case = {one.case_id: one for one in drawn.answers}
    assert by_case["c0"].predicted is Value.PRESENT
    assert by_case["c2"].reference.value == "not_coded"
    assert by_case["c0"].spans == (Span(0, 4),)


@pytest.mark.parametrize(
    ("failing", "count"), [(0, 0), (1, 1), (39, 1), (40, 2), (261, 13), (9000, 300)]
)
def test_there_is_one_for_every_twenty_failing_pairs(failing, count):
    """At least one where anything fails, and never more than there are."""
    drawn = draw_right("run-1", *table(MANY), failing=failing)
    assert (len(drawn.answers), drawn.total) == (count, 300)
    assert len({one.case_id for one in drawn.answers}) == count


def test_the_draw_is_the_same_for_everybody_and_another_for_another_run():
    """It rests on run, case and label alone, whatever the order of the cases."""
    pairs, outcomes = table(MANY)
    drawn = draw_right("run-1", pairs, outcomes, failing=261)
    assert draw_right("run-1", pairs, outcomes[::-1], failing=261) == drawn
    assert draw_right("run-2", pairs, outcomes, failing=261) != drawn


def test_every_right_answer_is_drawn_about_as_often_as_any_other():
    """In 400 runs, 5 of 20 each: binomial with mean 100 and deviation 8.7."""
    pairs, outcomes = table(MANY[:20])
    times = dict.fromkeys(pairs.case_ids, 0)
    for run in range(400):
        for one in draw_right(f"run-{run}", pairs, outcomes, failing=100).answers:
            times[one.case_id] += 1
    assert sum(times.values()) == 2000
    assert all(60 <= count <= 140 for count in times.values())


def test_they_stand_at_even_distances():
    """13 among 261: 20 or 21 errors lie between two of them."""
    listed = spread(["-"] * 261, ["+"] * 13)
    places = [at for at, one in enumerate(listed) if one == "+"]
    assert len(listed) == 274
    assert {after - before for before, after in pairwise(places)} <= {21, 22}
    assert spread(["-"], []) == ["-"]
