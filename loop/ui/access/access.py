"""Whose request it is, and what they may do: the one place that everything asks."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from starlette.requests import HTTPConnection

from loop.core.clock import Clock, utc_now
from loop.core.errors import LoopError, WriteError
from loop.core.paths import WorkspacePaths
from loop.core.people.passwords import fits, fits_nobody
from loop.core.people.roster import Roster, read_users, renew_hash
from loop.core.people.sign_ins import Attempts, SignIn, SignInResult, record_sign_in
from loop.core.people.users import Right, SignInRequired, User
from loop.ui.access.cookies import token_of
from loop.ui.access.hosts import Hosts
from loop.ui.access.proxies import NO_PROXIES, Proxies
from loop.ui.access.sessions import (
    SPANS,
    OpenTabs,
    Session,
    Sessions,
    Spans,
    session_id,
)
from loop.ui.access.single_user import find_single_user

_LOG = logging.getLogger("loop.ui.access")

_ALONE = "alone"
"""Id of the one session where nobody signs in."""


class Entrance(NamedTuple):
    """What became of a try to sign in."""

    token: str
    """What the browser keeps; empty when it did not succeed."""

    wait_s: int = 0
    """How long the next try is refused, whole seconds."""


class Access:
    """Who may use one workspace's workbench; for many threads.

    Whether sign-in is needed is decided when the server starts. Who works alone does so
    until the users change: from then on, and until the server stops, people sign in.
    Who is who is asked of the users' file at every request.
    """

    def __init__(
        self,
        workspace: WorkspacePaths,
        hosts: Hosts,
        *,
        local: str = "",
        sign_in: bool | None = None,
        spans: Spans = SPANS,
        now: Clock = utc_now,
    ) -> None:
        """Decide whether people sign in, as `find_single_user` does.

        Raises
        ------
        LoopError
            Nobody could sign in, or the users' file is broken.
        """
        self.workspace = workspace
        self.hosts = hosts
        self._local = local
        self._asked = sign_in
        self._now = now
        self._roster = Roster(workspace)
        self._sessions = Sessions(spans, now=now)
        self.tabs = OpenTabs(spans, now=now)
        self._attempts = Attempts(now=now)
        self._alone = find_single_user(
            read_users(workspace), hosts, local, sign_in=sign_in
        )
        self._began_alone = self._alone is not None

    @classmethod
    def open(
        cls,
        workspace: WorkspacePaths,
        *,
        host: str,
        local: str,
        names: Sequence[str] = (),
        proxies: Proxies = NO_PROXIES,
        sign_in: bool | None = None,
    ) -> Access:
        """Return the access to `workspace` for a server that listens on `host`.

        Parameters
        ----------
        local
            Name of the person at this machine, for when there are no users.
        names
            Further host names that browsers use. One that is not of this machine
            stands for a proxy: sign-in is needed then.
        proxies
            Proxies to be trusted; sign-in is needed with any.
        sign_in
            True asks for sign-in in any case, False forbids it, None decides.

        Raises
        ------
        LoopError
            Nobody could sign in, sign-in is needed and forbidden, or the users' file
            is broken.
        """
        hosts = Hosts(bound=host, names=tuple(names), proxies=proxies)
        return cls(workspace, hosts, local=local, sign_in=sign_in)

    @property
    def sign_in(self) -> bool:
        """Whether people sign in; else one person works here alone."""
        return self._alone is None

    @property
    def no_longer_alone(self) -> bool:
        """Whether people sign in although one person worked here alone at first."""
        return self._began_alone and self.sign_in

    def user_of(self, request: Any) -> User:
        """Return whose request this is: Starlette's, FastAPI's or Gradio's.

        Raises
        ------
        SignInRequired
            Nobody has signed in, for too long, or not any more: the user was disabled
            or has another password.
        DataError
            The users' file is broken just now.
        """
        alone = self._still_alone()
        if alone is not None:
            return alone
        connection: HTTPConnection = getattr(request, "request", None) or request
        return self.session_user(token_of(connection))

    def require(self, request: Any, right: Right) -> User:
        """Return whose request this is, if they may do what `right` says.

        Raises
        ------
        PermissionRefused
            None of their roles grants it; names those that do.
        SignInRequired
            Nobody is signed in.
        DataError
            The users' file is broken just now.
        """
        user = self.user_of(request)
        user.actor(right)
        return user

    def who(self, request: HTTPConnection) -> str | None:
        """Return the user's name, or None: what Gradio asks of an `auth_dependency`."""
        try:
            return self.user_of(request).name
        except LoopError:
            return None

    def session_user(self, token: str) -> User:
        """Return who has signed in with `token`.

        Raises
        ------
        SignInRequired
            There is no such session, or not any more.
        DataError
            The users' file is broken just now.
        """
        session = self._sessions.find(token)
        if session is None:
            raise SignInRequired("your session has ended. Sign in again.")
        user = self._roster.find(session.name)
        if user is None or not self._stands(session):
            self._sessions.close(token)
            raise SignInRequired("your session has ended. Sign in again.")
        return user

    def session_id(self, request: Any) -> str:
        """Return the id of a request's session; of whoever works alone, always one."""
        if self._alone is not None:
            return _ALONE
        return session_id(token_of(getattr(request, "request", None) or request))

    def open_sessions(self) -> frozenset[str]:
        """Return the ids of the sessions whose users may still come in.

        Raises
        ------
        DataError
            The users' file is broken just now.
        """
        if self._alone is not None:
            return frozenset({_ALONE})
        return frozenset(
            known for known, one in self._sessions.list_open() if self._stands(one)
        )

    def _stands(self, session: Session) -> bool:
        """Return whether a session's user is as when it was opened."""
        user = self._roster.find(session.name)
        return user is not None and not user.disabled and _proof(user) == session.proof

    def touch(self, token: str) -> None:
        """Note that a session was used just now."""
        self._sessions.touch(token)

    def claim(self, tab: str, user: User) -> bool:
        """Note that `user` uses a browser tab; False: it is another person's.

        Parameters
        ----------
        tab
            The name that the tab gave itself.
        """
        return self.tabs.claim(tab, user.name)

    def enter(self, name: str, password: str, address: str) -> Entrance:
        """Sign `name` in from `address`; takes a quarter of a second.

        A wrong name, a wrong password and a disabled user are answered alike, after
        the same time.

        Raises
        ------
        DataError
            The users' file is broken just now.
        """
        user = self._roster.find(name)
        known = user.name if user else ""
        wait = self._attempts.begin(name, address)
        if wait:
            self._note(known, address, SignInResult.LOCKED)
            return Entrance("", wait)
        fitting = fits(password, user.password_hash) if user else fits_nobody()
        if user is None or user.disabled or not fitting:
            self._note(known, address, SignInResult.WRONG)
            return Entrance("", self._attempts.wait_s(name, address))
        self._attempts.succeed(name, address)
        self._note(known, address, SignInResult.SIGNED_IN)
        return Entrance(
            self._sessions.open(user.name, _proof(self._renew(user, password)))
        )

    def leave(self, token: str, address: str) -> None:
        """End a session; nothing happens when there is none."""
        session = self._sessions.find(token)
        self._sessions.close(token)
        if session is not None:
            self._note(session.name, address, SignInResult.SIGNED_OUT)

    def _still_alone(self) -> User | None:
        """Return who works here alone, as the file has them now; None once and for all.

        Raises
        ------
        DataError
            The users' file is broken just now.
        """
        alone = self._alone
        if alone is None:
            return None
        users = self._roster.users()
        try:
            now = find_single_user(users, self.hosts, self._local, sign_in=self._asked)
        except LoopError:
            now = None
        if now is not None and now.name == alone.name:
            return now
        self._alone = None
        _LOG.warning("the users of this workspace have changed: now people sign in")
        return None

    def _renew(self, user: User, password: str) -> User:
        try:
            return renew_hash(self.workspace, user, password)
        except LoopError:
            # The old hash is as good as it was; a full disk must not shut people out.
            return user

    def _note(self, name: str, address: str, result: SignInResult) -> None:
        entry = SignIn(name=name, address=address, result=result)
        try:
            record_sign_in(self.workspace, entry, now=self._now)
        except WriteError as error:
            _LOG.warning("the log of sign-ins is incomplete: %s", error)


def _proof(user: User) -> str:
    return sha256(user.password_hash.encode("utf-8")).hexdigest()
