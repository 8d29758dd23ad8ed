"""The order of reading, what comes next, and who was blind."""

import dataclasses
import subprocess
import sys
from collections import Counter

import pytest

from loop.core.errors import DataError
from loop.core.records import Value
from loop.labels.cohort import CohortCase
from loop.review.reading.answers import answer, complete_case, defer_case
from loop.review.reading.assignment import reading_order
from loop.review.reading.progress import (
    State,
    list_places,
    measure_progress,
    next_case,
)
from loop.run.store import Verdict
from tests.review.reading.conftest import CASES, at


def many(assignment, number):
    """Return the cohort with `number` made-up cases."""
    cases = tuple(CohortCase(f"case {n}", "", "") for n in range(number))
    return dataclasses.replace(assignment.cohort, cases=cases)


def test_the_order_is_a_permutation_and_stays(assignment):
    """The same reader gets the same order in another process."""
    order = reading_order(many(assignment, 200), "Dr. A")
    assert sorted(order) == sorted(f"case {n}" for n in range(200))
    code = (
        "import hashlib\nfrom loop.core.digests import framed\n"
        f"start = framed([{assignment.cohort.digest!r}, 'Dr. A'])\n"
        "names = [f'case {n}' for n in range(200)]\n"
        "key = lambda name: hashlib.sha256(start + name.encode()).digest()\n"
        "print(','.join(sorted(names, key=key)))"
    )
    made = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert made.stdout.strip() == ",".join(order)


def test_every_reader_has_an_order_of_their_own(assignment):
    """Over 600 readers each of six orders of three cases comes about equally often."""
    cohort = many(assignment, 3)
    orders = Counter(reading_order(cohort, f"reader {n}") for n in range(600))
    assert len(orders) == 6
    # Chi-squared with 5 degrees of freedom exceeds 20.5 once in a thousand.
    assert sum((n - 100) ** 2 / 100 for n in orders.values()) < 20.5


def test_another_cohort_has_another_order(assignment):
    """The digest of the cohort is part of the draw."""
    one = many(assignment, 50)
    other = dataclasses.replace(one, digest="f" * 64)
    assert reading_order(one, "Dr. A") != reading_order(other, "Dr. A")


def test_next_goes_through_the_order_until_all_are_complete(store, assignment):
    """A case that is begun comes again; a complete one does not."""
    order = reading_order(assignment.cohort, "Dr. A")
    for case in order:
        assert next_case(store, assignment, "Dr. A") == case
        answer(store, assignment, "Dr. A", case, {"edema": Value.PRESENT})
        assert next_case(store, assignment, "Dr. A") == case
        complete_case(store, assignment, "Dr. A", case)
    assert next_case(store, assignment, "Dr. A") is None
    assert next_case(store, assignment, "Dr. B") is not None


def test_a_case_put_off_comes_after_all_others(store, assignment):
    """Putting the next one off again and again goes round, and is kept."""
    order = reading_order(assignment.cohort, "Dr. A")
    seen = []
    for _ in range(8):
        case = next_case(store, assignment, "Dr. A")
        seen.append(case)
        defer_case(store, assignment, "Dr. A", case)
    assert seen == [*order, *order]
    complete_case(store, assignment, "Dr. A", order[0])
    assert next_case(store, assignment, "Dr. A") == order[1]
    with pytest.raises(DataError, match="no case 'zz'"):
        defer_case(store, assignment, "Dr. A", "zz")


def test_progress_counts_complete_and_begun(store, assignment, say):
    """Complete means every label; one missing label is begun."""
    say("Dr. A", "pa")
    answer(store, assignment, "Dr. A", "c3", {"edema": Value.PRESENT}, at(5))
    answer(store, assignment, "Dr. A", "c2", {"edema": None}, at(7))
    found = measure_progress(store, assignment)
    assert (found.of, found.labels, found.earlier) == (4, 20, 0)
    (one,) = found.readers
    assert (one.complete, one.begun, one.answers) == (1, 2, 20 + 19 + 1)
    states = Counter(p.state for p in list_places(store, assignment, "Dr. A"))
    assert states == {State.COMPLETE: 1, State.BEGUN: 2, State.NOT_BEGUN: 1}


def test_a_case_put_off_is_not_an_answer(store, assignment):
    """Deferring alone makes nobody a reader."""
    defer_case(store, assignment, "Dr. A", "c1")
    assert measure_progress(store, assignment).readers == ()
    assert {p.state for p in list_places(store, assignment, "Dr. A")} == {
        State.NOT_BEGUN
    }


@pytest.mark.parametrize(
    ("actor", "cohort", "minute", "not_blind"),
    [
        ("Dr. A", "read", 3, 1),
        ("dr. a", "read", 5, 1),
        ("Dr. A", "read", 1, 21),
        ("Dr. A", "read", 6, 0),
        ("Dr. A", "other", 1, 0),
        ("Dr. B", "read", 1, 0),
    ],
)
def test_a_verdict_before_an_answer_ends_blindness(
    store, assignment, actor, cohort, minute, not_blind
):
    """Whoever judged the model on this cohort has seen its answers."""
    answer(store, assignment, "Dr. A", "c1", {"edema": Value.PRESENT}, at(1))
    complete_case(store, assignment, "Dr. A", "c1", now=at(2))
    answer(store, assignment, "Dr. A", "c2", {"edema": Value.PRESENT}, at(5))
    created = at(minute)().strftime("%Y-%m-%dT%H:%M:%SZ")
    store.add_verdicts([Verdict("x", created, actor, {"cohort": cohort})])
    (one,) = measure_progress(store, assignment).readers
    assert one.not_blind == not_blind
    assert one.blind is (not_blind == 0)


def test_places_are_in_the_order_of_the_reader(store, assignment):
    """The whole list, so that a page can show it."""
    places = list_places(store, assignment, "Dr. A")
    assert [p.case_id for p in places] == list(
        reading_order(assignment.cohort, "Dr. A")
    )
    assert {p.case_id for p in places} == set(CASES)
