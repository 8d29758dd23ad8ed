"""Votes that are added to votes: no reader's vote goes without being named."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from loop.core.errors import DataError, LoopError
from loop.core.ledger import Actor, read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.records import Mark, ValueCode
from loop.labels.ballots import Votes, read_cohort_votes, read_votes, votes_path
from loop.labels.cohort import Cohort
from loop.labels.majority import (
    Adjudications,
    MajorityRule,
    MarkChange,
    MarkChanges,
    Newest,
    Superseded,
    find_untouched,
    keep_marks,
    list_changes,
    majority,
)
from loop.labels.reader_agreement import measure_agreement
from loop.labels.reference import (
    Reference,
    correct_reference,
    list_references,
    read_reference,
)
from loop.labels.taxonomy import Taxonomy
from loop.labels.votes import (
    Replaced,
    Taking,
    VotesReport,
    import_votes,
    replace_votes,
    take_votes,
)

HEADER = ("reader", "case_id", "label", "value")
FIRST = [("A", "a1", "edema", "present"), ("A", "a2", "fracture", "absent")]
SECOND = [("B", "a1", "edema", "present"), ("B", "a2", "fracture", "present")]

Add = Callable[..., VotesReport]


@pytest.fixture
def cohort(make_cohort: Callable[..., Cohort]) -> Cohort:
    """Return a cohort of two cases."""
    return make_cohort([("a1", "One."), ("a2", "Two.")])


@pytest.fixture
def add(
    workspace: WorkspacePaths,
    cohort: Cohort,
    taxonomy: Taxonomy,
    write_csv: Callable[..., Path],
) -> Add:
    """Return a function that adds votes, or replaces them."""

    def run(
        rows: Sequence[Sequence[str]],
        *,
        replace: bool = False,
        need: int | None = None,
    ) -> VotesReport:
        path = write_csv([HEADER, *rows], "votes.csv")
        take = replace_votes if replace else import_votes
        who = Actor(name="Dr. Example")
        return take(workspace, cohort, path, taxonomy, need=need, actor=who)

    return run


def test_a_second_reader_is_added_to_the_first(
    workspace: WorkspacePaths, cohort: Cohort, taxonomy: Taxonomy, add: Add
) -> None:
    """The reference is the majority over both, and agreement can be measured."""
    add(FIRST)
    with pytest.raises(DataError, match="cohort votes mine FILE"):
        measure_agreement(
            read_cohort_votes(workspace, cohort, taxonomy), taxonomy, cohort="mine"
        )
    report = add(SECOND)
    assert (report.readers, report.added) == (("A", "B"), ("B",))
    assert (report.votes, report.rule, report.replaced) == (4, MajorityRule(), ())
    reference = read_reference(workspace, "mine")
    assert reference.mark("a1", "edema") is Mark.PRESENT
    assert reference.mark("a2", "fracture") is Mark.NO_MAJORITY
    payload = read_ledger(workspace.ledger)[-1].payload
    assert payload["majority"] == MajorityRule().words
    assert ("need" in payload, payload["readers"]) == (False, 2)
    both = read_cohort_votes(workspace, cohort, taxonomy)
    measured = measure_agreement(both, taxonomy, cohort="mine", resamples=100)
    assert measured.pooled.raw == pytest.approx(0.5)


def test_readers_added_one_by_one_make_what_one_file_makes(
    workspace: WorkspacePaths, cohort: Cohort, taxonomy: Taxonomy, add: Add
) -> None:
    """In any order, also where each voted on another label."""
    third = [("C", "a1", "atelectasis", "uncertain")]
    for rows in (third, SECOND, FIRST):
        add(rows)
    one_by_one = votes_path(workspace, "mine").read_bytes()
    add([*FIRST, *SECOND, *third], replace=True)
    assert votes_path(workspace, "mine").read_bytes() == one_by_one
    kept = read_cohort_votes(workspace, cohort, taxonomy)
    assert kept.labels == tuple(
        name for name in taxonomy.ids if name in ("atelectasis", "edema", "fracture")
    )


def test_a_reader_who_voted_already_is_refused(
    workspace: WorkspacePaths, add: Add
) -> None:
    """Two answers of one person to one question: not for the program to choose."""
    add(FIRST)
    before = votes_path(workspace, "mine").read_bytes()
    with pytest.raises(
        DataError, match=r"voted, and otherwise than in this file\..*--replace"
    ):
        add([*SECOND, ("A", "a1", "edema", "absent")])
    assert votes_path(workspace, "mine").read_bytes() == before
    assert list_references(workspace, "mine") == (1,)


@pytest.mark.parametrize(
    ("other", "letter"),
    [("ann cole", "U+0041"), ("Ann Co\u200ble", "U+200B"), ("\u0410nn Cole", "U+0410")],
)
def test_a_reader_who_looks_like_another_is_refused(
    workspace: WorkspacePaths, add: Add, other: str, letter: str
) -> None:
    """In one file, and beside a reader whose votes are kept."""
    told = f"looks like the reader .*{letter.replace('+', '[+]')}.* write '.*' for both"
    one = [("Ann Cole", "a1", "edema", "present")]
    two = [(other, "a2", "fracture", "absent")]
    with pytest.raises(DataError, match=told):
        add([*one, *two])
    assert not votes_path(workspace, "mine").exists()
    add(one)
    for replace in (False, True):
        with pytest.raises(DataError, match=told):
            add(two, replace=replace)
    assert add([("Anna Cole", "a2", "edema", "absent")]).added == ("Anna Cole",)


def test_readers_kept_from_before_are_not_judged_by_their_names(
    monkeypatch: pytest.MonkeyPatch, add: Add
) -> None:
    """A workspace with such votes goes on: others read, and the same comes again."""
    old = [("A", "a1", "edema", "present"), ("a", "a2", "fracture", "absent")]
    with monkeypatch.context() as earlier:
        earlier.setattr("loop.labels.votes._refuse_look_alikes", lambda *_: None)
        add(old)
    assert add(SECOND).readers == ("A", "B", "a")
    assert add(old, replace=True).added == ()


def test_the_same_votes_once_more_change_nothing(
    workspace: WorkspacePaths, add: Add
) -> None:
    """A command that was stopped can be given again, also with readers added since."""
    add(FIRST)
    add(SECOND)
    report = add(FIRST)
    assert (report.reference, report.added, report.replaced) == (2, (), ())
    assert report.votes == 4


def test_what_a_replacement_loses_is_named(
    workspace: WorkspacePaths, cohort: Cohort, taxonomy: Taxonomy, add: Add
) -> None:
    """Reader, votes, how many have no new vote, labels; other readers are untouched."""
    add([*FIRST, *SECOND, ("A", "a2", "edema", "absent")])
    report = add([("A", "a1", "edema", "absent")], replace=True)
    assert report.replaced == (Replaced("A", 3, 2, ("fracture",)),)
    assert report.readers == ("A", "B")
    assert report.votes == 3
    report = add([("B", "a1", "edema", "present")], replace=True)
    assert read_cohort_votes(workspace, cohort, taxonomy).labels == ("edema",)
    assert "fracture" in report.not_voted


@pytest.mark.parametrize("harm", ["edited", "gone", "planted"])
def test_votes_that_are_not_as_recorded_are_not_added_to(
    workspace: WorkspacePaths, add: Add, harm: str
) -> None:
    """Else an edit of another reader's votes would become the recorded truth."""
    kept = votes_path(workspace, "mine")
    if harm == "planted":
        kept.write_text("reader,case_id,label,value\nA,a1,edema,absent\n")
    else:
        add(FIRST)
        raw = kept.read_text()
        kept.unlink()
        if harm == "edited":
            kept.write_text(raw.replace("present", "absent"))
    with pytest.raises(DataError, match=r"votes\.csv .* in the ledger.*FILE --replace"):
        add(SECOND)
    report = add(SECOND, replace=True)
    assert report.discarded
    assert report.readers == ("B",)


def test_an_addition_that_was_killed_can_be_repeated(
    workspace: WorkspacePaths, add: Add
) -> None:
    """The votes came, the ledger entry did not: the recorded ones were set aside."""
    add(FIRST)
    ledger = workspace.ledger.read_bytes()
    add(SECOND)
    workspace.ledger.write_bytes(ledger)
    report = add(SECOND)
    assert (report.readers, report.added, report.discarded) == (
        ("A", "B"),
        ("B",),
        False,
    )


def test_a_first_addition_that_was_killed_can_be_repeated(
    workspace: WorkspacePaths, add: Add
) -> None:
    """The file that is there is the one that is added."""
    ledger = workspace.ledger.read_bytes()
    add(FIRST)
    workspace.ledger.write_bytes(ledger)
    assert add(FIRST).added == ("A",)


def test_a_failed_addition_puts_the_votes_back(
    workspace: WorkspacePaths, add: Add
) -> None:
    """Votes and reference change together or not at all."""
    add(FIRST)
    before = votes_path(workspace, "mine").read_bytes()
    workspace.ledger.write_bytes(b"broken\n")
    with pytest.raises(LoopError):
        add(SECOND)
    assert votes_path(workspace, "mine").read_bytes() == before


def six(case: str, values: str, readers: str = "ABCDEF") -> list[tuple[str, ...]]:
    """Return one vote on edema per character: p, a, or a dot for none."""
    words = {"p": "present", "a": "absent"}
    said = zip(readers, values, strict=True)
    return [(who, case, "edema", words[word]) for who, word in said if word != "."]


def test_new_readers_count_only_where_they_read(
    workspace: WorkspacePaths, add: Add
) -> None:
    """Four of six stay four of six on the case that the seventh and eighth left out."""
    add([*six("a1", "ppppaa"), *six("a2", "ppppaa")], need=4)
    report = add(six("a2", "aa", readers="GH"))
    assert report.rule == MajorityRule(need=4)
    reference = read_reference(workspace, "mine")
    assert reference.mark("a1", "edema") is Mark.PRESENT
    assert reference.mark("a2", "edema") is Mark.NO_MAJORITY
    assert report.changes is not None
    assert [(r.case_id, r.was, r.becomes) for r in report.changes.rows] == [
        ("a2", Mark.PRESENT, Mark.NO_MAJORITY)
    ]
    assert report.changes.undecided == 1
    assert add(six("a1", "p", readers="I"), need=1).rule == MajorityRule()
    # Who says nothing goes by the rule of the votes before, not of the first ones.
    assert add(six("a1", "p", readers="J")).rule == MajorityRule()


def test_a_correction_stands_where_nobody_new_has_read(
    workspace: WorkspacePaths, cohort: Cohort, add: Add
) -> None:
    """A verdict was given on it; votes on another case say nothing about it."""
    add([*six("a1", "pppppp"), *six("a2", "pppppp")])
    right = {("a1", "edema"): Mark.ABSENT, ("a2", "edema"): Mark.ABSENT}
    who = Actor(name="Dr. Example")
    correct_reference(workspace, cohort, right, actor=who, reason="read again")
    report = add(six("a2", "p", readers="G"))
    reference = read_reference(workspace, "mine")
    assert reference.mark("a1", "edema") is Mark.ABSENT
    assert reference.mark("a2", "edema") is Mark.PRESENT
    assert report.superseded == (1, 0)


@pytest.mark.parametrize("few", ["pp....", "p....."])
def test_fewer_readers_than_the_protocol_wants_have_no_majority(
    workspace: WorkspacePaths, add: Add, few: str
) -> None:
    """They are counted, and a reference made before stays until votes come in."""
    add([*six("a1", "pppppp"), *six("a2", few)])
    workspace.protocol.write_text("minimum_readers: 3\n")
    assert read_reference(workspace, "mine").mark("a2", "edema") is Mark.PRESENT
    report = add(six("a1", "p", readers="G"))
    assert (report.too_few, report.rule.minimum_readers) == (1, 3)
    assert read_reference(workspace, "mine").mark("a2", "edema") is Mark.NO_MAJORITY
    payload = read_ledger(workspace.ledger)[-1].payload
    assert payload["minimum_readers"] == 3


def test_no_finding_is_kept_only_with_all_other_marks() -> None:
    """It follows from them: a new finding leaves no earlier "No Finding" standing."""
    labels = ("no_finding", "edema")
    newest = Reference(
        cohort="mine",
        number=1,
        digest="",
        case_ids=("a1", "a2"),
        labels=labels,
        marks=np.array([[1, 0], [1, 0]], dtype=np.int8),
    )
    made = np.array([[0, 1], [0, 0]], dtype=np.int8)
    untouched = np.array([[True, False], [True, True]])
    assert keep_marks(newest, labels, made, untouched).tolist() == [[0, 1], [1, 0]]
    # Where readers label it themselves, it follows from nothing.
    read = keep_marks(newest, labels, made, untouched, no_finding_read=True)
    assert read.tolist() == [[1, 1], [1, 0]]


def table(rows: dict[str, str], label: str = "edema") -> Votes:
    """Return votes of six readers on one label: p, a, u or a dot a reader."""
    codes = {"p": 1, "a": 0, "u": -1, ".": ValueCode.NOT_VOTED}
    values = [[[codes[word] for word in said]] for said in rows.values()]
    return Votes(
        readers=tuple("ABCDEF"),
        case_ids=tuple(rows),
        labels=(label,),
        values=np.array(values, dtype=np.int8),
    )


def test_a_pair_is_touched_by_a_vote_or_by_another_rule() -> None:
    """And by nothing else; what nobody votes on any more is not kept."""
    rows = {"same": "pppppp", "rule": "ppppaa", "vote": "pppppp", "none": "......"}
    before = table(rows)
    after = table({**rows, "vote": "pppppa"})

    def untouched(
        first: MajorityRule, second: MajorityRule, votes: Votes
    ) -> list[bool]:
        found = find_untouched(before, votes, rule_before=first, rule_after=second)
        return [bool(one) for one in found[:, 0]]

    usual, strict = MajorityRule(), MajorityRule(need=5)
    assert untouched(usual, usual, after) == [True, True, False, False]
    assert untouched(usual, strict, after) == [True, False, False, False]
    assert untouched(strict, usual, before) == [True, False, True, False]


@pytest.mark.parametrize("was", [False, True])
@pytest.mark.parametrize("now", [False, True])
def test_no_finding_is_touched_when_who_labels_it_changes(was: bool, now: bool) -> None:
    """The votes may be the same, and mean something else."""
    votes = table({"a1": "pppppp"}, "no_finding")
    found = find_untouched(
        votes,
        votes,
        rule_before=MajorityRule(no_finding_read=was),
        rule_after=MajorityRule(no_finding_read=now),
    )
    assert bool(found[0, 0]) is (was is now)


def test_marks_that_become_undecided_are_listed_first() -> None:
    """Then other decided marks, then what was missing or open."""
    votes = table({"a1": "pppppp", "a2": "aaaaaa", "a3": "pppaaa", "a4": "pppppp"})
    was = [ValueCode.MISSING, 1, 1, ValueCode.NO_MAJORITY]
    newest = Reference(
        cohort="mine",
        number=1,
        digest="",
        case_ids=votes.case_ids,
        labels=("edema",),
        marks=np.array([[one] for one in was], dtype=np.int8),
    )
    found = list_changes(
        Newest(newest, newest, exists=True), votes, majority(votes), ("edema",)
    )
    assert found is not None
    assert [one.case_id for one in found.rows] == ["a3", "a2", "a1", "a4"]
    assert [one.undecides for one in found.rows] == [True, False, False, False]
    opened = MarkChange("a1", "edema", Mark.NO_MAJORITY, Mark.MISSING)
    assert not opened.undecides
    assert (
        list_changes(Newest(None, None, exists=True), votes, majority(votes), ())
        is None
    )


def test_what_became_of_votes_is_told_whole(
    workspace: WorkspacePaths, cohort: Cohort, taxonomy: Taxonomy, add: Add
) -> None:
    """First votes, a second reader, and one whose votes are replaced."""
    known = {"cohort": "mine", "rule": MajorityRule(), "discarded": False}
    first = add(FIRST)
    others = tuple(one for one in taxonomy.ids if one not in ("edema", "fracture"))
    assert first == VotesReport(
        **known,
        readers=("A",),
        added=("A",),
        replaced=(),
        votes=2,
        reference=1,
        marks={
            "present": 1, "absent": 1, "uncertain": 0, "no_majority": 0, "missing": 2,
        },
        not_voted=others,
        superseded=Superseded(0, 0),
        changes=MarkChanges(
            rows=(
                MarkChange("a1", "edema", Mark.MISSING, Mark.PRESENT),
                MarkChange("a2", "fracture", Mark.MISSING, Mark.ABSENT),
            )
        ),
        too_few=0,
        adjudications=Adjudications(),
        not_blind=(),
        digest=first.digest,
    )  # fmt: skip
    add(SECOND)
    third = add([("B", "a2", "edema", "absent")], replace=True)
    assert third == VotesReport(
        **known,
        readers=("A", "B"),
        added=(),
        replaced=(Replaced("B", 2, 2, ("fracture",)),),
        votes=3,
        reference=3,
        marks={
            "present": 1, "absent": 2, "uncertain": 0, "no_majority": 0, "missing": 1,
        },
        not_voted=others,
        superseded=Superseded(0, 0),
        changes=MarkChanges(
            rows=(
                MarkChange("a2", "edema", Mark.MISSING, Mark.ABSENT),
                MarkChange("a2", "fracture", Mark.NO_MAJORITY, Mark.ABSENT),
            )
        ),
        too_few=0,
        adjudications=Adjudications(),
        not_blind=(),
        digest=third.digest,
    )  # fmt: skip
    assert len({first.digest, third.digest}) == 2
    entry = read_ledger(workspace.ledger)[-1]
    assert entry.reason == (
        "majority of 2 readers: over half of the readers who voted on the case and "
        "label"
    )


def test_who_saw_a_model_is_kept_until_known_otherwise(
    workspace: WorkspacePaths,
    cohort: Cohort,
    taxonomy: Taxonomy,
    write_csv: Callable[..., Path],
) -> None:
    """After later votes too; a reader of whom nothing is known is not named."""

    def seen(blind: dict[str, bool], *readers: str) -> tuple[str, ...]:
        rows = [(reader, "a1", "edema", "present") for reader in readers]
        votes = read_votes(write_csv([HEADER, *rows], "votes.csv"), cohort, taxonomy)
        how = Taking(actor=Actor(name="Dr. Example"), blind=blind)
        return take_votes(workspace, cohort, votes, taxonomy, how).not_blind

    assert seen({"A": False, "B": True}, "A", "B", "C") == ("A",)
    assert seen({"D": False}, "D") == ("A", "D")
    assert read_ledger(workspace.ledger)[-1].payload["not_blind"] == ["A", "D"]
    assert seen({"A": True, "E": True}, "E") == ("D",)
