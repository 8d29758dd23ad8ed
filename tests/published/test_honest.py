"""Tables printed honestly raise no alarm, however they were rounded."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import classification_report

from loop.core.check_findings import FindingSeverity
from loop.published import positives
from loop.published.claims import read_notes
from loop.published.deltas import check_significance
from loop.published.means import Bounds, exact_bounds, f1_agrees
from loop.published.printed import Number, TextTable
from loop.published.proportions import METHODS
from loop.published.result_table import make_table
from loop.published.table_audit import audit_tables
from tests.published.honest import (
    WHEN,
    Manner,
    before_after,
    systems,
    with_intervals,
)

MANNERS = st.builds(
    Manner,
    places=st.integers(2, 4),
    half_up=st.booleans(),
    percent=st.booleans(),
    method=st.sampled_from(list(METHODS)),
    from_rounded=st.booleans(),
)
SEEDS = st.integers(0, 2**32 - 1)


def audited(rows, caption="", n=None):
    """Return the audit of rows of text."""
    header, *body = (tuple(row) for row in rows)
    grid = TextTable("T", caption, header, tuple(body), 0)
    return audit_tables([make_table(grid, n=n)])


def alarms(audit):
    """Return what does not hold."""
    return [one for one in audit.findings if one.severity is FindingSeverity.BROKEN]


@pytest.mark.slow
@settings(max_examples=150)
@given(SEEDS, MANNERS, st.integers(20, 900), st.integers(3, 21), st.booleans())
def test_a_table_before_and_after_raises_no_alarm(seed, manner, n, labels, stated):
    """Shares, averages, differences and reference positives, n stated or not."""
    rows = before_after(seed, manner, n=n, labels=labels)
    assert alarms(audited(rows, n=n if stated else None)) == []


@pytest.mark.slow
@settings(max_examples=30)
@given(SEEDS, MANNERS, st.integers(20, 2000), st.integers(3, 21), st.booleans())
def test_a_table_of_intervals_raises_no_alarm(seed, manner, n, labels, stated):
    """All five methods, at the stated number of cases or at none."""
    rows = with_intervals(seed, manner, n=n, labels=labels)
    audit = audited(rows, "Accuracy (95% CI)", n=n if stated else None)
    assert alarms(audit) == []
    if stated:
        (found,) = audit.about("interval method")
        assert found.severity is FindingSeverity.OK
        assert found.numbers["matched"][manner.method] == labels * 3


@settings(max_examples=60)
@given(SEEDS, MANNERS, st.integers(100, 5000), st.integers(2, 9), st.booleans())
def test_a_table_of_systems_raises_no_alarm(seed, manner, n, models, stated):
    """One reference set, so one share of positives, whatever each system does."""
    rows = systems(seed, manner, n=n, models=models)
    assert alarms(audited(rows, n=n if stated else None)) == []


@given(SEEDS, st.integers(30, 400), st.integers(2, 6), st.booleans())
@settings(max_examples=30)
def test_a_classification_summary_raises_no_alarm(seed, n, classes, stated):
    """The table everybody prints: rows of accuracy, macro and weighted averages."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, n)
    guess = np.where(rng.random(n) < 0.7, truth, rng.integers(0, classes, n))
    text = classification_report(truth, guess, digits=3, zero_division=0)
    rows = [["Class", "precision", "recall", "f1-score", "support"]]
    for line in text.splitlines()[2:]:
        if line.strip():
            name, *cells = re.split(r"\s{2,}", line.strip())
            rows.append([name, *[""] * (4 - len(cells)), *cells])
    assert alarms(audited(rows, n=n if stated else None)) == []


def test_one_changed_digit_in_an_honest_table_is_found():
    """The other side: a table is not passed because nothing is ever refused."""
    rows = before_after(7, Manner(), n=300, labels=12)
    cell = rows[4][9]
    rows[4][9] = f"{float(cell) - 0.004:.3f}"
    checks = {one.check for one in alarms(audited(rows, n=300))}
    assert {"F1 from P and R", "difference"} <= checks


def test_intervals_of_another_level_are_recognised():
    """The caption says 90 %, and the limits are those of 90 %."""
    rows = [["Label", "Accuracy (90% CI)"]]
    rows += [[f"L{k}", f"{k / 200:.3f} ({low}-{high})"] for k, low, high in NINETY]
    (found,) = audited(rows, n=200).about("interval method")
    assert found.severity is FindingSeverity.OK
    assert found.numbers["method"] == "Clopper-Pearson"


NINETY = ((190, "0.917", "0.973"), (180, "0.858", "0.933"), (100, "0.440", "0.560"))


def test_one_interval_among_many_that_was_mistyped_is_named():
    """Ten of eleven are exact limits, so the odd one is wrong and not the method."""
    rows = with_intervals(3, Manner(), n=300, labels=11, models=1)
    value = rows[5][1].partition(" ")[0]
    rows[5][1] = f"{value} [{float(value) - 0.001:.3f}, {float(value) + 0.001:.3f}]"
    (found,) = audited(rows, "Accuracy", n=300).about("interval method")
    assert found.severity is FindingSeverity.BROKEN
    assert found.numbers["odd"] == ["Label 4, Model A"]


def test_intervals_that_no_method_gives_are_left_undecided():
    """A bootstrap interval is no mistake."""
    rows = [["Label", "Accuracy (95% CI)"]]
    rows += [[f"L{k}", f"{k / 300:.3f} ({k / 301:.3f}-{k / 299:.3f})"] for k in NINE]
    (found,) = audited(rows, n=300).about("interval method")
    assert found.severity is FindingSeverity.NOTE
    assert "bootstrap" in found.what


NINE = (150, 200, 210, 220, 230, 240, 250, 260, 270)


def test_an_average_beside_its_values_is_checked_row_by_row():
    """0.85 and 0.95 average to 0.90; the second row does not."""
    rows = [
        ["Label", "A accuracy", "B accuracy", "Average"],
        ["x", "0.850", "0.950", "0.900"], ["y", "0.850", "0.950", "0.950"],
        ["z", "0.500", "0.600", "0.550"],
    ]  # fmt: skip
    (found,) = audited(rows).about("row mean")
    assert found.numbers["wrong"] == ["y: 0.9000"]


def test_intervals_of_which_only_some_state_their_cases_are_searched_for():
    """A row without its number of cases must not count as one of none."""
    rows = with_intervals(3, Manner(), n=300, labels=11, models=1)
    rows = [[*row, "300"] for row in rows]
    rows[0][2] = "N"
    rows[4][2] = ""
    (found,) = audited(rows, "Accuracy").about("interval method")
    assert found.severity is FindingSeverity.OK
    assert found.numbers["n"] == [300]
    assert found.what.startswith("Not every row states its number of cases; 11 of 11")


def test_an_interval_beside_its_value_is_seen():
    """Limits that do not hold their value between them."""
    rows = [["Label", "F1", "F1 lower", "F1 upper"], ["x", "0.80", "0.82", "0.90"]]
    (found,) = audited(rows).about("interval order")
    assert found.numbers["outside"] == ["x, F1"]


@pytest.mark.parametrize(
    ("rows", "holds"),
    [
        (["first", "second"], True),
        (["first", "second", "third"], True),
        (["second", "first"], False),
        (["third", "second", "first"], False),
        (["first", "third"], False),
    ],
)
def test_an_order_holds_only_in_the_order_claimed(tmp_path, rows, holds):
    """Best first, and nobody left out between."""
    table = [["Model", "F1"], ["second", "0.60"], ["first", "0.70"], ["third", "0.50"]]
    claim = {"kind": "order", "table": "T", "column": "F1", "rows": rows}
    path = tmp_path / "T.notes.yaml"
    path.write_text(json.dumps({"claims": [claim]}))
    header, *body = map(tuple, table)
    grid = TextTable("T", "", header, tuple(body), 0)
    audit = audit_tables([make_table(grid)], read_notes(path))
    (found,) = audit.about("claim")
    assert (found.severity is FindingSeverity.OK) is holds
    assert found.numbers["ranking"] == ["first", "second", "third"]


@pytest.mark.parametrize(
    ("printed", "copied"),
    [("0.70", "F1 pre"), ("0.90", "F1 post"), ("0.50", ""), ("0.20", "")],
)
def test_a_difference_that_repeats_a_column_is_told_with_that_column(printed, copied):
    """It says how the slip came about; another wrong number is only wrong."""
    header = ["Label", "F1 pre", "F1 post", "Delta F1"]
    rows = [header, ["A", "0.70", "0.90", printed], ["B", "0.50", "0.60", "0.10"]]
    (found,) = [one for one in audited(rows).findings if one.check == "difference"]
    assert found.numbers["copied"] == ({"A": copied} if copied else {})
    assert found.numbers["off"] == ([] if printed == "0.20" else ["A"])


@pytest.mark.parametrize(
    ("printed", "wrong"), [("9 (30.0%)", []), ("10 (33.3%)", ["x: 9, printed 10"])]
)
def test_a_total_that_is_no_sum_is_told_with_the_sum(printed, wrong):
    """The parts are printed beside it."""
    header = ["Label", "A (n = 10)", "B (n = 20)", "Total (n = 30)"]
    rows = [header, ["x", "4 (40.0%)", "5 (25.0%)", printed]]
    rows.append(["y", "1 (10.0%)", "1 (5.0%)", "2 (6.7%)"])
    (found,) = [one for one in audited(rows).findings if one.check == "total"]
    assert found.numbers["wrong"] == wrong
    assert (found.severity is FindingSeverity.BROKEN) == bool(wrong)


def test_percentages_without_a_sign_are_shares_with_their_limits():
    """Value and both limits are scaled by the same hundred."""
    table = make_table(
        TextTable("T", "", ("label", "accuracy"), (
            ("a", "94.0 (90.7-96.4)"), ("b", "50.0 (44.2-55.8)"),
        ), 0), n=300,
    )  # fmt: skip
    for row, limits in zip(
        table.results, ((0.907, 0.964), (0.442, 0.558)), strict=True
    ):
        found = row.cells[table.columns[0].index].limits
        assert [one.value for one in found] == pytest.approx(limits)


def test_a_table_is_turned_only_where_its_first_column_names_the_measures():
    """The corner may hold a measure's name, too: it names the column below it."""
    upright = make_table(
        TextTable("T", "", ("accuracy", "model a", "model b"), (
            ("precision", "0.90", "0.80"), ("recall", "0.70", "0.60"),
        ), 0),
    )  # fmt: skip
    assert [column.measure for column in upright.columns] == ["precision", "recall"]
    assert [row.name for row in upright.results] == ["model a", "model b"]


def test_a_column_of_positives_is_used_for_every_group():
    """Precision and recall of two times share the positives that are printed once."""
    rows = [
        ("label", "n", "positives", "precision before", "recall before",
         "precision after", "recall after"),
        ("a", "100", "20", "0.800", "0.400", "0.900", "0.900"),
    ]  # fmt: skip
    (before, after) = [
        one for one in audited(rows).findings if one.check == "confusion tables"
    ]
    assert [one.numbers["solutions"]["a"]["positives"] for one in (before, after)] == [
        [20, 20],
        [20, 20],
    ]


def test_a_row_that_no_table_fits_has_no_solution():
    """No count of cases, and no number of positives."""
    rows = [
        ("label", "n", "precision", "recall", "f1"),
        ("a", "10", "0.500", "0.500", "0.900"),
    ]
    (found,) = [
        one for one in audited(rows).findings if one.check == "confusion tables"
    ]
    assert found.severity is FindingSeverity.BROKEN
    assert found.numbers["solutions"]["a"] == {"count": 0, "positives": None}


def test_a_share_of_known_cases_lies_on_a_whole_count():
    """0.33 of 300 cases is 98 to 100 of them: 0.3267 to 0.3333."""
    table = make_table(
        TextTable("T", "", ("label", "accuracy"), (("a", "0.33"), ("b", "0.5")), 0),
        n=300,
    )
    (row, _), (column,) = table.results, table.columns
    low, high = exact_bounds(table, row, column)
    assert (low, high) == (pytest.approx(98 / 300), pytest.approx(100 / 300))


def test_sizes_with_too_many_tables_are_not_searched(monkeypatch):
    """Whether they share positives at another size is then left open."""
    many = SimpleNamespace(tp=np.zeros(positives._MOST_CANDIDATES + 1))
    few = SimpleNamespace(tp=np.zeros(1))
    rows = [SimpleNamespace(n=100, rates={}) for _ in range(2)]
    for found in ([few, many], [None, few]):
        given = iter(found)
        monkeypatch.setattr(positives, "candidates", lambda *_, it=given: next(it))
        assert positives._shared_at_any_size(rows)


@pytest.mark.parametrize(
    ("printed", "off"), [("0.20", []), ("0.30", ["A"]), ("0.40", ["A"])]
)
def test_a_difference_to_a_system_is_that_to_its_column(printed, off):
    """The header names where the difference starts; it ends at what came after."""
    header = ["Label", "F1 pre", "F1 post", "Older F1", "Delta to Older"]
    rows = [header, ["A", "0.50", "0.90", "0.70", printed]]
    rows.append(["B", "0.50", "0.60", "0.30", "0.30"])
    (found,) = [one for one in audited(rows).findings if one.check == "difference"]
    assert found.numbers["off"] == off


def test_only_after_against_before_is_asked_for_its_significance():
    """A loss, or a column against itself, is nobody's improvement."""
    header = ["Label", "Accuracy pre", "Accuracy post"]
    rows = [header, ["A", "0.50", "0.90"], ["B", "0.90", "0.89"]]
    (found,) = audited(rows, n=100).about("attainable significance")
    assert found.numbers["net_gain"] == {"A": 40, "B": -1}
    assert found.numbers["cannot"] == ["B"]


def test_a_row_of_two_sizes_does_not_end_the_search_for_significance():
    """The same cases are needed; the rows after it may well have them."""
    header = ["Label", "n pre", "Accuracy pre", "n post", "Accuracy post"]
    rows = [header, ["A", "100", "0.50", "90", "0.90"]]
    rows.append(["B", "100", "0.50", "100", "0.90"])
    (found,) = audited(rows).about("attainable significance")
    assert found.numbers["net_gain"] == {"B": 40}


def test_an_average_is_told_from_a_label_by_its_name():
    """With a label and a model in each row, an average is over an unknown part."""
    rows = (("a", "0.90"), ("b", "0.80"), ("average", "0.85"))
    table = make_table(TextTable("T", "", ("label", "accuracy"), rows, 0))
    assert [row.kind for row in table.rows] == ["", "", "mean"]
    rows = (("a", "x", "0.90"), ("b", "x", "0.80"), ("average", "", "0.85"))
    table = make_table(TextTable("T", "", ("label", "model", "accuracy"), rows, 0))
    assert [row.kind for row in table.rows] == ["", "", "pooled"]


@pytest.mark.parametrize(
    "header", [("label", "accuracy", "F1"), ("label", "accuracy", "model b")]
)
def test_a_table_whose_header_names_a_measure_stays_as_it_is(header):
    """Its rows may be called like measures, too: there they are names."""
    body = (("precision", "0.90", "0.80"), ("recall", "0.70", "0.60"))
    table = make_table(TextTable("T", "", header, body, 0))
    assert table.columns[0].measure == "accuracy"
    assert [row.name for row in table.rows] == ["precision", "recall"]


def with_older_f1(f1, *, other):
    """Return the audit of two rows of 20 cases, of which 10 are positive.

    `other` says whether the first of them has 3 positives after.
    """
    names = ("Accuracy", "Precision", "Recall")
    header = ["Label", *(f"{name} {when}" for when in WHEN for name in names)]
    pre, post = ["0.650", "0.800", "0.400"], ["0.900", "1.000", "0.333"]
    rows = [[*header, "Older F1"], ["A", *pre, *(post if other else pre), f1]]
    rows.append(["B", *["0.900"] * 6, "0.900"])
    return audited(rows, n=20)


@pytest.mark.parametrize(("other", "shared"), [(False, 2), (True, 1)])
def test_rows_whose_results_share_their_positives_are_counted(other, shared):
    """The rows that cannot are named, and are not among those that can."""
    (found,) = with_older_f1("0.500", other=other).about("reference positives")
    assert found.what.startswith(f"{shared} of 2 rows can have one number")
    assert found.numbers["differ"] == ["A"] * other


@pytest.mark.parametrize(("f1", "impossible"), [("0.095", []), ("0.080", ["A 0.080"])])
def test_a_lone_f1_is_held_against_the_positives_of_its_row(f1, impossible):
    """With 10 of 20 positive, one hit and 10 false alarms are the least: 2 / 21."""
    (found,) = with_older_f1(f1, other=False).about("attainable F1")
    assert found.numbers == {"cells": 2, "impossible": impossible}
    assert (found.severity is FindingSeverity.BROKEN) == bool(impossible)


@pytest.mark.parametrize(("n", "told"), [(181_743, True), (181_820, False)])
def test_a_cell_that_prints_for_too_many_counts_tells_no_method(n, told):
    """2,000 counts of 181,743 print as 0.50, 2,001 of 181,820: that is one too many."""
    rows = [["Label", "Accuracy (95% CI)"]]
    rows += [[f"L{k}", "0.50 (0.50-0.50)"] for k in range(9)]
    (found,) = audited(rows, n=n).about("interval method")
    assert found.numbers["matched"] == dict.fromkeys(METHODS, 9 * told)
    assert (found.severity is FindingSeverity.OK) == told


@pytest.mark.parametrize("average", ["", "micro", "macro", "weighted"])
def test_only_rates_of_all_cells_together_imply_a_share_of_positives(average):
    """A mean of precisions over labels is no precision; the identity does not hold."""
    names = [f"{average} {name}".strip() for name in ("accuracy", "precision")]
    rows = [["Model", *names, f"{average} recall".strip()]]
    rows += [["A", "0.90", "0.80", "0.70"], ["B", "0.60", "0.80", "0.70"]]
    found = audited(rows).about("share of positives")
    holds = average not in ("macro", "weighted")
    assert [one.severity for one in found] == [FindingSeverity.BROKEN] * holds


@pytest.mark.parametrize("average", ["", "micro", "macro", "weighted"])
def test_only_an_f1_of_all_cells_together_follows_from_its_rates(average):
    """A mean of F1 values over labels is not the F1 of the mean rates."""
    names = [f"{average} {name}".strip() for name in ("precision", "recall", "f1")]
    rows = [["Label", *names], ["A", "0.80", "0.60", "0.50"]]
    found = audited(rows).about("F1 from P and R")
    holds = average not in ("macro", "weighted")
    assert [one.severity for one in found] == [FindingSeverity.BROKEN] * holds


@pytest.mark.parametrize(
    "gap", [["0.850", "0.950", ""], ["0.850", "", "0.900"], ["", "", ""]]
)
def test_a_row_without_its_average_does_not_end_the_check_of_rows(gap):
    """Nor does one with a single value: the rows after it are held to theirs."""
    rows = [
        ["Label", "A accuracy", "B accuracy", "Average"],
        ["x", "0.850", "0.950", "0.900"], ["gap", *gap],
        ["y", "0.850", "0.950", "0.950"],
    ]  # fmt: skip
    (found,) = audited(rows).about("row mean")
    assert found.numbers == {"rows": 2, "wrong": ["y: 0.9000"]}


def test_a_measure_that_is_no_rate_does_not_end_the_check_of_averages():
    """An average of other columns comes before one of accuracies, and is left out."""
    rows = [
        ["Label", "Average F1", "A accuracy", "B accuracy", "Average accuracy"],
        ["x", "0.100", "0.850", "0.950", "0.950"],
        ["y", "0.100", "0.500", "0.600", "0.550"],
    ]  # fmt: skip
    (found,) = audited(rows).about("row mean")
    assert found.part == "Average accuracy"
    assert found.numbers == {"rows": 2, "wrong": ["x: 0.9000"]}


SIX_SIZES = ("0.97 [0.92, 0.99]", "1.00 [0.97, 1.00]", "0.82 [0.73, 0.89]",
             "0.93 [0.86, 0.97]")  # fmt: skip


@pytest.mark.parametrize(
    ("more", "sizes", "sure"),
    [
        ([], [93, 94, 95, 103, 106, 110], False),
        (["0.57 [0.47, 0.67]"], [93, 94, 95, 103, 110], True),
    ],
)
def test_an_unstated_number_of_cases_is_concluded_from_at_most_five(more, sizes, sure):
    """Where six numbers of cases give every interval, none of them is told as it."""
    rows = [["Label", "Accuracy (95% CI)"]]
    rows += [[f"L{k}", cell] for k, cell in enumerate((*SIX_SIZES, *more))]
    (found,) = audited(rows).about("interval method")
    assert sorted({one["n"] for one in found.numbers["fitting"]}) == sizes
    assert (found.severity is FindingSeverity.OK) == sure
    assert ("n" in found.numbers) == sure


@pytest.mark.parametrize("different", [3, 4])
def test_an_unstated_number_of_cases_is_concluded_from_four_different_cells(different):
    """A cell that is printed again says nothing new."""
    rows = with_intervals(3, Manner(), n=300, labels=4, models=1)
    rows = [*rows[: different + 1], *(["again", rows[1][1]] for _ in range(3))]
    (found,) = audited(rows, "Accuracy").about("interval method")
    assert (found.severity is FindingSeverity.OK) == (different == 4)


@pytest.mark.parametrize(("n", "count"), [(3, 1), (30, 10), (33, 11)])
def test_all_tables_of_a_row_are_listed_or_none(n, count):
    """Half of both rates is k hits, k false alarms and k misses: n / 3 tables."""
    rows = [("label", "n", "precision", "recall"), ("a", str(n), "0.50", "0.50")]
    (found,) = audited(rows).about("confusion tables")
    listed = [[k, k, k] for k in range(1, count + 1)] if count <= 10 else []
    assert found.numbers["solutions"]["a"] == {
        "count": count, "positives": [2, 2 * count], "tp_fp_fn": listed,
    }  # fmt: skip
    assert found.numbers["unique"] == (count == 1)


@pytest.mark.parametrize(
    ("labels", "mistyped", "sure"),
    [(8, 1, False), (9, 1, True), (10, 2, True), (11, 3, False), (15, 3, True)],
)
def test_odd_intervals_are_wrong_only_among_many_that_fit(labels, mistyped, sure):
    """At least eight, and four of five: else the method may be another one."""
    rows = with_intervals(3, Manner(), n=300, labels=labels, models=1)
    for row in rows[1 : mistyped + 1]:
        value = row[1].partition(" ")[0]
        row[1] = f"{value} [{float(value) - 0.001:.3f}, {float(value) + 0.001:.3f}]"
    (found,) = audited(rows, "Accuracy", n=300).about("interval method")
    severity = FindingSeverity.BROKEN if sure else FindingSeverity.NOTE
    assert found.severity is severity
    named = [f"Label {index}, Model A" for index in range(mistyped)]
    assert found.numbers.get("odd", []) == named * sure


@pytest.mark.parametrize(("units", "sure"), [(1, False), (4, True)])
def test_a_limit_that_is_off_by_a_unit_is_not_called_wrong(units, sure):
    """It may come from another program; one that is off by more does not."""
    rows = with_intervals(3, Manner(), n=300, labels=11, models=1)
    ends = rows[5][1].partition("[")[2].rstrip("]").split(", ")
    low = f"{float(ends[0]) - units / 1000:.3f}"
    rows[5][1] = rows[5][1].replace(ends[0], low)
    (found,) = audited(rows, "Accuracy", n=300).about("interval method")
    assert (found.severity is FindingSeverity.BROKEN) == sure


@pytest.mark.parametrize(("made_at", "sure"), [(330, False), (331, True)])
def test_a_number_of_cases_more_than_a_tenth_off_is_held_against_a_table(made_at, sure):
    """A few cases may be missing in a row; 31 of 300 more are none that are missing."""
    rows = with_intervals(3, Manner(places=4), n=made_at, labels=11, models=1)
    (found,) = audited(rows, "Accuracy", n=300).about("interval method")
    assert made_at in [one["n"] for one in found.numbers["fitting"]]
    assert (found.severity is FindingSeverity.BROKEN) == sure


def swapped_systems(count, spoiled=0):
    """Return results of systems on one reference with two headers exchanged."""
    rows = systems(11, Manner(), n=1000, models=count)
    rows[0] = ["Model", "Accuracy", "Recall", "Precision", "F1"]
    for row in rows[1 : spoiled + 1]:
        row[1] = f"{float(row[1]) - 0.05:.3f}"
    return rows


@pytest.mark.parametrize(
    ("count", "spoiled", "restores"), [(2, 0, False), (3, 0, True), (6, 1, False)]
)
def test_swapped_headers_are_told_from_three_systems_that_all_agree(
    count, spoiled, restores
):
    """Two shares are easily the same by chance; one that differs is no swap."""
    (found,) = audited(swapped_systems(count, spoiled)).about("share of positives")
    assert found.severity is FindingSeverity.BROKEN
    assert found.numbers["swap_restores"] == restores
    assert ("headers are swapped" in found.what) == restores


@pytest.mark.parametrize(("n", "solved"), [(20_000, True), (20_001, False)])
def test_whole_tables_are_looked_for_up_to_20_000_cases(n, solved):
    """With more of them any rate is possible."""
    rows = [("label", "n", "positives", "precision", "recall")]
    rows += [("a", str(n), "4", "1.000", "0.500")]
    found = audited(rows).about("confusion tables")
    assert len(found) == solved


@pytest.mark.parametrize(
    ("average", "severity"),
    [
        ("0.750", FindingSeverity.OK),
        ("0.500", FindingSeverity.NOTE),
        ("0.400", FindingSeverity.BROKEN),
        ("1.125", FindingSeverity.BROKEN),
    ],
)
def test_an_average_that_counts_an_empty_cell_as_0_is_a_note(average, severity):
    """0.90 and 0.60 average to 0.75, and over three rows to 0.50."""
    rows = [("label", "accuracy"), ("a", "0.900"), ("b", "0.600"), ("c", "-")]
    (found,) = audited([*rows, ("average", average)]).about("column mean")
    assert found.severity is severity


@pytest.mark.parametrize("filled", [1, 2])
def test_an_average_is_held_against_two_rows_or_more(filled):
    """What stands beside one value repeats it, or is of other rows."""
    rows = [("label", "accuracy"), ("a", "0.900"), ("b", "0.700"[: 5 * (filled - 1)])]
    found = audited([*rows, ("average", "0.100")]).about("column mean")
    assert len(found) == (filled == 2)


@pytest.mark.parametrize("filled", [2, 3])
def test_an_average_may_be_one_of_three_rows_that_another_column_fills(filled):
    """Two of them fit too many numbers by chance."""
    rows = [("label", "accuracy", "F1")]
    rows += [(f"L{k}", f"0.{9 - k}00", "0.500" * (k < filled)) for k in range(4)]
    mean = f"{0.9 - 0.05 * (filled - 1):.3f}"
    found = audited([*rows, ("average", mean, "0.500")]).about("column mean")
    (part,) = [one.numbers["fits"] for one in found if "accuracy" in one.part]
    assert part == ["the rows with F1"] * (filled == 3)


def claimed(tmp_path, rows, **claim):
    """Return the one finding about a claim of table T."""
    path = tmp_path / "T.notes.yaml"
    path.write_text(json.dumps({"claims": [{"table": "T", **claim}]}))
    header, *body = map(tuple, rows)
    table = make_table(TextTable("T", "", header, tuple(body), 0))
    (found,) = audit_tables([table], read_notes(path)).about("claim")
    return found


@pytest.mark.parametrize(
    ("at_least", "count", "of", "holds"),
    [
        (0.95, 2, 3, True),
        (0.95, 2, None, True),
        (0.95, 1, 3, False),
        (0.95, 3, 3, False),
        (0.95, 2, 4, False),
        (0.951, 1, 3, True),
        (0.951, 2, 3, False),
    ],
)
def test_a_count_holds_with_the_rows_at_the_limit_and_of_all_rows(
    tmp_path, at_least, count, of, holds
):
    """0.950 is at or above 0.95; a blank cell is none of the rows that are counted."""
    rows = [["Label", "F1"], ["a", "0.950"], ["b", "0.990"], ["c", "0.949"], ["d", "-"]]
    limits = {"at_least": at_least, "count": count, "of": of}
    found = claimed(tmp_path, rows, kind="count", column="F1", **limits)
    assert (found.severity is FindingSeverity.OK) == holds
    assert found.numbers["of"] == 3
    assert found.numbers["least"] == 0.949


@pytest.mark.parametrize(
    ("ours", "theirs", "holds", "higher"),
    [
        # Best or tied in every row.
        (("0.90", "0.80"), ("0.90", "0.70"), True, []),
        (("0.90", "0.80"), ("0.90", "0.80"), True, []),
        # What the other leaves out can make its mean higher.
        (("0.90", "0.70"), ("0.90", "-"), True, ["Theirs"]),
        # Not in every row, but on average, and in as many rows above the limit.
        (("0.97", "0.80"), ("0.96", "0.82"), False, ["Theirs"]),
        (("0.97", "0.80"), ("0.95", "0.81"), True, []),
        # The mean is higher, and fewer rows reach the limit.
        (("1.00", "0.90"), ("0.95", "0.94"), True, []),
        (("0.94", "0.94"), ("0.95", "0.70"), False, []),
    ],
)
def test_the_highest_has_neither_a_lower_mean_nor_fewer_rows_above_the_limit(
    tmp_path, ours, theirs, holds, higher
):
    """Unless it is the best or tied in every row."""
    rows = [["Label", "Ours accuracy", "Theirs accuracy"]]
    rows += [[f"L{k}", *pair] for k, pair in enumerate(zip(ours, theirs, strict=True))]
    found = claimed(tmp_path, rows, kind="highest", column="Ours accuracy")
    assert (found.severity is FindingSeverity.OK) == holds
    assert [name.split()[0] for name in found.numbers["higher"]] == higher


def test_only_columns_of_its_measure_are_rivals_of_the_highest(tmp_path):
    """A recall above an accuracy, or a macro average, is no better accuracy."""
    rows = [["Label", "Ours accuracy", "Theirs recall", "Theirs macro accuracy"]]
    rows += [["a", "0.80", "0.90", "0.90"], ["b", "0.70", "0.90", "0.90"]]
    found = claimed(tmp_path, rows, kind="highest", column="Ours accuracy")
    assert found.severity is FindingSeverity.OK
    assert found.numbers["means"] == {"Ours accuracy": 0.75}


@pytest.mark.parametrize(
    ("gain", "severity"),
    [
        ("0.200", FindingSeverity.OK),
        ("20%", FindingSeverity.OK),
        # Three roundings may add up to a unit and a half, and no more.
        ("0.201", FindingSeverity.OK),
        ("0.202", FindingSeverity.BROKEN),
        ("0.198", FindingSeverity.BROKEN),
        ("-0.200", FindingSeverity.BROKEN),
        ("much", FindingSeverity.NOTE),
    ],
)
def test_a_gain_is_from_start_to_end_within_three_roundings(tmp_path, gain, severity):
    """A gain the other way is a loss; without a number nothing is decided."""
    rows = [["Label", "F1 pre", "F1 post"], ["a", "0.500", "0.700"]]
    ends = {"row": "A", "start": "F1 pre", "to": "F1 post", "gain": gain}
    assert claimed(tmp_path, rows, kind="gain", **ends).severity is severity


def test_a_gain_of_a_blank_cell_is_not_decided(tmp_path):
    """It is neither 0 nor wrong."""
    rows = [["Label", "F1 pre", "F1 post"], ["a", "-", "0.700"], ["b", "0.1", "0.2"]]
    ends = {"row": "a", "start": "F1 pre", "to": "F1 post", "gain": "0.700"}
    found = claimed(tmp_path, rows, kind="gain", **ends)
    assert found.severity is FindingSeverity.NOTE


@pytest.mark.parametrize(
    ("n", "printed", "off"),
    [
        (None, "0.101", []),
        (None, "0.099", []),
        (None, "0.102", ["A"]),
        (None, "0.098", ["A"]),
        # Of 100 cases 50 and 60 are certain: only the difference is rounded.
        (100, "0.100", []),
        (100, "0.101", ["A"]),
    ],
)
def test_a_difference_is_off_by_more_than_its_roundings(n, printed, off):
    """Three of them where the cases are unknown, and one where they are known."""
    header = ["Label", "Accuracy pre", "Accuracy post", "Delta accuracy"]
    rows = [header, ["A", "0.500", "0.600", printed], ["B", "0.500", "0.700", "0.200"]]
    (found,) = audited(rows, n=n).about("difference")
    assert found.numbers["rows"] == 2
    assert found.numbers["off"] == off


@pytest.mark.parametrize(
    ("gained", "alpha", "cannot"),
    [
        (5, 0.05, True),
        (6, 0.05, False),
        (5, 0.0625, False),
        (5, 0.0624, True),
        (0, 0.999, True),
        (-6, 0.05, True),
    ],
)
@pytest.mark.parametrize("claims", [False, True])
def test_significance_is_out_of_reach_below_six_net_cases(
    gained, alpha, cannot, claims
):
    """Exact McNemar of d against 0 is 2 / 2**d: 0.0625 of five, 0.03125 of six."""
    header = ("Label", "Accuracy pre", "Accuracy post")
    row = ("A", "0.50", f"{0.5 + gained / 100:.2f}")
    table = make_table(TextTable("T", "", header, (row,), 0), n=100)
    (found,) = check_significance(table, alpha=alpha, claimed=claims)
    assert found.numbers["cannot"] == ["A"] * cannot
    assert found.numbers["net_gain"] == {"A": gained}
    assert found.numbers["best_p"]["A"] == min(1, 2 * 0.5 ** max(gained, 0))
    # What nobody claimed is no mistake.
    broken = found.severity is FindingSeverity.BROKEN
    assert broken == (claims and cannot)


@pytest.mark.parametrize(
    ("values", "equal"),
    [
        (("0.1", "0.2", "0.3", "0.4", "0.4"), True),
        (("0.1", "0.2", "0.3", "0.3", "0.3"), False),
        (("0.1", "0.2", "0.3", "0.4"), False),
    ],
)
def test_equal_columns_are_told_of_five_rows_and_four_different_numbers(values, equal):
    """Fewer are equal by chance."""
    rows = [["Label", "A recall", "B recall"]]
    rows += [[f"L{k}", value, value] for k, value in enumerate(values)]
    assert len(audited(rows).about("equal columns")) == equal
    rows[1][2] = "0.11"
    assert audited(rows).about("equal columns") == []


@pytest.mark.parametrize(("shared", "equal"), [(5, True), (4, False)])
def test_equal_columns_of_two_tables_are_told_of_the_rows_that_both_have(shared, equal):
    """Rows go by their names, in any case; the others are in one table alone."""
    tables = []
    for place, name in enumerate(("one", "two")):
        rows = [(f"L{k}" if place else f"l{k}", f"0.{k + 1}") for k in range(shared)]
        rows += [(f"{name} {k}", "0.95") for k in range(2)]
        grid = TextTable(name, "", ("Label", "F1"), tuple(rows), 0)
        tables.append(make_table(grid))
    found = audit_tables(tables).about("equal columns")
    assert [one.numbers["rows"] for one in found] == [5] * equal


def decimals(value, places=3):
    """Return a number as printed."""
    return Number(value, 10.0**-places)


@pytest.mark.parametrize(
    ("p", "r", "f1", "agree"),
    [
        (0.5, 0.5, 0.5, True),
        # Equal rates move their F1 by their own slack, to which its own is added.
        (0.5, 0.5, 0.501, True),
        (0.5, 0.5, 0.499, True),
        (0.5, 0.5, 0.502, False),
        (0.5, 0.5, 0.498, False),
        (0.8, 0.4, 0.533, True),
        # The arithmetic and the geometric mean are no F1.
        (0.8, 0.4, 0.6, False),
        (0.8, 0.4, 0.566, False),
        (0.0, 0.0, 0.0, True),
        (0.0, 0.0, 1.0, True),
        (0.0, 0.0, 0.5, False),
        (0.5, 0.0, 1.0, False),
        (0.0, 0.5, 1.0, False),
        (1.0, 1.0, 1.0, True),
        (1.0, 1.0, 0.998, False),
    ],
)
def test_an_f1_agrees_with_the_rates_that_print_so(p, r, f1, agree):
    """2PR / (P + R); without both rates it prints as 0 or as 1."""
    assert f1_agrees(decimals(p), decimals(r), decimals(f1)) == agree


def test_ranges_that_touch_share_a_value():
    """The part both share is that value; apart they share none."""
    one = Bounds(1.0, 2.0)
    assert one.meets(Bounds(2.0, 3.0))
    assert one.meets(Bounds(0.0, 1.0))
    assert not one.meets(Bounds(2.1, 3.0))
    assert not one.meets(Bounds(0.0, 0.9))
    assert one.within(Bounds(2.0, 3.0)) == (2.0, 2.0)
    assert one.within(Bounds(1.5, 1.7)) == (1.5, 1.7)
    assert one.within(Bounds(5.0, 6.0)) == one
    assert one.minus(Bounds(0.5, 0.75)) == (0.25, 1.5)
