"""What publishing would do is said before, and is what it then does."""

import pytest

from loop.core.errors import DataError
from loop.core.records import Value
from loop.labels.ballots import read_turnout
from loop.labels.cohort import read_cohort
from loop.review.reading.answers import answer
from loop.review.reading.progress import measure_progress
from loop.review.reading.publication import dry_run_publication, voted_cases


@pytest.fixture
def foresee(workspace, store, assignment):
    """Return a function that says what publishing now would do."""

    def run(voted=True):
        cohort = read_cohort(workspace, "read")
        turnout = read_turnout(workspace, cohort)
        progress = measure_progress(store, assignment)
        return dry_run_publication(
            workspace, store, assignment, progress, turnout if voted else None
        )

    return run


@pytest.mark.parametrize("pseudonymous", [False, True])
def test_new_replaced_and_lost_cases_are_told_apart(
    store, assignment, say, publish, foresee, pseudonymous
):
    """A reader who took an answer back would lose the votes of that case."""
    say("Dr. A", "paa")
    say("Dr. B", "pa")
    publish(pseudonymous=pseudonymous)
    answer(store, assignment, "Dr. A", "c1", {"edema": None})
    answer(store, assignment, "Dr. A", "c2", {"edema": Value.PRESENT})
    say("Dr. A", "...p")
    first, second = foresee()
    assert (first.reader, first.complete, first.begun) == ("Dr. A", 3, 1)
    assert (first.new, first.again, first.lost) == (1, 2, 1)
    assert (second.new, second.again, second.lost) == (0, 2, 0)
    with pytest.raises(DataError, match="would be lost"):
        publish("Dr. A", pseudonymous=pseudonymous)
    publish("Dr. A", pseudonymous=pseudonymous, replace=True)
    first, _ = foresee()
    assert (first.new, first.again, first.lost) == (0, 3, 0)


def test_without_votes_everything_complete_is_new(say, publish, foresee):
    """The first publication replaces nothing."""
    say("Dr. A", "pa")
    publish()
    (one,) = foresee(voted=False)
    assert (one.new, one.again, one.lost) == (2, 0, 0)


def test_votes_of_others_are_nobody_elses(workspace, assignment, say, publish):
    """A reader who was not published has no voted case."""
    say("Dr. A", "pa")
    publish()
    turnout = read_turnout(workspace, assignment.cohort)
    assert voted_cases(workspace, turnout, "Dr. A") == {"c1", "c2"}
    assert voted_cases(workspace, turnout, "Dr. C") == frozenset()
    assert voted_cases(workspace, None, "Dr. A") == frozenset()
