"""YAML that we write reads back as what it was."""

import pytest

from loop.core.yaml_files import dump_yaml, parse_yaml


@pytest.mark.parametrize(
    "word",
    ["1.5e5", "-0.5E3", "1.5", "12", "007", "true", "null", "~", "12:30", "0x1F"],
)
def test_a_word_that_looks_like_a_number_stays_a_word(word):
    """A term such as 1.5e5 must not come back as 150000.0."""
    assert parse_yaml(dump_yaml([word]), "test") == [word]


@pytest.mark.parametrize("number", [1.5, 150000.0, -0.5, 1e-7, 3])
def test_a_number_stays_a_number(number):
    """Thresholds of a protocol are numbers."""
    assert parse_yaml(dump_yaml([number]), "test") == [number]
