"""Micro and macro rates against scikit-learn and the published table."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from loop.score.ran import average
from loop.stats.confusion import average_f1, count_confusions
from tests.score.graded_tables import VALUES, tables

GOLDEN = Path(__file__).parents[1] / "golden" / "ran_score_tables.json"


def test_the_published_averages_are_found():
    """Table 4 before optimisation: 0.969, 0.794, 0.757 and an F1 of 0.753."""
    rows = json.loads(GOLDEN.read_text("utf-8"))["table4"]
    del rows["Average"]
    cells = ("tp", "fp", "fn", "tn")
    counts = np.array(
        [
            [row["confusion_pre_n300"][0][cell] for cell in cells]
            for row in rows.values()
        ]
    )
    rates = average(counts)
    assert rates.macro_accuracy == pytest.approx(0.969, abs=0.0005)
    assert rates.macro_precision == pytest.approx(0.794, abs=0.0005)
    assert rates.macro_recall == pytest.approx(0.757, abs=0.0005)
    assert float(average_f1(counts)) == pytest.approx(0.753, abs=0.0005)


@given(tables(VALUES))
def test_swapping_the_sides_swaps_precision_and_recall(pair):
    """Under every policy, micro and macro."""
    there, back = count_confusions(*pair), count_confusions(*pair[::-1])
    for policy in ("skip", "zero", "one"):
        one = average(there, zero_division=policy)
        other = average(back, zero_division=policy)
        assert one.micro_precision == other.micro_recall
        assert one.macro_precision == other.macro_recall
        assert one.macro_accuracy == other.macro_accuracy


def test_nothing_decided_gives_no_rate():
    """None, and no warning about dividing by 0."""
    assert set(average(np.zeros((3, 4), dtype=np.int64))) == {None}


def test_a_label_never_predicted_has_precision_zero_in_the_mean():
    """Leaving it out would reward silence: the F1 of that label is 0 as well."""
    counts = np.array([[5, 0, 0, 5], [0, 0, 3, 7]])
    for policy in ("skip", "zero", "one"):
        assert average(counts, zero_division=policy).macro_precision == 0.5
