"""Printed numbers: rounded once, never NaN, never a zero that is none."""

import doctest

from loop.documents import numbers, templates
from loop.evaluate import documents as evaluation_text


def test_examples_in_the_docstrings_hold():
    """The docstrings show what is printed."""
    for module in (numbers, templates, evaluation_text):
        assert doctest.testmod(module).failed == 0


def test_small_p_values_are_not_zero():
    """A printed 0.000 would claim certainty."""
    assert numbers.p_value(1e-12) == "< 0.001"
    assert numbers.p_value(0.001) == "0.001"


def test_long_lists_say_what_they_leave_out():
    """A list cut without saying so would be a silent loss."""
    assert numbers.listed("abc", most=2) == "a, b and 1 more"
    assert numbers.listed("ab", most=2) == "a, b"
