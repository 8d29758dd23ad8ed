"""Scores of a judge's counts: formulas, empty pairs, and what is never guessed."""

import numpy as np
import pytest

from loop.core.errors import DataError
from loop.core.records import Status
from loop.judge.counts import (
    ERRORS,
    GREEN,
    OWN,
    SCORES,
    JudgeCounts,
    answer_fields,
    compare_own,
    find_score,
    read_counts,
    require_score,
    score_counts,
    scores_of,
    weighted_score,
)
from loop.prompts.outputs.base import get_contract
from loop.run.runner import ItemAnswer
from loop.score.experts.error_counts import Empty
from loop.score.metrics.base import Direction

# Matched, significant and insignificant errors; GREEN, GREEN-F1, Formula.
TABLE = (
    ((0, 0, 1), (None, None, 0)),
    ((0, 1, 0), (0, 0, 0)),
    ((1, 1, 0), (0.5, 2 / 3, 1 / 3)),
    ((3, 1, 2), (0.75, 6 / 7, 0.5)),
    ((5, 0, 3), (1, 1, 10 / 13)),
    ((10, 3, 2), (10 / 13, 20 / 23, 10 / 17)),
)


def counts(*rows, own=None):
    """Return the counts of pairs: matched, significant, insignificant."""
    table = np.array(rows, dtype=float)
    return JudgeCounts(
        categories=("omission",),
        significant=table[:, 1:2],
        insignificant=table[:, 2:3],
        matched=table[:, 0],
        statuses=(Status.ANSWERED,) * len(rows),
        numbers={} if own is None else {"score": np.array(own)},
    )


@pytest.mark.parametrize(("row", "wanted"), TABLE)
def test_published_values_of_the_formulas(row, wanted):
    """Without a policy, a form has no value where nothing it counts is there."""
    got = [score_counts(counts(row), one, Empty.SKIP)[0] for one in SCORES[:3]]
    assert got == pytest.approx(
        [np.nan if one is None else one for one in wanted], nan_ok=True
    )


@pytest.mark.parametrize(("empty", "value"), [(Empty.ONE, 1), (Empty.ZERO, 0)])
def test_the_policy_decides_for_empty_pairs_only(empty, value):
    """An insignificant error is nothing to GREEN, and something to Formula."""
    said = counts((0, 0, 0), (0, 0, 1), (1, 1, 0))
    assert score_counts(said, GREEN, empty).tolist() == [value, value, 0.5]
    formula = score_counts(said, SCORES[2], empty)
    assert formula.tolist() == pytest.approx([value, 0, 1 / 3])


def test_what_an_answer_does_not_say_is_not_without_errors():
    """No insignificant section: GREEN has a value, what counts them has none."""
    said = counts((0, 0, np.nan), (3, 1, np.nan), (np.nan, np.nan, np.nan))
    assert score_counts(said, GREEN, Empty.ONE)[:2].tolist() == [1, 0.75]
    assert np.isnan(score_counts(said, GREEN, Empty.ONE)[2])
    assert np.isnan(score_counts(said, SCORES[2], Empty.ONE)).all()
    assert np.isnan(score_counts(said, ERRORS, Empty.ONE)[2])


def test_the_unified_form_is_the_others():
    """(1, 1, 0) is GREEN, (2, 1, 0) GREEN-F1, (1, 2, 0.5) Formula."""
    said = counts(*(row for row, _ in TABLE))
    for one in SCORES[:3]:
        same = score_counts(said, weighted_score(one.weights), Empty.ONE)
        np.testing.assert_allclose(same, score_counts(said, one, Empty.ONE))
    assert ERRORS.direction is Direction.LOWER


@pytest.mark.parametrize("weights", [(1, 0, 1), (1, 1, 0), (1, 0, 0)])
def test_errors_may_weigh_nothing(weights):
    """Of one significant and one other error then only one counts, or none."""
    (value,) = score_counts(counts((1, 1, 1)), weighted_score(weights), Empty.ONE)
    assert value == 1 / sum(weights)


@pytest.mark.parametrize(
    "weights",
    [
        (0, 1, 1), (-1, 1, 1), (np.inf, 1, 1), (np.nan, 1, 1),
        (1, -1, 0), (1, np.inf, 0), (1, np.nan, 0),
        (1, 1, -1), (1, 1, np.inf), (1, 1, np.nan),
    ],
)  # fmt: skip
def test_weights_that_make_no_score_are_refused(weights):
    """Nothing could be read off the number."""
    with pytest.raises(ValueError, match="weights must be numbers from 0 on"):
        weighted_score(weights)


def test_own_scores_are_held_against_the_counts():
    """Only where both are there."""
    said = counts((1, 1, 0), (1, 0, 0), (1, 0, 0), own=[0.9, 1.0, np.nan])
    scored = get_contract("green_sections_scored")
    found = compare_own(said, scored, Empty.ONE)
    assert (found.pairs, found.largest) == (2, pytest.approx(0.4))
    assert found.mean_difference == pytest.approx(0.2)
    assert found.words.startswith("own score and GREEN of its counts differ by 0.200")
    nothing = compare_own(counts((1, 1, 0)), scored, Empty.ONE)
    assert (nothing.mean_difference, nothing.words) == (None, "")
    assert score_counts(said, OWN, Empty.ONE)[0] == 0.9


@pytest.mark.parametrize("name", ["green_formula", "green_formula_text"])
def test_a_computed_score_is_held_against_what_was_to_be_computed(name):
    """Of 1 match, 1 significant and 2 other errors the Formula is 0.25, GREEN 0.5."""
    said = counts((1, 1, 2), own=[0.25])
    found = compare_own(said, get_contract(name), Empty.ONE)
    assert found.largest == pytest.approx(0)
    assert found.words.startswith("own score and Formula of its counts differ by 0.000")
    assert found.data["form"] == "formula"


def test_answers_become_counts_by_field():
    """An unreadable answer is NaN throughout, and so is a pair nobody asked about."""
    contract = get_contract("error_list")
    names = answer_fields(("omission",), contract)
    errors = ("significant.omission", "insignificant.omission")
    assert names == (*errors, "matched", "score")
    said = read_counts(
        [
            ItemAnswer(Status.ANSWERED, (2, 1, 3, None)),
            ItemAnswer(Status.UNPARSED, (None,) * 4),
            None,
        ],
        ("omission",),
        contract,
    )
    assert said.triples[0].tolist() == [3, 2, 1]
    assert np.isnan(said.triples[1:]).all()
    assert said.statuses == (Status.ANSWERED, Status.UNPARSED, None)
    plain = answer_fields(("omission",), get_contract("error_list_unweighted"))
    assert plain[0] == "omission"


def test_errors_that_an_answer_leaves_out_are_unknown():
    """None are others where a judge never weighs; else silence is no zero."""
    answers = [ItemAnswer(Status.ANSWERED, (2, None, 3, None))]
    weighing = read_counts(answers, ("omission",), get_contract("error_list"))
    assert np.isnan(weighing.by_weight[0, 0, 1]) and weighing.by_weight[0, 0, 0] == 2
    unweighted = get_contract("error_list_unweighted")
    plain = read_counts(answers, ("omission",), unweighted)
    assert plain.by_weight.tolist() == [[[2, 0]]]


class Rating:
    """As a contract whose answers are one number, and count nothing."""

    counts_errors = weighs = counts_matches = False
    numbers = ("rating",)
    name = "rating"


def test_the_contract_decides_which_scores_there_are():
    """No GREEN without matches, and nothing of counts where there are none."""
    weighed, plain = (
        [one.name for one in scores_of(get_contract(name))]
        for name in ("green_sections", "error_list_unweighted")
    )
    assert weighed == ["green", "green_f1", "formula", "errors", "own"]
    assert plain == ["green", "green_f1", "errors", "own"]
    assert [one.name for one in scores_of(Rating)] == ["rating"]
    assert find_score("rating").best == 5 and find_score("line_sum").best == 0
    with pytest.raises(DataError, match="They have rating: name one of these as"):
        require_score(Rating, "green")


def test_a_judge_that_counts_nothing_has_no_errors_to_sum():
    """The sum over no category is unknown, and not the 0 of a perfect candidate."""
    assert answer_fields(("style",), Rating) == ("rating",)
    answers = [ItemAnswer(Status.ANSWERED, (4,)), None]
    said = read_counts(answers, ("style",), Rating)
    assert said.categories == () and np.isnan(said.triples).all()
    assert np.isnan(score_counts(said, ERRORS, Empty.ONE)).all()
    assert np.isnan(score_counts(said, GREEN, Empty.ONE)).all()
    found = score_counts(said, find_score("rating"), Empty.ONE)
    assert found[0] == 4 and np.isnan(found[1])
    assert said.by_weight.shape == (2, 0, 2) and np.isnan(said.own).all()
