"""The verb ``user`` on the command line."""

import json
import os
import pty
import select
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from loop.cli import user as verb
from loop.core.errors import DataError
from loop.core.people import passwords
from loop.core.people.passwords import Cost, fits
from loop.core.people.roster import read_users, users_path
from loop.core.people.users import User, UserRole

GOOD = "correct horse battery"


@pytest.fixture
def call(workspace, monkeypatch):
    """Return a function that runs the verb with some stdin, and returns the result."""
    monkeypatch.setattr(passwords, "COST", Cost(n=2**4, r=1, p=1))
    app = typer.Typer()
    app.callback()(lambda: None)
    verb.register(app)

    def call(*arguments, stdin=f"{GOOD}\n", ok=True):
        command = ["user", *arguments, "-w", str(workspace.root)]
        result = CliRunner().invoke(app, command, input=stdin)
        if ok:
            assert result.exit_code == 0, result.output
        return result

    return call


def add(call, name="ann", *more):
    """Add a user whose password comes from stdin."""
    return call("add", name, "--role", "admin", "--password-stdin", *more)


def test_a_user_is_added_listed_changed_and_shut_out(call, workspace):
    """The life of an account."""
    add(call)
    call("add", "Zoë", "--role", "reader", "--role", "editor", "--password-stdin")
    call("roles", "zoë", "--role", "reviewer")
    call("disable", "Zoë")
    listed = call("list").stdout
    assert [line.split() for line in listed.splitlines()[2:]] == [
        ["ann", "admin", "enabled", read_users(workspace)[0].created[:10]],
        ["Zoë", "reviewer", "disabled", read_users(workspace)[1].created[:10]],
    ]
    call("enable", "Zoë")
    call("password", "Zoë", "--password-stdin", stdin="another horse, please\r\n")
    assert fits("another horse, please", read_users(workspace)[1].password_hash)


@pytest.mark.parametrize(
    "arguments",
    [
        ("roles", "ann", "--role", "admin"),
        ("password", "ann", "--password-stdin"),
        ("enable", "ann"),
    ],
)
def test_every_change_prints_one_object_with_json(call, arguments):
    """And never a password or its hash."""
    added = json.loads(add(call, "ann", "--json").stdout)
    printed = json.loads(call(*arguments, "--json").stdout)
    assert printed == added
    assert set(printed) == {"name", "roles", "disabled", "created"}


def test_the_list_is_one_object_with_json(call):
    """Also without users."""
    assert json.loads(call("list", "--json").stdout) == {"users": []}
    add(call)
    (row,) = json.loads(call("list", "--json").stdout)["users"]
    assert row["roles"] == ["admin"]


def test_an_empty_list_says_how_to_begin(call):
    """A newcomer's first question."""
    assert "ranloop user add NAME --role admin" in call("list").stdout


def test_no_option_takes_a_password(call):
    """It would stay in the shell's history and in the list of processes."""
    result = call("add", "ann", "--role", "admin", "--password", GOOD, ok=False)
    assert result.exit_code == 2


def test_a_role_is_needed(call):
    """There is no role that suits everybody."""
    assert call("add", "ann", "--password-stdin", ok=False).exit_code == 2


def test_an_unknown_role_names_those_there_are(call, workspace):
    """Before a password is asked for."""
    result = call("add", "ann", "--role", "boss", ok=False)
    assert isinstance(result.exception, DataError)
    assert "reader, reviewer, editor, approver, admin" in str(result.exception)
    assert not users_path(workspace).exists()


@pytest.mark.parametrize(("stdin", "why"), [("", "no password"), ("short\n", "12 to")])
def test_what_is_no_password_is_refused(call, workspace, stdin, why):
    """Nothing is written then."""
    result = call(
        "add", "ann", "--role", "admin", "--password-stdin", stdin=stdin, ok=False
    )
    assert why in str(result.exception)
    assert not users_path(workspace).exists()


def test_without_a_terminal_the_way_out_is_named(call):
    """A script that forgot the option must not hang."""
    result = call("add", "ann", "--role", "admin", ok=False)
    assert "--password-stdin" in str(result.exception)


def test_who_only_reads_is_told_so(call):
    """A radiologist given this role by mistake would look for the results."""
    result = call("add", "ann", "--role", "reader", "--password-stdin")
    assert "text of cases only" in result.stderr


@pytest.mark.slow
def test_a_terminal_asks_twice_and_shows_nothing(workspace):
    """As a person sees it."""
    code = (
        "import typer\n"
        "from loop.cli import user\n"
        "app = typer.Typer()\n"
        "app.callback()(lambda: None)\n"
        "user.register(app)\n"
        "app()\n"
    )
    main, sub = pty.openpty()
    command = ["user", "add", "ann", "--role", "admin", "-w", str(workspace.root)]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *command],
        stdin=sub,
        stdout=sub,
        stderr=sub,
        # Without a terminal of its own it would ask at the one of the tests.
        start_new_session=True,
    )
    os.close(sub)
    shown = read_until(main, b"Password: ")
    os.write(main, f"{GOOD}\n".encode())
    shown += read_until(main, b"confirmation: ")
    os.write(main, f"{GOOD}\n".encode())
    shown += read_until(main, b"may sign in")
    assert process.wait(30) == 0
    os.close(main)
    assert GOOD.encode() not in shown
    assert read_users(workspace)[0].name == "ann"


def read_until(terminal, wanted):
    """Read from a terminal until `wanted` has been shown."""
    shown = b""
    while wanted not in shown:
        assert select.select([terminal], [], [], 20)[0], f"only {shown!r} was shown"
        shown += os.read(terminal, 1024)
    return shown


def test_a_reader_with_another_role_is_warned_about(call):
    """Who may see results cannot label blind; whoever adds the user should know."""
    alone = call("add", "Ann", "--role", "reader", "--password-stdin")
    assert "not blind" not in alone.output
    roles = ("--role", "reader", "--role", "reviewer")
    both = call("add", "Ben", *roles, "--password-stdin")
    assert "not blind" in both.output


@pytest.mark.parametrize(
    ("roles", "disabled", "noted"),
    [
        (("reader",), False, "a reader sees the text of cases only, never results\n"),
        (
            ("reader", "editor"),
            False,
            "with another role a reader can see results: their labels are not blind\n",
        ),
        (("editor",), False, ""),
        (("reader",), True, ""),
        (("reader", "editor"), True, ""),
    ],
)
def test_what_a_reader_sees_is_said_beside_what_was_done(
    capsys, roles, disabled, noted
):
    """Not of somebody who may not come in, and not in the object."""
    user = User(
        name="Zoë",
        roles=tuple(map(UserRole, roles)),
        disabled=disabled,
        created="2026-03-01T12:00:00Z",
    )
    verb._tell(user, "done", False)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("done\n", noted)
    verb._tell(user, "done", True)
    said = capsys.readouterr()
    assert said.err == ""
    assert json.loads(said.out) == {
        "name": "Zoë",
        "roles": list(roles),
        "disabled": disabled,
        "created": "2026-03-01T12:00:00Z",
    }
