"""Whether results rest on one set of reference labels: all that is said of it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from loop.published import positives
from loop.published.confusions import Solutions
from loop.published.table_audit import audit_tables
from tests.published.tables import audited, only, table_of, whole

NAMES = ("accuracy", "precision", "recall")


def every(n, rates):
    """Return each table of n cases that prints so, by trying all of them."""
    found = []
    for tp in range(n + 1):
        for fp in range(n + 1 - tp):
            for fn in range(n + 1 - tp - fp):
                parts = {
                    "accuracy": (n - fp - fn, n),
                    "precision": (tp, tp + fp),
                    "recall": (tp, tp + fn),
                }
                if all(
                    parts[name][1]
                    and abs(parts[name][0] / parts[name][1] - value) <= slack
                    for name, (value, slack) in rates.items()
                ):
                    found.append((tp, fp, fn))
    return found


def test_rows_that_no_whole_cases_make_are_named():
    """Solutions are those that counting finds; too many are only counted."""
    header = ["label", "n", *(f"{name} pre" for name in NAMES)]
    rows = [header, ["a", "20", "0.650", "0.800", "0.400"]]
    rows += [["b", "20", "0.9", "0.9", "0.9"], ["c", "20", "0.900", "0.300", "0.500"]]
    rows += [["d", "20", "-", "0.500", "-"], ["e", "", "0.650", "0.800", "0.400"]]
    loose = every(20, {name: (0.9, 0.055) for name in NAMES})
    found = [tp + fn for tp, _, fn in loose]
    assert whole(only(audited(rows), "confusion tables")) == (
        "before",
        "broken",
        "2 of 3 rows print as a table of whole cases, 1 of them as exactly one; no "
        "table fits: c.",
        {
            "rows": 3,
            "unique": 1,
            "impossible": ["c"],
            "solutions": {
                "a": {"count": 1, "positives": [10, 10], "tp_fp_fn": [[4, 1, 6]]},
                "b": {
                    "count": len(loose),
                    "positives": [min(found), max(found)],
                    "tp_fp_fn": [],
                },
                "c": {"count": 0, "positives": None},
            },
        },
    )


def before_after(*rows):
    """Return the audit of accuracy, precision and recall before and after."""
    header = [
        "label",
        "n",
        *(f"{one} {when}" for when in ("pre", "post") for one in NAMES),
    ]
    return audited([header, *rows])


ONE = ["0.650", "0.800", "0.400"]
"""Ten of 20 cases are positive."""

OTHER = ["0.900", "1.000", "0.333"]
"""Three of 20 are."""

TWO = ["0.900", "0.500", "0.500"]
"""Two of 20 are."""

NONE = ["0.900", "0.300", "0.500"]
"""No table of 20 cases prints so."""


def test_rows_that_rest_on_other_positives_are_told_with_them():
    """10 before and 3 after; 2 before and none that fits after; d has one result."""
    gap = ["-", "-", "-"]
    audit = before_after(
        ["a", "20", *ONE, *OTHER], ["b", "20", *ONE, *ONE], ["c", "20", *TWO, *NONE],
        ["d", "20", *ONE, *gap], ["e", "20", *TWO, *TWO],
    )  # fmt: skip
    assert whole(only(audit, "reference positives")) == (
        "results of one row",
        "broken",
        "2 of 4 rows can have one number of reference positives in all their results; "
        "2 cannot: a 10 / 3; c 2 / none. Fewer cases in a row, down to two thirds, do "
        "not explain any of them.",
        {
            "rows": 4,
            "differ": ["a", "c"],
            "at_any_size": ["a", "c"],
            "impossible": ["c"],
            "positives": {"a": [[10, 10], [3, 3]], "c": [[2, 2], []]},
        },
    )


def test_rows_that_share_their_positives_are_counted():
    """Nothing differs."""
    audit = before_after(["a", "20", *ONE, *ONE], ["b", "20", *TWO, *TWO])
    assert whole(only(audit, "reference positives")) == (
        "results of one row",
        "ok",
        "2 of 2 rows can have one number of reference positives in all their results.",
        {"rows": 2, "differ": [], "at_any_size": [], "impossible": [], "positives": {}},
    )
    assert (
        before_after(["a", "20", *ONE, "-", "-", "-"]).about("reference positives")
        == []
    )


FOURTEEN = ["0.786", "0.750", "0.600", "0.786", "0.667", "0.800"]
"""Five of 14 cases are positive: 3 hits, 1 false alarm; and 4 hits with 2."""


@pytest.mark.parametrize(("n", "explained"), [(21, True), (22, False)])
def test_fewer_cases_down_to_two_thirds_can_explain_a_difference(n, explained):
    """14 of 21 are two thirds, of 22 they are less."""
    found = only(before_after(["a", str(n), *FOURTEEN]), "reference positives")
    assert found.numbers == {
        "rows": 1,
        "differ": ["a"],
        "at_any_size": ["a"] * (not explained),
        "impossible": ["a"],
        "positives": {"a": [[], []]},
    }
    assert found.severity.value == ("note" if explained else "broken")
    assert found.what.endswith(
        "1 cannot: a none / none. "
        + (
            "Fewer cases would explain a."
            if explained
            else "Fewer cases in a row, down to two thirds, do not explain any of them."
        )
    )


def test_only_the_rows_that_fewer_cases_explain_are_named_so():
    """The others are what does not hold."""
    audit = before_after(["a", "21", *FOURTEEN], ["b", "20", *ONE, *OTHER])
    found = only(audit, "reference positives")
    assert (found.severity.value, found.numbers["at_any_size"]) == ("broken", ["b"])
    assert found.what == (
        "0 of 2 rows can have one number of reference positives in all their results; "
        "2 cannot: a none / none; b 10 / 3. Fewer cases would explain a."
    )


def test_printed_positives_and_many_cases_leave_no_other_size():
    """What is printed is not explained away; beyond 1,500 cases nothing is searched."""
    header = ["label", "n", "positives"]
    header += [f"{one} {when}" for when in ("pre", "post") for one in NAMES]
    found = only(audited([header, ["a", "21", "5", *FOURTEEN]]), "reference positives")
    assert found.numbers["at_any_size"] == ["a"]


@pytest.mark.parametrize(
    ("f1", "n", "positive", "possible"),
    [
        # One hit and all 10 false alarms are 2 / 21, 10 hits and none are 1.
        (0.095, 20, 10, True),
        (0.093, 20, 10, False),
        (1.0, 20, 10, True),
        (0.953, 20, 10, True),
        # Between 9 of 10 without a false alarm, 18 / 19, and one with: 20 / 21.
        (0.950, 20, 10, False),
        (0.0, 20, 10, True),
        (0.001, 20, 10, True),
        # Without positives an F1 is 1 or 0 as programs differ.
        (1.0, 20, 0, True),
        (0.5, 20, 0, False),
        (0.667, 3, 1, True),
        (0.5, 3, 1, True),
        (0.4, 3, 1, False),
    ],
)
def test_an_f1_is_possible_with_so_many_positives(f1, n, positive, possible):
    """Up to three times the slack of its last digit."""
    shown = positives.Number(f1, 0.001)
    assert positives._f1_possible(shown, positive, n) == possible
    counted = f1 <= 3 * shown.slack or any(
        abs(2 * tp / (tp + fp + positive) - f1) <= 3 * shown.slack
        for tp in range(1, positive + 1)
        for fp in range(n - positive + 1)
    )
    assert (counted or (positive == 0 and f1 == 1.0)) == possible


def test_an_f1_alone_is_held_against_the_positives_of_its_row():
    """Only rows of which other results tell the positives are held to them."""
    header = ["label", "n", *(f"{one} pre" for one in NAMES), "Older F1"]
    rows = [header, ["a", "20", *ONE, "0.095"], ["b", "20", *ONE, "0.080"]]
    rows += [["c", "20", *NONE, "0.080"], ["d", "20", *ONE, "-"]]
    rows += [["e", "20", "-", "-", "-", "0.080"]]
    assert whole(only(audited(rows), "attainable F1")) == (
        "Older F1",
        "broken",
        "1 of 2 F1 values are possible with the reference positives of the other "
        "results; not possible: b 0.080. So they were not measured on the same cases "
        "and reference labels.",
        {"cells": 2, "impossible": ["b 0.080"]},
    )
    assert only(audited(rows[:2]), "attainable F1").what == (
        "1 of 1 F1 values are possible with the reference positives of the other "
        "results."
    )


def test_results_that_share_no_positives_allow_those_of_any():
    """10 before and 3 after: an F1 that only 10 allow is possible."""
    header = [
        "label",
        "n",
        *(f"{one} {when}" for when in ("pre", "post") for one in NAMES),
    ]
    rows = [[*header, "Older F1"], ["a", "20", *ONE, *OTHER, "0.952"]]
    assert only(audited(rows), "attainable F1").numbers["impossible"] == []
    # With 3 of 20 positive the F1 next to 1 is 6 / 7.
    rows = [[*header, "Older F1"], ["a", "20", *OTHER, *OTHER, "0.952"]]
    assert only(audited(rows), "attainable F1").numbers["impossible"] == ["a 0.952"]


def test_systems_in_rows_share_one_set_of_positives_and_not_each_its_own():
    """Rows of models are held against each other by their share of positives."""
    rows = [["Model", "n", *NAMES], ["A", "20", *ONE], ["B", "20", *TWO]]
    audit = audited(rows)
    assert audit.about("reference positives") == []
    assert whole(only(audit, "share of positives")) == (
        "results",
        "broken",
        "The systems imply different shares of positives: A 0.5000, B 0.1000.",
        {
            "implied": {"A": 0.5, "B": 0.1},
            "swapped": {"A": 0.25, "B": 0.1},
            "swap_restores": False,
        },
    )


def test_systems_on_one_reference_imply_one_share_of_positives():
    """Rates that nothing can be divided by are left out, and one row says nothing."""
    rows = [["Model", *NAMES], ["A", "0.650", "0.800", "0.400"]]
    rows += [["B", "0.750", "0.750", "0.750"], ["C", "1.000", "0.500", "0.500"]]
    rows += [["D", "0.750", "1.000", "0.500"], ["E", "0.500", "0.000", "0.500"]]
    rows += [["F", "0.750", "0.750", "-"]]
    assert whole(only(audited(rows), "share of positives")) == (
        "results",
        "ok",
        "All 2 systems imply one share of positives: A 0.5000, B 0.5000.",
        {
            "implied": {"A": 0.5, "B": 0.5},
            "swapped": {"A": 0.25, "B": 0.5},
            "swap_restores": False,
        },
    )
    assert audited(rows[:2]).about("share of positives") == []


def test_systems_are_held_together_by_everything_but_their_name():
    """Each label has a reference of its own; the two labels are two findings."""
    rows = [["Label", "Model", *NAMES], ["x", "A", *ONE], ["x", "B", *ONE]]
    rows += [["y", "A", *ONE], ["y", "B", *TWO]]
    found = audited(rows).about("share of positives")
    assert [(one.part, one.severity.value) for one in found] == [
        ("results x", "ok"),
        ("results y", "broken"),
    ]


def test_the_share_of_positives_follows_from_counts():
    """Of every table of eleven cases with hits, false alarms and misses."""
    for tp in range(1, 6):
        for fp in range(4):
            for fn in range(1, 4):
                found = positives.share_of_positives(
                    (11 - fp - fn) / 11, tp / (tp + fp), tp / (tp + fn)
                )
                assert found == pytest.approx((tp + fn) / 11)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("name", ["Label", "Model"])
def test_a_table_whose_notes_share_no_reference_is_not_held_to_one(name, shared):
    """Rows of models, or of labels before and after."""
    header = [
        name,
        "n",
        *(f"{one} {when}" for when in ("pre", "post") for one in NAMES),
    ]
    rows = [[*header, "Older F1"], ["a", "20", *ONE, *OTHER, "0.5"]]
    table = replace(table_of([*rows, ["b", *rows[1][1:]]]), shared=shared)
    audit = audit_tables([table])
    counts = {
        check: len(audit.about(check))
        for check in ("share of positives", "reference positives", "attainable F1")
    }
    models = name == "Model"
    assert counts == {
        "share of positives": int(shared and models),
        "reference positives": int(shared and not models),
        "attainable F1": int(shared and not models),
    }
    assert len(audit.about("confusion tables")) == 2


@pytest.mark.parametrize(("many", "found"), [(20_000, False), (20_001, True)])
def test_up_to_20000_tables_of_a_row_are_tried_at_smaller_sizes(
    monkeypatch, many, found
):
    """With more it is left open: they may share their positives."""
    none = np.zeros(many, dtype=np.int64)
    tables = Solutions(none, none, np.arange(many, dtype=np.int64) + 1)
    other = Solutions(*(np.zeros(1, dtype=np.int64) for _ in "abc"))
    given = iter([tables, other])
    monkeypatch.setattr(positives, "candidates", lambda *_: next(given))
    rows = [SimpleNamespace(n=3, rates={}) for _ in range(2)]
    assert positives._shared_at_any_size(rows) == found


def test_implied_shares_are_told_to_four_decimals():
    """As in the example: 0.874, 0.512 and 0.391 are 0.12835; exchanged 0.09802."""
    row = ["0.874", "0.512", "0.391"]
    rows = [["Model", *NAMES], ["A", *row], ["B", *row]]
    found = only(audited(rows), "share of positives")
    exchanged = (1 - 0.874) / (0.512 * (1 / 0.391 - 1) + 1 - 0.512)
    assert found.numbers["implied"] == {"A": 0.1284, "B": 0.1284}
    assert found.numbers["swapped"] == dict.fromkeys("AB", round(exchanged, 4))
    assert "A 0.1284, B 0.1284" in found.what
