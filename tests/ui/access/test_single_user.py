"""Who works alone at this machine, and when people have to sign in."""

import pytest

from loop.core.errors import LoopError
from loop.core.people.users import User, UserRole
from loop.ui.access.hosts import Hosts
from loop.ui.access.single_user import find_single_user

ANN, BEN, GONE = (
    User(name=name, roles=(UserRole.REVIEWER,), disabled=name == "Gone")
    for name in ("Ann", "Ben", "Gone")
)
HERE, OPEN = Hosts(bound="127.0.0.1"), Hosts(bound="0.0.0.0")


@pytest.mark.parametrize("sign_in", [None, False])
@pytest.mark.parametrize(
    ("users", "name", "roles"),
    [
        ([], "me", tuple(UserRole)),
        ([ANN], "Ann", (UserRole.REVIEWER,)),
        ([ANN, GONE], "Ann", (UserRole.REVIEWER,)),
    ],
)
def test_who_is_alone_need_not_sign_in(users, name, roles, sign_in):
    """With the rights that this one user has, and no more."""
    found = find_single_user(users, HERE, "me", sign_in=sign_in)
    assert (found.name, found.roles) == (name, roles)


@pytest.mark.parametrize(
    ("users", "hosts", "sign_in"),
    [
        ([ANN], HERE, True),
        ([ANN, BEN], HERE, None),
        ([ANN, BEN], HERE, True),
        ([ANN], OPEN, None),
        ([ANN, BEN, GONE], OPEN, True),
    ],
)
def test_everybody_else_signs_in(users, hosts, sign_in):
    """Where there are two, where others can reach the server, or where it is wanted."""
    assert find_single_user(users, hosts, "me", sign_in=sign_in) is None


@pytest.mark.parametrize(
    ("users", "hosts", "why"),
    [
        ([ANN, BEN], HERE, "there are 2 users who can sign in"),
        ([ANN, BEN, GONE], HERE, "there are 2 users who can sign in"),
        ([GONE], HERE, "there are 0 users who can sign in"),
        ([], OPEN, "other machines can reach 0.0.0.0"),
        ([ANN], OPEN, "other machines can reach 0.0.0.0"),
    ],
)
def test_sign_in_is_not_left_out_where_it_is_needed(users, hosts, why):
    """Nobody is let in as somebody else."""
    with pytest.raises(LoopError) as refused:
        find_single_user(users, hosts, "me", sign_in=False)
    said = f"sign-in cannot be left out: {why}. Start it with sign-in."
    assert str(refused.value) == said


@pytest.mark.parametrize(
    ("users", "hosts", "sign_in", "start", "way"),
    [
        ([], HERE, True, "there are no users: nobody could sign in. Add", "user add"),
        ([], OPEN, None, "there are no users: nobody could sign in. Other", "user add"),
        ([GONE], HERE, None, "all users are disabled: nobody could sign in. Let", "en"),
        ([GONE], OPEN, True, "all users are disabled: nobody could sign in. Oth", "en"),
    ],
)
def test_a_server_that_nobody_could_enter_does_not_start(
    users, hosts, sign_in, start, way
):
    """It says how somebody can."""
    with pytest.raises(LoopError) as refused:
        find_single_user(users, hosts, "me", sign_in=sign_in)
    assert str(refused.value).startswith(start)
    assert f"ranloop user {way.removeprefix('user ')}" in str(refused.value)
    assert ("Other machines can reach 0.0.0.0." in str(refused.value)) is (
        hosts is OPEN
    )
