"""Markdown, CSV and JSON of a matrix say the same as its records."""

import csv
import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from loop.core.records import ValueCode
from loop.evaluate.matrix.documents import (
    matrix_data,
    render_matrix_csv,
    render_matrix_html,
    render_matrix_markdown,
)
from loop.evaluate.matrix.records import EngineRank
from tests.evaluate.matrix_scenes import matrix_of, run_of

HOSTILE = ("=HYPERLINK(1)", "@x|<script>`")


@pytest.fixture(scope="module")
def matrix():
    """Return two engines with hostile names and one that failed."""
    return matrix_of(
        run_of([290, 240], engine=HOSTILE[0]),
        run_of([280] * 21, engine=HOSTILE[1]),
        failed={"vllm:big": "=cmd()\n| no server"},
    )


def test_csv_has_a_row_per_label_and_engine(matrix):
    """It can be read back to the same counts; a failed engine keeps empty rows."""
    rows = list(csv.DictReader(io.StringIO(render_matrix_csv(matrix), newline="")))
    assert len(rows) == 21 * 3
    first, second, failed = rows[:3]
    assert (first["correct"], first["n"]) == ("290", "300")
    assert (first["standing"], second["standing"]) == ("best", "worse")
    assert (second["lost_against_best"], second["gained_against_best"]) == ("10", "0")
    assert float(first["accuracy_low"]) == pytest.approx(0.9395, abs=1e-4)
    assert (failed["n"], failed["accuracy"], failed["run"]) == ("", "", "")
    assert "no server" in failed["failure"]


def test_no_cell_of_the_csv_starts_a_formula(matrix):
    """Engine names and reasons are shown as text by a spreadsheet."""
    for row in csv.reader(io.StringIO(render_matrix_csv(matrix), newline="")):
        assert not any(cell.startswith(("=", "+", "-", "@")) for cell in row)


def test_markdown_tables_keep_their_columns(matrix):
    """Every row has as many cells as its header, whatever engines are called."""
    text = render_matrix_markdown(matrix)
    tables = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
    assert len(tables) == 2
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1
    assert "<script>" not in text
    assert "\n\n\n" not in text


def test_markdown_marks_the_best_and_says_what_a_mark_is(matrix):
    """The star stands at the higher number of the row."""
    text = render_matrix_markdown(matrix)
    row = next(line for line in text.splitlines() if line.startswith("| Atelectasis"))
    assert row.endswith("| 0.967 [0.940, 0.984] \\* | 0.933 [0.899, 0.959] | – |"), row
    assert "not a claim of significance" in text


def test_json_is_one_plain_object(matrix):
    """No NaN and no tuples: what is read back is what was written."""
    data = matrix_data(matrix)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert [engine["key"] for engine in data["engines"]] == ["A", "B", "C"]
    assert [label["label"] for label in data["labels"]] == [
        row.label for row in matrix.rows
    ]


def test_json_tells_counts_standings_and_failures(matrix):
    """What the table shows can be computed with."""
    data = matrix_data(matrix)
    first, _, failed = data["engines"]
    assert failed["failure"] == "=cmd() | no server"
    assert failed["run"] is None and first["failure"] is None
    column = matrix.columns[0]
    assert first["standings"]["best"] == matrix.count(column, EngineRank.BEST) == 20
    assert sum(first["gates"].values()) == 21
    cells = data["labels"][0]["cells"]
    assert cells[2] is None
    assert (cells[0]["key"], cells[0]["correct"], cells[0]["n"]) == ("A", 290, 300)
    assert cells[1]["against_best"]["lost"] == 10
    assert data["finding_nothing"]["at_threshold"] == 0


def test_an_engine_that_answers_nothing_has_dashes_not_zeros():
    """No answer is no accuracy, in any document."""
    run = run_of([300], engine="mute")
    predicted = np.full_like(run.pairs.predicted, ValueCode.FAILED)
    mute = replace(run, pairs=replace(run.pairs, predicted=predicted))
    matrix = matrix_of(run_of([300], engine="a"), mute)
    row = next(
        line
        for line in render_matrix_markdown(matrix).splitlines()
        if line.startswith("| Edema")
    )
    assert row.endswith("| 1.000 [0.988, 1.000] ? | – |")
    cell = matrix_data(matrix)["labels"][0]["cells"][1]
    assert (cell["n"], cell["accuracy"], cell["accuracy_interval"]) == (0, None, None)
    rows = list(csv.DictReader(io.StringIO(render_matrix_csv(matrix), newline="")))
    assert (rows[1]["n"], rows[1]["accuracy"], rows[1]["failed"]) == ("0", "", "300")
    assert (
        "0.000"
        not in render_matrix_html(matrix).split('id="labels"')[1].split("<table")[1]
    )
