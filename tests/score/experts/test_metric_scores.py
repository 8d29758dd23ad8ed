"""Scores from per-case files: joined by id and system, several files as one."""

import numpy as np
import pytest

from loop.core.errors import DataError
from loop.score.experts.metric_scores import (
    ScoredMetric,
    ScoreTable,
    describe_scores,
    drop_descriptions,
    known_metric,
    read_metric_scores,
    read_scores,
    tabulate,
)
from loop.score.metrics.base import Unavailable
from loop.score.metrics.registry import METRICS
from loop.score.metrics.score_sheet import MetricResult, ScoreSheet
from loop.stats.intervals import Estimate

DESCRIBES = "describes and does not grade; taken as higher is better"
TURNED = "describes and does not grade; lower by --lower"


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


def result(metric, system, values, signature="s"):
    """Return what a metric says of a system."""
    return MetricResult(
        metric,
        system,
        Estimate(None, None, None),
        len(values),
        0,
        np.array(values),
        signature,
        (),
    )


def test_a_sheet_becomes_a_table_sorted_by_case(tmp_path):
    """What did not run for a system is undefined there; signatures stand once."""
    rouge, bleu = METRICS["rouge_l"], METRICS["bleu_1"]
    sheet = ScoreSheet(
        systems=("y", "x"),
        case_ids={"y": ("b", "a"), "x": ("a",)},
        results=(
            result(rouge, "y", [0.5, 0.25], "r|n:2"),
            result(rouge, "x", [0.75], "r|n:1"),
            result(bleu, "y", [1.0, np.nan]),
            result(bleu, "y", [1.0, np.nan]),
        ),
        unavailable=(Unavailable("bertscore", "no model"),),
    )
    found = tabulate(sheet)
    assert found.keys == (("a", "x"), ("a", "y"), ("b", "y"))
    assert found.metrics == (
        ScoredMetric("rouge_l", rouge.title, signature="r|n:2 and r|n:1"),
        ScoredMetric("bleu_1", bleu.title, signature="s"),
    )
    nan = np.nan
    expected = [[0.75, nan], [0.25, nan], [0.5, 1.0]]
    np.testing.assert_array_equal(found.values, expected)
    assert found.unavailable == (("bertscore", "no model"),)


def test_a_sheet_of_no_metric_is_a_table_without_columns():
    """Its candidates are there all the same."""
    sheet = ScoreSheet(systems=("x",), case_ids={"x": ("a", "b")}, results=())
    found = tabulate(sheet)
    assert found.keys == (("a", "x"), ("b", "x"))
    assert found.values.shape == (2, 0)


@pytest.mark.parametrize(
    ("name", "lower", "expected"),
    [
        ("rouge_l", (), (False, "")),
        ("ran_errors", (), (True, "")),
        ("ran_errors", ("ran_errors",), (True, "")),
        ("rouge_l", ("rouge_l",), (False, "")),
        ("length_difference", (), (True, "")),
        ("flesch", (), (False, DESCRIBES)),
        ("flesch", ("rouge_l",), (False, DESCRIBES)),
        ("flesch", ("flesch",), (True, TURNED)),
    ],
)
def test_only_what_has_no_direction_is_given_one(name, lower, expected):
    """What ranloop knows to grade keeps its direction, whatever is said."""
    found = known_metric(METRICS[name], lower, "sig")
    assert (found.name, found.title) == (name, METRICS[name].title)
    assert (found.lower, found.note, found.signature) == (*expected, "sig")


def test_files_of_own_and_of_other_metrics_are_read_with_what_is_known(tmp_path):
    """By the registry, by --lower, by the name, and else as higher is better."""
    path = write(
        tmp_path / "1.csv",
        "id,ran_errors,mine,count_errors,other,flesch",
        "a,1,2,3,4,5",
    )
    found = read_metric_scores([path], lower=["mine", "flesch"])
    assert [(one.name, one.lower, one.note) for one in found.metrics] == [
        ("ran_errors", True, ""),
        ("mine", True, "lower by --lower"),
        ("count_errors", True, "counts errors by its name: taken as lower is better"),
        ("other", False, "not in the registry: taken as higher is better"),
        ("flesch", True, TURNED),
    ]
    assert found.metrics[0].title == METRICS["ran_errors"].title
    assert found.directed.tolist() == [[-1, -2, -3, 4, -5]]
    assert found.values.tolist() == [[1, 2, 3, 4, 5]]
    some = read_metric_scores([path], ["other", "mine"])
    assert [one.name for one in some.metrics] == ["mine", "other"]


@pytest.mark.parametrize(
    ("lower", "said"),
    [
        ("bleu_1", "--lower bleu_1: there is no such metric"),
        ("nobody", "--lower nobody: there is no such metric"),
        ("rouge_l", "--lower rouge_l: ranloop knows that higher is better there"),
        ("ran_errors", "--lower ran_errors: ranloop knows that lower is better there"),
    ],
)
def test_a_direction_against_what_is_known_is_refused(tmp_path, lower, said):
    """Nor has what is not in the file any; in files and in scores made here."""
    path = write(tmp_path / "1.csv", "id,rouge_l,ran_errors", "a,1,2")
    with pytest.raises(DataError, match=said):
        read_metric_scores([path], lower=[lower])
    table = read_metric_scores([path])
    with pytest.raises(DataError, match=said):
        describe_scores(table, [lower])


def test_own_scores_are_described_by_the_registry():
    """Their signatures stay, and so do their values."""
    table = ScoreTable(
        keys=(("a", "x"),),
        metrics=(
            ScoredMetric("n_words", "-", signature="l|v1"),
            ScoredMetric("ran_errors", "-", signature="e|v1"),
        ),
        values=np.array([[1.0, 2.0]]),
        unavailable=(("bertscore", "no model"),),
    )
    found = describe_scores(table, ["n_words"])
    assert found.metrics == (
        known_metric(METRICS["n_words"], ["n_words"], "l|v1"),
        known_metric(METRICS["ran_errors"], (), "e|v1"),
    )
    assert found.directed.tolist() == [[-1, -2]]
    assert found.unavailable == table.unavailable


def described(*names):
    """Return a table with a column of each of these metrics."""
    return ScoreTable(
        keys=(("a", "x"), ("b", "x")),
        metrics=tuple(known_metric(METRICS[name], ()) for name in names),
        values=np.arange(2.0 * len(names)).reshape(2, -1),
        unavailable=(("bertscore", "no model"),),
    )


def test_what_describes_is_left_out_unless_it_is_named():
    """With a sentence that names it; where nothing else is there, all stay."""
    table = described("n_words", "rouge_l", "flesch", "bleu_1")
    kept, told = drop_descriptions(table)
    assert [one.name for one in kept.metrics] == ["rouge_l", "bleu_1"]
    assert kept.values.tolist() == [[1, 3], [5, 7]]
    assert (kept.keys, kept.unavailable) == (table.keys, table.unavailable)
    assert told == (
        "Left out, because they describe and do not grade: n_words, flesch. "
        "Name one with --metric to see it."
    )
    some, told = drop_descriptions(table, ["flesch"])
    assert [one.name for one in some.metrics] == ["rouge_l", "flesch", "bleu_1"]
    assert "grade: n_words. Name" in told
    every = drop_descriptions(table, ["flesch", "n_words"])
    assert every == (table, "")
    only = described("flesch")
    assert drop_descriptions(only) == (only, "")
    grades = described("rouge_l")
    assert drop_descriptions(grades) == (grades, "")


def test_a_candidate_of_several_files_has_each_metric_once(tmp_path):
    """The same value twice is refused too: one of the files is not what it seems."""
    one = write(tmp_path / "1.csv", "id,system,f1", "a,x,0.5")
    two = write(tmp_path / "2.csv", "ID,System,f1", "a,y,0.5")
    assert read_scores([one, two]).keys == (("a", "x"), ("a", "y"))
    with pytest.raises(DataError, match=r"1\.csv, line 2 and 1\.csv, line 2: two val"):
        read_scores([one, one])


def test_a_column_that_nobody_has_is_named_with_those_there_are(tmp_path):
    """Of every file."""
    one = write(tmp_path / "1.csv", "id,f1,g", "a,0.5,1")
    two = write(tmp_path / "2.csv", "id,h", "a,0.5")
    with pytest.raises(DataError) as told:
        read_scores([one, two], wanted=["f1", "p", "h", "q"])
    assert str(told.value) == (
        "1.csv, 2.csv: no column 'p', 'q'. There is 'f1', 'h'. Correct --metric."
    )
    with pytest.raises(DataError, match="There is no other"):
        read_scores([one], wanted=["p"])
