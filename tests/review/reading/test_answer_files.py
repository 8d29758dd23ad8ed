"""Files of answers and decisions: taken whole, or refused with the line."""

import pandas as pd
import pytest

from loop.core.errors import DataError, UnknownLabelError
from loop.core.records import Mark, Value
from loop.labels.ballots import read_votes
from loop.labels.cohort import read_cohort
from loop.review.reading.answer_files import (
    read_answer_file,
    read_case_list,
    read_decisions,
)
from loop.score.experts.metric_scores import read_scores
from loop.score.experts.ratings import read_ratings


@pytest.fixture
def write(tmp_path):
    """Return a function that writes lines under a header."""

    def run(*lines, header="case_id,label,value"):
        path = tmp_path / "given.csv"
        path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
        return path

    return run


def test_answers_are_read_case_by_case(write, assignment):
    """Published names, ids and codes; an empty value takes an answer back."""
    path = write("c1,Edema,present", "c1,fracture,0", "c2,edema,-1", "c2,Fracture,")
    assert read_answer_file(path, assignment, "Dr. A") == {
        "c1": {"edema": Value.PRESENT, "fracture": Value.ABSENT},
        "c2": {"edema": Value.UNCERTAIN, "fracture": None},
    }


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        ("zz,edema,present", DataError, "line 3: cohort 'read' has no case 'zz'"),
        ("c2,edma,present", UnknownLabelError, "line 3: .*mean 'Edema'"),
        ("c2,no_finding,present", DataError, "line 3: no_finding is not asked"),
        ("c1,Edema,absent", DataError, "line 3: edema of case 'c1'.*line 2"),
        ("c2,edema,perhaps", DataError, "line 3: column 'value'"),
        ("c2,edema,not_coded", DataError, "line 3: "),
        ("c2,edema", DataError, "line 3: 2 cells, the header has 3"),
        (",edema,present", DataError, "line 3: .*no case ''"),
    ],
)
def test_a_wrong_answer_is_refused_with_its_line(
    write, assignment, line, error, message
):
    """One wrong line stops the file."""
    path = write("c1,edema,present", line)
    with pytest.raises(error, match=message):
        read_answer_file(path, assignment, "Dr. A")


def test_a_file_of_another_reader_is_refused(write, assignment):
    """A column reader is believed; it must be the reader who is meant."""
    header = "reader,case_id,label,value"
    good = write("Dr. A,c1,edema,present", header=header)
    assert read_answer_file(good, assignment, "Dr. A")
    mixed = ("Dr. A,c1,edema,present", "Dr. B,c2,edema,present")
    with pytest.raises(
        DataError,
        match=r"line 3: an answer of reader .5 char",
    ):
        read_answer_file(write(*mixed, header=header), assignment, "Dr. A")
    with pytest.raises(DataError, match="line 2: an answer of reader ''"):
        read_answer_file(write(",c1,edema,present", header=header), assignment, "Dr. A")


@pytest.mark.parametrize(
    ("digits", "taken"), [(0, True), (7, False), (8, True), (12, True), (64, True)]
)
def test_a_guideline_is_named_by_eight_digits_or_more(write, assignment, digits, taken):
    """Small or capital; other digits are those of another guideline."""
    digest = assignment.taxonomy.digest
    header = "case_id,label,value,guideline"
    for named in {digest[:digits], digest[:digits].upper()}:
        path = write(f"c1,edema,present,{named}", header=header)
        if taken:
            found = read_answer_file(path, assignment, "Dr. A")
            assert found == {"c1": {"edema": Value.PRESENT}}
        else:
            with pytest.raises(DataError, match="line 2: answered beside guideline"):
                read_answer_file(path, assignment, "Dr. A")
    other = "0" * 8 if digest[0] != "0" else "1" * 8
    path = write(f"c1,edema,present,{other}", header=header)
    with pytest.raises(DataError, match=f"is now {assignment.guideline}"):
        read_answer_file(path, assignment, "Dr. A")


@pytest.mark.parametrize("read", ["answers", "decisions"])
def test_a_file_without_lines_or_columns_is_refused(write, assignment, tmp_path, read):
    """The columns wanted are named."""

    def take(path):
        if read == "decisions":
            return read_decisions(path, assignment)
        return read_answer_file(path, assignment, "Dr. A")

    with pytest.raises(DataError, match=r"holds no (answer|decision)"):
        take(write())
    with pytest.raises(DataError, match=r"no column value.*case_id,label,value"):
        take(write("c1,edema", header="case_id,label"))
    with pytest.raises(DataError, match="does not exist"):
        take(tmp_path / "none.csv")


def test_decisions_may_leave_a_pair_out(write, assignment):
    """No majority is a decision, and "No Finding" may be decided if it was voted on."""
    path = write("c1,Edema,present", "c2,edema,no_majority", "c3,no_finding,absent")
    assert read_decisions(path, assignment) == {
        ("c1", "edema"): Mark.PRESENT,
        ("c2", "edema"): Mark.NO_MAJORITY,
        ("c3", "no_finding"): Mark.ABSENT,
    }


@pytest.mark.parametrize("value", ["", "not_coded", "missing", "maybe"])
def test_what_is_no_decision_is_refused(write, assignment, value):
    """An empty cell decides nothing."""
    with pytest.raises(DataError, match="line 2: "):
        read_decisions(write(f"c1,edema,{value}"), assignment)


@pytest.mark.parametrize("suffix", [".tsv", ".jsonl", ".parquet", ".txt"])
def test_every_table_is_read_alike(suffix, assignment, workspace, tmp_path):
    """Answers, votes, ratings and scores, in every format that cohorts come in."""
    cohort = read_cohort(workspace, "read")
    readers = {
        "case_id,label,value": lambda path: read_answer_file(path, assignment, "A"),
        "reader,case_id,label,value": lambda path: read_votes(
            path, cohort, assignment.taxonomy
        ),
        "id,system,rater,score": read_ratings,
        "id,system,f1": lambda path: read_scores([path]),
    }
    rows = [
        [("c1", "edema", 1), ("c2", "fracture", 0)],
        [("A", "c1", "edema", "present"), ("B", "c2", "edema", 0)],
        [("c1", "x", "A", 4), ("c2", "x", "A", 2.5)],
        [("c1", "x", 0.25), ("c2", "x", 1)],
    ]
    for (columns, read), given in zip(readers.items(), rows, strict=True):
        table = pd.DataFrame(given, columns=columns.split(","), dtype=object)
        plain, other = tmp_path / "plain.csv", tmp_path / f"other{suffix}"
        table.to_csv(plain, index=False)
        if suffix == ".parquet":
            table.astype(str).to_parquet(other)
        elif suffix == ".jsonl":
            table.to_json(other, orient="records", lines=True)
        else:
            table.to_csv(other, index=False, sep="\t")
        assert repr(read(other)) == repr(read(plain)), columns


def test_a_list_of_cases_is_one_id_a_line(tmp_path):
    """As a spreadsheet or an editor leaves it: a mark at the start, empty lines."""
    path = tmp_path / "cases.txt"
    path.write_bytes("\ufeffc2\n\nc1\r\n".encode())
    assert read_case_list(path) == ("c2", "c1")


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "UTF-8"), (b"c\xe4se\n", "UTF-8"), (b"\n \n", "holds no case id")],
)
def test_a_list_of_cases_that_cannot_be_read_is_refused(tmp_path, content, message):
    """No such file, other bytes than text, nothing in it: each names the file."""
    path = tmp_path / "cases.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=f"cases.txt .*{message}"):
        read_case_list(path)


def test_a_value_that_is_none_is_told_what_may_stand_there(write, assignment):
    """Other values in a file of answers than in one of decisions."""
    path = write("c1,edema,present", "c2,edema,not_coded")
    with pytest.raises(DataError) as caught:
        read_answer_file(path, assignment, "Dr. A")
    assert str(caught.value).endswith(
        "line 3: the value must be present, absent, uncertain or empty. Correct that "
        "cell."
    )
    with pytest.raises(DataError) as caught:
        read_decisions(path, assignment)
    assert str(caught.value).endswith(
        "line 3: the value must be present, absent, uncertain, no_majority. Correct "
        "that cell."
    )


def test_a_pair_decided_twice_is_told_both_lines(write, assignment):
    """However its label is spelled; another case's is another pair."""
    path = write("c1,edema,present", "c2,edema,absent", "c1,Edema,absent")
    with pytest.raises(DataError, match=r"line 4: edema of case 'c1' .* line 2\. Keep"):
        read_decisions(path, assignment)
    path = write("c1,edma,present")
    with pytest.raises(UnknownLabelError, match=r"line 2: .*Did you mean"):
        read_decisions(path, assignment)
    path = write("c9,edema,present")
    with pytest.raises(DataError, match=r"line 2: .*no case 'c9'"):
        read_decisions(path, assignment)


def test_names_of_readers_and_guidelines_are_taken_without_blanks(write, assignment):
    """In whatever order the columns stand; other columns say nothing."""
    header = "guideline,note,value,label,case_id,reader"
    digits = assignment.taxonomy.digest[:9]
    path = write(
        f"{digits},x,present,edema,c1, Dr. A ", ",,,fracture,c1,Dr. A", header=header
    )
    assert read_answer_file(path, assignment, " Dr. A") == {
        "c1": {"edema": Value.PRESENT, "fracture": None}
    }
