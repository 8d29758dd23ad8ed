"""A panel's decisions: a version with a reason, and how long they stand."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from loop.core.errors import DataError, LoopError
from loop.core.ledger import Actor, read_ledger
from loop.core.records import Mark
from loop.labels.ballots import read_cohort_votes
from loop.labels.reference import (
    correct_reference,
    list_references,
    read_reference,
    reference_path,
)
from loop.review.reading.adjudication import adjudicate
from loop.review.reading.disputes import read_disputes
from tests.review.reading.conftest import CASES

CHAIR = Actor(name="Dr. Chair", role="reviewer")


@pytest.fixture
def decide(workspace, assignment):
    """Return a function that decides edema of cases: c1="p"."""
    words = {"p": "present", "a": "absent", "u": "uncertain", "n": "no_majority"}

    def run(actor=CHAIR, why="read together", **marks):
        wanted = {(case, "edema"): Mark(words[word]) for case, word in marks.items()}
        return adjudicate(workspace, assignment, wanted, actor=actor, why=why)

    return run


@pytest.fixture
def tied(say, publish):
    """Publish two readers who differ on c1, c2 and c3."""
    say("Dr. A", "pppa")
    say("Dr. B", "aaua")
    publish()


def test_a_decision_makes_a_version_with_its_reason(
    workspace, assignment, tied, decide
):
    """The ledger says who, why, which pairs, and from which version."""
    made = decide(c1="p", c2="u")
    assert (made.reference, made.decided, made.own, made.open) == (2, 2, 0, 1)
    reference = read_reference(workspace, "read")
    assert reference.mark("c1", "edema") is Mark.PRESENT
    assert reference.mark("c2", "edema") is Mark.UNCERTAIN
    entry = read_ledger(workspace.ledger)[-1]
    assert (entry.actor, entry.role) == ("Dr. Chair", "reviewer")
    assert entry.reason == "read together"
    assert entry.payload["corrects"] == 1
    assert entry.payload["adjudicated"] == [
        ["c1", "edema", "present"], ["c2", "edema", "uncertain"],
    ]  # fmt: skip
    rows = {r.case_id: r for r in read_disputes(workspace, assignment).rows}
    assert [rows[c].decided for c in ("c1", "c2", "c3")] == [True, True, False]
    assert read_disputes(workspace, assignment).rows[0].case_id == "c3"


def test_no_finding_follows_from_the_decision(workspace, tied, decide):
    """Edema decided absent leaves nothing; decided present leaves no "No Finding"."""
    decide(c1="a", c2="p")
    reference = read_reference(workspace, "read")
    assert reference.mark("c1", "no_finding") is Mark.PRESENT
    assert reference.mark("c2", "no_finding") is Mark.ABSENT
    assert reference.mark("c3", "no_finding") is Mark.ABSENT


def test_the_same_decisions_again_change_nothing(workspace, tied, decide):
    """Pressed twice, recorded once."""
    decide(c1="p")
    entries = len(read_ledger(workspace.ledger))
    again = decide(c1="p")
    assert (again.reference, again.decided, again.changed) == (2, 0, 0)
    assert len(read_ledger(workspace.ledger)) == entries


def test_confirming_a_majority_is_recorded_without_a_new_version(
    workspace, assignment, say, publish, decide
):
    """Two of three, confirmed: the dispute is decided, and votes stay as recorded."""
    for reader, edema in (("A", "pp"), ("B", "pp"), ("C", "aa")):
        say(reader, edema)
    publish()
    made = decide(c1="p")
    assert (made.reference, made.decided, made.changed, made.open) == (1, 1, 0, 1)
    assert list_references(workspace, "read") == (1,)
    assert decide(c2="p").open == 0
    assert all(r.decided for r in read_disputes(workspace, assignment).rows)
    assert read_cohort_votes(workspace, assignment.cohort, assignment.taxonomy).count
    assert publish().votes.adjudications.kept == 2


def test_a_decision_can_be_changed_or_taken_back(workspace, assignment, tied, decide):
    """The last one counts; no_majority leaves the pair out of the reference."""
    for word, mark in (("p", "present"), ("a", "absent"), ("n", "no_majority")):
        decide(c1=word)
        assert read_reference(workspace, "read").mark("c1", "edema").value == mark
    rows = {r.case_id: r for r in read_disputes(workspace, assignment).rows}
    assert rows["c1"].decided


@pytest.mark.parametrize("why", ["", "  "])
def test_a_decision_needs_a_reason(workspace, tied, decide, why):
    """Consensus without a reason cannot be audited."""
    with pytest.raises(DataError, match="needs a reason"):
        decide(c1="p", why=why)
    assert list_references(workspace, "read") == (1,)


def test_what_all_agree_on_is_not_adjudicated(workspace, tied, decide):
    """A unanimous mark is corrected by a verdict; nothing else is decided with it."""
    with pytest.raises(DataError, match="no dispute over 'edema' of case 'c4'"):
        decide(c1="p", c4="p")
    assert list_references(workspace, "read") == (1,)


def test_an_adjudicator_who_voted_is_allowed_and_recorded(workspace, tied, decide):
    """The ledger counts the decisions over one's own votes."""
    made = decide(c1="p", c2="p", actor=Actor(name="dr. a"))
    assert made.own == 2
    assert read_ledger(workspace.ledger)[-1].payload["own_votes"] == 2


def test_a_pseudonym_does_not_hide_the_adjudicator(workspace, say, publish, decide):
    """The key of the workspace leads from the name to the pseudonym."""
    say("Dr. A", "p")
    say("Dr. B", "a")
    publish(pseudonymous=True)
    assert decide(c1="p", actor=Actor(name="Dr. A")).own == 1
    assert decide(c1="a", actor=CHAIR).own == 0


def test_a_pseudonym_beside_names_does_not_hide_the_adjudicator(say, publish, decide):
    """One reader published by name, the other under a pseudonym: each is known."""
    say("Dr. B", "ppp")
    publish("Dr. B")
    say("Dr. C", "aa")
    publish("Dr. C", pseudonymous=True)
    assert decide(c1="p", c2="p", actor=Actor(name="Dr. C")).own == 2
    assert decide(c1="a", actor=Actor(name="Dr. B")).own == 1


def test_decisions_stand_when_another_reader_comes(
    workspace, tied, say, publish, decide
):
    """No vote that they were made over has changed."""
    decide(c1="p", c2="u")
    say("Dr. C", "aaaa")
    report = publish("Dr. C").votes
    assert (report.adjudications.kept, report.adjudications.lost) == (2, ())
    reference = read_reference(workspace, "read")
    assert reference.mark("c1", "edema") is Mark.PRESENT
    assert reference.mark("c1", "no_finding") is Mark.ABSENT
    assert reference.mark("c2", "edema") is Mark.UNCERTAIN
    assert report.superseded.corrections == 0
    say("Dr. D", "aaaa")
    assert publish("Dr. D").votes.adjudications.kept == 2


def test_a_decision_falls_with_a_vote_that_it_was_made_over(
    workspace, tied, say, publish, decide
):
    """The votes decide again, and the pair is listed."""
    decide(c1="p", c2="u")
    say("Dr. B", "u.ua")
    report = publish("Dr. B").votes
    assert report.adjudications.lost == (("c1", "edema"),)
    assert report.adjudications.kept == 1
    reference = read_reference(workspace, "read")
    assert reference.mark("c1", "edema") is Mark.NO_MAJORITY
    assert reference.mark("c2", "edema") is Mark.UNCERTAIN


def test_a_decision_falls_when_the_dispute_is_over(
    workspace, assignment, say, publish, decide, store
):
    """One of three had voted, two more agree: there is nothing to decide."""
    say("A", "p")
    for reader in "BC":
        say(reader, ".aaa")
    publish(need=2)
    decide(c1="a")
    for reader in "BC":
        say(reader, "paaa")
    report = publish().votes
    assert report.adjudications.lost == (("c1", "edema"),)
    assert read_reference(workspace, "read").mark("c1", "edema") is Mark.PRESENT


def test_a_later_correction_by_verdict_ends_a_decision(
    workspace, assignment, tied, say, publish, decide
):
    """The dispute is open again, and later votes do not bring the decision back."""
    decide(c1="p")
    correct_reference(
        workspace,
        assignment.cohort,
        {("c1", "edema"): Mark.ABSENT},
        actor=CHAIR,
        reason="verdict",
    )
    rows = {r.case_id: r for r in read_disputes(workspace, assignment).rows}
    assert not rows["c1"].decided
    say("Dr. C", "uuuu")
    report = publish("Dr. C").votes
    assert report.adjudications.kept == 0
    assert report.superseded.corrections >= 1
    assert read_reference(workspace, "read").mark("c1", "edema") is Mark.NO_MAJORITY


def test_an_edited_reference_does_not_lose_a_decision(
    workspace, tied, say, publish, decide
):
    """The ledger still has it, and no correction since can be seen."""
    decide(c1="p")
    path = reference_path(workspace, "read", 2)
    path.write_text(path.read_text().replace("absent", "present", 1))
    say("Dr. C", "aaaa")
    outcome = publish("Dr. C").votes.adjudications
    assert (outcome.kept, outcome.lost) == (1, ())


def test_a_decision_that_cannot_be_recorded_is_not_made(workspace, tied, decide):
    """Version and ledger entry, or neither."""
    workspace.ledger.write_bytes(workspace.ledger.read_bytes() + b"broken\n")
    with pytest.raises(LoopError):
        decide(c1="p")
    assert list_references(workspace, "read") == (1,)


@pytest.mark.slow
def test_panels_and_verdicts_at_once_keep_all_their_work(
    workspace, assignment, say, publish, decide
):
    """Both make versions under the same lock: none is built on a stale one."""
    for reader, edema in (("A", "pppp"), ("B", "aaaa")):
        say(reader, edema)
    publish()

    def correct(case):
        wanted = {(case, "fracture"): Mark.PRESENT}
        correct_reference(
            workspace, assignment.cohort, wanted, actor=CHAIR, reason="verdict"
        )

    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(decide, **{case: "u"}) for case in CASES]
        jobs += [pool.submit(correct, case) for case in CASES]
        for job in jobs:
            job.result()
    reference = read_reference(workspace, "read")
    for case in CASES:
        assert reference.mark(case, "edema") is Mark.UNCERTAIN
        assert reference.mark(case, "fracture") is Mark.PRESENT
    assert reference.number == 9
