"""Reference standards: numbered versions, corrected by a new one, never edited."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from loop.core.digests import digest_bytes
from loop.core.errors import DataError, LedgerError, UnknownLabelError, WriteError
from loop.core.ledger import Actor, read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.records import Mark
from loop.labels.cohort import Cohort
from loop.labels.reference import (
    CODES,
    Reference,
    as_scored,
    correct_reference,
    edited_references,
    format_reference,
    list_references,
    read_reference,
    reference_path,
    write_reference,
)
from loop.labels.taxonomy import Taxonomy

ACTOR = Actor(name="Dr. Example")
LABELS = ("edema", "fracture", "pneumonia")
MARKS = np.array([[1, 0, -1], [-2, -3, 2]], dtype=np.int8)

Maker = Callable[..., Cohort]


@pytest.fixture
def cohort(make_cohort: Maker) -> Cohort:
    """Return a cohort of two cases without labels."""
    return make_cohort([("a1", "One."), ("a2", "Two.")])


def _write(workspace: WorkspacePaths, cohort: Cohort, marks: object = MARKS) -> int:
    return write_reference(
        workspace, cohort, LABELS, np.asarray(marks), reason="first", actor=ACTOR
    )


def test_every_mark_survives_the_file(
    workspace: WorkspacePaths, cohort: Cohort
) -> None:
    """All six marks are spelled out and read back as they were."""
    assert _write(workspace, cohort) == 1
    reference = read_reference(workspace, "mine")
    assert (reference.marks == MARKS).all()
    assert reference.labels == LABELS
    assert reference.case_ids == ("a1", "a2")
    assert reference.mark("a2", "pneumonia") is Mark.NOT_CODED
    text = reference_path(workspace, "mine", 1).read_text()
    assert text == (
        "case_id,edema,fracture,pneumonia\n"
        "a1,present,absent,uncertain\n"
        "a2,no_majority,missing,not_coded\n"
    )


def test_a_correction_makes_the_next_version(
    workspace: WorkspacePaths, cohort: Cohort
) -> None:
    """The old version stays, byte for byte, so that old runs can be understood."""
    _write(workspace, cohort)
    before = reference_path(workspace, "mine", 1).read_bytes()
    number = correct_reference(
        workspace,
        cohort,
        {("a2", "fracture"): Mark.PRESENT},
        actor=ACTOR,
        reason="read again",
    )
    assert number == 2
    assert list_references(workspace, "mine") == (1, 2)
    assert reference_path(workspace, "mine", 1).read_bytes() == before
    assert read_reference(workspace, "mine").mark("a2", "fracture") is Mark.PRESENT
    assert read_reference(workspace, "mine", 1).mark("a2", "fracture") is Mark.MISSING


def test_correcting_twice_makes_one_version(
    workspace: WorkspacePaths, cohort: Cohort
) -> None:
    """Running the same verdicts again changes nothing."""
    _write(workspace, cohort)
    wanted = {("a2", "fracture"): Mark.PRESENT}
    for _ in range(2):
        number = correct_reference(
            workspace, cohort, wanted, actor=ACTOR, reason="read again"
        )
        assert number == 2
    assert _write(workspace, cohort, read_reference(workspace, "mine").marks) == 2


def test_every_version_is_in_the_ledger(
    workspace: WorkspacePaths, cohort: Cohort
) -> None:
    """Who, why and the digest: enough to notice an edit later."""
    _write(workspace, cohort)
    entry = read_ledger(workspace.ledger)[-1]
    assert (entry.action, entry.subject) == ("reference_revised", "mine:ref1")
    assert (entry.actor, entry.reason) == ("Dr. Example", "first")
    assert entry.payload["digest"] == read_reference(workspace, "mine").digest


def test_an_edited_version_is_noticed(
    workspace: WorkspacePaths, cohort: Cohort
) -> None:
    """An edit behind the tool's back no longer has the recorded digest."""
    _write(workspace, cohort)
    assert edited_references(workspace, "mine") == ()
    path = reference_path(workspace, "mine", 1)
    path.write_text(path.read_text().replace("present", "absent", 1))
    assert edited_references(workspace, "mine") == (1,)


def test_an_edited_version_is_not_read(
    workspace: WorkspacePaths, cohort: Cohort
) -> None:
    """It would be scored as if readers had said so; also under its number."""
    _write(workspace, cohort)
    path = reference_path(workspace, "mine", 1)
    path.write_text(path.read_text().replace("present", "absent", 1))
    for number in (None, 1):
        with pytest.raises(DataError, match=r"v1\.csv was edited.*reference_wrong"):
            read_reference(workspace, "mine", number)
    wanted = {("a2", "fracture"): Mark.PRESENT}
    with pytest.raises(DataError, match="was edited"):
        correct_reference(workspace, cohort, wanted, actor=ACTOR, reason="again")
    assert list_references(workspace, "mine") == (1,)


def test_a_planted_version_is_not_read(
    workspace: WorkspacePaths, cohort: Cohort
) -> None:
    """The newest file decides what is scored: one nobody recorded is refused."""
    _write(workspace, cohort)
    planted = reference_path(workspace, "mine", 9)
    planted.write_bytes(reference_path(workspace, "mine", 1).read_bytes())
    with pytest.raises(DataError, match=r"v9\.csv is not in the ledger.*cohort votes"):
        read_reference(workspace, "mine")
    assert edited_references(workspace, "mine") == (9,)
    assert read_reference(workspace, "mine", 1).number == 1
    assert _write(workspace, cohort, MARKS[::-1]) == 10
    assert read_reference(workspace, "mine").number == 10


def test_a_removed_version_is_missed(workspace: WorkspacePaths, cohort: Cohort) -> None:
    """Without v2, v1 would be scored as the newest; and v2 is never made twice."""
    _write(workspace, cohort)
    _write(workspace, cohort, MARKS[::-1])
    reference_path(workspace, "mine", 2).unlink()
    for number in (None, 2):
        with pytest.raises(DataError, match=r"v2\.csv of cohort 'mine' is gone"):
            read_reference(workspace, "mine", number)
    assert read_reference(workspace, "mine", 1).number == 1
    assert _write(workspace, cohort, MARKS[:, ::-1]) == 3


def test_a_version_of_a_replaced_cohort_is_not_read(
    workspace: WorkspacePaths, cohort: Cohort, make_cohort: Maker
) -> None:
    """Its entry is older than the import: it was made for the cohort before."""
    _write(workspace, cohort)
    path = reference_path(workspace, "mine", 1)
    raw = path.read_bytes()
    make_cohort([("a1", "One."), ("a2", "Two.")], replace=True)
    path.parent.mkdir()
    path.write_bytes(raw)
    with pytest.raises(DataError, match="not in the ledger"):
        read_reference(workspace, "mine")


def test_a_version_that_a_kill_left_unrecorded_is_recorded_by_the_next_try(
    workspace: WorkspacePaths, cohort: Cohort
) -> None:
    """The file came, the entry did not: writing the same again adds the entry."""
    before = workspace.ledger.read_bytes()
    _write(workspace, cohort)
    workspace.ledger.write_bytes(before)
    with pytest.raises(DataError, match="not in the ledger"):
        read_reference(workspace, "mine")
    assert _write(workspace, cohort) == 1
    assert read_reference(workspace, "mine").number == 1


def test_no_version_without_its_ledger_entry(
    workspace: WorkspacePaths, cohort: Cohort
) -> None:
    """A broken ledger stops the correction, and leaves nothing behind."""
    _write(workspace, cohort)
    with workspace.ledger.open("ab") as stream:
        stream.write(b"broken\n")
    with pytest.raises(LedgerError):
        correct_reference(
            workspace,
            cohort,
            {("a1", "edema"): Mark.ABSENT},
            actor=ACTOR,
            reason="read again",
        )
    assert list_references(workspace, "mine") == (1,)


@pytest.mark.parametrize(
    ("pair", "error", "message"),
    [
        (("zz", "edema"), DataError, "no case 'zz'"),
        (("a1", "oedema"), UnknownLabelError, "no label 'oedema'"),
    ],
)
def test_a_correction_of_an_unknown_pair_is_refused(
    workspace: WorkspacePaths,
    cohort: Cohort,
    pair: tuple[str, str],
    error: type[Exception],
    message: str,
) -> None:
    """Nothing is written when one of several corrections is wrong."""
    _write(workspace, cohort)
    wanted = {("a1", "edema"): Mark.ABSENT, pair: Mark.ABSENT}
    with pytest.raises(error, match=message):
        correct_reference(workspace, cohort, wanted, actor=ACTOR, reason="again")
    assert list_references(workspace, "mine") == (1,)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("present", "maybe", "line 2: a cell holds none of"),
        ("a1,present", "a1", "line 2: 3 cells, the header has 4"),
        ("a1,", "a9,", "does not list the cases"),
        ("case_id,", "id,", "first column must be case_id"),
        ("edema", "fracture", "no column may stand"),
        ("a1", '"a1', "not a UTF-8 CSV file"),
    ],
)
def test_a_damaged_file_is_refused(
    workspace: WorkspacePaths, cohort: Cohort, old: str, new: str, message: str
) -> None:
    """The file and line are named; nothing is guessed."""
    _write(workspace, cohort)
    path = reference_path(workspace, "mine", 1)
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(DataError, match=message):
        read_reference(workspace, "mine")


def test_a_missing_version_names_the_existing_ones(
    workspace: WorkspacePaths, cohort: Cohort
) -> None:
    """Before any reference, the message says how to make one."""
    with pytest.raises(DataError, match="ranloop cohort votes mine"):
        read_reference(workspace, "mine")
    _write(workspace, cohort)
    with pytest.raises(DataError, match=r"no reference v7 \(found: v1\)"):
        read_reference(workspace, "mine", 7)


def test_the_codes_are_distinct() -> None:
    """Six marks, six codes: none can be mistaken for another."""
    assert len(set(CODES.values())) == len(Mark) == 6


def test_marks_of_a_label_are_counted_each_apart(
    workspace: WorkspacePaths, make_cohort: Maker
) -> None:
    """A mark that no case carries has a zero; together they are all cases."""
    cohort = make_cohort([(f"a{n}", f"Report {n}.") for n in range(9)])
    column = [1, 1, 1, 0, 0, -1, -2, -3, 2]
    marks = np.array([column, [1] * 9, [-3] * 9], dtype=np.int8).T
    assert _write(workspace, cohort, marks) == 1
    reference = read_reference(workspace, "mine")
    assert reference.ref == "mine:ref1"
    assert reference.counts("edema") == {
        Mark.PRESENT: 3,
        Mark.ABSENT: 2,
        Mark.NOT_CODED: 1,
        Mark.UNCERTAIN: 1,
        Mark.NO_MAJORITY: 1,
        Mark.MISSING: 1,
    }
    one = {mark: 0 for mark in Mark}
    assert reference.counts("fracture") == one | {Mark.PRESENT: 9}
    assert reference.counts("pneumonia") == one | {Mark.MISSING: 9}


def test_a_correction_records_what_it_corrects_and_how_many_marks(
    workspace: WorkspacePaths, cohort: Cohort
) -> None:
    """Marks that were so already are none of them."""
    _write(workspace, cohort)
    wanted = {
        ("a1", "edema"): Mark.PRESENT,
        ("a1", "fracture"): Mark.UNCERTAIN,
        ("a2", "fracture"): Mark.PRESENT,
    }
    correct_reference(workspace, cohort, wanted, actor=ACTOR, reason="read again")
    entry = read_ledger(workspace.ledger)[-1]
    assert (entry.action, entry.subject) == ("reference_revised", "mine:ref2")
    assert (entry.actor, entry.reason) == (ACTOR.name, "read again")
    assert entry.payload == {
        "cohort": "mine",
        "cohort_digest": cohort.digest,
        "number": 2,
        "digest": digest_bytes(reference_path(workspace, "mine", 2).read_bytes()),
        "corrects": 1,
        "corrected": 2,
    }
    found = read_reference(workspace, "mine").marks
    assert found.tolist() == [[1, -1, -1], [-2, 1, 2]]


def test_marks_of_another_shape_make_no_version(
    workspace: WorkspacePaths, cohort: Cohort
) -> None:
    """A row too many would be another case's."""
    for marks in (MARKS[:1], MARKS[:, :2], np.vstack([MARKS, MARKS])):
        with pytest.raises(ValueError, match=r"marks have shape .*, not \(cases, lab"):
            _write(workspace, cohort, marks)
    assert list_references(workspace, "mine") == ()


def test_a_version_that_cannot_be_recorded_is_taken_back(
    workspace: WorkspacePaths, cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless it lay there before: what a killed try left is not lost by the next."""
    _write(workspace, cohort)

    def refuse(*_: object, **__: object) -> None:
        raise WriteError("the ledger cannot be written")

    monkeypatch.setattr("loop.labels.reference.append_event", refuse)
    path = reference_path(workspace, "mine", 2)
    with pytest.raises(WriteError):
        _write(workspace, cohort, MARKS[::-1])
    assert not path.exists()
    raw = format_reference(cohort.case_ids, LABELS, MARKS[::-1])
    path.write_bytes(raw)
    with pytest.raises(WriteError):
        _write(workspace, cohort, MARKS[::-1])
    assert path.read_bytes() == raw
    assert read_reference(workspace, "mine", 1).number == 1


def _derived(taxonomy: Taxonomy, labels: Sequence[str], *rows: dict) -> Reference:
    """Return a reference of votes: absent but for `rows`, with a derived No Finding."""
    marks = [[CODES[row.get(label, Mark.ABSENT)] for label in labels] for row in rows]
    return Reference(
        cohort="mine",
        number=1,
        digest="",
        case_ids=tuple(f"a{n}" for n in range(len(rows))),
        labels=tuple(labels),
        marks=np.array(marks, dtype=np.int8),
        no_finding_derived=True,
    )


def test_a_derived_no_finding_needs_every_label_it_follows_from(
    taxonomy: Taxonomy,
) -> None:
    """Present with one of them unmarked is unknown; whatever names a finding stands."""
    present = {"no_finding": Mark.PRESENT}
    rows = (
        present,
        present | {"fracture": Mark.MISSING},
        present | {"fracture": Mark.NO_MAJORITY},
        {"fracture": Mark.MISSING},
        {"no_finding": Mark.UNCERTAIN, "fracture": Mark.MISSING},
    )
    given = _derived(taxonomy, taxonomy.ids, *rows)
    before = given.marks.copy()
    found = as_scored(given, taxonomy)
    assert [found.mark(case, "no_finding") for case in found.case_ids] == [
        Mark.PRESENT,
        Mark.MISSING,
        Mark.PRESENT,
        Mark.ABSENT,
        Mark.UNCERTAIN,
    ]
    assert (given.marks == before).all()
    others = [at for at, name in enumerate(taxonomy.ids) if name != "no_finding"]
    assert (found.marks[:, others] == before[:, others]).all()
    fewer = [name for name in taxonomy.ids if name != "fracture"]
    assert as_scored(_derived(taxonomy, fewer, *rows), taxonomy).counts(
        "no_finding"
    ) == {mark: 0 for mark in Mark} | {
        Mark.MISSING: 3,
        Mark.ABSENT: 1,
        Mark.UNCERTAIN: 1,
    }
    read = replace(given, no_finding_derived=False)
    assert as_scored(read, taxonomy) is read
    whole = _derived(taxonomy, taxonomy.ids, present)
    assert as_scored(whole, taxonomy) is whole
    alone = _derived(taxonomy, ["edema"], {})
    assert as_scored(alone, taxonomy) is alone
