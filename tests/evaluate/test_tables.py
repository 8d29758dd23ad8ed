"""Tables that people take out hold no text and run nothing in a spreadsheet."""

import csv
import io

import numpy as np
import pytest

from loop.core.records import Mark, Span, Value
from loop.evaluate.failures import Failure, FailureKind, Failures, failures_table
from loop.evaluate.score_history import VersionScore, history_table
from loop.evaluate.tried import WordingStatus
from loop.labels.ballots import Votes
from loop.labels.reader_agreement import agreement_table, measure_agreement
from loop.labels.taxonomy import read_taxonomy

SCORE = VersionScore(
    number=2,
    ref="tiny@v2",
    digest="ab",
    parent=None,
    when="2026-01-05T09:00:00Z",
    who="@Dr A",
    why='=HYPERLINK("http://evil.example")',
    verdicts=3,
    status=WordingStatus.COMMITTED,
)


def rows(text):
    """Return a CSV file as dictionaries."""
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_a_formula_in_a_reason_is_text():
    """A reason is typed by people, and the table is opened by others."""
    (row,) = rows(history_table([SCORE]))
    assert row["why"] == '\'=HYPERLINK("http://evil.example")'
    assert row["who"] == "'@Dr A"


def test_a_score_that_is_missing_is_an_empty_cell():
    """Nothing that was not measured looks like a zero."""
    (row,) = rows(history_table([SCORE]))
    assert (row["macro_f1"], row["labels_passed"]) == ("", "")


def test_failures_name_places_and_no_text():
    """The same columns with and without rows."""
    failure = Failure(
        case_id="+1",
        label="edema",
        kind=FailureKind.FALSE_POSITIVE,
        predicted=Value.PRESENT,
        reference=Mark.ABSENT,
        spans=(Span(3, 9), Span(12, 20)),
    )
    text = failures_table(Failures("run-1", "dev", (failure,)))
    (row,) = rows(text)
    assert (row["case_id"], row["spans"], row["on_run"]) == (
        "'+1",
        "3-9 12-20",
        "run-1",
    )
    none = failures_table(Failures("run-1", "dev", ()))
    assert none.splitlines() == text.splitlines()[:1]
    beside = {("+1", "edema"): {"why": "rare", "text": "=Oedema, mild."}}
    (row,) = rows(failures_table(Failures("run-1", "dev", (failure,)), beside))
    assert (row["why"], row["text"]) == ("rare", "'=Oedema, mild.")


@pytest.mark.slow
def test_agreement_has_a_row_for_each_label_and_one_for_all(labels_folder):
    """A hostile name of a reader is defused in the header too."""
    values = np.array([[[1, 1]], [[0, 0]], [[1, 1]]], dtype=np.int8)
    votes = Votes(
        readers=("=A1", "r2"),
        case_ids=("a", "b", "c"),
        labels=("edema",),
        values=values,
    )
    report = measure_agreement(
        votes, read_taxonomy(labels_folder), cohort="dev", resamples=100
    )
    edema, everything = rows(agreement_table(report))
    assert (edema["label"], everything["label"]) == ("edema", "all")
    assert float(edema["kappa =A1 / r2"]) == 1.0
    assert float(edema["same"]) == 1.0
