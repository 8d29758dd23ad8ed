"""What is tried out tells the truth and changes nothing."""

import os
import re

import pytest

from loop.core.errors import DataError
from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.records import Mark
from loop.labels.ballots import votes_path
from loop.labels.cohort import list_cohorts, read_cohort
from loop.labels.dry_run import (
    VotesFile,
    dry_run_import,
    dry_run_votes,
    take_votes_file,
    trial,
)
from loop.labels.importing.source import ImportOptions
from loop.labels.reference import read_reference
from tests.labels.conftest import ACTOR

HEADER = ["case_id", "text", "patient"]
ROWS = [HEADER, ["a", "Small effusion.", "p1"], ["b", "Clear lungs.", "p2"]]
VOTES = [
    ["reader", "case_id", "label", "value"],
    ["r1", "a", "Pleural Effusion", "present"],
    ["r2", "a", "Pleural Effusion", "present"],
]


def every_file(workspace):
    """Return path and content of every file, but for the folder of trials."""
    return {
        path: path.read_bytes()
        for path in workspace.root.rglob("*")
        if path.is_file() and "trials" not in path.parts and "locks" not in path.parts
    }


def rehearse(workspace, path, name="new", **options):
    """Try an import out."""
    wanted = ImportOptions(name=name, **({"role": "external"} | options))
    return dry_run_import(workspace, path, wanted, actor=ACTOR)


def test_a_rehearsed_import_says_what_the_import_says(workspace, take, write_csv):
    """The summary that people confirm is the one that comes true."""
    rows = [*ROWS, ["c", "", "p3"], ["d", "clear lungs", "p4"]]
    path = write_csv(rows)
    rehearsed = rehearse(workspace, path, "mine", role="dev").report
    assert (rehearsed.cases, rehearsed.empty, rehearsed.duplicates) == (3, 1, 1)
    assert rehearsed == take(path)


def test_nothing_changes_and_nothing_is_left(workspace, take, write_csv):
    """Neither cohorts, texts, keys nor the ledger; and no copy of a text."""
    take(write_csv(ROWS))
    before = every_file(workspace)
    rehearse(workspace, write_csv(ROWS, "other.csv"))
    rehearse(workspace, write_csv(ROWS, "other.csv"), "mine", replace=True)
    (workspace.root.parent / "other.csv").unlink()
    assert every_file(workspace) == before
    assert not [path for path in (workspace.private / "trials").iterdir()]


def test_a_shared_case_patient_and_text_are_named(workspace, take, write_csv):
    """What `cohort check` would refuse later is seen before the import."""
    take(write_csv(ROWS))
    path = write_csv([HEADER, ["a", "Small  EFFUSION", "p2"]], "other.csv")
    found = rehearse(workspace, path)
    ((pair,), separate) = found.overlap, found.separate
    assert (pair.first, pair.second, separate) == ("new", "mine", False)
    assert {one.kind.value for one in pair.shared} == {"case", "patient", "text"}


def test_cohorts_of_one_role_are_not_compared(workspace, take, write_csv):
    """Two development cohorts may share cases."""
    take(write_csv(ROWS))
    assert rehearse(workspace, write_csv(ROWS, "o.csv"), role="dev").overlap == ()


def test_a_damaged_cohort_is_named_and_hides_no_other(workspace, take, write_csv):
    """A cohort that was edited does not stop the import of another."""
    take(write_csv(ROWS), "broken")
    take(write_csv(ROWS), "mine")
    (workspace.cohorts / "broken" / "cases.csv").write_text("case_id\n")
    found = rehearse(workspace, write_csv(ROWS, "other.csv"))
    assert found.unread == ("broken",)
    assert [pair.second for pair in found.overlap] == ["mine"]


def test_a_wrong_file_is_refused_as_the_import_would(workspace, write_csv):
    """With its line, and without a trace."""
    path = write_csv([HEADER, ["a", "x"]])
    with pytest.raises(DataError, match=r"line 2: 2 cells, the header has 3"):
        rehearse(workspace, path)
    assert list_cohorts(workspace) == ()
    assert not [path for path in (workspace.private / "trials").iterdir()]


def test_a_name_that_is_taken_is_refused_unless_it_shall_be_replaced(
    workspace, take, write_csv
):
    """The refusal comes with the check, not after the confirmation."""
    path = write_csv(ROWS)
    take(path)
    where = re.escape(f"already exists in {workspace.cohorts}.")
    with pytest.raises(DataError, match=where):
        rehearse(workspace, path, "mine", role="dev")
    assert rehearse(workspace, path, "mine", role="dev", replace=True).report.cases == 2


def test_rehearsed_votes_are_the_votes_taken(workspace, take, write_csv):
    """Readers, marks and the number of the reference come true."""
    take(write_csv(ROWS))
    file = VotesFile("mine", write_csv(VOTES, "votes.csv"), need=2)
    before = every_file(workspace)
    rehearsed = dry_run_votes(workspace, file, actor=ACTOR)
    assert every_file(workspace) == before
    assert (rehearsed.reference, rehearsed.readers) == (1, ("r1", "r2"))
    assert rehearsed == take_votes_file(workspace, file, actor=ACTOR)


def test_votes_for_an_unknown_case_are_refused_with_their_line(
    workspace, take, write_csv
):
    """A votes file of another cohort is found out before anything counts."""
    take(write_csv(ROWS))
    rows = [*VOTES, ["r1", "zz", "Pleural Effusion", "absent"]]
    file = VotesFile("mine", write_csv(rows, "votes.csv"))
    with pytest.raises(DataError, match=r"votes.csv, line 4: cohort 'mine' has no"):
        dry_run_votes(workspace, file, actor=ACTOR)


def test_a_killed_trial_is_removed_by_the_next(workspace):
    """A copy of clinical text does not stay because a process died."""
    left = workspace.open_private() / "trials" / "0123456789abcdef"
    (left / ".ranloop" / "cases").mkdir(parents=True)
    (left / ".ranloop" / "cases" / "x.jsonl").write_text("text")
    with trial(workspace):
        assert not left.exists()


def test_two_trials_at_once_do_not_remove_each_other(workspace, take, write_csv):
    """Two people may check files at the same time."""
    take(write_csv(ROWS))
    with trial(workspace) as first, trial(workspace) as second:
        assert first != second
        assert read_cohort(first, "mine") == read_cohort(second, "mine")


def test_a_trial_is_closed_to_others(workspace, take, write_csv):
    """It names cohorts, and links to their texts."""
    take(write_csv(ROWS))
    cases = workspace.private / "cases"
    (cases / ".mine.importing-abc").write_text("x")
    (cases / "deep").mkdir()
    (workspace.keys / "other").write_text("x")
    (workspace.labels / ".hidden").write_text("x")
    with trial(workspace) as copy:
        assert isinstance(copy, WorkspacePaths)
        for folder in (copy.root, copy.private, copy.keys, copy.private / "cases"):
            assert os.stat(folder).st_mode & 0o777 == 0o700
        assert os.stat(copy.root.parent).st_mode & 0o777 == 0o700
        (text,) = (copy.private / "cases").iterdir()
        assert (text.name, text.resolve()) == ("mine.jsonl", cases / "mine.jsonl")
        assert [path.name for path in copy.keys.iterdir()] == ["pseudonym"]
        assert not (copy.labels / ".hidden").exists()
        assert copy.ledger.read_bytes() == workspace.ledger.read_bytes()
        assert list(copy.prompts.iterdir()) == [copy.ledger]


def test_votes_are_taken_as_a_file_says(workspace, take, write_csv):
    """How many must agree, why, and in which words; the next file may be of few."""
    take(write_csv(ROWS))
    effusion = "Pleural Effusion"
    rows = [VOTES[0], ["r1", "a", effusion, "ja"], ["r2", "b", effusion, "ja"]]
    file = VotesFile(
        "mine",
        write_csv(rows, "votes.csv"),
        need=2,
        reason="read again",
        values={"ja": "present"},
    )
    take_votes_file(workspace, file, actor=ACTOR)
    entry = read_ledger(workspace.ledger)[-1]
    assert (entry.reason, entry.payload["need"]) == ("read again", 2)
    reference = read_reference(workspace, "mine")
    assert reference.mark("a", "pleural_effusion") is Mark.NO_MAJORITY
    one = write_csv(VOTES[:2], "more.csv")
    more = VotesFile("mine", one, need=1, replace=True)
    take_votes_file(workspace, more, actor=ACTOR)
    assert read_reference(workspace, "mine").mark("a", "pleural_effusion") is (
        Mark.PRESENT
    )


def test_votes_that_were_edited_are_left_behind_only_by_replacing_them(
    workspace, take, write_csv
):
    """Nobody knows any more what they were."""
    take(write_csv(ROWS))
    file = VotesFile("mine", write_csv(VOTES, "votes.csv"))
    take_votes_file(workspace, file, actor=ACTOR)
    path = votes_path(workspace, "mine")
    path.write_text(path.read_text().replace("present", "absent", 1))
    with pytest.raises(DataError, match="edited"):
        take_votes_file(workspace, file, actor=ACTOR)
    again = file._replace(replace=True)
    assert dry_run_votes(workspace, again, actor=ACTOR).discarded
    assert take_votes_file(workspace, again, actor=ACTOR).discarded
    assert read_reference(workspace, "mine").mark("a", "pleural_effusion") is (
        Mark.PRESENT
    )
