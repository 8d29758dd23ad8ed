"""The sign-in page: a plain form that needs no script and nothing from elsewhere."""

from __future__ import annotations

import asyncio
import re
import secrets
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, quote

from jinja2 import FileSystemLoader, StrictUndefined, Template
from jinja2.sandbox import ImmutableSandboxedEnvironment
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from loop.core.errors import DataError
from loop.core.nouns import counted
from loop.core.people.users import SignInRequired
from loop.core.safe_text import printable
from loop.ui.access.access import Access
from loop.ui.access.cookies import give_token, take_token, token_of
from loop.ui.access.rules import PAGE, SIGN_IN

_NEXT = re.compile(r"/(?:\?[A-Za-z0-9_.~=&%+-]{1,300})?")
"""Where one may be sent after signing in: the page itself, nowhere else."""

_UNREADABLE = (
    "The list of users cannot be read just now. Tell whoever runs ranloop here; "
    "nothing is lost."
)


class Notice(NamedTuple):
    """What the page says above the form."""

    text: str
    kind: str = "error"
    """``"error"``, ``"plain"`` or ``"good"``."""

    status: int = 200
    """HTTP status of the page."""


ENDED = Notice(
    "Your session has ended. Sign in to go on: what you saved is there.", kind="plain"
)
BEGUN = Notice(
    "This workspace has users now, so everybody signs in. Nothing saved is lost.",
    kind="plain",
)
LEFT = Notice("You have signed out.", kind="good")
WRONG = Notice("Name or password is wrong.", status=401)
UNREADABLE = Notice(_UNREADABLE, status=503)


def locked(wait_s: int) -> Notice:
    """Return what is said to whoever has failed too often."""
    return Notice(f"Too many failed tries. Try again in {_spell(wait_s)}.", status=429)


def to_sign_in(request: Request, *, begun: bool = False) -> Response:
    """Return the way to the sign-in page, from where one comes back to `request`.

    `begun` says that nobody signed in when the server started.
    """
    query = request.scope["query_string"].decode("latin-1")
    wanted = safe_next(f"{PAGE}?{query}" if query else PAGE)
    marks = [f"next={quote(wanted, safe='')}"] if wanted != PAGE else []
    if token_of(request):
        marks.append("ended=1")
    elif begun:
        marks.append("begun=1")
    where = f"{SIGN_IN}?{'&'.join(marks)}" if marks else SIGN_IN
    return RedirectResponse(where, status_code=303)


class Door:
    """The pages where people sign in and out."""

    def __init__(self, access: Access) -> None:
        self._access = access
        # A crowd at the door must not take the threads that serve those inside.
        self._few = asyncio.Semaphore(4)

    async def show(self, request: Request) -> Response:
        """Return the form, or the way on for whoever need not sign in."""
        wanted = safe_next(request.query_params.get("next", PAGE))
        try:
            self._access.user_of(request)
            return RedirectResponse(wanted, status_code=303)
        except DataError:
            return _page(UNREADABLE, wanted)
        except SignInRequired:
            pass
        notices = {"ended": ENDED, "begun": BEGUN, "left": LEFT}
        said = [notices[mark] for mark in notices if mark in request.query_params]
        return _page(said[0] if said else None, wanted)

    def say(self, notice: Notice) -> Response:
        """Return a page that only says something."""
        return _page(notice, PAGE, form=False)

    async def take(self, request: Request, body: bytes) -> Response:
        """Return the way on with a cookie, or the form with what was wrong."""
        form = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
        name, password, wanted = (
            form.get(field, [""])[0] for field in ("name", "password", "next")
        )
        address, wanted = _address(request), safe_next(wanted)
        try:
            async with self._few:
                entrance = await run_in_threadpool(
                    self._access.enter, name, password, address
                )
        except DataError:
            return _page(UNREADABLE, wanted, name)
        if not entrance.token:
            said = locked(entrance.wait_s) if entrance.wait_s else WRONG
            return _page(said, wanted, name, wait_s=entrance.wait_s)
        self._access.leave(token_of(request), address)
        response = RedirectResponse(wanted, status_code=303)
        give_token(response, request, entrance.token)
        return response

    async def leave(self, request: Request) -> Response:
        """End the session and return the way to the sign-in page."""
        self._access.leave(token_of(request), _address(request))
        response = RedirectResponse(f"{SIGN_IN}?left=1", status_code=303)
        take_token(response, request)
        return response


def safe_next(wanted: str) -> str:
    """Return `wanted` if it is a page of ours, else the first page.

    Examples
    --------
    >>> safe_next("/?__theme=dark"), safe_next("//evil.example/")
    ('/?__theme=dark', '/')
    """
    return wanted if _NEXT.fullmatch(wanted) else PAGE


def _address(request: Request) -> str:
    """Return the address a request came from; empty when it is not known."""
    return request.client.host if request.client else ""


def _page(
    notice: Notice | None,
    wanted: str,
    name: str = "",
    *,
    wait_s: int = 0,
    form: bool = True,
) -> Response:
    nonce = secrets.token_urlsafe(16)
    text = _template().render(
        notice=notice,
        wanted=wanted,
        name=printable(name[:64]),
        nonce=nonce,
        form=form,
    )
    response = HTMLResponse(text, status_code=notice.status if notice else 200)
    response.headers["content-security-policy"] = (
        f"default-src 'none'; style-src 'nonce-{nonce}'; img-src data:; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    if wait_s:
        response.headers["retry-after"] = str(wait_s)
    return response


def _spell(seconds: int) -> str:
    """Return a wait in words."""
    if seconds <= 90:
        return counted(seconds, "second")
    return f"{-(-seconds // 60)} minutes"


@lru_cache(maxsize=1)
def _template() -> Template:
    environment = ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("sign_in.html.jinja")
