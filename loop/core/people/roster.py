"""The users of a workspace: ``.ranloop/users.yaml``, read strictly, changed safely."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from loop.core.clock import Clock, format_time, utc_now
from loop.core.errors import DataError
from loop.core.files import locked, read_text, write_atomic
from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.people.passwords import check_password, hash_password, is_hash, outgrown
from loop.core.people.users import (
    User,
    UserRole,
    check_name,
    find_look_alike,
    name_key,
)
from loop.core.yaml_files import check_model, dump_yaml, parse_yaml

_HEADER = """\
# The users of this workspace. Change them with `ranloop user`, which keeps the file
# whole while others write; passwords are kept as scrypt hashes only.
"""

_MOST = 10_000
"""Most users of one workspace."""


def _check_hash(kept: str) -> str:
    if not is_hash(kept):
        raise ValueError("not a kept password; set one with `ranloop user password`")
    return kept


class _UserRow(BaseModel):
    """One user as the file has it."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    name: Annotated[str, AfterValidator(check_name)]
    roles: Annotated[tuple[UserRole, ...], Field(min_length=1)]
    password: Annotated[str, AfterValidator(_check_hash)]
    disabled: bool = False
    created: str = ""

    def user(self) -> User:
        """Return it as the record that the rest of loop knows."""
        return User(
            name=self.name,
            roles=self.roles,
            password_hash=self.password,
            disabled=self.disabled,
            created=self.created,
        )


class _File(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    version: Literal[1]
    users: Annotated[tuple[_UserRow, ...], Field(max_length=_MOST)]

    @field_validator("users")
    @classmethod
    def _each_once(cls, users: tuple[_UserRow, ...]) -> tuple[_UserRow, ...]:
        seen: set[str] = set()
        for user in users:
            if name_key(user.name) in seen:
                raise ValueError(
                    f"{user.name!r} occurs twice (capital letters are ignored)"
                )
            seen.add(name_key(user.name))
        return users


def users_path(workspace: WorkspacePaths) -> Path:
    """Return where the users of `workspace` are kept."""
    return workspace.private / "users.yaml"


def read_users(workspace: WorkspacePaths) -> tuple[User, ...]:
    """Return all users in the order of the file; empty when there is no file.

    Raises
    ------
    DataError
        The file cannot be read or does not have the expected form; names each field.
    """
    path = users_path(workspace)
    if not os.path.lexists(path):
        return ()
    read = check_model(parse_yaml(read_text(path), path), _File, path)
    return tuple(row.user() for row in read.users)


def find_user(users: Sequence[User], name: str) -> User | None:
    """Return the user called `name`, however it is capitalised; None when unknown."""
    key = name_key(name)
    return next((user for user in users if name_key(user.name) == key), None)


def add_user(
    workspace: WorkspacePaths,
    name: str,
    roles: Sequence[UserRole],
    password: str,
    *,
    now: Clock = utc_now,
) -> User:
    """Add a user and return it.

    Raises
    ------
    DataError
        The name or password is not acceptable, there is no role, the name is taken,
        or the file is broken.
    WriteError
        The file cannot be written.
    """
    clean = _clean_name(name)
    kept = _kept_password(password, clean)
    created = format_time(now())
    with _changing(workspace) as users:
        taken = find_user(users, clean)
        if taken is not None:
            raise DataError(
                f"there is a user {taken.name!r} already. Choose another name, or "
                "change that one with `ranloop user roles` or `ranloop user enable`."
            )
        require_distinct(workspace, clean)
        user = User(
            name=clean,
            roles=_some_roles(roles),
            password_hash=kept,
            created=created,
        )
        users.append(user)
    return user


def set_roles(workspace: WorkspacePaths, name: str, roles: Sequence[UserRole]) -> User:
    """Give a user these roles instead of theirs, and return it.

    Raises
    ------
    DataError
        The user is unknown, there is no role, the last admin would be gone, or the
        file is broken.
    WriteError
        The file cannot be written.
    """
    wanted = _some_roles(roles)
    return _replace(workspace, name, lambda user: replace(user, roles=wanted))


def set_password(workspace: WorkspacePaths, name: str, password: str) -> User:
    """Give a user another password, which ends their sessions, and return it.

    Raises
    ------
    DataError
        The user is unknown, the password is not acceptable, or the file is broken.
    WriteError
        The file cannot be written.
    """
    kept = _kept_password(password, name)
    return _replace(workspace, name, lambda user: replace(user, password_hash=kept))


def renew_hash(workspace: WorkspacePaths, user: User, password: str) -> User:
    """Keep the password that just fitted at today's cost, and return the user.

    Returns `user` as given when it is kept so, or when another password was set
    meanwhile: whoever knew the old one must not pass for knowing the new one.

    Raises
    ------
    DataError
        The file is broken, or the user is gone.
    WriteError
        The file cannot be written.
    """
    if not outgrown(user.password_hash):
        return user
    kept = hash_password(password)

    def renewed(found: User) -> User:
        same = found.password_hash == user.password_hash
        return replace(found, password_hash=kept) if same else found

    changed = _replace(workspace, user.name, renewed)
    return changed if changed.password_hash == kept else user


def disable_user(workspace: WorkspacePaths, name: str) -> User:
    """Shut a user out, which ends their sessions, and return it.

    Raises
    ------
    DataError
        The user is unknown, is the last admin, or the file is broken.
    WriteError
        The file cannot be written.
    """
    return _replace(workspace, name, lambda user: replace(user, disabled=True))


def enable_user(workspace: WorkspacePaths, name: str) -> User:
    """Let a disabled user in again, and return it.

    Raises
    ------
    DataError
        The user is unknown, or the file is broken.
    WriteError
        The file cannot be written.
    """
    return _replace(workspace, name, lambda user: replace(user, disabled=False))


def known_names(workspace: WorkspacePaths) -> tuple[str, ...]:
    """Return the names that people have here: users, and who acted or got a key.

    Raises
    ------
    DataError
        The file of users or the ledger is broken.
    """
    names = [user.name for user in read_users(workspace)]
    for entry in read_ledger(workspace.ledger):
        names.append(entry.actor)
        key = entry.payload.get("key") if entry.action == "key_added" else None
        if isinstance(key, dict):
            names.append(str(key.get("name")))
    return tuple(dict.fromkeys(names))


def require_distinct(
    workspace: WorkspacePaths, *names: str, others: Iterable[str] = ()
) -> None:
    """Refuse a new name that looks like one that somebody here has.

    Parameters
    ----------
    names
        Each is held against those known here, and against the ones before it.
    others
        Further names that are known.

    Raises
    ------
    DataError
        It does, and is not that very name; or the users or the ledger are broken.
    """
    known = [*known_names(workspace), *others]
    for name in names:
        other = find_look_alike(name, known)
        if other is not None:
            raise DataError(_look_alike(name, other))
        known.append(name)


def _look_alike(name: str, other: str) -> str:
    letters = sorted({f"U+{ord(char):04X}" for char in name if not char.isascii()})
    foreign = f" (it holds {', '.join(letters[:5])})" if letters else ""
    return (
        f"the name {name!a}{foreign} looks like {other!r}, who is known here. If it "
        f"is the same person, write {other!r}, also in --actor and RANLOOP_ACTOR; if "
        "not, choose a name that differs in more than capitals, spaces or letters that "
        "look alike."
    )


class Roster:
    """The users of a workspace for a server: read again whenever the file changes."""

    def __init__(self, workspace: WorkspacePaths) -> None:
        self._workspace = workspace
        self._lock = Lock()
        self._stamp: tuple[int, ...] | None = None
        self._users: dict[str, User] = {}

    def users(self) -> tuple[User, ...]:
        """Return all users as the file has them now; for many threads.

        Raises
        ------
        DataError
            The file is broken just now: nobody is let in on what it used to say.
        """
        return tuple(self._read().values())

    def find(self, name: str) -> User | None:
        """Return the user called `name`, disabled or not; None when unknown.

        Raises
        ------
        DataError
            The file is broken just now.
        """
        return self._read().get(name_key(name))

    def _read(self) -> dict[str, User]:
        with self._lock:
            stamp = _stamp(users_path(self._workspace))
            if stamp != self._stamp:
                # Dropped first: a broken file must not leave the users it had before.
                self._stamp = None
                users = read_users(self._workspace)
                self._users = {name_key(user.name): user for user in users}
                self._stamp = stamp
            return self._users


def _stamp(path: Path) -> tuple[int, ...]:
    """Return what changes when the file does; empty when there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@contextmanager
def _changing(workspace: WorkspacePaths) -> Iterator[list[User]]:
    """Hold the lock, give the users to be changed, and write them if all went well."""
    folder = workspace.open_private()
    with locked(folder / ".users.lock"):
        before = read_users(workspace)
        users = list(before)
        yield users
        if _admins(before) and not _admins(users):
            raise DataError(
                "this is the last admin who can sign in. Make another user admin "
                "first, with `ranloop user roles NAME --role admin`."
            )
        if tuple(users) != before:
            _write(workspace, users)


def _replace(
    workspace: WorkspacePaths, name: str, change: Callable[[User], User]
) -> User:
    """Change one user under the lock and return what became of them."""
    with _changing(workspace) as users:
        found = find_user(users, name)
        if found is None:
            raise DataError(
                f"there is no user {name!r}. `ranloop user list` names them all."
            )
        changed = change(found)
        users[users.index(found)] = changed
    return changed


def _write(workspace: WorkspacePaths, users: Sequence[User]) -> None:
    rows = [
        {
            "name": user.name,
            "roles": [role.value for role in user.roles],
            "password": user.password_hash,
            "disabled": user.disabled,
            "created": user.created,
        }
        for user in users
    ]
    text = _HEADER + dump_yaml({"version": 1, "users": rows})
    write_atomic(users_path(workspace), text, mode=0o600)


def _admins(users: Sequence[User]) -> bool:
    return any(UserRole.ADMIN in user.roles and not user.disabled for user in users)


def _some_roles(roles: Sequence[UserRole]) -> tuple[UserRole, ...]:
    if not roles:
        raise DataError(
            f"a user needs a role: {', '.join(UserRole)}. Give at least one."
        )
    return tuple(role for role in UserRole if role in roles)


def _clean_name(name: str) -> str:
    try:
        return check_name(name)
    except ValueError as error:
        raise DataError(f"{error}. Choose another name.") from error


def _kept_password(password: str, name: str) -> str:
    try:
        check_password(password, name)
    except ValueError as error:
        raise DataError(f"{error}. Choose another password.") from error
    return hash_password(password)
