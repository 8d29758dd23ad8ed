"""Counts of errors by category, read from plain tables."""

import numpy as np
import pytest

from loop.core.errors import DataError
from loop.score.experts.error_tables import (
    ErrorTable,
    read_error_counts,
    read_judge_counts,
)

HEADER = "id,system,rater,category,significance,count"
ROWS = [
    "b,x,ann,omission,significant,2",
    "b,x,ann,omission,insignificant,1",
    "a,x,ann,a,significant,1",
    "b,x,ben,false_finding,significant,0",
]


def write(path, rows, header=HEADER):
    """Return a file of these rows."""
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def experts(tmp_path):
    """Return the table of two raters; one judged only one candidate."""
    return read_error_counts(write(tmp_path / "e.csv", ROWS))


def test_rows_become_counts_by_category(experts):
    """Sorted by case; a letter names its category; what has no row counts 0."""
    assert experts.keys == (("a", "x"), ("b", "x"))
    assert experts.raters == ("ann", "ben")
    assert experts.counts[0, 0, :2].tolist() == [[1, 0], [0, 0]]
    assert experts.counts[1, 0, :2].tolist() == [[0, 0], [2, 1]]


def test_who_has_no_row_did_not_judge(experts):
    """Missing is not zero: ben's row of 0 says that he found nothing in b."""
    assert np.isnan(experts.counts[0, 1]).all()
    assert (experts.counts[1, 1] == 0).all()
    totals = experts.totals(("omission", "false_finding"), all_errors=True)
    np.testing.assert_array_equal(totals, [[1, np.nan], [3, 0]])


def test_insignificant_errors_count_on_request(experts):
    """And a category that nobody was asked for adds nothing."""
    totals = experts.totals(("omission", "unknown"), all_errors=False)
    np.testing.assert_array_equal(totals, [[0, np.nan], [2, 0]])


def test_insignificant_errors_of_which_nothing_is_said_are_not_none():
    """All errors are then not known, the significant ones are."""
    table = ErrorTable(
        keys=(("a", ""), ("b", ""), ("c", "")),
        raters=("judge",),
        categories=("omission",),
        counts=np.array([[[[2, np.nan]]], [[[np.nan, np.nan]]], [[[2, 0]]]]),
    )
    every = table.totals(("omission",), all_errors=True)
    np.testing.assert_array_equal(every, [[np.nan], [np.nan], [2]])
    serious = table.totals(("omission",), all_errors=False)
    np.testing.assert_array_equal(serious, [[2], [np.nan], [2]])


def test_fewer_significant_errors_are_more_points(experts):
    """So that agreement with a score is positive."""
    ratings = experts.as_ratings()
    np.testing.assert_array_equal(ratings.scores, [[-1, np.nan], [-2, 0]])
    assert ratings.scale == (-2, 0)
    assert ratings.against == "significant errors, negated"


def test_rows_of_other_candidates_are_taken_in_order(experts):
    """An unknown candidate has no count, instead of none."""
    taken = experts.rows([("b", "x"), ("c", "x")])
    assert np.isnan(taken.counts[1]).all()
    np.testing.assert_array_equal(taken.counts[0], experts.counts[1])


def test_a_row_that_stands_twice_counts_once(tmp_path):
    """A copy is no second opinion; two different counts are an error."""
    found = read_error_counts(write(tmp_path / "e.csv", [*ROWS, ROWS[0]]))
    assert found.repeated == 1 and found.counts[1, 0, 1, 0] == 2
    other = write(tmp_path / "o.csv", [*ROWS, "b,x,ann,b,significant,3"])
    with pytest.raises(
        DataError, match=r"line 2 and o\.csv, line 6: rater 'ann' has two"
    ):
        read_error_counts(other)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("a,x,ann,Effusion on the left,significant,1", "line 2: there is no such cat"),
        ("a,x,ann,omission,serious,1", "neither significant nor insignificant"),
        ("a,x,ann,omission,significant,-1", "not a whole number from 0 on"),
        ("a,x,ann,omission,significant,1.5", "not a whole number from 0 on"),
        ("a,x,ann,omission,significant," + "9" * 5000, "of 6 digits at most"),
        ("a,x,ann,omission,significant,", "give 0 where there is no such error"),
        (",x,ann,omission,significant,1", "column id is empty"),
        ("a,x,,omission,significant,1", "column rater is empty"),
    ],
)
def test_a_wrong_row_is_refused(tmp_path, row, said):
    """By its line, without what the cell holds."""
    with pytest.raises(DataError, match=said) as caught:
        read_error_counts(write(tmp_path / "e.csv", [row]))
    assert "Effusion" not in str(caught.value)


def test_a_table_without_its_columns_is_refused(tmp_path):
    """The message names all of them."""
    wrong = write(tmp_path / "e.csv", ["a,ann,1"], "id,rater,count")
    with pytest.raises(DataError, match=r"no column category, significance\. Error"):
        read_error_counts(wrong)
    with pytest.raises(DataError, match="no row has a count"):
        read_error_counts(write(tmp_path / "e.csv", []))


JUDGED = "id,system,status,matched,significant.omission,insignificant.omission"


def test_a_judges_file_becomes_counts_of_one_rater(tmp_path):
    """A pair without an answer has no count; other columns are passed over."""
    rows = ["b,x,answered,4,2,0", "a,x,unparsed,,,"]
    found = read_judge_counts(write(tmp_path / "counts.csv", rows, JUDGED))
    assert (found.keys, found.raters) == ((("a", "x"), ("b", "x")), ("counts.csv",))
    assert found.categories == ("omission",)
    np.testing.assert_array_equal(found.counts[:, 0, 0], [[np.nan, np.nan], [2, 0]])


def test_a_column_that_only_looks_like_counts_is_passed_over(tmp_path):
    """A known weight of no category, and a known category of no weight, are none."""
    header = f"{JUDGED},significant.total,matched.omission"
    path = write(tmp_path / "counts.csv", ["b,x,ok,4,2,0,many,many"], header)
    found = read_judge_counts(path)
    assert found.categories == ("omission",)
    np.testing.assert_array_equal(found.counts[:, 0, 0], [[2, 0]])


def test_a_judge_that_does_not_weigh_says_so(tmp_path):
    """Its errors are all in one column."""
    header = "id,significant.omission"
    found = read_judge_counts(write(tmp_path / "counts.csv", ["a,2"], header))
    assert found.signature == "significance:none"
    assert found.totals(("omission",), all_errors=True).tolist() == [[2]]


def test_a_row_without_insignificant_counts_says_nothing_of_them(tmp_path):
    """Where another row has them; where none has, the judge does not weigh."""
    rows = ["a,x,answered,4,2,", "b,x,answered,4,2,1"]
    found = read_judge_counts(write(tmp_path / "counts.csv", rows, JUDGED))
    assert found.signature == ""
    np.testing.assert_array_equal(found.counts[:, 0, 0], [[2, np.nan], [2, 1]])
    found = read_judge_counts(write(tmp_path / "counts.csv", rows[:1], JUDGED))
    assert found.signature == "significance:none"
    np.testing.assert_array_equal(found.counts[:, 0, 0], [[2, 0]])


@pytest.mark.parametrize(
    ("rows", "header", "said"),
    [
        (["a,x,1"], "id,system,f1", "no column of counts such as significant.false"),
        (["a,x,ok,1,1,0"] * 2, JUDGED, "line 3: case 'a' has two rows"),
        (["a,x,ok,1,,1"], JUDGED, "some counts of significant errors are empty"),
        (["a,x,ok,1,one,1"], JUDGED, "not a whole number"),
        ([",x,ok,1,1,1"], JUDGED, "column id is empty"),
        ([], JUDGED, "there is no row of counts"),
    ],
)
def test_a_wrong_file_of_a_judge_is_refused(tmp_path, rows, header, said):
    """No cell is guessed."""
    with pytest.raises(DataError, match=said):
        read_judge_counts(write(tmp_path / "counts.csv", rows, header))


def test_a_table_of_another_shape_is_no_counts():
    """The message gives both shapes."""
    with pytest.raises(ValueError, match=r"shape \(1, 1, 1, 2\), got \(1, 1\)"):
        ErrorTable(
            keys=(("a", ""),),
            raters=("r",),
            categories=("omission",),
            counts=np.zeros((1, 1)),
        )


def test_the_seventh_category_is_read_and_is_not_clinical(tmp_path):
    """Letter g of published sets: in no point, in no total, and named apart."""
    rows = [*ROWS, "b,x,ann,g,significant,3", "a,x,ben,wording,insignificant,1"]
    told = read_error_counts(write(tmp_path / "g.csv", rows))
    assert told.categories[-1] == "wording"
    assert told.counts[1, 0, -1].tolist() == [3, 0]
    # Whoever marks wording judged the candidate: no clinical error, and 0 points.
    without = read_error_counts(
        write(tmp_path / "e.csv", [*ROWS, "a,x,ben,a,insignificant,0"])
    )
    points = told.as_ratings()
    np.testing.assert_array_equal(points.scores, without.as_ratings().scores)
    assert points.scores.tolist() == [[-1, 0], [-2, 0]]


def test_a_judge_may_be_asked_for_wording(tmp_path):
    """Its column is read where it is there."""
    header = "id,system,status,significant.omission,significant.wording"
    found = read_judge_counts(write(tmp_path / "c.csv", ["a,x,answered,1,2"], header))
    assert found.categories == ("omission", "wording")
    assert found.counts[0, 0, :, 0].tolist() == [1, 2]


def test_counts_have_six_digits_at_most_and_may_end_in_a_zero(tmp_path):
    """As a spreadsheet writes them; more digits are no count."""
    rows = ["a,x,ann,a,significant,2.0", "a,x,ann,b,significant,999999"]
    found = read_error_counts(write(tmp_path / "e.csv", rows))
    assert found.counts[0, 0, :2, 0].tolist() == [2, 999_999]
    for wrong in ("1000000", "2.00", "+2", "two", "2.0.0", "٢"):
        with pytest.raises(DataError, match="not a whole number from 0 on"):
            path = write(tmp_path / "w.csv", [f"a,x,ann,a,significant,{wrong}"])
            read_error_counts(path)


def test_rows_that_are_repeated_are_counted(tmp_path):
    """Two copies of one, one of another; without a system there is one."""
    rows = ["a,ann,a,significant,1", "a,ann,A,Significant,1.0"]
    more = ["b,ben,omission,insignificant,0"] * 3
    header = "id,rater,category,significance,count"
    found = read_error_counts(write(tmp_path / "e.csv", [*rows, *more], header))
    assert found.repeated == 3
    assert found.keys == (("a", ""), ("b", ""))
    assert (found.raters, found.signature) == (("ann", "ben"), "")
    assert found.as_ratings().repeated == 3


def test_points_are_of_the_raters_and_candidates_of_the_counts(experts):
    """In the same order; the most points are none lost."""
    ratings = experts.as_ratings()
    assert (ratings.keys, ratings.raters) == (experts.keys, experts.raters)
    taken = experts.rows([("b", "x")])
    assert (taken.raters, taken.categories) == (experts.raters, experts.categories)
    assert (taken.keys, taken.signature) == ((("b", "x"),), experts.signature)


def test_two_counts_that_differ_are_refused_by_their_category(tmp_path):
    """Of one rater, candidate, category and weight; another of each is none."""
    rows = [
        "a,x,ann,a,significant,1",
        "a,x,ben,a,significant,2",
        "a,y,ann,a,significant,2",
        "a,x,ann,a,insignificant,2",
        "a,x,ann,b,significant,2",
    ]
    found = read_error_counts(write(tmp_path / "e.csv", rows))
    assert found.repeated == 0
    with pytest.raises(DataError) as told:
        path = write(tmp_path / "o.csv", [*rows, "a,x,ann,a,significant,3"])
        read_error_counts(path)
    assert str(told.value) == (
        "o.csv, line 2 and o.csv, line 7: rater 'ann' has two counts of false_finding, "
        "significant, for one candidate of case 'a'. Keep one."
    )


def test_a_judges_rows_are_sorted_and_of_one_system_without_a_name(tmp_path):
    """Columns in any case and order; a zero is an answer."""
    header = "Insignificant.Omission, SIGNIFICANT.location,Significant.omission,id"
    rows = ["0,0,0,b", "1,2,3,a", ",,,c"]
    found = read_judge_counts(write(tmp_path / "counts.csv", rows, header))
    assert found.keys == (("a", ""), ("b", ""), ("c", ""))
    assert found.categories == ("omission", "location")
    np.testing.assert_array_equal(
        found.counts[:, 0],
        [
            [[3, 1], [2, 0]],
            [[0, 0], [0, 0]],
            [[np.nan, np.nan], [np.nan, np.nan]],
        ],
    )


def test_some_counts_of_a_weight_are_not_enough(tmp_path):
    """Either all of the insignificant ones, or none; and never without the others."""
    header = (
        "id,significant.omission,significant.location,insignificant.omission,"
        "insignificant.location"
    )
    for cells, lacking in (
        ("1,2,3,", "insignificant"),
        ("1,,3,4", "significant"),
        (",,3,4", "significant"),
        ("1,,,", "significant"),
    ):
        path = write(tmp_path / "c.csv", [f"a,{cells}"], header)
        with pytest.raises(
            DataError, match=f"line 2: some counts of {lacking} errors are empty"
        ):
            read_judge_counts(path)
    found = read_judge_counts(
        write(tmp_path / "ok.csv", ["a,1,2,,", "b,1,2,3,4"], header)
    )
    assert np.isnan(found.counts[0, 0, :, 1]).all()
