"""YAML that we write reads back as what it was."""

import traceback

import pytest
from pydantic import BaseModel, ConfigDict

from loop.core.errors import DataError
from loop.core.yaml_files import check_model, dump_yaml, parse_yaml


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


class Strict(BaseModel):
    """A model that takes one number."""

    model_config = ConfigDict(extra="forbid")

    number: int


def test_neither_an_error_nor_its_cause_shows_what_a_file_holds():
    """A notebook prints causes too; keys and values may be texts."""
    given = {"number": "small zebra", "a zebra on the left": 1}
    with pytest.raises(DataError, match="number: Input should be") as refused:
        check_model(given, Strict, "file.yaml")
    assert "zebra" not in "".join(traceback.format_exception(refused.value))
    assert "(19 characters, not shown): there is no such field" in str(refused.value)
