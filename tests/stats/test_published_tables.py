"""The published accuracy, confusion and F1 tables, cell by cell.

Tables 2 to 5 of the Ran Score article as transcribed in
``tests/golden/ran_score_tables.json``; what does not reproduce is stated as well.
"""

import json
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import numpy as np
import pytest

from loop.stats.confusion import Confusion, average_f1, count_confusions
from loop.stats.intervals import clopper_pearson
from loop.stats.paired import mcnemar_exact

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "ran_score_tables.json").read_text("utf-8")
)
LABELS = [name for name in GOLDEN["table4"] if name != "Average"]


def cells(table):
    """Yield every cell of Table 2 or 3."""
    return [cell for row in GOLDEN[table].values() for cell in row.values()]


def round_twice(value):
    """Return `value` rounded half-up to 4 and then to 3 decimals, as printed."""
    for places in ("0.0001", "0.001"):
        value = Decimal(str(value)).quantize(Decimal(places), ROUND_HALF_UP)
    return float(value)


def printed(successes, trials):
    """Return the interval as the article prints it."""
    return [round_twice(limit) for limit in clopper_pearson(successes, trials)]


def test_all_105_intervals_of_table_2_reproduce():
    """Exact intervals over the 300 development cases, every cell."""
    found = [printed(cell["k"], 300) == cell["ci_printed"] for cell in cells("table2")]
    assert len(found) == 105 and all(found)


def test_one_rounding_misses_one_interval_of_table_2():
    """The double rounding is real: without it one cell of 105 differs."""
    same = [
        [float(Decimal(str(limit)).quantize(Decimal("0.001"), ROUND_HALF_UP))
         for limit in clopper_pearson(cell["k"], 300)] == cell["ci_printed"]
        for cell in cells("table2")
    ]  # fmt: skip
    assert sum(same) == 104


def test_table_3_intervals_reproduce_only_with_twice_its_cases():
    """The cohort has 150 cases, but all 105 printed intervals were made with 300."""
    table = cells("table3")
    assert {cell["n"] for cell in table} == {150}
    with_300 = [printed(2 * cell["k"], 300) == cell["ci_printed"] for cell in table]
    with_150 = [printed(cell["k"], 150) == cell["ci_printed"] for cell in table]
    assert (sum(with_300), sum(with_150)) == (105, 0)


@pytest.mark.parametrize("table", ["table2", "table3"])
def test_the_correct_intervals_are_the_exact_ones(table):
    """Both tables with their own number of cases, to six decimals."""
    for cell in cells(table):
        limits = clopper_pearson(cell["k"], cell["n"])
        assert list(limits) == pytest.approx(cell["ci_correct"], abs=5.1e-7)


@pytest.mark.parametrize(("table", "n"), [("table2", 300), ("table3", 150)])
def test_printed_accuracies_are_whole_cases(table, n):
    """Every accuracy is a count over the cohort, to three decimals."""
    for cell in cells(table):
        assert cell["k"] / n == pytest.approx(cell["acc"], abs=5.1e-4)


@pytest.mark.parametrize("table", ["table2", "table3"])
def test_labels_at_the_accuracy_threshold_are_counted(table):
    """How many of 21 labels reach 0.95, per model."""
    for model, expected in GOLDEN["counts_ge_0.95"][table].items():
        reached = [row[model]["acc"] >= 0.95 for row in GOLDEN[table].values()]
        assert sum(reached) == expected


def confusions(when):
    """Yield label, row and each integer table that fits the printed row."""
    for label in LABELS:
        row = GOLDEN["table4"][label]
        tables = row[f"confusion_{when}_n300"]
        if isinstance(tables, str):  # a perfect row fits every prevalence
            tables = [{"tp": 7, "fp": 0, "fn": 0, "tn": 293}]
        for table in tables:
            yield label, row, Confusion(**table)


@pytest.mark.parametrize("when", ["pre", "post"])
def test_confusion_counts_give_the_printed_rates(when):
    """Accuracy, precision, recall and F1 of every reconstructed table.

    The tolerance is just above half a printed unit: some cells of the article look
    cut, or computed from rounded values, and fit no integer table otherwise.
    """
    seen = set()
    for label, row, table in confusions(when):
        rates = (table.accuracy, table.precision, table.recall, table.f1)
        names = (f"{name}_{when}" for name in ("acc", "prec", "rec", "f1"))
        assert rates == pytest.approx([row[name] for name in names], abs=6e-4)
        seen.add(label)
    impossible = {"Interstitial Lung Disease"} if when == "post" else set()
    assert seen == set(LABELS) - impossible


def test_counting_rebuilt_cases_gives_the_published_counts_and_macro_f1():
    """Arrays rebuilt from the counts before optimisation: macro F1 prints as 0.753."""
    tables = {label: table for label, _, table in confusions("pre")}
    pairs = [
        np.repeat([[1, 1], [0, 1], [1, 0], [0, 0]], tables[label], axis=0)
        for label in LABELS
    ]
    reference, predicted = np.stack(pairs, axis=-1).astype(np.int8).swapaxes(0, 1)
    counts = count_confusions(reference, predicted)
    assert counts.tolist() == [list(tables[label]) for label in LABELS]
    average = GOLDEN["table4"]["Average"]["f1_pre"]
    assert average_f1(counts) == pytest.approx(average, abs=5e-4)


@pytest.mark.parametrize("when", ["pre", "post"])
def test_printed_f1_is_the_harmonic_mean_of_its_row(when):
    """All 42 values, within the rounding of precision and recall."""
    for label in LABELS:
        row = GOLDEN["table4"][label]
        p, r = row[f"prec_{when}"], row[f"rec_{when}"]
        assert 2 * p * r / (p + r) == pytest.approx(row[f"f1_{when}"], abs=1.1e-3)


@pytest.mark.parametrize("columns", ["21", "14"])
def test_column_means_recompute(columns):
    """Means over all labels, and over the 14 that an older labeller shares."""
    labels = LABELS[: int(columns)]
    for name, expected in GOLDEN[f"table4_recomputed_means_{columns}"].items():
        column = [GOLDEN["table4"][label].get(name) for label in labels]
        given = [value for value in column if value is not None]
        assert np.mean(given) == pytest.approx(expected, abs=5.1e-6)


def test_printed_averages_before_reproduce_and_after_do_not():
    """After optimisation the printed averages are not the means of their columns."""
    printed_row = GOLDEN["table4"]["Average"]
    means = GOLDEN["table4_recomputed_means_21"]
    for name in ("acc", "prec", "rec", "f1"):
        before, after = f"{name}_pre", f"{name}_post"
        assert means[before] == pytest.approx(printed_row[before], abs=5.1e-4)
        assert abs(means[after] - printed_row[after]) > 5.1e-4
    shared = GOLDEN["table4_recomputed_means_14"]["f1_post"]
    assert shared == pytest.approx(printed_row["f1_post"], abs=5.1e-4)


def test_twelve_labels_cannot_have_improved_significantly():
    """Even if no case was lost, the net gain in cases is too small at 0.05."""
    gains = [
        round(300 * row["acc_post"]) - round(300 * row["acc_pre"])
        for row in (GOLDEN["table4"][label] for label in LABELS)
    ]
    assert sum(mcnemar_exact(0, max(gain, 0)) >= 0.05 for gain in gains) == 12


def test_table_5_columns_are_recall_then_precision():
    """Read that way, seven models share one share of positive cells: 12.9 %."""
    implied = GOLDEN["table5_implied_positive_rate_if_cols_are_recall_precision"]
    for model, row in GOLDEN["table5"].items():
        p, r = row["micro_precision"], row["micro_recall"]
        assert 2 * p * r / (p + r) == pytest.approx(row["micro_f1"], abs=1.1e-3)
        share = (1 - row["micro_acc"]) / (r * (1 / p - 1) + 1 - r)
        assert share == pytest.approx(implied[model], abs=5.1e-5)
    assert max(implied.values()) - min(implied.values()) < 1.1e-3
