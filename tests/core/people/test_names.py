"""What a name may hold."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.people.users import check_name, name_key


@pytest.mark.parametrize(
    "name", ["dr_a", "Dr. Ayşe Kaya", "李医生", "a@b.org", "x", "é" * 64]
)
def test_ordinary_names_are_taken(name):
    """Accents and other scripts included."""
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "...",
        "a" * 65,
        "a  b",
        "a\x00",
        "\ta",
        "a\n",
        "a\x1b[31m",
        "a\u202eb",
        "a\u200bb",
        "a\u2066b",
        "a\u3164",
        "a<b>",
        "a/b",
        "a'b",
        "a\ud800",
        "\U000e0041a",
    ],
)
def test_names_that_could_deceive_are_refused(name):
    """Nothing that moves a cursor, turns text round, is unseen, or is markup."""
    with pytest.raises(ValueError, match=r"a name (has|may|needs)"):
        check_name(name)


def test_capitals_and_composition_make_no_other_person():
    """Two entries in a history must not differ by a keyboard's habits."""
    assert name_key("ZOË") == name_key("zoe\u0308") == name_key("Zoë")


@given(st.text(max_size=80))
def test_an_accepted_name_is_stable_and_shows_no_control_character(text):
    """Whatever comes in."""
    try:
        name = check_name(text)
    except ValueError:
        return
    assert check_name(name) == name
    assert not any(unicodedata.category(char)[0] == "C" for char in name)
    assert name_key(name_key(name)) == name_key(name)
