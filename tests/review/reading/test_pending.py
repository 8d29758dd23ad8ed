"""Decisions that wait survive a crash and never run over somebody else's."""

import pytest

from loop.core.errors import ConflictError, DataError, StoreError
from loop.core.ledger import Actor
from loop.core.records import Mark, Value
from loop.review.reading import adjudication
from loop.review.reading.adjudication import (
    Pending,
    adjudicate,
    decide,
    drop_pending,
    keep_pending,
    keep_reason,
    read_pending,
    require_current,
)
from loop.review.reading.answers import answer
from loop.review.reading.assignment import read_basis
from loop.review.reading.disputes import read_disputes
from loop.review.working import keep_working
from tests.review.reading.conftest import at

ANN, BEN = Actor(name="Dr. Ann"), Actor(name="Dr. Ben")


@pytest.fixture
def disputes(workspace, assignment, say, publish):
    """Return a function that reads the disputes of two readers over two cases."""
    say("Dr. A", "ppaa")
    say("Dr. B", "aaaa")
    publish()
    return lambda: read_disputes(workspace, assignment)


def test_what_was_decided_is_there_after_a_reload(store, assignment, disputes):
    """Nothing is lost but what was taken back."""
    first, second = disputes().rows
    kept = decide(Pending(), first, Mark.PRESENT)
    kept = decide(decide(kept, second, Mark.ABSENT), second, None)
    keep_pending(store, ANN, assignment, kept, at(1))
    keep_reason(store, ANN, assignment, "read", at(2))
    again = read_pending(store, ANN, assignment, disputes())
    assert again.decisions == {("c1", "edema"): Mark.PRESENT}
    assert (again.why, again.of(first), again.of(second)) == (
        "read",
        Mark.PRESENT,
        None,
    )
    assert read_pending(store, BEN, assignment, disputes()) == Pending()
    drop_pending(store, ANN, assignment)
    assert read_pending(store, ANN, assignment, disputes()) == Pending()


def test_a_decision_of_somebody_else_is_not_run_over(
    workspace, store, assignment, disputes
):
    """Whoever saves second is shown what happened and decides again."""
    first, second = disputes().rows
    mine = decide(decide(Pending(), first, Mark.PRESENT), second, Mark.PRESENT)
    require_current(mine, disputes())
    adjudicate(
        workspace,
        assignment,
        {("c1", "edema"): Mark.ABSENT, ("c2", "edema"): Mark.PRESENT},
        actor=BEN,
        why="panel",
    )
    now = disputes()
    assert [mine.overtaken(row) for row in now.rows if row.case_id == "c1"] == [True]
    assert [mine.overtaken(row) for row in now.rows if row.case_id == "c2"] == [False]
    with pytest.raises(ConflictError, match="1 of these disputes"):
        require_current(mine, now)
    (theirs,) = [row for row in now.rows if row.case_id == "c1"]
    require_current(decide(mine, theirs, Mark.PRESENT), now)


def test_a_pair_no_longer_in_dispute_does_not_wait(
    store, assignment, disputes, publish
):
    """New votes may end a dispute that was decided on and not saved."""
    first, _ = disputes().rows
    keep_pending(store, ANN, assignment, decide(Pending(), first, Mark.PRESENT), at(1))
    answer(store, assignment, "Dr. B", "c1", {"edema": Value.PRESENT}, at(2))
    publish()
    assert read_pending(store, ANN, assignment, disputes()).decisions == {}


def test_not_every_mark_and_not_without_end(monkeypatch, disputes):
    """Each refusal says what to do."""
    first, second = disputes().rows
    with pytest.raises(DataError, match="nobody can decide on 'missing'"):
        decide(Pending(), first, Mark.MISSING)
    monkeypatch.setattr(adjudication, "MOST", 1)
    one = decide(Pending(), first, Mark.PRESENT)
    assert decide(one, first, Mark.ABSENT).of(first) is Mark.ABSENT
    with pytest.raises(DataError, match="Save them first"):
        decide(one, second, Mark.PRESENT)


@pytest.mark.parametrize("payload", [{}, {"decisions": [["c1"]]}, {"decisions": 3}])
def test_what_something_else_changed_is_said(store, assignment, disputes, payload):
    """A damaged row is no crash."""
    keep_working(store, ANN, f"adjudicate:{assignment.key}", payload)
    with pytest.raises(StoreError, match="Drop them"):
        read_pending(store, ANN, assignment, disputes())


def test_the_basis_changes_with_what_it_rests_on(
    workspace, store, assignment, disputes
):
    """What is worked out once is worked out again when it must be, and only then."""
    before = read_basis(workspace, assignment, store)
    assert read_basis(workspace, assignment, store) == before
    answer(store, assignment, "Dr. A", "c1", {"edema": Value.UNCERTAIN}, at(3))
    after = read_basis(workspace, assignment, store)
    assert after.readings > before.readings
    assert after.recorded == before.recorded
    adjudicate(
        workspace, assignment, {("c1", "edema"): Mark.ABSENT}, actor=BEN, why="panel"
    )
    assert read_basis(workspace, assignment).recorded != before.recorded
