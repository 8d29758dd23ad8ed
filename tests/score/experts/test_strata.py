"""Agreement within strata: what a file of strata is, and what is not estimated."""

import numpy as np
import pytest

from loop.core.errors import DataError
from loop.score.experts.strata import LEAST_UNITS, agree_by_stratum, read_strata


def written(tmp_path, *lines):
    """Return a file of strata."""
    path = tmp_path / "strata.csv"
    path.write_text("\n".join(lines))
    return path


def test_every_case_has_what_the_file_says_of_it(tmp_path):
    """In the order asked for; what it says nothing of is in no stratum of its own."""
    rows = ("b,CT,chest,", "a,MR,knee,", "z,US,x,")
    path = written(tmp_path, "id,modality,anatomy,", *rows)
    found = read_strata(path, ["a", "b", "c"])
    assert found.names == ("modality", "anatomy")
    assert found.values == (("MR", "knee"), ("CT", "chest"), ("", ""))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (("modality", "CT"), "need one column id"),
        (("id", "a"), "need one column id"),
        (("id,", "a,"), "need one column id"),
        (("id,case_id,m", "a,a,CT"), "need one column id"),
        (("id,m", "a,CT", "a,MR"), "case 'a' has another row with other strata"),
        (("id,m", "z,CT"), "no row belongs to a case that is measured here"),
        (("id,m", "a," + "x" * 61), "more than 60 characters"),
    ],
)
def test_what_divides_no_cases_is_refused(tmp_path, lines, words):
    """With the way out, and without what a cell holds."""
    with pytest.raises(DataError, match=words) as caught:
        read_strata(written(tmp_path, *lines), ["a", "b"])
    assert "xxx" not in str(caught.value)


def test_a_column_of_texts_is_no_column_of_strata(tmp_path):
    """Names of cases, or reports, would fill a table with nothing."""
    ids = [f"c{n}" for n in range(51)]
    path = written(tmp_path, "id,m", *(f"{one},{one}" for one in ids))
    with pytest.raises(DataError, match="more than 50 different"):
        read_strata(path, ids)


def test_a_small_stratum_has_its_n_and_no_number(tmp_path):
    """Nine units: not estimable; ten: estimated. Units count, and not candidates."""
    n = 2 * LEAST_UNITS + 8
    ids = [f"c{place}" for place in range(n)]
    rows = [
        f"{one},{'CT' if place < LEAST_UNITS else 'MR'}"
        for place, one in enumerate(ids)
    ]
    strata = read_strata(written(tmp_path, "id,m", *rows), ids)
    scores = np.arange(n, dtype=float)
    # 18 candidates of MR are nine units.
    units = np.array([*range(LEAST_UNITS), *(np.arange(18) // 2 + 100)])
    ct, mr = agree_by_stratum(scores, scores, strata, units=units, resamples=50)
    assert (ct.stratum, ct.n, ct.n_units) == ("CT", 10, 10)
    assert ct.tau_b.value == 1 and ct.shown
    assert (mr.n, mr.n_units, mr.tau_b.value) == (18, 9, None)
    assert mr.tau_b.note == "not estimable: 9 units, 10 are needed"
    assert not mr.shown


def test_what_has_no_score_is_in_no_stratum(tmp_path):
    """The n is of candidates with a score and a rating."""
    ids = [f"c{place}" for place in range(12)]
    strata = read_strata(written(tmp_path, "id,m", *(f"{i},CT" for i in ids)), ids)
    scores = np.arange(12, dtype=float)
    gaps = np.where(scores > 9, np.nan, scores)
    (found,) = agree_by_stratum(gaps, -scores, strata, units=scores, resamples=50)
    assert (found.n, found.tau_b.value) == (10, -1)


@pytest.mark.parametrize(("strata", "letters"), [(50, 1), (1, 60)])
def test_as_many_strata_and_as_long_names_as_may_be(tmp_path, strata, letters):
    """Fifty, and sixty characters; only those of wanted cases count."""
    ids = [f"c{n}" for n in range(strata)]
    rows = [f"{one},{one.ljust(letters, 'x')}" for one in ids]
    path = written(tmp_path, "id,m", *rows, "other," + "y" * 61)
    values = read_strata(path, ids).values
    assert len(set(values)) == strata
    assert max(len(one) for (one,) in values) == max(letters, 2 + (strata > 10))
