"""Sessions, kept by the server: a browser holds a random token and nothing else.

Beside them, whose each browser tab is: Gradio keeps what was done in it under a name
that the tab gave itself, and gives it to whoever comes with that name.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from threading import Lock

from loop.core.clock import Clock, utc_now
from loop.core.people.users import name_key

_TOKEN = 32
"""Bytes of a token: 256 random bits cannot be guessed."""


_ID = 32
"""Hexadecimal digits of a session's id, which tells nothing of its token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """How long and how many sessions live."""

    idle_s: float = 30 * 60
    """A session unused for so long has ended, seconds."""

    longest_s: float = 12 * 3600
    """A session this old has ended, used or not, seconds."""

    each: int = 20
    """Sessions of one user; one more ends the one unused for longest."""

    most: int = 2_000
    """Sessions of all users, likewise."""

    tabs: int = 20
    """Browser tabs of one user, likewise."""


SPANS = Spans()


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One browser in which somebody has signed in."""

    name: str
    """Name of the user."""

    proof: str
    """Digest of what let them in; when that has changed, the session has ended."""

    opened: datetime
    seen: datetime


class Sessions:
    """The open sessions by the digest of their token, for many threads.

    They are in memory only: when the server stops, everybody has signed out.
    """

    def __init__(self, spans: Spans = SPANS, *, now: Clock = utc_now) -> None:
        self._spans = spans
        self._now = now
        self._lock = Lock()
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()

    def open(self, name: str, proof: str) -> str:
        """Open a session and return its token, which is kept nowhere else."""
        token = secrets.token_urlsafe(_TOKEN)
        with self._lock:
            now = self._now()
            self._make_room(name, now)
            self._sessions[_digest(token)] = Session(
                name=name, proof=proof, opened=now, seen=now
            )
        return token

    def find(self, token: str) -> Session | None:
        """Return the session of a token; None when there is none or it has ended."""
        key = _digest(token)
        with self._lock:
            session = self._sessions.get(key)
            if session is not None and self._over(session, self._now()):
                del self._sessions[key]
                return None
            return session

    def touch(self, token: str) -> None:
        """Note that a session was used just now."""
        key = _digest(token)
        with self._lock:
            session = self._sessions.get(key)
            now = self._now()
            if session is not None and not self._over(session, now):
                self._sessions[key] = replace(session, seen=now)
                self._sessions.move_to_end(key)

    def close(self, token: str) -> None:
        """End a session; nothing happens when there is none."""
        with self._lock:
            self._sessions.pop(_digest(token), None)

    def list_open(self) -> tuple[tuple[str, Session], ...]:
        """Return the id and the record of every open session."""
        with self._lock:
            now = self._now()
            return tuple(
                (key.hex()[:_ID], one)
                for key, one in self._sessions.items()
                if not self._over(one, now)
            )

    def _make_room(self, name: str, now: datetime) -> None:
        """Drop what has ended, then what is too much by one: unused for longest."""
        ended = [k for k, one in self._sessions.items() if self._over(one, now)]
        for key in ended:
            del self._sessions[key]
        own = self._of(name)
        if len(own) >= self._spans.each:
            del self._sessions[own[0]]
        while len(self._sessions) >= self._spans.most:
            self._sessions.popitem(last=False)

    def _of(self, name: str) -> list[bytes]:
        key = name_key(name)
        return [k for k, one in self._sessions.items() if name_key(one.name) == key]

    def _over(self, session: Session, now: datetime) -> bool:
        idle = now - session.seen > timedelta(seconds=self._spans.idle_s)
        return idle or now - session.opened > timedelta(seconds=self._spans.longest_s)


class OpenTabs:
    """Whose each browser tab is, for many threads.

    A tab belongs to the user who first comes with its name, until it was unused for as
    long as a session can last.
    """

    def __init__(self, spans: Spans = SPANS, *, now: Clock = utc_now) -> None:
        self._spans = spans
        self._now = now
        self._lock = Lock()
        self._owners: dict[str, OrderedDict[str, datetime]] = {}
        self._tabs: dict[str, str] = {}
        self.on_forget: Callable[[str], None] = lambda tab: None
        """Called with each tab that is given up, to drop what is kept for it."""

    def claim(self, tab: str, name: str) -> bool:
        """Note that the user `name` uses a tab; False: it is another person's.

        A user who opens too many gives up the one unused for longest; nobody can make
        others give up theirs.
        """
        user = name_key(name)
        with self._lock:
            now = self._now()
            if self._owner(tab, now) not in (None, user):
                return False
            own = self._owners.setdefault(user, OrderedDict())
            own[tab] = now
            own.move_to_end(tab)
            self._tabs[tab] = user
            for old in list(own):
                if len(own) <= self._spans.tabs and not self._over(own[old], now):
                    break
                self._forget(old)
            return True

    def _owner(self, tab: str, now: datetime) -> str | None:
        user = self._tabs.get(tab)
        if user is not None and self._over(self._owners[user][tab], now):
            self._forget(tab)
            return None
        return user

    def _forget(self, tab: str) -> None:
        user = self._tabs.pop(tab)
        own = self._owners[user]
        del own[tab]
        if not own:
            del self._owners[user]
        self.on_forget(tab)

    def _over(self, used: datetime, now: datetime) -> bool:
        return now - used > timedelta(seconds=self._spans.longest_s)


def session_id(token: str) -> str:
    """Return the id of the session that a token opens, whether there is one or not."""
    return _digest(token).hex()[:_ID]


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogatepass")).digest()
