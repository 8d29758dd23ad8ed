"""Disputes: which pairs, in which order, under which names."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from loop.core.digests import framed
from loop.core.errors import DataError
from loop.core.records import Mark, Value, ValueCode
from loop.labels.ballots import VOTE_CODES, Votes
from loop.labels.majority import MajorityRule, majority
from loop.labels.reference import Reference
from loop.review.reading.disputes import (
    Ballot,
    Dispute,
    Disputes,
    find_disputes,
    read_disputes,
    reader_letters,
)
from tests.review.reading.conftest import WORDS


def table(rows, labels=("edema",)):
    """Return votes: one string of p, a, u or dot per case, one character a reader."""
    codes = {word: VOTE_CODES[value] for word, value in WORDS.items()} | {
        ".": ValueCode.NOT_VOTED
    }
    values = [[[codes[word] for word in row]] * len(labels) for row in rows]
    return Votes(
        readers=tuple("ABCDEF"[: len(rows[0])]),
        case_ids=tuple(f"c{n}" for n in range(len(rows))),
        labels=labels,
        values=np.array(values, dtype=np.int8),
    )


def standard(votes):
    """Return the reference that the majority makes of votes."""
    return Reference(
        cohort="read",
        number=1,
        digest="d",
        case_ids=votes.case_ids,
        labels=votes.labels,
        marks=majority(votes),
    )


def test_no_majority_comes_before_a_split_and_close_before_clear(assignment):
    """Unanimous pairs are no disputes, nor is a pair nobody voted on."""
    votes = table(["pppaaa", "pppppp", "ppppaa", "pppppa", "ppaauu", "......"])
    found = find_disputes(votes, standard(votes), assignment.taxonomy)
    assert [row.case_id for row in found] == ["c0", "c4", "c2", "c3"]
    assert [row.votes_say for row in found] == [
        Mark.NO_MAJORITY, Mark.NO_MAJORITY, Mark.PRESENT, Mark.PRESENT,
    ]  # fmt: skip
    assert dict(found[1].counts) == {
        Value.PRESENT: 2, Value.ABSENT: 2, Value.UNCERTAIN: 2,
    }  # fmt: skip


def test_too_few_votes_are_a_dispute_without_disagreement(assignment):
    """Two of six said present, and four are asked for: somebody must look."""
    votes = table(["pp....", "pppp.."])
    for rule in (MajorityRule(need=4), MajorityRule(minimum_readers=3)):
        found = find_disputes(votes, standard(votes), assignment.taxonomy, rule=rule)
        assert [row.case_id for row in found] == ["c0"]
    (one,) = found
    assert (one.case_id, one.not_voted) == ("c0", 4)


def test_the_order_of_readers_does_not_matter(assignment):
    """Counts and order are symmetric in the readers; ballots follow the names."""
    votes = table(["pppaaa", "ppppaa", "puaaaa"])
    turned = table(["aaappp", "aapppp", "aaaaup"])
    one, other = (
        find_disputes(v, standard(v), assignment.taxonomy) for v in (votes, turned)
    )
    assert [(r.case_id, dict(r.counts)) for r in one] == [
        (r.case_id, dict(r.counts)) for r in other
    ]


def test_a_derived_no_finding_is_not_disputed(workspace, assignment, say, publish):
    """It follows from the labels that are; a real vote on it would be shown."""
    say("Dr. A", "pa")
    say("Dr. B", "aa")
    publish()
    found = read_disputes(workspace, assignment)
    assert [(r.case_id, r.label) for r in found.rows] == [("c1", "edema")]
    assert (found.rule, found.readers, found.open) == (MajorityRule(), 2, 1)


def test_a_no_finding_that_was_voted_on_is_disputed(assignment):
    """Votes from a file may say something that does not follow."""
    votes = table(["pa"], labels=("no_finding",))
    (one,) = find_disputes(votes, standard(votes), assignment.taxonomy)
    assert one.label == "no_finding"


def test_letters_hold_for_one_case_only(workspace, assignment, say, publish):
    """The same person is not the same letter everywhere, but within a case."""
    for number in range(6):
        say(f"Dr. {number}", "papa" if number else "apap")
        say(f"Dr. {number}", "papa" if number else "apap", label="fracture")
    publish()
    found = read_disputes(workspace, assignment, anonymous=True)
    letters: dict[str, set[str]] = {}
    for row in found.rows:
        names = [ballot.reader for ballot in row.ballots]
        assert names == list("ABCDEF")
        values = [ballot.value for ballot in row.ballots]
        (odd,) = [n for n, v in zip(names, values, strict=True) if values.count(v) == 1]
        letters.setdefault(row.case_id, set()).add(odd)
    assert all(len(each) == 1 for each in letters.values())
    assert len(set.union(*letters.values())) > 1
    assert found == read_disputes(workspace, assignment, anonymous=True)


def test_named_ballots_are_those_of_the_votes(workspace, assignment, say, publish):
    """Without the option every vote has its reader."""
    say("Dr. A", "p")
    say("Dr. B", "u")
    publish()
    (row,) = read_disputes(workspace, assignment).rows
    assert row.ballots == (("Dr. A", Value.PRESENT), ("Dr. B", Value.UNCERTAIN))


def test_what_a_panel_decided_comes_last(assignment):
    """As long as the newest reference still says so."""
    votes = table(["pppaaa", "pppaaa", "pppppa"])
    decided = standard(votes)
    marks = decided.marks.copy()
    marks[0] = ValueCode.PRESENT
    newest = replace(decided, marks=marks)
    said = {("c0", "edema"): Mark.PRESENT, ("c1", "edema"): Mark.PRESENT}
    found = find_disputes(votes, newest, assignment.taxonomy, decisions=said)
    assert [(row.case_id, row.decided) for row in found] == [
        *(("c1", False), ("c2", False), ("c0", True))
    ]


def test_every_pair_that_somebody_voted_on_is_counted(
    workspace, assignment, say, publish
):
    """Whether or not all readers did."""
    say("Dr. A", "pp")
    say("Dr. B", "p.")
    publish()
    assert read_disputes(workspace, assignment).pairs == 2 * 21


@pytest.mark.parametrize("readers", [1, 26, 27, 53])
def test_letters_go_on_after_z(assignment, readers):
    """Two readers never have the same."""
    names = [f"Dr. {number}" for number in range(readers)]
    letters = reader_letters(assignment.cohort, names, "c1")
    assert len(set(letters.values())) == readers
    last = {1: "A", 26: "Z", 27: "A1", 53: "A2"}[readers]
    assert last in letters.values()


def test_a_cohort_without_votes_has_no_disputes_to_list(workspace, assignment):
    """The message says how votes come in."""
    with pytest.raises(DataError, match="no readers' votes"):
        read_disputes(workspace, assignment)


def test_the_need_recorded_is_the_need_used(workspace, assignment, say, publish):
    """Three of three was asked for: two of three is no majority here."""
    for reader, edema in (("A", "p"), ("B", "p"), ("C", "a")):
        say(reader, edema)
    publish(need=3)
    (row,) = read_disputes(workspace, assignment).rows
    assert row.votes_say is Mark.NO_MAJORITY


def test_a_dispute_says_who_said_what(assignment):
    """Votes by value, zeros included, who has not voted, and what holds now."""
    votes = table(["p.apa."])
    (found,) = find_disputes(votes, standard(votes), assignment.taxonomy)
    assert found == Dispute(
        case_id="c0",
        label="edema",
        counts={Value.PRESENT: 2, Value.ABSENT: 2, Value.UNCERTAIN: 0},
        not_voted=2,
        ballots=(
            Ballot("A", Value.PRESENT),
            Ballot("C", Value.ABSENT),
            Ballot("D", Value.PRESENT),
            Ballot("E", Value.ABSENT),
        ),
        votes_say=Mark.NO_MAJORITY,
        mark=Mark.NO_MAJORITY,
        decided=False,
    )


def test_disputes_of_one_rank_stand_in_the_order_of_the_cohort(assignment):
    """Case by case, and in each label by label."""
    votes = table(["pa", "pp", "ap", "ua"], labels=("edema", "fracture"))
    found = find_disputes(votes, standard(votes), assignment.taxonomy)
    assert [(row.case_id, row.label) for row in found] == [
        (case, label) for case in ("c0", "c2", "c3") for label in ("edema", "fracture")
    ]


def test_a_no_finding_that_follows_in_one_case_may_be_disputed_in_another(assignment):
    """It is left out where every vote on it follows, and there alone."""
    labels = ("edema", "fracture", "no_finding")
    said = {
        # Both follow; one follows and one does not; one says nothing of it.
        "c0": (("a", "a", "p"), ("p", "a", "a")),
        "c1": (("a", "a", "p"), ("a", "a", "a")),
        "c2": (("a", "a", "p"), ("p", "a", ".")),
        "c3": (("p", "a", "p"), ("a", "a", "a")),
    }
    codes = {word: VOTE_CODES[value] for word, value in WORDS.items()} | {
        ".": ValueCode.NOT_VOTED
    }
    taxonomy = replace(
        assignment.taxonomy,
        labels=tuple(one for one in assignment.taxonomy.labels if one.id in labels),
    )
    votes = Votes(
        readers=("A", "B"),
        case_ids=tuple(said),
        labels=labels,
        values=np.array(
            [[[codes[one[n]] for one in by] for n in range(3)] for by in said.values()],
            dtype=np.int8,
        ),
    )
    found = find_disputes(votes, standard(votes), taxonomy)
    disputed = {row.case_id for row in found if row.label == "no_finding"}
    assert disputed == {"c1", "c3"}
    read = MajorityRule(no_finding_read=True)
    every = find_disputes(votes, standard(votes), taxonomy, rule=read)
    disputed = {row.case_id for row in every if row.label == "no_finding"}
    assert disputed == {"c0", "c1", "c3"}


def test_all_of_the_disputes_are_told(workspace, assignment, say, publish):
    """Those that a panel decided are not open."""
    say("Dr. A", "ppa")
    say("Dr. B", "aaa")
    say("Dr. C", "a.u")
    publish()
    found = read_disputes(workspace, assignment)
    assert replace(found, rows=()) == Disputes(
        cohort="read",
        reference=1,
        readers=3,
        rule=MajorityRule(),
        pairs=3 * 21,
        rows=(),
    )
    assert [row.case_id for row in found.rows] == ["c2", "c1", "c3"]
    one, *others = found.rows
    decided = replace(found, rows=(replace(one, decided=True), *others))
    assert (found.open, decided.open) == (3, 2)


def test_letters_are_drawn_by_digest(assignment):
    """By cohort, case and reader: the same on every machine."""
    cohort, names = assignment.cohort, ["Dr. A", "Dr. B", "Dr. C", "Dr. D"]
    drawn = sorted(
        names,
        key=lambda name: hashlib.sha256(
            framed([cohort.digest, "c2", name])
        ).hexdigest(),
    )
    assert reader_letters(cohort, names[::-1], "c2") == dict(
        zip(drawn, "ABCD", strict=True)
    )
