"""Scores from per-case files: joined by id and system, several files as one."""

import numpy as np
import pytest

from loop.core.errors import DataError
from loop.score.experts.metric_scores import ScoredMetric, ScoreTable, read_scores


def write(path, *rows):
    """Write a file of scores."""
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_files_of_other_systems_and_other_metrics_become_one_table(tmp_path):
    """What a file does not say is undefined, never 0."""
    one = write(tmp_path / "1.csv", "id,system,rouge", "b,x,0.5", "a,x,0.25")
    two = write(tmp_path / "2.csv", "id,system,rouge", "a,y,")
    three = write(tmp_path / "3.csv", "errors,system,id", "3,x,a")
    found = read_scores([one, two, three])
    assert found.keys == (("a", "x"), ("a", "y"), ("b", "x"))
    assert [metric.name for metric in found.metrics] == ["rouge", "errors"]
    nan = np.nan
    expected = [[0.25, 3], [nan, nan], [0.5, nan]]
    np.testing.assert_array_equal(found.values, expected)


def test_less_is_better_is_negated_and_only_for_comparing(tmp_path):
    """The values themselves stay as the metric prints them."""
    path = write(tmp_path / "1.csv", "id,errors,f1", "a,3,0.5")
    known = {"errors": ScoredMetric("errors", "Errors", lower=True)}
    found = read_scores([path], known)
    assert found.values.tolist() == [[3, 0.5]]
    assert found.directed.tolist() == [[-3, 0.5]]
    assert "higher is better" in found.metrics[1].note


def test_only_wanted_columns_are_read(tmp_path):
    """A column of words beside the numbers need not be removed."""
    path = write(tmp_path / "1.csv", "id,system,f1,comment", "a,x,0.5,fine")
    found = read_scores([path], wanted=["f1"])
    assert found.values.tolist() == [[0.5]]
    with pytest.raises(DataError, match=r"no column .rouge.\. There is .f1"):
        read_scores([path], wanted=["f1", "rouge"])


def test_ids_made_safe_for_spreadsheets_are_the_same_ids(tmp_path):
    """`ranloop score` writes an apostrophe before a formula sign."""
    path = write(tmp_path / "1.csv", "id,system,f1", "'-7,'=x,0.5")
    assert read_scores([path]).keys == (("-7", "=x"),)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["id,f1", "a,high"], "line 2, column f1: not a number"),
        (["id,f1", "a,NaN"], "line 2, column f1: not a number"),
        (["id,f1", " ,1"], "line 2: column id is empty"),
        (["id,ID,f1", "a,b,1"], "1.csv: two columns are named id"),
        (["id,f1", "a,1", "a,1"], "line 2 and 1.csv, line 3: two values of f1"),
        (["id,f1,f1", "a,1,1"], "columns 2 and 3 have the same name"),
        (["case,f1", "a,1"], "no column id"),
        (["id,system", "a,x"], "no metric beside id and system"),
    ],
)
def test_a_wrong_file_is_refused_by_its_line(tmp_path, rows, said):
    """The message names the file, the line and the column."""
    with pytest.raises(DataError, match=said):
        read_scores([write(tmp_path / "1.csv", *rows)])


def test_a_table_of_another_shape_is_no_scores():
    """Rows are candidates, columns are metrics."""
    with pytest.raises(ValueError, match="1 candidates x 0 metrics"):
        ScoreTable(keys=(("a", "x"),), metrics=(), values=np.ones((1, 1)))


def test_a_clinical_text_is_never_quoted(tmp_path):
    """A file of scores may have a column of texts beside them."""
    text = "Unmistakable wording"
    path = write(tmp_path / "1.csv", "id,system,f1,text", f"a,x,0.5,{text}")
    with pytest.raises(DataError, match="line 2, column text: not a number") as told:
        read_scores([path])
    assert "Unmistakable" not in str(told.value)
