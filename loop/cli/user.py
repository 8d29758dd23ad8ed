"""The verb ``user``: who may sign in to the workbench, and what they may do there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from loop.cli.console import (
    JsonOption,
    WorkspaceOption,
    note,
    open_workspace,
    print_json,
    print_table,
    read_secret,
    say,
)
from loop.core.errors import DataError
from loop.core.people.roster import (
    add_user,
    disable_user,
    enable_user,
    read_users,
    set_password,
    set_roles,
)
from loop.core.people.users import User, UserRole

NameArgument = Annotated[str, typer.Argument(help='Name, e.g. "Dr. Ayşe Kaya".')]
RolesOption = Annotated[
    list[str],
    typer.Option(
        "--role", help="reader, reviewer, editor, approver or admin; may be repeated."
    ),
]
StdinOption = Annotated[
    bool,
    typer.Option(
        "--password-stdin", help="Read the password from the first line of stdin."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    verb = typer.Typer(
        help="Manage who may sign in to the workbench.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    verb.command("add")(add)
    verb.command("list")(list_users)
    verb.command("roles")(roles)
    verb.command("password")(password)
    verb.command("disable")(disable)
    verb.command("enable")(enable)
    app.add_typer(verb, name="user")


def add(
    name: NameArgument,
    role: RolesOption,
    password_stdin: StdinOption = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a user. The password is asked for, or read from stdin; never an argument."""
    place = open_workspace(workspace)
    wanted = _roles(role)
    user = add_user(place, name, wanted, read_secret("password", password_stdin))
    _tell(user, f"{user.name} may sign in as {_listed(user.roles)}", as_json)


def list_users(
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the users with their roles; never a password, not even its hash."""
    users = read_users(open_workspace(workspace))
    if as_json:
        print_json({"users": [_row(user) for user in users]})
        return
    if not users:
        say("no users. Add the first with `ranloop user add NAME --role admin`.")
        return
    print_table(
        ("name", "roles", "state", "since"),
        (
            (user.name, _listed(user.roles), _state(user), user.created[:10])
            for user in users
        ),
    )


def roles(
    name: NameArgument,
    role: RolesOption,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a user these roles instead of the ones they have."""
    user = set_roles(open_workspace(workspace), name, _roles(role))
    _tell(user, f"{user.name} is now {_listed(user.roles)}", as_json)


def password(
    name: NameArgument,
    password_stdin: StdinOption = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set another password for a user; their sessions end."""
    place = open_workspace(workspace)
    user = set_password(place, name, read_secret("password", password_stdin))
    _tell(user, f"{user.name} has a new password; their sessions have ended", as_json)


def disable(
    name: NameArgument,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Shut a user out; their sessions end, what they did stays."""
    user = disable_user(open_workspace(workspace), name)
    _tell(user, f"{user.name} may not sign in any more", as_json)


def enable(
    name: NameArgument,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a disabled user sign in again."""
    user = enable_user(open_workspace(workspace), name)
    _tell(user, f"{user.name} may sign in again", as_json)


def _roles(names: Sequence[str]) -> tuple[UserRole, ...]:
    try:
        return tuple(UserRole(name) for name in names)
    except ValueError as error:
        raise DataError(f"{error}. Use one of {', '.join(UserRole)}.") from error


def _tell(user: User, text: str, as_json: bool) -> None:
    if as_json:
        print_json(_row(user))
        return
    say(text)
    if user.disabled or "reader" not in user.roles:
        return
    if len(user.roles) == 1:
        note("a reader sees the text of cases only, never results")
    else:
        note("with another role a reader can see results: their labels are not blind")


def _row(user: User) -> dict[str, Any]:
    return {
        "name": user.name,
        "roles": [role.value for role in user.roles],
        "disabled": user.disabled,
        "created": user.created,
    }


def _listed(roles: Sequence[UserRole]) -> str:
    return ", ".join(roles)


def _state(user: User) -> str:
    return "disabled" if user.disabled else "enabled"
