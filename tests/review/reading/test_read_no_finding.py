"""Readers label No Finding where the protocol says so, and nowhere else."""

from dataclasses import replace

import numpy as np
import pytest

from loop.core.errors import DataError
from loop.core.ledger import Actor, read_ledger
from loop.core.records import Field, Mark, Outcome, Status, Value, ValueCode
from loop.evaluate.align import align
from loop.evaluate.protocol import Protocol, read_protocol
from loop.labels.ballots import format_votes, read_cohort_votes, votes_path
from loop.labels.cohort import read_record
from loop.labels.majority import newest_rule
from loop.labels.reader_agreement import measure_agreement
from loop.labels.reference import correct_reference, read_reference
from loop.labels.taxonomy import NO_FINDING
from loop.labels.votes import import_votes
from loop.review.guideline import READ_NO_FINDING, build_guideline, write_guideline
from loop.review.reading.adjudication import adjudicate
from loop.review.reading.answer_files import read_answer_file, read_decisions
from loop.review.reading.answers import (
    answer,
    complete_case,
    name_contradiction,
    open_sheet,
    read_answers,
)
from loop.review.reading.assignment import read_assignment, read_basis
from loop.review.reading.disputes import read_disputes
from loop.review.reading.publication import preview_publication, publish_readings
from loop.review.reading.reader_progress import measure_progress
from tests.review.reading.conftest import (
    CASES,
    EDITOR,
    READ_TWICE,
    WORDS,
    import_texts,
)

CHAIR = Actor(name="Dr. Chair", role="reviewer")


def let_read(workspace):
    """Write into the protocol that readers label No Finding."""
    before = workspace.protocol.read_text(encoding="utf-8")
    workspace.protocol.write_text(f"{before}\nno_finding: read\n", encoding="utf-8")


@pytest.fixture
def read_too(workspace, assignment):
    """Return the assignment where the protocol has readers label No Finding."""
    let_read(workspace)
    return read_assignment(workspace, "read")


@pytest.fixture
def give(store, read_too):
    """Return a function by which a reader completes cases: edema and No Finding."""

    def run(reader, edema, no_finding):
        for case, one, other in zip(CASES, edema, no_finding, strict=False):
            said = {"edema": WORDS[one], NO_FINDING: WORDS[other]}
            answer(store, read_too, reader, case, said)
            complete_case(store, read_too, reader, case)

    return run


@pytest.fixture
def make(workspace, store, read_too):
    """Return a function that publishes what was read."""

    def run(**options):
        wanted = replace(READ_TWICE, **options)
        return publish_readings(workspace, store, read_too, wanted, EDITOR)

    return run


def test_it_is_asked_only_where_the_protocol_says_so(workspace, store, assignment):
    """Without the field nothing is as it was not; with it a case has one label more."""
    assert NO_FINDING not in assignment.labels
    with pytest.raises(DataError, match=r"is not asked.*`no_finding: read`"):
        answer(store, assignment, "Dr. A", "c1", {"No Finding": Value.PRESENT})
    let_read(workspace)
    asked = read_assignment(workspace, "read")
    assert asked.labels == asked.taxonomy.ids
    answer(store, asked, "Dr. A", "c1", {"No Finding": Value.PRESENT})
    assert read_answers(store, asked, "Dr. A") == {"c1": {NO_FINDING: Value.PRESENT}}
    assert read_answers(store, assignment, "Dr. A") == {}


def test_another_word_in_the_protocol_is_refused(workspace, assignment):
    """A typing error must not decide what readers are asked."""
    workspace.protocol.write_text("no_finding: maybe\n")
    with pytest.raises(DataError, match="no_finding"):
        read_assignment(workspace, "read")
    with pytest.raises(DataError, match="no_finding"):
        read_protocol(workspace)


def test_an_old_protocol_keeps_its_content(workspace):
    """What is registered and signed of a protocol without the field is what it was."""
    assert "no_finding" not in Protocol().model_dump(mode="json")
    assert "no_finding" not in Protocol(no_finding="derived").model_dump(mode="json")
    assert Protocol(no_finding="read").model_dump(mode="json")["no_finding"] == "read"
    assert read_protocol(workspace).no_finding == "derived"


def test_the_rest_is_absent_but_not_no_finding(workspace, store, read_too):
    """Absent would say that something was found in a normal case."""
    assert complete_case(store, read_too, "Dr. A", "c1") == 20
    sheet = open_sheet(workspace, store, read_too, "Dr. A", "c1")
    assert sheet.open_labels == (NO_FINDING,)
    assert measure_progress(store, read_too).readers[0].complete == 0
    answer(store, read_too, "Dr. A", "c1", {NO_FINDING: Value.PRESENT})
    assert measure_progress(store, read_too).readers[0].complete == 1


def test_cases_read_before_are_begun_again(workspace, store, say, publish):
    """What nobody was asked is open; what was published stays until it is read."""
    say("Dr. A", "pppp")
    publish()
    let_read(workspace)
    asked = read_assignment(workspace, "read")
    one = measure_progress(store, asked).readers[0]
    assert (one.complete, one.begun) == (0, 4)
    with pytest.raises(DataError, match="no complete case"):
        publish_readings(workspace, store, asked, READ_TWICE, EDITOR)
    assert read_reference(workspace, "read").mark("c1", NO_FINDING) is Mark.ABSENT


def test_what_is_kept_in_memory_follows_the_protocol(workspace, store, assignment):
    """A page that was open while the protocol changed counts anew."""
    before = read_basis(workspace, assignment, store)
    let_read(workspace)
    assert read_basis(workspace, read_assignment(workspace, "read"), store) != before


def test_the_reference_is_what_the_readers_said(workspace, read_too, give, make):
    """Also where it does not follow: c4 has a finding that no label names."""
    give("Dr. A", "paaa", "appa")
    give("Dr. B", "paaa", "auaa")
    report = make().votes
    reference = read_reference(workspace, "read")
    marks = [reference.mark(case, NO_FINDING) for case in CASES]
    tie = Mark.NO_MAJORITY
    assert marks == [Mark.ABSENT, tie, tie, Mark.ABSENT]
    assert "No Finding as they said" in report.rule.words
    assert newest_rule(read_record(workspace, "read")).no_finding_read
    assert read_ledger(workspace.ledger)[-1].payload["no_finding"] == "read"
    votes = read_cohort_votes(workspace, read_too.cohort, read_too.taxonomy)
    assert votes.count == 2 * 4 * 21


def test_without_the_field_the_ledger_says_nothing_new(workspace, say, publish):
    """Entries are what they were."""
    say("Dr. A", "pppp")
    publish()
    assert "no_finding" not in read_ledger(workspace.ledger)[-1].payload


def test_it_is_disputed_and_decided_on_like_any_label(
    workspace, read_too, give, make, tmp_path
):
    """Readers may differ on it alone, and a decision elsewhere does not move it."""
    give("Dr. A", "paaa", "aapp")
    give("Dr. B", "aaaa", "ppaa")
    make()
    found = read_disputes(workspace, read_too)
    assert {(row.case_id, row.label) for row in found.rows} == {
        ("c1", "edema"), ("c1", NO_FINDING), ("c2", NO_FINDING), ("c3", NO_FINDING),
        ("c4", NO_FINDING),
    }  # fmt: skip
    path = tmp_path / "decisions.csv"
    path.write_text("case_id,label,value\nc1,edema,present\nc2,No Finding,present\n")
    decisions = read_decisions(path, read_too)
    made = adjudicate(workspace, read_too, decisions, actor=CHAIR, why="together")
    reference = read_reference(workspace, "read")
    assert reference.mark("c1", "edema") is Mark.PRESENT
    assert reference.mark("c1", NO_FINDING) is Mark.NO_MAJORITY, "nobody decided it"
    assert reference.mark("c2", NO_FINDING) is Mark.PRESENT
    assert (made.changed, made.open) == (2, 3)
    give("Dr. C", "aaaa", "papp")
    make()
    reference = read_reference(workspace, "read")
    assert reference.mark("c1", "edema") is Mark.PRESENT
    assert reference.mark("c1", NO_FINDING) is Mark.PRESENT, "two of three"
    assert reference.mark("c2", NO_FINDING) is Mark.PRESENT


def test_a_dispute_that_follows_is_listed_only_where_it_was_read(
    workspace, assignment, say, publish
):
    """Derived, it is settled with the label it follows from."""
    say("Dr. A", "paaa")
    say("Dr. B", "aaaa")
    publish()
    let_read(workspace)
    # The version was made without the readers' word; the protocol of today is no word.
    asked = read_assignment(workspace, "read")
    found = read_disputes(workspace, asked)
    assert [(row.case_id, row.label) for row in found.rows] == [("c1", "edema")]


def test_a_correction_stands_where_nobody_new_has_read(
    workspace, read_too, give, make, store
):
    """Also when another label of the case is voted on otherwise."""
    give("Dr. A", "aaaa", "pppp")
    make()
    correct_reference(
        workspace,
        read_too.cohort,
        {("c1", NO_FINDING): Mark.ABSENT},
        actor=EDITOR,
        reason="free air",
    )
    answer(store, read_too, "Dr. A", "c1", {"edema": Value.PRESENT})
    make()
    reference = read_reference(workspace, "read")
    assert reference.mark("c1", "edema") is Mark.PRESENT
    assert reference.mark("c1", NO_FINDING) is Mark.ABSENT


@pytest.mark.parametrize(
    ("said", "mark"), [("pp", Mark.PRESENT), ("ap", Mark.NO_MAJORITY)]
)
def test_a_protocol_that_changes_makes_the_marks_anew(
    workspace, store, say, publish, said, mark
):
    """What followed from a panel's decision gives way to what readers say.

    Also where they say what had been derived for each of them, so that no vote changes.
    """
    say("Dr. A", "p")
    say("Dr. B", "a")
    publish()
    derived = read_assignment(workspace, "read")
    decided = {("c1", "edema"): Mark.PRESENT}
    adjudicate(workspace, derived, decided, actor=CHAIR, why="together")
    assert read_reference(workspace, "read").mark("c1", NO_FINDING) is Mark.ABSENT
    let_read(workspace)
    asked = read_assignment(workspace, "read")
    for reader, word in zip(("Dr. A", "Dr. B"), said, strict=True):
        answer(store, asked, reader, "c1", {NO_FINDING: WORDS[word]})
    publish_readings(workspace, store, asked, READ_TWICE, EDITOR)
    reference = read_reference(workspace, "read")
    assert reference.mark("c1", "edema") is Mark.PRESENT, "the decision stands"
    assert reference.mark("c1", NO_FINDING) is mark


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({NO_FINDING: "p", "edema": "p"}, "contradicts Edema (present): correct one"),
        ({NO_FINDING: "p", "fracture": "u"}, "contradicts Fracture (uncertain)"),
        ({NO_FINDING: "p", "support_devices": "p"}, "Support Devices (present)"),
        ({NO_FINDING: "a", "edema": "p"}, ""),
        ({NO_FINDING: "u", "edema": "p"}, ""),
        ({NO_FINDING: "a"}, ""),
        ({NO_FINDING: "p", "edema": "a"}, ""),
        ({"edema": "p"}, ""),
        ({}, ""),
    ],
)
def test_what_contradicts_it_is_said_in_words(read_too, given, words):
    """A present one leaves no room for a finding; it is said, and never refused."""
    said = name_contradiction(read_too, {n: WORDS[w] for n, w in given.items()})
    assert words in said
    assert bool(words) is bool(said)


def test_devices_contradict_nothing_where_the_policy_leaves_them_out(
    workspace, read_too
):
    """The same policy as for predictions."""
    path = workspace.labels / "taxonomy.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace("no_finding_policy: ran", "no_finding_policy: chexpert")
    )
    asked = read_assignment(workspace, "read")
    given = {NO_FINDING: Value.PRESENT, "support_devices": Value.PRESENT}
    assert name_contradiction(asked, given) == ""
    assert name_contradiction(read_too, given)


def test_many_contradictions_are_counted(read_too):
    """A line, not a list of twenty."""
    given = dict.fromkeys(read_too.taxonomy.ids, Value.PRESENT)
    assert "and 15 more" in name_contradiction(read_too, given)


def test_agreement_counts_it(workspace, read_too, give, make):
    """As a row of its own, and among all labels together."""
    give("Dr. A", "paaa", "appp")
    give("Dr. B", "paaa", "appa")
    make()
    votes = read_cohort_votes(workspace, read_too.cohort, read_too.taxonomy)
    found = measure_agreement(votes, read_too.taxonomy, cohort="read", resamples=100)
    row = next(one for one in found.labels if one.label == NO_FINDING)
    assert (row.votes, row.present) == (8, 5)
    assert row.raw == pytest.approx(3 / 4)
    assert found.pooled.votes == 2 * 4 * 21


def test_votes_go_out_and_come_in_again(workspace, read_too, give, make, tmp_path):
    """A table of votes made elsewhere may hold it, and what we write reads back."""
    give("Dr. A", "paaa", "appa")
    make()
    votes = read_cohort_votes(workspace, read_too.cohort, read_too.taxonomy)
    assert votes_path(workspace, "read").read_bytes() == format_votes(votes)
    path = tmp_path / "more.csv"
    rows = [f"Dr. Z,{case},No Finding,absent" for case in CASES]
    path.write_text("\n".join(["reader,case_id,label,value", *rows]) + "\n")
    import_votes(
        workspace, read_too.cohort, path, read_too.taxonomy, need=None, actor=EDITOR
    )
    reference = read_reference(workspace, "read")
    marks = [reference.mark(case, NO_FINDING) for case in CASES]
    tie = Mark.NO_MAJORITY
    assert marks == [Mark.ABSENT, tie, tie, Mark.ABSENT]


def test_an_answer_file_may_hold_it_only_where_it_is_read(
    workspace, assignment, tmp_path
):
    """The line is named where it may not."""
    path = tmp_path / "answers.csv"
    path.write_text("case_id,label,value\nc1,No Finding,present\n")
    with pytest.raises(DataError, match=r"line 2.*is not asked"):
        read_answer_file(path, assignment, "Dr. A")
    let_read(workspace)
    asked = read_assignment(workspace, "read")
    found = read_answer_file(path, asked, "Dr. A")
    assert found == {"c1": {NO_FINDING: Value.PRESENT}}


def test_an_evaluation_is_against_what_was_read(workspace, read_too, give, make):
    """All findings right and still wrong: the reader saw what no label names."""
    give("Dr. A", "aaaa", "aapp")
    make()
    normal = {name: Field(Value.ABSENT) for name in read_too.taxonomy.extracted}
    outcomes = [
        Outcome(item_id=case, status=Status.ANSWERED, fields=normal) for case in CASES
    ]
    reference = read_reference(workspace, "read")
    pairs = align(outcomes, reference, read_too.taxonomy)
    at = pairs.labels.index(NO_FINDING)
    assert pairs.reference[:, at].tolist() == [0, 0, 1, 1]
    assert pairs.predicted[:, at].tolist() == [1, 1, 1, 1]
    others = np.delete(pairs.reference, at, axis=1)
    assert (others == ValueCode.ABSENT).all()


def test_a_holdout_is_read_the_same_way(workspace, store, tmp_path):
    """Sealed like every other answer."""
    import_texts(workspace, tmp_path, {"c1": "Made-up."}, role="holdout")
    let_read(workspace)
    asked = read_assignment(workspace, "read")
    answer(store, asked, "Dr. A", "c1", {NO_FINDING: Value.ABSENT})
    complete_case(store, asked, "Dr. A", "c1")
    ((kept,),) = store.read("SELECT value FROM readings WHERE label = 'no_finding'")
    assert "absent" not in kept
    found = preview_publication(workspace, store, asked, READ_TWICE, EDITOR)
    assert found.readers[0].complete == 1
    assert found.votes.not_voted == ()


def test_the_guideline_says_that_readers_label_it(workspace, read_too, tmp_path):
    """The taxonomy speaks of predictions: "never asked" would confuse a reader."""
    shown = {
        read: dict(
            zip(
                read_too.taxonomy.ids,
                build_guideline(read_too.taxonomy, no_finding_read=read).entries,
                strict=True,
            )
        )
        for read in (False, True)
    }
    assert shown[True][NO_FINDING].lists == (("For readers", (READ_NO_FINDING,)),)
    assert shown[False][NO_FINDING].lists == ()
    assert shown[True]["edema"] == shown[False]["edema"]
    file = tmp_path / "g.md"
    write_guideline(workspace, file)
    assert "label it yourself" in file.read_text("utf-8")
