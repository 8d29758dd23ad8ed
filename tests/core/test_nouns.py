"""Numbers with their nouns, of which one alone has another form."""

import pytest

from loop.core.nouns import counted


@pytest.mark.parametrize(
    ("number", "many", "said"),
    [
        (0, "", "0 cases"),
        (1, "", "1 case"),
        (1, "kinds of case", "1 case"),
        (2, "kinds of case", "2 kinds of case"),
        (1_234_567, "", "1,234,567 cases"),
        (None, "", ""),
    ],
)
def test_a_number_is_told_with_its_noun(number, many, said):
    """An unknown number gives no text; zero is a known one."""
    assert counted(number, "case", many) == said
