"""Roles, rights, names, and the person at this machine."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.people.users import (
    GRANTS,
    PermissionRefused,
    Right,
    User,
    UserRole,
    check_name,
    find_look_alike,
    local_person,
    name_key,
)


def test_a_mere_reader_reaches_no_result():
    """Blinding: a reader who sees the model is no independent standard."""
    reader = User(name="r", roles=(UserRole.READER,))
    assert [right for right in Right if reader.may(right)] == [Right.READ]


def test_every_right_is_granted_by_some_role():
    """A right that nobody can have is a page that nobody can open."""
    assert set().union(*GRANTS.values()) == set(Right)


def test_an_editor_may_all_that_a_reviewer_may():
    """Roles that people think of as nested are nested."""
    assert GRANTS[UserRole.REVIEWER] < GRANTS[UserRole.EDITOR]


def test_who_manages_users_neither_judges_nor_revises():
    """Administration gives no say in the science."""
    admin = User(name="a", roles=(UserRole.ADMIN,))
    assert not any(map(admin.may, (Right.JUDGE, Right.REVISE, Right.APPROVE)))


def test_the_ledger_names_the_role_that_grants_the_right():
    """A reviewer who is also an approver approves as approver."""
    user = User(name="a", roles=(UserRole.APPROVER, UserRole.REVIEWER))
    assert user.actor(Right.APPROVE).role == "approver"
    assert user.actor(Right.JUDGE).role == "reviewer"


def test_refusal_says_which_role_it_takes():
    """What to do next: ask for that role."""
    user = User(name="Dr. A", roles=(UserRole.READER,))
    with pytest.raises(PermissionRefused, match=r"takes the role editor, and theirs"):
        user.actor(Right.REVISE)


def test_the_person_at_the_machine_may_everything():
    """Alone on a laptop nobody has to make accounts."""
    assert all(map(local_person("me").may, Right))


def test_a_user_shows_no_hash():
    """Records end up in logs and tracebacks."""
    user = User(name="a", roles=(UserRole.ADMIN,), password_hash="scrypt$secret")
    assert "secret" not in repr(user)


def test_a_user_has_a_role():
    """Nobody without a role could do anything, or be named in the ledger."""
    with pytest.raises(ValueError, match="needs a role"):
        User(name="a", roles=())


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


@pytest.mark.parametrize(
    "other",
    [
        "ann cole",
        "AnnCole",
        "Ann  Cole",
        "\N{CYRILLIC CAPITAL LETTER A}nn Cole",
        "Ann C\N{GREEK SMALL LETTER OMICRON}le",
        "Ann C0le",
        "\N{FULLWIDTH LATIN CAPITAL LETTER A}nn Cole",
        "Ann\N{ZERO WIDTH SPACE} Cole",
        "Ann\N{NO-BREAK SPACE}Cole",
        "Ann Co\N{LATIN CAPITAL LETTER I}e",
    ],
)
def test_names_that_look_alike_are_found(other):
    """Whoever reads a history takes them for one person."""
    assert find_look_alike(other, ["Bob", "Ann Cole"]) == "Ann Cole"


@pytest.mark.parametrize("other", ["Ann Cole", "Anna Cole", "Anne Cole", "Ann-Cole"])
def test_a_known_name_and_a_visible_difference_are_none(other):
    """The same person acts again; others may be called nearly the same."""
    assert find_look_alike(other, ["Bob", "Ann Cole"]) is None


@pytest.mark.parametrize("char", ["\U000e0000", "\U000e0100", "\U000f0000"])
def test_letters_that_nobody_sees_are_refused(char):
    """Tags, choices of a shape, and what everybody may use for anything."""
    with pytest.raises(ValueError, match="may not hold the character"):
        check_name(f"Ann{char}")
    assert find_look_alike(f"Ann{char}", ["Ann"]) == "Ann"


def test_names_that_are_one_by_their_letters_are_found_whatever_they_look_like():
    """A key of either kind that fits the other kind is enough."""
    for one, other in (("O0l1I", "00111"), ("ANN", "ann")):
        assert find_look_alike(one, [other]) == other
        assert find_look_alike(other, [one]) == one


def test_a_refusal_names_every_role_that_may_and_those_that_one_has():
    """In the order of the roles, however they were given."""
    user = User(name="Dr. A", roles=(UserRole.APPROVER, UserRole.READER))
    assert user.roles == (UserRole.READER, UserRole.APPROVER)
    with pytest.raises(PermissionRefused) as refused:
        user.actor(Right.ADJUDICATE)
    assert str(refused.value) == (
        "Dr. A may not do this: it takes the role reviewer or editor, and theirs is "
        "reader, approver. Ask whoever runs ranloop here for `ranloop user roles`."
    )
    local = local_person("me")
    assert (local.name, local.roles) == ("me", tuple(UserRole))
    assert (local.password_hash, local.disabled, local.created) == ("", False, "")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("é" * 65, "a name has 1 to 64 characters, not 65"),
        ("  ", "a name has 1 to 64 characters, not 0"),
        ("a<b/", r"may not hold the character U\+003C; use letters"),
        ("a\x07", r"may not hold the character U\+0007; use letters"),
        ("a  b", "may not hold two spaces in a row"),
        (". -_@", "needs a letter or a digit"),
        ("\u00bd", r"may not hold the character U\+00BD"),
    ],
)
def test_what_is_wrong_with_a_name_is_said(name, why):
    """The first character of all that may not be there; fractions are no digits."""
    with pytest.raises(ValueError, match=why):
        check_name(name)
