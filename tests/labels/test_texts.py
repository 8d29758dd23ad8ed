"""What a text says, whatever its script."""

import pytest

from loop.labels.texts import has_words


@pytest.mark.parametrize("text", ["7", "é", "肺", "a.", "Лёгкие"])
def test_one_letter_or_digit_is_a_word(text):
    """Of any script."""
    assert has_words(text)
