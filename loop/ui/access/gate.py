"""What stands before the whole application and lets through what may pass."""

from __future__ import annotations

import logging
import re
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from loop.core.errors import DataError
from loop.people.users import PermissionRefused, SignInRequired
from loop.ui.access.access import Access
from loop.ui.access.armour import armoured
from loop.ui.access.cookies import token_of
from loop.ui.access.origin import from_elsewhere
from loop.ui.access.rules import DOWNLOAD, PAGE, SIGN_OUT, UPLOAD, Need, Rule, find_rule
from loop.ui.access.sign_in import Door, to_sign_in
from loop.ui.faults import place_of

_LOG = logging.getLogger("loop.ui.access")

_SAFE = frozenset({"GET", "HEAD"})
_LENGTH = re.compile(r"[0-9]{1,15}", re.ASCII)
_HEARSAY = (b"forwarded", b"x-forwarded-", b"x-gradio-server")
"""Headers that the front end would believe about where it is; the server knows."""


class Sizes(NamedTuple):
    """Longest request bodies, bytes."""

    form: int = 8 * 1024
    """The sign-in form."""

    call: int = 2 * 1024 * 1024
    """The values of an event."""

    upload: int = 200 * 1024 * 1024
    """An uploaded file with what is around it."""


SIZES = Sizes()


class Gate:
    """An ASGI application before another one: nothing passes that is not allowed."""

    def __init__(self, app: ASGIApp, access: Access, sizes: Sizes) -> None:
        self._app = app
        self._access = access
        self._door = Door(access)
        self._sizes = sizes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or have the application answer it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._serve(Request(scope, receive), send)
        else:
            # Nothing here speaks over a WebSocket.
            await send({"type": "websocket.close", "code": 1008})

    async def _serve(self, request: Request, send: Send) -> None:
        send = armoured(request.scope["path"], send)
        rule = self._rule(request)
        answer = rule if isinstance(rule, Response) else await self._ask(request, rule)
        if answer is not None:
            await answer(request.scope, request.receive, send)
            return
        if self._access.sign_in:
            send = self._watched(token_of(request), send)
        await self._pass(request, send)

    async def _pass(self, request: Request, send: Send) -> None:
        """Have the application answer; what breaks it is logged by its place only.

        The server would print the error, and with it what was sent: clinical text.
        """
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(_without_hearsay(request.scope), request.receive, sending)
        except Exception as error:  # noqa: BLE001  the boundary to the browser
            _LOG.error("%s at %s", type(error).__name__, place_of(error))
            if not begun:
                answer = _refusal(500, "a fault in ranloop; its place is in the log")
                await answer(request.scope, request.receive, send)

    def _rule(self, request: Request) -> Rule | Response:
        """Return the rule for a well-formed request of our own, or the refusal."""
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or not self._access.hosts.knows(hosts[0]):
            return PlainTextResponse(
                "This server does not go by that name. Use the address that ranloop "
                "review printed, or start it with --name.",
                status_code=400,
            )
        rule = find_rule(request.method, request.scope["path"], request.query_params)
        if rule is None:
            return PlainTextResponse("There is nothing here.", status_code=404)
        if from_elsewhere(request):
            return _refusal(403, "this did not come from a page of ranloop")
        return self._oversized(request, rule) or rule

    def _oversized(self, request: Request, rule: Rule) -> Response | None:
        """Return the refusal of a body that is too long, or does not say how long."""
        if request.method in _SAFE:
            return None
        length = request.headers.get("content-length", "")
        if "transfer-encoding" in request.headers or not _LENGTH.fullmatch(length):
            return _refusal(411, "say how long the content is")
        most = self._sizes.form if rule.need is Need.OWN else self._sizes.call
        if request.scope["path"] == UPLOAD:
            most = self._sizes.upload
        if int(length) > most:
            return _refusal(413, f"longer than {most} bytes")
        return None

    async def _ask(self, request: Request, rule: Rule) -> Response | None:
        """Return the gate's own answer; None when the application shall answer."""
        if rule.need is Need.NOTHING:
            return None
        if rule.need is Need.OWN:
            return await self._own(request)
        try:
            if rule.right is None:
                self._access.user_of(request)
            else:
                self._access.require(request, rule.right)
        except SignInRequired as error:
            if not self._access.sign_in:
                return _refusal(503, str(error))
            seen = request.method in _SAFE and _is_seen(request.scope["path"])
            return to_sign_in(request) if seen else _refusal(401, "sign in again")
        except PermissionRefused as error:
            return _refusal(403, str(error))
        except DataError as error:
            _LOG.error("nobody is let in: %s", error)
            return _refusal(503, "the list of users cannot be read just now")
        if rule.use:
            self._access.touch(token_of(request))
        return None

    async def _own(self, request: Request) -> Response:
        """Return a page of the gate itself."""
        if request.scope["path"] == SIGN_OUT:
            return await self._door.leave(request)
        if request.method in _SAFE:
            return await self._door.show(request)
        return await self._door.take(request)

    def _watched(self, token: str, send: Send) -> Send:
        """Return `send` such that an answer without end ends with its session."""
        endless, cut = False, False

        async def sending(message: Message) -> None:
            nonlocal endless, cut
            if cut:
                return
            if message["type"] == "http.response.start":
                endless = "text/event-stream" in Headers(scope=message).get(
                    "content-type", ""
                )
            elif endless and not self._open(token):
                cut = True
                message = {"type": "http.response.body", "body": b""}
            await send(message)

        return sending

    def _open(self, token: str) -> bool:
        try:
            self._access.session_user(token)
        except (SignInRequired, DataError):
            return False
        return True


def build_gate(app: ASGIApp, access: Access, *, sizes: Sizes = SIZES) -> ASGIApp:
    """Return `app` behind the gate: deny by default, sign-in, same origin, headers."""
    return Gate(app, access, sizes)


def _is_seen(path: str) -> bool:
    """Return whether a person asks for `path`, and not a page's own script."""
    return path == PAGE or path.startswith(DOWNLOAD)


def _refusal(status: int, detail: str) -> Response:
    return JSONResponse({"detail": detail}, status_code=status)


def _without_hearsay(scope: Scope) -> Scope:
    kept = [pair for pair in scope["headers"] if not pair[0].startswith(_HEARSAY)]
    return {**scope, "headers": kept}
