"""No cell runs as a formula, and every one can be had back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.safe_text import shielded, unshielded


@given(st.text(alphabet="=+-@' \t\r\nab", max_size=8))
def test_a_cell_comes_back_as_it_was(text):
    """Ids are joined on what was written before."""
    assert unshielded(shielded(text)) == text


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@sum", "\t=1", " =1", "'=1"])
def test_what_a_spreadsheet_would_run_gets_an_apostrophe(text):
    """Case ids and system names come from outside."""
    assert shielded(text) == f"'{text}"
