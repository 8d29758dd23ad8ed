"""Ratings from a plain table, nothing guessed; and raters among themselves."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, pearsonr

from loop.core.errors import DataError
from loop.labels.expert_ratings import RaterPoints, parse_scale
from loop.score.experts.ratings import (
    Ratings,
    as_ratings,
    candidate_pairs,
    mean_given,
    rater_agreement,
    read_ratings,
    unit_codes,
)
from loop.stats.reliability import icc_agreement, interval_alpha, ordinal_alpha

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
            r"r\.csv, line 8: rater 'ann' gives one candidate of case 'a' two",
        ),
        (
            "a,x,ann,",
            r"r\.csv, line 8: rater 'ann' gives one candidate of case 'a' two",
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
        ("id,system,rater,mark", "no column score"),
        ("id,system,score,score", "columns 3 and 4 have the same name"),
        ("id,ID,rater,score", "two columns are named id"),
        ("id,rater,score,points", "two columns are named score"),
    ],
)
def test_a_wrong_header_is_refused(tmp_path, header, said):
    """The message says which columns are needed."""
    with pytest.raises(DataError, match=said):
        read_ratings(write(tmp_path / "r.csv", ["a,x,ann,4"], header))


SCALED = "id,system,rater,dimension,points,scale"


def test_the_file_names_its_scale(tmp_path):
    """Points of 0 to 5 of which nobody gave 0 are still of 0 to 5."""
    rows = ["a,x,ann,quality,4,0-5", "b,x,ann,quality,2,0-5"]
    found = read_ratings(write(tmp_path / "r.csv", rows, SCALED))
    assert (found.scale, found.against) == ((0, 5), "points")
    assert found.scores.tolist() == [[4], [2]]
    assert read_ratings(tmp_path / "r.csv", scale=(0, 5)).scale == (0, 5)
    with pytest.raises(DataError, match="Leave --scale out"):
        read_ratings(tmp_path / "r.csv", scale=(1, 5))


def test_counts_of_errors_are_negated(tmp_path):
    """Fewer errors are more points, so that agreement with a score is positive."""
    rows = ["a,x,ann,errors,4,counts", "b,x,ann,errors,0,Counts"]
    found = read_ratings(write(tmp_path / "r.csv", rows, SCALED))
    assert (found.scale, found.against) == ((-4, 0), "error counts, negated")
    assert f"{found.scale[1]:g}" == "0"
    assert found.scores.tolist() == [[-4], [0]]


def test_one_of_several_dimensions_is_chosen(tmp_path):
    """Each may have its own scale; without a choice nothing is mixed."""
    rows = ["a,x,ann,errors,4,counts", "a,x,ann,quality,2,1-5"]
    path = write(tmp_path / "r.csv", rows, SCALED)
    assert read_ratings(path, dimension="quality").scores.tolist() == [[2]]
    assert read_ratings(path, dimension="errors").scores.tolist() == [[-4]]
    with pytest.raises(DataError, match=r"several dimensions.*'errors', 'quality'"):
        read_ratings(path)
    with pytest.raises(DataError, match=r"no dimension 'style'.*--dimension: 'errors'"):
        read_ratings(path, dimension="style")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["a,x,ann,q,4,good to bad"], "line 2: the scale is neither counts nor"),
        (["a,x,ann,q,4,5-1"], "line 2: the scale is neither counts nor"),
        (["a,x,ann,q,4,1-5", "b,x,ann,q,4,0-5"], "line 2 and r.csv, line 3: two diff"),
        (["a,x,ann,q,6,1-5"], "line 2: the score '6' is off the scale of 1 to 5"),
        (["a,x,ann,q,-1,counts"], "one of them is negative"),
    ],
)
def test_a_wrong_scale_is_refused(tmp_path, rows, said):
    """A number means nothing without its scale."""
    with pytest.raises(DataError, match=said):
        read_ratings(write(tmp_path / "r.csv", rows, SCALED))


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


NA = np.nan


def ratings_of(scores, ids=None, systems=None):
    """Return ratings with made-up names."""
    scores = np.asarray(scores, dtype=float)
    rows, raters = scores.shape
    return Ratings(
        ids=tuple(ids or (f"c{row:03}" for row in range(rows))),
        systems=tuple(systems or ["x"] * rows),
        raters=tuple(f"r{rater}" for rater in range(raters)),
        scores=scores,
        scale=(1, 5),
    )


@pytest.fixture
def random_ratings():
    """Return 40 candidates of three raters, some of them missing."""
    rng = np.random.default_rng(3)
    truth = rng.integers(1, 6, size=(40, 1))
    scores = np.clip(truth + rng.integers(-1, 2, size=(40, 3)), 1, 5).astype(float)
    scores[rng.random(scores.shape) < 0.1] = NA
    return ratings_of(scores)


def test_pairs_are_scipys_on_the_candidates_that_both_rated(random_ratings):
    """A missing rating drops the candidate from the pair and is never a low one."""
    found = rater_agreement(random_ratings, resamples=50)
    assert [(pair.first, pair.second) for pair in found.pairs] == [
        ("r0", "r1"),
        ("r0", "r2"),
        ("r1", "r2"),
    ]
    for pair, places in zip(found.pairs, [(0, 1), (0, 2), (1, 2)], strict=True):
        both = random_ratings.scores[:, places]
        both = both[~np.isnan(both).any(axis=1)].T
        assert pair.correlations.n == both.shape[1]
        assert pair.correlations.tau_b.value == pytest.approx(kendalltau(*both)[0])
        assert pair.correlations.pearson.value == pytest.approx(pearsonr(*both)[0])
        assert pair.same == pytest.approx((both[0] == both[1]).mean())
    assert found.tau_b == pytest.approx(
        np.mean([pair.correlations.tau_b.value for pair in found.pairs])
    )
    assert found.missing == np.isnan(random_ratings.scores).sum()
    assert found.complete == (~np.isnan(random_ratings.scores).any(axis=1)).sum()


def test_one_rater_is_compared_with_the_others_without_them(random_ratings):
    """With themselves in the mean the ceiling would be too high."""
    found = rater_agreement(random_ratings, resamples=50)
    others = np.nanmean(random_ratings.scores[:, 1:], axis=1)
    own = random_ratings.scores[:, 0]
    both = ~np.isnan(own) & ~np.isnan(others)
    expected = kendalltau(own[both], others[both])[0]
    assert found.rest[0].correlations.tau_b.value == pytest.approx(expected)


def test_one_rater_alone_has_no_ceiling():
    """Nothing to agree with is undefined, neither 0 nor 1."""
    found = rater_agreement(ratings_of([[1], [2], [3]]), resamples=20)
    assert (found.pairs, found.rest, found.tau_b) == ((), (), None)
    assert found.icc.note == found.ordinal.note == "not estimable: one rater"


def test_raters_without_a_common_candidate_have_no_agreement():
    """The pair is there with its zero, so that nobody overlooks it."""
    found = rater_agreement(ratings_of([[1, NA], [2, NA], [NA, 3]]), resamples=20)
    [pair] = found.pairs
    assert (pair.correlations.n, pair.same) == (0, None)
    assert pair.correlations.tau_b.value is None
    assert found.tau_b is None


def test_patients_are_drawn_together():
    """The unit of a candidate is its patient where known, else its case."""
    assert unit_codes(("a", "b"), {"a": "p", "b": "p"}).tolist() == ["p", "p"]
    assert unit_codes(("a", "a"), None).tolist() == ["a", "a"]
    with pytest.raises(ValueError, match="no patient for case b"):
        unit_codes(("a", "b"), {"a": "p"})


def test_pairs_of_candidates_are_those_of_one_case():
    """Three systems make three pairs; a case with one candidate makes none."""
    given = ratings_of(
        [[5, 4], [3, 3], [1, 1], [2, NA], [4, 4], [4, 4], [1, 2], [2, 1]],
        ids=["a", "a", "a", "b", "c", "c", "d", "d"],
        systems=["x", "y", "z", "x", "x", "y", "x", "y"],
    )
    found = candidate_pairs(given, np.array(given.ids))
    assert found.rows.tolist() == [[0, 1], [0, 2], [1, 2], [4, 5], [6, 7]]
    assert found.unanimous.tolist() == [True, True, True, False, False]
    assert found.tied.tolist() == [False, False, False, True, False]
    assert found.consensus[0].tolist() == [4.5, 3]
    assert found.units.tolist() == ["a", "a", "a", "c", "d"]


def test_a_pair_is_compared_over_the_raters_who_saw_both():
    """Else a strict rater who saw only one candidate would decide against it."""
    given = ratings_of([[5, 1], [4, NA]], ids=["a", "a"], systems=["x", "y"])
    found = candidate_pairs(given, np.array(given.ids))
    assert found.consensus.tolist() == [[5, 4]]
    assert not found.unanimous[0]


def test_one_rater_is_never_unanimous():
    """Unanimity says that several agree."""
    given = ratings_of([[5], [4]], ids=["a", "a"], systems=["x", "y"])
    found = candidate_pairs(given, np.array(given.ids))
    assert not found.unanimous.any()
    assert not found.tied.any()


def test_cases_with_one_candidate_have_no_pairs():
    """Arrays of no length, with their shapes."""
    given = ratings_of([[5, 4], [3, 3]])
    found = candidate_pairs(given, np.array(given.ids))
    assert found.rows.shape == found.consensus.shape == (0, 2)


def test_who_was_not_rated_has_no_mean():
    """A zero would be the best mark for a count of errors, and nobody gave it."""
    found = mean_given(np.array([[np.nan, np.nan], [0.0, np.nan], [1.0, 4.0]]))
    assert np.isnan(found[0])
    assert found[1:].tolist() == [0.0, 2.5]


def test_twelve_dimensions_are_named_and_no_more(tmp_path):
    """A column of texts is no column of dimensions."""

    def several(count):
        rows = [f"a,x,ann,d{n:02},4" for n in range(count)]
        header = "id,system,rater,dimension,score"
        return write(tmp_path / f"{count}.csv", rows, header)

    with pytest.raises(DataError, match=r"'d10', 'd11'\.$"):
        read_ratings(several(12))
    with pytest.raises(DataError, match=r"'d10', 'd11' and others\.$"):
        read_ratings(several(13))
    chosen = read_ratings(several(13), dimension="d12")
    assert chosen.keys == (("a", "x"),)
    one = several(1)
    assert read_ratings(one).keys == read_ratings(one, dimension="d00").keys
    with pytest.raises(DataError, match="there is no dimension 'd01'"):
        read_ratings(one, dimension="d01")


def test_a_scale_that_the_file_does_not_name_is_as_observed(tmp_path):
    """Or as said; its ends are points that may be given."""
    path = write(tmp_path / "r.csv", ["a,x,ann,2", "b,x,ann,4", "c,x,ben,"])
    found = read_ratings(path)
    assert (found.scale, found.repeated, found.against) == ((2, 4), 0, "points")
    assert read_ratings(path, scale=(2, 4)).scale == (2, 4)
    for scale in ((2.5, 4), (2, 3.5)):
        with pytest.raises(DataError, match=r"off the scale of 2.* to"):
            read_ratings(path, scale=scale)
    named = write(tmp_path / "n.csv", ["a,x,ann,q,1,1-5", "b,x,ann,q,5,1-5"], SCALED)
    assert read_ratings(named).scale == (1, 5)
    blank = write(tmp_path / "b.csv", ["a,x,ann,q,1,", "b,x,ann,q,5,"], SCALED)
    assert read_ratings(blank, scale=(0, 9)).scale == (0, 9)


def test_a_blank_that_stands_twice_is_one_missing_rating(tmp_path):
    """Two blanks say the same; the first row is the one that is kept."""
    rows = ["a,x,ann,", "a,x,ann,", "a,x,ben,3", "a,x,ben,3.0", "a,x,ben,3"]
    found = read_ratings(write(tmp_path / "r.csv", rows))
    assert found.repeated == 3
    np.testing.assert_array_equal(found.scores, [[NA, 3]])


def points_of(points, scale):
    """Return points of two raters as labels hold them."""
    return RaterPoints(
        case_ids=("p1", "p2"),
        raters=("ann", "ben"),
        points=np.array(points),
        scale=scale,
    )


def test_points_of_a_cohort_are_those_of_the_statistics():
    """On their scale; counts of errors up to the most that was given, negated."""
    keys = [("a", "x"), ("b", "y")]
    given = points_of([[1.0, NA], [4.0, 5.0]], parse_scale("1-5"))
    found = as_ratings(given, keys)
    assert (found.keys, found.raters) == ((("a", "x"), ("b", "y")), ("ann", "ben"))
    assert (found.scale, found.against) == ((1, 5), "points")
    np.testing.assert_array_equal(found.scores, [[1, NA], [4, 5]])
    counted = as_ratings(replace(given, scale=parse_scale("counts")), keys)
    assert (counted.scale, counted.against) == ((-5, 0), "error counts, negated")
    np.testing.assert_array_equal(counted.scores, [[-1, NA], [-4, -5]])


def test_pairs_need_every_rater_to_be_unanimous_or_tied():
    """Three raters: alike, one against, one equal, one missing, all equal."""
    given = ratings_of(
        [
            [5, 4, 3],
            [4, 3, 2],
            [1, 2, 4],
            [4, 3, 2],
            [5, 4, 2],
            [4, 3, 2],
            [5, 4, NA],
            [4, 3, 2],
            [4, 3, 2],
            [4, 3, 2],
        ],
        ids=[f"c{n // 2}" for n in range(10)],
        systems=["x", "y"] * 5,
    )
    found = candidate_pairs(given, np.array(given.ids))
    assert found.unanimous.tolist() == [True, False, False, False, False]
    assert found.tied.tolist() == [False, False, False, False, True]
    np.testing.assert_array_equal(found.consensus[3], [4.5, 3.5])


def test_agreement_of_all_raters_is_of_the_same_points(random_ratings):
    """Alphas, ICC, and every rater with the rest; seed and level reach them all."""
    options = {"resamples": 40, "seed": 3, "confidence": 0.8}
    found = rater_agreement(random_ratings, **options)
    scores = random_ratings.scores
    assert found.ordinal == ordinal_alpha(scores, **options)
    assert found.interval == interval_alpha(scores, **options)
    assert found.icc == icc_agreement(scores, **options)
    assert found.candidates == 40
    assert [one.rater for one in found.rest] == ["r0", "r1", "r2"]
    taus = []
    for place in range(3):
        rest = mean_given(np.delete(scores, place, axis=1))
        both = ~np.isnan(scores[:, place]) & ~np.isnan(rest)
        taus.append(kendalltau(scores[both, place], rest[both])[0])
        tau = found.rest[place].correlations.tau_b.value
        assert tau == pytest.approx(taus[-1])
    assert found.tau_b_rest == pytest.approx(np.mean(taus))
    other = rater_agreement(random_ratings, **{**options, "confidence": 0.95})
    assert other.pairs[0].correlations.tau_b.low < found.pairs[0].correlations.tau_b.low


def test_the_mean_of_pairs_is_over_those_that_have_a_number():
    """Two raters share nothing; the two other pairs do."""
    points = [[1, 1, NA], [2, 3, NA], [3, 2, 1], [NA, 4, 2], [NA, 5, 4], [2, NA, NA]]
    found = rater_agreement(ratings_of(points), resamples=20)
    taus = [pair.correlations.tau_b.value for pair in found.pairs]
    assert taus[1] is None
    assert found.tau_b == pytest.approx((taus[0] + taus[2]) / 2)
    assert (found.complete, found.missing) == (1, 6)
    assert [pair.same for pair in found.pairs] == [1 / 3, 0.0, 0.0]
