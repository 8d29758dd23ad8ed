"""Text that is safe to show: no cell runs, nothing acts on a terminal or hides."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.safe_text import (
    exposed,
    format_csv,
    printable,
    quoted,
    shielded,
    unshielded,
)


@given(st.text(alphabet="=+-@' \t\r\nab", max_size=8))
def test_a_cell_comes_back_as_it_was(text):
    """Ids are joined on what was written before."""
    assert unshielded(shielded(text)) == text


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@sum", "\t=1", " =1", "'=1"])
def test_what_a_spreadsheet_would_run_gets_an_apostrophe(text):
    """Case ids and system names come from outside."""
    assert shielded(text) == f"'{text}"


@given(st.text(max_size=40))
def test_what_is_printable_shows_no_control_character(text):
    """Nor turns the direction of what follows; lines and tabs stay."""
    shown = printable(text)
    for char in shown:
        hidden = unicodedata.category(char) == "Cc" and char not in "\t\n"
        assert not hidden and not "\u202a" <= char <= "\u202e"
        assert not "\u2066" <= char <= "\u2069"
    assert printable(shown) == shown
    if text.isprintable():
        assert shown == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x00\x1b\x7f\x9f", "\\x00\\x1b\\x7f\\x9f"),
        ("\r\n\t", "\\x0d\n\t"),
        ("\u202a\u202e\u2066\u2069", "\\u202a\\u202e\\u2066\\u2069"),
        (
            "\u2029\u202f\u2065\u206a\u00a0\u00ad",
            "\u2029\u202f\u2065\u206a\u00a0\u00ad",
        ),
    ],
)
def test_each_control_character_is_spelled_out(text, shown):
    """At both ends of their ranges, and nothing beside them."""
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\r\nb\rc", "a\nb\\x0dc"),
        ("a" + " " * 80 + "b", "a" + " " * 80 + "b"),
        ("a" + " " * 81 + "b", "a(81 characters of white space)b"),
        ("a" + "\n" * 1000, "a(1,000 characters of white space)"),
        (
            "\u200b\u200f\u2060\ufeff\ue000\uf8ff",
            "\\u200b\\u200f\\u2060\\ufeff\\ue000\\uf8ff",
        ),
        ("\u2028", "\\u2028"),
        ("肺é", "肺é"),
    ],
)
def test_what_is_exposed_is_seen_as_it_is(text, shown):
    """White space that would push the rest out of sight is counted."""
    assert exposed(text) == shown


@pytest.mark.parametrize(
    ("given_", "shown"),
    [
        ("", "''"),
        ("a" * 64, repr("a" * 64)),
        ("a" * 65, "(65 characters, not shown)"),
        ("a" * 1000, "(1,000 characters, not shown)"),
        ("A.9_:@/+*~-", "'A.9_:@/+*~-'"),
        (";", "';'"),
        ("'", '"\'"'),
        ("a;", "(2 characters, not shown)"),
        ("a b", "(3 characters, not shown)"),
        (" ", "(1 characters, not shown)"),
        ("肺", "(1 characters, not shown)"),
        ("a\n", "(2 characters, not shown)"),
        (None, "None"),
        (3, "3"),
        (2.5, "2.5"),
        (True, "True"),
        ({"a": "text"}, "(a dict, not shown)"),
        (b"text", "(a bytes, not shown)"),
    ],
)
def test_a_message_quotes_words_and_no_texts(given_, shown):
    """A column may hold reports where ids were expected."""
    assert quoted(given_) == shown


@pytest.mark.parametrize("text", ["", "a", "no change", "'s", "1=1", "''", "é="])
def test_what_no_spreadsheet_runs_stays_as_it_is(text):
    """An apostrophe more would be seen."""
    assert shielded(text) == unshielded(text) == text


def test_a_table_may_have_no_header_and_other_ends_of_lines():
    """What is pinned by its bytes ends in LF alone."""
    assert format_csv(["a", "b"], [[1, "x,y"], [None, 'q"']]) == (
        'a,b\r\n1,"x,y"\r\n,"q"""\r\n'
    )
    assert format_csv([], [["a"]], end="\n") == "a\n"
    assert format_csv([], []) == ""


def test_what_is_beside_the_shapeless_is_left_alone():
    """A hair space and a hyphen have their width, and an ideograph its shape."""
    text = "\u200a\u2010\u205f\u2065\ufefe\uf900\u00ac\u00ae\u061b"
    assert exposed(text) == text
    assert exposed("\u200c\u2029\u2064\u180e\u061c\u00ad") == (
        "\\u200c\\u2029\\u2064\\u180e\\u061c\\u00ad"
    )
