"""Shares of whole cases, counts beside them, and intervals: all that is said."""

import numpy as np
import pytest

from loop.published import proportions
from loop.published.printed import Number
from loop.published.proportions import METHODS, Printed, _search
from loop.stats.intervals import clopper_pearson
from tests.published.tables import audited, only, whole


def test_shares_that_are_no_whole_cases_are_named_with_a_number_that_would_do():
    """Of 30 cases none prints as 0.964; 27 of 28 do. 26 of 27 are too few to ask."""
    rows = [["Label", "Accuracy"], ["a", "0.964"], ["b", "0.967"], ["c", "0.963"]]
    assert whole(only(audited([*rows, ["d", "-"]], n=30), "whole cases")) == (
        "Accuracy",
        "broken",
        "1 of 3 values are whole cases; not possible: a 0.964 of 30 cases (would be "
        "possible with 28); c 0.963 of 30 cases.",
        {"cells": 3, "impossible": ["a", "c"]},
    )


def test_at_most_eight_impossible_shares_are_told_one_by_one():
    """All of them are in the numbers."""
    names = [f"L{k}" for k in range(9)]
    rows = [["Label", "Accuracy"], *([name, "0.988"] for name in names)]
    found = only(audited(rows, n=30), "whole cases")
    assert found.numbers == {"cells": 9, "impossible": names}
    told = "; ".join(f"{name} 0.988 of 30 cases" for name in names[:8])
    assert found.what == f"0 of 9 values are whole cases; not possible: {told}."


@pytest.mark.parametrize(("n", "telling"), [(909, True), (910, False)])
def test_shares_of_many_cases_are_all_possible(n, telling):
    """A digit of 0.001 is 0.0011 wide with rounding twice: 909 steps and no more."""
    rows = [["Label", "Accuracy"], ["a", "0.987"], ["b", "0.300"]]
    found = only(audited(rows, n=n), "whole cases")
    if telling:
        assert found.numbers == {"cells": 2, "impossible": []}
        assert found.severity.value == "ok"
        return
    words = "With so many cases every printed value is possible."
    assert whole(found) == ("Accuracy", "note", words, {"cells": 2})


def test_a_count_is_held_against_its_own_denominator_before_that_of_the_column():
    """9 of 30 and 4 of 20 hold, 10 of 30 is no 30 %; a share alone is no count."""
    rows = [["Label", "A (n = 30)"], ["x", "9 (30.0%)"], ["y", "10 (30.0%)"]]
    rows += [["z", "4/20 (20.0%)"], ["w", "0.5"], ["v", "-"]]
    assert whole(only(audited(rows), "count and share")) == (
        "A (n = 30)",
        "broken",
        "2 of 3 shares are their count over n; not so: y: 10/30 is 0.3333.",
        {"cells": 3, "wrong": ["y: 10/30 is 0.3333"]},
    )
    right = [["Label", "A (n = 30)"], ["x", "9 (30.0%)"]]
    assert only(audited(right), "count and share").what == (
        "1 of 1 shares are their count over n."
    )


def test_at_most_eight_wrong_counts_are_told_one_by_one():
    """All of them are in the numbers; so it is with totals."""
    header = ["Label", "A (n = 10)", "B (n = 20)", "Total (n = 30)"]
    rows = [header, *([f"x{k}", "2 (30.0%)", "3 (15.0%)", "4"] for k in range(9))]
    rows = [[*row[:3], row[3].replace("4", "4 (13.3%)")] for row in rows]
    audit = audited(rows)
    counts, *_ = audit.about("count and share")
    assert counts.numbers["wrong"] == [f"x{k}: 2/10 is 0.2000" for k in range(9)]
    assert counts.what.endswith("; x7: 2/10 is 0.2000.")
    total = only(audit, "total")
    assert total.numbers["wrong"] == [f"x{k}: 5, printed 4" for k in range(9)]
    assert total.what.endswith("; x7: 5, printed 4.")


def test_a_total_is_that_of_all_other_columns_with_cases():
    """Rows that lack a part are left out."""
    rows = [["L", "A (n = 10)", "B (n = 20)", "Overall (n = 30)"]]
    rows += [["x", "4 (40.0%)", "5 (25.0%)", "10 (33.3%)"]]
    rows += [["y", "1 (10.0%)", "1 (5.0%)", "2 (6.7%)"]]
    rows += [["z", "1 (10.0%)", "-", "2 (6.7%)"]]
    assert whole(only(audited(rows), "total")) == (
        "Overall (n = 30)",
        "broken",
        "The cases add up to 30, and the counts of 1 of 2 rows with them; not so: "
        "x: 9, printed 10.",
        {"n": 30, "rows": 2, "wrong": ["x: 9, printed 10"]},
    )


@pytest.mark.parametrize(
    "header",
    [
        ["L", "A (n = 10)", "B (n = 20)", "Total (n = 31)"],
        ["L", "A (n = 10)", "B (n = 20)", "C (n = 30)"],
        ["L", "A (n = 10)", "Total (n = 10)", "Overall (n = 10)"],
    ],
)
def test_a_column_whose_cases_are_no_sum_is_no_total(header):
    """Nor is one without that name, nor one of two."""
    rows = [header, ["x", "4 (40.0%)", "5 (25.0%)", "10 (33.3%)"]]
    assert audited(rows).about("total") == []


def test_a_value_outside_its_interval_is_named_on_either_side():
    """Below the lower limit and above the upper one; within rounding it is inside."""
    rows = [["Label", "F1", "F1 lower", "F1 upper"]]
    rows += [["x", "0.80", "0.82", "0.90"], ["y", "0.80", "0.60", "0.78"]]
    rows += [["z", "0.80", "0.81", "0.90"], ["w", "0.80", "0.60", "0.79"]]
    rows += [["v", "0.80", "0.60", "-"], ["Average", "0.80", "0.90", "0.95"]]
    audit = audited(rows)
    assert whole(only(audit, "interval order")) == (
        "all intervals",
        "broken",
        "2 of 5 values lie within their interval. Outside: x, F1; y, F1; Average, F1.",
        {"cells": 5, "outside": ["x, F1", "y, F1", "Average, F1"]},
    )
    assert whole(only(audit, "interval method")) == (
        "other measures",
        "note",
        "5 intervals belong to measures whose denominator the table does not state, or "
        "to values outside 0 to 1: their method cannot be found.",
        {"cells": 5},
    )


@pytest.mark.parametrize("value", ["0.850", "0.900"])
def test_a_value_at_an_end_of_its_interval_may_lie_in_it(value):
    """So may one that was rounded beyond it."""
    rows = [["Label", "F1 (95% CI)"], ["x", f"{value} (0.850-0.900)"]]
    rows += [["y", "0.85 (0.855-0.90)"], ["z", "0.90 (0.85-0.895)"]]
    found = only(audited(rows), "interval order")
    assert found.numbers == {"cells": 3, "outside": []}


def test_at_most_ten_values_outside_their_interval_are_told_one_by_one():
    """All of them are in the numbers."""
    rows = [["Label", "F1 (95% CI)"]]
    rows += [[f"x{k}", "0.80 (0.85-0.90)"] for k in range(11)]
    found = only(audited(rows), "interval order")
    assert found.numbers["outside"] == [f"x{k}, F1 (95% CI)" for k in range(11)]
    assert found.what.endswith("; x9, F1 (95% CI).")


def exact(k, n, places=3):
    """Return a share with its Clopper-Pearson interval as printed."""
    low, high = clopper_pearson(k, n)
    return f"{k / n:.{places}f} ({low:.{places}f}-{high:.{places}f})"


def test_intervals_at_the_stated_cases_are_told_with_those_cases_and_the_rivals():
    """20 of 100, 40 of 100 and 30 of 50, exact."""
    rows = [["Label", "Accuracy", "n"], ["a", exact(20, 100), "100"]]
    rows += [["b", exact(40, 100), "100"], ["c", exact(30, 50), "50"]]
    assert whole(only(audited(rows), "interval method")) == (
        "intervals of shares",
        "ok",
        "3 of 3 intervals are Clopper-Pearson at the stated number of cases (50, 100). "
        "Other methods fit Wilson 0, Agresti-Coull 0, Jeffreys 0, Wald 0.",
        {
            "cells": 3,
            "level": 0.95,
            "stated_n": [50, 100],
            "matched": {**dict.fromkeys(METHODS, 0), "Clopper-Pearson": 3},
            "single_rounding": {**dict.fromkeys(METHODS, 0), "Clopper-Pearson": 3},
            "method": "Clopper-Pearson",
            "n": [50, 100],
        },
    )


def test_many_stated_numbers_of_cases_are_told_up_to_six():
    """The rest is in the numbers."""
    sizes = [100, 110, 120, 130, 140, 150, 160]
    rows = [["Label", "Accuracy", "n"]]
    rows += [[f"L{n}", exact(n // 2, n), str(n)] for n in sizes]
    found = only(audited(rows), "interval method")
    assert found.numbers["n"] == sizes
    assert "cases (100, 110, 120, 130, 140, 150, ...)." in found.what
    found = only(audited(rows[:7]), "interval method")
    assert "cases (100, 110, 120, 130, 140, 150)." in found.what


@pytest.mark.parametrize(
    ("stated", "wider", "times"), [(100, "narrow", 2), (300, "wide", 0)]
)
def test_intervals_at_another_number_of_cases_are_told_with_their_width(
    stated, wider, times
):
    """Made at 200 and stated as 100 they are too narrow by the root of 2."""
    counts = (20, 60, 100, 144)
    rows = [["Label", "Accuracy"], *([f"L{k}", exact(k, 200)] for k in counts)]
    found = only(audited(rows, n=stated), "interval method")
    assert found.severity.value == "broken"
    ratio = (200 / stated) ** 0.5
    assert found.numbers["width_ratio"] == pytest.approx(ratio)
    assert (found.numbers["method"], found.numbers["n"]) == ("Clopper-Pearson", [200])
    assert found.what.startswith(
        f"4 of 4 intervals are Clopper-Pearson at n = 200; at the stated n = {stated} "
        "0 of 4 fit any of the methods."
    )
    assert found.what.endswith(
        f" So the printed intervals are too {wider}, by about {ratio:.2f}."
    )
    # Shares of 100 cases are even counts of 200; of 300 there is no such test.
    assert found.numbers.get("divisor", 0) == times
    assert found.numbers.get("counts_that_divide", 0) == 2 * times
    assert (
        "of 4 are multiples of 2, as shares of 100 cases are" in found.what
    ) == bool(times)
    for cell, k in zip(found.numbers["correct"], counts, strict=True):
        of = k * stated // 200
        low, high = clopper_pearson(of, stated)
        assert cell == {
            "row": f"L{k}", "column": "Accuracy", "k": of, "n": stated,
            "low": round(low, 6), "high": round(high, 6),
        }  # fmt: skip


def test_an_odd_count_is_no_multiple():
    """21 of 200 is no share of 100 cases, and its correct interval is not known."""
    rows = [["Label", "Accuracy"]]
    rows += [[f"L{k}", exact(k, 200)] for k in (21, 60, 100, 144)]
    found = only(audited(rows, n=100), "interval method")
    assert (found.numbers["counts_that_divide"], found.numbers["divisor"]) == (3, 2)
    assert [one["k"] for one in found.numbers["correct"]] == [30, 50, 72]


def test_intervals_of_rows_with_several_sizes_are_told_without_a_width():
    """Too narrow by how much is not one number."""
    rows = [["Label", "Accuracy", "n"]]
    rows += [[f"L{k}", exact(k, 200), str(90 + k)] for k in (1, 2, 3, 4, 5)]
    found = only(audited(rows), "interval method")
    assert found.severity.value == "broken"
    assert found.what == (
        "5 of 5 intervals are Clopper-Pearson at n = 200; at the stated n = 91, 92, "
        "93, 94, 95 0 of 5 fit any of the methods."
    )
    assert "width_ratio" not in found.numbers and "correct" not in found.numbers


def test_without_a_stated_number_the_one_that_fits_is_told():
    """And that none is stated."""
    rows = [["Label", "Accuracy (95% CI)"]]
    rows += [[f"L{k}", exact(k, 97, 4)] for k in (20, 50, 70, 91)]
    assert whole(only(audited(rows), "interval method")) == (
        "intervals of shares",
        "ok",
        "No number of cases is stated; 4 of 4 intervals are Clopper-Pearson at n = 97.",
        {
            "cells": 4, "level": 0.95, "stated_n": [], "matched": {},
            "single_rounding": {},
            "fitting": [{"method": "Clopper-Pearson", "n": 97}],
            "method": "Clopper-Pearson", "n": [97],
        },
    )  # fmt: skip


def test_intervals_that_nothing_gives_are_told_with_the_nearest_method():
    """They may be bootstrap intervals: no mistake."""
    rows = [
        ["Label", "Accuracy (95% CI)"],
        ["a", exact(20, 100)],
        ["b", exact(40, 100)],
    ]
    rows += [["c", "0.500 (0.200-0.510)"]]
    found = only(audited(rows, n=100), "interval method")
    assert whole(found)[:3] == (
        "intervals of shares",
        "note",
        "None of 5 methods gives all 3 intervals at the stated number of cases. The "
        "nearest, Clopper-Pearson, fits 2. They may be bootstrap intervals, or rest on "
        "fewer cases per row.",
    )
    found = only(audited(rows), "interval method")
    assert found.what == (
        "None of 5 methods gives all 3 intervals at one number of cases. They may be "
        "bootstrap intervals, or rest on fewer cases per row."
    )


@pytest.mark.parametrize("method", METHODS)
def test_the_search_finds_every_number_of_cases_up_to_5000(method):
    """Against trying each count of a few sizes one by one."""
    low, high = METHODS[method](np.array([9]), np.array([12]), 0.95)
    cell = Printed(
        row="a", column="c", value=Number(0.75, 0.01), n=None,
        low=Number(round(float(low[0]), 2), 0.01),
        high=Number(round(float(high[0]), 2), 0.01),
    )  # fmt: skip
    found = {n for name, n in _search([cell], 0.95) if name == method}
    k, n = np.array([(k, n) for n in range(2, 60) for k in range(n + 1)]).T
    near = np.abs(k / n - 0.75) <= cell.value.slack
    for end, shown in zip(METHODS[method](k, n, 0.95), cell[3:5], strict=True):
        near &= np.abs(end - shown.value) <= 0.005 + 1e-9
    assert {size for size in found if size < 60} == set(n[near].tolist())
    assert 12 in found


@pytest.mark.parametrize(
    ("limit", "printed", "once", "twice"),
    [
        (0.9874, 0.987, True, True),
        (0.98744, 0.987, True, True),
        # To four digits it is 0.9875, which is then rounded up again.
        (0.98745, 0.987, True, False),
        (0.98745, 0.988, False, True),
        (0.9875, 0.987, True, False),
        (0.9875, 0.988, True, True),
        (0.9885, 0.988, True, False),
        (0.9886, 0.988, False, False),
        (0.9864, 0.987, False, False),
        (1.0, 1.0, True, True),
        (0.0, 0.0, True, True),
    ],
)
def test_a_limit_prints_rounded_once_or_twice(limit, printed, once, twice):
    """At half a unit either way is right; twice goes up from 0.45 of a unit on."""
    shown = Number(printed, 0.001)
    found = proportions._once(np.array([limit]), shown)
    again = proportions._twice(np.array([limit]), shown)
    assert (found.tolist(), again.tolist()) == ([once], [twice])


@pytest.mark.parametrize(
    ("low", "high", "away"), [(0, 0, 0), (3, 0, 3), (0, -2, 2), (-4, 5, 5)]
)
def test_a_misfit_is_counted_in_units_of_the_last_digit(low, high, away):
    """Of the limit that is further off, at the count that fits best."""
    ends = [round(end, 3) for end in clopper_pearson(60, 100)]
    cell = Printed(
        row="a", column="c", value=Number(0.6, 0.001), n=100,
        low=Number(ends[0] + low / 1000, 0.001),
        high=Number(ends[1] + high / 1000, 0.001),
    )  # fmt: skip
    found = proportions._misfit(cell, "Clopper-Pearson", 0.95)
    assert found == pytest.approx(away, abs=0.5)
    nothing = cell._replace(value=Number(0.605, 0.001))
    assert proportions._misfit(nothing, "Clopper-Pearson", 0.95) == float("inf")


def test_intervals_of_summaries_are_no_shares_of_cases():
    """An average has an order of its limits, and no count behind it."""
    rows = [["Label", "Accuracy"], ["a", exact(20, 100)], ["b", exact(40, 100)]]
    rows += [["Average", "0.300 (0.290-0.310)"]]
    audit = audited(rows, n=100)
    assert only(audit, "interval order").numbers["cells"] == 3
    shares, other = audit.about("interval method")
    assert (shares.severity.value, shares.numbers["cells"]) == ("ok", 2)
    assert other.numbers == {"cells": 1}


@pytest.mark.parametrize(
    ("value", "shares"),
    [("1.001", 3), ("1.002", 2), ("-0.001", 3), ("-0.002", 2)],
)
def test_values_beyond_nought_and_one_are_no_shares(value, shares):
    """But for the rounding of their last digit."""
    rows = [["Label", "Accuracy"], ["a", exact(20, 100)], ["b", exact(40, 100)]]
    rows += [["c", f"{value} ({value}-{value})"]]
    found, *others = audited(rows, n=100).about("interval method")
    assert found.numbers["cells"] == shares
    assert [one.numbers["cells"] for one in others] == [3 - shares] * (shares < 3)


def test_an_interval_may_stand_in_columns_of_its_own():
    """One column of both limits, or two; those of another system are not its own."""
    low, high = clopper_pearson(20, 100)
    ends = [f"{low:.3f}", f"{high:.3f}"]
    header = ["Label", "A accuracy", "95% CI", "B accuracy", "B lower", "B upper"]
    header += ["C accuracy", "D lower", "D upper", "E accuracy", "E lower"]
    row = ["a", "0.200", f"{ends[0]}-{ends[1]}", "0.200", *ends]
    rows = [header, [*row, "0.200", "0.9", "0.9", "0.200", "0.9"]]
    audit = audited(rows, n=100)
    assert only(audit, "interval order").numbers == {"cells": 2, "outside": []}
    found = only(audit, "interval method")
    assert (found.severity.value, found.numbers["cells"]) == ("ok", 2)


def test_several_numbers_of_cases_that_fit_are_counted():
    """Two different cells are too few to conclude one of them."""
    rows = [["Label", "Accuracy (95% CI)"]]
    rows += [[f"L{k}", exact(k, 50, 2)] for k in (10, 40, 10, 40)]
    found = only(audited(rows), "interval method")
    sizes = {one["n"] for one in found.numbers["fitting"]}
    assert {"method": "Clopper-Pearson", "n": 50} in found.numbers["fitting"]
    assert len(sizes) > 1
    assert found.numbers["fitting"] == sorted(
        found.numbers["fitting"], key=lambda one: one["n"]
    )
    assert f" {len(sizes)} numbers of cases would fit. They may be" in found.what


def test_one_odd_interval_is_told_with_the_method_of_the_others():
    """Nine of ten are exact, and one is off by more than two units."""
    rows = [["Label", "Accuracy"]]
    rows += [[f"L{k}", exact(k, 100)] for k in range(10, 55, 5)]
    rows += [["odd", "0.700 (0.690-0.710)"]]
    found = only(audited(rows, n=100), "interval method")
    assert whole(found)[1:3] == (
        "broken",
        "9 of 10 intervals are Clopper-Pearson at the stated number of cases; not so: "
        "odd, Accuracy.",
    )
    assert found.numbers["odd"] == ["odd, Accuracy"]
    assert (found.numbers["method"], found.numbers["n"]) == ("Clopper-Pearson", [100])


@pytest.mark.parametrize(("n", "found"), [(5000, True), (5001, False)])
def test_a_number_of_cases_is_searched_up_to_5000(n, found):
    """Larger ones leave an interval to too many of them."""
    rows = [["Label", "Accuracy (95% CI)"]]
    rows += [[f"L{k}", exact(k, n, 5)] for k in (1000, 2501, 4003, 4711)]
    fitting = only(audited(rows), "interval method").numbers["fitting"]
    assert ({"method": "Clopper-Pearson", "n": n} in fitting) == found
    assert all(one["n"] <= 5000 for one in fitting)
