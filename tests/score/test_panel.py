"""Two extractors side by side: what changes in the ranking and in each case."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kendalltau

from loop.core.records import ValueCode
from loop.score.panel import panel
from loop.score.ran import score
from loop.score.records import Conventions, ExtractorFacts, Uncertain
from tests.score.graded_tables import graded

QUICK = {"resamples": 20, "permutations": 20}


def result(rates, seed=0, ref="one", **facts):
    """Score systems that err at the given rates."""
    rng = np.random.default_rng(seed)
    truth = (rng.random((40, 6)) < 0.4).astype(np.int8)
    told = [np.where(rng.random((40, 6)) < r, 1 - truth, truth) for r in rates]
    extractor = ExtractorFacts(ref=ref, digest="ab" * 32, engine="rules")
    table = graded(truth, told, extractor=extractor, **facts)
    return score(table, Conventions(), **QUICK)


def test_a_result_beside_itself_changes_nothing():
    """Every case equal, no gap, the same order."""
    one = result([0.05, 0.2, 0.4])
    found = panel(one, one)
    assert (found.tau, found.swapped) == (pytest.approx(1), ())
    for row in found.systems:
        assert (row.cases, row.equal, row.gap) == (40, 1.0, 0.0)
        assert row.tau == pytest.approx(1)
        assert (row.first, row.first_rank) == (row.second, row.second_rank)


def test_systems_that_change_places_are_named():
    """In the order of the first ranking, with both ranks."""
    found = panel(result([0.02, 0.1, 0.5]), result([0.5, 0.1, 0.02], ref="two"))
    assert [row.system for row in found.systems] == ["A", "B", "C"]
    assert [row.second_rank for row in found.systems] == [3, 2, 1]
    assert found.swapped == (("A", "B"), ("A", "C"), ("B", "C"))
    assert found.tau == pytest.approx(-1)
    assert (found.first.ref, found.second.ref) == ("one", "two")


def test_a_tie_on_one_side_is_no_change_of_places():
    """One extractor sees no difference; that is not the opposite order."""
    one = result([0.02, 0.5])
    tied = replace(
        one, systems=tuple(replace(system, rank=1) for system in one.systems)
    )
    assert panel(one, tied).swapped == ()


def test_the_cases_agree_as_scipy_says():
    """Tau and gap over the cases of one system, joined by id."""
    first, second = result([0.2]), result([0.2], seed=1)
    row = panel(first, second).systems[0]
    a, b = ([case.f1 for case in one.cases] for one in (first, second))
    assert row.tau == pytest.approx(kendalltau(a, b).statistic)
    assert row.gap == pytest.approx(np.abs(np.subtract(a, b)).mean())
    assert row.equal == pytest.approx(np.equal(a, b).mean())
    turned = replace(second, cases=second.cases[::-1])
    assert panel(first, turned).systems[0] == row


def test_cases_without_a_score_under_one_extractor_are_left_out_and_counted():
    """Nothing is compared with an answer that does not exist."""
    truth = np.array([[1, 0], [0, 1]], dtype=np.int8)
    silent = np.array(
        [[1, 0], [ValueCode.UNANSWERED, ValueCode.UNANSWERED]], dtype=np.int8
    )
    whole = score(graded(truth, truth), Conventions(), **QUICK)
    half = score(graded(truth, silent), Conventions(), **QUICK)
    row = panel(whole, half).systems[0]
    assert (row.cases, row.equal, row.gap, row.tau) == (1, 1.0, 0.0, None)


def test_one_system_has_no_order_to_agree_on():
    """None, not 1."""
    one = result([0.1])
    assert panel(one, one).tau is None


def test_other_systems_are_refused():
    """By name, not by position."""
    one = result([0.1, 0.2])
    with pytest.raises(ValueError, match="need the same systems"):
        panel(one, result([0.1, 0.2], systems=("A", "C")))


def test_other_labels_are_refused():
    """A mean over other labels is another score."""
    one = result([0.1])
    with pytest.raises(ValueError, match="need the same labels"):
        panel(one, result([0.1], labels=tuple("uvwxyz")))


def test_other_conventions_are_refused():
    """Then the extractor is not the only difference."""
    one = result([0.1])
    other = replace(one, conventions=Conventions(uncertain=Uncertain.ABSENT))
    with pytest.raises(ValueError, match="need the same conventions"):
        panel(one, other)
