"""Whether one person works alone at this machine, and need not sign in."""

from __future__ import annotations

from collections.abc import Sequence

from loop.core.errors import LoopError
from loop.core.people.users import User, local_person
from loop.ui.access.hosts import Hosts


def find_single_user(
    users: Sequence[User], hosts: Hosts, local: str, *, sign_in: bool | None
) -> User | None:
    """Return who works alone at this machine; None when people have to sign in.

    That is the one user who is not disabled, or, without any users, the person called
    `local`, with every role. It takes a server that only this machine can reach.

    Parameters
    ----------
    sign_in
        True asks for it in any case, False forbids it, None decides.

    Raises
    ------
    LoopError
        Nobody could sign in, or sign-in is needed and forbidden.
    """
    enabled = [user for user in users if not user.disabled]
    alone = hosts.loopback() and len(enabled) <= 1 and (enabled or not users)
    if alone and not sign_in:
        return enabled[0] if enabled else local_person(local)
    if sign_in is False:
        raise LoopError(_why_not(hosts, len(enabled)))
    if not enabled:
        raise LoopError(_nobody(hosts, len(users)))
    return None


def _why_not(hosts: Hosts, enabled: int) -> str:
    """Say why sign-in cannot be left out."""
    if not hosts.loopback():
        why = f"other machines can reach {hosts.bound}"
    else:
        why = f"there are {enabled} users who can sign in"
    return f"sign-in cannot be left out: {why}. Start it with sign-in."


def _nobody(hosts: Hosts, known: int) -> str:
    """Say why nobody could sign in, and what to do."""
    reach = "" if hosts.loopback() else f" Other machines can reach {hosts.bound}."
    if known:
        return (
            f"all users are disabled: nobody could sign in.{reach} Let one in again "
            "with `ranloop user enable NAME`."
        )
    return (
        f"there are no users: nobody could sign in.{reach} Add the first with "
        "`ranloop user add NAME --role admin`."
    )
