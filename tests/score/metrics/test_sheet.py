"""The sheet as a file and as correlations."""

import csv
import io

import numpy as np
import pytest
from scipy.stats import kendalltau

from loop.score.metrics.run import run_metrics
from loop.score.metrics.sheet import (
    correlation_matrix,
    format_per_case,
    write_per_case,
)
from tests.score.metrics.scenes import ALONE, TAXONOMY, make_pairs

NAMES = ("ran_score", "clinical_sensitivity", "rouge_l", "length_difference")


@pytest.fixture(scope="module")
def sheet():
    """Return four metrics of two systems."""
    return run_metrics(*make_pairs(), TAXONOMY, NAMES, ALONE, resamples=10)


def test_every_candidate_has_a_row_with_numbers_that_read_back(sheet):
    """The file is what metrics are later compared with experts by."""
    rows = list(csv.DictReader(io.StringIO(format_per_case(sheet).decode("utf-8"))))
    assert list(rows[0]) == ["id", "system", *NAMES]
    assert len(rows) == 29 + 30
    assert [row["id"] for row in rows[:29]] == list(sheet.case_ids["good"])
    for name in NAMES:
        read = [float(row[name] or "nan") for row in rows]
        assert np.array_equal(read, sheet.column(name), equal_nan=True)


def test_undefined_is_an_empty_cell(sheet):
    """A 0 would be a score, and "nan" is a word some readers take for text."""
    text = format_per_case(sheet).decode("utf-8")
    assert np.isnan(sheet.column("clinical_sensitivity")).any()
    assert "nan" not in text
    assert ",," in text


def test_an_id_that_a_spreadsheet_would_run_starts_with_an_apostrophe():
    """Ids come from files of others."""
    joined, graded = make_pairs(2, ("=cmd()", "b"))
    found = run_metrics(joined, graded, TAXONOMY, ["ran_score"], ALONE, resamples=10)
    assert b"c001,'=cmd()," in format_per_case(found)


def test_the_file_is_written_whole(sheet, tmp_path):
    """The bytes are those of `format_per_case`."""
    path = tmp_path / "per_case.csv"
    write_per_case(sheet, path)
    assert path.read_bytes() == format_per_case(sheet)


def test_correlations_are_scipys_over_candidates_where_both_are_defined(sheet):
    """Each pair of metrics says how many candidates it rests on."""
    found = correlation_matrix(sheet)
    assert found.metrics == NAMES
    one, other = sheet.column(NAMES[1]), sheet.column(NAMES[2])
    both = ~np.isnan(one) & ~np.isnan(other)
    # Equal fractions may differ in their last digit, which is no order.
    plain = kendalltau(one[both].round(12), other[both].round(12))
    assert found.tau_b[1, 2] == pytest.approx(plain.statistic, abs=1e-12)
    assert found.n[1, 2] == both.sum() < found.n[2, 3] == 59
    assert np.array_equal(found.tau_b, found.tau_b.T)
    assert np.diag(found.tau_b) == pytest.approx(1)


def test_a_constant_metric_correlates_with_nothing():
    """Without two different values there is no order to agree with."""
    joined, graded = make_pairs(1, ("only",))
    found = run_metrics(joined, graded, TAXONOMY, ["rouge_l"], ALONE, resamples=10)
    assert np.isnan(correlation_matrix(found).tau_b).all()
