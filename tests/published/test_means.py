"""Averages, and F1 from its rates: all that is said of them."""

import pytest

from tests.published.tables import audited, only, whole


def test_an_f1_that_does_not_follow_is_told_with_what_the_rates_give():
    """2 * 0.8 * 0.6 / 1.4; a row without one of the three is no cell."""
    rows = [["Label", "precision pre", "recall pre", "F1 pre"]]
    rows += [["a", "0.500", "0.500", "0.500"], ["b", "0.800", "0.600", "0.500"]]
    rows += [
        ["c", "-", "0.5", "0.5"],
        ["d", "0.5", "-", "0.5"],
        ["e", "0.5", "0.5", ""],
    ]
    line = "b: printed 0.500, from P and R 0.6857"
    assert whole(only(audited(rows), "F1 from P and R")) == (
        "before",
        "broken",
        f"1 of 2 F1 values equal 2PR / (P + R); not so: {line}.",
        {"cells": 2, "wrong": [line]},
    )
    assert whole(only(audited(rows[:2]), "F1 from P and R")) == (
        "before",
        "ok",
        "1 of 1 F1 values equal 2PR / (P + R).",
        {"cells": 1, "wrong": []},
    )


def test_at_most_eight_wrong_values_are_told_one_by_one():
    """All of them are in the numbers; so it is with means of rows."""
    rows = [["Label", "precision", "recall", "F1"]]
    rows += [[f"x{k}", "0.800", "0.600", "0.500"] for k in range(9)]
    found = only(audited(rows), "F1 from P and R")
    assert len(found.numbers["wrong"]) == 9
    assert "; x7: " in found.what and "x8" not in found.what
    rows = [["Label", "A accuracy", "B accuracy", "Average"]]
    rows += [[f"x{k}", "0.850", "0.950", "0.800"] for k in range(9)]
    rows += [["ok", "0.500", "0.700", "0.600"]]
    lines = [f"x{k}: 0.9000" for k in range(9)]
    assert whole(only(audited(rows), "row mean")) == (
        "Average",
        "broken",
        f"1 of 10 rows are the mean of their 2 values; not so: {'; '.join(lines[:8])}.",
        {"rows": 10, "wrong": lines},
    )


def test_the_mean_of_a_row_is_that_of_the_values_it_has():
    """Of three systems with one missing: of two. Another measure is no value of it."""
    rows = [["Label", "A F1", "B F1", "C F1", "A recall", "Average F1"]]
    rows += [["x", "0.200", "0.400", "0.900", "0.100", "0.500"]]
    rows += [["y", "0.200", "-", "0.900", "0.100", "0.550"]]
    assert whole(only(audited(rows), "row mean")) == (
        "Average F1",
        "ok",
        "2 of 2 rows are the mean of their 3 values.",
        {"rows": 2, "wrong": []},
    )


@pytest.mark.parametrize(
    "header",
    [
        # Of which of two measures the average is, it does not say.
        ["Label", "A F1", "A recall", "Average"],
        # One column has no mean.
        ["Label", "A F1", "A recall", "Average F1"],
    ],
)
def test_an_average_of_what_is_not_one_measure_is_not_judged(header):
    """Nothing is guessed."""
    rows = [header, ["x", "0.200", "0.400", "0.900"]]
    assert audited(rows).about("row mean") == []


def test_an_average_that_is_one_of_a_part_is_told_with_that_part():
    """0.42 is the mean of five rows, 0.45 of the four with an F1 after."""
    rows = [["Label", "F1 pre", "F1 post"], ["A", "0.500", "0.600"]]
    rows += [["B", "0.500", "0.700"], ["C", "0.500", "0.800"], ["D", "0.300", "0.200"]]
    rows += [["E", "0.300", "-"], ["average", "0.450", "0.575"]]
    before, after = audited(rows).about("column mean")
    assert whole(before) == (
        "average, F1 pre",
        "broken",
        "Printed 0.450; the mean of 5 rows is 0.42000; it is the mean of the rows with "
        "F1 post (4): 0.45000.",
        {
            "printed": 0.45,
            "recomputed": 0.42,
            "rows": 5,
            "fits": ["the rows with F1 post"],
            "means": {"all rows": [0.42, 5], "the rows with F1 post": [0.45, 4]},
        },
    )
    assert whole(after)[:3] == (
        "average, F1 post",
        "ok",
        "Printed 0.575; the mean of 4 rows is 0.57500.",
    )


def test_an_average_that_is_no_mean_is_told_with_the_mean():
    """Of 100 cases 90 and 70 are certain: their mean is 0.8."""
    rows = [["Label", "accuracy"], ["a", "0.900"], ["b", "0.700"], ["average", "0.900"]]
    assert whole(only(audited(rows, n=100), "column mean")) == (
        "average, accuracy",
        "broken",
        "Printed 0.900; the mean of 2 rows is 0.80000.",
        {
            "printed": 0.9,
            "recomputed": 0.8,
            "rows": 2,
            "fits": [],
            "means": {"all rows": [0.8, 2]},
        },
    )


@pytest.mark.parametrize(
    ("average", "n", "severity"),
    [
        ("0.802", None, "broken"),
        # Both cells may be 0.00055 more, and the average is rounded by as much.
        ("0.801", None, "ok"),
        ("0.799", None, "ok"),
        ("0.798", None, "broken"),
        # Whole cases leave the rounding of the average alone.
        ("0.801", 100, "broken"),
        ("0.800", 100, "ok"),
        ("0.799", 100, "broken"),
    ],
)
def test_an_average_may_be_off_by_its_roundings(average, n, severity):
    """Two roundings where the cases are unknown, one where they are known."""
    rows = [["Label", "accuracy"], ["a", "0.900"], ["b", "0.700"], ["average", average]]
    assert only(audited(rows, n=n), "column mean").severity.value == severity


def averaged_f1(pre, post):
    """Return the findings about two averages of F1 beside P 0.8 and R 0.6."""
    names = [f"{name} {when}" for when in ("pre", "post") for name in ("P", "R", "F1")]
    names = [one.replace("P ", "precision ").replace("R ", "recall ") for one in names]
    rows = [["Label", *names]]
    rows += [["a", "0.900", "0.900", "0.900", "0.900", "0.900", "0.900"]]
    rows += [["b", "0.700", "0.300", "0.420", "0.700", "0.300", "0.420"]]
    rows += [["average", "0.800", "0.600", pre, "0.800", "0.600", post]]
    found = audited(rows).about("column mean")
    return [one for one in found if "F1" in one.part]


def test_an_f1_of_the_averages_is_a_note_where_all_are_made_so():
    """0.66 is the mean of both rows, 0.6857 the F1 of the average rates."""
    both = averaged_f1("0.686", "0.686")
    assert [one.severity.value for one in both] == ["note", "note"]
    assert both[0].what == (
        "Printed 0.686; the mean of 2 rows is 0.66000; it is 2PR / (P + R) of the "
        "averages beside it."
    )
    one, other = averaged_f1("0.686", "0.660")
    assert (one.severity.value, other.severity.value) == ("broken", "ok")
    one, other = averaged_f1("0.686", "0.500")
    assert (one.severity.value, other.severity.value) == ("broken", "broken")
    # Without another F1 nothing speaks against it.
    (one,) = averaged_f1("0.686", "-")
    assert one.severity.value == "note"


def test_an_average_over_empty_cells_is_told_as_such():
    """0.90 and 0.60 of three rows are 0.50."""
    rows = [["Label", "accuracy"], ["a", "0.900"], ["b", "0.600"], ["c", "-"]]
    found = only(audited([*rows, ["average", "0.500"]]), "column mean")
    assert (found.severity.value, found.what) == (
        "note",
        "Printed 0.500; the mean of 2 rows is 0.75000; it fits if empty cells count "
        "as 0.",
    )


def test_each_set_of_results_is_checked_whatever_comes_before_it():
    """One without a complete row, and a macro average, end nothing."""
    names = ("precision", "recall", "F1")
    header = [
        "Label",
        *(f"{name} {when}" for when in ("pre", "macro", "post") for name in names),
    ]
    rows = [header, ["a", "0.8", "-", "0.5", "0.8", "0.8", "0.1", "0.8", "0.8", "0.5"]]
    found = audited(rows).about("F1 from P and R")
    assert [(one.part, one.numbers["cells"]) for one in found] == [("after", 1)]
    assert found[0].severity.value == "broken"
