"""What comes next, how far readers are, and who was blind."""

import dataclasses
import random
from collections import Counter

import pytest

from loop.core.errors import DataError
from loop.core.records import Value
from loop.labels.cohort import CohortCase
from loop.review.reading.answers import answer, complete_case, defer_case, read_answers
from loop.review.reading.assignment import PlanRequest, assign_cases, reading_order
from loop.review.reading.reader_progress import (
    ReaderPosition,
    ReaderProgress,
    ReadingProgress,
    State,
    complete_cases,
    find_way,
    list_places,
    measure_progress,
    next_case,
    read_standing,
)
from loop.run.store import StoredVerdict, open_store
from tests.review.reading.conftest import CASES, EDITOR, at


def many(assignment, number):
    """Return the cohort with `number` made-up cases."""
    cases = tuple(CohortCase(f"case {n}", "", "") for n in range(number))
    return dataclasses.replace(assignment.cohort, cases=cases)


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
    store.add_verdicts([StoredVerdict("x", created, actor, {"cohort": cohort})])
    (one,) = measure_progress(store, assignment).readers
    assert one.not_blind == not_blind
    assert one.blind is (not_blind == 0)


def test_the_first_verdict_of_a_person_counts_under_whatever_name(store, assignment):
    """Capitals make nobody blind again; a case that was put off is no answer."""
    for number, (actor, minute) in enumerate(
        (("DR. A", 4), ("Dr. A", 2), ("dr. a ", 6))
    ):
        created = at(minute)().strftime("%Y-%m-%dT%H:%M:%SZ")
        store.add_verdicts(
            [StoredVerdict(f"{number}", created, actor, {"cohort": "read"})]
        )
    answer(store, assignment, "Dr. A", "c1", {"edema": Value.PRESENT}, at(1))
    answer(store, assignment, "Dr. A", "c1", {"fracture": Value.PRESENT}, at(3))
    defer_case(store, assignment, "Dr. A", "c2", at(5))
    (one,) = measure_progress(store, assignment).readers
    assert one.not_blind == 1


def test_answers_to_other_texts_under_the_same_name_are_counted_apart(
    store, assignment
):
    """Not those on a cohort whose name begins alike, and no case that was put off."""
    rows = [
        (assignment.key, "c1", "edema"),
        ("read@0123456789abcdef", "c1", "edema"),
        ("read@0123456789abcdef", "c2", ""),
        ("read2@0123456789abcdef", "c1", "edema"),
        ("rea@0123456789abcdef", "c1", "edema"),
    ]
    with store.writing() as connection:
        connection.executemany(
            "INSERT INTO readings (cohort, reader, case_id, label, value, created) "
            "VALUES (?, 'Dr. A', ?, ?, 'present', '2026-01-05T09:00:00Z')",
            rows,
        )
    assert measure_progress(store, assignment).earlier == 1


def test_cases_that_the_cohort_has_not_are_not_complete(store, assignment):
    """Nor do they count among those to read."""
    complete_case(store, assignment, "Dr. A", "c1")
    complete_case(store, assignment, "Dr. A", "c2")
    kept = [one for one in assignment.cohort.cases if one.case_id != "c2"]
    fewer = dataclasses.replace(
        assignment, cohort=dataclasses.replace(assignment.cohort, cases=tuple(kept))
    )
    assert complete_cases(store, assignment, "Dr. A") == {"c1", "c2"}
    assert complete_cases(store, fewer, "Dr. A") == {"c1"}


def test_places_are_in_the_order_of_the_reader(store, assignment):
    """The whole list, so that a page can show it."""
    places = list_places(store, assignment, "Dr. A")
    assert [p.case_id for p in places] == list(
        reading_order(assignment.cohort, "Dr. A")
    )
    assert {p.case_id for p in places} == set(CASES)


def test_the_way_leads_on_to_the_first_open_case_and_back_to_done_ones(
    store, assignment
):
    """Going back and on again never leaves the reader's own order."""
    order = reading_order(assignment.cohort, "Dr. A")
    way = find_way(store, assignment, "Dr. A")
    assert (way.here, way.before, way.next, way.complete) == (
        order[0],
        None,
        order[0],
        0,
    )
    complete_case(store, assignment, "Dr. A", order[0])
    defer_case(store, assignment, "Dr. A", order[1])
    complete_case(store, assignment, "Dr. A", order[2])
    answer(store, assignment, "Dr. A", order[3], {"edema": Value.PRESENT})
    way = find_way(store, assignment, "Dr. A")
    assert (way.here, way.before) == (order[3], order[2])
    assert (way.of, way.complete, way.begun, way.deferred) == (4, 2, 1, 1)
    back = find_way(store, assignment, "Dr. A", order[2])
    assert (back.here, back.before, back.next) == (order[2], order[0], order[3])
    for case in order:
        complete_case(store, assignment, "Dr. A", case)
    end = find_way(store, assignment, "Dr. A")
    assert (end.here, end.before, end.next) == (None, order[3], None)


def test_standing_is_the_same_when_kept_up_and_when_read_anew(
    workspace, store, assignment
):
    """Rows that another process adds count too, and so do answers taken back."""
    rng = random.Random(7)
    with open_store(workspace) as elsewhere:
        for step in range(120):
            case, label = rng.choice(CASES), rng.choice(assignment.labels[:3])
            writer = rng.choice([store, elsewhere])
            if step % 10 == 0:
                defer_case(writer, assignment, "Dr. A", case)
            value = rng.choice([Value.PRESENT, Value.ABSENT, None])
            answer(writer, assignment, "Dr. A", case, {label: value})
            kept = read_standing(store, assignment, "Dr. A")
        with open_store(workspace) as fresh:
            anew = read_standing(fresh, assignment, "Dr. A")
    assert kept == anew
    answers = read_answers(store, assignment, "Dr. A")
    assert {case: n for case, n in kept.given.items() if n} == {
        case: len(said) for case, said in answers.items()
    }
    assert read_standing(store, assignment, "Dr. B") == ({}, {}, frozenset())


def test_another_taxonomy_is_counted_anew(store, assignment):
    """A label that is no longer asked does not count towards a complete case."""
    complete_case(store, assignment, "Dr. A", "c1")
    assert read_standing(store, assignment, "Dr. A").given == {"c1": 20}
    kept = tuple(one for one in assignment.taxonomy.labels if one.id != "edema")
    smaller = dataclasses.replace(assignment.taxonomy, labels=kept)
    fewer = dataclasses.replace(assignment, taxonomy=smaller)
    assert read_standing(store, fewer, "Dr. A").given == {"c1": 19}


def test_progress_tells_all_of_every_reader(store, assignment, say):
    """By name; a plan says what is to be read and what is shared."""
    say("Dr. C", "pa", minute=3)
    answer(store, assignment, "Dr. B", "c2", {"edema": Value.ABSENT}, at(7))
    answer(store, assignment, "Dr. B", "c1", {"edema": Value.PRESENT}, at(5))
    assign_cases(
        store, assignment, PlanRequest(readers=("Dr. C",), among=("c2", "c3")), EDITOR
    )
    assign_cases(
        store, assignment, PlanRequest(readers=("Dr. A",), among=("c3",)), EDITOR
    )
    nothing = {"complete": 0, "begun": 0, "answers": 0, "given_complete": 0}
    common = {"other_guideline": 0, "not_blind": 0}
    assert measure_progress(store, assignment) == ReadingProgress(
        cohort="read",
        of=4,
        labels=20,
        readers=(
            ReaderProgress(
                reader="Dr. A", last="", given=1, shared=1, **nothing, **common
            ),
            ReaderProgress(
                reader="Dr. B",
                complete=0,
                begun=2,
                answers=2,
                last="2026-01-05T09:07:00Z",
                given=4,
                given_complete=0,
                shared=None,
                **common,
            ),
            ReaderProgress(
                reader="Dr. C",
                complete=2,
                begun=0,
                answers=40,
                last="2026-01-05T09:03:00Z",
                given=2,
                given_complete=1,
                shared=1,
                **common,
            ),
        ),
        earlier=0,
    )


def test_answers_beside_another_guideline_are_counted_until_they_are_given_again(
    store, assignment
):
    """By answer and by case; those from before it was kept are not known to be so."""
    taxonomy = dataclasses.replace(assignment.taxonomy, digest="d" * 64)
    other = dataclasses.replace(assignment, taxonomy=taxonomy)
    answer(store, other, "Dr. A", "c1", {"edema": Value.PRESENT}, at(1))
    answer(store, other, "Dr. A", "c1", {"fracture": Value.PRESENT}, at(1))
    answer(store, other, "Dr. A", "c2", {"edema": Value.PRESENT}, at(1))
    answer(store, assignment, "Dr. A", "c3", {"edema": Value.PRESENT}, at(2))
    with store.writing() as connection:
        connection.execute(
            "INSERT INTO readings (cohort, reader, case_id, label, value, created) "
            "VALUES (?, 'Dr. A', 'c4', 'edema', 'present', '2026-01-05T09:00:00Z')",
            [assignment.key],
        )

    def other_of():
        way = find_way(store, assignment, "Dr. A")
        (one,) = measure_progress(store, assignment).readers
        return one.other_guideline, way.other_guideline

    assert other_of() == (3, 2)
    answer(store, assignment, "Dr. A", "c1", {"edema": Value.PRESENT}, at(3))
    assert other_of() == (2, 2)
    answer(store, assignment, "Dr. A", "c1", {"fracture": None}, at(4))
    assert other_of() == (1, 1)
    answer(store, assignment, "Dr. A", "c2", {"edema": Value.ABSENT}, at(5))
    assert other_of() == (0, 0)


def test_the_way_of_one_who_looks_elsewhere_is_their_own(store, assignment):
    """A case that is not to be read stands after all others."""
    order = reading_order(assignment.cohort, "Dr. A")
    for case in order[:2]:
        complete_case(store, assignment, "Dr. A", case)
    way = find_way(store, assignment, "Dr. A", "elsewhere")
    assert way == ReaderPosition(
        here="elsewhere",
        before=order[1],
        next=order[2],
        of=4,
        complete=2,
        begun=0,
        deferred=0,
        other_guideline=0,
    )


def test_what_was_put_off_and_completed_is_put_off_no_more(store, assignment):
    """The number grows with each time, and is gone with the last answer."""
    order = reading_order(assignment.cohort, "Dr. A")
    for case in (order[2], order[0], order[2]):
        defer_case(store, assignment, "Dr. A", case)
    answer(store, assignment, "Dr. A", order[0], {"edema": Value.PRESENT})
    complete_case(store, assignment, "Dr. A", order[1])
    first, second, third, fourth = list_places(store, assignment, "Dr. A")
    assert first[:2] == (order[0], State.BEGUN)
    assert second == (order[1], State.COMPLETE, 0)
    assert third[:2] == (order[2], State.NOT_BEGUN)
    assert fourth == (order[3], State.NOT_BEGUN, 0)
    assert 0 < first.deferred < third.deferred
    for case, left in ((order[3], order[0]), (order[0], order[2]), (order[2], None)):
        complete_case(store, assignment, "Dr. A", case)
        assert next_case(store, assignment, "Dr. A") == left
    assert find_way(store, assignment, "Dr. A").deferred == 0
