"""Markdown, JSON and the table of errors say the same as the records."""

import csv
import io
import json
import re
from dataclasses import replace

import pytest

from loop import __version__
from loop.score.documents.data import FORMAT, metric_data, score_data
from loop.score.documents.files import render_errors_csv, render_score_markdown
from loop.score.metrics.registry import METRICS
from tests.score.documents.score_scenes import LABELS, NAMES, document_of, ran_score

HOSTILE = ("=HYPERLINK(1)", "@x|<script>`")


@pytest.fixture(scope="module")
def document():
    """Return two systems with hostile names."""
    return document_of(*HOSTILE)


def test_markdown_tables_keep_their_columns(document):
    """A name with a bar in it is still one cell."""
    text = render_score_markdown(document)
    assert "<script" not in text
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(tables) >= 10
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1


def test_markdown_names_the_conventions_and_the_signature(document):
    """A number that is copied out of the text takes its conventions along."""
    text = render_score_markdown(document)
    assert "zero division skip" in text
    assert text.count("zd:skip") == 2
    assert "A perfect copy of the references scores 1.000" in text
    assert not re.search(r"\b(nan|None|inf)\b", text)


def test_json_is_json_and_holds_every_number(document):
    """No NaN, which is no JSON: an undefined number is null."""
    data = json.loads(json.dumps(score_data(document), allow_nan=False))
    first = data["systems"][0]
    assert first["ran_score"]["value"] == 0.8
    assert first["perfect_copy"] == 1.0
    assert len(first["labels"]) == 21
    label = first["labels"][0]
    assert (label["tp"], label["fp"], label["fn"], label["tn"]) == (27, 2, 3, 266)
    assert label["false_negative_rate"] == pytest.approx(0.1)
    assert first["labels"][-1]["f1"] is None
    assert first["labels"][-1]["false_negative_rate"] is None
    assert data["metrics_not_run"][0]["metric"] == "bertscore"
    assert data["coverage"][0]["missing"] == ["c1", "c2"]


def test_errors_are_one_row_each_and_no_formula(document):
    """Ids and labels only; a spreadsheet does not run a system's name."""
    rows = list(csv.DictReader(io.StringIO(render_errors_csv(document))))
    assert len(rows) == 2 * 8 * 2
    assert rows[0] == {
        "id": "c000",
        "system": "'=HYPERLINK(1)",
        "label": LABELS[0],
        "error": "missed",
    }


def test_worst_cases_are_those_with_the_most_errors():
    """More errors first, then the lower F1, then the id: the order is no accident."""
    score = ran_score(("a",))
    one = score.cases[0]
    cases = (
        one._replace(case_id="z", errors=1),
        one._replace(case_id="y", errors=3, f1=0.2),
        one._replace(case_id="x", errors=3, f1=0.1),
        one._replace(case_id="w", errors=0, f1=1.0, missed=(), invented=()),
    )
    data = score_data(document_of("a", score=replace(score, cases=cases)))
    worst = [case["case_id"] for case in data["systems"][0]["worst_cases"]]
    assert worst == ["x", "y", "z"]


def test_pairs_stand_in_the_order_of_the_ranking():
    """The order in which tests were made means nothing to a reader."""
    score = ran_score(("a", "b", "c"))
    turned = replace(score, differences=score.differences[::-1])
    data = score_data(document_of("a", "b", "c", score=turned))
    pairs = [one["better"] + one["worse"] for one in data["differences"]]
    assert pairs == ["ab", "ac", "bc"]


def test_the_registry_is_data_too():
    """`--list --json` names direction, range and needs of every metric."""
    entries = [metric_data(one) for one in METRICS.values()]
    assert json.loads(json.dumps(entries, allow_nan=False)) == entries
    assert {one["direction"] for one in entries} == {"higher", "lower", "neither"}


def test_json_says_what_it_is_and_who_wrote_it(document):
    """A file found years later is read without the page beside it."""
    data = score_data(document)
    assert (data["format"], data["ranloop"]) == (FORMAT, __version__)
    assert data["label_names"] == {label: NAMES[label] for label in LABELS}
    cells = data["systems"][0]["cells"]
    assert (cells["decided"], cells["uncertain"]) == (298 * 21, 2 * 21)
    assert cells["share"] == pytest.approx(298 / 300)
    told = document.sources._replace(
        repeated_references=("c5",), notes=("Ids differ in case.",)
    )
    data = score_data(replace(document, sources=told))
    assert data["repeated_references"] == ["c5"]
    assert "Ids differ in case." in data["remarks"]


def test_markdown_has_no_table_without_rows():
    """No confusion and no error are told as such, not as an empty table."""
    score = replace(ran_score(("a",)), cases=())
    text = render_score_markdown(document_of("a", score=score, confused=()))
    assert "Nothing is missed in a case where something else is invented." in text
    assert "No case has an error." in text
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert all(len(table.splitlines()) > 2 for table in tables)
