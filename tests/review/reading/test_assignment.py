"""Whose cases and in which order: exactly these, and no answer is ever lost."""

import dataclasses
import hashlib
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loop.core.digests import framed
from loop.core.errors import DataError, StoreError
from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.core.records import Value
from loop.labels.ballots import Turnout
from loop.labels.taxonomy import NO_FINDING
from loop.review.reading.answers import answer, complete_case, read_answers
from loop.review.reading.assignment import (
    CaseOrder,
    PlanRequest,
    ReadingCacheKey,
    ReadingPlan,
    assign_cases,
    assign_sample,
    cases_to_read,
    check_reader,
    clear_plans,
    count_shared,
    plan_cases,
    plan_guideline,
    positions,
    pseudonym_of,
    read_basis,
    read_order,
    read_plans,
    reading_order,
    require_cases,
    require_label,
    voted_cases,
    voting_names,
)
from loop.review.reading.publication import dry_run_publication
from loop.review.reading.reader_progress import find_way, measure_progress, next_case
from loop.run.store import StoredVerdict
from tests.review.reading.conftest import CASES, EDITOR, at, import_texts
from tests.review.reading.test_reader_progress import many


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


@pytest.fixture
def give(store, assignment):
    """Return a function that gives readers cases."""

    def run(*readers, **options):
        wanted = PlanRequest(readers=readers, **options)
        return assign_cases(store, assignment, wanted, EDITOR)

    return run


def test_without_a_plan_every_case_is_read_in_the_order_of_before(store, assignment):
    """Readings that were begun before there were plans go on as they were."""
    order = reading_order(assignment.cohort, "Dr. A")
    assert cases_to_read(store, assignment, "Dr. A") == order
    assert read_plans(store, assignment) == {}


@pytest.mark.parametrize(("cases", "overlap"), [(2, 0), (2, 1), (2, 2), (4, 4), (1, 0)])
def test_readers_share_as_many_cases_as_asked(assignment, cases, overlap):
    """The rest of each is nobody else's, and another seed draws others."""
    if overlap + 2 * (cases - overlap) > len(CASES):
        pytest.skip("not enough cases")
    drawn = plan_cases(
        assignment, PlanRequest(readers=("A", "B"), cases=cases, overlap=overlap)
    )
    assert [len(ids) for ids in drawn.values()] == [cases, cases]
    assert len(set(drawn["A"]) & set(drawn["B"])) == overlap
    seeds = {
        plan_cases(assignment, PlanRequest(readers=("A",), cases=2, seed=seed))["A"]
        for seed in range(20)
    }
    assert len(seeds) > 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_plan_gives_each_reader_as_many_cases_as_asked(assignment, data):
    """Those that are shared are everybody's, each other one is one reader's alone."""
    size = data.draw(st.integers(1, 12))
    cohort = dataclasses.replace(assignment, cohort=many(assignment, size))
    readers = [f"Dr. {letter}" for letter in "ABCD"[: data.draw(st.integers(1, 4))]]
    cases = data.draw(st.integers(1, size))
    overlap = data.draw(st.integers(0, cases))
    wanted = PlanRequest(
        readers=tuple(readers),
        cases=cases,
        overlap=overlap,
        order=data.draw(st.sampled_from(CaseOrder)),
        seed=data.draw(st.integers(1, 3)),
    )
    if overlap + len(readers) * (cases - overlap) > size:
        with pytest.raises(DataError, match=f"and there are {size}"):
            plan_cases(cohort, wanted)
        return
    given_ = plan_cases(cohort, wanted)
    assert list(given_) == readers
    assert all(len(set(plan)) == len(plan) == cases for plan in given_.values())
    held = Counter(case for plan in given_.values() for case in plan)
    counts = Counter(held.values())
    if len(readers) > 1:
        assert counts == Counter(
            {len(readers): overlap, 1: len(readers) * (cases - overlap)}
        )
    for reader, plan in given_.items():
        order = cohort.cohort.case_ids
        if wanted.order is CaseOrder.RANDOM:
            order = reading_order(cohort.cohort, reader)
        assert list(plan) == [case for case in order if case in set(plan)]


def test_the_order_is_the_readers_own_or_as_listed(assignment):
    """Random is the order of `reading_order`; listed is that of the list."""
    listed = ("c3", "c1", "c2")
    wanted = PlanRequest(readers=("A",), among=listed, order=CaseOrder.LISTED)
    assert plan_cases(assignment, wanted) == {"A": listed}
    own = plan_cases(assignment, PlanRequest(readers=("A",), among=listed))["A"]
    order = reading_order(assignment.cohort, "A")
    assert own == tuple(case for case in order if case in listed)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"readers": ()}, "name each reader"),
        ({"readers": ("A", "A ")}, "name each reader"),
        ({"readers": ("A\x00",)}, "name of a reader"),
        ({"readers": ("A",), "cases": 5}, "take 5 cases, and there are 4"),
        ({"readers": ("A", "B"), "cases": 3, "overlap": 1}, "take 5 cases"),
        ({"readers": ("A",), "cases": 2, "overlap": 3}, "cannot be drawn"),
        ({"readers": ("A",), "cases": 0}, "cannot be drawn"),
        ({"readers": ("A",), "cases": 2, "overlap": -1}, "cannot be drawn"),
        ({"readers": ("A",), "among": ("zz",)}, "has no case 'zz'"),
        ({"readers": ("A",), "among": ("c1", "c1")}, "listed twice"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(store, assignment, options, message):
    """Nothing is kept of it."""
    with pytest.raises(DataError, match=message):
        assign_cases(store, assignment, PlanRequest(**options), EDITOR)
    assert read_plans(store, assignment) == {}


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        (" Dr. A ", "Dr. A"),
        ("x" * 64, "x" * 64),
        ("x" * 65, ""),
        ("", ""),
        ("a\tb", ""),
    ],
)
def test_a_reader_has_a_name_of_one_to_sixty_four_characters(name, plain):
    """It stands in votes, in the ledger and on pages."""
    if plain:
        assert check_reader(name) == plain
    else:
        with pytest.raises(DataError, match="1 to 64 printable characters"):
            check_reader(name)


def test_one_person_has_one_pseudonym(workspace):
    """However the name is capitalised; and no two people have the same."""
    names = [pseudonym_of(workspace, name) for name in ("Dr. A", "DR. A ", "Dr. B")]
    assert names[0] == names[1] != names[2]
    assert all(name.startswith("reader-") and len(name) == 15 for name in names)


def test_who_was_given_cases_has_the_guideline_of_that_day(store, assignment, give):
    """Until the reader reads every case again; then there was no day."""
    assert plan_guideline(store, assignment, "Dr. A") is None
    give("Dr. A", cases=2)
    assert plan_guideline(store, assignment, "Dr. A") == assignment.guideline
    clear_plans(store, assignment, ["Dr. A"], EDITOR)
    assert plan_guideline(store, assignment, "Dr. A") is None


def test_a_reader_gets_exactly_the_cases_given(store, assignment, give):
    """In this order, until all are complete; the other cases are not asked for."""
    give("Dr. A", among=("c3", "c1"), order=CaseOrder.LISTED)
    assert next_case(store, assignment, "Dr. A") == "c3"
    complete_case(store, assignment, "Dr. A", "c3")
    assert next_case(store, assignment, "Dr. A") == "c1"
    complete_case(store, assignment, "Dr. A", "c1")
    way = find_way(store, assignment, "Dr. A")
    assert (way.next, way.of, way.complete) == (None, 2, 2)
    assert find_way(store, assignment, "Dr. B").of == 4


def test_a_changed_plan_loses_no_answer(
    workspace, store, assignment, give, say, publish
):
    """What was read outside the plan stays, is published, and is not called lost."""
    say("Dr. A", "pppp")
    publish()
    give("Dr. A", among=("c2",))
    assert len(read_answers(store, assignment, "Dr. A")) == 4
    progress = measure_progress(store, assignment)
    (one,) = progress.readers
    assert (one.complete, one.given, one.given_complete, one.shared) == (4, 1, 1, 0)
    answer(store, assignment, "Dr. A", "c1", {"edema": Value.ABSENT})
    assert publish().readers[0].complete == 4
    (seen,) = dry_run_publication(workspace, store, assignment, progress, None)
    assert (seen.new, seen.lost) == (4, 0)
    clear_plans(store, assignment, ["Dr. A"], EDITOR)
    assert len(cases_to_read(store, assignment, "Dr. A")) == 4
    assert read_plans(store, assignment) == {}


def test_a_reader_who_was_given_cases_is_listed_before_the_first_answer(
    store, assignment, give
):
    """Whoever assigned sees that nothing was read yet."""
    give("Dr. A", "Dr. B", cases=3, overlap=2)
    rows = measure_progress(store, assignment).readers
    told = [(r.reader, r.given, r.given_complete, r.shared, r.last) for r in rows]
    assert told == [("Dr. A", 3, 0, 2, ""), ("Dr. B", 3, 0, 2, "")]


def test_a_plan_that_something_else_changed_is_said(store, assignment, give):
    """A reader must not read all cases because a list was damaged."""
    give("Dr. A", cases=2)
    with store.writing() as connection:
        connection.execute("UPDATE reading_plans SET cases = '{broken'")
    with pytest.raises(StoreError, match="reading assign"):
        next_case(store, assignment, "Dr. A")


def test_a_plan_keeps_the_chances_of_its_cases(store, assignment, give):
    """Whatever the order of reading, each case has its own; so has a later plan."""
    chances = {"c1": 0.5, "c2": 0.125, "c4": 1.0}
    listed = {"among": tuple(chances), "chances": tuple(chances.values())}
    (made,) = give("Dr. A", **listed)
    assert dict(zip(made.case_ids, made.chances, strict=True)) == chances
    assert read_plans(store, assignment)["Dr. A"] == made
    (part,) = give("Dr. A", cases=2, **listed)
    assert part.chances == tuple(chances[case] for case in part.case_ids)
    (plain,) = give("Dr. A", cases=2)
    assert plain.chances == ()
    assert read_plans(store, assignment)["Dr. A"].chances == ()
    clear_plans(store, assignment, ["Dr. A"], EDITOR)
    assert read_plans(store, assignment) == {}


def test_chances_of_other_cases_are_refused(assignment):
    """One for each case that is drawn from, or none at all."""
    with pytest.raises(ValueError, match="a chance for each case"):
        plan_cases(
            assignment,
            PlanRequest(readers=("A",), among=("c1", "c2"), chances=(0.5,)),
        )
    with pytest.raises(ValueError, match="a chance for each case"):
        plan_cases(assignment, PlanRequest(readers=("A",), chances=(0.5,)))


@pytest.mark.parametrize("chances", ["{broken", "[0.5]", "[0.5, 2]", '["x", "y"]', "7"])
def test_chances_that_something_else_changed_are_said(store, assignment, give, chances):
    """A weight that nobody drew by must not be taken for one."""
    give("Dr. A", among=("c1", "c2"), chances=(0.5, 0.25))
    with store.writing() as connection:
        connection.execute("UPDATE reading_plans SET chances = ?", [chances])
    with pytest.raises(StoreError, match="reading assign"):
        read_plans(store, assignment)


def test_cases_are_drawn_by_digest_first_those_that_all_share(assignment):
    """Anybody can draw them again: by cohort, seed and case alone."""
    wide = dataclasses.replace(assignment, cohort=many(assignment, 9))
    wanted = PlanRequest(
        readers=("A", "B"), cases=4, overlap=2, seed=7, order=CaseOrder.LISTED
    )
    start = framed(["reading plan", wide.cohort.digest, "7"])
    drawn = sorted(
        wide.cohort.case_ids,
        key=lambda case: hashlib.sha256(start + framed([case])).digest(),
    )
    assert plan_cases(wide, wanted) == {
        "A": tuple(sorted(drawn[:4])),
        "B": tuple(sorted(drawn[:2] + drawn[4:6])),
    }


def test_given_plans_come_back_by_name_and_the_last_one_counts(store, assignment, give):
    """With who gave them, when, and beside which guideline."""
    both = PlanRequest(readers=("Dr. B", "Dr. A"), among=("c4", "c2"))
    first = assign_cases(store, assignment, both, EDITOR, at(1))
    assert [one.reader for one in first] == ["Dr. A", "Dr. B"]
    later = PlanRequest(
        readers=("Dr. B",), among=("c3", "c1"), order=CaseOrder.LISTED, cases=2
    )
    (again,) = assign_cases(store, assignment, later, Actor(name="Dr. Other"), at(2))
    assert again == ReadingPlan(
        reader="Dr. B",
        case_ids=("c3", "c1"),
        given_by="Dr. Other",
        created="2026-01-05T09:02:00Z",
        guideline=assignment.taxonomy.digest[:12],
    )
    plans = read_plans(store, assignment)
    assert list(plans.items()) == [("Dr. A", first[0]), ("Dr. B", again)]
    assert first[0].given_by == EDITOR.name
    assert cases_to_read(store, assignment, " Dr. B ") == ("c3", "c1")
    other = dataclasses.replace(
        assignment, cohort=dataclasses.replace(assignment.cohort, digest="e" * 64)
    )
    assert read_plans(store, other) == {}


def test_shared_cases_are_those_of_anybody_else(assignment):
    """Each once, however many share it."""
    plans = {
        name: ReadingPlan(
            reader=name, case_ids=tuple(cases), given_by="", created="", guideline=None
        )
        for name, cases in (("A", "abc"), ("B", "bcd"), ("C", "cx"))
    }
    shared = [count_shared(plans, name) for name in plans]
    assert shared == [2, 2, 1]


def test_a_plan_s_cases_that_are_gone_are_not_read(store, assignment, give):
    """Where none is left, every case is."""
    give("Dr. A", among=("c3", "c1"), order=CaseOrder.LISTED)
    cases = {one.case_id: one for one in assignment.cohort.cases}

    def without(*gone):
        kept = tuple(one for name, one in cases.items() if name not in gone)
        cohort = dataclasses.replace(assignment.cohort, cases=kept)
        return dataclasses.replace(assignment, cohort=cohort)

    assert cases_to_read(store, without("c3"), "Dr. A") == ("c1",)
    left = without("c3", "c1")
    assert cases_to_read(store, left, "Dr. A") == reading_order(left.cohort, "Dr. A")


@pytest.mark.parametrize("cases", ['{"c1": 1}', '"c1"', "3", "null", "[c1"])
def test_a_plan_that_is_no_list_is_said(store, assignment, give, cases):
    """By the name of its reader, wherever it is read."""
    give("Dr. A", cases=2)
    with store.writing() as connection:
        connection.execute("UPDATE reading_plans SET cases = ?", [cases])
    for read in (cases_to_read, plan_guideline):
        with pytest.raises(StoreError, match=r"plan of 'Dr\. A' cannot be read"):
            read(store, assignment, "Dr. A")
    with pytest.raises(StoreError, match=r"plan of 'Dr\. A' cannot be read"):
        read_plans(store, assignment)


@pytest.mark.parametrize(
    ("chances", "taken"),
    [("[1, 1e-9]", True), ("[0.5, 0]", False), ("[0.5, -0.1]", False)],
)
def test_a_chance_is_above_zero_and_at_most_one(
    store, assignment, give, chances, taken
):
    """What had no chance cannot have been drawn."""
    give("Dr. A", among=("c1", "c2"), chances=(0.5, 0.25))
    with store.writing() as connection:
        connection.execute("UPDATE reading_plans SET chances = ?", [chances])
    if taken:
        assert read_plans(store, assignment)["Dr. A"].chances == (1, 1e-9)
    else:
        with pytest.raises(StoreError, match=r"plan of 'Dr\. A' cannot be read"):
            read_plans(store, assignment)


def test_what_readers_are_asked_is_the_cohort_s_and_the_protocol_s(assignment):
    """Twenty labels, and what answers are kept under."""
    cohort, taxonomy = assignment.cohort, assignment.taxonomy
    assert assignment.key == f"read@{cohort.digest[:16]}"
    assert assignment.guideline == taxonomy.digest[:12]
    assert assignment.labels == tuple(one for one in taxonomy.ids if one != NO_FINDING)
    asked = dataclasses.replace(assignment, no_finding_read=True)
    assert asked.labels == taxonomy.ids
    assert positions(cohort) == {"c1": 0, "c2": 1, "c3": 2, "c4": 3}
    assert require_label(assignment, "Pleural Effusion") == "pleural_effusion"
    assert require_label(asked, "No Finding") == NO_FINDING
    with pytest.raises(DataError, match="no_finding is not asked"):
        require_label(assignment, "No Finding")
    with pytest.raises(DataError, match="'read' has no case 'c9'"):
        require_cases(assignment, ["c1", "c9", "c8"])


def test_a_name_is_kept_composed_however_it_was_typed():
    """One keyboard writes an accent apart, another one as a letter of its own."""
    assert check_reader(" Rene\u0301 ") == "Ren\u00e9"


def test_cases_are_drawn_with_seed_one_where_none_is_given():
    """Another default would give readers other cases."""
    assert PlanRequest(readers=("Dr. A", "Dr. B")).seed == 1


def test_an_order_is_random_or_listed():
    """Another word is told both."""
    assert [read_order(one) for one in ("random", "listed")] == list(CaseOrder)
    with pytest.raises(DataError, match=r"no order 'sorted'\. Use random or listed"):
        read_order("sorted")


def test_a_name_is_looked_for_among_those_that_voted(workspace):
    """Under the own name, the pseudonym, or both; pseudonyms of others are not."""
    hidden, other = (pseudonym_of(workspace, who) for who in ("Dr. A", "Dr. B"))
    every = ("Dr. A", "Dr. C", other, hidden)
    assert voting_names(workspace, every, "Dr. A") == ("Dr. A", hidden)
    assert voting_names(workspace, ("Dr. A", "Dr. C"), "Dr. A") == ("Dr. A",)
    assert voting_names(workspace, (hidden,), "Dr. C") == ()
    voted = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1]], dtype=bool)
    turnout = Turnout(("Dr. A", "Dr. C", hidden), ("c1", "c2", "c3", "c4"), voted)
    assert voted_cases(workspace, turnout, "Dr. A") == {"c1", "c3", "c4"}
    assert voted_cases(workspace, turnout, "Dr. C") == {"c2"}
    assert voted_cases(workspace, turnout, "Dr. D") == frozenset()


def test_what_rests_on_a_cohort_is_known_by_its_own_entries(
    workspace, store, assignment, give, say, publish, tmp_path
):
    """An entry on another cohort, or a score, changes nothing; a reading does."""

    def numbers(basis):
        return basis.readings, basis.plans, basis.verdicts

    first = read_basis(workspace, assignment, store)
    (entry,) = (one for one in read_ledger(workspace.ledger) if one.subject == "read")
    assert first == ReadingCacheKey(
        cohort=assignment.key,
        taxonomy=assignment.taxonomy.digest,
        labels=assignment.labels,
        recorded=entry.hash,
    )
    import_texts(workspace, tmp_path, {"x": "Another."}, name="other")
    assert read_basis(workspace, assignment, store) == first
    give("Dr. A", cases=1)
    give("Dr. A", cases=2)
    assert numbers(read_basis(workspace, assignment, store)) == (0, 2, 0)
    say("Dr. A", "p")
    store.add_verdicts([StoredVerdict("x", "2026-01-05", "Dr. A", {})])
    assert numbers(read_basis(workspace, assignment, store)) == (20, 2, 1)
    assert numbers(read_basis(workspace, assignment)) == (0, 0, 0)
    publish()
    recorded = read_basis(workspace, assignment).recorded
    assert recorded == read_ledger(workspace.ledger)[-1].hash
    scored = Event(
        action="evaluated", subject="tiny@v1", reason="x", payload={"cohort": "read"}
    )
    append_event(workspace.ledger, scored, EDITOR)
    assert read_basis(workspace, assignment).recorded == recorded
    nobody = dataclasses.replace(
        assignment, cohort=dataclasses.replace(assignment.cohort, name="nobody")
    )
    assert read_basis(workspace, nobody).recorded == ""


def test_a_value_sample_is_taken_whole_or_not_at_all(workspace, assignment):
    """Cases of one's own are none, and none that was not drawn."""
    with pytest.raises(DataError, match="cases of one's own are no value sample"):
        assign_sample(workspace, assignment, PlanRequest(readers=("A",), among=("c1",)))
    with pytest.raises(DataError, match="no value sample of cohort read was drawn"):
        assign_sample(workspace, assignment, PlanRequest(readers=("A",)))
