"""What is better and what is worse, of values and of a judge's counts alike."""

from itertools import product

import numpy as np
import pytest

from loop.core.records import Status, ValueCode
from loop.evaluate.align import AlignedPairs
from loop.evaluate.compare import (
    measure_field_losses,
    measure_losses,
    pair_answers,
    sort_answers,
)
from loop.evaluate.distances import (
    DistanceTable,
    count_distances,
    value_distance,
    value_distances,
)
from loop.evaluate.protocol import Margins, Protocol
from loop.review.revise.changes import check_labels
from loop.review.revise.check import (
    TargetOutcome,
    compare_distances,
    hold_anchor,
)

NAN, UNREAD = np.nan, np.inf
FAILED = ValueCode.FAILED


def test_ranks_of_values_by_hand():
    """Uncertain lies between absent and present, no answer beyond both."""
    codes = ValueCode
    distances = {
        (codes.PRESENT, codes.PRESENT): 0,
        (codes.PRESENT, codes.UNCERTAIN): 1,
        (codes.PRESENT, codes.ABSENT): 2,
        (codes.ABSENT, codes.PRESENT): 2,
        (codes.UNCERTAIN, codes.ABSENT): 1,
        (codes.UNCERTAIN, codes.UNCERTAIN): 0,
        (codes.ABSENT, codes.UNPARSED): 3,
        (codes.ABSENT, codes.NOT_ASKED): 3,
    }
    assert {pair: value_distance(*pair) for pair in distances} == distances
    for right, answer in ((None, codes.PRESENT), (codes.PRESENT, FAILED)):
        assert np.isnan(value_distance(right, answer))


def test_a_table_holds_the_distance_of_every_answer():
    """All codes against all; a reference that is uncertain decides nothing."""
    pairs = list(product(ValueCode, repeat=2))
    right, answers = np.array(pairs, dtype=np.int8).T
    expected = [
        value_distance(one, other) if one in (0, 1) else NAN for one, other in pairs
    ]
    found = value_distances(right, answers)
    assert np.array_equal(found, np.array(expected), equal_nan=True)


@pytest.fixture
def answers():
    """Return two runs with every kind of answer."""
    rng = np.random.default_rng(4)
    shape = (400, 3)
    reference = rng.choice([1, 0, -1], size=shape).astype(np.int8)

    def run():
        given = rng.choice(
            [1, 0, -1, -4, -5, -6], size=shape, p=[0.4, 0.4, *[0.05] * 4]
        )
        return AlignedPairs(
            case_ids=tuple(map(str, range(400))),
            labels=("a", "b", "c"),
            reference=reference,
            predicted=given.astype(np.int8),
            statuses=dict.fromkeys(Status, 0),
            not_run=0,
        )

    return pair_answers(run(), run())


def test_right_is_what_equals_the_reference(answers):
    """The distances of values say what equality says, in every mask."""
    was = answers.before == answers.reference
    now = answers.after == answers.reference
    assert np.array_equal(answers.distances.judged, answers.judged)
    for cases in (answers.judged, answers.decided, answers.losable):
        found = sort_answers(answers, cases)
        assert np.array_equal(found.fixed, cases & ~was & now)
        assert np.array_equal(found.broken, cases & was & ~now)
        assert np.array_equal(found.still_wrong, cases & ~was & ~now)
        assert np.array_equal(found.still_right, cases & was & now)


def test_losses_of_values_are_those_of_their_distances(answers):
    """One margin, one test; present are the positives."""
    table = answers.distances
    of_fields = measure_field_losses(table, answers.losable, Protocol())
    assert of_fields == measure_losses(answers, answers.losable, Protocol())
    positives = answers.losable & (answers.reference == 1)
    assert [one.sensitivity.difference.n for one in of_fields] == (
        positives.sum(axis=0).tolist()
    )


def counts(before, after, experts, answered=True):
    """Return the table of a judge with one field."""
    wanted, *given = (
        np.array(one, dtype=float).reshape(-1, 1) for one in (experts, before, after)
    )
    return DistanceTable(
        fields=("significant.omission",),
        before=count_distances(wanted, given[0]),
        after=count_distances(wanted, given[1]),
        positive=wanted > 0,
        answered=np.broadcast_to(np.reshape(answered, (-1, 1)), wanted.shape),
    )


def test_a_count_is_as_far_off_as_it_is_too_high_or_too_low():
    """What cannot be read is beyond every count; without experts nothing is told."""
    experts = np.array([[2.0, 2, 2, NAN, 2]])
    answers = np.array([[2.0, 5, UNREAD, 1, NAN]])
    found = count_distances(experts, answers)
    assert np.array_equal(found, [[0, 3, UNREAD, NAN, NAN]], equal_nan=True)


def test_counts_are_sorted_as_values_are():
    """Right is the experts' count; any other is wrong, near or far."""
    table = counts([1, 2, 2, 0, UNREAD, 1], [2, 3, 0, 0, 2, 1], [2, 2, 2, 0, 2, NAN])
    found = table.sort(table.judged)
    assert np.flatnonzero(found.fixed).tolist() == [0, 4]
    assert np.flatnonzero(found.broken).tolist() == [1, 2]
    assert np.flatnonzero(found.still_right).tolist() == [3]
    assert not found.still_wrong.any()
    assert not table.judged[5]


def test_a_judge_that_counts_worse_fails_the_margins():
    """Accuracy over all pairs, sensitivity over those with an error."""
    experts = np.array([1] * 300 + [0] * 700)
    worse = experts.copy()
    worse[:60] = 0
    protocol = Protocol(margins=Margins(accuracy=0.02, sensitivity=0.05))
    (lost,) = check_labels(counts(experts, worse, experts), protocol)
    assert [share.difference for _, share in lost.shares()] == [
        (60, 0, 1000),
        (60, 0, 300),
    ]
    assert not lost.passed
    (kept,) = check_labels(counts(worse, experts, experts), protocol)
    assert kept.passed
    (same,) = check_labels(counts(worse, worse, experts), protocol)
    assert same.passed


def test_a_failed_engine_says_nothing_of_a_judge():
    """The pair is in no share."""
    table = counts([1, 1], [0, 0], [1, 1], answered=[True, False])
    (lost,) = check_labels(table, Protocol())
    assert lost.accuracy.difference == (1, 0, 1)


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        (4, 0, TargetOutcome.FIXED),
        (4, 1, TargetOutcome.IMPROVED),
        (UNREAD, 7, TargetOutcome.IMPROVED),
        (UNREAD, UNREAD, TargetOutcome.UNCHANGED),
        (1, 1, TargetOutcome.UNCHANGED),
        (0, 0, TargetOutcome.ALREADY_RIGHT),
        (0, 1, TargetOutcome.WORSE),
        (1, UNREAD, TargetOutcome.WORSE),
        (0.5, 1.5, TargetOutcome.WORSE),
        (NAN, NAN, TargetOutcome.UNDECIDED),
    ],
)
def test_a_targeted_count_must_come_nearer(before, after, outcome):
    """By distance alone, which is of counts here."""
    assert compare_distances(before, after) is outcome
    assert compare_distances(before, after, answered=False) is TargetOutcome.UNANSWERED


@pytest.mark.parametrize(
    ("before", "after", "answered", "outcome"),
    [
        (0, 1, True, TargetOutcome.WORSE),
        (0, UNREAD, True, TargetOutcome.WORSE),
        (0, 0, True, TargetOutcome.UNCHANGED),
        (1, 5, True, TargetOutcome.UNCHANGED),
        (NAN, NAN, True, TargetOutcome.UNCHANGED),
        (0, NAN, False, TargetOutcome.UNANSWERED),
        (NAN, 0, False, TargetOutcome.UNCHANGED),
        (NAN, 2, False, TargetOutcome.UNANSWERED),
    ],
)
def test_a_pinned_count_must_stay_right(before, after, answered, outcome):
    """One that was wrong holds nothing; a failed engine breaks nothing."""
    assert hold_anchor(before, after, answered=answered) is outcome


@pytest.mark.parametrize(
    ("experts", "given", "problem"),
    [
        ([[1.0]], [[1.0, 2.0]], "equal shapes"),
        ([[1.0]], [[-1.0]], "at least 0"),
        ([[-1.0]], [[1.0]], "at least 0"),
        ([[np.inf]], [[1.0]], "experts finite"),
    ],
)
def test_counts_that_are_none_are_refused(experts, given, problem):
    """A negative one would be near to 0."""
    with pytest.raises(ValueError, match=problem):
        count_distances(np.array(experts), np.array(given))


def test_a_table_of_another_shape_is_refused():
    """Rows and fields of all parts belong together."""
    table = counts([1], [1], [1])
    with pytest.raises(ValueError, match="need equal shapes"):
        DistanceTable(
            fields=("a", "b"),
            before=table.before,
            after=table.after,
            positive=table.positive,
            answered=table.answered,
        )
