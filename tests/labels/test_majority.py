"""What new votes change: marks, corrections and a panel's decisions, worked by hand."""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from loop.core.errors import DataError, LedgerError
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.records import Mark, ValueCode
from loop.labels.ballots import Votes
from loop.labels.cohort import Cohort
from loop.labels.majority import (
    AdjudicatedMarks,
    Adjudications,
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
    find_untouched,
    keep_decisions,
    keep_marks,
    list_changes,
    majority,
    newest_rule,
    read_newest,
    read_rule,
    recorded_decisions,
    recorded_rule,
)
from loop.labels.reference import (
    CODES,
    MARKS,
    Reference,
    add_version,
    correct_reference,
    format_reference,
    reference_path,
)
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


def test_what_nobody_touched_has_the_same_votes_and_the_same_outcome() -> None:
    """A reader who joins touches where they vote; a rule, where it decides otherwise.

    Nobody's silence is a touch, and a pair without any vote is not left as it was: it
    is missing.
    """
    before = _votes(["edema", "fracture"], ["pp", "p."], ["pa", "aa"], ["..", "p."])
    after = Votes(
        readers=("A", "B", "C"),
        case_ids=before.case_ids,
        labels=("fracture", "edema", "mass"),
        values=_votes(
            ["fracture", "edema", "mass"],
            ["p..", "pp.", "..."],
            ["aaa", "pa.", "p.."],
            ["p..", "...", "..."],
        ).values,
    )

    def untouched(old: MajorityRule, new: MajorityRule) -> list[list[bool]]:
        found = find_untouched(before, after, rule_before=old, rule_after=new)
        return found.tolist()

    usual = MajorityRule()
    assert untouched(usual, usual) == [
        [True, True, False],
        [False, True, False],
        [True, False, False],
    ]
    assert untouched(usual, MajorityRule(minimum_readers=2)) == [
        [False, True, False],
        [False, True, False],
        [False, False, False],
    ]


@pytest.mark.parametrize(("old", "new"), [(False, True), (True, False), (True, True)])
def test_no_finding_is_touched_where_it_is_had_otherwise_now(
    old: bool, new: bool
) -> None:
    """Read before and derived now, or the other way round; other labels are not."""
    votes = _votes(["edema", "no_finding"], ["aa", "pp"])
    found = find_untouched(
        votes,
        votes,
        rule_before=MajorityRule(no_finding_read=old),
        rule_after=MajorityRule(no_finding_read=new),
    )
    assert found.tolist() == [[True, old is new]]


@pytest.mark.parametrize("read", [False, True])
def test_marks_are_kept_where_nothing_was_touched(read: bool) -> None:
    """A derived "No Finding" only where every other label is as it was.

    The newest version says, by verdict, what no votes say.
    """
    labels = ["no_finding", "edema", "mass", "fracture"]
    newest = _reference(["fracture", "edema", "no_finding"], "uup", "uup", "uup")
    marks = _marks("aaaa", "aaaa", "aaaa")
    untouched = np.array(
        [
            [True, True, True, True],
            [True, True, True, False],
            [False, True, True, True],
        ]
    )
    before = marks.copy()
    kept = keep_marks(newest, labels, marks, untouched, no_finding_read=read)
    assert (marks == before).all()
    assert _signs(kept) == ["puau", "puaa" if read else "auaa", "auau"]


def test_a_decision_stands_until_a_vote_under_it_changes_or_the_dispute_ends(
    workspace: WorkspacePaths, make_cohort: Callable[..., Cohort], taxonomy: Taxonomy
) -> None:
    """What a verdict has corrected since is no decision any more.

    Of seven decisions the first and third stand; B changed the second, the label of
    the fourth is gone, the fifth was corrected, the readers agree on the sixth now, and
    on the seventh they are in dispute still, but each says the opposite.
    """
    cohort = make_cohort([(f"a{n}", f"Report {n}.") for n in range(1, 8)])
    before = _votes(
        ["edema", "fracture"],
        ["pa.", "..."],
        ["pa.", "..."],
        ["pa.", "..."],
        ["aa.", "pa."],
        ["pa.", "..."],
        ["p..", "..."],
        ["pa.", "..."],
    )
    words = ["pau", "pp.", "pa.", "aa.", "pa.", "pp.", "ap."]
    after = _votes(["edema"], *([word] for word in words))
    decided = {
        ("a1", "edema"): Mark.PRESENT,
        ("a2", "edema"): Mark.ABSENT,
        ("a3", "edema"): Mark.ABSENT,
        ("a4", "fracture"): Mark.ABSENT,
        ("a5", "edema"): Mark.PRESENT,
        ("a6", "edema"): Mark.ABSENT,
        ("a7", "edema"): Mark.ABSENT,
    }
    recorded = _marks("p.", "a.", "a.", "aa", "u.", "a.", "a.")
    raw = format_reference(cohort.case_ids, ("edema", "fracture"), recorded)
    facts = {"votes": "x", "adjudicated": decision_facts(decided)}
    actor = Actor(name="Dr. Example")
    add_version(workspace, cohort, raw, actor=actor, reason="why", facts=facts)
    marks = majority(after)
    assert _signs(marks) == ["-", "p", "-", "a", "-", "p", "-"]

    def kept(old: Votes | None) -> AdjudicatedMarks:
        return keep_decisions(
            workspace, old, after, marks, taxonomy, "mine", no_finding_read=False
        )

    found = kept(before)
    assert _signs(found.marks) == ["p", "p", "a", "a", "-", "p", "-"]
    assert found.decisions == {
        ("a1", "edema"): Mark.PRESENT,
        ("a3", "edema"): Mark.ABSENT,
    }
    assert found.outcome == Adjudications(
        kept=2,
        lost=(
            ("a2", "edema"),
            ("a4", "fracture"),
            ("a6", "edema"),
            ("a7", "edema"),
        ),
    )
    # Votes before that cannot be believed say nothing of what was under a decision.
    unknown = kept(None)
    assert (unknown.decisions, unknown.outcome.kept) == ({}, 0)
    assert len(unknown.outcome.lost) == 6
    assert _signs(unknown.marks) == _signs(marks)
    # With an edited version nobody can tell what was corrected: every decision counts.
    path = reference_path(workspace, "mine", 1)
    path.write_bytes(path.read_bytes() + b"\n")
    assert kept(before).decisions == found.decisions | {("a5", "edema"): Mark.PRESENT}


def test_the_newest_version_is_believed_only_as_it_was_recorded(
    workspace: WorkspacePaths, make_cohort: Callable[..., Cohort]
) -> None:
    """With what it was corrected from; one that cannot be read is still there."""
    cohort = make_cohort([("a1", "One."), ("a2", "Two.")])
    actor = Actor(name="Dr. Example")
    assert read_newest(workspace, cohort) == Newest(None, None, exists=False)
    path = reference_path(workspace, "mine", 1)
    raw = format_reference(cohort.case_ids, ["edema"], _marks("p", "a"))
    path.parent.mkdir()
    path.write_bytes(raw)
    # Nobody recorded it.
    assert read_newest(workspace, cohort) == Newest(None, None, exists=True)
    add_version(workspace, cohort, raw, actor=actor, reason="why", facts={})
    found = read_newest(workspace, cohort)
    assert found.exists and found.reference is not None and found.origin is not None
    assert (found.reference.number, found.origin.number) == (1, 1)
    fix = {("a1", "edema"): Mark.ABSENT}
    correct_reference(workspace, cohort, fix, actor=actor, reason="verdict")
    found = read_newest(workspace, cohort)
    assert found.exists and found.reference is not None and found.origin is not None
    assert (found.reference.number, found.origin.number) == (2, 1)
    assert _signs(found.reference.marks) == ["a", "a"]
    assert _signs(found.origin.marks) == ["p", "a"]
    newest = reference_path(workspace, "mine", 2)
    kept = newest.read_bytes()
    newest.unlink()
    assert read_newest(workspace, cohort) == Newest(None, None, exists=True)
    newest.write_bytes(kept)
    path.write_bytes(raw.replace(b"present", b"absent"))
    assert read_newest(workspace, cohort) == Newest(None, None, exists=True)
    with workspace.ledger.open("ab") as stream:
        stream.write(b"broken\n")
    with pytest.raises(LedgerError):
        read_newest(workspace, cohort)


HALF = "over half of the readers who voted on the case and label"


@pytest.mark.parametrize(
    ("rule", "words", "facts"),
    [
        (MajorityRule(), "", {}),
        (MajorityRule(need=2), ", at least 2 equal votes", {"need": 2}),
        (
            MajorityRule(minimum_readers=2),
            ", at least 2 readers",
            {"minimum_readers": 2},
        ),
        (
            MajorityRule(no_finding_read=True),
            ", No Finding as they said",
            {"no_finding": "read"},
        ),
        (
            MajorityRule(need=4, minimum_readers=3, no_finding_read=True),
            ", at least 4 equal votes, at least 3 readers, No Finding as they said",
            {"need": 4, "minimum_readers": 3, "no_finding": "read"},
        ),
    ],
)
def test_a_rule_is_recorded_and_read_back(
    rule: MajorityRule, words: str, facts: dict[str, object]
) -> None:
    """What asks for nothing is not said; the words are no part of what is read."""
    assert rule.words == HALF + words
    assert rule.facts == {"majority": HALF + words, **facts}
    assert recorded_rule(facts) == recorded_rule(rule.facts) == rule


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        (None, MajorityRule(need=2)),
        ("question: x\n", MajorityRule(need=2)),
        ("minimum_readers: 1\n", MajorityRule(need=2)),
        ("minimum_readers: 3\n", MajorityRule(need=2, minimum_readers=3)),
        ("no_finding: derived\n", MajorityRule(need=2)),
        ("no_finding: read\n", MajorityRule(need=2, no_finding_read=True)),
        ("minimum_readers: 0\n", None),
        ("no_finding: asked\n", None),
    ],
)
def test_votes_are_taken_by_what_the_protocol_says_of_readers(
    workspace: WorkspacePaths, said: str | None, rule: MajorityRule | None
) -> None:
    """Without a word of them one is enough; fewer than one are none."""
    workspace.protocol.unlink(missing_ok=True)
    if said is not None:
        workspace.protocol.parent.mkdir(parents=True, exist_ok=True)
        workspace.protocol.write_text(said)
    if rule is None:
        with pytest.raises(DataError, match=said.partition(":")[0] if said else ""):
            read_rule(workspace, need=2)
    else:
        assert read_rule(workspace, need=2) == rule
        assert read_rule(workspace).need == 1


def test_a_majority_is_more_than_half_of_those_who_voted_and_what_was_asked() -> None:
    """At the limit and one short of it, of six readers and of fewer."""
    words = ["ppppaa", "pppaaa", "ppp...", "ppa...", "pa....", "p.....", "uuuuaa"]
    votes = _votes(["edema"], *([word] for word in [*words, "......"]))

    def signs(**asked: int) -> str:
        return "".join(_signs(majority(votes, MajorityRule(**asked))))

    assert signs() == "p-pp-pu."
    assert signs(need=2) == "p-pp--u."
    assert signs(need=3) == "p-p---u."
    assert signs(need=6) == "-------."
    assert signs(minimum_readers=3) == "p-pp--u."
    assert signs(minimum_readers=4) == "p-----u."
    assert signs(need=3, minimum_readers=3) == "p-p---u."
    assert "".join(_signs(majority(votes))) == signs()
    for need in (0, 7):
        with pytest.raises(DataError) as told:
            majority(votes, MajorityRule(need=need))
        assert str(told.value) == (
            f"{need} equal votes of 6 readers cannot make a majority. Use 1 to 6; 1 "
            "asks for over half of those who voted and no more."
        )
