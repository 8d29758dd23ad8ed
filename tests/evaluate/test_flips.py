"""Flip rates: cases that every draw answered, and how often the answers differ."""

import numpy as np
import pytest

from loop.core.records import ValueCode
from loop.evaluate.flips import count_flips


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
