"""What new votes change: marks, corrections and a panel's decisions, worked by hand."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from loop.core.records import Mark, ValueCode
from loop.labels.ballots import Votes
from loop.labels.majority import (
    MajorityRule,
    MarkChange,
    MarkChanges,
    Newest,
    Shift,
    Superseded,
    count_superseded,
    decide_marks,
    decision_facts,
    find_disputed,
    list_changes,
    majority,
    newest_rule,
    recorded_decisions,
)
from loop.labels.reference import CODES, MARKS, Reference
from loop.labels.taxonomy import Taxonomy

SIGNS = {
    "p": Mark.PRESENT,
    "a": Mark.ABSENT,
    "u": Mark.UNCERTAIN,
    "-": Mark.NO_MAJORITY,
    ".": Mark.MISSING,
}


def _marks(*rows: str) -> np.ndarray:
    """Return marks of a row of signs for each case."""
    codes = [[CODES[SIGNS[sign]] for sign in row] for row in rows]
    return np.array(codes, dtype=np.int8)


def _signs(marks: np.ndarray) -> list[str]:
    """Return what `_marks` was given."""
    known = {mark: sign for sign, mark in SIGNS.items()}
    return ["".join(known[MARKS[code]] for code in row) for row in marks.tolist()]


def _votes(labels: Sequence[str], *rows: Sequence[str]) -> Votes:
    """Return votes: for each case and label a word with one sign a reader."""
    codes = {sign: CODES[mark] for sign, mark in SIGNS.items()}
    codes["."] = ValueCode.NOT_VOTED
    values = [[[codes[sign] for sign in word] for word in row] for row in rows]
    return Votes(
        readers=tuple("ABCDEF"[: len(rows[0][0])]),
        case_ids=tuple(f"a{number}" for number in range(1, len(rows) + 1)),
        labels=tuple(labels),
        values=np.array(values, dtype=np.int8),
    )


def _reference(labels: Sequence[str], *rows: str) -> Reference:
    """Return a reference version with these marks."""
    return Reference(
        cohort="mine",
        number=1,
        digest="",
        case_ids=tuple(f"a{number}" for number in range(1, len(rows) + 1)),
        labels=tuple(labels),
        marks=_marks(*rows),
    )


def test_what_new_marks_take_from_the_newest_version_is_counted() -> None:
    """A correction that stands is no loss, nor is a mark that was missing before.

    Of the five cases the second, third and fourth were corrected. The second becomes
    what it was, the third something else, the fourth stays; the first and the fifth
    become missing, of which only the first said something.
    """
    origin = _reference(["edema"], "p", "p", "p", "p", ".")
    newest = _reference(["edema"], "p", "a", "a", "a", ".")
    marks = _marks(".", "p", "u", "a", ".")
    found = Newest(newest, origin, exists=True)
    assert count_superseded(found, ["edema"], marks) == Superseded(2, 1)
    # A label that nobody voted on is missing of every case; another one is no loss.
    assert count_superseded(found, ["fracture"], marks) == Superseded(3, 4)
    both = np.hstack([marks, marks])
    assert count_superseded(found, ["fracture", "edema"], both) == Superseded(2, 1)


def test_without_a_version_nothing_is_lost_and_with_a_broken_one_nobody_knows() -> None:
    """The two are told apart: a warning must not be a reassurance."""
    marks = _marks("p")
    newest = _reference(["edema"], "p")
    for reference, exists, lost in (
        (None, False, Superseded(0, 0)),
        (None, True, None),
        (newest, True, None),
    ):
        found = Newest(reference, None, exists=exists)
        assert count_superseded(found, ["edema"], marks) == lost


def test_changes_are_listed_by_what_they_undo_then_by_label_and_case() -> None:
    """Labels in the order of the taxonomy, whatever the order of the file is."""
    newest = _reference(["fracture", "edema", "mass"], "p.p", "paa", "uua")
    votes = _votes(["edema", "fracture", "nodule"], *([["p"] * 3] * 3))
    marks = _marks("paa", "-pp", "uap")
    order = ["edema", "unread", "fracture", "nodule", "mass"]
    found = list_changes(Newest(newest, newest, exists=True), votes, marks, order)
    assert found == MarkChanges(
        rows=(
            MarkChange("a2", "edema", Mark.ABSENT, Mark.NO_MAJORITY),
            MarkChange("a1", "mass", Mark.PRESENT, Mark.MISSING),
            MarkChange("a2", "mass", Mark.ABSENT, Mark.MISSING),
            MarkChange("a3", "mass", Mark.ABSENT, Mark.MISSING),
            MarkChange("a1", "fracture", Mark.PRESENT, Mark.ABSENT),
            MarkChange("a3", "fracture", Mark.UNCERTAIN, Mark.ABSENT),
            MarkChange("a1", "edema", Mark.MISSING, Mark.PRESENT),
            MarkChange("a1", "nodule", Mark.MISSING, Mark.ABSENT),
            MarkChange("a2", "nodule", Mark.MISSING, Mark.PRESENT),
            MarkChange("a3", "nodule", Mark.MISSING, Mark.PRESENT),
        )
    )
    assert found.undecided == 4
    assert found.shifts == (
        Shift("edema", Mark.ABSENT, Mark.NO_MAJORITY, 1),
        Shift("mass", Mark.PRESENT, Mark.MISSING, 1),
        Shift("mass", Mark.ABSENT, Mark.MISSING, 2),
        Shift("fracture", Mark.PRESENT, Mark.ABSENT, 1),
        Shift("fracture", Mark.UNCERTAIN, Mark.ABSENT, 1),
        Shift("edema", Mark.MISSING, Mark.PRESENT, 1),
        Shift("nodule", Mark.MISSING, Mark.ABSENT, 1),
        Shift("nodule", Mark.MISSING, Mark.PRESENT, 2),
    )


def test_first_votes_change_what_was_missing() -> None:
    """Every mark is new, and a pair that stays missing is no change."""
    votes = _votes(["edema"], ["p"], ["."])
    found = list_changes(Newest(None, None, exists=False), votes, _marks("p", "."), ())
    assert found == MarkChanges(rows=())
    found = list_changes(
        Newest(None, None, exists=False), votes, _marks("p", "."), ["edema"]
    )
    assert found is not None
    assert found.rows == (MarkChange("a1", "edema", Mark.MISSING, Mark.PRESENT),)


@pytest.mark.parametrize(
    ("was", "becomes", "undecides"),
    [
        (Mark.PRESENT, Mark.NO_MAJORITY, True),
        (Mark.ABSENT, Mark.MISSING, True),
        (Mark.UNCERTAIN, Mark.MISSING, True),
        (Mark.PRESENT, Mark.UNCERTAIN, False),
        (Mark.NO_MAJORITY, Mark.MISSING, False),
        (Mark.MISSING, Mark.PRESENT, False),
    ],
)
def test_a_mark_that_says_something_may_become_one_that_does_not(
    was: Mark, becomes: Mark, undecides: bool
) -> None:
    """Uncertain says something: the readers agreed on it."""
    assert MarkChange("a1", "edema", was, becomes).undecides is undecides


def test_readers_are_in_dispute_unless_all_who_voted_say_the_same() -> None:
    """A majority does not end it; too few readers are none, though they agree."""
    words = ["ppp", "ppa", "ppu", "pau", "uuu", "p..", "..."]
    votes = _votes(["edema"], *([word] for word in words))
    marks = majority(votes, MajorityRule(minimum_readers=2))
    assert _signs(marks) == ["p", "p", "p", "-", "u", "-", "."]
    assert find_disputed(votes, marks)[:, 0].tolist() == [
        *(False, True, True, True, False, True, False)
    ]


def _decided(
    taxonomy: Taxonomy, decisions: Mapping[tuple[str, str], Mark], *, read: bool = False
) -> list[str]:
    """Return the marks of two cases after decisions on edema, or No Finding.

    Every other label is absent; before, edema was open and No Finding missing.
    """
    labels = taxonomy.ids
    marks = np.full((2, len(labels)), CODES[Mark.ABSENT], dtype=np.int8)
    edema, none = labels.index("edema"), labels.index("no_finding")
    marks[:, edema] = CODES[Mark.NO_MAJORITY]
    marks[:, none] = CODES[Mark.MISSING]
    before = marks.copy()
    names = (("a1", "a2"), labels)
    made = decide_marks(names, marks, decisions, taxonomy, no_finding_read=read)
    assert (marks == before).all()
    others = [at for at in range(len(labels)) if at not in (edema, none)]
    assert (made[:, others] == before[:, others]).all()
    return _signs(made[:, [edema, none]])


def test_no_finding_follows_a_decision_where_nothing_is_open(
    taxonomy: Taxonomy,
) -> None:
    """Only of the case that was decided on, and only where nobody decided it itself."""
    edema, none = ("a1", "edema"), ("a1", "no_finding")
    assert _decided(taxonomy, {}) == ["-.", "-."]
    assert _decided(taxonomy, {edema: Mark.ABSENT}) == ["ap", "-."]
    assert _decided(taxonomy, {edema: Mark.PRESENT}) == ["pa", "-."]
    assert _decided(taxonomy, {edema: Mark.UNCERTAIN}) == ["ua", "-."]
    assert _decided(taxonomy, {edema: Mark.NO_MAJORITY}) == ["-.", "-."]
    assert _decided(taxonomy, {edema: Mark.ABSENT}, read=True) == ["a.", "-."]
    both = {edema: Mark.ABSENT, none: Mark.UNCERTAIN}
    assert _decided(taxonomy, both) == ["au", "-."]


def test_decisions_before_the_votes_that_count_now_are_history() -> None:
    """Of later versions the last word on a pair counts; an import has none."""
    first = {"votes": "x", "adjudicated": [["a1", "edema", "present"]]}
    later = {"adjudicated": [["a1", "edema", "absent"], ["a2", "edema", "present"]]}
    again = {"adjudicated": [["a2", "edema", "uncertain"]]}

    def decided(*payloads: Mapping[str, object]) -> list[list[str]]:
        record = SimpleNamespace(references=dict(enumerate(payloads, 1)))
        return decision_facts(recorded_decisions(record))  # type: ignore[arg-type]

    assert decided() == []
    assert decided(first) == [["a1", "edema", "present"]]
    assert decided(first, later, {}, again) == [
        ["a1", "edema", "absent"],
        ["a2", "edema", "uncertain"],
    ]
    assert decided(later, {"votes": "y"}, again) == [["a2", "edema", "uncertain"]]
    assert decided(later, first) == [["a1", "edema", "present"]]


def test_the_rule_is_the_one_of_the_votes_that_were_taken_last() -> None:
    """A correction or an import in between has no rule of its own."""

    def rule(*payloads: Mapping[str, object]) -> MajorityRule:
        record = SimpleNamespace(references=dict(enumerate(payloads, 1)))
        return newest_rule(record)  # type: ignore[arg-type]

    strict = {"votes": "x", "need": 4, "minimum_readers": 3, "no_finding": "read"}
    assert rule() == rule({"need": 4}) == MajorityRule()
    assert rule({"votes": "w"}, strict, {"need": 2}) == MajorityRule(
        need=4, minimum_readers=3, no_finding_read=True
    )
    assert rule(strict, {"votes": "y", "no_finding": "derived"}) == MajorityRule()
