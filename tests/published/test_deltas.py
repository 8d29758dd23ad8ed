"""Differences and their significance: all that is said of them."""

import pytest

from tests.published.tables import audited, only, whole


def test_differences_that_do_not_hold_are_told_with_what_the_columns_give():
    """B repeats the column before, C the one after; D is neither; E is not checked."""
    rows = [["Label", "F1 pre", "F1 post", "Delta F1"]]
    rows += [["A", "0.500", "0.600", "0.100"], ["B", "0.500", "0.700", "0.500"]]
    rows += [["C", "0.500", "0.800", "0.800"], ["D", "0.300", "0.200", "-0.300"]]
    rows += [["E", "0.300", "-", "0.100"], ["F", "-", "0.300", "0.100"]]
    rows += [["G", "0.300", "0.300", "-"]]
    assert whole(only(audited(rows), "difference")) == (
        "Delta F1",
        "broken",
        "1 of 4 rows equal F1 post - F1 pre within rounding; not so: B +0.500 (columns "
        "give +0.200); C +0.800 (columns give +0.300); D -0.300 (columns give -0.100). "
        "Equal to one of the columns itself, not to a difference: B (F1 pre); C (F1 "
        "post).",
        {
            "rows": 4,
            "off": ["B", "C", "D"],
            "copied": {"B": "F1 pre", "C": "F1 post"},
            "implied": {"B": 1.0, "C": 1.3, "D": 0.0},
        },
    )


def test_differences_that_hold_are_counted():
    """Nothing is off, and nothing is implied."""
    rows = [
        ["Label", "F1 pre", "F1 post", "Delta F1"],
        ["A", "0.500", "0.600", "0.100"],
    ]
    assert whole(only(audited(rows), "difference")) == (
        "Delta F1",
        "ok",
        "1 of 1 rows equal F1 post - F1 pre within rounding.",
        {"rows": 1, "off": [], "copied": {}, "implied": {}},
    )


@pytest.mark.parametrize("printed", ["0.000", "-0.500"])
def test_no_change_is_no_copy_of_a_column(printed):
    """Even where a column is 0; and a sign makes another number."""
    rows = [
        ["Label", "F1 pre", "F1 post", "Delta F1"],
        ["A", "0.000", "0.500", printed],
    ]
    found = only(audited(rows), "difference")
    assert (found.numbers["off"], found.numbers["copied"]) == (["A"], {})


def test_an_averaged_difference_is_told_with_every_way_of_taking_it():
    """Of the averages, of the means of all rows or of a part, of the differences."""
    rows = [["Label", "F1 pre", "F1 post", "Delta F1"]]
    rows += [["A", "0.500", "0.600", "0.100"], ["B", "0.500", "0.700", "0.500"]]
    rows += [["C", "0.500", "0.800", "0.800"], ["D", "0.300", "0.200", "-0.300"]]
    rows += [["E", "0.300", "-", "0.100"]]
    averaged = "the difference of the printed averages"
    everywhere = "the difference of the means of all rows"
    part = "the difference of the means of the rows with F1 post"
    found = only(
        audited([*rows, ["average", "0.450", "0.575", "0.125"]]), "averaged difference"
    )
    assert whole(found) == (
        "average, Delta F1",
        "ok",
        f"Printed 0.125. It is {averaged}. Tried: {averaged} 0.12500; {everywhere} "
        f"0.15500; {part} 0.12500; the mean of the printed differences 0.24000.",
        {
            "printed": 0.125,
            "fits": [averaged, part],
            "ways": {
                averaged: 0.125,
                everywhere: 0.155,
                part: 0.125,
                "the mean of the printed differences": 0.24,
            },
        },
    )
    found = only(
        audited([*rows, ["average", "-", "0.575", "0.300"]]), "averaged difference"
    )
    assert whole(found)[1:3] == (
        "broken",
        f"Printed 0.300. No way of taking it gives that. Tried: {everywhere} 0.15500; "
        f"{part} 0.12500; the mean of the printed differences 0.24000.",
    )
    blank = audited([*rows, ["average", "0.450", "0.575", "-"]])
    assert blank.about("averaged difference") == []


@pytest.mark.parametrize(
    ("printed", "severity"),
    [("0.102", "broken"), ("0.101", "ok"), ("0.099", "ok"), ("0.098", "broken")],
)
def test_an_averaged_difference_may_be_off_by_its_roundings(printed, severity):
    """A unit and a half: two averages and the difference itself are rounded."""
    rows = [["Label", "F1 pre", "F1 post", "Delta F1"]]
    rows += [["A", "0.400", "0.500", "0.100"], ["B", "0.600", "0.700", "0.100"]]
    rows += [["average", "0.500", "0.600", printed]]
    found = only(audited(rows), "averaged difference")
    assert found.severity.value == severity


def another_run(wrong, agreeing, right=1):
    """Return the finding about two differences that imply another run, if any.

    Both columns imply 0.7 where the F1 is 0.6 in `agreeing` of the `wrong` rows.
    """
    rows = [["Label", "F1 pre", "F1 post", "Delta F1", "Older F1", "Delta to Older"]]
    for k in range(wrong):
        older = "0.300" if k < agreeing else "0.250"
        rows.append([f"L{k}", "0.500", "0.600", "0.200", "0.400", older])
    rows += [["M", "0.500", "0.600", "0.100", "0.400", "0.200"]] * right
    rows += [["N", "0.500", "0.600", "-", "0.400", "0.300"]]
    return audited(rows).about("difference of another run")


def test_differences_that_agree_on_another_value_come_from_another_run():
    """Three rows of which both columns say 0.7; in one they do not agree."""
    (found,) = another_run(4, 3)
    assert whole(found) == (
        "Delta F1 and Delta to Older",
        "broken",
        "The values of F1 post that both columns imply agree with each other on 4 of 5 "
        "rows, and differ from the printed ones on 3 of these. So the differences come "
        "from other results than those printed.",
        {"rows": 5, "agree": 4, "agree_but_not_printed": ["L0", "L1", "L2"]},
    )


@pytest.mark.parametrize(
    ("wrong", "agreeing", "told"),
    [
        (2, 2, False),
        (3, 3, True),
        (3, 2, True),
        (4, 2, False),
        (4, 3, True),
        (0, 0, False),
    ],
)
def test_another_run_is_told_from_three_rows_and_by_more_than_half(
    wrong, agreeing, told
):
    """Fewer are slips, and half of them may agree by chance."""
    assert len(another_run(wrong, agreeing)) == told


def test_rows_that_cannot_reach_significance_are_told_with_their_best_p():
    """A loses none and gains 40; five cases are too few; D has no second number."""
    rows = [["Label", "Accuracy pre", "Accuracy post"], ["A", "0.50", "0.90"]]
    rows += [["B", "0.90", "0.89"], ["C", "0.50", "0.55"], ["D", "0.50", "-"]]
    assert whole(only(audited(rows, n=100), "attainable significance")) == (
        "Accuracy pre to Accuracy post",
        "note",
        "1 of 3 rows could have improved with p <= 0.05; 2 could not, even if no case "
        "was lost: B (-1, p at best 1), C (+5, p at best 0.0625).",
        {
            "alpha": 0.05,
            "rows": 3,
            "cannot": ["B", "C"],
            "best_p": {"A": 2 * 0.5**40, "B": 1.0, "C": 0.0625},
            "net_gain": {"A": 40, "B": -1, "C": 5},
        },
    )
    assert only(audited(rows[:2], n=100), "attainable significance").what == (
        "Each of 1 rows could reach p <= 0.05."
    )


def test_the_largest_gain_that_prints_so_is_the_one_that_counts():
    """Of 1,000 cases 0.50 is 495 to 505 of them, and 0.51 is 505 to 515: 20 at most."""
    rows = [["Label", "Accuracy pre", "Accuracy post"], ["A", "0.50", "0.51"]]
    found = only(audited(rows, n=1000), "attainable significance")
    assert found.numbers["net_gain"] == {"A": 20}


@pytest.mark.parametrize(
    "header",
    [
        ["Label", "X accuracy pre", "Y accuracy post"],
        ["Label", "Accuracy micro pre", "Accuracy macro post"],
        ["Label", "Accuracy post", "F1 pre"],
        ["Label", "Accuracy", "Accuracy post"],
    ],
)
def test_significance_is_asked_of_one_system_before_and_after(header):
    """Not of two systems, two averages or two measures."""
    rows = [header, ["A", "0.50", "0.90"]]
    assert audited(rows, n=100).about("attainable significance") == []


@pytest.mark.parametrize(
    ("header", "formula"),
    [
        (["L", "F1 pre", "F1 post", "Delta F1"], "F1 post - F1 pre"),
        # A measure need not be named where only one has a before and an after.
        (["L", "F1 pre", "F1 post", "Delta"], "F1 post - F1 pre"),
        (["L", "A F1 pre", "A F1 post", "Delta A"], None),
        (["L", "A F1 pre", "B F1 post", "Delta F1"], None),
        (["L", "A F1", "B F1", "Delta to A F1"], "B F1 - A F1"),
        (["L", "A F1", "B F1", "Gap to B F1"], "A F1 - B F1"),
        (["L", "A F1", "B F1", "Delta to C F1"], None),
        (["L", "A F1", "B recall", "Delta to A F1"], None),
        (["L", "A F1", "B macro F1", "Delta to A F1"], None),
        (["L", "F1", "Recall", "Delta F1"], None),
    ],
)
def test_the_columns_of_a_difference_are_found_or_nothing_is_said(header, formula):
    """A header names where it starts, or both have a time."""
    rows = [header, ["x", "0.500", "0.700", "0.900"]]
    found = audited(rows).about("difference")
    assert len(found) == (formula is not None)
    if formula:
        assert f"equal {formula} within" in found[0].what


def test_a_difference_to_one_of_three_systems_has_two_ends():
    """Which of the others it ends at is not clear, unless one of them came after."""
    header = ["L", "A F1", "B F1", "C F1", "Delta to A F1"]
    rows = [header, ["x", "0.500", "0.700", "0.800", "0.900"]]
    assert audited(rows).about("difference") == []
    rows[0] = ["L", "A F1", "F1 pre", "F1 post", "Delta to A F1"]
    assert "equal F1 post - A F1 within" in only(audited(rows), "difference").what
    # Two measures with a before and an after: of which, it does not say.
    rows = [["L", "F1 pre", "F1 post", "Recall pre", "Recall post", "Delta"]]
    rows += [["x", "0.500", "0.700", "0.800", "0.900", "0.100"]]
    assert audited(rows).about("difference") == []


@pytest.mark.parametrize(("printed", "severity"), [("0.20", "ok"), ("0.21", "broken")])
def test_averages_of_whole_cases_narrow_their_difference(printed, severity):
    """0.56 and 0.76 are 0.555 and 0.755 of 100 cases: 0.2 exactly, not up to 0.21."""
    rows = [["Label", "Accuracy pre", "Accuracy post", "Delta accuracy"]]
    rows += [["A", "0.50", "0.70", "0.20"], ["B", "0.61", "0.81", "0.20"]]
    rows += [["average", "0.56", "0.76", printed]]
    found = only(audited(rows, n=100), "averaged difference")
    assert found.severity.value == severity
    # Averages that are none of the rows stand as they are printed.
    rows[3][1:3] = "0.66", "0.86"
    found = only(audited(rows, n=100), "averaged difference")
    assert found.severity.value == "ok"


@pytest.mark.parametrize("values", [("0.964", "0.967"), ("0.900", "0.964")])
def test_a_row_that_is_no_whole_cases_has_no_significance(values):
    """Of 30 cases none prints as 0.964: nothing is known of its gain."""
    rows = [["Label", "Accuracy pre", "Accuracy post"], ["A", *values]]
    assert audited(rows, n=30).about("attainable significance") == []
    rows += [["B", "0.500", "0.900"]]
    found = only(audited(rows, n=30), "attainable significance")
    assert found.numbers["net_gain"] == {"B": 12}
