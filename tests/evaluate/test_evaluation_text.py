"""Markdown, CSV and JSON say the same as the evaluation."""

import csv
import io
import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.documents.tables import neutralise
from loop.evaluate.compare import compare_inputs
from loop.evaluate.documents import render_csv, render_markdown
from loop.evaluate.evaluation import evaluate_inputs
from loop.evaluate.evaluation_json import comparison_data, evaluation_data
from tests.evaluate.scenes import inputs, random_run


@pytest.fixture(scope="module")
def evaluation():
    """Return one evaluation."""
    return evaluate_inputs(inputs(*random_run(80)), resamples=50)


def test_csv_has_one_row_per_label_with_full_numbers(evaluation):
    """The CSV can be read back to the same counts and rates."""
    rows = list(csv.DictReader(io.StringIO(render_csv(evaluation))))
    assert [row["label"] for row in rows] == [r.label for r in evaluation.labels]
    for row, result in zip(rows, evaluation.labels, strict=True):
        assert int(row["tp"]) == result.confusion.tp
        assert float(row["accuracy"]) == pytest.approx(
            result.confusion.accuracy, rel=1e-5
        )


@given(st.sampled_from("=+-@\t\r\n"), st.text(max_size=10), st.sampled_from(["", "  "]))
def test_no_text_cell_starts_a_formula(start, rest, space):
    """Whatever a file or a model wrote, a spreadsheet shows it as text."""
    assert neutralise(space + start + rest).startswith("'")


def test_numbers_stay_numbers():
    """A negative kappa is a number, not a formula to be defused."""
    assert neutralise(-0.25) == "-0.25"
    assert neutralise("plain") == "plain"


def test_hostile_names_are_neutralised_in_the_csv(evaluation):
    """A label name from an edited taxonomy cannot run in a spreadsheet."""
    first = replace(evaluation.labels[0], name="=HYPERLINK(1)")
    changed = replace(evaluation, labels=(first, *evaluation.labels[1:]))
    assert "'=HYPERLINK(1)" in render_csv(changed)


def test_markdown_tables_keep_their_columns():
    """Every row of a table has as many cells as its header, pipes or not."""
    before, standard = random_run(60, noise=2.0)
    after, _ = random_run(60)
    left = inputs(before, standard)
    right = inputs(after, standard, source="a | b <script>", name="x|y")
    text = render_markdown(
        evaluate_inputs(right, resamples=50),
        compare_inputs(left, right, resamples=50),
    )
    tables = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
    assert len(tables) == 4
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1
    assert "<script>" not in text
    assert "\n\n\n" not in text


def test_json_is_plain_json(evaluation):
    """What ``--json`` prints can be read anywhere: no NaN, no tuples lost."""
    data = evaluation_data(evaluation)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert len(data["labels"]) == 21


def test_comparison_json_can_leave_out_case_ids():
    """For a sealed cohort the lists become counts."""
    before, standard = random_run(60, noise=2.0)
    after, _ = random_run(60)
    comparison = compare_inputs(
        inputs(before, standard), inputs(after, standard), resamples=50
    )
    text = json.dumps(comparison_data(comparison, with_cases=False))
    assert "case-0" not in text
    assert "case-0" in json.dumps(comparison_data(comparison))
