"""A panel's decisions: a version with a reason, and how long they stand."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from loop.core.errors import ConflictError, DataError, LoopError, StoreError
from loop.core.ledger import Actor, read_ledger
from loop.core.records import Mark, Value
from loop.labels.ballots import read_cohort_votes
from loop.labels.reference import (
    correct_reference,
    list_references,
    read_reference,
    reference_path,
)
from loop.review.reading import adjudication
from loop.review.reading.adjudication import (
    Adjudicated,
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
from tests.review.reading.conftest import CASES, at

CHAIR = Actor(name="Dr. Chair", role="reviewer")


@pytest.fixture
def panel_decides(workspace, assignment):
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
    workspace, assignment, tied, panel_decides
):
    """The ledger says who, why, which pairs, and from which version."""
    made = panel_decides(c1="p", c2="u")
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


def test_no_finding_follows_from_the_decision(workspace, tied, panel_decides):
    """Edema decided absent leaves nothing; decided present leaves no "No Finding"."""
    panel_decides(c1="a", c2="p")
    reference = read_reference(workspace, "read")
    assert reference.mark("c1", "no_finding") is Mark.PRESENT
    assert reference.mark("c2", "no_finding") is Mark.ABSENT
    assert reference.mark("c3", "no_finding") is Mark.ABSENT


def test_the_same_decisions_again_change_nothing(workspace, tied, panel_decides):
    """Pressed twice, recorded once."""
    panel_decides(c1="p")
    entries = len(read_ledger(workspace.ledger))
    again = panel_decides(c1="p")
    assert (again.reference, again.decided, again.changed) == (2, 0, 0)
    assert len(read_ledger(workspace.ledger)) == entries


def test_confirming_a_majority_is_recorded_without_a_new_version(
    workspace, assignment, say, publish, panel_decides
):
    """Two of three, confirmed: the dispute is decided, and votes stay as recorded."""
    for reader, edema in (("A", "pp"), ("B", "pp"), ("C", "aa")):
        say(reader, edema)
    publish()
    made = panel_decides(c1="p")
    assert (made.reference, made.decided, made.changed, made.open) == (1, 1, 0, 1)
    assert list_references(workspace, "read") == (1,)
    assert panel_decides(c2="p").open == 0
    assert all(r.decided for r in read_disputes(workspace, assignment).rows)
    assert read_cohort_votes(workspace, assignment.cohort, assignment.taxonomy).count
    assert publish().votes.adjudications.kept == 2


def test_a_decision_can_be_changed_or_taken_back(
    workspace, assignment, tied, panel_decides
):
    """The last one counts; no_majority leaves the pair out of the reference."""
    for word, mark in (("p", "present"), ("a", "absent"), ("n", "no_majority")):
        panel_decides(c1=word)
        assert read_reference(workspace, "read").mark("c1", "edema").value == mark
    rows = {r.case_id: r for r in read_disputes(workspace, assignment).rows}
    assert rows["c1"].decided


@pytest.mark.parametrize("why", ["", "  "])
def test_a_decision_needs_a_reason(workspace, tied, panel_decides, why):
    """Consensus without a reason cannot be audited."""
    with pytest.raises(DataError, match="needs a reason"):
        panel_decides(c1="p", why=why)
    assert list_references(workspace, "read") == (1,)


def test_what_all_agree_on_is_not_adjudicated(workspace, tied, panel_decides):
    """A unanimous mark is corrected by a verdict; nothing else is decided with it."""
    with pytest.raises(DataError, match="no dispute over 'edema' of case 'c4'"):
        panel_decides(c1="p", c4="p")
    assert list_references(workspace, "read") == (1,)


def test_an_adjudicator_who_voted_is_allowed_and_recorded(
    workspace, tied, panel_decides
):
    """The ledger counts the decisions over one's own votes."""
    made = panel_decides(c1="p", c2="p", actor=Actor(name="dr. a"))
    assert made.own == 2
    assert read_ledger(workspace.ledger)[-1].payload["own_votes"] == 2


def test_a_pseudonym_does_not_hide_the_adjudicator(
    workspace, say, publish, panel_decides
):
    """The key of the workspace leads from the name to the pseudonym."""
    say("Dr. A", "p")
    say("Dr. B", "a")
    publish(pseudonymous=True)
    assert panel_decides(c1="p", actor=Actor(name="Dr. A")).own == 1
    assert panel_decides(c1="a", actor=CHAIR).own == 0


def test_a_pseudonym_beside_names_does_not_hide_the_adjudicator(
    say, publish, panel_decides
):
    """One reader published by name, the other under a pseudonym: each is known."""
    say("Dr. B", "ppp")
    publish("Dr. B")
    say("Dr. C", "aa")
    publish("Dr. C", pseudonymous=True)
    assert panel_decides(c1="p", c2="p", actor=Actor(name="Dr. C")).own == 2
    assert panel_decides(c1="a", actor=Actor(name="Dr. B")).own == 1


def test_decisions_stand_when_another_reader_comes(
    workspace, tied, say, publish, panel_decides
):
    """No vote that they were made over has changed."""
    panel_decides(c1="p", c2="u")
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
    workspace, tied, say, publish, panel_decides
):
    """The votes decide again, and the pair is listed."""
    panel_decides(c1="p", c2="u")
    say("Dr. B", "u.ua")
    report = publish("Dr. B").votes
    assert report.adjudications.lost == (("c1", "edema"),)
    assert report.adjudications.kept == 1
    reference = read_reference(workspace, "read")
    assert reference.mark("c1", "edema") is Mark.NO_MAJORITY
    assert reference.mark("c2", "edema") is Mark.UNCERTAIN


def test_a_decision_falls_when_the_dispute_is_over(
    workspace, assignment, say, publish, panel_decides, store
):
    """One of three had voted, two more agree: there is nothing to decide."""
    say("A", "p")
    for reader in "BC":
        say(reader, ".aaa")
    publish(need=2)
    panel_decides(c1="a")
    for reader in "BC":
        say(reader, "paaa")
    report = publish().votes
    assert report.adjudications.lost == (("c1", "edema"),)
    assert read_reference(workspace, "read").mark("c1", "edema") is Mark.PRESENT


def test_a_later_correction_by_verdict_ends_a_decision(
    workspace, assignment, tied, say, publish, panel_decides
):
    """The dispute is open again, and later votes do not bring the decision back."""
    panel_decides(c1="p")
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


def test_a_decision_that_a_correction_ended_does_not_come_back_with_another(
    workspace, assignment, tied, panel_decides
):
    """The next panel decided on its own pair, and on no other."""
    panel_decides(c1="p")
    correct_reference(
        workspace,
        assignment.cohort,
        {("c1", "edema"): Mark.ABSENT},
        actor=CHAIR,
        reason="verdict",
    )
    panel_decides(c2="p")
    reference = read_reference(workspace, "read")
    marks = [reference.mark(case, "edema") for case in ("c1", "c2")]
    assert marks == [Mark.ABSENT, Mark.PRESENT]


def test_without_pseudonyms_a_panel_needs_no_key_of_them(
    workspace, tied, panel_decides
):
    """A damaged one hinders only who has to know whose they are."""
    (workspace.keys / "pseudonym").write_text("damaged", "ascii")
    assert panel_decides(c1="p", actor=Actor(name="Dr. A")).own == 1


def test_an_edited_reference_does_not_lose_a_decision(
    workspace, tied, say, publish, panel_decides
):
    """The ledger still has it, and no correction since can be seen."""
    panel_decides(c1="p")
    path = reference_path(workspace, "read", 2)
    path.write_text(path.read_text().replace("absent", "present", 1))
    say("Dr. C", "aaaa")
    outcome = publish("Dr. C").votes.adjudications
    assert (outcome.kept, outcome.lost) == (1, ())


def test_a_decision_that_cannot_be_recorded_is_not_made(workspace, tied, panel_decides):
    """Version and ledger entry, or neither."""
    workspace.ledger.write_bytes(workspace.ledger.read_bytes() + b"broken\n")
    with pytest.raises(LoopError):
        panel_decides(c1="p")
    assert list_references(workspace, "read") == (1,)


@pytest.mark.slow
def test_panels_and_verdicts_at_once_keep_all_their_work(
    workspace, assignment, say, publish, panel_decides
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
        jobs = [pool.submit(panel_decides, **{case: "u"}) for case in CASES]
        jobs += [pool.submit(correct, case) for case in CASES]
        for job in jobs:
            job.result()
    reference = read_reference(workspace, "read")
    for case in CASES:
        assert reference.mark(case, "edema") is Mark.UNCERTAIN
        assert reference.mark(case, "fracture") is Mark.PRESENT
    assert reference.number == 9


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
    assert adjudication.MOST == 500
    monkeypatch.setattr(adjudication, "MOST", 1)
    one = decide(Pending(), first, Mark.PRESENT)
    assert decide(one, first, Mark.ABSENT).of(first) is Mark.ABSENT
    with pytest.raises(DataError, match="Save them first"):
        decide(one, second, Mark.PRESENT)
    assert decide(one, first, None) == Pending()


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


def test_what_became_of_decisions_is_told_and_recorded(
    workspace, assignment, tied, panel_decides
):
    """How many are new, which marks differ, which are of own votes, what is left."""
    made = panel_decides(c1="a", c2="p", actor=Actor(name="DR. b"), why=" by vote ")
    # No majority became absent with "No Finding", and present without.
    assert made == Adjudicated(
        cohort="read", reference=2, decided=2, changed=4, own=2, open=1
    )
    entry = read_ledger(workspace.ledger)[-1]
    assert entry.reason == "by vote"
    facts = ("own_votes", "corrects", "corrected", "adjudicated")
    assert {name: entry.payload[name] for name in facts} == {
        "own_votes": 2,
        "corrects": 1,
        "corrected": 4,
        "adjudicated": [["c1", "edema", "absent"], ["c2", "edema", "present"]],
    }
    # One decided otherwise, one as it is, one for the first time.
    again = panel_decides(c1="p", c2="p", c3="n")
    assert again == Adjudicated(
        cohort="read", reference=3, decided=2, changed=2, own=0, open=0
    )


def test_only_own_votes_are_counted_as_own(say, publish, panel_decides):
    """Of two decisions the one on a case that the adjudicator voted on."""
    say("Dr. A", "pa")
    say("Dr. B", ".p")
    say("Dr. C", "a.")
    publish()
    assert panel_decides(c1="u", c2="u", actor=Actor(name="Dr. B")).own == 1


def test_a_version_that_is_recorded_once_more_keeps_all_that_was_recorded(
    workspace, say, publish, panel_decides
):
    """Every decision that stands, beside what the votes were."""
    for reader, edema in (("A", "ppu"), ("B", "ppu"), ("C", "aap")):
        say(reader, edema)
    publish()
    before = read_ledger(workspace.ledger)[-1].payload
    panel_decides(c2="p", actor=Actor(name="A"))
    panel_decides(c1="p")
    after = read_ledger(workspace.ledger)[-1].payload
    assert after == before | {
        "own_votes": 0,
        "adjudicated": [["c1", "edema", "present"], ["c2", "edema", "present"]],
    }


@pytest.mark.parametrize("mark", [Mark.MISSING, Mark.NOT_CODED])
def test_a_mark_that_no_panel_gives_is_no_decision(workspace, assignment, tied, mark):
    """Nothing is changed by the others either."""
    wanted = {("c1", "edema"): Mark.PRESENT, ("c2", "edema"): mark}
    with pytest.raises(ValueError, match="a panel cannot decide on"):
        adjudicate(workspace, assignment, wanted, actor=CHAIR, why="x")
    assert list_references(workspace, "read") == (1,)


def test_what_waits_comes_back_whole(store, assignment, tied, workspace, panel_decides):
    """With what had been decided when it was decided here."""
    panel_decides(c2="p")
    rows = read_disputes(workspace, assignment)
    by_case = {row.case_id: row for row in rows.rows}
    kept = decide(Pending(), by_case["c2"], Mark.ABSENT)
    kept = decide(decide(kept, by_case["c1"], Mark.NO_MAJORITY), by_case["c3"], None)
    keep_pending(store, CHAIR, assignment, kept, at(1))
    assert read_pending(store, CHAIR, assignment, rows) == Pending(
        decisions={("c2", "edema"): Mark.ABSENT, ("c1", "edema"): Mark.NO_MAJORITY},
        over={("c2", "edema"): "present", ("c1", "edema"): ""},
    )
    assert not any(kept.overtaken(row) for row in rows.rows)
    panel_decides(c2="u", c1="a", c3="a")
    now = read_disputes(workspace, assignment)
    overtaken = {row.case_id for row in now.rows if kept.overtaken(row)}
    assert overtaken == {"c1", "c2"}
    with pytest.raises(ConflictError, match="2 of these disputes"):
        require_current(kept, now)


@pytest.mark.parametrize(
    "rows",
    [
        [["c1", "edema", "present"]],
        [["c1", "edema", "nonsense", ""]],
        [3],
        [["c1", "edema", "present", ""], []],
    ],
)
def test_a_damaged_row_of_decisions_is_told_whose_it_is(
    store, assignment, disputes, rows
):
    """None of them is dropped without a word."""
    keep_working(store, ANN, f"adjudicate:{assignment.key}", {"decisions": rows})
    with pytest.raises(StoreError, match=r"decisions that .* began cannot be read"):
        read_pending(store, ANN, assignment, disputes())
