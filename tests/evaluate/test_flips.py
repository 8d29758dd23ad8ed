"""Flip rates: cases that every draw answered, and how often the answers differ."""

import numpy as np
import pytest
from scipy.stats import binomtest

from loop.core.records import ValueCode
from loop.evaluate.flips import Stability, count_flips
from loop.evaluate.stability import describe_stability


def table(*rows):
    """Return answers of shape (cases, 1)."""
    return np.array(rows, dtype=np.int8).reshape(-1, 1)


def test_equal_draws_do_not_flip_and_the_limit_is_the_closed_form():
    """No flip in n cases: the upper limit is 1 - (alpha/2)^(1/n)."""
    (flips,) = count_flips([table(*[0] * 50)] * 3)
    assert (flips.flipped, flips.n, flips.rate, flips.disagreement) == (0, 50, 0.0, 0.0)
    assert flips.interval == pytest.approx((0.0, 1 - 0.025 ** (1 / 50)))


def test_uncertain_is_another_answer():
    """Present in one draw and uncertain in the next is not stable."""
    (flips,) = count_flips([table(1, 1), table(1, -1)])
    assert (flips.flipped, flips.disagreement) == (1, 0.5)


@pytest.mark.parametrize(
    "missing", [ValueCode.UNPARSED, ValueCode.FAILED, ValueCode.NOT_ASKED]
)
def test_a_missing_answer_is_no_flip(missing):
    """Such a case is left out of the denominator."""
    (flips,) = count_flips([table(1, 0), table(missing, 0)])
    assert (flips.flipped, flips.n) == (0, 1)


def test_the_flip_rate_grows_with_the_draws_and_the_disagreement_does_not():
    """A coin: half of the pairs differ, and almost every case flips in many draws."""
    rng = np.random.default_rng(0)
    draws = [rng.integers(0, 2, size=(4000, 1)).astype(np.int8) for _ in range(8)]
    (two,), (eight,) = count_flips(draws[:2]), count_flips(draws)
    assert two.rate == pytest.approx(0.5, abs=0.03)
    assert eight.rate == pytest.approx(1 - 2 / 2**8, abs=0.01)
    assert two.disagreement == pytest.approx(0.5, abs=0.03)
    assert eight.disagreement == pytest.approx(0.5, abs=0.02)


def test_the_order_of_the_draws_does_not_matter():
    """Flips are a property of the set of draws."""
    draws = [table(0, 1, -1), table(0, 0, -1), table(1, 1, -1)]
    assert count_flips(draws) == count_flips(draws[::-1])


def test_no_case_makes_no_claim():
    """The interval is everything and there is no rate."""
    (flips,) = count_flips([table(), table()])
    assert (flips.rate, flips.disagreement, flips.interval) == (None, None, (0.0, 1.0))


def test_one_draw_shows_nothing():
    """Stability needs something to compare with."""
    with pytest.raises(ValueError, match="got 1"):
        count_flips([table(1)])


@pytest.mark.parametrize("value", [0, 1, -1])
def test_every_value_agrees_with_itself(value):
    """Uncertain in every draw is as stable as present."""
    (flips,) = count_flips([table(value, 0)] * 3)
    assert (flips.flipped, flips.n, flips.disagreement) == (0, 2, 0.0)


def stability(**others):
    """Return three draws of a run that was left to chance."""
    fields = {
        "runs": ("a", "b", "c"),
        "labels": (),
        "partly": 0,
        "same_words": 0,
        "temperature": 0.7,
        "chance": True,
        "spaced": False,
        **others,
    }
    return Stability(**fields)


ASKED = (
    "Asked 3 times at temperature {}, each with a seed of its own: runs a, b, c. A "
    "flip is a case whose answers are not all the same."
)
SPACED = (
    " Each further draw asked the same words with one more blank line between "
    "paragraphs, so flips show how far an answer hangs on chance and on the form of "
    "the prompt."
)
SAME = (
    " 7 cases were answered in the same words every time; if that is nearly all, the "
    "server may ignore the seed, and the absence of flips shows nothing."
)
NO_CHANCE = (
    " Nothing was left to chance (temperature 0, or an engine without chance): flips "
    "show what the server does not repeat, not how sure the model is."
)
PARTLY = " 2 cases were answered in some of the runs only and are not counted."


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ({}, ASKED.format(0.7)),
        ({"partly": 2}, ASKED.format(0.7) + PARTLY),
        ({"spaced": True}, ASKED.format(0.7) + SPACED),
        ({"same_words": 7}, ASKED.format(0.7) + SAME),
        ({"temperature": 0.0, "chance": False}, ASKED.format(0) + NO_CHANCE),
        (
            {"temperature": 0.0, "chance": False, "same_words": 7},
            ASKED.format(0) + NO_CHANCE,
        ),
        ({"chance": False, "spaced": True}, ASKED.format(0.7) + SPACED),
        (
            {"partly": 2, "spaced": True, "same_words": 7},
            ASKED.format(0.7) + PARTLY + SPACED + SAME,
        ),
    ],
)
def test_what_flips_mean_is_said_with_what_they_do_not(others, said):
    """Words that never differ are told only where chance was asked for."""
    assert describe_stability(stability(**others)) == said


def test_flips_of_three_draws_by_hand():
    """Of four cases one differs in one draw, one in all; the last is not whole.

    Two of three pairs differ in the first, three of three in the second.
    """
    draws = [
        np.array([[1, 0], [1, 0], [0, 0], [0, 0]], dtype=np.int8),
        np.array([[1, 0], [0, 0], [0, 0], [0, 0]], dtype=np.int8),
        np.array([[0, 0], [-1, 0], [0, 0], [ValueCode.FAILED, 1]], dtype=np.int8),
    ]
    first, second = count_flips(draws, confidence=0.9)
    assert (first.n, first.flipped, first.rate) == (3, 2, 2 / 3)
    assert first.disagreement == pytest.approx((2 / 3 + 1 + 0) / 3)
    exact = binomtest(2, 3).proportion_ci(0.9, "exact")
    assert list(first.interval) == pytest.approx([exact.low, exact.high])
    assert (second.n, second.flipped) == (4, 1)
    assert second.disagreement == pytest.approx(2 / 3 / 4)
