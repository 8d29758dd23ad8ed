"""What may be asked of the server at all; whatever is not listed does not exist.

Gradio serves more than its own front end asks for: a proxy to other hosts, editing by
a remote model, monitoring, recordings, run history, a list of all functions, a queue
whose results go to whoever knows their id, uploaded files by their path. The list is
what a browser was seen to ask for, with what it takes to call a function by its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from loop.core.people.users import Right


class Need(Enum):
    """What one must have for a request."""

    NOTHING = "nothing"
    """Program files that every copy of Gradio has."""

    SESSION = "session"
    """Somebody who has signed in."""

    OWN = "own"
    """The pages of the gate itself."""


class AccessRule(NamedTuple):
    """Which requests are let through, and to whom."""

    methods: frozenset[str]
    path: re.Pattern[str]
    """The whole decoded path."""

    need: Need = Need.SESSION
    right: Right | None = None
    """A right it takes besides; functions check theirs themselves."""

    use: bool = False
    """Whether it is a sign of life, which keeps a session open."""


_GET = frozenset({"GET", "HEAD"})
_POST = frozenset({"POST"})
_WORD = r"[A-Za-z0-9_-]+"
_FILE = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"

PAGE = "/"
SIGN_IN = "/sign-in"
SIGN_OUT = "/sign-out"
HEARTBEAT = "/gradio_api/heartbeat/"
RUN = "/gradio_api/run/"
UPLOAD = "/upload"
DOWNLOAD = "/download/"


def _rule(methods: frozenset[str], path: str, need: Need = Need.SESSION) -> AccessRule:
    return AccessRule(methods, re.compile(path, re.ASCII), need)


RULES = (
    _rule(_GET, rf"/assets/{_FILE}", Need.NOTHING),
    _rule(_GET, rf"/static(?:/{_FILE})+", Need.NOTHING),
    _rule(_GET, r"/favicon\.ico|/manifest\.json", Need.NOTHING),
    _rule(_GET | _POST, SIGN_IN, Need.OWN),
    _rule(_POST, SIGN_OUT, Need.OWN),
    _rule(_GET, PAGE)._replace(use=True),
    _rule(_GET, r"/theme\.css|/gradio_api/app_id"),
    _rule(_GET, rf"{HEARTBEAT}{_WORD}"),
    _rule(_GET, rf"{DOWNLOAD}[a-z-]+\.[a-z]+")._replace(right=Right.EXPORT, use=True),
    _rule(_POST, rf"{RUN}{_WORD}")._replace(use=True),
    _rule(_POST, UPLOAD)._replace(right=Right.IMPORT, use=True),
)
"""Everything that is served."""

_UNASKED = frozenset({"deep_link", "page"})
"""Parameters of the page with which Gradio would open what others have saved."""


def find_rule(
    method: str, path: str, parameters: Iterable[str] = ()
) -> AccessRule | None:
    """Return the rule for a request; None when nothing of the kind is served.

    `path` is decoded once, as the application behind will take it; `parameters` are
    the names of those in the query.
    """
    if {".", ".."} & set(path.split("/")):
        return None
    if path == PAGE and _UNASKED & set(parameters):
        return None
    return next(
        (r for r in RULES if method in r.methods and r.path.fullmatch(path)), None
    )
