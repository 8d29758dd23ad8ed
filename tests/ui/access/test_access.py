"""Who is who, and when nobody need sign in."""

import json
from types import SimpleNamespace

import pytest
from starlette.requests import Request

from loop.core.errors import DataError, LoopError
from loop.core.people.passwords import Cost, fits
from loop.core.people.roster import (
    add_user,
    disable_user,
    read_users,
    set_password,
    set_roles,
    users_path,
)
from loop.core.people.sign_ins import sign_ins_path
from loop.core.people.users import PermissionRefused, Right, SignInRequired, UserRole
from loop.ui.access.access import Access
from loop.ui.access.sessions import session_id
from tests.ui.access.served import GOOD


def request_with(token, port=80):
    """Return a request that carries a session's token."""
    cookie = f"ranloop-{port}={token}".encode()
    return Request(
        {
            "type": "http",
            "method": "GET",
            "path": "/",
            "scheme": "http",
            "server": ("127.0.0.1", port),
            "headers": [(b"cookie", cookie)],
        }
    )


def alone(workspace, **more):
    """Return the access for a server that only this machine can reach."""
    return Access.open(workspace, host="127.0.0.1", local="me", **more)


def test_without_users_the_person_at_the_machine_may_everything(workspace):
    """Nobody has to make an account to try it."""
    access = alone(workspace)
    assert access.sign_in is False
    user = access.user_of(request_with(""))
    assert user.name == "me"
    assert all(map(user.may, Right))
    assert access.who(request_with("")) == "me"


def test_the_one_user_is_who_works_here(users):
    """With their own roles; those who are disabled do not count."""
    for role in UserRole:
        if role is not UserRole.ADMIN:
            disable_user(users, role.value)
    access = alone(users)
    assert access.sign_in is False
    assert access.user_of(request_with("")).name == "admin"
    with pytest.raises(PermissionRefused, match="takes the role editor"):
        access.require(request_with(""), Right.REVISE)


def test_several_users_sign_in_even_here(users):
    """Else nobody knows who it was."""
    assert alone(users).sign_in is True


def test_sign_in_can_be_asked_for(users):
    """Others may have an account on this machine."""
    for role in UserRole:
        if role is not UserRole.ADMIN:
            disable_user(users, role.value)
    assert alone(users, sign_in=True).sign_in is True


@pytest.mark.parametrize(
    ("host", "names"),
    [("0.0.0.0", ()), ("10.0.0.1", ()), ("127.0.0.1", ("ranloop.example",))],
)
def test_nobody_serves_others_without_users(workspace, host, names):
    """The refusal says how to add the first."""
    with pytest.raises(LoopError, match="`ranloop user add NAME --role admin`"):
        Access.open(workspace, host=host, local="me", names=names)


def test_sign_in_without_users_is_refused(workspace):
    """There would be nobody to sign in."""
    with pytest.raises(LoopError, match="ranloop user add"):
        alone(workspace, sign_in=True)


def test_a_workspace_whose_users_are_all_disabled_is_nobodys(users):
    """Disabling the last one must not open the door to whoever is there."""
    text = users_path(users).read_text("utf-8")
    users_path(users).write_text(text.replace("disabled: false", "disabled: true"))
    with pytest.raises(LoopError, match="ranloop user enable"):
        alone(users)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_sign_in_cannot_be_left_out_where_it_is_needed(users, host):
    """Several people, or other machines."""
    with pytest.raises(LoopError, match="sign-in cannot be left out"):
        Access.open(users, host=host, local="me", sign_in=False)


def test_a_broken_file_stops_the_server_from_starting(users):
    """It does not mean that there are no users."""
    users_path(users).write_text("users: [", "utf-8")
    with pytest.raises(DataError):
        alone(users)


def test_a_user_added_meanwhile_ends_working_alone(workspace):
    """What is done from then on must have a name."""
    access = alone(workspace)
    add_user(workspace, "ann", (UserRole.ADMIN,), GOOD)
    with pytest.raises(SignInRequired):
        access.user_of(request_with(""))
    assert access.who(request_with("")) is None
    assert access.sign_in is access.no_longer_alone is True
    token = access.enter("ann", GOOD, "").token
    assert access.user_of(request_with(token)).name == "ann"


@pytest.mark.parametrize(
    "said",
    ["version: 1\nusers: []\n", None],
    ids=["nobody is left", "all are disabled"],
)
def test_whatever_becomes_of_the_users_the_one_does_not_work_on(workspace, said):
    """What was decided is not taken back: who is there may be somebody else."""
    add_user(workspace, "ann", (UserRole.ADMIN,), GOOD)
    access, path = alone(workspace), users_path(workspace)
    assert access.user_of(request_with("")).name == "ann"
    whole = path.read_text("utf-8")
    disabled = whole.replace("disabled: false", "disabled: true")
    path.write_text(said or disabled, "utf-8")
    assert access.who(request_with("")) is None
    path.write_text(whole, "utf-8")
    assert access.who(request_with("")) is None
    assert access.sign_in is True


def test_while_the_users_cannot_be_read_nobody_works_alone(workspace):
    """A file that is being written by hand is no decision either."""
    add_user(workspace, "ann", (UserRole.ADMIN,), GOOD)
    access, path = alone(workspace), users_path(workspace)
    whole = path.read_text("utf-8")
    path.write_text("users: [", "utf-8")
    assert access.who(request_with("")) is None
    path.write_text(whole, "utf-8")
    assert access.who(request_with("")) == "ann"


def test_roles_are_those_of_the_moment(access, users):
    """A role given or taken counts at the next request."""
    token = access.enter("reviewer", GOOD, "").token
    request = request_with(token)
    assert access.require(request, Right.JUDGE).name == "reviewer"
    set_roles(users, "reviewer", (UserRole.READER,))
    with pytest.raises(PermissionRefused, match="theirs is reader"):
        access.require(request, Right.JUDGE)


@pytest.mark.parametrize(
    "change",
    [disable_user, lambda w, name: set_password(w, name, "another horse, please")],
)
def test_a_session_ends_with_what_let_its_user_in(access, users, change):
    """At the next request, and for good."""
    token = access.enter("reader", GOOD, "").token
    assert access.who(request_with(token)) == "reader"
    change(users, "reader")
    with pytest.raises(SignInRequired, match="Sign in again"):
        access.user_of(request_with(token))


def test_a_removed_user_has_no_session(access, users):
    """Taken out of the file by hand."""
    token = access.enter("reader", GOOD, "").token
    users_path(users).write_text("version: 1\nusers: []\n", "utf-8")
    with pytest.raises(SignInRequired):
        access.user_of(request_with(token))


def test_nobody_has_a_session_while_the_file_is_broken(access, users):
    """And everybody has again once it is repaired."""
    token = access.enter("reader", GOOD, "").token
    whole = users_path(users).read_bytes()
    users_path(users).write_bytes(whole[:-60])
    with pytest.raises(DataError):
        access.user_of(request_with(token))
    assert access.who(request_with(token)) is None
    users_path(users).write_bytes(whole)
    assert access.who(request_with(token)) == "reader"


@pytest.mark.parametrize("name", ["reader", "nobody", "", "\x00\ud800", "x" * 9000])
def test_wrong_is_wrong_whatever_is_wrong(access, name):
    """No hint which names exist."""
    assert access.enter(name, "wrong password", "1.1.1.1") == ("", 0)


def test_a_disabled_user_is_told_what_anybody_is(access, users):
    """The right password included."""
    disable_user(users, "reader")
    assert access.enter("reader", GOOD, "") == ("", 0)


def test_the_fifth_failure_locks_even_the_right_password_out(access, time):
    """For thirty seconds."""
    told = [access.enter("reader", "wrong", "1.1.1.1").wait_s for _ in range(5)]
    assert told == [0, 0, 0, 0, 30]
    assert access.enter("reader", GOOD, "2.2.2.2") == ("", 30)
    time.pass_s(30)
    assert access.enter("reader", GOOD, "2.2.2.2").token


def test_the_right_password_after_the_wait_works_for_good(access, time):
    """Today's colleague, and whoever comes next from the same address."""
    for n in range(20):
        access.enter(f"user {n}", "wrong", "1.1.1.1")
    assert access.enter("reader", GOOD, "1.1.1.1") == ("", 30)
    time.pass_s(30)
    for name in ("reader", "reader", "editor"):
        entrance = access.enter(name, GOOD, "1.1.1.1")
        assert entrance.token
        access.leave(entrance.token, "1.1.1.1")


def test_the_log_names_known_users_only(access, users):
    """A password typed into the wrong field must not be kept."""
    access.enter("my secret password", "", "1.1.1.1")
    access.enter("READER", "wrong", "1.1.1.1")
    token = access.enter("reader", GOOD, "1.1.1.1").token
    access.leave(token, "1.1.1.1")
    text = sign_ins_path(users).read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    assert [(row["name"], row["result"]) for row in rows] == [
        ("", "wrong"),
        ("reader", "wrong"),
        ("reader", "signed in"),
        ("reader", "signed out"),
    ]
    assert token not in text
    assert GOOD not in text


def test_a_log_that_cannot_be_written_shuts_nobody_out(access, users, caplog):
    """It is said in the server's own log, without a name."""
    sign_ins_path(users).mkdir()
    assert access.enter("reader", GOOD, "1.1.1.1").token
    assert "log of sign-ins is incomplete" in caplog.text


def test_an_old_hash_is_renewed_by_signing_in(access, users, monkeypatch):
    """And the session opened with it goes on."""
    monkeypatch.setattr("loop.core.people.passwords.COST", Cost(2**5, 1, 1))
    token = access.enter("reader", GOOD, "").token
    kept = read_users(users)[0].password_hash
    assert kept.startswith("scrypt$32$")
    assert fits(GOOD, kept)
    assert access.who(request_with(token)) == "reader"


def test_an_old_hash_that_cannot_be_renewed_lets_in(access, users, monkeypatch):
    """A workspace that can only be read can still be looked at."""
    monkeypatch.setattr("loop.core.people.passwords.COST", Cost(2**5, 1, 1))
    lock = users.private / ".users.lock"
    lock.unlink()
    lock.mkdir()
    assert access.enter("reader", GOOD, "").token


def test_a_token_of_another_port_is_none(access):
    """Browsers do not keep the ports of a host apart; the cookie's name does."""
    token = access.enter("reader", GOOD, "").token
    assert access.who(request_with(token, port=80)) == "reader"
    request = request_with(token, port=80)
    request.scope["server"] = ("127.0.0.1", 81)
    assert access.who(request) is None


def test_who_works_alone_has_one_session_that_stays_open(workspace):
    """What is uploaded there waits for it, whatever cookie a browser sends."""
    access = alone(workspace)
    assert access.session_id(request_with("")) == "alone"
    assert access.session_id(request_with("x" * 43)) == "alone"
    assert access.open_sessions() == frozenset({"alone"})


def test_whoever_signs_in_has_a_session_of_their_own(access, users):
    """Known by an id that is not its token, until it ends."""
    first = access.enter("reader", GOOD, "").token
    second = access.enter("editor", GOOD, "").token
    ids = [access.session_id(request_with(one)) for one in (first, second)]
    assert ids == [session_id(first), session_id(second)]
    # Gradio hands its own object to the functions of a page, with the request in it.
    inside = SimpleNamespace(request=request_with(first))
    assert access.session_id(inside) == ids[0]
    assert access.user_of(inside).name == "reader"
    assert access.open_sessions() == frozenset(ids)
    access.leave(first, "")
    assert access.open_sessions() == frozenset(ids[1:])
    disable_user(users, "editor")
    assert access.open_sessions() == frozenset()
