"""Agreement within strata: what a file of strata is, and what is not estimated."""

import numpy as np
import pytest

from loop.core.errors import DataError
from loop.score.experts.strata import (
    LEAST_UNITS,
    Strata,
    agree_by_stratum,
    read_strata,
)
from loop.stats.correlation import correlate, is_shown, kendall_p


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


def test_rows_of_a_case_that_agree_are_one_row(tmp_path):
    """A file with a row per candidate; the id may be called case_id, in any case."""
    path = written(
        tmp_path, " Case_ID , Modality ,x", "a,CT,1", "a,CT,1", "z,MR,2", "b,MR,2"
    )
    found = read_strata(path, ["b", "b", "a"])
    assert found.names == ("Modality", "x")
    assert found.values == (("MR", "2"), ("MR", "2"), ("CT", "1"))
    assert found.source == "strata.csv"


def test_each_column_is_looked_at(tmp_path):
    """The second one holds texts, and the message names it."""
    path = written(tmp_path, "id,m,text", f"a,CT,{'x' * 61}", "b,CT,y")
    with pytest.raises(DataError, match=r"strata\.csv: column 'text' has more than"):
        read_strata(path, ["a", "b"])


def test_strata_are_told_by_column_and_name_with_their_own_numbers():
    """Two columns; each stratum as if it were alone, with the same draws."""
    rng = np.random.default_rng(1)
    n = 60
    scores = rng.normal(size=n)
    ratings = scores + rng.normal(size=n)
    ratings[5] = np.nan
    units = np.arange(n) // 2
    side = np.array(["right", "left"])[np.arange(n) // 30]
    kind = np.array(["", "b", "a"])[np.arange(n) // 2 % 3]
    strata = Strata(
        names=("side", "kind"),
        values=tuple(zip(side.tolist(), kind.tolist(), strict=True)),
        source="s.csv",
    )
    options = {"resamples": 40, "seed": 3, "confidence": 0.8}
    found = agree_by_stratum(scores, ratings, strata, units=units, **options)
    assert [(one.by, one.stratum) for one in found] == [
        ("side", "left"),
        ("side", "right"),
        ("kind", ""),
        ("kind", "a"),
        ("kind", "b"),
    ]
    for one in found:
        column = side if one.by == "side" else kind
        chosen = (column == one.stratum) & ~np.isnan(ratings)
        x, y = scores[chosen], ratings[chosen]
        within = correlate(x, y, units[chosen], **options)
        assert one.tau_b == within.tau_b
        assert one.shown == is_shown(within, kendall_p(x, y))
        assert (one.n, one.n_units) == (chosen.sum(), len(set(units[chosen])))
    assert {one.n for one in found} == {29, 30, 19, 20}
