"""Ratings from a plain table: joined by id, system and rater, nothing guessed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.errors import DataError
from loop.score.experts.ratings import Ratings
from loop.score.experts.reading import read_ratings

ROWS = [
    "a,x,ann,5",
    "a,x,ben,4",
    "a,y,ann,2",
    "a,y,ben,",
    "b,x,ann,1",
    "b,y,ben,3",
]


def write(path, rows, header="id,system,rater,score"):
    """Write a file of ratings."""
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def table(tmp_path):
    """Return the path of a small file of ratings."""
    return write(tmp_path / "ratings.csv", ROWS)


def test_ratings_become_a_table_of_candidates_by_raters(table):
    """A blank score and a row that is not there are both missing, never 0."""
    found = read_ratings(table)
    assert found.keys == (("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"))
    assert found.raters == ("ann", "ben")
    expected = [[5, 4], [2, np.nan], [1, np.nan], [np.nan, 3]]
    np.testing.assert_array_equal(found.scores, expected)
    np.testing.assert_array_equal(found.consensus, [4.5, 2, 1, 3])
    assert found.scale == (1, 5)


@given(order=st.permutations(ROWS), columns=st.permutations(range(4)))
def test_the_order_of_rows_and_columns_changes_nothing(
    tmp_path_factory, order, columns
):
    """Ratings are joined by what a row says, not by where it stands."""
    folder = tmp_path_factory.mktemp("ratings")
    plain = read_ratings(write(folder / "plain.csv", ROWS))
    header = ["id", "system", "rater", "score"]
    turned = [",".join(row.split(",")[place] for place in columns) for row in order]
    head = ",".join(header[place] for place in columns)
    other = read_ratings(write(folder / "other.csv", turned, head))
    assert (other.keys, other.raters) == (plain.keys, plain.raters)
    np.testing.assert_array_equal(other.scores, plain.scores)


def test_without_a_system_every_case_has_one_candidate(tmp_path):
    """A study of one generator need not name it."""
    path = write(tmp_path / "r.csv", ["7,ann,3", "007,ann,4"], "id,rater,score")
    found = read_ratings(path)
    assert found.keys == (("007", ""), ("7", ""))


def test_other_columns_are_ignored(tmp_path):
    """A comment of a rater is nobody's business here."""
    path = write(tmp_path / "r.csv", ["a,x,ann,3,why"], "ID,System,Rater,Score,note")
    assert read_ratings(path).scores.tolist() == [[3.0]]


def test_a_row_that_stands_twice_counts_once(tmp_path):
    """Exports are often concatenated; the number of copies is kept."""
    found = read_ratings(write(tmp_path / "r.csv", [*ROWS, ROWS[0], ROWS[3]]))
    assert found.repeated == 2
    assert found.scores[0].tolist() == [5, 4]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (
            "a,x,ann,4",
            r"line 2 and r\.csv, line 8: rater ann gives one candidate",
        ),
        ("c,x,ann,good", r"line 8: the score is not a number"),
        ("c,x,ann,nan", r"line 8: the score is not a number"),
        ("c,x,ann,inf", r"line 8: the score is not a number"),
        (",x,ann,4", r"line 8: column id is empty"),
        ("c,x,,4", r"line 8: column rater is empty"),
        ("c,x,4", r"line 8: 3 cells, the header has 4"),
    ],
)
def test_a_wrong_row_is_refused_by_its_line(tmp_path, row, said):
    """Nothing is guessed: the message names the line and what to do."""
    with pytest.raises(DataError, match=said):
        read_ratings(write(tmp_path / "r.csv", [*ROWS, row]))


def test_a_score_off_the_scale_is_refused(table):
    """A 10 among points of 1 to 5 is a typing error or another scale."""
    with pytest.raises(DataError, match=r"line 2: the score '5' is off the scale of 1"):
        read_ratings(table, scale=(1, 4))
    assert read_ratings(table, scale=(0, 5)).scale == (0, 5)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("id,system,rater,points", "no column score"),
        ("id,system,score,score", "column 'score' appears twice"),
        ("id,ID,rater,score", "two columns are named id"),
    ],
)
def test_a_wrong_header_is_refused(tmp_path, header, said):
    """The message says which columns are needed."""
    with pytest.raises(DataError, match=said):
        read_ratings(write(tmp_path / "r.csv", ["a,x,ann,4"], header))


@pytest.mark.parametrize("rows", [[], ["a,x,ann,"]])
def test_a_file_without_any_score_is_refused(tmp_path, rows):
    """There is nothing to agree with."""
    with pytest.raises(DataError, match="no row has a score"):
        read_ratings(write(tmp_path / "r.csv", rows))


def test_ids_made_safe_for_spreadsheets_are_the_same_ids(tmp_path):
    """An apostrophe before a formula sign is not part of the id."""
    found = read_ratings(write(tmp_path / "r.csv", ["'-7,x,ann,3", "'s,x,ann,4"]))
    assert found.ids == ("'s", "-7")


def test_a_table_of_another_shape_is_no_ratings():
    """Rows are candidates, columns are raters."""
    with pytest.raises(ValueError, match="one row per candidate"):
        Ratings(
            ids=("a",),
            systems=("x",),
            raters=("ann",),
            scores=np.ones((2, 1)),
            scale=(1, 5),
        )
    with pytest.raises(ValueError, match="a system for each"):
        Ratings(
            ids=("a",),
            systems=(),
            raters=("ann",),
            scores=np.ones((1, 1)),
            scale=(1, 5),
        )
